/* Items: what a door keeps of its own, as JSON, some of them with bytes. */
#include "store/sql_int.h"

#define COLUMNS                                                                                    \
    "id, tenant, kind, owner, parent, hash, size, created_ms, updated_ms, expires_ms, body, pools"
#define SELECT "SELECT " COLUMNS " FROM items WHERE "
/* How wide an owner's view is stands in ?8: 0 anybody's, 1 their own, 2 nobody's, too. */
#define WANTED                                                                                     \
    "(?8 = 0 OR owner = ?9 OR (?8 = 2 AND owner = ''))"                                            \
    " AND (?10 IS NULL OR parent = ?10) AND (?11 IS NULL OR pools = ?11)"

int db_item_put(struct db *db, const struct item_row *item, struct err *e)
{
    struct item_row row = *item;
    const struct item_row *r = &row;

    if (!*row.hash)
        row.size = strlen(row.body);
    db->must_sync |= *r->hash != '\0'; /* an upload */
    if (names_blob(db, r->hash, e) < 0)
        return -1;
    return sql_put(db,
                   "INSERT INTO items (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (tenant, kind, id) DO UPDATE SET parent = excluded.parent,"
                   " hash = excluded.hash, size = excluded.size,"
                   " updated_ms = excluded.updated_ms, expires_ms = excluded.expires_ms,"
                   " body = excluded.body",
                   &item_type, r, NULL, 0, e);
}

int db_item_get(struct db *db, const char *tenant, const char *kind, const char *id,
                struct item_row *ret, struct err *e)
{
    return sql_one(db, SELECT "tenant = ?1 AND kind = ?2 AND id = ?3",
                   ARGS(TEXT(tenant), TEXT(kind), TEXT(id)), &item_type, ret, e);
}

int db_item_list(struct db *db, const struct item_filter *f, struct item_row **ret,
                 size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;
    void *rows = f->page.progress ? *ret : NULL;

    *ret = NULL;
    assert(!f->page.after || f->page.after_ms);
    if (span_go_on(db, &s, NULL, f->tenant, f->page, e) < 0)
        return -1;
    int rc =
        sql_page(db,
                 "SELECT " COLUMNS LOOK_AT(WANTED) " FROM items WHERE " IN_SPAN
                                                   " AND tenant = ?6 AND kind = ?7" NEWEST_FIRST,
                 s,
                 ARGS(TEXT(f->tenant), TEXT(f->kind), NUMBER(f->view), TEXT(f->owner),
                      TEXT(f->parent), TEXT(f->page.pools)),
                 &item_type, f->page, f->count, &rows, ret_count, e);
    *ret = rows;
    return rc;
}

int db_item_count(struct db *db, const char *tenant, const char *kind, uint64_t *ret, struct err *e)
{
    return sql_one(db, "SELECT count(*) FROM items WHERE tenant = ?1 AND kind = ?2",
                   ARGS(TEXT(tenant), TEXT(kind)), &number_type, ret, e) < 0
               ? -1
               : 0;
}

int db_item_bytes(struct db *db, const char *tenant, uint64_t *ret, struct err *e)
{
    *ret = 0;
    return sql_one(db, "SELECT bytes FROM item_bytes WHERE tenant = ?1", ARGS(TEXT(tenant)),
                   &number_type, ret, e) < 0
               ? -1
               : 0;
}

int db_item_everybodys(struct db *db, const char *tenant, const char *kind, const char *parent,
                       size_t limit, struct item_row **ret, size_t *ret_count, struct err *e)
{
    *ret = sql_all(
        db,
        SELECT "kind = ?1 AND parent = ?2 AND " OF_TENANT("?4") " ORDER BY created_ms, id LIMIT ?3",
        ARGS(TEXT(kind), TEXT(parent), NUMBER(limit), TEXT(tenant)), &item_type, ret_count, e);
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
    return sql_run(
        db,
        "DELETE FROM items WHERE (tenant, kind, id) IN (SELECT tenant, kind, id FROM items"
        " WHERE expires_ms > 0 AND expires_ms < ?1 ORDER BY expires_ms LIMIT ?2)",
        ARGS(NUMBER(now_ms), NUMBER(limit)), e);
}
