/*
 * Starts a run: checks the request, looks for its sandbox, stores the record.
 */
#include "agent/agent_run.h"
#include "loop/loop.h"

#include <stdlib.h>

#define WORD_MAX    1024       /* bytes of a name */
#define CONTENT_MAX (64 * MiB) /* of all files of a request */

static const char no_model[] =
    "NoModelConfigured: there is no model to ask. Without one, send code to the tools that take "
    "it: execute_python, code_interpreter, run_code";

/* --- budgets --- */

/* The budget that the request wants, at most that of the settings. */
static struct agent_budget budget_of(const struct agent *a, const struct agent_budget *wanted)
{
    struct agent_budget b = a->config.budget;
    const uint64_t *want = (const uint64_t *)wanted;
    uint64_t *to = (uint64_t *)&b;

    step_budget_fill(&b);
    for (size_t i = 0; i < sizeof(b) / sizeof(*to) && wanted; i++)
        if (want[i] && want[i] < to[i])
            to[i] = want[i];
    return b;
}

/* --- starting --- */

struct start {
    struct agent *agent;   /* held */
    struct agent_run *run; /* held */
    agent_fn *fn;
    void *arg;
    struct err failed;
};

static void start_free(struct start *s)
{
    run_drop(s->run);
    agent_drop(s->agent);
    free(s);
}

static void on_refused(void *arg)
{
    struct start *s = arg;

    s->fn(s->arg, NULL, &s->failed);
    start_free(s);
}

static json_t *text_or_null(struct str s)
{
    return s.n ? text_value(s) : json_null();
}

/* Contents stay in memory until they are in the workspace: a restart loses them. */
static int take_files(struct agent_run *run, const struct agent_spec *spec, struct err *e)
{
    size_t bytes = 0;

    json_put(&run->record.given, json_array());
    if (spec->file_count > INPUTS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d files", INPUTS_MAX);
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct file_input *f = &spec->files[i];

        bytes += f->content.n;
        if (str_utf8_len(f->path) != f->path.n || (f->path.n && memchr(f->path.p, '\0', f->path.n)))
            return err_set(e, ERR_CALLER, "the path of file %zu is not text", i + 1);
        if (bytes > CONTENT_MAX)
            return err_set(e, ERR_LIMIT, "the files have more than %zu bytes in all", CONTENT_MAX);
        if (f->has_content) {
            run->contents[i].p = mem_strndup(f->content);
            run->contents[i].n = f->content.n;
        }
        json_array_append_new(run->record.given,
                              json_pack("{s:o, s:o, s:o}", "path", text_or_null(f->path), "file_id",
                                        text_or_null(f->file_id), "url", text_or_null(f->url)));
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
        (spec->own_only || !models_find(a->config.models, s->run->caller->tenant, spec->model)))
        return err_set(e, ERR_CONFLICT, "%s", no_model);
    if (spec->request.n == 0)
        return err_set(e, ERR_CALLER, "the request is empty");
    if (spec->request.n > REQUEST_MAX || spec->context.n > CONTEXT_MAX)
        return err_set(e, ERR_LIMIT, "a request has at most %zu bytes, and its context %zu",
                       REQUEST_MAX, CONTEXT_MAX);
    if (str_utf8_len(spec->request) != spec->request.n ||
        str_utf8_len(spec->context) != spec->context.n)
        return err_set(e, ERR_CALLER, "the request is not UTF-8 text");
    for (const struct agent_run *run = a->runs; run; run = run->next)
        count += strcmp(run->caller->tenant, s->run->caller->tenant) == 0;
    if (count >= a->config.tenant_loops) {
        err_set(e, ERR_BUSY, "as many requests are under way as one tenant may have");
        e->retry_s = 5;
        return -1;
    }
    return 0;
}

static void begin(struct start *s)
{
    struct agent_run *run = s->run;

    run->on_start = s->fn;
    run->start_arg = s->arg;
    run_join(run_hold(run));
    json_array_append_new(run->todo, json_pack("{s:s}", "do", "begin"));
    run_save(run);
    start_free(s);
}

static void on_sandbox(void *arg, const struct session_info *info, const struct err *failed)
{
    struct start *s = arg;
    struct run_record *r = &s->run->record;
    json_t *metadata =
        info && info->row->metadata ? json_loads(info->row->metadata, 0, NULL) : NULL;
    struct str owner = json_text(r->owner);

    if (failed)
        s->failed = *failed;
    else if (s->agent->draining || s->agent->closed)
        agent_is_over(&s->failed);
    else if (owner.n > 0 && !str_eq(json_str(metadata, AGENT_OWNER), owner))
        err_set(&s->failed, ERR_MISSING, "there is no such sandbox");
    json_decref(metadata);
    if (s->failed.kind)
        return on_refused(s);
    json_put(&r->session, json_string(info->row->id));
    begin(s);
}

void agent_start(struct agent *a, const struct caller *c, const struct agent_spec *spec,
                 agent_fn *fn, void *arg)
{
    struct start *s = mem_zalloc(sizeof(*s));
    struct agent_budget budget = budget_of(a, spec->budget);
    struct run_record r;
    char id[ID_MAX];

    id_make(id, "toolu_");
    step_begin(&r, id, spec, &budget, time_now_ms());
    r.caller = *c;
    r.door = json_string(c->door ? c->door : "");
    r.caller.door = json_string_value(r.door);
    *s = (struct start){
        .agent = agent_hold(a), .run = run_new(a, &r, json_array()), .fn = fn, .arg = arg};
    s->run->own = spec->own;
    if (check(s, spec, &s->failed) < 0 || take_files(s->run, spec, &s->failed) < 0)
        loop_later(a->config.loop, on_refused, s);
    else if (spec->sandbox.n == 0)
        begin(s);
    else
        service_session_get(a->config.service, c, spec->sandbox, on_sandbox, s);
}
