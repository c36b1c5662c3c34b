/*
 * A pool: one environment, its zygote, and a number of sandboxes parked with their
 * interpreter up. A session takes a parked one and the pool forks the next in the
 * background. The zygote is replaced on a clock; the old one ends when its last
 * sandbox has.
 */
#include "engine/pool_int.h"

#include <stdio.h>
#include <stdlib.h>

#define RESTART_MS 1000
#define RETRY_MS   5000   /* when that has failed */
#define START_MS   120000 /* an interpreter that is not up by then hangs */
#define AGAIN_MS   250    /* between tries while no sandbox can be made: at first, */
#define AGAIN_MAX  8000   /* and at most */
#define REFILL_MS  5

static void refill(struct pool *p);
static void answer_waiting(struct pool *p);

/* --- small lists --- */

static void push(struct parked **list, struct parked *k)
{
    k->next = *list;
    *list = k;
}

static void unlink_from(struct parked **list, struct parked *k)
{
    while (*list && *list != k)
        list = &(*list)->next;
    if (*list)
        *list = k->next;
}

/* --- zygotes --- */

static int start_zygote(struct pool *p, struct err *e)
{
    struct engine *en = p->engine;
    AUTO(buf_done) struct buf body = BUF(KiB);

    p->coming = en->next_id++;
    wire_put_num(&body, TAG_NUMBER, (uint64_t)p->environment);
    int rc = engine_tell(en, MSG_POOL_START, p->coming, buf_str(&body), -1);
    if (rc == 0) {
        timer_set(p->late, START_MS);
        return 0;
    }
    p->coming = 0;
    return err_set(e, ERR_HOST, "the warden is gone");
}

static void on_late(void *arg)
{
    struct pool *p = arg;
    uint64_t id = p->coming;
    struct err e;

    err_set(&e, ERR_HOST, "Python at %s was not ready after %d s",
            p->engine->environments[p->environment].info.executable, START_MS / 1000);
    (void)!engine_tell(p->engine, MSG_POOL_STOP, id, (struct str){0}, -1);
    if (p->tried_again || start_zygote(p, &e) < 0)
        return pool_on_zygote(p, id, &e);
    p->tried_again = true;
    log_warn("%s: it is started once more", e.text);
}

static void retry(struct pool *p)
{
    p->restarting = true;
    timer_set(p->recycle, RETRY_MS);
}

static void on_recycle(void *arg)
{
    struct pool *p = arg;
    struct err e;

    p->restarting = false;
    if (p->coming == 0 && start_zygote(p, &e) < 0) {
        log_warn("zygote not replaced: %s", e.text);
        answer_waiting(p);
        if (!p->zygote)
            return retry(p);
    }
    if (p->recycle_ms)
        timer_set(p->recycle, p->recycle_ms);
}

static void answer_ready(struct pool *p, const struct err *failed)
{
    pool_ready_fn *fn = p->on_ready;

    p->on_ready = NULL;
    if (fn)
        fn(p->arg, failed);
}

static void drop_parked(struct pool *p)
{
    while (p->parked) {
        struct parked *k = p->parked;
        p->parked = k->next;
        p->parked_count--;
        guest_free(k->guest);
        free(k);
    }
}

/* What the old zygote made and nobody uses yet goes with it. */
static void retire(struct pool *p, uint64_t old)
{
    drop_parked(p);
    (void)!engine_tell(p->engine, MSG_POOL_STOP, old, (struct str){0}, -1);
}

void pool_on_zygote(struct pool *p, uint64_t zygote, const struct err *down)
{
    if (zygote == p->coming)
        timer_clear(p->late);
    if (!down) {
        uint64_t old = p->zygote;
        p->zygote = zygote;
        p->coming = 0;
        p->was_up = true;
        p->tried_again = false;
        p->down = p->barren = (struct err){0};
        pool_on_pong(p);
        if (old)
            retire(p, old);
        answer_ready(p, NULL);
        answer_waiting(p);
        refill(p);
        return;
    }
    if (zygote == p->coming) {
        p->coming = 0;
        if (p->was_up)
            log_warn("zygote not replaced: %s", down->text);
        if (p->zygote)
            return;
        p->down = *down;
        answer_waiting(p);
        if (p->was_up)
            retry(p);
    } else if (zygote == p->zygote) { /* it died, and its sandboxes with it: get another */
        p->zygote = 0;
        p->restarting = true;
        timer_set(p->recycle, RESTART_MS);
    }
    p->down = *down;
    answer_ready(p, down);
    if (!p->restarting)
        answer_waiting(p);
}

static void on_start_failed(void *arg)
{
    struct pool *p = arg;

    answer_ready(p, &p->down);
}

struct pool *pool_start(struct engine *en, const struct pool_config *config,
                        pool_ready_fn *on_ready, void *arg)
{
    struct pool *p = mem_zalloc(sizeof(*p));

    *p = (struct pool){
        .next = en->pools,
        .engine = en,
        .limits = config->limits,
        .ready = config->ready,
        .proxy = config->proxy,
        .recycle_ms = config->recycle_ms,
        .on_ready = on_ready,
        .arg = arg,
    };
    en->pools = p;
    p->recycle = timer_new(en->loop, on_recycle, p);
    p->late = timer_new(en->loop, on_late, p);
    p->again = timer_new(en->loop, pool_on_again, p);
    p->refill = timer_new(en->loop, pool_on_refill, p);
    p->listen = timer_new(en->loop, pool_on_listen, p);
    if (p->recycle_ms)
        timer_set(p->recycle, p->recycle_ms);
    p->environment = environment_number(en, &config->environment, &p->down);
    if (p->environment < 0 || start_zygote(p, &p->down) < 0)
        loop_later(en->loop, on_start_failed, p);
    return p;
}

static void free_later(void *arg)
{
    free(arg);
}

void pool_free(struct pool *p)
{
    for (struct parked *k = p->parked, *next; k; k = next) {
        next = k->next;
        guest_free(k->guest);
        free(k);
    }
    for (struct parked *k = p->booting, *next; k; k = next) {
        next = k->next;
        guest_free(k->guest);
        free(k);
    }
    timer_free(p->recycle);
    timer_free(p->late);
    timer_free(p->again);
    timer_free(p->refill);
    timer_free(p->listen);
    /* An open_later() may still be on its way: it finds nothing and says so. */
    p->parked = p->booting = NULL;
    p->zygote = p->coming = 0;
    p->restarting = false;
    p->on_ready = NULL;
    answer_waiting(p);
    loop_later(p->engine->loop, free_later, p);
}

void pool_retire(struct pool *p)
{
    p->ready = 0;
    drop_parked(p);
}

void pool_stop(struct pool *p)
{
    const uint64_t zygotes[] = {p->zygote, p->coming};
    struct pool **at = &p->engine->pools;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    for (size_t i = 0; i < COUNT(zygotes); i++)
        if (zygotes[i])
            (void)!engine_tell(p->engine, MSG_POOL_STOP, zygotes[i], (struct str){0}, -1);
    pool_free(p);
}

/* --- sandboxes on their way --- */

/* Who waits for a session gets it now: cells can be queued while the interpreter comes up. */
static void on_closed(void *arg)
{
    struct parked *k = arg;
    struct pool *p = k->pool;

    p->barren = (struct err){0};
    if (!k->on_open)
        return;
    unlink_from(&p->booting, k);
    p->booting_count--;
    k->on_open(k->arg, session_new(p, k->guest), NULL);
    free(k);
    refill(p);
}

static void on_booted(void *arg)
{
    struct parked *k = arg;
    struct pool *p = k->pool;

    if (k->up) /* its interpreter died while parked, and has been replaced */
        return;
    unlink_from(&p->booting, k);
    p->booting_count--;
    /* Replaced meanwhile, or made to see whether one can be made. */
    if (guest_zygote(k->guest) != p->zygote || p->parked_count >= p->ready) {
        guest_free(k->guest);
        free(k);
    } else {
        k->up = true;
        push(&p->parked, k);
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

static void on_booting_dead(void *arg, const char *why)
{
    struct parked *k = arg;
    struct pool *p = k->pool;
    struct err e;

    if (!k->up && p->zygote && !p->deaf.kind) /* else down or deaf says more */
        note_barren(p, why);
    if (guest_state(k->guest) == GUEST_DEAD && k->on_open) {
        err_set(&e, ERR_HOST, "no sandbox: %s", why);
        k->on_open(k->arg, NULL, &e);
    } else {
        log_warn("a parked sandbox ended: %s", why);
    }
    for (struct parked *at = p->parked; at; at = at->next)
        p->parked_count -= at == k;
    for (struct parked *at = p->booting; at; at = at->next)
        p->booting_count -= at == k;
    unlink_from(&p->parked, k);
    unlink_from(&p->booting, k);
    guest_free(k->guest);
    free(k);
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
    .on_dead = on_booting_dead,
};

static void boot(struct pool *p, session_open_fn *on_open, void *arg)
{
    struct parked *k = mem_zalloc(sizeof(*k));

    *k = (struct parked){.pool = p, .on_open = on_open, .arg = arg};
    push(&p->booting, k);
    p->booting_count++;
    k->guest = guest_new(p, &parked_owner, k);
    pool_listen(p);
}

static void refill(struct pool *p)
{
    /* One at a time while that does not work: pool_on_again(). */
    while (p->zygote && !p->barren.kind && !p->deaf.kind && p->booting_count < SPAWNS_MAX &&
           p->parked_count + p->booting_count < p->ready)
        boot(p, NULL, NULL);
}

void pool_on_refill(void *arg)
{
    struct pool *p = arg;

    p->refills = false;
    refill(p);
}

/* A fork takes a processor for milliseconds, and the session that has just been handed over wants
 * one now, for its first cell. Half of what is kept ready bridges the time. */
static void refill_soon(struct pool *p)
{
    if (p->parked_count < p->ready / 2 || p->parked_count == 0)
        return refill(p);
    if (!p->refills)
        timer_set(p->refill, REFILL_MS);
    p->refills = true;
}

/* Nobody may ask for a session for a long time, and whoever wants to know whether one could be had
 * (GET /ready) must not be told of an hour ago. */
void pool_on_again(void *arg)
{
    struct pool *p = arg;

    if (p->barren.kind && p->zygote && !p->deaf.kind && p->booting_count == 0)
        boot(p, NULL, NULL);
    refill(p);
}

/* --- opening a session --- */

bool pool_is_refused(const struct pool *p)
{
    return !p->zygote && !p->coming && !p->was_up && p->down.kind == ERR_CALLER;
}

void pool_fail_opening(struct pool *p, struct opening *o)
{
    struct err e;

    /* A Python that refuses does so the next time, too: to try again helps nobody. */
    if (p->zygote)
        e = p->deaf;
    else
        err_set(&e, pool_is_refused(p) ? ERR_SETUP : ERR_HOST, "no interpreter: %s",
                p->down.kind ? p->down.text : "it is still starting");
    o->on_open(o->arg, NULL, &e);
    free(o);
}

static void open_one(struct pool *p, struct opening *o)
{
    struct parked *k = p->parked;

    if (k) {
        p->parked = k->next;
        p->parked_count--;
        o->on_open(o->arg, session_new(p, k->guest), NULL);
        free(k);
        refill_soon(p);
    } else {
        boot(p, o->on_open, o->arg);
    }
    free(o);
}

/* Sessions that were asked for while there was no zygote: one is up now, or there will be none. */
static void answer_waiting(struct pool *p)
{
    while (p->waiting) {
        struct opening *o = p->waiting;
        p->waiting = o->next;
        if (p->zygote)
            open_one(p, o);
        else
            pool_fail_opening(p, o);
    }
}

static void open_later(void *arg)
{
    struct opening *o = arg, **at = &o->pool->waiting;
    struct pool *p = o->pool;

    /* One that does not read would have the warden wait, and all other pools with it. */
    if (p->zygote && !p->parked && pool_is_deaf(p))
        return pool_fail_opening(p, o);
    if (p->zygote)
        return open_one(p, o);
    if (p->coming == 0 && !p->restarting)
        return pool_fail_opening(p, o);
    while (*at)
        at = &(*at)->next;
    *at = o;
    o->since_us = time_mono_us();
    pool_listen(p);
}

void session_open(struct pool *p, session_open_fn *on_open, void *arg)
{
    struct opening *o = mem_zalloc(sizeof(*o));

    *o = (struct opening){.pool = p, .on_open = on_open, .arg = arg};
    loop_later(p->engine->loop, open_later, o);
}

/* --- what others ask --- */

unsigned pool_parked(const struct pool *p)
{
    return p->parked_count;
}

const char *pool_python_version(const struct pool *p)
{
    return p->environment < 0 ? "" : p->engine->environments[p->environment].info.version;
}

bool pool_is_up(struct pool *p, const char **ret_why)
{
    bool deaf = p->zygote && pool_is_deaf(p);

    *ret_why = deaf           ? p->deaf.text
               : p->zygote    ? p->barren.text
               : p->down.kind ? p->down.text
                              : "it is still starting";
    return p->zygote != 0 && !p->barren.kind && !deaf;
}

bool pool_has_proxy(const struct pool *p)
{
    return p->proxy;
}

struct engine *pool_engine(struct pool *p)
{
    return p->engine;
}

const struct limits *pool_limits(struct pool *p)
{
    return &p->limits;
}

uint64_t pool_zygote(struct pool *p)
{
    return p->zygote;
}

bool pool_has_zygote(struct pool *p, uint64_t zygote)
{
    return zygote != 0 && (p->zygote == zygote || p->coming == zygote);
}

struct pool **pool_next(struct pool *p)
{
    return &p->next;
}
