/* Ids and keys, in an alphabet without letters that look like others. */
#include "store/store_int.h"

#include <gnutls/crypto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TIME_CHARS   11 /* 55 bits of microseconds: enough for a thousand years */
#define RANDOM_CHARS 17
#define ID_CHARS     (TIME_CHARS + RANDOM_CHARS)
#define SECRET_CHARS 48
#define HINT_CHARS   6 /* of the secret's 48: what is left is no easier to guess */

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* no i, l, o, u */

/* Five bits of each byte: every character is as likely as any other. */
static void chars_of(const uint8_t *bytes, char *ret, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = alphabet[bytes[i] & 31];
    ret[n] = '\0';
}

/* The kernel is asked for 15 ids at a time: each request has one, and each execution. Secrets do
 * not come from here. What is used is forgotten. */
static void random_chars(char *ret)
{
    static _Thread_local uint8_t bytes[15 * RANDOM_CHARS];
    static _Thread_local size_t left;

    if (left == 0) {
        random_bytes(bytes, sizeof(bytes));
        left = sizeof(bytes);
    }
    left -= RANDOM_CHARS;
    chars_of(bytes + left, ret, RANDOM_CHARS);
    memset(bytes + left, 0, RANDOM_CHARS);
}

/* Never the same twice, and never less than before, also when the clock is set back. */
static uint64_t next_us(void)
{
    static _Atomic uint64_t last;
    struct timespec now;
    uint64_t us, before = atomic_load(&last);

    clock_gettime(CLOCK_REALTIME, &now);
    do {
        us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
        us = us > before ? us : before + 1;
    } while (!atomic_compare_exchange_weak(&last, &before, us));
    return us;
}

static void time_chars(char *ret)
{
    uint64_t us = next_us();

    for (size_t i = TIME_CHARS; i-- > 0; us >>= 5)
        ret[i] = alphabet[us & 31];
}

void id_make(char ret[ID_MAX], const char *prefix)
{
    size_t n = strlen(prefix);

    assert(n > 1 && prefix[n - 1] == '_' && n + ID_CHARS < ID_MAX);
    snprintf(ret, ID_MAX, "%s", prefix);
    time_chars(ret + n);
    random_chars(ret + n + TIME_CHARS);
}

bool id_is(struct str id, const char *prefix)
{
    size_t n = strlen(prefix);

    if (id.n != n + ID_CHARS || memcmp(id.p, prefix, n) != 0)
        return false;
    for (size_t i = n; i < id.n; i++)
        if (!memchr(alphabet, id.p[i], sizeof(alphabet) - 1))
            return false;
    return true;
}

int64_t id_ms(struct str id)
{
    uint64_t us = 0;

    for (size_t i = id.n - ID_CHARS; i < id.n - RANDOM_CHARS; i++)
        us = us << 5 | (uint64_t)(strchr(alphabet, id.p[i]) - alphabet);
    return (int64_t)(us / 1000);
}

int64_t id_time(struct str id)
{
    size_t n = id.n > ID_CHARS ? id.n - ID_CHARS : 0;
    char prefix[ID_MAX];

    if (n < 2 || id.p[n - 1] != '_' || !str_to_cstr((struct str){id.p, n}, prefix, sizeof(prefix)))
        return 0;
    return id_is(id, prefix) ? id_ms(id) : 0;
}

/* --- keys --- */

void key_hash(struct str secret, uint8_t ret[32])
{
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, secret.p ? secret.p : "", secret.n, ret);

    assert(rc == 0);
}

void key_make(struct key_row *ret, char ret_secret[KEY_SECRET_MAX], const char *tenant,
              const char *name, bool admin)
{
    static const char prefix[] = "rt_";
    uint8_t bytes[SECRET_CHARS];

    *ret = (struct key_row){
        .tenant = mem_strdup(tenant),
        .name = mem_strdup(name),
        .admin = admin,
        .created_ms = time_now_ms(),
    };
    id_make(ret->id, "key_");
    memcpy(ret_secret, prefix, sizeof(prefix));
    random_bytes(bytes, sizeof(bytes));
    chars_of(bytes, ret_secret + sizeof(prefix) - 1, SECRET_CHARS);
    snprintf(ret->hint, sizeof(ret->hint), "%.*s", (int)sizeof(prefix) - 1 + HINT_CHARS,
             ret_secret);
    key_hash(str_of(ret_secret), ret->hash);
}

bool blob_is_hash(const char *hash)
{
    return strspn(hash, "0123456789abcdef") == HASH_HEX - 1 && hash[HASH_HEX - 1] == '\0';
}
