/*
 * The keeper is PID 1 of the pid namespace in which a zygote and all its sandboxes live. When the
 * keeper ends, for any reason, the kernel ends all of them. The keeper builds their root, starts
 * the zygote, and waits.
 *
 * Rights: as root, the keeper builds the root with the warden's rights and then enters a user
 * namespace that maps a range of otherwise unused uids; outside of it the keeper has no rights. As
 * an ordinary user, the keeper is in a user namespace from its first instruction, with one uid, or
 * with that uid and subordinate ones for the sandboxes.
 */
#include "warden/warden_int.h"

#include "sandbox/box.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ZYGOTE_FD 3

struct keeper {
    const struct open_environment *env;
    const struct root_plan *root;
    const struct uids *uids;
    struct str modules; /* for the zygote to import, if it can */
    bool by_root;       /* it has the host's rights until the root is built */
    int sock;           /* the zygote's end */
    int sync;           /* one byte each way while id maps are written */
    int log;
};

static _Noreturn void give_up(const struct keeper *k, const struct err *e)
{
    dprintf(k->log, "%s\n", e->text);
    _exit(1);
}

/* Asks the warden to write the id maps of this process and waits until it has. */
static int get_mapped(const struct keeper *k, struct err *e)
{
    char byte = 'm';

    if (write(k->sync, &byte, 1) != 1 || read(k->sync, &byte, 1) != 1)
        return err_set(e, ERR_HOST, "the warden wrote no id maps");
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        return err_sys(e, "take the mapped id");
    return 0;
}

/* What the kernel counts in a user namespace (queued signals, timers, namespaces) it counts for its
 * owner, too: whoever makes it. That must not be root, whose daemons would find nothing left. */
static int be_owner(uint32_t uid, struct err *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_setresuid, -1, uid, -1) < 0 || syscall(SYS_capget, &head, data) < 0)
        return err_sys(e, "become the owner of a namespace");
    for (size_t i = 0; i < COUNT(data); i++) /* gone with the uid: where only root may make one */
        data[i].effective = data[i].permitted;
    return syscall(SYS_capset, &head, data) < 0 ? err_sys(e, "keep the rights of root") : 0;
}

static int enter_root(const struct keeper *k, struct err *e)
{
    if (!k->by_root && get_mapped(k, e) < 0)
        return -1;
    if (root_build(k->root, e) < 0)
        return -1;
    /* As root: only now, for an unmapped root may not walk other people's directories. */
    if (k->by_root && be_owner(k->uids->base, e) < 0)
        return -1;
    if (k->by_root && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return err_sys(e, "new user namespace");
    if (k->by_root && get_mapped(k, e) < 0)
        return -1;
    /* With one uid it is denied for good. */
    if (k->uids->base && syscall(SYS_setgroups, 0, NULL) < 0)
        return err_sys(e, "drop groups");
    return 0;
}

/* A closed list: nothing of the caller's environment reaches the box. */
static _Noreturn void exec_zygote(const struct keeper *k)
{
    char path[640], fd[16], modules[WIRE_MODULES_MAX + 1];
    char *slash;
    const char *env[] = {
        path,
        "HOME=/tmp",
        "TMPDIR=/tmp",
        "LANG=C.UTF-8",
        "TERM=dumb",
        "USER=user",
        "LOGNAME=user",
        "SHELL=/bin/bash",
        "MPLBACKEND=module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR=" BOX_CACHE_DIR,
        "IPYTHONDIR=/tmp/.ipython",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONIOENCODING=utf-8",
        "OPENBLAS_NUM_THREADS=1",
        "OMP_NUM_THREADS=1",
        "MKL_NUM_THREADS=1",
        NULL,
    };

    /* The interpreter's own directory first, so that `python3` in a shell is the same one. */
    snprintf(path, sizeof(path), "PATH=%s", k->env->python);
    slash = strrchr(path, '/');
    if (slash)
        snprintf(slash, sizeof(path) - (size_t)(slash - path),
                 ":/usr/local/bin:/usr/bin:/bin:/usr/games");
    snprintf(fd, sizeof(fd), "%d", ZYGOTE_FD);
    snprintf(modules, sizeof(modules), "%.*s", (int)k->modules.n, k->modules.p ? k->modules.p : "");
    const char *argv[] = {k->env->python,
                          "-I",
                          "-B",
                          BOX_GUEST_DIR "/retort_guest/zygote.py",
                          fd,
                          "--preload",
                          k->env->preload,
                          "--learned",
                          modules,
                          NULL};

    if (dup2(k->sock, ZYGOTE_FD) < 0 || syscall(SYS_close_range, ZYGOTE_FD + 1, ~0u, 0) < 0)
        _exit(1);
    execve(k->env->python, (char **)argv, (char **)env);
    dprintf(2, "cannot start '%s': %s\n", k->env->python, strerror(errno));
    _exit(1);
}

static _Noreturn void keeper_main(const struct keeper *k)
{
    struct err e;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int status = 0;
    pid_t zygote, pid;

    umask(022);
    prctl(PR_SET_DUMPABLE, 1); /* unlike the warden: else its id maps would be root's to write */
    if (null < 0 || dup2(null, 0) < 0 || dup2(k->log, 1) < 0 || dup2(k->log, 2) < 0)
        _exit(1);
    if (enter_root(k, &e) < 0 || view_own_clock(&e) < 0)
        give_up(k, &e);
    /* After the last change of credentials, which clears it. The warden may be gone already. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    zygote = _Fork(); /* a fork handler would close descriptors by numbers that are ours now */
    if (zygote == 0)
        exec_zygote(k);
    if (zygote < 0) {
        err_sys(&e, "fork the zygote");
        give_up(k, &e);
    }
    syscall(SYS_close_range, 0, ~0u, 0);
    do /* PID 1 also reaps what the zygote leaves behind */
        pid = wait(&status);
    while (pid != zygote && (pid > 0 || errno == EINTR));
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void map_text(const struct uids *uids, unsigned own, char ret[UID_MAP_TEXT])
{
    if (uids->subordinate)
        snprintf(ret, UID_MAP_TEXT, "0 %u 1\n1 %u %u\n", own, uids->base, uids->count);
    else if (uids->base)
        snprintf(ret, UID_MAP_TEXT, "0 %u %u\n", uids->base, uids->count);
    else
        snprintf(ret, UID_MAP_TEXT, "0 %u 1\n", own);
}

static int write_maps(pid_t pid, const struct uids *uids, struct err *e)
{
    char dir[32], uid_map[UID_MAP_TEXT], gid_map[UID_MAP_TEXT];
    AUTO_CLOSE int proc = -1;

    snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
    proc = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys(e, "open %s", dir);
    map_text(uids, geteuid(), uid_map);
    map_text(uids, getegid(), gid_map);
    if (!uids->base && fd_write_file_at(proc, "setgroups", STR("deny")) < 0)
        return err_sys(e, "deny setgroups");
    if (fd_write_file_at(proc, "uid_map", str_of(uid_map)) < 0 ||
        fd_write_file_at(proc, "gid_map", str_of(gid_map)) < 0)
        return err_sys(e, "map user ids");
    return 0;
}

/* The other half of get_mapped(). A keeper that dies instead has said why in its log. */
static int map_keeper(pid_t pid, int sync, const struct uids *uids, struct err *e)
{
    char byte;

    if (read(sync, &byte, 1) != 1)
        return 0;
    if (write_maps(pid, uids, e) < 0)
        return -1;
    return write(sync, &byte, 1) == 1 ? 0 : err_sys(e, "tell the keeper");
}

/* Detached mounts, for the keeper to take along: its own namespace has no way to what is open here.
 * Where directories are names, their row says so (-1). */
static int take_dirs(const struct open_environment *env, struct root_dir *ret, struct err *e)
{
    for (size_t i = 0; i < env->dir_count; i++) {
        ret[i] = env->dirs[i];
        if (ret[i].fd >= 0 && (ret[i].fd = root_dir_take(ret[i].fd)) < 0)
            return err_sys(e, "take '%s'", ret[i].path);
    }
    return 0;
}

static pid_t clone_keeper(const struct keeper *k, int ours, int sync_ours, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                 CLONE_PIDFD | (k->by_root ? 0 : CLONE_NEWUSER),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

    if (pid == 0) {
        close(ours); /* else the zygote would never see the warden's end close */
        close(sync_ours);
        keeper_main(k);
    }
    return pid;
}

int keeper_start(const struct open_environment *env, const struct uids *uids, struct str modules,
                 int *ret_sock, int *ret_log, struct err *e)
{
    AUTO_CLOSE int ours = -1;
    AUTO_CLOSE int theirs = -1;
    AUTO_CLOSE int sync_ours = -1;
    AUTO_CLOSE int sync_theirs = -1;
    AUTO_CLOSE int log = memfd_create("zygote-log", MFD_CLOEXEC);
    struct root_dir dirs[COUNT(env->dirs)] = {0};
    const struct root_plan root = {dirs, env->dir_count};
    int pidfd = -1, pair[2];
    pid_t pid = -1;

    if (log < 0)
        return err_sys(e, "memfd_create");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "socketpair");
    ours = pair[0];
    theirs = pair[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "socketpair");
    sync_ours = pair[0];
    sync_theirs = pair[1];

    bool taken = take_dirs(env, dirs, e) == 0;
    if (taken) {
        struct keeper k = {env,    &root,       uids, modules, uids->base && !uids->subordinate,
                           theirs, sync_theirs, log};
        pid = clone_keeper(&k, ours, sync_ours, &pidfd);
        if (pid < 0)
            err_sys(e, "start a keeper in new namespaces");
    }
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (dirs[i].fd > 0)
            fd_closep(&dirs[i].fd);
    if (pid < 0)
        return -1;
    fd_closep(&sync_theirs);
    if (map_keeper(pid, sync_ours, uids, e) < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        fd_closep(&pidfd);
        return -1;
    }
    *ret_sock = take_fd(&ours);
    *ret_log = take_fd(&log);
    return pidfd;
}
