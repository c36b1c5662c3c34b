/*
 * anthropic: Anthropic's Messages API with the code execution tool, its containers and its Files
 * API, for Anthropic's SDKs pointed at /anthropic. A container is a session of the service.
 *
 * Touches: requests through http, the service, models. Never touches: sockets, the store, rules.
 *
 * anthropic_door and these functions are a row of cli/doors.c. door.c has the routes, errors.c the
 * format of errors; each of the other files answers some routes or is a part of POST /v1/messages
 * (messages_int.h).
 */
#pragma once

#include "doors/http/http.h"

struct anthropic;
struct models;

struct anthropic_config {
    struct loop *loop; /* borrowed, as are service, models and pool */
    struct service *service;
    struct models *models; /* that answer messages */
    bool download_uploads; /* clients can download what they have uploaded */
    const char *pool;      /* of containers; NULL: the first */
    uint64_t timeout_ms;   /* of one command; 0: what the pool gives */
    uint64_t cell_ms;      /* of one cell of a REPL */
    uint64_t turns;        /* replies of the model in one message, which pauses then */
    uint64_t wall_ms;      /* of one message, which pauses then */
    uint64_t idle_ms;      /* an unused container keeps its sandbox; 0: what the pool gives */
    uint64_t answer_ms;    /* code waits for a tool of the client */
    uint64_t approval_ms;  /* a message waits for an approver before it pauses */
    bool capture_cwd;      /* new files at the top of the workspace are given to the user, too */
};

struct anthropic *anthropic_new(const struct anthropic_config *config);
/* Ends code that waits for clients; messages pause at their next step. */
void anthropic_drain(void *room);
/* Ends all messages and begins none. Call before the service is freed. */
void anthropic_close(void *room);
void anthropic_free(void *room); /* after the last request */
extern const struct door anthropic_door;
