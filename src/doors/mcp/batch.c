/*
 * Batches of version 2025-03-26: an array of messages, answered with one array.
 *
 * Each request of a batch is a call whose peer is a seat of the batch. The batch collects the
 * answers and sends them when the last seat has been answered.
 */
#include "doors/mcp/transport.h"

#include <stdlib.h>

struct rpc_batch {
    struct peer *outer; /* borrowed */
    json_t *answers;    /* owned: array */
    size_t open;        /* seats, and one while they are being filled */
};

struct seat {
    struct peer peer;
    struct rpc_batch *batch; /* counted */
};

#define SEAT(p) ((struct seat *)(void *)((char *)(p)-offsetof(struct seat, peer)))

/* --- a seat --- */

static void leave(struct rpc_batch *b)
{
    struct peer *p = b->outer;

    if (--b->open > 0)
        return;
    if (json_array_size(b->answers) > 0)
        p->ops->answer(p, 200, json_incref(b->answers));
    else
        p->ops->drop(p);
    json_decref(b->answers);
    free(b);
}

static void seat_send(struct peer *p, json_t *message)
{
    struct peer *outer = SEAT(p)->batch->outer;

    outer->ops->send(outer, message);
}

static void seat_answer(struct peer *p, int status, json_t *message)
{
    struct seat *s = SEAT(p);

    (void)status;
    json_array_append_new(s->batch->answers, message);
    leave(s->batch);
    free(s);
}

static void seat_drop(struct peer *p)
{
    struct seat *s = SEAT(p);

    leave(s->batch);
    free(s);
}

static size_t seat_waits(struct peer *p)
{
    struct peer *outer = SEAT(p)->batch->outer;

    return outer->ops->waits(outer);
}

static const struct peer_ops seat_ops = {
    .send = seat_send, .answer = seat_answer, .drop = seat_drop, .waits = seat_waits};

/* --- filling them --- */

static void refuse(struct rpc_batch *b, const json_t *message, const char *why)
{
    json_array_append_new(b->answers, rpc_error(message_id(message), RPC_INVALID, why, NULL));
}

static void serve(struct rpc_batch *b, struct conversation *v, const struct tool_set *tool_set,
                  const struct caller *who, const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    struct str method = json_view(json_object_get(message, "method"));
    struct seat *s;

    if (str_is(method, "initialize")) {
        refuse(b, message, "initialize comes alone, not in a batch");
        return;
    }
    if (conversation_call(v, id) || v->call_count >= CALLS_MAX) {
        refuse(b, message, "a request with this id is under way, or too many are");
        return;
    }
    s = mem_zalloc(sizeof(*s));
    *s = (struct seat){{&seat_ops}, b};
    b->open++;
    core_serve(call_new(v->mcp, tool_set, &s->peer, v, who, &v->client, id,
                        json_object_get(message, "params")),
               method);
}

const char *batch_refused(const struct conversation *v, const json_t *messages)
{
    if (!v->client.version || !(v->client.version->has & HAS_BATCH))
        return "batches are of protocol version 2025-03-26 only: send one message at a time";
    if (json_array_size(messages) == 0)
        return "the batch is empty";
    return json_array_size(messages) > BATCH_MAX ? "a batch has at most 100 messages" : NULL;
}

bool batch_serve(struct conversation *v, struct peer *p, const struct tool_set *tool_set,
                 const struct caller *who, const json_t *messages)
{
    struct rpc_batch *b = mem_zalloc(sizeof(*b));
    bool answered = false;
    const char *why;
    size_t i;
    json_t *one;

    *b = (struct rpc_batch){p, json_array(), 1};
    json_array_foreach(messages, i, one) {
        enum message_kind kind = core_take(v, one, &why);
        if (kind == MESSAGE_REQUEST)
            serve(b, v, tool_set, who, one);
        else if (kind == MESSAGE_BAD)
            refuse(b, one, why);
        answered |= kind == MESSAGE_REQUEST || kind == MESSAGE_BAD;
    }
    if (answered) {
        leave(b);
    } else {
        json_decref(b->answers);
        free(b);
    }
    return answered;
}
