/*
 * Probes of namespaces and of what is mounted in them. As in the real sandbox all
 * of it happens inside a user namespace, so that a probe needs no rights and what
 * it does ends with its process.
 */
#include "sandbox/box_int.h"
#include "sandbox/probe_int.h"
#include "sandbox/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <net/if.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAGE "/tmp" /* as in root.c */

/* --- why there is no user namespace --- */

static long read_number(const char *path, long otherwise)
{
    char text[32];

    return fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 ? strtol(text, NULL, 10)
                                                                   : otherwise;
}

struct obstacle {
    const char *file;
    long value;
    bool for_root; /* it stops root as well */
    const char *says, *remedy;
};

static const struct obstacle obstacles[] = {
    {"/proc/sys/user/max_user_namespaces",                     0, true,  "user.max_user_namespaces is 0",
     "As root: sysctl -w user.max_user_namespaces=15000"                                                                                                         },
    {"/proc/sys/kernel/unprivileged_userns_clone",             0, false,
     "kernel.unprivileged_userns_clone is 0: for root only",                                              "As root: sysctl -w kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1, false,
     "AppArmor restricts them: kernel.apparmor_restrict_unprivileged_userns is 1",                        "As root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile "
     "with 'userns,' for this program"                                         },
};

/* A chroot that is no mount point leaves the list of mounts without one at "/". One that is looks
 * from inside like any other root. */
static bool is_in_chroot(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[4096], where[8];
    bool has_root = !f;

    while (f && !has_root && fgets(line, sizeof(line), f))
        has_root = sscanf(line, "%*s %*s %*s %*s %7s", where) == 1 && strcmp(where, "/") == 0;
    if (f)
        fclose(f);
    return !has_root;
}

static bool has_filter(void)
{
    char text[8192];

    return fd_read_file_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0 &&
           strstr(text, "\nSeccomp:\t2") != NULL;
}

static int blame(struct layer_found *ret, struct err *e, const char *says, const char *remedy)
{
    size_t n = strlen(e->text);

    snprintf(e->text + n, sizeof(e->text) - n, " (%s)", says);
    snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy);
    return -1;
}

/* Adds to *e what stands in the way, as far as it can be seen. */
static int explain(struct layer_found *ret, struct err *e)
{
    char limit[96];

    for (size_t i = 0; i < COUNT(obstacles); i++) {
        const struct obstacle *o = &obstacles[i];
        if ((o->for_root || geteuid() != 0) && read_number(o->file, !o->value) == o->value)
            return blame(ret, e, o->says, o->remedy);
    }
    if (e->sys == ENOSPC) {
        snprintf(limit, sizeof(limit), "user.max_user_namespaces, %ld, is used up",
                 read_number(obstacles[0].file, 0));
        return blame(ret, e, limit, obstacles[0].remedy);
    }
    if (e->sys == ENOSYS || e->sys == EINVAL)
        return blame(ret, e, "this kernel has none", "Use a kernel with CONFIG_USER_NS=y.");
    if (is_in_chroot())
        return blame(ret, e, "this process is in a chroot, where the kernel makes none",
                     "Start retort outside of the chroot.");
    if (has_filter())
        return blame(ret, e, "a seccomp filter is around this process",
                     "In a container: start it with --security-opt seccomp=unconfined, or with a "
                     "profile that allows new namespaces.");
    return blame(ret, e, "a chroot or a security module is in the way",
                 "Start retort outside of the chroot, or let the security module allow it.");
}

/* --- entering --- */

static int map_self(uid_t uid, gid_t gid)
{
    char uid_map[32], gid_map[32];

    snprintf(uid_map, sizeof(uid_map), "0 %u 1", (unsigned)uid);
    snprintf(gid_map, sizeof(gid_map), "0 %u 1", (unsigned)gid);
    if (fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", STR("deny")) < 0 ||
        fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", str_of(uid_map)) < 0)
        return -1;
    return fd_write_file_at(AT_FDCWD, "/proc/self/gid_map", str_of(gid_map));
}

static int enter_user_space(struct err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    prctl(PR_SET_DUMPABLE, 1); /* else its maps would be root's to write */
    if (unshare(CLONE_NEWUSER) < 0) {
        err_sys(e, "none can be made");
        if (e->sys == ENOSPC) /* "No space left on device": explain() has the limit that is meant */
            snprintf(e->text, sizeof(e->text), "none can be made");
        return -1;
    }
    if (map_self(uid, gid) < 0)
        return err_sys(e, "one can be made, but no user id mapped in it");
    /* The new rights cleared what probe_fork() had asked for. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_sys(e, "prctl");
    return 0;
}

static int block(struct layer_found *ret, struct err *e)
{
    ret->blocked = true;
    return err_set(e, ERR_HOST, "not reached: there is no user namespace");
}

static int be_inside(void *arg, struct err *e)
{
    (void)arg;
    return enter_user_space(e);
}

/* For what root does from outside of one: it is of no use where there is none. */
static int need_user_space(struct layer_found *ret, struct err *e)
{
    return probe_child(be_inside, NULL, e) < 0 ? block(ret, e) : 0;
}

/* name: as in /proc/self/ns. */
static int new_space(struct layer_found *ret, int flag, const char *name, struct err *e)
{
    char path[64], before[64] = "", after[64] = "";
    bool known;

    snprintf(path, sizeof(path), "/proc/self/ns/%s%s", name,
             flag == CLONE_NEWPID || flag == CLONE_NEWTIME ? "_for_children" : "");
    known = readlink(path, before, sizeof(before) - 1) > 0;
    if (unshare(flag) < 0) {
        if (errno != ENOSPC)
            return err_sys(e, "none can be made");
        snprintf(ret->remedy, sizeof(ret->remedy),
                 "As root: sysctl -w user.max_%s_namespaces=15000", name);
        return err_set(e, ERR_HOST, "none can be made: user.max_%s_namespaces is used up", name);
    }
    if (known && readlink(path, after, sizeof(after) - 1) > 0 && strcmp(before, after) == 0)
        return err_set(e, ERR_HOST, "the kernel said yes and made none");
    return 0;
}

static int enter(struct layer_found *ret, int flag, const char *name, struct err *e)
{
    return enter_user_space(e) < 0 ? block(ret, e) : new_space(ret, flag, name, e);
}

static int hide_mounts(struct err *e)
{
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, "mounts cannot be made private");
    return 0;
}

int probe_enter_mount_space(struct layer_found *ret, const char *options, struct err *e)
{
    if (enter(ret, CLONE_NEWNS, "mnt", e) < 0 || hide_mounts(e) < 0)
        return -1;
    if (mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return err_sys(e, "no file system can be mounted in it");
    return 0;
}

/* --- the rows --- */

/* Twice, as it is done: the pool lives in the first, each sandbox in one of its own inside it. */
int probe_user_space(struct layer_found *ret, struct err *e)
{
    long max = read_number(obstacles[0].file, -1); /* now: inside it is another number */
    char says[96];

    if (enter_user_space(e) < 0)
        return explain(ret, e);
    /* Any right over the namespace would do to see whether it gives one; this one is not missed. */
    if (prctl(PR_CAPBSET_DROP, CAP_WAKE_ALARM) < 0) {
        err_sys(e, "one can be made, but it gives no rights");
        return explain(ret, e);
    }
    if (enter_user_space(e) < 0) {
        err_wrap(e, "inside of one");
        snprintf(says, sizeof(says), "user.max_user_namespaces is %ld", max);
        return e->sys == ENOSPC ? blame(ret, e, says, obstacles[0].remedy) : explain(ret, e);
    }
    probe_say(ret, "made, and one more inside of it");
    return 0;
}

int probe_mount_space(struct layer_found *ret, struct err *e)
{
    if (probe_enter_mount_space(ret, "size=64k,mode=755", e) < 0)
        return -1;
    probe_say(ret, "made; a file system mounted in it");
    return 0;
}

static int be_first(void *arg, struct err *e)
{
    (void)arg;
    return getpid() == 1 ? 0 : err_set(e, ERR_HOST, "its first process is number %d", getpid());
}

int probe_pid_space(struct layer_found *ret, struct err *e)
{
    if (enter(ret, CLONE_NEWPID, "pid", e) < 0 || probe_child(be_first, NULL, e) < 0)
        return -1;
    probe_say(ret, "made; its first process is number 1");
    return 0;
}

static int mount_proc(void *arg, struct err *e)
{
    char self[16] = "";

    (void)arg;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "a new /proc cannot be mounted");
    if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || strcmp(self, "1") != 0)
        return err_set(e, ERR_HOST, "the new /proc is not that of the new pid namespace");
    if (mount(NULL, "/proc", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") < 0)
        return err_sys(e, "the host cannot be taken out of the new /proc");
    return probe_refused(access("/proc/cmdline", F_OK), ENOENT, "/proc/cmdline", e);
}

/* A /proc with masks over parts of it, as containers have, is a reason for the kernel to refuse a
 * new one to a user namespace. Root, who starts outside of one, is not asked. */
int probe_proc(struct layer_found *ret, struct err *e)
{
    if (need_user_space(ret, e) < 0)
        return -1;
    /* Where one is the limit, that of need_user_space() may still count: the kernel takes its time.
     */
    if (!uids_are_mapped() && enter_user_space(e) < 0)
        return block(ret, e);
    if (new_space(ret, CLONE_NEWNS, "mnt", e) < 0 || hide_mounts(e) < 0 ||
        new_space(ret, CLONE_NEWPID, "pid", e) < 0 || probe_child(mount_proc, NULL, e) < 0)
        return -1;
    probe_say(ret, "mounted; it shows the new pid namespace alone, and nothing of the host");
    return 0;
}

int probe_ipc_space(struct layer_found *ret, struct err *e)
{
    if (enter(ret, CLONE_NEWIPC, "ipc", e) < 0)
        return -1;
    probe_say(ret, "made");
    return 0;
}

int probe_uts_space(struct layer_found *ret, struct err *e)
{
    struct utsname now;

    if (enter(ret, CLONE_NEWUTS, "uts", e) < 0)
        return -1;
    if (sethostname("retort", 6) < 0 || uname(&now) < 0 || strcmp(now.nodename, "retort") != 0)
        return err_sys(e, "its host name cannot be set");
    probe_say(ret, "made; it has its own host name");
    return 0;
}

/* connect() on a datagram socket looks up a route and sends nothing. */
int probe_net_space(struct layer_found *ret, struct err *e)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(9)};
    AUTO_CLOSE int fd = -1;

    outside.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1, reserved for examples */
    if (enter(ret, CLONE_NEWNET, "net", e) < 0)
        return -1;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(e, "its loopback cannot be raised");
    if (probe_refused(connect(fd, (struct sockaddr *)&outside, sizeof(outside)), ENETUNREACH,
                      "a route to the outside", e) < 0)
        return -1;
    probe_say(ret, "made; nothing in it but its own loopback");
    return 0;
}

int probe_cgroup_space(struct layer_found *ret, struct err *e)
{
    if (enter(ret, CLONE_NEWCGROUP, "cgroup", e) < 0)
        return -1;
    probe_say(ret, "made");
    return 0;
}

int probe_time_space(struct layer_found *ret, struct err *e)
{
    if (enter(ret, CLONE_NEWTIME, "time", e) < 0)
        return -1;
    if (fd_write_file_at(AT_FDCWD, "/proc/self/timens_offsets", STR("boottime 1 0\n")) < 0)
        return err_sys(e, "its clock cannot be set");
    probe_say(ret, "made; its clock counts from when it is told to");
    return 0;
}

/* A directory of the host, shown the way root.c shows it. */
int probe_mount_api(struct layer_found *ret, struct err *e)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    AUTO_CLOSE int tree = -1;

    if (probe_enter_mount_space(ret, "size=64k,mode=755", e) < 0)
        return -1;
    tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr",
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        return err_sys(e, "open_tree");
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &ro, sizeof(ro)) < 0)
        return err_sys(e, "mount_setattr");
    if (mkdir(STAGE "/usr", 0755) < 0 ||
        syscall(SYS_move_mount, tree, "", AT_FDCWD, STAGE "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "move_mount");
    if (probe_refused(mkdir(STAGE "/usr/.probe", 0755), EROFS, "writing to a read-only mount", e) <
        0)
        return -1;
    probe_say(ret, "/usr shown read-only; a write to it was refused");
    return 0;
}

/* Writes until something says no. */
static size_t fill(int fd, size_t most)
{
    static const char bytes[4096];
    size_t n = 0;
    ssize_t got;

    while (n < most && (got = write(fd, bytes, sizeof(bytes))) > 0)
        n += (size_t)got;
    return n;
}

int probe_disk(struct layer_found *ret, struct err *e)
{
    AUTO_CLOSE int fd = -1;

    if (probe_enter_mount_space(ret, "size=256k,nr_inodes=16,mode=755", e) < 0)
        return -1;
    fd = open(STAGE "/full", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "open a file");
    if (fill(fd, MiB) > 256 * KiB || errno != ENOSPC)
        return err_set(e, ERR_HOST, "a file system of fixed size took more than that");
    probe_say(ret, "workspace and tmp are tmpfs of fixed size: what they hold counts as memory, a "
                   "write past the end fails with ENOSPC");
    return 0;
}

/* --- user ids --- */

/* Enters a namespace and waits at `sync` until its maps are written. */
static _Noreturn void take_range(int sync)
{
    char byte = 'm';

    prctl(PR_SET_DUMPABLE, 1);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(sync, &byte, 1) != 1 ||
        read(sync, &byte, 1) != 1)
        _exit(1);
    if (syscall(SYS_setresgid, 1, 1, 1) < 0 || syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresuid, 1, 1, 1) < 0)
        _exit(1);
    _exit(0);
}

static int give_range(pid_t pid, int sync, struct err *e)
{
    char path[48], map[48], byte;

    if (read(sync, &byte, 1) != 1)
        return err_set(e, ERR_HOST, "no namespace can be made for the range");
    snprintf(map, sizeof(map), "0 %u %u", UID_BASE, UID_COUNT);
    snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
    if (fd_write_file_at(AT_FDCWD, path, str_of(map)) < 0)
        return err_sys(e, "the range cannot be mapped");
    snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
    if (fd_write_file_at(AT_FDCWD, path, str_of(map)) < 0)
        return err_sys(e, "the range cannot be mapped");
    return write(sync, &byte, 1) == 1 ? 0 : err_sys(e, "the range cannot be used");
}

static int try_range(struct err *e)
{
    int sync[2], given;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
        return err_sys(e, "socketpair");
    pid = probe_fork();
    if (pid == 0) {
        close(sync[0]);
        take_range(sync[1]);
    }
    close(sync[1]);
    given = pid < 0 ? err_sys(e, "fork") : give_range(pid, sync[0], e);
    close(sync[0]);
    if (given < 0 && pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return given < 0 ? -1 : probe_wait(pid, 1000, e);
}

/* Those of an ordinary user. This process is a trial's own, and may stay in the namespace. */
static int probe_subordinate(struct layer_found *ret, struct err *e)
{
    const struct passwd *pw = getpwuid(geteuid());
    AUTO_CLOSE int lock = -1;
    struct uids uids;

    if (subids_enter(&uids, &lock, e) == 0) {
        probe_say(ret, "each sandbox has two of its own, from %u on (/etc/subuid)", uids.base);
        return 0;
    }
    ret->state = LAYER_WEAKER;
    probe_say(ret, "one for all, the caller's: %u (%s)", (unsigned)geteuid(), e->text);
    snprintf(ret->remedy, sizeof(ret->remedy),
             "Install newuidmap (Debian: apt install uidmap); as root: usermod --add-subuids "
             "100000-165535 --add-subgids 100000-165535 %.64s; or start retort as root.",
             pw ? pw->pw_name : "NAME");
    return 0;
}

int probe_uids(struct layer_found *ret, struct err *e)
{
    if (geteuid() != 0)
        return probe_subordinate(ret, e);
    if (!uids_are_mapped()) {
        ret->state = LAYER_WEAKER;
        probe_say(ret, "one for all, the caller's: 0");
        snprintf(ret->remedy, sizeof(ret->remedy),
                 "Map user ids %u to %u into the namespace that retort is started in.", UID_BASE,
                 UID_BASE + UID_COUNT - 1);
        return 0;
    }
    if (need_user_space(ret, e) < 0)
        return -1;
    if (try_range(e) < 0) {
        /* The warden sees the range and will want to use it. */
        ret->state = LAYER_MISSING;
        probe_say(ret, "%s", e->text);
        snprintf(ret->remedy, sizeof(ret->remedy),
                 "Give root CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID, or start as another user.");
        return 0;
    }
    probe_say(ret, "each sandbox has two of its own, from %u on", UID_BASE);
    return 0;
}
