/*
 * The client's model: a question becomes sampling/createMessage, and the client's result becomes a
 * reply. The caller sends the question, in the way of the client's era.
 *
 * A client with sampling.tools gets the tools. Any other client is asked in plain text, and the
 * agent finds the code in the reply.
 */
#include "doors/mcp/mcp_int.h"
#include "model/model.h"

#include <stdlib.h>

#define MAX_TOKENS 4096

struct sampler {
    struct model model; /* first */
    struct sampler_call *call;
    bool tools;
    loop_fn *on_question;
    void *arg;
};

struct sampler_call {
    struct model_call call; /* first */
    struct model_watcher watcher;
    void *arg;
    json_t *params; /* owned */
};

/* --- the question --- */

static struct str member(const json_t *part, const char *key)
{
    return json_view(json_object_get(part, key));
}

static bool is(const json_t *part, const char *type)
{
    return str_is(member(part, "type"), type);
}

static json_t *text_block(struct str s)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", record_text(s));
}

static json_t *image_block(const json_t *image)
{
    return json_pack("{s:s, s:O*, s:O*}", "type", "image", "data", json_object_get(image, "data"),
                     "mimeType", json_object_get(image, "mime"));
}

/* A call or a result, where it may not be one: as text. */
static json_t *as_text(const json_t *part)
{
    struct str said = member(part, "text");
    json_t *args = json_object_get(part, "args");
    AUTO_FREE char *text = args ? record_dump(args, false, NULL) : NULL;

    return text_block(text ? str_of(text) : said);
}

static json_t *block(const struct sampler *s, const json_t *part)
{
    if (is(part, "text"))
        return text_block(member(part, "text"));
    if (is(part, "image"))
        return image_block(part);
    if (is(part, "kept")) /* another model's own */
        return NULL;
    if (!s->tools)
        return as_text(part);
    if (is(part, "call"))
        return json_pack("{s:s, s:O*, s:O*, s:o}", "type", "tool_use", "id",
                         json_object_get(part, "id"), "name", json_object_get(part, "name"),
                         "input",
                         json_is_object(json_object_get(part, "args"))
                             ? json_incref(json_object_get(part, "args"))
                             : json_object());
    return json_pack("{s:s, s:O*, s:[o], s:b}", "type", "tool_result", "toolUseId",
                     json_object_get(part, "id"), "content", text_block(member(part, "text")),
                     "isError", json_is_true(json_object_get(part, "error")));
}

/* Takes blocks. Clients from before sampling.tools know one block a message. */
static void put_message(const struct sampler *s, json_t *messages, json_t *role, json_t *blocks)
{
    json_t *one;
    size_t i;

    if (s->tools && json_array_size(blocks) > 0)
        json_array_append_new(messages, json_pack("{s:O, s:O}", "role", role, "content", blocks));
    else
        json_array_foreach(blocks, i, one)
            json_array_append_new(messages, json_pack("{s:O, s:O}", "role", role, "content", one));
    json_decref(blocks);
}

static void add_attached(const struct sampler *s, json_t *blocks, const json_t *part)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(part, "attached"), i, one)
        if (is(one, "text") || is(one, "image"))
            json_array_append_new(blocks, block(s, one));
}

/* Results stand alone in a message of their own; what else the user says comes after them. */
static void put_parts(const struct sampler *s, json_t *messages, const json_t *message)
{
    json_t *role = json_object_get(message, "role"), *results = json_array(),
           *others = json_array();
    const json_t *part;
    size_t i;

    json_array_foreach(json_object_get(message, "parts"), i, part) {
        json_t *b = block(s, part);
        if (b)
            json_array_append_new(is(part, "result") ? results : others, b);
        add_attached(s, others, part);
    }
    put_message(s, messages, role, results);
    put_message(s, messages, role, others);
}

static json_t *tools_of(const json_t *tools)
{
    json_t *list = json_array();
    const json_t *t;
    size_t i;

    json_array_foreach(tools, i, t)
        json_array_append_new(list,
                              json_pack("{s:O*, s:O*, s:O*}", "name", json_object_get(t, "name"),
                                        "description", json_object_get(t, "description"),
                                        "inputSchema", json_object_get(t, "schema")));
    return list;
}

static json_t *params_of(const struct sampler *s, const struct model_ask *ask)
{
    static const char *const modes[] = {
        [MODEL_AUTO] = "auto", [MODEL_NO_CALL] = "none", [MODEL_MUST_CALL] = "required"};
    json_t *messages = json_array(), *params;
    const json_t *message;
    size_t i;

    json_array_foreach(ask->messages, i, message)
        put_parts(s, messages, message);
    params = json_pack("{s:o, s:I, s:{s:f, s:f}}", "messages", messages, "maxTokens",
                       (json_int_t)(ask->max_tokens ? ask->max_tokens : MAX_TOKENS),
                       "modelPreferences", "intelligencePriority", 0.8, "speedPriority", 0.3);
    if (ask->system.n)
        json_object_set_new(params, "systemPrompt", record_text(ask->system));
    if (json_array_size(ask->stop) > 0)
        json_object_set(params, "stopSequences", (json_t *)ask->stop);
    if (s->tools && json_array_size(ask->tools) > 0) {
        json_object_set_new(params, "tools", tools_of(ask->tools));
        json_object_set_new(params, "toolChoice", json_pack("{s:s}", "mode", modes[ask->choice]));
    }
    return params;
}

/* --- the answer --- */

/* A block becomes a part, or nothing. */
static void take_block(json_t *parts, const json_t *b, bool *ret_calls)
{
    json_t *input = json_object_get(b, "input");

    if (is(b, "text") && member(b, "text").p)
        json_array_append_new(
            parts, json_pack("{s:s, s:O}", "type", "text", "text", json_object_get(b, "text")));
    if (!is(b, "tool_use") || !member(b, "id").p || !member(b, "name").p)
        return;
    *ret_calls = true;
    json_array_append_new(
        parts, json_pack("{s:s, s:O, s:O, s:o}", "type", "call", "id", json_object_get(b, "id"),
                         "name", json_object_get(b, "name"), "args",
                         json_is_object(input) ? json_incref(input) : json_object()));
}

static enum model_stop stop_of(struct str reason, bool calls)
{
    if (str_is(reason, "maxTokens"))
        return MODEL_LENGTH;
    return calls ? MODEL_CALLS : MODEL_DONE;
}

static void tell_reply(struct sampler_call *c, const json_t *result)
{
    const json_t *content = json_object_get(result, "content"), *b;
    const char *name = json_string_value(json_object_get(result, "model"));
    json_t *parts = json_array();
    bool calls = false;
    size_t i;

    if (json_is_object(content))
        take_block(parts, content, &calls);
    json_array_foreach(content, i, b)
        take_block(parts, b, &calls);
    const struct model_reply reply = {
        .parts = parts,
        .stop = stop_of(json_view(json_object_get(result, "stopReason")), calls),
        .name = name};
    c->watcher.on_end(c->arg, &reply, NULL);
    json_decref(parts);
}

static void call_free(struct sampler_call *c)
{
    json_decref(c->params);
    free(c);
}

/* What a person has refused is not asked again. */
static void tell_failure(struct sampler_call *c, const struct err *failed)
{
    struct model_failure f = {.trouble = MODEL_DENIED};

    err_set(&f.err, ERR_CALLER, "the client's model did not answer: %.400s", failed->text);
    c->watcher.on_end(c->arg, NULL, &f);
}

void sampler_answer(struct sampler *s, const json_t *result, const struct err *failed)
{
    struct sampler_call *c = take_ptr(&s->call);
    struct err e;

    if (!c)
        return;
    if (!failed && !json_is_object(json_object_get(result, "content")) &&
        !json_is_array(json_object_get(result, "content"))) {
        err_set(&e, ERR_CALLER, "its answer has no content");
        failed = &e;
    }
    if (failed)
        tell_failure(c, failed);
    else
        tell_reply(c, result);
    call_free(c);
}

/* --- as a model --- */

static struct model_call *sampler_ask(struct model *m, const struct model_ask *ask,
                                      const struct model_watcher *w, void *arg)
{
    struct sampler *s = (struct sampler *)m;
    struct sampler_call *c = mem_zalloc(sizeof(*c));

    assert(!s->call);
    *c = (struct sampler_call){.call = {.model = m}, .watcher = *w, .arg = arg};
    c->params = params_of(s, ask);
    s->call = c;
    s->on_question(s->arg);
    return &c->call;
}

static void sampler_cancel(struct model_call *call)
{
    struct sampler *s = (struct sampler *)call->model;

    s->call = NULL;
    call_free((struct sampler_call *)call);
}

static void sampler_is_owned(struct model *m)
{
    (void)m;
}

struct sampler *sampler_new(const struct call *c, loop_fn *on_question, void *arg)
{
    static const struct model_ops ops = {sampler_ask, sampler_cancel, sampler_is_owned};
    const json_t *has = json_object_get(c->client.capabilities, "sampling");
    struct sampler *s = mem_zalloc(sizeof(*s));

    s->tools = json_is_object(json_object_get(has, "tools"));
    s->model = (struct model){.ops = &ops,
                              .label = "the client's own model",
                              .sees_images = true,
                              .text_only = !s->tools};
    s->on_question = on_question;
    s->arg = arg;
    return s;
}

struct model *sampler_model(struct sampler *s)
{
    return &s->model;
}

json_t *sampler_question(struct sampler *s)
{
    return s->call ? s->call->params : NULL;
}

void sampler_free(struct sampler *s)
{
    if (s && s->call)
        call_free(s->call);
    free(s);
}
