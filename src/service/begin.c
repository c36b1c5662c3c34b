/*
 * An execution before it has a place in its session's queue: the request is checked, a person
 * agrees where the pool wants that, a seat of the door's lane comes free, and the session is
 * found or made.
 *
 * Nothing is made before the approval. The watcher may leave at any moment: an execution that is
 * not in a queue yet never begins then, also in the background, and an approval that was asked
 * for stays pending. The same call finds that approval again.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- refusing --- */

static void tell_refused(void *arg)
{
    struct execution *j = arg;

    if (j->watched)
        j->watcher.on_end(j->arg, NULL, &j->failed);
    job_free(j);
}

/* It never got as far as a session: there is nothing to record. */
void job_refuse(struct execution *j, const struct err *why)
{
    j->failed = *why;
    j->state = JOB_REFUSED;
    loop_later(j->sv->loop, tell_refused, j);
}

static void refuse_closing(struct execution *j)
{
    struct err e;

    closing_down(j->sv, &e);
    job_refuse(j, &e);
}

/* --- the session --- */

/* The session may be of another pool than the one that was asked about: pools come and go. */
bool job_is_cleared_for(const struct execution *j, const struct pool_entry *env)
{
    enum approval_policy policy = env->config.approval;

    return j->reads || policy == POLICY_AUTO || (policy == POLICY_ASK_EXTERNAL && !j->external) ||
           strcmp(j->cleared, env->config.name) == 0;
}

static int check_cleared(const struct execution *j, const struct pool_entry *env, struct err *e)
{
    if (job_is_cleared_for(j, env))
        return 0;
    return err_set(e, ERR_DENIED, "in the pool %s a person must agree before code runs",
                   env->config.name);
}

static void attach(struct execution *j, struct loaded *l)
{
    struct err e;

    if (check_cleared(j, l->env, &e) < 0)
        return job_refuse(j, &e);
    if (j->approve.bound && l->written_at > j->approve.write_clock) {
        err_set(&e, ERR_CONFLICT, SCENE_CHANGED);
        return job_refuse(j, &e);
    }
    if (l->job_count >= JOBS_MAX) {
        forbid(j->sv, &e, 1, "as many executions are waiting as one session may have");
        return job_refuse(j, &e);
    }
    job_queue(j, l);
}

static void find_session(struct execution *j);
static void begin_new(struct execution *j);

/* Where the session is gone, one of its name takes its place. One whose id was only promised is
 * made now. */
static void on_found(void *arg, struct loaded *l, const struct err *failed)
{
    struct execution *j = arg;
    struct err e;

    if (failed && failed->kind == ERR_MISSING && *j->wanted.session && *j->wanted.name) {
        *j->wanted.session = '\0';
        find_session(j);
        return;
    }
    err_set(&e, ERR_CALLER, "interrupted before it began");
    if (failed && failed->kind == ERR_MISSING && j->wanted.makes &&
        id_is(str_of(j->wanted.session), "sess_") && j->watched && !j->sv->closing)
        return begin_new(j);
    if (l && j->watched && !j->sv->closing)
        attach(j, l);
    else if (j->sv->closing && !failed)
        refuse_closing(j);
    else
        job_refuse(j, failed ? failed : &e);
}

static void on_named(void *arg, const struct session_info *info, const struct err *failed)
{
    struct execution *j = arg;

    on_found(j, failed ? NULL : loaded_get(j->sv, &j->caller, str_of(info->row->id)), failed);
}

static void begin_new(struct execution *j)
{
    struct err e;
    struct pool_entry *env = scope_pool_entry(j->sv, &j->caller, str_of(j->wanted.pool), &e);
    struct session_row row = {0};
    struct loaded *l;

    if (!env)
        return job_refuse(j, &e);
    if (check_cleared(j, env, &e) < 0 || loaded_room(j->sv, env, j->row.tenant, &e) < 0)
        return job_refuse(j, &e);
    if (j->wanted.makes && table_get(&j->sv->sessions, j->wanted.session)) {
        err_set(&e, ERR_CONFLICT, "a session of another tenant has this id");
        return job_refuse(j, &e);
    }
    session_row_fill(&row, env, j->row.tenant);
    if (j->wanted.makes)
        snprintf(row.id, sizeof(row.id), "%s", j->wanted.session);
    if (j->wanted.idle_ms && (int64_t)j->wanted.idle_ms < row.idle_ms)
        row.idle_ms = (int64_t)j->wanted.idle_ms;
    l = loaded_begin(j->sv, env, &row);
    l->once = !j->wanted.stays && !j->wanted.makes;
    attach(j, l);
    loaded_drop(l);
}

static void find_session(struct execution *j)
{
    struct str id = str_of(j->wanted.session);
    const struct session_spec spec = {.pool = str_of(j->wanted.pool),
                                      .name = str_of(j->wanted.name)};
    struct loaded *l = id.n ? loaded_get(j->sv, &j->caller, id) : NULL;

    j->state = JOB_FINDING;
    if (l)
        attach(j, l);
    else if (id.n)
        loaded_find(j->sv, &j->caller, id, on_found, j);
    else if (spec.name.n)
        service_session_create(j->sv, &j->caller, &spec, on_named, j);
    else
        begin_new(j);
}

/* --- lanes: so many executions of a door at a time --- */

static unsigned seats_of(const struct execution *j)
{
    unsigned n = 0;

    for (const struct execution *x = j->lane->seated; x; x = x->lane_next)
        n += x->tenant == j->tenant;
    return n;
}

static void lane_put(struct execution **list, struct execution *j)
{
    j->lane_next = *list;
    j->lane_link = list;
    if (*list)
        (*list)->lane_link = &j->lane_next;
    *list = j;
}

static void lane_take(struct execution *j)
{
    *j->lane_link = j->lane_next;
    if (j->lane_next)
        j->lane_next->lane_link = j->lane_link;
    j->lane_link = NULL;
}

static void on_seat(void *arg)
{
    struct execution *j = arg;

    if (!j->watched)
        job_free(j);
    else if (j->sv->closing)
        refuse_closing(j);
    else
        find_session(j);
}

static void sit_down(struct execution *j)
{
    lane_put(&j->lane->seated, j);
    j->lane->taken++;
    j->tenant->seated_us = time_mono_us();
    j->state = JOB_FINDING;
    loop_later(j->sv->loop, on_seat, j);
}

/* Before the other: its tenant has fewer seats, or has waited longer for one. */
static bool goes_before(const struct execution *j, const struct execution *other)
{
    unsigned seats = seats_of(j), others = seats_of(other);

    return seats != others ? seats < others : j->tenant->seated_us <= other->tenant->seated_us;
}

/* Of one tenant's executions the first that came, the last in the list, goes first. */
void lane_leave(struct execution *j)
{
    struct exec_lane *lane = j->lane;
    struct execution *next = NULL;

    if (!j->lane_link)
        return;
    lane_take(j);
    if (j->state == JOB_SEATING) {
        lane->waiting_count--;
        return;
    }
    lane->taken--;
    for (struct execution *x = lane->waiting; x; x = x->lane_next)
        if (!next || goes_before(x, next))
            next = x;
    if (!next)
        return;
    lane_take(next);
    lane->waiting_count--;
    sit_down(next);
}

static void wait_for_seat(struct execution *j)
{
    struct exec_lane *lane = j->lane;
    struct err e;

    if (lane->taken < lane->seats) {
        sit_down(j);
    } else if (lane->waiting_count >= lane->waiting_max) {
        forbid(j->sv, &e, 1, "as many executions are waiting for their turn as may");
        job_refuse(j, &e);
    } else {
        j->state = JOB_SEATING;
        lane->waiting_count++;
        lane_put(&lane->waiting, j);
    }
}

/* A seat is for code that runs, and not for files that are on their way. */
void job_fetched(struct execution *j)
{
    if (!j->watched)
        job_free(j);
    else if (j->sv->closing)
        refuse_closing(j);
    else if (j->failed.kind)
        job_refuse(j, &j->failed);
    else
        wait_for_seat(j);
}

void job_cleared(struct execution *j)
{
    j->counted = !j->background;
    j->sv->foreground += j->counted;
    if (!j->lane) {
        find_session(j);
    } else if (j->input_count == 0) {
        wait_for_seat(j);
    } else {
        j->state = JOB_FETCHING;
        inputs_gather(j);
    }
}

/* --- leaving before there is a queue --- */

bool job_leave_early(struct execution *j)
{
    j->watched = false;
    if (j->state >= JOB_WAITING)
        return false;
    if ((j->state == JOB_ASKED && !j->approve.under_way) || j->state == JOB_SEATING)
        job_free(j); /* nobody owes it a callback */
    else if (j->state == JOB_FETCHING)
        inputs_cancel(j); /* the last of them calls job_fetched() */
    return true;
}

/* --- the request --- */

static int check(struct execution *j, const struct exec_spec *s, struct err *e)
{
    if (j->sv->draining || j->sv->closing)
        return closing_down(j->sv, e);
    if (scope_writes(j->sv, &j->caller, e) < 0)
        return -1;
    if (store_is_full(j->sv->store, e)) /* what cannot be put on record does not run */
        return -1;
    if (s->code.n > EXEC_CODE_MAX)
        return err_set(e, ERR_LIMIT, "the code is longer than %zu bytes", EXEC_CODE_MAX);
    if (str_utf8_len(s->code) != s->code.n || (s->code.n && memchr(s->code.p, '\0', s->code.n)))
        return err_set(e, ERR_CALLER, "the code is not UTF-8 text");
    if (!job_takes(j, s->code.n))
        return forbid(j->sv, e, 1, "the server holds as much for executions as it may");
    if (vars_from(s->env, s->env_count, &j->vars, e) < 0)
        return -1;
    return inputs_copy(j, s, e);
}

struct execution *service_execute(struct service *sv, const struct caller *c,
                                  const struct exec_spec *spec, const struct exec_watcher *w,
                                  void *arg)
{
    struct execution *j = job_new(sv, c, spec, w, arg);
    struct err e;

    j->row.code = mem_strndup(spec->code);
    if (check(j, spec, &e) < 0)
        job_refuse(j, &e);
    else if (!sv->asks || spec->ask.reads)
        job_cleared(j);
    else
        job_ask(j, spec);
    return j;
}
