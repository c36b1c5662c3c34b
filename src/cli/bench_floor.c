/* What the machine itself takes, whoever asks: below this nothing that answers can go. */
#include "cli/bench_int.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPIN_ROUNDS 100000u

static double clock_us(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

double bench_now_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

void samples_add(struct samples *s, double v)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->v = mem_realloc(s->v, s->cap * sizeof(*s->v));
    }
    s->v[s->n++] = v;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double samples_rank(struct samples *s, double share)
{
    size_t at = (size_t)(share * (double)s->n);

    assert(s->n > 0);
    qsort(s->v, s->n, sizeof(*s->v), by_size);
    return s->v[at < s->n ? at : s->n - 1];
}

static _Noreturn void echo(int in, int out)
{
    char byte;

    while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
        ;
    _exit(0);
}

int bench_floor_pipe(struct samples *ret, unsigned count, struct err *e)
{
    int there[2] = {-1, -1}, back[2] = {-1, -1}, rc = 0;
    pid_t pid = -1;
    char byte = 0;

    if (pipe2(there, O_CLOEXEC) < 0 || pipe2(back, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        rc = err_sys(e, "measure a pipe");
    if (pid == 0) {
        close(there[1]); /* else its own end would keep the pipe open */
        echo(there[0], back[1]);
    }
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        double begun = bench_now_us();
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            rc = err_sys(e, "measure a pipe");
        else
            samples_add(ret, bench_now_us() - begun);
    }
    for (size_t i = 0; i < 2; i++) {
        fd_closep(&there[i]);
        fd_closep(&back[i]);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

int bench_floor_fork(struct samples *ret, unsigned count, struct err *e)
{
    for (unsigned i = 0; i < count; i++) {
        double begun = bench_now_us();
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid < 0)
            return err_sys(e, "measure fork");
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        samples_add(ret, bench_now_us() - begun);
    }
    return 0;
}

void bench_floor_spin(struct samples *ret, unsigned count, double *cpu_us)
{
    double before = clock_us(CLOCK_THREAD_CPUTIME_ID);

    for (unsigned i = 0; i < count; i++) {
        double begun = bench_now_us();
        for (volatile unsigned k = 0; k < SPIN_ROUNDS; k++)
            ;
        samples_add(ret, bench_now_us() - begun);
    }
    *cpu_us += clock_us(CLOCK_THREAD_CPUTIME_ID) - before;
}

double bench_load(void)
{
    double load = 0;

    return getloadavg(&load, 1) == 1 ? load : 0;
}

unsigned bench_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}
