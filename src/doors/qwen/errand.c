/*
 * A call from its order to its answer: files in, the instance's session, whoever must
 * agree, the code, the work dir, the text.
 *
 * Each step ends in a callback that begins the next. A client that goes takes a running
 * job with it; any other step goes on to its end, and nobody is told.
 */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>

struct errand {
    struct errand_spec spec;
    struct caller caller;
    struct clearance clearance;
    char base[LINK_MAX];
    struct order order;
    reply_fn *fn; /* NULL: nobody waits any more */
    void *arg;
    struct sources *sources; /* owned */
    struct source *items;    /* borrowed from sources */
    size_t count;
    json_t *args;    /* owned, or NULL: what a person is asked about */
    struct job *job; /* borrowed; NULL before and after */
    char session[ID_MAX], execution[ID_MAX];
    json_t *events, *outcome; /* owned, or NULL */
    char *pair;               /* owned, or NULL: python_executor's answer */
    struct buf notes, last;   /* before the text, and after it */
    char uploaded[2 * KiB];
};

static void done_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* it goes with the retention then */
}

static void errand_free(struct errand *g)
{
    if (g->spec.stateless && *g->session)
        service_session_delete(g->spec.service, &g->caller, str_of(g->session), done_deleted, NULL);
    sources_free(g->sources);
    order_done(&g->order);
    json_decref(g->args);
    json_decref(g->events);
    json_decref(g->outcome);
    free(g->pair);
    buf_done(&g->notes);
    buf_done(&g->last);
    free(g);
}

static void note(struct buf *b, const char *text)
{
    struct err e;

    (void)!buf_printf(b, &e, "%s%s", b->n ? " " : "", text);
}

/* --- answers: each is the last of the errand --- */

static void answer(struct errand *g, int status, bool is_error, struct str text)
{
    const struct reply r = {.status = status,
                            .is_error = is_error,
                            .text = text,
                            .session = g->session,
                            .execution = g->execution,
                            .events = g->events,
                            .uploaded = g->uploaded};

    if (g->fn)
        g->fn(g->arg, &r);
    errand_free(g);
}

/* As the agent's own wrapper tells of a tool that failed. */
static void fail(struct errand *g, const struct err *why)
{
    static const char *const types[] = {
        [ERR_NONE] = "RuntimeError",      [ERR_CALLER] = "ValueError",
        [ERR_LIMIT] = "ValueError",       [ERR_MISSING] = "LookupError",
        [ERR_CONFLICT] = "RuntimeError",  [ERR_BUSY] = "ToolServiceError",
        [ERR_DENIED] = "PermissionError", [ERR_HOST] = "ToolServiceError",
    };
    char text[1024];

    if (why->kind == ERR_HOST)
        log_error("%s: %s", g->caller.request, why->text);
    snprintf(text, sizeof(text),
             "An error occurred when calling tool `%s`:\n%s: %s\nTraceback:\n  in the server, "
             "request %s",
             g->spec.tool, types[why->kind],
             why->kind == ERR_HOST ? "the sandbox could not be reached" : why->text,
             g->caller.request);
    answer(g, http_status_of(why), true, str_of(text));
}

static bool is_gone(struct errand *g)
{
    if (g->fn)
        return false;
    errand_free(g);
    return true;
}

/* --- the text --- */

static void put_link(void *arg, struct buf *b, size_t n, const char *mime)
{
    struct errand *g = arg;
    const struct qwen *q = g->spec.qwen;
    struct err e;

    if (!q->has_work_dir && !q->config.static_url && g->spec.attaches) {
        (void)!buf_printf(b, &e, "attachment:fig-%03zu.%s", n, suffix_of(mime));
        return;
    }
    if (q->config.static_url)
        (void)!buf_printf(b, &e, "%s/", q->config.static_url);
    else if (q->has_work_dir)
        (void)!buf_printf(b, &e, "%s/%s%s", q->roots[0].path,
                          g->order.work_dir ? g->order.work_dir : "", g->order.work_dir ? "/" : "");
    else
        (void)!buf_printf(b, &e, "%s/qwen/static/", g->base);
    if (q->has_work_dir)
        (void)!buf_printf(b, &e, "%s-%zu.%s", g->execution, n, suffix_of(mime));
    else
        image_name(q, g->caller.tenant, g->execution, n, mime, b);
}

static void answer_pair(struct errand *g)
{
    answer(g, 200, false, str_of(g->pair));
}

static void tell(struct errand *g)
{
    const struct markdown m = {.events = g->events,
                               .outcome = g->outcome,
                               .traceback = g->order.traceback,
                               .note = buf_str(&g->notes),
                               .link = put_link,
                               .arg = g};
    struct buf b;
    struct err e;

    if (g->pair) {
        answer_pair(g);
        return;
    }
    buf_init(&b, TEXT_MAX);
    markdown_put(&b, &m);
    if (g->last.n > 0)
        (void)!buf_printf(&b, &e, "\n\nNote: %.*s", (int)g->last.n, g->last.p);
    answer(g, 200, false, buf_str(&b));
    buf_done(&b);
}

/* --- the code --- */

static void on_exported(void *arg, struct str notes)
{
    struct errand *g = arg;
    struct err e;

    if (is_gone(g))
        return;
    (void)!buf_put(&g->last, notes, &e);
    tell(g);
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct errand *g = arg;

    snprintf(g->execution, sizeof(g->execution), "%s", info->row->id);
    snprintf(g->session, sizeof(g->session), "%s", info->row->session);
}

static void on_event(void *arg, const struct event *ev)
{
    (void)arg, (void)ev;
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct errand *g = arg;
    const struct qwen *q = g->spec.qwen;

    g->job = NULL;
    if (failed) {
        fail(g, failed);
        return;
    }
    g->events = json_incref(info->events);
    g->outcome = json_incref(info->outcome);
    if (g->spec.stateless) {
        json_t *pair = pair_of(q, &g->order, info);
        g->pair = record_dump(pair, false, NULL);
        json_decref(pair);
    }
    if (q->has_work_dir && !g->spec.stateless)
        export_start(g->spec.qwen, g->spec.service, &g->caller, &g->order, info, on_exported, g);
    else
        tell(g);
}

static size_t fill_files(struct errand *g, struct file_input *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < g->count; i++) {
        struct source *s = &g->items[i];
        if (s->failed.kind != ERR_NONE)
            continue;
        ret[n++] = (struct file_input){
            .path = str_of(s->name),
            .file_id = str_of(s->file),
            .content = {s->bytes, s->n},
            .has_content = s->bytes != NULL
        };
    }
    return n;
}

static void execute(struct errand *g)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    static const struct env_var profile = {STR("RETORT_PROFILE"), STR("qwen")};
    const struct qwen_config *config = &g->spec.qwen->config;
    struct file_input files[SOURCES_MAX];
    struct str plain = {g->order.code, g->order.code_n};
    struct buf whole = {0};

    if (g->spec.stateless)
        executor_code(&g->order, &whole);
    const struct exec_spec spec = {
        .session = str_of(g->session),
        .pool = str_of(config->pool),
        .kind = EXEC_CELL,
        .code = g->spec.stateless ? buf_str(&whole) : plain,
        .wall_ms = g->order.wall_ms    ? g->order.wall_ms
                   : g->spec.stateless ? config->executor_ms
                                       : config->timeout_ms,
        .env = &profile,
        .env_count = 1,
        .files = files,
        .file_count = fill_files(g, files),
        .clearance = &g->clearance,
    };

    g->job = service_execute(g->spec.service, &g->caller, &spec, &watcher, g);
    buf_done(&whole);
}

/* --- whoever must agree --- */

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct errand *g = arg;
    char text[512];

    if (is_gone(g))
        return;
    if (failed) {
        fail(g, failed);
    } else if (info->verdict == APPROVAL_CLEAR) {
        g->clearance = info->clearance;
        execute(g);
    } else if (info->verdict == APPROVAL_WAIT && info->row) {
        snprintf(text, sizeof(text),
                 "Nothing has been run yet: a person must agree first. The approval %s is pending; "
                 "send the same call again when it has been given.",
                 info->row->id);
        answer(g, 202, true, str_of(text));
    } else {
        answer(g, 403, true,
               STR("Nothing has been run: the person who must agree has not agreed."));
    }
}

static void clear(struct errand *g)
{
    struct approval_spec spec = {.tool = str_of(g->spec.tool),
                                 .language = STR("python"),
                                 .session = str_of(g->session),
                                 .pool = str_of(g->spec.qwen->config.pool),
                                 .conversation = str_of(g->order.instance)};

    if (g->spec.clearance || !service_asks(g->spec.service)) {
        execute(g);
        return;
    }
    g->args = json_pack("{s:o}", "code", record_text((struct str){g->order.code, g->order.code_n}));
    spec.args = g->args;
    spec.code = json_view(json_object_get(g->args, "code"));
    service_approval_request(g->spec.service, &g->caller, &spec, on_verdict, g);
}

/* --- the session --- */

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct errand *g = arg;

    if (is_gone(g))
        return;
    if (failed) {
        fail(g, failed);
        return;
    }
    snprintf(g->session, sizeof(g->session), "%s", info->row->id);
    clear(g);
}

static void find_session(struct errand *g)
{
    char name[INSTANCE_MAX + 16];

    if (g->spec.stateless) {
        clear(g);
        return;
    }
    snprintf(name, sizeof(name), "qwen/%s", g->order.instance);
    service_session_create(
        g->spec.service, &g->caller,
        &(struct session_spec){.pool = str_of(g->spec.qwen->config.pool), .name = str_of(name)},
        on_session, g);
}

/* --- files --- */

static void tell_uploaded(struct errand *g)
{
    size_t n = 0, room = sizeof(g->uploaded);

    for (size_t i = 0; i < g->count && n < room - 300; i++) {
        const struct source *s = &g->items[i];
        bool image = strncmp(mime_of(str_of(s->name)), "image/", 6) == 0;
        if (s->failed.kind == ERR_NONE)
            n += (size_t)snprintf(g->uploaded + n, room - n, "%s%s(%s)", n ? " " : "(Uploaded ",
                                  image ? "![image]" : "[file]", s->name);
    }
    if (n > 0)
        snprintf(g->uploaded + n, room - n, ") ");
}

static void on_sources(void *arg, struct source *items, size_t count)
{
    struct errand *g = arg;
    char text[1024], shown[NAME_SHOWN];

    if (is_gone(g))
        return;
    g->items = items;
    g->count = count;
    for (size_t i = 0; i < count; i++) {
        if (items[i].failed.kind == ERR_NONE)
            continue;
        snprintf(text, sizeof(text), "the file %s is not there: %s.",
                 name_show(shown, str_of(items[i].text)), items[i].failed.text);
        note(&g->notes, text);
    }
    tell_uploaded(g);
    find_session(g);
}

/* --- the whole --- */

static void on_blank(void *arg)
{
    struct errand *g = arg;

    answer(g, 200, false, STR(""));
}

struct errand *errand_start(const struct errand_spec *spec, struct order *o, reply_fn *fn,
                            void *arg)
{
    struct errand *g = mem_zalloc(sizeof(*g));

    *g = (struct errand){.spec = *spec, .caller = *spec->caller, .fn = fn, .arg = arg, .order = *o};
    *o = (struct order){0};
    if (spec->clearance)
        g->clearance = *spec->clearance;
    snprintf(g->base, sizeof(g->base), "%s", spec->base ? spec->base : "");
    buf_init(&g->notes, 64 * KiB);
    buf_init(&g->last, 64 * KiB);
    if (order_is_blank(&g->order))
        loop_later(spec->qwen->config.loop, on_blank, g);
    else
        g->sources = sources_start(spec->qwen, spec->service, &g->caller, &g->order, on_sources, g);
    return g;
}

void errand_leave(struct errand *g)
{
    g->fn = NULL;
    if (!g->job)
        return;
    job_leave(take_ptr(&g->job));
    errand_free(g);
}
