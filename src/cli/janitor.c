/*
 * A temporary directory that is deleted when the program ends, however it ends.
 *
 * Theory of operation: a child process, the janitor, makes the directory, as the user who will
 * use it, so a TMPDIR that this user cannot write is found out at once. Then the janitor reads
 * from a pipe whose other end the program holds. The pipe ends with the program, also when that
 * is killed; then the janitor deletes the directory.
 */
#include "cli/janitor.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_OF_A_WALK 16
#define JANITOR_FD    3

/* --- the janitor --- */

/* Rows from the environment's wish to what every system has. */
static bool make(const char *command, char ret[STATE_PATH_MAX])
{
    const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};

    for (size_t i = 0; i < COUNT(places); i++) {
        if (!places[i] || places[i][0] != '/' ||
            snprintf(ret, STATE_PATH_MAX, "%s/retort-%s-XXXXXX", places[i], command) >=
                STATE_PATH_MAX)
            continue;
        if (mkdtemp(ret))
            return true;
    }
    return false;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    (void)!remove(path); /* what cannot go must not keep the rest */
    return 0;
}

static _Noreturn void live(const char *command, const struct server_user *u)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    char path[STATE_PATH_MAX] = "", end;
    struct err e;

    for (size_t i = 0; i < COUNT(ignored); i++)
        signal(ignored[i], SIG_IGN);
    setsid(); /* what is meant for our group is not meant for it */
    prctl(PR_SET_NAME, "retort-janitor");
    umask(077);
    if ((u->changes && server_user_become(u, &e) < 0) || !make(command, path))
        _exit(errno ? errno : EIO);
    (void)!chdir("/");
    (void)!write(JANITOR_FD, path, strlen(path));
    while (read(JANITOR_FD, &end, 1) < 0 && errno == EINTR)
        ;
    nftw(path, drop, FDS_OF_A_WALK, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    _exit(0);
}

/* --- our side --- */

int janitor_start(struct janitor *j, const char *command, const struct server_user *u,
                  struct err *e)
{
    int pair[2], status = 0;
    ssize_t n;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "make a socket pair");
    j->pid = _Fork(); /* without the event loop's fork handlers */
    if (j->pid == 0) {
        if (dup2(pair[1], JANITOR_FD) < 0)
            _exit(errno);
        syscall(SYS_close_range, JANITOR_FD + 1, ~0u, 0);
        live(command, u);
    }
    close(pair[1]);
    n = j->pid < 0 ? -1 : read(pair[0], j->path, sizeof(j->path) - 1);
    if (n > 0) {
        j->path[n] = '\0';
        j->fd = pair[0];
        return 0;
    }
    close(pair[0]);
    if (j->pid > 0 && waitpid(j->pid, &status, 0) == j->pid && WIFEXITED(status))
        errno = WEXITSTATUS(status);
    j->pid = -1;
    return err_sys(e, "cannot make a temporary directory; set TMPDIR to one that can be written, "
                      "or say --state DIR");
}

void janitor_end(struct janitor *j)
{
    if (j->fd < 0)
        return;
    fd_closep(&j->fd);
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    j->pid = -1;
}
