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
#define SPARES_MAX 4 /* forks under way to be parked */

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
    }
}

static void drop(struct parked *k)
{
    leave(k);
    guest_free(k->guest);
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

    while (p->waiting_count > 0 &&
           ((k = first_closed(&p->parked)) || (k = first_closed(&p->booting))))
        hand_over(k);
    refill(p);
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

    if (!k->up && p->zygote && !p->deaf.kind) /* else down or deaf says more */
        note_barren(p, why);
    drop(k);
    if (p->zygote && p->waiting_count > p->booting_count) {
        struct opening *o = opening_take(p);
        err_set(&e, ERR_HOST, "no sandbox: %s", why);
        o->on_open(o->arg, NULL, &e);
        free(o);
    } else {
        log_warn("a parked sandbox ended: %s", why);
    }
    refill(p);
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

static void boot(struct pool *p)
{
    struct parked *k = mem_zalloc(sizeof(*k));

    k->pool = p;
    TAILQ_INSERT_TAIL(&p->booting, k, next);
    p->booting_count++;
    k->guest = guest_new(p, &parked_owner, k);
    pool_listen(p);
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
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
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (!rushed)
        return SPARES_MAX;
    if (p->parked_count > 0 && p->parked_count >= p->ready / 2)
        return 0;
    return cores < 2 ? 1 : smaller((unsigned)cores / 2, SPARES_MAX);
}

/* While it does not work: one at a time, by parked_on_again(). */
static bool wants_spare(const struct pool *p)
{
    return !p->barren.kind && p->parked_count + p->booting_count <
                                  p->ready + smaller(p->booting_count, p->waiting_count);
}

static void refill(struct pool *p)
{
    bool rushed = p->waiting_count > 0 || time_mono_us() - p->taken_us < REFILL_MS * INT64_C(1000);
    unsigned forks = forks_at_once(p), spares = spares_at_once(p, rushed);

    if (!p->zygote || p->deaf.kind)
        return;
    while (p->booting_count < forks)
        boot(p);
    while (p->booting_count < forks + spares && wants_spare(p))
        boot(p);
    if (rushed && wants_spare(p))
        timer_set(p->refill, REFILL_MS);
}

void parked_on_refill(void *arg)
{
    refill(arg);
}

/* Nobody may ask for a session for a long time, and whoever wants to know whether one could be had
 * (GET /ready) must not be told of an hour ago. */
void parked_on_again(void *arg)
{
    struct pool *p = arg;

    if (p->barren.kind && p->zygote && !p->deaf.kind && p->booting_count == 0)
        boot(p);
    refill(p);
}
