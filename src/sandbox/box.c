/*
 * Theory of operation. The zygote made this process with clone3() into new user,
 * mount, pid, ipc and uts namespaces and into a network namespace of its own, and
 * wrote its id maps; it has joined its cgroup. It is PID 1 of the new pid namespace and still has
 * every capability *inside* the user namespace, which it spends on the rows below, top to bottom.
 * No byte of a client has been read when the last row is done.
 */
#include "sandbox/box_int.h"

#include <errno.h>

struct box_step {
    const char *name;
    step_fn *enter, *verify;
};

/* The order is the argument: a row may rely on every row above it. */
static const struct box_step steps[] = {
    {"descriptors",     fds_enter,      NULL           },
    {"user ids",        ids_enter,      ids_verify     },
    {"mounts",          mounts_enter,   mounts_verify  },
    {"network",         net_enter,      net_verify     },
    {"resource limits", rlimit_enter,   rlimit_verify  },
    {"credentials",     creds_enter,    creds_verify   },
    {"what is open",    NULL,           fds_verify     },
    {"landlock",        landlock_enter, landlock_verify},
    {"seccomp",         seccomp_enter,  seccomp_verify }, /* last: the rows above use what it forbids */
};

int probe_refused(long got, int want, const char *what, struct err *e)
{
    if (got == -1 && errno == want)
        return 0;
    if (got == -1)
        return err_sys(e, "%s was refused for the wrong reason", what);
    return err_set(e, ERR_HOST, "%s was possible", what);
}

int box_enter(struct box *b, struct err *e)
{
    for (size_t i = 0; i < COUNT(steps); i++) {
        int rc = steps[i].enter ? steps[i].enter(b, e) : 0;
        if (rc == 0 && steps[i].verify)
            rc = steps[i].verify(b, e);
        if (rc < 0)
            return err_wrap(e, "sandbox layer '%s'", steps[i].name);
    }
    return 0;
}
