/*
 * From a message to its handler: the methods of both eras are one table. Transports
 * have read the message, and checked what is theirs to check.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- messages --- */

json_t *rpc_result(const json_t *id, json_t *result)
{
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data)
{
    json_t *error = json_pack("{s:i, s:o}", "code", code, "message", record_text(str_of(message)));
    json_t *v = json_pack("{s:s}", "jsonrpc", "2.0");

    if (data)
        json_object_set_new(error, "data", data);
    if (id)
        json_object_set(v, "id", (json_t *)id);
    json_object_set_new(v, "error", error);
    return v;
}

json_t *rpc_notification(const char *method, json_t *params)
{
    return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

/* --- how it begins --- */

static json_t *capabilities(const struct call *c)
{
    json_t *v = json_pack("{s:{}}", "tools");

    (void)c;
    return v;
}

static json_t *server_info(const struct call *c)
{
    json_t *v = json_pack("{s:s, s:s}", "name", c->face->name, "version", RETORT_VERSION);

    if (c->client.version->has & HAS_STRUCTURED)
        json_object_set_new(v, "title", json_string(c->face->title));
    return v;
}

static void handle_initialize(struct call *c)
{
    struct client *known = &c->conversation->client;
    json_t *info = json_object_get(c->params, "clientInfo");
    const char *name = json_string_value(json_object_get(info, "name"));

    client_done(known);
    client_copy(known, &c->client);
    json_decref(known->capabilities);
    known->capabilities = json_incref(json_object_get(c->params, "capabilities"));
    known->log_level = -1;
    snprintf(known->name, sizeof(known->name), "%s", name ? name : "");
    call_result(c, json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", c->client.version->name,
                             "capabilities", capabilities(c), "serverInfo", server_info(c),
                             "instructions", c->face->instructions));
}

static void handle_discover(struct call *c)
{
    call_result(c, json_pack("{s:o, s:o, s:s, s:i, s:s}", "supportedVersions", versions_list(),
                             "capabilities", capabilities(c), "instructions",
                             c->face->instructions, "ttlMs", 3600000, "cacheScope", "public"));
}

static void handle_ping(struct call *c)
{
    call_result(c, json_object());
}

static void handle_set_level(struct call *c)
{
    const char *name = json_string_value(json_object_get(c->params, "level"));
    int level = log_level_find(str_of(name));

    if (level < 0) {
        call_error(c, RPC_PARAMS, NULL, "level is one of debug, info, notice, warning, error, "
                                        "critical, alert, emergency");
        return;
    }
    c->conversation->client.log_level = level;
    call_result(c, json_object());
}

/* --- the table --- */

#define LEGACY IN(ERA_LEGACY)
#define MODERN IN(ERA_MODERN)

static const struct method methods[] = {
    {"initialize",       LEGACY,          NULL,   handle_initialize},
    {"server/discover",  MODERN,          NULL,   handle_discover  },
    {"ping",             LEGACY,          NULL,   handle_ping      },
    {"logging/setLevel", LEGACY,          NULL,   handle_set_level },
    {"tools/list",       LEGACY | MODERN, NULL,   handle_tools_list},
    {"tools/call",       LEGACY | MODERN, "name", handle_tools_call},
};

const struct method *method_find(const struct mcp *m, struct str name, enum era era)
{
    (void)m;
    for (size_t i = 0; i < COUNT(methods); i++)
        if (str_is(name, methods[i].name) && (methods[i].eras & IN(era)))
            return &methods[i];
    return NULL;
}

void core_serve(struct call *c, struct str name)
{
    const struct method *m = method_find(c->mcp, name, c->client.version->era);
    char shown[NAME_SHOWN];

    if (!m) {
        call_error(c, RPC_NO_METHOD, NULL, "there is no method %s", name_show(shown, name));
        return;
    }
    c->method = m->name;
    m->handle(c);
}

void core_notified(struct conversation *v, struct str method, json_t *params)
{
    struct call *c;

    if (!v || !str_is(method, "notifications/cancelled"))
        return;
    c = conversation_call(v, json_object_get(params, "requestId"));
    if (c && strcmp(c->method, "initialize") != 0)
        call_cancel(c);
}

/* --- the room itself --- */

struct mcp *mcp_new(const struct mcp_config *config)
{
    struct mcp *m = mem_zalloc(sizeof(*m));

    m->config = *config;
    m->face = &face_native;
    return m;
}

void mcp_release(struct mcp *m)
{
    if (m->freed && m->call_count == 0)
        free(m);
}

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    while (m->conversations)
        conversation_free(m->conversations);
    m->freed = true;
    m->call_count++; /* the last of these must not free what is being gone through */
    for (struct call *c = m->calls, *next; c; c = next) {
        next = c->next;
        if (!c->cancelled)
            call_cancel(c);
    }
    m->call_count--;
    mcp_release(m);
}
