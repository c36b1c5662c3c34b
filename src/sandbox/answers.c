/*
 * Answers five system calls in place of the kernel: sysinfo() (memory, load), sched_getaffinity()
 * (processors), statfs() and fstatfs() (disks: answers_statfs.c), which tell the size of the host;
 * and flock(), which reaches others through files of the system (answers_flock.c). No namespace
 * changes that. A seccomp filter hands these calls to init, which answers them; see
 * seccomp_unotify(2). The caller waits for some tens of microseconds, a few times in a program's
 * life.
 *
 * init writes the answer into the caller's memory, at the address that the caller gave, as if the
 * caller had written it. If the caller is killed meanwhile, another process of the same box may
 * have its process number; the memory of that process belongs to the same code. Where another
 * listener exists already (a container's), the kernel refuses a second one. Then the kernel answers
 * these calls itself, and `retort doctor` says so.
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

/* The base filter has marks where these calls are decided (seccomp.c: add_answered). Rules in a
 * filter of their own would take the kernel 25 us for each box: it runs every filter that it loads
 * in its mind, once for each system call that there is. */
#define MARKS_MAX 16 /* the three calls of init's own compare two words each */

struct mark {
    struct sock_filter *at;
    uint32_t was;
};

static size_t fill_in(struct filter base, uint32_t action, uint64_t pass, struct mark *ret)
{
    struct sock_filter *program = (struct sock_filter *)(uintptr_t)base.program.p;
    size_t n = 0;

    for (size_t i = 0; i < base.program.n / sizeof(*program); i++) {
        struct sock_filter *f = &program[i];
        const struct mark mark = {f, f->k};
        if (f->code == (BPF_RET | BPF_K) && f->k == ANSWERED_ACTION)
            f->k = action;
        else if (f->code == (BPF_JMP | BPF_JEQ | BPF_K) && f->k == (uint32_t)ANSWERED_PASS)
            f->k = (uint32_t)pass;
        else if (f->code == (BPF_JMP | BPF_JEQ | BPF_K) && f->k == ANSWERED_PASS >> 32)
            f->k = (uint32_t)(pass >> 32);
        else
            continue;
        assert(n < MARKS_MAX);
        ret[n++] = mark;
    }
    return n;
}

int answers_listen(struct filter base)
{
    struct mark marks[MARKS_MAX];
    size_t n = fill_in(base, SECCOMP_RET_USER_NOTIF, answers_pass(), marks);
    struct sock_fprog prog = filter_program(base);
    int fd =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);

    while (n-- > 0) /* what is forked of this has the program, too, and must not have the pass */
        marks[n].at->k = marks[n].was;
    return fd;
}

void answers_none(struct filter base)
{
    struct mark marks[MARKS_MAX];

    fill_in(base, SECCOMP_RET_ALLOW, ANSWERED_PASS, marks);
}

/* 0, or an errno for the caller. */
static int give(pid_t pid, uint64_t address, void *bytes, size_t n)
{
    struct iovec from = {bytes, n}, to = {(void *)(uintptr_t)address, n};

    return process_vm_writev(pid, &from, 1, &to, 1, 0) == (ssize_t)n ? 0 : EFAULT;
}

/* Only zeros and what /proc/meminfo and /proc/uptime say. */
static int answer_sysinfo(const struct seccomp_notif *call, const struct box_plan *p)
{
    struct sysinfo s = {
        .uptime = (long)(view_uptime_us() / 1000000),
        .totalram = p->memory_bytes,
        .freeram = p->memory_bytes,
        .procs = 1,
        .mem_unit = 1,
    };

    return give((pid_t)call->pid, call->data.args[0], &s, sizeof(s));
}

/* The first `most` numbers of a list like "0-3,8". */
static size_t cpus_from(const char *list, unsigned most, cpu_set_t *ret)
{
    size_t end = 0;

    CPU_ZERO(ret);
    while (most > 0 && *list >= '0' && *list <= '9') {
        char *at;
        unsigned long first = strtoul(list, &at, 10);
        unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
        for (; first <= last && most > 0 && first < CPU_SETSIZE; first++, most--) {
            CPU_SET(first, ret);
            end = first + 1;
        }
        list = *at == ',' ? at + 1 : "";
    }
    return end;
}

/* As many of the caller's processors as the box has. Returns their bytes, or -errno. */
static long answer_affinity(const struct seccomp_notif *call)
{
    static const char key[] = "\nCpus_allowed_list:\t";
    pid_t of = (pid_t)call->data.args[0];
    uint32_t room = (uint32_t)call->data.args[1];
    char path[48], text[8192];
    const char *list;
    cpu_set_t set;
    size_t bytes;

    snprintf(path, sizeof(path), "/proc/%d/status", of ? (int)of : (int)call->pid);
    if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return -ESRCH;
    list = strstr(text, key);
    bytes = cpus_from(list ? list + strlen(key) : "0", view_cpus(), &set);
    bytes = (bytes + 8 * sizeof(long) - 1) / (8 * sizeof(long)) * sizeof(long);
    if (room < bytes || room % sizeof(long) != 0)
        return -EINVAL;
    return give((pid_t)call->pid, call->data.args[2], &set, bytes) ? -EFAULT : (long)bytes;
}

/* What the call returns, or -errno; of flock() also ANSWER_IS_GIVEN. */
static long answer(const struct box_plan *p, const struct seccomp_notif *call)
{
    struct statfs fs = {0};
    int wrong;

    if (call->data.nr == SYS_sched_getaffinity)
        return answer_affinity(call);
    if (call->data.nr == SYS_flock)
        return answer_flock(call);
    if (call->data.nr == SYS_sysinfo)
        return -answer_sysinfo(call, p);
    wrong = answer_statfs(p, call, &fs);
    return -(wrong ? wrong : give((pid_t)call->pid, call->data.args[1], &fs, sizeof(fs)));
}

bool answers_reply(uint64_t id, long value)
{
    /* The kernel's own structure may be longer than what this was compiled with. */
    union {
        struct seccomp_notif_resp reply;
        char room[256];
    } out = {0};

    out.reply = (struct seccomp_notif_resp){
        .id = id, .val = value < 0 ? 0 : value, .error = value < 0 ? (int)value : 0};
    return ioctl(BOX_ANSWERS_FD, SECCOMP_IOCTL_NOTIF_SEND, &out) == 0;
}

void box_answer(const struct box *b)
{
    /* As in answers_reply(); the kernel wants zeros. */
    union {
        struct seccomp_notif call;
        char room[256];
    } in = {0};
    long value;

    if (ioctl(BOX_ANSWERS_FD, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
        return; /* the caller is gone */
    value = answer(b->plan, &in.call);
    if (in.call.data.nr != SYS_flock || value != ANSWER_IS_GIVEN)
        (void)!answers_reply(in.call.id, value);
}
