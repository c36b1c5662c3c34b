/*
 * The whole engine against a hostile far side. The input is a script: what the
 * warden, the inits, the kernels and the caller do, in which order. Nothing they
 * do may crash the server, leak, or leave an execution without its one outcome;
 * and of all that an execution printed, what was told and what was left out make
 * the sum that its outcome gives.
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
#include "engine/engine_int.h"
#include "warden/warden.h"

#include "support/fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

#define BOXES    6
#define SESSIONS 4
#define EXECS    24
#define CHUNK    4096

/* --- the far side --- */

struct far_box {
    uint64_t id;             /* 0: free */
    int ctl, sock, out, err; /* owned */
    int command_out;         /* owned: of the command started last */
};

struct caller {
    struct session *session; /* NULL: none */
    bool asked;              /* session_open() has not been answered */
};

struct record {
    struct exec *exec; /* NULL once its outcome was told */
    struct caller *caller;
    uint64_t id;
    uint64_t told; /* bytes of output handed on */
    bool used, over;
};

/* Everything of one run. */
static struct {
    struct loop *loop;
    struct engine *engine;
    struct pool *pool;
    struct feed feed;
    int warden;         /* owned; -1: it has hung up */
    bool warden_sleeps; /* and takes nothing from its socket */
    uint64_t zygote, zygote_up;
    struct far_box boxes[BOXES];
    struct caller callers[SESSIONS];
    struct record records[EXECS];
    uint8_t traps[8]; /* what the next callbacks do, see spring() */
    size_t trap_at;
} run;

static char space_path[64];
static int space_fd, outside_fd;
static int warden_end; /* for environments_hand_over() to give */

void environments_learn(struct engine *en, const struct engine_config *config)
{
    static struct known_environment one;

    (void)config;
    en->environments = &one;
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
    if (env->python && *env->python == '!')
        return err_set(e, ERR_CALLER, "no such Python");
    return 0;
}

static struct far_box *far_box(uint64_t id)
{
    for (size_t i = 0; i < BOXES; i++)
        if (run.boxes[i].id == id)
            return &run.boxes[i];
    return NULL;
}

static void far_close(struct far_box *b)
{
    fd_closep(&b->ctl);
    fd_closep(&b->sock);
    fd_closep(&b->out);
    fd_closep(&b->err);
    fd_closep(&b->command_out);
}

static int far_recv(int fd, struct wire_head *ret_head, int *fds, size_t max, size_t *nfds)
{
    static char bytes[WIRE_BODY_MAX];

    *nfds = 0;
    if (fd < 0)
        return -1;
    return wire_recv(fd, ret_head, bytes, fds, max, nfds);
}

static void far_send(int fd, uint16_t type, uint64_t id, struct str body, const int *fds, size_t n)
{
    if (fd >= 0 && wire_send(fd, type, id, body, fds, n) < 0)
        return; /* the server has hung up */
}

/* Takes what the server has sent: new boxes from the warden's socket, new kernels from init's. */
static void far_read(void)
{
    struct wire_head head;
    int fds[3];
    size_t nfds;

    while (!run.warden_sleeps && far_recv(run.warden, &head, fds, 1, &nfds) == 1) {
        struct far_box *b = head.type == MSG_SPAWN ? far_box(0) : NULL;
        if (head.type == MSG_POOL_START)
            run.zygote = head.id;
        if (b && nfds == 1) {
            *b = (struct far_box){head.id, take_fd(&fds[0]), -1, -1, -1, -1};
            EXPECT(fd_set_nonblock(b->ctl) == 0);
        }
        for (size_t i = 0; i < nfds; i++)
            fd_closep(&fds[i]);
    }
    for (size_t i = 0; i < BOXES; i++) {
        struct far_box *b = &run.boxes[i];
        while (far_recv(b->ctl, &head, fds, 3, &nfds) == 1) {
            if (head.type == MSG_KERNEL && nfds == 3) {
                fd_closep(&b->sock);
                fd_closep(&b->out);
                fd_closep(&b->err);
                b->sock = take_fd(&fds[0]);
                b->out = take_fd(&fds[1]);
                b->err = take_fd(&fds[2]);
                EXPECT(fd_set_nonblock(b->sock) == 0 && fd_set_nonblock(b->out) == 0 &&
                       fd_set_nonblock(b->err) == 0);
            }
            if (head.type == MSG_SIGNAL && head.id == 0)
                far_send(b->ctl, MSG_SIGNALLED, 0, (struct str){0}, NULL, 0);
            if (head.type == MSG_COMMAND && nfds == 3) {
                fd_closep(&b->command_out);
                b->command_out = take_fd(&fds[1]);
                EXPECT(fd_set_nonblock(b->command_out) == 0);
            }
            for (size_t j = 0; j < nfds; j++)
                fd_closep(&fds[j]);
        }
    }
}

static void far_num(int fd, uint16_t type, uint64_t id, uint16_t tag, uint64_t value)
{
    struct buf body;

    buf_init(&body, KiB);
    wire_put_num(&body, tag, value);
    far_send(fd, type, id, buf_str(&body), NULL, 0);
    buf_done(&body);
}

/* how: the status, and what it has imported. */
static void far_done(int fd, uint64_t id, unsigned how)
{
    struct buf body;

    buf_init(&body, 8 * KiB);
    wire_put_num(&body, TAG_STATUS, how % 4);
    if (how / 4 % 2)
        wire_put(&body, TAG_NAME, feed_text(&run.feed, how / 8));
    far_send(fd, MSG_DONE, id, buf_str(&body), NULL, 0);
    buf_done(&body);
}

static void turn(void)
{
    loop_turn(run.loop);
    far_read();
}

/* --- the caller --- */

static void act(uint8_t what, struct record *self);

/* A callback does the next thing of the list, if there is one. */
static void spring(struct record *self)
{
    uint8_t what = run.trap_at < COUNT(run.traps) ? run.traps[run.trap_at++] : 0;

    if (what)
        act(what, self);
}

static void on_event(void *arg, const struct event *ev)
{
    struct record *r = arg;
    uint64_t bytes = 0;

    EXPECT(r->used && !r->over);
    touch(ev->text);
    for (size_t i = 0; i < ev->bundle.count; i++) {
        touch(ev->bundle.part[i].mime);
        touch(ev->bundle.part[i].data);
        bytes += ev->bundle.part[i].data.n;
    }
    touch(ev->error.message);
    touch(ev->error.traceback);
    for (size_t i = 0; i < ev->error.count; i++)
        touch(ev->error.frame[i].text);
    touch(ev->file.path);
    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR)
        bytes += ev->text.n;
    if (!ev->late)
        r->told += bytes;
    spring(r);
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct record *r = arg;

    EXPECT(r->used && !r->over);
    r->over = true;
    r->exec = NULL;
    EXPECT(outcome_status_name(o->status));
    EXPECT(memchr(o->line, '\0', sizeof(o->line)));
    EXPECT(o->output_bytes == r->told + o->output_dropped);
    EXPECT(o->output_dropped == 0 || (o->limits_hit & IN(LIMIT_OUTPUT)) ||
           o->status == OUTCOME_SESSION_LOST);
    EXPECT(o->wall_us < 3600ull * 1000000);
    spring(r);
}

static const struct exec_callbacks callbacks = {on_event, on_outcome};

static void start(struct caller *c, uint8_t how)
{
    static const char *const code[] = {
        "", "x", "print(1)", "\xc3\xa4 = 1", "\xff", "a very long line"};
    struct exec_config config = {
        .kind = how & 1 ? EXEC_COMMAND : EXEC_CELL,
        .code = str_of(code[(how >> 1) % COUNT(code)]),
        .wall_ms = how & 0x80 ? 5 : 0,
    };
    struct record *r = run.records;
    struct err e;

    while (r < run.records + EXECS && r->used)
        r++;
    if (r == run.records + EXECS || !c->session)
        return;
    *r = (struct record){.used = true, .caller = c, .id = run.engine->next_id};
    r->exec = exec_start(c->session, &config, &callbacks, r, &e);
    if (!r->exec)
        r->over = true;
}

static void close_session(struct caller *c)
{
    struct session *s = c->session;

    c->session = NULL;
    if (s)
        session_close(s);
    for (size_t i = 0; s && i < EXECS; i++)
        EXPECT(run.records[i].caller != c || run.records[i].over || !run.records[i].used);
    for (size_t i = 0; s && i < EXECS; i++)
        if (run.records[i].caller == c)
            run.records[i].caller = NULL; /* those of the next session are others */
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    struct caller *c = arg;

    EXPECT(c->asked && !c->session && !s == !!failed);
    c->asked = false;
    c->session = s;
    spring(NULL);
}

static void open_session(struct caller *c)
{
    if (c->asked || c->session)
        return;
    c->asked = true;
    session_open(run.pool, on_open, c);
}

/* What a caller may do, also from inside a callback. */
static void act(uint8_t what, struct record *self)
{
    struct caller *c = self && self->caller ? self->caller : &run.callers[(what >> 4) % SESSIONS];
    struct record *r = &run.records[(what >> 3) % EXECS];
    char name[] = "made-0";
    struct err e;

    switch (what % 8) {
    case 1:
        close_session(c);
        break;
    case 2:
        close_session(&run.callers[(what >> 3) % SESSIONS]);
        break;
    case 3:
        start(c, what >> 3);
        break;
    case 4:
        if (self && self->exec)
            exec_interrupt(self->exec);
        break;
    case 5:
        if (r->exec)
            exec_interrupt(r->exec);
        break;
    case 6:
        open_session(&run.callers[(what >> 3) % SESSIONS]);
        break;
    case 7:
        name[5] = (char)('0' + (what >> 3) % 8);
        if (c->session && workspace_put(c->session, str_of(name), outside_fd, &e) == 0) {
            AUTO_CLOSE int fd = workspace_get(c->session, str_of(name), &e);
            EXPECT(fd >= 0);
        }
        break;
    default:
        break;
    }
}

static void on_ready(void *arg, const struct err *failed)
{
    (void)arg;
    (void)failed;
}

/* --- the script --- */

/* A body: raw bytes, or well-formed fields with hostile contents. */
static void script_body(struct buf *ret)
{
    uint8_t count = feed_byte(&run.feed);
    struct err e;

    if (count & 0x80) {
        struct str raw = feed_text(&run.feed, count & 0x7f);
        EXPECT(buf_put(ret, raw) == 0);
        return;
    }
    for (unsigned i = 0; i < count % 8; i++) {
        uint16_t tag = feed_byte(&run.feed) % 34;
        uint8_t n = feed_byte(&run.feed);
        if (n == 8) {
            wire_put_num(ret, tag, feed_num(&run.feed, 2));
        } else if (tag == TAG_MIME && n < 128) {
            wire_put(ret, tag, STR("text/plain"));
        } else {
            static char zeros[256];
            wire_put(ret, tag, n & 0x80 ? (struct str){zeros, n} : feed_text(&run.feed, n % 32));
        }
    }
}

static uint64_t script_id(uint8_t what)
{
    if (what < EXECS)
        return run.records[what].id;
    if (what < EXECS + BOXES)
        return run.boxes[what - EXECS].id;
    return what;
}

static void kernel_says(struct far_box *b)
{
    static const uint16_t types[] = {MSG_IDLE,  MSG_SYNC, MSG_DISPLAY, MSG_CLEAR, MSG_RESULT,
                                     MSG_ERROR, MSG_DONE, MSG_CELL,    0,         0xffff};
    uint16_t type = types[feed_byte(&run.feed) % COUNT(types)];
    uint8_t flags = feed_byte(&run.feed);
    uint64_t id = script_id(feed_byte(&run.feed));
    struct wire_head head = {.type = type, .flags = flags, .id = id};
    struct buf body;
    char packet[8 * KiB];

    buf_init(&body, 4 * KiB);
    script_body(&body);
    head.len = (uint32_t)body.n + (flags == 0x7f);
    memcpy(packet, &head, sizeof(head));
    if (body.n)
        memcpy(packet + sizeof(head), body.p, body.n);
    if (b->sock >= 0)
        (void)!send(b->sock, packet, flags == 0x7e ? 0 : sizeof(head) + body.n,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    buf_done(&body);
}

static void init_says(struct far_box *b)
{
    static const uint16_t types[] = {MSG_READY, MSG_FAILED,    MSG_KERNEL_EXIT, MSG_COMMAND_EXIT,
                                     MSG_TRIP,  MSG_SIGNALLED, MSG_USED,        0xffff};
    uint16_t type = types[feed_byte(&run.feed) % COUNT(types)];
    uint8_t nfds = feed_byte(&run.feed);
    const int fds[] = {space_fd, nfds & 4 ? outside_fd : space_fd, space_fd};
    uint64_t id = script_id(feed_byte(&run.feed));
    struct buf body;

    buf_init(&body, 4 * KiB);
    script_body(&body);
    if (nfds == 0xff && b->ctl >= 0)
        (void)!send(b->ctl, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT);
    else
        far_send(b->ctl, type, id, buf_str(&body), fds, nfds & 3);
    buf_done(&body);
}

static void warden_says(void)
{
    static const uint16_t types[] = {MSG_POOL_UP, MSG_POOL_DOWN, MSG_SPAWNED, MSG_SPAWN_FAIL,
                                     MSG_USED,    MSG_GONE,      MSG_FORKED};
    uint16_t type = types[feed_byte(&run.feed) % COUNT(types)];
    uint8_t id = feed_byte(&run.feed);
    struct buf body;

    buf_init(&body, 4 * KiB);
    script_body(&body);
    far_send(run.warden, type, id & 0x80 ? run.zygote : script_id(id), buf_str(&body), NULL, 0);
    buf_done(&body);
}

/* What an honest far side would say next, so that the script soon gets somewhere. */
static void bring_up(struct far_box *b)
{
    const int dirs[] = {space_fd, space_fd, space_fd};
    struct buf body;

    if (run.zygote != run.zygote_up)
        far_send(run.warden, MSG_POOL_UP, run.zygote, (struct str){0}, NULL, 0);
    run.zygote_up = run.zygote;
    turn();
    turn();
    if (!b->id)
        return;
    buf_init(&body, KiB);
    wire_put_num(&body, TAG_UID, geteuid());
    wire_put_num(&body, TAG_FLAGS, b->id & 1);
    far_send(run.warden, MSG_SPAWNED, b->id, buf_str(&body), NULL, 0);
    buf_done(&body);
    turn();
    if (b->sock < 0)
        far_send(b->ctl, MSG_READY, 0, (struct str){0}, dirs, COUNT(dirs));
    turn();
    far_send(b->sock, MSG_IDLE, 0, (struct str){0}, NULL, 0);
    turn();
    turn();
}

static void print(struct far_box *b, uint8_t how)
{
    char bytes[CHUNK];
    struct str text = feed_text(&run.feed, how & 15);
    size_t n = 0;

    do {
        memcpy(bytes + n, text.p ? text.p : "", text.n);
        n += text.n;
    } while ((how & 0x40) && text.n && n + text.n <= sizeof(bytes));
    int fd = how & 0x20 ? b->command_out : how & 0x10 ? b->err : b->out;
    if (fd >= 0)
        (void)!write(fd, bytes, n);
}

static void hang_up(struct far_box *b, uint8_t what)
{
    int *const fds[] = {&b->ctl, &b->sock, &b->out, &b->err, &b->command_out};

    if (what == 0xff && run.feed.n == 0) /* rarely: it ends everything */
        fd_closep(&run.warden);
    else
        fd_closep(fds[what % COUNT(fds)]);
}

static void change_workspace(uint8_t what)
{
    char name[] = "file-0";

    name[5] = (char)('0' + what % 8);
    if (what & 8)
        (void)!unlinkat(space_fd, name, 0);
    else
        close(openat(space_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void step(void)
{
    uint8_t op = feed_byte(&run.feed);
    uint8_t arg = feed_byte(&run.feed);
    struct far_box *b = &run.boxes[arg % BOXES];
    struct record *r = &run.records[arg % EXECS];

    switch (op % 19) {
    case 0:
        turn();
        break;
    case 1:
        bring_up(b);
        break;
    case 2:
        act(arg, NULL);
        break;
    case 3:
        start(&run.callers[arg % SESSIONS], feed_byte(&run.feed));
        turn();
        break;
    case 4:
        kernel_says(b);
        break;
    case 5:
        init_says(b);
        break;
    case 6:
        warden_says();
        break;
    case 7:
        print(b, feed_byte(&run.feed));
        break;
    case 8:
        hang_up(b, feed_byte(&run.feed));
        break;
    case 9:
        loop_advance(run.loop, (uint64_t)arg * arg);
        break;
    case 10: { /* the next callbacks do this */
        struct str traps = feed_text(&run.feed, arg % (COUNT(run.traps) + 1));
        memset(run.traps, 0, sizeof(run.traps));
        if (traps.n)
            memcpy(run.traps, traps.p, traps.n);
        run.trap_at = 0;
        break;
    }
    case 11:
        far_done(b->sock, script_id(feed_byte(&run.feed)), arg / BOXES);
        break;
    case 12:
        far_num(b->ctl, MSG_KERNEL_EXIT, 0, TAG_STATUS, feed_byte(&run.feed));
        break;
    case 13:
        far_num(run.boxes[feed_byte(&run.feed) % BOXES].ctl, MSG_COMMAND_EXIT, r->id, TAG_STATUS,
                feed_byte(&run.feed));
        break;
    case 14:
        far_num(b->ctl, MSG_TRIP, 0, TAG_NUMBER, feed_byte(&run.feed) % 5);
        break;
    case 15:
        far_num(run.warden, MSG_USED, b->id, TAG_OOM_KILLS, feed_byte(&run.feed));
        break;
    case 16:
        open_session(&run.callers[arg % SESSIONS]);
        turn();
        break;
    case 17:
        change_workspace(arg);
        break;
    case 18:
        run.warden_sleeps = arg & 1;
        break;
    }
}

/* --- one run --- */

static void set_up(const uint8_t *data, size_t size)
{
    struct pool_config config = {.name = "fuzz"};
    struct err e;
    int pair[2], small = 4096;

    memset(&run, 0, sizeof(run));
    run.feed = (struct feed){data, size};
    for (size_t i = 0; i < BOXES; i++)
        run.boxes[i] = (struct far_box){0, -1, -1, -1, -1, -1};
    EXPECT(wire_pair(pair, &e) == 0 && fd_set_nonblock(pair[1]) == 0);
    /* Soon full, so that the server has to wait without waiting. */
    EXPECT(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
    warden_end = pair[0];
    run.warden = pair[1];
    run.loop = loop_new(&(struct err){0});
    run.engine = engine_new(
        run.loop, &(struct engine_config){.guest_dir = "/guest", .cache_dir = "/tmp"}, &e);
    EXPECT(run.engine);
    limits_default(&config.limits);
    uint8_t how = feed_byte(&run.feed);
    config.limits.output_bytes = how & 1 ? 64 : how & 2 ? 4096 : MiB;
    config.limits.artifact_count = how & 4 ? 1 : 100;
    config.limits.cpu_ms = how & 8 ? 100 : 0;
    config.limits.grace_ms = how & 16 ? 0 : 100;
    config.ready = how >> 5 & 1 ? 2 : 0;
    config.recycle_ms = how & 0x40 ? 1000 : 0;
    config.environment.python = how == 0xff ? "!" : NULL;
    run.pool = pool_start(run.engine, &config, on_ready, NULL);
    far_read();
}

static void tear_down(void)
{
    memset(run.traps, 0, sizeof(run.traps));
    for (size_t i = 0; i < SESSIONS; i++)
        close_session(&run.callers[i]);
    engine_free(run.engine);
    for (size_t i = 0; i < 8 && loop_alive(run.loop); i++)
        loop_turn(run.loop);
    loop_free(run.loop);
    for (size_t i = 0; i < EXECS; i++)
        EXPECT(!run.records[i].used || run.records[i].over);
    for (size_t i = 0; i < BOXES; i++)
        far_close(&run.boxes[i]);
    fd_closep(&run.warden);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned open_before = fds_open();

    set_up(data, size);
    while (run.feed.n > 0)
        step();
    tear_down();
    EXPECT(fds_open() == open_before);
    return 0;
}

static void clean_up(void)
{
    for (char name[] = "file-0"; name[5] < '8'; name[5]++)
        (void)!unlinkat(space_fd, name, 0);
    for (char name[] = "made-0"; name[5] < '8'; name[5]++)
        (void)!unlinkat(space_fd, name, 0);
    rmdir(space_path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_set_level(LOG_ERROR);
    signal(SIGPIPE, SIG_IGN);
    snprintf(space_path, sizeof(space_path), "/dev/shm/retort-fuzz-XXXXXX");
    EXPECT(mkdtemp(space_path));
    space_fd = open(space_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    outside_fd = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
    EXPECT(space_fd >= 0 && outside_fd >= 0);
    atexit(clean_up);
    return 0;
}
