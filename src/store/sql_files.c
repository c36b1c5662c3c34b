/* Files: uploaded once, used in many sessions. */
#include "store/sql_int.h"

#define COLUMNS "id, tenant, name, mime, hash, size, created_ms, expires_ms, downloadable, pools"
#define SELECT  "SELECT " COLUMNS " FROM files WHERE "

/* An upload: it waits for the disk. */
int db_file_put(struct db *db, const struct file_row *r, struct err *e)
{
    db_must_sync(db);
    if (names_blob(db, r->hash, e) < 0)
        return -1;
    return sql_put(db, "INSERT INTO files (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   &file_type, r, NULL, 0, e);
}

int db_file_get(struct db *db, const char *tenant, const char *id, struct file_row *ret,
                struct err *e)
{
    return sql_one(db, SELECT "id = ?2 AND tenant = ?1", ARGS(TEXT(tenant), TEXT(id)), &file_type,
                   ret, e);
}

#define SELECT_PAGE                                                                                \
    "SELECT " COLUMNS LOOK_AT("(expires_ms = 0 OR expires_ms > ?7) AND (?8 IS NULL OR pools = "    \
                              "?8)") " FROM files WHERE " IN_SPAN " AND tenant = ?6"

static void turn_round(struct file_row *rows, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct file_row swapped = rows[i];
        rows[i] = rows[count - 1 - i];
        rows[count - 1 - i] = swapped;
    }
}

int db_file_list(struct db *db, const char *tenant, int64_t now_ms, struct page page,
                 struct file_row **ret, size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;
    void *rows = page.progress ? *ret : NULL;

    *ret = NULL;
    s.oldest_first = page.newer;
    if (span_go_on(db, &s, MADE_WHEN("files"), tenant, page, e) < 0)
        return -1;
    int rc = sql_page(db, page.newer ? SELECT_PAGE OLDEST_FIRST : SELECT_PAGE NEWEST_FIRST, s,
                      ARGS(TEXT(tenant), NUMBER(now_ms), TEXT(page.pools)), &file_type, page, false,
                      &rows, ret_count, e);
    *ret = rows;
    if (rc == 0 && page.newer)
        turn_round(*ret, *ret_count);
    return rc;
}

int db_file_bytes(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret, struct err *e)
{
    int64_t sum = 0;
    int rc = sql_one(db,
                     "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM files WHERE tenant = ?1"
                     " AND (expires_ms = 0 OR expires_ms > ?2)",
                     ARGS(TEXT(tenant), NUMBER(now_ms)), &number_type, &sum, e);

    *ret = (uint64_t)sum;
    return rc < 0 ? -1 : 0;
}

int db_file_delete(struct db *db, const char *tenant, const char *id, struct err *e)
{
    return sql_run(db, "DELETE FROM files WHERE id = ?2 AND tenant = ?1",
                   ARGS(TEXT(tenant), TEXT(id)), e);
}

#define PAST "FROM files WHERE expires_ms > 0 AND expires_ms < ?1"

int db_file_expire(struct db *db, int64_t now_ms, int64_t forget_ms, size_t limit, struct err *e)
{
    int emptied = sql_run(db,
                          "UPDATE files SET hash = '' WHERE id IN (SELECT id " PAST
                          " AND hash <> '' ORDER BY expires_ms LIMIT ?2)",
                          ARGS(NUMBER(now_ms), NUMBER(limit)), e);
    int forgotten = emptied < 0 ? -1
                                : sql_run(db,
                                          "DELETE FROM files WHERE id IN (SELECT id " PAST
                                          " ORDER BY expires_ms LIMIT ?2)",
                                          ARGS(NUMBER(forget_ms), NUMBER(limit)), e);

    return forgotten < 0 ? -1 : emptied > forgotten ? emptied : forgotten;
}
