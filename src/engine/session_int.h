/* One execution and its session: session.c (who runs when), exec_end.c (how an execution stops),
 * output.c and scan.c (what is told of it), verdict.c (its outcome). */
#pragma once

#include "engine/engine_int.h"

#define LATE_PARTS 256

enum stop { STOP_NONE, STOP_WALL, STOP_CPU, STOP_MEMORY, STOP_ASKED };

struct exec {
    struct exec *next;
    struct session *session; /* borrowed */
    uint64_t id;
    enum exec_kind kind;
    struct limits limits; /* the pool's, with this call's time */
    char *code;           /* owned, cells only until sent */
    size_t code_len;
    struct buf env; /* ENV fields for the wire */
    struct exec_callbacks cb;
    void *arg;
    struct timer *timer; /* owned: the time limit, then the grace */
    enum stop stop;
    bool taken;       /* the sandbox has it, and may have begun with it */
    bool asked_again; /* SIGINT has been sent twice */
    bool killed;      /* SIGKILL has been sent */
    bool stopped;     /* its time does not go on */
    bool held;        /* nothing is read of what it says */
    bool ending;      /* the end is known and the warden has been asked what was used */
    bool over;        /* its outcome has been told, and nothing is told after that */
    bool fresh;       /* the interpreter was replaced since the execution before */
    bool raised, interrupted;
    bool memory_error, no_thread;
    int number; /* errno of the error told last */
    int status; /* as of wait(2): of a dead kernel or of the command */
    bool kernel_died;
    int64_t started_us;
    int64_t clock_us;  /* since when its time goes on ... */
    uint64_t spent_ms; /* ... and how much of it had gone before */
    struct box_usage before;
    uint64_t cpu_before_us;
    bool counts_cpu; /* cpu_before_us is known */
    struct outcome outcome;
    uint64_t told;      /* bytes of output handed on */
    uint64_t far_bytes; /* of messages that tell of it */
    uint64_t left_out;  /* bytes of displays that were not, each with a note of its own */
    struct tail {
        char *p; /* owned: ring */
        size_t cap, n, at;
        bool cut;      /* its beginning has been given up */
    } tail[2];         /* stdout, stderr */
    size_t tail_max;   /* bytes in both; 0: neither has begun */
    size_t held_bytes; /* of the rings, as the engine has counted */
    bool tails_told;
    size_t events, errors;    /* told so far */
    struct stream *out, *err; /* owned: a command's */
    struct scan *scan;        /* owned by itself: a worker looks for its files */
};

struct late {
    enum event_kind kind;
    struct str text; /* owned */
};

struct session {
    struct pool *pool;     /* borrowed */
    struct guest *guest;   /* owned; NULL where another node has it: */
    struct borrowed *far;  /* owned, or NULL */
    struct tree *tree;     /* owned */
    struct whose whose;    /* of work for it */
    struct exec *cells;    /* owned: first is running unless the kernel is starting */
    struct exec *commands; /* owned */
    uint64_t cell_no;
    struct late late[LATE_PARTS];
    size_t late_count, late_bytes;
    struct box_usage used; /* as of the last answer */
    bool restarted;        /* the interpreter ended while no cell ran */
    bool restarting;       /* session_restart() has asked for that */
    bool dead;
    bool closed;
    unsigned telling; /* callbacks of the caller on the stack */
    void (*on_lost)(void *arg, const char *why);
    void *lost_arg;
    void (*on_recall)(void *arg); /* or NULL */
    void *recall_arg;
    char why[256];
};

/* --- output.c --- */

void exec_tell(struct exec *x, const struct event *ev);
void exec_tell_text(struct exec *x, enum event_kind kind, struct str text, bool late);
void exec_tell_outcome(struct exec *x);
/* Output of the code: told now, or kept for the end. */
void exec_output(struct exec *x, enum event_kind kind, struct str text);
/* A display, result or error of the code, within the same budget. */
void exec_event(struct exec *x, const struct event *ev);
/* Whatever is kept for the end, after a line that says how much is missing before it. */
void exec_tell_tails(struct exec *x);
void session_keep_late(struct session *s, enum event_kind kind, struct str text);
void session_tell_late(struct session *s, struct exec *x); /* x NULL: forgets it */

/* --- scan.c --- */

/* Tells the files it has changed, and then calls exec_conclude(): at once, or from the loop where
 * there are many. */
void exec_scan(struct exec *x);
void exec_unscan(struct exec *x); /* it goes away */

/* --- session.c --- */

/* The first that waits begins, where one can. */
void session_next_cell(struct session *s);

/* --- exec_end.c --- */

void exec_on_timer(void *arg); /* an exec's: the limit or the grace is over */
void exec_stop(struct exec *x, enum stop why);
/* It has ended. Asks the warden what the box has used, where the answer matters; the rest is
 * exec_finish(). */
void exec_end(struct exec *x);
void exec_finish(struct exec *x, const struct box_usage *now);
/* It has been told everything, and goes. */
void exec_conclude(struct exec *x);
/* The session is lost: its outcome is told, unless it was before. */
void exec_tell_lost(struct exec *x, const char *why);
void execs_lose(struct exec **list, const char *why); /* and frees them all */
void exec_unlink(struct exec *x);
void exec_free(struct exec *x);

/* --- verdict.c --- */

/* Status, limits hit and exit code, from what is known of the end. */
void exec_judge(struct exec *x, const struct box_usage *now);
