/*
 * Sandboxes that are nobody's. A pool keeps some parked with their interpreter up. Who asks for a
 * session gets the one that has been parked longest, or else the one that is farthest on its way,
 * or else waits in a row while some are made.
 *
 * The session that has just been handed over wants a processor, for its first cell, and to make a
 * sandbox takes one for milliseconds, as does to end one. So most of that waits until nobody has
 * asked for some milliseconds: to make anew what was taken (before that, only when half of what the
 * settings say is gone, and few at a time), to have parked ones take the memory that a first cell
 * may want, and to end what has been used.
 *
 * How many are kept follows the demand. Whenever somebody had to wait, it doubles, up to
 * SURGE_TIMES what the settings say. What is parked beyond those has taken only the memory that any
 * cell wants. After CALM_S without a rush that takes half of them it is one less each second.
 */
#include "engine/pool_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AGAIN_MS   250  /* between tries while no sandbox can be made: at first, */
#define AGAIN_MAX  8000 /* and at most */
#define REFILL_MS  5    /* nobody has asked for so long: there is time */
#define SPARES_MAX 4    /* forks under way to be parked */

#define SURGE_TIMES    8
#define SURGE_SHARE    64        /* not more than this part of the memory, */
#define SURGE_BYTES    (6 * MiB) /* of which each takes so much */
#define SURPLUS_MS     50 /* nobody has asked for so long: more than the settings say are made, */
#define SURPLUS_GAP_MS 20 /* one at a time */
#define CALM_TICK_MS   1000
#define CALM_S         60
#define LESS           8

#define SPENT_MAX     64
#define SPENT_MS      200        /* not longer */
#define SPENT_BYTES   (32 * MiB) /* who holds more is ended at once */
#define SPENT_AT_ONCE 2

/* --- lists --- */

static struct parked *parked_new(struct pool *p, enum parked_state state)
{
    struct parked *k = mem_zalloc(sizeof(*k));

    *k = (struct parked){.pool = p, .state = state, .since_us = time_mono_us()};
    TAILQ_INSERT_TAIL(&p->parked[state], k, next);
    p->count[state]++;
    return k;
}

static void leave(struct parked *k)
{
    struct pool *p = k->pool;

    TAILQ_REMOVE(&p->parked[k->state], k, next);
    p->count[k->state]--;
    p->warm_count -= k->warm;
}

static void drop(struct parked *k)
{
    leave(k);
    guest_free(k->guest);
    free(k);
}

void parked_drop(struct pool *p, enum parked_state which)
{
    while (p->count[which] > 0)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        drop(TAILQ_FIRST(&p->parked[which]));
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool is_rushed(const struct pool *p)
{
    return p->waiting_count > 0 || time_mono_us() - p->taken_us < REFILL_MS * INT64_C(1000);
}

/* --- how many --- */

static unsigned depth_max(const struct pool *p)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t room = pages / SURGE_SHARE * page / SURGE_BYTES;
    unsigned most = smaller(SURGE_TIMES * p->ready, p->ready_max);

    if (most > room)
        most = (unsigned)room;
    return p->ready > most ? p->ready : most;
}

/* Somebody has to wait. */
static void surge(struct pool *p)
{
    p->calm_s = 0;
    p->depth = smaller(2 * p->depth, depth_max(p));
    if (p->depth > p->ready)
        timer_set(p->calm, CALM_TICK_MS);
}

void parked_on_calm(void *arg)
{
    struct pool *p = arg;

    if (p->depth <= p->ready)
        return;
    timer_set(p->calm, CALM_TICK_MS);
    p->calm_s = p->count[PARKED_UP] < p->depth / 2 ? 0 : p->calm_s + 1;
    if (p->calm_s <= CALM_S)
        return;
    p->depth -= (p->depth - p->ready + LESS - 1) / LESS;
    while (p->count[PARKED_UP] > p->depth)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        drop(TAILQ_LAST(&p->parked[PARKED_UP], parked_list));
}

/* --- handing over --- */

struct opening *opening_take(struct pool *p)
{
    struct opening *o = STAILQ_FIRST(&p->waiting);

    STAILQ_REMOVE_HEAD(&p->waiting, next);
    p->waiting_count--;
    return o;
}

/* Whose box is closed: cells can be queued while the interpreter comes up. */
static struct parked *first_closed(const struct parked_list *list)
{
    struct parked *k = TAILQ_FIRST(list);

    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what has been freed has left the list
    while (k && (!k->closed || guest_state(k->guest) == GUEST_DEAD))
        k = TAILQ_NEXT(k, next);
    return k;
}

static void hand_over(struct parked *k)
{
    struct opening *o = opening_take(k->pool);

    leave(k);
    k->pool->taken_us = time_mono_us();
    learn_session(k->pool->learn);
    o->on_open(o->arg, session_new(k->pool, k->guest), NULL);
    free(o);
    free(k);
}

static void refill(struct pool *p);

void parked_serve(struct pool *p)
{
    struct parked *k;

    while (p->waiting_count > 0 && ((k = first_closed(&p->parked[PARKED_UP])) ||
                                    (k = first_closed(&p->parked[PARKED_BOOTING]))))
        hand_over(k);
    refill(p);
}

void parked_ask(struct pool *p)
{
    if (p->count[PARKED_UP] == 0)
        surge(p);
    parked_serve(p);
}

static void on_closed(void *arg)
{
    struct parked *k = arg;

    k->pool->barren = (struct err){0};
    k->closed = true;
    parked_serve(k->pool);
}

static void on_booted(void *arg)
{
    struct parked *k = arg;
    struct pool *p = k->pool;

    if (k->state != PARKED_BOOTING) /* its interpreter died, and has been replaced */
        return;
    /* Replaced meanwhile, or made to see whether one can be made. */
    if (guest_zygote(k->guest) != p->zygote || p->count[PARKED_UP] >= p->depth) {
        drop(k);
    } else {
        leave(k);
        k->state = PARKED_UP;
        TAILQ_INSERT_TAIL(&p->parked[PARKED_UP], k, next);
        p->count[PARKED_UP]++;
    }
    refill(p);
}

/* The reason is kept until a sandbox comes up, and what failed is tried again: GET /ready tells. */
static void note_barren(struct pool *p, const char *why)
{
    p->again_ms = !p->barren.kind           ? AGAIN_MS
                  : p->again_ms < AGAIN_MAX ? p->again_ms * 2
                                            : AGAIN_MAX;
    err_set(&p->barren, ERR_HOST, "no sandbox can be made: %s", why);
    timer_set(p->again, p->again_ms);
}

static void on_dead(void *arg, const char *why)
{
    struct parked *k = arg;
    struct pool *p = k->pool;
    struct err e;

    bool is_spent = k->state == PARKED_SPENT;

    /* Else down or deaf says more. */
    if (k->state == PARKED_BOOTING && p->zygote && !p->deaf.kind)
        note_barren(p, why);
    drop(k);
    if (p->zygote && p->waiting_count > p->count[PARKED_BOOTING]) {
        struct opening *o = opening_take(p);
        err_set(&e, ERR_HOST, "no sandbox: %s", why);
        o->on_open(o->arg, NULL, &e);
        free(o);
    } else if (!is_spent) {
        log_warn("a parked sandbox ended: %s", why);
    }
    refill(p);
}

/* Nobody has run a cell yet, or will: whatever it says is for nobody. */
static void ignore_text(void *arg, enum event_kind kind, struct str text)
{
    (void)arg;
    log_debug("a parked sandbox says on %s: %.*s", event_kind_name(kind),
              (int)(text.n < 400 ? text.n : 400), text.p);
}

static void ignore_event(void *arg, const struct event *ev)
{
    (void)arg;
    (void)ev;
}

static void ignore_exit(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void ignore_command(void *arg, uint64_t id, int status)
{
    (void)arg;
    (void)id;
    (void)status;
}

static void ignore_trip(void *arg, enum wire_trip which)
{
    (void)arg;
    (void)which;
}

static void ignore_usage(void *arg, const struct box_usage *u)
{
    (void)arg;
    (void)u;
}

static const struct guest_owner parked_owner = {
    .on_closed = on_closed,
    .on_idle = on_booted,
    .on_text = ignore_text,
    .on_event = ignore_event,
    .on_kernel_exit = ignore_exit,
    .on_command_exit = ignore_command,
    .on_trip = ignore_trip,
    .on_usage = ignore_usage,
    .on_dead = on_dead,
};

/* --- making them --- */

static void boot(struct pool *p)
{
    struct parked *k = parked_new(p, PARKED_BOOTING);

    p->forked_us = k->since_us;
    k->guest = guest_new(p, &parked_owner, k);
    pool_listen(p);
}

/* How many forks may be under way for those who wait. More would only make each other slower: the
 * first would be there as late as the last. */
static unsigned forks_at_once(const struct pool *p)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return smaller(p->waiting_count, cores < 1 ? 4 : 4 * (unsigned)cores);
}

/* And besides for what is to be parked. */
static unsigned spares_at_once(const struct pool *p, bool rushed)
{
    unsigned up = p->count[PARKED_UP];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (!rushed)
        return SPARES_MAX;
    if (up > 0 && up >= p->ready / 2)
        return 0;
    return cores < 2 ? 1 : smaller((unsigned)cores / 2, SPARES_MAX);
}

/* While it does not work: one at a time, by parked_on_again(). */
static bool wants(const struct pool *p, unsigned most)
{
    unsigned booting = p->count[PARKED_BOOTING];

    return p->zygote && !p->barren.kind && !p->deaf.kind &&
           p->count[PARKED_UP] + booting < most + smaller(booting, p->waiting_count);
}

static bool wants_warm(const struct pool *p)
{
    return p->warm_count < smaller(p->ready, p->count[PARKED_UP]);
}

static void warm_next(struct pool *p)
{
    struct parked *k = TAILQ_FIRST(&p->parked[PARKED_UP]);

    while (k && k->warm)
        k = TAILQ_NEXT(k, next);
    if (!k)
        return;
    guest_warm(k->guest);
    k->warm = true;
    p->warm_count++;
}

/* In a quiet moment, beside what is made anew: one thing at a time. */
static void tidy(struct pool *p)
{
    int64_t now = time_mono_us();

    for (unsigned i = 0; i < SPENT_AT_ONCE && p->count[PARKED_SPENT] > 0; i++)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        drop(TAILQ_FIRST(&p->parked[PARKED_SPENT]));
    if (wants_warm(p))
        warm_next(p);
    else if (p->count[PARKED_BOOTING] == 0 && wants(p, p->depth) &&
             now - p->taken_us > SURPLUS_MS * INT64_C(1000) &&
             now - p->forked_us > SURPLUS_GAP_MS * INT64_C(1000))
        boot(p);
}

static void tick(struct pool *p)
{
    if (!p->ticks)
        timer_set(p->refill, REFILL_MS);
    p->ticks = true;
}

static void refill(struct pool *p)
{
    bool rushed = is_rushed(p);
    unsigned forks = forks_at_once(p), spares = spares_at_once(p, rushed);

    while (p->count[PARKED_BOOTING] < forks && p->zygote && !p->deaf.kind)
        boot(p);
    while (p->count[PARKED_BOOTING] < forks + spares && wants(p, p->ready))
        boot(p);
    if (p->count[PARKED_SPENT] > 0 || wants(p, p->depth) || wants_warm(p))
        tick(p);
}

void parked_on_refill(void *arg)
{
    struct pool *p = arg;
    const struct parked *old = TAILQ_FIRST(&p->parked[PARKED_SPENT]);

    p->ticks = false;
    if (!is_rushed(p))
        tidy(p);
    else if (old && time_mono_us() - old->since_us > SPENT_MS * INT64_C(1000))
        drop(TAILQ_FIRST(&p->parked[PARKED_SPENT]));
    refill(p);
}

/* Nobody may ask for a session for a long time, and whoever wants to know whether one could be had
 * (GET /ready) must not be told of an hour ago. */
void parked_on_again(void *arg)
{
    struct pool *p = arg;

    if (p->barren.kind && p->zygote && !p->deaf.kind && p->count[PARKED_BOOTING] == 0)
        boot(p);
    refill(p);
}

/* --- what has been used --- */

void pool_take_back(struct pool *p, struct guest *g, bool is_idle)
{
    uint64_t peak;
    struct parked *k;

    if (!g || !is_idle || !is_rushed(p) || guest_state(g) != GUEST_IDLE ||
        p->count[PARKED_SPENT] >= SPENT_MAX || !guest_memory_peak(g, &peak) || peak > SPENT_BYTES)
        return guest_free(g);
    k = parked_new(p, PARKED_SPENT);
    k->guest = g;
    guest_set_owner(g, &parked_owner, k);
    tick(p);
}
