/*
 * Entries of the redo log: what a job has written, as bytes, and those bytes as rows and blobs
 * again.
 *
 * An entry begins with a head: how long it is, and the SHA-256 of what follows. Then come the
 * number of its job, the statements with their arguments, in order, and the blobs that they name,
 * with their bytes. An entry whose hash is wrong was never whole, and nobody was told of it.
 *
 * The database has the number of the last job that is in it (db->ops->stamp), so each entry is put
 * back once and in order, between the same neighbours as the first time. One that cannot be, for a
 * job before it was neither waited for nor kept, is left out, and the log of the server says so.
 */
#include "store/sql_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_MAX (256 * KiB) /* who writes more at once waits for the database */
#define BLOBS_MAX 64
#define ARGS_MAX  32
#define HASH_SIZE 32

enum redo_record { RECORD_STATEMENT = 1, RECORD_BLOB };

/* In front of an entry. Both servers of a log are of one machine, so its own byte order will do. */
struct redo_head {
    uint64_t size; /* of what follows; 0: the end of the log */
    uint8_t hash[HASH_SIZE];
};
static_assert(sizeof(struct redo_head) == REDO_END, "the mark of the end is a head of zeros");

static void hash_body(struct str body, uint8_t ret[HASH_SIZE])
{
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, body.p, body.n, ret);

    assert(rc == 0); /* it only counts in memory */
}

/* --- noting --- */

struct redo_entry *redo_entry_new(void)
{
    struct redo_entry *n = mem_zalloc(sizeof(*n));

    n->statements = BUF(NOTES_MAX);
    return n;
}

void redo_entry_free(struct redo_entry *n)
{
    if (!n)
        return;
    buf_done(&n->statements);
    free(n->blobs);
    free(n);
}

static void put_number(struct buf *b, int64_t n)
{
    buf_put(b, (struct str){(const char *)&n, sizeof(n)});
}

/* The length 0 is NULL. */
static void put_bytes(struct buf *b, struct str s)
{
    put_number(b, s.p ? (int64_t)s.n + 1 : 0);
    buf_put(b, s);
}

static void put_arg(struct buf *b, const struct arg *a)
{
    put_number(b, a->kind);
    if (a->kind == ARG_NUMBER)
        put_number(b, a->number);
    else if (a->kind == ARG_BYTES)
        put_bytes(b, a->bytes);
    else
        put_bytes(b, a->text ? (struct str){a->text, strlen(a->text) + 1} : (struct str){0});
}

void redo_note(struct db *db, const char *text, const struct arg *args, size_t count)
{
    struct buf *b = db->redo ? &db->redo->statements : NULL;

    if (!b || b->full)
        return;
    put_number(b, RECORD_STATEMENT);
    put_bytes(b, (struct str){text, strlen(text) + 1});
    put_number(b, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        put_arg(b, &args[i]);
}

void redo_note_blob(struct db *db, const char *hash)
{
    struct redo_entry *n = db->redo;

    if (!n || !blob_is_hash(hash))
        return;
    n->statements.full |= n->blob_count == BLOBS_MAX;
    if (n->statements.full)
        return;
    n->blobs = mem_realloc(n->blobs, (n->blob_count + 1) * sizeof(*n->blobs));
    memcpy(n->blobs[n->blob_count++], hash, HASH_HEX);
}

/* --- an entry --- */

static bool put_file(struct buf *b, int fd)
{
    struct stat st;
    char *room;
    size_t n = 0;
    ssize_t got = 1;

    if (fstat(fd, &st) < 0 || st.st_size > (off_t)REDO_BLOB_MAX)
        return false;
    put_number(b, st.st_size + 1);
    room = buf_room(b, (size_t)st.st_size + 1);
    for (; room && n < (size_t)st.st_size && got > 0; n += got > 0 ? (size_t)got : 0)
        got = pread(fd, room + n, (size_t)st.st_size - n, (off_t)n);
    b->n += room ? n : 0;
    return room && n == (size_t)st.st_size;
}

static bool put_blob(struct buf *b, int blobs, const char *hash)
{
    char path[HASH_HEX + 1];
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof(path), "%.2s/%s", hash, hash + 2);
    fd = openat(blobs, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    put_number(b, RECORD_BLOB);
    put_bytes(b, str_of(hash));
    return fd >= 0 && put_file(b, fd);
}

bool redo_entry_put(struct buf *b, const struct redo_entry *n, int blobs)
{
    struct redo_head head = {0};
    size_t at = b->n;
    bool whole = true;

    buf_put(b, (struct str){(const char *)&head, sizeof(head)});
    put_number(b, n->number);
    for (size_t i = 0; whole && i < n->blob_count; i++)
        whole = put_blob(b, blobs, n->blobs[i]);
    buf_put(b, buf_str(&n->statements));
    if (!whole || b->full)
        return false;
    struct str body = str_from(str_from(buf_str(b), at), sizeof(head));
    head.size = body.n;
    hash_body(body, head.hash);
    memcpy(b->p + at, &head, sizeof(head));
    return buf_put(b, (struct str){(const char *)&(struct redo_head){0}, sizeof(head)}) == 0;
}

/* --- what a server before this one has left --- */

static bool take(struct str *from, void *ret, size_t n)
{
    if (from->n < n)
        return false;
    memcpy(ret, from->p, n);
    *from = str_from(*from, n);
    return true;
}

static bool take_number(struct str *from, int64_t *ret)
{
    return take(from, ret, sizeof(*ret));
}

static bool take_bytes(struct str *from, struct str *ret)
{
    int64_t n;

    *ret = (struct str){0};
    if (!take_number(from, &n) || n < 0 || (uint64_t)n > from->n + 1)
        return false;
    if (n > 0)
        *ret = (struct str){from->p, (size_t)n - 1};
    *from = str_from(*from, ret->n);
    return true;
}

/* With its NUL; NULL stays NULL. */
static bool take_text(struct str *from, const char **ret)
{
    struct str s;

    if (!take_bytes(from, &s))
        return false;
    *ret = s.p;
    return !s.p || (s.n > 0 && s.p[s.n - 1] == '\0');
}

static bool take_arg(struct str *from, struct arg *ret)
{
    int64_t kind;

    *ret = (struct arg){0};
    if (!take_number(from, &kind))
        return false;
    ret->kind = kind == ARG_NUMBER ? ARG_NUMBER : kind == ARG_BYTES ? ARG_BYTES : ARG_TEXT;
    if (ret->kind == ARG_NUMBER)
        return take_number(from, &ret->number);
    return ret->kind == ARG_BYTES ? take_bytes(from, &ret->bytes) : take_text(from, &ret->text);
}

static int torn(struct err *e)
{
    return err_set(e, ERR_DAMAGED, "an entry of %s is too short", REDO_NAME);
}

static int put_back_statement(struct db *db, struct str *body, struct err *e)
{
    struct arg args[ARGS_MAX];
    const char *text;
    int64_t count;

    if (!take_text(body, &text) || !text || !take_number(body, &count) || count < 0 ||
        count > ARGS_MAX)
        return torn(e);
    for (int64_t i = 0; i < count; i++)
        if (!take_arg(body, &args[i]))
            return torn(e);
    return sql_run(db, text, args, (size_t)count, e) < 0 ? -1 : 0;
}

static int open_dir(int above, const char *name, struct err *e)
{
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? err_sys(e, "open '%s'", name) : fd;
}

/* Over one that is there: its name may have reached the disk without its bytes. */
static int put_back_blob(int dir, struct str *body, struct err *e)
{
    AUTO_CLOSE int blobs = open_dir(dir, "blobs", e);
    AUTO_CLOSE int fd = -1;
    AUTO_CLOSE int shard = -1;
    struct str name, bytes;
    char hash[HASH_HEX] = "", top[3] = "";

    if (blobs < 0)
        return -1;
    if (!take_bytes(body, &name) || name.n != HASH_HEX - 1 || !take_bytes(body, &bytes))
        return torn(e);
    memcpy(hash, name.p, name.n);
    memcpy(top, hash, 2);
    if (!blob_is_hash(hash))
        return torn(e);
    fd = openat(blobs, "tmp/redo", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || (mkdirat(blobs, top, 0700) < 0 && errno != EEXIST))
        return err_sys(e, "make a blob");
    shard = open_dir(blobs, top, e);
    if (shard < 0 || fd_write_all(fd, bytes, e) < 0)
        return -1;
    if (fdatasync(fd) < 0 || renameat(blobs, "tmp/redo", shard, hash + 2) < 0 || fsync(shard) < 0 ||
        fsync(blobs) < 0)
        return err_sys(e, "keep a blob");
    return 0;
}

static int put_back_records(int dir, struct db *db, struct str body, struct err *e)
{
    int64_t kind;
    int rc = 0;

    while (rc == 0 && body.n > 0)
        if (!take_number(&body, &kind) || (kind != RECORD_STATEMENT && kind != RECORD_BLOB))
            rc = torn(e);
        else
            rc = kind == RECORD_BLOB ? put_back_blob(dir, &body, e)
                                     : put_back_statement(db, &body, e);
    return rc;
}

static int put_back_entry(int dir, struct db *db, uint32_t number, struct str body, struct err *e)
{
    if (db->ops->begin(db, e) < 0)
        return -1;
    if (put_back_records(dir, db, body, e) == 0 && db->ops->stamp(db, number, e) == 0 &&
        db->ops->commit(db, e) >= 0)
        return 0;
    db->ops->rollback(db);
    return -1;
}

/* The entries of one half of the log, in order. */
struct log_half {
    struct str rest;
    uint32_t number; /* of the entry at hand */
    struct str body; /* of it; p NULL: there are no more */
};

static void next_entry(struct log_half *h)
{
    struct redo_head head;
    uint8_t hash[HASH_SIZE];
    int64_t number;

    h->body = (struct str){0};
    if (!take(&h->rest, &head, sizeof(head)) || head.size == 0 || head.size > h->rest.n)
        return;
    struct str body = {h->rest.p, (size_t)head.size};
    hash_body(body, hash);
    if (memcmp(hash, head.hash, HASH_SIZE) != 0 || !take_number(&body, &number))
        return;
    h->rest = str_from(h->rest, (size_t)head.size);
    h->number = (uint32_t)number;
    h->body = body;
}

bool redo_is_later(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static struct log_half *earlier(struct log_half *a, struct log_half *b)
{
    if (!a->body.p || !b->body.p)
        return a->body.p ? a : b;
    return redo_is_later(a->number, b->number) ? b : a;
}

static int put_all_back(int dir, struct db *db, struct str all, struct err *e)
{
    struct log_half a =
                        {
                            .rest = {all.p, all.n / 2}
    },
                    b = {.rest = str_from(all, all.n / 2)}, *h;
    uint32_t last = 0;
    size_t count = 0;

    if (db->ops->stamped(db, &last, e) < 0)
        return -1;
    next_entry(&a);
    next_entry(&b);
    for (; (h = earlier(&a, &b))->body.p; next_entry(h)) {
        if (!redo_is_later(h->number, last))
            continue;
        last = h->number;
        count++;
        if (put_back_entry(dir, db, last, h->body, e) == 0)
            continue;
        if (e->kind != ERR_CONFLICT && e->kind != ERR_DAMAGED && e->kind != ERR_MISSING)
            return err_wrap(e, "what waited for the disk in the server before");
        log_error("something that the server before has written is not there: %s", e->text);
    }
    if (count == 0)
        return 0;
    log_info("%zu writes of the server before have been put back", count);
    return db->ops->sync(db, e);
}

static int read_all(int fd, struct buf *ret, struct err *e)
{
    struct stat st;
    ssize_t n = 1;
    char *room;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "look at %s", REDO_NAME);
    *ret = BUF((size_t)st.st_size + 1);
    room = buf_room(ret, (size_t)st.st_size + 1);
    for (; room && n > 0 && ret->n<(size_t)st.st_size; ret->n += n> 0 ? (size_t)n : 0)
        n = pread(fd, room + ret->n, (size_t)st.st_size - ret->n, (off_t)ret->n);
    return n < 0 ? err_sys(e, "read %s", REDO_NAME) : 0;
}

static int empty(int fd, off_t half, struct err *e)
{
    static const struct redo_head end;

    if (pwrite(fd, &end, sizeof(end), 0) < 0 || pwrite(fd, &end, sizeof(end), half) < 0 ||
        fdatasync(fd) < 0)
        return err_sys(e, "write %s", REDO_NAME);
    return 0;
}

int redo_put_back(int dir, struct db *db, struct err *e)
{
    AUTO_CLOSE int fd = openat(dir, REDO_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    AUTO(buf_done) struct buf all = {0};

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "open %s", REDO_NAME);
    if (read_all(fd, &all, e) < 0 || put_all_back(dir, db, buf_str(&all), e) < 0)
        return -1;
    return all.n > 2 * REDO_END ? empty(fd, (off_t)(all.n / 2), e) : 0;
}
