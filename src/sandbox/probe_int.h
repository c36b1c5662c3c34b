/* Private to the probes: probe.c has the rows, probe_spaces.c those about namespaces and mounts,
 * probe_calls.c those about single system calls. */
#pragma once

#include "sandbox/probe.h"

/* 0: tried, and *ret says how it went (LAYER_OK unless set). -1: it is not there; e says why. */
typedef int probe_fn(struct layer_found *ret, struct err *e);

probe_fn probe_user_space, probe_mount_space, probe_pid_space, probe_proc, probe_ipc_space,
    probe_uts_space, probe_net_space, probe_cgroup_space, probe_time_space, probe_mount_api,
    probe_disk, probe_uids;
probe_fn probe_answers, probe_processes, probe_clone3, probe_pidfd, probe_openat2,
    probe_close_range, probe_tid_address, probe_memfd, probe_no_new_privs, probe_landlock,
    probe_seccomp, probe_cgroups, probe_image;

/* Writes ret->detail. */
void probe_say(struct layer_found *ret, const char *fmt, ...) PRINTF(2, 3);

/* fork(), with a child that does not outlive the caller. */
pid_t probe_fork(void);
/* Waits for a child: 0 when it ended well, else -1 and *e; it is gone in either case. */
int probe_wait(pid_t pid, unsigned ms, struct err *e) MUST_CHECK;
/* fn in a process of its own: its result and its error. */
int probe_child(int (*fn)(void *arg, struct err *e), void *arg, struct err *e) MUST_CHECK;

/* Moves the caller into a user and a mount namespace with an empty /tmp, mounted with `options`. */
int probe_enter_mount_space(struct layer_found *ret, const char *options, struct err *e) MUST_CHECK;
