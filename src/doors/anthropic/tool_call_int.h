/* Private to tool_call.c and client_tools.c: one call of a server tool. */
#pragma once

#include "doors/anthropic/turn_int.h"

#define CALLS_FOLDER ".calls"
#define IDENT_CHARS  24
#define PLACE        "/workspace/"

/* A call of a client tool, made by the code, that has no answer. */
struct client_call {
    char ident[IDENT_CHARS + 1]; /* the code's own name for it */
    char id[TOOL_ID_MAX];
};

struct tool_call {
    struct tool_call *next, **link; /* parked */
    struct anthropic *anthropic;
    struct service *service;
    struct caller caller;
    enum server_tool tool;
    bool repl;
    char id[TOOL_ID_MAX], session[ID_MAX];
    json_t *input, *callable; /* owned */
    struct turn *turn; /* borrowed: gets what comes of the call; NULL: nobody, while it is parked */
    bool left, telling;
    unsigned waits;      /* callbacks that will come and cannot be taken back */
    struct timer *timer; /* owned: for an approval, for answers, for a result to be fetched */
    struct execution *execution; /* borrowed: until it ends */
    char approval[ID_MAX];       /* a person must agree first; or "" */
    int64_t approval_expires_ms;
    char folder[ID_MAX + 16]; /* $OUTPUT_DIR in the workspace */
    struct buf out, err;      /* what the code printed */
    int return_code;
    uint64_t dropped; /* bytes of output past the limit */
    json_t *images;   /* owned: for the model */
    char **paths;     /* owned, each: files for the user, by name */
    size_t path_count, path_at;
    bool too_large;                   /* one of the files */
    size_t left_out, refused;         /* files past OUTPUTS_MAX; that could not be kept */
    struct err refusal;               /* of the first */
    json_t *outputs, *listed;         /* owned: the files as a result has them, and as a manifest */
    struct client_call *client_calls; /* owned */
    size_t client_call_count;
    size_t coming;               /* answers on their way to the code */
    json_t *fresh;               /* owned: client calls that no turn has been told of */
    int64_t stands_us, stood_us; /* since when the clock stands still, or 0; how long before */
    json_t *content;             /* owned: of the result, when the call is over */
    const char *text;            /* for the model in place of content, or NULL */
};

/* --- tool_call.c --- */

/* Each callback counted in waits calls this first. True: the call was left, and may be freed now.
 */
bool tool_call_is_gone(struct tool_call *c);
/* Tells the turn, from the loop, of the result or of fresh client calls. */
void tool_call_tell(struct tool_call *c);

/* --- edit.c: the text editor --- */

char *edit_command(const json_t *input); /* owned by the caller */
bool edit_reads(const json_t *input);    /* it changes nothing */
struct str edit_code(const json_t *input);
/* The content of the result block, owned by the caller; adds an image that was viewed to c. */
json_t *edit_content(struct tool_call *c, struct str printed);

/* --- client_tools.c: tools of the client that code calls --- */

/* Takes the calls out of a display that announces them. */
void tool_call_on_event(struct tool_call *c, const struct event *ev);
/* Answers all calls with an error: the client has not come back. */
void tool_call_time_is_up(struct tool_call *c);
void tool_call_unpark(struct tool_call *c);
