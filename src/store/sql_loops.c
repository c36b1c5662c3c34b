/* Runs of the agent: each is one document, written whole at every step. */
#include "store/sql_int.h"

#define COLUMNS "id, tenant, owner, status, created_ms, ended_ms, pool, record, events"

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
