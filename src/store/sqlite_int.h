/* Private to the SQLite side of the store: statements by their text, rows by their columns. */
#pragma once

#include "store/store_int.h"

#include <sqlite3.h>
#include <stdatomic.h>

#define STATEMENTS_MAX 128

struct sqlite {
    struct db db;
    sqlite3 *conn;                       /* owned */
    sqlite3 *mover;                      /* owned: moves the log, maybe on another thread */
    sqlite3_stmt *cache[STATEMENTS_MAX]; /* owned */
    size_t cached;
    int log;              /* owned: the file, to be synced */
    atomic_int log_pages; /* in it since the last checkpoint */
    bool wrote;           /* this transaction did */
};

static inline struct sqlite *sqlite_of(struct db *db)
{
    return (struct sqlite *)db; /* its first member */
}

/* --- statements; -1 is a failure --- */

/* What a statement is given for its ?1, ?2, ... */
struct arg {
    enum { ARG_TEXT, ARG_BYTES, ARG_NUMBER } kind;
    const char *text; /* or NULL */
    struct str bytes;
    int64_t number;
};
#define TEXT(s)                                                                                    \
    {                                                                                              \
        ARG_TEXT, .text = (s)                                                                      \
    }
#define BYTES(s)                                                                                   \
    {                                                                                              \
        ARG_BYTES, .bytes = (s)                                                                    \
    }
#define NUMBER(n)                                                                                  \
    {                                                                                              \
        ARG_NUMBER, .number = (int64_t)(n)                                                         \
    }
#define ARGS(...)                                                                                  \
    (const struct arg[]){__VA_ARGS__},                                                             \
        sizeof((const struct arg[]){__VA_ARGS__}) / sizeof(struct arg)

/* Each text is prepared once and kept: there are at most STATEMENTS_MAX of them. */

/* How many rows it changed. */
int sql_run(struct db *db, const char *text, const struct arg *args, size_t count,
            struct err *e) MUST_CHECK;
/* The same, with the columns of the row before the args. */
int sql_put(struct db *db, const char *text, const struct row_type *t, const void *row,
            const struct arg *args, size_t count, struct err *e) MUST_CHECK;
/* 1 and the first row, or 0. */
int sql_one(struct db *db, const char *text, const struct arg *args, size_t count,
            const struct row_type *t, void *ret, struct err *e) MUST_CHECK;
/* An owned array, or NULL for a failure. Where the statement has fewer columns than the row, the
 * last ones stay zero. */
void *sql_all(struct db *db, const char *text, const struct arg *args, size_t count,
              const struct row_type *t, size_t *ret_count, struct err *e) MUST_CHECK;

/* --- pages --- */

/* What a statement for sql_page() selects after the columns of a row; the filter is an expression
 * and no part of WHERE, so that rows that are not wanted are counted, too. */
#define LOOK_AT(filter) ", created_ms, id, " filter
/* Adds rows to *rows, an owned array or NULL: those after page.skip, page.limit at most. to_end:
 * looks at the others as well, to count them. 1: there is more to look at; -1: *rows is NULL. */
int sql_page(struct db *db, const char *text, const struct arg *args, size_t count,
             const struct row_type *t, struct page page, bool to_end, void **rows,
             size_t *row_count, struct err *e) MUST_CHECK;

/* The rows above one (created_ms, id) and below another. No id is empty, so (ms, "") is a time. */
struct span {
    int64_t above_ms;
    const char *above_id;
    int64_t below_ms;
    const char *below_id;
};
#define SPAN_ALL ((struct span){-1, "", INT64_MAX, ""})
#define SPAN_ARGS(s)                                                                               \
    NUMBER((s).above_ms), TEXT((s).above_id), NUMBER((s).below_ms), TEXT((s).below_id)
#define IN_SPAN      "(created_ms, id) > (?1, ?2) AND (created_ms, id) < (?3, ?4)"
#define NEWEST_FIRST " ORDER BY created_ms DESC, id DESC"
/* Of one of the comma-separated pools in the argument; of any when that is NULL. */
#define OF_POOLS(arg) "(" arg " IS NULL OR instr(',' || " arg " || ',', ',' || pool || ',') > 0)"
#define MADE_WHEN(of) "SELECT created_ms FROM " of " WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)"

/* Leaves of the span what comes after page.after. made_when: MADE_WHEN() of the table. */
int span_go_on(struct db *db, struct span *s, const char *made_when, const char *tenant,
               struct page page, bool oldest_first, struct err *e) MUST_CHECK;

/* --- the parts --- */

int sqlite_fail(sqlite3 *conn, struct err *e); /* what it says went wrong; -1 */
/* One step of the schema. */
struct schema_step {
    const char *text;
    const char *table, *instead; /* or NULL: where this table is there already, another text */
};
/* Brings the schema up to the last of the steps, each in a transaction of its own. */
int sqlite_migrate(sqlite3 *conn, const struct schema_step *steps, size_t count,
                   struct err *e) MUST_CHECK;
int sqlite_version(sqlite3 *conn, int64_t *ret, struct err *e) MUST_CHECK; /* of the schema */
int sqlite_to_this_version(sqlite3 *conn, struct err *e) MUST_CHECK;
