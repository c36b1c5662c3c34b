/* Runs of the agent: each is one document, written whole at every step. */
#include "store/sql_int.h"

#define LISTED  "id, tenant, owner, status, created_ms, ended_ms, pool, record"
#define COLUMNS LISTED ", events"

int db_loop_put(struct db *db, const struct loop_row *r, struct err *e)
{
    return sql_put(db,
                   "INSERT INTO loops (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (id) DO UPDATE SET status = excluded.status,"
                   " ended_ms = excluded.ended_ms, record = excluded.record,"
                   " events = excluded.events, pool = excluded.pool",
                   &loop_type, r, NULL, 0, e);
}

int db_loop_get(struct db *db, const char *tenant, const char *id, struct loop_row *ret,
                struct err *e)
{
    return sql_one(db, "SELECT " COLUMNS " FROM loops WHERE id = ?2 AND tenant = ?1",
                   ARGS(TEXT(tenant), TEXT(id)), &loop_type, ret, e);
}

#define SELECT_PAGE                                                                                \
    "SELECT " LISTED LOOK_AT(OF_POOLS("?7")) " FROM loops WHERE " IN_SPAN " AND tenant = ?6"

int db_loop_list(struct db *db, const char *tenant, const char *owner, struct page page,
                 struct loop_row **ret, size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;
    void *rows = page.progress ? *ret : NULL;

    *ret = NULL;
    if (span_go_on(db, &s, MADE_WHEN("loops"), tenant, page, e) < 0)
        return -1;
    /* The owner is the last argument, and none where anybody's are wanted. */
    int rc =
        sql_page(db, owner ? SELECT_PAGE " AND owner = ?8" NEWEST_FIRST : SELECT_PAGE NEWEST_FIRST,
                 s, ARGS(TEXT(tenant), TEXT(page.pools), TEXT(owner)) - !owner, &loop_type, page,
                 false, &rows, ret_count, e);
    *ret = rows;
    return rc;
}

int db_loop_unfinished(struct db *db, const char *tenant, size_t limit, struct loop_row **ret,
                       size_t *ret_count, struct err *e)
{
    *ret = sql_all(db,
                   "SELECT " COLUMNS " FROM loops WHERE ended_ms = 0 AND " OF_TENANT(
                       "?2") " ORDER BY created_ms, id LIMIT ?1",
                   ARGS(NUMBER(limit), TEXT(tenant)), &loop_type, ret_count, e);
    return *ret ? 0 : -1;
}

int db_loop_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM loops WHERE id IN (SELECT id FROM loops"
                   " WHERE ended_ms > 0 AND ended_ms < ?1 ORDER BY ended_ms LIMIT ?2)",
                   ARGS(NUMBER(before_ms), NUMBER(limit)), e);
}
