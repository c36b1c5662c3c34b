/*
 * Private to the agent: a quest is one request on its way to an answer. It holds the
 * record, hands what happens to step(), keeps what comes of it in the store, and only
 * then does what is to be done.
 *
 * Every call that is under way holds it; once it is closed the answers are let go by.
 */
#pragma once

#include "agent/agent_int.h"

struct figure {
    char *mime, *bytes; /* owned */
    size_t n;
};
#define FIGURES_MAX      20
#define FIGURE_BYTES_MAX (32 * MiB) /* of one run */

/* A file to be there first; its bytes are ours. */
struct given_file {
    char *path, *file_id, *url, *content; /* owned, or NULL */
    size_t n;
};

struct agent {
    struct agent_config config;
    unsigned refs; /* the owner's, and one for each call that is under way */
    bool closed;   /* by agent_free(): nothing but refs is left */
    bool draining;
    struct quest *quests; /* those that go on */
    size_t count;
    struct timer *forget; /* owned */
};

struct quest {
    struct agent *agent; /* borrowed; not to be touched once closed */
    struct quest *next;
    unsigned refs;
    bool closed;
    char id[ID_MAX];
    struct caller caller;
    char *door;     /* owned: the caller's */
    json_t *record; /* owned */
    json_t *events; /* owned: array */
    json_t *todo;   /* owned: actions of steps that are not in the store yet */
    json_t *doing;  /* owned, or NULL: of the save that is under way */
    bool dirty;     /* the record has changed since that one began */
    bool broken;    /* it could not be saved */
    size_t told;    /* events that watchers have heard of ... */
    size_t keeping; /* ... and that are in the save under way */
    size_t console_bytes;
    struct buf console[2]; /* of stdout and stderr: not yet whole characters */

    struct model *own;       /* borrowed, or NULL */
    struct model_call *call; /* or NULL */
    json_t *messages;        /* owned, or NULL: of the call */
    struct timer *timer;     /* owned: the one thing that is waited for */
    json_t *later;           /* owned, or NULL: the action to be done when it fires */

    struct given_file files[INPUTS_MAX];
    size_t file_count, file_at;
    unsigned begin_tries;

    bool hard;          /* the run is to leave nothing behind */
    struct job *job;    /* or NULL */
    struct timer *kill; /* owned, or NULL: after an interrupt */
    struct approval_watch *watch;
    bool settling;
    bool resettle;               /* something has happened since that began */
    enum approval_answer answer; /* that was given */
    char *reason;                /* owned, or NULL: of whoever said no */
    json_t *args;                /* owned, or NULL: of the approval that is asked for */
    struct figure figures[FIGURES_MAX];
    size_t figure_count, figure_bytes, figure_at;
    json_t *seen; /* owned, or NULL: of the run whose figures are being saved */
    struct agent_watch *watches;
};

#define OWNER_LATER(q, fn) loop_later((q)->agent->config.loop, fn, quest_hold(q))

int64_t now_ms(void);

/* --- agent.c --- */

struct agent *agent_hold(struct agent *a);
void agent_drop(struct agent *a);
/* What those hear who have asked too late: -1. */
int agent_is_over(struct err *e);

/* --- start.c --- */

char *text_copy(struct str s); /* owned; empty: NULL */
/* It is kept and compared as it is, or not at all. */
bool text_is_word(struct str s);
void given_files_done(struct given_file *files, size_t count);

/* --- quest.c --- */

struct quest *quest_new(struct agent *a, const struct caller *c, json_t *record, json_t *events);
struct quest *quest_hold(struct quest *q);
void quest_drop(struct quest *q);
/* The holder's reference is given back. True: it is closed, and not to be touched. */
bool quest_back(struct quest *q);
/* Nothing more is heard of it; what is under way is left. */
void quest_close(struct quest *q);
/* It rests until the next start of the server. */
void quest_rest(struct quest *q);
struct quest *quest_find(struct agent *a, const char *tenant, struct str id);
/* Takes the event to step(); takes it. */
void quest_event(struct quest *q, json_t *event);
void quest_save(struct quest *q);
/* For whoever watches; takes it. */
void quest_tell(struct quest *q, json_t *event);
/* fn() after so many milliseconds: replaces what was waited for. */
void quest_wait(struct quest *q, uint64_t ms, json_t *action);
json_t *quest_inner(const struct quest *q);
/* As callers see it: owned. */
json_t *record_shown(const json_t *record);

/* --- begin.c, asking.c, running.c, gate.c: what an action does --- */

void quest_begin(struct quest *q);
void quest_ask(struct quest *q, const json_t *action);
void quest_stop_asking(struct quest *q);
struct model *quest_model(const struct quest *q);
void quest_run(struct quest *q);
void quest_recover(struct quest *q);
void quest_read(struct quest *q);
void quest_interrupt(struct quest *q);
void quest_drop_figures(struct quest *q);
void quest_gate(struct quest *q);
void quest_await(struct quest *q);
void quest_unwait(struct quest *q);
/* What somebody has answered. False: it is no answer to an approval. */
bool quest_answer(struct quest *q, struct str text);
/* Writes bytes (or, p NULL, all of fd) into the session's workspace. fn once. Takes neither; the
 * bytes stay until fn. */
typedef void placed_fn(void *arg, const struct space_file *file, const struct err *failed);
void quest_place(struct quest *q, struct str path, struct str bytes, int fd, placed_fn *fn);

/* --- watching.c --- */

void watches_tell(struct quest *q, const json_t *event);
void watches_end(struct quest *q, const struct err *failed);
