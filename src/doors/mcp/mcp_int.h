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

#define MIME_UI "text/html;profile=mcp-app"
/* _meta of a tool whose results the page shows; clients from before 2026 look for the second key.
 */
#define META_PAGE                                                                                  \
    "{\"ui\":{\"resourceUri\":\"ui://retort/result.html\"},"                                       \
    "\"ui/resourceUri\":\"ui://retort/result.html\"}"

/* --- numbers: everything a stranger can make longer --- */

#define MESSAGE_MAX      (20 * MiB) /* a file may come in one, as base64 */
#define CALLS_MAX        256        /* at a time, of one conversation */
#define CONVERSATION_MAX 10000      /* of the legacy era, over HTTP */
#define CROWD_MAX        5000       /* of these, of one tenant */
#define IDLE_MS          1800000    /* such a one ends when it was unused so long */
#define ID_TEXT_MAX      1024       /* of a request's id */
#define ANSWER_MS        50000      /* clients give up after a minute */
#define ASK_MS           600000     /* a question to the client's user */
#define ASKS_MAX         64         /* questions at a time, of one conversation */
#define TASK_ASK_MS      3600000    /* the same, of a task */
#define LISTENERS_MAX    1024       /* streams of changes */
#define LISTENERS_TENANT 128        /* of one tenant */
#define WATCHED_MAX      1024       /* URIs of one stream, or of one conversation */
#define WATCHED_URI_MAX  4096       /* bytes */
#define STATE_MS         600000     /* a requestState, until it comes back */
#define STATE_MAX        (64 * KiB) /* of its JSON: answers to earlier questions are in it */

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
#define VERSION_COUNT 5
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
struct conversation;
struct face;
struct tool;
struct stdio;

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
    /* As answer(), of a response that is text already; or NULL. Takes text, malloced. */
    void (*answer_text)(struct peer *p, struct call *c, char *text, size_t n);
    /* Ends the connection, not the call: the client comes back for the rest; or NULL. */
    void (*hang_up)(struct peer *p);
};

/* --- message.c: what came in --- */

enum message_kind { MESSAGE_BAD, MESSAGE_REQUEST, MESSAGE_NOTIFICATION, MESSAGE_RESPONSE };
/* MESSAGE_BAD: *ret_why says why; it may be answered with message_id(), and RPC_INVALID. */
enum message_kind message_kind(const json_t *message, const char **ret_why);
/* An id that can be echoed, or NULL. */
const json_t *message_id(const json_t *message);

/* --- batch.c: several messages at once, of 2025-03-26 --- */

#define BATCH_MAX 100
/*
 * Serves each message of an array that came in a conversation whose version HAS_BATCH. What is
 * answered goes to p at the end, as one array with a call of NULL: p's answer() or drop() comes
 * once, perhaps before this returns. False when there is nothing to answer: p was not used.
 */
bool batch_serve(struct conversation *v, struct peer *p, const struct face *face,
                 const struct caller *who, const json_t *messages);
/* NULL, or why this array is none that can be served. */
const char *batch_refused(const struct conversation *v, const json_t *messages);

/* --- conversation.c: what outlasts a message --- */

/* What changed and was not told yet. */
struct due {
    unsigned kinds; /* IN(CHANGE_*) */
    json_t *uris;   /* owned: object, or NULL */
};

/*
 * A session of the legacy era over HTTP, or the one on standard input and output. A modern request
 * over HTTP has none.
 */
struct conversation {
    struct conversation *next, **link;
    struct mcp *mcp; /* borrowed */
    char id[ID_MAX]; /* "mcp_..." */
    struct caller owner;
    struct client client; /* of the legacy era; version NULL before initialize */
    struct peer *aside;   /* for what belongs to no call, or NULL: a GET stream, stdout */
    struct call *calls;   /* under way */
    size_t call_count;
    json_t *watched;      /* owned: object, URIs subscribed to; or NULL */
    struct due due;       /* of listen.c */
    char session[ID_MAX]; /* the interpreter used when none is named; "" at first */
    int64_t used_us;
    struct streams *streams; /* owned by streams.c; NULL: not over HTTP, so it never idles */
    struct crowd *crowd;     /* borrowed: those of the same tenant */
    struct conversation *newer, *older; /* of the crowd, by their last use */
    struct conversation *beside;        /* with the same hash */
};
/* NULL when there are too many. One over HTTP may take the place of the same tenant's that was
 * unused for longest. */
struct conversation *conversation_new(struct mcp *m, const struct caller *owner);
struct conversation *conversation_find(struct mcp *m, struct str id, const struct caller *who);
/* Its calls are cancelled. */
void conversation_free(struct conversation *v);
struct call *conversation_call(struct conversation *v, const json_t *id);

/* Now and then: ends those over HTTP that were idle for IDLE_MS. */
void conversations_sweep(struct mcp *m);
/* For mcp_free(), when all of them are gone. */
void roll_free(struct mcp *m);

/* --- header.c: headers against the body --- */

struct str header_trim(struct str s);
bool header_lists(struct str list, const char *word);
/* *ret: a view of value, or of room, which has value.n bytes. False: its base64 is broken. */
bool header_decode(struct str value, char *room, struct str *ret);
/* Whether it says a string, a number or a boolean. */
bool header_says(struct str value, const json_t *v);
/* A header by its name; p NULL: there is none. */
typedef struct str header_fn(void *arg, const char *name);
/* NULL, or what is wrong with the headers of arguments that the tool's schema marks. */
const char *headers_differ(const struct tool *t, const json_t *args, header_fn *header, void *arg);

/* --- post.c: the answer of one POST --- */

/* Holds r until the answer, or the drop, which free it. v: or NULL, modern. */
struct peer *post_new(struct request *r, struct conversation *v);
/* Whose peer it is (NULL: a batch's), and what is set when it has been answered. */
void post_watch(struct peer *p, struct call *c, bool *ret_over);
/* It was not answered at once. */
void post_wait(struct peer *p, struct loop *l);
void post_forget(struct peer *p); /* it was not needed, and the request is not answered */

/* --- oauth.c: where clients get a token --- */

char *oauth_challenge(const struct mcp *m); /* owned; NULL: it is not configured */
void handle_resource_metadata(struct request *r);

/* --- streams.c: events over HTTP, and how they are come back for --- */

struct sse;
/* all NULL: of the modern era, which keeps nothing. */
struct sse *sse_new(struct streams *all);
/* Answers r, which reads from now on. It is held until it is told of its end, or has gone: then
 * whoever called says sse_gone(). primed: it begins with an event that has an id. */
void sse_open(struct sse *s, struct request *r, bool primed);
void sse_put(struct sse *s, json_t *message); /* takes message */
size_t sse_waits(const struct sse *s);
void sse_on_gone(struct sse *s, loop_fn *fn, void *arg); /* of the reader, if there is one */
void sse_gone(struct sse *s);
void sse_hang_up(struct sse *s); /* the reader is done; the stream is not */
void sse_end(struct sse *s);     /* after the response: it is kept for a while */
void sse_free(struct sse *s);    /* there will be no response */

struct streams *streams_new(struct conversation *owner);
void streams_free(struct streams *all);
/* Somebody listens for what belongs to no call. */
bool streams_are_open(const struct streams *all);
void streams_close(struct streams *all);
void streams_listen(struct streams *all, struct request *r);
/* What came after that event. False when there is no such stream any more: r is not answered. */
bool streams_resume(struct streams *all, struct request *r, struct str last_id);
bool event_id_read(struct str id, uint64_t *ret_stream, uint64_t *ret_event);
/* Those whose time is over. */
void streams_expire(struct mcp *m);

/* --- call.c: a request being served --- */

struct call {
    struct call *next, **link;         /* of its conversation, else of mcp */
    struct mcp *mcp;                   /* borrowed */
    const struct face *face;           /* borrowed */
    struct peer *peer;                 /* borrowed; NULL when it has been answered or dropped */
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
    struct ask *asks;           /* owned by ask.c: questions without an answer */
    json_t *answers;            /* owned: modern, to what was asked when it came before; or NULL */
    json_t *state;              /* owned: modern, what call_ask_all() was given then; or NULL */
    struct task *task;          /* owned by tasks.c: the answer goes there; or NULL */
    struct clearance clearance; /* of approval.c: what it runs, it runs with this */
    bool cancelled;
};

/* Takes nothing: id and params are referenced. */
struct call *call_new(struct mcp *m, const struct face *face, struct peer *p,
                      struct conversation *v, const struct caller *who, const struct client *client,
                      const json_t *id, json_t *params);

/* The service, or NULL when the call has been answered with why there is none. */
struct service *call_service(struct call *c);
bool call_is_modern(const struct call *c);
/* Whether the client said it can: "elicitation", "sampling", "extensions/" EXT_TASKS. */
bool call_can(const struct call *c, const char *capability);
/* Modern: a call that needs it is refused, with 400, before anything runs. False: answered. */
bool call_needs(struct call *c, const char *capability);

/* Adds what the era wants in a result. */
void result_dress(const struct call *c, json_t *result);
/* Each of these ends the call: c is gone after it. */
void call_result(struct call *c, json_t *result); /* takes an object; adds what the era wants */
/* A result that is text already, with what result_dress() adds. */
void call_result_text(struct call *c, struct str result);
void call_error(struct call *c, int code, json_t *data, const char *fmt, ...)
    PRINTF(4, 5); /* takes data, or NULL */
/* What the service could not do, as a JSON-RPC error. ERR_HOST is logged and told without text. */
void call_fail(struct call *c, const struct err *e);
void call_drop(struct call *c); /* after on_cancel */

/* Ends the connection and not the call, where the client can come back for the rest. */
void call_hang_up(struct call *c);

/* Told once: the client wants no answer any more, or is gone. The handler ends with call_drop(),
 * or answers if it is done at this moment. Without one the call is dropped by itself when it is
 * answered. */
void call_on_cancel(struct call *c, loop_fn *fn, void *arg);
/* For tasks.c: answers the client, and the call goes on. Takes result. */
void call_answer(struct call *c, json_t *result);
/* For transports: nobody waits for it any more. c may be gone after this. */
void call_cancel(struct call *c);
/* It goes on without its conversation, which may end or use the id again. */
void call_leave(struct call *c);
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
 * hears its answer: result, or NULL with failed. Modern: when the call came with an answer to a
 * question of ours of that key, fn hears it; else the call ends here with input_required, fn is
 * never called, and the client comes again. So nothing may have been done before. In a task the
 * question is the task's, and fn hears of it later; there several may be open at a time.
 *
 * fn is called from the loop, never from inside, and not any more when the call has ended. A
 * client that cannot be asked is failed, ERR_CALLER; nobody answering is ERR_BUSY. When the call
 * is cancelled and has no on_cancel, failed tells.
 */
typedef void ask_fn(void *arg, json_t *result, const struct err *failed);
void call_ask(struct call *c, const char *key, const char *method, json_t *params, ask_fn *fn,
              void *arg); /* takes params */
/* Whether the client said that it can be asked this. params: or NULL. */
bool call_can_ask(const struct call *c, const char *method, const json_t *params);
/* A response of the client to a question of ours. */
void conversation_answer(struct conversation *v, const json_t *message);

/* For call.c: of a call that ends, nobody is told; of one that is cancelled, failed. */
void asks_forget(struct call *c);
void asks_fail(struct call *c);
/* For tasks.c: what is asked, as inputRequests; owned. Answers to some of it. */
json_t *asks_show(const struct call *c);
void asks_answer(struct call *c, const json_t *responses);

/* Modern, by hand, for several questions at a time. An answer that came with this call, whoever
 * asked, or NULL; what call_ask_all() was given when the call came before, or NULL. Both borrowed.
 */
json_t *call_input(const struct call *c, const char *key);
json_t *call_state(const struct call *c);
/* Ends the call with input_required. Takes both; state: or NULL. */
void call_ask_all(struct call *c, json_t *requests, json_t *state);
/* The same where the answer may come more than once: what was answered before is not carried, and
 * state tells which question it was. */
void call_ask_again(struct call *c, json_t *requests, json_t *state);
/* Before the handler runs: reads inputResponses and requestState. False: answered. */
bool call_read_input(struct call *c);
bool input_is_good(const json_t *responses); /* an object of objects */

/* --- sampling.c: the client's own model --- */

/* A model that asks through somebody who can reach the client: when it has a question, on_question
 * hears of it, and later whoever that is says sampler_answer(). One question at a time. */
struct sampler;
struct sampler *sampler_new(const struct call *c, loop_fn *on_question, void *arg);
void sampler_free(struct sampler *s); /* after the last call of its model; NULL is none */
struct model *sampler_model(struct sampler *s);
/* The params of sampling/createMessage: borrowed; NULL when nothing is asked. */
json_t *sampler_question(struct sampler *s);
/* result: or NULL with failed. From the loop. Without a question it does nothing. */
void sampler_answer(struct sampler *s, const json_t *result, const struct err *failed);

/* --- state.c: what a client carries for us from one call to the next --- */

/* Signed: it comes back from the same key, with the same request, in time, and once; where it has
 * "repeats": true, more often, and whoever made it finds out what is new. Owned; NULL when it is
 * too long. */
char *state_sign(const struct call *c, const json_t *state);
/* -1: it is not ours, not for this call, too old, or was used. *ret is owned. */
int state_open(struct call *c, struct str text, json_t **ret, struct err *e) MUST_CHECK;
void states_free(struct mcp *m);

/* --- core.c: from a message to its handler --- */

struct method {
    const char *name;
    unsigned eras;     /* IN(ERA_LEGACY) | IN(ERA_MODERN) */
    const char *named; /* the parameter that Mcp-Name repeats, or NULL */
    bool asks;         /* modern: it may end with input_required */
    unsigned needs;    /* FACE_*, or 0 */
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

/* Families of methods: what a face does not have is no method, and no capability. */
enum face_has {
    FACE_PROMPTS = 1,
    FACE_RESOURCES = 2,
    FACE_COMPLETIONS = 4,
    FACE_SKILLS = 8,
    FACE_TASKS = 16,
    FACE_LOGGING = 32,
    FACE_UI = 64,
};

struct face {
    const char *name, *title;
    const char *instructions;
    const struct tool *const *tools;  /* ends with NULL; in the order they are listed */
    const struct tool *const *hidden; /* or NULL: called by old names, and not listed */
    unsigned has;                     /* FACE_* */
    const char *pool;             /* where its tools run when a call names none; NULL: the first */
    unsigned changes;             /* IN(CHANGE_*): what clients can hear of */
    const struct face_more *more; /* or NULL */
    void *ctx;                    /* borrowed: what its tools work with, or NULL */
    const struct tool *thinks;    /* or NULL: one that needs a model, ... */
    bool has_model;               /* ... ours; else it is shown to those who have one */
};
extern const struct face face_native;

/* Shown after a face's own: each handler asks here, too. list: array to add to. What returns true
 * has answered the call, or will. */
struct face_more {
    const struct tool *const *tools; /* groups, each ends with a name of NULL; then NULL */
    void (*list_resources)(json_t *list);
    void (*list_templates)(json_t *list);
    bool (*read_resource)(struct call *c, struct str uri);
    void (*list_prompts)(json_t *list);
    bool (*get_prompt)(struct call *c, struct str name, const json_t *args); /* args: or NULL */
    bool (*complete)(struct call *c, const json_t *ref);
};
extern const struct face_more fixtures; /* of the conformance suite: fixtures.c */

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
    /* Or NULL: what this is a stub of. It takes the stub's place in a call, or a list, whose _meta
     * has its name as tool_choice; run() of the stub is for all others. */
    const struct tool *summoned;
};

void handle_tools_list(struct call *c);
void tools_forget(struct mcp *m); /* what tools/list said: they have changed */
void handle_tools_call(struct call *c);
const struct tool *tool_find(const struct face *f, struct str name);
/* Whether a tool_choice is this tool's: its name, a list with it, or {"name": it}; NULL is none. */
bool tool_is_chosen(const struct tool *t, const json_t *choice);

extern const struct tool tool_run_code, tool_run_shell, tool_get_execution,
    tool_interrupt_execution, tool_create_session, tool_list_sessions, tool_restart_session,
    tool_close_session, tool_list_files, tool_read_file, tool_write_file, tool_list_packages;

/* --- approval.c --- */

/* Runs the tool, once whoever must agree has agreed; nothing happens before. */
void approval_check(struct call *c, const struct tool *t, json_t *args);

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
/* What it has become; owned. is_error: the model should read it and do better. */
json_t *content_result(struct content *t, bool is_error);
/* Ends the call with it. */
void content_answer(struct content *t, struct call *c, bool is_error);
/* One text and nothing else; is_error. */
void tool_fail(struct call *c, const char *fmt, ...) PRINTF(2, 3);
/* What the service said, as a result the model can act on. ERR_HOST goes the way of call_fail(). */
void tool_refuse(struct call *c, const struct err *e);

/* --- run.c: code on its way --- */

/* How a run came to its session. */
enum run_session {
    RUN_NAMED,    /* by its id */
    RUN_USUAL,    /* that of the conversation */
    RUN_FIRST,    /* the same, made for this run */
    RUN_REPLACED, /* the same, as the one before is gone */
    RUN_NEW,      /* made for this run; nobody else remembers it */
    RUN_LOOK,     /* it has run before, and is only looked at */
};
/* " | new session ..." where the reader must be told, for the first line. */
const char *run_session_word(enum run_session how);
/* Ends the call. args: session_id, timeout_ms, env, background. Takes code. */
void run_start(struct call *c, const json_t *args, enum exec_kind kind, char *code);

/* --- report.c: an execution as a model reads it --- */

/* What is to be told: all that matters, a page of its output, or one image. */
struct report_of {
    enum run_session how;
    bool has_offset;
    uint64_t offset; /* bytes of stdout and stderr */
    size_t image;    /* from 1; 0: all that matters */
};
/* Ends the call. */
void report_answer(struct call *c, const struct exec_info *info, const struct report_of *of);

/* --- events.c: what an execution has said, read from its record --- */

struct str event_text(const json_t *ev, const char *key); /* "" when there is none */
bool event_is(const json_t *ev, const char *type);
/* Both streams, as they were printed. */
void events_output(const json_t *events, struct buf *ret);
/* The n-th image it has shown, from 1, in the best format there is; NULL: there are fewer. Base64
 * text; of image/svg+xml the text itself. */
const json_t *events_image(const json_t *events, size_t n, const char **ret_mime);
const json_t *event_image(const json_t *ev, const char **ret_mime);
/* A smaller one for models, made by the guest; NULL: there is none. */
const json_t *event_preview(const json_t *ev, const char **ret_mime);
/* A later one has taken its place. last: events_last() of all of them. */
json_t *events_last(const json_t *events); /* owned */
bool event_is_replaced(const json_t *last, const json_t *ev, size_t at);

/* --- artifacts.c: the files an execution has made --- */

void artifacts_put(const json_t *events, struct buf *ret); /* a line, or nothing */
void artifacts_link(const json_t *events, struct content *t, const struct call *c,
                    const char *session);

/* --- figures.c: the images of a result --- */

struct figures {
    const char *execution; /* borrowed */
    json_t *items;         /* owned: array, content */
    size_t seen, shown, sum;
    size_t only; /* this one, from 1; 0: the first few */
};
/* The next image of the execution: put among the items if it can be, and told of in a line. */
void figures_add(struct figures *f, const json_t *ev, struct buf *text);
/* Adds an image that a model can be shown to items, or says why it cannot. */
const char *figure_put(json_t *items, size_t *sum, struct str base64);

/* --- picture.c: images by their bytes --- */

#define PICTURE_SIDE  1568   /* pixels; larger ones cost a model more and show it no more */
#define PICTURE_BYTES 700000 /* as base64 */
#define PICTURES_MAX  4      /* of one result ... */
#define PICTURES_SUM  850000 /* ... as base64: a client takes a megabyte of result in all */

struct picture {
    const char *mime; /* static */
    uint32_t width, height;
    bool whole; /* from its first block to its last; nobody has looked at the pixels */
};
/* False when it is none of PNG, JPEG, GIF and WebP. */
bool picture_look(struct str bytes, struct picture *ret);
/* Why it cannot be shown to a model, or NULL when it can. bytes: not as base64. */
const char *picture_why_not(const struct picture *p, size_t bytes);

/* --- clip.c: text that fits; all of it is cut between characters --- */

size_t text_head(struct str s, size_t most); /* so many of the first bytes */
/* The same, up to the end of a line where one is near. */
size_t text_head_lines(struct str s, size_t most);
size_t text_tail(struct str s, size_t most); /* where the last bytes begin */
size_t text_lines(struct str s);             /* newlines in it */
/* Divides sum among wants: none gets more than it wants, and all that get less get the same. */
void text_share(const size_t *wants, size_t *ret, size_t count, size_t sum);
/* Puts s, or its head and tail and what is between them, in about most bytes. execution: whose
 * output it is, or NULL. True: something is left out. */
bool text_clip(struct buf *b, struct str s, size_t most, const char *execution);

/* --- place.c: the session a tool works in --- */

/* failed NULL: session is its id, valid during the callback only. */
typedef void place_fn(void *arg, const char *session, enum run_session how,
                      const struct err *failed);
/* given, or that of the conversation, or a new one. fn may be called from inside. */
void place_find(struct call *c, struct service *sv, struct str given, place_fn *fn, void *arg);
/* given, or that of the conversation; NULL when there is none, and the call is answered. */
const char *place_there(struct call *c, struct str given, char ret[ID_MAX]);
/* Ends the call with why something could not be done in this session, and what to do now. */
void place_refuse(struct call *c, const char *session, const struct err *failed);

/* --- listen.c: who hears of what changed --- */

enum change { CHANGE_TOOLS, CHANGE_PROMPTS, CHANGE_RESOURCES, CHANGE_RESOURCE };
/* tenant NULL: everybody. uri: of CHANGE_RESOURCE. Cheap when nobody listens; what comes fast is
 * told once. */
void mcp_publish(struct mcp *m, enum change what, const char *tenant, const char *uri);
/* A conversation has an aside now: what it could not be told before is told. */
void conversation_listens(struct conversation *v);
/* Streams of changes end, with a result each. */
void listeners_end(struct mcp *m);
void listeners_free(struct mcp *m);
void handle_listen(struct call *c);
void handle_subscribe(struct call *c);
void handle_unsubscribe(struct call *c);

/* --- uri.c: names of what can be read --- */

#define URI_MAX       (3 * SPACE_PATH_MAX + 128)
#define WINDOW_DIGITS 15 /* of offset and limit */

enum uri_kind { URI_OTHER, URI_FILE, URI_OUTPUT, URI_IMAGE };

struct uri {
    enum uri_kind kind;
    char id[ID_MAX];           /* of a session or an execution; "": there is none */
    char path[SPACE_PATH_MAX]; /* as it is kept */
    uint64_t offset, limit;    /* bytes; limit 0: as much as there is */
    bool is_part;              /* one of them was given */
    size_t image;              /* from 1 */
};
/* All return ret. path: as it is kept; NULL when it is too long to be read by name. */
const char *uri_of_file(char ret[URI_MAX], struct str session, struct str path);
const char *uri_of_output(char ret[URI_MAX], struct str execution);
const char *uri_of_image(char ret[URI_MAX], struct str execution, size_t n);
/* -1: it is one of ours, and wrong. What is not ours is URI_OTHER. */
int uri_read(struct str text, struct uri *ret, struct err *e) MUST_CHECK;

/* --- embed.py: files that are part of the program --- */

struct embedded {
    const char *uri, *name, *mime;
    struct str bytes;
    const char *digest;
    const char *matter; /* JSON: what stands at the top of a SKILL.md; or NULL */
};
extern const struct embedded embedded[];              /* ends with a uri of NULL */
const struct embedded *embedded_find(struct str uri); /* skills.c; or NULL */
json_t *embedded_show(const struct embedded *f, const struct version *v); /* owned: a Resource */

/* --- resources.c, reading.c, following.c --- */

/* ttlMs and cacheScope, where the era has them. */
void call_cacheable(const struct call *c, json_t *result, int ttl_ms, const char *scope);
/* There is no such thing, or not for this caller: the code of the era, with data.uri. */
void call_no_resource(struct call *c, struct str uri);
/* Each ends the call with the contents. */
void read_file_resource(struct call *c, const struct uri *u);
void read_execution_resource(struct call *c, const struct uri *u);
void mcp_unfollow(struct mcp *m);

/* --- prompts.c --- */

#define PROMPT_ARGS    4
#define PROMPT_ARG_MAX 4096

struct prompt_arg {
    const char *name, *text;
    bool required;
    const char *values; /* what may be completed: "files", "failures", "a|b|c"; or NULL */
};

struct prompt {
    const char *name, *title, *text;
    struct prompt_arg args[PROMPT_ARGS]; /* strings of at most PROMPT_ARG_MAX */
    const char *message;                 /* with "{name}" for an argument */
    const char *without; /* the same where the last argument was left out; or NULL */
};
const struct prompt *prompt_find(struct str name); /* or NULL */

/* --- walk.c: the files of a caller's sessions --- */

#define WALK_SESSIONS 20  /* looked at in one walk */
#define WALK_FILES    200 /* of each, the latest */

struct walk_place {             /* a session, and the files that were changed last in it */
    const char *session, *name; /* name: or NULL */
    const struct space_file *files;
    size_t count;
};
struct walk_end {         /* where to go on */
    char session[ID_MAX]; /* "": there is nothing more */
    int64_t created_ms;
};
/* Sessions newest first, from behind `after` (or NULL). each() false: enough. */
typedef bool walk_fn(void *arg, const struct walk_place *place);
typedef void walk_end_fn(void *arg, const struct walk_end *end, const struct err *failed);
void walk_files(struct call *c, struct service *sv, const struct walk_end *after, walk_fn *each,
                walk_end_fn *end, void *arg);

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
/* The client gets a task now, and what the call ends with later. False: it may not have one, and
 * the call goes on as it was. status: one line for people. */
bool call_to_task(struct call *c, const char *status);
void call_task_status(struct call *c, struct str status);
/* For call.c: what a call with a task ends with. */
void task_take_result(struct call *c, json_t *result); /* takes result */
void task_take_error(struct call *c, int code, const char *text);
void tasks_free(struct mcp *m);

/* --- outlet.c: lines on their way out --- */

#define OUTLET_LINE_MAX (8 * MiB) /* clients refuse lines of 10 MiB */

struct outlet;
/* on_written: some of what waited has gone. on_unread: nobody reads any more, all is dropped. Both
 * may come from inside outlet_put(). */
struct outlet *outlet_new(struct loop *l, int fd, loop_fn *on_written, loop_fn *on_unread,
                          void *arg);
void outlet_free(struct outlet *o);
/* False: it is longer than a client would read, and left out. */
bool outlet_put(struct outlet *o, const json_t *message);
bool outlet_put_text(struct outlet *o, char *text, size_t n); /* takes text, malloced, or NULL */
size_t outlet_waits(const struct outlet *o);                  /* bytes */

/* --- stdio.c --- */

/* After the conversations: their calls speak through it. */
void stdio_free(struct stdio *s);

/* --- the room itself --- */

struct mcp {
    struct mcp_config config;
    struct face own;
    const struct face *face;            /* what is shown: own, or the config's */
    struct conversation *conversations; /* owned */
    size_t conversation_count;
    struct call *calls;          /* those of no conversation */
    size_t call_count;           /* of all: each holds us */
    bool draining;               /* nothing new that stays open */
    bool freed;                  /* the last call frees the rest */
    struct listeners *listeners; /* owned by listen.c */
    struct tasks *tasks;         /* owned by tasks.c */
    struct states *states;       /* owned by state.c */
    struct stdio *stdio;         /* owned by stdio.c */
    struct roll *roll;           /* owned by conversation.c */
    struct kept *kept;           /* owned: streams.c */
    char *challenge;             /* owned: of 401 over HTTP, or NULL */
    struct route routes[6];      /* of config.paths */
    char
        *tools_text[VERSION_COUNT][2]; /* owned: results of tools/list, or NULL; [1]: with thinks */
    struct service *followed;          /* borrowed: tells what changes; or NULL */
    struct reading *reads_waiting;     /* resources to be read */
    size_t reads;                      /* at this moment */
};
/* Frees what is left when the last call has gone. */
void mcp_release(struct mcp *m);
