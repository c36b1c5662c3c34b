/* Private to the MCP room: its limits, its methods and the room itself. */
#pragma once

#include "doors/mcp/peer.h"

#define META         "io.modelcontextprotocol/"
#define META_VERSION META "protocolVersion"
#define META_CLIENT  META "clientCapabilities"
#define META_LOG     META "logLevel"
#define META_SERVER  META "serverInfo"
#define META_LISTEN  META "subscriptionId"

#define EXT_SKILLS META "skills"
#define EXT_UI     META "ui"

#define MIME_UI "text/html;profile=mcp-app"
/* _meta of a tool whose results the page shows; clients from before 2026 look for the second key.
 */
#define META_PAGE                                                                                  \
    "{\"ui\":{\"resourceUri\":\"ui://retort/result.html\"},"                                       \
    "\"ui/resourceUri\":\"ui://retort/result.html\"}"

/* --- numbers: everything a stranger can make longer --- */

#define MESSAGE_MAX          (20 * MiB) /* a file may come in one, as base64 */
#define CALLS_MAX            256        /* at a time, of one conversation */
#define CONVERSATION_MAX     10000      /* of the legacy era, over HTTP */
#define TENANT_CONVERSATIONS 5000       /* of these, of one tenant */
#define IDLE_MS              1800000    /* a conversation ends when it was unused so long */
#define ID_TEXT_MAX          1024       /* of a request's id */
#define ANSWER_MS            50000      /* clients give up after a minute */
#define ASK_MS               600000     /* a question to the client's user */
#define ASKS_MAX             64         /* questions at a time, of one conversation */
#define TASK_ASK_MS          3600000    /* the same, of a task */
#define ROOTS_MAX            8          /* folders that the client names; more are left out */
#define ROOTS_MS             3000       /* the client's answer to roots/list */
#define LISTENERS_MAX        1024       /* streams of changes */
#define LISTENERS_TENANT     128        /* of one tenant */
#define WATCHED_MAX          1024       /* URIs of one stream, or of one conversation */
#define WATCHED_URI_MAX      4096       /* bytes */
#define STATE_MAX            (64 * KiB) /* of its JSON: answers to earlier questions are in it */

struct stdio;

void client_done(struct client *c);
void client_copy(struct client *ret, const struct client *c);

/* --- call.c, for the rest of the room --- */

/* Adds what the era wants in a result. */
void result_dress(const struct call *c, json_t *result);
/* A result that is text already, with what result_dress() adds. */
void call_result_text(struct call *c, struct str result);
/* For tasks.c: answers the client, and the call goes on. Takes result. */
void call_answer(struct call *c, json_t *result);
/* The call goes on without its conversation, which may end or use the id again. */
void call_leave(struct call *c);
bool call_wants_progress(const struct call *c);
int log_level_find(struct str name); /* -1: there is none */

/* --- ask.c, for the rest of the room --- */

/* The client's response to a question. */
void conversation_answer(struct conversation *v, const json_t *message);

/* For call.c: the call is cancelled, so its questions fail. */
void asks_fail(struct call *c);
/* For tasks.c: the open questions as inputRequests, owned; and answers to some of them. */
json_t *asks_show(const struct call *c);
void asks_answer(struct call *c, const json_t *responses);

/* Before the handler runs: reads inputResponses and requestState. False: answered. */
bool call_read_input(struct call *c);
bool input_is_good(const json_t *responses); /* an object of objects */

/* --- state.c: requestState --- */

/* Owned; NULL when state is too long. The text is accepted from the same key, with the same
 * request, in time, and once; where state has "repeats": true, more than once. */
char *state_sign(const struct call *c, const json_t *state);
/* -1: the text is forged, for another call, too old, or was used. *ret is owned. */
int state_open(struct call *c, struct str text, json_t **ret, struct err *e) MUST_CHECK;
void states_free(struct mcp *m);

/* --- core.c: from a message to its handler --- */

struct method {
    const char *name;
    unsigned eras;     /* IN(ERA_LEGACY) | IN(ERA_MODERN) */
    const char *named; /* the parameter that Mcp-Name repeats, or NULL */
    bool asks;         /* modern: it may end with input_required */
    unsigned needs;    /* OFFERS_*, or 0 */
    void (*handle)(struct call *c);
};
/* NULL: this era has no method of that name. */
const struct method *method_find(const struct mcp *m, struct str name, enum era era);
/* Takes a notification or a response. Returns the kind of the message, as message_kind() does. */
enum message_kind core_take(struct conversation *v, const json_t *message, const char **ret_why);
json_t *rpc_bad_version(const json_t *id, struct str requested);

/* --- tools.c --- */

void handle_tools_list(struct call *c);
void tools_forget(struct mcp *m); /* drops the cached results of tools/list */
void handle_tools_call(struct call *c);
const struct tool *tool_find(const struct tool_set *f, struct str name);

extern const struct tool tool_run_code, tool_run_shell, tool_get_execution,
    tool_interrupt_execution, tool_create_session, tool_list_sessions, tool_restart_session,
    tool_close_session, tool_list_files, tool_read_file, tool_write_file, tool_list_packages;
extern const struct tool_set tool_set_native;

/* --- the rest of the methods --- */

void handle_resources_list(struct call *c); /* resources.c */
void handle_resources_templates(struct call *c);
void handle_resources_read(struct call *c);
void handle_prompts_list(struct call *c); /* prompts.c */
void handle_prompts_get(struct call *c);
void handle_complete(struct call *c);    /* complete.c */
void handle_skills_list(struct call *c); /* skills.c */
void handle_skills_get(struct call *c);
void handle_directory_read(struct call *c);
void handle_tasks_get(struct call *c); /* tasks.c */
void handle_tasks_update(struct call *c);
void handle_tasks_cancel(struct call *c);
void call_task_status(struct call *c, struct str status);
/* For call.c: the end of a call that has a task. */
void task_take_result(struct call *c, json_t *result); /* takes result */
void task_take_error(struct call *c, int code, const char *text);
void tasks_free(struct mcp *m);

/* --- the room itself --- */

struct mcp {
    struct mcp_config config;
    struct tool_set own;
    const struct tool_set *tool_set;             /* what is shown: own, or the config's */
    struct conversation *conversations, *oldest; /* owned: by their last use, the latest first */
    size_t conversation_count;
    struct call *calls;                 /* those of no conversation */
    size_t call_count;                  /* of all: each keeps the room alive */
    bool draining;                      /* nothing new that stays open */
    bool freed;                         /* the last call frees the rest */
    struct change_listeners *listeners; /* owned by listen.c */
    struct tasks *tasks;                /* owned by tasks.c */
    struct states *states;              /* owned by state.c */
    struct stdio *stdio;                /* owned by stdio.c */
    struct request *request;            /* borrowed: its message is being served; or NULL */
    struct conversation_index *index;   /* owned by conversation.c */
    struct kept *kept;                  /* owned: streams.c */
    char *challenge;                    /* owned: of 401 over HTTP, or NULL */
    struct route routes[10];            /* of config.paths */
    char route_paths[10][64];           /* of routes */
    char sse_path[64];                  /* where messages of the transport of 2024-11-05 go */
    char *tools_text[VERSION_COUNT]
                    [2];      /* owned: results of tools/list, or NULL; [1]: with the agent tool */
    struct service *followed; /* borrowed: tells what changes; or NULL */
    struct change_watch *watch; /* owned, or NULL */
    const char *opened;         /* borrowed: a sentence on the client's roots; or NULL */
    struct resource_reading *reads_waiting; /* resources to be read */
    size_t reads;                           /* at this moment */
};
/* Frees the room after mcp_free(), when the last call has ended. */
void mcp_release(struct mcp *m);
