/* Approvals. A decision is on the disk before it counts, and so is its use by the caller. */
#include "store/sql_int.h"

#define COLUMNS                                                                                    \
    "id, tenant, key, pool, session, conversation, tool, door, request, digest, lasting, state, "  \
    "decided_by, decided_how, reason, execution, created_ms, expires_ms, decided_ms, taken_ms, "   \
    "text_chars, text"
#define SELECT "SELECT " COLUMNS " FROM approvals WHERE "
#define OWN    UNLESS_ANOTHERS("approvals", "state")

/* Of the enum: pending and approved come first. */
static_assert(APPROVAL_PENDING == 0 && APPROVAL_APPROVED == 1 && APPROVAL_DECLINED == 2 &&
                  APPROVAL_EXPIRED == 3,
              "the statements and indices have these numbers");

int db_approval_put(struct db *db, const struct approval_row *r, struct err *e)
{
    db_must_sync(db);
    return sql_put(db,
                   "INSERT INTO approvals (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                   " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (id) DO UPDATE SET session = excluded.session,"
                   " conversation = excluded.conversation, lasting = excluded.lasting,"
                   " " OWN ", decided_by = excluded.decided_by,"
                   " decided_how = excluded.decided_how, reason = excluded.reason,"
                   " execution = excluded.execution, expires_ms = excluded.expires_ms,"
                   " decided_ms = excluded.decided_ms, taken_ms = excluded.taken_ms",
                   &approval_type, r, NULL, 0, e);
}

int db_approval_get(struct db *db, const char *tenant, const char *id, struct approval_row *ret,
                    struct err *e)
{
    return sql_one(db, SELECT "id = ?2 AND tenant = ?1", ARGS(TEXT(tenant), TEXT(id)),
                   &approval_type, ret, e);
}

/* The digest's index is the narrowest; expressions keep an engine from taking another. */
int db_approval_open(struct db *db, const char *tenant, const char *key, const uint8_t digest[32],
                     int64_t now_ms, struct approval_row *ret, struct err *e)
{
    struct str bytes = {(const char *)digest, 32};

    return sql_one(db,
                   SELECT "digest = ?3 AND taken_ms = 0 AND tenant || '' = ?1 AND key = ?2"
                          " AND +state < 3 AND +expires_ms > ?4 ORDER BY created_ms DESC LIMIT 1",
                   ARGS(TEXT(tenant), TEXT(key), BYTES(bytes), NUMBER(now_ms)), &approval_type, ret,
                   e);
}

int db_approval_lasting(struct db *db, const char *tenant, const char *key, const char *tool,
                        const char *pool, const char *session, const char *conversation,
                        struct approval_row *ret, struct err *e)
{
    int rc = 0;

    if (*session)
        rc = sql_one(db,
                     SELECT "session = ?4 AND state = 1 AND lasting = 1 AND taken_ms > 0"
                            " AND tenant = ?1 AND key = ?2 AND tool = ?3 AND pool = ?5 LIMIT 1",
                     ARGS(TEXT(tenant), TEXT(key), TEXT(tool), TEXT(session), TEXT(pool)),
                     &approval_type, ret, e);
    if (rc == 0 && *conversation)
        rc = sql_one(db,
                     SELECT "conversation = ?4 AND state = 1 AND lasting = 1 AND taken_ms > 0"
                            " AND tenant = ?1 AND key = ?2 AND tool = ?3 AND pool = ?5 LIMIT 1",
                     ARGS(TEXT(tenant), TEXT(key), TEXT(tool), TEXT(conversation), TEXT(pool)),
                     &approval_type, ret, e);
    return rc;
}

int db_approval_count(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret_pending,
                      struct err *e)
{
    int64_t n = 0;
    int rc = sql_one(db,
                     "SELECT count(*) FROM approvals"
                     " WHERE tenant = ?1 AND state = 0 AND expires_ms > ?2",
                     ARGS(TEXT(tenant), NUMBER(now_ms)), &number_type, &n, e);

    *ret_pending = (uint64_t)n;
    return rc < 0 ? -1 : 0;
}

#define SELECT_PAGE                                                                                \
    "SELECT " COLUMNS LOOK_AT(OF_POOLS("?7")) " FROM approvals WHERE " IN_SPAN " AND tenant = ?6"

int db_approval_list(struct db *db, const char *tenant, int state, struct page page,
                     struct approval_row **ret, size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;
    void *rows = page.progress ? *ret : NULL;

    *ret = NULL;
    if (span_go_on(db, &s, MADE_WHEN("approvals"), tenant, page, e) < 0)
        return -1;
    /* The state is the last argument, and none where any will do. */
    int rc = sql_page(
        db, state < 0 ? SELECT_PAGE NEWEST_FIRST : SELECT_PAGE " AND state = ?8" NEWEST_FIRST, s,
        ARGS(TEXT(tenant), TEXT(page.pools), NUMBER(state)) - (state < 0), &approval_type, page,
        false, &rows, ret_count, e);
    *ret = rows;
    return rc;
}

int db_approval_expire(struct db *db, int64_t now_ms, struct err *e)
{
    return sql_run(db,
                   "UPDATE approvals SET state = 3"
                   " WHERE state < 2 AND taken_ms = 0 AND expires_ms <= ?1",
                   ARGS(NUMBER(now_ms)), e);
}

int db_approval_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals"
                   " WHERE created_ms < ?1 ORDER BY created_ms, id LIMIT ?2)",
                   ARGS(NUMBER(before_ms), NUMBER(limit)), e);
}
