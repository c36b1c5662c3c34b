/* Keys. They are few, and every change of a key is on the disk before it counts. */
#include "store/sql_int.h"

#define COLUMNS                                                                                    \
    "id, tenant, name, hint, hash, admin, approver, created_ms, used_ms, revoked_ms, pools, "      \
    "doors, read_only, expires_ms"

int db_key_put(struct db *db, const struct key_row *r, struct err *e)
{
    db_must_sync(db);
    return sql_put(
        db, "INSERT INTO keys (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        &key_type, r, NULL, 0, e);
}

int db_key_list(struct db *db, struct key_row **ret, size_t *ret_count, struct err *e)
{
    *ret = sql_all(db, "SELECT " COLUMNS " FROM keys ORDER BY created_ms, id", NULL, 0, &key_type,
                   ret_count, e);
    return *ret ? 0 : -1;
}

int db_key_is_there(struct db *db, const uint8_t hash[32], struct err *e)
{
    struct str bytes = {(const char *)hash, 32};
    uint64_t count = 0;

    if (sql_one(db, "SELECT count(*) FROM keys WHERE hash = ?1", ARGS(BYTES(bytes)), &number_type,
                &count, e) < 0)
        return -1;
    return count > 0;
}

/* The first time counts. */
int db_key_revoke(struct db *db, const char *id, int64_t now_ms, struct err *e)
{
    db_must_sync(db);
    return sql_run(
        db,
        "UPDATE keys SET revoked_ms = CASE WHEN revoked_ms = 0 THEN ?2 ELSE revoked_ms END"
        " WHERE id = ?1",
        ARGS(TEXT(id), NUMBER(now_ms)), e);
}

int db_key_used(struct db *db, const char *id, int64_t now_ms, struct err *e)
{
    return sql_run(db, "UPDATE keys SET used_ms = ?2 WHERE id = ?1", ARGS(TEXT(id), NUMBER(now_ms)),
                   e);
}
