/*
 * The zygote's loop. It runs in C and never goes back into Python: one page of the
 * interpreter dirtied here would be copied by every child from then on.
 */
#include "guest/guest.h"

#include "sandbox/box.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILTERS_MAX (512 * KiB)
#define BOX_SPACES                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |                                   \
     CLONE_NEWUTS) /* net: net_prepare */

/* Where glibc keeps this thread's id, which the child's must replace: the kernel was told to clear
 * it there. NULL if the kernel won't tell. */
static int *thread_id_address(void)
{
    int *tid = NULL;

    return prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) < 0 ? NULL : tid;
}

/* clone, not clone3: this one runs in the box, where clone3 is refused. */
pid_t raw_fork(void)
{
    int *tid = thread_id_address();

    if (!tid)
        return -1;
    return (pid_t)syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0, NULL,
                          tid, 0);
}

/* cgroup: a directory of version 2 to be born in, or -1. */
static pid_t clone_box(int cgroup, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = BOX_SPACES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PIDFD |
                 (cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .child_tid = (uint64_t)(uintptr_t)thread_id_address(),
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cgroup,
    };

    return args.child_tid ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : -1;
}

/* In the child: "0" stands for the process that writes it. */
static bool join_cgroups(const int *doors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (write(doors[i], "0", 1) != 1)
            return false;
    return true;
}

static int write_maps(pid_t pid, struct str map)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
    if (fd_write_file_at(AT_FDCWD, path, map) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
    return fd_write_file_at(AT_FDCWD, path, map);
}

static void answer_no(int sock, uint64_t id, const char *why)
{
    char body_bytes[256];
    struct buf body = {.p = body_bytes, .cap = sizeof(body_bytes), .max = sizeof(body_bytes)};
    size_t n = strlen(why);

    wire_put(&body, TAG_TEXT, (struct str){why, n < 200 ? n : 200});
    if (wire_send(sock, MSG_FORK_FAIL, id, buf_str(&body), NULL, 0) < 0)
        _exit(0);
}

static void answer_fail(int sock, uint64_t id, const char *what)
{
    char text[160];

    snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));
    answer_no(sock, id, text);
}

struct zygote_loop {
    int sock;
    struct filter base, user;
};

/* True in a new kernel. fds: init's socket, then what cgroup_doors() opened. */
static bool on_fork(const struct zygote_loop *z, uint64_t id, struct str body, const int *fds,
                    size_t nfds)
{
    struct box_plan plan;
    struct str blob, map;
    AUTO_CLOSE int pidfd = -1;
    AUTO_CLOSE int go = -1;
    AUTO_CLOSE int go_theirs = -1;
    struct err e;
    int p[2];
    pid_t pid;

    if (!wire_find(body, TAG_BLOB, &blob) || blob.n != sizeof(plan) ||
        !wire_find(body, TAG_UID_MAP, &map) || nfds == 0) {
        errno = EBADMSG;
        answer_fail(z->sock, id, "fork request");
        return false;
    }
    memcpy(&plan, blob.p, sizeof(plan));
    if (view_make(&plan, &e) < 0) {
        answer_fail(z->sock, id, "files of its size");
        return false;
    }
    if (pipe2(p, O_CLOEXEC) < 0) {
        answer_fail(z->sock, id, "pipe");
        return false;
    }
    go_theirs = p[0];
    go = p[1];
    pid = clone_box(plan.in_cgroup == CGROUP_V2 && nfds > 1 ? fds[1] : -1, &pidfd);
    if (pid == 0) {
        if (plan.in_cgroup == CGROUP_V1 && !join_cgroups(fds + 1, nfds - 1))
            _exit(1);
        close(take_fd(&go));
        signal(SIGCHLD, SIG_DFL);
        init_run(fds[0], take_fd(&go_theirs), &plan, z->base, z->user);
        take_fd(&pidfd); /* long closed; its number may be something else by now */
        return true;
    }
    if (pid < 0) {
        answer_fail(z->sock, id, "clone into new namespaces");
        return false;
    }
    if (write_maps(pid, map) < 0 || write(go, "g", 1) != 1) {
        answer_fail(z->sock, id, "map user ids");
        kill(pid, SIGKILL);
        return false;
    }
    /* It may be refused for what others have in flight, and every sandbox would go with us. */
    if (wire_send(z->sock, MSG_FORKED, id, (struct str){0}, &pidfd, 1) < 0) {
        answer_fail(z->sock, id, "hand over the sandbox");
        kill(pid, SIGKILL);
    }
    return false;
}

static int take_filters(struct zygote_loop *z, struct wire_in *in)
{
    struct str body = buf_str(&in->body);
    struct filter *const into[] = {&z->base, &z->user};
    struct wire_field f;

    for (size_t i = 0; i < COUNT(into); i++) {
        if (wire_next(&body, &f) != 1 || f.tag != TAG_BLOB)
            return -1;
        into[i]->program = (struct str){mem_strndup(f.data), f.data.n};
    }
    return 0;
}

static _Noreturn void give_up(const struct err *e)
{
    dprintf(2, "%s\n", e->text);
    _exit(1);
}

#define TICK_MS 1000

static void wait_for_request(int sock)
{
    struct pollfd p = {sock, POLLIN, 0};

    while (poll(&p, 1, TICK_MS) == 0)
        view_tick();
}

static int tell_up(int sock, struct str modules)
{
    AUTO(buf_done) struct buf body = BUF(8 * KiB);

    if (wire_are_modules(modules))
        wire_put(&body, TAG_NAME, modules);
    return wire_send(sock, MSG_ZYGOTE_UP, 0, buf_str(&body), NULL, 0);
}

void zygote_run(int sock, struct str modules)
{
    static char bytes[WIRE_BODY_MAX];
    struct zygote_loop z = {.sock = sock};
    struct wire_in in;
    struct wire_head head;
    struct err e;

    bool fresh = true; /* the network namespace: none is ever used twice */

    if (net_prepare(&e) < 0)
        give_up(&e);
    signal(SIGCHLD, SIG_IGN); /* children are reaped by the kernel; the warden has their pidfds */
    wire_in_init(&in, FILTERS_MAX);
    if (tell_up(sock, modules) < 0)
        _exit(0);
    for (;;) {
        int fds[1 + CGROUP_DOORS_MAX];
        size_t nfds = 0;
        wait_for_request(sock);
        if (wire_recv(sock, &head, bytes, fds, COUNT(fds), &nfds) <= 0)
            _exit(0); /* the warden is gone */
        if (head.type == MSG_FILTERS) {
            int rc = wire_in_add(&in, head, (struct str){bytes, head.len});
            if (rc < 0 || (rc == 1 && take_filters(&z, &in) < 0))
                _exit(1);
        }
        if (head.type == MSG_ZYGOTE_PING &&
            wire_send(sock, MSG_ZYGOTE_PONG, 0, (struct str){0}, NULL, 0) < 0)
            _exit(0);
        if (head.type == MSG_FORK && !fresh && net_prepare(&e) < 0) {
            answer_no(sock, head.id, e.text); /* the next may find what this one lacked */
        } else if (head.type == MSG_FORK) {
            if (on_fork(&z, head.id, (struct str){bytes, head.len}, fds, nfds))
                return;
            fresh = false;
        }
        for (size_t i = 0; i < nfds; i++)
            fd_closep(&fds[i]);
        if (!fresh)
            fresh = net_prepare(&e) == 0;
    }
}
