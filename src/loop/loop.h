/*
 * loop: the one event loop of a process: readiness of fds, timers, signals; and threads for
 * work that blocks, which share their time fairly.
 *
 * Touches: libuv, threads. Never touches: what the fds mean.
 *
 * loop_new(), then watch fds and set timers from callbacks; loop_run() returns
 * when loop_stop() was called. A watch or timer may be freed from its own
 * callback; it does not fire after that.
 */
#pragma once

#include "base/base.h"

struct loop;
struct watch;
struct timer;

typedef void loop_fn(void *arg);
typedef void loop_signal_fn(void *arg, int signum);

/* NULL: the system has no descriptors left, or the user has no epoll watches left. */
struct loop *loop_new(struct err *e);
void loop_free(struct loop *l); /* runs what was asked for later, then closes everything */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Calls fn whenever fd is readable or at end of file. The fd stays the caller's and must be
 * closed after watch_free(). */
struct watch *watch_new(struct loop *l, int fd, loop_fn *fn, void *arg);
/* The same, whenever fd has room for more. */
struct watch *watch_new_writable(struct loop *l, int fd, loop_fn *fn, void *arg);
void watch_pause(struct watch *w);
void watch_resume(struct watch *w);
void watch_free(struct watch *w);

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg);
void timer_set(struct timer *t, uint64_t ms); /* once, ms from now; replaces an earlier setting */
void timer_clear(struct timer *t);
void timer_free(struct timer *t);

/* Runs fn once from the loop, after the current callback. */
void loop_later(struct loop *l, loop_fn *fn, void *arg);

void loop_on_signal(struct loop *l, int signum, loop_signal_fn *fn, void *arg);

/* Whose work it is: every group has an equal part of the workers' time, and within it every
 * member. All zero: the program's own. */
struct whose {
    uint64_t group, member;
};
struct whose whose_of(const char *group, const char *member);

/* Runs work() on a worker thread when its turn comes, then done() from the loop. Until done() no
 * other code may touch what work() uses. */
void loop_work_for(struct loop *l, struct whose whose, loop_fn *work, loop_fn *done, void *arg);
void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg);
/* Call this in long work() every few hundred microseconds: other work may get the turn here. Does
 * nothing on any other thread. The caller must hold no lock. */
void work_yield(void);
/* Around a wait for a disk or a network: others work meanwhile. Keeps errno. */
void work_wait_begin(void);
void work_wait_end(void);
/* Runs fn once from the loop. The one call that another thread may make. */
void loop_post(struct loop *l, loop_fn *fn, void *arg);
/* Calls fn once when the peer of a socket has gone, or will send no more. */
struct watch *watch_new_hangup(struct loop *l, int fd, loop_fn *fn, void *arg);
