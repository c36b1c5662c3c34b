#pragma once
/* Between pool.c, parked.c and pool_alive.c. */
#include "engine/engine_int.h"

#include <sys/queue.h>

/* A session asked for. */
struct opening {
    STAILQ_ENTRY(opening) next;
    struct pool *pool; /* borrowed */
    session_open_fn *on_open;
    void *arg;
    int64_t since_us; /* it waits */
};

enum parked_state {
    PARKED_BOOTING, /* on its way */
    PARKED_UP,      /* to be taken */
    PARKED_SPENT,   /* has been used, and is to be ended */
    PARKED__COUNT
};

/* A sandbox that is nobody's: not yet, or no more. */
struct parked {
    TAILQ_ENTRY(parked) next;
    struct pool *pool;   /* borrowed */
    struct guest *guest; /* owned until handed over */
    enum parked_state state;
    bool closed;      /* booting: the box is, and the interpreter comes up */
    bool warm;        /* up: has been told to take the memory of a first cell */
    int64_t since_us; /* spent */
};

TAILQ_HEAD(parked_list, parked);
STAILQ_HEAD(opening_queue, opening);

struct pool {
    struct pool *next;
    struct engine *engine; /* borrowed */
    struct limits limits;
    int environment;           /* number of it; -1: there is none, and down says why */
    unsigned ready, ready_max; /* as the settings say */
    unsigned depth;            /* so many are kept parked now: more than ready after a rush */
    bool proxy;
    uint64_t recycle_ms;
    uint64_t zygote, coming; /* ids: the one that forks; the one that warms up, or 0 */
    pool_ready_fn *on_ready; /* until called */
    void *arg;
    struct timer *recycle, *late; /* owned */
    struct timer *again;          /* owned: the next try after one that made no sandbox */
    struct timer *listen;         /* owned: while somebody waits for the warden or the zygote */
    struct timer *refill;         /* owned: for what is done when there is time */
    bool ticks;                   /* that timer is set */
    struct timer *calm;           /* owned: while depth is more than ready */
    unsigned calm_s;              /* so long no rush has taken half of depth */
    int64_t forked_us;            /* when a fork was last asked for */
    struct timer *learner;        /* owned: when a zygote comes that has what is wanted now */
    struct learn *learn;          /* owned */
    uint64_t learn_ms;            /* between two such zygotes; 0: there are none */
    bool learns;                  /* that timer is set */
    int64_t taken_us;             /* when a session was last asked for */
    uint64_t again_ms;
    bool tried_again; /* a start that hung has had its second try */
    struct parked_list
        parked[PARKED__COUNT]; /* owned: oldest first; of those up, warm ones first */
    unsigned count[PARKED__COUNT], warm_count;
    struct opening_queue waiting; /* owned: oldest first */
    unsigned waiting_count;
    bool listening;    /* that timer is set */
    bool restarting;   /* it died, and the timer brings another */
    bool was_up;       /* so what it is made of is good, and another try is worth it */
    struct err down;   /* why there is no zygote; ERR_NONE while there is, or one is coming */
    struct err barren; /* why the last sandbox could not be made; ERR_NONE when it could */
    int64_t pinged_us; /* when that was asked and not answered yet; 0: it is answered */
    int64_t pong_us;   /* the last answer */
    struct err deaf;   /* ERR_NONE: there was an answer in time */
};

/* --- pool.c --- */

/* Those who have waited since then. */
void pool_fail_openings(struct pool *p, int64_t asked_before_us);

/* --- parked.c --- */

/* The first who waits: owned by the caller from now on. */
struct opening *opening_take(struct pool *p);
/* While there is a zygote: hands over what there is to who waits, and makes more. */
void parked_serve(struct pool *p);
void parked_ask(struct pool *p); /* the same, when one more waits */
void parked_drop(struct pool *p, enum parked_state which);
void parked_on_again(void *arg); /* tries what did not work */
void parked_on_refill(void *arg);
void parked_on_calm(void *arg);

/* --- pool_alive.c --- */

bool pool_is_deaf(struct pool *p); /* p->deaf says more */
void pool_listen(struct pool *p);  /* from now on somebody waits for an answer */
void pool_on_listen(void *arg);    /* of that timer */
