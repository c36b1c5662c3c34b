/* Probes of single system calls, and of the layers that are made of a few of them. */
#include "sandbox/box_int.h"
#include "sandbox/probe_int.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 1000

/* --- processes and files --- */

/* That it runs is what was asked. */
int probe_processes(struct layer_found *ret, struct err *e)
{
    (void)e;
    probe_say(ret, "can be started");
    return 0;
}

/* into: a directory of cgroup version 2 to be born in, or -1. */
static pid_t call_clone3(uint64_t flags, int into, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = flags | CLONE_PIDFD | (into >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)into,
    };

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int probe_clone3(struct layer_found *ret, struct err *e)
{
    AUTO_CLOSE int pidfd = -1;
    pid_t pid = call_clone3(0, -1, &pidfd);

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return err_sys(e, "refused");
    if (probe_wait(pid, WAIT_MS, e) < 0)
        return -1;
    probe_say(ret, "a child made with it");
    return 0;
}

int probe_pidfd(struct layer_found *ret, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    struct pollfd gone = {.events = POLLIN};
    siginfo_t how = {0};
    pid_t pid = probe_fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    if (pid < 0)
        return err_sys(e, "fork");
    fd = gone.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0) {
        err_sys(e, "refused");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    if (poll(&gone, 1, WAIT_MS) != 1 || waitid(P_PIDFD, (id_t)fd, &how, WEXITED) < 0 ||
        how.si_pid != pid)
        return err_set(e, ERR_HOST, "it does not tell when its process is gone");
    probe_say(ret, "a child ended and awaited through one");
    return 0;
}

int probe_openat2(struct layer_found *ret, struct err *e)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    AUTO_CLOSE int dir = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int in = (int)syscall(SYS_openat2, dir, ".", &how, sizeof(how));

    if (in < 0)
        return err_sys(e, "refused");
    if (probe_refused(syscall(SYS_openat2, dir, "..", &how, sizeof(how)), EXDEV,
                      "leaving a directory", e) < 0)
        return -1;
    probe_say(ret, "a way out of a directory was refused");
    return 0;
}

int probe_close_range(struct layer_found *ret, struct err *e)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 16);

    if (fd < 0 || syscall(SYS_close_range, fd, ~0u, 0) < 0)
        return err_sys(e, "refused");
    if (fcntl(fd, F_GETFD) >= 0)
        return err_set(e, ERR_HOST, "a descriptor was left open");
    probe_say(ret, "it closes what is open");
    return 0;
}

int probe_tid_address(struct layer_found *ret, struct err *e)
{
    int *tid = NULL;

    if (prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) < 0)
        return err_sys(e, "PR_GET_TID_ADDRESS");
    if (!tid || *tid != (int)getpid())
        return err_set(e, ERR_HOST, "it does not hold the thread id");
    probe_say(ret, "it holds the thread id");
    return 0;
}

int probe_memfd(struct layer_found *ret, struct err *e)
{
    AUTO_CLOSE int fd = memfd_create("probe", MFD_CLOEXEC);
    char back[2] = "";

    if (fd < 0)
        return err_sys(e, "refused");
    if (pwrite(fd, "x", 1, 0) != 1 || pread(fd, back, 1, 0) != 1 || back[0] != 'x')
        return err_sys(e, "a file in memory does not keep what is written to it");
    probe_say(ret, "a file in memory written and read");
    return 0;
}

/* What freezing an interpreter needs: a sparse file with room for every address, and page flags. */
int probe_image(struct layer_found *ret, struct err *e)
{
    AUTO_CLOSE int file = memfd_create("probe", MFD_CLOEXEC);
    AUTO_CLOSE int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    volatile char page_of_ours = 1;
    uint64_t flags = 0;
    off_t at = (off_t)((uintptr_t)&page_of_ours / (uintptr_t)sysconf(_SC_PAGESIZE) * sizeof(flags));

    if (file < 0 || ftruncate(file, 1LL << 47) < 0)
        return err_sys(e, "no file in memory that is large enough");
    if (pagemap < 0 || pread(pagemap, &flags, sizeof(flags), at) != sizeof(flags))
        return err_sys(e, "/proc/self/pagemap cannot be read");
    if (!(flags >> 63))
        return err_set(e, ERR_HOST, "/proc/self/pagemap does not know a page that is in use");
    probe_say(ret, "the interpreter can be frozen: page flags are readable");
    return 0;
}

/* --- confining oneself --- */

static int give_up_privileges(struct err *e)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "refused");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return err_set(e, ERR_HOST, "it does not stay set");
    return 0;
}

int probe_no_new_privs(struct layer_found *ret, struct err *e)
{
    if (give_up_privileges(e) < 0)
        return -1;
    probe_say(ret, "set");
    return 0;
}

/* Each program is shown to be what refuses: the same call works just before. */
static int try_filters(struct filter base, struct filter user, struct err *e)
{
    AUTO_CLOSE int before = memfd_create("probe", MFD_CLOEXEC);

    if (before < 0)
        return err_sys(e, "memfd_create is refused without a filter");
    if (give_up_privileges(e) < 0 || filter_install(base) < 0)
        return err_sys(e, "the filter cannot be loaded");
    if (probe_refused(memfd_create("probe", MFD_CLOEXEC), ENOSYS, "what the filter forbids", e) < 0)
        return -1;
    if (syscall(SYS_setresuid, -1, -1, -1) < 0 || filter_install(user) < 0)
        return err_sys(e, "the second filter cannot be loaded");
    return probe_refused(syscall(SYS_setresuid, -1, -1, -1), EPERM,
                         "what the second filter forbids", e);
}

int probe_seccomp(struct layer_found *ret, struct err *e)
{
    struct buf base, user;
    int rc = -1;

    buf_init(&base, 256 * KiB);
    buf_init(&user, 64 * KiB);
    if (seccomp_compile(&base, &user, e) == 0)
        rc = try_filters((struct filter){buf_str(&base)}, (struct filter){buf_str(&user)}, e);
    probe_say(ret, "both filters loaded (%zu and %zu instructions); each refused what it forbids",
              base.n / sizeof(struct sock_filter), user.n / sizeof(struct sock_filter));
    buf_done(&base);
    buf_done(&user);
    return rc;
}

/* The listener of the real box. Nothing is asked here: nobody would answer. */
int probe_answers(struct layer_found *ret, struct err *e)
{
    static const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

    if (give_up_privileges(e) < 0)
        return -1;
    if (answers_listen((struct filter){
            {(const char *)&allow, sizeof(allow)}
    }) < 0)
        return err_sys(e, "no system call can be answered by init");
    probe_say(ret, "system calls that tell the host's size are answered by init");
    return 0;
}

/* --- Landlock --- */

struct landlock_gain {
    int abi;
    const char *what;
};

static const struct landlock_gain landlock_gains[] = {
    {2, "moves between directories are refused altogether"},
    {3, "truncation is not held"                          },
    {5, "ioctls on devices are not held"                  },
    {6, "abstract sockets and signals are not scoped (the net and pid namespaces still keep them "
        "apart)"                                   },
};

static void say_landlock(struct layer_found *ret, int abi)
{
    size_t n;

    probe_say(ret, "version %d; a device node was refused", abi);
    for (size_t i = 0; i < COUNT(landlock_gains); i++) {
        if (abi >= landlock_gains[i].abi)
            continue;
        ret->state = LAYER_WEAKER;
        n = strlen(ret->detail);
        snprintf(ret->detail + n, sizeof(ret->detail) - n, "; %s", landlock_gains[i].what);
    }
}

/* The step of the real box and its own check, in a /tmp where a mistake would do no harm. */
static int try_landlock(struct layer_found *ret, struct err *e)
{
    if (probe_enter_mount_space(ret, "size=64k,mode=1777", e) < 0)
        return -1;
    if (give_up_privileges(e) < 0 || landlock_enter(NULL, e) < 0)
        return -1;
    return landlock_verify(NULL, e);
}

int probe_landlock(struct layer_found *ret, struct err *e)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 1 && errno == EOPNOTSUPP)
        return err_set(e, ERR_HOST, "built in, but not enabled");
    if (abi < 1)
        return err_sys(e, "not in this kernel");
    if (try_landlock(ret, e) < 0)
        return -1;
    say_landlock(ret, abi);
    return 0;
}

/* --- cgroups --- */

struct group {
    struct cgroups *cgroups;
    int doors[CGROUP_DOORS_MAX];
    int count;
};

/* As a sandbox would: born there in version 2, by its own step in version 1. */
static int join(void *arg, struct err *e)
{
    const struct group *g = arg;
    int pidfd = -1;
    pid_t pid;

    if (cgroups_mode(g->cgroups) == CGROUP_V2) {
        pid = call_clone3(0, g->doors[0], &pidfd);
        if (pid == 0)
            _exit(0);
        return pid < 0 ? err_sys(e, "no process can be born in a group")
                       : probe_wait(pid, WAIT_MS, e);
    }
    for (int i = 0; i < g->count; i++)
        if (write(g->doors[i], "0", 1) != 1)
            return err_sys(e, "no process can join a group");
    return 0;
}

static int try_group(struct cgroups *cg, struct err *e)
{
    const struct box_plan plan = {.memory_bytes = 64 * MiB, .pids = 16, .cpu_percent = 50};
    struct group g = {.cgroups = cg};
    int rc = cgroup_make(cg, 1, e);

    if (rc == 0)
        rc = cgroup_limit(cg, 1, &plan, e);
    if (rc == 0)
        g.count = rc = cgroup_doors(cg, 1, g.doors, e);
    if (rc >= 0)
        rc = probe_child(join, &g, e);
    for (int i = 0; i < g.count; i++)
        fd_closep(&g.doors[i]);
    /* The process is gone for us a little before it is gone for its group. */
    for (int i = 0; i < 100 && cgroup_remove(cg, 1) < 0 && errno == EBUSY; i++)
        usleep(5000);
    return rc;
}

int probe_cgroups(struct layer_found *ret, struct err *e)
{
    struct cgroups *cg = cgroups_open();
    int rc = cgroups_mode(cg) == CGROUP_NONE ? err_set(e, ERR_HOST, "%s", cgroups_why(cg))
                                             : try_group(cg, e);

    probe_say(ret, "%s; a group made and joined", cgroups_why(cg));
    cgroups_close(cg);
    return rc;
}
