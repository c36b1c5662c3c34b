/*
 * A pool: one environment, its zygote, and a number of sandboxes parked with their
 * interpreter up (parked.c). The zygote is replaced on a clock; the old one ends when
 * its last sandbox has.
 */
#include "engine/pool_int.h"

#include <stdio.h>
#include <stdlib.h>

#define RESTART_MS 1000
#define RETRY_MS   5000                  /* when that has failed */
#define START_MS   120000                /* an interpreter that is not up by then hangs */
#define LEARN_MAX  (12ull * 3600 * 1000) /* the longest time between two that have learned */

static void answer_waiting(struct pool *p);

/* --- zygotes --- */

static int start_zygote(struct pool *p, struct err *e)
{
    struct engine *en = p->engine;
    AUTO(buf_done) struct buf body = BUF(8 * KiB);
    AUTO(buf_done) struct buf modules = BUF(WIRE_MODULES_MAX);

    p->coming = en->next_id++;
    wire_put_num(&body, TAG_NUMBER, (uint64_t)p->environment);
    learn_ask(p->learn, &modules);
    if (modules.n > 0)
        wire_put(&body, TAG_NAME, buf_str(&modules));
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
    learn_give_up(p->learn);
    if (p->tried_again || start_zygote(p, &e) < 0)
        return pool_on_zygote(p, id, (struct str){0}, &e);
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

/* --- what its sessions import --- */

/* The old zygote lives for as long as sessions of it, so each time takes twice as long to come. */
static void on_learn(void *arg)
{
    struct pool *p = arg;
    struct err e;

    p->learns = false;
    if (!p->learn_ms || p->coming || !p->zygote || !learn_is_due(p->learn))
        return;
    p->learn_ms = 2 * p->learn_ms < LEARN_MAX ? 2 * p->learn_ms : LEARN_MAX;
    if (start_zygote(p, &e) < 0)
        log_warn("zygote not replaced: %s", e.text);
}

int pool_vote(struct pool *p, uint64_t guest, struct str modules)
{
    if (learn_vote(p->learn, guest, modules) < 0)
        return -1;
    if (p->learn_ms && !p->learns && learn_is_due(p->learn)) {
        p->learns = true;
        timer_set(p->learner, p->learn_ms);
    }
    return 0;
}

static void answer_ready(struct pool *p, const struct err *failed)
{
    pool_ready_fn *fn = p->on_ready;

    p->on_ready = NULL;
    if (fn)
        fn(p->arg, failed);
}

/* What the old zygote made and nobody uses yet goes with it. */
static void retire(struct pool *p, uint64_t old)
{
    parked_drop(p, PARKED_UP);
    (void)!engine_tell(p->engine, MSG_POOL_STOP, old, (struct str){0}, -1);
}

void pool_on_zygote(struct pool *p, uint64_t zygote, struct str modules, const struct err *down)
{
    if (zygote == p->coming)
        timer_clear(p->late);
    if (zygote == p->coming && down)
        learn_give_up(p->learn);
    if (!down) {
        uint64_t old = p->zygote;
        p->zygote = zygote;
        p->coming = 0;
        p->was_up = true;
        p->tried_again = false;
        p->down = p->barren = (struct err){0};
        learn_take(p->learn, modules);
        pool_on_pong(p);
        if (old)
            retire(p, old);
        answer_ready(p, NULL);
        return answer_waiting(p);
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
        .ready_max = config->ready_max,
        .depth = config->ready,
        .proxy = config->proxy,
        .recycle_ms = config->recycle_ms,
        .learn = learn_new(),
        .learn_ms = config->learn_ms,
        .on_ready = on_ready,
        .arg = arg,
    };
    for (size_t i = 0; i < COUNT(p->parked); i++)
        TAILQ_INIT(&p->parked[i]);
    STAILQ_INIT(&p->waiting);
    en->pools = p;
    p->recycle = timer_new(en->loop, on_recycle, p);
    p->late = timer_new(en->loop, on_late, p);
    p->again = timer_new(en->loop, parked_on_again, p);
    p->refill = timer_new(en->loop, parked_on_refill, p);
    p->calm = timer_new(en->loop, parked_on_calm, p);
    p->listen = timer_new(en->loop, pool_on_listen, p);
    p->learner = timer_new(en->loop, on_learn, p);
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
    for (enum parked_state i = 0; i < PARKED__COUNT; i++)
        parked_drop(p, i);
    timer_free(p->recycle);
    timer_free(p->late);
    timer_free(p->again);
    timer_free(p->refill);
    timer_free(p->calm);
    timer_free(p->listen);
    timer_free(p->learner);
    learn_free(p->learn);
    /* An open_later() may still be on its way: it finds nothing and says so. */
    p->zygote = p->coming = 0;
    p->restarting = false;
    p->on_ready = NULL;
    answer_waiting(p);
    loop_later(p->engine->loop, free_later, p);
}

void pool_retire(struct pool *p)
{
    p->ready = p->depth = 0;
    p->learn_ms = 0;
    parked_drop(p, PARKED_UP);
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

/* --- opening a session --- */

bool pool_is_refused(const struct pool *p)
{
    return !p->zygote && !p->coming && !p->was_up && p->down.kind == ERR_CALLER;
}

static void fail_opening(struct pool *p, struct opening *o)
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

void pool_fail_openings(struct pool *p, int64_t asked_before_us)
{
    struct opening *o;

    while ((o = STAILQ_FIRST(&p->waiting)) && o->since_us < asked_before_us)
        fail_opening(p, opening_take(p));
}

/* Sessions that were asked for while there was no zygote: one is up now, or there will be none. */
static void answer_waiting(struct pool *p)
{
    if (p->zygote)
        parked_serve(p);
    else
        pool_fail_openings(p, INT64_MAX);
}

static void open_later(void *arg)
{
    struct opening *o = arg;
    struct pool *p = o->pool;

    /* One that does not read would have the warden wait, and all other pools with it. */
    if (p->zygote ? p->count[PARKED_UP] == 0 && pool_is_deaf(p) : p->coming == 0 && !p->restarting)
        return fail_opening(p, o);
    o->since_us = time_mono_us();
    STAILQ_INSERT_TAIL(&p->waiting, o, next);
    p->waiting_count++;
    if (p->zygote)
        parked_ask(p);
    else
        pool_listen(p);
}

void session_open(struct pool *p, session_open_fn *on_open, void *arg)
{
    struct opening *o = mem_zalloc(sizeof(*o));

    *o = (struct opening){.pool = p, .on_open = on_open, .arg = arg};
    loop_later(p->engine->loop, open_later, o);
}

/* --- what others ask --- */

size_t pool_learned(const struct pool *p, const char *ret[LEARNED_MAX])
{
    return learn_tell(p->learn, ret);
}

unsigned pool_parked(const struct pool *p)
{
    return p->count[PARKED_UP];
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
