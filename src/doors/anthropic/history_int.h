/* Private to history.c and history_user.c: the messages of a request while they are read. */
#pragma once

#include "doors/anthropic/messages_int.h"

/* A reply of the model, and what the user's side answers. */
struct exchange {
    json_t *parts;          /* owned: the model's, in its own order */
    json_t *results, *rest; /* owned: the user's; results come first */
};

/* A call in the messages. */
struct known_call {
    size_t reply;
    size_t message; /* index of its message */
    int tool;       /* enum server_tool; -1: a client tool */
    const char *id; /* borrowed, as is input */
    json_t *input;
    char model_call_id[24];
    bool answered;
    size_t code_of;  /* 0: the model made the call; else 1 + index of the call whose code did */
    json_t *answers; /* owned, or NULL: {id: tool_result} for calls of its code */
};

struct history_reader {
    struct history *h;
    struct exchange *reply; /* owned */
    size_t count;
    struct known_call *known; /* owned */
    size_t known_count;
    json_t *by_id;          /* owned: id -> index in known */
    json_t *files;          /* owned: ids of uploads so far */
    const json_t *messages; /* borrowed */
    size_t at;              /* index of the message in hand */
    struct err *e;
};

/* --- history.c --- */

struct exchange *history_last(struct history_reader *g);
/* The call with this id, or NULL. */
struct known_call *history_find(struct history_reader *g, const char *id);
/* Adds the result of a call. Takes text. attached: parts, or NULL. */
void history_put_result(struct history_reader *g, struct known_call *k, json_t *text,
                        json_t *attached, bool error);

/* --- history_user.c: blocks of the user --- */

void history_add_text(json_t *parts, struct str text);
/* The cache_control of a block, for the part that was made of it. */
void history_cache(json_t *part, const json_t *block);
/* -1: *g->e is the message of a 400. */
int history_take_user_block(struct history_reader *g, json_t *block) MUST_CHECK;
