/*
 * The doctor's smoke test: starts an engine, runs one cell in a sandbox, then draws random numbers
 * there and in a second sandbox, and closes all of it. Both sandboxes are forks of one interpreter,
 * with all the state that its generators had.
 */
#include "cli/doctor.h"

#include "loop/loop.h"

#include <signal.h>
#include <stdio.h>

#define SESSIONS 2
#define SAID_MAX KiB

/* One line for each generator: its name, and what it gave. */
static const char draw[] = "import ctypes, os, random, secrets, uuid\n"
                           "got = ctypes.create_string_buffer(16)\n"
                           "ctypes.CDLL(None).getentropy(got, 16)\n"
                           "print('libc', got.raw.hex())\n"
                           "print('os.urandom', os.urandom(16).hex())\n"
                           "print('random', random.getrandbits(128))\n"
                           "print('secrets', secrets.token_hex(16))\n"
                           "print('uuid4', uuid.uuid4())\n"
                           "try:\n"
                           "    import ssl\n"
                           "    print('OpenSSL', ssl.RAND_bytes(16).hex())\n"
                           "except ImportError:\n"
                           "    pass\n";
static const char draw_numpy[] = "import numpy\n"
                                 "print('numpy', numpy.random.bytes(16).hex())\n";

/* In this order; a session is opened when the first step needs it. */
enum smoke_step { STEP_ANSWER, STEP_DRAW, STEP_DRAW_AGAIN, STEP_COUNT };
static const size_t session_of[STEP_COUNT] = {0, 0, 1};

struct course {
    struct smoke_test *t;              /* borrowed */
    struct loop *loop;                 /* owned */
    struct engine *engine;             /* owned */
    struct pool *pool;                 /* borrowed from engine */
    struct session *session[SESSIONS]; /* owned; NULL until open */
    int64_t begun, at;                 /* microseconds: of all, of the step in hand */
    enum smoke_step step;
    char said[STEP_COUNT][SAID_MAX];
    size_t said_n[STEP_COUNT];
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
    size_t *n = &c->said_n[c->step];

    if (ev->kind == EVENT_STDOUT && *n + ev->text.n < SAID_MAX) {
        memcpy(c->said[c->step] + *n, ev->text.p, ev->text.n);
        *n += ev->text.n;
    }
}

static void add_name(char list[128], const char *line)
{
    size_t n = strlen(list);

    snprintf(list + n, 128 - n, "%s%.*s", n ? ", " : "", (int)strcspn(line, " "), line);
}

/* Both cells print the same names in the same order, unless one of them was cut short. */
static void compare(struct course *c)
{
    char *save[2] = {NULL, NULL};
    char *a = strtok_r(c->said[STEP_DRAW], "\n", &save[0]);
    char *b = strtok_r(c->said[STEP_DRAW_AGAIN], "\n", &save[1]);
    struct err e;

    c->t->drew = a && b;
    for (; a && b; a = strtok_r(NULL, "\n", &save[0]), b = strtok_r(NULL, "\n", &save[1])) {
        add_name(c->t->drawn, a);
        if (strcmp(a, b) == 0)
            add_name(c->t->same, a);
    }
    if (c->t->drew && !a && !b) {
        loop_stop(c->loop);
        return;
    }
    c->t->drew = false;
    err_set(&e, ERR_HOST, "two sessions did not draw from the same generators");
    fail(c, &e);
}

static void next(struct course *c);

static void on_outcome(void *arg, const struct outcome *o)
{
    struct course *c = arg;
    struct err e;

    if (c->step == STEP_ANSWER) {
        c->t->cell_ms = lap(c);
        c->t->answer_ms = (double)(c->at - c->begun) / 1000;
    }
    if (o->status != OUTCOME_OK) {
        err_set(&e, ERR_HOST, "the cell ended as %s: %s", outcome_status_name(o->status), o->line);
        fail(c, &e);
        return;
    }
    if (c->step == STEP_ANSWER) {
        c->t->ran = str_is((struct str){c->said[0], c->said_n[0]}, "42\n");
        if (!c->t->ran) {
            err_set(&e, ERR_HOST, "6*7 was answered with '%.*s'", (int)c->said_n[0], c->said[0]);
            fail(c, &e);
            return;
        }
    }
    c->step++;
    if (c->step < STEP_COUNT)
        next(c);
    else
        compare(c);
}

static void run_cell(struct course *c)
{
    static const struct exec_callbacks callbacks = {on_event, on_outcome};
    char code[sizeof(draw) + sizeof(draw_numpy)];
    struct exec_config cell = {.kind = EXEC_CELL, .code = STR("print(6*7)")};
    struct err e;

    if (c->step != STEP_ANSWER) {
        snprintf(code, sizeof(code), "%s%s", draw, c->t->has_numpy ? draw_numpy : "");
        cell.code = str_of(code);
    }
    if (!exec_start(c->session[session_of[c->step]], &cell, &callbacks, c, &e))
        fail(c, &e);
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    struct course *c = arg;

    c->session[session_of[c->step]] = s;
    if (c->step == STEP_ANSWER)
        c->t->create_ms = lap(c);
    if (failed)
        fail(c, failed);
    else
        run_cell(c);
}

static void next(struct course *c)
{
    if (c->session[session_of[c->step]])
        run_cell(c);
    else
        session_open(c->pool, on_open, c);
}

static void on_pool(void *arg, const struct err *failed)
{
    struct course *c = arg;

    c->t->interpreter_ms = lap(c);
    if (failed)
        fail(c, failed);
    else
        next(c);
}

static int start(struct course *c, struct err *e)
{
    const struct engine_environment environment = {
        .python = c->t->python,
        .preload = c->t->has_numpy ? "random,uuid,numpy" : "random,uuid",
    };
    const struct engine_config engine = {
        .guest_dir = c->t->guest_dir, .environments = &environment, .environment_count = 1};
    struct pool_config pool = {.name = "doctor", .environment = environment};

    limits_default(&pool.limits);
    c->loop = loop_new(e);
    if (!c->loop)
        return -1;
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
    for (size_t i = 0; i < SESSIONS; i++)
        if (c.session[i])
            session_close(c.session[i]);
    engine_free(c.engine);
    loop_free(c.loop);
}
