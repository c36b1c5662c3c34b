/*
 * Nodes: several servers with one database. docs/scale.md tells the operator; here is why it holds.
 *
 * A node is the writer of a server (postgres.c) with a name, a URL and `until`, the end of its
 * lease by the clock of the database. A tenant lives on one node: a row in retort_homes. What the
 * server keeps in memory about a tenant is on that node alone, and so it alone writes about it.
 *
 * Fencing. Each transaction that writes compares the fence in the row of its writer with the one
 * that its connection was given, and fails where they differ ("whether it was committed" in
 * postgres.c). Taking over from a node is one transaction that sets its fence to GONE, which no
 * connection is given, and deletes its homes. Both change the same row, so they come one after the
 * other: what the node has committed before is seen by whoever takes its tenants; what it tries to
 * commit later fails, however late it wakes up, and a new connection gets no fence. There is no
 * moment at which two nodes can write about one tenant.
 *
 * The lease only decides when a node may be taken over, never what may be written. A node renews it
 * in a transaction that changes that same row, and counts from the moment before it asked, so by
 * its own clock the lease ends earlier than by that of the database. When it is over the node
 * begins no code and answers nothing out of its memory (store_lease_holds()), because somebody else
 * may.
 *
 * A node that starts takes over from the one that had its URL, whose lease may not be over: that
 * process has ended, or else nobody could reach it any more.
 *
 * Nothing here waits for a lock that another node may hold: it would keep the store's thread from
 * renewing our own lease. The row of a node that was stopped between its last statement and COMMIT
 * is locked; ending its connection lets go of it, and the next look finds it free. Of two nodes
 * that want the same tenant at the same time one gets an advisory lock, and the other looks again.
 */
#include "store/postgres_int.h"

#include <stdlib.h>

#define GONE       "-1"
#define HOME_CLASS "1919251568" /* of advisory locks: the second number is a tenant's */
#define OVER                                                                                       \
    "id <> ?1 AND fence > " GONE " AND CASE WHEN ?3 = 1 THEN url = ?2 AND until IS NOT NULL"       \
    " ELSE until < clock_timestamp() END"
#define LEFT_MS "(extract(epoch FROM until - clock_timestamp()) * 1000)::bigint"

#define COLUMN(kind, row, field)                                                                   \
    {                                                                                              \
        COLUMN_##kind, offsetof(struct row, field), sizeof(((struct row *)0)->field)               \
    }

static const struct column node_columns[] = {
    COLUMN(FIXED, node_row, id),    COLUMN(TEXT, node_row, name), COLUMN(TEXT, node_row, url),
    COLUMN(INT, node_row, left_ms), COLUMN(INT, node_row, homes), COLUMN(TEXT, node_row, room),
    COLUMN(INT, node_row, lent),
};
static const struct row_type node_type = {node_columns, COUNT(node_columns),
                                          sizeof(struct node_row)};

struct home_row {
    char *text; /* owned: a node or a tenant */
};

static const struct column home_columns[] = {COLUMN(TEXT, home_row, text)};
static const struct row_type home_type = {home_columns, COUNT(home_columns),
                                          sizeof(struct home_row)};

void node_row_done(struct node_row *r)
{
    free(r->name);
    free(r->url);
    free(r->room);
    *r = (struct node_row){0};
}

/* --- leases --- */

int db_node_renew(struct db *db, const char *room, int64_t lent, struct err *e)
{
    struct postgres *pg = postgres_of(db);
    int rc =
        sql_run(db,
                "UPDATE retort_writers SET name = ?2, url = ?3,"
                " until = clock_timestamp() + ?4 * interval '1 millisecond', room = ?5, lent = ?6"
                " WHERE id = ?1 AND fence > " GONE,
                ARGS(TEXT(pg->writer), TEXT(pg->node_name), TEXT(pg->node_url),
                     NUMBER(pg->lease_ms), TEXT(room), NUMBER(lent)),
                e);

    pg->fenced |= rc == 0;
    return rc;
}

int db_node_bury(struct db *db, bool same_url, struct err *e)
{
    struct postgres *pg = postgres_of(db);
    const struct arg ours[] = {TEXT(pg->writer), TEXT(pg->node_url), NUMBER(same_url)};
    struct home_row *gone;
    size_t count = 0;
    int rc = 0;

    /* Mostly there is none, and then this is all. */
    gone = sql_all(db, "SELECT id FROM retort_writers WHERE " OVER, ours, COUNT(ours), &home_type,
                   &count, e);
    if (!gone)
        return -1;
    rows_free(&home_type, gone, count);
    if (count == 0)
        return 0;
    if (sql_run(db,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity, retort_writers"
                " WHERE application_name = 'retort ' || id AND " OVER,
                ours, COUNT(ours), e) < 0)
        return -1;
    rc = sql_run(db,
                 "UPDATE retort_writers SET fence = " GONE ", until = NULL WHERE id IN"
                 " (SELECT id FROM retort_writers WHERE " OVER " FOR UPDATE SKIP LOCKED)",
                 ours, COUNT(ours), e);
    if (rc <= 0)
        return rc;
    return sql_run(db,
                   "DELETE FROM retort_homes WHERE NOT EXISTS"
                   " (SELECT 1 FROM retort_writers WHERE id = node AND until IS NOT NULL)",
                   NULL, 0, e) < 0
               ? -1
               : rc;
}

int db_node_list(struct db *db, struct node_row **ret, size_t *ret_count, struct err *e)
{
    *ret = sql_all(db,
                   "SELECT id, name, url, " LEFT_MS ","
                   " (SELECT count(*) FROM retort_homes WHERE node = retort_writers.id),"
                   " room, coalesce(lent, 0)"
                   " FROM retort_writers WHERE until IS NOT NULL ORDER BY name, id",
                   NULL, 0, &node_type, ret_count, e);
    return *ret ? 0 : -1;
}

/* After everything else: with this fence nothing more can be written here. */
void postgres_leave(struct postgres *pg)
{
    struct err ignored;

    if (postgres_send(pg, "DELETE FROM retort_homes WHERE node = ?1", ARGS(TEXT(pg->writer)),
                      &ignored) == 0 &&
        postgres_send(pg, "UPDATE retort_writers SET until = NULL, fence = " GONE " WHERE id = ?1",
                      ARGS(TEXT(pg->writer)), &ignored) == 0)
        (void)!postgres_settle(pg, NULL, &ignored);
}

/* --- homes --- */

static int look_up(struct db *db, const char *tenant, char ret_node[ID_MAX], struct err *e)
{
    struct home_row found = {0};
    int rc = sql_one(db, "SELECT node FROM retort_homes WHERE tenant = ?1", ARGS(TEXT(tenant)),
                     &home_type, &found, e);

    if (rc == 1 && !str_to_cstr(str_of(found.text), ret_node, ID_MAX))
        rc = err_set(e, ERR_HOST, "the node of a tenant is no id");
    free(found.text);
    return rc;
}

int db_home_find(struct db *db, const char *tenant, bool takes, char ret_node[ID_MAX],
                 struct err *e)
{
    const char *writer = postgres_of(db)->writer;
    int rc = look_up(db, tenant, ret_node, e);

    if (rc != 0 || !takes)
        return rc;
    rc = sql_run(db,
                 "INSERT INTO retort_homes (tenant, node) SELECT ?1, ?2"
                 " WHERE pg_try_advisory_xact_lock(" HOME_CLASS ", hashtext(?1))"
                 " ON CONFLICT DO NOTHING",
                 ARGS(TEXT(tenant), TEXT(writer)), e);
    if (rc < 0)
        return -1;
    return look_up(db, tenant, ret_node, e);
}

int db_home_wanted(struct db *db, const char *kind, const char *parent, int64_t now_ms,
                   size_t limit, char ***ret, size_t *ret_count, struct err *e)
{
    static_assert(sizeof(struct home_row) == sizeof(char *), "an array of one is one of the other");
    *ret = sql_all(db,
                   "SELECT tenant FROM"
                   " (SELECT tenant FROM loops WHERE ended_ms = 0"
                   " UNION SELECT tenant FROM items WHERE kind = ?1 AND parent = ?2"
                   " UNION SELECT tenant FROM execs WHERE status IN ('queued', 'running')"
                   " UNION SELECT tenant FROM sessions WHERE expires_ms < ?3) AS wanted"
                   " WHERE tenant <> ''"
                   " AND tenant NOT IN (SELECT tenant FROM retort_homes) LIMIT ?4",
                   ARGS(TEXT(kind), TEXT(parent), NUMBER(now_ms), NUMBER(limit)), &home_type,
                   ret_count, e);
    return *ret ? 0 : -1;
}
