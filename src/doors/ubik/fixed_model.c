/*
 * A model with fixed replies: a plan of one step, one piece of code, the end. So code that
 * a client wrote passes the agent as code of a model does, with the same approvals,
 * limits, logs, files and events.
 */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

struct fixed_model {
    struct model model; /* first */
    struct loop *loop;  /* borrowed */
    json_t *plan, *code;
};

struct fixed_call {
    struct model_call call; /* first */
    struct model_watcher watcher;
    void *arg;
    json_t *parts;
    enum model_stop stop;
    struct timer *timer;
};

static void call_done(struct fixed_call *c)
{
    timer_free(c->timer);
    json_decref(c->parts);
    free(c);
}

static void on_due(void *arg)
{
    struct fixed_call *c = arg;
    const struct model_reply reply = {.parts = c->parts, .stop = c->stop, .name = "given"};

    c->watcher.on_end(c->arg, &reply, NULL);
    call_done(c);
}

/* Whether the code has run in this conversation. */
static bool has_run(const json_t *messages)
{
    const json_t *message, *part;
    size_t i, j;

    json_array_foreach(messages, i, message)
        json_array_foreach(json_object_get(message, "parts"), j, part)
            if (str_is(json_view(json_object_get(part, "type")), "result"))
                return true;
    return false;
}

static json_t *parts_of(struct fixed_model *g, const struct model_ask *ask,
                        enum model_stop *ret_stop)
{
    *ret_stop = MODEL_DONE;
    if (!ask->tools) /* the plan, or a summary */
        return json_pack("[{s:s, s:o}]", "type", "text", "text",
                         json_sprintf("{\"steps\": [\"%s\"]}", json_string_value(g->plan)));
    *ret_stop = MODEL_CALLS;
    if (has_run(ask->messages))
        return json_pack("[{s:s, s:s, s:s, s:{s:s}}]", "type", "call", "id", "given_2", "name",
                         "finish", "args", "answer", "The code has run; the log has its output.");
    return json_pack("[{s:s, s:s, s:s, s:{s:O}}]", "type", "call", "id", "given_1", "name",
                     "run_python", "args", "code", g->code);
}

static struct model_call *fixed_ask(struct model *m, const struct model_ask *ask,
                                    const struct model_watcher *w, void *arg)
{
    struct fixed_model *g = (struct fixed_model *)m;
    struct fixed_call *c = mem_zalloc(sizeof(*c));

    *c = (struct fixed_call){.call = {.model = m}, .watcher = *w, .arg = arg};
    c->parts = parts_of(g, ask, &c->stop);
    c->timer = timer_new(g->loop, on_due, c);
    timer_set(c->timer, 0);
    return &c->call;
}

static void fixed_cancel(struct model_call *c)
{
    call_done((struct fixed_call *)c);
}

static void fixed_free(struct model *m)
{
    struct fixed_model *g = (struct fixed_model *)m;

    json_decref(g->plan);
    json_decref(g->code);
    free(g);
}

struct model *fixed_model_new(struct loop *l, struct str plan, struct str code)
{
    static const struct model_ops ops = {fixed_ask, fixed_cancel, fixed_free};
    struct fixed_model *g = mem_zalloc(sizeof(*g));

    *g = (struct fixed_model){
        .model = {.ops = &ops, .label = "given"},
        .loop = l,
        .plan = record_text(plan),
        .code = record_text(code)
    };
    return &g->model;
}
