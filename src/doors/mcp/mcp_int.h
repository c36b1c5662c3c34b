/* Private to the MCP room. */
#pragma once

#include "doors/mcp/mcp.h"
#include "doors/values/values.h"
#include "loop/loop.h"
#include "record/record.h"

#include <jansson.h>

#define META         "io.modelcontextprotocol/"
#define META_VERSION META "protocolVersion"
#define META_CLIENT  META "clientCapabilities"
#define META_LOG     META "logLevel"
#define META_SERVER  META "serverInfo"
#define META_LISTEN  META "subscriptionId"

#define EXT_TASKS  META "tasks"
#define EXT_SKILLS META "skills"
#define EXT_UI     META "ui"

/* --- numbers: everything a stranger can make longer --- */

#define MESSAGE_MAX      (20 * MiB) /* a file may come in one, as base64 */
#define CALLS_MAX        256        /* at a time, of one conversation */
#define CONVERSATION_MAX 10000      /* of the legacy era, over HTTP */
#define ID_TEXT_MAX      1024       /* of a request's id */
#define ASK_MS           600000     /* a question to the client's user */

/* --- version.c: what each revision of the protocol has --- */

enum era { ERA_LEGACY, ERA_MODERN };

enum version_has {
    HAS_BATCH = 1,
    HAS_ANNOTATIONS = 2, /* of tools; audio, completions */
    HAS_STRUCTURED = 4,  /* structuredContent, outputSchema, resource_link, title */
    HAS_ICONS = 8,       /* and what else came with 2025-11-25 */
    HAS_STDIO_ONLY = 16,
};

struct version {
    const char *name;
    enum era era;
    unsigned has;
};
extern const struct version versions[]; /* newest first; ends with a name of NULL */
const struct version *version_find(struct str name);
const struct version *version_newest(enum era era);
json_t *versions_list(void); /* owned */

/* --- errors --- */

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_RESOURCE = -32002, /* legacy only */
    RPC_HEADER = -32020,
    RPC_CAPABILITY = -32021,
    RPC_VERSION = -32022,
};

struct call;

/* --- who speaks --- */

/* What a client has said of itself: with each message in the modern era, once in the legacy one. */
struct client {
    const struct version *version; /* static */
    json_t *capabilities;          /* owned: object, or NULL */
    int log_level;                 /* the least that is wanted, 0 (debug) to 7; -1: none */
    char name[64];
};
void client_done(struct client *c);
void client_copy(struct client *ret, const struct client *c);

/* --- peer: where the messages about a call go --- */

/*
 * The answer of one POST, standard output, or one seat of a batch. A transport embeds it. send()
 * takes message, a notification or a request of ours. answer() takes message, the response, and
 * is the last word of the call; status is that of HTTP. waits() is what the client has not read.
 */
struct peer {
    const struct peer_ops *ops;
};
struct peer_ops {
    void (*send)(struct peer *p, struct call *c, json_t *message);
    void (*answer)(struct peer *p, struct call *c, int status, json_t *message);
    /* The call ended without an answer, as the client no longer wants one. */
    void (*drop)(struct peer *p, struct call *c);
    size_t (*waits)(struct peer *p);
};

/* --- conversation.c: what outlasts a message --- */

/*
 * A session of the legacy era over HTTP, or the one on standard input and output. A modern request
 * over HTTP has none.
 */
struct conversation {
    struct conversation *next, **link;
    struct mcp *mcp; /* borrowed */
    char id[ID_MAX]; /* "mcp_..." */
    struct caller owner;
    struct client client;       /* of the legacy era; version NULL before initialize */
    struct peer *aside;         /* for what belongs to no call, or NULL: a GET stream, stdout */
    struct call *calls;         /* under way */
    size_t call_count;
    struct ask *asks;           /* waiting for the client's answer */
    json_t *watched;            /* owned: object, URIs subscribed to; or NULL */
    char session[ID_MAX];       /* the interpreter used when none is named; "" at first */
    int64_t used_us;
    struct streams *streams;    /* owned by http.c: answers to be resumed; or NULL */
};
/* NULL when there are too many. */
struct conversation *conversation_new(struct mcp *m, const struct caller *owner);
struct conversation *conversation_find(struct mcp *m, struct str id, const struct caller *who);
/* Its calls are cancelled. */
void conversation_free(struct conversation *v);
struct call *conversation_call(struct conversation *v, const json_t *id);

/* --- call.c: a request being served --- */

struct call {
    struct call *next, **link; /* of its conversation, else of mcp */
    struct mcp *mcp;           /* borrowed */
    const struct face *face;   /* borrowed */
    struct peer *peer;         /* borrowed; NULL when it has been answered or dropped */
    struct conversation *conversation; /* borrowed, or NULL */
    struct caller caller;
    struct client client;
    json_t *id, *params; /* owned; params: never NULL */
    const json_t *meta;  /* of params, or NULL */
    const char *method;  /* of params' message: static, from the table */
    json_t *token;       /* borrowed: of progress, or NULL */
    double progress;     /* the last that was told */
    loop_fn *on_cancel;
    void *cancel_arg;
    struct call_keep *keeps;
    struct task *task; /* owned by tasks.c: the answer goes there; or NULL */
    bool cancelled;
};

/* Takes nothing: id and params are referenced. */
struct call *call_new(struct mcp *m, const struct face *face, struct peer *p,
                      struct conversation *v, const struct caller *who,
                      const struct client *client, const json_t *id, json_t *params);

/* The service, or NULL when the call has been answered with why there is none. */
struct service *call_service(struct call *c);
bool call_is_modern(const struct call *c);
/* Whether the client said it can: "elicitation", "sampling", "extensions/" EXT_TASKS. */
bool call_can(const struct call *c, const char *capability);
/* Modern: a call that needs it is refused, with 400, before anything runs. False: answered. */
bool call_needs(struct call *c, const char *capability);

/* Each of these ends the call: c is gone after it. */
void call_result(struct call *c, json_t *result); /* takes an object; adds what the era wants */
void call_error(struct call *c, int code, json_t *data, const char *fmt, ...)
    PRINTF(4, 5); /* takes data, or NULL */
/* What the service could not do, as a JSON-RPC error. ERR_HOST is logged and told without text. */
void call_fail(struct call *c, const struct err *e);
void call_drop(struct call *c); /* after on_cancel */

/* Told once: the client wants no answer any more, or is gone. The handler ends with call_drop(),
 * or answers if it is done at this moment. Without one the call is dropped by itself when it is
 * answered. */
void call_on_cancel(struct call *c, loop_fn *fn, void *arg);
/* For transports: nobody waits for it any more. c may be gone after this. */
void call_cancel(struct call *c);
/* fn(p) when the call is gone. */
void call_keep(struct call *c, void (*fn)(void *), void *p);

bool call_wants_progress(const struct call *c);
/* progress must grow; what does not, and what a slow client could not read yet, is left out.
 * total 0: unknown. */
void call_progress(struct call *c, double progress, double total, struct str message);
/* Takes data. level: 0 debug, 1 info, 2 notice, 3 warning, 4 error, ... 7 emergency. */
void call_log(struct call *c, int level, const char *logger, json_t *data);
int log_level_find(struct str name); /* -1: there is none */

/* --- ask.c: questions to the client --- */

/*
 * key names the question within the call. Legacy: a request of ours on the call's stream, and fn
 * hears its answer: result, or NULL with failed. Modern: when the call came with an answer to
 * key, fn hears it at once, from the loop; else the call ends here with input_required, fn is
 * never called, and the client comes again. So nothing may have been done before. In a task the
 * question is the task's, and fn hears of it later.
 */
typedef void ask_fn(void *arg, json_t *result, const struct err *failed);
void call_ask(struct call *c, const char *key, const char *method, json_t *params, ask_fn *fn,
              void *arg);
/* A response of the client to a question of ours. */
void conversation_answer(struct conversation *v, json_t *message);
/* Of a call that ends, or of all: nobody is told. */
void asks_forget(struct conversation *v, const struct call *c);

/* Modern, by hand: inputResponses (or NULL), requestState that is ours and for this call (or
 * NULL), the answer that asks. call_state() false: it was tampered with, and the call is answered.
 */
json_t *call_input(const struct call *c, const char *key);
bool call_state(struct call *c, json_t **ret_state);
void call_ask_all(struct call *c, json_t *requests, json_t *state);

/* --- core.c: from a message to its handler --- */

struct method {
    const char *name;
    unsigned eras;      /* IN(ERA_LEGACY) | IN(ERA_MODERN) */
    const char *named;  /* the parameter that Mcp-Name repeats, or NULL */
    void (*handle)(struct call *c);
};
/* NULL when this era has none of that name. */
const struct method *method_find(const struct mcp *m, struct str name, enum era era);
/* Runs the method, or answers that there is none. */
void core_serve(struct call *c, struct str method);
void core_notified(struct conversation *v, struct str method, json_t *params);

/* A response as it goes over the wire; both owned by the caller. take data. id: or NULL. */
json_t *rpc_result(const json_t *id, json_t *result);
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data);
json_t *rpc_notification(const char *method, json_t *params); /* takes params */

/* --- face: what one address of ours shows --- */

struct face {
    const char *name, *title;
    const char *instructions;
    const struct tool *const *tools; /* ends with NULL; in the order they are listed */
};
extern const struct face face_native, face_fixtures;

/* --- tools.c --- */

enum tool_hints {
    TOOL_READS = 1,      /* readOnlyHint */
    TOOL_DESTROYS = 2,   /* destructiveHint */
    TOOL_REPEATABLE = 4, /* idempotentHint */
    TOOL_OUTSIDE = 8,    /* openWorldHint */
    TOOL_RUNS = 16,      /* executes what it is given: approval policies apply */
};

struct tool {
    const char *name, *title;
    const char *text;           /* for a model: purpose, limits, one example */
    const struct field *params; /* checked before run(); also printed as inputSchema */
    const char *schema;         /* inputSchema as JSON instead; run() checks by itself */
    const char *answer;         /* outputSchema as JSON, or NULL */
    const char *meta;           /* _meta as JSON, or NULL */
    unsigned hints;
    void (*run)(struct call *c, json_t *args); /* args: borrowed from the call, an object */
};

void handle_tools_list(struct call *c);
void handle_tools_call(struct call *c);
json_t *tool_show(const struct tool *t, const struct version *v); /* owned */
const struct tool *tool_find(const struct face *f, struct str name);

extern const struct tool tool_run_code, tool_run_shell, tool_get_execution,
    tool_interrupt_execution, tool_create_session, tool_list_sessions, tool_close_session,
    tool_list_files, tool_read_file, tool_write_file, tool_list_packages;

/* --- content.c: what a tool says --- */

/* A result in the making: texts, images, links, in this order. */
struct content {
    json_t *items; /* owned: array */
};
void content_init(struct content *t);
void content_done(struct content *t);
void content_text(struct content *t, struct str text); /* what is not UTF-8 becomes U+FFFD */
void content_printf(struct content *t, const char *fmt, ...) PRINTF(2, 3);
void content_image(struct content *t, const char *mime, json_t *base64); /* takes base64 */
/* Left out for versions that do not know it; the text must say it, too. */
void content_link(struct content *t, const struct call *c, const char *uri, struct str name,
                  const char *mime, uint64_t size);
/* Ends the call with it. is_error: the model should read it and do better. */
void content_answer(struct content *t, struct call *c, bool is_error);
/* One text and nothing else; is_error. */
void tool_fail(struct call *c, const char *fmt, ...) PRINTF(2, 3);
/* What the service said, as a result the model can act on. ERR_HOST goes the way of call_fail(). */
void tool_refuse(struct call *c, const struct err *e);

/* --- listen.c: who hears of what changed --- */

enum change { CHANGE_TOOLS, CHANGE_PROMPTS, CHANGE_RESOURCES, CHANGE_RESOURCE };
/* tenant NULL: everybody. uri: of CHANGE_RESOURCE. */
void mcp_publish(struct mcp *m, enum change what, const char *tenant, const char *uri);
void handle_listen(struct call *c);
void handle_subscribe(struct call *c);
void handle_unsubscribe(struct call *c);

/* --- the rest of the methods --- */

void handle_resources_list(struct call *c);      /* resources.c */
void handle_resources_templates(struct call *c);
void handle_resources_read(struct call *c);
void handle_prompts_list(struct call *c);        /* prompts.c */
void handle_prompts_get(struct call *c);
void handle_complete(struct call *c);            /* complete.c */
void handle_skills_list(struct call *c);         /* skills.c */
void handle_skills_get(struct call *c);
void handle_directory_read(struct call *c);
void handle_tasks_get(struct call *c);           /* tasks.c */
void handle_tasks_update(struct call *c);
void handle_tasks_cancel(struct call *c);
/* What a call with a task ends with: taken when true. */
bool task_take_result(struct call *c, json_t *result);
bool task_take_error(struct call *c, int code, const char *text);
/* The client gets a task now, and what the call ends with later; false: it may not have one. */
bool call_to_task(struct call *c, const char *status);
void call_task_status(struct call *c, struct str status);

/* --- the room itself --- */

struct mcp {
    struct mcp_config config;
    const struct face *face;
    struct conversation *conversations; /* owned */
    size_t conversation_count;
    struct call *calls; /* those of no conversation */
    size_t call_count;  /* of all: each holds us */
    bool freed;         /* the last call frees the rest */
    struct listener_of_changes *listeners;
    struct tasks *tasks; /* owned by tasks.c */
};
/* Frees what is left when the last call has gone. */
void mcp_release(struct mcp *m);
