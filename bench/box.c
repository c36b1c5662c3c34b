/*
 * bench-box: what it costs a new sandbox that it sees no host in /proc and in a few system calls.
 * Boxes are made here as the zygote makes them, in turns: one with the kernel's own /proc, one with
 * that of src/sandbox/view.c, which also listens for the calls of src/sandbox/answers.c. Each takes
 * its own times, so that nothing of a fork or of another process is in them.
 *
 *   bench-box [ROUNDS]
 *
 * Prints microseconds: the median and the best of each, and of what is more. As root, or where
 * ordinary users may make user namespaces.
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS     500
#define ROUNDS_MAX 20000
#define STATE      "/var/lib"

enum { BARE, OWN, KINDS };
enum { PROC, FILTER, PARTS };

static const char *const part_name[] = {"/proc", "filter"};

static double took[PARTS][KINDS][ROUNDS_MAX];

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "bench-box: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* --- one box --- */

static int make_proc(const struct box_plan *p, bool own, struct err *e)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};

    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "mount proc");
    if (own && view_show(p, e) < 0)
        return -1;
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &ro, sizeof(ro)) < 0)
        return err_sys(e, "make proc read-only");
    return own ? view_verify(p, e) : 0;
}

/* What init's other steps do anyway, so that the pages of libc that it takes are not counted here.
 */
static void do_the_like(void)
{
    AUTO_CLOSE int at = open("/", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char text[64];

    snprintf(text, sizeof(text), "%u", (unsigned)getpid());
    (void)!mount(NULL, "/none", NULL, 0, NULL);
    (void)!access("/none", F_OK);
    (void)!fd_read_file_at(AT_FDCWD, "/etc/hostname", text, sizeof(text));
    (void)!dup3(at, at, 0);
    (void)!getrandom(text, 8, GRND_NONBLOCK);
}

static _Noreturn void box_main(const struct box_plan *p, struct filter base, bool own, int go,
                               int out)
{
    double us[PARTS] = {0}, begun;
    struct err e;
    char byte;

    if (read(go, &byte, 1) != 1)
        _exit(1);
    do_the_like();
    begun = now_us();
    if (make_proc(p, own, &e) < 0) {
        fprintf(stderr, "bench-box: %s\n", e.text);
        _exit(1);
    }
    us[PROC] = now_us() - begun;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    begun = now_us();
    if (own ? answers_listen(base) < 0 : filter_install(base) < 0) {
        perror("bench-box: load the filter");
        _exit(1);
    }
    us[FILTER] = now_us() - begun;
    _exit(write(out, us, sizeof(us)) != sizeof(us));
}

static void map_ids(pid_t pid)
{
    static const char *const files[] = {"setgroups", "uid_map", "gid_map"};
    char path[48];

    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
        if (fd_write_file_at(AT_FDCWD, path, i == 0 ? STR("deny") : STR("0 0 1\n")) < 0)
            give_up(path);
    }
}

static void make_box(const struct box_plan *p, struct filter base, bool own, double ret_us[PARTS])
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
        .exit_signal = SIGCHLD,
    };
    int go[2], out[2], status;
    pid_t pid;

    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        give_up("pipe");
    pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        give_up("clone");
    if (pid == 0)
        box_main(p, base, own, go[0], out[1]);
    map_ids(pid);
    if (write(go[1], "g", 1) != 1 || waitpid(pid, &status, 0) != pid || status != 0 ||
        read(out[0], ret_us, PARTS * sizeof(*ret_us)) != (ssize_t)(PARTS * sizeof(*ret_us)))
        give_up("a box failed");
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(out[i]);
    }
}

/* --- all of them --- */

/* A zygote's place: process 1 of its namespaces, with somewhere to keep its files. */
static void enter_house(struct err *e)
{
    char map[2][48];
    int status;
    pid_t pid;

    snprintf(map[0], sizeof(map[0]), "0 %u 1\n", getuid());
    snprintf(map[1], sizeof(map[1]), "0 %u 1\n", getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0)
        give_up("new namespaces");
    if (fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", STR("deny")) < 0 ||
        fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", str_of(map[0])) < 0 ||
        fd_write_file_at(AT_FDCWD, "/proc/self/gid_map", str_of(map[1])) < 0)
        give_up("map ids");
    pid = fork();
    if (pid > 0) {
        waitpid(pid, &status, 0);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, NULL) < 0 ||
        mount("tmpfs", STATE, "tmpfs", 0, NULL) < 0 || mkdir(STATE "/retort", 0755) < 0)
        give_up("mount");
    if (view_open(e) < 0) {
        fprintf(stderr, "bench-box: %s\n", e->text);
        exit(1);
    }
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    const struct box_plan plan = {.memory_bytes = GiB, .cpu_percent = 200, .inodes = 1000};
    double median = 0, best = 0;
    AUTO(buf_done) struct buf base = BUF(MiB);
    AUTO(buf_done) struct buf user = BUF(MiB);
    struct err e;

    rounds = rounds < 1 ? 1 : rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX;
    enter_house(&e);
    if (view_make(&plan, &e) < 0 || seccomp_compile(&base, &user, &e) < 0) {
        fprintf(stderr, "bench-box: %s\n", e.text);
        return 1;
    }
    for (size_t i = 0; i < rounds; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            double us[PARTS];
            make_box(&plan, (struct filter){buf_str(&base)}, kind == OWN, us);
            for (int part = 0; part < PARTS; part++)
                took[part][kind][i] = us[part];
        }
    }
    printf("%-16s %10s %10s %10s   best: %10s %10s %10s\n", "us", "without", "with", "more",
           "without", "with", "more");
    for (int part = 0; part < PARTS; part++) {
        double *without = took[part][BARE], *with = took[part][OWN];
        qsort(without, rounds, sizeof(*without), in_order);
        qsort(with, rounds, sizeof(*with), in_order);
        printf("%-16s %10.1f %10.1f %10.1f         %10.1f %10.1f %10.1f\n", part_name[part],
               without[rounds / 2], with[rounds / 2], with[rounds / 2] - without[rounds / 2],
               without[0], with[0], with[0] - without[0]);
        median += with[rounds / 2] - without[rounds / 2];
        best += with[0] - without[0];
    }
    printf("%-16s %10s %10s %10.1f         %10s %10s %10.1f\n", "together", "", "", median, "", "",
           best);
    return 0;
}
