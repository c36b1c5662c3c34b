/* The two programs, loaded in a child that then asks the kernel for one thing after the other. */
#include "sandbox/box_int.h"
#include "unit.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct row {
    const char *what;
    int want; /* errno; 0: it works */
    long nr;
    long arg[6];
};

struct programs {
    struct buf base, user;
};

static int compile(void **state)
{
    static struct programs p;
    struct err e;

    buf_init(&p.base, 256 * KiB);
    buf_init(&p.user, 64 * KiB);
    *state = &p;
    return seccomp_compile(&p.base, &p.user, &e);
}

static int release(void **state)
{
    struct programs *p = *state;

    buf_done(&p->base);
    buf_done(&p->user);
    return 0;
}

#define HIGH                                                                                       \
    (1l << 40) /* bits that the kernel does not look at: neither must we be fooled by them */

/* For everything in a box. What is allowed is asked for with arguments that cannot work, so that it
 * is the kernel's own answer that comes back. */
static const struct row everybody[] = {
    {"close",                   EBADF,        SYS_close,             {-1}                         },
    {"read",                    EBADF,        SYS_read,              {-1}                         },
    {"openat",                  EFAULT,       SYS_openat,            {AT_FDCWD, 1}                },
    {"execve",                  EFAULT,       SYS_execve,            {1}                          },
    {"futex",                   EINVAL,       SYS_futex,             {1}                          },
    {"clone into nothing new",  EINVAL,       SYS_clone,             {CLONE_THREAD}               },
    {"unix socket",             0,            SYS_socket,            {AF_UNIX, SOCK_STREAM}       },
    {"unix seqpacket",          0,            SYS_socket,            {AF_UNIX, SOCK_SEQPACKET}    },
    {"tcp",                     0,            SYS_socket,            {AF_INET, SOCK_STREAM}       },
    {"tcp, close-on-exec",      0,            SYS_socket,            {AF_INET, 1 | SOCK_CLOEXEC}  },
    {"udp",                     0,            SYS_socket,            {AF_INET, SOCK_DGRAM, 17}    },
    {"unix, high bits",         0,            SYS_socket,            {AF_UNIX | HIGH, SOCK_STREAM}},
    {"icmp",                    EPERM,        SYS_socket,            {AF_INET, SOCK_RAW, 1}       },
    {"udp as icmp",             ENOSYS,       SYS_socket,            {AF_INET, SOCK_DGRAM, 1}     },
    {"mptcp",                   ENOSYS,       SYS_socket,            {AF_INET, SOCK_STREAM, 262}  },
    {"netlink",                 EAFNOSUPPORT, SYS_socket,            {AF_NETLINK, SOCK_RAW}       },
    {"netlink, high bits",      EAFNOSUPPORT, SYS_socket,            {AF_NETLINK | HIGH, SOCK_RAW}},
    {"packet",                  EAFNOSUPPORT, SYS_socket,            {AF_PACKET, SOCK_RAW}        },
    {"vsock",                   EAFNOSUPPORT, SYS_socket,            {AF_VSOCK, SOCK_STREAM}      },
    {"alg",                     EAFNOSUPPORT, SYS_socket,            {AF_ALG, SOCK_SEQPACKET}     },
    {"bluetooth",               EAFNOSUPPORT, SYS_socket,            {AF_BLUETOOTH, SOCK_RAW}     },
    {"clone3",                  ENOSYS,       SYS_clone3,            {0}                          },
    {"clone a user namespace",  EPERM,        SYS_clone,             {CLONE_NEWUSER}              },
    {"clone a mount namespace", EPERM,        SYS_clone,             {CLONE_NEWNS | CLONE_VM}     },
    {"clone a net namespace",   EPERM,        SYS_clone,             {CLONE_NEWNET | HIGH}        },
    {"unshare",                 EPERM,        SYS_unshare,           {CLONE_NEWUSER}              },
    {"setns",                   EPERM,        SYS_setns,             {-1}                         },
    {"mount",                   EPERM,        SYS_mount,             {0}                          },
    {"umount",                  EPERM,        SYS_umount2,           {0}                          },
    {"pivot_root",              EPERM,        SYS_pivot_root,        {0}                          },
    {"chroot",                  EPERM,        SYS_chroot,            {0}                          },
    {"open_tree",               EPERM,        SYS_open_tree,         {-1}                         },
    {"move_mount",              EPERM,        SYS_move_mount,        {-1}                         },
    {"fsopen",                  EPERM,        SYS_fsopen,            {0}                          },
    {"mount_setattr",           EPERM,        SYS_mount_setattr,     {-1}                         },
    {"ptrace",                  EPERM,        SYS_ptrace,            {0}                          },
    {"process_vm_readv",        EPERM,        SYS_process_vm_readv,  {0}                          },
    {"kcmp",                    EPERM,        SYS_kcmp,              {0}                          },
    {"bpf",                     EPERM,        SYS_bpf,               {0}                          },
    {"perf_event_open",         EPERM,        SYS_perf_event_open,   {0}                          },
    {"userfaultfd",             EPERM,        SYS_userfaultfd,       {0}                          },
    {"keyctl",                  EPERM,        SYS_keyctl,            {0}                          },
    {"add_key",                 EPERM,        SYS_add_key,           {0}                          },
    {"open_by_handle_at",       EPERM,        SYS_open_by_handle_at, {-1}                         },
    {"name_to_handle_at",       EPERM,        SYS_name_to_handle_at, {-1}                         },
    {"fanotify_init",           EPERM,        SYS_fanotify_init,     {0}                          },
    {"kexec_load",              EPERM,        SYS_kexec_load,        {0}                          },
    {"init_module",             EPERM,        SYS_init_module,       {0}                          },
    {"reboot",                  EPERM,        SYS_reboot,            {0}                          },
    {"swapon",                  EPERM,        SYS_swapon,            {0}                          },
    {"syslog",                  EPERM,        SYS_syslog,            {3}                          },
    {"sethostname",             EPERM,        SYS_sethostname,       {0}                          },
    {"clock_settime",           EPERM,        SYS_clock_settime,     {0}                          },
    {"vmsplice",                EPERM,        SYS_vmsplice,          {-1}                         },
    {"seccomp",                 EPERM,        SYS_seccomp,           {0}                          },
    {"io_uring_setup",          ENOSYS,       SYS_io_uring_setup,    {0}                          },
    {"io_uring_enter",          ENOSYS,       SYS_io_uring_enter,    {-1}                         },
    {"memfd_create",            ENOSYS,       SYS_memfd_create,      {0}                          },
    {"shmget",                  ENOSYS,       SYS_shmget,            {0}                          },
    {"mq_open",                 ENOSYS,       SYS_mq_open,           {0}                          },
    {"personality, asked",      0,            SYS_personality,       {0xffffffff}                 },
    {"personality, changed",    ENOSYS,       SYS_personality,       {0x40000}                    },
    {"a call of the future",    ENOSYS,       1000,                  {0}                          },
#ifdef __x86_64__
    {"x32",                     ENOSYS,       0x40000000 + SYS_read, {-1}                         },
#endif
};

/* What init may do and the code may not. */
static const struct row init_only[] = {
    {"setresuid",             EPERM, SYS_setresuid,         {-1, -1, -1}        },
    {"setresgid",             EPERM, SYS_setresgid,         {-1, -1, -1}        },
    {"setuid",                EPERM, SYS_setuid,            {0}                 },
    {"setgroups",             EPERM, SYS_setgroups,         {0}                 },
    {"another's memory",      EPERM, SYS_process_vm_writev, {0}                 },
    {"another's files",       EPERM, SYS_pidfd_getfd,       {-1}                },
    {"limits of another",     EPERM, SYS_prlimit64,         {1, RLIMIT_CORE}    },
    {"limits of its own",     0,     SYS_prlimit64,         {0, RLIMIT_CORE}    },
    {"typing on a terminal",  EPERM, SYS_ioctl,             {-1, TIOCSTI}       },
    {"the same, high bits",   EPERM, SYS_ioctl,             {-1, TIOCSTI | HIGH}},
    {"pasting on a terminal", EPERM, SYS_ioctl,             {-1, TIOCLINUX}     },
    {"another ioctl",         EBADF, SYS_ioctl,             {-1, FIONREAD}      },
    {"close",                 EBADF, SYS_close,             {-1}                },
    {"mount",                 EPERM, SYS_mount,             {0}                 },
};

static const struct row before_init_only[] = {
    {"setresuid",            0,     SYS_setresuid, {-1, -1, -1} },
    {"setresgid",            0,     SYS_setresgid, {-1, -1, -1} },
    {"typing on a terminal", EBADF, SYS_ioctl,     {-1, TIOCSTI}},
};

/* In the child: the number of the first row that is answered otherwise, from 1 on; 0: none. No libc
 * beyond system calls, for the filter is the code's and not that of a test. */
static int first_wrong(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const long *a = rows[i].arg;
        long rc = syscall(rows[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (rows[i].want == 0 ? rc < 0 : rc >= 0 || errno != rows[i].want)
            return (int)i + 1;
    }
    return 0;
}

static void check(const struct buf *first, const struct buf *second, const struct row *rows,
                  size_t n)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    assert_true(n < 200);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            filter_install((struct filter){buf_str(first)}) < 0 ||
            (second && filter_install((struct filter){buf_str(second)}) < 0))
            _exit(255);
        _exit(first_wrong(rows, n));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status))
        fail_msg("the child was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 255)
        fail_msg("the programs cannot be loaded");
    if (WEXITSTATUS(status) != 0)
        fail_msg("'%s' was not answered as it should be", rows[WEXITSTATUS(status) - 1].what);
}

static void test_size(void **state)
{
    struct programs *p = *state;

    assert_int_equal(p->base.n % sizeof(struct sock_filter), 0);
    assert_int_equal(p->user.n % sizeof(struct sock_filter), 0);
    assert_between(p->base.n / sizeof(struct sock_filter), 100, BPF_MAXINSNS);
    assert_between(p->user.n / sizeof(struct sock_filter), 10, BPF_MAXINSNS);
}

static void test_everybody(void **state)
{
    struct programs *p = *state;

    check(&p->base, NULL, everybody, COUNT(everybody));
    check(&p->base, NULL, before_init_only, COUNT(before_init_only));
}

static void test_user(void **state)
{
    struct programs *p = *state;

    check(&p->base, &p->user, init_only, COUNT(init_only));
}

/* The second program takes away, and gives nothing back. */
static void test_user_is_no_looser(void **state)
{
    struct programs *p = *state;

    check(&p->base, &p->user, everybody, COUNT(everybody));
}

/* Compiled twice, the same: whoever compares the running filter with a new one sees no difference.
 */
static void test_same_every_time(void **state)
{
    struct programs *p = *state, again;
    struct err e;

    buf_init(&again.base, 256 * KiB);
    buf_init(&again.user, 64 * KiB);
    assert_int_equal(seccomp_compile(&again.base, &again.user, &e), 0);
    assert_int_equal(again.base.n, p->base.n);
    assert_memory_equal(again.base.p, p->base.p, p->base.n);
    assert_int_equal(again.user.n, p->user.n);
    buf_done(&again.base);
    buf_done(&again.user);
}

static void test_no_room(void **state)
{
    struct buf base, user;
    struct err e;

    (void)state;
    buf_init(&base, 64);
    buf_init(&user, 64);
    assert_int_equal(seccomp_compile(&base, &user, &e), -1);
    assert_has(e.text, "seccomp");
    buf_done(&base);
    buf_done(&user);
}

/* Each family that there is, or may be one day. */
static void test_families(void **state)
{
    const struct programs *p = *state;
    static struct row rows[2 * 64];

    for (long family = 0; family < 64; family++) {
        bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6;
        rows[2 * family] = (struct row){
            "socket of a family", known ? 0 : EAFNOSUPPORT, SYS_socket, {family, SOCK_STREAM}
        };
        rows[2 * family + 1] = (struct row){
            "socketpair of a family",
            family == AF_UNIX ? EFAULT : EAFNOSUPPORT,
            SYS_socketpair,
            {family, SOCK_STREAM, 0, 1}
        };
    }
    check(&p->base, NULL, rows, COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_everybody),
        cmocka_unit_test(test_user),
        cmocka_unit_test(test_user_is_no_looser),
        cmocka_unit_test(test_same_every_time),
        cmocka_unit_test(test_no_room),
    };

    return cmocka_run_group_tests(tests, compile, release);
}
