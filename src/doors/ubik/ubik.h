/*
 * ubik: Ubik's code execution. A request in plain words goes in, with documents; a plan,
 * a log of rounds, files and pictures come out, polled for or streamed.
 *
 * Touches: requests through http, calls of the mcp room, the service, the agent. Never
 * touches: sockets, the store, rules, models.
 *
 * ubik_new(), then ubik_door_init() and http_add() for plain HTTP; ubik_face() is what an
 * mcp room of its own shows. who.c tells who asks, order.c has a tool do something,
 * outputs.c and stream.c tell what came of it; documents.c, sandboxes.c and talks.c are
 * what else can be asked for.
 */
#pragma once

#include "agent/agent.h"
#include "doors/http/http.h"

struct ubik;
struct face;
struct tool;

#define UBIK_SECRET_BYTES 32

struct ubik_config {
    struct loop *loop; /* borrowed */
    /* The agent, made when the first request needs it. NULL with *e when it cannot be made. */
    struct agent *(*agent)(void *arg, struct err *e);
    void *arg;
    const char *pool;          /* NULL: the first; borrowed, as are the rest */
    const struct env_var *env; /* of its sandboxes */
    size_t env_count;
    uint64_t run_ms;                   /* of one run at most; 0: the agent's */
    bool no_replan;                    /* as in struct agent_spec */
    const char *public_url;            /* how clients reach us; NULL: as this one did, ... */
    const char *address;               /* ... or, where that cannot be told, so; or NULL */
    uint64_t event_bytes;              /* of one event of a stream: a longer one comes in pieces */
    uint64_t keep_ms;                  /* executions, and what they made; 0: for ever */
    uint8_t secret[UBIK_SECRET_BYTES]; /* signs tokens */
};

struct ubik *ubik_new(const struct ubik_config *config);
void ubik_stop(struct ubik *u); /* before the agent goes: it watches no more */
void ubik_free(struct ubik *u); /* after the last request and call; NULL is none */
void ubik_door_init(struct door *ret, struct ubik *u);
const struct face *ubik_face(struct ubik *u); /* outlived by u */
/* The tool that needs a model, for a face of others; its ctx is the room. */
extern const struct tool tool_code_execution;
