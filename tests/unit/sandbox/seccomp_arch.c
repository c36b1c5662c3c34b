/* The programs for both machines that retort is built for, asked without a kernel: what one machine
 * is allowed the other is, too, but for the old calls that ARM never had. */
#include "bpf.h"
#include "sandbox/box.h"

#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define NUMBERS 1000 /* past the last call of either machine */
#define HIGH    (1ull << 40)

struct machine {
    const char *name;
    uint32_t arch;
    struct buf base, user;
};

static struct machine x86 = {.name = "x86_64", .arch = SCMP_ARCH_X86_64};
static struct machine arm = {.name = "aarch64", .arch = SCMP_ARCH_AARCH64};

static int compile(void **state)
{
    struct machine *both[] = {&x86, &arm};
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(both); i++) {
        buf_init(&both[i]->base, 256 * KiB);
        buf_init(&both[i]->user, 64 * KiB);
        if (seccomp_compile_for(both[i]->arch, &both[i]->base, &both[i]->user, &e) < 0)
            return -1;
    }
    return 0;
}

static int release(void **state)
{
    (void)state;
    buf_done(&x86.base);
    buf_done(&x86.user);
    buf_done(&arm.base);
    buf_done(&arm.user);
    return 0;
}

static uint32_t answer(const struct buf *program, uint32_t arch, int nr, const uint64_t arg[6])
{
    struct seccomp_data call = {.nr = nr, .arch = arch};

    if (arg)
        memcpy(call.args, arg, sizeof(call.args));
    return bpf_ask(program, &call);
}

#define ALLOWED     SECCOMP_RET_ALLOW
#define REFUSED(no) (SECCOMP_RET_ERRNO | (no))

/* The number of a call on a machine; negative where the machine does not have it. */
static int number(const struct machine *m, const char *name)
{
    return seccomp_syscall_resolve_name_arch(m->arch, name);
}

/* Calls that are allowed on x86-64 and do not exist on ARM, and what libc calls there. */
static const struct {
    const char *old, *now;
} x86_only[] = {
    {"access",       "faccessat"    },
    {"alarm",        "setitimer"    },
    {"arch_prctl",   "prctl"        },
    {"chmod",        "fchmodat"     },
    {"chown",        "fchownat"     },
    {"creat",        "openat"       },
    {"dup2",         "dup3"         },
    {"epoll_create", "epoll_create1"},
    {"epoll_wait",   "epoll_pwait"  },
    {"eventfd",      "eventfd2"     },
    {"fork",         "clone"        },
    {"futimesat",    "utimensat"    },
    {"getdents",     "getdents64"   },
    {"getpgrp",      "getpgid"      },
    {"lchown",       "fchownat"     },
    {"link",         "linkat"       },
    {"lstat",        "newfstatat"   },
    {"mkdir",        "mkdirat"      },
    {"mknod",        "mknodat"      },
    {"open",         "openat"       },
    {"pause",        "ppoll"        },
    {"pipe",         "pipe2"        },
    {"poll",         "ppoll"        },
    {"readlink",     "readlinkat"   },
    {"rename",       "renameat"     },
    {"rmdir",        "unlinkat"     },
    {"select",       "pselect6"     },
    {"signalfd",     "signalfd4"    },
    {"stat",         "newfstatat"   },
    {"symlink",      "symlinkat"    },
    {"time",         "clock_gettime"},
    {"unlink",       "unlinkat"     },
    {"utime",        "utimensat"    },
    {"utimes",       "utimensat"    },
    {"vfork",        "clone"        },
};

static bool is_x86_only(const char *name)
{
    for (size_t i = 0; i < COUNT(x86_only); i++)
        if (strcmp(x86_only[i].old, name) == 0)
            return answer(&arm.base, arm.arch, number(&arm, x86_only[i].now), NULL) == ALLOWED;
    return false;
}

/* Every number that x86-64 has: the same answer on ARM, or the call is one of the old ones. */
static void test_arm_has_what_x86_has(void **state)
{
    size_t absent = 0, compared = 0;

    (void)state;
    for (int nr = 0; nr < NUMBERS; nr++) {
        AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(x86.arch, nr);
        uint32_t on_x86 = answer(&x86.base, x86.arch, nr, NULL);
        int there = name ? number(&arm, name) : -1;
        if (!name) {
            assert_int_equal(on_x86, REFUSED(ENOSYS));
        } else if (there >= 0) {
            if (answer(&arm.base, arm.arch, there, NULL) != on_x86)
                fail_msg("'%s' is answered otherwise on aarch64", name);
            compared++;
        } else if (on_x86 == ALLOWED) {
            if (!is_x86_only(name))
                fail_msg("'%s' is allowed on x86-64 and nothing like it on aarch64", name);
            absent++;
        }
    }
    assert_int_equal(absent, COUNT(x86_only));
    assert_true(compared > 250);
}

/* And what only ARM has is not allowed by oversight. */
static void test_arm_has_nothing_more(void **state)
{
    size_t allowed = 0;

    (void)state;
    for (int nr = 0; nr < NUMBERS; nr++) {
        AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(arm.arch, nr);
        bool is_allowed = answer(&arm.base, arm.arch, nr, NULL) == ALLOWED;
        if (is_allowed && (!name || number(&x86, name) < 0))
            fail_msg("%s (%d) is allowed on aarch64 alone", name ? name : "a call", nr);
        allowed += is_allowed;
    }
    assert_true(allowed > 180);
}

struct row {
    const char *name;
    uint64_t arg[6];
    uint32_t base, user; /* what each program says */
};

/* Calls whose answer depends on arguments. */
static const struct row rows[] = {
    {"clone",          {CLONE_VM | CLONE_FILES},              ALLOWED,               ALLOWED       },
    {"clone",          {CLONE_NEWUSER},                       REFUSED(EPERM),        ALLOWED       },
    {"clone",          {CLONE_NEWNET | HIGH},                 REFUSED(EPERM),        ALLOWED       },
    {"clone",          {CLONE_NEWNS | CLONE_VM},              REFUSED(EPERM),        ALLOWED       },
    {"clone3",         {0},                                   REFUSED(ENOSYS),       ALLOWED       },
    {"personality",    {0},                                   ALLOWED,               ALLOWED       },
    {"personality",    {0xffffffff},                          ALLOWED,               ALLOWED       },
    {"personality",    {0x40000},                             REFUSED(ENOSYS),       ALLOWED       },
    {"socket",         {AF_UNIX, SOCK_STREAM},                ALLOWED,               ALLOWED       },
    {"socket",         {AF_INET, SOCK_STREAM | SOCK_CLOEXEC}, ALLOWED,               ALLOWED       },
    {"socket",         {AF_INET6, SOCK_DGRAM, 17},            ALLOWED,               ALLOWED       },
    {"socket",         {AF_INET, SOCK_RAW, 1},                REFUSED(EPERM),        ALLOWED       },
    {"socket",         {AF_NETLINK | HIGH, SOCK_RAW},         REFUSED(EAFNOSUPPORT), ALLOWED       },
    {"socket",         {AF_VSOCK, SOCK_STREAM},               REFUSED(EAFNOSUPPORT), ALLOWED       },
    {"socketpair",     {AF_UNIX, SOCK_STREAM},                ALLOWED,               ALLOWED       },
    {"socketpair",     {AF_INET, SOCK_STREAM},                REFUSED(EAFNOSUPPORT), ALLOWED       },
    {"setresuid",      {0},                                   ALLOWED,               REFUSED(EPERM)},
    {"prlimit64",      {0},                                   ALLOWED,               ALLOWED       },
    {"prlimit64",      {1},                                   ALLOWED,               REFUSED(EPERM)},
    {"setpriority",    {0, 1},                                ALLOWED,               REFUSED(EPERM)},
    {"setpriority",    {0, 0},                                ALLOWED,               ALLOWED       },
    {"sched_setparam", {1},                                   ALLOWED,               REFUSED(EPERM)},
    {"ioctl",          {0, TIOCSTI | HIGH},                   ALLOWED,               REFUSED(EPERM)},
    {"ioctl",          {0, FIONREAD},                         ALLOWED,               ALLOWED       },
};

static void check(const struct machine *m)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        int nr = number(m, r->name);
        if (nr < 0)
            fail_msg("there is no '%s' on %s", r->name, m->name);
        if (answer(&m->base, m->arch, nr, r->arg) != r->base)
            fail_msg("row %zu, '%s': another answer of the first program on %s", i, r->name,
                     m->name);
        if (answer(&m->user, m->arch, nr, r->arg) != r->user)
            fail_msg("row %zu, '%s': another answer of the second program on %s", i, r->name,
                     m->name);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    check(&x86);
    check(&arm);
}

/* A program of the same machine's 32 bits would number its calls otherwise. */
static void test_other_machines_are_refused(void **state)
{
    static const uint32_t others[] = {SCMP_ARCH_ARM, SCMP_ARCH_X86, SCMP_ARCH_X86_64};

    (void)state;
    for (size_t i = 0; i < COUNT(others); i++)
        for (int nr = 0; nr < NUMBERS; nr++)
            assert_int_equal(answer(&arm.base, others[i], nr, NULL), REFUSED(ENOSYS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arm_has_what_x86_has),
        cmocka_unit_test(test_arm_has_nothing_more),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_other_machines_are_refused),
    };

    return cmocka_run_group_tests(tests, compile, release);
}
