/* Sessions, and the files of their workspaces as saved. */
#include "store/sql_int.h"

#define COLUMNS                                                                                    \
    "id, tenant, pool, name, metadata, env, state, created_ms, used_ms, idle_ms, lifetime_ms, "    \
    "expires_ms, executions, lost, home"
#define SELECT "SELECT " COLUMNS " FROM sessions WHERE "
#define OWN    UNLESS_ANOTHERS("sessions", "state")

/* Not REPLACE, which would delete the old row and with it the files. What a session is stays; what
 * is not set anew leaves its indices alone. */
int db_session_put(struct db *db, const struct session_row *r, struct err *e)
{
    if (names_blob(db, r->home, e) < 0)
        return -1;
    return sql_put(db,
                   "INSERT INTO sessions (" COLUMNS ")"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (id) DO UPDATE SET name = excluded.name,"
                   " metadata = excluded.metadata, env = excluded.env, " OWN ","
                   " used_ms = excluded.used_ms, idle_ms = excluded.idle_ms,"
                   " lifetime_ms = excluded.lifetime_ms, expires_ms = excluded.expires_ms,"
                   " executions = excluded.executions, lost = excluded.lost, home = excluded.home",
                   &session_type, r, NULL, 0, e);
}

int db_session_add(struct db *db, const struct session_row *r, struct err *e)
{
    return sql_put(db,
                   "INSERT INTO sessions (" COLUMNS ")"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (id) DO NOTHING",
                   &session_type, r, NULL, 0, e);
}

int db_session_figures(struct db *db, const char *id, int64_t executions, int64_t used_ms,
                       struct err *e)
{
    return sql_post(db,
                    "UPDATE sessions SET"
                    " executions = CASE WHEN executions > ?2 THEN executions ELSE ?2 END,"
                    " used_ms = CASE WHEN used_ms > ?3 THEN used_ms ELSE ?3 END WHERE id = ?1",
                    ARGS(TEXT(id), NUMBER(executions), NUMBER(used_ms)), e);
}

int db_session_get(struct db *db, const char *tenant, const char *id, struct session_row *ret,
                   struct err *e)
{
    return sql_one(db, SELECT "id = ?2 AND tenant = ?1", ARGS(TEXT(tenant), TEXT(id)),
                   &session_type, ret, e);
}

int db_session_named(struct db *db, const char *tenant, const char *pool, const char *name,
                     struct session_row *ret, struct err *e)
{
    return sql_one(db, SELECT "tenant = ?1 AND pool = ?2 AND name = ?3",
                   ARGS(TEXT(tenant), TEXT(pool), TEXT(name)), &session_type, ret, e);
}

#define WANTED                                                                                     \
    "(?7 IS NULL OR pool = ?7) AND (?8 IS NULL OR substr(name, 1, length(?8)) = ?8) "              \
    "AND " OF_POOLS("?9")

int db_session_list(struct db *db, const char *tenant, struct page page, struct session_row **ret,
                    size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;
    void *rows = page.progress ? *ret : NULL;

    *ret = NULL;
    if (span_go_on(db, &s, MADE_WHEN("sessions"), tenant, page, e) < 0)
        return -1;
    int rc =
        sql_page(db,
                 "SELECT " COLUMNS LOOK_AT(WANTED) " FROM sessions WHERE " IN_SPAN
                                                   " AND tenant = ?6" NEWEST_FIRST,
                 s, ARGS(TEXT(tenant), TEXT(page.pool), TEXT(page.name_prefix), TEXT(page.pools)),
                 &session_type, page, false, &rows, ret_count, e);
    *ret = rows;
    return rc;
}

/* The name is free at once, and nobody finds it by any tenant's. */
int db_session_bury(struct db *db, const char *tenant, const char *id, struct err *e)
{
    return sql_run(db,
                   "UPDATE sessions SET tenant = '', name = NULL, metadata = NULL, env = NULL,"
                   " expires_ms = 0 WHERE id = ?2 AND tenant = ?1",
                   ARGS(TEXT(tenant), TEXT(id)), e);
}

int db_session_delete(struct db *db, const char *tenant, const char *id, struct err *e)
{
    return sql_run(db, "DELETE FROM sessions WHERE id = ?2 AND tenant = ?1",
                   ARGS(TEXT(tenant), TEXT(id)), e);
}

int db_session_expired(struct db *db, int64_t now_ms, size_t limit, struct session_row **ret,
                       size_t *ret_count, struct err *e)
{
    *ret = sql_all(db, SELECT "expires_ms < ?1 ORDER BY expires_ms LIMIT ?2",
                   ARGS(NUMBER(now_ms), NUMBER(limit)), &session_type, ret_count, e);
    return *ret ? 0 : -1;
}

/* Rare, so it goes through them all. */
int db_session_in_pool(struct db *db, const char *pool, size_t limit, struct session_row **ret,
                       size_t *ret_count, struct err *e)
{
    *ret = sql_all(db, SELECT "pool = ?1 LIMIT ?2", ARGS(TEXT(pool), NUMBER(limit)), &session_type,
                   ret_count, e);
    return *ret ? 0 : -1;
}

int db_session_count(struct db *db, const char *tenant, uint64_t *ret, struct err *e)
{
    int rc = tenant ? sql_one(db, "SELECT count(*) FROM sessions WHERE tenant = ?1",
                              ARGS(TEXT(tenant)), &number_type, ret, e)
                    : sql_one(db, "SELECT count(*) FROM sessions", NULL, 0, &number_type, ret, e);

    return rc < 0 ? -1 : 0;
}

#define ALL_ASLEEP "UPDATE sessions SET state = ?2, lost = ?3 WHERE state = ?1"

/* Those of all once at a start, so it goes through them: an index would cost something with every
 * put. */
int db_session_all_asleep(struct db *db, const char *tenant, int live_state, int asleep_state,
                          struct err *e)
{
    return tenant
               ? sql_run(db, ALL_ASLEEP " AND tenant = ?4",
                         ARGS(NUMBER(live_state), NUMBER(asleep_state), NUMBER(LOST_CHANGES),
                              TEXT(tenant)),
                         e)
               : sql_run(db, ALL_ASLEEP,
                         ARGS(NUMBER(live_state), NUMBER(asleep_state), NUMBER(LOST_CHANGES)), e);
}

/* --- files of a workspace --- */

#define SPACE_COLUMNS "path, hash, size, mode, mtime_ms"
#define SPACE_SELECT  "SELECT " SPACE_COLUMNS " FROM space WHERE session = ?1"

int db_space_put(struct db *db, const char *session, const struct space_row *r, struct err *e)
{
    if (names_blob(db, r->hash, e) < 0)
        return -1;
    return sql_put(db,
                   "INSERT INTO space (" SPACE_COLUMNS ", session) VALUES (?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (session, path) DO UPDATE SET hash = excluded.hash,"
                   " size = excluded.size, mode = excluded.mode, mtime_ms = excluded.mtime_ms",
                   &space_type, r, ARGS(TEXT(session)), e);
}

int db_space_drop(struct db *db, const char *session, struct str path, struct err *e)
{
    return sql_run(db, "DELETE FROM space WHERE session = ?1 AND path = ?2",
                   ARGS(TEXT(session), BYTES(path)), e);
}

int db_space_get(struct db *db, const char *session, struct str path, struct space_row *ret,
                 struct err *e)
{
    return sql_one(db, SPACE_SELECT " AND path = ?2", ARGS(TEXT(session), BYTES(path)), &space_type,
                   ret, e);
}

int db_space_drop_some(struct db *db, const char *session, size_t limit, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM space WHERE session = ?1 AND path IN"
                   " (SELECT path FROM space WHERE session = ?1 LIMIT ?2)",
                   ARGS(TEXT(session), NUMBER(limit)), e);
}

int db_space_next(struct db *db, const char *session, struct str after, size_t limit,
                  struct space_row **ret, size_t *ret_count, struct err *e)
{
    if (!after.p) /* which would be no bytes, but NULL: nothing comes after that */
        after = str_of("");
    *ret = sql_all(db, SPACE_SELECT " AND path > ?2 ORDER BY path LIMIT ?3",
                   ARGS(TEXT(session), BYTES(after), NUMBER(limit)), &space_type, ret_count, e);
    return *ret ? 0 : -1;
}

int db_space_list(struct db *db, const char *session, struct space_row **ret, size_t *ret_count,
                  struct err *e)
{
    *ret =
        sql_all(db, SPACE_SELECT " ORDER BY path", ARGS(TEXT(session)), &space_type, ret_count, e);
    return *ret ? 0 : -1;
}
