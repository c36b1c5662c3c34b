/* Private to the room: the steps of box.c, one file per kernel mechanism. */
#pragma once

#include "sandbox/box.h"

/* 0: done; 1: this kernel has no such mechanism (only where doctor may say so); -1: failed. */
typedef int step_fn(struct box *b, struct err *e);

step_fn ids_enter, ids_verify;
step_fn mounts_enter, mounts_verify;
step_fn net_enter, net_verify;
step_fn rlimit_enter, rlimit_verify;
step_fn creds_enter, creds_verify;
step_fn fds_enter, fds_verify;
step_fn landlock_enter, landlock_verify;
step_fn seccomp_enter, seccomp_verify;

/* The wanted refusal of a probe: -1 and `want` in errno, else the layer is not what it seems. */
int probe_refused(long got, int want, const char *what, struct err *e) MUST_CHECK;

/* The path of a process in a hierarchy, from the lines of its /proc/.../cgroup: "4:memory:/a/b", or
 * "0::/a/b" for version 2, whose controller is "". Cuts text up. */
bool cgroup_own_path(char *text, const char *controller, char *ret, size_t size);
/* Where a line of mountinfo says that a hierarchy is mounted: type "cgroup" with the controller
 * among its super options, or type "cgroup2". Only mounts that show it from its root are of use. */
bool cgroup_mounted_at(const char *line, const char *controller, char *ret, size_t size);
/* As cgroups_open(), in this group of version 2. */
struct cgroups *cgroups_open_v2(const char *base);
/* As cgroups_open(), in these groups of version 1: memory, pids, cpu, cpuacct. */
struct cgroups *cgroups_open_v1(const char *const base[]);

/* view.c: on the /proc that was just mounted. */
int view_show(const struct box_plan *p, struct err *e) MUST_CHECK;
int view_verify(const struct box_plan *p, struct err *e) MUST_CHECK;
unsigned view_cpus(void); /* how many the box is told of */
int64_t view_uptime_us(void);
/* answers.c. Loads the base filter in such a way that from here on init answers what would tell the
 * host's size. The descriptor on which the calls come; or -1 and errno, and no filter is loaded. */
int answers_listen(struct filter base);
/* Makes the base filter one that leaves these calls to the kernel. */
void answers_none(struct filter base);
/* How that filter marks them, and the caller who is init itself: answers_pass() takes its place. */
#define ANSWERED_ACTION SECCOMP_RET_LOG
#define ANSWERED_PASS   0x9e3779b97f4a7c15u
/* answers_statfs.c. 0 and what the caller is told, or an errno for it. */
struct seccomp_notif;
struct statfs;
int answer_statfs(const struct box_plan *p, const struct seccomp_notif *call, struct statfs *ret);
int answers_fstatfs(int fd, struct statfs *ret); /* as the kernel answers it */
bool answers_is_own(int fd);                     /* on a volume of the session's own */
/* The sixth argument of a statfs() or flock() of init's, which the kernel is to answer. */
uint64_t answers_pass(void);
/* answers_flock.c. 0, -errno, or ANSWER_IS_GIVEN: it has had its reply, or will have it. */
enum { ANSWER_IS_GIVEN = 1 };
long answer_flock(const struct seccomp_notif *call);
/* value: what the call returns, or -errno. False: nobody waits for it any more. */
bool answers_reply(uint64_t id, long value);
/* In the zygote, before its root is sealed. */
int view_open(struct err *e) MUST_CHECK;

/* seccomp(2) with a compiled program; -1 and errno. */
int filter_install(struct filter f) MUST_CHECK;
struct sock_fprog filter_program(struct filter f);

/* creds.c: keeps these capabilities, of the first 32, and no others; -1 and errno. */
int caps_set(uint32_t low) MUST_CHECK;

/* rlimit.c: open files of what init starts. */
int rlimit_of_user(const struct box_plan *p) MUST_CHECK;
