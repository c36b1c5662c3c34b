/*
 * anthropic: the code execution tool, containers and the Files API of Anthropic, as
 * their clients know them. An SDK of theirs, pointed at /anthropic, is served here.
 *
 * Touches: requests through http, the service, models. Never touches: sockets, the
 * store, rules; a container of theirs is a session of ours.
 *
 * anthropic_new(), anthropic_door_init(), http_add(). routes.c has the table, errors.c
 * says what is wrong in their way, and each of the other files answers some routes.
 */
#pragma once

#include "doors/http/http.h"

struct anthropic;
struct models;

struct anthropic_config {
    struct loop *loop;     /* borrowed, as are the rest */
    struct models *models; /* who answers messages */
    bool download_uploads; /* what a client has uploaded can be downloaded again */
    const char *pool;      /* of containers; NULL: the first */
    uint64_t timeout_ms;   /* of one command; 0: what the pool gives */
    uint64_t cell_ms;      /* of one cell of a REPL */
    uint64_t turns;        /* of the model in one message: then it pauses */
    uint64_t wall_ms;      /* of one message: then it pauses, too */
    uint64_t idle_ms;      /* a container keeps its sandbox; 0: as long as the pool says */
    uint64_t answer_ms;    /* code that has called a tool of the client waits for it */
    uint64_t approval_ms;  /* a message waits for an approver before it pauses */
    bool capture_cwd;      /* new files at the top of the workspace are the user's, too */
};

struct anthropic *anthropic_new(const struct anthropic_config *config);
/* Code that waits for clients is ended, and messages pause at their next step. */
void anthropic_drain(struct anthropic *a);
/* Ends what is under way and begins nothing more: before the service goes. */
void anthropic_close(struct anthropic *a);
void anthropic_free(struct anthropic *a); /* after the last request; NULL is none */
void anthropic_door_init(struct door *ret, struct anthropic *a);
