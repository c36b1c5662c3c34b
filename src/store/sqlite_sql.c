/* Statements: found by their text, given their args, read into rows. */
#include "store/sqlite_int.h"

#include <stdlib.h>

/* --- what went wrong --- */

int sqlite_fail(sqlite3 *conn, struct err *e)
{
    static const struct {
        int code;
        enum err_kind kind;
        const char *text;
    } known[] = {
        {SQLITE_CONSTRAINT_UNIQUE,     ERR_CONFLICT, "it is there already"                   },
        {SQLITE_CONSTRAINT_PRIMARYKEY, ERR_CONFLICT, "it is there already"                   },
        {SQLITE_CONSTRAINT_FOREIGNKEY, ERR_MISSING,  "what it belongs to is not there"       },
        {SQLITE_TOOBIG,                ERR_LIMIT,    "it is larger than a row can be"        },
        {SQLITE_BUSY,                  ERR_BUSY,     "another process writes to the database"},
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

static int bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    return sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

static int bind_arg(sqlite3_stmt *stmt, int at, const struct arg *a)
{
    if (a->kind == ARG_TEXT)
        return bind_text(stmt, at, a->text);
    if (a->kind == ARG_BYTES)
        return sqlite3_bind_blob64(stmt, at, a->bytes.p, a->bytes.n, SQLITE_STATIC);
    return sqlite3_bind_int64(stmt, at, a->number);
}

/* Ready to be stepped, or NULL. */
static sqlite3_stmt *ready(struct db *db, const char *text, int first, const struct arg *args,
                           size_t count, struct err *e)
{
    struct sqlite *q = sqlite_of(db);
    sqlite3_stmt *stmt = find(q, text, e);

    for (size_t i = 0; stmt && i < count; i++) {
        if (bind_arg(stmt, first + (int)i, &args[i]) != SQLITE_OK) {
            sqlite_fail(q->conn, e);
            resetp(&stmt);
            return NULL;
        }
    }
    return stmt;
}

/* --- rows --- */

static int64_t number_of(const struct column *c, const char *field)
{
    if (c->kind == COLUMN_UINT && c->size == sizeof(bool))
        return *(const bool *)field;
    if (c->kind == COLUMN_UINT && c->size == sizeof(uint32_t))
        return *(const uint32_t *)field;
    if (c->size == sizeof(int))
        return *(const int *)field;
    assert(c->size == sizeof(int64_t));
    return *(const int64_t *)field;
}

static void set_number(const struct column *c, char *field, int64_t n)
{
    if (c->size == sizeof(bool))
        *(bool *)field = n != 0;
    else if (c->kind == COLUMN_UINT && c->size == sizeof(uint32_t))
        *(uint32_t *)field = (uint32_t)n;
    else if (c->size == sizeof(int))
        *(int *)field = (int)n;
    else
        *(int64_t *)field = n;
}

static int bind_column(sqlite3_stmt *stmt, int at, const struct column *c, const char *field)
{
    const char *text = c->kind == COLUMN_FIXED ? field : NULL;

    if (c->kind == COLUMN_TEXT || c->kind == COLUMN_PATH)
        text = *(char *const *)field;
    switch (c->kind) {
    case COLUMN_FIXED:
    case COLUMN_TEXT:
        return bind_text(stmt, at, text);
    case COLUMN_PATH:
        return sqlite3_bind_blob64(stmt, at, text, text ? strlen(text) : 0, SQLITE_STATIC);
    case COLUMN_HASH:
        return sqlite3_bind_blob64(stmt, at, field, c->size, SQLITE_STATIC);
    default:
        return sqlite3_bind_int64(stmt, at, number_of(c, field));
    }
}

static void read_column(sqlite3_stmt *stmt, int at, const struct column *c, char *field)
{
    struct str bytes = {sqlite3_column_blob(stmt, at), (size_t)sqlite3_column_bytes(stmt, at)};

    switch (c->kind) {
    case COLUMN_FIXED:
        if (!str_to_cstr(bytes, field, c->size))
            *field = '\0';
        break;
    case COLUMN_TEXT:
    case COLUMN_PATH:
        if (sqlite3_column_type(stmt, at) != SQLITE_NULL)
            *(char **)field = mem_strndup(bytes);
        break;
    case COLUMN_HASH:
        if (bytes.n == c->size)
            memcpy(field, bytes.p, c->size);
        break;
    default:
        set_number(c, field, sqlite3_column_int64(stmt, at));
    }
}

static void read_row(sqlite3_stmt *stmt, size_t n, const struct row_type *t, void *ret)
{
    memset(ret, 0, t->size);
    for (size_t i = 0; i < t->count && i < n; i++)
        read_column(stmt, (int)i, &t->columns[i], (char *)ret + t->columns[i].at);
}

static size_t columns_of(sqlite3_stmt *stmt)
{
    return (size_t)sqlite3_column_count(stmt);
}

/* --- the four ways to run one --- */

static int run(struct db *db, sqlite3_stmt *stmt, struct err *e)
{
    struct sqlite *q = sqlite_of(db);

    if (sqlite3_step(stmt) != SQLITE_DONE)
        return sqlite_fail(q->conn, e);
    return sqlite3_changes(q->conn);
}

int sql_run(struct db *db, const char *text, const struct arg *args, size_t count, struct err *e)
{
    AUTO(resetp) sqlite3_stmt *stmt = ready(db, text, 1, args, count, e);

    return stmt ? run(db, stmt, e) : -1;
}

int sql_put(struct db *db, const char *text, const struct row_type *t, const void *row,
            const struct arg *args, size_t count, struct err *e)
{
    AUTO(resetp)
    sqlite3_stmt *stmt = ready(db, text, (int)t->count + 1, args, count, e);

    if (!stmt)
        return -1;
    for (size_t i = 0; i < t->count; i++) {
        const struct column *c = &t->columns[i];
        if (bind_column(stmt, (int)i + 1, c, (const char *)row + c->at) != SQLITE_OK)
            return sqlite_fail(sqlite_of(db)->conn, e);
    }
    return run(db, stmt, e);
}

int sql_one(struct db *db, const char *text, const struct arg *args, size_t count,
            const struct row_type *t, void *ret, struct err *e)
{
    AUTO(resetp) sqlite3_stmt *stmt = ready(db, text, 1, args, count, e);
    int rc = stmt ? sqlite3_step(stmt) : SQLITE_ERROR;

    if (!stmt)
        return -1;
    if (rc == SQLITE_DONE)
        return 0;
    if (rc != SQLITE_ROW)
        return sqlite_fail(sqlite_of(db)->conn, e);
    if (ret)
        read_row(stmt, columns_of(stmt), t, ret);
    return 1;
}

void *sql_all(struct db *db, const char *text, const struct arg *args, size_t count,
              const struct row_type *t, size_t *ret_count, struct err *e)
{
    AUTO(resetp) sqlite3_stmt *stmt = ready(db, text, 1, args, count, e);
    char *rows = mem_zalloc(t->size);
    size_t n = 0, cap = 1;
    int rc = SQLITE_ERROR;

    *ret_count = 0;
    while (stmt && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (n == cap)
            rows = mem_realloc(rows, (cap *= 2) * t->size);
        read_row(stmt, columns_of(stmt), t, rows + n++ * t->size);
    }
    if (rc != SQLITE_DONE) {
        if (stmt)
            sqlite_fail(sqlite_of(db)->conn, e);
        rows_free(t, rows, n);
        return NULL;
    }
    *ret_count = n;
    return rows;
}

/* --- pages --- */

#define LOOK_MAX 1000 /* rows looked at in one call */

static const size_t look_columns = 3; /* LOOK_AT() */

void progress_done(struct progress *p)
{
    mem_freep(&p->id);
}

/* The last row that was looked at: the next call goes on after it. */
static void note_place(sqlite3_stmt *stmt, size_t own, struct progress *p)
{
    free(p->id);
    p->ms = sqlite3_column_int64(stmt, (int)own);
    p->id = mem_strdup((const char *)sqlite3_column_text(stmt, (int)own + 1));
}

/* Grows where the count is a power of two, so that no capacity need be known. */
static void *room_for_one(void *rows, size_t count, size_t size)
{
    return count & (count - 1) ? rows : mem_realloc(rows, (count ? 2 * count : 1) * size);
}

int sql_page(struct db *db, const char *text, const struct arg *args, size_t count,
             const struct row_type *t, struct page page, bool to_end, void **rows,
             size_t *row_count, struct err *e)
{
    AUTO(resetp) sqlite3_stmt *stmt = ready(db, text, 1, args, count, e);
    AUTO(progress_done) struct progress whole = {0};
    struct progress *p = page.progress ? page.progress : &whole;
    size_t own = stmt ? columns_of(stmt) - look_columns : 0;
    int rc = stmt ? SQLITE_DONE : SQLITE_ERROR;

    if (!*rows)
        *row_count = 0;
    for (size_t looked = 0; stmt && (to_end || *row_count < page.limit); looked++) {
        if (page.progress && looked == LOOK_MAX) {
            note_place(stmt, own, p);
            return 1;
        }
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        if (!sqlite3_column_int(stmt, (int)own + 2) || p->seen++ < page.skip ||
            *row_count == page.limit)
            continue;
        *rows = room_for_one(*rows, *row_count, t->size);
        read_row(stmt, own, t, (char *)*rows + (*row_count)++ * t->size);
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
        if (stmt)
            sqlite_fail(sqlite_of(db)->conn, e);
        rows_free(t, take_ptr(rows), *row_count);
        *row_count = 0;
        return -1;
    }
    if (!*rows)
        *rows = mem_zalloc(t->size);
    return 0;
}

int span_go_on(struct db *db, struct span *s, const char *made_when, const char *tenant,
               struct page page, bool oldest_first, struct err *e)
{
    const char *after = page.after;
    int64_t ms = page.after_ms;

    if (page.progress && page.progress->id) {
        after = page.progress->id;
        ms = page.progress->ms;
    } else if (!after) {
        return 0;
    } else if (!ms) {
        int rc = sql_one(db, made_when, ARGS(TEXT(page.after), TEXT(tenant)), &number_type, &ms, e);
        if (rc < 0)
            return -1;
        if (rc == 0) /* deleted since; its id says where it was */
            ms = id_time(str_of(page.after));
        if (ms == 0)
            return err_set(e, ERR_CALLER, "there is nothing with this id to go on after");
    }
    if (oldest_first && ms >= s->above_ms) {
        s->above_ms = ms;
        s->above_id = after;
    } else if (!oldest_first && ms < s->below_ms) {
        s->below_ms = ms;
        s->below_id = after;
    }
    return 0;
}
