/*
 * An agent run between two steps. The actions that step() returns wait until the record
 * is in the store: after a crash, everything that was done is on record, and whatever the
 * record shows as begun is not begun again.
 */
#include "agent/agent_run.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdlib.h>

/* --- life --- */

static void on_timer(void *arg);

struct agent_run *run_new(struct agent *a, struct run_record *record, json_t *events)
{
    struct agent_run *run = mem_zalloc(sizeof(*run));

    *run = (struct agent_run){.agent = a, .refs = 1, .record = *record, .events = events};
    *record = (struct run_record){0};
    run->caller = &run->record.caller;
    run->todo = json_array();
    run->told = json_array_size(events);
    (void)!str_to_cstr(json_text(run->record.id), run->id, sizeof(run->id));
    for (size_t i = 0; i < COUNT(run->console); i++)
        buf_init(&run->console[i], MiB);
    return run;
}

void run_join(struct agent_run *run)
{
    struct agent *a = run->agent;

    run->timer = timer_new(a->config.loop, on_timer, run);
    run->next = a->runs;
    a->runs = run;
}

static void run_free(struct agent_run *run)
{
    json_t *const values[] = {run->events, run->todo, run->doing,     run->messages,
                              run->later,  run->seen, run->transcript};

    for (size_t i = 0; i < INPUTS_MAX; i++)
        free(run->contents[i].p);
    for (size_t i = 0; i < COUNT(run->console); i++)
        buf_done(&run->console[i]);
    for (size_t i = 0; i < COUNT(values); i++)
        json_decref(values[i]);
    record_done(&run->record);
    free(run->reason);
    free(run);
}

struct agent_run *run_hold(struct agent_run *run)
{
    run->refs++;
    return run;
}

void run_drop(struct agent_run *run)
{
    if (--run->refs == 0)
        run_free(run);
}

bool run_release(struct agent_run *run)
{
    bool closed = run->closed;

    run_drop(run);
    return closed;
}

void run_close(struct agent_run *run)
{
    struct agent_run **at = &run->agent->runs;

    if (run->closed)
        return;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run->closed = true;
    run_stop_waiting(run);
    if (run->x)
        execution_leave(take_ptr(&run->x));
    timer_free(take_ptr(&run->kill));
    timer_free(take_ptr(&run->timer));
    run_drop(run);
}

void run_pause(struct agent_run *run)
{
    struct err e;

    agent_is_over(&e);
    run_stop_waiting(run);
    if (run->x && run->record.state == RUN_WAIT) /* the approval stays */
        execution_leave(take_ptr(&run->x));
    watches_end(run, &e);
}

struct agent_run *run_find(struct agent *a, const char *tenant, struct str id)
{
    for (struct agent_run *run = a->runs; run; run = run->next)
        if (str_is(id, run->id) && strcmp(run->caller->tenant, tenant) == 0)
            return run;
    return NULL;
}

/* --- events --- */

/* Takes the event. False: the run has as many events as it may have. */
static bool append(struct agent_run *run, json_t *event)
{
    const json_t *last = json_array_get(run->events, json_array_size(run->events) - 1);
    bool must = json_is(event, "type", "end") || json_is(event, "type", "error") ||
                json_is(event, "type", "question");

    if (json_array_size(run->events) >= EVENTS_MAX && !must) {
        json_decref(event);
        return false;
    }
    json_put_num(event, "seq", json_num(last, "seq") + 1);
    json_put_num(event, "at_ms", time_now_ms());
    json_array_append_new(run->events, event);
    return true;
}

static void tell_up_to(struct agent_run *run, size_t count)
{
    while (run->told < count)
        watches_tell(run, json_array_get(run->events, run->told++));
}

/* An event waits while earlier events are not stored yet. */
void run_tell(struct agent_run *run, json_t *event)
{
    bool at_once = run->told == json_array_size(run->events);

    if (append(run, event) && at_once)
        tell_up_to(run, json_array_size(run->events));
}

/* --- the store --- */

struct saving {
    struct agent_run *run; /* held */
    struct loop_row row;
};

static int write_row(struct db *db, void *arg, struct err *e)
{
    struct saving *s = arg;

    return db_loop_put(db, &s->row, e);
}

static void perform(struct agent_run *run, const json_t *action);

static void do_all(struct agent_run *run)
{
    json_t *doing = take_ptr(&run->doing);
    const json_t *action;
    size_t i;

    json_array_foreach(doing, i, action) {
        if (!run->closed)
            perform(run, action);
    }
    json_decref(doing);
}

/* Nothing is done that is not on record: the run ends with an error. */
static void on_unsaved(struct agent_run *run, const struct err *failed)
{
    log_error("agent run %s is not in the store: %s", run->id, failed->text);
    if (run->broken || run->record.state == RUN_OVER)
        return do_all(run);
    run->broken = true;
    json_decref(take_ptr(&run->doing));
    run_fail(run, "InternalError", "the server could not keep what it has done");
}

/* Tells the client that started the run, once the record is stored. */
static void tell_start(struct agent_run *run, const struct err *failed)
{
    agent_fn *fn = take_ptr(&run->on_start);
    json_t *shown = failed ? NULL : record_json(&run->record, false);

    fn(run->start_arg, shown, failed);
    json_decref(shown);
    if (failed)
        run_close(run);
}

static void on_saved(void *arg, const struct err *failed)
{
    struct saving *s = arg;
    struct agent_run *run = s->run;

    loop_row_done(&s->row);
    free(s);
    if (run->on_start)
        tell_start(run, failed);
    if (run->closed)
        return run_drop(run);
    /* Output since then follows, unless events of a later step come before it. */
    tell_up_to(run, run->dirty ? run->keeping : json_array_size(run->events));
    if (failed)
        on_unsaved(run, failed);
    else
        do_all(run);
    if (!run->closed && !run->doing && (run->dirty || json_array_size(run->todo) > 0))
        run_save(run);
    run_drop(run);
}

/* Until it has a session: the first pool of a key that is limited to some. */
char *run_pool(const struct agent_run *run)
{
    struct str pool = json_text(run->record.pool);
    struct str pools = str_of(scope_pools(run->agent->config.service, run->caller)), first;

    if (pool.n == 0 && str_next(&pools, ',', &first))
        pool = first;
    return pool.n ? mem_strndup(pool) : NULL;
}

static void make_row(const struct agent_run *run, struct loop_row *ret)
{
    const struct run_record *r = &run->record;
    json_t *record = record_json(r, true);

    *ret = (struct loop_row){
        .tenant = mem_strdup(run->caller->tenant),
        .owner = mem_strndup(json_text(r->owner)),
        .status = mem_strdup(run_status_names[r->status]),
        .created_ms = r->created_ms,
        .ended_ms = r->ended_ms,
        .record = record_dump(record, false, NULL),
        .events = record_dump(run->events, false, NULL),
        .pool = run_pool(run),
    };
    memcpy(ret->id, run->id, sizeof(run->id));
    json_decref(record);
}

void run_save(struct agent_run *run)
{
    struct saving *s;

    run->dirty = true;
    if (run->doing)
        return;
    s = mem_zalloc(sizeof(*s));
    s->run = run_hold(run);
    run->doing = run->todo;
    run->todo = json_array();
    run->dirty = false;
    run->keeping = json_array_size(run->events);
    make_row(run, &s->row);
    store_run(run->agent->config.store, write_row, on_saved, s);
}

/* --- what happens, and what is to be done --- */

void run_event(struct agent_run *run, json_t *event)
{
    json_t *actions = step(&run->record, event, time_now_ms()), *a;
    size_t i;

    json_array_foreach(actions, i, a) {
        if (json_is(a, "do", "tell"))
            append(run, json_incref(json_object_get(a, "event")));
        else
            json_array_append(run->todo, a);
    }
    json_decref(actions);
    json_decref(event);
    run_save(run);
}

void run_fail(struct agent_run *run, const char *code, const char *message)
{
    run_event(run, json_pack("{s:s, s:s, s:o}", "type", "failed", "code", code, "message",
                             text_value(str_of(message))));
}

static void end(struct agent_run *run)
{
    watches_end(run, NULL);
    run_close(run);
}

static const struct {
    const char *what;
    void (*fn)(struct agent_run *run);
} performances[] = {
    {"begin",     run_begin       },
    {"run",       run_exec        },
    {"recover",   run_recover     },
    {"read",      run_read_output },
    {"wait",      run_await_answer},
    {"interrupt", run_interrupt   },
    {"drop",      run_stop_waiting},
    {"end",       end             },
};

/* The record says that code runs: it must say, too, that the code did not begin. */
static void put_off(struct agent_run *run, const json_t *action)
{
    if (json_is(action, "do", "run")) {
        run->record.unbegun = true;
        run_save(run);
    }
    run_pause(run);
}

static void perform(struct agent_run *run, const json_t *action)
{
    int64_t after = json_num(action, "after_ms");

    if (run->agent->draining && !json_is(action, "do", "end"))
        return put_off(run, action);
    if (after > 0) {
        json_t *now = json_copy((json_t *)action);
        json_object_del(now, "after_ms");
        run_wait(run, (uint64_t)after, now);
        return;
    }
    if (json_is(action, "do", "ask"))
        run_ask(run, json_str(action, "kind").p);
    for (size_t i = 0; i < COUNT(performances); i++)
        if (json_is(action, "do", performances[i].what)) {
            performances[i].fn(run);
            return;
        }
}

void run_wait(struct agent_run *run, uint64_t ms, json_t *action)
{
    json_decref(run->later);
    run->later = action;
    timer_set(run->timer, ms);
}

static void on_timer(void *arg)
{
    struct agent_run *run = arg;
    json_t *action = take_ptr(&run->later);

    if (json_is(action, "do", "late"))
        run_event(run, json_pack("{s:s}", "type", "late"));
    else if (action)
        perform(run, action);
    json_decref(action);
}
