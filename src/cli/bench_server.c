/*
 * The server that `retort bench` starts for itself.
 *
 * Theory of operation: the janitor makes a folder for the server's user alone; in it are the
 * socket, the settings, the state and the log. A child, the keeper, starts the server and waits for
 * the end of a pipe that we hold, also when we are killed; then it stops the server. It holds the
 * janitor's pipe as well, so the folder goes after the server.
 */
#include "cli/bench_int.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX  24
#define LOG_SHOWN 400

extern char **environ;

static const char config[] = "[pool default]\n"
                             "\n"
                             "[pool " BENCH_COLD_POOL "]\n"
                             "ready = 0\n";

/* A buyer's settings are for the buyer's server: with RETORT_STORE this one would use its rows. */
static void forget_settings(void)
{
    for (char **at = environ; *at;) {
        AUTO_FREE char *name = mem_strndup((struct str){*at, strcspn(*at, "=")});
        if (strncmp(name, "RETORT_", 7) != 0)
            at++;
        else if (unsetenv(name) < 0)
            _exit(EXIT_OURS);
    }
}

static _Noreturn void become_server(const struct bench_server *b, const struct settings *s)
{
    char listen[128], state[STATE_PATH_MAX + 8], file[STATE_PATH_MAX + 8], log[STATE_PATH_MAX + 8];
    const char *args[ARGS_MAX] = {
        "retort",      "serve", "--listen", listen, "--state",        state, "--config", file,
        "--log-level", "error", "--drain",  "0",    "--max-sessions", "300"};
    size_t n = 14;
    int fd;

    snprintf(listen, sizeof(listen), "unix:%s", b->socket);
    snprintf(state, sizeof(state), "%s/state", b->janitor.path);
    snprintf(file, sizeof(file), "%s/ini", b->janitor.path);
    snprintf(log, sizeof(log), "%s/log", b->janitor.path);
    if (s->pool.python) {
        args[n++] = "--python";
        args[n++] = s->pool.python;
    }
    if (s->environments_dir) {
        args[n++] = "--environments";
        args[n++] = s->environments_dir;
    }
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(EXIT_OURS);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execv("/proc/self/exe", (char *const *)args);
    _exit(EXIT_OURS);
}

static _Noreturn void keep(const struct bench_server *b, const struct settings *s, int held)
{
    struct pollfd fds[2] = {
        {.fd = held, .events = POLLIN},
        {.events = POLLIN         }
    };
    int status = 0;
    pid_t pid;

    setsid(); /* Ctrl-C is for the bench, which then closes the pipe */
    prctl(PR_SET_NAME, "retort-keeper");
    forget_settings();
    pid = fork();
    if (pid == 0)
        become_server(b, s);
    fds[1].fd = pid < 0 ? -1 : pidfd_open(pid, 0);
    if (fds[1].fd < 0)
        _exit(EXIT_OURS);
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    if (fds[0].revents)
        kill(pid, SIGTERM);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_OURS);
}

static int write_config(const struct bench_server *b, struct err *e)
{
    AUTO_CLOSE int dir = open(b->janitor.path, O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int fd =
        dir < 0 ? -1 : openat(dir, "ini", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0)
        return err_sys(e, "make the settings of a server in %s", b->janitor.path);
    return fd_write_all(fd, STR(config), e);
}

int bench_server_start(struct bench_server *b, const struct settings *s, struct err *e)
{
    struct server_user u;
    int pair[2];

    *b = (struct bench_server){.janitor = {.fd = -1}, .keeper = -1, .held = -1};
    if (server_user_find(NULL, &u, e) < 0 || janitor_start(&b->janitor, "bench", &u, e) < 0 ||
        write_config(b, e) < 0)
        return -1;
    if (snprintf(b->socket, sizeof(b->socket), "%s/socket", b->janitor.path) >=
        (int)sizeof(b->socket))
        return err_set(e, ERR_CALLER,
                       "the path %s is too long for a socket: set TMPDIR to a shorter one",
                       b->janitor.path);
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(e, "make a pipe");
    b->held = pair[1];
    b->begun_us = bench_now_us();
    b->keeper = fork();
    if (b->keeper == 0) {
        fd_closep(&b->held);
        keep(b, s, pair[0]);
    }
    close(pair[0]);
    return b->keeper < 0 ? err_sys(e, "start a server") : 0;
}

/* What a line of the log says: without "retort: ", or "retort[17] error: ". */
static struct str without_head(struct str line)
{
    const char *end = memmem(line.p, line.n, ": ", 2);

    return end && strncmp(line.p, "retort", 6) == 0 ? str_from(line, (size_t)(end - line.p) + 2)
                                                    : line;
}

bool bench_server_failed(struct bench_server *b, struct err *e)
{
    char path[STATE_PATH_MAX + 8], log[4096] = "";
    struct str said, line;
    int status = 0;

    if (b->keeper <= 0 || waitpid(b->keeper, &status, WNOHANG) != b->keeper)
        return false;
    b->keeper = -1;
    snprintf(path, sizeof(path), "%s/log", b->janitor.path);
    if (fd_read_file_at(AT_FDCWD, path, log, sizeof(log)) < 0)
        log[0] = '\0';
    said = str_trim(str_of(log));
    line = without_head(str_base(said, "\n"));
    if (line.n == 0) {
        err_set(e, ERR_HOST,
                "the server for the bench ended and said nothing; is there room in %s?",
                b->janitor.path);
        return true;
    }
    err_set(e, WEXITSTATUS(status) == EXIT_USAGE ? ERR_CALLER : ERR_HOST,
            "the server for the bench ended: %.*s", line.n < LOG_SHOWN ? (int)line.n : LOG_SHOWN,
            line.p);
    return true;
}

void bench_server_end(struct bench_server *b)
{
    fd_closep(&b->held);
    while (b->keeper > 0 && waitpid(b->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    b->keeper = -1;
    janitor_end(&b->janitor);
}
