/*
 * Streamable HTTP, in both eras, at one path.
 *
 * The body of a POST decides its era, and the headers are checked against the body. Everything that
 * has an HTTP status of its own is refused before a handler runs. streams.c writes the events
 * beside the answer. GET and DELETE are legacy: they open the stream of a conversation and end the
 * conversation. A GET without a session is a client of old_sse.c.
 */
#include "doors/mcp/transport.h"

#include <stdio.h>
#include <stdlib.h>

#define LATE_MS 2000 /* without an answer: proxies want to see something, clients an id */

/* --- refusals --- */

static void refuse(struct request *r, int status, const json_t *id, int code, const char *text)
{
    answer_json(r, status, rpc_error(id, code, text, NULL));
}

/* What is refused before a message is read, such as a wrong key. Clients tell their users the
 * message of a JSON-RPC error, which has an id: null where the request's is not known. */
static json_t *error_body(struct request *r, int status, const char *type, const char *param,
                          json_t *message)
{
    json_t *v = rpc_error(
        json_null(), status < 500 ? RPC_INVALID : RPC_INTERNAL, json_string_value(message),
        json_pack("{s:s, s:s}", "type", type, "request_id", request_caller(r)->request));

    (void)param; /* the message names it */
    json_decref(message);
    return v;
}

static struct str header(void *request, const char *name)
{
    return str_trim(request_header(request, name));
}

/* --- which era --- */

static bool is_modern_name(struct str version)
{
    const struct protocol_version *v = version_find(version);

    return v && v->era == ERA_MODERN;
}

/* Said twice, it must be said alike; initialize is of the other era whatever its headers say. A
 * version nobody knows is a modern client's, unless it has a session. */
static bool is_modern(struct request *r, struct str method, const json_t *meta)
{
    struct str version = header(r, "mcp-protocol-version");

    if (json_object_get(meta, META_VERSION) || str_is(method, "server/discover"))
        return true;
    if (str_is(method, "initialize"))
        return false;
    return is_modern_name(version) ||
           (version.n && !version_find(version) && !header(r, "mcp-session-id").n);
}

/* --- modern --- */

struct modern {
    struct request *r;
    const json_t *id, *params, *meta;
    struct str method, said; /* said: the version, in _meta */
    struct client *client;
};

static bool differ(struct modern *m, const char *text)
{
    refuse(m->r, 400, m->id, RPC_HEADER, text);
    return false;
}

static bool check_version(struct modern *m)
{
    struct str version = header(m->r, "mcp-protocol-version");

    if (!version.p)
        return differ(m, "the header MCP-Protocol-Version is missing");
    m->client->capabilities = json_object_get(m->meta, META_CLIENT);
    if (!m->said.p || !json_is_object(m->client->capabilities)) {
        refuse(m->r, 400, m->id, RPC_PARAMS,
               "params._meta must have " META_VERSION " and " META_CLIENT);
        return false;
    }
    if (!str_eq(m->said, version))
        return differ(m, "MCP-Protocol-Version and params._meta name different versions");
    m->client->version = version_find(version);
    if (is_modern_name(version))
        return true;
    answer_json(m->r, 400, rpc_bad_version(m->id, version));
    return false;
}

/* Mcp-Name is there when the parameter it repeats is, and says the same. */
static bool check_name(struct modern *m, const struct method *method)
{
    const json_t *v = method && method->named ? json_object_get(m->params, method->named) : NULL;
    struct str name = header(m->r, "mcp-name");

    if (!method || !method->named || (v && !json_is_string(v)))
        return true;
    if (!name.p && !v)
        return true; /* the method will say that it is missing */
    if (!name.p)
        return differ(m, "the header Mcp-Name is missing");
    return (v && header_says(name, v)) || differ(m, "Mcp-Name and the name in params differ");
}

static bool check_params(struct modern *m, const struct tool_set *tool_set)
{
    const struct tool *t = str_is(m->method, "tools/call")
                               ? tool_find(tool_set, json_view(json_object_get(m->params, "name")))
                               : NULL;
    const char *why =
        t ? headers_differ(t, json_object_get(m->params, "arguments"), header, m->r) : NULL;

    return !why || differ(m, why);
}

/* The order is the protocol's: the first that does not hold is told. */
static bool check_modern(struct request *r, const json_t *message, struct client *ret)
{
    const struct mcp *mcp = request_ctx(r);
    const json_t *params = json_object_get(message, "params");
    struct modern m = {.r = r, .id = json_object_get(message, "id"), .params = params};

    m.client = ret;
    m.meta = json_object_get(params, "_meta");
    m.method = json_view(json_object_get(message, "method"));
    m.said = json_view(json_object_get(m.meta, META_VERSION));
    if (!check_version(&m))
        return false;
    ret->log_level = log_level_find(json_view(json_object_get(m.meta, META_LOG)));
    if (!str_eq(header(r, "mcp-method"), m.method))
        return differ(&m, "Mcp-Method is missing, or not the method of the body");
    return check_name(&m, method_find(mcp, m.method, ERA_MODERN)) &&
           check_params(&m, mcp->tool_set);
}

/* --- legacy --- */

static struct conversation *begin(struct request *r, const json_t *message, struct client *ret)
{
    const json_t *id = json_object_get(message, "id");
    const json_t *params = json_object_get(message, "params");
    struct str asked = json_view(json_object_get(params, "protocolVersion"));
    const struct protocol_version *v = version_find(asked);
    struct conversation *made;

    if (is_modern_name(header(r, "mcp-protocol-version"))) {
        refuse(r, 400, id, RPC_HEADER, "MCP-Protocol-Version names one that has no initialize");
        return NULL;
    }
    if (!asked.p) {
        refuse(r, 200, id, RPC_PARAMS, "initialize needs a protocolVersion");
        return NULL;
    }
    made = conversation_new(request_ctx(r), request_caller(r));
    if (!made) {
        refuse(r, 503, id, RPC_INTERNAL,
               "there are as many sessions as there may be, and all are in use: end one");
        return NULL;
    }
    made->streams = streams_new(made);
    ret->version =
        v && v->era == ERA_LEGACY && !(v->has & HAS_STDIO_ONLY) ? v : version_newest(ERA_LEGACY);
    ret->log_level = -1;
    answer_header(r, "mcp-session-id", made->id);
    return made;
}

/* NULL when it has answered. */
static struct conversation *resume(struct request *r, const json_t *id)
{
    struct str session = header(r, "mcp-session-id");
    struct str version = header(r, "mcp-protocol-version");
    const struct protocol_version *known = version_find(version);
    struct conversation *v;

    if (!session.n) {
        refuse(r, 400, id, RPC_INVALID, "the header Mcp-Session-Id is missing: initialize first");
        return NULL;
    }
    v = conversation_find(request_ctx(r), session, request_caller(r));
    if (!v || v->has_one_stream) {
        refuse(r, 404, id, RPC_INVALID, "there is no such session: initialize again");
        return NULL;
    }
    if (version.n && (!known || known->era != ERA_LEGACY || (known->has & HAS_STDIO_ONLY))) {
        refuse(r, 400, id, RPC_INVALID, "this MCP-Protocol-Version is not served");
        return NULL;
    }
    return v;
}

/*
 * --- the answer of one POST ---
 *
 * JSON, unless a message has to be sent before the call ends or the call takes longer than LATE_MS.
 * Then it is a stream of events, and the response is the last of them.
 *
 * Modern: a client that disconnects cancels its call. Legacy: the call goes on, and a client that
 * has seen the id of an event can reconnect for the rest.
 */

struct post_peer {
    struct peer peer;
    struct streams *streams; /* borrowed; NULL: modern */
    struct request *request; /* held; NULL when the stream has it, or it has gone */
    struct sse_stream *sse;  /* owned; NULL: nothing was said yet */
    struct call *call;       /* borrowed; cancelled when a modern client goes */
    struct timer *timer;     /* owned, or NULL */
    bool plain;              /* the client reads no streams */
    bool primed;
};

#define POST(p) ((struct post_peer *)(void *)((char *)(p)-offsetof(struct post_peer, peer)))

static void post_free(struct post_peer *t)
{
    timer_free(t->timer);
    free(t);
}

static void open_stream(struct post_peer *t)
{
    t->sse = sse_new(t->streams);
    sse_open(t->sse, take_ptr(&t->request), t->primed);
}

/* A client that reads no streams does without notifications. A question has no other way. */
static void post_send(struct peer *p, json_t *message)
{
    struct post_peer *t = POST(p);

    if (!t->sse && (!t->request || (t->plain && !json_object_get(message, "id")))) {
        json_decref(message);
        return;
    }
    if (!t->sse)
        open_stream(t);
    sse_put(t->sse, message);
}

static void post_answer(struct peer *p, int status, json_t *message)
{
    struct post_peer *t = POST(p);

    if (t->sse) {
        sse_put(t->sse, message);
        sse_end(t->sse);
    } else if (t->request) {
        answer_json(t->request, status, message);
    } else {
        json_decref(message);
    }
    post_free(t);
}

static void post_answer_text(struct peer *p, char *text, size_t n)
{
    struct post_peer *t = POST(p);

    if (t->sse) {
        post_answer(p, 200, json_loadb(text, n, 0, NULL));
    } else {
        if (t->request)
            answer_text(t->request, 200, "application/json", (struct str){text, n});
        post_free(t);
    }
    free(text);
}

static void post_drop(struct peer *p)
{
    struct post_peer *t = POST(p);

    if (t->request)
        open_stream(t); /* and nothing in it */
    sse_free(t->sse);
    post_free(t);
}

static size_t post_waits(struct peer *p)
{
    return POST(p)->sse ? sse_waits(POST(p)->sse) : 0;
}

static void post_hang_up(struct peer *p)
{
    struct post_peer *t = POST(p);

    if (!t->streams || !t->primed)
        return;
    if (t->request)
        open_stream(t);
    if (t->sse)
        sse_hang_up(t->sse);
}

static const struct peer_ops post_ops = {post_send,  post_answer,      post_drop,
                                         post_waits, post_answer_text, post_hang_up};

static void on_gone(void *arg)
{
    struct post_peer *t = arg;

    if (t->sse)
        sse_gone(t->sse);
    else
        request_drop(take_ptr(&t->request));
    if (!t->streams && t->call)
        call_cancel(t->call);
}

static void on_late(void *arg)
{
    struct post_peer *t = arg;

    if (t->request && !t->plain)
        open_stream(t);
}

/* Holds r until answer() or drop(), which free the peer. v: NULL in the modern era. */
static struct peer *post_new(struct request *r, struct conversation *v)
{
    struct mcp *m = request_ctx(r);
    struct post_peer *t = mem_zalloc(sizeof(*t));
    struct str accept = request_header(r, "accept");

    *t = (struct post_peer){.peer = {&post_ops}, .request = r, .streams = v ? v->streams : NULL};
    t->plain = accept.n && !header_lists(accept, "text/event-stream") &&
               !header_lists(accept, "text/*") && !header_lists(accept, "*/*");
    t->primed = v && v->client.version && (v->client.version->has & HAS_ICONS);
    t->timer = timer_new(m->config.loop, on_late, t);
    timer_set(t->timer, LATE_MS);
    request_on_gone(r, on_gone, t);
    return &t->peer;
}

/* The call that a modern client cancels when it disconnects. */
static void post_set_call(struct peer *p, struct call *c)
{
    POST(p)->call = c;
}

/* Frees the peer; the request is not answered. */
static void post_forget(struct peer *p)
{
    request_on_gone(POST(p)->request, NULL, NULL);
    post_free(POST(p));
}

/* --- a request --- */

static void serve(struct request *r, const json_t *message, struct conversation *v,
                  const struct client *client)
{
    struct mcp *m = request_ctx(r);
    struct peer *p = post_new(r, v);
    struct call *c = call_new(m, m->tool_set, p, v, request_caller(r), client,
                              json_object_get(message, "id"), json_object_get(message, "params"));

    post_set_call(p, c);
    core_serve(c, json_view(json_object_get(message, "method")));
}

static void take_legacy(struct request *r, const json_t *message, struct str method)
{
    const json_t *id = json_object_get(message, "id");
    struct client client = {0};
    struct conversation *v;

    if (str_is(method, "initialize")) {
        v = begin(r, message, &client);
        if (v)
            serve(r, message, v, &client);
        return;
    }
    v = resume(r, id);
    if (!v)
        return;
    if (conversation_call(v, id))
        refuse(r, 400, id, RPC_INVALID, "a request with this id is still under way");
    else if (v->call_count >= CALLS_MAX)
        refuse(r, 429, id, RPC_INTERNAL, "too many requests of this session are under way");
    else
        serve(r, message, v, &v->client);
}

static void take_request(struct request *r, const json_t *message)
{
    struct str method = json_view(json_object_get(message, "method"));
    const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
    struct client client = {0};

    if (!is_modern(r, method, meta))
        take_legacy(r, message, method);
    else if (check_modern(r, message, &client))
        serve(r, message, NULL, &client);
}

/* Notifications and responses. Those of a modern client have no session, and tell us nothing. */
static void take_other(struct request *r, const json_t *message, bool is_response)
{
    struct conversation *v = NULL;
    const char *why;

    if (is_response ||
        (header(r, "mcp-session-id").n && !is_modern_name(header(r, "mcp-protocol-version")))) {
        v = resume(r, message_id(message));
        if (!v)
            return;
        core_take(v, message, &why);
    }
    answer_empty(r, 202);
}

static void take_batch(struct request *r, const json_t *messages)
{
    struct mcp *m = request_ctx(r);
    struct conversation *v = NULL;
    const char *why = "batches are of protocol version 2025-03-26 only: send one message at a time";
    struct peer *p;

    if (header(r, "mcp-session-id").n) {
        v = resume(r, NULL);
        if (!v)
            return;
        why = batch_refused(v, messages);
    }
    if (why) {
        refuse(r, 400, NULL, RPC_INVALID, why);
        return;
    }
    p = post_new(r, v);
    if (!batch_serve(v, p, m->tool_set, request_caller(r), messages)) {
        post_forget(p);
        answer_empty(r, 202);
    }
}

/* --- a body --- */

static void take_message(struct request *r, const json_t *message)
{
    enum message_kind kind;
    const char *why;

    if (json_is_array(message)) {
        take_batch(r, message);
        return;
    }
    kind = message_kind(message, &why);
    if (kind == MESSAGE_BAD)
        refuse(r, 400, message_id(message), RPC_INVALID, why);
    else if (kind == MESSAGE_REQUEST)
        take_request(r, message);
    else
        take_other(r, message, kind == MESSAGE_RESPONSE);
}

static void handle_post(struct request *r)
{
    struct mcp *m = request_ctx(r);
    json_t *message;
    struct err e;

    if (request_value(r, &message, &e) < 0) {
        refuse(r, 400, NULL, RPC_PARSE, e.text);
        return;
    }
    m->request = r;
    take_message(r, message);
    m->request = NULL;
    json_decref(message);
}

/* --- GET and DELETE --- */

/* The modern era has POST alone. So has a client without a session, which some send a GET to find
 * out whether there is a stream; 405 tells them that there is none. */
static bool has_session(struct request *r)
{
    if (header(r, "mcp-session-id").n && !is_modern_name(header(r, "mcp-protocol-version")))
        return true;
    answer_header(r, "allow", "POST");
    refuse(r, 405, NULL, RPC_INVALID,
           "without Mcp-Session-Id there is nothing here but POST: send a message");
    return false;
}

static void handle_get(struct request *r)
{
    struct mcp *m = request_ctx(r);
    struct str last_id = header(r, "last-event-id");
    struct conversation *v;

    if (is_old_sse(r)) {
        handle_old_sse(r);
        return;
    }
    v = has_session(r) ? resume(r, NULL) : NULL;
    if (!v)
        return;
    if (!v->client.version)
        refuse(r, 400, NULL, RPC_INVALID, "initialize has not been answered yet");
    else if (m->draining)
        refuse(r, 503, NULL, RPC_INTERNAL, "the server is about to end");
    else if (request_is_head(r))
        answer_text(r, 200, "text/event-stream", STR(""));
    else if (!last_id.n)
        streams_listen(v->streams, r);
    else if (!streams_resume(v->streams, r, last_id))
        refuse(r, 400, NULL, RPC_INVALID,
               "Last-Event-ID names no event that is still kept: send the request again");
}

static void handle_delete(struct request *r)
{
    struct conversation *v = has_session(r) ? resume(r, NULL) : NULL;

    if (!v)
        return;
    conversation_free(v);
    answer_empty(r, 204);
}

/* --- the table --- */

// clang-format off
static const struct field old_query[] = {
    {"session_id", FIELD_TEXT, REQUIRED, 1, ID_MAX, NULL, "As the first event of the stream gives it.", NULL},
    {0},
};

static const struct route routes[] = {
    {.method = HTTP_POST, .path = "/mcp", .id = "mcp", .flags = ROUTE_HIDDEN | ROUTE_READS,
     .body_kind = BODY_BYTES, .body_max = MESSAGE_MAX, .status = 200, .handle = handle_post},
    {.method = HTTP_GET, .path = "/mcp", .id = "mcp_stream", .flags = ROUTE_HIDDEN,
     .status = 200, .handle = handle_get},
    {.method = HTTP_DELETE, .path = "/mcp", .id = "mcp_end", .flags = ROUTE_HIDDEN | ROUTE_READS,
     .status = 204, .handle = handle_delete},
    {.method = HTTP_GET, .path = "/mcp/sse", .id = "mcp_sse", .flags = ROUTE_HIDDEN,
     .status = 200, .handle = handle_old_sse},
    {.method = HTTP_POST, .path = "/mcp/sse", .id = "mcp_sse_message",
     .flags = ROUTE_HIDDEN | ROUTE_READS, .body_kind = BODY_BYTES, .body_max = MESSAGE_MAX,
     .query = old_query, .status = 202, .handle = handle_old_post},
    {.method = HTTP_GET, .path = "/.well-known/oauth-protected-resource", .id = "mcp_resource",
     .flags = ROUTE_HIDDEN | ROUTE_OPEN, .status = 200, .handle = handle_resource_metadata},
    {.method = HTTP_GET, .path = "/.well-known/oauth-protected-resource/mcp",
     .id = "mcp_resource_mcp", .flags = ROUTE_HIDDEN | ROUTE_OPEN, .status = 200,
     .handle = handle_resource_metadata},
};
// clang-format on

/* The first rows are those of a tool set at another path; their paths begin with OWN_PATH. */
#define PATH_ROUTES 5
#define OWN_PATH    "/mcp"

static size_t routes_at(struct mcp *m)
{
    size_t n = 0;

    for (size_t p = 0; p < COUNT(m->config.paths) && m->config.paths[p]; p++)
        for (size_t i = 0; i < PATH_ROUTES; i++) {
            char *path = m->route_paths[n];
            snprintf(path, sizeof(m->route_paths[n]), "%s%s", m->config.paths[p],
                     routes[i].path + strlen(OWN_PATH));
            m->routes[n] = routes[i];
            m->routes[n++].path = path;
        }
    return n;
}

void mcp_door_init(struct door *ret, struct mcp *m)
{
    size_t n = m->tool_set == &m->own ? 0 : routes_at(m); /* the native tools are at /mcp */

    snprintf(m->sse_path, sizeof(m->sse_path), "%s/sse", n > 0 ? m->config.paths[0] : OWN_PATH);
    m->challenge = oauth_challenge(m);
    *ret = (struct door){.name = "mcp",
                         .routes = n > 0 ? m->routes : routes,
                         .route_count = n > 0 ? n : COUNT(routes),
                         .ctx = m,
                         .challenge = m->challenge,
                         .error = error_body};
}
