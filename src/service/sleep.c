/*
 * How a session wakes, sleeps and ends. Awake it has a sandbox, opened from its pool
 * and filled with the saved files. It sleeps when nobody has used it for its idle
 * time or its room is needed, when its interpreter has lived its lifetime, after a one-shot
 * execution, when the sandbox is lost, and when the server closes: what has changed is saved first,
 * then the sandbox is closed. Lifetime counts from the start of the interpreter.
 */
#include "service/service_int.h"

#include <stdlib.h>

#define AGAIN_MS     30000 /* saving failed: later */
#define NEXT_MAX_S   60
#define ROWS_AT_ONCE 200 /* deleted */
#define FALLING_MAX  16  /* put to sleep at a time to make room */

/* --- limits on awake sessions --- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t loaded_sleeps_us(const struct loaded *l)
{
    return earlier(l->used_us + l->row.idle_ms * 1000, l->woke_us + l->row.lifetime_ms * 1000);
}

/* Sessions that count for one limit: of a tenant, or of all pools that have had this name. */
struct crowd {
    int64_t next_us;     /* when the next idle one goes to sleep by itself */
    struct loaded *idle; /* for the longest time; NULL: none is */
    unsigned falling;    /* saved at this moment, and asleep then */
};

/* Only asked when a limit is reached. */
static struct crowd look_at(struct service *sv, const struct pool_entry *env, const char *tenant)
{
    AUTO_FREE void **all = table_all(&sv->sessions);
    struct crowd c = {.next_us = time_mono_us() + (int64_t)NEXT_MAX_S * 1000000};

    for (size_t i = 0; i < sv->sessions.n; i++) {
        struct loaded *l = all[i];
        bool counts = tenant ? strcmp(l->row.tenant, tenant) == 0
                             : !*l->lender && strcmp(l->row.pool, env->config.name) == 0;
        if (!counts || !loaded_is_awake(l))
            continue;
        c.falling += l->sleeping;
        if (l->state != SESSION_IDLE || l->sleeping || l->jobs)
            continue;
        c.next_us = earlier(c.next_us, loaded_sleeps_us(l));
        if (!c.idle || l->used_us < c.idle->used_us)
            c.idle = l;
    }
    return c;
}

int forbid(struct service *sv, struct err *e, int retry_s, const char *text)
{
    sv->counts.refused_busy++;
    err_set(e, ERR_BUSY, "%s", text);
    e->retry_s = retry_s;
    return -1;
}

int closing_down(struct service *sv, struct err *e)
{
    sv->counts.refused_busy++;
    err_set(e, ERR_AWAY, "the server is shutting down");
    e->retry_s = sv->nodes ? 1 : 5; /* another node is there already */
    return -1;
}

/* Room for one more where `awake` of `most` are live. One that falls asleep has a sandbox until its
 * files are saved, for milliseconds mostly. The new one does not wait for that, so there may be up
 * to FALLING_MAX sandboxes more than the limit. */
static int make_room(struct service *sv, const struct pool_entry *env, const char *tenant,
                     uint64_t awake, uint64_t most, struct err *e)
{
    struct crowd c;
    int64_t now = time_mono_us();

    if (awake < most)
        return 0;
    c = look_at(sv, env, tenant);
    if (awake - c.falling < most)
        return 0;
    if (c.idle && c.falling < FALLING_MAX) {
        loaded_sleep(c.idle, SLEEP_CROWDED);
        return 0;
    }
    if (!tenant && lendings_make_room(sv, env)) /* which takes its home a moment */
        c.next_us = now;
    return forbid(sv, e, c.next_us <= now ? 1 : (int)((c.next_us - now) / 1000000) + 1,
                  tenant ? "as many sessions are live as one tenant may have"
                         : "as many sessions are live as the pool may have");
}

int loaded_room(struct service *sv, const struct pool_entry *env, const char *tenant, struct err *e)
{
    struct tenant *t = table_get(&sv->tenants, tenant);

    if (sv->draining || sv->closing)
        return closing_down(sv, e);
    if (make_room(sv, env, tenant, t ? t->awake : 0, sv->config.tenant_sessions, e) < 0)
        return -1;
    if (pool_entry_live(env) >= env->config.max_sessions && place_is_elsewhere(sv, env))
        return 0;
    return make_room(sv, env, NULL, pool_entry_live(env), env->config.max_sessions, e);
}

int loaded_make_room(struct loaded *l, struct err *e)
{
    return make_room(l->sv, l->env, NULL, pool_entry_live(l->env) - 1, l->env->config.max_sessions,
                     e);
}

/* --- the clock --- */

static void set_clock(struct loaded *l)
{
    int64_t left_us = loaded_sleeps_us(l) - time_mono_us();

    timer_set(l->clock, left_us > 0 ? (uint64_t)(left_us + 999) / 1000 : 0);
}

bool loaded_is_old(const struct loaded *l)
{
    return time_mono_us() >= l->woke_us + l->row.lifetime_ms * 1000;
}

/* While something runs nothing is due: loaded_rests() sets the clock anew. */
void loaded_on_clock(void *arg)
{
    struct loaded *l = arg;

    if (!loaded_is_awake(l) || l->sleeping || l->jobs)
        return;
    if (time_mono_us() < loaded_sleeps_us(l))
        return set_clock(l);
    loaded_sleep(l, loaded_is_old(l) ? SLEEP_LIFETIME : SLEEP_IDLE);
}

void loaded_used(struct loaded *l)
{
    int64_t now = time_now_ms();

    l->row.used_ms = now;
    l->row.expires_ms = now + (int64_t)l->sv->config.retention_ms;
    l->used_us = time_mono_us();
    if (loaded_is_awake(l) && !l->jobs && !l->sleeping)
        set_clock(l);
}

void loaded_rests(struct loaded *l)
{
    loaded_used(l);
    if (l->state == SESSION_RUNNING && !l->jobs)
        loaded_go(l, SESSION_IDLE);
    if (!loaded_is_awake(l) || l->sleeping)
        return;
    if (l->once && !l->jobs)
        loaded_sleep(l, SLEEP_ONCE);
    else if (loaded_is_old(l) && !l->jobs)
        loaded_sleep(l, SLEEP_LIFETIME);
}

/* --- the sandbox --- */

static void on_lost(void *arg, const char *why)
{
    struct loaded *l = arg;

    log_info("session %s: its sandbox has ended: %s", l->row.id, why);
    l->gone = true;
    if (l->state == SESSION_IDLE || l->state == SESSION_RUNNING)
        loaded_sleep(l, SLEEP_LOST);
}

/* Its node wants the sandbox back. As one that has lived its lifetime it keeps what it has, and the
 * next execution opens another. */
static void on_recall(void *arg)
{
    struct loaded *l = arg;

    l->woke_us = time_mono_us() - l->row.lifetime_ms * 1000;
    if (loaded_is_awake(l) && !l->jobs && !l->sleeping)
        loaded_sleep(l, SLEEP_LIFETIME);
}

static void on_egress(void *arg, const char *line)
{
    log_info("session %s: egress: %s", (const char *)arg, line);
}

static void take_sandbox(struct loaded *l, struct session *s)
{
    int listener;

    l->session = s;
    l->gone = false;
    session_on_lost(s, on_lost, l);
    session_on_recall(s, on_recall, l);
    session_works_for(s, l->whose);
    listener = l->env->policy ? session_take_listener(s) : -1;
    if (listener >= 0)
        l->egress = egress_open(l->sv->loop, l->env->policy, listener, on_egress, l->row.id);
}

static void close_sandbox(struct loaded *l)
{
    struct session *s = take_ptr(&l->session);
    struct egress *g = take_ptr(&l->egress);

    timer_clear(l->clock);
    l->gone = true; /* its end tells outcomes, and nothing may be started from there */
    if (g)
        egress_close(g);
    if (s)
        session_close(s);
    place_leave(l);
    changes_done(&l->changes);
}

/* --- waking up --- */

static void is_up(struct loaded *l)
{
    l->is_new = false;
    l->woke_us = l->used_us = time_mono_us();
    loaded_go(l, l->jobs ? SESSION_RUNNING : SESSION_IDLE);
    set_clock(l);
    loaded_answer_if_there(l);
    job_pump(l);
    if (l->once && !l->jobs) /* its client has left */
        loaded_sleep(l, SLEEP_ONCE);
}

/* One that was asleep stays so; one that was never there is deleted. */
void loaded_fail_start(struct loaded *l, const struct err *why)
{
    struct err e = *why;

    loaded_hold(l);
    close_sandbox(l);
    if (l->kept && !l->is_new)
        loaded_go(l, SESSION_ASLEEP);
    loaded_answer(l, &e);
    jobs_fail(l, &e);
    if (l->state != SESSION_ASLEEP)
        loaded_end(l, NULL, NULL);
    loaded_drop(l);
}

static void refuse_start(struct loaded *l, struct err *e, const char *why)
{
    log_warn("session %s: %s", l->row.id, why);
    forbid(l->sv, e, 1, why);
}

static void on_restored(void *arg, const struct err *failed)
{
    struct loaded *l = arg;
    struct err e = {0};

    if (failed)
        e = *failed;
    else if (l->gone)
        refuse_start(l, &e, "the sandbox ended while the files were put back");
    if (l->state == SESSION_ENDED)
        ;
    else if (e.kind)
        loaded_fail_start(l, &e);
    else
        is_up(l);
    loaded_drop(l);
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    struct loaded *l = arg;
    struct err e = {0};

    l->sv->pending--;
    /* Nothing has run, and what has died on the way (a zygote, say) is started again by itself: to
     * try again is all that a client can do, and it helps. */
    if (failed && failed->kind == ERR_HOST)
        refuse_start(l, &e, failed->text);
    else if (failed)
        e = *failed;
    else if (l->sv->closing)
        closing_down(l->sv, &e);
    if (s && (e.kind || l->state == SESSION_ENDED))
        session_close(s);
    if (l->state == SESSION_ENDED) {
        loaded_drop(l);
    } else if (e.kind) {
        loaded_fail_start(l, &e);
        loaded_drop(l);
    } else if (l->is_new) {
        take_sandbox(l, s);
        is_up(l);
        loaded_drop(l);
    } else {
        take_sandbox(l, s);
        l->sv->counts.resumed++;
        space_restore(l, on_restored, l); /* which lets go of it */
    }
}

static void open_here(struct loaded *l)
{
    if (pool_parked(l->env->pool) > 0)
        l->sv->counts.pool_hits++;
    else
        l->sv->counts.pool_misses++;
    session_open(l->env->pool, on_open, l);
}

/* No other node had room after all. */
static void on_borrowed(void *arg, struct session *s, const struct err *failed)
{
    struct loaded *l = arg;
    struct err e;

    if (s || failed || l->state == SESSION_ENDED)
        on_open(l, s, failed);
    else if (place_is_full(l) && loaded_make_room(l, &e) < 0)
        on_open(l, NULL, &e);
    else
        open_here(l);
}

static void open_sandbox(struct loaded *l)
{
    l->sv->pending++;
    loaded_hold(l);
    if (place_is_full(l) && place_is_elsewhere(l->sv, l->env))
        place_borrow(l, on_borrowed);
    else
        open_here(l);
}

struct loaded *loaded_begin(struct service *sv, struct pool_entry *env, struct session_row *row)
{
    struct loaded *l = loaded_enter(sv, env, row, SESSION_STARTING);

    sv->counts.sessions_created++;
    loaded_used(l);
    open_sandbox(l);
    loaded_keep_new(l);
    return l;
}

struct loaded *loaded_begin_asleep(struct service *sv, struct pool_entry *env,
                                   struct session_row *row)
{
    struct loaded *l = loaded_enter(sv, env, row, SESSION_ASLEEP);

    l->kept = false;
    sv->counts.sessions[SESSION_ASLEEP]++;
    sv->counts.sessions_created++;
    loaded_used(l);
    loaded_keep(l, true);
    return l;
}

void loaded_wake(struct loaded *l)
{
    struct err e;

    if (loaded_room(l->sv, l->env, l->row.tenant, &e) < 0)
        return jobs_fail(l, &e);
    loaded_go(l, SESSION_STARTING);
    open_sandbox(l);
    loaded_keep(l, false);
}

/* --- falling asleep --- */

static void on_saved(void *arg, const struct err *failed)
{
    struct loaded *l = arg;
    /* Somebody came at the last moment. */
    bool spared =
        l->jobs && (l->why == SLEEP_IDLE || l->why == SLEEP_CROWDED || l->why == SLEEP_ONCE);

    l->sleeping = false;
    /* It was deleted; or it was waking when the server began to close, and did not come up. */
    if (l->state != SESSION_IDLE && l->state != SESSION_RUNNING) {
        loaded_drop(l);
        return;
    }
    if (failed)
        log_warn("session %s: not all of its files are saved: %s", l->row.id, failed->text);
    if (!l->gone && !l->sv->closing && (spared || failed)) {
        timer_set(l->clock, AGAIN_MS);
        if (failed && l->why == SLEEP_LIFETIME) /* they would only ask for the same again */
            jobs_fail(l, failed);
        job_pump(l);
        loaded_drop(l);
        return;
    }
    close_sandbox(l);
    if (l->row.executions > 0)
        l->row.lost = failed || l->why == SLEEP_LOST ? LOST_CHANGES
                      : l->once                      ? LOST_HOME
                                                     : LOST_VARIABLES;
    loaded_go(l, SESSION_ASLEEP);
    if (l->once) /* it has kept its files already, and nothing else */
        loaded_keep_soon(l);
    else
        loaded_keep(l, false);
    job_pump(l);
    loaded_drop(l);
}

/* A sandbox that is gone has no home to save, and one made for one execution needs none. */
static void on_workspace_saved(void *arg, const struct err *failed)
{
    struct loaded *l = arg;

    if (failed || l->gone || l->once || !l->session || l->state == SESSION_ENDED)
        on_saved(l, failed);
    else
        home_save(l, on_saved, l);
}

void loaded_sleep(struct loaded *l, enum sleep_why why)
{
    if (l->sleeping && why == SLEEP_LOST)
        l->why = why;
    if (l->sleeping || !l->session)
        return;
    l->sleeping = true;
    l->why = why;
    loaded_hold(l);
    space_sync(l, on_workspace_saved, l);
}

/* --- the end --- */

struct deletion {
    struct task task;
    struct loaded *loaded; /* held */
    bool buried;           /* in the store, and some of its files are there */
    done_fn *done;
    void *arg;
};

static int delete_rows(struct task *t, struct db *db, struct err *e)
{
    struct deletion *n = OWNER(t, struct deletion, task);
    const struct session_row *row = &n->loaded->row;
    const char *tenant = n->buried ? "" : row->tenant;

    for (int rows = ROWS_AT_ONCE; rows == ROWS_AT_ONCE && !bite_is_over(t);) {
        rows = db_space_drop_some(db, row->id, ROWS_AT_ONCE, e);
        if (rows < 0)
            return -1;
        if (rows < ROWS_AT_ONCE)
            return db_session_delete(db, tenant, row->id, e) < 0 ? -1 : 0;
    }
    n->buried = true;
    task_write_on(t);
    return db_session_bury(db, tenant, row->id, e) < 0 ? -1 : 0;
}

static void on_deleted(struct task *t, const struct err *failed)
{
    struct deletion *n = OWNER(t, struct deletion, task);

    if (failed) {
        log_warn("session %s is not deleted: %s", n->loaded->row.id, failed->text);
    } else {
        store_log_strike(t->sv->store, n->loaded->row.id);
        feed_session(n->loaded, true);
    }
    if (n->done)
        n->done(n->arg, failed);
    loaded_drop(n->loaded);
    free(n);
}

void loaded_end(struct loaded *l, done_fn *done, void *arg)
{
    static const struct step steps[] = {{.loop = task_go_on}, {.store = delete_rows}, {0}};
    struct deletion *n = mem_zalloc(sizeof(*n));
    struct err e;

    *n = (struct deletion){.loaded = l, .done = done, .arg = arg};
    loaded_hold(l);
    loaded_go(l, SESSION_ENDED);
    close_sandbox(l);
    err_set(&e, ERR_MISSING, "the session has been deleted");
    loaded_answer(l, &e);
    jobs_fail(l, &e);
    late_session_forget(l->sv, l->row.id);
    task_start(&n->task, l->sv, NULL, steps, on_deleted);
}
