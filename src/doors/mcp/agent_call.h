/*
 * mcp/agent_call.h: tools that the agent works on, for a door that has an agent.
 *
 * Touches: calls, the agent. Never touches: how the door starts and records a run.
 *
 * A door fills a struct agent_backend and names it as the ctx of a tool set with these
 * tools. agent_calls_stop() before the agent is freed, agent_calls_free() after the service.
 */
#pragma once

#include "agent/agent.h"
#include "doors/mcp/tool.h"

/* A run of the agent that a call asks for. The backend copies or references all of it. */
struct agent_request {
    struct service *service;
    const struct caller *caller;
    const char *tool;  /* its name; static */
    json_t *inputs;    /* checked */
    struct model *own; /* as in struct agent_spec, or NULL; stays the caller's */
    bool can_answer;   /* somebody can answer questions of the agent */
};
/* id: of the execution, which may have failed already. failed: there is none. */
typedef void agent_started_fn(void *arg, const char *id, const struct err *failed);
/* Both borrowed. outputs: as the tools' outputSchema says. record: of the agent, or NULL. */
typedef void agent_outputs_fn(void *arg, const json_t *outputs, const json_t *record,
                              const struct err *failed);

struct agent_backend {
    struct loop *loop; /* borrowed */
    void *ctx;         /* borrowed: of the three functions; each calls fn once, from the loop */
    struct agent *(*agent)(void *ctx, struct err *e); /* or NULL */
    void (*start)(void *ctx, const struct agent_request *q, agent_started_fn *fn, void *arg);
    /* base_url: begins the links to this server; or NULL. */
    void (*outputs)(void *ctx, struct service *sv, const struct caller *c, const char *id,
                    const char *base_url, agent_outputs_fn *fn, void *arg);
    struct agent_call *calls; /* owned by agent_call.c */
};
void agent_calls_stop(struct agent_backend *b);
void agent_calls_free(struct agent_backend *b);

/* --- agent_tool.c --- */

extern const struct tool tool_python_interpreter; /* tool_code_execution is in mcp.h */
json_t *agent_tool_result(const json_t *outputs, bool structured); /* owned: the result of a call */

/* --- agent_call.c, for agent_tool.c --- */

/* Ends the call. args: checked. */
void agent_call_start(struct call *c, const char *tool, bool needs_model, json_t *args);
/* False: the call has no answer to an earlier question, and is to be started. */
bool agent_call_resume(struct call *c);
