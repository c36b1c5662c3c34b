/*
 * One sandbox as the server sees it: a socket to its init, a socket and two pipes
 * to its kernel. The server makes all of them and hands the far ends in; it takes
 * an fd from a guest once, while booting, before any code of a client is near.
 *
 * What a guest may say, when, and how much, is the two tables below. Anything else
 * ends that guest and nothing else.
 */
#include "engine/engine_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct kernel_link {
    int sock; /* owned; -1: no kernel */
    struct watch *watch;
    struct wire_in in;
    size_t held; /* bytes of it that the engine has counted */
    struct stream *out, *err;
    bool ending; /* killed, or its end of the socket is closed: init's word on it follows */
};

struct guest {
    struct guest *next; /* of the engine's list */
    uint64_t id, zygote;
    struct pool *pool; /* borrowed: outlives us */
    enum guest_state state;
    const struct guest_owner *owner;
    void *arg;
    int ctl; /* owned */
    struct watch *from_ctl;
    struct kernel_link kernel;
    int space, tmp, shm; /* owned: dirfds */
    int listener;        /* owned; -1: none, or taken */
    uid_t uid;
    unsigned signals;   /* for the kernel, on their way to init */
    bool spawned;       /* the warden has told uid and in_cgroup */
    bool in_cgroup;     /* else init watches memory */
    uint64_t running;   /* id of the execution the kernel is at */
    struct timer *boot; /* owned: until an interpreter is up */
    char why[256];
};

/* A machine under heavy load still boots a box; a stuck one never does. */
#define BOOT_MS 120000
/* A guest that has shown a large picture once does not own its room here. */
#define BODY_KEPT  (256 * KiB)
#define ANY_KERNEL (IN(GUEST_STARTING) | IN(GUEST_IDLE) | IN(GUEST_RUNNING))

static const char *const state_name[] = {"booting", "starting", "idle", "running", "dead"};

/* Allowed edges, by the state they leave from. */
static const unsigned edges[] = {
    [GUEST_BOOTING] = IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_STARTING] = IN(GUEST_IDLE) | IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_IDLE] = IN(GUEST_RUNNING) | IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_RUNNING] = IN(GUEST_IDLE) | IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_DEAD] = 0,
};

static void go(struct guest *g, enum guest_state to)
{
    assert(edges[g->state] & IN(to));
    log_debug("box %" PRIu64 ": %s -> %s", g->id, state_name[g->state], state_name[to]);
    g->state = to;
}

/* --- the end of a guest --- */

static void on_dead_later(void *arg)
{
    struct guest *g = arg;

    g->owner->on_dead(g->arg, g->why);
}

static void unlink_kernel(struct guest *g)
{
    struct kernel_link *k = &g->kernel;

    if (k->watch)
        watch_free(k->watch);
    fd_closep(&k->sock);
    stream_free(k->out);
    stream_free(k->err);
    wire_in_done(&k->in);
    engine_let_go(pool_engine(g->pool), k->held);
    *k = (struct kernel_link){.sock = -1};
}

/* Closing init's socket is what ends the sandbox; the warden is asked too, for one that is stuck.
 */
static void hang_up(struct guest *g)
{
    if (g->from_ctl)
        watch_free(g->from_ctl);
    g->from_ctl = NULL;
    if (g->boot)
        timer_free(g->boot);
    g->boot = NULL;
    fd_closep(&g->ctl);
    unlink_kernel(g);
}

static void die(struct guest *g, const char *why)
{
    if (g->state == GUEST_DEAD)
        return;
    snprintf(g->why, sizeof(g->why), "%s", why);
    if (g->kernel.out) { /* what it printed before is still to be told */
        stream_drain(g->kernel.out);
        stream_drain(g->kernel.err);
        stream_flush(g->kernel.out);
        stream_flush(g->kernel.err);
    }
    go(g, GUEST_DEAD);
    (void)!engine_tell(pool_engine(g->pool), MSG_KILL, g->id, (struct str){0}, -1);
    hang_up(g);
    loop_later(pool_engine(g->pool)->loop, on_dead_later, g);
}

/* --- messages from the kernel --- */

struct msg_rule {
    uint16_t type;
    unsigned when;
    size_t max;
    int (*handle)(struct guest *g, const struct wire_head *head, struct str body);
};

static int acknowledge(struct guest *g)
{
    return wire_send(g->kernel.sock, MSG_ACK, 0, (struct str){0}, NULL, 0);
}

static int on_idle(struct guest *g, const struct wire_head *head, struct str body)
{
    (void)head;
    (void)body;
    go(g, GUEST_IDLE);
    timer_clear(g->boot);
    if (g->spawned)
        g->owner->on_idle(g->arg);
    return 0;
}

/* The pipes have been drained before any handler runs: that is all a sync asks for. */
static int on_sync(struct guest *g, const struct wire_head *head, struct str body)
{
    (void)head;
    (void)body;
    return acknowledge(g);
}

static int on_said(struct guest *g, const struct wire_head *head, struct str body)
{
    static struct event ev; /* large, and one thread */
    int number = 0;

    if (event_parse(head->type, body, &ev, &number) < 0)
        return -1;
    g->owner->on_event(g->arg, &ev);
    if (g->state == GUEST_DEAD) /* its owner has let go of it */
        return 0;
    if (ev.kind == EVENT_ERROR)
        g->owner->on_errno(g->arg, number);
    if (ev.kind == EVENT_DISPLAY || ev.kind == EVENT_CLEAR)
        return acknowledge(g);
    return 0;
}

static int on_done(struct guest *g, const struct wire_head *head, struct str body)
{
    uint64_t status;

    if (head->id != g->running || !wire_find_num(body, TAG_STATUS, &status) || status > 2)
        return -1;
    stream_flush(g->kernel.out);
    stream_flush(g->kernel.err);
    go(g, GUEST_IDLE);
    g->owner->on_done(g->arg, status);
    return 0;
}

static const struct msg_rule from_kernel[] = {
    {MSG_IDLE,    IN(GUEST_STARTING),                 0,          on_idle},
    {MSG_SYNC,    IN(GUEST_RUNNING) | IN(GUEST_IDLE), 0,          on_sync},
    {MSG_DISPLAY, IN(GUEST_RUNNING) | IN(GUEST_IDLE), BUNDLE_MAX, on_said},
    {MSG_CLEAR,   IN(GUEST_RUNNING) | IN(GUEST_IDLE), 64,         on_said},
    {MSG_RESULT,  IN(GUEST_RUNNING),                  BUNDLE_MAX, on_said},
    {MSG_ERROR,   IN(GUEST_RUNNING),                  MiB,        on_said},
    {MSG_DONE,    IN(GUEST_RUNNING),                  64,         on_done},
};

static const struct msg_rule *rule_for(const struct msg_rule *rules, size_t n, uint16_t type)
{
    for (size_t i = 0; i < n; i++)
        if (rules[i].type == type)
            return &rules[i];
    return NULL;
}

static void bad_message(struct guest *g, const char *who, uint16_t type)
{
    char why[128];

    snprintf(why, sizeof(why), "its %s sent what it may not send (%#x)", who, type);
    log_warn("box %" PRIu64 ": %s", g->id, why);
    die(g, why);
}

/* Only what is unfinished and large counts: BODY_KEPT is every guest's own. */
static bool count_held(struct guest *g)
{
    struct engine *en = pool_engine(g->pool);
    struct kernel_link *k = &g->kernel;
    size_t now = k->in.body.cap > BODY_KEPT ? k->in.body.cap : 0;

    engine_let_go(en, k->held);
    k->held = 0;
    if (!engine_hold(en, now))
        return false;
    k->held = now;
    return true;
}

/* One packet a turn, so that a guest that talks without end does not hold up the others. */
static void on_kernel_readable(void *arg)
{
    static char bytes[WIRE_BODY_MAX];
    struct guest *g = arg;
    const struct msg_rule *rule;
    struct wire_head head = {0};
    int rc = wire_recv(g->kernel.sock, &head, bytes, NULL, 0, NULL);

    if (rc < 0 && errno == EAGAIN)
        return;
    if (rc < 0 && errno == EBADMSG)
        return bad_message(g, "interpreter", head.type);
    if (rc <= 0) { /* the kernel has gone, or closed its end: init's word on it follows */
        watch_pause(g->kernel.watch);
        g->kernel.ending = true;
        if (g->state == GUEST_RUNNING || g->state == GUEST_IDLE)
            guest_signal(g, 0, SIGKILL);
        return;
    }
    rule = rule_for(from_kernel, COUNT(from_kernel), head.type);
    if (!rule || !(rule->when & IN(g->state)) ||
        g->kernel.in.body.n * g->kernel.in.open + head.len > rule->max)
        return bad_message(g, "interpreter", head.type);
    rc = wire_in_add(&g->kernel.in, head, (struct str){bytes, head.len});
    if (rc < 0)
        return bad_message(g, "interpreter", head.type);
    if (!count_held(g)) {
        log_warn("box %" PRIu64 ": the server holds as much output as it may", g->id);
        return die(g, "it showed more than the server has memory for at the moment");
    }
    if (rc == 0)
        return;
    /* Whatever was printed before this message was sent is in the pipes by now. */
    stream_drain(g->kernel.out);
    stream_drain(g->kernel.err);
    if (g->state != GUEST_DEAD && rule->handle(g, &head, buf_str(&g->kernel.in.body)) < 0)
        bad_message(g, "interpreter", head.type);
    if (g->kernel.in.body.cap > BODY_KEPT)
        buf_done(&g->kernel.in.body);
    (void)!count_held(g);
}

/* --- starting a kernel --- */

static void on_stream(void *arg, enum event_kind kind, struct str text)
{
    struct guest *g = arg;

    g->owner->on_text(g->arg, kind, text);
}

int guest_pipe(int ret[2])
{
    if (pipe2(ret, O_CLOEXEC) < 0)
        return -1;
    if (fchmod(ret[1], 0666) == 0 && fd_set_nonblock(ret[0]) == 0)
        return 0;
    fd_closep(&ret[0]);
    fd_closep(&ret[1]);
    return -1;
}

static int start_kernel(struct guest *g)
{
    struct loop *l = pool_engine(g->pool)->loop;
    struct err e;
    int sock[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    int rc = -1;

    if (wire_pair(sock, &e) == 0 && guest_pipe(out) == 0 && guest_pipe(err) == 0 &&
        fd_set_nonblock(sock[0]) == 0) {
        const int theirs[] = {sock[1], out[1], err[1]};
        rc = wire_send(g->ctl, MSG_KERNEL, 0, (struct str){0}, theirs, COUNT(theirs));
    }
    fd_closep(&sock[1]);
    fd_closep(&out[1]);
    fd_closep(&err[1]);
    if (rc < 0) {
        fd_closep(&sock[0]);
        fd_closep(&out[0]);
        fd_closep(&err[0]);
        return -1;
    }
    g->kernel.sock = sock[0];
    wire_in_init(&g->kernel.in, BUNDLE_MAX);
    g->kernel.out = stream_new(l, out[0], EVENT_STDOUT, on_stream, g);
    g->kernel.err = stream_new(l, err[0], EVENT_STDERR, on_stream, g);
    g->kernel.watch = watch_new(l, sock[0], on_kernel_readable, g);
    go(g, GUEST_STARTING);
    timer_set(g->boot, BOOT_MS);
    return 0;
}

/* --- messages from init --- */

static int on_kernel_exit(struct guest *g, const struct wire_head *head, struct str body)
{
    bool never_up = g->state == GUEST_STARTING;
    uint64_t status;

    (void)head;
    if (!wire_find_num(body, TAG_STATUS, &status))
        return -1;
    stream_drain(g->kernel.out);
    stream_drain(g->kernel.err);
    stream_flush(g->kernel.out);
    stream_flush(g->kernel.err);
    unlink_kernel(g);
    if (never_up) {
        die(g, "its interpreter does not start");
        return 0;
    }
    if (start_kernel(g) < 0)
        return -1;
    g->owner->on_kernel_exit(g->arg, (int)status);
    return 0;
}

static int on_command_exit(struct guest *g, const struct wire_head *head, struct str body)
{
    uint64_t status;

    if (!wire_find_num(body, TAG_STATUS, &status))
        return -1;
    g->owner->on_command_exit(g->arg, head->id, (int)status);
    return 0;
}

/* Once init has sent it, the kernel sees it before it looks at a cell. */
static int on_signalled(struct guest *g, const struct wire_head *head, struct str body)
{
    (void)head;
    (void)body;
    if (g->signals == 0)
        return -1;
    g->signals--;
    if (g->spawned && guest_takes_cell(g))
        g->owner->on_idle(g->arg);
    return 0;
}

static int on_trip(struct guest *g, const struct wire_head *head, struct str body)
{
    uint64_t which;

    (void)head;
    if (!wire_find_num(body, TAG_NUMBER, &which) || which < TRIP_CPU || which > TRIP_PIDS)
        return -1;
    g->owner->on_trip(g->arg, (enum wire_trip)which);
    return 0;
}

static int on_failed(struct guest *g, const struct wire_head *head, struct str body)
{
    struct str text = {0};
    char why[200];

    (void)head;
    wire_find(body, TAG_TEXT, &text);
    snprintf(why, sizeof(why), "%.*s", (int)(text.n < 190 ? text.n : 190), text.p);
    die(g, why);
    return 0;
}

static int on_ready(struct guest *g, const struct wire_head *head, struct str body)
{
    (void)head;
    (void)body;
    if (g->space < 0 || g->tmp < 0 || g->shm < 0 || start_kernel(g) < 0)
        return -1;
    if (g->spawned)
        g->owner->on_closed(g->arg);
    return 0;
}

static const struct msg_rule from_init[] = {
    {MSG_READY,        IN(GUEST_BOOTING), 0,       on_ready       },
    {MSG_FAILED,       IN(GUEST_BOOTING), 4 * KiB, on_failed      },
    {MSG_KERNEL_EXIT,  ANY_KERNEL,        64,      on_kernel_exit },
    {MSG_COMMAND_EXIT, ANY_KERNEL,        64,      on_command_exit},
    {MSG_SIGNALLED,    ANY_KERNEL,        64,      on_signalled   },
    {MSG_TRIP,         ANY_KERNEL,        64,      on_trip        },
};

static bool is_listener(int fd)
{
    int yes = 0;
    socklen_t n = sizeof(yes);

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &n) == 0 && yes;
}

static bool is_dir(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static void on_ctl_readable(void *arg)
{
    static char bytes[WIRE_BODY_MAX];
    struct guest *g = arg;
    const struct msg_rule *rule;
    struct wire_head head = {0};
    int fds[4] = {-1, -1, -1, -1};
    size_t nfds = 0;
    bool booting = g->state == GUEST_BOOTING; /* the one time an fd may come out of a box */
    int rc = wire_recv(g->ctl, &head, bytes, booting ? fds : NULL, booting ? COUNT(fds) : 0, &nfds);

    if (rc < 0 && errno == EAGAIN)
        return;
    if (rc <= 0)
        return die(g, "its first process ended");
    if (booting && nfds == (pool_has_proxy(g->pool) ? 4 : 3) && is_dir(fds[0]) && is_dir(fds[1]) &&
        is_dir(fds[2]) && (nfds == 3 || is_listener(fds[3]))) {
        g->space = take_fd(&fds[0]);
        g->tmp = take_fd(&fds[1]);
        g->shm = take_fd(&fds[2]);
        g->listener = take_fd(&fds[3]);
    }
    for (size_t i = 0; i < COUNT(fds); i++)
        fd_closep(&fds[i]);
    rule = rule_for(from_init, COUNT(from_init), head.type);
    if (!rule || !(rule->when & IN(g->state)) || head.len > rule->max || (head.flags & WIRE_MORE) ||
        rule->handle(g, &head, (struct str){bytes, head.len}) < 0)
        bad_message(g, "init", head.type);
}

/* --- messages from the warden --- */

static void on_spawned(struct guest *g, struct str body)
{
    uint64_t uid = 0, in_cgroup = 0;

    if (g->state == GUEST_DEAD || g->spawned || !wire_find_num(body, TAG_UID, &uid) ||
        !wire_find_num(body, TAG_FLAGS, &in_cgroup))
        return;
    g->uid = (uid_t)uid;
    g->in_cgroup = in_cgroup;
    g->spawned = true;
    /* The box may have been faster than the warden's word on it. */
    if (g->state != GUEST_BOOTING)
        g->owner->on_closed(g->arg);
    if (g->state == GUEST_IDLE)
        g->owner->on_idle(g->arg);
}

void guest_on_warden(struct guest *g, uint16_t type, struct str body)
{
    struct box_usage u = {0};

    switch (type) {
    case MSG_SPAWNED:
        on_spawned(g, body);
        break;
    case MSG_SPAWN_FAIL:
        on_failed(g, NULL, body);
        break;
    case MSG_GONE:
        die(g, "its processes are gone");
        break;
    case MSG_USED:
        wire_find_num(body, TAG_MEMORY, &u.memory_peak_bytes);
        wire_find_num(body, TAG_CPU_US, &u.cpu_us);
        wire_find_num(body, TAG_OOM_KILLS, &u.oom_kills);
        wire_find_num(body, TAG_PID_HITS, &u.pid_hits);
        if (g->state != GUEST_DEAD)
            g->owner->on_usage(g->arg, &u);
        break;
    default:
        break;
    }
}

/* --- the calls --- */

#define INODES 65536

static void on_boot_timer(void *arg)
{
    die(arg, "it does not start");
}

static int ask_spawn(struct guest *g, int ctl_theirs)
{
    const struct limits *l = pool_limits(g->pool);
    struct box_plan plan = {
        .disk_bytes = l->disk_bytes,
        .tmp_bytes = l->tmp_bytes,
        .inodes = INODES,
        .pids = l->pids,
        .open_files = l->open_files,
        .memory_bytes = l->memory_bytes,
        .cpu_percent = l->cpu_percent,
        .proxy = pool_has_proxy(g->pool),
    };
    struct buf body;
    int rc;

    buf_init(&body, 4 * KiB);
    wire_put_num(&body, TAG_ZYGOTE, g->zygote);
    wire_put(&body, TAG_BLOB, (struct str){(const char *)&plan, sizeof(plan)});
    rc = engine_tell(pool_engine(g->pool), MSG_SPAWN, g->id, buf_str(&body), ctl_theirs);
    buf_done(&body);
    return rc;
}

struct guest *guest_new(struct pool *p, const struct guest_owner *owner, void *arg)
{
    struct engine *en = pool_engine(p);
    struct guest *g = mem_zalloc(sizeof(*g));
    struct err e;
    int pair[2] = {-1, -1};

    *g = (struct guest){
        .id = en->next_id++,
        .zygote = pool_zygote(p),
        .pool = p,
        .owner = owner,
        .arg = arg,
        .kernel = {.sock = -1},
        .space = -1,
        .tmp = -1,
        .shm = -1,
        .listener = -1,
    };
    engine_add_guest(en, g);
    g->boot = timer_new(en->loop, on_boot_timer, g);
    timer_set(g->boot, BOOT_MS);
    (void)!wire_pair(pair, &e); /* on failure the spawn below fails too */
    g->ctl = pair[0];
    AUTO_CLOSE int theirs = pair[1];
    if (g->ctl < 0 || fd_set_nonblock(g->ctl) < 0 || ask_spawn(g, theirs) < 0) {
        die(g, "no sandbox could be asked for");
        return g;
    }
    g->from_ctl = watch_new(en->loop, g->ctl, on_ctl_readable, g);
    return g;
}

void guest_set_owner(struct guest *g, const struct guest_owner *owner, void *arg)
{
    g->owner = owner;
    g->arg = arg;
}

/* A dead guest's last word may still be on its way to an owner who no longer cares. */
static void free_later(void *arg)
{
    struct guest *g = arg;

    fd_closep(&g->space);
    fd_closep(&g->tmp);
    fd_closep(&g->shm);
    fd_closep(&g->listener);
    free(g);
}

static void ignore_dead(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

static const struct guest_owner nobody = {.on_dead = ignore_dead};

void guest_free(struct guest *g)
{
    if (!g)
        return;
    guest_set_owner(g, &nobody, NULL);
    if (g->state != GUEST_DEAD) {
        (void)!engine_tell(pool_engine(g->pool), MSG_KILL, g->id, (struct str){0}, -1);
        hang_up(g);
        go(g, GUEST_DEAD);
    }
    engine_drop_guest(pool_engine(g->pool), g);
    loop_later(pool_engine(g->pool)->loop, free_later, g);
}

void guest_end(struct guest *g, const char *why)
{
    die(g, why);
}

enum guest_state guest_state(const struct guest *g)
{
    return g->state;
}

uint64_t guest_zygote(const struct guest *g)
{
    return g->zygote;
}

uint64_t guest_id(const struct guest *g)
{
    return g->id;
}

struct guest **guest_next(struct guest *g)
{
    return &g->next;
}

int guest_space(const struct guest *g)
{
    return g->space;
}

int guest_tmp(const struct guest *g)
{
    return g->tmp;
}

int guest_shm(const struct guest *g)
{
    return g->shm;
}

uid_t guest_uid(const struct guest *g)
{
    return g->uid;
}

/* Into a buffer that was made for it. */
static void must_put(struct buf *b, struct str s)
{
    struct err e;

    if (buf_put(b, s, &e) < 0)
        assert(!"it fits");
}

int guest_cell(struct guest *g, uint64_t id, struct str code, uint64_t number, struct str env)
{
    struct buf body;
    int rc;

    assert(g->state == GUEST_IDLE);
    buf_init(&body, code.n + env.n + KiB);
    wire_put_num(&body, TAG_CELL_NO, number);
    wire_put(&body, TAG_CODE, code);
    must_put(&body, env);
    rc = wire_send_whole(g->kernel.sock, MSG_CELL, id, buf_str(&body));
    buf_done(&body);
    /* A kernel that has just gone takes the cell with it: init's word on that follows. */
    if (rc < 0 && errno != EPIPE && errno != ECONNRESET) {
        die(g, "its interpreter takes no more cells");
        return -1;
    }
    g->running = id;
    go(g, GUEST_RUNNING);
    return 0;
}

int guest_command(struct guest *g, uint64_t id, struct str line, struct str env, int out, int err)
{
    AUTO_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int theirs[] = {null, out, err};
    struct buf body;
    int rc;

    if (null < 0)
        return -1;
    buf_init(&body, line.n + env.n + KiB);
    wire_put(&body, TAG_ARG, STR("/bin/bash"));
    wire_put(&body, TAG_ARG, STR("-c"));
    wire_put(&body, TAG_ARG, line);
    must_put(&body, env);
    rc = body.n > WIRE_BODY_MAX
             ? -1
             : wire_send(g->ctl, MSG_COMMAND, id, buf_str(&body), theirs, COUNT(theirs));
    buf_done(&body);
    return rc;
}

/* A full or closed socket means an init that is gone or stuck; its end is told elsewhere. */
static bool tell_init(struct guest *g, uint16_t type, uint64_t id, const struct buf *body)
{
    if (g->ctl >= 0 && wire_send(g->ctl, type, id, buf_str(body), NULL, 0) == 0)
        return true;
    log_debug("box %" PRIu64 ": init does not listen: %s", g->id, strerror(errno));
    return false;
}

void guest_signal(struct guest *g, uint64_t id, int number)
{
    struct buf body;

    buf_init(&body, KiB);
    wire_put_num(&body, TAG_NUMBER, (uint64_t)number);
    if (tell_init(g, MSG_SIGNAL, id, &body) && id == 0)
        g->signals++;
    buf_done(&body);
}

bool guest_takes_cell(const struct guest *g)
{
    return g->state == GUEST_IDLE && g->signals == 0 && !g->kernel.ending;
}

void guest_watch(struct guest *g, uint64_t cpu_us, uint64_t memory)
{
    struct buf body;

    buf_init(&body, KiB);
    wire_put_num(&body, TAG_CPU_US, cpu_us);
    wire_put_num(&body, TAG_MEMORY, memory);
    tell_init(g, MSG_WATCH, 0, &body);
    buf_done(&body);
}

void guest_ask_usage(struct guest *g)
{
    (void)!engine_tell(pool_engine(g->pool), MSG_USAGE, g->id, (struct str){0}, -1);
}

void guest_throttle(struct guest *g, bool slow)
{
    stream_throttle(g->kernel.out, slow);
    stream_throttle(g->kernel.err, slow);
}

void guest_hold(struct guest *g, bool hold)
{
    if (g->kernel.sock < 0)
        return;
    stream_hold(g->kernel.out, hold);
    stream_hold(g->kernel.err, hold);
    if (hold)
        watch_pause(g->kernel.watch);
    else
        watch_resume(g->kernel.watch);
}

int guest_take_listener(struct guest *g)
{
    return take_fd(&g->listener);
}

void guest_restart(struct guest *g)
{
    if ((g->state != GUEST_IDLE && g->state != GUEST_RUNNING) || g->kernel.ending)
        return;
    g->kernel.ending = true;
    guest_signal(g, 0, SIGKILL);
}

bool guest_in_cgroup(const struct guest *g)
{
    return g->in_cgroup;
}
