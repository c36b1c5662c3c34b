/*
 * A model that has been given its words: one step as the plan, one piece of code, then it
 * is done. So code that a caller wrote goes the same way as code that a model wrote:
 * approvals, limits, logs, files and events are those of every execution.
 */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

struct words {
    struct model model; /* first */
    struct loop *loop;  /* borrowed */
    json_t *plan, *code;
};

struct given_call {
    struct model_call call; /* first */
    struct model_watcher watcher;
    void *arg;
    json_t *parts;
    enum model_stop stop;
    struct timer *timer;
};

static void call_done(struct given_call *c)
{
    timer_free(c->timer);
    json_decref(c->parts);
    free(c);
}

static void on_due(void *arg)
{
    struct given_call *c = arg;
    const struct model_reply reply = {.parts = c->parts, .stop = c->stop, .name = "given"};

    c->watcher.on_end(c->arg, &reply, NULL);
    call_done(c);
}

/* Whether the code has been handed over in this conversation. */
static bool has_run(const json_t *messages)
{
    const json_t *message, *part;
    size_t i, j;

    json_array_foreach(messages, i, message) json_array_foreach(
        json_object_get(message, "parts"), j,
        part) if (str_is(json_view(json_object_get(part, "type")), "result")) return true;
    return false;
}

static json_t *parts_of(struct words *g, const struct model_ask *ask, enum model_stop *ret_stop)
{
    *ret_stop = MODEL_DONE;
    if (!ask->tools) /* the plan, or last words */
        return json_pack("[{s:s, s:o}]", "type", "text", "text",
                         json_sprintf("{\"steps\": [\"%s\"]}", json_string_value(g->plan)));
    *ret_stop = MODEL_CALLS;
    if (has_run(ask->messages))
        return json_pack("[{s:s, s:s, s:s, s:{s:s}}]", "type", "call", "id", "given_2", "name",
                         "finish", "args", "answer", "The code has run; the log tells how.");
    return json_pack("[{s:s, s:s, s:s, s:{s:O}}]", "type", "call", "id", "given_1", "name",
                     "run_python", "args", "code", g->code);
}

static struct model_call *given_ask(struct model *m, const struct model_ask *ask,
                                    const struct model_watcher *w, void *arg)
{
    struct words *g = (struct words *)m;
    struct given_call *c = mem_zalloc(sizeof(*c));

    *c = (struct given_call){.call = {.model = m}, .watcher = *w, .arg = arg};
    c->parts = parts_of(g, ask, &c->stop);
    c->timer = timer_new(g->loop, on_due, c);
    timer_set(c->timer, 0);
    return &c->call;
}

static void given_cancel(struct model_call *c)
{
    call_done((struct given_call *)c);
}

static void given_free(struct model *m)
{
    struct words *g = (struct words *)m;

    json_decref(g->plan);
    json_decref(g->code);
    free(g);
}

struct model *given_new(struct loop *l, struct str plan, struct str code)
{
    static const struct model_ops ops = {given_ask, given_cancel, given_free};
    struct words *g = mem_zalloc(sizeof(*g));

    *g = (struct words){
        .model = {.ops = &ops, .label = "given"},
        .loop = l,
        .plan = record_text(plan),
        .code = record_text(code)
    };
    return &g->model;
}
