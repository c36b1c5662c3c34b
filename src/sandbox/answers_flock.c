/*
 * flock() in place of the kernel. A file of the system is the same file for every box and for the
 * host, so a lock on it would tell boxes of each other, and would stop programs of the host that
 * want the same lock. See answers.c.
 *
 * init takes the caller's open file out of the caller's descriptors, and looks at that file and
 * locks that file. What the caller's number leads to a moment later plays no part. A file on a
 * volume of the session is locked as usual. A file that the session cannot change, or that is no
 * regular file, is not locked, and the caller is told that it is. In a folder that the user shows
 * to the box the kernel makes the call: the lock is meant for programs outside, and a file system
 * of the user's own may take its time.
 *
 * init itself never waits. A caller that has to wait is kept in a list. Its lock is tried again
 * after every other flock(), and on a timer, because locks also end with a process or with a
 * close().
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITING_MAX 64
#define OF_THREAD   O_EXCL /* PIDFD_THREAD, Linux 6.9 */

static struct lock_wait {
    uint64_t id; /* of the call */
    int fd;      /* owned: the caller's open file; 0: free */
    int how;
} waiting[WAITING_MAX];

static int own_flock(int fd, int how)
{
    return (int)syscall(SYS_flock, fd, how, 0L, 0L, 0L, answers_pass());
}

/* The process of a thread, or the thread itself where it cannot be told. */
static pid_t process_of(pid_t thread)
{
    static const char key[] = "\nTgid:\t";
    char path[32], text[2048];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
    at = fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0 ? NULL : strstr(text, key);
    return at ? (pid_t)strtol(at + strlen(key), NULL, 10) : thread;
}

/* The open file behind a number of the caller's, or -1 and errno. */
static int take_file(pid_t caller, int number)
{
    AUTO_CLOSE int process = (int)syscall(SYS_pidfd_open, caller, OF_THREAD);

    if (process < 0)
        process = (int)syscall(SYS_pidfd_open, process_of(caller), 0);
    if (process < 0)
        return -1;
    return (int)syscall(SYS_pidfd_getfd, process, number, 0);
}

/* The caller may have let go of it: then this is the last close, which of a socket may linger. */
static void let_go(int fd)
{
    struct linger none = {0};

    if (fd >= 0)
        (void)!setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    fd_closep(&fd);
}

static bool can_change(int fd)
{
    struct statfs fs;
    struct stat it;

    return fstat(fd, &it) == 0 && (S_ISREG(it.st_mode) || S_ISDIR(it.st_mode)) &&
           answers_fstatfs(fd, &fs) == 0 && !(fs.f_flags & ST_RDONLY);
}

static bool put_in_list(struct lock_wait it)
{
    for (size_t i = 0; i < COUNT(waiting); i++)
        if (waiting[i].fd == 0) {
            waiting[i] = it;
            return true;
        }
    return false;
}

/* One try. False: the caller has to wait. */
static bool lock(struct lock_wait it)
{
    int wrong = own_flock(it.fd, it.how | LOCK_NB) < 0 ? errno : 0;

    if (wrong == EWOULDBLOCK && !(it.how & LOCK_NB))
        return false;
    /* A caller that a signal has called away meanwhile knows of no lock. */
    if (!answers_reply(it.id, -wrong) && wrong == 0)
        (void)!own_flock(it.fd, LOCK_UN);
    let_go(it.fd);
    return true;
}

long answer_flock(const struct seccomp_notif *call)
{
    struct lock_wait it = {.id = call->id, .how = (int)call->data.args[1]};
    int what = it.how & ~LOCK_NB;
    bool is_place;

    if (what != LOCK_SH && what != LOCK_EX && what != LOCK_UN)
        return -EINVAL;
    it.fd = take_file((pid_t)call->pid, (int)call->data.args[0]);
    if (it.fd < 0)
        return errno == EMFILE ? -ENOLCK : -EBADF;
    is_place = fcntl(it.fd, F_GETFL) & O_PATH;
    if (is_place || !can_change(it.fd)) {
        let_go(it.fd);
        return is_place ? -EBADF : 0;
    }
    if (lock(it) || put_in_list(it))
        return ANSWER_IS_GIVEN;
    let_go(it.fd);
    return -ENOLCK;
}

bool box_answer_waiting(void)
{
    bool any = false;

    for (struct lock_wait *w = waiting; w < waiting + COUNT(waiting); w++) {
        if (w->fd == 0)
            continue;
        /* Its caller is gone, or a signal has called it away. */
        if (ioctl(BOX_ANSWERS_FD, SECCOMP_IOCTL_NOTIF_ID_VALID, &w->id) < 0)
            let_go(w->fd);
        else if (!lock(*w)) {
            any = true;
            continue;
        }
        *w = (struct lock_wait){0};
    }
    return any;
}
