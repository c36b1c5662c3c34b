/* Files: uploaded once, used in many sessions. */
#include "store/sqlite_int.h"

#define COLUMNS "id, tenant, name, mime, hash, size, created_ms, expires_ms, downloadable"
#define SELECT  "SELECT " COLUMNS " FROM files WHERE "

static int put(struct db *db, const struct file_row *r, struct err *e)
{
    int rc = sql_put(db, "INSERT INTO files (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     &file_type, r, NULL, 0, e);

    return rc < 0 ? -1 : 0;
}

static int get(struct db *db, const char *tenant, const char *id, struct file_row *ret,
               struct err *e)
{
    return sql_one(db, SELECT "id = ?2 AND tenant = ?1", ARGS(TEXT(tenant), TEXT(id)), &file_type,
                   ret, e);
}

static int list(struct db *db, const char *tenant, struct page page, struct file_row **ret,
                size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;

    *ret = NULL;
    if (span_go_on(db, &s, MADE_WHEN("files"), tenant, page, false, e) < 0)
        return -1;
    *ret = sql_all(db, SELECT IN_SPAN " AND tenant = ?5" NEWEST_FIRST " LIMIT ?6",
                   ARGS(SPAN_ARGS(s), TEXT(tenant), NUMBER(page.limit)), &file_type, ret_count, e);
    return *ret ? 0 : -1;
}

static int drop(struct db *db, const char *tenant, const char *id, struct err *e)
{
    return sql_run(db, "DELETE FROM files WHERE id = ?2 AND tenant = ?1",
                   ARGS(TEXT(tenant), TEXT(id)), e);
}

static int expire(struct db *db, int64_t now_ms, size_t limit, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM files WHERE id IN (SELECT id FROM files"
                   " WHERE expires_ms > 0 AND expires_ms < ?1 ORDER BY expires_ms LIMIT ?2)",
                   ARGS(NUMBER(now_ms), NUMBER(limit)), e);
}

void sqlite_files(struct db_ops *ops)
{
    ops->file_put = put;
    ops->file_get = get;
    ops->file_list = list;
    ops->file_delete = drop;
    ops->file_expire = expire;
}
