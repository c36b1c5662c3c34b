/*
 * Looks for the files that an execution has changed, when it has ended. A small workspace is walked
 * through at once. A large one would stop the loop for all other sessions, so a worker walks
 * through it, and the session starts no other cell until the worker is done.
 */
#include "engine/session_int.h"

#include <stdlib.h>

#define TRIES 3 /* when the host puts files meanwhile, a look begins anew */

struct scan {
    struct exec *x; /* borrowed; NULL when it is gone */
    struct loop *loop;
    struct whose whose;
    struct space space; /* owned */
    struct look *look;  /* owned */
    int tries;
};

static void on_file(void *arg, const struct event *ev)
{
    exec_tell(arg, ev);
}

static void tell(struct exec *x, struct look *k)
{
    x->outcome.limits_hit |= tree_tell(x->session->tree, k, &x->limits, on_file, x);
    exec_conclude(x);
}

static void walk(void *arg)
{
    struct scan *n = arg;

    look_walk(n->look, &n->space);
}

static void on_walked(void *arg)
{
    struct scan *n = arg;
    struct exec *x = n->x;
    struct tree *t = x ? x->session->tree : NULL;

    if (x && look_is_old(n->look, t) && ++n->tries < TRIES) {
        look_free(n->look);
        n->look = look_new(t);
        return loop_work_for(n->loop, n->whose, walk, on_walked, n);
    }
    if (x) {
        x->scan = NULL;
        tell(x, take_ptr(&n->look));
    }
    look_free(n->look);
    space_close(&n->space);
    free(n);
}

void exec_scan(struct exec *x)
{
    struct session *s = x->session;
    struct space space = {guest_space(s->guest), guest_uid(s->guest)};
    struct look *k = look_new(s->tree);
    struct scan *n;
    struct err e;

    if (look_try(k, s->tree, &space))
        return tell(x, k);
    /* Closed from a callback, or no descriptor is left: as well as it can be done. */
    if (s->closed || workspace_dup(s, &space, &e) < 0) {
        if (!s->closed)
            look_walk(k, &space);
        return tell(x, k);
    }
    n = mem_zalloc(sizeof(*n));
    *n = (struct scan){
        .x = x, .loop = pool_engine(s->pool)->loop, .whose = s->whose, .space = space, .look = k};
    x->scan = n;
    loop_work_for(n->loop, n->whose, walk, on_walked, n);
}

void exec_unscan(struct exec *x)
{
    if (x->scan)
        x->scan->x = NULL;
}
