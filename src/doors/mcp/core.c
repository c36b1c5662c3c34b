/*
 * From a message to its handler: one table has the methods of both eras. The transport has read the
 * message and checked its headers.
 */
#include "doors/mcp/resource.h"
#include "doors/mcp/transport.h"

#include <stdio.h>
#include <stdlib.h>

/* --- messages that go out --- */

/* A result that could not be made (jansson refuses what is not UTF-8) is an error of ours, and not
 * silence. */
json_t *rpc_result(const json_t *id, json_t *result)
{
    if (!result) {
        log_error("a result could not be written as JSON");
        return rpc_error(id, RPC_INTERNAL, "the result could not be written as JSON", NULL);
    }
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

json_t *rpc_bad_version(const json_t *id, struct str requested)
{
    return rpc_error(
        id, RPC_VERSION, "this version of the protocol is not served",
        json_pack("{s:o, s:o}", "supported", versions_list(), "requested", record_text(requested)));
}

json_t *rpc_notification(const char *method, json_t *params)
{
    return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

/* --- how it begins --- */

/* {"listChanged": true}, where lists change. */
static json_t *family(const struct tool_set *f, enum list_change what)
{
    json_t *v = json_object();

    if (f->changes & IN(what))
        json_object_set_new(v, "listChanged", json_true());
    return v;
}

static json_t *extensions(const struct tool_set *f)
{
    json_t *v = json_object();

    if (f->offers & OFFERS_TASKS)
        json_object_set_new(v, EXT_TASKS, json_object());
    if (f->offers & OFFERS_SKILLS)
        json_object_set_new(v, EXT_SKILLS, json_pack("{s:b}", "directoryRead", true));
    if (f->offers & OFFERS_UI)
        json_object_set_new(v, EXT_UI, json_pack("{s:[s]}", "mimeTypes", MIME_UI));
    return v;
}

static json_t *capabilities(const struct call *c)
{
    const struct tool_set *f = c->tool_set;
    json_t *v = json_pack("{s:o}", "tools", family(f, CHANGE_TOOLS));

    if (f->offers & OFFERS_PROMPTS)
        json_object_set_new(v, "prompts", family(f, CHANGE_PROMPTS));
    if (f->offers & OFFERS_RESOURCES) {
        json_t *resources = family(f, CHANGE_RESOURCES);
        if (f->changes & IN(CHANGE_RESOURCE))
            json_object_set_new(resources, "subscribe", json_true());
        json_object_set_new(v, "resources", resources);
    }
    if ((f->offers & OFFERS_COMPLETIONS) && (c->client.version->has & HAS_ANNOTATIONS))
        json_object_set_new(v, "completions", json_object());
    if (f->offers & OFFERS_LOGGING)
        json_object_set_new(v, "logging", json_object());
    if (call_is_modern(c))
        json_object_set_new(v, "extensions", extensions(f));
    return v;
}

static json_t *server_info(const struct call *c)
{
    json_t *v = json_pack("{s:s, s:s}", "name", c->tool_set->name, "version", RETORT_VERSION);

    if (c->client.version->has & HAS_STRUCTURED)
        json_object_set_new(v, "title", json_string(c->tool_set->title));
    return v;
}

/* What the tools are for, and what is there besides. Owned. */
static json_t *instructions(const struct call *c)
{
    const char *folders = c->mcp->config.folders;
    bool roots = c->conversation && roots_are_known(c->conversation);

    return json_sprintf("%s%s%s%s", c->tool_set->instructions, folders ? " " : "",
                        folders ? folders : "",
                        roots ? " Folders that the user has opened in this client are in every "
                                "session, below /mnt."
                              : "");
}

static void handle_initialize(struct call *c)
{
    struct client *known = &c->conversation->client;
    json_t *info = json_object_get(c->params, "clientInfo");
    struct str name = json_view(json_object_get(info, "name"));

    client_done(known);
    client_copy(known, &c->client);
    json_decref(known->capabilities);
    known->capabilities = json_incref(json_object_get(c->params, "capabilities"));
    known->log_level = -1;
    name.n = name.n < sizeof(known->name) ? name.n : sizeof(known->name) - 1;
    name.n -= utf8_torn(name);
    snprintf(known->name, sizeof(known->name), "%.*s", (int)name.n, name.p ? name.p : "");
    call_result(c, json_pack("{s:s, s:o, s:o, s:o}", "protocolVersion", c->client.version->name,
                             "capabilities", capabilities(c), "serverInfo", server_info(c),
                             "instructions", instructions(c)));
}

static void handle_discover(struct call *c)
{
    call_result(c, json_pack("{s:o, s:o, s:o, s:i, s:s}", "supportedVersions", versions_list(),
                             "capabilities", capabilities(c), "instructions", instructions(c),
                             "ttlMs", 3600000, "cacheScope", "public"));
}

static void handle_ping(struct call *c)
{
    call_result(c, json_object());
}

#define LEVELS "one of debug, info, notice, warning, error, critical, alert, emergency"

static void handle_set_level(struct call *c)
{
    const char *name = json_string_value(json_object_get(c->params, "level"));
    int level = log_level_find(str_of(name));

    if (level < 0) {
        call_error(c, RPC_PARAMS, NULL, "level is " LEVELS);
        return;
    }
    c->conversation->client.log_level = level;
    call_result(c, json_object());
}

/* --- the table --- */

#define LEGACY IN(ERA_LEGACY)
#define MODERN IN(ERA_MODERN)

static const struct method methods[] = {
    {"initialize",               LEGACY,          NULL,     false, 0,                  handle_initialize    },
    {"server/discover",          MODERN,          NULL,     false, 0,                  handle_discover      },
    {"ping",                     LEGACY,          NULL,     false, 0,                  handle_ping          },
    {"logging/setLevel",         LEGACY,          NULL,     false, OFFERS_LOGGING,     handle_set_level     },
    {"tools/list",               LEGACY | MODERN, NULL,     false, 0,                  handle_tools_list    },
    {"tools/call",               LEGACY | MODERN, "name",   true,  0,                  handle_tools_call    },
    {"tasks/get",                MODERN,          "taskId", false, OFFERS_TASKS,       handle_tasks_get     },
    {"tasks/update",             MODERN,          "taskId", false, OFFERS_TASKS,       handle_tasks_update  },
    {"tasks/cancel",             MODERN,          "taskId", false, OFFERS_TASKS,       handle_tasks_cancel  },
    {"subscriptions/listen",     MODERN,          NULL,     false, 0,                  handle_listen        },
    {"resources/list",           LEGACY | MODERN, NULL,     false, OFFERS_RESOURCES,   handle_resources_list},
    {"resources/templates/list", LEGACY | MODERN, NULL,     false, OFFERS_RESOURCES,
     handle_resources_templates                                                                             },
    {"resources/read",           LEGACY | MODERN, "uri",    true,  OFFERS_RESOURCES,   handle_resources_read},
    {"resources/directory/read", MODERN,          NULL,     false, OFFERS_SKILLS,      handle_directory_read},
    {"skills/list",              MODERN,          NULL,     false, OFFERS_SKILLS,      handle_skills_list   },
    {"skills/get",               MODERN,          NULL,     false, OFFERS_SKILLS,      handle_skills_get    },
    {"prompts/list",             LEGACY | MODERN, NULL,     false, OFFERS_PROMPTS,     handle_prompts_list  },
    {"prompts/get",              LEGACY | MODERN, "name",   true,  OFFERS_PROMPTS,     handle_prompts_get   },
    {"completion/complete",      LEGACY | MODERN, NULL,     false, OFFERS_COMPLETIONS, handle_complete      },
    {"resources/subscribe",      LEGACY,          NULL,     false, OFFERS_RESOURCES,   handle_subscribe     },
    {"resources/unsubscribe",    LEGACY,          NULL,     false, OFFERS_RESOURCES,   handle_unsubscribe   },
};

const struct method *method_find(const struct mcp *m, struct str name, enum era era)
{
    (void)m;
    for (size_t i = 0; i < COUNT(methods); i++)
        if (str_is(name, methods[i].name) && (methods[i].eras & IN(era)))
            return &methods[i];
    return NULL;
}

/* Modern: the level comes with each request. */
static bool level_is_good(const struct call *c)
{
    const json_t *level = json_object_get(c->meta, META_LOG);

    return !level || !call_is_modern(c) || log_level_find(json_view(level)) >= 0;
}

void core_serve(struct call *c, struct str name)
{
    const struct method *m = method_find(c->mcp, name, c->client.version->era);
    char shown[NAME_SHOWN];

    if (!m || (m->needs & ~c->tool_set->offers)) {
        call_error(c, RPC_NO_METHOD, NULL, "there is no method %s", name_show(shown, name));
        return;
    }
    c->method = m->name;
    if (!level_is_good(c))
        call_error(c, RPC_PARAMS, NULL, "_meta: " META_LOG " is " LEVELS);
    else if (!m->asks || !call_is_modern(c) || call_read_input(c))
        m->handle(c);
}

static void take_notification(struct conversation *v, const json_t *message)
{
    const json_t *params = json_object_get(message, "params");
    struct call *c;

    if (!str_is(json_view(json_object_get(message, "method")), "notifications/cancelled"))
        return;
    c = conversation_call(v, json_object_get(params, "requestId"));
    if (c && c->method && strcmp(c->method, "initialize") != 0)
        call_cancel(c);
}

enum message_kind core_take(struct conversation *v, const json_t *message, const char **ret_why)
{
    enum message_kind kind = message_kind(message, ret_why);

    if (kind == MESSAGE_NOTIFICATION)
        take_notification(v, message);
    else if (kind == MESSAGE_RESPONSE)
        conversation_answer(v, message);
    return kind;
}

/* --- the room itself --- */

/* Without one from the caller: what we sign is ours until we end. */
static void secret_make(uint8_t secret[MCP_SECRET_BYTES])
{
    static const uint8_t none[MCP_SECRET_BYTES];

    if (memcmp(secret, none, MCP_SECRET_BYTES) == 0)
        random_bytes(secret, MCP_SECRET_BYTES);
}

struct mcp *mcp_new(const struct mcp_config *config)
{
    struct mcp *m = mem_zalloc(sizeof(*m));

    m->config = *config;
    if (m->config.answer_ms == 0)
        m->config.answer_ms = ANSWER_MS;
    m->own = tool_set_native;
    m->own.agent_tool = config->agent_tool;
    m->own.ctx = config->agent_tool_ctx;
    m->own.has_model = config->has_model;
    m->tool_set = config->tool_set ? config->tool_set : &m->own;
    secret_make(m->config.secret);
    return m;
}

void mcp_release(struct mcp *m)
{
    if (!m->freed || m->call_count > 0)
        return;
    states_free(m);
    listeners_free(m);
    free(m->challenge);
    tools_forget(m);
    free(m);
}

void mcp_drain(struct mcp *m)
{
    m->draining = true;
    listeners_end(m);
    for (struct conversation *v = m->conversations; v; v = v->next)
        if (v->streams)
            streams_close(v->streams);
}

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    mcp_drain(m);
    mcp_unfollow(m);
    tasks_free(m);
    conversations_free(m);
    m->freed = true;
    m->call_count++; /* the last of these must not free what is being gone through */
    for (struct call *c = m->calls, *next; c; c = next) {
        next = c->next;
        if (!c->cancelled)
            call_cancel(c);
    }
    stdio_free(take_ptr(&m->stdio));
    m->call_count--;
    mcp_release(m);
}
