/*
 * Runs the interpreter that a pool names, outside of any box, to ask it a question. Root asks
 * before the server changes its user, so the interpreter runs as the user that the server will
 * become.
 */
#include "engine/engine_int.h"

#include "sandbox/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_MS   15000
#define ANSWER_MAX (16 * KiB)

extern char **environ;

/* One value a line: executable, version, then every directory it was installed in. */
static const char question[] =
    "import sys, os\n"
    "print(os.path.abspath(sys.executable))\n"
    "print('%d.%d.%d' % sys.version_info[:3])\n"
    "for p in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix,\n"
    "          os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))):\n"
    "    print(os.path.abspath(p))\n";

static const char *find_default(void)
{
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

static int spawn(const char *python, const char *const argv[], int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int rc;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    rc = posix_spawnp(ret_pid, python, &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* In the child: the interpreter of somebody's choice does not run as root. */
static _Noreturn void become_and_exec(const char *python, const char *const argv[], int out,
                                      int failed, const struct server_user *as)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct err e;

    if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(null, 2) == 2 &&
        server_user_become(as, &e) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        execvp(python, (char **)argv);
    (void)!write(failed, &errno, sizeof(errno));
    _exit(127);
}

/* A spawn cannot change who runs. The pipe closes when exec succeeds, else it has an errno.
 */
static int spawn_as(const struct server_user *as, const char *python, const char *const argv[],
                    int out, pid_t *ret_pid)
{
    int failed[2], rc = 0;

    if (pipe2(failed, O_CLOEXEC) < 0)
        return errno;
    *ret_pid = _Fork(); /* without the event loop's fork handlers */
    if (*ret_pid == 0)
        become_and_exec(python, argv, out, failed[1], as);
    if (*ret_pid < 0)
        rc = errno;
    close(failed[1]);
    if (rc == 0 && read(failed[0], &rc, sizeof(rc)) > 0)
        waitpid(*ret_pid, NULL, 0);
    close(failed[0]);
    return rc;
}

/* 0 or an errno. */
static int start(const char *python, const char *source, const struct server_user *as, int out,
                 pid_t *ret_pid)
{
    const char *argv[] = {python, "-I", "-c", source, NULL};

    return as && as->changes ? spawn_as(as, python, argv, out, ret_pid)
                             : spawn(python, argv, out, ret_pid);
}

/* Reads until end of file, at most PROBE_MS. */
static void read_answer(int fd, char *ret, size_t size)
{
    int64_t until = time_mono_us() + (int64_t)PROBE_MS * 1000;
    size_t n = 0;

    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        int64_t left_ms = (until - time_mono_us()) / 1000;
        ssize_t got;
        if (n + 1 >= size || left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
            break;
        got = read(fd, ret + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    ret[n] = '\0';
}

int python_ask(const char *python, const char *source, const struct server_user *as, char *ret,
               size_t size, struct err *e)
{
    int pipe_fds[2];
    pid_t pid;
    int rc;

    if (!python)
        python = find_default();
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    rc = start(python, source, as, pipe_fds[1], &pid);
    close(pipe_fds[1]);
    if (rc != 0) {
        close(pipe_fds[0]);
        return err_set(e, ERR_CALLER, "cannot run Python '%s': %s%s", python, strerror(rc),
                       rc == EACCES && as && as->changes
                           ? "; the server's user must be able to reach it, so no directory above "
                             "it may be closed to others"
                           : "");
    }
    read_answer(pipe_fds[0], ret, size);
    close(pipe_fds[0]);
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): a start that succeeds has set it
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}

int python_probe(const char *python, const struct server_user *as, struct python_info *ret,
                 struct err *e)
{
    char text[ANSWER_MAX];

    *ret = (struct python_info){0};
    if (python_ask(python, question, as, text, sizeof(text), e) < 0)
        return -1;
    return python_parse(text, python ? python : find_default(), ret, e);
}
