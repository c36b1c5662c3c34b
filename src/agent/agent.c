/*
 * The agent's door to other rooms: loops are looked at, answered, stopped and, after a
 * restart, taken up again. How one is started is in start.c; what is done about one of
 * them is a quest's (quest.c).
 */
#include "agent/quest.h"
#include "loop/loop.h"
#include "record/record.h"

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
        log_warn("old loops are not deleted: %s", failed->text);
    free(arg);
}

static void on_forget(void *arg)
{
    struct agent *a = arg;
    int64_t *before = mem_zalloc(sizeof(*before));

    *before = now_ms() - (int64_t)a->config.record_ms;
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
    return err_set(e, ERR_BUSY, "the server is shutting down");
}

void agent_drain(struct agent *a)
{
    a->draining = true;
    for (struct quest *q = a->quests; q; q = q->next)
        if (!q->job)
            quest_rest(q);
}

void agent_free(struct agent *a)
{
    struct err e;

    if (!a)
        return;
    agent_is_over(&e);
    while (a->quests) {
        struct quest *q = quest_hold(a->quests);
        watches_end(q, &e);
        quest_close(q);
        quest_drop(q);
    }
    timer_free(take_ptr(&a->forget));
    a->closed = true;
    agent_drop(a);
}

void agent_forget_model(struct agent *a, struct model *own)
{
    for (struct quest *q = a->quests, *next; q; q = next) {
        next = q->next;
        if (q->own != own)
            continue;
        q->own = NULL;
        if (!q->call || q->call->model != own)
            continue;
        quest_stop_asking(q);
        quest_event(q, json_pack("{s:s, s:s, s:s}", "type", "failed", "code", "ModelUnavailable",
                                 "message", "the client whose model was asked is gone"));
    }
}

/* --- looking, answering, stopping --- */

struct errand {
    struct agent *agent; /* held */
    char tenant[64], id[ID_MAX];
    char *owner; /* owned, or NULL: whoever's */
    bool id_ok;
    char *text; /* owned, or NULL: an answer */
    size_t text_n;
    bool hard;
    void (*live)(struct errand *x, struct quest *q, struct err *e); /* or NULL: it only looks */
    struct page page;
    char after[ID_MAX];
    struct loop_row row, *rows; /* owned */
    size_t count;
    bool found;
    agent_fn *fn;
    agent_list_fn *list_fn;
    void *arg;
};

static void errand_free(struct errand *x)
{
    for (size_t i = 0; i < x->count; i++)
        loop_row_done(&x->rows[i]);
    free(x->rows);
    loop_row_done(&x->row);
    free(x->owner);
    free(x->text);
    agent_drop(x->agent);
    free(x);
}

static void answer(struct errand *x, const json_t *record, const struct err *failed)
{
    json_t *shown = record ? record_shown(record) : NULL;
    struct err e;

    err_set(&e, ERR_MISSING, "there is no such execution");
    x->fn(x->arg, failed ? NULL : shown, failed ? failed : shown ? NULL : &e);
    json_decref(shown);
    errand_free(x);
}

static bool is_owners(const struct errand *x, const json_t *record)
{
    return !x->owner || json_is(record, "owner", x->owner);
}

static int read_row(struct db *db, void *arg, struct err *e)
{
    struct errand *x = arg;
    int rc = db_loop_get(db, x->tenant, x->id, &x->row, e);

    x->found = rc > 0;
    return rc < 0 ? -1 : 0;
}

static void do_live(struct errand *x, struct quest *q)
{
    struct err e = {0};

    if (!is_owners(x, q->record)) {
        answer(x, NULL, NULL);
        return;
    }
    quest_hold(q);
    if (x->live)
        x->live(x, q, &e);
    answer(x, q->record, e.kind ? &e : NULL);
    quest_drop(q);
}

/* It has ended: it can be looked at, and nothing else. Unless it was taken up after a restart,
 * meanwhile. */
static void on_row(void *arg, const struct err *failed)
{
    struct errand *x = arg;
    struct quest *q = quest_find(x->agent, x->tenant, str_of(x->id));
    json_t *record;
    struct err e;

    if (q) {
        do_live(x, q);
        return;
    }
    record = x->found && !failed ? json_loads(x->row.record, 0, NULL) : NULL;
    err_set(&e, ERR_CONFLICT, "it has ended");
    if (record && !is_owners(x, record))
        json_decref(take_ptr(&record));
    answer(x, record, failed ? failed : record && x->live ? &e : NULL);
    json_decref(record);
}

static void on_errand(void *arg)
{
    struct errand *x = arg;
    struct quest *q = x->id_ok ? quest_find(x->agent, x->tenant, str_of(x->id)) : NULL;
    struct err e;

    if (x->agent->closed) {
        agent_is_over(&e);
        answer(x, NULL, &e);
    } else if (!x->id_ok) {
        answer(x, NULL, NULL);
    } else if (q) {
        do_live(x, q);
    } else {
        store_run(x->agent->config.store, read_row, on_row, x);
    }
}

static struct errand *errand_new(struct agent *a, const struct caller *c, struct str id,
                                 agent_fn *fn, void *arg)
{
    struct errand *x = mem_zalloc(sizeof(*x));

    *x = (struct errand){.agent = agent_hold(a), .fn = fn, .arg = arg};
    memcpy(x->tenant, c->tenant, sizeof(x->tenant));
    x->id_ok = id_is(id, "toolu_") && str_to_cstr(id, x->id, sizeof(x->id));
    return x;
}

/* One that could not be kept has nothing. */
static void take_owner(struct errand *x, const struct str *owner)
{
    if (owner)
        x->owner = text_is_word(*owner) ? mem_strndup(*owner) : mem_strdup("\xff");
}

void agent_get(struct agent *a, const struct caller *c, struct str id, const struct str *owner,
               agent_fn *fn, void *arg)
{
    struct errand *x = errand_new(a, c, id, fn, arg);

    take_owner(x, owner);
    loop_later(a->config.loop, on_errand, x);
}

static void provide(struct errand *x, struct quest *q, struct err *e)
{
    if (!json_is(q->record, "status", "waiting_for_input") || q->answer != ANSWER_NONE)
        err_set(e, ERR_CONFLICT, "it does not wait for an answer");
    else if (!x->text)
        err_set(e, ERR_LIMIT, "an answer has at most %zu bytes", CONTEXT_MAX);
    else if (!quest_answer(q, (struct str){x->text, x->text_n}))
        err_set(e, ERR_CALLER, "an approval is answered with {\"approve\": true or false}");
}

void agent_provide(struct agent *a, const struct caller *c, struct str id, struct str text,
                   agent_fn *fn, void *arg)
{
    struct errand *x = errand_new(a, c, id, fn, arg);

    x->live = provide;
    x->text_n = str_utf8_len(text);
    x->text = x->text_n <= CONTEXT_MAX ? mem_strndup((struct str){text.p, x->text_n}) : NULL;
    loop_later(a->config.loop, on_errand, x);
}

static void cancel(struct errand *x, struct quest *q, struct err *e)
{
    (void)e;
    quest_event(q, json_pack("{s:s, s:b}", "type", "cancel", "hard", x->hard));
}

void agent_cancel(struct agent *a, const struct caller *c, struct str id, bool hard, agent_fn *fn,
                  void *arg)
{
    struct errand *x = errand_new(a, c, id, fn, arg);

    x->live = cancel;
    x->hard = hard;
    loop_later(a->config.loop, on_errand, x);
}

/* --- all of them --- */

static int read_rows(struct db *db, void *arg, struct err *e)
{
    struct errand *x = arg;
    struct page page = x->page;

    page.after = *x->after ? x->after : NULL;
    page.limit++;
    return db_loop_list(db, x->tenant, x->owner, page, &x->rows, &x->count, e);
}

/* The store may be a step behind those that go on. */
static void on_rows(void *arg, const struct err *failed)
{
    struct errand *x = arg;
    bool more = x->count > x->page.limit;
    size_t count = more ? x->page.limit : x->count;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is what it is */
    AUTO_FREE json_t **records = mem_zalloc((count + 1) * sizeof(*records));

    for (size_t i = 0; i < count; i++) {
        json_t *record = json_loads(x->rows[i].record, 0, NULL);
        records[i] = record ? record_shown(record) : json_object();
        json_decref(record);
    }
    x->list_fn(x->arg, records, failed ? 0 : count, more, failed);
    for (size_t i = 0; i < count; i++)
        json_decref(records[i]);
    errand_free(x);
}

void agent_list(struct agent *a, const struct caller *c, const struct str *owner, struct page page,
                agent_list_fn *fn, void *arg)
{
    struct errand *x = errand_new(a, c, (struct str){0}, NULL, arg);

    x->list_fn = fn;
    take_owner(x, owner);
    x->page = page;
    if (page.after)
        snprintf(x->after, sizeof(x->after), "%.*s", ID_MAX - 1, page.after);
    store_run(a->config.store, read_rows, on_rows, x);
}

/* --- after a restart --- */

static int read_unfinished(struct db *db, void *arg, struct err *e)
{
    struct errand *x = arg;

    return db_loop_unfinished(db, RESUME_MAX, &x->rows, &x->count, e);
}

static void caller_read(const json_t *v, struct caller *ret)
{
    *ret = (struct caller){.admin = json_on(v, "admin"), .approver = json_on(v, "approver")};
    (void)!str_to_cstr(json_str(v, "tenant"), ret->tenant, sizeof(ret->tenant));
    (void)!str_to_cstr(json_str(v, "key"), ret->key, sizeof(ret->key));
    (void)!str_to_cstr(json_str(v, "request"), ret->request, sizeof(ret->request));
    ret->door = json_str(v, "door").p;
}

static void take_given(struct quest *q)
{
    const json_t *f;
    size_t i;

    json_array_foreach(json_object_get(quest_inner(q), "given"), i, f)
    {
        struct given_file *g = &q->files[q->file_count];

        if (q->file_count == INPUTS_MAX)
            break;
        g->path = text_copy(json_str(f, "path"));
        g->file_id = text_copy(json_str(f, "file_id"));
        g->url = text_copy(json_str(f, "url"));
        if (!g->file_id && !g->url)
            json_put_on(quest_inner(q), "inputs_lost", true);
        q->file_count++;
    }
}

static void take_up(struct agent *a, const struct loop_row *row)
{
    json_t *record = json_loads(row->record, 0, NULL), *events = json_loads(row->events, 0, NULL);
    struct caller caller;
    struct quest *q;

    if (!json_is_object(record) || !json_is_array(events) || step_is_over(record)) {
        log_error("loop %s: its record cannot be read, and is left as it is", row->id);
        json_decref(record);
        json_decref(events);
        return;
    }
    caller_read(json_object_get(json_object_get(record, "inner"), "caller"), &caller);
    q = quest_new(a, &caller, record, events);
    take_given(q);
    log_info("loop %s goes on", q->id);
    quest_event(q, json_pack("{s:s}", "type", "resume"));
}

static void on_unfinished(void *arg, const struct err *failed)
{
    struct errand *x = arg;

    if (failed)
        log_error("loops that were under way are not taken up: %s", failed->text);
    for (size_t i = 0; i < x->count && !failed && !x->agent->draining && !x->agent->closed; i++)
        if (!quest_find(x->agent, x->rows[i].tenant, str_of(x->rows[i].id)))
            take_up(x->agent, &x->rows[i]);
    errand_free(x);
}

void agent_resume(struct agent *a)
{
    struct errand *x = mem_zalloc(sizeof(*x));

    x->agent = agent_hold(a);
    store_run(a->config.store, read_unfinished, on_unfinished, x);
}
