/* What `retort bench` says: a table for people, or one JSON document. */
#include "cli/bench_int.h"

#include <math.h>
#include <stdio.h>
#include <sys/utsname.h>

/* On a machine of our own, work that never waits takes as long every time, and nobody else works.
 */
#define CALM_JITTER 1.3
#define CALM_WAITED 0.05
#define CALM_LOAD   0.5 /* for each core */

// clang-format off
enum row_kind { ALONE, OVER, TIMES };
enum unit { UNIT_MS, UNIT_RATE, UNIT_MB };

static const struct {
    double scale; /* of a sample */
    const char *name;
} units[] = {[UNIT_MS] = {1e-3, "ms"}, [UNIT_RATE] = {1, "a second"}, [UNIT_MB] = {1e-6, "MB"}};

static const struct row {
    const char *name, *what;
    enum unit unit;
    enum series ours;
    enum row_kind kind; /* OVER: how much more than beside; TIMES: how many times beside */
    enum series beside;
    const char *beside_what;
} rows[] = {
    {"pipe", "a byte through a pipe, and back", UNIT_MS, SERIES_PIPE, ALONE, 0, NULL},
    {"fork", "fork, and wait for its end", UNIT_MS, SERIES_FORK, ALONE, 0, NULL},
    {"health", "GET /health", UNIT_MS, SERIES_HEALTH, ALONE, 0, NULL},
    {"cell", "print(2+2), the session is up", UNIT_MS, SERIES_CELL, OVER, SERIES_HEALTH, "GET /health"},
    {"create", "a new session, from the parked", UNIT_MS, SERIES_CREATE, OVER, SERIES_HEALTH, "GET /health"},
    {"cold", "a new session, none parked", UNIT_MS, SERIES_COLD, TIMES, SERIES_FORK, "a fork"},
    {"first", "new session, describe(), its answer", UNIT_MS, SERIES_FIRST, TIMES, SERIES_WARM, "the cell when warm"},
    {"plot", "the first plot of a session", UNIT_MS, SERIES_PLOT, TIMES, SERIES_PLOT_AGAIN, "the second"},
    {"one_shot", "one-shots, back to back, each", UNIT_MS, SERIES_ONE_SHOT, TIMES, SERIES_HALVES, "create and cell"},
    {"throughput", "cells a second, many sessions", UNIT_RATE, SERIES_RATE, ALONE, 0, NULL},
    {"memory", "memory of a session with pandas", UNIT_MB, SERIES_MEMORY, ALONE, 0, NULL},
    {"answers", "start of a server to an answer", UNIT_MS, SERIES_ANSWERS, ALONE, 0, NULL},
    {"ready", "start of a server to a warm pool", UNIT_MS, SERIES_READY, ALONE, 0, NULL},
};
// clang-format on

/* Three digits, whatever the size. No line is longer than the 80 columns of a terminal. */
static void put_number(struct buf *b, const char *sign, double v)
{
    int decimals = v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;
    char text[32];

    snprintf(text, sizeof(text), "%s%.*f", sign, decimals, v);
    buf_printf(b, "%9s", text);
}

static double figure(struct measured *m, const struct row *r, double share)
{
    double ours = samples_rank(&m->of[r->ours], share);
    double beside = samples_rank(&m->of[r->beside], share);

    return r->kind == OVER ? (ours - beside) * units[r->unit].scale : ours / beside;
}

static void put_beside(struct measured *m, const struct row *r, double share, struct buf *b)
{
    double v = figure(m, r, share);

    put_number(b, r->kind == TIMES ? "x " : v < 0 ? "- " : "+ ", fabs(v));
}

static void put_row(struct measured *m, const struct row *r, struct buf *b)
{
    static const double shares[] = {0, .5, .95};
    struct samples *s = &m->of[r->ours];

    if (s->n == 0) {
        buf_printf(b, "%s\n    not measured: %s\n", r->what,
                   m->why_not[r->ours] ? m->why_not[r->ours] : "no time was left");
        return;
    }
    buf_printf(b, "%-36s", r->what);
    for (size_t i = 0; i < COUNT(shares); i++)
        put_number(b, "", samples_rank(s, shares[i]) * units[r->unit].scale);
    buf_printf(b, " %s\n", units[r->unit].name);
    if (r->kind == ALONE || m->of[r->beside].n == 0)
        return;
    buf_printf(b, "    beside %-25s", r->beside_what);
    put_beside(m, r, 0, b);
    put_beside(m, r, .5, b);
    buf_printf(b, "%s\n", r->kind == OVER ? "          ms" : "");
}

static double jitter(struct measured *m, double share)
{
    return samples_rank(&m->spin, share) / samples_rank(&m->spin, 0);
}

/* The share of the time that our loop wanted to run and did not. */
static double waited(const struct measured *m)
{
    double wall = 0;

    for (size_t i = 0; i < m->spin.n; i++)
        wall += m->spin.v[i];
    return 1 - m->spin_cpu_us / wall;
}

static bool is_busy(struct measured *m)
{
    return jitter(m, .95) >= CALM_JITTER || waited(m) > CALM_WAITED ||
           m->load > CALM_LOAD * bench_cores();
}

void bench_put_text(struct measured *m, struct buf *b)
{
    struct utsname u;

    (void)uname(&u);
    buf_printf(b, "retort " RETORT_VERSION ", %u cores, Linux %s\n", bench_cores(), u.release);
    buf_printf(b, "Pool %s with Python %s, %u parked, %s %s\n", m->pool, m->python, m->ready,
               m->own ? "on a server of its own, over" : "at", m->url);
    buf_printf(b,
               "Load before: %.1f. A loop that never waits took %.2f times its best in the\n"
               "median, %.2f in its worst twentieth.\n%s\n",
               m->load, jitter(m, .5), jitter(m, .95),
               !is_busy(m) ? ""
                           : "THE MACHINE IS BUSY: look at what is beside, and at the best.\n");
    buf_printf(b, "%-36s%9s%9s%9s\n", "", "best", "median", "95 %");
    for (size_t i = 0; i < COUNT(rows); i++)
        put_row(m, &rows[i], b);
    buf_printf(b,
               "\nOver HTTP on kept connections; client and server share these processors.\n"
               "%zu clients at once for the throughput.\n",
               m->clients);
}

static json_t *row_json(struct measured *m, const struct row *r)
{
    struct samples *s = &m->of[r->ours];
    json_t *v = json_pack("{s:s, s:s, s:s, s:I}", "name", r->name, "what", r->what, "unit",
                          units[r->unit].name, "n", (json_int_t)s->n);

    if (s->n == 0) {
        json_object_set_new(
            v, "not_measured",
            json_string(m->why_not[r->ours] ? m->why_not[r->ours] : "no time was left"));
        return v;
    }
    json_object_set_new(v, "best", json_real(samples_rank(s, 0) * units[r->unit].scale));
    json_object_set_new(v, "p50", json_real(samples_rank(s, .5) * units[r->unit].scale));
    json_object_set_new(v, "p95", json_real(samples_rank(s, .95) * units[r->unit].scale));
    if (r->kind != ALONE && m->of[r->beside].n > 0)
        json_object_set_new(v, "beside",
                            json_pack("{s:s, s:f, s:s, s:f, s:f}", "what", r->beside_what, "p50",
                                      samples_rank(&m->of[r->beside], .5) * units[r->unit].scale,
                                      "as", r->kind == OVER ? "ms_over" : "times", "figure",
                                      figure(m, r, .5), "figure_best", figure(m, r, 0)));
    return v;
}

void bench_put_json(struct measured *m, struct buf *b)
{
    json_t *all = json_array(), *root;
    struct utsname u;
    AUTO_FREE char *text = NULL;

    (void)uname(&u);
    for (size_t i = 0; i < COUNT(rows); i++)
        json_array_append_new(all, row_json(m, &rows[i]));
    root = json_pack(
        "{s:i, s:s, s:{s:i, s:s, s:f, s:f, s:f, s:b}, s:{s:b, s:s, s:s, s:s, s:i}, s:I, s:o}",
        "version", 1, "retort", RETORT_VERSION, "machine", "cores", (int)bench_cores(), "kernel",
        u.release, "load", m->load, "jitter_p50", jitter(m, .5), "jitter_p95", jitter(m, .95),
        "busy", is_busy(m), "server", "own", m->own, "address", m->url, "pool", m->pool, "python",
        m->python, "ready", (int)m->ready, "clients", (json_int_t)m->clients, "rows", all);
    text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(root);
    assert(text);
    buf_printf(b, "%s\n", text);
}
