/* /health, /ready and /metrics, the last in the text format of Prometheus. */
#include "doors/operator/operator.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define METRICS_MAX (1 * MiB)

/* --- health --- */

static void handle_health(struct request *r)
{
    answer_json(r, 200, json_pack("{s:s,s:s}", "status", "ok", "version", RETORT_VERSION));
}

static void handle_ready(struct request *r)
{
    const char *why = NULL;
    bool ready = service_is_ready(request_service(r), &why);

    answer_json(r, ready ? 200 : 503,
                json_pack("{s:s,s:s?}", "status", ready ? "ready" : "not_ready", "why",
                          ready ? NULL : why));
}

/* --- metrics --- */

static void head(struct buf *b, const char *name, const char *type, const char *text)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

static void one(struct buf *b, const char *name, const char *type, const char *text, double v)
{
    head(b, name, type, text);
    buf_printf(b, "%s %.17g\n", name, v);
}

static void labelled(struct buf *b, const char *name, const char *label, const char *value,
                     uint64_t v)
{
    buf_printf(b, "%s{%s=\"", name, label);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            buf_printf(b, "\\");
        buf_printf(b, "%c", *value == '\n' ? ' ' : *value);
    }
    buf_printf(b, "\"} %" PRIu64 "\n", v);
}

static void histogram(struct buf *b, const char *name, const char *text, const struct histogram *h)
{
    uint64_t below = 0;

    head(b, name, "histogram", text);
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        below += h->bucket[i];
        buf_printf(b, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                   (double)histogram_bound_us(i) / 1e6, below);
    }
    buf_printf(b, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.17g\n%s_count %" PRIu64 "\n", name,
               h->count, name, (double)h->sum_us / 1e6, name, h->count);
}

static void put_sessions(struct buf *b, const struct service_counts *c)
{
    head(b, "retort_sessions", "gauge", "Sessions by state.");
    for (unsigned s = 0; s < COUNT(c->sessions); s++)
        labelled(b, "retort_sessions", "state", session_state_name(s), c->sessions[s]);
    one(b, "retort_sessions_created_total", "counter", "Sessions created.",
        (double)c->sessions_created);
    one(b, "retort_sessions_resumed_total", "counter", "Sessions that were woken up.",
        (double)c->resumed);
    one(b, "retort_pool_hits_total", "counter", "Sandboxes taken from those kept ready.",
        (double)c->pool_hits);
    one(b, "retort_pool_misses_total", "counter", "Sandboxes that had to be made first.",
        (double)c->pool_misses);
    histogram(b, "retort_session_create_seconds", "From the request to a session that takes code.",
              &c->create);
}

static void put_executions(struct buf *b, const struct service_counts *c)
{
    head(b, "retort_executions_total", "counter", "Executions by outcome.");
    for (unsigned o = 0; o < COUNT(c->executions); o++)
        labelled(b, "retort_executions_total", "outcome", outcome_status_name(o), c->executions[o]);
    head(b, "retort_limits_hit_total", "counter", "Limits that executions ran into.");
    for (unsigned l = LIMIT_NONE + 1; l < LIMIT__COUNT; l++)
        labelled(b, "retort_limits_hit_total", "limit", limit_name(l), c->limits_hit[l]);
    head(b, "retort_refused_total", "counter", "Requests refused, by reason.");
    labelled(b, "retort_refused_total", "reason", "busy", c->refused_busy);
    labelled(b, "retort_refused_total", "reason", "auth", c->refused_auth);
    head(b, "retort_approvals_total", "counter", "Approvals that came into this state.");
    for (int s = 0; s < APPROVAL__STATES; s++)
        labelled(b, "retort_approvals_total", "state", approval_state_name(s), c->approvals[s]);
    histogram(b, "retort_cell_seconds", "Time an execution took.", &c->cell);
}

static void put_pools(struct buf *b, struct service *sv)
{
    struct pool_info p;

    head(b, "retort_pool_parked", "gauge", "Sandboxes kept ready, by pool.");
    for (size_t i = 0; i < service_pool_count(sv); i++) {
        service_pool_get(sv, i, &p);
        labelled(b, "retort_pool_parked", "pool", p.pool->name, p.parked);
    }
    head(b, "retort_pool_live", "gauge", "Sandboxes in use, by pool.");
    for (size_t i = 0; i < service_pool_count(sv); i++) {
        service_pool_get(sv, i, &p);
        labelled(b, "retort_pool_live", "pool", p.pool->name, p.live);
    }
    head(b, "retort_pool_up", "gauge", "Whether the interpreter of a pool is up.");
    for (size_t i = 0; i < service_pool_count(sv); i++) {
        service_pool_get(sv, i, &p);
        labelled(b, "retort_pool_up", "pool", p.pool->name, p.up);
    }
}

static void put_http(struct buf *b, struct http *h)
{
    struct http_counts c;
    char class[8];

    http_counts(h, &c);
    head(b, "retort_http_answers_total", "counter", "HTTP answers by class of status.");
    for (unsigned i = 1; i < COUNT(c.answers); i++) {
        snprintf(class, sizeof(class), "%uxx", i % 10);
        labelled(b, "retort_http_answers_total", "class", class, c.answers[i]);
    }
    one(b, "retort_http_connections", "gauge", "Connections open now.", (double)c.connections);
    one(b, "retort_http_connections_accepted_total", "counter", "Connections accepted.",
        (double)c.accepted);
    one(b, "retort_http_connections_refused_total", "counter", "Connections refused for a limit.",
        (double)c.refused);
}

static unsigned open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count > 3 ? count - 3 : 0; /* ".", ".." and the directory itself */
}

static void put_process(struct buf *b)
{
    char text[256] = "";
    struct rusage ru;
    struct rlimit fds;
    double page = (double)sysconf(_SC_PAGESIZE);

    (void)!fd_read_file_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
    one(b, "process_resident_memory_bytes", "gauge", "Resident memory of the server.",
        (double)text_number_at(text, 1) * page);
    one(b, "process_virtual_memory_bytes", "gauge", "Virtual memory of the server.",
        (double)text_number_at(text, 0) * page);
    one(b, "process_open_fds", "gauge", "Open file descriptors of the server.", open_fds());
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0)
        one(b, "process_max_fds", "gauge", "How many it may have.", (double)fds.rlim_cur);
    if (getrusage(RUSAGE_SELF, &ru) == 0)
        one(b, "process_cpu_seconds_total", "counter", "CPU time of the server.",
            (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
                (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
}

static void put_store(struct buf *b, struct service *sv)
{
    struct store_counts c = service_store_counts(sv);

    one(b, "retort_sweeps_total", "counter",
        "Looks for sessions, files and records that were kept for their time.",
        (double)service_counts(sv)->sweeps);
    one(b, "retort_store_flushes_total", "counter", "Groups of writes that reached the disk.",
        (double)c.flushes);
    one(b, "retort_store_flush_failures_total", "counter", "Groups of writes that did not.",
        (double)c.flush_failures);
    one(b, "retort_store_unflushed", "gauge",
        "Whether something that was written is not on the disk yet.", c.unflushed);
    one(b, "retort_store_transactions_total", "counter", "Transactions of the database.",
        (double)c.batches);
    one(b, "retort_store_transaction_seconds_total", "counter", "How long those took together.",
        (double)c.batch_us / 1e6);
    one(b, "retort_store_jobs_total", "counter",
        "What was read and written in them: the more for each, the busier the database.",
        (double)c.jobs);
}

static void put_nodes(struct buf *b, struct service *sv, struct http *h)
{
    struct http_counts c;
    const char *self;
    size_t count, lent, borrowed;
    const struct node_row *rows = service_nodes(sv, &count, &self);

    if (!service_has_nodes(sv))
        return;
    http_counts(h, &c);
    one(b, "retort_nodes", "gauge", "Nodes that hold a lease, as this one last saw it.",
        (double)count);
    head(b, "retort_node_tenants", "gauge", "Tenants that live on this node.");
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].id, self) == 0)
            labelled(b, "retort_node_tenants", "node", rows[i].name, (uint64_t)rows[i].homes);
    service_lent(sv, &lent, &borrowed);
    one(b, "retort_sandboxes_lent", "gauge", "Sandboxes here of sessions that other nodes have.",
        (double)lent);
    one(b, "retort_sandboxes_borrowed", "gauge",
        "Sandboxes on other nodes of sessions that this one has.", (double)borrowed);
    one(b, "retort_http_forwarded_total", "counter", "Requests handed on to the tenant's node.",
        (double)c.forwarded);
}

static void handle_metrics(struct request *r)
{
    const struct service_counts *counts = service_counts(request_service(r));
    AUTO(buf_done) struct buf b = BUF(METRICS_MAX);

    head(&b, "retort_build_info", "gauge", "The version that runs.");
    labelled(&b, "retort_build_info", "version", RETORT_VERSION, 1);
    put_sessions(&b, counts);
    put_executions(&b, counts);
    put_pools(&b, request_service(r));
    put_store(&b, request_service(r));
    put_http(&b, request_ctx(r));
    put_nodes(&b, request_service(r), request_ctx(r));
    put_process(&b);
    answer_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&b));
}

/* --- the door --- */

static const struct field health_fields[] = {
    {"status",          FIELD_TEXT, REQUIRED, 0, 0, NULL, "Always \"ok\".", "\"ok\""},
    {"version",                FIELD_TEXT,                         REQUIRED, 0, 0, NULL, "The version that runs.", "\"0.1.0\""},
    {NULL, FIELD_END  },
};

static const struct field ready_fields[] = {
    {"status",                  FIELD_ENUM, REQUIRED, 0, 0, "ready|not_ready", "Whether work is taken."},
    {"why",                        FIELD_TEXT,                                 OPTIONAL, 0, 0, NULL, "Why not."},
    {NULL, FIELD_END          },
};

static const struct schema schemas[] = {
    {"health", "The process is up.",     health_fields},
    {"ready",  "Whether work is taken.", ready_fields },
};

static const struct route routes[] = {
    {.method = HTTP_GET,
     .path = "/health",
     .id = "health",
     .tag = "Operator",
     .text = "Say that the process is up.",
     .flags = ROUTE_OPEN,
     .status = 200,
     .answer = "health",
     .answer_text = "It is up.",
     .handle = handle_health },
    {.method = HTTP_GET,
     .path = "/ready",
     .id = "ready",
     .tag = "Operator",
     .text = "Say whether work is taken. The status is 503 while it is not.",
     .flags = ROUTE_OPEN,
     .status = 200,
     .answer = "ready",
     .answer_text = "Work is taken.",
     .handle = handle_ready  },
    {.method = HTTP_GET,
     .path = "/metrics",
     .id = "metrics",
     .tag = "Operator",
     .text = "Counters in the text format of Prometheus. Over a local listener no key is needed.",
     .flags = ROUTE_LOCAL,
     .status = 200,
     .answer = "text/plain",
     .answer_text = "All of them.",
     .handle = handle_metrics},
};

const struct door operator_door = {.name = "operator",
                                   .routes = routes,
                                   .route_count = COUNT(routes),
                                   .schemas = schemas,
                                   .schema_count = COUNT(schemas)};
