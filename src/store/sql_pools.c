/* Pools made while a server ran, and their keys. They are few, and on the disk before they count.
 */
#include "store/sql_int.h"

#define COLUMNS     "name, settings, document, created_ms, updated_ms"
#define KEY_COLUMNS "pool, tenant, key, secret"

int db_pool_put(struct db *db, const struct pool_row *r, struct err *e)
{
    db_must_sync(db);
    return sql_put(db,
                   "INSERT INTO pools (" COLUMNS ") VALUES (?, ?, ?, ?, ?)"
                   " ON CONFLICT (name) DO UPDATE SET settings = excluded.settings,"
                   " document = excluded.document, updated_ms = excluded.updated_ms",
                   &pool_type, r, NULL, 0, e);
}

int db_pool_list(struct db *db, struct pool_row **ret, size_t *ret_count, struct err *e)
{
    *ret = sql_all(db, "SELECT " COLUMNS " FROM pools ORDER BY created_ms, name", NULL, 0,
                   &pool_type, ret_count, e);
    return *ret ? 0 : -1;
}

int db_pool_delete(struct db *db, const char *name, struct err *e)
{
    db_must_sync(db);
    if (sql_run(db, "DELETE FROM pool_keys WHERE pool = ?1", ARGS(TEXT(name)), e) < 0)
        return -1;
    return sql_run(db, "DELETE FROM pools WHERE name = ?1", ARGS(TEXT(name)), e);
}

int db_pool_key_put(struct db *db, const struct pool_key_row *r, struct err *e)
{
    db_must_sync(db);
    return sql_put(db,
                   "INSERT INTO pool_keys (" KEY_COLUMNS ") VALUES (?, ?, ?, ?)"
                   " ON CONFLICT (pool, tenant) DO UPDATE SET key = excluded.key,"
                   " secret = excluded.secret",
                   &pool_key_type, r, NULL, 0, e);
}

int db_pool_key_get(struct db *db, const char *pool, const char *tenant, struct pool_key_row *ret,
                    struct err *e)
{
    return sql_one(db, "SELECT " KEY_COLUMNS " FROM pool_keys WHERE pool = ?1 AND tenant = ?2",
                   ARGS(TEXT(pool), TEXT(tenant)), &pool_key_type, ret, e);
}
