/* The doctor's smoke test: starts an engine, runs one cell in a sandbox and closes all of it. */
#include "cli/doctor.h"

#include "loop/loop.h"

#include <signal.h>
#include <stdio.h>

struct course {
    struct smoke_test *t;    /* borrowed */
    struct loop *loop;       /* owned */
    struct engine *engine;   /* owned */
    struct pool *pool;       /* borrowed from engine */
    struct session *session; /* owned; NULL until open */
    int64_t begun, at;       /* microseconds: of all, of the step in hand */
    char said[64];
    size_t said_n;
};

static double lap(struct course *c)
{
    int64_t was = c->at;

    c->at = time_mono_us();
    return (double)(c->at - was) / 1000;
}

static void fail(struct course *c, const struct err *e)
{
    c->t->failed = *e;
    loop_stop(c->loop);
}

static void on_event(void *arg, const struct event *ev)
{
    struct course *c = arg;

    if (ev->kind == EVENT_STDOUT && c->said_n + ev->text.n < sizeof(c->said)) {
        memcpy(c->said + c->said_n, ev->text.p, ev->text.n);
        c->said_n += ev->text.n;
    }
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct course *c = arg;
    struct err e;

    c->t->cell_ms = lap(c);
    c->t->answer_ms = (double)(c->at - c->begun) / 1000;
    if (o->status != OUTCOME_OK)
        err_set(&e, ERR_HOST, "the cell ended as %s: %s", outcome_status_name(o->status), o->line);
    else if (!str_is((struct str){c->said, c->said_n}, "42\n"))
        err_set(&e, ERR_HOST, "6*7 was answered with '%.*s'", (int)c->said_n, c->said);
    else
        c->t->ran = true;
    if (c->t->ran)
        loop_stop(c->loop);
    else
        fail(c, &e);
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    static const struct exec_callbacks callbacks = {on_event, on_outcome};
    const struct exec_config cell = {.kind = EXEC_CELL, .code = STR("print(6*7)")};
    struct course *c = arg;
    struct err e;

    c->session = s;
    c->t->create_ms = lap(c);
    if (failed)
        fail(c, failed);
    else if (!exec_start(s, &cell, &callbacks, c, &e))
        fail(c, &e);
}

static void on_pool(void *arg, const struct err *failed)
{
    struct course *c = arg;

    c->t->interpreter_ms = lap(c);
    if (failed)
        fail(c, failed);
    else
        session_open(c->pool, on_open, c);
}

static int start(struct course *c, struct err *e)
{
    const struct engine_config engine = {.guest_dir = c->t->guest_dir};
    struct pool_config pool = {.name = "doctor", .python = c->t->python};

    limits_default(&pool.limits);
    c->loop = loop_new();
    c->engine = engine_new(c->loop, &engine, e);
    if (!c->engine)
        return -1;
    signal(SIGPIPE, SIG_IGN); /* after the warden has been forked, which would hand it on */
    c->pool = pool_start(c->engine, &pool, on_pool, c);
    return 0;
}

void smoke_test_run(struct smoke_test *t)
{
    struct course c = {.t = t, .begun = time_mono_us()};

    c.at = c.begun;
    if (start(&c, &t->failed) == 0)
        loop_run(c.loop);
    if (c.session)
        session_close(c.session);
    engine_free(c.engine);
    loop_free(c.loop);
}
