/*
 * agent: answers a request in plain words with the help of a language model that writes code.
 * Plan, code, approval, execution, observation, until an answer or the end of a budget.
 *
 * Touches: the service, models, its own records in the store. Never touches: HTTP or any
 * other wire format, the sandbox. A door turns bytes into these calls.
 *
 * agent_new(), agent_start(); then poll with agent_get(), or agent_watch(). Each run has one
 * record with everything that is known of it. step() in step.c takes the record from one
 * state to the next; the record is in the store before a model is asked or code runs. So a
 * restarted server, a client that polls and a client that watches all see the same.
 *
 * The record, as agent_get() shows it:
 *   {"id": "toolu_...", "tool", "owner", "status", "request", "context", "sandbox_id",
 *    "plan": ["..."], "logs": "...", "total_rounds", "files": [{"path", "name", "mime",
 *    "size", "image": bool}], "answer", "usage": {"input_tokens", "output_tokens", "calls"},
 *    "untraced": null | {"no_run": bool, "files": ["..."], "numbers": ["..."]}: what of the
 *    answer no execution made or printed;
 *    "error": null | {"code", "message"}, "question": null | {"prompt", "approval"?,
 *    "expires_ms"}, "created_ms", "started_ms", "ended_ms"}
 * status: pending, running, waiting_for_input; then completed, incomplete, failed or
 * cancelled.
 *
 * An event: {"seq": 1..., "at_ms", "type", ...}. Types: "phase" (phase: plan, code, gate, run,
 * observe, final; message; step?, round?, code?), "console" (stream, text), "question" (as
 * above), "error" (code, message), "end" (status). Watchers hear of a step when it is stored,
 * so no event is taken back.
 */
#pragma once

#include "model/model.h"
#include "service/service.h"

struct agent;

/* 0: the default beside it. Checked before each call of a model. */
struct agent_budget {
    uint64_t plan_steps;  /* 6 */
    uint64_t rounds;      /* at most 20; else twice the steps, at least 4 */
    uint64_t attempts;    /* of one step: 3 */
    uint64_t run_ms;      /* of one execution: 60 s */
    uint64_t wall_ms;     /* of the run: 600 s */
    uint64_t model_ms;    /* of one call of a model: 120 s */
    uint64_t input_chars; /* of one call of a model: 400,000 */
    uint64_t tokens;      /* of the run: 2,000,000 */
    uint64_t wait_ms;     /* for a person's answer: 300 s */
};

struct agent_config {
    struct loop *loop; /* borrowed, as are the rest */
    struct service *service;
    struct store *store;
    struct models *models;
    struct agent_budget budget;
    uint64_t tenant_loops; /* runs of one tenant at a time; 0: 256 */
    uint64_t record_ms;    /* how long a run is kept after its end; 0: for ever */
};

struct agent *agent_new(const struct agent_config *config);
/* Resumes the runs that an earlier process left, of this tenant or (NULL) of all. Code that was
 * running is not run again. */
void agent_resume(struct agent *a, const char *tenant);
/* Nothing new begins (ERR_AWAY). Runs pause after their current execution, and resume after a
 * restart. Watchers hear ERR_AWAY. Call before service_drain(). */
void agent_drain(struct agent *a);
void agent_free(struct agent *a); /* before the service; NULL is none */

struct agent_spec {
    struct str tool;  /* the tool's name on record: "code_execution" */
    struct str owner; /* the end user of the tenant, or empty */
    struct str request, context;
    struct str sandbox;   /* a session of the caller; empty: a new one ... */
    struct str pool;      /* ... of this pool; empty: the first */
    struct str input_dir; /* where the model is told to look for files; empty: in the cwd */
    const struct file_input *files; /* put into the workspace first; each has a path */
    size_t file_count;
    struct str model;  /* the model that the request named, or empty */
    struct model *own; /* the client's own, asked when no other is configured; or NULL. Outlives
                          the run */
    bool own_only;     /* no model but the client's own is asked */
    bool can_answer;   /* the user can be asked, and answers with agent_provide() */
    bool external;     /* asked for over MCP, as in struct approval_ask */
    bool no_replan;    /* the run ends when a step has failed for the last time */
    const struct agent_budget *budget; /* or NULL; at most the config's */
};

/* The record is borrowed and never changed; json_incref() keeps it. */
typedef void agent_fn(void *arg, const json_t *record, const struct err *failed);

/* Calls fn once the record is stored, with status pending. ERR_MISSING: the sandbox is not the
 * caller's. ERR_CONFLICT with text "NoModelConfigured: ...": there is no model to ask. */
void agent_start(struct agent *a, const struct caller *c, const struct agent_spec *spec,
                 agent_fn *fn, void *arg);
/* owner NULL: any run of the tenant. */
void agent_get(struct agent *a, const struct caller *c, struct str id, const struct str *owner,
               agent_fn *fn, void *arg);
/* Answers the question of the record: with text, or, for an approval, with "yes", "no" or
 * {"approve": bool, "reason"}. ERR_CONFLICT: the run does not wait for an answer. */
void agent_provide(struct agent *a, const struct caller *c, struct str id, struct str text,
                   agent_fn *fn, void *arg);
/* hard: the execution is interrupted, and the run ends within two seconds. Else the run ends after
 * its current execution. */
void agent_cancel(struct agent *a, const struct caller *c, struct str id, bool hard, agent_fn *fn,
                  void *arg);

/* Tells every event with a seq above `after`, past and future; then on_end, with the record or an
 * error. The watcher frees the watch, also after on_end. */
struct agent_watch;
struct agent_watcher {
    void (*on_event)(void *arg, const json_t *event);
    void (*on_end)(void *arg, const json_t *record, const struct err *failed);
};
struct agent_watch *agent_watch(struct agent *a, const struct caller *c, struct str id,
                                uint64_t after, const struct agent_watcher *w, void *arg);
void agent_watch_free(struct agent_watch *w); /* NULL is none */
