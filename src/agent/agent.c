/*
 * The agent's door to other rooms: loops are started, looked at, answered, stopped and,
 * after a restart, taken up again. What is done about one of them is a quest's (quest.c).
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
#define WORD_MAX     1024       /* of an owner, a model, ... */
#define CONTENT_MAX  (64 * MiB) /* of all files that come with a request */

static const char no_model[] =
    "NoModelConfigured: there is no model to ask. Without one, send code to the tools that take "
    "it: execute_python, code_interpreter, run_code";

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

/* --- budgets --- */

/* What a request wants, at most what the settings allow. */
static struct agent_budget budget_of(const struct agent *a, const struct agent_budget *wanted)
{
    static const size_t fields[] = {
        offsetof(struct agent_budget, plan_steps),  offsetof(struct agent_budget, rounds),
        offsetof(struct agent_budget, attempts),    offsetof(struct agent_budget, run_ms),
        offsetof(struct agent_budget, wall_ms),     offsetof(struct agent_budget, model_ms),
        offsetof(struct agent_budget, input_chars), offsetof(struct agent_budget, tokens),
        offsetof(struct agent_budget, wait_ms),
    };
    struct agent_budget b = a->config.budget, most;

    step_budget_fill(&b);
    most = b;
    for (size_t i = 0; i < COUNT(fields) && wanted; i++) {
        uint64_t *to = (uint64_t *)((char *)&b + fields[i]);
        uint64_t want = *(const uint64_t *)((const char *)wanted + fields[i]);
        uint64_t limit = *(const uint64_t *)((const char *)&most + fields[i]);

        if (want && want < limit)
            *to = want;
    }
    return b;
}

/* --- starting --- */

struct start {
    struct agent *agent; /* held */
    struct quest *q;     /* held, or NULL until it is made */
    struct caller caller;
    struct agent_spec spec; /* its texts are in record */
    json_t *record;         /* owned */
    struct loop_row row;    /* owned: as it is first kept */
    char sandbox[ID_MAX];
    struct given_file files[INPUTS_MAX];
    size_t file_count;
    agent_fn *fn;
    void *arg;
    struct err failed;
};

static void start_free(struct start *s)
{
    for (size_t i = 0; i < s->file_count; i++) {
        free(s->files[i].path);
        free(s->files[i].file_id);
        free(s->files[i].url);
        free(s->files[i].content);
    }
    json_decref(s->record);
    loop_row_done(&s->row);
    agent_drop(s->agent);
    free(s);
}

static void on_refused(void *arg)
{
    struct start *s = arg;

    s->fn(s->arg, NULL, &s->failed);
    start_free(s);
}

static void refuse(struct start *s)
{
    loop_later(s->agent->config.loop, on_refused, s);
}

static char *copy_of(struct str s)
{
    return s.n ? mem_strndup(s) : NULL;
}

/* Bytes are kept here until they are in the workspace; after a restart they are not there. */
static int take_files(struct start *s, const struct agent_spec *spec, struct err *e)
{
    json_t *kept = json_array(), *inner = json_object_get(s->record, "inner");
    size_t bytes = 0;

    json_object_set_new(inner, "given", kept);
    if (spec->file_count > INPUTS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d files", INPUTS_MAX);
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct file_input *f = &spec->files[i];
        struct given_file *g = &s->files[s->file_count++];

        bytes += f->content.n;
        if (str_utf8_len(f->path) != f->path.n || (f->path.n && memchr(f->path.p, '\0', f->path.n)))
            return err_set(e, ERR_CALLER, "the path of file %zu is not text", i + 1);
        if (bytes > CONTENT_MAX)
            return err_set(e, ERR_LIMIT, "the files have more than %zu bytes in all", CONTENT_MAX);
        g->path = copy_of(f->path);
        g->file_id = copy_of(f->file_id);
        g->url = copy_of(f->url);
        if (f->has_content) {
            g->content = mem_zalloc(f->content.n + 1);
            g->n = f->content.n;
            if (f->content.n)
                memcpy(g->content, f->content.p, f->content.n);
        }
        json_array_append_new(kept, json_pack("{s:s?, s:s?, s:s?}", "path", g->path, "file_id",
                                              g->file_id, "url", g->url));
    }
    return 0;
}

/* It is kept and compared as it is, or not at all. */
static bool is_word(struct str s)
{
    return s.n <= WORD_MAX && str_utf8_len(s) == s.n && !(s.n && memchr(s.p, '\0', s.n));
}

static int check(struct start *s, const struct agent_spec *spec, struct err *e)
{
    const struct agent *a = s->agent;
    size_t count = 0;

    if (a->draining)
        return agent_is_over(e);
    if (!is_word(spec->owner) || !is_word(spec->tool) || !is_word(spec->model) ||
        !is_word(spec->pool) || !is_word(spec->input_dir))
        return err_set(e, ERR_CALLER, "a name is too long, or not text");
    if (!spec->own &&
        (spec->own_only || !models_find(a->config.models, s->caller.tenant, spec->model)))
        return err_set(e, ERR_CONFLICT, "%s", no_model);
    if (spec->request.n == 0)
        return err_set(e, ERR_CALLER, "the request is empty");
    if (spec->request.n > REQUEST_MAX || spec->context.n > CONTEXT_MAX)
        return err_set(e, ERR_LIMIT, "a request has at most %zu bytes, and its context %zu",
                       REQUEST_MAX, CONTEXT_MAX);
    if (str_utf8_len(spec->request) != spec->request.n ||
        str_utf8_len(spec->context) != spec->context.n)
        return err_set(e, ERR_CALLER, "the request is not UTF-8 text");
    for (const struct quest *q = a->quests; q; q = q->next)
        count += strcmp(q->caller.tenant, s->caller.tenant) == 0;
    if (count >= a->config.tenant_loops) {
        err_set(e, ERR_BUSY, "as many requests are under way as one tenant may have");
        e->retry_s = 5;
        return -1;
    }
    return 0;
}

static json_t *caller_value(const struct caller *c)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "tenant", c->tenant, "key", c->key,
                     "request", c->request, "door", c->door ? c->door : "", "admin", c->admin,
                     "approver", c->approver);
}

/* The first save has the record as it is now; the one who asked hears of it when it is kept. */
static int write_first(struct db *db, void *arg, struct err *e)
{
    return db_loop_put(db, &((struct start *)arg)->row, e);
}

static void make_row(struct start *s)
{
    struct loop_row *row = &s->row;

    (void)!str_to_cstr(json_str(s->record, "id"), row->id, sizeof(row->id));
    row->tenant = mem_strdup(s->caller.tenant);
    row->owner = mem_strndup(json_str(s->record, "owner"));
    row->status = mem_strdup("pending");
    row->created_ms = json_num(s->record, "created_ms");
    row->record = record_dump(s->record, false, NULL);
    row->events = mem_strdup("[]");
}

static void on_first(void *arg, const struct err *failed)
{
    struct start *s = arg;
    struct quest *q = s->q;
    json_t *shown = failed ? NULL : record_shown(s->record);

    s->fn(s->arg, shown, failed);
    json_decref(shown);
    if (!q->closed && failed)
        quest_close(q);
    else if (!q->closed && !q->agent->draining && !step_is_over(q->record))
        quest_begin(q);
    quest_drop(q);
    start_free(s);
}

static void begin(struct start *s)
{
    struct quest *q = quest_new(s->agent, &s->caller, json_incref(s->record), json_array());

    q->own = s->spec.own;
    memcpy(q->files, s->files, sizeof(q->files));
    q->file_count = s->file_count;
    s->file_count = 0;
    s->q = quest_hold(q);
    make_row(s);
    store_run(s->agent->config.store, write_first, on_first, s);
}

static void on_sandbox(void *arg, const struct session_info *info, const struct err *failed)
{
    struct start *s = arg;
    json_t *metadata =
        info && info->row->metadata ? json_loads(info->row->metadata, 0, NULL) : NULL;
    struct str owner = json_str(s->record, "owner");

    if (failed)
        s->failed = *failed;
    else if (s->agent->draining || s->agent->closed)
        agent_is_over(&s->failed);
    else if (owner.n > 0 && !str_eq(json_str(metadata, AGENT_OWNER), owner))
        err_set(&s->failed, ERR_MISSING, "there is no such sandbox");
    json_decref(metadata);
    if (s->failed.kind) {
        on_refused(s);
        return;
    }
    json_object_set_new(json_object_get(s->record, "inner"), "session", json_string(s->sandbox));
    begin(s);
}

void agent_start(struct agent *a, const struct caller *c, const struct agent_spec *spec,
                 agent_fn *fn, void *arg)
{
    struct start *s = mem_zalloc(sizeof(*s));
    struct agent_budget budget = budget_of(a, spec->budget);
    char id[ID_MAX];

    *s = (struct start){.agent = agent_hold(a), .caller = *c, .spec = *spec, .fn = fn, .arg = arg};
    id_make(id, "toolu_");
    s->record = step_begin(id, spec, &budget, now_ms());
    json_object_set_new(json_object_get(s->record, "inner"), "caller", caller_value(c));
    if (check(s, spec, &s->failed) < 0 || take_files(s, spec, &s->failed) < 0) {
        refuse(s);
    } else if (spec->sandbox.n == 0) {
        begin(s);
    } else if (!str_to_cstr(spec->sandbox, s->sandbox, sizeof(s->sandbox))) {
        err_set(&s->failed, ERR_MISSING, "there is no such sandbox");
        refuse(s);
    } else {
        service_session_get(a->config.service, c, spec->sandbox, on_sandbox, s);
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
        x->owner = is_word(*owner) ? mem_strndup(*owner) : mem_strdup("\xff");
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
        g->path = copy_of(json_str(f, "path"));
        g->file_id = copy_of(json_str(f, "file_id"));
        g->url = copy_of(json_str(f, "url"));
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
