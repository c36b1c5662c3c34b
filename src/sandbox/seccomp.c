/*
 * What the code in a box may ask of the kernel: a list of what is allowed, a list
 * of what is refused and why, and ENOSYS for everything that is on neither, which
 * is what a kernel without the call would say and what every libc can handle.
 * Nothing is answered with a signal: a killing filter turns into random failures.
 *
 * There are two filters. This file has the list, for every process of a box;
 * seccomp_user.c has the second filter, for all of them but init.
 */
#include "sandbox/seccomp_int.h"

#include "sandbox/box_int.h"

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const allowed[] = {
    /* files */
    "access",
    "chdir",
    "chmod",
    "chown",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fsync",
    "ftruncate",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "getxattr",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pipe",
    "pipe2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "setxattr",
    "splice",
    "stat",
    "statx",
    "symlink",
    "symlinkat",
    "sync_file_range",
    "tee",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "write",
    "writev",
    /* waiting */
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "signalfd",
    "signalfd4",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    /* memory */
    "brk",
    "get_mempolicy",
    "madvise",
    "membarrier",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    /* processes and threads */
    "alarm",
    "arch_prctl",
    "capget",
    "capset",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "futex",
    "futex_requeue",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "get_robust_list",
    "getcpu",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "getuid",
    "ioctl",
    "ioprio_get",
    "ioprio_set",
    "kill",
    "pause",
    "pidfd_getfd",
    "pidfd_open",
    "pidfd_send_signal",
    "prctl",
    "prlimit64",
    "process_vm_writev",
    "restart_syscall",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    "setfsgid",
    "setfsuid",
    "setitimer",
    "setpgid",
    "setpriority",
    "setresgid",
    "setresuid",
    "setrlimit",
    "setsid",
    "sigaltstack",
    "tgkill",
    "tkill",
    "times",
    "uname",
    "vfork",
    "wait4",
    "waitid",
    "waitpid",
    /* time */
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "gettimeofday",
    "nanosleep",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    /* sockets: see families[] for which */
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    /* randomness */
    "getrandom",
};

struct refusal {
    const char *name;
    int with;
    const char *why;
};

/* ENOSYS where programs know how to do without, EPERM where they should hear a no. */
static const struct refusal refused[] = {
    {"io_uring_setup",    ENOSYS, "a ring opens files and sockets past this filter"                  },
    {"io_uring_enter",    ENOSYS, "a ring opens files and sockets past this filter"                  },
    {"io_uring_register", ENOSYS, "a ring opens files and sockets past this filter"                  },
    {"clone3",            ENOSYS, "its flags lie in memory, out of a filter's sight; libc falls back"},
    {"memfd_create",      ENOSYS, "memory that no quota of a file system counts"                     },
    {"memfd_secret",      ENOSYS, "memory that cannot be reclaimed or inspected"                     },
    {"unshare",           EPERM,  "new namespaces are new kernel surface"                            },
    {"setns",             EPERM,  "there is no namespace to go to"                                   },
    {"mount",             EPERM,  "the mounts are the box"                                           },
    {"umount2",           EPERM,  "the mounts are the box"                                           },
    {"pivot_root",        EPERM,  "the mounts are the box"                                           },
    {"chroot",            EPERM,  "the mounts are the box"                                           },
    {"open_tree",         EPERM,  "the mounts are the box"                                           },
    {"move_mount",        EPERM,  "the mounts are the box"                                           },
    {"fsopen",            EPERM,  "the mounts are the box"                                           },
    {"fsconfig",          EPERM,  "the mounts are the box"                                           },
    {"fsmount",           EPERM,  "the mounts are the box"                                           },
    {"fspick",            EPERM,  "the mounts are the box"                                           },
    {"mount_setattr",     EPERM,  "the mounts are the box"                                           },
    {"quotactl",          EPERM,  "administration"                                                   },
    {"quotactl_fd",       EPERM,  "administration"                                                   },
    {"ptrace",            EPERM,  "reaches into other processes"                                     },
    {"process_vm_readv",  EPERM,  "reaches into other processes"                                     },
    {"process_madvise",   EPERM,  "reaches into other processes"                                     },
    {"process_mrelease",  EPERM,  "reaches into other processes"                                     },
    {"kcmp",              EPERM,  "compares kernel pointers of other processes"                      },
    {"bpf",               EPERM,  "programs in the kernel"                                           },
    {"perf_event_open",   EPERM,  "a long record of escapes"                                         },
    {"userfaultfd",       EPERM,  "holds the kernel at a page fault, for races"                      },
    {"keyctl",            EPERM,  "keys are not kept apart by namespace"                             },
    {"add_key",           EPERM,  "keys are not kept apart by namespace"                             },
    {"request_key",       EPERM,  "keys are not kept apart by namespace"                             },
    {"seccomp",           EPERM,  "a second filter with a listener hides calls from us"              },
    {"name_to_handle_at", EPERM,  "handles open files past the mounts"                               },
    {"open_by_handle_at", EPERM,  "handles open files past the mounts (shocker)"                     },
    {"fanotify_init",     EPERM,  "sees other processes' files"                                      },
    {"fanotify_mark",     EPERM,  "sees other processes' files"                                      },
    {"inotify_init",      ENOSYS, "sees when others open files that sandboxes share"                 },
    {"inotify_init1",     ENOSYS, "sees when others open files that sandboxes share"                 },
    {"inotify_add_watch", ENOSYS, "sees when others open files that sandboxes share"                 },
    {"inotify_rm_watch",  ENOSYS, "sees when others open files that sandboxes share"                 },
    {"kexec_load",        EPERM,  "administration"                                                   },
    {"kexec_file_load",   EPERM,  "administration"                                                   },
    {"init_module",       EPERM,  "administration"                                                   },
    {"finit_module",      EPERM,  "administration"                                                   },
    {"delete_module",     EPERM,  "administration"                                                   },
    {"reboot",            EPERM,  "administration"                                                   },
    {"swapon",            EPERM,  "administration"                                                   },
    {"swapoff",           EPERM,  "administration"                                                   },
    {"acct",              EPERM,  "administration"                                                   },
    {"syslog",            EPERM,  "the host's log"                                                   },
    {"vhangup",           EPERM,  "administration"                                                   },
    {"iopl",              EPERM,  "administration"                                                   },
    {"ioperm",            EPERM,  "administration"                                                   },
    {"modify_ldt",        EPERM,  "old x86 surface"                                                  },
    {"sethostname",       EPERM,  "the name is ours"                                                 },
    {"setdomainname",     EPERM,  "the name is ours"                                                 },
    {"settimeofday",      EPERM,  "the clock is the host's"                                          },
    {"clock_settime",     EPERM,  "the clock is the host's"                                          },
    {"adjtimex",          EPERM,  "the clock is the host's"                                          },
    {"clock_adjtime",     EPERM,  "the clock is the host's"                                          },
    {"sync",              EPERM,  "makes every disk of the host write"                               },
    {"syncfs",            EPERM,  "makes every disk of the host write"                               },
    {"mbind",             EPERM,  "memory placement is the host's"                                   },
    {"set_mempolicy",     EPERM,  "memory placement is the host's"                                   },
    {"migrate_pages",     EPERM,  "memory placement is the host's"                                   },
    {"move_pages",        EPERM,  "memory placement is the host's"                                   },
    {"remap_file_pages",  EPERM,  "old surface"                                                      },
    {"lookup_dcookie",    EPERM,  "old surface"                                                      },
    {"vmsplice",          EPERM,  "shares pages with pipes, for races"                               },
    {"shmget",            ENOSYS, "memory that no limit of a process counts"                         },
    {"msgget",            ENOSYS, "memory that no limit of a process counts"                         },
    {"semget",            ENOSYS, "memory that no limit of a process counts"                         },
    {"mq_open",           ENOSYS, "memory that no limit of a process counts"                         },
};

struct socket_row {
    int family, type, protocol; /* -1: any */
};

static const struct socket_row families[] = {
    {AF_UNIX,  -1,          -1},
    {AF_INET,  SOCK_STREAM, 0 },
    {AF_INET,  SOCK_STREAM, 6 },
    {AF_INET,  SOCK_DGRAM,  0 },
    {AF_INET,  SOCK_DGRAM,  17},
    {AF_INET6, SOCK_STREAM, 0 },
    {AF_INET6, SOCK_STREAM, 6 },
    {AF_INET6, SOCK_DGRAM,  0 },
    {AF_INET6, SOCK_DGRAM,  17},
};

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#define SOCK_TYPE_MASK 0xf

int seccomp_rule(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned n,
                 const struct scmp_arg_cmp *args)
{
    int nr = seccomp_syscall_resolve_name(name);
    int rc = nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(ctx, action, nr, n, args);

    return rc == -EACCES ? 0 : rc;
}

/* All families but those above, by their bits: a rule for each made the program a fifth longer, and
 * the kernel took 15 us more to load it into each box. */
#define NO_FAMILY 0xffffffc0u /* there are 64 at most */

static const struct family_set {
    const char *call;
    unsigned bits, are;
} no_families[] = {
    {"socket",     0x20, 0x20}, /* 32 and up */
    {"socket",     0x10, 0x10}, /* 16 and up */
    {"socket",     0x04, 0x04}, /* 4 to 7, 12 to 15 */
    {"socket",     0x07, 0x03}, /* 3, 11 */
    {"socket",     0x0e, 0x08}, /* 8, 9 */
    {"socket",     0x3f, 0   },
    {"socketpair", 0x20, 0x20},
    {"socketpair", 0x10, 0x10},
    {"socketpair", 0x08, 0x08},
    {"socketpair", 0x04, 0x04},
    {"socketpair", 0x02, 0x02},
    {"socketpair", 0x3f, 0   },
};

static int add_sockets(scmp_filter_ctx ctx)
{
    struct scmp_arg_cmp is_unix = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, AF_UNIX);
    int rc = 0;

    for (size_t i = 0; i < COUNT(families) && rc == 0; i++) {
        const struct socket_row *f = &families[i];
        struct scmp_arg_cmp c[3];
        unsigned n = 0;
        c[n++] = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, (unsigned)f->family);
        if (f->type >= 0)
            c[n++] = SCMP_A1(SCMP_CMP_MASKED_EQ, SOCK_TYPE_MASK, (unsigned)f->type);
        if (f->protocol >= 0)
            c[n++] = SCMP_A2(SCMP_CMP_MASKED_EQ, LOW_WORD, (unsigned)f->protocol);
        rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, "socket", n, c);
    }
    if (rc == 0)
        rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, "socketpair", 1, &is_unix);
    /* What programs try and can do without gets the answer they expect. */
    for (size_t i = 0; i < COUNT(no_families) && rc == 0; i++) {
        const struct family_set *f = &no_families[i];
        struct scmp_arg_cmp is = SCMP_A0(SCMP_CMP_MASKED_EQ, NO_FAMILY | f->bits, f->are);
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), f->call, 1, &is);
    }
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        struct scmp_arg_cmp raw[2] = {
            SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, i ? AF_INET6 : AF_INET),
            SCMP_A1(SCMP_CMP_MASKED_EQ, SOCK_TYPE_MASK, SOCK_RAW),
        };
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), "socket", 2, raw);
    }
    return rc;
}

/* Calls that are allowed for some arguments. */
static int add_conditional(scmp_filter_ctx ctx)
{
    struct scmp_arg_cmp no_namespaces = SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0);
    struct scmp_arg_cmp plain = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, 0);
    struct scmp_arg_cmp query = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_WORD, LOW_WORD);
    int rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, "clone", 1, &no_namespaces);

    /* One refusal per forbidden bit: a rule can ask whether a bit is set, not whether any is. */
    for (unsigned bit = 0; bit < 32 && rc == 0; bit++) {
        struct scmp_arg_cmp set = SCMP_A0(SCMP_CMP_MASKED_EQ, 1u << bit, 1u << bit);
        if (NEW_NAMESPACES & (1u << bit))
            rc = seccomp_rule(ctx, SCMP_ACT_ERRNO(EPERM), "clone", 1, &set);
    }
    if (rc == 0)
        rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, "personality", 1, &plain);
    if (rc == 0)
        rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, "personality", 1, &query);
    return rc;
}

static int export(scmp_filter_ctx ctx, struct buf *ret, struct err *e)
{
    AUTO_CLOSE int fd = memfd_create("filter", MFD_CLOEXEC);
    off_t size;
    char *at;

    if (fd < 0 || seccomp_export_bpf(ctx, fd) < 0 || (size = lseek(fd, 0, SEEK_END)) < 0)
        return err_sys(e, "write out the seccomp program");
    at = buf_room(ret, (size_t)size);
    if (!at || pread(fd, at, (size_t)size, 0) != size)
        return err_set(e, ERR_HOST, "seccomp program of %lld bytes", (long long)size);
    ret->n += (size_t)size;
    return 0;
}

static int compile(scmp_filter_ctx ctx, int rc, struct buf *ret, struct err *e)
{
    int exported = -1;

    if (!ctx || rc < 0)
        err_set(e, ERR_HOST, "cannot build the seccomp program: %s", strerror(-rc));
    else
        exported = export(ctx, ret, e);
    seccomp_release(ctx);
    return exported;
}

/* Another architecture's calls (32-bit, x32) are unknown calls. A context starts with this
 * machine's architecture, and the rules of one are translated to whichever it has when they are
 * added. */
static scmp_filter_ctx start(uint32_t arch, uint32_t otherwise)
{
    scmp_filter_ctx ctx = seccomp_init(otherwise);

    if (ctx && (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) < 0 ||
                (arch != seccomp_arch_native() &&
                 (seccomp_arch_add(ctx, arch) < 0 ||
                  seccomp_arch_remove(ctx, seccomp_arch_native()) < 0)))) {
        seccomp_release(ctx);
        return NULL;
    }
    if (ctx) /* a tree of numbers instead of a list; older libraries keep the list */
        (void)!seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return ctx;
}

/* Calls that init answers, if it can, unless they are its own: answers.c. */
static int add_answered(scmp_filter_ctx ctx)
{
    static const struct {
        const char *name;
        bool own; /* init makes it, too */
    } answered[] = {
        {"flock",             true },
        {"fstatfs",           true },
        {"sched_getaffinity", false},
        {"statfs",            true },
        {"sysinfo",           false},
    };
    struct scmp_arg_cmp init = SCMP_A5(SCMP_CMP_EQ, ANSWERED_PASS);
    struct scmp_arg_cmp other = SCMP_A5(SCMP_CMP_NE, ANSWERED_PASS);
    int rc = 0;

    for (size_t i = 0; i < COUNT(answered) && rc == 0; i++) {
        const char *name = answered[i].name;
        rc = seccomp_rule(ctx, SCMP_ACT_LOG, name, answered[i].own, &other);
        if (rc == 0 && answered[i].own)
            rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, name, 1, &init);
    }
    return rc;
}

int seccomp_compile_for(uint32_t arch, struct buf *ret_base, struct buf *ret_user, struct err *e)
{
    scmp_filter_ctx ctx = start(arch, SCMP_ACT_ERRNO(ENOSYS));
    int rc = ctx ? 0 : -ENOMEM;

    for (size_t i = 0; i < COUNT(allowed) && rc == 0; i++)
        rc = seccomp_rule(ctx, SCMP_ACT_ALLOW, allowed[i], 0, NULL);
    for (size_t i = 0; i < COUNT(refused) && rc == 0; i++)
        rc = seccomp_rule(ctx, SCMP_ACT_ERRNO((unsigned)refused[i].with), refused[i].name, 0, NULL);
    if (rc == 0)
        rc = add_conditional(ctx);
    if (rc == 0)
        rc = add_answered(ctx);
    if (rc == 0)
        rc = add_sockets(ctx);
    if (compile(ctx, rc, ret_base, e) < 0)
        return -1;

    ctx = start(arch, SCMP_ACT_ALLOW);
    rc = ctx ? 0 : -ENOMEM;
    if (rc == 0)
        rc = seccomp_add_user(ctx);
    return compile(ctx, rc, ret_user, e);
}

int seccomp_compile(struct buf *ret_base, struct buf *ret_user, struct err *e)
{
    return seccomp_compile_for(seccomp_arch_native(), ret_base, ret_user, e);
}
