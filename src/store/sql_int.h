/*
 * Private to the rows of the store: one set of SQL for every engine.
 *
 * The files sql_*.c have the statements, as text that every engine reads: ?1, ?2 for arguments,
 * numbers rather than booleans, no function that one of them lacks. What engines do differently
 * stands in three small tables: struct db_ops (transactions), struct sql_ops (statements) and
 * struct schema_ops (steps of the schema).
 */
#pragma once

#include "store/store_int.h"

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

/* Each text is prepared once and kept: there are at most this many of them. */
#define STATEMENTS_MAX 128

/* What a statement has found, read one row after the other. The engine knows what is in it. */
struct answer;

/* How an engine runs a statement. */
struct sql_ops {
    /* How many rows it changed. */
    int (*run)(struct db *db, const char *text, const struct arg *args, size_t count,
               struct err *e);
    /* The same for whoever does not need the count. It may return before the database has answered:
     * a failure then is that of the job. 0 or -1. */
    int (*post)(struct db *db, const char *text, const struct arg *args, size_t count,
                struct err *e);
    /* Owned by the caller, who gives it to close(); NULL: failed. One at a time. */
    struct answer *(*ask)(struct db *db, const char *text, const struct arg *args, size_t count,
                          struct err *e);
    int (*next)(struct db *db, struct answer *a, struct err *e); /* 1: there is a row; 0: no more */
    size_t (*columns)(const struct answer *a);
    struct str (*bytes)(struct answer *a, size_t column); /* p NULL: the value is NULL */
    int64_t (*number)(struct answer *a, size_t column);
    void (*close)(struct answer *a);
    /* An aggregate: the events of one execution in order, with commas between them. */
    const char *events_joined;
    /* Of the database's own catalog: names of tables in order; and of the table ?1, in the order of
     * their names, its columns: name, kind (0 a number, 1 a text, 2 bytes), and the place in the
     * primary key, from 1, or 0. */
    const char *tables, *columns_of;
};

/* How many rows it changed. */
int sql_run(struct db *db, const char *text, const struct arg *args, size_t count,
            struct err *e) MUST_CHECK;
/* The same without a count, 0 or -1: the database may answer later, and a failure is then that of
 * the job. */
int sql_post(struct db *db, const char *text, const struct arg *args, size_t count,
             struct err *e) MUST_CHECK;
/* The same, with the columns of the row before the args. */
int sql_put(struct db *db, const char *text, const struct row_type *t, const void *row,
            const struct arg *args, size_t count, struct err *e) MUST_CHECK;
/* Of an ON CONFLICT (id) DO UPDATE SET: this column, which is never NULL, is taken from the row
 * that is put unless the one that is there is another tenant's. Then it fails, with ERR_CONFLICT: a
 * count of no rows would be known only when the statements behind it are on their way. */
#define UNLESS_ANOTHERS(table, column)                                                             \
    column " = CASE WHEN " table ".tenant = excluded.tenant THEN excluded." column " END"

/* 1 and the first row, or 0. */
int sql_one(struct db *db, const char *text, const struct arg *args, size_t count,
            const struct row_type *t, void *ret, struct err *e) MUST_CHECK;
/* An owned array, or NULL for a failure. Where the statement has fewer columns than the row, the
 * last ones stay zero. */
void *sql_all(struct db *db, const char *text, const struct arg *args, size_t count,
              const struct row_type *t, size_t *ret_count, struct err *e) MUST_CHECK;

/* --- pages --- */

/* The rows above one (created_ms, id) and below another. No id is empty, so (ms, "") is a time. */
struct span {
    int64_t above_ms;
    const char *above_id;
    int64_t below_ms;
    const char *below_id;
    bool oldest_first; /* which of the two a list moves as it goes on */
};
#define SPAN_ALL ((struct span){-1, "", INT64_MAX, "", false})
/* ?1 to ?4 are the span, ?5 is how many rows to look at: the arguments of a list begin with ?6. */
#define IN_SPAN      "(created_ms, id) > (?1, ?2) AND (created_ms, id) < (?3, ?4)"
#define NEWEST_FIRST " ORDER BY created_ms DESC, id DESC LIMIT ?5"
#define OLDEST_FIRST " ORDER BY created_ms, id LIMIT ?5"
/* Of one of the comma-separated pools in the argument; of any when that is NULL. Without its name
 * the list is another one: no function that finds a text in a text has one name everywhere. */
#define OF_POOLS(arg)                                                                              \
    "(" arg " IS NULL OR replace(',' || " arg " || ',', ',' || pool || ',', '')"                   \
    " <> ',' || " arg " || ',')"
/* Of the tenant in the argument; of any when that is NULL. */
#define OF_TENANT(arg) "(" arg " IS NULL OR tenant = " arg ")"
#define MADE_WHEN(of)  "SELECT created_ms FROM " of " WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)"

/* Leaves of the span what comes after page.after. made_when: MADE_WHEN() of the table. */
int span_go_on(struct db *db, struct span *s, const char *made_when, const char *tenant,
               struct page page, struct err *e) MUST_CHECK;

/* What a statement for sql_page() selects after the columns of a row; the filter is an expression
 * and no part of WHERE, so that rows that are not wanted are counted, too. */
#define LOOK_AT(filter) ", created_ms, id, " filter
/* Adds rows to *rows, an owned array or NULL: those after page.skip, page.limit at most. to_end:
 * looks at the others as well, to count them. 1: there is more to look at; -1: *rows is NULL. */
int sql_page(struct db *db, const char *text, struct span span, const struct arg *args,
             size_t count, const struct row_type *t, struct page page, bool to_end, void **rows,
             size_t *row_count, struct err *e) MUST_CHECK;

/* --- the schema --- */

/* One step of the schema. */
struct schema_step {
    const char *text;
    const char *sqlite, *postgres; /* or NULL: what comes behind it in one engine alone */
    const char *table, *instead;   /* or NULL: where this table is there already, another text */
};

/* How an engine takes a step; conn is its connection. -1 is a failure. */
struct schema_ops {
    int (*begin)(void *conn, struct err *e); /* one process at a time */
    int (*commit)(void *conn, struct err *e);
    void (*rollback)(void *conn);
    int (*version)(void *conn, int64_t *ret, struct err *e);
    int (*set_version)(void *conn, int64_t version, struct err *e);
    int (*has_table)(void *conn, const char *name, struct err *e); /* 1, 0 */
    /* text: that of the step, or the one that stands for it here. */
    int (*step)(void *conn, const struct schema_step *step, const char *text, struct err *e);
};

/* Brings the schema up to the last of the steps, each in a transaction of its own. */
int schema_migrate(const struct schema_ops *ops, void *conn, const struct schema_step *steps,
                   size_t count, struct err *e) MUST_CHECK;
int schema_to_this_version(const struct schema_ops *ops, void *conn, struct err *e) MUST_CHECK;
size_t schema_last(void); /* the version that this program knows */
