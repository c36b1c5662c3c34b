/*
 * What doctor asks of a database and of a bucket: whether they are there, what they are, and
 * whether a server may do with them what it has to. Nothing of a server's is read or changed; in a
 * bucket an object of the probe's own is written and removed.
 */
#include "store/postgres_int.h"
#include "store/s3_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WITHIN_MS   5000
#define PINGS       15
#define OLDEST      120000
#define CLOCK_WEAK  5000   /* ms: leases and expiries of several nodes */
#define CLOCK_S3    240000 /* S3 refuses a request that is older than 15 minutes, some 5 */
#define PROBE_KEY   "retort.doctor"
#define PROBE_BYTES "retort doctor was here\n"

struct prober {
    store_finding_fn *fn;
    void *arg;
};

static void tell(const struct prober *p, const char *name, enum store_state state,
                 const char *remedy, const char *fmt, ...) PRINTF(5, 6);
static void tell(const struct prober *p, const char *name, enum store_state state,
                 const char *remedy, const char *fmt, ...)
{
    struct store_finding f = {.name = name, .state = state, .remedy = remedy};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f.detail, sizeof(f.detail), fmt, ap);
    va_end(ap);
    p->fn(p->arg, &f);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double median_ms(int64_t *us, size_t n)
{
    size_t middle = n / 2;

    qsort(us, n, sizeof(*us), by_time);
    return (double)us[middle] / 1000;
}

static void tell_clock(const struct prober *p, const char *name, double ahead_s, int64_t weak_ms,
                       bool needed)
{
    bool far = fabs(ahead_s) * 1000 > (double)weak_ms;

    tell(p, name,
         !far     ? STORE_GOOD
         : needed ? STORE_BAD
                  : STORE_WEAK,
         "Keep the clocks of both machines by NTP.", "%.1f s %s this machine's", fabs(ahead_s),
         ahead_s < 0 ? "behind" : "ahead of");
}

/* --- the database --- */

/* The first value of the first row, owned; NULL: it failed. */
static char *ask(PGconn *conn, const char *text, struct err *e)
{
    PGresult *r = postgres_exec(conn, WITHIN_MS, text, NULL, 0, e);
    char *ret = r ? mem_strdup(PQntuples(r) ? PQgetvalue(r, 0, 0) : "") : NULL;

    PQclear(r);
    return ret;
}

/* A question whose answer is a row: good when `want` says so. */
static const struct database_question {
    const char *name, *text;
    const char *want; /* NULL: whatever it is */
    enum store_state otherwise;
    const char *good, *bad, *remedy;
} questions[] = {
    {"database: role",     "SELECT pg_is_in_recovery()",                                      "f",    STORE_BAD, "it takes what is written",
     "it is a standby, which takes nothing",                                                                                                                                                                               "Name the primary, or several hosts with target_session_attrs=read-write."   },
    {"database: disk",
     "SELECT current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'", "t",
     STORE_WEAK,                                                                                                 "a commit is on it",
     "fsync or full_page_writes is off: a power cut takes the database along",                                                                                                                                             "Set both to on in postgresql.conf."                                         },
    {"database: encoding", "SELECT current_setting('server_encoding')",                       "UTF8", STORE_BAD, "UTF8",
     "it is not in UTF8",                                                                                                                                                                                                  "Make the database with ENCODING UTF8."                                      },
    {"database: rights",
     "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE, USAGE')"
     " AND (SELECT coalesce(bool_and(has_table_privilege(oid, 'SELECT') AND "
     "has_table_privilege(oid, 'INSERT')"
     "  AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')"
     "  AND pg_has_role(relowner, 'USAGE')), true)"
     "  FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace), "
     "false)",                                                                                "t",    STORE_BAD, "it may make tables, and read and write those that are there",
     "the user may not make tables, or does not own those that are there",                                                                                                                                                 "Make the user the owner of the database: ALTER DATABASE NAME OWNER TO USER."},
    {"database: room",
     "SELECT count(*) < current_setting('max_connections')::int - 5 FROM pg_stat_activity",   "t",
     STORE_WEAK,                                                                                                 "there are connections to spare",                              "nearly all of its connections are taken",
     "Raise max_connections; a server needs one, and each command one."                                                                                                                                                                                                                                 },
};

static void ask_all(const struct prober *p, PGconn *conn)
{
    for (size_t i = 0; i < COUNT(questions); i++) {
        const struct database_question *q = &questions[i];
        struct err e;
        AUTO_FREE char *got = ask(conn, q->text, &e);
        bool good = got && strcmp(got, q->want) == 0;
        tell(p, q->name, good ? STORE_GOOD : q->otherwise, q->remedy, "%s",
             !got   ? e.text
             : good ? q->good
                    : q->bad);
    }
}

static void tell_schema(const struct prober *p, PGconn *conn)
{
    struct err e;
    AUTO_FREE char *there = ask(conn, "SELECT to_regclass('retort_schema') IS NOT NULL", &e);
    AUTO_FREE char *half = ask(conn, "SELECT to_regclass('retort_copy') IS NOT NULL", &e);
    AUTO_FREE char *version =
        there && *there == 't' ? ask(conn, "SELECT version FROM retort_schema", &e) : NULL;
    int64_t n = version ? strtoll(version, NULL, 10) : 0;

    if (!there || !half || (*there == 't' && !version))
        tell(p, "database: tables", STORE_BAD, NULL, "%s", e.text);
    else if (*half == 't')
        tell(p, "database: tables", STORE_BAD, "Go on with the same retort store copy.",
             "a copy into it has begun and not ended");
    else if (!version)
        tell(p, "database: tables", STORE_GOOD, NULL, "none yet; a server makes them");
    else if (n > (int64_t)schema_last())
        tell(p, "database: tables", STORE_BAD, "Use that version, or another database.",
             "of a newer version of retort: schema %" PRId64 ", and this one knows up to %zu", n,
             schema_last());
    else
        tell(p, "database: tables", STORE_GOOD, NULL, "schema %" PRId64 "%s", n,
             n < (int64_t)schema_last() ? ", which a server brings up to date" : "");
}

static void tell_tls(const struct prober *p, PGconn *conn)
{
    const char *host = PQhost(conn);
    bool near = !host || postgres_host_is_near(host);
    const char *mode = NULL;
    PQconninfoOption *all = PQconninfo(conn);

    for (PQconninfoOption *o = all; o && o->keyword; o++)
        if (strcmp(o->keyword, "sslmode") == 0)
            mode = o->val;
    bool checked = mode && strcmp(mode, "verify-full") == 0;
    if (PQsslInUse(conn))
        tell(p, "database: TLS", checked || near ? STORE_GOOD : STORE_WEAK,
             "Say sslmode=verify-full.", "%s, %s; its certificate is %s",
             PQsslAttribute(conn, "protocol"), PQsslAttribute(conn, "cipher"),
             checked ? "checked" : "not checked in full");
    else
        tell(p, "database: TLS", near ? STORE_GOOD : STORE_BAD, "Say sslmode=verify-full.",
             near ? "none, on this machine" : "none: everybody on the way can read along");
    PQconninfoFree(all);
}

static void tell_times(const struct prober *p, PGconn *conn)
{
    int64_t us[PINGS];
    struct err e;

    for (size_t i = 0; i < PINGS; i++) {
        int64_t from = time_mono_us();
        AUTO_FREE char *one = ask(conn, "SELECT 1", &e);
        us[i] = time_mono_us() - from;
        if (!one)
            return tell(p, "database: latency", STORE_BAD, NULL, "%s", e.text);
    }
    double ms = median_ms(us, PINGS);
    tell(p, "database: latency", ms > 20 ? STORE_WEAK : STORE_GOOD,
         "Put both into one data centre: a cell waits for four of them.",
         "%.2f ms, the median of %d", ms, PINGS);
    AUTO_FREE char *now = ask(conn, "SELECT extract(epoch FROM clock_timestamp())", &e);
    if (now)
        tell_clock(p, "database: clock",
                   strtod(now, NULL) - (double)time_now_ms() / 1000 + ms / 2000, CLOCK_WEAK, false);
}

void store_probe_rows(const char *url, const char *password, store_finding_fn *fn, void *arg)
{
    const struct prober p = {fn, arg};
    char **keywords = NULL, **values = NULL;
    int64_t from = time_mono_us();
    PGconn *conn = NULL;
    struct err e = {0};
    int version;

    if (postgres_params(url, password, &keywords, &values, &e) == 0)
        conn = PQconnectdbParams((const char *const *)keywords, (const char *const *)values, 0);
    postgres_params_free(keywords);
    postgres_params_free(values);
    if (conn && PQstatus(conn) != CONNECTION_OK)
        postgres_away(&e, PQerrorMessage(conn));
    if (e.kind || !conn) {
        tell(&p, "database", STORE_BAD,
             "Check the address, the user and the password, and that the database lets this "
             "machine in (pg_hba.conf).",
             "%s", e.text);
        PQfinish(conn);
        return;
    }
    version = PQserverVersion(conn);
    tell(&p, "database", version < OLDEST ? STORE_BAD : STORE_GOOD, "PostgreSQL 12 is the oldest.",
         "PostgreSQL %d.%d, as user %s of %s, connected in %.0f ms", version / 10000,
         version % 10000, PQuser(conn), PQdb(conn), (double)(time_mono_us() - from) / 1000);
    tell_tls(&p, conn);
    ask_all(&p, conn);
    tell_schema(&p, conn);
    tell_times(&p, conn);
    PQfinish(conn);
}

/* --- the bucket --- */

/* Each of them a right of the key. */
static const struct bucket_step {
    const char *name, *right;
    const char *method, *key, *query, *text;
} bucket_steps[] = {
    {"bucket: to write",  "s3:PutObject",                  "PUT",    PROBE_KEY, NULL,                     PROBE_BYTES},
    {"bucket: to read",   "s3:GetObject",                  "GET",    PROBE_KEY, NULL,                     NULL       },
    {"bucket: to list",   "s3:ListBucket",                 "GET",    NULL,      "list-type=2&max-keys=1", NULL       },
    {"bucket: uploads",   "s3:ListBucketMultipartUploads", "GET",    NULL,      "uploads=",               NULL       },
    {"bucket: to remove", "s3:DeleteObject",               "DELETE", PROBE_KEY, NULL,                     NULL       },
};

/* 0, or -1 when nothing more can be expected. */
static int take_step(const struct prober *p, struct s3 *s3, const struct bucket_step *b)
{
    const struct s3_request q = {.method = b->method,
                                 .key = b->key,
                                 .query = b->query,
                                 .text = str_of(b->text),
                                 .once = true,
                                 .probe = true};
    struct s3_answer a;
    struct err e = {0};
    int64_t from = time_mono_us();
    int rc = s3_call(s3, &q, &a, &e);
    double ms = (double)(time_mono_us() - from) / 1000;
    char remedy[128];

    snprintf(remedy, sizeof(remedy), "Let the key do %s there.", b->right);
    if (rc == 0 && a.status / 100 != 2)
        rc = err_set(&e, ERR_HOST, "it answers %d", a.status);
    if (rc == 0 && strcmp(b->name, "bucket: to read") == 0 &&
        !str_is(buf_str(&a.text), PROBE_BYTES))
        rc = err_set(&e, ERR_HOST, "it answers with other bytes than were written");
    tell(p, b->name, rc < 0 ? STORE_BAD : STORE_GOOD, remedy, "%s, in %.1f ms",
         rc < 0 ? e.text : b->right, ms);
    s3_answer_done(&a);
    return a.status ? 0 : -1;
}

static bool is_plain_far(const struct s3_config *c)
{
    const char *host = strstr(c->endpoint, "://") + 3;
    char name[256];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":/"), host);
    return strncmp(c->endpoint, "http://", 7) == 0 && !postgres_host_is_near(name);
}

static int reach_bucket(const struct prober *p, struct s3 *s3, const struct s3_config *c)
{
    const struct s3_request q = {
        .method = "GET", .query = "list-type=2&max-keys=1", .once = true, .probe = true};
    struct s3_answer a;
    struct err e = {0};
    int64_t from = time_mono_us();
    int rc = s3_call(s3, &q, &a, &e);
    int status = a.status;
    int64_t date_s = a.date_s;

    s3_answer_done(&a);
    if (rc == 0 && status == 404)
        rc = err_set(&e, ERR_HOST, "there is no such bucket");
    tell(p, "bucket", rc == 0 ? STORE_GOOD : STORE_BAD,
         "Check the address, the bucket, its region and the key; s3-ca for an authority of your "
         "own.",
         "%s at %s, %s in %.0f ms", s3_shown(s3), c->endpoint, rc == 0 ? "answered" : e.text,
         (double)(time_mono_us() - from) / 1000);
    if (status == 0)
        return -1;
    tell(p, "bucket: TLS", is_plain_far(c) ? STORE_BAD : STORE_GOOD, "Say https:// in s3-endpoint.",
         "%s",
         strncmp(c->endpoint, "https://", 8) == 0 ? "its certificate is good for this name"
         : is_plain_far(c)                        ? "none: everybody on the way can read the files"
                                                  : "none, on this machine");
    if (date_s)
        tell_clock(p, "bucket: clock", (double)date_s - (double)time_now_ms() / 1000, CLOCK_S3,
                   true);
    return rc;
}

void store_probe_blobs(const struct s3_config *c, store_finding_fn *fn, void *arg)
{
    const struct prober p = {fn, arg};
    struct err e = {0};
    struct s3 *s3 = s3_config_check(c, &e) < 0 ? NULL : s3_new(c, &e);

    if (!s3)
        return tell(&p, "bucket", STORE_BAD, NULL, "%s", e.text);
    if (reach_bucket(&p, s3, c) == 0)
        for (size_t i = 0; i < COUNT(bucket_steps); i++)
            if (take_step(&p, s3, &bucket_steps[i]) < 0)
                break;
    s3_free(s3);
}
