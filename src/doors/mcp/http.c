/*
 * Streamable HTTP: one address, in both eras.
 *
 * Theory of operation: the body decides which era a POST is of, and the headers are
 * held against it; all that can be refused with a status of HTTP is refused before a
 * handler runs. The answer is JSON, unless the handler says something before it ends:
 * then it is a stream of events, whose last is the response.
 *
 * Modern: a client that closes the connection cancels its call. Legacy: it does not,
 * the call goes on, and what it says is kept for a while; the client comes back with
 * GET and the id of the last event it has.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

/* The answer of one POST. */
struct post {
    struct peer peer;
    struct mcp *mcp;         /* borrowed */
    struct request *request; /* borrowed; NULL when it is over */
    struct call *call;       /* borrowed; NULL when it has ended */
    bool modern;
    bool streaming;
};

#define POST(p) ((struct post *)(void *)((char *)(p) - offsetof(struct post, peer)))

/* --- messages to the client --- */

/* Takes message. */
static void put_event(struct post *t, json_t *message)
{
    AUTO_FREE char *text = record_dump(message, true, NULL);
    struct buf out;
    struct err e;

    buf_init(&out, 2 * GiB);
    if (text && buf_printf(&out, &e, "event: message\ndata: %s\n\n", text) == 0)
        answer_stream_put(t->request, buf_str(&out));
    buf_done(&out);
    json_decref(message);
}

static void open_stream(struct post *t)
{
    if (t->streaming)
        return;
    t->streaming = true;
    answer_header(t->request, "cache-control", "no-cache");
    answer_header(t->request, "x-accel-buffering", "no");
    answer_stream(t->request, 200, "text/event-stream", STR(": keep-alive\n\n"));
}

static void post_send(struct peer *p, struct call *c, json_t *message)
{
    struct post *t = POST(p);

    (void)c;
    if (!t->request) {
        json_decref(message);
        return;
    }
    open_stream(t);
    put_event(t, message);
}

/* Nothing follows. */
static void finish(struct post *t)
{
    t->call = NULL;
    t->request = NULL;
    free(t);
}

static void post_answer(struct peer *p, struct call *c, int status, json_t *message)
{
    struct post *t = POST(p);

    (void)c;
    if (t->request && t->streaming) {
        put_event(t, message);
        answer_stream_end(t->request);
    } else if (t->request) {
        answer_json(t->request, status, message);
    } else {
        json_decref(message);
    }
    finish(t);
}

static void post_drop(struct peer *p, struct call *c)
{
    struct post *t = POST(p);

    (void)c;
    if (t->request) {
        open_stream(t);
        answer_stream_end(t->request);
    }
    finish(t);
}

static size_t post_waits(struct peer *p)
{
    struct post *t = POST(p);

    return t->request && t->streaming ? answer_stream_put(t->request, STR("")) : 0;
}

static const struct peer_ops post_ops = {post_send, post_answer, post_drop, post_waits};

static void on_gone(void *arg)
{
    struct post *t = arg;
    struct request *r = take_ptr(&t->request);

    request_drop(r);
    if (t->modern && t->call)
        call_cancel(t->call);
}

/* --- refusals --- */

static void refuse(struct request *r, int status, const json_t *id, int code, const char *text)
{
    answer_json(r, status, rpc_error(id, code, text, NULL));
}

static struct str trimmed(struct request *r, const char *name)
{
    struct str s = request_header(r, name);

    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* --- which era --- */

static bool is_modern(struct request *r, struct str method, const json_t *meta)
{
    struct str header = trimmed(r, "mcp-protocol-version");
    const struct version *v = version_find(header);

    if (json_object_get(meta, META_VERSION) || str_is(method, "server/discover"))
        return true;
    if (str_is(method, "initialize"))
        return false;
    return (v && v->era == ERA_MODERN) ||
           (header.n && !v && !request_header(r, "mcp-session-id").p);
}

/* --- modern --- */

static bool check_modern(struct request *r, const json_t *message, struct client *ret)
{
    const json_t *id = json_object_get(message, "id");
    const json_t *params = json_object_get(message, "params");
    const json_t *meta = json_object_get(params, "_meta");
    struct str header = trimmed(r, "mcp-protocol-version");
    struct str said = json_view(json_object_get(meta, META_VERSION));
    struct str method = json_view(json_object_get(message, "method"));

    if (!header.p) {
        refuse(r, 400, id, RPC_HEADER, "the header MCP-Protocol-Version is missing");
        return false;
    }
    ret->capabilities = json_object_get(meta, META_CLIENT);
    if (!said.p || !json_is_object(ret->capabilities)) {
        refuse(r, 400, id, RPC_PARAMS,
               "params._meta must have " META_VERSION " and " META_CLIENT);
        return false;
    }
    if (!str_eq(said, header)) {
        refuse(r, 400, id, RPC_HEADER, "MCP-Protocol-Version and params._meta differ");
        return false;
    }
    ret->version = version_find(said);
    if (!ret->version || ret->version->era != ERA_MODERN) {
        answer_json(r, 400,
                    rpc_error(id, RPC_VERSION, "this version of the protocol is not served",
                              json_pack("{s:o, s:o}", "supported", versions_list(), "requested",
                                        record_text(said))));
        return false;
    }
    if (!str_eq(trimmed(r, "mcp-method"), method)) {
        refuse(r, 400, id, RPC_HEADER, "Mcp-Method and the method differ");
        return false;
    }
    ret->log_level = log_level_find(json_view(json_object_get(meta, META_LOG)));
    return true;
}

/* --- legacy --- */

static struct conversation *begin(struct request *r, const json_t *message, struct client *ret)
{
    const json_t *params = json_object_get(message, "params");
    struct mcp *m = request_ctx(r);
    const struct version *v = version_find(json_view(json_object_get(params, "protocolVersion")));
    struct conversation *made = conversation_new(m, request_caller(r));

    ret->version = v && v->era == ERA_LEGACY && !(v->has & HAS_STDIO_ONLY)
                       ? v
                       : version_newest(ERA_LEGACY);
    ret->log_level = -1;
    if (made)
        answer_header(r, "mcp-session-id", made->id);
    else
        refuse(r, 503, json_object_get(message, "id"), RPC_INTERNAL,
               "the server has as many sessions as it may: try again later");
    return made;
}

static struct conversation *resume(struct request *r, const json_t *id, struct client *ret)
{
    struct str session = trimmed(r, "mcp-session-id"), header = trimmed(r, "mcp-protocol-version");
    struct conversation *v;

    if (!session.n) {
        refuse(r, 400, id, RPC_INVALID, "the header Mcp-Session-Id is missing: initialize first");
        return NULL;
    }
    v = conversation_find(request_ctx(r), session, request_caller(r));
    if (!v) {
        refuse(r, 404, id, RPC_INVALID, "there is no such session: initialize again");
        return NULL;
    }
    if (header.n && (!version_find(header) || version_find(header)->era != ERA_LEGACY)) {
        refuse(r, 400, id, RPC_INVALID, "this MCP-Protocol-Version is not served");
        return NULL;
    }
    *ret = v->client;
    return v;
}

/* --- a request --- */

static bool id_is_good(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_TEXT_MAX);
}

static void serve(struct request *r, const json_t *message, struct conversation *v,
                  const struct client *client)
{
    struct mcp *m = request_ctx(r);
    const json_t *id = json_object_get(message, "id");
    struct post *t = mem_zalloc(sizeof(*t));

    *t = (struct post){.peer = {&post_ops}, .mcp = m, .request = r};
    t->modern = client->version->era == ERA_MODERN;
    t->call = call_new(m, m->face, &t->peer, v, request_caller(r), client, id,
                       json_object_get(message, "params"));
    request_on_gone(r, on_gone, t);
    core_serve(t->call, json_view(json_object_get(message, "method")));
}

static void take_request(struct request *r, const json_t *message)
{
    struct str method = json_view(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id");
    const json_t *params = json_object_get(message, "params");
    struct conversation *v = NULL;
    struct client client = {0};

    if (!id_is_good(id) || (params && !json_is_object(params))) {
        refuse(r, 400, NULL, RPC_INVALID, "id must be a string or an integer, params an object");
        return;
    }
    if (is_modern(r, method, json_object_get(params, "_meta"))) {
        if (!check_modern(r, message, &client))
            return;
    } else {
        v = str_is(method, "initialize") ? begin(r, message, &client) : resume(r, id, &client);
        if (!v)
            return;
        if (conversation_call(v, id) || v->call_count >= CALLS_MAX) {
            refuse(r, 400, id, RPC_INVALID, "a request with this id is under way, or too many are");
            return;
        }
    }
    serve(r, message, v, &client);
}

/* A notification, or a response to a question of ours. */
static void take_other(struct request *r, json_t *message)
{
    struct str session = trimmed(r, "mcp-session-id");
    struct conversation *v = conversation_find(request_ctx(r), session, request_caller(r));
    struct str method = json_view(json_object_get(message, "method"));

    if (v && method.p)
        core_notified(v, method, json_object_get(message, "params"));
    else if (v)
        conversation_answer(v, message);
    answer_empty(r, 202);
}

static void handle_post(struct request *r)
{
    json_t *message;
    struct err e;

    if (json_read_any(request_body(r), &message, &e) < 0) {
        refuse(r, 400, NULL, RPC_PARSE, e.text);
        return;
    }
    if (!json_is_object(message) ||
        !str_is(json_view(json_object_get(message, "jsonrpc")), "2.0"))
        refuse(r, 400, NULL, RPC_INVALID, "a message is an object with \"jsonrpc\": \"2.0\"");
    else if (json_object_get(message, "id") && json_is_string(json_object_get(message, "method")))
        take_request(r, message);
    else
        take_other(r, message);
    json_decref(message);
}

static void handle_get(struct request *r)
{
    answer_header(r, "allow", "POST, DELETE");
    refuse(r, 405, NULL, RPC_INVALID, "there is no stream here");
}

static void handle_delete(struct request *r)
{
    struct client client;
    struct conversation *v = resume(r, NULL, &client);

    if (!v)
        return;
    conversation_free(v);
    answer_empty(r, 204);
}

/* --- the table --- */

static const struct route routes[] = {
    {.method = HTTP_POST,
     .path = "/mcp",
     .id = "mcp",
     .flags = ROUTE_HIDDEN,
     .body_kind = BODY_BYTES,
     .body_max = MESSAGE_MAX,
     .status = 200,
     .handle = handle_post  },
    {.method = HTTP_GET,
     .path = "/mcp",
     .id = "mcp_stream",
     .flags = ROUTE_HIDDEN,
     .status = 200,
     .handle = handle_get   },
    {.method = HTTP_DELETE,
     .path = "/mcp",
     .id = "mcp_end",
     .flags = ROUTE_HIDDEN,
     .status = 204,
     .handle = handle_delete},
};

void mcp_door_init(struct door *ret, struct mcp *m)
{
    *ret = (struct door){
        .name = "mcp", .routes = routes, .route_count = COUNT(routes), .ctx = m};
}
