/*
 * sandbox: turns the calling process into a confined one, and proves it.
 *
 * Touches: namespaces, mounts, rlimits, credentials, landlock, seccomp of *this*
 * process; cgroup directories for others. Never touches: sockets to clients, the
 * store, Python.
 *
 * Two boxes, one inside the other. The warden's keeper calls root_build(): a
 * read-only root with nothing of the host but the system and one Python, in which
 * the zygote lives. Each child of the zygote calls box_enter(): it adds what is
 * its own (workspace, tmp, proc, loopback), drops everything else, and checks
 * every layer by trying to break it before it relies on the next.
 */
#pragma once

#include "base/base.h"

#include <linux/filter.h>

#define BOX_USER       1000 /* who the code runs as, inside */
#define BOX_WORKSPACE  "/workspace"
#define BOX_UPLOADS    BOX_WORKSPACE "/uploaded_files"
#define BOX_SKILLS     BOX_WORKSPACE "/skills"
#define BOX_GUEST_DIR  "/opt/retort"
#define BOX_CACHE_DIR  "/var/cache/retort"
#define BOX_PROXY_PORT 3128 /* on the loopback of the box, where there is a way out */

/* What one sandbox may use and who it is; made by the engine, completed by the warden. Plain
 * numbers only: it travels between processes as bytes. */
struct box_plan {
    uint64_t disk_bytes;
    uint64_t tmp_bytes;
    uint64_t inodes; /* of the workspace and of tmp, each */
    uint64_t pids;
    uint64_t open_files;
    uint64_t memory_bytes;
    uint64_t cpu_percent;
    uint32_t proxy;     /* 1: a listener on BOX_PROXY_PORT, to be served from outside */
    uint32_t init_uid;  /* inside: 0 where there is a uid range, BOX_USER where there is one uid */
    uint32_t in_cgroup; /* an enum cgroup_mode: who holds memory and pids */
    int32_t nice;       /* what the zygote has may be better */
};

/* A compiled seccomp program; the bytes of sock_filter[]. */
struct filter {
    struct str program;
};

/* --- the outer root (keeper) --- */

struct root_dir {
    const char *path;  /* of the host */
    const char *where; /* in the box; NULL: the same */
    int fd;            /* a detached mount of it, from root_dir_take(); -1: taken by its path */
    bool writable;     /* the cache: by the zygote, while it warms up; a folder: by everybody */
};

struct root_plan {
    const struct root_dir *dirs; /* to show besides the system, in this order */
    size_t dir_count;
};

/* A detached mount of the directory that fd (O_PATH) has open, for a keeper in another namespace to
 * take: what the path leads to by then plays no part. Takes CAP_SYS_ADMIN over this namespace. */
int root_dir_take(int fd) MUST_CHECK;
/* In a fresh mount and pid namespace: builds the root, moves into it, lets go of the old one. */
int root_build(const struct root_plan *plan, struct err *e) MUST_CHECK;
/* Called by the zygote when it has warmed up: nothing outside the boxes is writable from now on. */
int root_seal(struct err *e) MUST_CHECK;

/* By the keeper, before it starts the zygote: a clock that begins now, for all that are started
 * from here on. 1: this kernel has none. */
int view_own_clock(struct err *e) MUST_CHECK;
/* By the zygote, before every fork: the files that tell a box of this plan its size. */
int view_make(const struct box_plan *plan, struct err *e) MUST_CHECK;
/* By the zygote, about once a second: /proc/uptime of its boxes. */
void view_tick(void);

/* Also by the zygote, once before every fork: moves into a new network namespace with nothing but
 * its own loopback, for the next box to be born into. */
int net_prepare(struct err *e) MUST_CHECK;

/* --- the inner box (init of one sandbox) --- */

struct box {
    const struct box_plan *plan; /* borrowed */
    struct filter base;          /* borrowed: for everything in the box */
    struct filter user;          /* borrowed: on top of it, for the code's own processes */
    int ctl;                     /* the socket to keep; afterwards BOX_CTL_FD */
    bool answers;                /* BOX_ANSWERS_FD is there; set by box_enter() */
};

#define BOX_PROC_FDS 3

/* The only descriptors afterwards, besides 0-2, which are /dev/null. */
enum box_fd {
    BOX_CTL_FD = 3,
    BOX_OOM_FD,  /* init's own oom_score_adj: what it starts is born with what this says */
    BOX_PROC_FD, /* entries of /proc that are there because these hold them: view.c */
    BOX_PROC_LAST_FD = BOX_PROC_FD + BOX_PROC_FDS - 1,
    BOX_ANSWERS_FD, /* calls that init answers: box_answer(); only where b->answers */
    BOX_SPACE_FD,   /* the workspace, to be shown to the server once */
    BOX_TMP_FD,     /* likewise, so that it can tell which one is full */
    BOX_SHM_FD,
    BOX_PROXY_FD, /* the listener, likewise; only where the plan has one */
    BOX_FD_END
};

/* Runs every step. 0: the box is closed and verified. -1: half a box is no box, so the caller must
 * say why on b->ctl (moved to BOX_CTL_FD or not) and _exit. */
int box_enter(struct box *b, struct err *e) MUST_CHECK;

/* By init when BOX_ANSWERS_FD is readable: answers one call of the code's. */
void box_answer(const struct box *b);
/* By init once in a while for as long as it says true: a call waits for a lock. */
bool box_answer_waiting(void);
/* By init, whose own statfs() nobody would answer. */
struct statfs;
int box_statfs(const char *path, struct statfs *ret) MUST_CHECK;
/* In a forked child of init that has its own copy of init's memory: what only init may know. */
void box_forget_pass(void);

/* In a freshly forked child of init, before it becomes a kernel or a command: user id, no
 * capabilities, the second filter. Async-signal-safe: a vfork child may call it. -1 and errno. */
int box_become_user(const struct box *b) MUST_CHECK;

/* --- user ids (host side) --- */

/* Where the host gives us a range of uids, every live box gets two of its own: one for init, one
 * for the code. The range lies above everything Debian, systemd and shadow hand out; every running
 * instance has a block of it to itself. */
#define UID_BASE   0x70000000u
#define UID_COUNT  0x10000u /* of one block */
#define UID_BLOCKS 256u

struct uids {
    uint32_t base; /* the first, as this namespace numbers them; 0: none, every box is the caller */
    uint32_t count;
    bool subordinate; /* an ordinary user's, who stays the zygote's: server.h, subids_enter() */
};

/* Whether the range is ours to give: we are root of a namespace that has it. */
bool uids_are_mapped(void);
/* Claims a block for as long as *ret_lock stays open. The base is 0 where there is no range or no
 * block is free. */
struct uids uids_claim(int *ret_lock);

/* --- seccomp programs (host side: needs libseccomp) --- */

/* Both programs as bytes owned by the caller. */
int seccomp_compile(struct buf *ret_base, struct buf *ret_user, struct err *e) MUST_CHECK;
/* The same for another machine, by the name that libseccomp has for it: SCMP_ARCH_AARCH64. */
int seccomp_compile_for(uint32_t arch, struct buf *ret_base, struct buf *ret_user,
                        struct err *e) MUST_CHECK;

/* --- cgroups (host side) --- */

enum cgroup_mode { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroups;
struct box_usage {
    uint64_t oom_kills;
    uint64_t pid_hits;
};

/* Finds what this process may use, removes what dead instances left behind, makes a place for this
 * one. Never fails: without cgroups the mode is CGROUP_NONE and cgroups_why() tells. */
struct cgroups *cgroups_open(void);
void cgroups_close(struct cgroups *cg);
enum cgroup_mode cgroups_mode(const struct cgroups *cg);
const char *cgroups_why(const struct cgroups *cg); /* a sentence, for doctor and logs */

/* Making one takes a millisecond or more on version 1, so it can be done ahead of limiting it. */
int cgroup_make(struct cgroups *cg, uint64_t id, struct err *e) MUST_CHECK;
int cgroup_limit(struct cgroups *cg, uint64_t id, const struct box_plan *plan,
                 struct err *e) MUST_CHECK;
/* The way in, for the process that is to be born there or to join: owned fds in ret, and how many.
 * Version 2: the directory, for CLONE_INTO_CGROUP. Version 1: one `tasks` file per hierarchy, to
 * each of which the new process writes "0" itself (see cgroup_join). */
#define CGROUP_DOORS_MAX 4
int cgroup_doors(struct cgroups *cg, uint64_t id, int ret[CGROUP_DOORS_MAX],
                 struct err *e) MUST_CHECK;
void cgroup_usage(struct cgroups *cg, uint64_t id, struct box_usage *ret);
/* What its processes have used, as files that anybody can read who has them: owned fds, -1 where
 * there is none. */
enum { METER_CPU, METER_MEMORY, METERS };
void cgroup_meters(struct cgroups *cg, uint64_t id, int ret[METERS]);
/* Microseconds of CPU so far; the most bytes of memory at a time. False where that is not known. */
bool meter_read_cpu(int fd, uint64_t *ret_us);
bool meter_read_memory(int fd, uint64_t *ret_bytes);
/* 0 when it is gone, -1 with EBUSY while processes of it are still dying. */
int cgroup_remove(struct cgroups *cg, uint64_t id) MUST_CHECK;
