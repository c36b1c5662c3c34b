/*
 * A session at home against a hostile lender: whatever comes over the channel, in pieces of any
 * length and between any calls of the session's owner, nothing crashes or leaks, every execution
 * has its one outcome, and every question about files its one answer.
 *
 * links: src/engine/exec_end.c src/engine/engine.c src/engine/event.c src/engine/guest.c
 * links: src/engine/guest_messages.c src/engine/learn.c src/engine/limits.c
 * links: src/engine/outcome.c src/engine/output.c src/engine/parked.c src/engine/pool.c
 * links: src/engine/pool_alive.c src/engine/session.c
 * links: src/engine/scan.c src/engine/stream.c src/engine/tree.c
 * links: src/engine/verdict.c
 * links: src/engine/mime.c src/engine/workspace.c src/sandbox/cgroup.c
 * links: src/engine/borrowed.c src/engine/borrowed_files.c
 * links: src/engine/lend_message.c src/engine/lend_pipe.c
 */
#include "engine/lend_int.h"
#include "warden/warden.h"

#include "support/fuzz.h"

#include <sys/mman.h>

#define EXECS     16
#define SILENT_MS 1000

struct record {
    struct exec *exec; /* NULL: free, or it has its outcome */
};

static struct {
    struct loop *loop;
    struct engine *engine;
    struct pool *pool;
    struct channel channel;
    bool channel_open, is_lost;
    unsigned answers; /* of session_borrow() */
    struct session *session;
    struct record records[EXECS];
    struct borrowed_ask ask;
    int spool;
    bool asked;
    uint8_t room; /* how many more pieces the channel takes */
} run;

static int warden_end;

void environments_learn(struct engine *en, const struct engine_config *config)
{
    (void)en;
    (void)config;
}

void environments_forget(struct engine *en)
{
    (void)en;
}

int environments_hand_over(struct engine *en, const struct engine_config *config, struct err *e)
{
    (void)config;
    (void)e;
    en->warden_pidfd = -1;
    return take_fd(&warden_end);
}

int environment_number(const struct engine *en, const struct engine_environment *env, struct err *e)
{
    (void)en;
    (void)env;
    (void)e;
    return 0;
}

/* --- the channel --- */

static bool put(struct channel *c, struct str bytes)
{
    EXPECT(c == &run.channel && run.channel_open);
    touch(bytes);
    return run.room > 0 && run.room--;
}

static void hold(struct channel *c, bool held)
{
    (void)held;
    EXPECT(c == &run.channel && run.channel_open);
}

static void close_channel(struct channel *c)
{
    EXPECT(c == &run.channel && run.channel_open);
    run.channel_open = false;
}

static const struct channel_ops ops = {put, hold, close_channel};

static int no_spool(void *arg, struct err *e)
{
    (void)arg;
    return err_set(e, ERR_HOST, "nobody asks for one");
}

/* --- the owner --- */

static void on_event(void *arg, const struct event *ev)
{
    struct record *r = arg;

    EXPECT(r->exec && event_kind_name(ev->kind));
    touch(ev->text);
    touch(ev->file.path);
    for (size_t i = 0; i < ev->bundle.count; i++)
        touch(ev->bundle.part[i].data);
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct record *r = arg;

    EXPECT(r->exec && outcome_status_name(o->status));
    EXPECT(memchr(o->line, '\0', sizeof(o->line)) && o->output_dropped <= o->output_bytes);
    r->exec = NULL;
}

static const struct exec_callbacks callbacks = {on_event, on_outcome};

static void on_lost(void *arg, const char *why)
{
    (void)arg;
    EXPECT(!run.is_lost);
    touch(str_of(why));
    run.is_lost = true;
}

static void on_recall(void *arg)
{
    (void)arg;
    EXPECT(run.session && !run.is_lost);
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    (void)arg;
    EXPECT(run.answers++ == 0 && !s == !!failed);
    run.session = s;
    if (!s)
        return;
    session_on_lost(s, on_lost, NULL);
    session_on_recall(s, on_recall, NULL);
}

static void start(uint8_t how)
{
    const struct exec_config config = {.kind = how & 1 ? EXEC_COMMAND : EXEC_CELL,
                                       .code = STR("1")};
    struct record *r = &run.records[(how >> 1) % EXECS];
    struct err e;

    if (r->exec || !run.session)
        return;
    r->exec = exec_start(run.session, &config, &callbacks, r, &e);
}

static void order(uint8_t how)
{
    struct exec *x = run.records[(how >> 2) % EXECS].exec;

    if (!x)
        return;
    if (how % 4 == 0)
        exec_interrupt(x);
    else if (how % 4 == 1)
        exec_stop_clock(x, how & 0x80);
    else
        exec_hold(x, how & 0x80);
}

static void check_answer(void)
{
    if (!run.asked || !run.ask.done)
        return;
    run.asked = false;
    EXPECT(run.ask.answer.kind <= ERR_HOST);
    if (run.ask.look) {
        if (run.session)
            workspace_tell(run.session, run.ask.look, on_event, &run.records[0]);
        else
            look_free(run.ask.look);
    }
    fd_closep(&run.spool);
}

/* As a worker does, which waits meanwhile. */
static void ask(uint8_t how)
{
    struct borrowed *b = run.session ? run.session->far : NULL;

    if (run.asked || !b || b->closed)
        return;
    run.ask =
        (struct borrowed_ask){.ask.op = how % (LEND_UNPACK + 1), .feed.fd = -1, .spool.fd = -1};
    run.spool = memfd_create("spool", MFD_CLOEXEC);
    if (how & 0x40)
        run.ask.spool = (struct lend_spool){.fd = run.spool, .max = 4096};
    else if (how & 0x20)
        run.ask.feed = (struct lend_feed){.fd = run.spool, .left = 100};
    if (how & 0x80)
        run.ask.look = workspace_look(run.session);
    if (run.ask.look && !run.records[0].exec) /* its events are told to this one */
        start(0);
    if (run.ask.look && !run.records[0].exec)
        look_free(take_ptr(&run.ask.look));
    b->ask = &run.ask;
    run.asked = true;
    borrowed_feed(b);
}

static void close_session(void)
{
    struct session *s = take_ptr(&run.session);

    if (s)
        session_close(s);
    for (size_t i = 0; i < EXECS; i++)
        EXPECT(!run.records[i].exec);
}

static void act(struct feed *f)
{
    static char chunk[4096];
    uint8_t what = feed_byte(f), how = feed_byte(f);
    struct str bytes;

    switch (what % 10) {
    case 0:
    case 1:
    case 2:
        bytes = feed_text(f, (size_t)how * 4);
        if (bytes.n)
            memcpy(chunk, bytes.p, bytes.n);
        if (run.channel_open)
            run.channel.user->on_bytes(run.channel.arg, (struct str){chunk, bytes.n});
        break;
    case 3:
        start(how);
        break;
    case 4:
        order(how);
        break;
    case 5:
        ask(how);
        break;
    case 6:
        run.room = how;
        if (run.channel_open)
            run.channel.user->on_room(run.channel.arg);
        break;
    case 7:
        loop_advance(run.loop, (uint64_t)how * 2);
        break;
    case 8:
        if (run.session && how & 1)
            session_restart(run.session);
        else if (run.session)
            workspace_note(run.session, STR("f"));
        break;
    default:
        if (how < 32 && run.channel_open) {
            run.channel_open = false;
            run.channel.user->on_end(run.channel.arg, "has hung up");
        } else if (how < 64) {
            close_session();
        }
    }
    check_answer();
    loop_turn(run.loop);
}

static void ready(void *arg, const struct err *failed)
{
    (void)arg;
    (void)failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    const struct lend_config lend = {.silent_ms = SILENT_MS, .spool = no_spool};
    struct pool_config config = {.name = "p"};
    int pair[2];
    struct err e;

    memset(&run, 0, sizeof(run));
    run.spool = -1;
    EXPECT(wire_pair(pair, &e) == 0);
    warden_end = pair[0];
    run.loop = loop_new(&e);
    run.engine = engine_new(
        run.loop, &(struct engine_config){.guest_dir = "/guest", .cache_dir = "/tmp"}, &e);
    limits_default(&config.limits);
    run.pool = pool_start(run.engine, &config, ready, NULL);
    run.channel.ops = &ops;
    run.channel_open = true;
    session_borrow(run.pool, STR("p"), &run.channel, &lend, on_open, NULL);
    while (f.n > 0)
        act(&f);
    if (run.channel_open && !run.answers) {
        run.channel_open = false;
        run.channel.user->on_end(run.channel.arg, "has hung up");
    }
    EXPECT(run.answers == 1);
    close_session();
    loop_turn(run.loop);
    check_answer();
    EXPECT(!run.channel_open && !run.asked);
    for (int i = 0; i < 4; i++)
        loop_turn(run.loop);
    engine_free(run.engine);
    fd_closep(&pair[1]);
    for (int i = 0; i < 8 && loop_alive(run.loop); i++)
        loop_turn(run.loop);
    loop_free(run.loop);
    return 0;
}
