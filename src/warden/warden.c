/*
 * Theory of operation. One thread, one epoll, three kinds of things to wait for:
 * the server's socket, each zygote's socket, and a pidfd for each keeper and each
 * sandbox's init. A spawn goes server -> warden (cgroup, uid slot) -> zygote (fork,
 * id maps) -> warden -> server; whatever fails on the way is undone here.
 *
 * Rights it keeps when started by root, and why:
 *   CAP_SYS_ADMIN                  namespaces and mounts of keepers, cgroups
 *   CAP_SETUID, CAP_SETGID         id maps of keepers
 *   CAP_KILL                       ending what is left
 *   CAP_SETFCAP                    root with one uid: without it uid 0 may not be mapped
 * Started by an ordinary user, the warden has no rights and needs none. Where that user has
 * subordinate ids, the warden keeps CAP_SETUID, CAP_SETGID and CAP_KILL over these ids and over the
 * user's own.
 */
#include "warden/warden_int.h"

#include "sandbox/box.h"
#include "sandbox/server.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS  5
#define WARDEN_FD 3

/* --- what it says --- */

void warden_tell_with(struct warden *w, uint16_t type, uint64_t id, struct str body, const int *fds,
                      size_t count)
{
    if (wire_send(w->server, type, id, body, fds, count) < 0)
        log_debug("warden: the server is gone");
}

void warden_tell(struct warden *w, uint16_t type, uint64_t id, struct str body)
{
    warden_tell_with(w, type, id, body, NULL, 0);
}

void warden_tell_text(struct warden *w, uint16_t type, uint64_t id, const char *text)
{
    AUTO(buf_done) struct buf b = BUF(4 * KiB);

    wire_put(&b, TAG_TEXT, str_of(text));
    warden_tell(w, type, id, buf_str(&b));
}

int warden_watch(struct warden *w, int fd, struct event_source *s)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};

    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* --- zygotes --- */

void zygote_release(struct zygote *z)
{
    if (z->retired && z->boxes == 0)
        syscall(SYS_pidfd_send_signal, z->pidfd, SIGKILL, NULL, 0);
}

/* The last line of what the keeper or the interpreter said before it died, or else how it did. */
static void last_words(int log, const siginfo_t *how, char *ret, size_t size)
{
    int number = how->si_code != CLD_EXITED ? how->si_status : how->si_status - 128;
    char text[4096];
    off_t end = lseek(log, 0, SEEK_END);
    off_t from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
    ssize_t n = pread(log, text, sizeof(text) - 1, from);
    char *line;

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    text[n > 0 ? n : 0] = '\0';
    line = strrchr(text, '\n');
    if (n > 0)
        snprintf(ret, size, "%.*s", (int)size - 1, line ? line + 1 : text);
    else if (number > 0)
        snprintf(ret, size, "the interpreter was ended by signal %d (%s)", number,
                 strsignal(number));
    else
        snprintf(ret, size, "the interpreter ended without a word");
}

static void on_keeper_gone(struct warden *w, struct zygote *z)
{
    struct zygote **at = &w->zygotes;
    siginfo_t how = {0};
    AUTO(buf_done) struct buf body = BUF(4 * KiB);
    char why[512];

    waitid(P_PIDFD, (id_t)z->pidfd, &how, WEXITED);
    last_words(z->log, &how, why, sizeof(why));
    wire_put(&body, TAG_TEXT, str_of(why));
    wire_put_num(&body, TAG_STATUS, z->refused);
    warden_tell(w, MSG_POOL_DOWN, z->id, buf_str(&body));
    /* Boxes it had asked for and not forked will never come; those it had are dying with it. */
    for (struct box_entry *b = w->boxes, *next; b; b = next) {
        next = b->next;
        if (b->zygote != z)
            continue;
        b->zygote = NULL;
        if (b->pidfd < 0)
            box_failed(w, b, "the zygote died");
    }
    while (*at != z)
        at = &(*at)->next;
    *at = z->next;
    w->zygote_count--;
    /* Closing is not enough: a keeper that is just starting still holds copies of both. */
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, z->sock, NULL);
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, z->pidfd, NULL);
    fd_closep(&z->sock);
    fd_closep(&z->pidfd);
    fd_closep(&z->log);
    free(z);
}

static struct zygote *zygote_find(struct warden *w, uint64_t id)
{
    struct zygote *z = w->zygotes;

    while (z && z->id != id)
        z = z->next;
    return z;
}

static const char *objection(struct warden *w, const struct warden_request *r)
{
    if (r->environment >= w->environment_count)
        return "there is no such environment";
    if (zygote_find(w, r->id))
        return "there is a zygote with this id";
    if (w->zygote_count == ZYGOTES_MAX)
        return "there are too many zygotes";
    return w->environments[r->environment].failed.kind ? w->environments[r->environment].failed.text
                                                       : NULL;
}

static void on_pool_start(struct warden *w, const struct warden_request *r)
{
    const char *no = objection(w, r);
    struct err e;
    struct zygote *z;
    int sock = -1, log = -1, pidfd;

    if (no)
        return warden_tell_text(w, MSG_POOL_DOWN, r->id, no);
    pidfd = keeper_start(&w->environments[r->environment], &w->uids, r->modules, &sock, &log, &e);
    if (pidfd < 0)
        return warden_tell_text(w, MSG_POOL_DOWN, r->id, e.text);
    z = mem_zalloc(sizeof(*z));
    *z = (struct zygote){.next = w->zygotes, .id = r->id, .sock = sock, .pidfd = pidfd, .log = log};
    z->from_sock = (struct event_source){FROM_ZYGOTE, z};
    z->from_pidfd = (struct event_source){KEEPER_GONE, z};
    w->zygotes = z;
    w->zygote_count++;
    if (warden_watch(w, pidfd, &z->from_pidfd) < 0 || warden_watch(w, sock, &z->from_sock) < 0) {
        dprintf(log, "the zygote cannot be watched: %s\n", strerror(errno));
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        on_keeper_gone(w, z);
    }
}

static void on_pool_stop(struct warden *w, uint64_t id)
{
    struct zygote *z = zygote_find(w, id);

    if (!z)
        return;
    z->retired = true;
    zygote_release(z);
}

static void on_ping(struct warden *w, uint64_t id)
{
    struct zygote *z = zygote_find(w, id);

    if (z && z->up && wire_send(z->sock, MSG_ZYGOTE_PING, 0, (struct str){0}, NULL, 0) < 0)
        log_debug("warden: zygote %" PRIu64 " is gone", id);
}

static int send_filters(struct warden *w, struct zygote *z)
{
    AUTO(buf_done) struct buf body = BUF(MiB);
    int rc;

    wire_put(&body, TAG_BLOB, buf_str(&w->base));
    wire_put(&body, TAG_BLOB, buf_str(&w->user));
    rc = wire_send(z->sock, MSG_FILTERS, z->id, buf_str(&body), NULL, 0);
    return rc;
}

static void tell_up(struct warden *w, struct zygote *z, struct str said)
{
    AUTO(buf_done) struct buf body = BUF(8 * KiB);
    struct str modules;

    if (wire_find(said, TAG_NAME, &modules) && wire_are_modules(modules))
        wire_put(&body, TAG_NAME, modules);
    warden_tell(w, MSG_POOL_UP, z->id, buf_str(&body));
}

static void on_zygote(struct warden *w, struct zygote *z)
{
    static char bytes[WIRE_BODY_MAX];
    struct wire_head head;
    struct str text = STR("no reason given");
    char why[512];
    int fd = -1;
    size_t nfds = 0;
    int rc = wire_recv(z->sock, &head, bytes, &fd, 1, &nfds);

    if (rc <= 0) {
        epoll_ctl(w->epoll, EPOLL_CTL_DEL, z->sock, NULL);
        syscall(SYS_pidfd_send_signal, z->pidfd, SIGKILL, NULL, 0);
        return;
    }
    struct str body = {bytes, head.len};
    wire_find(body, TAG_TEXT, &text);
    snprintf(why, sizeof(why), "%.*s", (int)(text.n < 500 ? text.n : 500), text.p);
    switch (head.type) {
    case MSG_ZYGOTE_UP: /* once; and without the filters it is as good as gone */
        if (z->up || send_filters(w, z) < 0)
            break;
        z->up = true;
        tell_up(w, z, body);
        break;
    case MSG_ZYGOTE_PONG:
        warden_tell(w, MSG_PONG, z->id, (struct str){0});
        break;
    case MSG_ZYGOTE_FAIL:
        z->refused = true;
        dprintf(z->log, "\n%s\n", why);
        break;
    case MSG_FORKED:
        box_on_forked(w, z, head.id, &fd);
        break;
    case MSG_FORK_FAIL: {
        struct box_entry *b = box_due(w, z, head.id);
        if (b) {
            z->boxes--;
            box_failed(w, b, why);
            zygote_release(z);
        }
        break;
    }
    default:
        log_warn("zygote %" PRIu64 ": unexpected message %u", z->id, head.type);
    }
    fd_closep(&fd);
}

/* --- the loop --- */

static void on_request(struct warden *w, const struct warden_request *r, int fd)
{
    switch (r->type) {
    case MSG_POOL_START:
        on_pool_start(w, r);
        break;
    case MSG_POOL_STOP:
        on_pool_stop(w, r->id);
        break;
    case MSG_SPAWN:
        box_spawn(w, r, fd);
        break;
    case MSG_USAGE:
        box_tell_usage(w, r->id);
        break;
    case MSG_KILL:
        box_kill(w, r->id);
        break;
    case MSG_PING:
        on_ping(w, r->id);
        break;
    }
}

/* False when the server is gone, or out of its mind: whatever it started ends with it. */
static bool on_server(struct warden *w)
{
    static char bytes[WIRE_BODY_MAX];
    struct wire_head head;
    struct warden_request r;
    int fd = -1;
    size_t nfds = 0;
    int rc = wire_recv(w->server, &head, bytes, &fd, 1, &nfds);
    bool known;

    /* A server that ends with answers unread resets the connection: that is an end like any. */
    if (rc == 0 || (rc < 0 && (errno == ECONNRESET || errno == ENOTCONN || errno == EBADF)))
        return false;
    if (rc < 0 && errno != EBADMSG) {
        log_warn("warden: a request could not be received: %s", strerror(errno));
        return true;
    }
    known = rc == 1 && request_read(&head, (struct str){bytes, head.len}, &r) == 0;
    if (known)
        on_request(w, &r, fd);
    else
        log_error("warden: this is no request of a server; the warden ends");
    fd_closep(&fd);
    return known;
}

static void run(struct warden *w)
{
    for (;;) {
        struct epoll_event ev[1]; /* one at a time: an event may free what the next one points to */
        struct err e;
        bool wants_spare = w->spares < SPARES && w->zygotes && !w->no_spares;
        int n = epoll_wait(w->epoll, ev, 1, wants_spare ? 0 : w->lingering ? RETRY_MS : -1);
        boxes_linger(w);
        if (n == 0 && wants_spare && cgroup_spare_make(w, &e) < 0) {
            log_debug("warden: %s", e.text);
            w->no_spares = true; /* or this loop would do nothing else */
        }
        if (n <= 0)
            continue;
        struct event_source s =
            *(struct event_source *)ev[0].data.ptr; /* a copy: what holds it may be freed */
        switch (s.kind) {
        case FROM_SERVER:
            if (!on_server(w))
                return;
            break;
        case FROM_ZYGOTE:
            on_zygote(w, s.of);
            break;
        case KEEPER_GONE:
            on_keeper_gone(w, s.of);
            break;
        case BOX_GONE:
            box_on_gone(w, s.of);
            break;
        }
    }
}

/* Ending the keepers ends everything below them; then their cgroups can go. */
static void shut_down(struct warden *w)
{
    for (struct zygote *z = w->zygotes; z; z = z->next)
        syscall(SYS_pidfd_send_signal, z->pidfd, SIGKILL, NULL, 0);
    for (struct zygote *z = w->zygotes; z; z = z->next)
        waitid(P_PIDFD, (id_t)z->pidfd, &(siginfo_t){0}, WEXITED);
    for (struct box_entry *b = w->boxes; b; b = b->next)
        for (int i = 0; i < 200 && cgroup_remove(w->cgroups, b->cgroup) < 0 && errno == EBUSY; i++)
            usleep(RETRY_MS * 1000);
    while (w->spares > 0)
        (void)!cgroup_remove(w->cgroups, w->spare[--w->spares]);
    cgroups_close(w->cgroups);
}

static void drop_rights(const struct uids *uids)
{
    static const int kept[] = {CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_SYS_ADMIN};
    size_t n = uids->subordinate ? COUNT(kept) - 1 : COUNT(kept);
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (geteuid() != 0 && !uids->subordinate)
        return;
    for (size_t i = 0; i < n; i++)
        data[kept[i] / 32].permitted |= 1u << (kept[i] % 32);
    if (uids->base == 0)
        data[0].permitted |= 1u << CAP_SETFCAP;
    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    /* Best effort: in a container root may not have them all to begin with. */
    if (syscall(SYS_capset, &head, data) < 0)
        log_debug("warden: keeps its capabilities: %s", strerror(errno));
}

/* nohup, a script's job in the background: what they ignore would stay ignored across every exec,
 * down to the code in a session. */
static void forget_ignored_signals(void)
{
    struct sigaction now;

    for (int number = 1; number < NSIG; number++)
        if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            signal(number, SIG_DFL);
}

/* A server may run at a real-time priority. A sandbox may not: its code would keep everybody off
 * the processor, and a kernel with real-time groups (CONFIG_RT_GROUP_SCHED) lets no such process
 * into a new cgroup. */
static void leave_real_time(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    if (policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE)
        (void)!sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}

static _Noreturn void warden_main(const struct warden_config *config, int server)
{
    struct warden w = {.server = server, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct event_source from_server = {FROM_SERVER, NULL};
    struct err e;

    prctl(PR_SET_NAME, "retort-warden");
    prctl(PR_SET_DUMPABLE, 0);
    forget_ignored_signals();
    leave_real_time();
    w.nice = server_go_first();
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the server; its end of the socket tells us */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    setsid();
    w.uids = config->uids.base ? config->uids : uids_claim(&w.uid_lock);
    if (w.uids.base == 0 && uids_are_mapped()) { /* never as root itself for want of another */
        log_error("no user ids for sandboxes: no lock could be had in /run/retort: %s",
                  strerror(errno));
        _exit(1);
    }
    w.cgroups = cgroups_open();
    w.environments = environments_open(config, w.uids.subordinate ? 0 : w.uids.base);
    w.environment_count = config->environment_count;
    drop_rights(&w.uids);
    warden_tell(&w, MSG_WARDEN_UP, 0, (struct str){0});
    buf_init(&w.base, 256 * KiB);
    buf_init(&w.user, 64 * KiB);
    if (seccomp_compile(&w.base, &w.user, &e) < 0 || warden_watch(&w, server, &from_server) < 0) {
        log_error("warden: %s", e.text);
        _exit(1);
    }
    run(&w);
    shut_down(&w);
    _exit(0);
}

/* Nothing is left to be swapped under its hands once the server may hear a stranger. */
static int wait_until_up(int sock, struct err *e)
{
    static char bytes[WIRE_BODY_MAX];
    struct wire_head head;

    if (wire_recv(sock, &head, bytes, NULL, 0, NULL) == 1 && head.type == MSG_WARDEN_UP)
        return 0;
    return err_set(e, ERR_HOST, "the warden did not start");
}

int warden_start(const struct warden_config *config, int *ret_pidfd, struct err *e)
{
    int pair[2];
    pid_t pid;

    if (wire_pair(pair, e) < 0)
        return -1;
    pid = _Fork(); /* without the event loop's fork handlers: its descriptors are not ours */
    if (pid == 0) {
        /* The caller's files are no business of the warden's. */
        if (dup3(pair[1], WARDEN_FD, O_CLOEXEC) < 0 && errno != EINVAL)
            _exit(1);
        syscall(SYS_close_range, WARDEN_FD + 1, ~0u, 0);
        warden_main(config, WARDEN_FD);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_sys(e, "fork the warden");
    }
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (wait_until_up(pair[0], e) < 0)
        fd_closep(&pair[0]);
    return pair[0];
}
