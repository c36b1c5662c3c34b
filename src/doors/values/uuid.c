/* UUIDs: random ones, and ones that are the same for the same name. */
#include "doors/values/values.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

static void uuid_print(char ret[UUID_MAX], uint8_t b[16], unsigned version)
{
    static const uint8_t dashes[] = {8, 13, 18, 23};
    char *p = ret;

    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 16; i++) {
        for (size_t d = 0; d < COUNT(dashes); d++)
            if (p - ret == dashes[d])
                *p++ = '-';
        p += snprintf(p, 3, "%02x", b[i]);
    }
}

void uuid_make(char ret[UUID_MAX])
{
    uint8_t b[16];
    int rc = gnutls_rnd(GNUTLS_RND_RANDOM, b, sizeof(b));

    assert(rc == 0);
    uuid_print(ret, b, 4);
}

void uuid_from(char ret[UUID_MAX], struct str name)
{
    uint8_t hash[32];
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, name.p, name.n, hash);

    assert(rc == 0);
    uuid_print(ret, hash, 8);
}
