/* Private to turn.c and finish.c: the answer to one request as it is made. */
#pragma once

#include "doors/anthropic/messages_int.h"

/* A call of the reply in hand. */
struct due {
    char id[TOOL_ID_MAX];
    char inner[24];
    enum sub sub;
    json_t *input;   /* owned */
    json_t *answers; /* owned, or NULL */
    bool broken;     /* what the model wrote is no JSON object */
};

struct turn {
    struct anthropic *anthropic;
    struct service *service;
    struct caller caller;
    struct ask ask;
    struct history history;
    struct message message;
    struct turn_failure failure;
    loop_fn *on_news; /* NULL: nobody listens */
    void *arg;
    bool over, left;
    unsigned waits;
    char session[ID_MAX]; /* "" without code execution */
    bool made;            /* it is new with this message */
    struct model *model;  /* borrowed */
    struct model_call *asking;
    struct deed *deed;
    struct due *due; /* owned */
    size_t due_count, due_at;
    bool replied; /* the model has, in this run */
    size_t turns;
    unsigned calls; /* made in this run */
    int64_t begun_us;
    size_t text_part, text_bytes; /* of the reply that comes: what has been told of its text */
    bool text_told;
    size_t bytes;    /* of the message, about */
    json_t *outputs; /* owned: for the manifest */
    json_t *log;     /* owned: calls, for the manifest */
    const char *stop;
};

/* --- turn.c --- */

/* A callback has come. True: nobody wants what it brings. */
bool turn_is_gone(struct turn *r);
void turn_tell(struct turn *r); /* there is more to read */

/* --- finish.c: each of these is the last that is done with it --- */

/* stop: static. */
void turn_finish(struct turn *r, const char *stop);
/* code: of errors.c, or NULL. */
void turn_fail(struct turn *r, int status, const char *code, const char *text);
void turn_fail_err(struct turn *r, const struct err *e, const char *code);
/* What was done so far is worth more than an error: the client comes back with it. */
void turn_no_reply(struct turn *r, const struct model_failure *f);

void turn_set_container(struct turn *r, const struct session_row *row);
