/* The caller, and the state of the server: for pages and scripts that look every few seconds. */
#include "doors/rest/rest_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* --- memory --- */

/* A line "Name:   123 kB" of /proc/meminfo, in bytes. */
static uint64_t meminfo(const char *text, const char *name)
{
    const char *line = strstr(text, name);

    return line ? strtoull(line + strlen(name), NULL, 10) * KiB : 0;
}

static json_t *memory_value(void)
{
    char text[4096] = "";
    uint64_t server, total, available;

    (void)!fd_read_file_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
    server = text_number_at(text, 1) * (uint64_t)sysconf(_SC_PAGESIZE);
    (void)!fd_read_file_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text));
    total = meminfo(text, "MemTotal:");
    available = meminfo(text, "MemAvailable:");
    return json_pack("{s:I, s:I, s:I}", "server_bytes", (json_int_t)server, "host_used_bytes",
                     (json_int_t)(available < total ? total - available : 0), "host_total_bytes",
                     (json_int_t)total);
}

/* --- what was counted --- */

static json_t *sessions_value(const struct service_counts *c)
{
    json_t *v = json_object();

    for (unsigned s = 0; s < SESSION_ENDED; s++)
        json_object_set_new(v, session_state_name(s), json_integer((json_int_t)c->sessions[s]));
    return v;
}

static json_t *executions_value(const struct service_counts *c)
{
    json_t *v = json_object();

    for (unsigned o = 0; o < COUNT(c->executions); o++)
        json_object_set_new(v, outcome_status_name(o), json_integer((json_int_t)c->executions[o]));
    return v;
}

/* Each bucket counts what took up to `le` seconds and more than the one before; the last has all
 * that took longer. */
static json_t *histogram_value(const struct histogram *h)
{
    json_t *buckets = json_array();

    for (size_t i = 0; i <= LATENCY_BUCKETS; i++)
        json_array_append_new(
            buckets, json_pack("{s:o, s:I}", "le",
                               i < LATENCY_BUCKETS ? json_real((double)histogram_bound_us(i) / 1e6)
                                                   : json_null(),
                               "count", (json_int_t)h->bucket[i]));
    return json_pack("{s:I, s:f, s:o}", "count", (json_int_t)h->count, "sum",
                     (double)h->sum_us / 1e6, "buckets", buckets);
}

/* --- the answer --- */

void handle_get_status(struct request *r)
{
    struct service *sv = request_service(r);
    const struct caller *c = request_caller(r);
    const struct service_counts *counts = service_counts(sv);

    answer_json(r, 200,
                json_pack("{s:s, s:o, s:o, s:b, s:b, s:b, s:b, s:o, s:o, s:o, s:o}", "version",
                          RETORT_VERSION, "tenant", render_text(c->tenant), "key",
                          *c->key ? render_text(c->key) : json_null(), "admin", (int)c->admin,
                          "approver", (int)(c->approver || c->admin), "read_only",
                          (int)service_only_reads(sv, c), "keys_needed", (int)service_has_keys(sv),
                          "sessions", sessions_value(counts), "executions",
                          executions_value(counts), "cell_seconds", histogram_value(&counts->cell),
                          "memory", memory_value()));
}
