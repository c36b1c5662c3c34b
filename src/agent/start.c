/*
 * How a loop is started: the request is checked, its sandbox looked for, its record
 * written; then the one who asked hears of it, and it begins.
 */
#include "agent/quest.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdlib.h>

#define WORD_MAX    1024       /* of an owner, a model, ... */
#define CONTENT_MAX (64 * MiB) /* of all files that come with a request */

static const char no_model[] =
    "NoModelConfigured: there is no model to ask. Without one, send code to the tools that take "
    "it: execute_python, code_interpreter, run_code";

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

void given_files_done(struct given_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(files[i].path);
        free(files[i].file_id);
        free(files[i].url);
        free(files[i].content);
    }
}

static void start_free(struct start *s)
{
    given_files_done(s->files, s->file_count);
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

char *text_copy(struct str s)
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
        g->path = text_copy(f->path);
        g->file_id = text_copy(f->file_id);
        g->url = text_copy(f->url);
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

bool text_is_word(struct str s)
{
    return s.n <= WORD_MAX && str_utf8_len(s) == s.n && !(s.n && memchr(s.p, '\0', s.n));
}

static int check(struct start *s, const struct agent_spec *spec, struct err *e)
{
    const struct agent *a = s->agent;
    size_t count = 0;

    if (a->draining)
        return agent_is_over(e);
    if (!text_is_word(spec->owner) || !text_is_word(spec->tool) || !text_is_word(spec->model) ||
        !text_is_word(spec->pool) || !text_is_word(spec->input_dir))
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
