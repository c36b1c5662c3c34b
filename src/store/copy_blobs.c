/*
 * Blobs of one place, to another: a directory, or S3. Both have them in the order of their hashes,
 * so two lists that are read side by side tell what is missing, however many there are. What was
 * copied before the process ended is there with its name and its size, and is not copied again.
 *
 * A blob is hashed before it is written, and once more when all are there, as it is read back: what
 * was damaged before is told apart from what was damaged on the way.
 */
#include "store/copy_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARDS    256
#define TEMP      "tmp/copy"
#define MARK      "retort.copy" /* no name of a blob */
#define MARK_MAX  (4 * KiB)
#define READ_SIZE (256 * KiB)

struct blob_place_ops {
    /* The blobs after this key, in order; ret->last: where to go on, or "". */
    int (*page)(struct blob_place *p, const char *after, struct s3_page *ret, struct err *e);
    /* An owned fd with its bytes, not checked. ERR_MISSING. */
    int (*open)(struct blob_place *p, const char *hash, struct err *e);
    int (*put)(struct blob_place *p, int fd, const char *hash, uint64_t size, struct err *e);
    int (*mark)(struct blob_place *p, const char *text, struct err *e);
    int (*marked)(struct blob_place *p, char ret[MARK_MAX], struct err *e); /* 1, 0, -1 */
    int (*unmark)(struct blob_place *p, struct err *e);
    int (*sync)(struct blob_place *p, struct err *e);
};

/* --- a directory --- */

static void shard_name(unsigned i, char ret[3])
{
    snprintf(ret, 3, "%02x", i % SHARDS);
}

static void add_file(struct s3_page *page, const char *top, int dir, const char *name)
{
    struct s3_object o = {0};
    struct stat st;

    if (strlen(name) != HASH_HEX - 3)
        return;
    snprintf(o.hash, sizeof(o.hash), "%s%.*s", top, HASH_HEX - 3, name);
    if (!blob_is_hash(o.hash) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode))
        return;
    o.size = (uint64_t)st.st_size;
    if ((page->count & (page->count - 1)) == 0)
        page->at = mem_realloc(page->at, (page->count ? 2 * page->count : 1) * sizeof(*page->at));
    page->at[page->count++] = o;
}

static int by_hash(const void *a, const void *b)
{
    return strcmp(((const struct s3_object *)a)->hash, ((const struct s3_object *)b)->hash);
}

/* A page is one directory. */
static int disk_page(struct blob_place *p, const char *after, struct s3_page *ret, struct err *e)
{
    unsigned i = *after ? (unsigned)strtoul(after, NULL, 16) + 1 : 0;
    char top[3];
    DIR *d;

    *ret = (struct s3_page){0};
    shard_name(i, top);
    int dir = openat(p->dir, top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno != ENOENT)
        return err_sys(e, "open a directory of blobs");
    d = dir < 0 ? NULL : fdopendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));)
        add_file(ret, top, dir, entry->d_name);
    if (d)
        closedir(d);
    if (ret->count > 0)
        qsort(ret->at, ret->count, sizeof(*ret->at), by_hash);
    if (i + 1 < SHARDS)
        memcpy(ret->last, top, sizeof(top));
    return 0;
}

static int disk_open(struct blob_place *p, const char *hash, struct err *e)
{
    char key[S3_KEY_MAX];
    int fd;

    s3_key_of(hash, key);
    fd = openat(p->dir, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_MISSING, "the blob is not there");
    return fd < 0 ? err_sys(e, "open a blob") : fd;
}

static int copy_bytes(int from, int to, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(READ_SIZE);
    off_t at = 0;
    ssize_t n;

    while ((n = pread(from, bytes, READ_SIZE, at)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read a blob");
        if (fd_write_all(to, (struct str){bytes, (size_t)n}, e) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* Under its name it is whole, whenever we are killed; disk_sync() is for a power cut. */
static int disk_put(struct blob_place *p, int fd, const char *hash, uint64_t size, struct err *e)
{
    AUTO_CLOSE int to = openat(p->dir, TEMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char key[S3_KEY_MAX], top[3] = {hash[0], hash[1], '\0'};

    (void)size;
    s3_key_of(hash, key);
    if (to < 0 || (mkdirat(p->dir, top, 0700) < 0 && errno != EEXIST))
        return err_sys(e, "make a blob");
    if (copy_bytes(fd, to, e) < 0)
        return -1;
    if (renameat(p->dir, TEMP, p->dir, key) < 0)
        return err_sys(e, "name a blob");
    return 0;
}

static int disk_mark(struct blob_place *p, const char *text, struct err *e)
{
    AUTO_CLOSE int fd = openat(p->dir, TEMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, "mark the copy");
    if (fd_write_all(fd, str_of(text), e) < 0)
        return -1;
    if (fsync(fd) < 0 || renameat(p->dir, TEMP, p->dir, MARK) < 0 || fsync(p->dir) < 0)
        return err_sys(e, "mark the copy");
    return 0;
}

static int disk_marked(struct blob_place *p, char ret[MARK_MAX], struct err *e)
{
    if (fd_read_file_at(p->dir, MARK, ret, MARK_MAX) >= 0)
        return 1;
    return errno == ENOENT ? 0 : err_sys(e, "read the mark of the copy");
}

static int disk_unmark(struct blob_place *p, struct err *e)
{
    if (unlinkat(p->dir, MARK, 0) < 0 && errno != ENOENT)
        return err_sys(e, "take away the mark of the copy");
    return fsync(p->dir) < 0 ? err_sys(e, "sync the files") : 0;
}

static int disk_sync(struct blob_place *p, struct err *e)
{
    return syncfs(p->dir) < 0 ? err_sys(e, "sync the files") : 0;
}

static const struct blob_place_ops disk_ops = {
    .page = disk_page,
    .open = disk_open,
    .put = disk_put,
    .mark = disk_mark,
    .marked = disk_marked,
    .unmark = disk_unmark,
    .sync = disk_sync,
};

/* --- S3 --- */

static int s3_page_of(struct blob_place *p, const char *after, struct s3_page *ret, struct err *e)
{
    return s3_list(p->s3, after, ret, e);
}

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    return fd_write_all(*(const int *)arg, bytes, e);
}

/* Into a file without a name in the directory of the other place, which has room for all of them.
 */
static int s3_open(struct blob_place *p, const char *hash, struct err *e)
{
    AUTO_CLOSE int fd = openat(p->dir, TEMP ".down", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || unlinkat(p->dir, TEMP ".down", 0) < 0)
        return err_sys(e, "make a file");
    return s3_get(p->s3, hash, on_bytes, &fd, e) < 0 ? -1 : take_fd(&fd);
}

static int s3_put_blob(struct blob_place *p, int fd, const char *hash, uint64_t size, struct err *e)
{
    return s3_put(p->s3, fd, hash, size, e);
}

/* ret: the body of an answer, or NULL. 1: there is such an object; 0: not. */
static int call_mark(struct blob_place *p, const char *method, const char *text, char *ret,
                     struct err *e)
{
    const struct s3_request q = {.method = method, .key = MARK, .text = str_of(text)};
    struct s3_answer a;
    int rc = s3_call(p->s3, &q, &a, e);

    if (rc == 0 && ret)
        xml_copy(buf_str(&a.text), ret, MARK_MAX);
    if (rc == 0)
        rc = a.status / 100 == 2;
    s3_answer_done(&a);
    return rc;
}

static int s3_mark(struct blob_place *p, const char *text, struct err *e)
{
    int rc = call_mark(p, "PUT", text, NULL, e);

    return rc == 0 ? err_set(e, ERR_HOST, "S3 takes no object") : rc < 0 ? -1 : 0;
}

static int s3_marked(struct blob_place *p, char ret[MARK_MAX], struct err *e)
{
    return call_mark(p, "GET", NULL, ret, e);
}

static int s3_unmark(struct blob_place *p, struct err *e)
{
    return call_mark(p, "DELETE", NULL, NULL, e) < 0 ? -1 : 0;
}

static int s3_sync(struct blob_place *p, struct err *e)
{
    (void)p;
    (void)e;
    return 0;
}

static const struct blob_place_ops s3_ops = {
    .page = s3_page_of,
    .open = s3_open,
    .put = s3_put_blob,
    .mark = s3_mark,
    .marked = s3_marked,
    .unmark = s3_unmark,
    .sync = s3_sync,
};

/* --- either of them --- */

/* The blobs of a directory, with room for what is half-written. */
static int open_dir(const char *path, bool makes, struct err *e)
{
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int blobs = -1;

    if (dir < 0)
        return err_sys(e, "open %s", path);
    if (!makes && faccessat(dir, "cache", F_OK, 0) == 0)
        return err_set(e, ERR_CALLER, "the files of %s are in S3: say where, as s3://BUCKET/PREFIX",
                       path);
    if (mkdirat(dir, "blobs", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s/blobs", path);
    blobs = openat(dir, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (blobs < 0 || (mkdirat(blobs, "tmp", 0700) < 0 && errno != EEXIST))
        return err_sys(e, "open %s/blobs", path);
    return take_fd(&blobs);
}

int blob_place_open(struct blob_place *p, const struct store_place *of, bool makes, struct err *e)
{
    *p = (struct blob_place){.ops = of->s3 ? &s3_ops : &disk_ops, .dir = -1};
    if (of->s3) {
        p->s3 = s3_config_check(of->s3, e) < 0 ? NULL : s3_new(of->s3, e);
        return p->s3 ? 0 : -1;
    }
    p->dir = open_dir(of->dir, makes, e);
    return p->dir < 0 ? -1 : 0;
}

void blob_place_close(struct blob_place *p)
{
    if (p->s3)
        s3_free(p->s3);
    if (p->ops)
        fd_closep(&p->dir);
    *p = (struct blob_place){.dir = -1};
}

int blobs_mark(struct blob_place *p, const char *text, struct err *e)
{
    return p->ops->mark(p, text, e);
}

int blobs_marked(struct blob_place *p, char **ret, struct err *e)
{
    AUTO_FREE char *text = mem_zalloc(MARK_MAX);
    int rc = p->ops->marked(p, text, e);

    *ret = rc > 0 ? take_ptr(&text) : NULL;
    return rc < 0 ? -1 : 0;
}

int blobs_unmark(struct blob_place *p, struct err *e)
{
    return p->ops->unmark(p, e);
}

/* --- a list, page by page --- */

struct blob_list {
    struct blob_place *of; /* borrowed */
    struct s3_page page;
    size_t at;
    bool begun;
};

static void list_done(struct blob_list *l)
{
    s3_page_done(&l->page);
}

/* 1 and the next one, or 0. It stays until the list moves on. */
static int list_look(struct blob_list *l, const struct s3_object **ret, struct err *e)
{
    char after[S3_KEY_MAX];

    while (l->at == l->page.count) {
        if (l->begun && !*l->page.last)
            return 0;
        memcpy(after, l->page.last, sizeof(after));
        s3_page_done(&l->page);
        l->at = 0;
        l->begun = true;
        if (l->of->ops->page(l->of, after, &l->page, e) < 0)
            return -1;
    }
    *ret = &l->page.at[l->at];
    return 1;
}

int blobs_count(struct blob_place *p, uint64_t *ret, uint64_t *ret_bytes, struct err *e)
{
    AUTO(list_done) struct blob_list l = {.of = p};
    const struct s3_object *o;
    int rc;

    *ret = *ret_bytes = 0;
    for (; (rc = list_look(&l, &o, e)) > 0; l.at++) {
        ++*ret;
        *ret_bytes += o->size;
    }
    return rc;
}

/* --- the copy --- */

/* 1: fd has the bytes of this hash; 0: not. */
static int is_good(int fd, const char *hash, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(READ_SIZE);
    gnutls_hash_hd_t sum;
    uint8_t found[32];
    char shown[HASH_HEX];
    off_t at = 0;
    ssize_t n;

    if (gnutls_hash_init(&sum, GNUTLS_DIG_SHA256) < 0)
        return err_set(e, ERR_HOST, "SHA-256 is not available");
    while ((n = pread(fd, bytes, READ_SIZE, at)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            gnutls_hash(sum, bytes, (size_t)n);
        at += n > 0 ? n : 0;
    }
    gnutls_hash_deinit(sum, found);
    hash_show(found, shown);
    return n < 0 ? err_sys(e, "read a blob") : strcmp(shown, hash) == 0;
}

/* 1: it is there, and right. */
static int check_one(struct blob_place *p, const char *hash, int *ret_fd, struct err *e)
{
    AUTO_CLOSE int fd = p->ops->open(p, hash, e);
    int rc;

    if (fd < 0)
        return e->kind == ERR_MISSING ? 0 : -1;
    rc = is_good(fd, hash, e);
    if (rc > 0 && ret_fd)
        *ret_fd = take_fd(&fd);
    return rc;
}

static int copy_one(struct copying *c, struct blob_place *from, struct blob_place *to,
                    const struct s3_object *o, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int rc = check_one(from, o->hash, &fd, e);

    if (rc == 0) {
        c->done.damaged++;
        c->watch->on_damaged(c->watch->arg, o->hash);
    }
    if (rc <= 0)
        return rc;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "look at a blob");
    return to->ops->put(to, fd, o->hash, (uint64_t)st.st_size, e) < 0 ? -1 : 1;
}

/* Whether `there` has it with this size. Moves that list up to it. */
static int is_there(struct blob_list *there, const struct s3_object *o, struct err *e)
{
    const struct s3_object *t;
    int rc;

    while ((rc = list_look(there, &t, e)) > 0 && strcmp(t->hash, o->hash) < 0)
        there->at++;
    return rc <= 0 ? rc : strcmp(t->hash, o->hash) == 0 && t->size == o->size;
}

/* A place without a directory puts what is on its way into that of the other. */
static int lend_dir(struct blob_place *a, struct blob_place *b, struct err *e)
{
    struct blob_place *has = a->dir >= 0 ? a : b, *lacks = a->dir >= 0 ? b : a;

    if (lacks->dir >= 0)
        return 0;
    lacks->dir = fcntl(has->dir, F_DUPFD_CLOEXEC, 0);
    return lacks->dir < 0 ? err_sys(e, "open a directory") : 0;
}

int blobs_copy(struct copying *c, struct blob_place *from, struct blob_place *to, struct err *e)
{
    AUTO(list_done) struct blob_list here = {.of = from}, there = {.of = to};
    const struct s3_object *o;
    uint64_t done = 0, total = 0, bytes = 0;
    int rc;

    if (lend_dir(from, to, e) < 0 || blobs_count(from, &total, &bytes, e) < 0)
        return -1;
    for (; (rc = list_look(&here, &o, e)) > 0; here.at++) {
        copy_tell(c, "files", done++, total);
        rc = is_there(&there, o, e);
        if (rc == 0)
            rc = copy_one(c, from, to, o, e);
        if (rc < 0)
            return err_wrap(e, "file %s", o->hash);
    }
    copy_tell(c, "files", done, total);
    return rc < 0 ? -1 : to->ops->sync(to, e);
}

/* 1: right; 0: not, and no better the second time. */
static int check_and_mend(struct copying *c, struct blob_place *from, struct blob_place *to,
                          const struct s3_object *o, struct err *e)
{
    int rc = check_one(to, o->hash, NULL, e);

    if (rc == 0)
        rc = copy_one(c, from, to, o, e);
    else
        return rc;
    return rc <= 0 ? rc : check_one(to, o->hash, NULL, e);
}

int blobs_check(struct copying *c, struct blob_place *from, struct blob_place *to, struct err *e)
{
    AUTO(list_done) struct blob_list here = {.of = from};
    const struct s3_object *o;
    int rc;

    for (; (rc = list_look(&here, &o, e)) > 0; here.at++) {
        uint64_t damaged = c->done.damaged;
        rc = check_and_mend(c, from, to, o, e);
        if (rc < 0)
            return err_wrap(e, "file %s", o->hash);
        if (rc == 0 && c->done.damaged == damaged)
            return err_set(e, ERR_DAMAGED, "file %s is damaged in the copy, twice", o->hash);
        c->done.blobs += (unsigned)rc;
        c->done.bytes += rc ? o->size : 0;
        copy_tell(c, "check of files", c->done.blobs, 0);
    }
    return rc < 0 ? -1 : to->ops->sync(to, e);
}
