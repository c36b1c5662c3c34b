/*
 * The schema, as the steps that made it. The version of a database is how many it
 * has taken. A step that has landed is never changed, and none is put before it:
 * tests/serve/stores has a store of every schema that ever was.
 */
#include "store/sql_int.h"

#include <inttypes.h>

/* Each index serves a lookup; the sweep of blobs has those on hashes. The two partial ones are
 * small: few executions run at a time, and few have their events in a blob. */
static const char first[] =
    "CREATE TABLE keys ("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, hint TEXT NOT NULL,"
    "  hash BLOB NOT NULL UNIQUE, admin INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    "  used_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX keys_by_age ON keys (created_ms, id);"

    "CREATE TABLE sessions ("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, pool TEXT NOT NULL, name TEXT, metadata TEXT,"
    "  env TEXT, state INTEGER NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL,"
    "  idle_ms INTEGER NOT NULL, lifetime_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    "  executions INTEGER NOT NULL, lost INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX sessions_named ON sessions (tenant, pool, name) WHERE name IS NOT NULL;"
    "CREATE INDEX sessions_by_age ON sessions (tenant, created_ms, id);"
    "CREATE INDEX sessions_by_end ON sessions (expires_ms);"

    "CREATE TABLE space ("
    "  session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, path BLOB NOT NULL,"
    "  hash TEXT NOT NULL, size INTEGER NOT NULL, mode INTEGER NOT NULL,"
    "  mtime_ms INTEGER NOT NULL, PRIMARY KEY (session, path)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX space_by_hash ON space (hash);"

    "CREATE TABLE execs ("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, session TEXT NOT NULL, pool TEXT NOT NULL,"
    "  key TEXT, request TEXT NOT NULL, door TEXT NOT NULL, kind TEXT NOT NULL,"
    "  status TEXT NOT NULL, created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER NOT NULL, events_hash TEXT NOT NULL, outcome TEXT, code TEXT NOT NULL,"
    "  events TEXT"
    ") STRICT;"
    "CREATE INDEX execs_by_age ON execs (created_ms, id);"
    "CREATE INDEX execs_by_tenant ON execs (tenant, created_ms, id);"
    "CREATE INDEX execs_by_session ON execs (session, created_ms, id);"
    "CREATE INDEX execs_open ON execs (id) WHERE status IN ('queued', 'running');"
    "CREATE INDEX execs_by_hash ON execs (events_hash) WHERE events_hash <> '';"

    "CREATE TABLE files ("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL,"
    "  hash TEXT NOT NULL, size INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    "  expires_ms INTEGER NOT NULL, downloadable INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX files_by_age ON files (tenant, created_ms, id);"
    "CREATE INDEX files_by_end ON files (expires_ms) WHERE expires_ms > 0;"
    "CREATE INDEX files_by_hash ON files (hash);";

/* Approvals. The partial indices hold what is open, or lasts: few of all. */
static const char second_common[] =
    "ALTER TABLE keys ADD COLUMN approver INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE execs ADD COLUMN approval TEXT;"

    "CREATE TABLE approvals ("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, key TEXT NOT NULL, pool TEXT NOT NULL,"
    "  session TEXT NOT NULL, conversation TEXT NOT NULL, tool TEXT NOT NULL, door TEXT NOT NULL,"
    "  request TEXT NOT NULL, digest BLOB NOT NULL, lasting INTEGER NOT NULL,"
    "  state INTEGER NOT NULL, decided_by TEXT, decided_how TEXT, reason TEXT, execution TEXT,"
    "  created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, decided_ms INTEGER NOT NULL,"
    "  taken_ms INTEGER NOT NULL, text_chars INTEGER NOT NULL, text TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX approvals_by_age ON approvals (created_ms, id);"
    "CREATE INDEX approvals_by_tenant ON approvals (tenant, created_ms, id);"
    "CREATE INDEX approvals_by_state ON approvals (tenant, state, created_ms, id);"
    "CREATE INDEX approvals_open ON approvals (digest, created_ms) WHERE taken_ms = 0;"
    "CREATE INDEX approvals_by_end ON approvals (expires_ms) WHERE state < 2 AND taken_ms = 0;"
    "CREATE INDEX approvals_pending ON approvals (tenant, expires_ms) WHERE state = 0;";
static const char second[] =
    "CREATE INDEX approvals_of_session ON approvals (session) WHERE state = 1 AND lasting;"
    "CREATE INDEX approvals_of_talk ON approvals (conversation) WHERE state = 1 AND lasting;";

/* Pools made while a server ran. */
static const char third[] =
    "CREATE TABLE pools ("
    "  name TEXT PRIMARY KEY, settings TEXT NOT NULL, document TEXT, created_ms INTEGER NOT NULL,"
    "  updated_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE pool_keys ("
    "  pool TEXT NOT NULL, tenant TEXT NOT NULL, key TEXT NOT NULL, secret TEXT NOT NULL,"
    "  PRIMARY KEY (pool, tenant)"
    ") STRICT, WITHOUT ROWID;";

/* What agents do about requests in plain words. */
static const char fourth[] =
    "CREATE TABLE loops ("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, owner TEXT NOT NULL, status TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, record TEXT NOT NULL,"
    "  events TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX loops_by_tenant ON loops (tenant, created_ms, id);"
    "CREATE INDEX loops_by_owner ON loops (tenant, owner, created_ms, id);"
    "CREATE INDEX loops_by_end ON loops (ended_ms);";

/* What doors keep of their own. */
static const char items[] =
    "CREATE TABLE items ("
    "  id TEXT NOT NULL, tenant TEXT NOT NULL, kind TEXT NOT NULL, owner TEXT NOT NULL,"
    "  parent TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    "  body TEXT NOT NULL, PRIMARY KEY (tenant, kind, id)"
    ") STRICT;"
    "CREATE INDEX items_by_age ON items (tenant, kind, created_ms, id);"
    "CREATE INDEX items_by_end ON items (expires_ms) WHERE expires_ms > 0;"
    "CREATE INDEX items_by_hash ON items (hash) WHERE hash <> '';";

/* What keys are limited to. The keys that were handed out with a pool open its MCP server alone. */
static const char scopes[] = "ALTER TABLE keys ADD COLUMN pools TEXT;"
                             "ALTER TABLE keys ADD COLUMN doors TEXT;"
                             "ALTER TABLE keys ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0;"
                             "ALTER TABLE keys ADD COLUMN expires_ms INTEGER NOT NULL DEFAULT 0;"
                             "UPDATE keys SET doors = 'azure/mcp',"
                             "  pools = (SELECT pool FROM pool_keys WHERE pool_keys.key = keys.id)"
                             "  WHERE id IN (SELECT key FROM pool_keys);"
                             "ALTER TABLE files ADD COLUMN pools TEXT;"
                             "ALTER TABLE items ADD COLUMN pools TEXT;"
                             "ALTER TABLE loops ADD COLUMN pool TEXT;";

/* What a session keeps while it sleeps besides the files of its workspace. */
static const char homes[] = "ALTER TABLE sessions ADD COLUMN home TEXT NOT NULL DEFAULT '';"
                            "CREATE INDEX sessions_by_home ON sessions (home) WHERE home <> '';";

/* What executions have said that still run. */
static const char output[] = "CREATE TABLE exec_output ("
                             "  exec TEXT NOT NULL, number INTEGER NOT NULL, events TEXT NOT NULL,"
                             "  PRIMARY KEY (exec, number)"
                             ") STRICT, WITHOUT ROWID;";

/* What the items of a tenant hold, so that nobody has to add it up. */
static const char held_common[] =
    "CREATE TABLE item_bytes (tenant TEXT PRIMARY KEY, bytes INTEGER NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "INSERT INTO item_bytes SELECT tenant, SUM(size) FROM items GROUP BY tenant;";
static const char held[] =
    "CREATE TRIGGER items_come AFTER INSERT ON items BEGIN"
    " INSERT INTO item_bytes VALUES (new.tenant, new.size)"
    "  ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes; END;"
    "CREATE TRIGGER items_change AFTER UPDATE OF size ON items BEGIN"
    " UPDATE item_bytes SET bytes = bytes + new.size - old.size WHERE tenant = new.tenant; END;"
    "CREATE TRIGGER items_go AFTER DELETE ON items BEGIN"
    " UPDATE item_bytes SET bytes = bytes - old.size WHERE tenant = old.tenant; END;";

static const char held_postgres[] =
    "CREATE FUNCTION items_count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    "  IF TG_OP = 'INSERT' THEN"
    "   INSERT INTO item_bytes AS b VALUES (new.tenant, new.size)"
    "    ON CONFLICT (tenant) DO UPDATE SET bytes = b.bytes + excluded.bytes;"
    "  ELSIF TG_OP = 'UPDATE' THEN"
    "   UPDATE item_bytes SET bytes = bytes + new.size - old.size WHERE tenant = new.tenant;"
    "  ELSE"
    "   UPDATE item_bytes SET bytes = bytes - old.size WHERE tenant = old.tenant;"
    "  END IF; RETURN NULL; END $$;"
    "CREATE TRIGGER items_come AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION items_count();"
    "CREATE TRIGGER items_change AFTER UPDATE OF size ON items FOR EACH ROW"
    " EXECUTE FUNCTION items_count();"
    "CREATE TRIGGER items_go AFTER DELETE ON items FOR EACH ROW EXECUTE FUNCTION items_count();";

/* A number is no truth value for every engine, and an index serves a lookup in its own words. */
static const char lasting[] =
    "DROP INDEX IF EXISTS approvals_of_session;"
    "DROP INDEX IF EXISTS approvals_of_talk;"
    "CREATE INDEX approvals_of_session ON approvals (session) WHERE state = 1 AND lasting = 1;"
    "CREATE INDEX approvals_of_talk ON approvals (conversation) WHERE state = 1 AND lasting = 1;";

/* For a while two kinds of version 4 were made: one with the loops, one with the items. A database
 * that has the items already takes the loops as its fifth step. */
static const struct schema_step steps[] = {
    {first            },
    {second_common,     .sqlite = second},
    {third                },
    {fourth},
    {items,                 .table = "items", .instead = fourth},
    {scopes},
    {homes                },
    {output                                },
    {held_common, .sqlite = held, .postgres = held_postgres},
    {lasting},
};

/* Inside a transaction, so that of two processes that open an old database one takes the step. */
static int take_step(const struct schema_ops *ops, void *conn, const struct schema_step *all,
                     size_t count, struct err *e)
{
    const struct schema_step *step;
    int64_t now = 0;
    int there = 0;

    if (ops->version(conn, &now, e) < 0)
        return -1;
    if (now < 0 || (size_t)now > count)
        return err_set(e, ERR_HOST,
                       "the database is of a newer version of retort (schema %" PRId64
                       "; this one knows up to %zu)",
                       now, count);
    if ((size_t)now == count)
        return 0;
    step = &all[now];
    if (step->table)
        there = ops->has_table(conn, step->table, e);
    if (there < 0)
        return -1;
    if (ops->step(conn, step, there ? step->instead : step->text, e) < 0 ||
        ops->set_version(conn, now + 1, e) < 0)
        return err_wrap(e, "bring the schema from version %" PRId64 " to %" PRId64, now, now + 1);
    return 1;
}

int schema_migrate(const struct schema_ops *ops, void *conn, const struct schema_step *all,
                   size_t count, struct err *e)
{
    int rc = 1;

    while (rc == 1) {
        if (ops->begin(conn, e) < 0)
            return -1;
        rc = take_step(ops, conn, all, count, e);
        if (rc >= 0 && ops->commit(conn, e) < 0)
            rc = -1;
        if (rc < 0)
            ops->rollback(conn);
    }
    return rc;
}

int schema_to_this_version(const struct schema_ops *ops, void *conn, struct err *e)
{
    return schema_migrate(ops, conn, steps, COUNT(steps), e);
}

size_t schema_last(void)
{
    return COUNT(steps);
}
