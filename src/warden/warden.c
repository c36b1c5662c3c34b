/*
 * Theory of operation. One thread, one epoll, three kinds of things to wait for:
 * the server's socket, each zygote's socket, and a pidfd for each keeper and each
 * sandbox's init. A spawn goes server -> warden (cgroup, uid slot) -> zygote (fork,
 * id maps) -> warden -> server; whatever fails on the way is undone here.
 *
 * Rights it keeps when started by root, and why:
 *   CAP_SYS_ADMIN                  namespaces and mounts of keepers, cgroups
 *   CAP_SETUID, CAP_SETGID         id maps of keepers
 *   CAP_DAC_READ_SEARCH            a Python below somebody's home
 *   CAP_CHOWN, CAP_KILL            the cache directory; ending what is left
 *   CAP_SETFCAP                    root with one uid: without it uid 0 may not be mapped
 * Started by an ordinary user it has none and needs none.
 */
#include "warden/warden_int.h"

#include "sandbox/box.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
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
#define SPARES    8

enum source_kind { FROM_SERVER, FROM_ZYGOTE, KEEPER_GONE, BOX_GONE };

struct source {
    enum source_kind kind;
    void *of; /* borrowed: struct zygote or struct box_entry */
};

struct zygote {
    struct zygote *next;
    uint64_t id;
    int sock, pidfd, log;      /* owned */
    bool up, retired, refused; /* refused: the interpreter itself said that it will not do */
    unsigned boxes;
    struct source from_sock, from_pidfd;
};

struct box_entry {
    struct box_entry *next;
    uint64_t id;
    struct zygote *zygote; /* borrowed: outlives its boxes; NULL once the zygote is gone */
    int pidfd;             /* owned; -1 until forked */
    unsigned slot;
    uint64_t cgroup;
    bool gone; /* processes are gone, the cgroup not yet */
    struct source from_pidfd;
};

struct warden {
    int server, epoll;
    uint32_t uid_base; /* 0: there is one uid */
    int uid_lock;      /* owned: holds our block of uids */
    struct cgroups *cgroups;
    struct buf base, user; /* seccomp programs */
    struct zygote *zygotes;
    struct box_entry *boxes;
    unsigned char slot_used[SLOTS];
    unsigned slot_hint;
    unsigned lingering; /* boxes that are gone but for their cgroup */
    uint64_t next_cgroup;
    uint64_t spare[SPARES]; /* cgroups made while there was nothing else to do */
    unsigned spares;
    bool no_spares; /* making one failed: only when there is need */
};

static void tell(struct warden *w, uint16_t type, uint64_t id, struct str body)
{
    if (wire_send(w->server, type, id, body, NULL, 0) < 0)
        log_debug("warden: the server is gone");
}

static void tell_text(struct warden *w, uint16_t type, uint64_t id, const char *text)
{
    struct buf b;

    buf_init(&b, 4 * KiB);
    wire_put(&b, TAG_TEXT, str_of(text));
    tell(w, type, id, buf_str(&b));
    buf_done(&b);
}

static int watch(struct warden *w, int fd, struct source *s)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};

    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* --- boxes --- */

static struct box_entry *box_find(struct warden *w, uint64_t id)
{
    for (struct box_entry *b = w->boxes; b; b = b->next)
        if (b->id == id)
            return b;
    return NULL;
}

static int slot_take(struct warden *w, unsigned *ret)
{
    for (unsigned n = 0; n < SLOTS; n++) {
        unsigned i = (w->slot_hint + n) % SLOTS;
        if (!w->slot_used[i]) {
            w->slot_used[i] = 1;
            w->slot_hint =
                i + 1; /* the longest-unused first: a stray file finds no new owner soon */
            *ret = i;
            return 0;
        }
    }
    return -1;
}

static void box_forget(struct warden *w, struct box_entry *b)
{
    struct box_entry **at = &w->boxes;

    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    w->slot_used[b->slot] = 0;
    fd_closep(&b->pidfd);
    free(b);
}

/* Uids as the zygote's namespace numbers them. Slot 0's pair starts after the zygote's own. */
static void uid_map_text(struct warden *w, unsigned slot, char ret[UID_MAP_TEXT])
{
    unsigned first = UID_SLOT * (slot + 1);

    if (w->uid_base)
        snprintf(ret, UID_MAP_TEXT, "0 %u 1\n%d %u 1\n", first, BOX_USER, first + 1);
    else
        snprintf(ret, UID_MAP_TEXT, "%d 0 1\n", BOX_USER);
}

static int make_spare(struct warden *w, struct err *e)
{
    uint64_t id = ++w->next_cgroup;

    if (cgroup_make(w->cgroups, id, e) < 0) {
        (void)!cgroup_remove(w->cgroups, id); /* what there is of it */
        return -1;
    }
    w->spare[w->spares++] = id;
    return 0;
}

static int take_cgroup(struct warden *w, const struct box_plan *plan, uint64_t *ret, struct err *e)
{
    if (w->spares == 0 && make_spare(w, e) < 0)
        return -1;
    *ret = w->spare[--w->spares];
    return cgroup_limit(w->cgroups, *ret, plan, e);
}

static int ask_fork(struct warden *w, struct zygote *z, struct box_entry *b,
                    const struct box_plan *plan, int ctl, struct err *e)
{
    int fds[1 + CGROUP_DOORS_MAX] = {ctl};
    int doors = cgroup_doors(w->cgroups, b->cgroup, fds + 1, e);
    char map[UID_MAP_TEXT];
    struct buf body;
    int rc;

    if (doors < 0)
        return -1;
    uid_map_text(w, b->slot, map);
    buf_init(&body, 4 * KiB);
    wire_put(&body, TAG_BLOB, (struct str){(const char *)plan, sizeof(*plan)});
    wire_put(&body, TAG_UID_MAP, str_of(map));
    rc = wire_send(z->sock, MSG_FORK, b->id, buf_str(&body), fds, 1 + (size_t)doors);
    buf_done(&body);
    for (int i = 1; i <= doors; i++)
        fd_closep(&fds[i]);
    return rc < 0 ? err_sys(e, "ask the zygote") : 0;
}

static void linger(struct warden *w, struct box_entry *b)
{
    if (cgroup_remove(w->cgroups, b->cgroup) < 0 && errno == EBUSY) {
        w->lingering += !b->gone;
        b->gone = true;
        return;
    }
    w->lingering -= b->gone;
    tell(w, MSG_GONE, b->id, (struct str){0});
    box_forget(w, b);
}

static void spawn_failed(struct warden *w, struct box_entry *b, const char *why)
{
    tell_text(w, MSG_SPAWN_FAIL, b->id, why);
    if (b->cgroup)
        (void)!cgroup_remove(w->cgroups, b->cgroup);
    box_forget(w, b);
}

static void on_spawn(struct warden *w, uint64_t id, struct str body, int ctl)
{
    struct box_entry *b;
    struct zygote *z = w->zygotes;
    struct box_plan plan;
    struct str blob = {0};
    struct err e;
    uint64_t zygote_id = 0;
    unsigned slot = 0;

    if (!wire_find(body, TAG_BLOB, &blob) || blob.n != sizeof(plan) ||
        !wire_find_num(body, TAG_ZYGOTE, &zygote_id) || ctl < 0 || box_find(w, id))
        return tell_text(w, MSG_SPAWN_FAIL, id, "malformed spawn request");
    while (z && z->id != zygote_id)
        z = z->next;
    if (!z || !z->up || z->retired)
        return tell_text(w, MSG_SPAWN_FAIL, id, "no such zygote");
    if (slot_take(w, &slot) < 0)
        return tell_text(w, MSG_SPAWN_FAIL, id, "every user id is in use");

    memcpy(&plan, blob.p, sizeof(plan));
    plan.init_uid = w->uid_base ? 0 : BOX_USER;
    plan.in_cgroup = (uint32_t)cgroups_mode(w->cgroups);
    b = mem_zalloc(sizeof(*b));
    *b = (struct box_entry){.next = w->boxes, .id = id, .zygote = z, .pidfd = -1, .slot = slot};
    w->boxes = b;
    if (take_cgroup(w, &plan, &b->cgroup, &e) < 0 || ask_fork(w, z, b, &plan, ctl, &e) < 0)
        return spawn_failed(w, b, e.text);
    z->boxes++;
}

static void zygote_release(struct zygote *z)
{
    if (z->retired && z->boxes == 0)
        syscall(SYS_pidfd_send_signal, z->pidfd, SIGKILL, NULL, 0);
}

static void on_box_gone(struct warden *w, struct box_entry *b)
{
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, b->pidfd, NULL);
    if (b->zygote) {
        b->zygote->boxes--;
        zygote_release(b->zygote);
        b->zygote = NULL;
    }
    linger(w, b);
}

/* The box that a zygote speaks of: one it was asked for and has not answered. */
static struct box_entry *box_due(struct warden *w, struct zygote *z, uint64_t id)
{
    struct box_entry *b = box_find(w, id);

    return b && b->zygote == z && b->pidfd < 0 ? b : NULL;
}

static void on_forked(struct warden *w, struct zygote *z, uint64_t id, int *pidfd)
{
    struct box_entry *b = box_due(w, z, id);
    struct buf body;

    if (!b || *pidfd < 0)
        return;
    b->pidfd = take_fd(pidfd);
    b->from_pidfd = (struct source){BOX_GONE, b};
    if (watch(w, b->pidfd, &b->from_pidfd) < 0) {
        syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
        return on_box_gone(w, b);
    }
    buf_init(&body, KiB);
    wire_put_num(&body, TAG_UID,
                 w->uid_base ? w->uid_base + UID_SLOT * (b->slot + 1) + 1 : (uint64_t)geteuid());
    wire_put_num(&body, TAG_FLAGS, cgroups_mode(w->cgroups) != CGROUP_NONE);
    tell(w, MSG_SPAWNED, id, buf_str(&body));
    buf_done(&body);
}

static void on_usage(struct warden *w, uint64_t id)
{
    struct box_entry *b = box_find(w, id);
    struct box_usage u = {0};
    struct buf body;

    if (b)
        cgroup_usage(w->cgroups, b->cgroup, &u);
    buf_init(&body, KiB);
    wire_put_num(&body, TAG_MEMORY, u.memory_peak_bytes);
    wire_put_num(&body, TAG_CPU_US, u.cpu_us);
    wire_put_num(&body, TAG_OOM_KILLS, u.oom_kills);
    wire_put_num(&body, TAG_PID_HITS, u.pid_hits);
    tell(w, MSG_USED, id, buf_str(&body));
    buf_done(&body);
}

static void on_kill(struct warden *w, uint64_t id)
{
    struct box_entry *b = box_find(w, id);

    if (b && b->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

/* --- zygotes --- */

/* A cache belongs to the zygote's uid: instances with other blocks of uids have their own. */
static void own_cache_name(struct zygote_spec *spec, unsigned block)
{
    char path[600];

    snprintf(path, sizeof(path), "%s.%u", spec->cache_dir, block);
    free(spec->cache_dir);
    spec->cache_dir = mem_strdup(path);
}

static void on_pool_start(struct warden *w, uint64_t id, struct str body)
{
    struct zygote_spec spec = {.uid_base = w->uid_base};
    struct wire_field f;
    struct err e;
    struct zygote *z;
    size_t dirs = 0;
    int sock = -1, log = -1, pidfd;

    while (wire_next(&body, &f) == 1) {
        char **at = f.tag == TAG_PYTHON                   ? &spec.python
                    : f.tag == TAG_PRELOAD                ? &spec.preload
                    : f.tag == TAG_GUEST_DIR              ? &spec.guest_dir
                    : f.tag == TAG_CACHE_DIR              ? &spec.cache_dir
                    : f.tag == TAG_DIR && dirs < DIRS_MAX ? &spec.dirs[dirs++]
                                                          : NULL;
        if (at && !*at)
            *at = mem_strndup(f.data);
    }
    if (spec.cache_dir && w->uid_base > UID_BASE)
        own_cache_name(&spec, (w->uid_base - UID_BASE) / UID_COUNT);
    if (!spec.python || !spec.preload || !spec.guest_dir) {
        tell_text(w, MSG_POOL_DOWN, id, "malformed pool request");
        zygote_spec_done(&spec);
        return;
    }
    pidfd = keeper_start(&spec, &sock, &log, &e);
    zygote_spec_done(&spec);
    if (pidfd < 0)
        return tell_text(w, MSG_POOL_DOWN, id, e.text);
    z = mem_zalloc(sizeof(*z));
    *z = (struct zygote){.next = w->zygotes, .id = id, .sock = sock, .pidfd = pidfd, .log = log};
    z->from_sock = (struct source){FROM_ZYGOTE, z};
    z->from_pidfd = (struct source){KEEPER_GONE, z};
    w->zygotes = z;
    if (watch(w, sock, &z->from_sock) < 0 || watch(w, pidfd, &z->from_pidfd) < 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static void on_pool_stop(struct warden *w, uint64_t id)
{
    for (struct zygote *z = w->zygotes; z; z = z->next) {
        if (z->id == id) {
            z->retired = true;
            zygote_release(z);
        }
    }
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
    struct buf body;
    char why[512];

    waitid(P_PIDFD, (id_t)z->pidfd, &how, WEXITED);
    last_words(z->log, &how, why, sizeof(why));
    buf_init(&body, 4 * KiB);
    wire_put(&body, TAG_TEXT, str_of(why));
    wire_put_num(&body, TAG_STATUS, z->refused);
    tell(w, MSG_POOL_DOWN, z->id, buf_str(&body));
    buf_done(&body);
    /* Boxes it had asked for and not forked will never come; those it had are dying with it. */
    for (struct box_entry *b = w->boxes, *next; b; b = next) {
        next = b->next;
        if (b->zygote != z)
            continue;
        b->zygote = NULL;
        if (b->pidfd < 0)
            spawn_failed(w, b, "the zygote died");
    }
    while (*at != z)
        at = &(*at)->next;
    *at = z->next;
    /* Closing is not enough: a keeper that is just starting still holds copies of both. */
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, z->sock, NULL);
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, z->pidfd, NULL);
    fd_closep(&z->sock);
    fd_closep(&z->pidfd);
    fd_closep(&z->log);
    free(z);
}

static int send_filters(struct warden *w, struct zygote *z)
{
    struct buf body;
    int rc;

    buf_init(&body, MiB);
    wire_put(&body, TAG_BLOB, buf_str(&w->base));
    wire_put(&body, TAG_BLOB, buf_str(&w->user));
    rc = wire_send(z->sock, MSG_FILTERS, z->id, buf_str(&body), NULL, 0);
    buf_done(&body);
    return rc;
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
        tell(w, MSG_POOL_UP, z->id, (struct str){0});
        break;
    case MSG_ZYGOTE_FAIL:
        z->refused = true;
        dprintf(z->log, "\n%s\n", why);
        break;
    case MSG_FORKED:
        on_forked(w, z, head.id, &fd);
        break;
    case MSG_FORK_FAIL: {
        struct box_entry *b = box_due(w, z, head.id);
        if (b) {
            z->boxes--;
            spawn_failed(w, b, why);
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

/* False when the server is gone. */
static bool on_server(struct warden *w)
{
    static char bytes[WIRE_BODY_MAX];
    struct wire_head head;
    int fd = -1;
    size_t nfds = 0;
    int rc = wire_recv(w->server, &head, bytes, &fd, 1, &nfds);

    if (rc <= 0)
        return false;
    struct str body = {bytes, head.len};
    switch (head.type) {
    case MSG_POOL_START:
        on_pool_start(w, head.id, body);
        break;
    case MSG_POOL_STOP:
        on_pool_stop(w, head.id);
        break;
    case MSG_SPAWN:
        on_spawn(w, head.id, body, fd);
        break;
    case MSG_USAGE:
        on_usage(w, head.id);
        break;
    case MSG_KILL:
        on_kill(w, head.id);
        break;
    default:
        log_warn("warden: unexpected message %u", head.type);
    }
    fd_closep(&fd);
    return true;
}

static void retry_lingering(struct warden *w)
{
    for (struct box_entry *b = w->boxes, *next; b && w->lingering > 0; b = next) {
        next = b->next;
        if (b->gone)
            linger(w, b);
    }
}

static void run(struct warden *w)
{
    for (;;) {
        struct epoll_event ev[1]; /* one at a time: an event may free what the next one points to */
        struct err e;
        bool wants_spare = w->spares < SPARES && w->zygotes && !w->no_spares;
        int n = epoll_wait(w->epoll, ev, 1, wants_spare ? 0 : w->lingering ? RETRY_MS : -1);
        retry_lingering(w);
        if (n == 0 && wants_spare && make_spare(w, &e) < 0) {
            log_debug("warden: %s", e.text);
            w->no_spares = true; /* or this loop would do nothing else */
        }
        if (n <= 0)
            continue;
        struct source s = *(struct source *)ev[0].data.ptr; /* a copy: what holds it may be freed */
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
            on_box_gone(w, s.of);
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

static void drop_rights(bool has_range)
{
    static const int kept[] = {CAP_SYS_ADMIN,       CAP_SETUID, CAP_SETGID,
                               CAP_DAC_READ_SEARCH, CAP_CHOWN,  CAP_KILL};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (geteuid() != 0)
        return;
    for (size_t i = 0; i < COUNT(kept); i++)
        data[kept[i] / 32].permitted |= 1u << (kept[i] % 32);
    if (!has_range)
        data[0].permitted |= 1u << CAP_SETFCAP;
    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    /* Best effort: in a container root may not have them all to begin with. */
    if (syscall(SYS_capset, &head, data) < 0)
        log_debug("warden: keeps its capabilities: %s", strerror(errno));
}

static _Noreturn void warden_main(int server)
{
    struct warden w = {.server = server, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct source from_server = {FROM_SERVER, NULL};
    struct err e;

    prctl(PR_SET_NAME, "retort-warden");
    prctl(PR_SET_DUMPABLE, 0);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the server; its end of the socket tells us */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    setsid();
    w.uid_base = uids_claim(&w.uid_lock);
    if (w.uid_base == 0 && uids_are_mapped()) { /* never as root itself for want of another */
        log_error("no user ids for sandboxes: no lock could be had in /run/retort: %s",
                  strerror(errno));
        _exit(1);
    }
    w.cgroups = cgroups_open();
    drop_rights(w.uid_base != 0);
    buf_init(&w.base, 256 * KiB);
    buf_init(&w.user, 64 * KiB);
    if (seccomp_compile(&w.base, &w.user, &e) < 0 || watch(&w, server, &from_server) < 0) {
        log_error("warden: %s", e.text);
        _exit(1);
    }
    run(&w);
    shut_down(&w);
    _exit(0);
}

int warden_start(int *ret_pidfd, struct err *e)
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
        warden_main(WARDEN_FD);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_sys(e, "fork the warden");
    }
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pair[0];
}
