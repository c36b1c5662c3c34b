/*
 * retort bench: what retort takes on this machine, in a quarter of a minute.
 *
 * Theory of operation: a server of its own, or one that runs; then rounds, in each of which every
 * part takes its few samples, so that a busy moment falls on all of them; then many sessions at
 * once. Each figure stands beside what the machine itself takes, from the same rounds. Nothing is
 * left: sessions that were made are deleted, and a server of its own goes with its folder.
 */
#include "cli/bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS_MIN  3
#define START_US    120e6 /* a first start compiles what Python imports */
#define PARKED_US   2e6
#define PAUSE_US    20000 /* between two sessions: the sandbox before has gone by then */
#define RATE_US     500e3
#define RATE_ROUNDS 5
#define CLIENTS_OWN 64
#define CLIENTS     16 /* on a server that others use */
#define SPINS       100
#define REPORT_MAX  (64 * KiB)
#define ONE_SHOTS   20 /* back to back */
#define SESSION_MAX 64

#define SESSIONS STR("/v1/sessions")
#define CELL     STR("{\"code\": \"print(2+2)\"}")
#define DESCRIBE                                                                                   \
    STR("{\"code\": \"import pandas as pd; pd.DataFrame({'a': range(1000), 'b': range(1000)})"     \
        ".describe()\"}")
#define PLOT                                                                                       \
    STR("{\"code\": \"import matplotlib.pyplot as plt; plt.plot([1, 2, 3, 4], [1, 4, 9, 16]); "    \
        "plt.title('Squares'); plt.show()\"}")

volatile sig_atomic_t bench_stopped;

struct bench {
    const struct settings *s; /* borrowed */
    struct bench_server server;
    struct bench_target target;
    struct bench_conn conn;
    struct measured m;
    char session[SESSION_MAX]; /* the one that is up; or empty */
    char cold[64];             /* a pool that parks none; or empty */
    bool pandas, matplotlib;
};

static void on_interrupt(int signo)
{
    bench_stopped = signo;
}

static void say(const char *what)
{
    fprintf(stderr, "retort bench: %s\n", what);
}

/* --- one request --- */

static struct samples *of(struct bench *b, enum series which)
{
    return &b->m.of[which];
}

/* What the server says when it does not do what it was asked. */
static int refused(const struct bench_answer *a, const char *path, struct err *e)
{
    json_t *v = json_loadb(a->body.p, a->body.n, 0, NULL);
    const char *text = json_string_value(json_object_get(json_object_get(v, "error"), "message"));

    err_set(e, a->status >= 500 ? ERR_HOST : ERR_CALLER, "%s: %s", path,
            text ? text : "the answer is not that of a retort server");
    if (a->status == 401)
        err_wrap(e, "set RETORT_KEY to a key of the server (retort keys create)");
    json_decref(v);
    return -1;
}

static int ask(struct bench *b, const char *method, const char *path, struct str body, int status,
               struct bench_answer *ret, struct err *e)
{
    if (bench_stopped)
        return err_set(e, ERR_CALLER, "interrupted");
    if (bench_ask(&b->conn, method, path, body, ret, e) < 0)
        return -1;
    return ret->status == status ? 0 : refused(ret, path, e);
}

static bool is_good(const struct bench_answer *a)
{
    return a->status == 200 && memmem(a->body.p, a->body.n, "\"status\":\"ok\"", 13);
}

static int run_at(struct bench *b, const char *path, struct str body, const char *expect,
                  struct bench_answer *ret, struct err *e)
{
    if (ask(b, "POST", path, body, 200, ret, e) < 0)
        return -1;
    if (!is_good(ret) || !memmem(ret->body.p, ret->body.n, expect, strlen(expect)))
        return err_set(e, ERR_HOST, "a cell did not answer as it should: %.300s", ret->body.p);
    return 0;
}

/* A cell that has to end well; its time goes to `into`, if that is not NULL. */
static int run(struct bench *b, const char *session, struct str body, const char *expect,
               struct samples *into, double *ret_us, struct err *e)
{
    struct bench_answer a = {0};
    char path[128];

    snprintf(path, sizeof(path), "/v1/sessions/%s/execute", session);
    if (run_at(b, path, body, expect, &a, e) < 0)
        return -1;
    if (into)
        samples_add(into, a.us);
    if (ret_us)
        *ret_us += a.us;
    return 0;
}

/* A member of a small document, as text; empty where there is none. */
static void member(struct str body, const char *name, char *ret, size_t size)
{
    json_t *v = json_loadb(body.p, body.n, 0, NULL);
    const char *text = json_string_value(json_object_get(v, name));

    snprintf(ret, size, "%s", text ? text : "");
    json_decref(v);
}

static int open_session(struct bench *b, const char *pool, char ret[SESSION_MAX], double *ret_us,
                        struct err *e)
{
    struct bench_answer a = {0};
    char body[128];

    snprintf(body, sizeof(body), "{\"pool\": \"%s\"}", pool);
    if (ask(b, "POST", SESSIONS.p, str_of(body), 201, &a, e) < 0)
        return -1;
    member(a.body, "id", ret, SESSION_MAX);
    *ret_us = a.us;
    return *ret ? 0 : err_set(e, ERR_HOST, "the server has given no session");
}

static int close_session(struct bench *b, const char *session, struct err *e)
{
    struct bench_answer a = {0};
    char path[128];

    snprintf(path, sizeof(path), "/v1/sessions/%.*s", SESSION_MAX - 1, session);
    if (bench_ask(&b->conn, "DELETE", path, STR(""), &a, e) < 0)
        return -1;
    return a.status == 204 ? 0 : refused(&a, path, e);
}

static int health(struct bench *b, struct samples *into, struct err *e)
{
    struct bench_answer a = {0};

    if (ask(b, "GET", "/health", STR(""), 200, &a, e) < 0)
        return -1;
    if (into)
        samples_add(into, a.us);
    return 0;
}

/* --- the parts --- */

/* Until as many sandboxes are parked as should be; others may use the server, so not for long. */
static int wait_parked(struct bench *b, struct err *e)
{
    double until = bench_now_us() + PARKED_US;
    char path[128];
    json_int_t parked;

    snprintf(path, sizeof(path), "/v1/pools/%s", b->m.pool);
    do {
        struct bench_answer a = {0};
        json_t *v;
        if (ask(b, "GET", path, STR(""), 200, &a, e) < 0)
            return -1;
        v = json_loadb(a.body.p, a.body.n, 0, NULL);
        parked = json_integer_value(json_object_get(v, "parked"));
        json_decref(v);
        usleep(PAUSE_US);
    } while (parked < b->m.ready && bench_now_us() < until);
    return 0;
}

static int part_floor(struct bench *b, struct err *e)
{
    bench_floor_spin(&b->m.spin, SPINS, &b->m.spin_cpu_us);
    return bench_floor_pipe(of(b, SERIES_PIPE), 50, e) < 0 ||
                   bench_floor_fork(of(b, SERIES_FORK), 10, e) < 0
               ? -1
               : 0;
}

static int part_cell(struct bench *b, struct err *e)
{
    for (int i = 0; i < 40; i++) {
        bool counts = i >= 4; /* the processor's caches were others' */
        if (health(b, counts ? of(b, SERIES_HEALTH) : NULL, e) < 0 ||
            run(b, b->session, CELL, "4\\n", counts ? of(b, SERIES_CELL) : NULL, NULL, e) < 0)
            return -1;
    }
    return 0;
}

/* One session and its cells: with the first, what a client waits for until it has an answer. */
static int visit(struct bench *b, const char *pool, struct str body, const char *expect,
                 struct samples *created, struct samples *both, struct samples *first,
                 struct samples *again, unsigned times, struct err *e)
{
    char session[SESSION_MAX] = "";
    struct err ignored;
    double us = 0;
    int rc = health(b, NULL, e) < 0 ? -1 : open_session(b, pool, session, &us, e);

    if (rc == 0 && created)
        samples_add(created, us);
    for (unsigned i = 0; rc == 0 && i < times; i++) {
        rc = run(b, session, body, expect, i == 0 ? first : again, &us, e);
        if (rc == 0 && i == 0 && both)
            samples_add(both, us);
    }
    if (*session)
        rc = close_session(b, session, rc < 0 ? &ignored : e) < 0 ? -1 : rc;
    usleep(PAUSE_US);
    return rc;
}

static int part_create(struct bench *b, struct err *e)
{
    int rc = wait_parked(b, e);

    for (int i = 0; rc == 0 && i < 5; i++)
        rc = visit(b, b->m.pool, CELL, "4\\n", of(b, SERIES_CREATE), of(b, SERIES_HALVES), NULL,
                   NULL, 1, e);
    return rc;
}

static int part_cold(struct bench *b, struct err *e)
{
    int rc = 0;

    for (int i = 0; rc == 0 && *b->cold && i < 3; i++)
        rc = visit(b, b->cold, CELL, "4\\n", of(b, SERIES_COLD), NULL, NULL, NULL, 0, e);
    return rc;
}

static int part_first(struct bench *b, struct err *e)
{
    int rc = b->pandas ? wait_parked(b, e) : 0;

    for (int i = 0; rc == 0 && b->pandas && i < 3; i++)
        rc = visit(b, b->m.pool, DESCRIBE, "499.5", NULL, of(b, SERIES_FIRST), NULL,
                   of(b, SERIES_WARM), 4, e);
    return rc;
}

/* What the server says that a session is charged which has just run pandas. */
static int part_memory(struct bench *b, struct err *e)
{
    char session[SESSION_MAX] = "", path[128];
    struct bench_answer a = {0};
    struct err ignored;
    double us;
    int rc = b->pandas ? open_session(b, b->m.pool, session, &us, e) : 0;

    if (!*session)
        return rc;
    snprintf(path, sizeof(path), "/v1/sessions/%s", session);
    rc = run(b, session, DESCRIBE, "499.5", NULL, NULL, e);
    if (rc == 0)
        rc = ask(b, "GET", path, STR(""), 200, &a, e);
    if (rc == 0) {
        json_t *v = json_loadb(a.body.p, a.body.n, 0, NULL);
        json_int_t held = json_integer_value(json_object_get(v, "memory_bytes"));
        if (held > 0)
            samples_add(of(b, SERIES_MEMORY), (double)held);
        else
            b->m.why_not[SERIES_MEMORY] = "this system does not tell";
        json_decref(v);
    }
    return close_session(b, session, rc < 0 ? &ignored : e) < 0 ? -1 : rc;
}

static int part_plot(struct bench *b, struct err *e)
{
    if (!b->matplotlib)
        return 0;
    if (wait_parked(b, e) < 0)
        return -1;
    return visit(b, b->m.pool, PLOT, "image/png", NULL, NULL, of(b, SERIES_PLOT),
                 of(b, SERIES_PLOT_AGAIN), 2, e);
}

/* Each leaves a session that sleeps: it is deleted when the last one has been measured. */
static int part_one_shot(struct bench *b, struct err *e)
{
    char sessions[ONE_SHOTS][SESSION_MAX];
    struct bench_answer a = {0};
    struct err ignored;
    size_t n = 0;
    int rc = wait_parked(b, e);

    for (; rc == 0 && n < ONE_SHOTS; n += rc == 0) {
        rc = run_at(b, "/v1/execute", CELL, "4\\n", &a, e);
        if (rc == 0) {
            samples_add(of(b, SERIES_ONE_SHOT), a.us);
            member(a.body, "session", sessions[n], SESSION_MAX);
        }
    }
    for (size_t i = 0; i < n; i++)
        if (close_session(b, sessions[i], rc < 0 ? &ignored : e) < 0)
            rc = -1;
    return rc;
}

/* Taken in turns, in this order. */
static int (*const parts[])(struct bench *b, struct err *e) = {
    part_floor, part_cell,     part_create, part_first,
    part_plot,  part_one_shot, part_cold,   part_memory,
};

static int measure_rounds(struct bench *b, struct err *e)
{
    double until = bench_now_us() + (double)b->s->bench_ms * 1e3;
    double us;

    if (open_session(b, b->m.pool, b->session, &us, e) < 0)
        return -1;
    for (unsigned round = 0; round < ROUNDS_MIN || bench_now_us() < until; round++)
        for (size_t i = 0; i < COUNT(parts); i++)
            if (parts[i](b, e) < 0)
                return -1;
    return 0;
}

static int measure_rate(struct bench *b, struct err *e)
{
    size_t n = b->m.own ? CLIENTS_OWN : CLIENTS, made = 0;
    struct bench_asker *askers = mem_zalloc(n * sizeof(*askers));
    struct err ignored;
    double us;
    int rc = 0;

    for (; rc == 0 && made < n; made += rc == 0) {
        char session[SESSION_MAX];
        rc = open_session(b, b->m.pool, session, &us, e);
        if (rc < 0)
            break;
        bench_conn_init(&askers[made].conn, &b->target);
        snprintf(askers[made].path, sizeof(askers[made].path), "/v1/sessions/%s/execute", session);
        rc = run(b, session, CELL, "4\\n", NULL, NULL, e);
    }
    for (unsigned i = 0; rc == 0 && i < RATE_ROUNDS; i++) {
        long count = bench_ask_all(askers, n, CELL, RATE_US, is_good, &us, e);
        rc = count < 0 ? -1 : 0;
        if (rc == 0)
            samples_add(of(b, SERIES_RATE), (double)count * 1e6 / us);
    }
    for (size_t i = 0; i < n && askers[i].path[0]; i++) {
        struct str path = str_of(askers[i].path);
        char session[SESSION_MAX];
        bool cut =
            str_to_cstr((struct str){path.p + 13, path.n - 13 - 8}, session, sizeof(session));
        if (cut && close_session(b, session, &ignored) < 0)
            log_debug("bench: %s", ignored.text);
        bench_conn_done(&askers[i].conn);
    }
    b->m.clients = n;
    free(askers);
    return rc;
}

/* --- the server --- */

/* What the pools are, and what the code of a bench may import there. */
static int look_at_pools(struct bench *b, struct err *e)
{
    struct bench_answer a = {0};
    json_t *v, *pool, *packages;
    size_t i;

    if (ask(b, "GET", "/v1/pools", STR(""), 200, &a, e) < 0)
        return -1;
    v = json_loadb(a.body.p, a.body.n, 0, NULL);
    json_array_foreach(json_object_get(v, "data"), i, pool) {
        const char *name = json_string_value(json_object_get(pool, "name"));
        const char *python = json_string_value(json_object_get(pool, "python"));
        json_int_t ready = json_integer_value(json_object_get(pool, "ready"));
        if (ready == 0 && !*b->cold)
            snprintf(b->cold, sizeof(b->cold), "%s", name ? name : "");
        if (i > 0)
            continue;
        packages = json_object_get(pool, "packages");
        b->pandas = json_object_get(packages, "pandas");
        b->matplotlib = json_object_get(packages, "matplotlib");
        b->m.ready = (unsigned)ready;
        snprintf(b->m.pool, sizeof(b->m.pool), "%s", name ? name : "");
        snprintf(b->m.python, sizeof(b->m.python), "%s", python ? python : "?");
    }
    json_decref(v);
    if (!*b->m.pool)
        return err_set(e, ERR_HOST, "/v1/pools: the answer is not that of a retort server");
    if (!b->pandas)
        b->m.why_not[SERIES_FIRST] = b->m.why_not[SERIES_MEMORY] =
            "the pool's Python has no pandas";
    if (!b->matplotlib)
        b->m.why_not[SERIES_PLOT] = "the pool's Python has no matplotlib";
    if (!*b->cold)
        b->m.why_not[SERIES_COLD] = "every pool of this server parks sandboxes";
    if (!b->m.own)
        b->m.why_not[SERIES_ANSWERS] = b->m.why_not[SERIES_READY] = "this server ran already";
    return 0;
}

/* Tries until a request of this path is answered with 200. */
static int wait_for(struct bench *b, const char *path, enum series which, struct err *e)
{
    double until = bench_now_us() + START_US;
    struct bench_answer a = {0};

    while (bench_ask(&b->conn, "GET", path, STR(""), &a, e) < 0 || a.status != 200) {
        if (bench_stopped)
            return err_set(e, ERR_CALLER, "interrupted");
        if (bench_server_failed(&b->server, e))
            return -1;
        if (bench_now_us() > until)
            return err_set(e, ERR_HOST, "the server for the bench is not ready: %.300s",
                           a.body.n ? a.body.p : "it does not answer");
        usleep(1000);
    }
    samples_add(of(b, which), bench_now_us() - b->server.begun_us);
    return 0;
}

static int reach_server(struct bench *b, struct err *e)
{
    const char *key = getenv("RETORT_KEY");

    b->m.own = !b->s->server;
    snprintf(b->m.url, sizeof(b->m.url), "%s", b->m.own ? "a Unix socket" : b->s->server);
    bench_conn_init(&b->conn, &b->target);
    if (!b->m.own) {
        if (key && !str_to_cstr(str_of(key), b->target.key, sizeof(b->target.key)))
            return err_set(e, ERR_CALLER, "RETORT_KEY is too long to be a key");
        return bench_target_url(&b->target, b->s->server, e);
    }
    say("starting a server of its own");
    if (bench_server_start(&b->server, b->s, e) < 0 ||
        bench_target_unix(&b->target, b->server.socket, e) < 0 ||
        wait_for(b, "/health", SERIES_ANSWERS, e) < 0)
        return -1;
    return wait_for(b, "/ready", SERIES_READY, e);
}

static int measure(struct bench *b, struct err *e)
{
    b->m.load = bench_load();
    if (reach_server(b, e) < 0 || look_at_pools(b, e) < 0)
        return -1;
    say("measuring one client");
    if (measure_rounds(b, e) < 0)
        return -1;
    say("measuring many clients at once");
    return measure_rate(b, e);
}

static void done(struct bench *b)
{
    struct err ignored;

    if (*b->session && close_session(b, b->session, &ignored) < 0)
        log_debug("bench: %s", ignored.text);
    bench_conn_done(&b->conn);
    bench_server_end(&b->server);
    for (size_t i = 0; i < SERIES__COUNT; i++)
        free(b->m.of[i].v);
    free(b->m.spin.v);
}

int bench_main(const struct settings *s)
{
    struct sigaction stop = {.sa_handler =
                                 on_interrupt}; /* without SA_RESTART: who waits is woken */
    struct bench b = {
        .s = s, .server = {.janitor = {.fd = -1}, .held = -1, .keeper = -1}
    };
    AUTO(buf_done) struct buf text = BUF(REPORT_MAX);
    struct err e = {0};
    int status = EXIT_OK;

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    if (measure(&b, &e) < 0)
        status = command_failed(&e);
    else if (s->json)
        bench_put_json(&b.m, &text);
    else
        bench_put_text(&b.m, &text);
    done(&b);
    if (status == EXIT_OK)
        return stdout_put(buf_str(&text));
    return bench_stopped ? EXIT_INTERRUPTED : status;
}
