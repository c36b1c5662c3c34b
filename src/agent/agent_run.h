/*
 * Private to the agent: a run is one request on its way to an answer. It holds the
 * record, hands each event to step(), saves the record, and then performs the actions
 * that step() returned.
 *
 * Every pending call holds a reference. Answers that arrive after run_close() are dropped.
 */
#pragma once

#include "agent/agent_int.h"

struct agent {
    struct agent_config config;
    unsigned refs; /* the owner's, and one for each pending call */
    bool closed;   /* by agent_free(): only refs may be used */
    bool draining;
    struct agent_run *runs; /* that are not over */
    struct timer *forget;   /* owned */
};

struct agent_run {
    struct agent *agent; /* borrowed; gone once the run is closed */
    struct agent_run *next;
    unsigned refs;
    bool closed;
    char id[ID_MAX];
    struct run_record record;
    const struct caller *caller; /* of the record */
    json_t *events;              /* owned: array */
    json_t *todo;                /* owned: actions of steps that are not stored yet */
    json_t *doing;               /* owned, or NULL: actions of the save under way */
    bool dirty;                  /* the record has changed since that save began */
    bool broken;                 /* the record could not be saved */
    size_t told;                 /* number of events that watchers have heard of */
    size_t keeping;              /* number of events in the save under way */
    size_t console_bytes;
    struct buf console[2]; /* stdout and stderr: bytes of incomplete characters */

    struct model *own;       /* borrowed, or NULL: the client's own model */
    struct model_call *call; /* or NULL */
    json_t *messages;        /* owned, or NULL: of the call */
    struct timer *timer;     /* owned */
    json_t *later;           /* owned, or NULL: the action for when the timer fires */

    struct {
        char *p; /* owned, or NULL: the file has an id or a URL */
        size_t n;
    } contents[INPUTS_MAX]; /* of the given files, until they are in the workspace */
    size_t file_at;         /* the given file that is put there next */
    unsigned begin_tries;

    struct execution *x;         /* borrowed, or NULL */
    bool hard;                   /* the execution is to leave nothing behind */
    struct timer *kill;          /* owned, or NULL: after an interrupt */
    enum approval_answer answer; /* to the question, until the service has taken it */
    char *reason;                /* owned, or NULL: of the user who said no */
    json_t *transcript;          /* owned, or NULL: of the last execution */
    size_t figure_at;            /* the image of it that was looked at last, to become a file */
    json_t *seen;                /* owned, or NULL: the observation, while figures are saved */
    struct agent_watch *watches;
    agent_fn *on_start; /* or NULL: called when the record is first stored */
    void *start_arg;
};

/* --- agent.c --- */

struct agent *agent_hold(struct agent *a);
void agent_drop(struct agent *a);
int agent_is_over(struct err *e); /* ERR_AWAY: the server is shutting down */
/* Looks for a run of the tenant, and calls fn from the loop: with the run, or with its row when it
 * is over, or with an error. */
typedef void run_found_fn(void *arg, struct agent_run *run, const struct loop_row *row,
                          const struct err *failed);
void run_look_up(struct agent *a, const struct caller *c, struct str id, run_found_fn *fn,
                 void *arg);
/* The pool it works in, or will: owned, or NULL when that is not known yet. */
char *run_pool(const struct agent_run *run);

/* --- start.c --- */

/* Whether s is short text without a NUL, as names are. */
bool text_is_word(struct str s);

/* --- agent_run.c --- */

/* Takes the record and the events. run_join() makes the run known to the agent. */
struct agent_run *run_new(struct agent *a, struct run_record *record, json_t *events);
void run_join(struct agent_run *run);
struct agent_run *run_hold(struct agent_run *run);
void run_drop(struct agent_run *run);
/* Drops the caller's reference. True: the run is closed and may be gone. */
bool run_release(struct agent_run *run);
/* Takes the run out of the agent and leaves all that is pending. */
void run_close(struct agent_run *run);
/* The run rests until the server starts again. */
void run_pause(struct agent_run *run);
struct agent_run *run_find(struct agent *a, const char *tenant, struct str id);
/* Hands the event to step() and saves the record. Takes the event. */
void run_event(struct agent_run *run, json_t *event);
void run_save(struct agent_run *run);
/* Tells watchers. Takes the event. */
void run_tell(struct agent_run *run, json_t *event);
/* Performs the action after ms milliseconds, in place of any other that waits. Takes it. */
void run_wait(struct agent_run *run, uint64_t ms, json_t *action);
/* Ends the run with an error. */
void run_fail(struct agent_run *run, const char *code, const char *message);

/* --- begin.c, run_model.c, run_exec.c, run_approval.c: one function for each action --- */

void run_begin(struct agent_run *run);
void run_ask(struct agent_run *run, const char *kind);
struct model *run_model(const struct agent_run *run);
/* Cancels the call of the model and the timer. */
void run_stop_waiting(struct agent_run *run);
void run_exec(struct agent_run *run);
void run_recover(struct agent_run *run);
void run_read_output(struct agent_run *run);
void run_interrupt(struct agent_run *run);
bool run_on_ask(void *arg, const struct approval_info *info);
void run_refused(struct agent_run *run, const struct approval_row *row); /* row may be NULL */
void run_await_answer(struct agent_run *run);
/* False: the text does not answer an approval. */
bool run_answer(struct agent_run *run, struct str text);

/* --- run_watch.c --- */

void watches_tell(struct agent_run *run, const json_t *event);
void watches_end(struct agent_run *run, const struct err *failed);
