/*
 * The second filter of a box, for the code's own processes: what only init may do is refused, on
 * top of the list in seccomp.c.
 */
#include "sandbox/seccomp_int.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Newer than the headers of some systems. */
#define SET_MEMORY_MERGE  67u
#define GET_FS_UUID       0x80111500ul
#define GET_FS_SYSFS_PATH 0x80811501ul
#define READ_IF_CACHED    0x8u  /* RWF_NOWAIT */
#define READ_UNCACHED     0x80u /* RWF_DONTCACHE */

/* init needs the first two to start these processes, and process_vm_writev, pidfd_getfd and the
 * last two to answer them (answers.c). */
static const char *const refused_to_user[] = {
    "setresuid", "setresgid", "process_vm_writev", "pidfd_getfd", "setuid",  "setgid",
    "setreuid",  "setregid",  "setgroups",         "setfsuid",    "setfsgid"};

/* Init may share the user's uid, and then could be starved of the CPU with which it watches. Its
 * process id is 1; a pid of 0 or another is the code's own affair. */
static int add_init_guard(scmp_filter_ctx ctx)
{
    static const char *const by_pid[] = {"sched_setaffinity", "sched_setattr", "sched_setparam",
                                         "sched_setscheduler"};
    static const struct {
        const char *name;
        unsigned process, user; /* what the first argument says */
    } by_kind[] = {
        {"setpriority", 0, 2}, /* PRIO_PROCESS, PRIO_USER */
        {"ioprio_set",  1, 3}, /* IOPRIO_WHO_PROCESS, IOPRIO_WHO_USER */
    };
    int rc = 0;

    for (size_t i = 0; i < COUNT(by_pid) && rc == 0; i++) {
        struct scmp_arg_cmp init = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, 1);
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), by_pid[i], 1, &init);
    }
    for (size_t i = 0; i < COUNT(by_kind) && rc == 0; i++) {
        struct scmp_arg_cmp init[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, by_kind[i].process),
                                      SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_WORD, 1)};
        struct scmp_arg_cmp everybody = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, by_kind[i].user);
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), by_kind[i].name, 2, init);
        if (rc == 0)
            rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), by_kind[i].name, 1, &everybody);
    }
    return rc;
}

/* How much may be under way in a socket is settled (net.c), and init counts on it. A wish for more
 * is heard and not granted, which is what the kernel does with one past the host's own limit. */
static int add_buffer_sizes(scmp_filter_ctx ctx)
{
    static const unsigned sizes[] = {SO_SNDBUF, SO_RCVBUF};
    int rc = 0;

    for (size_t i = 0; i < COUNT(sizes) && rc == 0; i++) {
        struct scmp_arg_cmp is[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_WORD, SOL_SOCKET),
                                    SCMP_A2(SCMP_CMP_MASKED_EQ, LOW_WORD, sizes[i])};
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(0), "setsockopt", 2, is);
    }
    return rc;
}

/* A file that is to be on the disk: those of a box never are, and one of the system's would have
 * the host's disk write out what it holds, 2 ms each time, for every sandbox to wait for. */
static int add_no_flush(scmp_filter_ctx ctx)
{
    static const char *const names[] = {"fsync", "fdatasync", "sync_file_range"};
    int rc = 0;

    for (size_t i = 0; i < COUNT(names) && rc == 0; i++)
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(0), names[i], 0, NULL);
    return rc;
}

/* What tells of the disk below the system's files: its name, its number, where on it a file is. And
 * pages that the kernel merges with equal ones of others, which a write then tells by its time. */
static int add_no_telling(scmp_filter_ctx ctx)
{
    static const unsigned long of_disk[] = {FS_IOC_FIEMAP, FS_IOC_GETFSLABEL, GET_FS_UUID,
                                            GET_FS_SYSFS_PATH};
    struct scmp_arg_cmp mergeable = SCMP_A2(SCMP_CMP_MASKED_EQ, LOW_WORD, MADV_MERGEABLE);
    struct scmp_arg_cmp merge_all = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, SET_MEMORY_MERGE);
    int rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EINVAL), "madvise", 1, &mergeable);

    if (rc == 0)
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EINVAL), "prctl", 1, &merge_all);
    for (size_t i = 0; i < COUNT(of_disk) && rc == 0; i++) {
        struct scmp_arg_cmp is = SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_WORD, of_disk[i]);
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(ENOTTY), "ioctl", 1, &is);
    }
    return rc;
}

/* A file of the system is the same in every box, and so are its pages in the cache. Whoever can
 * drop them, and see whether they are there again, knows when others read the file, as inotify
 * would tell. mincore() tells nothing of files that are not the caller's. */
static int add_no_eviction(scmp_filter_ctx ctx)
{
    static const unsigned flags[] = {READ_IF_CACHED, READ_UNCACHED};
    struct scmp_arg_cmp drop = SCMP_A3(SCMP_CMP_MASKED_EQ, LOW_WORD, POSIX_FADV_DONTNEED);
    int rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(0), "fadvise64", 1, &drop);

    for (size_t i = 0; i < COUNT(flags) && rc == 0; i++) {
        struct scmp_arg_cmp is = SCMP_A5(SCMP_CMP_MASKED_EQ, flags[i], flags[i]);
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "preadv2", 1, &is);
    }
    return rc;
}

int seccomp_add_user(scmp_filter_ctx ctx)
{
    static const unsigned long terminal[] = {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS};
    struct scmp_arg_cmp other = SCMP_A0(SCMP_CMP_NE, 0);
    struct scmp_arg_cmp notify = SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_WORD, F_NOTIFY);
    int rc = 0;

    for (size_t i = 0; i < COUNT(refused_to_user) && rc == 0; i++)
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), refused_to_user[i], 0, NULL);
    /* Its own limits it may read and lower; those of init, which may share its uid, not. */
    if (rc == 0)
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), "prlimit64", 1, &other);
    if (rc == 0)
        rc = add_init_guard(ctx);
    if (rc == 0)
        rc = add_buffer_sizes(ctx);
    if (rc == 0)
        rc = add_no_flush(ctx);
    if (rc == 0)
        rc = add_no_telling(ctx);
    if (rc == 0)
        rc = add_no_eviction(ctx);
    if (rc == 0) /* as inotify, and older */
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EINVAL), "fcntl", 1, &notify);
    for (size_t i = 0; i < COUNT(terminal) && rc == 0; i++) {
        struct scmp_arg_cmp is = SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_WORD, terminal[i]);
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), "ioctl", 1, &is);
    }
    return rc;
}
