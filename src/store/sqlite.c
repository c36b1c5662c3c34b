/*
 * SQLite: one connection, used by one thread at a time.
 *
 * The log (WAL) is written by each commit and not synced by it (synchronous=NORMAL).
 * A commit is therefore safe from the death of this process at any moment; a power
 * cut or a dead kernel may take the commits since the last sync, never a part of one,
 * and leaves the database whole. A sync for each commit would put milliseconds before
 * every answer, so flush.c syncs the log for many at a time.
 *
 * A checkpoint waits for the disk, so it is not made by the commit that finds the
 * log long but by flush.c, through a connection of its own: nobody's job stands behind it.
 */
#include "store/sqlite_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_PAGES 4000 /* of 4 KiB: then they are moved into the database */
#define LOG_LONG  8000 /* then nothing may be written while its end is moved */
#define BUSY_MS   5000 /* `retort keys` may be writing; its transactions take milliseconds */

/* secure_delete: what was in a session's env is not to be found in free pages. */
static const char settings[] = "PRAGMA synchronous = NORMAL;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA secure_delete = ON;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA journal_size_limit = 67108864;"
                               "PRAGMA cache_size = -8192;"; /* KiB */

/* --- opening and closing --- */

static void close_sqlite(struct db *db)
{
    struct sqlite *q = sqlite_of(db);

    for (size_t i = 0; i < q->cached; i++)
        sqlite3_finalize(q->cache[i]);
    sqlite3_close(q->mover);
    sqlite3_close(q->conn);
    fd_closep(&q->log);
    free(q);
}

static int set_up(sqlite3 *conn, struct err *e)
{
    sqlite3_stmt *mode = NULL;
    bool wal;

    sqlite3_busy_timeout(conn, BUSY_MS);
    if (sqlite3_prepare_v2(conn, "PRAGMA journal_mode = WAL", -1, &mode, NULL) != SQLITE_OK)
        return sqlite_fail(conn, e);
    if (sqlite3_step(mode) != SQLITE_ROW) {
        sqlite3_finalize(mode);
        return sqlite_fail(conn, e);
    }
    wal = sqlite3_stricmp((const char *)sqlite3_column_text(mode, 0), "wal") == 0;
    sqlite3_finalize(mode);
    if (!wal)
        return err_set(e, ERR_HOST, "this file system cannot hold a database in WAL mode");
    if (sqlite3_exec(conn, settings, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fail(conn, e);
    return schema_to_this_version(&sqlite_schema, conn, e);
}

/* --- transactions --- */

/* Of a transaction, so not of what a job has written. */
static int simple(struct db *db, const char *text, struct err *e)
{
    return sqlite_sql.run(db, text, NULL, 0, e) < 0 ? -1 : 0;
}

/* IMMEDIATE: a transaction that began with reading could find another process in its way when it
 * comes to write, and waiting would not help it then. */
static int begin(struct db *db, struct err *e)
{
    sqlite_of(db)->wrote = false;
    return simple(db, "BEGIN IMMEDIATE", e);
}

static int commit(struct db *db, struct err *e)
{
    if (simple(db, "COMMIT", e) < 0)
        return -1;
    return sqlite_of(db)->wrote;
}

/* A number in the header of the file that programs may use as they like. A table would do as well,
 * but no version before this one would open the database again. */
static int stamp(struct db *db, uint32_t number, struct err *e)
{
    char text[64];

    snprintf(text, sizeof(text), "PRAGMA application_id = %" PRId32, (int32_t)number);
    if (sqlite3_exec(sqlite_of(db)->conn, text, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return sqlite_fail(sqlite_of(db)->conn, e);
}

static int stamped(struct db *db, uint32_t *ret_number, struct err *e)
{
    int64_t n = 0;

    if (sql_one(db, "SELECT application_id FROM pragma_application_id", NULL, 0, &number_type, &n,
                e) < 0)
        return -1;
    *ret_number = (uint32_t)n;
    return 0;
}

/* The version that it has: as good as any, and a page of the log all the same. */
static int try_write(struct db *db, struct err *e)
{
    sqlite3 *conn = sqlite_of(db)->conn;
    int64_t version = 0;

    return sqlite_schema.version(conn, &version, e) < 0
               ? -1
               : sqlite_schema.set_version(conn, version, e);
}

static int sync_log(struct db *db, struct err *e)
{
    struct sqlite *q = sqlite_of(db);
    int pages = q->log_pages;

    if (fdatasync(q->log) == 0) {
        q->on_disk = pages;
        return 0;
    }
    err_sys(e, "database: sync the log");
    return disk_blame(e);
}

/* A log that has begun anew since is shorter. */
static size_t unsynced(struct db *db)
{
    int pages = sqlite_of(db)->log_pages, on_disk = sqlite_of(db)->on_disk;

    return (size_t)(pages < on_disk ? pages : pages - on_disk);
}

/* A full disk, for one, has SQLite roll back by itself. */
static bool is_lost(struct db *db)
{
    return sqlite3_get_autocommit(sqlite_of(db)->conn);
}

static void rollback(struct db *db)
{
    struct err ignored;

    if (!is_lost(db))
        (void)!simple(db, "ROLLBACK", &ignored);
}

static int savepoint(struct db *db, struct err *e)
{
    return simple(db, "SAVEPOINT job", e);
}

static int release(struct db *db, bool keep, struct err *failed, struct err *e)
{
    (void)failed;
    if (is_lost(db))
        return err_set(e, ERR_HOST, "database: the transaction was rolled back");
    if (!keep && simple(db, "ROLLBACK TO job", e) < 0)
        return -1;
    return simple(db, "RELEASE job", e);
}

static int on_commit(void *arg, sqlite3 *conn, const char *name, int pages)
{
    struct sqlite *q = arg;

    (void)conn;
    (void)name;
    q->log_pages = pages;
    q->wrote = true;
    return SQLITE_OK;
}

static bool is_untidy(struct db *db, bool very)
{
    return sqlite_of(db)->log_pages >= (very ? LOG_LONG : LOG_PAGES);
}

/* One that fails is tried again after the next commit; the log is as good a place until then. */
static size_t tidy(struct db *db)
{
    struct sqlite *q = sqlite_of(db);
    int left = 0, moved = 0;

    (void)sqlite3_wal_checkpoint_v2(q->mover, "main", SQLITE_CHECKPOINT_PASSIVE, &left, &moved);
    if (left == moved) /* else the next commit tells how long it is */
        q->log_pages = 0;
    return left > moved ? (size_t)(left - moved) : 0;
}

/* --- the table --- */

static const struct db_ops frame = {
    .begin = begin,
    .commit = commit,
    .try_write = try_write,
    .stamp = stamp,
    .stamped = stamped,
    .sync = sync_log,
    .rollback = rollback,
    .savepoint = savepoint,
    .release = release,
    .is_untidy = is_untidy,
    .unsynced = unsynced,
    .tidy = tidy,
    .close = close_sqlite,
};

/* SQLite would make it readable for all; its log gets the mode of the file itself. Closed before
 * SQLite opens it: to close any fd of a file gives up all locks this process has on it (fcntl(2)),
 * and another process would take the log for abandoned. */
static int make_file(const char *path, struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    return fd < 0 ? err_sys(e, "open") : 0;
}

/* SQLite has no locks on it, so a descriptor of our own does no harm; it lets another thread sync
 * the log while SQLite writes to it. The last connection that closes removes the file, never one
 * beside ours. */
static int open_log(struct sqlite *q, const char *path, struct err *e)
{
    char name[4096 + 8];

    snprintf(name, sizeof(name), "%s-wal", path);
    q->log = open(name, O_RDONLY | O_CLOEXEC);
    return q->log < 0 ? err_sys(e, "open the log of the database") : 0;
}

static int open_file(struct sqlite *q, const char *path, struct err *e)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

    if (make_file(path, e) < 0)
        return -1;
    if (sqlite3_open_v2(path, &q->conn, flags, NULL) != SQLITE_OK)
        return sqlite_fail(q->conn, e);
    if (set_up(q->conn, e) < 0)
        return -1;
    if (sqlite3_open_v2(path, &q->mover, flags, NULL) != SQLITE_OK)
        return sqlite_fail(q->mover, e);
    /* It must have read something once, or it would not know of the log. */
    if (sqlite3_exec(q->mover, settings, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(q->mover, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fail(q->mover, e);
    sqlite3_wal_hook(q->conn, on_commit, q); /* takes the place of SQLite's own rule, too */
    return open_log(q, path, e);
}

struct db *sqlite_open(const char *path, struct err *e)
{
    struct sqlite *q = mem_zalloc(sizeof(*q));

    q->db.ops = &frame;
    q->db.sql = &sqlite_sql;
    q->log = -1;
    if (open_file(q, path, e) == 0)
        return &q->db;
    err_wrap(e, "%s", path);
    close_sqlite(&q->db);
    return NULL;
}
