/* Statements of SQLite: found by their text, given their args, stepped through. */
#include "store/sqlite_int.h"

/* --- what went wrong --- */

int sqlite_fail(sqlite3 *conn, struct err *e)
{
    static const struct {
        int code;
        enum err_kind kind;
        const char *text;
    } known[] = {
        {SQLITE_CONSTRAINT_UNIQUE,     ERR_CONFLICT, "it is there already"                    },
        {SQLITE_CONSTRAINT_PRIMARYKEY, ERR_CONFLICT, "it is there already"                    },
        {SQLITE_CONSTRAINT_NOTNULL,    ERR_CONFLICT, "something of another tenant has this id"},
        {SQLITE_CONSTRAINT_FOREIGNKEY, ERR_MISSING,  "what it belongs to is not there"        },
        {SQLITE_TOOBIG,                ERR_LIMIT,    "it is larger than a row can be"         },
        {SQLITE_BUSY,                  ERR_BUSY,     "another process writes to the database" },
    };
    int code = sqlite3_extended_errcode(conn);

    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].code == code)
            return err_set(e, known[i].kind, "%s", known[i].text);
    err_set(e, ERR_HOST, "database: %s", sqlite3_errmsg(conn));
    switch (code & 0xff) {
    case SQLITE_FULL:
        e->sys = ENOSPC;
        break;
    case SQLITE_READONLY:
        e->sys = EROFS;
        break;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        e->sys = sqlite3_system_errno(conn) ? sqlite3_system_errno(conn) : EIO;
        break;
    default:
        return -1;
    }
    return disk_blame(e);
}

/* --- statements --- */

static sqlite3_stmt *find(struct sqlite *q, const char *text, struct err *e)
{
    sqlite3_stmt *stmt = NULL;

    for (size_t i = 0; i < q->cached; i++)
        if (strcmp(sqlite3_sql(q->cache[i]), text) == 0)
            return q->cache[i];
    assert(q->cached < STATEMENTS_MAX);
    if (sqlite3_prepare_v3(q->conn, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
        SQLITE_OK) {
        sqlite_fail(q->conn, e);
        return NULL;
    }
    return q->cache[q->cached++] = stmt;
}

/* What was bound is borrowed, so it must not stay. */
static void resetp(sqlite3_stmt **stmt)
{
    if (*stmt) {
        sqlite3_reset(*stmt);
        sqlite3_clear_bindings(*stmt);
    }
}

static int bind_arg(sqlite3_stmt *stmt, int at, const struct arg *a)
{
    if (a->kind == ARG_TEXT)
        return sqlite3_bind_text(stmt, at, a->text, -1, SQLITE_STATIC);
    if (a->kind == ARG_BYTES)
        return sqlite3_bind_blob64(stmt, at, a->bytes.p, a->bytes.n, SQLITE_STATIC);
    return sqlite3_bind_int64(stmt, at, a->number);
}

/* Ready to be stepped, or NULL. */
static sqlite3_stmt *ready(struct db *db, const char *text, const struct arg *args, size_t count,
                           struct err *e)
{
    struct sqlite *q = sqlite_of(db);
    sqlite3_stmt *stmt = find(q, text, e);

    for (size_t i = 0; stmt && i < count; i++) {
        if (bind_arg(stmt, (int)i + 1, &args[i]) != SQLITE_OK) {
            sqlite_fail(q->conn, e);
            resetp(&stmt);
            return NULL;
        }
    }
    return stmt;
}

/* --- the table --- */

static int run(struct db *db, const char *text, const struct arg *args, size_t count, struct err *e)
{
    AUTO(resetp) sqlite3_stmt *stmt = ready(db, text, args, count, e);

    if (!stmt)
        return -1;
    if (sqlite3_step(stmt) != SQLITE_DONE)
        return sqlite_fail(sqlite_of(db)->conn, e);
    return sqlite3_changes(sqlite_of(db)->conn);
}

static int post(struct db *db, const char *text, const struct arg *args, size_t count,
                struct err *e)
{
    return run(db, text, args, count, e) < 0 ? -1 : 0;
}

static sqlite3_stmt *stmt_of(const struct answer *a)
{
    return (sqlite3_stmt *)a;
}

static struct answer *ask(struct db *db, const char *text, const struct arg *args, size_t count,
                          struct err *e)
{
    return (struct answer *)ready(db, text, args, count, e);
}

static int next(struct db *db, struct answer *a, struct err *e)
{
    int rc = sqlite3_step(stmt_of(a));

    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : sqlite_fail(sqlite_of(db)->conn, e);
}

static size_t columns(const struct answer *a)
{
    return (size_t)sqlite3_column_count(stmt_of(a));
}

/* An empty value has no bytes, but is not NULL. */
static struct str bytes(struct answer *a, size_t column)
{
    int at = (int)column;
    struct str b;

    if (sqlite3_column_type(stmt_of(a), at) == SQLITE_NULL)
        return (struct str){0};
    b = (struct str){sqlite3_column_blob(stmt_of(a), at),
                     (size_t)sqlite3_column_bytes(stmt_of(a), at)};
    return b.p ? b : STR("");
}

static int64_t number(struct answer *a, size_t column)
{
    return sqlite3_column_int64(stmt_of(a), (int)column);
}

static void close_answer(struct answer *a)
{
    sqlite3_stmt *stmt = stmt_of(a);

    resetp(&stmt);
}

const struct sql_ops sqlite_sql = {
    .run = run,
    .post = post,
    .ask = ask,
    .next = next,
    .columns = columns,
    .bytes = bytes,
    .number = number,
    .close = close_answer,
    .events_joined = "group_concat(events)", /* in the order of the primary key */
    .tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
              " ORDER BY name",
    .columns_of = "SELECT name, CASE type WHEN 'INTEGER' THEN 0 WHEN 'TEXT' THEN 1 ELSE 2 END, pk"
                  " FROM pragma_table_info(?1) ORDER BY name",
};
