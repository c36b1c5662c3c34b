/*
 * Private to the room: a session whose sandbox another node lends. Its home has the session
 * (borrowed.c) and asks the lender, which has the sandbox (lent.c), over a line. This is what they
 * say to each other.
 *
 * A message is a head, little-endian, and a body of fields as in wire/wire.h. Neither side trusts
 * the other: each type has a longest body, each number a largest value, and whoever says something
 * else loses the line, and with it the sandbox.
 */
#pragma once

#include "engine/session_int.h"

#include <pthread.h>
#include <stdatomic.h>

#define LEND_BODY_MAX  (EXEC_CODE_MAX + 1 * MiB)
#define LEND_WAITS_MAX (64 * MiB) /* of what the other side does not take */
#define LEND_CHUNK     (64 * KiB) /* of a file */

enum lend_type {
    /* from home */
    LEND_WANT = 1,  /* NAME: a sandbox of this pool */
    LEND_PING,      /* answered by LEND_PONG */
    LEND_EXEC,      /* head.id; struct lend_exec, CODE, ENV... */
    LEND_INTERRUPT, /* head.id: of an execution, as in the next two */
    LEND_HOLD,      /* NUMBER 1: its output is not read; 0: it is */
    LEND_CLOCK,     /* NUMBER 1: its time stands still; 0: it goes on */
    LEND_RESTART,   /* another interpreter */
    LEND_NOTE,      /* NAME: this file of the workspace is the host's doing */
    LEND_ASK,       /* struct lend_ask, NAME: about files, one at a time */

    /* from the lender */
    LEND_LENT,    /* there is a sandbox */
    LEND_REFUSED, /* struct lend_answer: there is none */
    LEND_PONG,
    LEND_EVENT,   /* head.id: an event of the execution */
    LEND_OUTCOME, /* head.id: its end */
    LEND_LOST,    /* TEXT: why the sandbox has ended */
    LEND_RECALL,  /* the lender wants it back */
    LEND_SEEN,    /* an event of a look, before its answer */
    LEND_ANSWER,  /* struct lend_answer: to LEND_ASK */

    /* both: a file that goes with an ask or its answer */
    LEND_BYTES,
    LEND_END, /* NUMBER 1: it could not be read to its end */
    LEND__COUNT
};

struct lend_message {
    uint16_t type;
    uint64_t id;
    struct str body; /* borrowed */
};

/* The next message of *bytes, which is advanced. 1; 0: it is not there as a whole; -1: it is none
 * of these. */
int lend_next(struct str *bytes, struct lend_message *ret) MUST_CHECK;
void lend_head(struct buf *b, enum lend_type type, uint64_t id, size_t body);

/* --- bodies; those that read return -1 for what cannot be --- */

struct lend_exec {
    uint32_t kind; /* enum exec_kind */
    uint64_t wall_ms;
};

/* LOOK: what has changed comes as LEND_SEEN. PUT, UNPACK: bytes go with it. GET, PACK: bytes come
 * with the answer. */
enum lend_op { LEND_PUT, LEND_GET, LEND_MKDIR, LEND_DELETE, LEND_LOOK, LEND_PACK, LEND_UNPACK };

struct lend_ask {
    uint32_t op; /* enum lend_op */
    uint32_t mode;
    int64_t mtime_ms;
    uint64_t max; /* bytes that are wanted */
};

struct lend_answer {
    uint32_t kind, sys, retry_s; /* of struct err; kind 0: it was done */
    uint64_t number; /* what the call has returned, or left out; 1: the look was blind */
    uint32_t mode;   /* of the file */
    int64_t mtime_ms;
    char text[sizeof(((struct err *)0)->text)]; /* of struct err */
};

#define LEND_ENV_MAX                                                                               \
    ((size_t)2 * EXEC_ENV_MAX) /* whether they are too many is the engine's to say */

void lend_put_exec(struct buf *b, const struct exec_config *config);
/* The strings are views of body; env has room for LEND_ENV_MAX. */
int lend_take_exec(struct str body, struct exec_config *ret, struct exec_env *env) MUST_CHECK;
void lend_put_ask(struct buf *b, const struct lend_ask *ask, struct str path);
int lend_take_ask(struct str body, struct lend_ask *ret, struct str *ret_path) MUST_CHECK;
void lend_put_answer(struct buf *b, const struct lend_answer *a);
int lend_take_answer(struct str body, struct lend_answer *ret) MUST_CHECK;
void lend_put_event(struct buf *b, const struct event *ev);
int lend_take_event(struct str body, struct event *ret) MUST_CHECK;
void lend_put_outcome(struct buf *b, const struct outcome *o);
int lend_take_outcome(struct str body, struct outcome *ret) MUST_CHECK;

struct lend_answer lend_answer_of(const struct err *e);          /* e NULL: it was done */
int lend_answer_err(const struct lend_answer *a, struct err *e); /* 0, or -1 with *e */

/* --- pipe: messages on a line, both ways (lend_pipe.c) --- */

typedef bool lend_fn(void *arg, const struct lend_message *m); /* false: it must not say that */

struct lend_pipe {
    struct channel *line; /* owned; NULL: gone */
    struct buf in, out;
    size_t out_at;
    bool full;        /* the line takes no more just now */
    bool broken;      /* nothing is sent any more: too much waits */
    bool held;        /* no message is handed on */
    int64_t heard_us; /* when something came last */
};

void pipe_init(struct lend_pipe *p, struct channel *n, const struct channel_user *user, void *arg);
void pipe_close(struct lend_pipe *p); /* also the line */
void pipe_send(struct lend_pipe *p, enum lend_type type, uint64_t id, struct str body);
void pipe_send_number(struct lend_pipe *p, enum lend_type type, uint64_t id, uint64_t number);
void pipe_on_room(struct lend_pipe *p);
/* Hands on what has come, a message at a time, until it is held or the line is gone. bytes: more of
 * it, or none. -1: somebody has said what must not be said. */
int pipe_take(struct lend_pipe *p, struct str bytes, lend_fn *fn, void *arg) MUST_CHECK;
void pipe_hold(struct lend_pipe *p, bool held);

/* A file on its way out. */
struct lend_feed {
    int fd;        /* borrowed; -1: none */
    uint64_t left; /* bytes that are wanted */
};
/* As much as there is room for. True: that was all of it. */
bool feed_step(struct lend_feed *f, struct lend_pipe *p);

/* A file on its way in. */
struct lend_spool {
    int fd; /* borrowed; -1: none is expected */
    uint64_t at, max;
    struct err failed; /* it could not be written, or is longer than max */
    bool ended;
};
bool spool_take(struct lend_spool *s, const struct lend_message *m) MUST_CHECK;

/* --- borrowed.c, borrowed_files.c: at home --- */

/* What a worker wants of files, and waits for. */
struct borrowed_ask {
    struct lend_ask ask;
    struct str path;
    struct lend_feed feed;
    struct lend_spool spool;
    struct look *look;
    size_t seen; /* events of it so far */
    struct lend_answer answer;
    bool done;
};

struct borrowed {
    struct far_files files;
    struct loop *loop;       /* borrowed */
    struct pool *pool;       /* borrowed */
    struct session *session; /* borrowed: owns us. NULL: not open yet, or gone */
    struct lend_config config;
    struct lend_pipe pipe;
    struct timer *tick;       /* owned */
    session_open_fn *on_open; /* NULL: it has been answered */
    void *arg;
    atomic_uint refs;
    pthread_mutex_t lock;     /* of what follows: workers wait there */
    pthread_cond_t changed;   /* one of the two */
    struct borrowed_ask *ask; /* borrowed, or NULL: one at a time */
    bool closed;              /* no more of them */
};

void borrowed_start(struct borrowed *b, uint64_t id, const struct exec_config *config);
void borrowed_order(struct borrowed *b, enum lend_type type, uint64_t id, bool on);
void borrowed_note(struct borrowed *b, struct str path);
void borrowed_close(struct borrowed *b); /* its session goes */

/* Held by whoever has its files. From any thread. */
struct borrowed *borrowed_ref(struct borrowed *b);
void borrowed_unref(struct borrowed *b);
struct far_files *borrowed_files(struct borrowed *b); /* held */

/* For borrowed.c: what the lender says of files; their end; room on the channel. */
extern const struct far_ops borrowed_ops;
bool borrowed_on_file(struct borrowed *b, const struct lend_message *m) MUST_CHECK;
void borrowed_end_asks(struct borrowed *b);
void borrowed_feed(struct borrowed *b);
/* Gives up the line and tells the session. */
void borrowed_lose(struct borrowed *b, const char *why);
void borrowed_take(struct borrowed *b, struct str bytes);

/* --- session.c, for borrowed.c --- */

struct session *session_new_borrowed(struct pool *p, struct borrowed *b);
/* What runs gets OUTCOME_SESSION_LOST, and the owner hears of it. */
void session_lose(struct session *s, const char *why);
struct exec *session_find(struct session *s, uint64_t id);
