/*
 * Questions to the client: to its user, to its model, about its folders.
 *
 * Legacy: a question is a request on the stream of the call, and the answer is a message of its
 * own. Modern: the call ends with the question, and the client repeats the call with the answer;
 * earlier answers travel in the signed requestState, so a handler can ask several questions one
 * after the other. In a task, tasks/get shows the question and tasks/update answers it.
 *
 * Each question ends in its timer, which passes on the answer or the failure. So the callback is
 * never called from inside call_ask().
 */
#include "doors/mcp/transport.h"

#include <stdio.h>
#include <stdlib.h>

struct client_question {
    struct client_question *next;
    struct call *call;   /* borrowed: owns us */
    char *key;           /* owned: of a task's question, else NULL */
    char id[ID_MAX];     /* of a request of ours, else "" */
    json_t *shown;       /* owned: a task's question as inputRequests has it, until answered */
    struct timer *timer; /* owned */
    json_t *answer;      /* owned, or NULL */
    struct err failed;   /* told when there is no answer */
    ask_fn *fn;
    void *arg;
};

/* --- life --- */

static void leave(struct client_question *a)
{
    struct client_question **at = &a->call->asks;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
}

static void ask_free(struct client_question *a)
{
    timer_free(a->timer);
    json_decref(a->shown);
    json_decref(a->answer);
    free(a->key);
    free(a);
}

static void on_end(void *arg)
{
    struct client_question *a = arg;
    ask_fn *fn = a->fn;
    void *fn_arg = a->arg;
    json_t *answer = take_ptr(&a->answer);
    struct err failed = a->failed;

    leave(a);
    ask_free(a);
    fn(fn_arg, answer, answer ? NULL : &failed);
    json_decref(answer);
}

static struct client_question *ask_new(struct call *c, ask_fn *fn, void *arg, uint64_t ms)
{
    struct client_question *a = mem_zalloc(sizeof(*a));

    *a = (struct client_question){.call = c, .fn = fn, .arg = arg, .next = c->asks};
    err_set(&a->failed, ERR_BUSY, "nobody answered within %d minutes", (int)(ms / 60000));
    a->timer = timer_new(c->mcp->config.loop, on_end, a);
    timer_set(a->timer, ms);
    c->asks = a;
    return a;
}

static void tell(struct client_question *a, const json_t *answer)
{
    json_decref(take_ptr(&a->shown));
    a->answer = json_incref((json_t *)answer);
    timer_set(a->timer, 0);
}

void asks_forget(struct call *c)
{
    for (struct client_question *a = take_ptr(&c->asks), *next; a; a = next) {
        next = a->next;
        ask_free(a);
    }
}

void asks_fail(struct call *c)
{
    for (struct client_question *a = c->asks; a; a = a->next) {
        err_set(&a->failed, ERR_CALLER, "the call was cancelled");
        tell(a, NULL);
    }
}

/* --- who can be asked --- */

static const struct {
    const char *method, *capability;
} kinds[] = {
    {"elicitation/create",     "elicitation"},
    {"sampling/createMessage", "sampling"   },
    {"roots/list",             "roots"      },
};

/* A client that names no mode has forms. */
static bool can_elicit(const json_t *has, const json_t *params)
{
    const char *mode = json_string_value(json_object_get(params, "mode"));
    bool url = mode && strcmp(mode, "url") == 0;

    if (url)
        return json_is_object(json_object_get(has, "url"));
    return json_is_object(json_object_get(has, "form")) || !json_object_get(has, "url");
}

bool call_can_ask(const struct call *c, const char *method, const json_t *params)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (strcmp(method, kinds[i].method) != 0)
            continue;
        if (!call_can(c, kinds[i].capability))
            return false;
        return i > 0 || can_elicit(json_object_get(c->client.capabilities, "elicitation"), params);
    }
    assert(!"a question of no kind we know");
    return false;
}

/* --- legacy --- */

static size_t count(const struct conversation *v)
{
    size_t n = 0;

    for (const struct call *c = v->calls; c; c = c->next)
        for (const struct client_question *a = c->asks; a; a = a->next)
            n++;
    return n;
}

static struct client_question *find(const struct conversation *v, struct str id)
{
    for (const struct call *c = v->calls; c; c = c->next)
        for (struct client_question *a = c->asks; a; a = a->next)
            if (a->id[0] && str_is(id, a->id))
                return a;
    return NULL;
}

void conversation_answer(struct conversation *v, const json_t *message)
{
    struct client_question *a = find(v, json_view(json_object_get(message, "id")));
    json_t *result = json_object_get(message, "result");
    struct str text = json_view(json_object_get(json_object_get(message, "error"), "message"));
    char shown[NAME_SHOWN];

    if (!a)
        return;
    a->id[0] = '\0'; /* one answer is enough */
    if (json_is_object(result)) {
        tell(a, result);
        return;
    }
    err_set(&a->failed, ERR_CALLER, "the client could not ask: %s",
            text.n ? name_show(shown, text) : "it gave no reason");
    tell(a, NULL);
}

/* Takes params. */
static void ask_legacy(struct call *c, const char *method, json_t *params, ask_fn *fn, void *arg)
{
    struct client_question *a = ask_new(c, fn, arg, ASK_MS);

    id_make(a->id, "ask_");
    c->peer->ops->send(c->peer, json_pack("{s:s, s:s, s:s, s:o}", "jsonrpc", "2.0", "id", a->id,
                                          "method", method, "params", params));
}

/* --- in a task --- */

/* Takes params. */
static void ask_in_task(struct call *c, const char *key, const char *method, json_t *params,
                        ask_fn *fn, void *arg)
{
    struct client_question *a = ask_new(c, fn, arg, TASK_ASK_MS);

    a->key = mem_strdup(key);
    a->shown = json_pack("{s:s, s:o}", "method", method, "params", params);
}

json_t *asks_show(const struct call *c)
{
    json_t *shown = json_object();

    for (const struct client_question *a = c->asks; a; a = a->next)
        if (a->shown)
            json_object_set(shown, a->key, a->shown);
    return shown;
}

void asks_answer(struct call *c, const json_t *responses)
{
    for (struct client_question *a = c->asks; a; a = a->next) {
        const json_t *answer = a->shown ? json_object_get(responses, a->key) : NULL;
        if (answer)
            tell(a, answer);
    }
}

/* --- modern --- */

bool input_is_good(const json_t *responses)
{
    const char *key;
    json_t *v;

    if (!json_is_object(responses))
        return false;
    json_object_foreach((json_t *)responses, key, v)
        if (!json_is_object(v))
            return false;
    return true;
}

/* What was answered before, and what is answered now of what was asked. */
static void put_answers(struct call *c, const json_t *carried, const json_t *responses)
{
    json_t *key;
    size_t i;

    c->answers = json_incref(json_object_get(carried, "answers"));
    c->state = json_incref(json_object_get(carried, "own"));
    json_array_foreach(json_object_get(carried, "asked"), i, key) {
        json_t *v = json_object_get(responses, json_string_value(key));
        if (v)
            json_object_set(c->answers, json_string_value(key), v);
    }
}

bool call_read_input(struct call *c)
{
    const json_t *responses = json_object_get(c->params, "inputResponses");
    const json_t *state = json_object_get(c->params, "requestState");
    json_t *carried = NULL;
    struct err e;

    if (responses && !input_is_good(responses)) {
        call_error(c, RPC_PARAMS, NULL, "inputResponses must be an object of objects");
        return false;
    }
    if (!state)
        return true;
    if (state_open(c, json_view(state), &carried, &e) < 0) {
        call_error(c, RPC_PARAMS, NULL, "%s", e.text);
        return false;
    }
    put_answers(c, carried, responses);
    json_decref(carried);
    return true;
}

json_t *call_input(const struct call *c, const char *key)
{
    return json_object_get(json_object_get(c->params, "inputResponses"), key);
}

json_t *call_state(const struct call *c)
{
    return c->state;
}

/* Takes requests and state. */
static void ask_all(struct call *c, json_t *requests, json_t *state, bool repeats)
{
    AUTO_FREE char *text = NULL;
    json_t *carried, *asked = json_array(), *v;
    const char *key;

    assert(!c->task);
    json_object_foreach(requests, key, v)
        json_array_append_new(asked, json_string(key));
    if (!c->answers)
        c->answers = json_object();
    carried = json_pack("{s:o, s:O, s:o*, s:b}", "asked", asked, "answers", c->answers, "own",
                        state, "repeats", repeats);
    text = state_sign(c, carried);
    json_decref(carried);
    if (!text) {
        json_decref(requests);
        call_error(c, RPC_PARAMS, NULL, "the answers are too long to ask further: %zu KiB at most",
                   STATE_MAX / KiB);
        return;
    }
    call_result(c, json_pack("{s:s, s:o, s:s}", "resultType", "input_required", "inputRequests",
                             requests, "requestState", text));
}

void call_ask_all(struct call *c, json_t *requests, json_t *state)
{
    ask_all(c, requests, state, false);
}

void call_ask_again(struct call *c, json_t *requests, json_t *state)
{
    json_object_clear(c->answers);
    ask_all(c, requests, state, true);
}

/* --- the one way to ask --- */

/* Takes params. */
static void ask_modern(struct call *c, const char *key, const char *method, json_t *params)
{
    call_ask_all(c, json_pack("{s:{s:s, s:o}}", key, "method", method, "params", params), NULL);
}

static const char *why_not(const struct call *c, const char *method, const json_t *params)
{
    if (c->cancelled)
        return "the call was cancelled";
    if (!call_can_ask(c, method, params))
        return "the client cannot ask its user this";
    if (c->task || call_is_modern(c))
        return NULL;
    if (!c->peer || !c->conversation)
        return "the client has gone";
    return count(c->conversation) >= ASKS_MAX ? "too many questions are open" : NULL;
}

void call_ask(struct call *c, const char *key, const char *method, json_t *params, ask_fn *fn,
              void *arg)
{
    const char *why = why_not(c, method, params);
    const json_t *answer = json_object_get(c->answers, key);

    if (why || answer) {
        struct client_question *a = ask_new(c, fn, arg, 0);
        err_set(&a->failed, ERR_CALLER, "%s", why ? why : "");
        tell(a, why ? NULL : answer);
        json_decref(params);
    } else if (c->task) {
        ask_in_task(c, key, method, params, fn, arg);
    } else if (call_is_modern(c)) {
        ask_modern(c, key, method, params);
    } else {
        ask_legacy(c, method, params, fn, arg);
    }
}
