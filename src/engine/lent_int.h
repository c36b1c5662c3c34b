/* Private to lent.c and lent_files.c: a sandbox of ours for a session of another node. */
#pragma once

#include "engine/lend_int.h"

struct lent_op;

struct lent {
    struct loop *loop; /* borrowed */
    const struct lent_owner *owner;
    void *arg;
    struct lend_config config;
    struct lend_pipe pipe;
    struct timer *tick;      /* owned */
    struct pool *pool;       /* borrowed; NULL: none yet */
    struct session *session; /* owned, or NULL */
    struct whose whose;      /* of work for it */
    struct lent_exec *execs; /* owned: what runs or waits */
    size_t exec_count;
    struct lent_op *op; /* owned, or NULL: something about files */
    unsigned pending;   /* a sandbox or a worker is under way */
    bool wanted, recalled, ended;
    int64_t used_us; /* the last time that something ended */
};

void lent_settle(struct lent *t); /* another thing is over: perhaps it can go */
void lent_send_event(struct lent *t, enum lend_type type, uint64_t id, const struct event *ev);

/* --- lent_files.c --- */

bool lent_on_ask(struct lent *t, const struct lend_message *m) MUST_CHECK;
bool lent_on_bytes(struct lent *t, const struct lend_message *m) MUST_CHECK;
void lent_feed(struct lent *t);
void lent_drop_op(struct lent *t); /* unless a worker has it */
