/* code_interpreter and python_executor over MCP, with the names and schema of Qwen-Agent. */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>

#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"code\":{\"description\":\"The python code.\","         \
    "\"type\":\"string\"}},\"required\":[\"code\"]}"

#define META_INSTANCE "dev.retort/instance"

/* Part of the call of MCP. */
struct interpreter_tool_call {
    struct call *call;                /* borrowed */
    struct interpreter_call *running; /* borrowed; NULL once it has replied */
};

static void tool_call_free(void *arg)
{
    struct interpreter_tool_call *t = arg;

    if (t->running)
        interpreter_call_leave(t->running);
    free(t);
}

/* What a program may want to know, and a model need not. */
static json_t *meta_of(const struct interpreter_call *r)
{
    json_t *meta = json_object(), *files = json_array();
    const json_t *ev;
    size_t i;

    json_array_foreach(r->events, i, ev) {
        if (event_is(ev, "file"))
            json_array_append(files, json_object_get(ev, "path"));
    }
    if (*r->session)
        json_object_set_new(meta, "dev.retort/session", json_string(r->session));
    if (*r->execution)
        json_object_set_new(meta, "dev.retort/execution", json_string(r->execution));
    if (*r->uploaded)
        json_object_set_new(meta, "dev.retort/uploaded", record_text(str_of(r->uploaded)));
    if (json_array_size(files) > 0)
        json_object_set(meta, "dev.retort/files", files);
    json_decref(files);
    return meta;
}

/* Images go along where no link can be followed; of a large one the preview. */
static void attach(struct tool_content *t, const json_t *events)
{
    struct event_reader r;
    size_t sum = 0;

    event_reader_init(&r, events);
    while (event_reader_next(&r) && r.images <= PICTURES_MAX)
        if (r.image && strcmp(r.mime, "image/svg+xml") != 0 &&
            figure_put(t->items, &sum, json_view(r.image)) && r.preview)
            (void)figure_put(t->items, &sum, json_view(r.preview));
    event_reader_done(&r);
}

static void on_reply(void *arg, const struct interpreter_call *r)
{
    struct interpreter_tool_call *of = arg;
    struct call *c = of->call;
    struct tool_content t;
    json_t *result;

    of->running = NULL;
    content_init(&t);
    content_text(&t, r->reply);
    if (call_is_local(c))
        attach(&t, r->events);
    result = content_result(&t, r->is_error);
    json_object_set_new(result, "_meta", meta_of(r));
    call_result(c, result);
    content_done(&t);
}

/* --- call parameters --- */

static int take_code(struct call_params *p, const struct qwen *q, const json_t *args, struct err *e)
{
    json_t *code = json_object_get(args, "code");
    struct parsed_code parsed;
    int rc = 0;

    if (!json_is_string(code))
        return err_set(e, ERR_CALLER, "code must be a string: the Python to run");
    parse_code_value(json_view(code), &parsed);
    if (parsed.more)
        rc = call_params_take(p, q, parsed.more, e);
    call_params_set_code(p, &parsed);
    parsed_code_done(&parsed);
    return rc;
}

/* Named by the arguments, by _meta or by a header, else the conversation, else this call alone. */
static int take_instance(struct call_params *p, const struct qwen *q, const struct call *c,
                         struct err *e)
{
    json_t *named = json_incref(json_object_get(c->meta, META_INSTANCE)), *option;
    struct str header = call_header(c, "x-qwen-instance");
    int rc = 0;

    if (!named && header.n)
        named = record_text(header);
    if (*p->instance) {
        json_decref(named);
    } else if (named) {
        option = json_pack("{s:o}", "instance", named);
        rc = call_params_take(p, q, option, e);
        json_decref(option);
    } else if (c->conversation) {
        snprintf(p->instance, sizeof(p->instance), "%s", call_conversation(c));
    } else {
        id_make(p->instance, "once_");
    }
    return rc;
}

static void start(struct call *c, json_t *args, const char *tool, bool stateless)
{
    struct qwen *q = c->tool_set->ctx;
    struct service *sv = call_service(c);
    const struct interpreter_call_spec spec = {
        .qwen = q,
        .service = sv,
        .caller = &c->caller,
        .call = c,
        .tool = tool,
        .base = call_base_url(c),
        .attaches = call_is_local(c),
        .stateless = stateless,
    };
    struct interpreter_tool_call *t;
    struct call_params p;
    struct err e;

    if (!sv)
        return;
    call_params_init(&p, q);
    if (call_params_take(&p, q, args, &e) < 0 || take_code(&p, q, args, &e) < 0 ||
        take_instance(&p, q, c, &e) < 0) {
        call_params_done(&p);
        tool_fail(c, "%s", e.text);
        return;
    }
    t = mem_zalloc(sizeof(*t));
    t->call = c;
    call_keep(c, tool_call_free, t);
    call_drop_on_cancel(c);
    t->running = interpreter_call_start(&spec, &p, on_reply, t);
}

static void run_interpreter(struct call *c, json_t *args)
{
    start(c, args, "code_interpreter", false);
}

static void run_executor(struct call *c, json_t *args)
{
    start(c, args, "python_executor", true);
}

const struct tool tool_code_interpreter = {
    .name = "code_interpreter",
    .title = "Code interpreter",
    .text = "Python code sandbox, which can be used to execute Python code.",
    .schema = SCHEMA,
    .hints = TOOL_RUNS,
    .run = run_interpreter,
};

const struct tool tool_python_executor = {
    .name = "python_executor",
    .title = "Python executor",
    .text = "For executing python code. Nothing is kept from one call to the next. The answer is "
            "a pair: what was printed, and Done, or what went wrong.",
    .schema = SCHEMA,
    .hints = TOOL_RUNS,
    .run = run_executor,
};
