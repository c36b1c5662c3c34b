/*
 * Private to the agent: the record of a run, and the pure functions that work on it.
 */
#pragma once

#include "agent/agent.h"

#include <jansson.h>

/* --- limits --- */

#define REQUEST_MAX     (256 * KiB)
#define CONTEXT_MAX     (256 * KiB)
#define ANSWER_MAX      (64 * KiB)
#define CODE_MAX        (256 * KiB)
#define LOGS_MAX        (512 * KiB)
#define PLAN_TEXT_MAX   300 /* bytes of one step */
#define EVENTS_MAX      2000
#define CONSOLE_MAX     (256 * KiB) /* of all console events of a run */
#define FILES_MAX       200
#define INPUTS_MAX      64
#define KNOWN_MAX       1000
#define WATCHES_MAX     16            /* of one run */
#define REPLY_MAX       MiB           /* of one reply of a model */
#define OBSERVATION_MAX 8000          /* of one execution, as a model sees it */
#define AGENT_OWNER     "agent_owner" /* the owner, in a session's metadata */

/* --- record.c: everything that is known of a run --- */

enum run_state {
    RUN_BEGIN, /* a sandbox, its files and the facts about them are prepared */
    RUN_PLAN,  /* the model is asked for a plan ... */
    RUN_CODE,  /* ... or for the next action */
    RUN_GATE,  /* in records of earlier versions: nothing has begun */
    RUN_WAIT,  /* a person is asked */
    RUN_EXEC,  /* the code is with the service */
    RUN_READ,  /* pages of an earlier output are looked up */
    RUN_FINAL, /* the model is asked for its last words */
    RUN_OVER,
};
enum run_status {
    RUN_PENDING,
    RUN_RUNNING,
    RUN_WAITING,
    RUN_COMPLETED,
    RUN_INCOMPLETE,
    RUN_FAILED,
    RUN_CANCELLED,
};
extern const char *const run_state_names[], *const run_status_names[];

/* Members are named as in the JSON, and each has a row in record.c. Values are owned; texts are
 * JSON strings. NULL: not set. */
struct run_record {
    /* What callers see: agent.h. */
    json_t *id, *tool, *owner, *request, *context, *sandbox_id, *logs, *answer; /* texts */
    enum run_status status;
    json_t *plan, *files, *error, *question, *untraced;
    int64_t total_rounds, created_ms, started_ms, ended_ms;
    struct {
        int64_t input_tokens, output_tokens, calls;
    } usage;

    /* The request. */
    struct agent_budget budget; /* without zeros */
    struct caller caller;
    json_t *door;                     /* text that caller.door points to */
    json_t *pool, *input_dir, *model; /* texts */
    json_t *given;                    /* [{"path", "file_id", "url"}] */
    bool can_answer, external, own_only, no_replan;

    /* The sandbox. */
    json_t *session, *facts;           /* texts */
    json_t *packages, *inputs, *known; /* names; [{"name", "size", "mime"}]; paths at the start */
    bool network;

    /* Where the run is. */
    enum run_state state;
    int64_t at_ms, deadline_ms, asked_ms; /* last step; end of the budget; a person was asked */
    bool stop;                            /* cancelled: ends after the execution */
    json_t *final_why;                    /* text */

    /* The plan. */
    json_t *plan_why; /* text: why a new one is asked for */
    int64_t plan_tries, step, rounds, replans;
    bool planned, replanned, all_done;

    /* The conversation. */
    json_t *talk, *pending; /* exchanges with the model; the one without an answer yet */
    bool text_mode;         /* the model is offered no tools */
    bool compacted;         /* less of the history is sent */
    int64_t turns, retries, nonsense, nudges, malformed;
    bool said_no_run, said_failed, said_no_file, said_number; /* objections made once */

    /* Executions. */
    json_t *code, *execution;        /* texts: of the round; its id, once it is queued */
    json_t *page;                    /* {"execution", "offset", "limit"} to be read */
    json_t *runs, *seen;             /* ids; {hash of code and result: count} */
    json_t *seen_digits, *last_good; /* texts */
    bool lasting;                    /* the approval may hold for later code */
    bool unbegun;                    /* the server ended before the code began */
    bool round_open, last_failed, syntax_free, logs_full;
    int64_t attempts, failures, good_runs, lost, refusals, busy, plots;
};

/* False: the record is over, or cannot be read. record_done() in either case. */
bool record_read(struct run_record *r, const json_t *v);
/* Owned. inner: as it is stored; else as callers see it. */
json_t *record_json(const struct run_record *r, bool inner);
void record_done(struct run_record *r);

/* --- values.c: JSON values --- */

struct str json_text(const json_t *v);                      /* "": no text */
struct str json_str(const json_t *object, const char *key); /* p NULL: no text */
bool json_is(const json_t *object, const char *key, const char *text);
int64_t json_num(const json_t *object, const char *key); /* 0: no number */
bool json_on(const json_t *object, const char *key);     /* true */
json_t *text_value(struct str s);                        /* owned */
void json_put(json_t **field, json_t *v);                /* takes v, drops what was there */
void json_put_str(json_t *object, const char *key, struct str s);
void json_put_num(json_t *object, const char *key, int64_t n);
void json_put_on(json_t *object, const char *key, bool on);
/* The beginning of s on one line, at most max bytes of UTF-8: owned. */
json_t *line_value(struct str s, size_t max);

/* --- reply.c: what a model wants to do --- */

/*
 * {"act": run {code}, finish {answer, files}, plan {steps, reason}, read {run, offset, limit},
 * ask {question}, bad {why}, prose or nothing; "text": the text beside the action; "id"?: of the
 * call, "extra"?: ids of further calls, "formed": the action stood in the text}. Owned. cut: the
 * reply is not complete, so nothing in it is done.
 */
json_t *reply_read(const json_t *parts, bool cut);
/* The steps of a plan, at most max; owned; NULL: the reply holds no plan. */
json_t *reply_plan(const json_t *parts, size_t max);
/* All text parts, without what the model thinks aloud; owned. */
json_t *reply_text(const json_t *parts);

/* --- python.c --- */

/* Whether text can be Python that calls, assigns or imports something. */
bool python_likely(struct str text);

/* --- observation.c: what came of an execution --- */

/*
 * {"status": ok, error, timeout, memory, died, lost or interrupted; "kind"?: type of the exception;
 * "text": for the model; "log": for the logs; "last"?: last line of stdout; "module"?: the missing
 * one; "empty": no output; "lost": variables are gone; "files": [{path, change, name, mime, size,
 * image}]}. Owned. run: number of the execution.
 */
json_t *observe(const json_t *events, const json_t *outcome, uint64_t run, uint64_t run_ms);
/* The raw output from offset on, at most limit bytes of whole characters; owned. */
json_t *observe_page(const json_t *events, uint64_t offset, uint64_t limit);
/* Makes output readable for a model: carriage returns, escapes, long lines, binary. */
void observe_clean(struct buf *ret, struct str text);
/* Text for the logs: a line that begins as one of the logs' own is set off by a blank. */
void observe_quote(struct buf *ret, struct str text);
/* At most max bytes: the first five eighths and the last three, cut at line ends. note: a hint on
 * how to read the rest, such as " read_output run=3"; or NULL. */
void observe_cut(struct buf *ret, struct str text, size_t max, const char *note);

/* --- prompt.c: what a model is told --- */

json_t *prompt_tools(const struct run_record *r); /* owned */
void prompt_system(struct buf *ret, const struct run_record *r);
void prompt_plan(struct buf *ret, const struct run_record *r); /* asks for {"steps": [...]} */
void prompt_round(struct buf *ret, const struct run_record *r);
void prompt_final(struct buf *ret, const struct run_record *r);
/* Advice after an execution that failed or printed nothing. */
void prompt_advice(struct buf *ret, const struct run_record *r, const json_t *seen);
/* The answer when no model can be asked for one; owned. */
json_t *prompt_summary(const struct run_record *r, const char *why);
struct pool_info;
/* The facts about the sandbox. */
void prompt_facts(struct buf *ret, const struct pool_info *pool, const struct run_record *r);

/* --- history.c: the conversation that is sent --- */

/* Owned. kind: "plan", "code" or "final". *ret_chars: length of all texts. */
json_t *history_messages(const struct run_record *r, const char *kind, size_t *ret_chars);
/* Length of all texts in v. */
size_t history_chars(const json_t *v);

/* --- finish.c: whether an answer is good enough --- */

/* What the model must do first, in words for the model; owned; NULL: nothing. Each objection is
 * made once. */
json_t *finish_objection(struct run_record *r, const json_t *act);
/* Whether executions stand behind the answer. Fills in what cannot be traced to one. */
bool finish_is_proven(struct run_record *r, const json_t *act);

/* --- numbers.c: the numbers of an answer --- */

struct number {
    struct str text, shown; /* borrowed: from the number on, and the number itself */
    size_t digits;
    char readings[2][64]; /* with a point at most: 1,234.5 as 1234.5 and as 1.2345 */
    size_t count;
    double scale; /* of the word behind it: 1e6 for a million */
};

/* What may stand behind the numbers of an answer. */
struct numbers_seen {
    struct str sources[3]; /* borrowed */
    double *values;        /* owned */
    size_t count;
};

/* Finds the next number; false: no more. */
bool number_next(struct str *text, struct number *ret);
/* The number with the groups behind it, 1 234 567; rest: what follows. False: there are none. */
bool number_widen(const struct number *one, struct number *ret, struct str *rest);
void numbers_see(struct numbers_seen *seen, const struct str *sources, size_t count);
void numbers_seen_done(struct numbers_seen *seen);
bool number_is_seen(const struct numbers_seen *seen, const struct number *one);

/* --- step.c: from one state to the next --- */

/*
 * Changes the record and returns actions, owned: [{"do": begin, ask {kind, after_ms}, run
 * {after_ms}, recover, read, wait, interrupt, drop, end; or tell {event}}, ...]. The record is
 * stored before any action but tell is performed.
 */
json_t *step(struct run_record *r, const json_t *event, int64_t now_ms);
/* Fills in a new record; the budget has no zeros. */
void step_begin(struct run_record *r, const char *id, const struct agent_spec *spec,
                const struct agent_budget *b, int64_t now_ms);
/* Replaces zeros by defaults. */
void step_budget_fill(struct agent_budget *b);
