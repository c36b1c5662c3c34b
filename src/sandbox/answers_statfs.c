/*
 * statfs() and fstatfs() in place of the kernel. For a file that is on none of the session's
 * volumes the kernel would tell the size of the host's disk, or of its memory. See answers.c.
 *
 * init looks the file up itself, from the caller's own directory and with the rights of the code's
 * user, and opens it with O_PATH, so nothing is read and nothing waits. If the caller changes the
 * path meanwhile, init finds another file, but tells nothing more.
 *
 * init's own calls pass the same filter. The filter lets a call through whose sixth argument, which
 * these calls do not have, is a number that only init knows.
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t pass; /* init's alone: box_forget_pass() */

uint64_t answers_pass(void)
{
    /* Without random bytes it is not known to anybody but those who look here: no harm is done. */
    if (pass == 0 && getrandom(&pass, sizeof(pass), GRND_NONBLOCK) != sizeof(pass))
        pass = (uint64_t)time_mono_us();
    return pass;
}

void box_forget_pass(void)
{
    explicit_bzero(&pass, sizeof(pass));
}

int answers_fstatfs(int fd, struct statfs *ret)
{
    return (int)syscall(SYS_fstatfs, fd, ret, 0L, 0L, 0L, pass);
}

int box_statfs(const char *path, struct statfs *ret)
{
    return (int)syscall(SYS_statfs, path, ret, 0L, 0L, 0L, pass);
}

/* A string in the caller's memory. 0, or an errno for the caller. */
static int take_path(pid_t pid, uint64_t address, char ret[PATH_MAX])
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;
    AUTO_CLOSE int mem = -1;
    char name[32];

    snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
    mem = open(name, O_RDONLY | O_CLOEXEC);
    while (mem >= 0 && n < PATH_MAX) {
        size_t here = page - (size_t)((address + n) % page); /* the next page may not be there */
        ssize_t got =
            pread(mem, ret + n, here < PATH_MAX - n ? here : PATH_MAX - n, (off_t)(address + n));
        if (got <= 0)
            return EFAULT;
        if (memchr(ret + n, '\0', (size_t)got))
            return ret[0] ? 0 : ENOENT;
        n += (size_t)got;
    }
    return mem < 0 ? EFAULT : ENAMETOOLONG;
}

/* Where init has a user id of its own. The kernel takes the signal at the parent's death away from
 * whoever changes these. */
static void look_as(const struct box_plan *p, uint32_t id)
{
    if (p->init_uid != 0)
        return;
    (void)!syscall(SYS_setfsgid, id);
    (void)!syscall(SYS_setfsuid, id);
    (void)!prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* As openat(). /proc/self is the caller's. */
static int look_up(pid_t pid, int from, const char *path)
{
    static const char self[] = "/proc/self/";
    char theirs[PATH_MAX + 32];

    if (strncmp(path, self, strlen(self)) == 0) {
        snprintf(theirs, sizeof(theirs), "/proc/%d/%s", (int)pid, path + strlen(self));
        path = theirs;
    }
    return openat(from, path, O_PATH | O_CLOEXEC);
}

static int open_named(const struct seccomp_notif *call)
{
    AUTO_CLOSE int cwd = -1;
    char path[PATH_MAX];
    int wrong = take_path((pid_t)call->pid, call->data.args[0], path);

    if (wrong) {
        errno = wrong;
        return -1;
    }
    if (path[0] != '/') {
        char name[32];
        snprintf(name, sizeof(name), "/proc/%d/cwd", (int)call->pid);
        cwd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cwd < 0)
            return -1;
    }
    return look_up((pid_t)call->pid, cwd, path);
}

static int open_number(const struct seccomp_notif *call)
{
    char name[48];
    int fd;

    snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)call->pid, (int)call->data.args[0]);
    fd = open(name, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        errno = EBADF;
    return fd;
}

/* Mount points stay where they are: code can neither move nor cover them. */
bool answers_is_own(int fd)
{
    static const char *const volumes[] = {BOX_WORKSPACE, "/tmp", "/dev/shm"};
    struct stat it, own;

    if (fstat(fd, &it) < 0)
        return false;
    for (size_t i = 0; i < COUNT(volumes); i++)
        if (stat(volumes[i], &own) == 0 && own.st_dev == it.st_dev)
            return true;
    return false;
}

static int open_place(const struct box_plan *p, const struct seccomp_notif *call)
{
    int fd, wrong;

    look_as(p, BOX_USER);
    fd = call->data.nr == SYS_statfs ? open_named(call) : open_number(call);
    wrong = errno;
    look_as(p, 0);
    errno = wrong;
    return fd;
}

int answer_statfs(const struct box_plan *p, const struct seccomp_notif *call, struct statfs *ret)
{
    AUTO_CLOSE int fd = open_place(p, call);
    struct statfs space;

    if (fd < 0 || answers_fstatfs(fd, ret) < 0)
        return errno;
    if (answers_is_own(fd))
        return 0;
    if (box_statfs(BOX_WORKSPACE, &space) < 0)
        return errno;
    /* Its kind and its flags are what they are. */
    space.f_type = ret->f_type;
    space.f_flags = ret->f_flags;
    space.f_namelen = ret->f_namelen;
    memset(&space.f_fsid, 0, sizeof(space.f_fsid));
    *ret = space;
    return 0;
}
