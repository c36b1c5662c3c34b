/*
 * What a pool keeps ready: sandboxes that are parked with their interpreter up, and those on their
 * way there. Who asks for a session gets a parked one, or else the one that is farthest on its way,
 * or else one that is made for it.
 *
 * A fork takes a processor for milliseconds, and the session that has just been handed over wants
 * one now, for its first cell. So what was taken is made anew when nobody has asked for some
 * milliseconds. Before that, only when half of what is kept is gone, and few at a time.
 */
#include "engine/pool_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AGAIN_MS   250  /* between tries while no sandbox can be made: at first, */
#define AGAIN_MAX  8000 /* and at most */
#define REFILL_MS  5
#define SPAWNS_MAX 4 /* forks under way to be parked */

/* --- letting them go --- */

static void leave(struct parked *k)
{
    struct pool *p = k->pool;

    if (k->up) {
        TAILQ_REMOVE(&p->parked, k, next);
        p->parked_count--;
    } else {
        TAILQ_REMOVE(&p->booting, k, next);
        p->booting_count--;
        p->awaited_count -= k->opening != NULL;
    }
}

static void drop(struct parked *k)
{
    leave(k);
    guest_free(k->guest);
    free(k->opening);
    free(k);
}

void parked_drop(struct pool *p)
{
    while (p->parked_count > 0)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        drop(TAILQ_FIRST(&p->parked));
}

void parked_end(struct pool *p)
{
    parked_drop(p);
    while (p->booting_count > 0)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        drop(TAILQ_FIRST(&p->booting));
}

/* --- handing over --- */

static void hand_over(struct parked *k)
{
    struct opening *o = take_ptr(&k->opening);

    learn_session(k->pool->learn);
    o->on_open(o->arg, session_new(k->pool, k->guest), NULL);
    free(o);
    free(k);
}

/* Who waits for a session gets it now: cells can be queued while the interpreter comes up. */
static void on_closed(void *arg)
{
    struct parked *k = arg;
    struct pool *p = k->pool;

    p->barren = (struct err){0};
    k->closed = true;
    if (!k->opening)
        return;
    leave(k);
    hand_over(k);
    parked_refill(p);
}

static void on_booted(void *arg)
{
    struct parked *k = arg;
    struct pool *p = k->pool;

    if (k->up) /* its interpreter died while parked, and has been replaced */
        return;
    /* Replaced meanwhile, or made to see whether one can be made. */
    if (guest_zygote(k->guest) != p->zygote || p->parked_count >= p->ready) {
        drop(k);
    } else {
        leave(k);
        k->up = true;
        TAILQ_INSERT_HEAD(&p->parked, k, next);
        p->parked_count++;
    }
    parked_refill(p);
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

    if (!k->up && p->zygote && !p->deaf.kind) /* else down or deaf says more */
        note_barren(p, why);
    if (k->opening) {
        err_set(&e, ERR_HOST, "no sandbox: %s", why);
        k->opening->on_open(k->opening->arg, NULL, &e);
    } else {
        log_warn("a parked sandbox ended: %s", why);
    }
    drop(k);
}

/* Nobody has run a cell yet: whatever it says is a part of starting up. */
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

/* For o, or to be parked (NULL). */
static void boot(struct pool *p, struct opening *o)
{
    struct parked *k = mem_zalloc(sizeof(*k));

    *k = (struct parked){.pool = p, .opening = o};
    TAILQ_INSERT_TAIL(&p->booting, k, next);
    p->booting_count++;
    p->awaited_count += o != NULL;
    k->guest = guest_new(p, &parked_owner, k);
    pool_listen(p);
}

/* How many forks may be under way to be parked. */
static unsigned spawns_now(const struct pool *p, bool rushed)
{
    long cores = rushed ? sysconf(_SC_NPROCESSORS_ONLN) / 2 : SPAWNS_MAX;

    if (rushed && p->parked_count > 0 && p->parked_count >= p->ready / 2)
        return 0;
    return cores < 1 ? 1 : cores < SPAWNS_MAX ? (unsigned)cores : SPAWNS_MAX;
}

/* While it does not work: one at a time, by parked_on_again(). */
static bool wants_more(const struct pool *p)
{
    return p->zygote && !p->barren.kind && !p->deaf.kind &&
           p->parked_count + p->booting_count - p->awaited_count < p->ready;
}

void parked_refill(struct pool *p)
{
    bool rushed = time_mono_us() - p->taken_us < REFILL_MS * INT64_C(1000);
    unsigned spawns = spawns_now(p, rushed);

    while (p->booting_count < spawns && wants_more(p))
        boot(p, NULL);
    if (rushed && wants_more(p))
        timer_set(p->refill, REFILL_MS);
}

void parked_on_refill(void *arg)
{
    parked_refill(arg);
}

/* Nobody may ask for a session for a long time, and whoever wants to know whether one could be had
 * (GET /ready) must not be told of an hour ago. */
void parked_on_again(void *arg)
{
    struct pool *p = arg;

    if (p->barren.kind && p->zygote && !p->deaf.kind && p->booting_count == 0)
        boot(p, NULL);
    parked_refill(p);
}

/* --- taking them --- */

/* Of the list, the first that is still to be had, or NULL. */
static struct parked *first(const struct parked_list *list, uint64_t zygote)
{
    struct parked *k = TAILQ_FIRST(list);

    while (k &&
           (k->opening || guest_zygote(k->guest) != zygote || guest_state(k->guest) == GUEST_DEAD))
        k = TAILQ_NEXT(k, next);
    return k;
}

void parked_give(struct pool *p, struct opening *o)
{
    struct parked *k = first(&p->parked, p->zygote);

    p->taken_us = time_mono_us();
    if (!k)
        k = first(&p->booting, p->zygote);
    if (!k) {
        boot(p, o);
    } else if (k->up || k->closed) {
        leave(k);
        k->opening = o;
        hand_over(k);
    } else {
        k->opening = o;
        p->awaited_count++;
    }
    parked_refill(p);
}
