/*
 * init: PID 1 of one sandbox. It closes the box around itself, then starts what it
 * is told to (kernels, commands), reports how they end, and reaps everything else.
 * It holds the pristine interpreter that kernels are forked from and never runs a
 * line of Python. When the server's end of its socket closes it exits, and the
 * kernel ends every process of the namespace with it.
 */
#include "guest/guest.h"

#include "sandbox/box.h"
#include "wire/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMANDS_MAX 64
#define ARGS_MAX     64
#define ENV_MAX      256
#define WATCH_MS     50
#define LOCKS_MS     10 /* a lock may go without a word: with a close, or a process */

struct box_command {
    pid_t pid; /* 0: free */
    uint64_t id;
    bool ended;
    int status;
};

struct init {
    struct box box;
    int ctl, sigfd;
    pid_t kernel; /* 0: none */
    struct box_command commands[COMMANDS_MAX];
    uint64_t reaped_us;    /* CPU time of everything that has ended */
    uint64_t watch_cpu_us; /* absolute: trip when total CPU passes this; 0: off */
    uint64_t watch_memory; /* 0: off */
    bool told_pids;
};

static void tell_num(struct init *in, uint16_t type, uint64_t id, uint16_t tag, uint64_t value)
{
    char bytes[64];
    struct buf body = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};

    wire_put_num(&body, tag, value);
    if (wire_send(in->ctl, type, id, buf_str(&body), NULL, 0) < 0)
        _exit(0);
}

static _Noreturn void fail(int ctl, const struct err *e)
{
    char bytes[1024];
    struct buf body = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};

    wire_put(&body, TAG_TEXT, str_of(e->text));
    if (wire_send(ctl, MSG_FAILED, 0, buf_str(&body), NULL, 0) < 0)
        _exit(1);
    _exit(1);
}

/* --- starting things; the functions called in the child are async-signal-safe --- */

/* When memory runs out the code goes, not init: it has to tell the tale. A child is born with its
 * parent's mark, and a mark may be lowered again as far as it came from. */
static void mark_for_oom(bool children)
{
    const char *mark = children ? "900" : "0";

    (void)!write(BOX_OOM_FD, mark, strlen(mark)); /* the file has no position */
}

static int place(const int from[3], int sock)
{
    for (int fd = 0; fd < 3; fd++)
        if (dup2(from[fd], fd) < 0)
            return -1;
    if (sock >= 0 && sock != KERNEL_FD && dup2(sock, KERNEL_FD) < 0)
        return -1;
    if (sock >= 0 && fcntl(KERNEL_FD, F_SETFD, FD_CLOEXEC) < 0)
        return -1;
    return (int)syscall(SYS_close_range, sock >= 0 ? KERNEL_FD + 1 : 3, ~0u, 0);
}

static int unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* True in the child, which then returns into Python. */
static bool start_kernel(struct init *in, const int fds[3])
{
    pid_t pid;

    mark_for_oom(true);
    pid = raw_fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        const int from[3] = {null, fds[1], fds[2]};
        setsid();
        box_forget_pass();
        /* Dumpable again, or its own /proc/self would be closed to it. */
        if (null < 0 || place(from, fds[0]) < 0 || box_become_user(&in->box) < 0 ||
            prctl(PR_SET_DUMPABLE, 1) < 0 || unblock_signals() < 0)
            _exit(126);
        return true;
    }
    mark_for_oom(false);
    if (pid < 0)
        tell_num(in, MSG_KERNEL_EXIT, 0, TAG_STATUS, 126u << 8);
    else
        in->kernel = pid;
    return false;
}

/* An ignored signal stays ignored across an exec: the warden's and Python's choices end here. */
static _Noreturn void exec_command(struct init *in, char **argv, char **env, const int fds[3])
{
    static const int ordinary[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGXFSZ};

    setsid();
    for (size_t i = 0; i < COUNT(ordinary); i++)
        signal(ordinary[i], SIG_DFL);
    if (place(fds, -1) < 0 || box_become_user(&in->box) < 0 || unblock_signals() < 0)
        _exit(126);
    execve(argv[0], argv, env);
    _exit(127);
}

extern char **environ;

/* vfork: no page tables copied for an exec. A function of its own, so that no local of its caller
 * is at risk; what the child calls changes nothing of its parent's but its own descriptors, signal
 * handlers and credentials, none of which a vfork shares. */
static pid_t spawn(struct init *in, char **argv, char **env, const int fds[3])
{
    pid_t pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)

    if (pid == 0)
        exec_command(in, argv, env, fds); // NOLINT(clang-analyzer-unix.Vfork)
    return pid;
}

static bool same_variable(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* Ours, but for those that the command has its own of. Returns env, which has room. */
static char **with_ours(char **env, size_t own)
{
    size_t n = own;

    for (char **e = environ; *e && n < ENV_MAX; e++) {
        size_t i = 0;
        while (i < own && !same_variable(env[i], *e))
            i++;
        if (i == own)
            env[n++] = *e;
    }
    return env;
}

static void start_command(struct init *in, uint64_t id, struct str body, const int fds[3])
{
    char *argv[ARGS_MAX + 1] = {0}, *env[ENV_MAX + 1] = {0};
    struct box_command *c = in->commands;
    struct wire_field f;
    size_t argc = 0, envc = 0;
    pid_t pid = -1;

    while (wire_next(&body, &f) == 1) {
        if (f.tag == TAG_ARG && argc < ARGS_MAX)
            argv[argc++] = mem_strndup(f.data);
        if (f.tag == TAG_ENV && envc < ENV_MAX)
            env[envc++] = mem_strndup(f.data);
    }
    while (c < in->commands + COMMANDS_MAX && c->pid)
        c++;
    mark_for_oom(true);
    if (argc > 0 && c < in->commands + COMMANDS_MAX)
        pid = spawn(in, argv, with_ours(env, envc), fds);
    mark_for_oom(false);
    if (pid > 0)
        *c = (struct box_command){.pid = pid, .id = id};
    else
        tell_num(in, MSG_COMMAND_EXIT, id, TAG_STATUS, 126u << 8);
    for (size_t i = 0; i < argc; i++)
        free(argv[i]);
    for (size_t i = 0; i < envc; i++)
        free(env[i]);
}

/* --- ending things --- */

static void on_signal(struct init *in, uint64_t id, struct str body)
{
    uint64_t number = 0;

    if (!wire_find_num(body, TAG_NUMBER, &number) || number == 0 || number > 64)
        return;
    if (id == 0 && in->kernel > 0)
        kill(in->kernel, (int)number);
    if (id == 0)
        tell_num(in, MSG_SIGNALLED, 0, TAG_NUMBER, number);
    for (size_t i = 0; id != 0 && i < COMMANDS_MAX; i++)
        if (in->commands[i].pid && in->commands[i].id == id)
            kill(-in->commands[i].pid, (int)number);
}

static void on_ended(struct init *in, pid_t pid, int status, const struct rusage *used)
{
    in->reaped_us += (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000 +
                     (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        struct box_command *c = &in->commands[i];
        if (c->pid == pid)
            *c = (struct box_command){.id = c->id, .ended = true, .status = status};
    }
}

static void tell_ended(struct init *in)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        struct box_command *c = &in->commands[i];
        if (!c->ended)
            continue;
        c->ended = false;
        tell_num(in, MSG_COMMAND_EXIT, c->id, TAG_STATUS, (uint64_t)c->status);
    }
}

/* A kernel that ends takes with it whatever was started in the box: nobody is left who knows what
 * it was for. kill(-1) misses no forking process, since a fork fails while a kill is pending. Its
 * end is told before theirs, or the server would send the next cell to a kernel that is gone. */
static void reap(struct init *in)
{
    struct rusage used;
    int status, kernel_status = 0;
    bool kernel_ended = false;
    pid_t pid;

    while ((pid = wait4(-1, &status, kernel_ended ? 0 : WNOHANG, &used)) > 0) {
        if (pid == in->kernel) {
            kernel_ended = true;
            kernel_status = status;
            in->kernel = 0;
            kill(-1, SIGKILL);
        }
        on_ended(in, pid, status, &used);
    }
    if (kernel_ended)
        tell_num(in, MSG_KERNEL_EXIT, 0, TAG_STATUS, (uint64_t)kernel_status);
    tell_ended(in);
}

/* --- watching what no cgroup watches --- */

/* utime, stime and those of children it has waited for: words 12 to 15 from the end of the name,
 * the process's own choice, which may look like anything. */
static uint64_t stat_cpu_us(const char *text)
{
    const char *after = strrchr(text, ')');
    uint64_t ticks = 0;

    for (unsigned i = 12; after && i <= 15; i++)
        ticks += text_number_at(after, i);
    return ticks * (1000000 / 100);
}

/* "\nKey:   123 kB" in a file of /proc. */
static uint64_t kib_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) * KiB : 0;
}

/* Pages of the frozen image count as shared memory, but are everybody's. */
static uint64_t own_memory(uint64_t anonymous, uint64_t shared)
{
    return anonymous + (shared > heap_frozen_bytes() ? shared - heap_frozen_bytes() : 0);
}

/* What a socket may hold in its queue, about; the kernel does not tell how much it does. */
#define SOCKET_BYTES (256 * KiB)
#define SOCKETS_FREE 64

/* Files of the box and what is queued in its sockets live in memory, too. */
static uint64_t other_memory(void)
{
    static const char *const volumes[] = {BOX_WORKSPACE, "/tmp", "/dev/shm"};
    uint64_t sum = 0, sockets = 0;
    char text[512];

    if (fd_read_file_at(AT_FDCWD, "/proc/self/net/sockstat", text, sizeof(text)) > 0 &&
        strncmp(text, "sockets: used ", 14) == 0)
        sockets = strtoull(text + 14, NULL, 10);
    if (sockets > SOCKETS_FREE)
        sum += (sockets - SOCKETS_FREE) * SOCKET_BYTES;
    for (size_t i = 0; i < COUNT(volumes); i++) {
        struct statfs fs;
        if (box_statfs(volumes[i], &fs) == 0)
            sum += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    }
    return sum;
}

/* exact: what several processes share is divided among them, which takes the kernel a while. */
static uint64_t process_memory(int proc, const char *pid, bool exact)
{
    char path[300], text[4096];

    snprintf(path, sizeof(path), "%s/smaps_rollup", pid);
    if (exact && fd_read_file_at(proc, path, text, sizeof(text)) > 0)
        return own_memory(kib_of(text, "\nPss_Anon:"), kib_of(text, "\nPss_Shmem:"));
    snprintf(path, sizeof(path), "%s/status", pid);
    if (fd_read_file_at(proc, path, text, sizeof(text)) < 0)
        return 0;
    return own_memory(kib_of(text, "\nRssAnon:"), kib_of(text, "\nRssShmem:"));
}

/* Returns how many processes there are besides init. */
static uint64_t usage(struct init *in, bool exact, uint64_t *ret_cpu_us, uint64_t *ret_memory)
{
    uint64_t count = 0;
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    *ret_cpu_us = in->reaped_us;
    *ret_memory = in->watch_memory ? other_memory() : 0;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[300], text[2048];
        if (entry->d_name[0] < '2' || entry->d_name[0] > '9') {
            if (entry->d_name[0] != '1' || entry->d_name[1] == '\0')
                continue; /* not a process, or init itself */
        }
        snprintf(path, sizeof(path), "%s/stat", entry->d_name);
        if (fd_read_file_at(fd, path, text, sizeof(text)) > 0)
            *ret_cpu_us += stat_cpu_us(text);
        count++;
        if (in->watch_memory == 0)
            continue;
        *ret_memory += process_memory(fd, entry->d_name, exact);
    }
    if (d)
        closedir(d);
    return count;
}

static void on_watch(struct init *in, struct str body)
{
    uint64_t cpu = 0, memory = 0, used, ignored;

    wire_find_num(body, TAG_CPU_US, &cpu);
    wire_find_num(body, TAG_MEMORY, &memory);
    in->watch_memory = 0;
    in->told_pids = false;
    usage(in, false, &used, &ignored);
    in->watch_cpu_us = cpu ? used + cpu : 0;
    in->watch_memory = memory;
}

static void check_watch(struct init *in)
{
    uint64_t cpu, memory;
    uint64_t count = usage(in, false, &cpu, &memory);

    if (in->watch_cpu_us && cpu > in->watch_cpu_us) {
        in->watch_cpu_us = 0;
        tell_num(in, MSG_TRIP, 0, TAG_NUMBER, TRIP_CPU);
    }
    if (in->watch_memory && memory > in->watch_memory)
        usage(in, true, &cpu, &memory); /* forks share: look again, closely */
    if (in->watch_memory && memory > in->watch_memory) {
        in->watch_memory = 0;
        tell_num(in, MSG_TRIP, 0, TAG_NUMBER, TRIP_MEMORY);
    }
    if (in->watch_memory && count >= in->box.plan->pids && !in->told_pids) {
        in->told_pids = true;
        tell_num(in, MSG_TRIP, 0, TAG_NUMBER, TRIP_PIDS);
    }
}

/* --- the loop --- */

/* True in a new kernel. */
static bool on_message(struct init *in)
{
    static char bytes[WIRE_BODY_MAX];
    struct wire_head head;
    int fds[WIRE_FDS_MAX] = {-1, -1, -1, -1};
    size_t nfds = 0;
    bool in_kernel = false;

    if (wire_recv(in->ctl, &head, bytes, fds, 3, &nfds) <= 0)
        _exit(0);
    struct str body = {bytes, head.len};
    if (head.type == MSG_KERNEL && nfds == 3 && in->kernel == 0)
        in_kernel = start_kernel(in, fds);
    if (head.type == MSG_COMMAND && nfds == 3)
        start_command(in, head.id, body, fds);
    if (head.type == MSG_SIGNAL)
        on_signal(in, head.id, body);
    if (head.type == MSG_WATCH)
        on_watch(in, body);
    for (size_t i = 0; i < nfds && !in_kernel; i++) /* a kernel has placed and closed them */
        fd_closep(&fds[i]);
    return in_kernel;
}

static void close_box(struct init *in, int ctl, int go)
{
    const int shown[] = {BOX_SPACE_FD, BOX_TMP_FD, BOX_SHM_FD, BOX_PROXY_FD};
    size_t count = in->box.plan->proxy ? COUNT(shown) : COUNT(shown) - 1;
    struct err e = {0};
    sigset_t all;
    char byte;

    if (read(go, &byte, 1) != 1)
        _exit(0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    in->box.ctl = ctl;
    if (box_enter(&in->box, &e) < 0)
        fail(in->box.ctl, &e);
    in->ctl = in->box.ctl;
    if (wire_send(in->ctl, MSG_READY, 0, (struct str){0}, shown, count) < 0)
        _exit(0);
    for (size_t i = 0; i < count; i++)
        close(shown[i]);
}

void init_run(int ctl, int go, const struct box_plan *plan, struct filter base, struct filter user)
{
    struct init in = {
        .box = {.plan = plan, .base = base, .user = user}
    };
    bool locks = false; /* a call waits for one */
    sigset_t child;

    close_box(&in, ctl, go);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    in.sigfd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct pollfd p[] = {
            {in.ctl,                               POLLIN, 0},
            {in.sigfd,                             POLLIN, 0},
            {in.box.answers ? BOX_ANSWERS_FD : -1, POLLIN, 0},
        };
        struct signalfd_siginfo info;
        bool watching = in.watch_cpu_us || in.watch_memory;
        if (poll(p, COUNT(p), locks ? LOCKS_MS : watching ? WATCH_MS : -1) < 0)
            continue;
        if (p[1].revents && read(in.sigfd, &info, sizeof(info)) > 0)
            reap(&in);
        if (watching)
            check_watch(&in);
        if (p[2].revents & POLLIN)
            box_answer(&in.box);
        locks = in.box.answers && box_answer_waiting();
        if (p[0].revents && on_message(&in))
            return;
    }
}
