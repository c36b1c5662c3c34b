/*
 * Blobs: for each content one file under blobs/ab/cd..., named by its SHA-256. A blob is written
 * without a name (O_TMPFILE) and linked into place when it is complete. Where the file system has
 * no such files, it gets a name in blobs/tmp/ and is renamed.
 *
 * The sweep removes a blob when no row names it and nobody has touched it for SPARE_S. Putting the
 * same content again is a touch, and so is opening it: after that the caller has most of an hour to
 * write the row that names the blob. The sweep first marks what it finds. It removes the names
 * after its transaction is committed, so no row can refer to a blob that is gone, and checks each
 * blob once more under the lock that naming takes.
 */
#include "loop/loop.h"
#include "store/store_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define COPY_SIZE (256 * KiB)
#define LOOK_SIZE (16 * MiB) /* written between two looks at what is left */
#define LARGE     (4 * MiB)  /* no other blob waits for one of these: its own worker syncs it */
#define SPARE_S   3600
#define LOW_S     5 /* the same while the disk is nearly full: names_blob() looks again then */
#define SHARDS    256
#define SWEEP_MAX 2000 /* looked at in one go: the sweep is on the store's thread */

/* --- the directory --- */

static int make_dir(int above, const char *name, struct err *e)
{
    int fd;

    if (mkdirat(above, name, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make '%s'", name);
    fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open '%s'", name) : fd;
}

/* Takes ownership of dir. */
static void remove_all(int dir)
{
    DIR *d = fdopendir(dir);

    if (!d) {
        fd_closep(&dir);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));)
        if (entry->d_name[0] != '.')
            (void)!unlinkat(dir, entry->d_name, 0);
    closedir(d);
}

/* Whether the directory has the bytes of any blob. */
static bool has_any(int above, const char *name)
{
    AUTO_CLOSE int dir = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool any = false;

    for (unsigned i = 0; dir >= 0 && i < SHARDS && !any; i++) {
        char top[3];
        snprintf(top, sizeof(top), "%02x", i);
        int shard = openat(dir, top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *d = shard < 0 ? NULL : fdopendir(shard);
        for (struct dirent *entry; d && !any && (entry = readdir(d));)
            any = entry->d_name[0] != '.';
        if (d)
            closedir(d);
        else
            fd_closep(&shard);
    }
    return any;
}

/* A server that looks for blobs where they are not would find all files lost. */
static int check_place(const struct store *s, struct err *e)
{
    if (s->remote && has_any(s->dir, "blobs"))
        return err_set(e, ERR_CALLER,
                       "its files are on the disk, in blobs/. To keep them in S3 from now on, copy "
                       "what is in blobs/ to the prefix, and rename blobs/");
    if (!s->remote && faccessat(s->dir, "cache", F_OK, 0) == 0)
        return err_set(
            e, ERR_CALLER,
            "its files are in S3: say where with blobs = s3://BUCKET/PREFIX. To keep them "
            "on the disk from now on, copy what is there to blobs/, and remove cache/");
    return 0;
}

int blobs_open(struct store *s, bool alone, struct err *e)
{
    AUTO_CLOSE int temp = -1;
    AUTO_CLOSE int probe = -1;

    if (alone && check_place(s, e) < 0)
        return -1;
    /* Not the same directory: what is on the disk alone must never be taken for a copy. */
    s->blobs = make_dir(s->dir, s->remote ? "cache" : "blobs", e);
    if (s->blobs < 0)
        return -1;
    temp = make_dir(s->blobs, "tmp", e);
    if (temp < 0)
        return -1;
    probe = openat(s->blobs, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    s->temp_names = probe < 0;
    if (alone)
        remove_all(take_fd(&temp));
    return s->remote ? cache_open(s, e) : 0;
}

void blobs_close(struct store *s)
{
    fd_closep(&s->blobs);
    free(s->doomed);
    free(s->known);
    pthread_mutex_destroy(&s->naming);
}

/* --- writing --- */

/* A disk that takes no bytes is known to all from now on. */
static int fail(struct blob *b, int rc, struct err *e)
{
    (void)!disk_blame(e);
    disk_failed(b->store, e);
    return rc;
}

static int open_temp(struct blob *b)
{
    int flags = O_RDWR | O_CLOEXEC;

    if (!b->store->temp_names)
        return openat(b->store->blobs, ".", O_TMPFILE | flags, 0600);
    b->temp_dir = openat(b->store->blobs, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->temp_dir < 0)
        return -1;
    id_make(b->temp, "blob_");
    return openat(b->temp_dir, b->temp, O_CREAT | O_EXCL | flags, 0600);
}

int store_spool(struct store *s, struct err *e)
{
    struct blob b = {.store = s, .temp_dir = -1, .fd = -1};

    if (disk_room_for_blobs(s, e) < 0)
        return -1;
    b.fd = open_temp(&b);
    if (b.fd >= 0 && b.temp_dir >= 0)
        (void)!unlinkat(b.temp_dir, b.temp, 0);
    fd_closep(&b.temp_dir);
    return b.fd < 0 ? fail(&b, err_sys(e, "make a file for bytes on their way"), e) : b.fd;
}

struct blob *blob_new(struct store *s, uint64_t max, struct err *e)
{
    struct blob *b = mem_zalloc(sizeof(*b));

    *b = (struct blob){.store = s, .max = max, .temp_dir = -1, .fd = -1};
    if (disk_room_for_blobs(s, e) < 0)
        ; /* e says so */
    else if ((b->fd = open_temp(b)) < 0)
        fail(b, err_sys(e, "make a blob"), e);
    else if (gnutls_hash_init(&b->hash, GNUTLS_DIG_SHA256) < 0)
        err_set(e, ERR_HOST, "make a blob: SHA-256 is not available");
    else
        return b;
    blob_free(b);
    return NULL;
}

void blob_free(struct blob *b)
{
    if (!b)
        return;
    if (b->hash)
        gnutls_hash_deinit(b->hash, NULL);
    if (*b->temp && b->fd >= 0)
        (void)!unlinkat(b->temp_dir, b->temp, 0);
    fd_closep(&b->fd);
    fd_closep(&b->temp_dir);
    free(b);
}

static int check_size(struct blob *b, uint64_t more, struct err *e)
{
    if (more <= b->max - b->size)
        return 0;
    b->broken = true;
    return err_set(e, ERR_LIMIT, "more than %llu bytes", (unsigned long long)b->max);
}

ssize_t blob_peek(const struct blob *b, char *ret, size_t size)
{
    size_t n = 0;
    ssize_t got;

    while (n < size && (got = pread(b->fd, ret + n, size - n, (off_t)n)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

int blob_write(struct blob *b, struct str bytes, struct err *e)
{
    if (check_size(b, bytes.n, e) < 0)
        return -1;
    if (bytes.n == 0)
        return 0;
    if (b->size / LOOK_SIZE != (b->size + bytes.n) / LOOK_SIZE &&
        disk_room_for_blobs(b->store, e) < 0) {
        b->broken = true;
        return -1;
    }
    if (fd_write_all(b->fd, bytes, e) < 0) {
        b->broken = true;
        return fail(b, err_wrap(e, "write a blob"), e);
    }
    int rc = gnutls_hash(b->hash, bytes.p, bytes.n);
    assert(rc == 0); /* it only counts in memory */
    b->size += bytes.n;
    return 0;
}

/* Zeros that are counted and hashed, and take no room. */
static int write_hole(struct blob *b, uint64_t n, struct err *e)
{
    static const char zeros[64 * KiB];

    if (check_size(b, n, e) < 0)
        return -1;
    b->size += n;
    if (n > 0 &&
        (ftruncate(b->fd, (off_t)b->size) < 0 || lseek(b->fd, (off_t)b->size, SEEK_SET) < 0)) {
        b->broken = true;
        return fail(b, err_sys(e, "write a blob"), e);
    }
    for (size_t part; n > 0; n -= part) {
        part = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);
        gnutls_hash(b->hash, zeros, part);
        work_yield();
    }
    return 0;
}

static int write_run(struct blob *b, int fd, off_t at, off_t to, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(COPY_SIZE);

    while (at < to) {
        size_t most = to - at < (off_t)COPY_SIZE ? (size_t)(to - at) : COPY_SIZE;
        work_yield();
        ssize_t n = pread(fd, bytes, most, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            b->broken = true;
            return err_sys(e, "read for a blob");
        }
        if (n == 0) /* somebody has made it shorter meanwhile */
            return 0;
        if (blob_write(b, (struct str){bytes, (size_t)n}, e) < 0)
            return -1;
        at += n;
    }
    return 0;
}

int blob_write_fd(struct blob *b, int fd, struct err *e)
{
    off_t at = 0, from, to, end;

    for (; fd_data_run(fd, at, &from, &to); at = to)
        if (write_hole(b, (uint64_t)(from - at), e) < 0 || write_run(b, fd, from, to, e) < 0)
            return -1;
    end = lseek(fd, 0, SEEK_END);
    if (end < 0) {
        b->broken = true;
        return err_sys(e, "read for a blob");
    }
    return end > at ? write_hole(b, (uint64_t)(end - at), e) : 0;
}

/* --- naming --- */

void blob_finish_hash(struct blob *b, char ret[HASH_HEX])
{
    uint8_t hash[32];

    gnutls_hash_deinit(b->hash, hash);
    b->hash = NULL;
    hash_show(hash, ret);
}

/* Under a name in tmp/ as long as it has none. */
static int name_temp(struct blob *b)
{
    char path[64];

    if (*b->temp)
        return 0;
    b->temp_dir = openat(b->store->blobs, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->temp_dir < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
    id_make(b->temp, "blob_");
    if (linkat(AT_FDCWD, path, b->temp_dir, b->temp, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    *b->temp = '\0';
    return -1;
}

/* One that is there already gives way: its bytes may have been lost in a power cut or damaged by
 * the disk, and these are known to be good. Who reads it goes on reading the old one. */
static int give_name(struct blob *b, int shard, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
    if (!*b->temp && linkat(AT_FDCWD, path, shard, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if ((!*b->temp && errno != EEXIST) || name_temp(b) < 0)
        return -1;
    if (renameat(b->temp_dir, b->temp, shard, name) < 0)
        return -1;
    *b->temp = '\0';
    return 0;
}

/* Others work while this one waits for the disk. */
static int sync_bytes(int fd)
{
    int rc;

    work_wait_begin();
    rc = fdatasync(fd);
    work_wait_end();
    return rc;
}

int blob_give_name(struct blob *b, const char *hash, struct err *e)
{
    AUTO_CLOSE int shard = -1;
    char top[3] = {hash[0], hash[1], '\0'};
    int rc;

    shard = make_dir(b->store->blobs, top, e);
    if (shard < 0)
        return fail(b, err_wrap(e, "keep a blob"), e);
    pthread_mutex_lock(&b->store->naming);
    rc = give_name(b, shard, hash + 2);
    pthread_mutex_unlock(&b->store->naming);
    if (rc < 0)
        return fail(b, err_sys(e, "name a blob"), e);
    blob_note_good(b->store, hash, b->fd);
    return 0;
}

static int keep_on_disk(struct blob *b, enum blob_sync when, const char *hash, struct err *e)
{
    char top[3] = {hash[0], hash[1], '\0'};
    /* What the redo log takes stands there beside its row. */
    bool syncs = b->size > LARGE || (when == BLOB_NOW && !redo_takes(b->store, b->size));

    /* The last write may be long ago; the sweep counts from now. */
    if (futimens(b->fd, NULL) < 0 || (syncs && sync_bytes(b->fd) < 0))
        return fail(b, err_sys(e, "sync a blob"), e);
    if (blob_give_name(b, hash, e) < 0)
        return -1;
    if (when != BLOB_MANY)
        flush_blob(b->store, take_fd(&b->fd), (unsigned)strtoul(top, NULL, 16));
    return 0;
}

static int keep(struct blob *b, enum blob_sync when, const char *hash, struct err *e)
{
    const struct blob_ops *remote = b->store->remote;

    if (b->broken)
        return err_set(e, ERR_HOST, "keep a blob: not all of it was written");
    if (!remote)
        return keep_on_disk(b, when, hash, e);
    if (remote->put(b->store, b->fd, hash, b->size, e) < 0)
        return -1;
    cache_keep(b, hash);
    return 0;
}

int blob_keep(struct blob *b, enum blob_sync when, char ret_hash[HASH_HEX], uint64_t *ret_size,
              struct err *e)
{
    int rc;

    blob_finish_hash(b, ret_hash);
    *ret_size = b->size;
    rc = keep(b, when, ret_hash, e);
    blob_free(b);
    return rc;
}

/* --- reading --- */

void blob_path(const char *hash, char ret[HASH_HEX + 1])
{
    snprintf(ret, HASH_HEX + 1, "%.2s/%s", hash, hash + 2);
}

/* A touch is a write to the disk, so one in a while is enough. */
static int open_and_touch(struct store *s, const char *path)
{
    AUTO_CLOSE int fd = openat(s->blobs, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (st.st_mtim.tv_sec < time(NULL) - SPARE_S / 4)
        (void)!futimens(fd, NULL); /* a disk that is full or read-only can be read all the same */
    return take_fd(&fd);
}

int blob_open_file(struct store *s, const char *hash, struct err *e)
{
    char path[HASH_HEX + 1];
    AUTO_CLOSE int fd = -1;

    blob_path(hash, path);
    pthread_mutex_lock(&s->naming);
    fd = open_and_touch(s, path);
    pthread_mutex_unlock(&s->naming);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_MISSING, "the blob is not there");
    return fd < 0 ? err_sys(e, "open a blob") : take_fd(&fd);
}

int blob_open(struct store *s, const char *hash, struct err *e)
{
    AUTO_CLOSE int fd = -1;

    if (!blob_is_hash(hash))
        return err_set(e, ERR_CALLER, "not the hash of a blob");
    if (s->remote)
        return cache_blob_open(s, hash, e);
    fd = blob_open_file(s, hash, e);
    return fd < 0 || blob_check(s, hash, fd, e) < 0 ? -1 : take_fd(&fd);
}

int names_blob(struct db *db, const char *hash, struct err *e)
{
    char path[HASH_HEX + 1];

    if (!*hash)
        return 0;
    if (db->store && db->store->remote)
        return db->store->remote->name(db, hash, e);
    db->names_blobs = true;
    redo_note_blob(db, hash);
    if (!db->checks_blobs || !blob_is_hash(hash))
        return 0;
    blob_path(hash, path);
    if (faccessat(db->blobs, path, F_OK, 0) == 0)
        return 0;
    return err_set(e, ERR_FULL,
                   "the disk of the server is nearly full, and bytes that nothing named "
                   "yet have been removed");
}

int db_blob_hold(struct db *db, const char *hash, struct err *e)
{
    if (names_blob(db, hash, e) < 0)
        return -1;
    snprintf(db->holds, sizeof(db->holds), "%s", hash);
    return 0;
}

/* --- the sweep --- */

static bool is_old(const struct store *s, int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_mtim.tv_sec < time_sure_ms() / 1000 - (s->db->checks_blobs ? LOW_S : SPARE_S);
}

static void doom(struct store *s, const char *hash)
{
    s->doomed = mem_realloc(s->doomed, (s->doomed_count + 1) * sizeof(*s->doomed));
    memcpy(s->doomed[s->doomed_count++], hash, HASH_HEX);
}

/* Returns how many it looked at. Takes ownership of dir. */
static int sweep_shard(struct store *s, struct db *db, const char *top, int dir, struct err *e)
{
    DIR *d = fdopendir(dir);
    int seen = 0, named = 0;

    if (!d) {
        fd_closep(&dir);
        return err_sys(e, "read a directory of blobs");
    }
    for (struct dirent *entry; named >= 0 && (entry = readdir(d));) {
        char hash[HASH_HEX + 1];
        snprintf(hash, sizeof(hash), "%s%.*s", top, HASH_HEX - 2, entry->d_name);
        seen++;
        if (!blob_is_hash(hash) || !is_old(s, dir, entry->d_name))
            continue;
        named = db_blob_named(db, hash, e);
        if (named == 0)
            doom(s, hash);
    }
    closedir(d);
    return named < 0 ? -1 : seen;
}

int blob_sweep(struct store *s, struct db *db, struct err *e)
{
    size_t before = s->doomed_count;

    if (s->remote) {
        s->remote->sweep(s);
        return 0;
    }
    for (int i = 0, seen = 0; i < SHARDS && seen < SWEEP_MAX; i++) {
        char top[3];
        snprintf(top, sizeof(top), "%02x", s->shard % SHARDS);
        s->shard++;
        int dir = openat(s->blobs, top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0 && errno == ENOENT)
            continue;
        int n = dir < 0 ? err_sys(e, "open a directory of blobs") : sweep_shard(s, db, top, dir, e);
        if (n < 0)
            return -1;
        seen += n;
    }
    return (int)(s->doomed_count - before);
}

void blobs_swept(struct store *s, bool committed)
{
    char path[HASH_HEX + 1];

    for (size_t i = 0; committed && i < s->doomed_count; i++) {
        blob_path(s->doomed[i], path);
        pthread_mutex_lock(&s->naming);
        if (is_old(s, s->blobs, path))
            (void)!unlinkat(s->blobs, path, 0);
        pthread_mutex_unlock(&s->naming);
    }
    mem_freep(&s->doomed);
    s->doomed_count = 0;
}
