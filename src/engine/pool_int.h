#pragma once
/* Between pool.c and pool_alive.c. */
#include "engine/engine_int.h"

struct parked {
    struct parked *next;
    struct pool *pool;        /* borrowed */
    struct guest *guest;      /* owned until handed over */
    session_open_fn *on_open; /* NULL: for the ready pool */
    void *arg;
    bool up; /* in pool.parked, no longer in pool.booting */
};

/* A session asked for. */
struct opening {
    struct opening *next;
    struct pool *pool; /* borrowed */
    session_open_fn *on_open;
    void *arg;
    int64_t since_us; /* it waits */
};

struct pool {
    struct pool *next;
    struct engine *engine; /* borrowed */
    struct limits limits;
    int environment; /* number of it; -1: there is none, and down says why */
    unsigned ready;
    bool proxy;
    uint64_t recycle_ms;
    uint64_t zygote, coming; /* ids: the one that forks; the one that warms up, or 0 */
    pool_ready_fn *on_ready; /* until called */
    void *arg;
    struct timer *recycle, *late; /* owned */
    struct timer *again;          /* owned: the next try after one that made no sandbox */
    struct timer *listen;         /* owned: while somebody waits for the warden or the zygote */
    struct timer *refill;         /* owned: when what was handed over is made anew */
    bool refills;                 /* that timer is set */
    uint64_t again_ms;
    bool tried_again;       /* a start that hung has had its second try */
    struct parked *parked;  /* idle, oldest last */
    struct parked *booting; /* on their way, for the ready pool or for a session */
    unsigned parked_count, booting_count;
    bool listening;          /* that timer is set */
    bool restarting;         /* it died, and the timer brings another */
    bool was_up;             /* so what it is made of is good, and another try is worth it */
    struct err down;         /* why there is no zygote; ERR_NONE while there is, or one is coming */
    struct err barren;       /* why the last sandbox could not be made; ERR_NONE when it could */
    int64_t pinged_us;       /* when that was asked and not answered yet; 0: it is answered */
    int64_t pong_us;         /* the last answer */
    struct err deaf;         /* ERR_NONE: there was an answer in time */
    struct opening *waiting; /* owned: oldest first, for a zygote that is coming up */
};

/* --- pool.c --- */

void pool_on_again(void *arg); /* tries what did not work */
void pool_on_refill(void *arg);
void pool_fail_opening(struct pool *p, struct opening *o); /* frees it */

/* --- pool_alive.c --- */

bool pool_is_deaf(struct pool *p); /* p->deaf says more */
void pool_listen(struct pool *p);  /* from now on somebody waits for an answer */
void pool_on_listen(void *arg);    /* of that timer */
