/*
 * Questions to the client: its user, its model, its folders.
 *
 * In the legacy era a question is a request of ours on the call's stream, and the
 * answer comes as a message of its own. In the modern one the call ends with the
 * question, and the client repeats it with the answer.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ASKS_MAX 64 /* at a time, of one conversation */

struct ask {
    struct ask *next;
    struct conversation *conversation; /* borrowed */
    struct call *call;                 /* borrowed */
    char id[ID_MAX];
    struct timer *timer; /* owned */
    ask_fn *fn;
    void *arg;
};

/* --- legacy --- */

static struct ask **find(struct conversation *v, struct str id)
{
    struct ask **at = &v->asks;

    while (*at && !str_is(id, (*at)->id))
        at = &(*at)->next;
    return at;
}

static void ask_free(struct ask **at)
{
    struct ask *a = *at;

    *at = a->next;
    timer_free(a->timer);
    free(a);
}

void asks_forget(struct conversation *v, const struct call *c)
{
    for (struct ask **at = &v->asks; *at;)
        if (!c || (*at)->call == c)
            ask_free(at);
        else
            at = &(*at)->next;
}

/* Frees the question, and tells what came of it. */
static void settle(struct ask **at, json_t *result, const struct err *failed)
{
    ask_fn *fn = (*at)->fn;
    void *arg = (*at)->arg;

    ask_free(at);
    fn(arg, result, failed);
}

static void on_late(void *arg)
{
    struct ask *a = arg;
    struct err e;

    err_set(&e, ERR_BUSY, "nobody answered within %d minutes", ASK_MS / 60000);
    settle(find(a->conversation, str_of(a->id)), NULL, &e);
}

void conversation_answer(struct conversation *v, json_t *message)
{
    struct ask **at = find(v, json_view(json_object_get(message, "id")));
    json_t *result = json_object_get(message, "result");
    const char *text =
        json_string_value(json_object_get(json_object_get(message, "error"), "message"));
    struct err e;

    if (!*at)
        return;
    if (json_is_object(result)) {
        settle(at, result, NULL);
        return;
    }
    err_set(&e, ERR_CALLER, "the client could not ask: %.300s", text ? text : "it gave no reason");
    settle(at, NULL, &e);
}

/* Takes params. */
static void ask_legacy(struct call *c, const char *method, json_t *params, ask_fn *fn, void *arg)
{
    struct conversation *v = c->conversation;
    struct ask *a = mem_zalloc(sizeof(*a));

    *a = (struct ask){.conversation = v, .call = c, .fn = fn, .arg = arg, .next = v->asks};
    id_make(a->id, "ask_");
    a->timer = timer_new(c->mcp->config.loop, on_late, a);
    timer_set(a->timer, ASK_MS);
    v->asks = a;
    c->peer->ops->send(c->peer, c,
                       json_pack("{s:s, s:s, s:s, s:o}", "jsonrpc", "2.0", "id", a->id, "method",
                                 method, "params", params));
}

void call_ask(struct call *c, const char *key, const char *method, json_t *params, ask_fn *fn,
              void *arg)
{
    (void)key;
    if (c->peer && c->conversation && !call_is_modern(c)) {
        ask_legacy(c, method, params, fn, arg);
        return;
    }
    json_decref(params);
    call_error(c, RPC_INTERNAL, NULL, "questions of the modern era are not there yet");
}
