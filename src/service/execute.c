/*
 * An execution from its request to the engine's outcome. It finds its session, waits
 * there for its turn, for its files and for the session to wake, and is then handed to
 * the engine: cells one at a time in the order they came, commands beside them. What
 * follows the outcome is in ending.c.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

static const char shutting_down[] = "the server is shutting down";

/* --- a job --- */

static char *copy_or_null(const char *s)
{
    return s && *s ? mem_strdup(s) : NULL;
}

static struct job *job_new(struct service *sv, const struct caller *c, const struct exec_spec *spec,
                           const struct exec_watcher *w, void *arg)
{
    struct job *j = mem_zalloc(sizeof(*j));

    *j = (struct job){
        .sv = sv,
        .tenant = tenant_hold(sv, c->tenant),
        .kind = spec->kind,
        .wall_ms = spec->wall_ms,
        .background = spec->background,
        .watched = true,
        .watcher = *w,
        .arg = arg,
        .space.dir = -1,
        .begun_us = time_mono_us(),
    };
    if (spec->clearance)
        j->clearance = *spec->clearance;
    id_make(j->row.id, "exec_");
    j->row.tenant = mem_strdup(c->tenant);
    j->row.key = copy_or_null(c->key);
    j->row.request = mem_strdup(c->request);
    j->row.door = mem_strdup(c->door ? c->door : "");
    j->row.kind = mem_strdup(spec->kind == EXEC_COMMAND ? "command" : "cell");
    j->row.approval = copy_or_null(j->clearance.approval);
    j->row.status = mem_strdup("queued");
    j->row.created_ms = time_now_ms();
    transcript_init(&j->transcript);
    sv->job_count++;
    sv->foreground += !j->background;
    return j;
}

void job_free(struct job *j)
{
    struct service *sv = j->sv;

    sv->held -= j->held_bytes;
    j->tenant->held -= j->held_bytes;
    tenant_drop(sv, j->tenant);
    sv->job_count--;
    sv->foreground -= !j->background;
    service_check_empty(sv);
    inputs_free(j);
    space_close(&j->space);
    changes_done(&j->changes);
    transcript_done(&j->transcript);
    json_decref(j->vars);
    json_decref(j->outcome_json);
    exec_row_done(&j->row);
    free(j);
}

const char *job_status(const struct job *j)
{
    return j->state == JOB_STARTED || j->state == JOB_ENDING ? "running" : "queued";
}

/* Half of it is the most for one tenant, so that none can take it from all the others. */
bool job_takes(struct job *j, uint64_t n)
{
    struct service *sv = j->sv;
    uint64_t max = sv->config.held_bytes ? sv->config.held_bytes : HELD_MAX;

    if (n > max / 2 || sv->held > max - n || j->tenant->held > max / 2 - n)
        return false;
    sv->held += n;
    j->tenant->held += n;
    j->held_bytes += n;
    return true;
}

/* --- telling --- */

/* Of one in the background, which may begin before it is told of, the record has the rest. */
static void tell_watcher(struct job *j, const struct event *ev)
{
    if (j->watched && j->told_queued)
        j->watcher.on_event(j->arg, ev);
}

/* Told whether there is room on record or not. */
static void tell_note_of_cut(struct job *j)
{
    static const char text[] = "from here on its output is not on record: the server holds as much "
                               "as it may at the moment";
    struct event ev = {.kind = EVENT_STATUS, .text = str_of(text)};

    j->cut = true;
    transcript_event(&j->transcript, &ev);
    tell_watcher(j, &ev);
}

static void tell(struct job *j, const struct event *ev)
{
    if (!j->cut && !job_takes(j, transcript_cost(&j->transcript, ev)))
        tell_note_of_cut(j);
    if (!j->cut)
        transcript_event(&j->transcript, ev);
    tell_watcher(j, ev);
    job_wake(j, false);
}

static void tell_note(struct job *j)
{
    struct event ev = {.kind = EVENT_STATUS, .text = str_of(live_lost_note)};
    AUTO_FREE char *more = take_ptr(&j->live->note);

    if (j->note)
        tell(j, &ev);
    ev.text = str_of(more);
    if (more)
        tell(j, &ev);
    j->note = false;
}

static void tell_queued(void *arg)
{
    struct job *j = arg;
    struct exec_info info = job_info(j);

    j->told_queued = true;
    j->sv->pending--;
    if (j->watched)
        j->watcher.on_queued(j->arg, &info);
    json_decref(info.events);
    if (j->state == JOB_STARTED)
        tell_note(j);
    job_settle(j);
}

/* It never got as far as a session: there is nothing to record. */
static void tell_refused(void *arg)
{
    struct job *j = arg;

    if (j->watched)
        j->watcher.on_end(j->arg, NULL, &j->failed);
    job_free(j);
}

static void refuse(struct job *j, const struct err *why)
{
    j->failed = *why;
    loop_later(j->sv->loop, tell_refused, j);
}

/* --- the engine's word --- */

static void on_event(void *arg, const struct event *ev)
{
    struct job *j = arg;

    /* Files come last, and wait until they are saved; a note about them waits with them. */
    if (ev->kind == EVENT_FILE || (ev->kind == EVENT_STATUS && j->live->news.n > j->live->news.old))
        space_news(j->live, ev);
    else
        tell(j, ev);
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct job *j = arg;
    struct live *l = j->live;

    j->exec = NULL;
    j->outcome = *o;
    j->outcome.state_lost |= j->tells_lost;
    j->changes = l->news;
    l->news = (struct changes){0};
    if (o->status == OUTCOME_SESSION_LOST)
        l->gone = true;
    live_hold(l);
    job_end(j);
    job_pump(l);
    live_drop(l);
}

static const struct exec_callbacks engine_callbacks = {on_event, on_outcome};

/* --- its turn --- */

/* The pool's variables, the session's over them, this execution's over both, and the way to the
 * proxy below all. */
static size_t fill_env(struct job *j, struct exec_env *ret, size_t max)
{
    json_t *all = j->live->env->vars ? json_copy(j->live->env->vars) : json_object();
    const char *name;
    json_t *value;
    size_t n = 0;

    if (j->live->vars)
        json_object_update(all, j->live->vars);
    if (j->vars)
        json_object_update(all, j->vars);
    if (j->live->env->policy)
        vars_add_proxy(all);
    json_decref(j->vars);
    j->vars = all; /* the strings live in it */
    json_object_foreach(all, name, value)
    {
        if (n == max)
            break;
        ret[n++] = (struct exec_env){
            str_of(name), {json_string_value(value), json_string_length(value)}
        };
    }
    return n;
}

static void start(struct job *j)
{
    struct live *l = j->live;
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

    j->exec = exec_start(l->session, &config, &engine_callbacks, j, &e);
    if (!j->exec)
        return job_fail(j, &e);
    j->state = JOB_STARTED;
    j->ran = true;
    j->row.started_ms = time_now_ms();
    j->note = l->row.lost && l->row.executions > 0;
    j->tells_lost = j->note;
    l->row.lost = false;
    l->row.executions++;
    if (j->held)
        exec_hold(j->exec, true);
    if (j->told_queued)
        tell_note(j);
}

static void on_placed(struct task *t, const struct err *failed)
{
    struct job *j = OWNER(t, struct job, place);
    struct live *l = j->live;

    live_hold(l);
    space_close(&j->space);
    j->state = JOB_WAITING;
    j->placed = !failed;
    if (j->dropped)
        job_interrupt(j);
    else if (failed &&
             !(l->gone && l->state != SESSION_ENDED)) /* else the next sandbox gets them */
        job_fail(j, failed);
    job_pump(l);
    live_drop(l);
}

static bool is_busy(const struct live *l)
{
    for (const struct job *j = l->jobs; j; j = j->next)
        if (j->state == JOB_STARTED || j->state == JOB_PLACING || j->state == JOB_ENDING)
            return true;
    return false;
}

/* Cells go one at a time, so that the files of one come after the code before it has ended. */
static struct job *next_job(struct live *l)
{
    bool cell_before = false;

    for (struct job *j = l->jobs; j; j = j->next) {
        bool is_cell = j->kind == EXEC_CELL;
        if (j->state == JOB_WAITING && j->inputs_left == 0 && !(is_cell && cell_before))
            return j;
        cell_before |= is_cell && j->state != JOB_ENDING && j->state != JOB_DROPPED;
    }
    return NULL;
}

void job_pump(struct live *l)
{
    struct job *j;
    struct err e;

    err_set(&e, ERR_MISSING, "the session has been deleted");
    if (l->state == SESSION_ENDED)
        return jobs_fail(l, &e);
    while ((j = next_job(l))) {
        if (l->state == SESSION_ASLEEP)
            return live_wake(l);
        if (!live_is_awake(l) || l->sleeping)
            return;
        if (live_is_old(l)) {
            if (!is_busy(l))
                live_sleep(l, SLEEP_LIFETIME);
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
        live_wake(l);
}

void job_inputs_there(struct job *j)
{
    if (j->state == JOB_DROPPED)
        job_end(j);
    else if (j->failed.kind)
        job_fail(j, &j->failed);
    else
        job_pump(j->live);
}

/* --- giving up --- */

/* Not when the engine has it: then the engine's outcome ends it. */
static void drop(struct job *j)
{
    assert(j->state == JOB_WAITING);
    j->state = JOB_DROPPED;
    if (j->inputs_left)
        inputs_cancel(j); /* the last of them calls job_inputs_there() */
    else
        job_end(j);
}

void job_fail(struct job *j, const struct err *why)
{
    j->failed = *why;
    j->outcome = (struct outcome){.status = OUTCOME_SESSION_LOST};
    snprintf(j->outcome.line, sizeof(j->outcome.line), "nothing was executed: %.200s", why->text);
    drop(j);
}

void jobs_fail(struct live *l, const struct err *why)
{
    for (struct job *j = l->jobs; j; j = j->next)
        if (j->state == JOB_WAITING)
            job_fail(j, why);
}

void job_interrupt(struct job *j)
{
    if (j->state == JOB_STARTED)
        exec_interrupt(j->exec);
    else if (j->state == JOB_PLACING || j->state == JOB_FINDING)
        j->dropped = true;
    if (j->state != JOB_WAITING)
        return;
    j->outcome = (struct outcome){.status = OUTCOME_INTERRUPTED};
    snprintf(j->outcome.line, sizeof(j->outcome.line), "interrupted before it began");
    drop(j);
}

void job_leave(struct job *j)
{
    j->watched = false;
    if (!j->background)
        job_interrupt(j);
    else if (j->held)
        job_hold(j, false);
}

void job_detach(struct job *j)
{
    assert(j->told_queued);
    if (!j->background) {
        j->background = true;
        j->sv->foreground--;
        service_check_empty(j->sv);
    }
    job_leave(j);
}

void job_hold(struct job *j, bool hold)
{
    j->held = hold;
    if (j->exec)
        exec_hold(j->exec, hold);
}

void job_stop_clock(struct job *j, bool stopped)
{
    if (j->exec)
        exec_stop_clock(j->exec, stopped);
}

/* --- the request --- */

static int check(struct job *j, const struct exec_spec *s, struct err *e)
{
    if (j->sv->draining || j->sv->closing)
        return forbid(j->sv, e, 5, shutting_down);
    if (s->code.n > EXEC_CODE_MAX)
        return err_set(e, ERR_LIMIT, "the code is longer than %zu bytes", EXEC_CODE_MAX);
    if (str_utf8_len(s->code) != s->code.n || (s->code.n && memchr(s->code.p, '\0', s->code.n)))
        return err_set(e, ERR_CALLER, "the code is not UTF-8 text");
    if (!job_takes(j, s->code.n))
        return forbid(j->sv, e, 1, "the server holds as much for executions as it may");
    return 0;
}

static int write_begun(struct task *t, struct db *db, struct err *e)
{
    return db_exec_put(db, &OWNER(t, struct job, begun)->first, e);
}

static void on_begun(struct task *t, const struct err *failed)
{
    struct job *j = OWNER(t, struct job, begun);

    if (failed)
        log_warn("execution %s is not on record yet: %s", j->row.id, failed->text);
    j->begun_over = true;
    if (j->background && !j->told_queued)
        tell_queued(j);
    else
        job_settle(j);
}

static void record_begin(struct job *j)
{
    static const struct step steps[] = {{.store = write_begun}, {0}};

    task_start(&j->begun, j->sv, NULL, steps, on_begun);
}

bool job_is_fresh(struct job *j)
{
    if (!j->fresh_link)
        return false;
    *j->fresh_link = j->fresh_next;
    if (j->fresh_next)
        j->fresh_next->fresh_link = j->fresh_link;
    j->fresh_link = NULL;
    return true;
}

void on_fresh_due(void *arg)
{
    struct service *sv = arg;

    for (struct job *j; (j = sv->fresh) && job_is_fresh(j);)
        record_begin(j);
}

/* It is there for whoever reads the log after a crash. Who goes away with nothing but an id waits
 * for it. Who waits for the end does not: most cells are over before FRESH_MS, and are written
 * once, with their end. */
static void begin(struct job *j)
{
    static char queued[] = "queued";
    struct service *sv = j->sv;

    j->first = j->row;
    j->first.status = queued;
    if (j->background)
        return record_begin(j);
    if (!sv->fresh)
        timer_set(sv->fresh_due, FRESH_MS);
    j->fresh_next = sv->fresh;
    j->fresh_link = &sv->fresh;
    if (sv->fresh)
        sv->fresh->fresh_link = &j->fresh_next;
    sv->fresh = j;
}

/* A door that does not know of approvals runs nothing where somebody must be asked. */
static int check_cleared(const struct job *j, const struct environment *env, struct err *e)
{
    if (clearance_is_for(&j->clearance, env))
        return 0;
    return err_set(e, ERR_DENIED, "in the pool %s a person must agree before code runs",
                   env->config.name);
}

static void attach(struct job *j, struct live *l)
{
    struct job **at = &l->jobs;
    struct err e;

    if (check_cleared(j, l->env, &e) < 0)
        return refuse(j, &e);
    if (l->job_count >= JOBS_MAX) {
        forbid(j->sv, &e, 1, "as many executions are waiting as one session may have");
        return refuse(j, &e);
    }
    while (*at)
        at = &(*at)->next;
    *at = j;
    l->job_count++;
    live_hold(l);
    j->live = l;
    j->state = JOB_WAITING;
    j->row.session = mem_strdup(l->row.id);
    j->row.pool = mem_strdup(l->row.pool);
    table_put(&j->sv->jobs, j->row.id, j);
    j->sv->pending++;
    if (!j->background)
        loop_later(j->sv->loop, tell_queued, j);
    begin(j);
    approval_note_use(j);
    live_used(l);
    if (l->state == SESSION_IDLE)
        live_go(l, SESSION_RUNNING);
    inputs_gather(j);
    job_pump(l);
}

static void on_found(void *arg, struct live *l, const struct err *failed)
{
    struct job *j = arg;

    struct err e;

    err_set(&e, ERR_CALLER, "interrupted before it began");
    if (j->sv->closing)
        forbid(j->sv, &e, 5, shutting_down);
    if (l && !j->dropped && !j->sv->closing)
        attach(j, l);
    else
        refuse(j, failed ? failed : &e);
}

static void begin_once(struct job *j, const struct exec_spec *spec)
{
    struct environment *env = environment_find(j->sv, spec->pool);
    struct session_row row = {0};
    struct live *l;
    struct err e;

    if (!env) {
        err_set(&e, ERR_CALLER, "there is no such pool");
        return refuse(j, &e);
    }
    if (check_cleared(j, env, &e) < 0 || live_room(j->sv, env, j->row.tenant, &e) < 0)
        return refuse(j, &e);
    session_row_fill(&row, env, j->row.tenant);
    l = live_begin(j->sv, env, &row);
    l->once = !spec->stays;
    attach(j, l);
    live_drop(l);
}

struct job *service_execute(struct service *sv, const struct caller *c,
                            const struct exec_spec *spec, const struct exec_watcher *w, void *arg)
{
    struct job *j = job_new(sv, c, spec, w, arg);
    struct live *l;
    struct err e = {0};

    if (check(j, spec, &e) < 0 || vars_from(spec->env, spec->env_count, &j->vars, &e) < 0 ||
        inputs_copy(j, spec, &e) < 0) {
        refuse(j, &e);
        return j;
    }
    j->row.code = mem_strndup(spec->code);
    if (spec->session.n == 0)
        begin_once(j, spec);
    else if ((l = live_get(sv, c->tenant, spec->session)))
        attach(j, l);
    else
        live_find(sv, c->tenant, spec->session, on_found, j);
    return j;
}
