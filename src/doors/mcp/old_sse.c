/*
 * HTTP+SSE, the transport of 2024-11-05, beside every path of streamable HTTP.
 *
 * A client opens one stream of events with a GET at PATH/sse, or at PATH itself. The first event
 * says where messages go: POST PATH/sse?session_id=... answers 202 to each, and what is to be said
 * to the client comes on the stream. The conversation ends with its stream; nothing is resumed.
 *
 * Answers that a client does not read are limited: past WAITS_MAX bytes no more messages are taken.
 */
#include "doors/mcp/transport.h"

#include <stdio.h>

#define WAITS_MAX    (4 * MiB)
#define ENDPOINT_MAX 512

static void refuse(struct request *r, int status, int code, const char *text)
{
    answer_json(r, status, rpc_error(NULL, code, text, NULL));
}

/* --- GET --- */

/* It wants events and nothing else. One of streamable HTTP names its session or the protocol. */
bool is_old_sse(struct request *r)
{
    return !str_trim(request_header(r, "mcp-session-id")).n &&
           !str_trim(request_header(r, "mcp-protocol-version")).n &&
           str_is(str_trim(request_header(r, "accept")), "text/event-stream");
}

/* The path of the public URL comes first: a proxy may have taken it off. */
static void put_endpoint(const struct mcp *m, const char *path, const char *id,
                         char ret[ENDPOINT_MAX])
{
    const char *url = m->config.public_url, *host = url ? strstr(url, "://") : NULL;
    const char *prefix = host ? strchr(host + 3, '/') : NULL;
    size_t n = prefix ? strlen(prefix) : 0;

    while (n > 0 && prefix[n - 1] == '/')
        n--;
    snprintf(ret, ENDPOINT_MAX, "%.*s%s?session_id=%s", (int)n, prefix ? prefix : "", path, id);
}

static void on_gone(void *arg)
{
    struct conversation *v = arg;

    streams_leave(v->streams);
    conversation_free(v);
}

void handle_old_sse(struct request *r)
{
    struct mcp *m = request_ctx(r);
    char endpoint[ENDPOINT_MAX];
    struct conversation *v;

    if (request_is_head(r)) {
        answer_text(r, 200, "text/event-stream", STR(""));
        return;
    }
    if (m->draining) {
        refuse(r, 503, RPC_INTERNAL, "the server is about to end");
        return;
    }
    v = conversation_new(m, request_caller(r));
    if (!v) {
        refuse(r, 503, RPC_INTERNAL,
               "there are as many sessions as there may be, and all are in use: end one");
        return;
    }
    v->has_one_stream = true;
    v->streams = streams_new(v);
    put_endpoint(m, m->sse_path, v->id, endpoint);
    streams_begin(v->streams, r, endpoint);
    request_on_gone(r, on_gone, v);
}

/* --- POST --- */

/* NULL when it has answered. */
static struct conversation *find(struct request *r)
{
    struct conversation *v =
        conversation_find(request_ctx(r), request_query(r, "session_id"), request_caller(r));

    if (!v || !v->has_one_stream || !streams_are_open(v->streams)) {
        refuse(r, 404, RPC_INVALID,
               "session_id names no stream that is open: open one with a GET: it says where "
               "messages go");
        return NULL;
    }
    if (streams_wait(v->streams) <= WAITS_MAX && v->call_count < CALLS_MAX)
        return v;
    refuse(r, 429, RPC_INTERNAL,
           "too much is under way or unread: read the stream, then send the message again");
    return NULL;
}

static void take_request(struct conversation *v, struct request *r, const json_t *message)
{
    struct str method = json_view(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id");
    json_t *params = json_object_get(message, "params");
    struct client client;

    conversation_client(v, method, params, &client);
    core_serve(
        call_new(v->mcp, v->mcp->tool_set, v->aside, v, request_caller(r), &client, id, params),
        method);
}

static void take_message(struct conversation *v, struct request *r, const json_t *message)
{
    const char *why = NULL;

    if (json_is_array(message)) {
        why = batch_refused(v, message);
        if (!why)
            batch_serve(v, v->aside, v->mcp->tool_set, request_caller(r), message);
    } else if (core_take(v, message, &why) == MESSAGE_REQUEST) {
        if (conversation_call(v, json_object_get(message, "id")))
            why = "a request with this id is still under way";
        else
            take_request(v, r, message);
    }
    if (why)
        refuse(r, 400, RPC_INVALID, why);
    else
        answer_empty(r, 202);
}

void handle_old_post(struct request *r)
{
    struct mcp *m = request_ctx(r);
    struct conversation *v = find(r);
    json_t *message;
    struct err e;

    if (!v)
        return;
    if (request_value(r, &message, &e) < 0) {
        refuse(r, 400, RPC_PARSE, e.text);
        return;
    }
    m->request = r;
    take_message(v, r, message);
    m->request = NULL;
    json_decref(message);
}
