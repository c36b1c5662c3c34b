/* Resource limits of one process. cgroups, where there are any, hold the sum. */
#include "sandbox/box_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct rlimit_row {
    int resource;
    rlim_t value;
};

#define ROWS_MAX 12

/* What RLIMIT_DATA counts, as it is now: the sixth number of statm, in pages. */
static uint64_t data_bytes(void)
{
    char text[128];

    if (fd_read_file_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) < 0)
        return 0;
    return text_number_at(text, 5) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t rows_of(const struct box_plan *p, struct rlimit_row *ret)
{
    uint64_t largest = p->disk_bytes > p->tmp_bytes ? p->disk_bytes : p->tmp_bytes;
    const struct rlimit_row rows[] = {
        {RLIMIT_CORE,       0                                                                      },
 /* Counted per uid and user namespace since Linux 5.14, so it is this box's own count. */
        {RLIMIT_NPROC,      p->pids                                                                },
        {RLIMIT_FSIZE,      largest                                                                },
        {RLIMIT_MEMLOCK,    64 * KiB                                                               },
        {RLIMIT_MSGQUEUE,   0                                                                      },
        {RLIMIT_RTPRIO,     0                                                                      },
        {RLIMIT_NICE,       0                                                                      },
        {RLIMIT_SIGPENDING, 1024                                                                   },
 /* Without a cgroup each process alone is held to the limit, and init watches the sum. What
  * the interpreter brings along is shared and not the code's doing. A sixteenth less: code
  * that has heard of MemoryError goes on, and init does not end the next cell for what it
  * kept. */
        {RLIMIT_DATA,       p->in_cgroup ? RLIM_INFINITY : p->memory_bytes / 16 * 15 + data_bytes()},
    };

    memcpy(ret, rows, sizeof(rows));
    return COUNT(rows);
}

int rlimit_enter(struct box *b, struct err *e)
{
    struct rlimit_row rows[ROWS_MAX];
    size_t n = rows_of(b->plan, rows);

    for (size_t i = 0; i < n; i++) {
        struct rlimit now, want = {rows[i].value, rows[i].value};
        if (getrlimit(rows[i].resource, &now) < 0)
            return err_sys(e, "read resource limit %d", rows[i].resource);
        /* An unprivileged caller may stand below what is asked for; lower is still held. */
        if (want.rlim_max > now.rlim_max)
            want = (struct rlimit){now.rlim_max, now.rlim_max};
        if (setrlimit(rows[i].resource, &want) < 0)
            return err_sys(e, "set resource limit %d", rows[i].resource);
    }
    if (setpriority(PRIO_PROCESS, 0, b->plan->nice) < 0)
        return err_sys(e, "set the priority");
    return 0;
}

int rlimit_verify(struct box *b, struct err *e)
{
    struct rlimit_row rows[ROWS_MAX];
    size_t n = rows_of(b->plan, rows);

    for (size_t i = 0; i < n; i++) {
        struct rlimit now;
        if (getrlimit(rows[i].resource, &now) < 0 || now.rlim_max > rows[i].value)
            return err_set(e, ERR_HOST, "resource limit %d did not hold", rows[i].resource);
    }
    if (getpriority(PRIO_PROCESS, 0) < b->plan->nice)
        return err_set(e, ERR_HOST, "the priority is better than planned");
    return 0;
}

/* Not init's: how many descriptors may be in flight over sockets is counted for the user, and this
 * limit of the sender is what the count is held against. So what the code has in flight, here or in
 * another sandbox, must not keep an init from answering. */
int rlimit_of_user(const struct box_plan *p)
{
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) < 0)
        return -1;
    now.rlim_max = now.rlim_cur = p->open_files < now.rlim_max ? p->open_files : now.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &now);
}
