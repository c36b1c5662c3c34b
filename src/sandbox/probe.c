/* The layers of the sandbox, one row each, and how a row is tried. */
#include "sandbox/probe_int.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_MS 5000

#define NAMESPACES                                                                                 \
    "Use a kernel with every CONFIG_*_NS; in a container, a seccomp profile that allows new "      \
    "namespaces."
#define NEWER_KERNEL "Use Linux 5.12 or newer."
#define UNMASK                                                                                     \
    "In a container: start it with --security-opt systempaths=unconfined (Docker) or "             \
    "--security-opt unmask=ALL (Podman)."
#define ALLOW_CALL                                                                                 \
    "Use Linux 5.12 or newer; in a container, a seccomp profile that allows the call."

/* The order is that of the report: what the rest stands on first. */
// clang-format off
const struct layer layers[] = {
    {"processes",         true,  probe_processes,
     "Nothing could be started, nor tried.",
     "Raise the limit on this user's processes: ulimit -u, or TasksMax= of its service."},
    {"user namespace",    true,  probe_user_space,
     "Code would run with the caller's own rights, and no wall below could be built.", NULL},
    {"mount namespace",   true,  probe_mount_space,
     "Code would see the host's files.", NAMESPACES},
    {"pid namespace",     true,  probe_pid_space,
     "Code would see the host's processes, and outlive its session.", NAMESPACES},
    {"own /proc",         true,  probe_proc,
     "Code would see the host's /proc, or none.", UNMASK},
    {"network namespace", true,  probe_net_space,
     "Code would be on the host's network.", NAMESPACES},
    {"ipc namespace",     true,  probe_ipc_space,
     "Code would reach the host's shared memory and message queues.", NAMESPACES},
    {"uts namespace",     true,  probe_uts_space,
     "Code would see the host's name.", NAMESPACES},
    {"cgroup namespace",  true,  probe_cgroup_space,
     "Code would see where the host keeps its groups.", NAMESPACES},
    {"mount API",         true,  probe_mount_api,
     "Directories of the host could not be shown read-only from their first instant.",
     NEWER_KERNEL},
    {"disk limits",       true,  probe_disk,
     "Code could fill the host with files.", "Use a kernel with CONFIG_TMPFS=y."},
    {"no_new_privs",      true,  probe_no_new_privs,
     "A setuid program could give rights back.", NEWER_KERNEL},
    {"seccomp",           true,  probe_seccomp,
     "The whole of the kernel would be open to the code.",
     "Use a kernel with CONFIG_SECCOMP_FILTER=y."},
    {"clone3",            true,  probe_clone3,
     "A sandbox could not be born inside its walls.", ALLOW_CALL},
    {"pidfd",             true,  probe_pidfd,
     "A process that took over a number could be killed in place of a sandbox.", ALLOW_CALL},
    {"openat2",           true,  probe_openat2,
     "A link made by the code could lead the host out of the workspace.", ALLOW_CALL},
    {"close_range",       true,  probe_close_range,
     "Files the host has open could leak into a sandbox.", ALLOW_CALL},
    {"memfd",             true,  probe_memfd,
     "There would be no place for filters, logs and long messages.", ALLOW_CALL},
    {"thread id address", true,  probe_tid_address,
     "An interpreter could not be forked without confusing its C library.",
     "Use a kernel with CONFIG_CHECKPOINT_RESTORE=y."},
    {"user ids",          false, probe_uids,
     "All sandboxes share one user id: namespaces alone keep them from each other and from the "
     "caller.",
     "Start retort as root: the code gets none of its rights."},
    {"cgroups",           false, probe_cgroups,
     "Memory is held for each process by its limits and in sum by a watchdog that looks every "
     "50 ms; the share of cpu is not held.",
     "Start retort as root, or in a group of its own: systemd-run --user --scope -p Delegate=yes "
     "retort ..."},
    {"Landlock",          false, probe_landlock,
     "The second wall behind mounts and namespaces is thinner, or not there.",
     "Use Linux 6.12 or newer, with landlock in the lsm= list of its command line."},
    {"own size",          false, probe_answers,
     "sysinfo(), sched_getaffinity() and statfs() tell the host's memory, load, processors and disks.",
     "In a container: one without a seccomp listener of its own."},
    {"time namespace",    false, probe_time_space,
     "Code can tell how long the host has been up.",
     "Use a kernel with CONFIG_TIME_NS=y."},
    {"memory image",      false, probe_image,
     "Every new sandbox copies the interpreter's page tables: some milliseconds each.", NULL},
};
// clang-format on

const size_t layers_count = COUNT(layers);

const char *layer_state_name(enum layer_state s)
{
    static const char *const names[] = {
        [LAYER_OK] = "ok", [LAYER_WEAKER] = "weaker", [LAYER_MISSING] = "missing"};

    return names[s];
}

void probe_say(struct layer_found *ret, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(ret->detail, sizeof(ret->detail), fmt, ap);
    va_end(ap);
}

/* --- processes --- */

pid_t probe_fork(void)
{
    pid_t pid = fork();

    if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    return pid;
}

/* By looking again and again: whether there are pidfds to wait on is one of the questions. */
int probe_wait(pid_t pid, unsigned ms, struct err *e)
{
    int64_t until = time_mono_us() + (int64_t)ms * 1000;
    useconds_t nap = 100;
    int status = 0;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && time_mono_us() < until) {
        usleep(nap);
        nap = nap < 5000 ? nap * 2 : nap;
    }
    if (got < 0)
        return err_sys(e, "wait");
    if (got == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return err_set(e, ERR_HOST, "no answer within %u ms", ms);
    }
    if (WIFSIGNALED(status))
        return err_set(e, ERR_HOST, "the trial was ended by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    return WEXITSTATUS(status) == 0 ? 0 : err_set(e, ERR_HOST, "the trial failed");
}

int probe_apart(void (*fn)(void *arg), void *arg, size_t n, unsigned ms, struct err *e)
{
    void *shared = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;
    int rc;

    if (shared == MAP_FAILED)
        return err_sys(e, "map memory for a trial");
    memcpy(shared, arg, n);
    pid = probe_fork();
    if (pid == 0) {
        fn(shared);
        _exit(0);
    }
    rc = pid < 0 ? err_sys(e, "no process can be started") : probe_wait(pid, ms, e);
    if (rc == 0)
        memcpy(arg, shared, n);
    munmap(shared, n);
    return rc;
}

struct probe_call {
    int (*fn)(void *arg, struct err *e);
    void *arg; /* borrowed: the child has it by the fork */
    int rc;
    struct err e;
};

static void run_call(void *arg)
{
    struct probe_call *r = arg;

    r->rc = r->fn(r->arg, &r->e);
}

int probe_child(int (*fn)(void *arg, struct err *e), void *arg, struct err *e)
{
    struct probe_call r = {.fn = fn, .arg = arg};

    if (probe_apart(run_call, &r, sizeof(r), PROBE_MS, e) < 0)
        return -1;
    *e = r.e;
    return r.rc;
}

/* --- one row --- */

struct attempt {
    const struct layer *layer; /* borrowed */
    int rc;
    struct layer_found found;
    struct err e;
};

static void run_attempt(void *arg)
{
    struct attempt *a = arg;

    a->rc = a->layer->probe(&a->found, &a->e);
}

void layer_try(const struct layer *l, struct layer_found *ret)
{
    struct attempt a = {.layer = l};

    if (probe_apart(run_attempt, &a, sizeof(a), PROBE_MS, &a.e) < 0) {
        a.rc = -1;
        a.found.blocked = a.e.sys == EAGAIN && l != &layers[0];
        if (a.found.blocked)
            err_set(&a.e, ERR_HOST, "not reached: no process can be started");
    }
    *ret = a.found;
    if (a.rc < 0) {
        ret->state = l->floor ? LAYER_MISSING : LAYER_WEAKER;
        probe_say(ret, "%s", a.e.text);
    }
    if (ret->state == LAYER_OK || ret->blocked)
        ret->remedy[0] = '\0';
    else if (!ret->remedy[0] && l->remedy)
        snprintf(ret->remedy, sizeof(ret->remedy), "%s", l->remedy);
}
