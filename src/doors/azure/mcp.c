/*
 * The MCP server of a pool, as Azure's is spoken to: one POST, one answer, no session,
 * initialize without parameters, version 2025-03-26. Tools answer with structuredContent
 * all the same, as theirs do, so calls are served as those of a later version.
 */
#include "doors/azure/azure_int.h"
#include "doors/azure/tools.h"
#include "doors/mcp/peer.h"

#include <stdio.h>
#include <stdlib.h>

#define SPOKEN "2025-03-26"
#define SERVED "2025-06-18" /* the first with structuredContent */

/* The answer of one POST. */
struct azure_mcp_post {
    struct peer peer;
    struct azure_request *v; /* borrowed; NULL when the request is over */
    struct call *call;       /* borrowed; NULL when it has ended */
    char pool[64];
};

#define MCP_POST(p)                                                                                \
    ((struct azure_mcp_post *)(void *)((char *)(p)-offsetof(struct azure_mcp_post, peer)))

/* --- messages to the client --- */

/* There is no stream to say it on. */
static void mcp_post_send(struct peer *p, json_t *message)
{
    (void)p;
    json_decref(message);
}

static void mcp_post_answer(struct peer *p, int status, json_t *message)
{
    struct azure_mcp_post *t = MCP_POST(p);
    struct azure_request *v = take_ptr(&t->v);

    t->call = NULL;
    if (v)
        azure_answer(v, status, message);
    else
        json_decref(message);
}

static void mcp_post_drop(struct peer *p)
{
    struct azure_mcp_post *t = MCP_POST(p);
    struct azure_request *v = take_ptr(&t->v);

    t->call = NULL;
    if (v)
        azure_fail(v, 503, "ServiceUnavailable", "the server is shutting down");
}

static size_t mcp_post_waits(struct peer *p)
{
    (void)p;
    return 0;
}

static const struct peer_ops mcp_post_ops = {mcp_post_send, mcp_post_answer, mcp_post_drop,
                                             mcp_post_waits};

const char *azure_pool_of(const struct call *c)
{
    return c->peer && c->peer->ops == &mcp_post_ops ? MCP_POST(c->peer)->pool : "";
}

static void on_gone(void *arg)
{
    struct azure_mcp_post *t = arg;
    struct azure_request *v = take_ptr(&t->v);

    if (!v)
        return;
    if (t->call)
        call_cancel(t->call);
    request_drop(v->r);
}

/* --- what it is asked --- */

static void refuse(struct azure_request *v, int status, const json_t *id, int code,
                   const char *text)
{
    azure_answer(v, status, rpc_error(id, code, text, NULL));
}

static void initialize(struct azure_request *v, const json_t *id)
{
    json_t *result = json_pack("{s:s, s:{s:{s:b, s:b}}, s:{s:s, s:s}, s:s}", "protocolVersion",
                               SPOKEN, "capabilities", "tools", "call", 1, "list", 1, "serverInfo",
                               "name", AZURE_SERVER_NAME, "version", RETORT_VERSION, "instructions",
                               azure_tools.instructions);

    azure_answer(v, 200, rpc_result(id, result));
}

/* The call holds the talk, which knows the pool. */
static void serve(struct azure_request *v, const json_t *message)
{
    struct azure_mcp_post *t = mem_zalloc(sizeof(*t));
    const struct client client = {.version = version_find(STR(SERVED)), .log_level = -1};

    assert(client.version);
    *t = (struct azure_mcp_post){.peer = {&mcp_post_ops}, .v = v};
    snprintf(t->pool, sizeof(t->pool), "%s", v->pool_name);
    t->call = call_new(v->azure->mcp, &azure_tools, &t->peer, NULL, azure_caller(v), &client,
                       json_object_get(message, "id"), json_object_get(message, "params"));
    call_keep(t->call, free, t);
    request_on_gone(v->r, on_gone, t);
    core_serve(t->call, json_view(json_object_get(message, "method")));
}

static void take_message(struct azure_request *v, json_t *message)
{
    struct str method = json_view(json_object_get(message, "method"));
    const json_t *id = message_id(message);
    const char *why = NULL;

    switch (message_kind(message, &why)) {
    case MESSAGE_BAD:
        refuse(v, 400, id, RPC_INVALID, why);
        break;
    case MESSAGE_REQUEST:
        if (str_is(method, "initialize"))
            initialize(v, id);
        else
            serve(v, message);
        break;
    default:
        answer_empty(v->r, 202);
    }
}

void op_mcp_post(struct azure_request *v)
{
    json_t *message;
    struct err e;

    if (!pool_has_mcp(&v->pool)) {
        azure_fail(v, 400, "SessionMCPServerNotEnabled",
                   "the MCP server of this pool is not enabled: see mcpServerSettings");
        return;
    }
    if (!pool_takes_keys(&v->pool) && request_header(v->r, "x-ms-apikey").p) {
        azure_fail(v, 401, "Unauthorized",
                   "this pool takes no keys in x-ms-apikey: use Authorization: Bearer KEY");
        return;
    }
    if (request_value(v->r, &message, &e) < 0) {
        refuse(v, 400, NULL, RPC_PARSE, e.text);
        return;
    }
    take_message(v, message);
    json_decref(message);
}

void op_mcp_refuse(struct azure_request *v)
{
    answer_header(v->r, "allow", "POST");
    refuse(v, 405, NULL, RPC_INVALID, "there is no stream here, and no session to end: POST alone");
}
