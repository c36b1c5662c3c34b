/*
 * PostgreSQL: one connection, used by one thread at a time.
 *
 * A commit that was answered is on the disk of the database: synchronous_commit is
 * `local`, and `on`, which waits for synchronous standbys as well, for what must be
 * kept in any case (keys, approvals, pools, uploads) or for everything with
 * DURABLE_POWER. It is never `off`: the death of one process of PostgreSQL would then
 * take the last answers with it.
 *
 * A connection that is lost is made again, with pauses that grow. Whoever comes
 * meanwhile waits for WAIT_MS at most and is then told ERR_AWAY.
 *
 * Whether it was committed. When the connection is lost between a COMMIT and its answer,
 * the transaction may be kept, or not, or still be under way on the other side. To say
 * "failed" of one that is kept is a lie, and whoever tries again does it twice; to say
 * "kept" of one that is not loses it. So every transaction that writes also changes one
 * row, that of this writer in retort_writers: `number` becomes that of the transaction.
 * A new connection first takes `fence` of that row one further, which waits for a
 * transaction that is still under way, and reads the number. If it is that of the
 * transaction, this one is kept, and is answered as such. If not, it is not kept and
 * never will be: a COMMIT that arrives later comes behind a change of the row that names
 * the old fence and divides by zero. Only the transaction itself changes the number, so
 * a connection that is lost while it looks changes nothing of what the next one finds.
 * Only when there is no new connection within UNKNOWN_MS are the jobs told that it is
 * not known. What they then do not know is whether a record was kept; code that was to
 * run after it has not run, and its caller decides whether to ask again.
 */
#include "store/postgres_int.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNECT_MS   3000
#define EXEC_MS      5000 /* for a statement while connecting */
#define WAIT_MS      3000 /* what comes while it is away waits for this long */
#define UNKNOWN_MS   10000
#define PAUSE_MS     50 /* before the second try; twice as long before each further one */
#define PAUSE_MAX_MS 2000
#define LOCK_TRIES   100 /* every 50 ms: the process of a connection that was lost lets go of it */
#define OLDEST       120000

/* Advisory locks: ours, then which. */
#define LOCK_CLASS  "1919251567"
#define LOCK_SERVER LOCK_CLASS ", 2"

static const char mark[] =
    "INSERT INTO retort_writers (id, number, fence, at) VALUES (?1, ?2, ?3, now())"
    " ON CONFLICT (id) DO UPDATE SET at = now(), number = excluded.number /"
    " CASE WHEN retort_writers.fence = excluded.fence THEN 1 ELSE 0 END";

/* --- connecting --- */

static void hang_up(struct postgres *pg)
{
    if (pg->conn)
        PQfinish(take_ptr(&pg->conn));
    for (size_t i = 0; i < pg->cached; i++)
        pg->cache[i].there = false;
    pg->flying = pg->flying_bytes = 0;
}

static int dial(struct postgres *pg, struct err *e)
{
    int64_t until_us = time_mono_us() + CONNECT_MS * INT64_C(1000);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    pg->conn =
        PQconnectStartParams((const char *const *)pg->keywords, (const char *const *)pg->values, 0);
    while (pg->conn && PQstatus(pg->conn) != CONNECTION_BAD && status != PGRES_POLLING_OK) {
        struct pollfd p = {.fd = PQsocket(pg->conn),
                           .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int64_t left_us = until_us - time_mono_us();
        if (left_us <= 0)
            return postgres_away(e, "it does not answer");
        if (poll(&p, 1, (int)(left_us / 1000) + 1) > 0)
            status = PQconnectPoll(pg->conn);
        if (status == PGRES_POLLING_FAILED)
            break;
    }
    if (!pg->conn || PQstatus(pg->conn) != CONNECTION_OK)
        return postgres_away(e, pg->conn ? PQerrorMessage(pg->conn) : "no memory");
    if (PQserverVersion(pg->conn) < OLDEST)
        return err_set(e, ERR_SETUP, "the database is PostgreSQL %d; at least %d is needed",
                       PQserverVersion(pg->conn) / 10000, OLDEST / 10000);
    return 0;
}

/* Runs it and forgets what it says. */
static int exec(struct postgres *pg, const char *text, const char *const *args, int count,
                struct err *e)
{
    PGresult *r = postgres_exec(pg->conn, EXEC_MS, text, args, count, e);

    PQclear(r);
    return r ? 0 : -1;
}

static int set_up(struct postgres *pg, struct err *e)
{
    char text[512];

    /* A backend whose client is gone with its machine must not hold our locks for hours. */
    snprintf(text, sizeof(text),
             "SET synchronous_commit = %s; SET standard_conforming_strings = on;"
             " SET client_min_messages = warning; SET lock_timeout = '5s';"
             " SET idle_in_transaction_session_timeout = '60s';"
             " SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;"
             " SET tcp_keepalives_count = 3",
             pg->power ? "on" : "local");
    return exec(pg, text, NULL, 0, e);
}

/* What the connection before has left on the other side ends: it may not have noticed. */
static int end_other(struct postgres *pg, struct err *e)
{
    char backend[16];
    const char *args[] = {backend, pg->writer};

    if (!pg->backend)
        return 0;
    snprintf(backend, sizeof(backend), "%d", pg->backend);
    return exec(pg,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid = $1::int AND application_name = 'retort ' || $2",
                args, COUNT(args), e);
}

/* A server that finds another one's sessions takes them for those of a dead process. Nodes share
 * the lock, so that no such server comes beside them. */
static int lock_alone(struct postgres *pg, struct err *e)
{
    const char *ask = pg->shares ? "SELECT pg_try_advisory_lock_shared(" LOCK_SERVER ")"
                                 : "SELECT pg_try_advisory_lock(" LOCK_SERVER ")";

    for (int i = 0; pg->serves && i < LOCK_TRIES; i++) {
        PGresult *r = postgres_exec(pg->conn, EXEC_MS, ask, NULL, 0, e);
        bool got = r && strcmp(PQgetvalue(r, 0, 0), "t") == 0;
        PQclear(r);
        if (!r)
            return -1;
        if (got)
            return 0;
        usleep(50000);
    }
    return pg->serves ? err_set(e, ERR_AWAY, "another retort serves from this database") : 0;
}

/* "Whether it was committed", above. Sets the number that the row has, and the new fence. */
static int fence(struct postgres *pg, struct err *e)
{
    const char *args[] = {pg->writer};
    PGresult *r;

    if (exec(pg,
             "INSERT INTO retort_writers (id, number, fence, at) VALUES ($1, 0, 0, now())"
             " ON CONFLICT (id) DO NOTHING",
             args, COUNT(args), e) < 0)
        return -1;
    r = postgres_exec(pg->conn, EXEC_MS,
                      "UPDATE retort_writers SET fence = fence + 1, at = now() WHERE id = $1"
                      " AND fence >= 0 RETURNING number, fence",
                      args, COUNT(args), e);
    if (!r)
        return -1;
    pg->fenced |= PQntuples(r) == 0;
    if (pg->fenced) {
        PQclear(r);
        return err_set(e, ERR_AWAY, "another node has taken over from this one");
    }
    pg->number = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    pg->fence = strtoll(PQgetvalue(r, 0, 1), NULL, 10);
    PQclear(r);
    return 0;
}

/* Servers write now and then for as long as they run, so this is when the time was last known. */
static int begin_clock(struct postgres *pg, struct err *e)
{
    PGresult *r = postgres_exec(
        pg->conn, EXEC_MS,
        "SELECT (extract(epoch FROM max(at)) * 1000)::bigint FROM retort_writers", NULL, 0, e);

    if (!r)
        return -1;
    time_sure_begin(strtoll(PQgetvalue(r, 0, 0), NULL, 10));
    PQclear(r);
    return 0;
}

/* At a start: the schema, the clock, and rows of writers that nobody needs any more. */
static int prepare(struct postgres *pg, struct err *e)
{
    if (schema_to_this_version(&postgres_schema, pg->conn, e) < 0 || begin_clock(pg, e) < 0)
        return -1;
    return exec(pg, "DELETE FROM retort_writers WHERE at < now() - interval '30 days'", NULL, 0, e);
}

/* One try. */
static int connect_once(struct postgres *pg, bool first, struct err *e)
{
    hang_up(pg);
    if (dial(pg, e) < 0 || set_up(pg, e) < 0 || end_other(pg, e) < 0)
        return -1;
    pg->backend = PQbackendPID(pg->conn);
    if (first && prepare(pg, e) < 0)
        return -1;
    if (lock_alone(pg, e) < 0 || fence(pg, e) < 0)
        return -1;
    if (!PQenterPipelineMode(pg->conn))
        return postgres_away(e, PQerrorMessage(pg->conn));
    return 0;
}

static void note_away(struct postgres *pg, const struct err *e)
{
    int64_t now_us = time_mono_us();

    hang_up(pg);
    pg->why = *e;
    if (pg->why.kind != ERR_AWAY) /* of an operator: while that is so, nothing can be kept either */
        pg->why.kind = ERR_AWAY;
    pg->why.retry_s = 1;
    if (!pg->away_us) {
        log_warn("%s", e->text);
        pg->away_us = now_us;
        pg->pause_ms = 0;
    }
    pg->again_us = now_us + pg->pause_ms * 1000;
    pg->pause_ms = pg->pause_ms ? 2 * pg->pause_ms : PAUSE_MS;
    if (pg->pause_ms > PAUSE_MAX_MS)
        pg->pause_ms = PAUSE_MAX_MS;
}

/* Tries until then, at least once when it is time for a try. */
static int reconnect(struct postgres *pg, int64_t until_us, struct err *e)
{
    while (!pg->conn) {
        int64_t now_us = time_mono_us();
        if (pg->fenced)
            return *e = pg->why, -1;
        if (pg->again_us > now_us && pg->again_us > until_us)
            return *e = pg->why, -1;
        if (pg->again_us > now_us)
            usleep((useconds_t)(pg->again_us - now_us));
        if (connect_once(pg, false, e) == 0)
            break;
        note_away(pg, e);
    }
    if (pg->away_us)
        log_info("the database is there again");
    pg->away_us = 0;
    return 0;
}

/* Without a round trip: what the other side has said by itself, as it does when it ends. */
static bool is_there(struct postgres *pg)
{
    for (int i = 0; pg->conn && i < 4; i++) {
        struct pollfd p = {.fd = PQsocket(pg->conn), .events = POLLIN};
        if (poll(&p, 1, 0) <= 0)
            return true;
        if (!PQconsumeInput(pg->conn) || PQstatus(pg->conn) == CONNECTION_BAD)
            return false;
    }
    return pg->conn != NULL;
}

static int be_there(struct postgres *pg, struct err *e)
{
    if (is_there(pg))
        return 0;
    if (pg->conn) {
        postgres_away(e, PQerrorMessage(pg->conn));
        note_away(pg, e);
    }
    return reconnect(pg, pg->away_us + WAIT_MS * INT64_C(1000), e);
}

/* --- transactions --- */

static int send(struct postgres *pg, const char *text, struct err *e)
{
    return postgres_send(pg, text, NULL, 0, e);
}

/* After a failure: whether it was the connection's. */
static bool is_lost(struct postgres *pg)
{
    struct err e;

    if (pg->conn && PQstatus(pg->conn) == CONNECTION_OK && pg->broken.kind != ERR_AWAY)
        return false;
    if (pg->conn) {
        e = pg->broken;
        if (e.kind != ERR_AWAY)
            postgres_away(&e, PQerrorMessage(pg->conn));
        note_away(pg, &e);
    }
    return true;
}

static int begin(struct db *db, struct err *e)
{
    struct postgres *pg = postgres_of(db);

    pg->broken = (struct err){0};
    pg->wrote = pg->in_transaction = false;
    if (be_there(pg, e) < 0)
        return -1;
    pg->in_transaction = true;
    return send(pg, "BEGIN", e);
}

static void rollback(struct db *db)
{
    struct postgres *pg = postgres_of(db);
    struct err ignored;

    if (pg->in_transaction && !is_lost(pg)) {
        (void)!postgres_settle(pg, NULL, &ignored);
        pg->broken = (struct err){0};
        if (is_lost(pg) || send(pg, "ROLLBACK", &ignored) < 0 ||
            postgres_settle(pg, NULL, &ignored) < 0)
            (void)is_lost(pg);
    }
    pg->in_transaction = false;
    pg->broken = (struct err){0};
}

/* "Whether it was committed", above. */
static int find_out(struct postgres *pg, struct err *e)
{
    int64_t meant = pg->number + 1;

    pg->in_transaction = false;
    if (reconnect(pg, time_mono_us() + UNKNOWN_MS * INT64_C(1000), e) < 0)
        return err_wrap(e, "it is not known whether this was kept");
    if (pg->number == meant)
        return 1;
    err_set(e, ERR_AWAY, "the connection to the database was lost, and nothing of this was kept");
    e->retry_s = 1;
    return -1;
}

static int send_end(struct postgres *pg, struct err *e)
{
    if (!pg->wrote)
        return send(pg, "COMMIT", e);
    if (pg->db.syncs && !pg->power && send(pg, "SET LOCAL synchronous_commit = on", e) < 0)
        return -1;
    if (postgres_send(pg, mark, ARGS(TEXT(pg->writer), NUMBER(pg->number + 1), NUMBER(pg->fence)),
                      e) < 0)
        return -1;
    return send(pg, "COMMIT", e);
}

static int commit(struct db *db, struct err *e)
{
    struct postgres *pg = postgres_of(db);

    if (send_end(pg, e) == 0 && postgres_settle(pg, NULL, e) == 0) {
        pg->in_transaction = false;
        pg->number += pg->wrote;
        return pg->wrote;
    }
    if (!is_lost(pg))
        return -1;                          /* and rolled back by the caller */
    return pg->wrote ? find_out(pg, e) : 0; /* all that was read, was read */
}

static int savepoint(struct db *db, struct err *e)
{
    return send(postgres_of(db), "SAVEPOINT job", e);
}

static int undo_job(struct postgres *pg, struct err *e)
{
    struct err ignored;

    (void)!postgres_settle(pg, NULL, &ignored);
    if (is_lost(pg))
        return *e = pg->why, -1;
    pg->broken = (struct err){0};
    return send(pg, "ROLLBACK TO job", e) < 0 || send(pg, "RELEASE job", e) < 0 ||
                   postgres_settle(pg, NULL, e) < 0
               ? -1
               : 0;
}

/* The one wait of a job that only writes: its failure, if any, is known here. */
static int release(struct db *db, bool keep, struct err *failed, struct err *e)
{
    struct postgres *pg = postgres_of(db);

    if (keep && send(pg, "RELEASE job", failed) == 0 && postgres_settle(pg, NULL, failed) == 0)
        return 0;
    return undo_job(pg, e) < 0 ? -1 : keep;
}

/* --- the rest --- */

static int try_write(struct db *db, struct err *e)
{
    struct postgres *pg = postgres_of(db);

    if (!is_there(pg) && pg->conn) {
        postgres_away(e, PQerrorMessage(pg->conn));
        note_away(pg, e);
    }
    return reconnect(pg, 0, e);
}

/* For a while it may come back before anybody has noticed. */
static int look(struct db *db, struct err *e)
{
    struct postgres *pg = postgres_of(db);

    if (is_there(pg) || try_write(db, e) == 0)
        return 0;
    return time_mono_us() - pg->away_us < WAIT_MS * INT64_C(1000) ? 0 : -1;
}

static int sync_nothing(struct db *db, struct err *e)
{
    (void)db;
    (void)e;
    return 0;
}

static size_t tidy(struct db *db)
{
    (void)db;
    return 0;
}

static bool is_untidy(struct db *db, bool very)
{
    (void)db;
    (void)very;
    return false;
}

/* The row of a server stays for a month, for begin_clock(); that of a command goes with it. */
static void close_postgres(struct db *db)
{
    struct postgres *pg = postgres_of(db);
    struct err ignored;
    bool can_write = pg->conn && PQpipelineStatus(pg->conn) != PQ_PIPELINE_OFF && is_there(pg);

    if (pg->shares && can_write)
        postgres_leave(pg);
    if (!pg->serves && can_write &&
        postgres_send(pg, "DELETE FROM retort_writers WHERE id = ?1", ARGS(TEXT(pg->writer)),
                      &ignored) == 0)
        (void)!postgres_settle(pg, NULL, &ignored);
    hang_up(pg);
    for (size_t i = 0; i < pg->cached; i++)
        free(pg->cache[i].text);
    postgres_params_free(pg->keywords);
    postgres_params_free(pg->values);
    free(pg->node_name);
    free(pg->node_url);
    free(pg);
}

static const struct db_ops frame = {
    .begin = begin,
    .commit = commit,
    .try_write = try_write,
    .sync = sync_nothing,
    .rollback = rollback,
    .savepoint = savepoint,
    .release = release,
    .look = look,
    .is_untidy = is_untidy,
    .tidy = tidy,
    .close = close_postgres,
    .commits_to_disk = true,
};

static void add_param(struct postgres *pg, const char *keyword, const char *value)
{
    size_t n = 0;

    while (pg->keywords[n])
        n++;
    pg->keywords = mem_realloc(pg->keywords, (n + 2) * sizeof(*pg->keywords));
    pg->values = mem_realloc(pg->values, (n + 2) * sizeof(*pg->values));
    pg->keywords[n] = mem_strdup(keyword);
    pg->values[n] = mem_strdup(value);
    pg->keywords[n + 1] = pg->values[n + 1] = NULL;
}

const char *postgres_writer(const struct db *db)
{
    return ((const struct postgres *)db)->writer;
}

bool postgres_is_fenced(const struct db *db)
{
    return ((const struct postgres *)db)->fenced;
}

static void take_node(struct postgres *pg, const struct node_config *node)
{
    pg->shares = true;
    pg->node_name = mem_strdup(node->name);
    pg->node_url = mem_strdup(node->url);
    pg->lease_ms = node->lease_ms;
}

struct db *postgres_open(const struct store_config *config, bool serves, struct err *e)
{
    struct postgres *pg = mem_zalloc(sizeof(*pg));
    char name[64];

    pg->db.ops = &frame;
    pg->db.sql = &postgres_sql;
    pg->serves = serves;
    pg->power = config->durability == DURABLE_POWER;
    if (config->node && serves)
        take_node(pg, config->node);
    id_make(pg->writer, "writer_");
    snprintf(name, sizeof(name), "retort %s", pg->writer);
    if (postgres_params(config->url, config->password, &pg->keywords, &pg->values, e) == 0) {
        add_param(pg, "application_name", name);
        if (connect_once(pg, true, e) == 0)
            return &pg->db;
    }
    close_postgres(&pg->db);
    return NULL;
}
