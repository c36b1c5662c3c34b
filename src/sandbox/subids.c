/*
 * User ids for the sandboxes of an ordinary user: subordinate ids, which /etc/subuid and
 * /etc/subgid give to that user and to nobody else. With them every sandbox is another user to the
 * kernel, so limits that the kernel counts by user are not shared with the caller.
 *
 * Theory of operation: a child makes a user namespace, newuidmap and newgidmap (which have the
 * right to) write its maps, and the caller, who owns the namespace, enters it. So every failure
 * shows before the caller has changed, and the caller then continues without these ids. In the
 * namespace the caller's own ids stay what they are, and a block of subordinate ids has the same
 * numbers for users and groups.
 */
#include "sandbox/server.h"

#include "sandbox/box.h"

#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK      4096u /* of one instance: as many sandboxes as half of it */
#define LEAST      64u   /* fewer are not worth a namespace */
#define LINE_MAX_N 512

struct id_range {
    unsigned long first, count;
};

/* --- which ids --- */

static bool is_range(const char *line, const char *name, struct id_range *ret)
{
    size_t n = strcspn(line, ":");
    char *end;

    if (n != strlen(name) || strncmp(line, name, n) != 0 || line[n] != ':')
        return false;
    ret->first = strtoul(line + n + 1, &end, 10);
    if (*end != ':')
        return false;
    ret->count = strtoul(end + 1, NULL, 10);
    return ret->first > 0 && ret->first < UINT32_MAX && ret->count < UINT32_MAX - ret->first;
}

/* The largest range of the user, who is named by name or by number: subuid(5). */
static int find_range(const char *file, const char *name, const char *number, struct id_range *ret,
                      struct err *e)
{
    FILE *f = fopen(file, "re");
    char line[LINE_MAX_N];
    struct id_range r;

    *ret = (struct id_range){0};
    while (f && fgets(line, sizeof(line), f))
        if ((is_range(line, name, &r) || is_range(line, number, &r)) && r.count > ret->count)
            *ret = r;
    if (f)
        fclose(f);
    if (ret->count < LEAST)
        return err_set(e, ERR_HOST, "%s gives no ids to %s", file, name);
    return 0;
}

static int find_ranges(struct id_range *ret_users, struct id_range *ret_groups, struct err *e)
{
    const struct passwd *pw = getpwuid(geteuid());
    char number[16];

    snprintf(number, sizeof(number), "%u", (unsigned)geteuid());
    if (find_range("/etc/subuid", pw ? pw->pw_name : number, number, ret_users, e) < 0 ||
        find_range("/etc/subgid", pw ? pw->pw_name : number, number, ret_groups, e) < 0)
        return -1;
    if (ret_users->count > ret_groups->count)
        ret_users->count = ret_groups->count;
    return 0;
}

/* A directory of the user's own, in which locks go with their holders. */
static int open_locks(struct err *e)
{
    char path[64];
    AUTO_CLOSE int dir = -1;
    struct stat st;

    snprintf(path, sizeof(path), "/run/user/%u/retort", (unsigned)geteuid());
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        snprintf(path, sizeof(path), "/tmp/retort-%u", (unsigned)geteuid());
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_sys(e, "make '%s'", path);
    }
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, "open '%s'", path);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_HOST, "'%s' is somebody else's", path);
    return take_fd(&dir);
}

/* Narrows both ranges to the first block that no other instance of this user has. */
static int claim(struct id_range *users, struct id_range *groups, int *ret_lock, struct err *e)
{
    AUTO_CLOSE int dir = open_locks(e);
    unsigned long size = users->count < BLOCK ? users->count : BLOCK;

    if (dir < 0)
        return -1;
    for (unsigned long at = 0; at + size <= users->count; at += size) {
        AUTO_CLOSE int fd = -1;
        char name[32];
        snprintf(name, sizeof(name), "ids.%lu", users->first + at);
        fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
            continue;
        *users = (struct id_range){users->first + at, size};
        *groups = (struct id_range){groups->first + at, size};
        *ret_lock = take_fd(&fd);
        return 0;
    }
    return err_set(e, ERR_HOST, "other servers of this user have all of its subordinate ids");
}

/* --- the namespace --- */

/* Makes the namespace, says so, and stays until the other end closes. */
static _Noreturn void hold_namespace(int sync)
{
    char byte = 'n';

    prctl(PR_SET_DUMPABLE, 1); /* else its maps would be root's */
    if (unshare(CLONE_NEWUSER) < 0 || write(sync, &byte, 1) != 1)
        _exit(1);
    (void)!read(sync, &byte, 1);
    _exit(0);
}

static _Noreturn void exec_mapper(const char *tool, pid_t of, unsigned own, unsigned long inside,
                                  struct id_range r, int said)
{
    const unsigned long numbers[] = {(unsigned long)of, own, own, 1, inside, r.first, r.count};
    char text[COUNT(numbers)][16];
    const char *argv[COUNT(numbers) + 2] = {tool};
    char *const env[] = {NULL};

    for (size_t i = 0; i < COUNT(numbers); i++) {
        snprintf(text[i], sizeof(text[i]), "%lu", numbers[i]);
        argv[i + 1] = text[i];
    }
    if (dup2(said, 2) >= 0)
        execve(tool, (char **)argv, env);
    dprintf(said, "%s: %s\n", tool, strerror(errno));
    _exit(127);
}

/* Runs newuidmap or newgidmap. What it said is the reason when it failed. */
static int map(const char *tool, pid_t of, unsigned own, unsigned long inside, struct id_range r,
               struct err *e)
{
    char said[200] = "";
    int pipe[2], status = -1;
    ssize_t n;
    pid_t pid;

    if (pipe2(pipe, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    pid = _Fork(); /* without the event loop's fork handlers */
    if (pid == 0)
        exec_mapper(tool, of, own, inside, r, pipe[1]);
    close(pipe[1]);
    n = pid < 0 ? -1 : read(pipe[0], said, sizeof(said) - 1);
    close(pipe[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_sys(e, "start %s", tool);
    said[strcspn(said, "\n")] = '\0';
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_HOST, "%s failed%s%s", tool, n > 0 ? ": " : "", said);
    return 0;
}

static int move_in(pid_t holder, int sync, struct id_range users, struct id_range groups,
                   struct err *e)
{
    AUTO_CLOSE int space = -1;
    char path[48], byte;

    if (read(sync, &byte, 1) != 1)
        return err_set(e, ERR_HOST, "no user namespace can be made");
    if (map("/usr/bin/newuidmap", holder, geteuid(), users.first, users, e) < 0 ||
        map("/usr/bin/newgidmap", holder, getegid(), users.first, groups, e) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)holder);
    space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWUSER) < 0)
        return err_sys(e, "enter the user namespace");
    return 0;
}

static int enter(struct id_range users, struct id_range groups, struct err *e)
{
    int sync[2], rc;
    pid_t holder;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
        return err_sys(e, "socketpair");
    holder = _Fork();
    if (holder == 0) {
        close(sync[0]);
        hold_namespace(sync[1]);
    }
    close(sync[1]);
    rc = holder < 0 ? err_sys(e, "fork") : move_in(holder, sync[0], users, groups, e);
    close(sync[0]);
    if (holder > 0)
        waitpid(holder, NULL, 0);
    return rc;
}

int subids_enter(struct uids *ret, int *ret_lock, struct err *e)
{
    AUTO_CLOSE int lock = -1;
    struct id_range users, groups;

    if (geteuid() == 0)
        return err_set(e, ERR_HOST, "root has no need of subordinate ids");
    if (access("/usr/bin/newuidmap", X_OK) < 0 || access("/usr/bin/newgidmap", X_OK) < 0)
        return err_set(e, ERR_HOST, "newuidmap and newgidmap are not installed");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return err_set(e, ERR_HOST, "newuidmap has no rights here: no_new_privs is set");
    if (find_ranges(&users, &groups, e) < 0 || claim(&users, &groups, &lock, e) < 0)
        return -1;
    if (geteuid() - users.first < users.count || getegid() - users.first < users.count)
        return err_set(e, ERR_HOST, "the user is one of its own subordinate ids");
    if (enter(users, groups, e) < 0)
        return -1;
    *ret = (struct uids){(uint32_t)users.first, (uint32_t)users.count, true};
    *ret_lock = take_fd(&lock);
    return 0;
}
