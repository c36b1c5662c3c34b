/*
 * Private to the half of the room that answers messages.
 *
 * A request becomes an ask (ask.c), its messages a history (history.c). A turn (turn.c)
 * takes both to the message that is the answer: it finds the container (lodging.c),
 * asks the model, has the calls of its reply made (deed.c) and asks again, until the
 * model has no more to say. What comes of it is written by a message (message.c), once
 * for all who read it: desk.c lets a client that tries again read on.
 */
#pragma once

#include "doors/anthropic/anthropic_int.h"
#include "doors/values/values.h"
#include "model/model.h"
#include "record/record.h"

/* --- numbers --- */

#define TOOL_ID_MAX   96
#define TOOLS_SHOWN   256
#define CALLABLE_MAX  64     /* tools of the client that code may call */
#define MESSAGES_LONG 100000 /* messages of one request */
#define UPLOADS_SHOWN 100    /* files of one request */
#define SKILLS_SHOWN  20
#define REPLY_CALLS   64          /* calls of one reply of the model */
#define OUTPUT_SHOWN  (256 * KiB) /* of stdout, and of stderr, in a result */
#define MODEL_SHOWN   (48 * KiB)  /* the same, as the model reads it */
#define OUTPUTS_MAX   100         /* files of one call */
#define MESSAGE_BYTES (4 * MiB)   /* of one message: it pauses there */
#define LOG_BYTES     (16 * MiB)  /* of its events: with half of them, too, as a block may follow */
#define INPUT_DIR     "input"     /* in the workspace */

/* --- tools.c: what is offered to the model, by the version a client asks for --- */

enum sub { SUB_BASH, SUB_EDITOR, SUB_PYTHON, SUB__COUNT };

/* One of the tools that stand behind code_execution. */
struct sub_tool {
    const char *name; /* of a call */
    const char *result, *error, *inner,
        *output_type; /* types of its result, and of what is in it */
};
extern const struct sub_tool sub_tools[SUB__COUNT];
int sub_find(const char *name);        /* an enum sub, or -1 */
int sub_find_result(const char *type); /* by the type of the result block */

struct version {
    const char *type;
    const char *caller; /* as which code calls tools of the client; NULL: it cannot */
    unsigned subs;      /* IN(enum sub) */
    bool repl;          /* cells keep to the time limit of cells, and say so in their output */
};
/* NULL: there is no such version. */
const struct version *version_named(const char *type);
bool caller_is_code(const json_t *caller); /* of a tool_use block */

struct tool_limits {
    uint64_t call_s, cell_s; /* seconds a command and a cell may take */
    bool outside;            /* some hosts can be reached */
};
/* Appends what the model is offered. callable: of struct ask. */
void tools_offer(json_t *tools, unsigned subs, const json_t *callable,
                 const struct tool_limits *limits);

/* --- blocks.c: what stands in a message --- */

/* "srvtoolu_..." or "toolu_...", from which the session can be read again. */
void tool_id_make(char ret[TOOL_ID_MAX], const char *prefix, const char *session);
bool tool_id_session(const char *id, char ret[ID_MAX]);

/* All owned by the caller. */
json_t *block_use(enum sub sub, const char *id, json_t *input);
json_t *block_client_use(const char *id, const char *name, json_t *input, json_t *caller);
json_t *block_result(enum sub sub, const char *id, json_t *content); /* takes content */
json_t *content_error(enum sub sub, const char *code);
/* takes outputs */
json_t *content_ran(enum sub sub, struct str out, struct str err, int code, json_t *outputs,
                    uint64_t dropped);
/* What a model reads of the content of a result. */
json_t *content_said(const json_t *content);
/* At most max bytes: the beginning, a line about what is left out, the end. */
json_t *output_clip(struct str text, size_t max, uint64_t dropped);

/* --- history.c: the messages of a request, as a model reads them --- */

/* A call of ours that has no result yet. */
struct waiting {
    const char *id; /* borrowed from the body */
    char inner[24]; /* its id for the model */
    enum sub sub;
    json_t *input;   /* borrowed */
    json_t *answers; /* owned, or NULL: {id: tool_result} for the calls that its code has made */
};

struct history {
    json_t *messages;        /* owned: complete but for the last results */
    json_t *results, *rest;  /* owned: of the last message, which is the user's */
    size_t replies;          /* of the model */
    size_t calls;            /* numbered so far */
    struct waiting *waiting; /* owned */
    size_t waiting_count;
    json_t *uploads; /* owned: [{"id", "part"}]: each file once; part.text is to be filled in */
    char session[ID_MAX]; /* as the ids of its calls tell, or "" */
    bool pending_code;    /* code waits for answers */
    struct buf system;    /* of messages with that role */
};
/* Pure. -1: *e is what an answer of 400 says. */
int history_read(struct history *h, const json_t *messages, struct err *e) MUST_CHECK;
void history_done(struct history *h);
/* A result of one that waited; the last message has all of them when none waits. */
void history_answer(struct history *h, const char *inner, json_t *text, json_t *images);
void history_close(struct history *h);
/* The model has said this: takes parts. Its results are collected anew. */
void history_reply(struct history *h, json_t *parts);
void history_call_id(struct history *h, char ret[24]);

/* --- ask.c: what a request asks for --- */

struct ask {
    json_t *body;                  /* owned */
    const char *model;             /* borrowed, as are those below */
    const struct version *version; /* NULL: without code execution */
    unsigned subs;
    const json_t *container; /* string, or NULL */
    const json_t *skills;    /* array, or NULL */
    json_t *tools;           /* owned: of the client, for the model; ours come later */
    json_t *callable;        /* owned: definitions of tools that code may call */
    json_t *stop;            /* or NULL */
    struct buf system;
    uint64_t max_tokens;
    bool stream, one_at_a_time;
    enum model_choice choice;
    char forced[132]; /* tool that must be called; "" any */
    bool forced_sub;  /* it is ours */
};
int ask_read(struct ask *k, json_t *body, struct err *e) MUST_CHECK; /* takes body */
void ask_done(struct ask *k);

/* --- message.c: a message as it grows --- */

struct message {
    char id[ID_MAX];
    char *model; /* owned */
    bool stream;
    struct buf log;    /* a stream's bytes, from the first */
    json_t *content;   /* owned */
    json_t *container; /* owned, or NULL */
    struct buf text;   /* of the block that grows, ... */
    bool growing;      /* ... while there is one */
    bool begun, ended;
    bool full;        /* a part of it is lost, and so is all */
    const char *stop; /* static: why it has ended */
    json_t *approval; /* owned, or NULL: what it waits for */
    uint64_t input_tokens, output_tokens, runs;
};
void message_init(struct message *m, const char *model, bool stream);
void message_done(struct message *m);
/* The first event: by itself with the first block, at the latest. */
void message_begin(struct message *m);
void message_text(struct message *m, struct str piece);
void message_text_end(struct message *m);
void message_block(struct message *m, json_t *block); /* takes it */
void message_end(struct message *m, const char *stop);
json_t *message_value(const struct message *m); /* whole; owned by the caller */
extern const struct str message_ping;

/* --- deed.c: one call of ours, from the model's order to its result --- */

struct deed;
struct deed_spec {
    struct anthropic *anthropic;
    struct service *service;
    const struct caller *caller; /* copied */
    enum sub sub;
    bool repl;
    const char *id, *session, *job;
    unsigned number;        /* of the call in its job */
    json_t *input;          /* referenced */
    const json_t *callable; /* or NULL */
};
struct deed_watcher {
    /* It is over. content: of its result, images: for the model, or NULL; borrowed. outputs: files
     * for the manifest, borrowed. text: for the model in place of content, or NULL. */
    void (*on_over)(void *arg, json_t *content, json_t *outputs, json_t *images, const char *text);
    /* Its code has called tools: [{"id", "name", "input"}], borrowed. */
    void (*on_calls)(void *arg, json_t *calls);
    /* Somebody must agree first, and has not yet. It is over with that. */
    void (*on_approval)(void *arg, const struct approval_row *row);
};
/* Everything comes from the loop. */
struct deed *deed_start(const struct deed_spec *spec, const struct deed_watcher *w, void *arg);
/* Nobody listens any more, and what runs is interrupted. */
void deed_leave(struct deed *c);
/* Nobody listens until deed_find(): its code waits for answers. */
void deed_park(struct deed *c);
/* The one of this tenant that was parked, or NULL. */
struct deed *deed_find(struct anthropic *a, const char *tenant, const char *id);
/* answers: {id: tool_result}. All that was asked must be there: else false and nothing happens. */
bool deed_resume(struct deed *c, const json_t *answers, const struct deed_watcher *w, void *arg);
void deeds_leave(struct anthropic *a); /* all that are parked */

/* --- lodging.c: which session, and its files --- */

struct lodging_spec {
    struct anthropic *anthropic;
    struct service *service;
    const struct caller *caller;
    struct str container; /* as the request names it; empty: none; until fn */
    const char *session;  /* as its history tells, or "" */
    json_t *uploads;      /* as of a history; their texts are filled in */
};
/* row: its id and expires_ms; made: it is new. NULL: failed says why; code is NULL or one of
 * errors.c. */
typedef void lodging_fn(void *arg, const struct session_row *row, bool made,
                        const struct err *failed, const char *code);
void lodging_start(const struct lodging_spec *spec, lodging_fn *fn, void *arg);

/* --- turn.c: from a request to the message that answers it --- */

struct turn;
struct turn_failure {
    int status; /* 0: none */
    const char *code;
    char text[512];
    int retry_s;
    bool final; /* trying again is of no use, whatever the status */
};
struct turn_spec {
    struct anthropic *anthropic;
    struct service *service;
    const struct caller *caller;
};
/* Takes what ask and history have. on_news: more can be read of its message, or it is over. */
struct turn *turn_start(const struct turn_spec *spec, struct ask *ask, struct history *h,
                        loop_fn *on_news, void *arg);
const struct message *turn_message(const struct turn *r);
const struct turn_failure *turn_failure(const struct turn *r); /* or NULL */
bool turn_is_over(const struct turn *r);
/* The stream begins now, if it can, as its reader has waited long. */
void turn_greet(struct turn *r);
/* When it is over: keeps the message and lets go of the rest. Returns about how many bytes that is.
 */
size_t turn_settle(struct turn *r);
/* on_news is not called any more, and what runs is interrupted. */
void turn_leave(struct turn *r);

/* --- desk.c, messages.c: requests --- */

struct desk;
struct desk *desk_new(struct anthropic *a);
/* Ends what is under way, and begins nothing. */
void desk_close(struct desk *d);
void desk_free(struct desk *d);
void desk_read(struct desk *d, struct request *r, const uint8_t hash[32], struct ask *ask,
               struct history *h);
void handle_messages(struct request *r);

/* --- note.c: texts that we put into a workspace ourselves --- */

/* Takes text. fn as of service_space_put(). */
void note_put(struct service *sv, const struct caller *c, const char *session, const char *path,
              char *text, space_fn *fn, void *arg);

/* --- capture.c: what a call prints, and the files it leaves for the user --- */

struct capture {
    struct buf out, err;
    json_t *images;           /* owned: for the model */
    char folder[ID_MAX + 16]; /* $OUTPUT_DIR in the workspace */
    bool cwd;                 /* what is new at the top of the workspace, too */
    char **paths;             /* owned, each: to be given to the user */
    size_t count, at;
    bool too_large;
    json_t *outputs; /* owned: as a result has them */
    json_t *listed;  /* owned: as a manifest has them */
    enum sub sub;
    struct service *service;
    const struct caller *caller; /* borrowed */
    const char *session;         /* borrowed */
    loop_fn *fn;
    void *arg;
};
void capture_init(struct capture *c, enum sub sub);
void capture_done(struct capture *c);
void capture_event(struct capture *c, const struct event *ev);
void capture_note(struct capture *c, const char *text); /* a line in stderr */
/* Makes files of what was left; fn once, from the loop. Not with nothing to keep. */
void capture_keep(struct capture *c, loop_fn *fn, void *arg);
