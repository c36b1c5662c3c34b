/* Private to step*.c: one step under way. */
#pragma once

#include "agent/agent_int.h"

struct stepping {
    struct run_record *r; /* borrowed */
    const json_t *ev;     /* borrowed */
    int64_t now_ms;
    json_t *actions; /* owned */
};

/* --- step.c --- */

void step_do(struct stepping *s, const char *what);
/* Tells watchers of a phase. code: or NULL. */
void step_phase(struct stepping *s, const char *phase, struct str message, const char *code);
void step_log(struct stepping *s, struct str text);
void step_question(struct stepping *s); /* waits for the answer to the record's question */
/* Asks the model for the next action, unless a budget is spent. */
void step_ask(struct stepping *s);
void step_final(struct stepping *s, const char *why);
void step_end(struct stepping *s, enum run_status status);
void step_fail(struct stepping *s, const char *code, struct str message);
void step_replan(struct stepping *s);
/* Replaces the steps that are not done yet. */
void step_take_plan(struct stepping *s, json_t *steps);

/* --- step_reply.c --- */

void on_code_reply(struct stepping *s);
void on_final_reply(struct stepping *s);
/* Answers what the model said, and keeps both in the history. line: the round in one line, for
 * later; or NULL. Takes result and line. */
void step_answer(struct stepping *s, json_t *result, bool error, json_t *line);
void on_page(struct stepping *s);
void on_input(struct stepping *s);

/* --- step_run.c --- */

void step_run(struct stepping *s, const json_t *act);
void on_queued(struct stepping *s);
void on_asked(struct stepping *s);
void on_refused(struct stepping *s);
void on_ran(struct stepping *s);
void on_unreachable(struct stepping *s);
/* Back from RUN_WAIT: waiting costs no time. */
void step_waited(struct stepping *s);
/* Ends the logs of a round that had no execution. */
void step_close_round(struct stepping *s, const char *how);
