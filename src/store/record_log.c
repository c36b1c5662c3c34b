/*
 * The record log: new sessions and ends of executions that are answered before the database has
 * them.
 *
 * A commit takes a second thread, a dozen writes and two switches of threads, and the answer of a
 * small cell would wait for all of them. So the loop appends the record to a file of a fixed size
 * with one system call; what the kernel has outlives this process. The job that writes the same
 * rows is in the store's queue already, behind all that came before and ahead of all that comes
 * later, so nobody reads the database without it. It begins with the next job that somebody waits
 * for, or SOON_MS later, together with what came meanwhile.
 *
 * When the last of these jobs is through, the log is empty: its first entry gets the length 0. A
 * store that opens puts the entries that it finds into the database. To put one in twice does no
 * harm: the end of an execution never changes again, the figures of its session only grow, and a
 * session that is there already stays as it is. One that was deleted would come back, so its entry
 * is struck out.
 *
 * Whenever the log begins anew it takes another seed, which stands in front of its entries and is
 * part of their checksums. So nothing that is left behind the end of a log that was written in part
 * is taken for an entry: neither one of before, nor what somebody has written into his code to look
 * like one.
 *
 * The log is synced before the database is. It need not be for its entries, but for those that are
 * gone: a session that was deleted since would be there again after a power cut.
 *
 * A job that could not be kept leaves its entry where it is. Then the log takes no more of them
 * until store_log_mend() says that somebody has written it in another way.
 */
#include "store/store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_NAME  "retort.records"
#define LOG_SIZE  (1 * MiB)
#define ENTRY_MAX (32 * KiB) /* who has more than that to write waits for the database */

enum logged_kind { LOGGED_EXEC, LOGGED_SESSION, LOGGED_STRUCK, LOGGED_SEED };

/* In front of an entry. Both servers of a log are of one machine, so its own byte order will do. */
struct logged_head {
    uint16_t size; /* of what follows; 0: this is the end */
    uint16_t kind;
    uint32_t check;
};
static_assert(ENTRY_MAX <= UINT16_MAX, "the size of an entry is a part of its head");

/* In front of the first entry. What a version before this one has left has none: that is seed 0. */
struct logged_seed {
    struct logged_head head;
    uint32_t seed;
};

/* What stands in front of the columns of an execution. */
struct session_figures {
    int64_t executions, used_ms;
};

/* FNV-1a: it tells an entry from what an interrupted write left. */
static uint32_t checksum(uint32_t seed, struct str s)
{
    uint32_t h = 2166136261U ^ seed;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (uint8_t)s.p[i]) * 16777619U;
    return h;
}

/* --- a row as bytes: a number, or a length and so many bytes; the length 0 is NULL --- */

static void put_column(struct buf *b, const struct column *c, const char *field)
{
    bool is_number = c->kind == COLUMN_INT || c->kind == COLUMN_UINT;
    struct str bytes = is_number ? (struct str){0} : column_bytes(c, field);
    int64_t n = is_number ? column_number(c, field) : bytes.p ? (int64_t)bytes.n + 1 : 0;

    buf_put(b, (struct str){(const char *)&n, sizeof(n)});
    buf_put(b, bytes);
}

static bool take(struct str *from, void *ret, size_t n)
{
    if (from->n < n)
        return false;
    memcpy(ret, from->p, n);
    *from = str_from(*from, n);
    return true;
}

static bool take_column(struct str *from, const struct column *c, char *field)
{
    struct str bytes = {0};
    int64_t n;

    if (!take(from, &n, sizeof(n)))
        return false;
    if (c->kind == COLUMN_INT || c->kind == COLUMN_UINT) {
        column_set_number(c, field, n);
        return true;
    }
    if (n < 0 || (uint64_t)n > from->n + 1)
        return false;
    if (n > 0)
        bytes = (struct str){from->p, (size_t)n - 1};
    *from = str_from(*from, bytes.n);
    column_set_bytes(c, field, bytes);
    return true;
}

static bool take_row(struct str *from, const struct row_type *t, void *ret)
{
    memset(ret, 0, t->size);
    for (size_t i = 0; i < t->count; i++)
        if (!take_column(from, &t->columns[i], (char *)ret + t->columns[i].at))
            return false;
    return true;
}

/* --- appending --- */

static void put_bytes(struct buf *b, const void *p, size_t n)
{
    buf_put(b, (struct str){p, n});
}

static void put_row(struct buf *b, const struct row_type *t, const void *row)
{
    for (size_t i = 0; i < t->count; i++)
        put_column(b, &t->columns[i], (const char *)row + t->columns[i].at);
}

/* In the buffer of an entry, in front of its body. */
struct logged_front {
    struct logged_seed seed; /* written where the log begins */
    struct logged_head head;
};

static struct logged_seed next_seed(struct record_log *log)
{
    log->seed = log->seed * 747796405U + 2891336453U; /* nobody knows the first one */
    return (struct logged_seed){
        {sizeof(log->seed), LOGGED_SEED, checksum(0, (struct str){(const char *)&log->seed, 4})},
        log->seed
    };
}

/* With the mutex held. The end that stands behind the entry is where the next one begins. */
static bool append(struct store *s, struct buf *entry, enum logged_kind kind)
{
    struct record_log *log = &s->log;
    struct logged_front front = {0};
    size_t skip = log->at == 0 ? 0 : sizeof(front.seed), n = entry->n - skip;
    struct str body = {entry->p + sizeof(front), entry->n - sizeof(front) - sizeof(front.head)};

    if (log->stuck || log->at + n > LOG_SIZE)
        return false;
    if (log->at == 0)
        front.seed = next_seed(log);
    front.head = (struct logged_head){(uint16_t)body.n, (uint16_t)kind, checksum(log->seed, body)};
    memcpy(entry->p, &front, sizeof(front));
    log->unsynced = true;
    if (pwrite(log->fd, entry->p + skip, n, (off_t)log->at) != (ssize_t)n)
        return false;
    log->at += n - sizeof(front.head);
    log->open++;
    return true;
}

/* With the mutex held: an entry about a session begins there. */
static void note_session(struct record_log *log, const char *id, size_t at)
{
    if (log->session_count == log->session_cap) {
        log->session_cap = log->session_cap ? 2 * log->session_cap : 64;
        log->sessions = mem_realloc(log->sessions, log->session_cap * sizeof(*log->sessions));
    }
    struct logged_session *n = &log->sessions[log->session_count++];
    n->at = at;
    snprintf(n->id, sizeof(n->id), "%s", id);
}

/* entry: room for what stands in front, and the body. session: whose row it is, or NULL. */
static bool log_entry(struct store *s, struct buf *entry, enum logged_kind kind,
                      const char *session)
{
    static const struct logged_head end;
    size_t n = entry->n - sizeof(struct logged_seed);
    bool taken;

    put_bytes(entry, &end, sizeof(end));
    if (entry->full)
        return false;
    pthread_mutex_lock(&s->mutex);
    taken = append(s, entry, kind);
    if (taken && session)
        note_session(&s->log, session, s->log.at - n);
    pthread_mutex_unlock(&s->mutex);
    return taken;
}

bool store_log_exec(struct store *s, const struct exec_row *x, const struct session_row *n)
{
    const struct session_figures figures = {n->executions, n->used_ms};
    AUTO(buf_done) struct buf entry = BUF(ENTRY_MAX);

    if (s->log.fd < 0 || *x->events_hash)
        return false;
    put_bytes(&entry, &(struct logged_front){0}, sizeof(struct logged_front));
    put_bytes(&entry, &figures, sizeof(figures));
    put_row(&entry, &exec_type, x);
    return log_entry(s, &entry, LOGGED_EXEC, NULL);
}

bool store_log_session(struct store *s, const struct session_row *n)
{
    AUTO(buf_done) struct buf entry = BUF(ENTRY_MAX);

    if (s->log.fd < 0 || n->name || *n->home)
        return false;
    put_bytes(&entry, &(struct logged_front){0}, sizeof(struct logged_front));
    put_row(&entry, &session_type, n);
    return log_entry(s, &entry, LOGGED_SESSION, n->id);
}

void store_log_strike(struct store *s, const char *session)
{
    static const uint16_t struck = LOGGED_STRUCK;
    struct record_log *log = &s->log;

    pthread_mutex_lock(&s->mutex);
    log->unsynced = true;
    for (size_t i = 0; i < log->session_count; i++) {
        size_t at = log->sessions[i].at + offsetof(struct logged_head, kind);
        if (strcmp(log->sessions[i].id, session) == 0 &&
            pwrite(log->fd, &struck, sizeof(struck), (off_t)at) != sizeof(struck))
            log_error("a session that was deleted would be there again after a crash: %s", session);
    }
    pthread_mutex_unlock(&s->mutex);
}

static void empty(struct record_log *log)
{
    static const struct logged_head end;

    if (log->open > 0 || log->at == 0)
        return;
    log->unsynced = true;
    if (pwrite(log->fd, &end, sizeof(end), 0) == sizeof(end))
        log->at = log->session_count = 0;
}

int record_log_sync(struct store *s, struct err *e)
{
    bool unsynced;

    pthread_mutex_lock(&s->mutex);
    unsynced = s->log.unsynced;
    s->log.unsynced = false;
    pthread_mutex_unlock(&s->mutex);
    if (!unsynced || s->log.fd < 0 || fdatasync(s->log.fd) == 0)
        return 0;
    err_sys(e, "sync %s", LOG_NAME);
    pthread_mutex_lock(&s->mutex);
    s->log.unsynced = true;
    pthread_mutex_unlock(&s->mutex);
    return -1;
}

void record_log_settle(struct store *s, bool kept)
{
    s->log.open--;
    s->log.stuck |= !kept;
    if (!s->log.stuck)
        empty(&s->log);
}

void store_log_mend(struct store *s)
{
    pthread_mutex_lock(&s->mutex);
    s->log.stuck = false;
    if (s->log.fd >= 0)
        empty(&s->log);
    pthread_mutex_unlock(&s->mutex);
}

/* --- what a server before this one has left --- */

static int too_short(struct err *e)
{
    return err_set(e, ERR_DAMAGED, "an entry of %s is too short", LOG_NAME);
}

static int put_exec_back(struct db *db, struct str body, struct err *e)
{
    AUTO(exec_row_done) struct exec_row x = {0};
    struct session_figures figures;

    if (!take(&body, &figures, sizeof(figures)) || !take_row(&body, &exec_type, &x))
        return too_short(e);
    if (db_exec_put(db, &x, e) < 0)
        return -1;
    return db_session_figures(db, x.session, figures.executions, figures.used_ms, e);
}

static int put_session_back(struct db *db, struct str body, struct err *e)
{
    AUTO(session_row_done) struct session_row n = {0};

    if (!take_row(&body, &session_type, &n))
        return too_short(e);
    return db_session_add(db, &n, e);
}

/* One of the kinds may also be that of a newer version. */
static int put_entry_back(struct db *db, enum logged_kind kind, struct str body, struct err *e)
{
    static int (*const put_back[])(struct db * db, struct str body, struct err * e) = {
        [LOGGED_EXEC] = put_exec_back, [LOGGED_SESSION] = put_session_back};

    if (kind >= COUNT(put_back))
        return err_set(e, ERR_DAMAGED, "an entry of %s is of an unknown kind", LOG_NAME);
    if (db->ops->begin(db, e) < 0)
        return -1;
    if (put_back[kind](db, body, e) == 0 && db->ops->commit(db, e) >= 0)
        return 0;
    db->ops->rollback(db);
    return -1;
}

/* The next entry of the file, or false. */
static bool next_entry(struct str *rest, uint32_t seed, enum logged_kind *ret_kind, struct str *ret)
{
    struct logged_head head;

    if (!take(rest, &head, sizeof(head)) || head.size == 0 || head.size > rest->n)
        return false;
    *ret_kind = (enum logged_kind)head.kind;
    *ret = (struct str){rest->p, head.size};
    *rest = str_from(*rest, head.size);
    return checksum(seed, *ret) == head.check;
}

static uint32_t take_seed(struct str *rest)
{
    struct str after = *rest, body;
    enum logged_kind kind;
    uint32_t seed = 0;

    if (!next_entry(&after, 0, &kind, &body) || kind != LOGGED_SEED ||
        !take(&body, &seed, sizeof(seed)))
        return 0;
    *rest = after;
    return seed;
}

/* One that the database will never take is no reason not to start. */
static int put_all_back(struct db *db, struct str rest, struct err *e)
{
    uint32_t seed = take_seed(&rest);
    enum logged_kind kind;
    struct str body;
    size_t count = 0;

    for (; next_entry(&rest, seed, &kind, &body); count++) {
        if (kind == LOGGED_STRUCK || put_entry_back(db, kind, body, e) == 0)
            continue;
        if (e->kind != ERR_CONFLICT && e->kind != ERR_DAMAGED)
            return err_wrap(e, "what the server before has logged");
        log_error("an entry of the log of the server before is not on record: %s", e->text);
    }
    if (count == 0)
        return 0;
    log_info("%zu entries of the log of the server before are on record now", count);
    return db->ops->sync(db, e);
}

static int read_file(int fd, struct buf *ret, struct err *e)
{
    char *room = buf_room(ret, LOG_SIZE);
    ssize_t n = pread(fd, room, LOG_SIZE, 0);

    if (n < 0)
        return err_sys(e, "read %s", LOG_NAME);
    ret->n = (size_t)n;
    return 0;
}

int record_log_put_back(int dir, struct db *db, struct err *e)
{
    static const struct logged_head end;
    AUTO_CLOSE int fd = openat(dir, LOG_NAME, O_RDWR | O_CLOEXEC);
    AUTO(buf_done) struct buf all = BUF(LOG_SIZE + 1);

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "open %s", LOG_NAME);
    if (read_file(fd, &all, e) < 0 || put_all_back(db, buf_str(&all), e) < 0)
        return -1;
    /* Without a byte it is empty as well, and a full disk need not take one. */
    if (all.n > 0 && pwrite(fd, &end, sizeof(end), 0) < 0)
        return err_sys(e, "write %s", LOG_NAME);
    return 0;
}

/* --- opening --- */

/* A file of its whole size: an append then asks for no room on the disk. Where there is no room
 * now, executions wait for the database. */
void record_log_open(struct store *s)
{
    AUTO_CLOSE int fd = -1;

    if (s->power)
        return;
    random_bytes(&s->log.seed, sizeof(s->log.seed));
    fd = openat(s->dir, LOG_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && posix_fallocate(fd, 0, LOG_SIZE) == 0)
        s->log.fd = take_fd(&fd);
}

void record_log_close(struct store *s)
{
    free(s->log.sessions);
    fd_closep(&s->log.fd);
}
