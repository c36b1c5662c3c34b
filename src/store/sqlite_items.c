/* Items: what a door keeps of its own, as JSON, some of them with bytes. */
#include "store/sqlite_int.h"

#define COLUMNS                                                                                    \
    "id, tenant, kind, owner, parent, hash, size, created_ms, updated_ms, expires_ms, body, pools"
#define SELECT "SELECT " COLUMNS " FROM items WHERE "
/* How wide an owner's view is stands in ?3: 0 anybody's, 1 their own, 2 nobody's, too. */
#define SEEN                                                                                       \
    "tenant = ?1 AND kind = ?2 AND (?3 = 0 OR owner = ?4 OR (?3 = 2 AND owner = ''))"              \
    " AND (?5 IS NULL OR parent = ?5) AND (?6 IS NULL OR pools = ?6)"

int db_item_put(struct db *db, const struct item_row *r, struct err *e)
{
    db->must_sync |= *r->hash != '\0'; /* an upload */
    if (names_blob(db, r->hash, e) < 0)
        return -1;
    int rc = sql_put(db,
                     "INSERT INTO items (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (tenant, kind, id) DO UPDATE SET parent = excluded.parent,"
                     " hash = excluded.hash, size = excluded.size,"
                     " updated_ms = excluded.updated_ms, expires_ms = excluded.expires_ms,"
                     " body = excluded.body",
                     &item_type, r, NULL, 0, e);

    return rc < 0 ? -1 : 0;
}

int db_item_get(struct db *db, const char *tenant, const char *kind, const char *id,
                struct item_row *ret, struct err *e)
{
    return sql_one(db, SELECT "tenant = ?1 AND kind = ?2 AND id = ?3",
                   ARGS(TEXT(tenant), TEXT(kind), TEXT(id)), &item_type, ret, e);
}

int db_item_list(struct db *db, const struct item_filter *f, struct item_row **ret,
                 size_t *ret_count, uint64_t *ret_total, struct err *e)
{
    int64_t total = 0;

    *ret = NULL;
    if (sql_one(db, "SELECT count(*) FROM items WHERE " SEEN,
                ARGS(TEXT(f->tenant), TEXT(f->kind), NUMBER(f->view), TEXT(f->owner),
                     TEXT(f->parent), TEXT(f->pools)),
                &number_type, &total, e) < 0)
        return -1;
    *ret = sql_all(db, SELECT SEEN NEWEST_FIRST " LIMIT ?7 OFFSET ?8",
                   ARGS(TEXT(f->tenant), TEXT(f->kind), NUMBER(f->view), TEXT(f->owner),
                        TEXT(f->parent), TEXT(f->pools), NUMBER(f->limit), NUMBER(f->offset)),
                   &item_type, ret_count, e);
    *ret_total = (uint64_t)total;
    return *ret ? 0 : -1;
}

int db_item_everybodys(struct db *db, const char *kind, const char *parent, size_t limit,
                       struct item_row **ret, size_t *ret_count, struct err *e)
{
    *ret = sql_all(db, SELECT "kind = ?1 AND parent = ?2 ORDER BY created_ms, id LIMIT ?3",
                   ARGS(TEXT(kind), TEXT(parent), NUMBER(limit)), &item_type, ret_count, e);
    return *ret ? 0 : -1;
}

int db_item_delete(struct db *db, const char *tenant, const char *kind, const char *id,
                   struct err *e)
{
    return sql_run(db, "DELETE FROM items WHERE tenant = ?1 AND kind = ?2 AND id = ?3",
                   ARGS(TEXT(tenant), TEXT(kind), TEXT(id)), e);
}

int db_item_expire(struct db *db, int64_t now_ms, size_t limit, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM items WHERE rowid IN (SELECT rowid FROM items"
                   " WHERE expires_ms > 0 AND expires_ms < ?1 ORDER BY expires_ms LIMIT ?2)",
                   ARGS(NUMBER(now_ms), NUMBER(limit)), e);
}
