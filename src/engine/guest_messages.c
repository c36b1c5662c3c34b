/*
 * Messages from the guest: which may come, when, and how long; a table for its kernel and one
 * for its init. Any other message ends that guest and nothing else. Messages of the warden about
 * the guest are handled here, too; the warden is trusted.
 */
#include "engine/guest_int.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* A guest that has shown a large picture once does not own its room here. */
#define BODY_KEPT (256 * KiB)
/* The first interpreter has one try. What ends a later one may be the guest's own: kill -9 -1. */
#define TRIES 4

#define ANY_KERNEL (IN(GUEST_STARTING) | IN(GUEST_IDLE) | IN(GUEST_RUNNING))

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
    guest_go(g, GUEST_IDLE);
    g->tries = TRIES;
    guest_await_init(g);
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
    struct str modules;
    uint64_t status;

    if (wire_find(body, TAG_NAME, &modules) && pool_vote(g->pool, g->id, modules) < 0)
        return -1;
    if (head->id != g->running || !wire_find_num(body, TAG_STATUS, &status) || status > 2)
        return -1;
    stream_flush(g->kernel.out);
    stream_flush(g->kernel.err);
    guest_go(g, GUEST_IDLE);
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
    {MSG_DONE,    IN(GUEST_RUNNING),                  8 * KiB,    on_done},
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
    guest_end(g, why);
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
void guest_on_kernel(void *arg)
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
        guest_await_init(g);
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
        return guest_end(g, "it showed more than the server has memory for at the moment");
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

/* --- messages from init --- */

static int on_kernel_exit(struct guest *g, const struct wire_head *head, struct str body)
{
    uint64_t status;

    (void)head;
    if (!wire_find_num(body, TAG_STATUS, &status))
        return -1;
    stream_drain(g->kernel.out);
    stream_drain(g->kernel.err);
    stream_flush(g->kernel.out);
    stream_flush(g->kernel.err);
    guest_unlink_kernel(g);
    if (g->state == GUEST_STARTING && g->tries-- == 0) {
        guest_end(g, "its interpreter does not start");
        return 0;
    }
    if (guest_start_kernel(g) < 0)
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
    guest_await_init(g);
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
    guest_end(g, why);
    return 0;
}

static int on_ready(struct guest *g, const struct wire_head *head, struct str body)
{
    (void)head;
    (void)body;
    if (g->space < 0 || g->tmp < 0 || g->shm < 0 || guest_start_kernel(g) < 0)
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

void guest_on_init(void *arg)
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
        return guest_end(g, "its first process ended");
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

static void on_spawned(struct guest *g, struct str body, int fds[METERS])
{
    uint64_t uid = 0, in_cgroup = 0;

    if (g->state == GUEST_DEAD || g->spawned || !wire_find_num(body, TAG_UID, &uid) ||
        !wire_find_num(body, TAG_FLAGS, &in_cgroup))
        return;
    g->uid = (uid_t)uid;
    g->in_cgroup = in_cgroup;
    for (int i = 0; fds && i < METERS; i++)
        g->meters[i] = take_fd(&fds[i]);
    g->spawned = true;
    if (g->zygote == pool_zygote(g->pool))
        pool_on_pong(g->pool);
    /* The box may have been faster than the warden's word on it. */
    if (g->state != GUEST_BOOTING)
        g->owner->on_closed(g->arg);
    if (g->state == GUEST_IDLE)
        g->owner->on_idle(g->arg);
}

void guest_on_warden(struct guest *g, uint16_t type, struct str body, int fds[METERS])
{
    struct box_usage u = {0};

    switch (type) {
    case MSG_SPAWNED:
        on_spawned(g, body, fds);
        break;
    case MSG_SPAWN_FAIL:
        on_failed(g, NULL, body);
        break;
    case MSG_GONE:
        guest_end(g, "its processes are gone");
        break;
    case MSG_USED:
        wire_find_num(body, TAG_OOM_KILLS, &u.oom_kills);
        wire_find_num(body, TAG_PID_HITS, &u.pid_hits);
        if (g->state != GUEST_DEAD)
            g->owner->on_usage(g->arg, &u);
        break;
    default:
        break;
    }
}
