/*
 * ubik: Ubik's code execution. A client sends a request in plain words, with documents,
 * and polls or streams the plan, the log of rounds, the answer, files and pictures.
 *
 * Touches: requests through http, calls of the mcp room, the service, the agent. Never
 * touches: sockets, the store, rules, models.
 *
 * ubik_door and these functions are a row of cli/doors.c. end_user.c tells who asks, submission.c
 * starts a tool, outputs.c and stream.c show the results; documents.c, sandboxes.c and
 * agent_sessions.c hold the rest.
 */
#pragma once

#include "agent/agent.h"
#include "doors/http/http.h"

struct ubik;
struct tool_set;
struct agent_backend;

#define UBIK_SECRET_BYTES 32

struct ubik_config {
    struct loop *loop; /* borrowed */
    /* Makes the agent when the first request needs it; NULL with *e when that fails. */
    struct agent *(*agent)(void *arg, struct err *e);
    void *arg;
    const char *pool;          /* NULL: the first; borrowed, as are the rest */
    const struct env_var *env; /* of the sandboxes */
    size_t env_count;
    uint64_t run_ms;                   /* of one run of code at most; 0: the limit of the agent */
    bool no_replan;                    /* as in struct agent_spec */
    uint64_t event_bytes;              /* a longer event of a stream is cut into pieces */
    uint64_t keep_ms;                  /* of executions and their files; 0: for ever */
    uint8_t secret[UBIK_SECRET_BYTES]; /* signs tokens */
};

struct ubik *ubik_new(const struct ubik_config *config);
void ubik_stop(void *room);                       /* before the agent is freed: ends all watches */
void ubik_free(void *room);                       /* after the last request and call */
const struct tool_set *ubik_tool_set(void *room); /* lives as long as the room */
extern const struct door ubik_door;
/* For a tool set of another door with tool_code_execution: its ctx. */
struct agent_backend *ubik_backend(struct ubik *u);
