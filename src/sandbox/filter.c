/* Installing a compiled seccomp program, inside the box. What is in it: seccomp.c. */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sock_fprog filter_program(struct filter f)
{
    return (struct sock_fprog){
        .len = (unsigned short)(f.program.n / sizeof(struct sock_filter)),
        .filter = (struct sock_filter *)(uintptr_t)f.program.p,
    };
}

int filter_install(struct filter f)
{
    struct sock_fprog prog = filter_program(f);

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

int seccomp_enter(struct box *b, struct err *e)
{
    AUTO_CLOSE int answers = answers_listen(b->base);

    b->answers = answers >= 0;
    if (b->answers)
        return dup3(answers, BOX_ANSWERS_FD, O_CLOEXEC) < 0 ? err_sys(e, "keep the listener") : 0;
    answers_none(b->base); /* doctor tells */
    return filter_install(b->base) < 0 ? err_sys(e, "install the filter") : 0;
}

int seccomp_verify(struct box *b, struct err *e)
{
    (void)b;
    if (probe_refused(unshare(CLONE_NEWUSER), EPERM, "a new user namespace", e) < 0 ||
        probe_refused(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM, "ptrace", e) < 0)
        return -1;
    return probe_refused(syscall(SYS_io_uring_setup, 0, NULL), ENOSYS, "io_uring", e);
}
