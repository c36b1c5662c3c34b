/*
 * An execution in its session's queue, up to the engine's outcome. It waits there for its turn,
 * for its files and for the session to wake, and is then handed to the engine: cells one at a
 * time in the order they came, commands beside them. What comes before the queue is in begin.c,
 * what follows the outcome in exec_end.c.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- a job --- */

static char *copy_or_null(const char *s)
{
    return s && *s ? mem_strdup(s) : NULL;
}

struct execution *job_new(struct service *sv, const struct caller *c, const struct exec_spec *spec,
                          const struct exec_watcher *w, void *arg)
{
    struct execution *j = mem_zalloc(sizeof(*j));

    *j = (struct execution){
        .sv = sv,
        .tenant = tenant_hold(sv, c->tenant),
        .kind = spec->kind,
        .wall_ms = spec->wall_ms,
        .wall_is_asked = spec->wall_is_asked,
        .background = spec->background,
        .recorded_first = spec->background || spec->tells,
        .watched = true,
        .watcher = *w,
        .arg = arg,
        .space.dir = -1,
        .begun_us = time_mono_us(),
        .caller = *c,
        .pools = scope_pools_copy(sv, c),
        .lane = spec->lane,
        .alone = spec->alone,
        .external = spec->ask.external,
        .reads = spec->ask.reads,
        .wanted = {.stays = spec->stays,
                   .makes = spec->makes,
                   .idle_ms = spec->idle_ms,
                   .name = mem_strndup(spec->name),
                   .pool = mem_strndup(spec->pool),
                   .session = mem_strndup(spec->session)},
    };
    id_make(j->row.id, "exec_");
    j->row.tenant = mem_strdup(c->tenant);
    j->row.key = copy_or_null(c->key);
    j->row.request = mem_strdup(c->request);
    j->row.door = mem_strdup(c->door ? c->door : "");
    j->row.kind = mem_strdup(spec->kind == EXEC_COMMAND ? "command" : "cell");
    j->row.status = mem_strdup("queued");
    j->row.created_ms = id_ms(str_of(j->row.id)); /* so a list can go on after one that is gone */
    transcript_init(&j->transcript);
    sv->job_count++;
    return j;
}

void job_free(struct execution *j)
{
    struct service *sv = j->sv;

    lane_leave(j);
    approve_done(&j->approve);
    job_unthrottle(j);
    sv->held -= j->held_bytes;
    j->tenant->held -= j->held_bytes;
    throttle_look(sv);
    tenant_drop(sv, j->tenant);
    sv->job_count--;
    sv->foreground -= j->counted;
    service_check_empty(sv);
    inputs_free(j);
    space_close(&j->space);
    changes_done(&j->changes);
    journal_done(&j->journal);
    transcript_done(&j->transcript);
    json_decref(j->vars);
    json_decref(j->outcome_json);
    exec_row_done(&j->row);
    free(j->pools);
    free(j->wanted.session);
    free(j->wanted.name);
    free(j->wanted.pool);
    free(j);
}

const char *job_status(const struct execution *j)
{
    return j->state == JOB_STARTED || j->state == JOB_ENDING ? "running" : "queued";
}

/* --- telling --- */

/* Of one in the background, which may begin before it is told of, the record has the rest. */
static void tell_watcher(struct execution *j, const struct event *ev)
{
    if (j->watched && j->told_queued && j->watcher.on_event)
        j->watcher.on_event(j->arg, ev);
}

void job_put_event(struct execution *j, const struct event *ev, bool kept)
{
    if (kept)
        transcript_event(&j->transcript, ev);
    tell_watcher(j, ev);
    job_wake(j, false);
}

static void put(struct execution *j, const struct event *ev, bool kept)
{
    if (j->journal.on)
        journal_event(j, ev, kept);
    else
        job_put_event(j, ev, kept);
}

/* Told whether there is room on record or not. */
static void tell_note_of_cut(struct execution *j)
{
    static const char text[] = "from here on its output is not on record: the server holds as much "
                               "as it may at the moment";
    struct event ev = {.kind = EVENT_STATUS, .text = str_of(text)};

    j->cut = true;
    put(j, &ev, true);
}

static void tell(struct execution *j, const struct event *ev)
{
    if (!j->cut && !job_takes_output(j, transcript_cost(&j->transcript, ev)))
        tell_note_of_cut(j);
    put(j, ev, !j->cut);
    job_throttle(j);
}

/* Whether the client gets less time than it asked for. */
static bool wall_is_cut(const struct execution *j)
{
    return j->wall_is_asked && j->wall_ms > j->loaded->env->config.limits.wall_ms;
}

static void tell_wall(struct execution *j)
{
    char text[128];
    struct event ev = {.kind = EVENT_STATUS};

    if (!wall_is_cut(j))
        return;
    snprintf(text, sizeof(text), "%g s were asked for; the time limit of this pool is %g s",
             (double)j->wall_ms / 1000, (double)j->loaded->env->config.limits.wall_ms / 1000);
    ev.text = str_of(text);
    tell(j, &ev);
}

static void tell_note(struct execution *j)
{
    struct event ev = {.kind = EVENT_STATUS, .text = str_of(lost_note(j->note))};
    AUTO_FREE char *more = take_ptr(&j->loaded->note);

    if (j->note)
        tell(j, &ev);
    ev.text = str_of(more);
    if (more)
        tell(j, &ev);
    j->note = LOST_NOTHING;
    tell_wall(j);
}

static void tell_queued(void *arg)
{
    struct execution *j = arg;
    struct exec_info info = job_info(j);

    j->told_queued = true;
    j->sv->pending--;
    if (j->watched && j->watcher.on_queued)
        j->watcher.on_queued(j->arg, &info);
    json_decref(info.events);
    if (j->state == JOB_STARTED)
        tell_note(j);
    job_settle(j);
}

/* --- the engine's word --- */

static void on_event(void *arg, const struct event *ev)
{
    struct execution *j = arg;

    /* Files come last, and wait until they are saved; a note about them waits with them. */
    if (ev->kind == EVENT_FILE ||
        (ev->kind == EVENT_STATUS && j->loaded->changes.n > j->loaded->changes.old))
        space_change(j->loaded, ev);
    else
        tell(j, ev);
}

static void say_unexecuted(struct execution *j, const char *why)
{
    snprintf(j->outcome.line, sizeof(j->outcome.line), "nothing was executed: %.200s", why);
}

/* It was the sandbox's to begin with, and the sandbox ended first. Whoever asks once more runs
 * nothing twice. */
static void take_back(struct execution *j, const char *why)
{
    struct session_row *row = &j->loaded->row;

    say_unexecuted(j, why);
    forbid(j->sv, &j->failed, 1, j->outcome.line);
    j->ran = false;
    j->row.started_ms = 0;
    row->lost = (int)j->note;
    row->executions--;
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct execution *j = arg;
    struct loaded *l = j->loaded;

    j->exec = NULL;
    if (j->throttled) /* it waits for nothing any more; what it holds goes with its record */
        job_unthrottle(j);
    j->outcome = *o;
    j->outcome.state_lost |= j->tells_lost;
    if (o->status == OUTCOME_TIMEOUT && wall_is_cut(j)) {
        size_t n = strlen(o->line);
        snprintf(j->outcome.line + n, sizeof(o->line) - n, "; %g s were asked for",
                 (double)j->wall_ms / 1000);
    }
    j->changes = l->changes;
    l->changes = (struct changes){0};
    if (o->status == OUTCOME_SESSION_LOST) {
        l->gone = true;
        if (j->sv->closing)
            snprintf(j->outcome.line, sizeof(j->outcome.line),
                     "the server is stopping, and ended this before it was over; variables are "
                     "lost, files are kept");
        else if (o->untaken && l->state != SESSION_ENDED)
            take_back(j, o->line);
    }
    loaded_hold(l);
    job_end(j);
    job_pump(l);
    loaded_drop(l);
}

static const struct exec_callbacks engine_callbacks = {on_event, on_outcome};

/* --- its turn --- */

/* The pool's variables, the session's over them, this execution's over both, and the way to the
 * proxy below all. */
static size_t fill_env(struct execution *j, struct exec_env *ret, size_t max)
{
    json_t *all = j->loaded->env->vars ? json_copy(j->loaded->env->vars) : json_object();
    const char *name;
    json_t *value;
    size_t n = 0;

    if (j->loaded->vars)
        json_object_update(all, j->loaded->vars);
    if (j->vars)
        json_object_update(all, j->vars);
    if (j->loaded->env->policy)
        vars_add_proxy(all);
    json_decref(j->vars);
    j->vars = all; /* the strings live in it */
    json_object_foreach(all, name, value) {
        if (n == max)
            break;
        ret[n++] = (struct exec_env){
            str_of(name), {json_string_value(value), json_string_length(value)}
        };
    }
    return n;
}

static void start(struct execution *j)
{
    struct loaded *l = j->loaded;
    uint64_t most = l->env->config.limits.wall_ms;
    AUTO_FREE struct exec_env *env = mem_zalloc((size_t)2 * EXEC_ENV_MAX * sizeof(*env));
    struct exec_config config = {
        .kind = j->kind,
        .code = str_of(j->row.code),
        .wall_ms = j->wall_ms && j->wall_ms < most ? j->wall_ms : most,
        .env = env,
        .env_count = fill_env(j, env, (size_t)2 * EXEC_ENV_MAX),
    };
    struct err e = {0};

    if (store_is_full(j->sv->store, &e))
        return job_fail(j, &e);
    j->exec = exec_start(l->session, &config, &engine_callbacks, j, &e);
    if (!j->exec)
        return job_fail(j, &e);
    j->state = JOB_STARTED;
    j->ran = true;
    j->row.started_ms = time_now_ms();
    j->note = l->row.executions > 0 ? (enum session_lost)l->row.lost : LOST_NOTHING;
    j->tells_lost = j->note != LOST_NOTHING;
    l->row.lost = LOST_NOTHING;
    l->row.executions++;
    if (j->held || j->throttled)
        exec_hold(j->exec, true);
    if (j->told_queued)
        tell_note(j);
}

static void on_placed(struct task *t, const struct err *failed)
{
    struct execution *j = OWNER(t, struct execution, place);
    struct loaded *l = j->loaded;

    loaded_hold(l);
    space_close(&j->space);
    j->state = JOB_WAITING;
    j->placed = !failed;
    if (j->dropped)
        job_interrupt(j);
    else if (failed &&
             !(l->gone && l->state != SESSION_ENDED)) /* else the next sandbox gets them */
        job_fail(j, failed);
    job_pump(l);
    loaded_drop(l);
}

static bool is_busy(const struct loaded *l)
{
    for (const struct execution *j = l->jobs; j; j = j->next)
        if (j->state == JOB_STARTED || j->state == JOB_PLACING || j->state == JOB_ENDING)
            return true;
    return false;
}

/* Cells go one at a time, so that the files of one come after the code before it has ended. A
 * command that runs alone waits for a cell, too, but not for one whose clock stands still. */
static struct execution *next_job(struct loaded *l)
{
    bool cell_before = false, clock_before = false;

    for (struct execution *j = l->jobs; j; j = j->next) {
        bool waits = j->alone ? clock_before : j->kind == EXEC_CELL && cell_before;
        waits |= j->recorded_first && !j->begun_over;
        if (j->state == JOB_WAITING && j->inputs_left == 0 && !waits)
            return j;
        if ((j->kind == EXEC_CELL || j->alone) && j->state != JOB_ENDING &&
            j->state != JOB_DROPPED) {
            cell_before = true;
            clock_before |= !j->stopped;
        }
    }
    return NULL;
}

void job_pump(struct loaded *l)
{
    struct execution *j;
    struct err e;

    err_set(&e, ERR_MISSING, "the session has been deleted");
    if (l->state == SESSION_ENDED)
        return jobs_fail(l, &e);
    while ((j = next_job(l))) {
        if (l->state == SESSION_ASLEEP)
            return loaded_wake(l);
        if (!loaded_is_awake(l) || l->sleeping)
            return;
        if (loaded_is_old(l)) {
            if (!is_busy(l))
                loaded_sleep(l, SLEEP_LIFETIME);
            return;
        }
        if (j->input_count && !j->placed) {
            j->state = JOB_PLACING;
            inputs_place(j, on_placed);
        } else {
            start(j);
        }
    }
    /* Files may take their time to come; the sandbox need not wait for them. */
    if (l->state == SESSION_ASLEEP && l->jobs && l->jobs->state == JOB_WAITING)
        loaded_wake(l);
}

void job_inputs_there(struct execution *j)
{
    if (j->state == JOB_DROPPED)
        job_end(j);
    else if (j->failed.kind)
        job_fail(j, &j->failed);
    else
        job_pump(j->loaded);
}

/* --- giving up --- */

/* Not when the engine has it: then the engine's outcome ends it. */
static void drop(struct execution *j)
{
    assert(j->state == JOB_WAITING);
    j->state = JOB_DROPPED;
    if (j->inputs_left)
        inputs_cancel(j); /* the last of them calls job_inputs_there() */
    else
        job_end(j);
}

void job_fail(struct execution *j, const struct err *why)
{
    j->failed = *why;
    j->outcome = (struct outcome){.status = OUTCOME_SESSION_LOST};
    say_unexecuted(j, why->text);
    drop(j);
}

void jobs_fail(struct loaded *l, const struct err *why)
{
    for (struct execution *j = l->jobs; j; j = j->next)
        if (j->state == JOB_WAITING)
            job_fail(j, why);
}

void job_interrupt(struct execution *j)
{
    if (j->state == JOB_STARTED)
        exec_interrupt(j->exec);
    else if (j->state == JOB_PLACING)
        j->dropped = true;
    if (j->state != JOB_WAITING)
        return;
    j->outcome = (struct outcome){.status = OUTCOME_INTERRUPTED};
    snprintf(j->outcome.line, sizeof(j->outcome.line), "interrupted before it began");
    drop(j);
}

void execution_leave(struct execution *j)
{
    if (job_leave_early(j))
        return;
    if (!j->background)
        job_interrupt(j);
    else if (j->held)
        execution_hold(j, false);
}

void execution_detach(struct execution *j)
{
    assert(j->told_queued);
    journal_begin(j);
    j->background = true;
    j->sv->foreground -= j->counted;
    j->counted = false;
    service_check_empty(j->sv);
    execution_leave(j);
}

void job_hold(struct execution *j)
{
    if (j->exec)
        exec_hold(j->exec, j->held || j->throttled || j->journal.full);
}

void execution_hold(struct execution *j, bool hold)
{
    j->held = hold;
    job_hold(j);
}

void execution_stop_clock(struct execution *j, bool stopped)
{
    j->stopped = stopped;
    if (j->exec)
        exec_stop_clock(j->exec, stopped);
    if (stopped && j->loaded)
        job_pump(j->loaded);
}

/* --- the queue --- */

static int write_begun(struct task *t, struct db *db, struct err *e)
{
    return db_exec_put(db, &OWNER(t, struct execution, begun)->first, e);
}

/* Nobody has heard of it: it is refused instead. */
static void fail_untold(struct execution *j, const struct err *why)
{
    j->told_queued = true;
    j->sv->pending--;
    if (j->state == JOB_WAITING)
        job_fail(j, why);
    else
        job_settle(j);
}

static void on_begun(struct task *t, const struct err *failed)
{
    struct execution *j = OWNER(t, struct execution, begun);
    struct loaded *l = j->loaded;

    if (failed)
        log_warn("execution %s is not on record yet: %s", j->row.id, failed->text);
    else if (!j->recorded)
        feed_execution(j, false);
    j->begun_over = true;
    if (!j->recorded_first || j->told_queued)
        return job_settle(j);
    loaded_hold(l); /* which the execution may be the last to do */
    if (!failed)
        tell_queued(j);
    else
        fail_untold(j, failed);
    if (l->state != SESSION_ENDED)
        job_pump(l);
    loaded_drop(l);
}

static void record_begin(struct execution *j)
{
    static const struct step steps[] = {{.store = write_begun}, {0}};

    task_start(&j->begun, j->sv, NULL, steps, on_begun);
}

bool job_is_fresh(struct execution *j)
{
    if (!j->fresh_link)
        return false;
    *j->fresh_link = j->fresh_next;
    if (j->fresh_next)
        j->fresh_next->fresh_link = j->fresh_link;
    j->fresh_link = NULL;
    return true;
}

void job_put_on_record(struct execution *j)
{
    if (job_is_fresh(j))
        record_begin(j);
}

void on_fresh_due(void *arg)
{
    struct service *sv = arg;

    for (struct execution *j; (j = sv->fresh) && job_is_fresh(j);)
        record_begin(j);
}

/* It is there for whoever reads the log after a crash. Who goes away with nothing but an id waits
 * for it. Who waits for the end does not: most cells are over before FRESH_MS, and are written
 * once, with their end. */
static void begin(struct execution *j)
{
    static char queued[] = "queued";
    struct service *sv = j->sv;

    j->first = j->row;
    j->first.status = queued;
    if (j->recorded_first) {
        journal_begin(j);
        return record_begin(j);
    }
    if (!sv->fresh)
        timer_set(sv->fresh_due, FRESH_MS);
    j->fresh_next = sv->fresh;
    j->fresh_link = &sv->fresh;
    if (sv->fresh)
        sv->fresh->fresh_link = &j->fresh_next;
    sv->fresh = j;
}

void job_queue(struct execution *j, struct loaded *l)
{
    struct execution **at = &l->jobs;

    while (*at)
        at = &(*at)->next;
    *at = j;
    l->job_count++;
    loaded_hold(l);
    j->loaded = l;
    j->state = JOB_WAITING;
    j->row.session = mem_strdup(l->row.id);
    j->row.pool = mem_strdup(l->row.pool);
    table_put(&j->sv->jobs, j->row.id, j);
    j->sv->pending++;
    if (!j->recorded_first)
        loop_later(j->sv->loop, tell_queued, j);
    begin(j);
    approval_note_use(j);
    loaded_used(l);
    if (l->state == SESSION_IDLE)
        loaded_go(l, SESSION_RUNNING);
    inputs_gather(j);
    job_pump(l);
}
