/* Private to SQLite: the connection, and the tables that it puts behind the store's SQL. */
#pragma once

#include "store/sql_int.h"

#include <sqlite3.h>
#include <stdatomic.h>

struct sqlite {
    struct db db;
    sqlite3 *conn;                       /* owned */
    sqlite3 *mover;                      /* owned: moves the log, maybe on another thread */
    sqlite3_stmt *cache[STATEMENTS_MAX]; /* owned */
    size_t cached;
    int log;              /* owned: the file, to be synced */
    atomic_int log_pages; /* in it since the last checkpoint */
    atomic_int on_disk;   /* so many of them, when it was synced */
    bool wrote;           /* this transaction did */
};

static inline struct sqlite *sqlite_of(struct db *db)
{
    return (struct sqlite *)db; /* its first member */
}

extern const struct sql_ops sqlite_sql;
extern const struct schema_ops sqlite_schema; /* conn is a sqlite3 * */

int sqlite_fail(sqlite3 *conn, struct err *e); /* what it says went wrong; -1 */
