/* Private to step*.c: one step under way. */
#pragma once

#include "agent/agent_int.h"

struct stepping {
    json_t *r, *in;   /* borrowed: the record, and its inner part */
    const json_t *ev; /* borrowed */
    int64_t now_ms;
    json_t *actions; /* owned */
};

/* --- step.c --- */

void step_do(struct stepping *s, const char *what);
void step_go(struct stepping *s, const char *state);
void step_status(struct stepping *s, const char *status);
/* An event for whoever watches. code: or NULL. */
void step_phase(struct stepping *s, const char *phase, struct str message, const char *code);
void step_log(struct stepping *s, struct str text);
void step_question(struct stepping *s); /* waits with the one of the record */
int64_t step_budget(const struct stepping *s, const char *name);
/* Asks for the next action, unless a budget is spent. */
void step_ask(struct stepping *s);
void step_final(struct stepping *s, const char *why);
void step_end(struct stepping *s, const char *status);
void step_fail(struct stepping *s, const char *code, struct str message);
void step_replan(struct stepping *s);
/* New steps in place of those not done yet. */
void step_take_plan(struct stepping *s, json_t *steps);

/* --- step_reply.c --- */

void on_code_reply(struct stepping *s);
void on_final_reply(struct stepping *s);
/* What the model said is answered with this, and the two are kept. line: of a round, later; or
 * NULL. Takes both. */
void step_answer(struct stepping *s, json_t *result, bool error, json_t *line);
void on_page(struct stepping *s);
void on_input(struct stepping *s);

/* --- step_run.c --- */

void step_run(struct stepping *s, const json_t *act);
void on_clear(struct stepping *s);
void on_asked(struct stepping *s);
void on_refused(struct stepping *s);
void on_ran(struct stepping *s);
void on_unreachable(struct stepping *s);
/* The logs of a round that ends without a run. */
void step_close_round(struct stepping *s, const char *how);
