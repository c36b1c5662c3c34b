/*
 * Private to the agent: its parts, from the pure ones to those that wait for somebody.
 *
 * record --step()--> record, actions. What step() needs beside its event is in the record's
 * "inner" object, which no caller sees:
 *   state, caller, pool, input_dir, model, can_answer, external, no_replan, gated, budget, facts,
 *   packages, inputs, known (paths that were there), plan_tries, step, attempts, failures,
 *   replanned, rounds (how many there may be), talk (exchanges with the model), runs
 *   (executions), seen (hashes of code and observation), nudges, malformed, lost, refusals, held
 *   (a run waits for room), ...
 */
#pragma once

#include "agent/agent.h"

#include <jansson.h>

/* --- numbers: what a stranger can make longer --- */

#define REQUEST_MAX     (256 * KiB)
#define CONTEXT_MAX     (256 * KiB)
#define ANSWER_MAX      (64 * KiB)
#define CODE_MAX        (256 * KiB)
#define LOGS_MAX        (512 * KiB)
#define PLAN_TEXT_MAX   300 /* bytes of one step */
#define EVENTS_MAX      2000
#define CONSOLE_MAX     (256 * KiB) /* of a loop's console events in all */
#define FILES_MAX       200
#define INPUTS_MAX      64
#define KNOWN_MAX       1000
#define WATCHES_MAX     16            /* of one loop */
#define REPLY_MAX       MiB           /* of what a model says at a time */
#define OBSERVATION_MAX 8000          /* of one run, as a model sees it */
#define AGENT_OWNER     "agent_owner" /* in a session's metadata: whose it is */

/* --- values.c: members of a JSON object --- */

struct str json_str(const json_t *object, const char *key); /* p NULL: no text */
bool json_is(const json_t *object, const char *key, const char *text);
int64_t json_num(const json_t *object, const char *key); /* 0: no number */
bool json_on(const json_t *object, const char *key);     /* true */
void json_put_str(json_t *object, const char *key, struct str s);
void json_put_num(json_t *object, const char *key, int64_t n);
void json_put_on(json_t *object, const char *key, bool on);
int64_t json_count(json_t *object, const char *key); /* one more; returns it */
/* The beginning of s on one line, at most max bytes of UTF-8: owned. */
json_t *line_value(struct str s, size_t max);

/* --- reply.c: what a model wants done --- */

/*
 * {"act": one of run {code}, finish {answer, files}, plan {steps, reason}, read {run, offset,
 * limit}, ask {question}, bad {why}, prose, nothing; "text": what it said beside it, "id"?: of the
 * call, "extra"?: ids of further ones, "formed": the action stood in its text}. Owned. cut: the
 * reply is not whole, so nothing in it is done.
 */
json_t *reply_read(const json_t *parts, bool cut);
/* The steps of a plan, owned, or NULL when it is none. At most max of them. */
json_t *reply_plan(const json_t *parts, size_t max);
/* All text parts without thoughts: owned. */
json_t *reply_text(const json_t *parts);

/* --- python.c --- */

/* Whether text can be Python, and does something: it calls, assigns or imports. */
bool python_likely(struct str text);

/* --- observe.c: what came of a run --- */

/*
 * {"status": ok, error, timeout, memory, died, lost, interrupted; "kind"?: type of the exception;
 * "text": for the model, "log": for the logs, "printed": stdout and stderr, cleaned, "last"?: the
 * last line printed; "module"?: missing; "empty", "lost": state is gone; "files": [{path, change,
 * name, mime, size, image}]}. Owned.
 */
json_t *observe(const json_t *events, const json_t *outcome, uint64_t run, uint64_t run_ms);
/* What was printed, as it was: owned text from offset, at most limit bytes of whole characters. */
json_t *observe_page(const json_t *events, uint64_t offset, uint64_t limit);
/* Put so that a model can read it: \r, escapes, long lines, what is no text. */
void observe_clean(struct buf *ret, struct str text);
/* At most max bytes: the first five eighths and the last three, cut at ends of lines. note: what
 * to say of the rest, such as " read_output run=3"; may be NULL. */
void observe_cut(struct buf *ret, struct str text, size_t max, const char *note);

/* --- prompt.c: what a model is told --- */

json_t *prompt_tools(const json_t *record);
void prompt_system(struct buf *ret, const json_t *record);
/* {"steps": [...]} is wanted. why: an earlier plan has failed; or NULL. */
void prompt_plan(struct buf *ret, const json_t *record, const char *why);
void prompt_round(struct buf *ret, const json_t *record);
void prompt_final(struct buf *ret, const json_t *record);
/* Advice after a run that did not go well, or said nothing. */
void prompt_advice(struct buf *ret, const json_t *record, const json_t *seen);
/* The answer when no model can be asked for one. */
json_t *prompt_summary(const json_t *record, const char *why);

struct pool_info;
/* What is true of the place where code runs. */
void prompt_facts(struct buf *ret, const struct pool_info *pool, const json_t *inner);

/* --- history.c: the conversation, as long as it may be --- */

/* Owned. kind: "plan", "code" or "final". *ret_chars: of all texts in it. */
json_t *history_messages(const json_t *record, const char *kind, size_t *ret_chars);

/* Of all texts in v. */
size_t history_chars(const json_t *v);

/* --- finish.c: whether an answer may be one --- */

/* What is to be done first, in words for the model: owned; NULL: nothing. Each reason is given
 * once. */
json_t *finish_objection(json_t *record, const json_t *act);

/* --- step.c: from one state to the next --- */

/*
 * Changes the record and returns what is to be done, owned: [{"do": ask {kind, after_ms}, gate,
 * run, read {execution, offset, limit}, wait {until_ms}, watch_over, end; or tell {event}}, ...].
 * The record is kept before anything but tell is done.
 */
json_t *step(json_t *record, const json_t *event, int64_t now_ms);
/* A record as it begins; the budget has no zeros. */
json_t *step_begin(const char *id, const struct agent_spec *spec, const struct agent_budget *b,
                   int64_t now_ms);
bool step_is_over(const json_t *record);
/* The defaults in place of zeros. */
void step_budget_fill(struct agent_budget *b);
