/*
 * The public calls on agent runs: look up, answer, cancel, and resume after a restart. start.c
 * starts a run; agent_run.c carries it out.
 */
#include "agent/agent_run.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>

#define TENANT_LOOPS 256
#define RESUME_MAX   10000
#define FORGET_MS    600000
#define FORGET_ROWS  1000

/* --- life --- */

static int forget(struct db *db, void *arg, struct err *e)
{
    const int64_t *before = arg;

    return db_loop_forget(db, *before, FORGET_ROWS, e) < 0 ? -1 : 0;
}

static void on_forgotten(void *arg, const struct err *failed)
{
    if (failed)
        log_warn("old agent runs are not deleted: %s", failed->text);
    free(arg);
}

static void on_forget(void *arg)
{
    struct agent *a = arg;
    int64_t *before = mem_zalloc(sizeof(*before));

    *before = time_sure_ms() - (int64_t)a->config.record_ms;
    store_run(a->config.store, forget, on_forgotten, before);
    timer_set(a->forget, FORGET_MS);
}

struct agent *agent_new(const struct agent_config *config)
{
    struct agent *a = mem_zalloc(sizeof(*a));

    a->config = *config;
    a->refs = 1;
    if (!a->config.tenant_loops)
        a->config.tenant_loops = TENANT_LOOPS;
    if (config->record_ms) {
        a->forget = timer_new(config->loop, on_forget, a);
        timer_set(a->forget, FORGET_MS);
    }
    return a;
}

struct agent *agent_hold(struct agent *a)
{
    a->refs++;
    return a;
}

void agent_drop(struct agent *a)
{
    if (--a->refs == 0)
        free(a);
}

int agent_is_over(struct err *e)
{
    return err_set(e, ERR_AWAY, "the server is shutting down");
}

void agent_drain(struct agent *a)
{
    a->draining = true;
    for (struct agent_run *run = a->runs; run; run = run->next)
        if (!run->x || run->record.state == RUN_WAIT)
            run_pause(run);
}

void agent_free(struct agent *a)
{
    struct err e;

    if (!a)
        return;
    agent_is_over(&e);
    while (a->runs) {
        struct agent_run *run = run_hold(a->runs);
        watches_end(run, &e);
        run_close(run);
        run_drop(run);
    }
    timer_free(take_ptr(&a->forget));
    a->closed = true;
    agent_drop(a);
}

/* --- one run: look, answer, cancel --- */

struct lookup {
    struct agent *agent; /* held */
    struct caller caller;
    char id[ID_MAX];
    struct loop_row row; /* owned */
    bool found;
    run_found_fn *fn;
    void *arg;
};

static int read_row(struct db *db, void *arg, struct err *e)
{
    struct lookup *l = arg;
    int rc = db_loop_get(db, l->caller.tenant, l->id, &l->row, e);

    l->found = rc > 0;
    return rc < 0 ? -1 : 0;
}

static void on_row(void *arg, const struct err *failed)
{
    struct lookup *l = arg;
    struct agent *a = l->agent;
    struct agent_run *run = run_find(a, l->caller.tenant, str_of(l->id)); /* perhaps just resumed */
    AUTO_FREE char *pool = run ? run_pool(run) : l->row.pool ? mem_strdup(l->row.pool) : NULL;
    struct err e;

    if (!service_sees_pool(a->config.service, &l->caller, pool ? pool : "")) {
        run = NULL;
        l->found = false;
    }

    if (a->closed)
        agent_is_over(&e);
    else
        err_set(&e, ERR_MISSING, "there is no such execution");
    l->fn(l->arg, run, &l->row, run || (l->found && !failed) ? NULL : failed ? failed : &e);
    loop_row_done(&l->row);
    free(l);
    agent_drop(a);
}

static void on_lookup(void *arg)
{
    struct lookup *l = arg;

    if (l->agent->closed || !*l->id || run_find(l->agent, l->caller.tenant, str_of(l->id)))
        on_row(l, NULL);
    else
        store_run(l->agent->config.store, read_row, on_row, l);
}

void run_look_up(struct agent *a, const struct caller *c, struct str id, run_found_fn *fn,
                 void *arg)
{
    struct lookup *l = mem_zalloc(sizeof(*l));

    *l = (struct lookup){.agent = agent_hold(a), .caller = *c, .fn = fn, .arg = arg};
    if (!id_is(id, "toolu_") || !str_to_cstr(id, l->id, sizeof(l->id)))
        l->id[0] = '\0'; /* no run has this id */
    loop_later(a->config.loop, on_lookup, l);
}

struct run_call {
    void (*live)(struct run_call *c, struct agent_run *run, struct err *e); /* NULL: only look */
    char *owner; /* owned, or NULL: any */
    char *text;  /* owned, or NULL */
    size_t text_n;
    bool hard;
    agent_fn *fn;
    void *arg;
};

/* A run that is over can only be looked at. */
static void on_found(void *arg, struct agent_run *run, const struct loop_row *row,
                     const struct err *failed)
{
    struct run_call *c = arg;
    json_t *shown = run      ? record_json(&run->record, false)
                    : failed ? NULL
                             : json_loads(row->record, 0, NULL);
    struct err e = {0};

    json_object_del(shown, "inner");
    if (failed)
        e = *failed;
    else if (c->owner && !json_is(shown, "owner", c->owner))
        err_set(&e, ERR_MISSING, "there is no such execution");
    else if (c->live && !run)
        err_set(&e, ERR_CONFLICT, "it has ended");
    else if (c->live) {
        c->live(c, run, &e);
        json_decref(shown);
        shown = record_json(&run->record, false);
    }
    c->fn(c->arg, e.kind ? NULL : shown, e.kind ? &e : NULL);
    json_decref(shown);
    free(c->owner);
    free(c->text);
    free(c);
}

static void call_run(struct agent *a, const struct caller *caller, struct str id,
                     const struct run_call *call)
{
    struct run_call *c = mem_zalloc(sizeof(*c));

    *c = *call;
    run_look_up(a, caller, id, on_found, c);
}

/* Owned; NULL: any owner. An owner that is no word becomes one that no record has. */
static char *owner_copy(const struct str *owner)
{
    return !owner ? NULL : text_is_word(*owner) ? mem_strndup(*owner) : mem_strdup("\xff");
}

void agent_get(struct agent *a, const struct caller *c, struct str id, const struct str *owner,
               agent_fn *fn, void *arg)
{
    call_run(a, c, id, &(struct run_call){.owner = owner_copy(owner), .fn = fn, .arg = arg});
}

static void provide(struct run_call *c, struct agent_run *run, struct err *e)
{
    if (run->record.status != RUN_WAITING || run->answer != ANSWER_NONE)
        err_set(e, ERR_CONFLICT, "it does not wait for an answer");
    else if (!c->text)
        err_set(e, ERR_LIMIT, "an answer has at most %zu bytes", CONTEXT_MAX);
    else if (!run_answer(run, (struct str){c->text, c->text_n}))
        err_set(e, ERR_CALLER, "an approval is answered with {\"approve\": true or false}");
}

void agent_provide(struct agent *a, const struct caller *c, struct str id, struct str text,
                   agent_fn *fn, void *arg)
{
    text.n = str_utf8_len(text);
    call_run(a, c, id,
             &(struct run_call){.live = provide,
                                .text = text.n <= CONTEXT_MAX ? mem_strndup(text) : NULL,
                                .text_n = text.n,
                                .fn = fn,
                                .arg = arg});
}

static void cancel(struct run_call *c, struct agent_run *run, struct err *e)
{
    (void)e;
    run_event(run, json_pack("{s:s, s:b}", "type", "cancel", "hard", c->hard));
}

void agent_cancel(struct agent *a, const struct caller *c, struct str id, bool hard, agent_fn *fn,
                  void *arg)
{
    call_run(a, c, id, &(struct run_call){.live = cancel, .hard = hard, .fn = fn, .arg = arg});
}

/* --- resume after a restart --- */

struct run_list {
    struct agent *agent;   /* held */
    char tenant[64];       /* or "": of all */
    struct loop_row *rows; /* owned */
    size_t count;
};

static void list_free(struct run_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        loop_row_done(&l->rows[i]);
    free(l->rows);
    agent_drop(l->agent);
    free(l);
}

static int read_unfinished(struct db *db, void *arg, struct err *e)
{
    struct run_list *l = arg;

    return db_loop_unfinished(db, *l->tenant ? l->tenant : NULL, RESUME_MAX, &l->rows, &l->count,
                              e);
}

static void resume(struct agent *a, const struct loop_row *row)
{
    json_t *record = json_loads(row->record, 0, NULL), *events = json_loads(row->events, 0, NULL);
    struct run_record r;
    struct agent_run *run;

    if (!record_read(&r, record) || !json_is_array(events)) {
        log_error("agent run %s: its record cannot be read, and is left as it is", row->id);
        record_done(&r);
        json_decref(events);
    } else {
        run = run_new(a, &r, events);
        run_join(run);
        log_info("agent run %s goes on", run->id);
        run_event(run, json_pack("{s:s}", "type", "resume"));
    }
    json_decref(record);
}

static void on_unfinished(void *arg, const struct err *failed)
{
    struct run_list *l = arg;

    if (failed)
        log_error("agent runs that were under way are not resumed: %s", failed->text);
    for (size_t i = 0; i < l->count && !failed && !l->agent->draining && !l->agent->closed; i++)
        if (!run_find(l->agent, l->rows[i].tenant, str_of(l->rows[i].id)))
            resume(l->agent, &l->rows[i]);
    list_free(l);
}

void agent_resume(struct agent *a, const char *tenant)
{
    struct run_list *l = mem_zalloc(sizeof(*l));

    (void)!str_to_cstr(str_of(tenant ? tenant : ""), l->tenant, sizeof(l->tenant));
    l->agent = agent_hold(a);
    store_run(a->config.store, read_unfinished, on_unfinished, l);
}
