/* Decides how an execution ended, from the last message of its interpreter, wait(2) and the
 * cgroup. */
#include "engine/session_int.h"

#include <sys/statfs.h>
#include <sys/wait.h>

/* Which volume is full? The one that has no room for a page more. */
static void find_full(struct exec *x)
{
    const struct {
        int dir;
        enum limit limit;
    } volumes[] = {
        {guest_space(x->session->guest), LIMIT_DISK},
        {guest_tmp(x->session->guest),   LIMIT_TMP },
        {guest_shm(x->session->guest),   LIMIT_TMP },
    };

    for (size_t i = 0; i < COUNT(volumes); i++) {
        struct statfs fs;
        if (fstatfs(volumes[i].dir, &fs) == 0 && (fs.f_bavail == 0 || fs.f_ffree == 0))
            x->outcome.limits_hit |= IN(volumes[i].limit);
    }
}

/* Limits that show as an error of the code's own. */
static void blame_limits(struct exec *x, const struct box_usage *now)
{
    struct outcome *o = &x->outcome;

    if (x->number == ENOSPC || x->number == EDQUOT || x->kind == EXEC_COMMAND)
        find_full(x);
    if (x->number == ENOSPC && !(o->limits_hit & (IN(LIMIT_DISK) | IN(LIMIT_TMP))))
        o->limits_hit |= IN(LIMIT_DISK); /* what did not fit has been cleared away since */
    if (x->number == EFBIG)
        o->limits_hit |= IN(LIMIT_DISK);
    if (x->number == EMFILE || x->number == ENFILE)
        o->limits_hit |= IN(LIMIT_OPEN_FILES);
    if (now->pid_hits > x->before.pid_hits || x->no_thread || x->number == EAGAIN)
        o->limits_hit |= IN(LIMIT_PIDS);
    if (now->oom_kills > x->before.oom_kills || x->memory_error || x->number == ENOMEM)
        o->limits_hit |= IN(LIMIT_MEMORY);
}

static enum outcome_status judge(struct exec *x, const struct box_usage *now)
{
    bool oom = now->oom_kills > x->before.oom_kills || x->stop == STOP_MEMORY;
    bool ended_badly = x->kernel_died || (x->kind == EXEC_COMMAND && x->status != 0);

    if (x->stop == STOP_WALL || x->stop == STOP_CPU)
        return OUTCOME_TIMEOUT;
    if (x->stop == STOP_ASKED)
        return OUTCOME_INTERRUPTED;
    if (oom && ended_badly)
        return OUTCOME_MEMORY;
    if (x->kernel_died || (x->kind == EXEC_COMMAND && WIFSIGNALED(x->status)))
        return OUTCOME_DIED;
    if (x->raised || x->interrupted || ended_badly)
        return OUTCOME_RAISED;
    return OUTCOME_OK;
}

void exec_judge(struct exec *x, const struct box_usage *now)
{
    static const uint32_t limit_of[] = {[STOP_WALL] = IN(LIMIT_WALL),
                                        [STOP_CPU] = IN(LIMIT_CPU),
                                        [STOP_MEMORY] = IN(LIMIT_MEMORY),
                                        [STOP_ASKED] = 0};
    struct outcome *o = &x->outcome;

    o->status = judge(x, now);
    o->limits_hit |= limit_of[x->stop];
    if (o->status != OUTCOME_OK)
        blame_limits(x, now);
    o->state_lost = x->kernel_died;
    o->exit_code = WIFSIGNALED(x->status) ? 128 + WTERMSIG(x->status) : WEXITSTATUS(x->status);
}
