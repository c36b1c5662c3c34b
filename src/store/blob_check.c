/*
 * Checks that the bytes of a blob match its name, which is their hash. A blob is hashed whole
 * before anybody reads it: the disk may have changed its bytes, and part of a file cannot be
 * checked by itself. A small one is hashed each time. The result for a large one is remembered
 * for KNOWN_US, as the same file with the same time of its last change, so that many ranges of
 * it cost one reading.
 */
#include "store/store_int.h"

#include "loop/loop.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE  (256 * KiB)
#define SMALL_SIZE (64 * KiB)
#define KNOWN      1024 /* large blobs remembered; a place for each, by its hash */
#define KNOWN_US   (600 * 1000000ll)

struct blob_known {
    char hash[HASH_HEX];
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
    int64_t at_us;
};

static struct blob_known known_of(const char *hash, const struct stat *st)
{
    struct blob_known k = {.dev = st->st_dev,
                           .ino = st->st_ino,
                           .size = st->st_size,
                           .changed = st->st_ctim,
                           .at_us = time_mono_us()};

    memcpy(k.hash, hash, HASH_HEX);
    return k;
}

/* With the mutex held. */
static struct blob_known *place_of(struct store *s, const char *hash)
{
    char top[9] = {0};

    memcpy(top, hash, sizeof(top) - 1);
    if (!s->known)
        s->known = mem_zalloc(KNOWN * sizeof(*s->known));
    return &s->known[strtoul(top, NULL, 16) % KNOWN];
}

static bool is_known(struct store *s, const char *hash, const struct stat *st)
{
    struct blob_known now = known_of(hash, st), *was;
    bool same;

    pthread_mutex_lock(&s->naming);
    was = place_of(s, hash);
    same = memcmp(was->hash, hash, HASH_HEX) == 0 && was->dev == now.dev && was->ino == now.ino &&
           was->size == now.size && was->changed.tv_sec == now.changed.tv_sec &&
           was->changed.tv_nsec == now.changed.tv_nsec && now.at_us - was->at_us < KNOWN_US;
    pthread_mutex_unlock(&s->naming);
    return same;
}

void blob_note_good(struct store *s, const char *hash, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || st.st_size <= (off_t)SMALL_SIZE)
        return;
    pthread_mutex_lock(&s->naming);
    *place_of(s, hash) = known_of(hash, &st);
    pthread_mutex_unlock(&s->naming);
}

void hash_show(const uint8_t hash[32], char ret[HASH_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < 32; i++) {
        ret[2 * i] = digits[hash[i] >> 4];
        ret[2 * i + 1] = digits[hash[i] & 15];
    }
    ret[HASH_HEX - 1] = '\0';
}

void hash_of(struct str bytes, char ret[HASH_HEX])
{
    uint8_t hash[32];
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.n ? bytes.p : "", bytes.n, hash);

    assert(rc == 0);
    hash_show(hash, ret);
}

/* Of all of fd. -1: it cannot be read. */
static int hash_file(int fd, char ret[HASH_HEX], struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(READ_SIZE);
    gnutls_hash_hd_t hash;
    uint8_t sum[32];
    ssize_t n;

    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return err_set(e, ERR_HOST, "check a blob: SHA-256 is not available");
    for (off_t at = 0; (n = pread(fd, bytes, READ_SIZE, at)) != 0; at += n > 0 ? n : 0) {
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0)
            gnutls_hash(hash, bytes, (size_t)n);
        work_yield();
    }
    if (n < 0)
        err_sys(e, "read a blob");
    gnutls_hash_deinit(hash, sum);
    hash_show(sum, ret);
    return n < 0 ? -1 : 0;
}

/* EIO on reading is damage, too: the disk knows it. */
static int damaged(const char *hash, struct err *e)
{
    log_error("blobs/%.2s/%s is damaged: its bytes are not those that were stored", hash, hash + 2);
    return err_set(e, ERR_DAMAGED,
                   "the stored bytes of this file are damaged, and are not handed out; upload the "
                   "file again, or restore blobs/%.2s/%s of the state directory from a backup",
                   hash, hash + 2);
}

int blob_is_good(struct store *s, const char *hash, int fd, struct err *e)
{
    char found[HASH_HEX];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "look at a blob");
    if (st.st_size > (off_t)SMALL_SIZE && is_known(s, hash, &st))
        return 1;
    if (hash_file(fd, found, e) < 0)
        return e->sys == EIO ? 0 : -1;
    if (memcmp(found, hash, HASH_HEX) != 0)
        return 0;
    blob_note_good(s, hash, fd);
    return 1;
}

int blob_check(struct store *s, const char *hash, int fd, struct err *e)
{
    int good = blob_is_good(s, hash, fd, e);

    return good == 0 ? damaged(hash, e) : good < 0 ? -1 : 0;
}
