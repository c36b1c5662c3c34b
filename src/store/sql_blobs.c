/* Which blobs are named by rows. */
#include "store/sql_int.h"

int db_blob_named(struct db *db, const char *hash, struct err *e)
{
    static const struct row_type nothing = {0};

    return sql_one(db,
                   "SELECT 1 FROM space WHERE hash = ?1"
                   " UNION ALL SELECT 1 FROM files WHERE hash = ?1"
                   " UNION ALL SELECT 1 FROM sessions WHERE home = ?1 AND home <> ''"
                   " UNION ALL SELECT 1 FROM items WHERE hash = ?1 AND hash <> ''"
                   " UNION ALL SELECT 1 FROM execs WHERE events_hash = ?1 AND events_hash <> ''"
                   " LIMIT 1",
                   ARGS(TEXT(hash)), &nothing, NULL, e);
}
