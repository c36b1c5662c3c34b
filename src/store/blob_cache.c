/*
 * The directory of blobs as a cache: blobs are kept elsewhere, and the files here are copies that
 * can go at any time. The layout and the checks are those of blobs on the disk (blob.c). A copy
 * that is damaged is thrown away, and fetched again.
 *
 * What comes from elsewhere is hashed on its way in, and handed out only if the hash is right:
 * nobody reads a byte before all of them are known to be good. So a range of a blob costs the whole
 * of it the first time.
 *
 * To open a copy touches it, as on the disk, so the oldest of them are those that can go.
 */
#include "store/store_int.h"

#include "loop/loop.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARDS     256
#define SHARE_MAX  4  /* one blob takes so much of the cache at most */
#define TRIM_SHARE 10 /* so much of it is made free beyond what must be */

/* --- what is there --- */

struct cache_copy {
    char path[HASH_HEX + 1];
    int64_t used_s;
    uint64_t size;
};

struct cache_copies {
    struct cache_copy *at; /* owned */
    size_t count, room;
    uint64_t bytes;
};

static void add(struct cache_copies *c, const char *top, const char *name, const struct stat *st)
{
    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 1024;
        c->at = mem_realloc(c->at, c->room * sizeof(*c->at));
    }
    struct cache_copy *one = &c->at[c->count++];
    snprintf(one->path, sizeof(one->path), "%s/%s", top, name);
    one->used_s = st->st_mtim.tv_sec;
    one->size = (uint64_t)st->st_size;
    c->bytes += one->size;
}

static void look_at_shard(struct cache_copies *c, int blobs, const char *top)
{
    int dir = openat(blobs, top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    struct stat st;

    if (!d) {
        fd_closep(&dir);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));)
        if (strlen(entry->d_name) == HASH_HEX - 3 &&
            fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            add(c, top, entry->d_name, &st);
    closedir(d);
}

static void look_at_all(struct cache_copies *c, const struct store *s)
{
    char top[3];

    for (unsigned i = 0; i < SHARDS; i++) {
        snprintf(top, sizeof(top), "%02x", i);
        look_at_shard(c, s->blobs, top);
    }
}

int cache_open(struct store *s, struct err *e)
{
    struct cache_copies c = {0};

    (void)e;
    look_at_all(&c, s);
    s->cached_bytes = c.bytes;
    free(c.at);
    return 0;
}

/* --- what gives way --- */

static int by_use(const void *a, const void *b)
{
    const struct cache_copy *x = a, *y = b;

    return x->used_s < y->used_s ? -1 : x->used_s > y->used_s;
}

/* While the disk is low, all of it is too much. */
void cache_trim(struct store *s)
{
    uint64_t most = s->cache_bytes;
    struct cache_copies c = {0};
    bool low = store_is_low(s), over;

    pthread_mutex_lock(&s->naming);
    over = s->cached_bytes > most;
    pthread_mutex_unlock(&s->naming);
    if (!over && !low)
        return;
    look_at_all(&c, s);
    most = low ? 0 : most - most / TRIM_SHARE;
    qsort(c.at, c.count, sizeof(*c.at), by_use);
    for (size_t i = 0; i < c.count && c.bytes > most; i++) {
        if (unlinkat(s->blobs, c.at[i].path, 0) == 0)
            c.bytes -= c.at[i].size;
        if (low && i % 64 == 63)
            low = store_is_low(s), most = low ? 0 : c.bytes;
    }
    pthread_mutex_lock(&s->naming);
    s->cached_bytes = c.bytes;
    pthread_mutex_unlock(&s->naming);
    free(c.at);
}

/* --- into it --- */

void cache_keep(struct blob *b, const char *hash)
{
    struct store *s = b->store;
    struct err ignored;

    if (b->size > s->cache_bytes / SHARE_MAX)
        return;
    if (blob_give_name(b, hash, &ignored) < 0)
        return;
    pthread_mutex_lock(&s->naming);
    s->cached_bytes += b->size; /* cache_trim() looks once a second */
    pthread_mutex_unlock(&s->naming);
}

/* --- out of it --- */

/* -1 and ERR_MISSING: there is no copy, or it was no good. */
static int open_copy(struct store *s, const char *hash, struct err *e)
{
    AUTO_CLOSE int fd = blob_open_file(s, hash, e);
    char path[HASH_HEX + 1];
    int good;

    if (fd < 0)
        return -1;
    good = blob_is_good(s, hash, fd, e);
    if (good > 0)
        return take_fd(&fd);
    blob_path(hash, path);
    log_warn("cache/%s is damaged, and is fetched again", path);
    (void)!unlinkat(s->blobs, path, 0);
    return err_set(e, ERR_MISSING, "the copy of a blob is damaged");
}

/* For reading alone, and with a position of its own. */
static int open_again(const struct blob *b, struct err *e)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open a blob") : fd;
}

/* -1 with ERR_DAMAGED: what came is not what was put. */
static int fetch(struct store *s, const char *hash, struct err *e)
{
    *e = (struct err){0};
    struct blob *b = blob_new(s, UINT64_MAX, e);
    char found[HASH_HEX];
    int fd = -1;

    if (!b)
        return -1;
    if (s->remote->get(s, hash, b, e) == 0) {
        blob_finish_hash(b, found);
        if (memcmp(found, hash, HASH_HEX) != 0)
            err_set(e, ERR_DAMAGED,
                    "the stored bytes of this file are damaged, and are not handed out; upload the "
                    "file again, or restore the object %.2s/%s from a backup",
                    hash, hash + 2);
        else if ((fd = open_again(b, e)) >= 0)
            cache_keep(b, hash);
    }
    blob_free(b);
    return fd;
}

int cache_blob_open(struct store *s, const char *hash, struct err *e)
{
    struct err why = {0};
    int fd = open_copy(s, hash, &why);

    if (fd < 0 && why.kind == ERR_MISSING)
        fd = fetch(s, hash, &why);
    if (fd < 0 && why.kind == ERR_DAMAGED) { /* on the way, perhaps */
        log_warn("blob %s: what came is not what was stored; it is fetched once more", hash);
        fd = fetch(s, hash, &why);
    }
    if (fd < 0)
        *e = why;
    if (fd < 0 && why.kind == ERR_DAMAGED) {
        s->remote->is_damaged(s, hash);
        log_error("the object %.2s/%s is damaged: its bytes are not those that were stored", hash,
                  hash + 2);
    }
    return fd;
}
