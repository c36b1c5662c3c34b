/* The tools over MCP, under their own names and with their own schema. */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>

#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"code\":{\"description\":\"The python code.\","         \
    "\"type\":\"string\"}},\"required\":[\"code\"]}"

#define META_INSTANCE "dev.retort/instance"

struct work {
    struct call *c;
    struct errand *errand; /* borrowed */
};

static void on_cancel(void *arg)
{
    struct work *w = arg;
    struct call *c = w->c;

    errand_leave(w->errand);
    free(w);
    call_drop(c);
}

/* What a program may want to know, and a model need not. */
static json_t *meta_of(const struct reply *r)
{
    json_t *meta = json_object(), *files = json_array();
    const json_t *ev;
    size_t i;

    json_array_foreach(r->events, i, ev) if (str_is(json_view(json_object_get(ev, "type")), "file"))
        json_array_append(files, json_object_get(ev, "path"));
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

/* Over standard output no link can be followed. */
static void attach(struct content *t, const json_t *events)
{
    const json_t *image;
    const char *mime;
    size_t sum = 0;

    for (size_t n = 1; n <= PICTURES_MAX && (image = image_of(events, n, &mime)); n++)
        if (strcmp(mime, "image/svg+xml") != 0)
            (void)figure_put(t->items, &sum, json_view(image));
}

static void on_reply(void *arg, const struct reply *r)
{
    struct work *w = arg;
    struct call *c = w->c;
    struct content t;
    json_t *result;

    free(w);
    call_on_cancel(c, NULL, NULL);
    content_init(&t);
    content_text(&t, r->text);
    if (c->mcp->stdio)
        attach(&t, r->events);
    result = content_result(&t, r->is_error);
    json_object_set_new(result, "_meta", meta_of(r));
    call_result(c, result);
    content_done(&t);
}

/* --- the order --- */

static int take_code(struct order *o, const struct qwen *q, const json_t *args, struct err *e)
{
    json_t *code = json_object_get(args, "code");
    struct written p;
    int rc = 0;

    if (!json_is_string(code))
        return err_set(e, ERR_CALLER, "code must be a string: the Python to run");
    params_code(json_view(code), &p);
    if (p.more)
        rc = order_take(o, q, p.more, e);
    order_take_params(o, &p);
    params_done(&p);
    return rc;
}

/* Named by the arguments or by _meta, else the conversation, else this call alone. */
static int take_instance(struct order *o, const struct qwen *q, const struct call *c, struct err *e)
{
    const json_t *named = json_object_get(c->meta, META_INSTANCE);
    json_t *option;
    int rc = 0;

    if (*o->instance)
        return 0;
    if (named) {
        option = json_pack("{s:O}", "instance", (json_t *)named);
        rc = order_take(o, q, option, e);
        json_decref(option);
    } else if (c->conversation) {
        snprintf(o->instance, sizeof(o->instance), "%s", c->conversation->id);
    } else {
        id_make(o->instance, "once_");
    }
    return rc;
}

static void start(struct call *c, json_t *args, const char *tool, bool stateless)
{
    struct qwen *q = (struct qwen *)((char *)(uintptr_t)c->face - offsetof(struct qwen, face));
    struct service *sv = call_service(c);
    struct errand_spec spec = {.qwen = q,
                               .service = sv,
                               .caller = &c->caller,
                               .clearance = &c->clearance,
                               .tool = tool,
                               .base =
                                   q->config.public_url ? q->config.public_url : q->config.address,
                               .stateless = stateless};
    struct work *w;
    struct order o;
    struct err e;

    if (!sv)
        return;
    order_init(&o, q);
    if (order_take(&o, q, args, &e) < 0 || take_code(&o, q, args, &e) < 0 ||
        take_instance(&o, q, c, &e) < 0) {
        order_done(&o);
        tool_fail(c, "%s", e.text);
        return;
    }
    spec.attaches = c->mcp->stdio != NULL;
    w = mem_zalloc(sizeof(*w));
    *w = (struct work){.c = c};
    call_on_cancel(c, on_cancel, w);
    w->errand = errand_start(&spec, &o, on_reply, w);
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
