/*
 * agent: a request in plain words becomes an answer that code has computed. Plan,
 * code, gate, run, observe, until it is finished or a budget is spent.
 *
 * Touches: the service, models, the store for its own records. Never touches: HTTP or
 * any other wire format, the sandbox; a door turns bytes into these calls.
 *
 * agent_new(), agent_start(); then poll with agent_get(), or agent_watch(). One loop has
 * one record, which says all there is to know: step() in step.c takes it from one state
 * to the next and has no other memory, and it is in the store before a model is asked or
 * code runs. So a restart, a client that polls, one that comes back and one that watches
 * all see the same.
 *
 * The record, as agent_get() shows it:
 *   {"id": "toolu_...", "tool", "owner", "status", "request", "context", "sandbox_id",
 *    "plan": ["..."], "logs": "...", "total_rounds", "files": [{"path", "name", "mime",
 *    "size", "image": bool}], "answer", "usage": {"input_tokens", "output_tokens", "calls"},
 *    "error": null | {"code", "message"}, "question": null | {"prompt", "approval"?,
 *    "expires_ms"}, "created_ms", "started_ms", "ended_ms"}
 * status: pending, running, waiting_for_input, then one of completed, incomplete, failed,
 * cancelled.
 *
 * An event: {"seq": 1..., "at_ms", "type", ...} with type "phase" (phase: plan, code, gate,
 * run, observe, final; message; step?, round?, code?), "console" (stream, text), "question"
 * (as above), "end" (status) and "error" (code, message), which comes before an end that is
 * failed. Watchers hear of a step when it is in the store, so none is taken back.
 */
#pragma once

#include "model/model.h"
#include "service/service.h"

struct agent;

/* Each 0 stands for the default beside it. Checked before each call of a model. */
struct agent_budget {
    uint64_t plan_steps;  /* 6 */
    uint64_t rounds;      /* at most 20; else twice the steps, at least 4 */
    uint64_t attempts;    /* of one step: 3 */
    uint64_t run_ms;      /* of one run: 60 s */
    uint64_t wall_ms;     /* of everything: 600 s */
    uint64_t model_ms;    /* of one call of a model: 120 s */
    uint64_t input_chars; /* of one call of a model: 400,000 */
    uint64_t tokens;      /* of everything: 2,000,000 */
    uint64_t wait_ms;     /* for somebody's answer: 300 s */
};

struct agent_config {
    struct loop *loop; /* borrowed, as are the rest */
    struct service *service;
    struct store *store;
    struct models *models;
    struct agent_budget budget;
    uint64_t tenant_loops; /* that go on at a time; 0: 256 */
    uint64_t record_ms;    /* a loop is kept for so long after its end; 0: for ever */
};

struct agent *agent_new(const struct agent_config *config);
/* What a dead process left goes on: after this. A run that was under way is not done again. */
void agent_resume(struct agent *a);
/* Nothing new is begun (ERR_BUSY); what is under way rests after what runs now, and goes on after a
 * restart. Watchers hear ERR_BUSY. Before service_drain(). */
void agent_drain(struct agent *a);
void agent_free(struct agent *a); /* before the service; NULL is none */

struct agent_spec {
    struct str tool;  /* on record: "code_execution" */
    struct str owner; /* the end user of the tenant, or empty */
    struct str request, context;
    struct str sandbox;             /* a session of the caller's, or empty: a new one ... */
    struct str pool;                /* ... of this pool; empty: the first */
    struct str input_dir;           /* where a model is told to look for files; empty: in the cwd */
    const struct file_input *files; /* put first, by their paths in the workspace */
    size_t file_count;
    struct str model;  /* that the request named, or empty */
    struct model *own; /* the client's own, asked when no other is configured; or NULL. Until the
                          end, or agent_forget_model() */
    bool own_only;     /* and no other is asked */
    bool can_answer;   /* somebody can be asked: agent_provide() */
    bool external;     /* asked for over MCP, as in struct approval_spec */
    bool no_replan;    /* a step that has failed for the last time is the end of all of it */
    const struct agent_budget *budget; /* or NULL: the config's; at most that */
};

/* The client's own model is gone: what asks it fails, and nothing asks it again. */
void agent_forget_model(struct agent *a, struct model *own);

/* The record, borrowed: a new reference to keep it; never changed. */
typedef void agent_fn(void *arg, const json_t *record, const struct err *failed);

/* fn once it is in the store, with status pending. ERR_MISSING: the sandbox is not the caller's.
 * ERR_CONFLICT with text "NoModelConfigured: ...": there is no model to ask. */
void agent_start(struct agent *a, const struct caller *c, const struct agent_spec *spec,
                 agent_fn *fn, void *arg);
/* owner NULL: whoever's of the tenant. */
void agent_get(struct agent *a, const struct caller *c, struct str id, const struct str *owner,
               agent_fn *fn, void *arg);
/* Newest first. */
typedef void agent_list_fn(void *arg, json_t *const *records, size_t count, bool more,
                           const struct err *failed);
void agent_list(struct agent *a, const struct caller *c, const struct str *owner, struct page page,
                agent_list_fn *fn, void *arg);
/* An answer to the question it waits with, as text; an approval: {"approve": bool, "reason"} as
 * JSON text or "yes"/"no". ERR_CONFLICT: it does not wait. */
void agent_provide(struct agent *a, const struct caller *c, struct str id, struct str text,
                   agent_fn *fn, void *arg);
/* hard: what runs is interrupted, and all is over within two seconds; else after what runs now. */
void agent_cancel(struct agent *a, const struct caller *c, struct str id, bool hard, agent_fn *fn,
                  void *arg);

/* Every event after `after`, those that were and those that come; on_end after the last, or with
 * an error. Freed by the watcher, also after on_end. */
struct agent_watch;
struct agent_watcher {
    void (*on_event)(void *arg, const json_t *event);
    void (*on_end)(void *arg, const json_t *record, const struct err *failed);
};
struct agent_watch *agent_watch(struct agent *a, const struct caller *c, struct str id,
                                uint64_t after, const struct agent_watcher *w, void *arg);
void agent_watch_free(struct agent_watch *w); /* NULL is none */
