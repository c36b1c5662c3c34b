/*
 * An agent call: a tools/call of an MCP client that the agent works on, up to its result.
 *
 * Theory of operation: the execution may ask the client's model or the client's user. In
 * the legacy era the question goes out on the call's stream, and the call waits. In the
 * modern era the call ends with the question, and the agent call stays without a call
 * until the client calls again with the answer; the signed requestState names the agent
 * call and the question. The answer to the last question may come twice, because a client
 * may have missed the reply: the client gets the same reply again. Older answers are
 * refused. A timer ends an agent call whose client does not come back.
 */
#include "doors/mcp/agent_call.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 200
#define ENDED_MAX  64 /* ended calls that are kept, in case the last answer comes again */

struct agent_call {
    struct agent_call *next, **link;
    struct agent_backend *b; /* borrowed */
    struct service *sv;      /* borrowed */
    struct caller caller;
    struct call *c;            /* held; NULL: no call waits for this run now */
    char key[ID_MAX];          /* its name in a requestState */
    char id[ID_MAX];           /* of the execution; "" until it has one */
    char *base_url;            /* owned: of links, as the first call has it; or NULL */
    struct sampler *sampler;   /* owned, or NULL */
    struct agent_watch *watch; /* owned, or NULL */
    struct timer *clock;       /* owned */
    const char *method;        /* static: of the question, or NULL: there is none */
    json_t *params;            /* owned: of the question */
    uint64_t asked, answered; /* numbers of the last question, and of the last that has an answer */
    json_t *draft, *result;   /* owned: the result, before and after images are added; or NULL */
    json_t *record;           /* owned: of the agent, once its run has ended; or NULL */
    size_t file_at, images, image_sum; /* of the record's files, shown, bytes shown */
    double progress;
    bool stays;   /* modern era: kept after its end, for a client that asks again */
    bool can_ask; /* the client's user can be asked */
    bool unwanted;
};

static void agent_call_free(struct agent_call *ac)
{
    agent_watch_free(ac->watch);
    sampler_free(ac->sampler);
    timer_free(ac->clock);
    json_decref(ac->params);
    json_decref(ac->draft);
    json_decref(ac->result);
    json_decref(ac->record);
    free(ac->base_url);
    *ac->link = ac->next;
    if (ac->next)
        ac->next->link = ac->link;
    free(ac);
}

/* --- the call that waits --- */

static void on_nothing(void *arg, const json_t *record, const struct err *failed)
{
    (void)arg, (void)record, (void)failed;
}

/* No client wants the result: the run is cancelled, and its end frees ac. */
static void abandon(struct agent_call *ac)
{
    struct err err;
    struct agent *a;

    ac->unwanted = true;
    if (ac->result) {
        agent_call_free(ac);
        return;
    }
    if (*ac->id && (a = ac->b->agent(ac->b->ctx, &err)))
        agent_cancel(a, &ac->caller, str_of(ac->id), true, on_nothing, NULL);
}

static void on_clock(void *arg)
{
    struct agent_call *ac = arg;

    if (!ac->c)
        abandon(ac);
}

static void on_cancel(void *arg)
{
    struct agent_call *ac = arg;
    struct call *c = take_ptr(&ac->c);

    abandon(ac);
    call_drop(c);
}

static void attach(struct agent_call *ac, struct call *c)
{
    ac->c = c;
    timer_clear(ac->clock);
    call_on_cancel(c, on_cancel, ac);
}

/* The caller ends the call. */
static struct call *detach(struct agent_call *ac)
{
    struct call *c = take_ptr(&ac->c);

    call_on_cancel(c, NULL, NULL);
    timer_set(ac->clock, STATE_MS);
    return c;
}

/* Drops the agent call that ended longest ago: its client has most likely got the result. */
static void trim(struct agent_backend *b)
{
    struct agent_call *oldest = NULL;
    size_t count = 0;

    for (struct agent_call *ac = b->calls; ac; ac = ac->next)
        if (ac->result && !ac->c) {
            oldest = ac;
            count++;
        }
    if (count > ENDED_MAX)
        agent_call_free(oldest);
}

static void tell_result(struct agent_call *ac)
{
    struct agent_backend *b = ac->b;
    struct call *c;
    json_t *result = json_incref(ac->result);

    if (!ac->c) {
        json_decref(result);
        if (ac->unwanted || !ac->stays)
            agent_call_free(ac);
        return;
    }
    c = detach(ac);
    if (!ac->stays)
        agent_call_free(ac);
    trim(b);
    call_result(c, result);
}

/* --- questions --- */

static const char *question_key(const struct agent_call *ac)
{
    return strcmp(ac->method, "sampling/createMessage") == 0 ? "llm" : "user";
}

static void on_answer(void *arg, json_t *result, const struct err *failed);

static void tell_question(struct agent_call *ac)
{
    json_t *requests;

    if (!ac->c)
        return;
    if (!call_is_modern(ac->c)) {
        asks_forget(ac->c); /* a late answer to an older question must not count for this one */
        call_ask(ac->c, question_key(ac), ac->method, json_incref(ac->params), on_answer, ac);
        return;
    }
    requests =
        json_pack("{s:{s:s, s:O}}", question_key(ac), "method", ac->method, "params", ac->params);
    call_ask_again(
        detach(ac), requests,
        json_pack("{s:s, s:I}", "agent_call", ac->key, "question", (json_int_t)ac->asked));
}

/* Takes params. */
static void ask(struct agent_call *ac, const char *method, json_t *params)
{
    json_decref(ac->params);
    ac->params = params;
    ac->method = method;
    ac->asked++;
    tell_question(ac);
}

static void on_model_asks(void *arg)
{
    struct agent_call *ac = arg;

    ask(ac, "sampling/createMessage", json_incref(sampler_question(ac->sampler)));
}

/* Passes the user's answer to the agent. */
static void provide(struct agent_call *ac, const json_t *result)
{
    const json_t *content = json_object_get(result, "content");
    bool accepts = str_is(json_view(json_object_get(result, "action")), "accept");
    struct str text = json_view(json_object_get(content, "answer"));
    struct err err;
    struct agent *a = ac->b->agent(ac->b->ctx, &err);

    if (!accepts || json_is_false(json_object_get(content, "approve")))
        text = STR("no");
    else if (json_is_true(json_object_get(content, "approve")))
        text = STR("yes");
    if (a)
        agent_provide(a, &ac->caller, str_of(ac->id), text, on_nothing, NULL);
}

static void on_answer(void *arg, json_t *result, const struct err *failed)
{
    struct agent_call *ac = arg;
    bool of_model = ac->method && strcmp(ac->method, "sampling/createMessage") == 0;

    if (!ac->method)
        return;
    ac->answered = ac->asked;
    ac->method = NULL;
    json_decref(take_ptr(&ac->params));
    if (of_model)
        sampler_answer(ac->sampler, result, failed);
    else
        provide(ac, result);
}

/* An approval is yes or no; anything else is a text. */
static json_t *form_of(const json_t *question)
{
    bool approval = json_object_get(question, "approval") != NULL;
    const char *key = approval ? "approve" : "answer";
    json_t *field = json_pack("{s:s, s:s}", "type", approval ? "boolean" : "string", "title",
                              approval ? "Allow this to run?" : "Your answer");

    return json_pack("{s:O, s:{s:s, s:{s:o}, s:[s]}}", "message",
                     json_object_get(question, "prompt"), "requestedSchema", "type", "object",
                     "properties", key, field, "required", key);
}

/* --- progress --- */

static void say(struct agent_call *ac, struct str text)
{
    while (text.n > 0 && (unsigned char)text.p[text.n - 1] <= ' ')
        text.n--;
    for (size_t i = text.n; i > 0; i--)
        if (text.p[i - 1] == '\n') {
            text = (struct str){text.p + i, text.n - i};
            break;
        }
    text.n = text_head(text, LINE_BYTES);
    if (ac->c && text.n > 0)
        call_progress(ac->c, ++ac->progress, 0, text);
}

static void on_event(void *arg, const json_t *ev)
{
    struct agent_call *ac = arg;

    if (event_is(ev, "phase"))
        say(ac, event_text(ev, "message"));
    else if (event_is(ev, "console"))
        say(ac, event_text(ev, "text"));
    else if (event_is(ev, "question") && ac->can_ask && json_object_get(ev, "prompt"))
        ask(ac, "elicitation/create", form_of(ev));
}

/* --- images: a client over standard output can follow no link, and a model sees none --- */

static void next_image(struct agent_call *ac);

/* The text of the result names an image that cannot be shown, too. */
static void on_image(void *arg, char **bytes, size_t n, const struct space_file *file,
                     const struct err *failed)
{
    struct agent_call *ac = arg;
    json_t *base64;

    if (!failed && file->size < PICTURE_BYTES) {
        base64 = record_base64((struct str){*bytes, n});
        (void)figure_put(json_object_get(ac->draft, "content"), &ac->image_sum, json_view(base64));
        json_decref(base64);
    }
    next_image(ac);
}

static void next_image(struct agent_call *ac)
{
    const json_t *files = json_object_get(ac->record, "files"), *file;

    do
        file = json_array_get(files, ac->file_at++);
    while (file && !json_is_true(json_object_get(file, "image")));
    if (file && ac->images++ < PICTURES_MAX) {
        service_space_read(
            ac->sv, &ac->caller, json_view(json_object_get(ac->record, "sandbox_id")),
            json_view(json_object_get(file, "path")), 0, PICTURE_BYTES, on_image, ac);
        return;
    }
    ac->result = take_ptr(&ac->draft);
    tell_result(ac);
}

/* --- the end --- */

static void on_outputs(void *arg, const json_t *outputs, const json_t *record,
                       const struct err *failed)
{
    struct agent_call *ac = arg;
    struct tool_content t;

    if (!failed) {
        ac->draft = agent_tool_result(outputs, !ac->c || call_has_structured(ac->c));
        ac->record = json_incref((json_t *)record);
        next_image(ac);
        return;
    }
    content_init(&t);
    content_printf(&t, "The result cannot be read: %s",
                   failed->kind == ERR_HOST ? "an error of the server" : failed->text);
    ac->result = content_result(&t, true);
    content_done(&t);
    tell_result(ac);
}

static void on_end(void *arg, const json_t *record, const struct err *failed)
{
    struct agent_call *ac = arg;

    (void)record;
    agent_watch_free(take_ptr(&ac->watch));
    if (!failed || failed->kind == ERR_MISSING) { /* or the agent was not started */
        ac->b->outputs(ac->b->ctx, ac->sv, &ac->caller, ac->id, ac->base_url, on_outputs, ac);
        return;
    }
    /* The server stops. The agent may still ask the sampler, which stays until the agent is freed.
     */
    ac->unwanted = true;
    if (ac->c)
        tool_refuse(detach(ac), failed);
    timer_clear(ac->clock);
}

static void on_started(void *arg, const char *id, const struct err *failed)
{
    static const struct agent_watcher watcher = {on_event, on_end};
    struct agent_call *ac = arg;
    struct err err;
    struct agent *a;
    struct call *c;

    if (failed) {
        c = ac->c ? detach(ac) : NULL;
        agent_call_free(ac);
        if (c)
            tool_refuse(c, failed);
        return;
    }
    snprintf(ac->id, sizeof(ac->id), "%s", id);
    a = ac->b->agent(ac->b->ctx, &err);
    assert(a); /* it has just started this execution */
    ac->watch = agent_watch(a, &ac->caller, str_of(id), 0, &watcher, ac);
    if (ac->unwanted)
        abandon(ac);
}

/* --- starting, and calling again --- */

void agent_call_start(struct call *c, const char *tool, bool needs_model, json_t *args)
{
    struct agent_backend *b = c->tool_set->ctx;
    struct service *sv = call_service(c);
    struct agent_call *ac;

    if (!sv)
        return;
    ac = mem_zalloc(sizeof(*ac));
    *ac = (struct agent_call){.b = b,
                              .sv = sv,
                              .caller = c->caller,
                              .stays = call_is_modern(c),
                              .can_ask = call_can_ask(c, "elicitation/create", NULL),
                              .next = b->calls,
                              .link = &b->calls};
    if (call_base_url(c))
        ac->base_url = mem_strdup(call_base_url(c));
    if (ac->next)
        ac->next->link = &ac->next;
    b->calls = ac;
    id_make(ac->key, "call_");
    ac->clock = timer_new(b->loop, on_clock, ac);
    attach(ac, c);
    if (needs_model && call_can(c, "sampling"))
        ac->sampler = sampler_new(c, on_model_asks, ac);
    const struct agent_request q = {.service = sv,
                                    .caller = &ac->caller,
                                    .tool = tool,
                                    .inputs = args,
                                    .own = ac->sampler ? sampler_model(ac->sampler) : NULL,
                                    .can_answer = ac->can_ask};
    b->start(b->ctx, &q, on_started, ac);
}

static struct agent_call *find(struct agent_backend *b, struct str key, const struct caller *caller)
{
    for (struct agent_call *ac = b->calls; ac; ac = ac->next)
        if (str_is(key, ac->key) && strcmp(ac->caller.tenant, caller->tenant) == 0 && !ac->unwanted)
            return ac;
    return NULL;
}

/* An earlier call that still waits is refused: c gets the answer. */
static void take_over(struct agent_call *ac, struct call *c)
{
    if (ac->c)
        call_error(detach(ac), RPC_PARAMS, NULL, "the same call has come again, and is answered");
    attach(ac, c);
}

bool agent_call_resume(struct call *c)
{
    const json_t *state = call_state(c);
    struct agent_call *ac =
        state ? find(c->tool_set->ctx, json_view(json_object_get(state, "agent_call")), &c->caller)
              : NULL;
    uint64_t number = (uint64_t)json_integer_value(json_object_get(state, "question"));
    json_t *answer;

    if (!state)
        return false;
    if (!ac || (number != ac->asked && number != ac->answered)) {
        call_error(c, RPC_PARAMS, NULL,
                   "requestState was used before, or is of a call that is over: make the call "
                   "again without it and without inputResponses");
        return true;
    }
    take_over(ac, c);
    if (ac->result) {
        tell_result(ac);
        return true;
    }
    if (number != ac->asked || !ac->method) { /* answered before, and there may be a new question */
        if (ac->method)
            tell_question(ac);
        return true;
    }
    answer = json_object_get(c->answers, question_key(ac));
    if (answer)
        on_answer(ac, answer, NULL);
    else
        tell_question(ac);
    return true;
}

void agent_calls_stop(struct agent_backend *b)
{
    for (struct agent_call *ac = b->calls; ac; ac = ac->next)
        agent_watch_free(take_ptr(&ac->watch));
}

void agent_calls_free(struct agent_backend *b)
{
    for (struct agent_call *ac = b->calls, *next; ac; ac = next) {
        next = ac->next;
        agent_call_free(ac);
    }
}
