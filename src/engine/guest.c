/*
 * One sandbox as the server sees it: a socket to its init, and a socket and two pipes to its
 * kernel. The server makes all of them and passes the other ends in. It takes a descriptor from a
 * guest only once, while the guest boots and no code of a client has run in it.
 *
 * guest_messages.c says which messages a guest may send, when, and how long.
 */
#include "engine/guest_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A machine under heavy load still boots a box; a stuck one never does. */
#define BOOT_MS 120000
/* What init is asked while the interpreter is up costs it a system call. */
#define INIT_MS 10000

static const char *const state_name[] = {"booting", "starting", "idle", "running", "dead"};

/* Allowed edges, by the state they leave from. */
static const unsigned edges[] = {
    [GUEST_BOOTING] = IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_STARTING] = IN(GUEST_IDLE) | IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_IDLE] = IN(GUEST_RUNNING) | IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_RUNNING] = IN(GUEST_IDLE) | IN(GUEST_STARTING) | IN(GUEST_DEAD),
    [GUEST_DEAD] = 0,
};

void guest_go(struct guest *g, enum guest_state to)
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

void guest_unlink_kernel(struct guest *g)
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
    guest_unlink_kernel(g);
}

void guest_end(struct guest *g, const char *why)
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
    guest_go(g, GUEST_DEAD);
    (void)!engine_tell(pool_engine(g->pool), MSG_KILL, g->id, (struct str){0}, -1);
    hang_up(g);
    loop_later(pool_engine(g->pool)->loop, on_dead_later, g);
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

int guest_start_kernel(struct guest *g)
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
    g->kernel.watch = watch_new(l, sock[0], guest_on_kernel, g);
    guest_go(g, GUEST_STARTING);
    timer_set(g->boot, BOOT_MS);
    return 0;
}

/* --- the calls --- */

#define INODES 65536

static void on_boot_timer(void *arg)
{
    struct guest *g = arg;

    guest_end(g, g->state == GUEST_BOOTING || g->state == GUEST_STARTING
                     ? "it does not start"
                     : "its first process does not answer; perhaps somebody has stopped it");
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
    AUTO(buf_done) struct buf body = BUF(4 * KiB);
    int rc;

    wire_put_num(&body, TAG_ZYGOTE, g->zygote);
    wire_put(&body, TAG_BLOB, (struct str){(const char *)&plan, sizeof(plan)});
    rc = engine_tell(pool_engine(g->pool), MSG_SPAWN, g->id, buf_str(&body), ctl_theirs);
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
        .meters = { -1,        -1},
    };
    engine_add_guest(en, g);
    g->boot = timer_new(en->loop, on_boot_timer, g);
    timer_set(g->boot, BOOT_MS);
    (void)!wire_pair(pair, &e); /* on failure the spawn below fails too */
    g->ctl = pair[0];
    AUTO_CLOSE int theirs = pair[1];
    if (g->ctl < 0 || fd_set_nonblock(g->ctl) < 0 || ask_spawn(g, theirs) < 0) {
        guest_end(g, "no sandbox could be asked for");
        return g;
    }
    g->from_ctl = watch_new(en->loop, g->ctl, guest_on_init, g);
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
    for (int i = 0; i < METERS; i++)
        fd_closep(&g->meters[i]);
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
        guest_go(g, GUEST_DEAD);
    }
    engine_drop_guest(pool_engine(g->pool), g);
    loop_later(pool_engine(g->pool)->loop, free_later, g);
}

bool guest_is_spawned(const struct guest *g)
{
    return g->spawned;
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
    if (buf_put(b, s) < 0)
        assert(!"it fits");
}

int guest_cell(struct guest *g, uint64_t id, struct str code, uint64_t number, struct str env,
               bool *ret_taken)
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
    *ret_taken = rc == 0;
    /* A kernel that has just gone takes the cell with it: init's word on that follows. */
    if (rc < 0 && errno != EPIPE && errno != ECONNRESET) {
        guest_end(g, "its interpreter takes no more cells");
        return -1;
    }
    g->running = id;
    guest_go(g, GUEST_RUNNING);
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
    AUTO(buf_done) struct buf body = BUF(KiB);

    wire_put_num(&body, TAG_NUMBER, (uint64_t)number);
    if (tell_init(g, MSG_SIGNAL, id, &body) && id == 0) {
        g->signals++;
        guest_await_init(g);
    }
}

/* A cell waits for that word, and without a bound it would for ever. */
void guest_await_init(struct guest *g)
{
    bool is_up = g->state == GUEST_IDLE || g->state == GUEST_RUNNING;

    if (is_up && (g->signals > 0 || g->kernel.ending))
        timer_set(g->boot, INIT_MS);
    else if (is_up)
        timer_clear(g->boot);
}

bool guest_takes_cell(const struct guest *g)
{
    return g->state == GUEST_IDLE && g->signals == 0 && !g->kernel.ending;
}

void guest_watch(struct guest *g, uint64_t cpu_us, uint64_t memory)
{
    AUTO(buf_done) struct buf body = BUF(KiB);

    wire_put_num(&body, TAG_CPU_US, cpu_us);
    wire_put_num(&body, TAG_MEMORY, memory);
    tell_init(g, MSG_WATCH, 0, &body);
}

void guest_ask_usage(struct guest *g)
{
    (void)!engine_tell(pool_engine(g->pool), MSG_USAGE, g->id, (struct str){0}, -1);
}

bool guest_cpu_us(const struct guest *g, uint64_t *ret)
{
    return meter_read_cpu(g->meters[METER_CPU], ret);
}

bool guest_memory_peak(const struct guest *g, uint64_t *ret)
{
    return meter_read_memory(g->meters[METER_MEMORY], ret);
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

void guest_warm(struct guest *g)
{
    /* One that has no room for it, or that has gone, is only slower. */
    if (g->kernel.sock >= 0)
        (void)!wire_send(g->kernel.sock, MSG_WARM, 0, (struct str){0}, NULL, 0);
}
