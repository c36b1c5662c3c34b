/*
 * Boxes: each gets a slot of user ids, a cgroup, and a fork of the zygote, and gives them back at
 * its end. A cgroup can be removed only some moments after its last process, so the entry of a box
 * stays until then.
 */
#include "warden/warden_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct box_entry *box_find(struct warden *w, uint64_t id)
{
    for (struct box_entry *b = w->boxes; b; b = b->next)
        if (b->id == id)
            return b;
    return NULL;
}

static int slot_take(struct warden *w, unsigned *ret)
{
    unsigned slots = w->uids.base ? w->uids.count / UID_SLOT - 1 : SLOTS;

    for (unsigned n = 0; n < slots; n++) {
        unsigned i = (w->slot_hint + n) % slots;
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

    if (w->uids.base)
        snprintf(ret, UID_MAP_TEXT, "0 %u 1\n%d %u 1\n", first, BOX_USER, first + 1);
    else
        snprintf(ret, UID_MAP_TEXT, "%d 0 1\n", BOX_USER);
}

/* Who the code of a box is to the server. */
static uint64_t uid_of(const struct warden *w, unsigned slot)
{
    if (!w->uids.base)
        return geteuid();
    /* The zygote's uid 0 is the first of the range, or the caller, and the range begins at 1. */
    return w->uids.base + UID_SLOT * (slot + 1) + 1 - w->uids.subordinate;
}

int cgroup_spare_make(struct warden *w, struct err *e)
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
    if (w->spares == 0 && cgroup_spare_make(w, e) < 0)
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
    AUTO(buf_done) struct buf body = BUF(4 * KiB);
    int rc;

    if (doors < 0)
        return -1;
    uid_map_text(w, b->slot, map);
    wire_put(&body, TAG_BLOB, (struct str){(const char *)plan, sizeof(*plan)});
    wire_put(&body, TAG_UID_MAP, str_of(map));
    rc = wire_send(z->sock, MSG_FORK, b->id, buf_str(&body), fds, 1 + (size_t)doors);
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
    if (!b->failed)
        warden_tell(w, MSG_GONE, b->id, (struct str){0});
    box_forget(w, b);
}

/* A zygote that dies, or that fails late, may leave a process in the cgroup that is about to end.
 */
void box_failed(struct warden *w, struct box_entry *b, const char *why)
{
    warden_tell_text(w, MSG_SPAWN_FAIL, b->id, why);
    b->zygote = NULL;
    b->failed = true;
    linger(w, b);
}

/* The far end of it is the server's. Anything else would be handed to a sandbox by us. */
static bool is_control_socket(int fd)
{
    int domain = 0, type = 0;
    socklen_t n = sizeof(domain), m = sizeof(type);

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 && domain == AF_UNIX &&
           type == SOCK_SEQPACKET;
}

static const char *objection(struct warden *w, const struct warden_request *r,
                             const struct zygote *z, int ctl)
{
    if (r->objection)
        return r->objection;
    if (!is_control_socket(ctl))
        return "no control socket came with the request";
    if (box_find(w, r->id))
        return "there is a sandbox with this id";
    return z && z->up && !z->retired ? NULL : "no such zygote";
}

void box_spawn(struct warden *w, const struct warden_request *r, int ctl)
{
    struct box_entry *b;
    struct zygote *z = w->zygotes;
    struct box_plan plan = r->plan;
    const char *no;
    struct err e;
    unsigned slot = 0;

    while (z && z->id != r->zygote)
        z = z->next;
    no = objection(w, r, z, ctl);
    if (no)
        return warden_tell_text(w, MSG_SPAWN_FAIL, r->id, no);
    if (slot_take(w, &slot) < 0)
        return warden_tell_text(w, MSG_SPAWN_FAIL, r->id, "every user id is in use");

    plan.init_uid = w->uids.base ? 0 : BOX_USER;
    plan.in_cgroup = (uint32_t)cgroups_mode(w->cgroups);
    plan.nice = w->nice;
    b = mem_zalloc(sizeof(*b));
    *b = (struct box_entry){.next = w->boxes, .id = r->id, .zygote = z, .pidfd = -1, .slot = slot};
    w->boxes = b;
    if (take_cgroup(w, &plan, &b->cgroup, &e) < 0 || ask_fork(w, z, b, &plan, ctl, &e) < 0)
        return box_failed(w, b, e.text);
    z->boxes++;
}

void box_on_gone(struct warden *w, struct box_entry *b)
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
struct box_entry *box_due(struct warden *w, struct zygote *z, uint64_t id)
{
    struct box_entry *b = box_find(w, id);

    return b && b->zygote == z && b->pidfd < 0 ? b : NULL;
}

static void tell_spawned(struct warden *w, const struct box_entry *b)
{
    AUTO(buf_done) struct buf body = BUF(KiB);
    int meters[METERS];
    size_t there = 0;

    cgroup_meters(w->cgroups, b->cgroup, meters);
    while (there < METERS && meters[there] >= 0)
        there++;
    wire_put_num(&body, TAG_UID, uid_of(w, b->slot));
    wire_put_num(&body, TAG_FLAGS, cgroups_mode(w->cgroups) != CGROUP_NONE);
    warden_tell_with(w, MSG_SPAWNED, b->id, buf_str(&body), meters, there);
    for (size_t i = 0; i < METERS; i++)
        fd_closep(&meters[i]);
}

void box_on_forked(struct warden *w, struct zygote *z, uint64_t id, int *pidfd)
{
    struct box_entry *b = box_due(w, z, id);

    if (!b || *pidfd < 0)
        return;
    b->pidfd = take_fd(pidfd);
    b->from_pidfd = (struct event_source){BOX_GONE, b};
    if (warden_watch(w, b->pidfd, &b->from_pidfd) < 0) {
        syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
        return box_on_gone(w, b);
    }
    tell_spawned(w, b);
}

void box_tell_usage(struct warden *w, uint64_t id)
{
    struct box_entry *b = box_find(w, id);
    struct box_usage u = {0};
    AUTO(buf_done) struct buf body = BUF(KiB);

    if (b)
        cgroup_usage(w->cgroups, b->cgroup, &u);
    wire_put_num(&body, TAG_OOM_KILLS, u.oom_kills);
    wire_put_num(&body, TAG_PID_HITS, u.pid_hits);
    warden_tell(w, MSG_USED, id, buf_str(&body));
}

void box_kill(struct warden *w, uint64_t id)
{
    struct box_entry *b = box_find(w, id);

    if (b && b->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

void boxes_linger(struct warden *w)
{
    for (struct box_entry *b = w->boxes, *next; b && w->lingering > 0; b = next) {
        next = b->next;
        if (b->gone)
            linger(w, b);
    }
}
