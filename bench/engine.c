/*
 * bench-engine: the engine under a stopwatch. It holds two pools of the same
 * environment, "parked" with sandboxes kept ready and "none" without, and does
 * what run.py asks: one JSON request a line on stdin, one answer a line on stdout.
 * Times are taken here, next to the calls, so that nothing of run.py is in them.
 *
 *   {"do": "visit", "pool": "parked", "n": 50, "width": 1, "pause_ms": 20, "keep": false,
 *    "repeat": 1, "steps": [{"code": "print(2+2)", "expect": "4", "status": "ok",
 *                            "command": false}]}
 * opens n sessions, at most width at a time, and takes each through the steps,
 * repeat times over; then closes it, or keeps it.
 *
 *   {"do": "again", ...}    the same in every session kept so far
 *   {"do": "close"}         closes these
 *
 * The answer: {"ok": 50, "failed": 0, "why": "", "took_us": ..., "open_us": [...],
 * "first_us": [...] (from the request for the session to the end of the first step),
 * "steps": [[...], ...] (per step, from its start to its outcome)}.
 *
 * End of file on stdin ends it.
 */
#include "engine/engine.h"
#include "loop/loop.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX (256 * KiB)
#define STEPS_MAX   8
#define LIVE_MAX    4096

struct step {
    struct exec_config exec;
    struct str expect;  /* must be said; empty: anything goes */
    const char *status; /* how it is to end */
    json_t *us;         /* borrowed: in the answer */
};

struct bench;

/* One session on its way through the steps. */
struct visit {
    struct bench *b;         /* borrowed */
    struct session *session; /* owned until kept */
    unsigned step, round;
    double begun, opened, step_begun;
    bool said, failed;
};

/* The request being done. */
struct job {
    json_t *request;                     /* owned: steps point into it */
    json_t *answer, *open_us, *first_us; /* owned; borrowed: in the answer */
    struct pool *pool;
    unsigned n, width, pause_ms, repeat, step_count;
    bool keep, again;
    struct step steps[STEPS_MAX];
    unsigned started, running, ok, failed;
    double begun;
    char why[600]; /* of the first failure */
};

struct bench {
    struct loop *loop;
    struct engine *engine;
    struct pool *parked, *none; /* borrowed from engine */
    unsigned ready, pools_up;
    struct timer *pause;
    struct watch *from_stdin;
    struct buf in;
    struct job job;
    bool busy;
    struct session *live[LIVE_MAX]; /* owned */
    size_t live_count;
    int status;
};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* --- answers --- */

static void put_us(json_t *array, double us)
{
    json_array_append_new(array, json_real(us));
}

static void say(struct bench *b, json_t *answer)
{
    struct err e;
    char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(9));

    if (fd_write_all(STDOUT_FILENO, str_of(text), &e) < 0 ||
        fd_write_all(STDOUT_FILENO, STR("\n"), &e) < 0)
        loop_stop(b->loop); /* nobody listens */
    free(text);
}

static void say_wrong(struct bench *b, const char *why)
{
    json_t *answer = json_pack("{s:i, s:i, s:s}", "ok", 0, "failed", 1, "why", why);

    say(b, answer);
    json_decref(answer);
}

static void finish_job(struct bench *b)
{
    struct job *j = &b->job;

    json_object_set_new(j->answer, "ok", json_integer(j->ok));
    json_object_set_new(j->answer, "failed", json_integer(j->failed));
    json_object_set_new(j->answer, "why", json_string(j->why));
    json_object_set_new(j->answer, "took_us", json_real(now_us() - j->begun));
    say(b, j->answer);
    json_decref(j->answer);
    json_decref(j->request);
    b->busy = false;
}

/* --- one visit --- */

static void next_step(void *arg);
static void start_some(struct bench *b);

static void fail(struct visit *v, const char *what, const char *why)
{
    struct job *j = &v->b->job;

    if (!*j->why)
        snprintf(j->why, sizeof(j->why), "%s: %s", what, why);
    v->failed = true;
}

static void leave(struct visit *v)
{
    struct bench *b = v->b;
    struct job *j = &b->job;

    if (j->keep && !v->failed && b->live_count < LIVE_MAX)
        b->live[b->live_count++] = v->session;
    else if (v->session && !j->again)
        session_close(v->session);
    j->ok += !v->failed;
    j->failed += v->failed;
    j->running--;
    free(v);
    start_some(b);
}

static void on_event(void *arg, const struct event *ev)
{
    struct visit *v = arg;
    struct str want = v->b->job.steps[v->step].expect;

    if (ev->kind == EVENT_STDOUT)
        v->said |= memmem(ev->text.p, ev->text.n, want.p, want.n) != NULL;
    for (size_t i = 0; ev->kind == EVENT_RESULT && i < ev->bundle.count; i++)
        v->said |=
            memmem(ev->bundle.part[i].data.p, ev->bundle.part[i].data.n, want.p, want.n) != NULL;
}

static void on_outcome(void *arg, const struct outcome *o)
{
    double now = now_us();
    struct visit *v = arg;
    struct job *j = &v->b->job;
    struct step *s = &j->steps[v->step];

    put_us(s->us, now - v->step_begun);
    if (v->step == 0 && v->round == 0)
        put_us(j->first_us, now - v->begun);
    if (strcmp(outcome_status_name(o->status), s->status) != 0)
        fail(v, outcome_status_name(o->status), o->line);
    else if (s->expect.n && !v->said)
        fail(v, "the cell did not say", s->expect.p);
    v->step++;
    /* Not from in here: the session may not be closed in its own callback. */
    loop_later(v->b->loop, next_step, v);
}

static void next_step(void *arg)
{
    static const struct exec_callbacks callbacks = {on_event, on_outcome};
    struct visit *v = arg;
    struct job *j = &v->b->job;
    struct err e;

    if (v->step == j->step_count) {
        v->step = 0;
        v->round++;
    }
    if (v->failed || v->round == j->repeat || j->step_count == 0)
        return leave(v);
    v->said = false;
    v->step_begun = now_us();
    if (!exec_start(v->session, &j->steps[v->step].exec, &callbacks, v, &e)) {
        fail(v, "exec_start", e.text);
        leave(v);
    }
}

static void on_open(void *arg, struct session *session, const struct err *failed)
{
    struct visit *v = arg;

    v->opened = now_us();
    v->session = session;
    if (failed)
        fail(v, "session_open", failed->text);
    else
        put_us(v->b->job.open_us, v->opened - v->begun);
    /* As a client would: the cell goes out when the session is there. */
    if (failed)
        leave(v);
    else
        next_step(v);
}

static void begin(struct bench *b)
{
    struct job *j = &b->job;
    struct visit *v = mem_zalloc(sizeof(*v));

    *v = (struct visit){.b = b, .begun = now_us()};
    j->running++;
    if (j->again) {
        v->session = b->live[j->started++];
        loop_later(b->loop, next_step, v);
    } else {
        j->started++;
        session_open(j->pool, on_open, v);
    }
}

/* One at a time means undisturbed: the sandbox before has ended, the pool is full again. */
static void on_pause(void *arg)
{
    struct bench *b = arg;

    if (b->job.pool == b->parked && pool_parked(b->parked) < b->ready)
        timer_set(b->pause, 2);
    else
        begin(b);
}

static void start_some(struct bench *b)
{
    struct job *j = &b->job;

    if (j->running == 0 && j->started == j->n)
        return finish_job(b);
    if (j->pause_ms) {
        if (j->running == 0)
            timer_set(b->pause, j->pause_ms);
        return;
    }
    while (j->running < j->width && j->started < j->n)
        begin(b);
}

/* --- requests --- */

static unsigned get_num(json_t *o, const char *key, unsigned otherwise)
{
    json_t *value = json_object_get(o, key);

    return json_is_integer(value) ? (unsigned)json_integer_value(value) : otherwise;
}

static struct str get_str(json_t *o, const char *key)
{
    json_t *value = json_object_get(o, key);

    return (struct str){json_string_value(value), json_string_length(value)};
}

static bool get_steps(struct job *j, json_t *list)
{
    json_t *per_step = json_array();
    json_t *row;
    size_t i;

    json_object_set_new(j->answer, "steps", per_step);
    json_array_foreach(list, i, row) {
        struct str code = get_str(row, "code"), status = get_str(row, "status");
        bool command = json_is_true(json_object_get(row, "command"));
        if (i == STEPS_MAX || !code.p)
            return false;
        json_array_append_new(per_step, json_array());
        j->steps[i] = (struct step){
            .exec = {.kind = command ? EXEC_COMMAND : EXEC_CELL, .code = code},
            .expect = get_str(row, "expect"),
            .status = status.p ? status.p : "ok",
            .us = json_array_get(per_step, i),
        };
        j->step_count++;
    }
    return true;
}

static void do_visit(struct bench *b, json_t *request, bool again)
{
    struct job *j = &b->job;
    struct str pool = get_str(request, "pool");

    *j = (struct job){
        .request = json_incref(request),
        .answer = json_object(),
        .open_us = json_array(),
        .first_us = json_array(),
        .pool = again                    ? NULL
                : str_is(pool, "parked") ? b->parked
                                         : b->none,
        .n = again ? (unsigned)b->live_count : get_num(request, "n", 1),
        .width = get_num(request, "width", 1),
        .pause_ms = get_num(request, "pause_ms", 0),
        .repeat = get_num(request, "repeat", 1),
        .keep = !again && json_is_true(json_object_get(request, "keep")),
        .again = again,
        .begun = now_us(),
    };
    b->busy = true;
    json_object_set_new(j->answer, "open_us", j->open_us);
    json_object_set_new(j->answer, "first_us", j->first_us);
    if (get_steps(j, json_object_get(request, "steps"))) {
        start_some(b);
    } else {
        snprintf(j->why, sizeof(j->why), "malformed steps");
        j->failed = 1;
        finish_job(b);
    }
}

static void close_live(struct bench *b)
{
    while (b->live_count > 0)
        session_close(b->live[--b->live_count]);
}

static void do_close(struct bench *b)
{
    double begun = now_us();
    size_t n = b->live_count;
    json_t *answer;

    close_live(b);
    answer = json_pack("{s:I, s:i, s:s, s:f}", "ok", (json_int_t)n, "failed", 0, "why", "",
                       "took_us", now_us() - begun);
    say(b, answer);
    json_decref(answer);
}

static void on_request(struct bench *b, struct str line)
{
    json_error_t wrong;
    json_t *request = json_loadb(line.p, line.n, 0, &wrong);
    struct str what = get_str(request, "do");

    if (!request)
        say_wrong(b, wrong.text);
    else if (b->busy)
        say_wrong(b, "one request at a time");
    else if (str_is(what, "visit") || str_is(what, "again"))
        do_visit(b, request, str_is(what, "again"));
    else if (str_is(what, "close"))
        do_close(b);
    else
        say_wrong(b, "no such request");
    json_decref(request);
}

static void on_stdin(void *arg)
{
    struct bench *b = arg;
    char *room = buf_room(&b->in, 16 * KiB), *end;
    ssize_t n = room ? read(STDIN_FILENO, room, 16 * KiB) : -1;

    if (n <= 0)
        return loop_stop(b->loop);
    b->in.n += (size_t)n;
    while ((end = memchr(b->in.p, '\n', b->in.n))) {
        size_t len = (size_t)(end - b->in.p);
        on_request(b, (struct str){b->in.p, len});
        b->in.n -= len + 1;
        memmove(b->in.p, end + 1, b->in.n);
    }
}

/* --- starting --- */

static void on_pool(void *arg, const struct err *failed)
{
    struct bench *b = arg;
    json_t *hello;

    if (failed) {
        fprintf(stderr, "bench-engine: %s\n", failed->text);
        b->status = 1;
        return loop_stop(b->loop);
    }
    if (++b->pools_up < 2)
        return;
    hello =
        json_pack("{s:i, s:i, s:i, s:s}", "ok", 1, "failed", 0, "pid", (int)getpid(), "why", "");
    say(b, hello);
    json_decref(hello);
    b->from_stdin = watch_new(b->loop, STDIN_FILENO, on_stdin, b);
}

static int start(struct bench *b, char **argv, struct err *e)
{
    const struct engine_environment environment = {argv[3], argv[4]};
    const struct engine_config engine = {.guest_dir = argv[1],
                                         .cache_dir = argv[2],
                                         .environments = &environment,
                                         .environment_count = 1};
    struct pool_config pool = {.name = "none", .environment = environment};

    limits_default(&pool.limits);
    b->ready = (unsigned)strtoul(argv[5], NULL, 10);
    b->loop = loop_new(&(struct err){0});
    b->engine = engine_new(b->loop, &engine, e);
    if (!b->engine)
        return -1;
    signal(SIGPIPE, SIG_IGN); /* after the warden was forked: its children would inherit it */
    b->pause = timer_new(b->loop, on_pause, b);
    b->none = pool_start(b->engine, &pool, on_pool, b);
    pool.name = "parked";
    pool.ready = b->ready;
    b->parked = pool_start(b->engine, &pool, on_pool, b);
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct err e;

    if (argc != 6) {
        fprintf(stderr, "usage: bench-engine GUEST-DIR CACHE-DIR PYTHON PRELOAD READY\n");
        return 2;
    }
    buf_init(&b.in, REQUEST_MAX);
    if (start(&b, argv, &e) < 0) {
        fprintf(stderr, "bench-engine: %s\n", e.text);
        b.status = 1;
    } else {
        loop_run(b.loop);
    }
    close_live(&b);
    engine_free(b.engine);
    loop_free(b.loop);
    buf_done(&b.in);
    return b.status;
}
