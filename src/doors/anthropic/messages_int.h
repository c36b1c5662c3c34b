/*
 * Private to the files that answer POST /v1/messages.
 *
 * messages.c parses the request into parameters (request_params.c) and a history (history.c), and
 * finds the turn of a client that retries, or starts one. The turn (turn.c) prepares the container
 * (container.c), asks the model, makes the calls of the reply (tool_call.c) and asks again, until
 * the model calls nothing more. message.c holds the answer as it grows.
 */
#pragma once

#include "doors/anthropic/anthropic_int.h"
#include "model/model.h"
#include "record/record.h"

/* --- numbers --- */

#define TOOL_ID_MAX     96
#define TOOLS_SHOWN     256         /* tools of one request */
#define CALLABLE_MAX    64          /* tools of the client that code may call */
#define MESSAGES_LONG   100000      /* messages of one request */
#define UPLOADS_SHOWN   100         /* files of one request */
#define REPLY_CALLS     64          /* calls of one reply of the model */
#define OUTPUT_SHOWN    (256 * KiB) /* of stdout, and of stderr, in a result */
#define MODEL_SHOWN     (48 * KiB)  /* the same, as the model reads it */
#define OUTPUTS_MAX     100         /* files of one call */
#define MESSAGE_BYTES   (4 * MiB)   /* of one message: a longer one pauses */
#define LOG_BYTES       (16 * MiB) /* of its events: it pauses at half, as a long block may follow */
#define INPUT_DIR       "input"    /* in the workspace */
#define SKILL_FILES_MAX 800        /* of the skills of one message */

/* --- tools.c: the server tools, and what a model is offered of them --- */

enum server_tool { TOOL_BASH, TOOL_EDITOR, TOOL_PYTHON, TOOL__COUNT };

/* The name of a tool, and the types of its blocks. */
struct server_tool_names {
    const char *name;
    const char *result;          /* of the result block */
    const char *error, *content; /* of what is in a result block */
    const char *output_type;     /* of a file in the content */
};
extern const struct server_tool_names server_tools[TOOL__COUNT];
int server_tool_find(const char *name);      /* an enum server_tool, or -1 */
int server_tool_of_result(const char *type); /* by the type of the result block */

struct tool_version {
    const char *type;
    const char *caller;    /* caller type of code that calls client tools; NULL: code cannot */
    unsigned server_tools; /* IN(enum server_tool) */
    bool repl;             /* a cell has its own time limit; past it the result says so */
};
/* NULL: there is no such version. */
const struct tool_version *tool_version_find(const char *type);
bool caller_is_code(const json_t *caller); /* caller: of a tool_use block */
/* Whether an object of the array has a member with this text. */
bool list_has(const json_t *list, const char *member, const char *text);

struct tool_limits {
    uint64_t call_s, cell_s; /* seconds a command and a cell may take */
    bool outside;            /* code can reach some hosts */
};
/* Appends the definitions of these server tools. callable: of struct request_params. */
void tools_offer(json_t *tools, unsigned which, const json_t *callable,
                 const struct tool_limits *limits);

/* --- tools.c: calls and results as blocks --- */

/* An id, "srvtoolu_..." or "toolu_...", that holds the session's. */
void tool_id_make(char ret[TOOL_ID_MAX], const char *prefix, const char *session);
bool tool_id_session(const char *id, char ret[ID_MAX]);

/* All return values are owned by the caller. */
json_t *block_use(enum server_tool tool, const char *id, json_t *input);
json_t *block_client_use(const char *id, const char *name, json_t *input, json_t *caller);
json_t *block_result(enum server_tool tool, const char *id, json_t *content); /* takes content */
json_t *content_error(enum server_tool tool, const char *code);
/* Takes outputs. */
json_t *content_ran(enum server_tool tool, struct str out, struct str err, int code,
                    json_t *outputs, uint64_t dropped);
/* The content of a result as text for the model. */
json_t *content_said(const json_t *content);
/* edit.c: the image as a part, owned by the caller. NULL: it is damaged or too large, and an
 * endpoint would refuse it with the whole conversation. data: base64. */
json_t *model_image(json_t *data);
/* The image that a view has shown, likewise; or NULL. */
json_t *edit_image(const json_t *content);
/* At most max bytes: the beginning, a line that says how much is left out, the end. */
json_t *output_clip(struct str text, size_t max, uint64_t dropped);

/* --- history.c: the messages of a request, in the form that models take --- */

/* A server tool call without a result. */
struct pending_call {
    char id[TOOL_ID_MAX];
    char model_call_id[24];
    enum server_tool tool;
    json_t *input;   /* owned */
    json_t *answers; /* owned, or NULL: {id: tool_result} for the calls that its code has made */
    bool broken;     /* the model's input is no JSON object */
};

/* Where the first one stands, if there is one. */
struct attachment {
    bool is;
    size_t message;
};

struct history {
    json_t *messages;             /* owned: all but the last one of the user */
    json_t *results, *rest;       /* owned: parts of that last message; results come first */
    size_t replies;               /* of the model, so far */
    size_t calls;                 /* that have a model_call_id, so far */
    struct pending_call *pending; /* owned: at most REPLY_CALLS, in order */
    size_t pending_count;
    json_t *uploads;   /* owned: [{"id", "part"}], each file once; container.c fills in part.text */
    json_t *attached;  /* owned: [{"id", "part", "at": message, "of_result": bool}], images and
                          documents that are files; attachments.c fills in the parts */
    json_t *documents; /* owned: [{"part", "at": message, "id"?: of a file}], that are no text */
    struct attachment first_image; /* that is not of a result */
    char session[ID_MAX];          /* from the ids of its calls, or "" */
    bool pending_code;             /* code of a pending call waits for client tools */
    struct buf system;             /* text of messages with the role "system" */
};
/* -1: *e is the message of a 400. */
int history_read(struct history *h, const json_t *messages, struct err *e) MUST_CHECK;
void history_done(struct history *h);
/* Adds a pending call. Takes input. */
struct pending_call *history_pend(struct history *h, enum server_tool tool, const char *id,
                                  const char *model_call_id, json_t *input);
void history_pending_clear(struct history *h);
/* Adds the result of a pending call. attached: parts, or NULL. */
void history_answer(struct history *h, const char *model_call_id, json_t *text, json_t *attached);
/* Completes the last message of the user, before the model is asked. */
void history_close(struct history *h);
/* Adds a reply of the model. Takes parts. */
void history_reply(struct history *h, json_t *parts);
/* The next model_call_id. */
void history_call_id(struct history *h, char ret[24]);

/* --- request_params.c: the parameters of a request --- */

struct request_params {
    json_t *body;                       /* owned */
    char *betas;                        /* owned, or NULL: "a,b", for the model's endpoint */
    const char *model;                  /* borrowed, as are container, skills and stop */
    const struct tool_version *version; /* NULL: without code execution */
    unsigned server_tools;
    const json_t *container; /* string, or NULL */
    const json_t *skills;    /* array, or NULL */
    json_t *tools;           /* owned: client tools that the model may call */
    json_t *callable;        /* owned: client tools that code may call */
    json_t *stop;            /* array, or NULL */
    struct buf system;
    const json_t *system_cache; /* cache_control of its last block, or NULL */
    uint64_t max_tokens;
    bool stream, one_at_a_time;
    enum model_choice choice;
    char forced[132];   /* the tool that must be called; "" for any */
    bool forced_server; /* it must be a server tool */
};
/* Takes body. */
int request_params_read(struct request_params *k, json_t *body, struct err *e) MUST_CHECK;
void request_params_done(struct request_params *k);
/* What an anthropic-beta header names for the model's endpoint; owned by the caller, or NULL. */
char *request_betas(struct str header);

/* skill_mount.c: those of a request, as they are written. */
int skills_check(const json_t *skills, struct err *e) MUST_CHECK;

/* --- messages.c: the routes --- */

/* A parsed POST /v1/messages, or one of count_tokens. */
struct messages_request {
    struct request *request; /* borrowed: until it is answered; NULL: a request of a batch */
    struct service *service;
    struct caller caller;
    uint8_t hash[32]; /* of the body */
    struct request_params params;
    struct history history;
    bool thread; /* the request asks for a thread, which this server does not have */
    uint64_t tokens;
    struct err failed;
};
void handle_messages(struct request *r);
void handle_count_tokens(struct request *r);
/* An estimate of the tokens that a model makes of all text in the value. */
uint64_t tokens_of(const json_t *v);

/* --- message.c: a message as it grows --- */

struct message {
    char id[ID_MAX];
    char *model; /* owned */
    bool stream;
    struct buf log;    /* all bytes of the stream */
    json_t *content;   /* owned: blocks */
    json_t *container; /* owned, or NULL */
    struct buf text;   /* of the text block that grows */
    bool growing;      /* there is one */
    json_t *open;      /* owned: another block that grows, as it began; or NULL */
    bool begun, ended;
    bool full;           /* a part did not fit: the message is no use */
    const char *stop;    /* static: stop_reason */
    char *stop_sequence; /* owned, or NULL */
    json_t *approval;    /* owned, or NULL: pending_approval */
    uint64_t input_tokens, output_tokens, runs;
    uint64_t cache_read, cache_written; /* not in input_tokens */
    uint64_t cache_hour;                /* of cache_written */
};
void message_init(struct message *m, const char *model, bool stream);
void message_done(struct message *m);
/* Writes message_start, unless it is written; the first block does so, too. */
void message_begin(struct message *m);
void message_text(struct message *m, struct str piece);
/* Begins a block that grows: a call, without its input; thinking. */
void message_open_use(struct message *m, const json_t *block);
void message_open_thinking(struct message *m);
/* A piece of it: a delta of this type, with this member. */
void message_more(struct message *m, const char *type, const char *key, struct str piece);
/* Ends the block that grows, text, too. Takes block: as it is in the end; NULL: as it began. */
void message_close(struct message *m, json_t *block);
void message_block(struct message *m, json_t *block); /* takes block */
void message_end(struct message *m, const char *stop);
json_t *message_value(const struct message *m); /* owned by the caller */
extern const struct str message_ping;

/* --- tool_call.c, client_tools.c: one call of a server tool --- */

struct turn;
struct tool_call;
/* Calls one of turn_on_result(), turn_on_client_calls() and turn_on_approval() from the loop. */
struct tool_call *tool_call_start(struct turn *r, const struct pending_call *p);
/* Interrupts what runs. The turn hears no more. */
void tool_call_leave(struct tool_call *c);
/* Keeps the call, whose code waits for client tools, until a later turn resumes it. */
void tool_call_park(struct tool_call *c);
/* The parked call of this tenant, or NULL. */
struct tool_call *tool_call_find(struct anthropic *a, const char *tenant, const char *id);
/* answers: {id: tool_result}. False, and nothing happens, when a call of the code has none. */
bool tool_call_resume(struct tool_call *c, const json_t *answers, struct turn *r);
void tool_calls_leave(struct anthropic *a); /* leaves all parked calls */

/* --- turn.c: from a request to the message that answers it --- */

struct turn_failure {
    int status; /* 0: none */
    const char *code;
    char text[512];
    int retry_s;
    bool final; /* a retry is no use, whatever the status */
};
/* Takes params and history. on_news: there is more of the message, or the turn is over. */
struct turn *turn_start(struct anthropic *a, struct messages_request *m, loop_fn *on_news,
                        void *arg);
/* Begins the stream, if the container is known: a reader has waited long. */
void turn_greet(struct turn *r);
/* Frees all but the message of a turn that is over. Returns about how many bytes remain. */
size_t turn_settle(struct turn *r);
/* Interrupts what runs. on_news is not called any more. */
void turn_leave(struct turn *r);

/* --- messages.c: turns under way, and kept for retries --- */

struct turn_registry;
struct turn_registry *turn_registry_new(struct anthropic *a);
/* Ends all turns, and begins none. */
void turn_registry_close(struct turn_registry *d);
void turn_registry_free(struct turn_registry *d);
