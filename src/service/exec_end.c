/*
 * The end of an execution. The files that it changed are saved. Its record is written in the same
 * transaction as their rows, or as the last of them when there are many. Only then does the watcher
 * hear of files and outcome. An execution without files and with little output needs no worker for
 * this.
 */
#include "service/service_int.h"

#include <stdlib.h>

/* --- the record --- */

/* In place of files that could not be saved. */
static struct event unsaved_note(void)
{
    static const char text[] = "what it has changed in the workspace could not be saved yet, and "
                               "is lost if the sandbox is";

    return (struct event){.kind = EVENT_STATUS, .text = str_of(text)};
}

static void add_events(struct execution *j)
{
    struct event note = unsaved_note();

    if (j->unsaved.kind)
        transcript_event(&j->transcript, &note);
    for (size_t i = 0; i < j->changes.n && !j->unsaved.kind; i++) {
        const struct change *c = &j->changes.at[i];
        struct event ev = change_event(c), problem;
        if (c->unlisted)
            continue;
        transcript_event(&j->transcript, &ev);
        if (change_problem(c, &problem))
            transcript_event(&j->transcript, &problem);
    }
    transcript_flush(&j->transcript, true);
}

static char *dump(const json_t *v)
{
    return record_dump(v, false, NULL);
}

/* As the session is at this moment: what is written last is what was true last. */
static int look_at_session(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);

    (void)e;
    j->session = j->loaded->row;
    j->orphan = j->loaded->state == SESSION_ENDED;
    return 0;
}

static int pack(struct task *t, struct err *e);
static int write_end(struct task *t, struct db *db, struct err *e);

static const struct step packing[] = {
    {.work = pack}, {.loop = look_at_session}, {.store = write_end}, {0}};

static bool is_long(const struct execution *j)
{
    return j->transcript.bytes > 2 * EVENTS_INLINE; /* it counts more than what is written */
}

static int close_record(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);

    add_events(j);
    j->outcome_json = record_outcome(&j->outcome);
    j->row.outcome = dump(j->outcome_json);
    if (!is_long(j))
        j->row.events = dump(j->transcript.events);
    if (!j->row.events || strlen(j->row.events) > EVENTS_INLINE)
        t->step = packing;
    (void)e;
    return 0;
}

static int keep_blob(struct execution *j, const char *text, struct err *e)
{
    struct blob *b = blob_new(j->sv->store, UINT64_MAX, e);
    uint64_t size;

    if (!b)
        return -1;
    if (blob_write(b, str_of(text), e) < 0) {
        blob_free(b);
        return -1;
    }
    return blob_keep(b, BLOB_LATER, j->row.events_hash, &size, e);
}

static const char nothing_kept[] =
    "[{\"type\":\"status\",\"text\":\"what it has said could not be kept\"}]";

/* That there is no room for what it has said is no reason not to record that it has ended. */
static int pack(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);
    AUTO_FREE char *text = j->row.events ? take_ptr(&j->row.events) : dump(j->transcript.events);
    struct err why = {0};

    (void)e;
    if (text && strlen(text) <= EVENTS_INLINE) {
        j->row.events = take_ptr(&text);
    } else if (!text || keep_blob(j, text, &why) < 0) {
        log_error("execution %s: what it has said is not on record: %s", j->row.id,
                  text ? why.text : "it is too long");
        j->row.events_hash[0] = '\0';
        j->row.events = mem_strdup(nothing_kept);
    }
    return 0;
}

/* That its files are not saved is no reason not to record that it has ended, and how. */
static int take_space(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);

    (void)e;
    /* Its sandbox has been closed, and what had changed was saved before. */
    if (j->loaded->session)
        (void)!space_take(j->loaded, &j->space, &j->unsaved);
    return 0;
}

static int save_files(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);

    (void)e;
    if (space_is_open(&j->space))
        (void)!changes_save(&j->changes, t->sv->store, &j->space, &j->loaded->env->config.limits,
                            &j->unsaved);
    return 0;
}

/* Bytes that are being removed where they are kept cannot be named now (ERR_AWAY): then the files
 * are saved the next time, and what the code has said is lost; but that it has run is on record. */
static int write_files(struct execution *j, struct task *t, struct db *db, struct err *e)
{
    if (j->orphan || j->unsaved.kind || changes_write(&j->changes, t, db, j->row.session, e) == 0)
        return 0;
    if (e->kind != ERR_AWAY)
        return -1;
    j->unsaved = *e;
    return 0;
}

static int write_record(struct execution *j, struct db *db, struct err *e)
{
    int rc = db_exec_put(db, &j->row, e);

    if (rc == 0 || e->kind != ERR_AWAY)
        return rc;
    j->row.events_hash[0] = '\0';
    j->row.events = mem_strdup(nothing_kept);
    return db_exec_put(db, &j->row, e);
}

static int write_end(struct task *t, struct db *db, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);

    if (write_files(j, t, db, e) < 0)
        return -1;
    if (t->again)
        return 0;
    if (write_record(j, db, e) < 0 || (j->journal.on && db_exec_output_drop(db, j->row.id, e) < 0))
        return -1;
    return j->orphan ? 0 : db_session_put(db, &j->session, e);
}

/* Most executions are over here: their rows go into the database when the client has its answer. */
static int write_soon(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, ended);

    j->written_soon = record_soon(j);
    if (j->written_soon)
        t->step++;
    (void)e;
    return 0;
}

/* --- the end --- */

static void count(struct execution *j)
{
    struct service_counts *c = &j->sv->counts;

    if (!j->ran)
        return;
    if (j->loaded && j->outcome.memory_peak_bytes)
        j->loaded->memory_bytes = j->outcome.memory_peak_bytes;
    c->executions[j->outcome.status]++;
    for (enum limit l = LIMIT_NONE + 1; l < LIMIT__COUNT; l++)
        c->limits_hit[l] += (j->outcome.limits_hit & IN(l)) != 0;
    if (j->kind == EXEC_CELL)
        histogram_add(&c->cell, (uint64_t)(time_mono_us() - j->begun_us));
}

static void tell_event(struct execution *j, const struct event *ev)
{
    if (j->watched && j->watcher.on_event)
        j->watcher.on_event(j->arg, ev);
}

static void tell_files(struct execution *j)
{
    struct event note = unsaved_note();

    if (j->unsaved.kind)
        tell_event(j, &note);
    for (size_t i = 0; i < j->changes.n && !j->unsaved.kind; i++) {
        const struct change *c = &j->changes.at[i];
        struct event ev = change_event(c), problem;
        if (!c->unlisted)
            tell_event(j, &ev);
        if (!c->unlisted && change_problem(c, &problem))
            tell_event(j, &problem);
    }
}

static void leave_session(struct execution *j)
{
    struct loaded *l = j->loaded;
    struct execution **at = &l->jobs;

    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    l->job_count--;
    table_drop(&j->sv->jobs, j->row.id);
    loaded_rests(l);
}

static void tell_end(struct execution *j)
{
    struct exec_info info = {.row = &j->row,
                             .events = j->transcript.events,
                             .outcome = j->outcome_json,
                             .how = &j->outcome,
                             .bytes = j->transcript.bytes};

    if (!j->watched)
        return;
    j->watched = false;
    j->watcher.on_end(j->arg, &info, j->failed.kind ? &j->failed : NULL);
}

static void conclude(struct execution *j)
{
    struct loaded *l = j->loaded;

    count(j);
    if (!j->failed.kind)
        tell_files(j);
    if (!j->failed.kind && !j->unsaved.kind)
        feed_saved(l, &j->changes);
    feed_execution(j, true);
    leave_session(j);
    tell_end(j);
    job_wake(j, true);
    if (j->late)
        late_records_add(j->sv, &j->row);
    job_free(j);
    job_pump(l);
    loaded_drop(l);
}

/* One that fails at once may be here before its beginning is told, or is on record. */
void job_settle(struct execution *j)
{
    if (j->recorded && j->told_queued && j->begun_over)
        conclude(j);
}

static void settle(void *arg)
{
    struct execution *j = arg;

    j->recorded = true;
    job_settle(j);
}

static void on_recorded(struct task *t, const struct err *failed)
{
    struct execution *j = OWNER(t, struct execution, ended);

    j->late = failed && (failed->kind == ERR_FULL || failed->kind == ERR_AWAY);
    if (failed)
        log_error("execution %s is not on record%s: %s", j->row.id, j->late ? " yet" : "",
                  failed->text);
    if (failed && j->failed.kind == ERR_NONE) {
        j->failed = *failed;
        if (j->ran) /* or somebody would run it once more */
            err_wrap(&j->failed, "the code has run, but what came of it could not be kept");
        if (j->ran && failed->kind == ERR_AWAY)
            j->failed.kind = ERR_FULL; /* which nobody is told to try again */
    }
    if (j->unsaved.kind)
        log_error("execution %s: its files are not saved: %s", j->row.id, j->unsaved.text);
    if (failed || j->unsaved.kind)
        space_return(j->loaded, &j->changes);
    if (j->written_soon)
        loop_later(j->sv->loop, settle, j); /* whoever ends executions does not expect them to go */
    else
        settle(j);
}

void job_end(struct execution *j)
{
    j->state = JOB_ENDING;
    if (job_is_fresh(j))
        j->begun_over = true;
    j->row.ended_ms = time_now_ms();
    free(j->row.status);
    j->row.status = mem_strdup(outcome_status_name(j->outcome.status));
    if (!journal_ends_later(j))
        job_record_end(j);
}

void job_record_end(struct execution *j)
{
    static const struct step plain[] = {{.loop = close_record},
                                        {.loop = look_at_session},
                                        {.loop = write_soon},
                                        {.store = write_end},
                                        {0}};
    static const struct step saving[] = {{.loop = take_space},   {.work = save_files},
                                         {.loop = close_record}, {.loop = look_at_session},
                                         {.store = write_end},   {0}};
    bool has_files = changes_has_files(&j->changes);

    task_start(&j->ended, j->sv, has_files ? j->loaded : NULL, has_files ? saving : plain,
               on_recorded);
}
