/*
 * mcp/tool.h: how a door offers a set of tools over MCP, and what a tool can do with a call.
 *
 * Touches: the call that a tool was given. Never touches: transports, conversations, methods.
 *
 * A door fills a struct tool_set with rows of struct tool and names it in struct mcp_config.
 * tools/call finds the row, checks the arguments against its params, asks for approval where
 * the tool runs code, and calls run(). run() ends the call exactly once, at once or later from
 * the loop, with content_answer(), call_result(), tool_fail(), tool_refuse(), call_error(),
 * call_fail() or call_drop(); the call is gone after that.
 */
#pragma once

#include "doors/mcp/mcp.h"
#include "doors/values/values.h"
#include "loop/loop.h"
#include "record/record.h"

#include <jansson.h>

struct call;

/* --- tools --- */

enum tool_hints {
    TOOL_READS = 1,      /* readOnlyHint */
    TOOL_DESTROYS = 2,   /* destructiveHint */
    TOOL_REPEATABLE = 4, /* idempotentHint */
    TOOL_OUTSIDE = 8,    /* openWorldHint */
    TOOL_RUNS = 16,      /* runs code that the client gave */
};

struct tool {
    const char *name, *title;
    const char *text;           /* for a model: purpose, limits, one example */
    const struct field *params; /* checked before run(); also printed as inputSchema */
    const char *schema;         /* inputSchema as JSON in place of params; run() checks */
    const char *answer;         /* outputSchema as JSON, or NULL */
    const char *meta;           /* _meta as JSON, or NULL */
    unsigned hints;
    void (*run)(struct call *c, json_t *args); /* args: borrowed from the call, an object */
    /* Or NULL: the tool that this one is a stub of. A call or a list whose _meta names the tool as
     * tool_choice gets the full tool; all others get the stub. */
    const struct tool *summoned;
    /* How the tool says that nothing has run, as nobody agreed; or NULL: as text. waits: an
     * approver may still agree. id: of the approval, or NULL. Answers the call. */
    void (*not_approved)(struct call *c, bool waits, const char *id, const char *text);
};
/* Whether a tool_choice (a name, a list of names, {"name": ...}, or NULL) chooses this tool. */
bool tool_is_chosen(const struct tool *t, const json_t *choice);

/* Families of methods. What a tool set does not offer is no method and no capability. */
enum offers {
    OFFERS_PROMPTS = 1,
    OFFERS_RESOURCES = 2,
    OFFERS_COMPLETIONS = 4,
    OFFERS_SKILLS = 8,
    OFFERS_TASKS = 16,
    OFFERS_LOGGING = 32,
    OFFERS_UI = 64,
};

enum list_change { CHANGE_TOOLS, CHANGE_PROMPTS, CHANGE_RESOURCES, CHANGE_RESOURCE };
/* Tells subscribers of a change, at most once in a short time. tenant NULL: all tenants. uri: of
 * CHANGE_RESOURCE. */
void mcp_publish(struct mcp *m, enum list_change what, const char *tenant, const char *uri);

/* What clients find at one address. */
struct tool_set {
    const char *name, *title;
    const char *instructions;
    const struct tool *const *tools;  /* ends with NULL; in the order they are listed */
    const struct tool *const *hidden; /* or NULL: called by old names, and not listed */
    unsigned offers;                  /* OFFERS_* */
    const char *skill; /* OFFERS_SKILLS: the folder of the skill for these tools; or NULL */
    const char *pool;  /* where its tools run when a call names none; NULL: the first */
    unsigned changes;  /* IN(CHANGE_*): the changes that clients can subscribe to */
    const struct tool_set_more *more; /* or NULL */
    void *ctx;                        /* borrowed: what its tools work with, or NULL */
    const struct tool *agent_tool;    /* or NULL: a tool that needs a model, ... */
    bool has_model; /* ... which the server has; else only clients with sampling see the tool */
};

/* Extends a tool set. list: array to add to. A function that returns true ends the call. */
struct tool_set_more {
    void (*list_resources)(json_t *list);
    void (*list_templates)(json_t *list);
    bool (*read_resource)(struct call *c, struct str uri);
    void (*list_prompts)(json_t *list);
    bool (*get_prompt)(struct call *c, struct str name, const json_t *args); /* args: or NULL */
    bool (*complete)(struct call *c, const json_t *ref);
};

/* --- the call --- */

/* What a client has said of itself: with each message in the modern era, once in the legacy era. */
struct client {
    const struct protocol_version *version; /* static */
    json_t *capabilities;                   /* owned: object, or NULL */
    int log_level;                          /* the least that is sent, 0 (debug) to 7; -1: none */
    char name[64];
};

/* How the session of a tool was found. */
enum run_session {
    RUN_NAMED,    /* the call names it */
    RUN_USUAL,    /* it is the conversation's */
    RUN_FIRST,    /* it is made for the conversation */
    RUN_REPLACED, /* it is made for the conversation, whose session is gone */
    RUN_NEW,      /* it is made for this call, and there is no conversation */
};

struct call {
    struct call *next, **link;         /* of its conversation, else of mcp */
    struct mcp *mcp;                   /* borrowed */
    const struct tool_set *tool_set;   /* borrowed */
    struct peer *peer;                 /* borrowed; NULL when the call was answered or dropped */
    struct conversation *conversation; /* borrowed, or NULL */
    struct caller caller;
    struct client client;
    json_t *id, *params; /* owned; params: never NULL */
    const json_t *meta;  /* of params, or NULL */
    const char *method;  /* static, from the table of methods */
    json_t *token;       /* borrowed: of progress, or NULL */
    double progress;     /* the last that was sent */
    loop_fn *on_cancel;
    void *cancel_arg;
    struct call_keep *keeps;
    struct client_question *asks;   /* owned by ask.c: questions without an answer */
    json_t *answers;                /* owned: modern, answers to the questions of an earlier call */
    json_t *state;                  /* owned: modern, the state of call_ask_all() then; or NULL */
    struct mcp_task *task;          /* owned by tasks.c: takes the result; or NULL */
    struct call_approval *approval; /* of approval.c: the last question to the user; or NULL */
    char session[ID_MAX];           /* where the tool works; "": not known yet */
    char *base_url;                 /* owned: see call_base_url(); or NULL */
    enum run_session how;
    bool cancelled;
};

/* The service, or NULL: the call has been answered with the reason why there is none. */
struct service *call_service(struct call *c);
bool call_is_modern(const struct call *c);
/* Whether the client knows structuredContent. */
bool call_has_structured(const struct call *c);
/* Whether the call came over standard input, from a client on this machine. */
bool call_is_local(const struct call *c);
/* A header of the HTTP request that brought the call: in run(), not later. p NULL: there is none.
 */
struct str call_header(const struct call *c, const char *name);
/* request_base_url() of the call; NULL over standard input. */
const char *call_base_url(const struct call *c);
/* An argument of tools/call that is a string; p NULL: there is none. */
struct str call_arg(const struct call *c, const char *name);
/* The id of the conversation, or "". */
const char *call_conversation(const struct call *c);
/* Whether the client declared the capability: "elicitation", "sampling", "extensions/" EXT_TASKS.
 */
bool call_can(const struct call *c, const char *capability);
/* Modern: a call that needs the capability is refused, with 400. False: the call is answered. */
bool call_needs(struct call *c, const char *capability);

/* Each of these ends the call. */
void call_result(struct call *c, json_t *result); /* takes an object; adds what the era wants */
void call_error(struct call *c, int code, json_t *data, const char *fmt, ...)
    PRINTF(4, 5); /* takes data, or NULL */
/* An error of the service as a JSON-RPC error. ERR_HOST is logged and sent without its text. */
void call_fail(struct call *c, const struct err *e);
void call_drop(struct call *c); /* without an answer, after on_cancel */

/* fn is called once, when the client cancels or disconnects. It ends the call with call_drop(), or
 * with an answer that is ready. Without fn the call goes on, and nobody reads its answer. */
void call_on_cancel(struct call *c, loop_fn *fn, void *arg);
/* A cancelled call is dropped at once. For calls that own with call_keep() what they wait for. */
void call_drop_on_cancel(struct call *c);
/* fn(p) when the call ends, before it is freed. */
void call_keep(struct call *c, void (*fn)(void *), void *p);
/* Closes the connection, not the call, where the client can reconnect for the rest. */
void call_hang_up(struct call *c);

/* Sent if progress has grown and the client reads fast enough. total 0: unknown. */
void call_progress(struct call *c, double progress, double total, struct str message);
/* Takes data. level: 0 debug, 1 info, 2 notice, 3 warning, 4 error, ... 7 emergency. */
void call_log(struct call *c, int level, const char *logger, json_t *data);
/* The client gets a task now and the result later. False: the client cannot have a task, and the
 * call goes on as before. status: one line for people. */
bool call_to_task(struct call *c, const char *status);

/*
 * --- approval.c: a tool that runs code ---
 *
 * The tool hands call_approval_ask() to service_execute() as exec_spec.ask, calls call_on_ask() in
 * on_ask and call_on_end() first in on_end. Its struct is the call's: call_keep() with a function
 * that calls execution_leave() if the execution has not ended.
 */

/* code: a view into the arguments. */
struct approval_ask call_approval_ask(const struct call *c, struct str code);
/* Asks the client's user about x. Modern: this may end the call. Returns what on_ask() returns. */
bool call_on_ask(struct call *c, struct execution *x, const struct approval_info *info);
/* x has ended: nobody is asked any more, and a cancelled call is not told. True: nothing has run,
 * as nobody agreed, and the call has been answered. */
bool call_on_end(struct call *c, const struct execution *x, const struct err *failed);

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
#define EXT_TASKS "io.modelcontextprotocol/tasks"

/* --- results --- */

/* A result in the making: texts, images, links, in this order. */
struct tool_content {
    json_t *items; /* owned: array */
};
void content_init(struct tool_content *t);
void content_done(struct tool_content *t);
void content_text(struct tool_content *t, struct str text); /* invalid UTF-8 becomes U+FFFD */
void content_printf(struct tool_content *t, const char *fmt, ...) PRINTF(2, 3);
void content_image(struct tool_content *t, const char *mime, json_t *base64); /* takes base64 */
/* Left out for versions without resource_link; the text must name the file, too. */
void content_link(struct tool_content *t, const struct call *c, const char *uri, struct str name,
                  const char *mime, uint64_t size);
/* The finished result; owned. is_error: the model should read the text and try again. */
json_t *content_result(struct tool_content *t, bool is_error);
void content_answer(struct tool_content *t, struct call *c, bool is_error); /* ends the call */
/* Each ends the call with one text. tool_fail(): as an error that the model reads. */
void tool_say(struct call *c, struct str text);
void tool_printf(struct call *c, const char *fmt, ...) PRINTF(2, 3);
void tool_fail(struct call *c, const char *fmt, ...) PRINTF(2, 3);
/* The same with an error of the service. ERR_HOST becomes call_fail(). */
void tool_refuse(struct call *c, const struct err *e);

/* --- ask.c: questions to the client --- */

/*
 * Asks the client and calls fn with the answer: result, or NULL with failed. key names the question
 * within the call. fn is called from the loop, never from inside, and not after the call has ended.
 *
 * Legacy: a request to the client on the stream of the call. Modern: if the call came with an
 * answer to this key, fn gets that answer; else the call ends with input_required, fn is never
 * called, and the client calls again. So a tool must ask before it does anything. In a task several
 * questions may be open at a time.
 *
 * A client that cannot be asked: failed is ERR_CALLER. No answer in time: ERR_BUSY. A cancelled
 * call without on_cancel: failed, too.
 */
typedef void ask_fn(void *arg, json_t *result, const struct err *failed);
void call_ask(struct call *c, const char *key, const char *method, json_t *params, ask_fn *fn,
              void *arg); /* takes params */
/* Whether the client declared that it can be asked this. params: or NULL. */
bool call_can_ask(const struct call *c, const char *method, const json_t *params);
void asks_forget(struct call *c); /* open questions are withdrawn, and no fn is called */

/* Modern, several questions at a time: an answer that came with this call, or NULL; the state that
 * call_ask_all() was given in the call before, or NULL. Both borrowed. */
#define STATE_MS 600000 /* a client must come back with the state in this time */
json_t *call_input(const struct call *c, const char *key);
json_t *call_state(const struct call *c);
/* Ends the call with input_required. Takes both; state: or NULL. */
void call_ask_all(struct call *c, json_t *requests, json_t *state);
/* The same for a question whose answer may come more than once: earlier answers are not carried,
 * and state tells which question it was. */
void call_ask_again(struct call *c, json_t *requests, json_t *state);

/* --- sampling.c: the client's model --- */

/* A model whose questions the client answers. on_question is called when sampler_question() has a
 * new one; the answer goes to sampler_answer(). One question at a time. */
struct sampler;
struct sampler *sampler_new(const struct call *c, loop_fn *on_question, void *arg);
void sampler_free(struct sampler *s); /* after the last call of its model; NULL is none */
struct model *sampler_model(struct sampler *s);
/* The params of sampling/createMessage: borrowed; NULL when nothing is asked. */
json_t *sampler_question(struct sampler *s);
/* result: or NULL with failed. From the loop. Without a question it does nothing. */
void sampler_answer(struct sampler *s, const json_t *result, const struct err *failed);

/* --- parts of a result --- */

#define PICTURE_BYTES 700000 /* of one image, as base64 */
#define PICTURES_MAX  4      /* of one result */
#define URI_MAX       (3 * SPACE_PATH_MAX + 128)

/* Adds an image that a model can be shown to items, or says why it cannot. */
const char *figure_put(json_t *items, size_t *sum, struct str base64);
/* The URI of a file of a session. Returns ret; NULL: the path is too long for one. */
const char *uri_of_file(char ret[URI_MAX], struct str session, struct str path);
/* How many of the first bytes of s make at most `most` bytes of whole characters. */
size_t text_head(struct str s, size_t most);
/* Puts s, or its head and tail, in about most bytes. execution: the id of the execution that
 * printed s, or NULL. True: something is left out. */
bool text_clip(struct buf *b, struct str s, size_t most, const char *execution);
/* A file that is part of the program: the skill, its scripts, the page that shows results. */
struct embedded {
    const char *uri, *name, *mime;
    struct str bytes;
    const char *digest;
    const char *matter; /* JSON: what stands at the top of a SKILL.md; or NULL */
};
const struct embedded *embedded_find(struct str uri); /* or NULL */
