/* Private to deed.c and answers.c: one call of a tool of ours. */
#pragma once

#include "doors/anthropic/messages_int.h"

#define CALLS_FOLDER ".calls"
#define IDENT_CHARS  24
#define PLACE        "/workspace/"

/* A call that the code has made and that has no answer. */
struct pending {
    char ident[IDENT_CHARS + 1]; /* the code's own name for it */
    char id[TOOL_ID_MAX];
};

struct deed {
    struct deed *next, **link;    /* parked */
    struct deed *after, **active; /* in its place among those that run or wait for their turn */
    struct anthropic *anthropic;
    struct service *service;
    struct caller caller;
    enum sub sub;
    bool repl;
    char id[TOOL_ID_MAX], session[ID_MAX];
    json_t *input, *callable; /* owned */
    struct deed_watcher watcher;
    void *arg;
    bool watched, left;
    bool begun;          /* it has had its turn */
    unsigned waits;      /* callbacks that will come and cannot be taken back */
    struct timer *timer; /* owned: for an approval, for answers, for whoever wants the result */
    struct clearance clearance;
    struct approval_watch *approval;
    bool asking;
    struct job *job; /* borrowed: while it runs */
    struct capture capture;
    struct pending *pending; /* owned */
    size_t pending_count;
    size_t coming;               /* answers on their way to the code */
    json_t *fresh;               /* owned: calls that nobody has been told of */
    int64_t stands_us, stood_us; /* since when its time stands still, or 0; how long before */
    json_t *content;             /* owned: when it is over */
    const char *text;            /* for the model in place of it, or NULL */
    bool telling;
};

/* --- deed.c --- */

/* It does not keep others from their turn: it is over, or parked. */
void deed_step_aside(struct deed *c);

/* A callback has come. True: nobody wants what it brings. */
bool deed_is_gone(struct deed *c);
/* What is new is told from the loop: its end, or fresh calls. */
void deed_tell(struct deed *c);

/* --- answers.c: tools of the client that code calls --- */

/* Whether it was a display of calls, and no output. */
bool deed_takes_calls(struct deed *c, const struct event *ev);
/* The client has not come back. */
void deed_time_is_up(struct deed *c);
void deed_unpark(struct deed *c);
