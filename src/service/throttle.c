/*
 * Back-pressure. The output of executions is in memory until it is recorded and sent, and all of it
 * together has a budget. Past the budget the service stops reading from executions that print more:
 * their pipes fill, and their code waits in write(). When there is room again, all of them go on.
 *
 * When all executions wait, none ends, and no memory becomes free. So the one that has waited
 * longest is favoured: it goes on until it ends, whatever it prints. If it does not end within
 * FAVOUR_MS, the next one is favoured, too. job_takes_output() bounds what favoured executions hold
 * above the budget.
 */
#include "service/service_int.h"

#define FAVOUR_MS 10000

static uint64_t held_budget(const struct service *sv)
{
    return sv->config.held_bytes ? sv->config.held_bytes : HELD_MAX;
}

/* Half of it is the most for one tenant, so that none can take it from all the others. */
static bool is_over(const struct execution *j)
{
    uint64_t max = held_budget(j->sv);

    return j->sv->held > max || j->tenant->held > max / 2;
}

static void leave_queue(struct execution *j)
{
    struct service *sv = j->sv;

    j->throttled = false;
    *j->throttle_link = j->throttle_next;
    if (j->throttle_next)
        j->throttle_next->throttle_link = j->throttle_link;
    else
        sv->throttled_end = j->throttle_link;
}

static void let_go(struct execution *j)
{
    leave_queue(j);
    job_hold(j);
}

static void favour_next(struct service *sv)
{
    struct execution *j = sv->throttled;

    if (!j)
        return;
    j->favoured = true;
    sv->favoured++;
    timer_set(sv->relief, FAVOUR_MS);
    let_go(j);
}

void on_relief(void *arg)
{
    favour_next(arg);
}

void job_throttle(struct execution *j)
{
    struct service *sv = j->sv;

    if (j->throttled || j->favoured || !is_over(j))
        return;
    j->throttled = true;
    j->throttle_next = NULL;
    j->throttle_link = sv->throttled_end;
    *sv->throttled_end = j;
    sv->throttled_end = &j->throttle_next;
    job_hold(j);
    if (sv->favoured == 0)
        favour_next(sv);
}

void job_unthrottle(struct execution *j)
{
    if (j->throttled)
        leave_queue(j);
    j->sv->favoured -= j->favoured;
    j->favoured = false;
}

/* Something has become free. */
void throttle_look(struct service *sv)
{
    for (struct execution *j = sv->throttled, *next; j; j = next) {
        next = j->throttle_next;
        if (!is_over(j))
            let_go(j);
    }
    if (sv->favoured == 0)
        favour_next(sv);
    if (!sv->throttled && sv->relief)
        timer_clear(sv->relief);
}

/* The budget is where code begins to wait; this is where nothing more is taken. Half of it is the
 * most for one tenant. */
bool job_takes_output(struct execution *j, uint64_t n)
{
    uint64_t max = 4 * held_budget(j->sv);

    if (n > max / 2 || j->sv->held > max - n || j->tenant->held > max / 2 - n)
        return false;
    j->sv->held += n;
    j->tenant->held += n;
    j->held_bytes += n;
    return true;
}

bool job_takes(struct execution *j, uint64_t n)
{
    return n <= held_budget(j->sv) / 2 && job_takes_output(j, n);
}

void service_hold(struct service *sv, uint64_t before, uint64_t now)
{
    sv->held += now - before;
    if (now < before)
        throttle_look(sv);
}
