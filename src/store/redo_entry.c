/*
 * Entries of the redo log: what a job has written, as bytes, and those bytes as rows and blobs
 * again.
 *
 * An entry begins with a head: how long it is, and a SHA-256. Then come the number of its job, the
 * statements with their arguments, in order, and the blobs that they name, with their bytes. An
 * entry whose hash is wrong was never whole, and nobody was told of it. The hash is that of a seed
 * and of what follows the head. The seed is random, new whenever a half of the log begins anew, and
 * stands in front of its entries. So what is left of entries before is none any more, and nobody
 * can upload bytes that would be one, should a power cut make them stand where an entry would.
 *
 * The database has the number of the last job that is in it (db->ops->stamp), so each entry is put
 * back once and in order, between the same neighbours as the first time. One that cannot be is left
 * out, and the log of the server says so. The blobs of entries that the database has are put back
 * as well if they are not there: its pages may have reached the disk before them.
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

static void hash_body(const uint8_t seed[REDO_SEED], struct str body, uint8_t ret[HASH_SIZE])
{
    gnutls_hash_hd_t hash;
    int rc = gnutls_hash_init(&hash, GNUTLS_DIG_SHA256);

    assert(rc == 0); /* it only counts in memory, like the next two */
    rc = gnutls_hash(hash, seed, REDO_SEED);
    assert(rc == 0);
    rc = gnutls_hash(hash, body.p, body.n);
    assert(rc == 0);
    gnutls_hash_deinit(hash, ret);
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

/* A job that needs what another has written names it by its id, as the other did. */
static void note_id(struct redo_entry *n, const struct arg *a)
{
    struct str id = {a->text, a->kind == ARG_TEXT && a->text ? strlen(a->text) : 0};
    uint32_t h = 2166136261U;

    if (id.n >= ID_MAX || id_time(id) == 0)
        return;
    for (size_t i = 0; i < id.n; i++) /* FNV-1a */
        h = (h ^ (uint8_t)id.p[i]) * 16777619U;
    h %= REDO_IDS;
    n->ids[h / 64] |= UINT64_C(1) << h % 64;
}

void redo_note(struct db *db, const char *text, const struct arg *args, size_t count)
{
    struct buf *b = db->redo ? &db->redo->statements : NULL;

    if (!b)
        return;
    db->redo->writes = true;
    for (size_t i = 0; i < count; i++)
        note_id(db->redo, &args[i]);
    if (b->full)
        return;
    put_number(b, RECORD_STATEMENT);
    put_bytes(b, (struct str){text, strlen(text) + 1});
    put_number(b, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        put_arg(b, &args[i]);
}

static bool blob_size(int blobs, const char *hash, uint64_t *ret)
{
    char path[HASH_HEX + 1];
    struct stat st;

    blob_path(hash, path);
    if (fstatat(blobs, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *ret = (uint64_t)st.st_size;
    return true;
}

void redo_note_blob(struct db *db, const char *hash)
{
    struct redo_entry *n = db->redo;
    uint64_t size = 0;

    if (!n || n->statements.full || !blob_is_hash(hash))
        return;
    if (n->blob_count == BLOBS_MAX || !blob_size(db->blobs, hash, &size) ||
        (n->blob_bytes += size) > REDO_BLOB_MAX) {
        n->statements.full = true;
        return;
    }
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

    blob_path(hash, path);
    fd = openat(blobs, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    put_number(b, RECORD_BLOB);
    put_bytes(b, str_of(hash));
    return fd >= 0 && put_file(b, fd);
}

bool redo_entry_put(struct buf *b, const struct redo_entry *n, int blobs)
{
    static const struct redo_head head;
    bool whole = true;

    buf_put(b, (struct str){(const char *)&head, sizeof(head)});
    put_number(b, (int64_t)n->number);
    for (size_t i = 0; whole && i < n->blob_count; i++)
        whole = put_blob(b, blobs, n->blobs[i]);
    buf_put(b, buf_str(&n->statements));
    buf_put(b, (struct str){(const char *)&head, sizeof(head)});
    return whole && !b->full;
}

void redo_entry_seal(struct buf *b, const uint8_t seed[REDO_SEED])
{
    struct str body = {b->p + REDO_END, b->n - 2 * REDO_END};
    struct redo_head head = {.size = body.n};

    hash_body(seed, body, head.hash);
    memcpy(b->p, &head, sizeof(head));
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

/* Where to, and what of it. */
struct putting {
    int dir, blobs; /* borrowed */
    struct db *db;
    bool rows; /* or the blobs alone */
    size_t entries, blobs_made;
};

static int put_back_statement(struct putting *p, struct str *body, struct err *e)
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
    return p->rows && sql_run(p->db, text, args, (size_t)count, e) < 0 ? -1 : 0;
}

/* A name may have reached the disk without its bytes. */
static bool is_there(int blobs, const char *path, struct str bytes)
{
    AUTO_CLOSE int fd = openat(blobs, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FREE char *have = mem_zalloc(bytes.n + 1);
    size_t n = 0;
    ssize_t got = 1;

    for (; fd >= 0 && got > 0 && n <= bytes.n; n += got > 0 ? (size_t)got : 0)
        got = pread(fd, have + n, bytes.n + 1 - n, (off_t)n);
    return fd >= 0 && got == 0 && n == bytes.n && memcmp(have, bytes.p, n) == 0;
}

static int put_back_blob(struct putting *p, struct str *body, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    struct str name, bytes;
    char hash[HASH_HEX] = "", top[3] = "", path[HASH_HEX + 1];

    if (!take_bytes(body, &name) || name.n != HASH_HEX - 1 || !take_bytes(body, &bytes) || !bytes.p)
        return torn(e);
    memcpy(hash, name.p, name.n);
    memcpy(top, hash, 2);
    if (!blob_is_hash(hash))
        return torn(e);
    blob_path(hash, path);
    if (is_there(p->blobs, path, bytes))
        return 0;
    fd = openat(p->blobs, "tmp/redo", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || (mkdirat(p->blobs, top, 0700) < 0 && errno != EEXIST))
        return err_sys(e, "make a blob");
    if (fd_write_all(fd, bytes, e) < 0)
        return -1;
    if (renameat(p->blobs, "tmp/redo", p->blobs, path) < 0)
        return err_sys(e, "keep a blob");
    p->blobs_made++;
    return 0;
}

static int put_back_records(struct putting *p, struct str body, struct err *e)
{
    int64_t kind;
    int rc = 0;

    while (rc == 0 && body.n > 0)
        if (!take_number(&body, &kind) || (kind != RECORD_STATEMENT && kind != RECORD_BLOB))
            rc = torn(e);
        else
            rc = kind == RECORD_BLOB ? put_back_blob(p, &body, e) : put_back_statement(p, &body, e);
    return rc;
}

static int put_back_rows(struct putting *p, uint32_t number, struct str body, struct err *e)
{
    struct db *db = p->db;

    if (db->ops->begin(db, e) < 0)
        return -1;
    if (put_back_records(p, body, e) == 0 && db->ops->stamp(db, number, e) == 0 &&
        db->ops->commit(db, e) >= 0)
        return 0;
    db->ops->rollback(db);
    return -1;
}

/* The entries of one half of the log, in order. */
struct log_half {
    uint8_t seed[REDO_SEED];
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
    hash_body(h->seed, body, hash);
    if (memcmp(hash, head.hash, HASH_SIZE) != 0 || !take_number(&body, &number))
        return;
    h->rest = str_from(h->rest, (size_t)head.size);
    h->number = (uint32_t)number;
    h->body = body;
}

static struct log_half half_begin(struct str all)
{
    struct log_half h = {.rest = all};

    if (take(&h.rest, h.seed, sizeof(h.seed)))
        next_entry(&h);
    return h;
}

/* The numbers of jobs go round. */
static bool is_later(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static struct log_half *earlier(struct log_half *a, struct log_half *b)
{
    if (!a->body.p || !b->body.p)
        return a->body.p ? a : b;
    return is_later(a->number, b->number) ? b : a;
}

static int put_all_back(struct putting *p, struct str all, struct err *e)
{
    struct log_half a = half_begin((struct str){all.p, all.n / 2}),
                    b = half_begin(str_from(all, all.n / 2)), *h;
    uint32_t last = 0;
    size_t rows = 0;

    if (p->db->ops->stamped(p->db, &last, e) < 0)
        return -1;
    for (; (h = earlier(&a, &b))->body.p; next_entry(h)) {
        p->entries++;
        p->rows = is_later(h->number, last);
        last = p->rows ? h->number : last;
        rows += p->rows;
        if ((p->rows ? put_back_rows(p, last, h->body, e) : put_back_records(p, h->body, e)) == 0)
            continue;
        if (e->kind != ERR_CONFLICT && e->kind != ERR_DAMAGED && e->kind != ERR_MISSING)
            return err_wrap(e, "what waited for the disk in the server before");
        log_error("something that the server before has written is not there: %s", e->text);
    }
    if (rows + p->blobs_made > 0)
        log_info("%zu writes of the server before have been put back, and %zu blobs", rows,
                 p->blobs_made);
    return 0;
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

int redo_empty_half(int fd, uint64_t at)
{
    static const char end[REDO_SEED + REDO_END];

    return pwrite(fd, end, sizeof(end), (off_t)at) == (ssize_t)sizeof(end) ? 0 : -1;
}

/* Once all that it has is on the disk in its place, whoever has put it there: the server before may
 * have been killed with the disk far behind. */
static int empty(const struct putting *p, int fd, uint64_t half, struct err *e)
{
    if (p->entries == 0)
        return 0;
    if (syncfs(p->dir) < 0 || redo_empty_half(fd, 0) < 0 || redo_empty_half(fd, half) < 0 ||
        fdatasync(fd) < 0)
        return err_sys(e, "empty %s", REDO_NAME);
    return 0;
}

int redo_put_back(int dir, struct db *db, struct err *e)
{
    AUTO_CLOSE int fd = openat(dir, REDO_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    AUTO_CLOSE int blobs = -1;
    AUTO(buf_done) struct buf all = {0};

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "open %s", REDO_NAME);
    blobs = openat(dir, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (blobs < 0 && errno != ENOENT) /* which are in S3 */
        return err_sys(e, "open 'blobs'");
    struct putting p = {.dir = dir, .blobs = blobs, .db = db};
    if (read_all(fd, &all, e) < 0 || put_all_back(&p, buf_str(&all), e) < 0)
        return -1;
    return empty(&p, fd, all.n / 2, e);
}
