/*
 * The engine from the inside of its own API, on real sandboxes: what the command
 * line cannot show, since it runs one thing after the other in one session. Each
 * scene is run by name from test_engine.py, as root and as an ordinary user.
 *
 * A scene reads top to bottom: run() and friends turn the loop until what they wait
 * for has come.
 */
#include "engine/engine.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT_MAX    4096
#define PATIENCE_MS 60000

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct loop *loop;
static struct engine *engine;
static struct pool *pool;

/* What became of one execution. */
struct run {
    struct exec *exec;
    bool done;
    unsigned order; /* 1 for the first outcome of the scene */
    struct outcome outcome;
    char text[TEXT_MAX]; /* stdout and result */
    char late[TEXT_MAX];
    struct session *close_on_event; /* closes it at the first event */
};

static unsigned outcomes;

static void put(char *to, struct str s)
{
    size_t n = strlen(to);

    snprintf(to + n, TEXT_MAX - n, "%.*s", (int)s.n, s.p);
}

static void on_event(void *arg, const struct event *ev)
{
    struct run *r = arg;

    if (ev->kind == EVENT_STDOUT)
        put(ev->late ? r->late : r->text, ev->text);
    for (size_t i = 0; ev->kind == EVENT_RESULT && i < ev->bundle.count; i++)
        if (str_is(ev->bundle.part[i].mime, "text/plain"))
            put(r->text, ev->bundle.part[i].data);
    if (r->close_on_event) {
        struct session *s = r->close_on_event;
        r->close_on_event = NULL;
        session_close(s);
    }
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct run *r = arg;

    CHECK(!r->done); /* exactly one */
    r->done = true;
    r->order = ++outcomes;
    r->outcome = *o;
    loop_stop(loop);
}

static void on_impatient(void *arg)
{
    fprintf(stderr, "waited too long for %s\n", (const char *)arg);
    exit(1);
}

/* Turns the loop until *flag; ticks so that a flag set elsewhere is seen. */
static void on_tick(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void wait_for(const bool *flag, const char *what)
{
    struct timer *limit = timer_new(loop, on_impatient, (void *)(uintptr_t)what);
    struct timer *tick = timer_new(loop, on_tick, NULL);

    timer_set(limit, PATIENCE_MS);
    while (!*flag) {
        timer_set(tick, 5);
        loop_run(loop);
    }
    timer_free(limit);
    timer_free(tick);
}

static void pause_ms(uint64_t ms)
{
    int64_t until = time_mono_us() + (int64_t)ms * 1000;
    struct timer *tick = timer_new(loop, on_tick, NULL);

    while (time_mono_us() < until) {
        timer_set(tick, 5);
        loop_run(loop);
    }
    timer_free(tick);
}

static void start_with(struct run *r, struct session *s, enum exec_kind kind, const char *code,
                       const struct exec_env *env, size_t env_count)
{
    static const struct exec_callbacks cb = {on_event, on_outcome};
    struct exec_config config = {
        .kind = kind, .code = str_of(code), .env = env, .env_count = env_count};
    struct err e;

    *r = (struct run){.close_on_event = r->close_on_event};
    r->exec = exec_start(s, &config, &cb, r, &e);
    if (!r->exec)
        fprintf(stderr, "%s\n", e.text);
    CHECK(r->exec);
}

static void start(struct run *r, struct session *s, enum exec_kind kind, const char *code)
{
    start_with(r, s, kind, code, NULL, 0);
}

static void finish(struct run *r)
{
    wait_for(&r->done, "an outcome");
}

/* Until it has printed something, and so has begun. */
static void wait_said(const struct run *r)
{
    for (int i = 0; i < PATIENCE_MS && !*r->text; i++)
        pause_ms(1);
    CHECK(*r->text);
}

/* Runs a cell that must end well and returns what it said. */
static const char *run(struct session *s, const char *code)
{
    static struct run r;

    start(&r, s, EXEC_CELL, code);
    finish(&r);
    if (r.outcome.status != OUTCOME_OK)
        fprintf(stderr, "%s: %s\n", outcome_status_name(r.outcome.status), r.outcome.line);
    CHECK(r.outcome.status == OUTCOME_OK);
    return r.text;
}

struct opened {
    bool done;
    struct session *session;
};

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    struct opened *o = arg;

    if (failed)
        fprintf(stderr, "%s\n", failed->text);
    CHECK(s);
    o->session = s;
    o->done = true;
    loop_stop(loop);
}

static struct session *open_session(void)
{
    struct opened o = {0};

    session_open(pool, on_open, &o);
    wait_for(&o.done, "a session");
    return o.session;
}

static bool is_up;

static void on_ready(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed)
        fprintf(stderr, "%s\n", failed->text);
    CHECK(!failed);
    is_up = true;
    loop_stop(loop);
}

static void wait_parked(unsigned count)
{
    for (int i = 0; i < PATIENCE_MS / 10 && pool_parked(pool) < count; i++)
        pause_ms(10);
    CHECK(pool_parked(pool) >= count);
}

/* --- the scenes --- */

static void parked_is_refilled(void)
{
    struct session *s[5];

    wait_parked(3);
    for (size_t i = 0; i < COUNT(s); i++) {
        s[i] = open_session();
        CHECK(strcmp(run(s[i], "6 * 7"), "42") == 0);
    }
    wait_parked(3);
    for (size_t i = 0; i < COUNT(s); i++)
        session_close(s[i]);
}

/* Some get what is parked, some what is on its way there, some what is made for them. */
static void many_at_once(void)
{
    struct opened o[12] = {0};
    char code[32], answer[32];

    for (int round = 0; round < 2; round++) {
        memset(o, 0, sizeof(o));
        for (size_t i = 0; i < COUNT(o); i++)
            session_open(pool, on_open, &o[i]);
        for (size_t i = 0; i < COUNT(o); i++) {
            wait_for(&o[i].done, "a session");
            snprintf(code, sizeof(code), "x = %zu", i);
            run(o[i].session, code);
        }
        for (size_t i = 0; i < COUNT(o); i++) {
            snprintf(answer, sizeof(answer), "%zu", i);
            CHECK(strcmp(run(o[i].session, "x"), answer) == 0);
            session_close(o[i].session);
        }
    }
    wait_parked(3);
}

static void zygote_is_replaced(void)
{
    struct session *old, *new;
    char seed[TEXT_MAX];

    wait_parked(3);
    old = open_session();
    run(old, "x = 'kept'");
    snprintf(seed, sizeof(seed), "%s", run(old, "hash('retort')"));
    for (int i = 0; i < 100; i++) { /* the clock of this scene is 1.5 s */
        pause_ms(200);
        new = open_session();
        bool same = strcmp(run(new, "hash('retort')"), seed) == 0;
        session_close(new);
        if (!same)
            break;
        CHECK(i < 99);
    }
    CHECK(strcmp(run(old, "x"), "'kept'") == 0); /* what the old one made lives on */
    session_close(old);
}

static void random_state_differs(void)
{
    static const char draw[] = "import random, uuid, secrets, os, ssl, tempfile\n"
                               "import numpy as np\n"
                               "print(random.random(), np.random.rand(), uuid.uuid4(),"
                               " secrets.token_hex(8), ssl.RAND_bytes(8).hex(),"
                               " tempfile.mktemp(), sep='\\n')";
    char seen[8][TEXT_MAX];

    for (size_t i = 0; i < COUNT(seen); i++) {
        struct session *s = open_session();
        snprintf(seen[i], TEXT_MAX, "%s", run(s, draw));
        session_close(s);
    }
    for (size_t i = 0; i < COUNT(seen); i++) {
        for (size_t j = i + 1; j < COUNT(seen); j++) {
            char a[TEXT_MAX], b[TEXT_MAX], *ka = NULL, *kb = NULL;
            memcpy(a, seen[i], sizeof(a));
            memcpy(b, seen[j], sizeof(b));
            char *x = strtok_r(a, "\n", &ka), *y = strtok_r(b, "\n", &kb);
            for (int line = 0; line < 6; line++) {
                CHECK(x && y && strcmp(x, y) != 0);
                x = strtok_r(NULL, "\n", &ka);
                y = strtok_r(NULL, "\n", &kb);
            }
        }
    }
}

static void command_beside_a_cell(void)
{
    struct session *s = open_session();
    static struct run cell, command;

    start(&cell, s, EXEC_CELL,
          "import os, time\nprint('up', flush=True)\n"
          "while not os.path.exists('/tmp/go'): time.sleep(0.01)");
    wait_said(&cell);
    start(&command, s, EXEC_COMMAND, "echo beside; exit 3");
    finish(&command);
    CHECK(strcmp(command.text, "beside\n") == 0);
    CHECK(command.outcome.status == OUTCOME_RAISED && command.outcome.exit_code == 3);
    CHECK(!cell.done);
    start(&command, s, EXEC_COMMAND, "touch /tmp/go");
    finish(&command);
    finish(&cell);
    CHECK(cell.outcome.status == OUTCOME_OK);
    session_close(s);
}

static void interrupt_keeps_variables(void)
{
    struct session *s = open_session();
    static struct run r;

    run(s, "x = 5");
    start(&r, s, EXEC_CELL, "import time\nprint('started', flush=True)\ntime.sleep(60)");
    wait_said(&r);
    exec_interrupt(r.exec);
    finish(&r);
    CHECK(r.outcome.status == OUTCOME_INTERRUPTED && !r.outcome.state_lost);
    CHECK(strcmp(run(s, "x"), "5") == 0);
    session_close(s);
}

static void cells_queue_in_order(void)
{
    struct session *s = open_session();
    static struct run r[64], extra;
    static const struct exec_callbacks cb = {on_event, on_outcome};
    struct exec_config config = {.kind = EXEC_CELL, .code = STR("1")};
    struct err e;
    char code[64];

    for (unsigned i = 0; i < COUNT(r); i++) {
        snprintf(code, sizeof(code), "print(%u)", i);
        start(&r[i], s, EXEC_CELL, code);
    }
    CHECK(!exec_start(s, &config, &cb, &extra, &e) && e.kind == ERR_BUSY);
    for (unsigned i = 0; i < COUNT(r); i++) {
        finish(&r[i]);
        snprintf(code, sizeof(code), "%u\n", i);
        CHECK(strcmp(r[i].text, code) == 0 && r[i].order == i + 1);
    }
    session_close(s);
}

static void late_output_is_kept(void)
{
    struct session *s = open_session();
    static struct run r;

    run(s, "import threading, time\n"
           "def later():\n    time.sleep(0.5); print('from the thread')\n"
           "threading.Thread(target=later).start()");
    pause_ms(1500);
    start(&r, s, EXEC_CELL, "print('now')");
    finish(&r);
    CHECK(strcmp(r.late, "from the thread\n") == 0 && strcmp(r.text, "now\n") == 0);
    session_close(s);
}

static void closing_ends_what_runs(void)
{
    struct session *s = open_session();
    static struct run cell, queued, command;

    start(&cell, s, EXEC_CELL, "import time; time.sleep(60)");
    start(&queued, s, EXEC_CELL, "1");
    start(&command, s, EXEC_COMMAND, "sleep 60");
    pause_ms(200);
    session_close(s);
    CHECK(cell.done && cell.outcome.status == OUTCOME_SESSION_LOST);
    CHECK(queued.done && command.done);
}

static void closing_from_a_callback(void)
{
    static struct run r;

    for (int i = 0; i < 20; i++) {
        struct session *s = open_session();
        r.close_on_event = s;
        start(&r, s, EXEC_CELL, "print('x', flush=True)\nfor i in range(1000): print(i)");
        finish(&r);
        CHECK(r.outcome.status == OUTCOME_SESSION_LOST);
    }
}

static void dead_kernel_is_replaced(void)
{
    struct session *s = open_session();
    static struct run r;

    for (int i = 0; i < 5; i++) {
        run(s, "x = 1; open('kept', 'a').write('.')");
        start(&r, s, EXEC_CELL, "import os; os.kill(os.getpid(), 11)");
        finish(&r);
        CHECK(r.outcome.status == OUTCOME_DIED && r.outcome.state_lost);
        CHECK(strcmp(run(s, "'x' in globals()"), "False") == 0);
    }
    CHECK(strcmp(run(s, "len(open('kept').read())"), "5") == 0);
    session_close(s);
}

/* Long enough for a rested interpreter to give pages back, which must not change a single value. */
static void resting_changes_nothing(void)
{
    struct session *s = open_session();

    run(s, "import pandas as pd, numpy as np, hashlib\n"
           "d = pd.DataFrame(np.random.rand(20000, 8))\n"
           "words = {str(i): [i] * 3 for i in range(50000)}\n"
           "def digest(): return hashlib.sha256(d.to_csv().encode() + "
           "repr(words).encode()).hexdigest()\n"
           "before = digest(); d.describe()");
    pause_ms(6500);
    CHECK(strcmp(run(s, "digest() == before"), "True") == 0);
    pause_ms(6500);
    CHECK(strcmp(run(s, "words['7'].append(1); len(words['7']), digest() == before"),
                 "(4, False)") == 0);
    session_close(s);
}

/* Whatever one session does to the engine, another one's answers keep coming. */
static void neighbour_of_a_flood(void)
{
    static const char *const floods[] = {
        "while True: print('x' * 1000)",
        "import os\nwhile True: os.write(1, b'o'); os.write(2, b'e')",
        "from IPython.display import display, HTML\nwhile True: display(HTML('x' * 10000))",
        "import os\nwhile True: os.fork()",
        "x = []\nwhile True: x.append(bytearray(1 << 20))",
    };
    struct session *bad = open_session(), *good = open_session();
    static struct run flood, cell;

    for (size_t i = 0; i < COUNT(floods); i++) {
        unsigned answers = 0;
        start(&flood, bad, EXEC_CELL, floods[i]);
        for (int n = 0; n < 40 && !flood.done; n++) {
            start(&cell, good, EXEC_CELL, "6 * 7");
            finish(&cell);
            CHECK(cell.outcome.status == OUTCOME_OK && strcmp(cell.text, "42") == 0);
            answers++;
            pause_ms(20);
        }
        CHECK(answers > 0); /* how many depends on how soon the flood met its limit */
        if (!flood.done)
            exec_interrupt(flood.exec);
        finish(&flood);
        CHECK(flood.outcome.status != OUTCOME_OK);
        if (flood.outcome.status == OUTCOME_SESSION_LOST) {
            session_close(bad);
            bad = open_session();
        }
    }
    session_close(bad);
    session_close(good);
}

/* An interrupt that comes too late for its cell must not hit the next. */
static void late_interrupt_hits_nobody(void)
{
    struct session *s = open_session();
    static struct run first, second;

    for (int i = 0; i < 200; i++) {
        start(&first, s, EXEC_CELL, "x = sum(range(2000))");
        start(&second, s, EXEC_CELL, "y = sum(range(20000)); y");
        for (int spin = 0; spin < i % 20 && !first.done; spin++)
            pause_ms(0);
        if (!first.done)
            exec_interrupt(first.exec);
        finish(&first);
        finish(&second);
        CHECK(second.outcome.status == OUTCOME_OK);
    }
    session_close(s);
}

/* Variables of one execution are there while it runs, and what they were before comes back. */
static void variables_of_one_execution(void)
{
    const struct exec_env env[] = {
        {STR("TOKEN"), STR("s3cret = with spaces")},
        {STR("HOME"),  STR("/tmp")                },
        {STR("EMPTY"), STR("")                    },
    };
    const char *code = "import os\nprint(os.environ.get('TOKEN'), os.environ['HOME'], "
                       "os.environ.get('EMPTY'), os.popen('echo $TOKEN').read())";
    struct session *s = open_session();
    static struct run cell, command;
    char before[TEXT_MAX];

    snprintf(before, sizeof(before), "%s", run(s, code));
    CHECK(strncmp(before, "None /", 6) == 0);
    start_with(&cell, s, EXEC_CELL, code, env, COUNT(env));
    start_with(&command, s, EXEC_COMMAND, "echo \"$TOKEN|$HOME|${EMPTY-unset}|$PATH\"", env,
               COUNT(env));
    finish(&cell);
    finish(&command);
    CHECK(strstr(cell.text, "s3cret = with spaces /tmp  s3cret = with spaces\n"));
    CHECK(strstr(command.text, "s3cret = with spaces|/tmp||/"));
    CHECK(strstr(run(s, code), before));
    start(&command, s, EXEC_COMMAND, "echo \"${TOKEN-gone}\"");
    finish(&command);
    CHECK(strcmp(command.text, "gone\n") == 0);
    session_close(s);
}

/* Held, the code waits with its output; let go, all of it comes. */
static void held_code_waits(void)
{
    const char *flood = "import os, time\nprint('begun', flush=True); time.sleep(0.2)\nfor i in "
                        "range(400): os.write(1, b'x' * 1000)\n"
                        "open('/tmp/through', 'w').close()";
    struct session *s = open_session();
    static struct run held, other;

    run(s, "import os");
    start(&held, s, EXEC_CELL, flood);
    wait_said(&held);
    exec_hold(held.exec, true);
    pause_ms(300);
    start(&other, s, EXEC_COMMAND, "ls /tmp/through");
    finish(&other);
    CHECK(other.outcome.exit_code != 0); /* it got no further than the pipe is long */
    CHECK(!held.done);
    exec_hold(held.exec, false);
    finish(&held);
    CHECK(held.outcome.status == OUTCOME_OK);
    CHECK(held.outcome.output_bytes == 400000 + 6);
    CHECK(strcmp(run(s, "os.path.exists('/tmp/through')"), "True") == 0);

    start(&held, s, EXEC_COMMAND,
          "echo begun; sleep 0.2; head -c 400000 /dev/zero | tr '\\0' x; touch /tmp/too");
    wait_said(&held);
    exec_hold(held.exec, true);
    pause_ms(300);
    CHECK(!held.done);
    exec_interrupt(held.exec); /* whoever holds it may still end it */
    finish(&held);
    CHECK(held.outcome.status == OUTCOME_INTERRUPTED);
    session_close(s);
}

static bool is_lost;

static void on_lost(void *arg, const char *why)
{
    (void)arg;
    CHECK(*why);
    is_lost = true;
    loop_stop(loop);
}

/* The interpreter sends what it may not send: that ends its sandbox, and nothing else. */
static void owner_hears_of_the_end(void)
{
    struct session *s = open_session(), *neighbour = open_session();
    static struct run r;

    session_on_lost(s, on_lost, NULL);
    start(&r, s, EXEC_CELL, "import socket; socket.socket(fileno=3).send(b'no such message')");
    finish(&r);
    CHECK(r.outcome.status == OUTCOME_SESSION_LOST);
    wait_for(&is_lost, "the word of its end");
    session_close(s);
    is_lost = false;
    session_on_lost(neighbour, on_lost, NULL);
    CHECK(strcmp(run(neighbour, "6 * 7"), "42") == 0);
    session_close(neighbour);
    pause_ms(50);
    CHECK(!is_lost); /* who closes it knows */
}

static void restarted_on_demand(void)
{
    struct session *s = open_session();
    static struct run r;

    run(s, "x = 1; open('kept', 'w').close()");
    session_restart(s);
    session_restart(s); /* no harm */
    start(&r, s, EXEC_CELL, "import os; ('x' in globals(), os.path.exists('kept'))");
    finish(&r);
    CHECK(r.outcome.status == OUTCOME_OK);
    CHECK(strcmp(r.text, "(False, True)") == 0);
    CHECK(!r.outcome.state_lost); /* it was asked for */
    start(&r, s, EXEC_CELL, "import time; print('up', flush=True); time.sleep(60)");
    wait_said(&r);
    session_restart(s);
    finish(&r);
    CHECK(r.outcome.status == OUTCOME_DIED);
    CHECK(strcmp(run(s, "6 * 7"), "42") == 0);
    session_close(s);
}

/* Whoever connects to the proxy's port inside is accepted outside, and nothing else is there. */
static void proxy_is_served_from_outside(void)
{
    struct session *s = open_session();
    int listener = session_take_listener(s);
    static struct run r;
    char said[64] = "";
    int peer;

    CHECK(listener >= 0);
    CHECK(session_take_listener(s) < 0);
    start(&r, s, EXEC_CELL,
          "import socket\nc = socket.create_connection(('127.0.0.1', 3128))\n"
          "c.sendall(b'hello'); print(c.recv(99).decode())");
    do {
        pause_ms(1);
        peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    } while (peer < 0 && errno == EAGAIN);
    CHECK(peer >= 0);
    CHECK(recv(peer, said, sizeof(said) - 1, 0) == 5);
    CHECK(strcmp(said, "hello") == 0);
    CHECK(send(peer, "and you", 7, 0) == 7);
    finish(&r);
    CHECK(strcmp(r.text, "and you\n") == 0);
    close(peer);
    CHECK(strcmp(run(s, "s = socket.socket(); s.connect_ex(('203.0.113.1', 9)) != 0"), "True") ==
          0);
    close(listener);
    session_close(s);
}

/* One guest's large display is more than the house holds; that is the end of that guest alone, and
 * one that only prints has a shorter end kept. */
static void house_holds_no_more_than_it_may(void)
{
    struct session *s = open_session(), *neighbour = open_session();
    static struct run r;

    start(&r, s, EXEC_CELL, "display({'text/plain': 'x' * 6_000_000}, raw=True)");
    finish(&r);
    CHECK(r.outcome.status == OUTCOME_SESSION_LOST);
    session_close(s);
    CHECK(strcmp(run(neighbour, "display({'text/plain': 'x' * 600_000}, raw=True); 6 * 7"), "42") ==
          0);
    start(&r, neighbour, EXEC_CELL, "import os\nfor i in range(40): os.write(1, b'x' * 1_000_000)");
    finish(&r);
    CHECK(r.outcome.status == OUTCOME_OK);
    CHECK(r.outcome.limits_hit == IN(LIMIT_OUTPUT));
    CHECK(r.outcome.output_bytes == 40000000);
    CHECK(strcmp(run(neighbour, "6 * 7"), "42") == 0);
    session_close(neighbour);
}

struct scene {
    const char *name;
    void (*play)(void);
    const char *preload;
    uint64_t recycle_ms;
    unsigned ready;
    bool proxy;
    uint64_t held_max;
};

static const struct scene scenes[] = {
    {"parked_is_refilled",              parked_is_refilled,              "",               0,    3, false, 0      },
    {"many_at_once",                    many_at_once,                    "",               0,    3, false, 0      },
    {"zygote_is_replaced",              zygote_is_replaced,              "",               1500, 3, false, 0      },
    {"random_state_differs",            random_state_differs,            "numpy,ssl,uuid", 0,    0, false, 0      },
    {"command_beside_a_cell",           command_beside_a_cell,           "",               0,    0, false, 0      },
    {"interrupt_keeps_variables",       interrupt_keeps_variables,       "",               0,    0, false, 0      },
    {"cells_queue_in_order",            cells_queue_in_order,            "",               0,    0, false, 0      },
    {"late_output_is_kept",             late_output_is_kept,             "",               0,    0, false, 0      },
    {"closing_ends_what_runs",          closing_ends_what_runs,          "",               0,    0, false, 0      },
    {"closing_from_a_callback",         closing_from_a_callback,         "",               0,    2, false, 0      },
    {"dead_kernel_is_replaced",         dead_kernel_is_replaced,         "",               0,    1, false, 0      },
    {"neighbour_of_a_flood",            neighbour_of_a_flood,            "",               0,    0, false, 0      },
    {"late_interrupt_hits_nobody",      late_interrupt_hits_nobody,      "",               0,    0, false, 0      },
    {"resting_changes_nothing",         resting_changes_nothing,         "numpy,pandas",   0,    1, false, 0      },
    {"variables_of_one_execution",      variables_of_one_execution,      "",               0,    0, false, 0      },
    {"held_code_waits",                 held_code_waits,                 "",               0,    0, false, 0      },
    {"owner_hears_of_the_end",          owner_hears_of_the_end,          "",               0,    0, false, 0      },
    {"restarted_on_demand",             restarted_on_demand,             "",               0,    1, false, 0      },
    {"proxy_is_served_from_outside",    proxy_is_served_from_outside,    "",               0,    1, true,  0      },
    {"house_holds_no_more_than_it_may", house_holds_no_more_than_it_may, "",               0,    0, false, 2 * MiB},
};

int main(int argc, char **argv)
{
    const struct scene *scene = NULL;
    struct engine_config config = {0};
    struct err e;

    for (size_t i = 0; i < COUNT(scenes); i++) {
        if (argc == 2 && strcmp(argv[1], "--list") == 0)
            puts(scenes[i].name);
        if (argc == 3 && strcmp(argv[1], scenes[i].name) == 0)
            scene = &scenes[i];
    }
    if (!scene)
        return argc == 2 ? 0 : 2;
    struct engine_environment environment = {.preload = scene->preload};
    config.environments = &environment;
    config.environment_count = 1;
    config.guest_dir = argv[2];
    config.held_max = scene->held_max;
    loop = loop_new(&(struct err){0});
    engine = engine_new(loop, &config, &e);
    CHECK(engine);
    struct pool_config pc = {.name = "test",
                             .environment = environment,
                             .ready = scene->ready,
                             .recycle_ms = scene->recycle_ms,
                             .proxy = scene->proxy};
    limits_default(&pc.limits);
    pc.limits.memory_bytes = 256 * MiB;
    pc.limits.wall_ms = 20000;
    pool = pool_start(engine, &pc, on_ready, NULL);
    wait_for(&is_up, "the pool");
    scene->play();
    engine_free(engine);
    loop_free(loop);
    return 0;
}
