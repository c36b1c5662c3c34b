/*
 * Who runs what. Where the host gives a range of uids, init is uid 0 of its own
 * user namespace and keeps four capabilities over its own children:
 *   CAP_SETUID, CAP_SETGID  to start them as the user
 *   CAP_KILL                to stop them
 *   CAP_SYS_PTRACE          to write answers into their memory: answers.c
 * Where there is one uid, init shares it with its children, needs nothing and keeps
 * nothing; it is out of their reach because it is PID 1 and not dumpable.
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INIT_CAPS (1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL | 1u << CAP_SYS_PTRACE)
#define LAST_CAP  63

int caps_set(uint32_t low)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = low, .permitted = low}
    };

    return (int)syscall(SYS_capset, &head, data);
}

static int caps_are(uint32_t low)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    return syscall(SYS_capget, &head, data) == 0 && data[0].effective == low &&
           data[0].permitted == low && data[0].inheritable == 0 && data[1].effective == 0 &&
           data[1].permitted == 0 && data[1].inheritable == 0;
}

/* Raw calls: glibc's wrappers would look for the zygote's other threads to tell. */
static int become(uint32_t uid)
{
    if (syscall(SYS_setresgid, uid, uid, uid) < 0)
        return -1;
    return syscall(SYS_setresuid, uid, uid, uid) < 0 ? -1 : 0;
}

int ids_enter(struct box *b, struct err *e)
{
    /* With one uid, setgroups is denied for good (and must be: user_namespaces(7)). */
    if (b->plan->init_uid == 0 && syscall(SYS_setgroups, 0, NULL) < 0)
        return err_sys(e, "drop groups");
    if (become(b->plan->init_uid) < 0)
        return err_sys(e, "become uid %u", b->plan->init_uid);
    /* The change of uid took it; mounts_enter needs its own /proc/self. Gone again in creds_enter.
     */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_sys(e, "become dumpable");
    return 0;
}

int ids_verify(struct box *b, struct err *e)
{
    uid_t r, eff, s;

    if (getresuid(&r, &eff, &s) < 0 || r != b->plan->init_uid || eff != r || s != r)
        return err_set(e, ERR_HOST, "the user id is not the planned one");
    return probe_refused(syscall(SYS_setresuid, 7, 7, 7), EINVAL, "becoming an unmapped user", e);
}

int creds_enter(struct box *b, struct err *e)
{
    for (int cap = 0; cap <= LAST_CAP; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap) == 0)
            continue;
        if (errno != EINVAL)
            return err_sys(e, "drop capability %d from the bounding set", cap);
        break; /* past the last one this kernel knows */
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_sys(e, "clear ambient capabilities");
    /* Uid 0 of the namespace is a name, not a power: exec gives it nothing. */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED) <
        0)
        return err_sys(e, "set securebits");
    if (caps_set(b->plan->init_uid == 0 ? INIT_CAPS : 0) < 0)
        return err_sys(e, "drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "set no_new_privs");
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_sys(e, "become not dumpable");
    /* After the last change of credentials, which would clear it: prctl(2). */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_sys(e, "ask to die with the zygote");
    return 0;
}

int creds_verify(struct box *b, struct err *e)
{
    struct rlimit up = {4096, RLIM_INFINITY};

    if (!caps_are(b->plan->init_uid == 0 ? INIT_CAPS : 0))
        return err_set(e, ERR_HOST, "capabilities are left");
    if (caps_set(1u << CAP_SYS_ADMIN) == 0)
        return err_set(e, ERR_HOST, "a dropped capability came back");
    if (probe_refused(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM, "a mount", e) < 0)
        return -1;
    return probe_refused(setrlimit(RLIMIT_NOFILE, &up), EPERM, "raising a resource limit", e);
}

/* First of all: whatever the zygote had open is no business of the box. */
int fds_enter(struct box *b, struct err *e)
{
    int null;

    if (b->ctl != BOX_CTL_FD && dup3(b->ctl, BOX_CTL_FD, O_CLOEXEC) < 0)
        return err_sys(e, "place the control socket");
    b->ctl = BOX_CTL_FD;
    if (syscall(SYS_close_range, BOX_CTL_FD + 1, ~0u, 0) < 0)
        return err_sys(e, "close inherited descriptors");
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            return err_sys(e, "point fd %d to /dev/null", fd);
    fd_closep(&null);
    return 0;
}

int fds_verify(struct box *b, struct err *e)
{
    (void)b;
    for (int fd = BOX_FD_END; fd < 64; fd++) /* close_range() left none: these would be new */
        if (fcntl(fd, F_GETFD) >= 0)
            return err_set(e, ERR_HOST, "descriptor %d is still open", fd);
    return 0;
}

int box_become_user(const struct box *b)
{
    if (b->plan->init_uid == 0 && become(BOX_USER) < 0)
        return -1;
    if (rlimit_of_user(b->plan) < 0 || caps_set(0) < 0 || !caps_are(0))
        return -1;
    return filter_install(b->user);
}
