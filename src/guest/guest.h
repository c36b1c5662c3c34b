/*
 * guest: lives where the code lives. The zygote's loop, init of each sandbox, and
 * what the kernel's Python needs from C: the extension module `_retort`.
 *
 * Touches: the sandbox room for its own confinement, the sockets it is given,
 * CPython. Never touches: the server's memory, files of the host.
 *
 * One process image, three roles. zygote_run() serves forks; each child becomes
 * init (init_run()) and never runs Python; init forks kernels, and only there do
 * both functions return, into Python.
 */
#pragma once

#include "base/base.h"

struct box_plan;
struct filter;

#define KERNEL_FD 3 /* the kernel's socket to the server */

/* Both return only inside a new kernel; the other roles end in _exit(). */
void zygote_run(int sock, struct str modules); /* modules: see MSG_ZYGOTE_UP */
/* go: readable when the id maps of this process are written. */
void init_run(int ctl, int go, const struct box_plan *plan, struct filter base, struct filter user);

/* Like fork(), but runs no atfork handlers: they would touch the pages that are to stay shared. */
pid_t raw_fork(void);

/* Fills the holes of malloc's free lists, so that new objects come from fresh pages and pages
 * shared with the zygote stay shared. */
void heap_plug(void);
/* Replaces this process's private memory by a private mapping of one file, which makes a fork
 * nearly free of page tables. Raw system calls, one thread. -1 and *e when it cannot. */
int heap_freeze(struct err *e) MUST_CHECK;
unsigned long heap_frozen_bytes(void); /* size of that file: shared by all, used by nobody */
#define HEAP_IMAGE_NAME "retort-image"

/* In a child of the zygote that runs typical cells: writes down which pages they have touched since
 * the last time. Twice: when it has run what any first cell does, and at its end. */
void pages_teach(int out);
/* In the zygote: reads that to its end. */
void pages_learn(int in);
/* In a new kernel: takes those pages, or only those of the first time, until all are taken or there
 * is something to read. */
void pages_take(bool all, int until_readable);
/* In a kernel that has nothing to do: rests, with little memory, until there is something to read
 * or a signal for it. */
void pages_rest(int until_readable);
