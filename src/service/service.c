/* The service as a whole: its beginning and end, and what it does by the clock. */
#include "service/service_int.h"

#include <stdlib.h>

#define SWEEP_MS    30000
#define SWEEP_SHORT 1000 /* where workspaces are not kept for that long */
#define SWEEP_AGAIN 200  /* there was more than one sweep takes */
#define SWEEP_FIRST 1000 /* after the start */
#define LOOK_MS     2000 /* at the keys */
#define SWEEP_ROWS  500  /* of files and of records, at a time */
#define SWEEP_ENDS  20   /* sessions at a time: each may have many files */
#define SWEEP_LOOK  200  /* the same with those of other nodes among them */
#define SWEEP_BLOBS 100  /* found in one go: then there are more of them */

/* --- by the clock --- */

struct sweeping {
    struct task task;
    struct session_row *rows; /* owned */
    size_t count;
    int expired; /* approvals */
    bool again;  /* this was not all */
};

static int sweep_approvals(struct sweeping *w, struct db *db, int64_t now, uint64_t record_ms,
                           struct err *e)
{
    w->expired = db_approval_expire(db, now, e);
    if (w->expired < 0 || !record_ms)
        return w->expired < 0 ? -1 : 0;
    return db_approval_forget(db, now - (int64_t)record_ms, SWEEP_ROWS, e);
}

static int sweep(struct task *t, struct db *db, struct err *e)
{
    struct sweeping *w = OWNER(t, struct sweeping, task);
    const struct service_config *c = &t->sv->config;
    int64_t now = time_sure_ms();
    int files, items, records = 0, blobs;

    if (db_session_expired(db, now, t->sv->nodes ? SWEEP_LOOK : SWEEP_ENDS, &w->rows, &w->count,
                           e) < 0)
        return -1;
    if (!nodes_sweeps(t->sv)) /* the sessions are those of our own tenants */
        return 0;
    files = db_file_expire(db, now, now - FILE_KNOWN_MS, SWEEP_ROWS, e);
    items = files < 0 ? -1 : db_item_expire(db, now, SWEEP_ROWS, e);
    if (items >= 0 && c->record_ms)
        records = db_exec_forget(db, now - (int64_t)c->record_ms, SWEEP_ROWS, e);
    if (items < 0 || records < 0 || sweep_approvals(w, db, now, c->record_ms, e) < 0)
        return -1;
    blobs = blob_sweep(t->sv->store, db, e);
    w->again =
        files == SWEEP_ROWS || items == SWEEP_ROWS || records == SWEEP_ROWS || blobs >= SWEEP_BLOBS;
    return blobs < 0 ? -1 : 0;
}

/* One that is in memory is in use, and what its row says will be written anew. */
static bool forget(struct service *sv, struct session_row *row)
{
    struct loaded *l;

    if (table_get(&sv->sessions, row->id) || (*row->tenant && !nodes_is_home(sv, row->tenant)))
        return false;
    /* Its own pool may be gone, and then any will do for this. */
    l = loaded_enter(sv, sv->pools, row, SESSION_ASLEEP);
    log_info("session %s: its time is over", l->row.id);
    loaded_end(l, NULL, NULL);
    loaded_drop(l);
    return true;
}

static void sweep_again(struct service *sv)
{
    sv->swept_us = 0;
    timer_set(sv->sweep, SWEEP_AGAIN);
}

static void on_swept(struct task *t, const struct err *failed)
{
    struct sweeping *w = OWNER(t, struct sweeping, task);
    struct service *sv = t->sv;
    size_t gone = 0;

    sv->sweeping = false;
    if (failed)
        log_warn("cleaning up: %s", failed->text);
    else
        sv->counts.approvals[APPROVAL_EXPIRED] += (uint64_t)w->expired;
    sv->counts.sweeps += !failed;
    for (size_t i = 0; i < w->count; i++) {
        if (!failed && !sv->closing)
            gone += forget(sv, &w->rows[i]);
        session_row_done(&w->rows[i]);
    }
    if (!failed && !sv->closing && (w->again || gone == SWEEP_ENDS))
        sweep_again(sv);
    free(w->rows);
    free(w);
}

static void on_sweep(void *arg)
{
    static const struct step steps[] = {{.store = sweep}, {0}};
    struct service *sv = arg;
    struct sweeping *w;
    int64_t every_ms = sv->config.retention_ms < SWEEP_MS ? 0 : SWEEP_MS;

    timer_set(sv->sweep, SWEEP_SHORT);
    /* While the disk is low what is deleted goes at once. */
    if (time_mono_us() - sv->swept_us < every_ms * 1000 && !store_is_low(sv->store))
        return;
    if (sv->sweeping)
        return;
    sv->sweeping = true;
    sv->swept_us = time_mono_us();
    w = mem_zalloc(sizeof(*w));
    task_start(&w->task, sv, NULL, steps, on_swept);
}

static void on_look(void *arg)
{
    struct service *sv = arg;

    timer_set(sv->look, LOOK_MS);
    late_records_write(sv);
    space_save_late(sv);
    service_reload(sv);
}

/* --- the beginning --- */

struct starting {
    struct service *sv;
    struct key_row *keys;
    size_t key_count;
    uint64_t asleep;
    struct pool_row *pools;
    size_t pool_count;
};

/* A process before this one may have died in the middle of anything. Among nodes that is seen to
 * when a tenant moves in. */
static int take_over(struct db *db, void *arg, struct err *e)
{
    struct starting *s = arg;

    if (!store_has_nodes(s->sv->store) &&
        (service_put_in_order(db, NULL, e) < 0 || db_session_count(db, NULL, &s->asleep, e) < 0))
        return -1;
    if (db_pool_list(db, &s->pools, &s->pool_count, e) < 0)
        return -1;
    return db_key_list(db, &s->keys, &s->key_count, e) < 0 ? -1 : 0;
}

static int start(struct service *sv, struct engine *en, const struct service_config *config,
                 struct err *e)
{
    struct starting s = {.sv = sv};
    struct fetch_config fetch = {.max_bytes = config->fetch_bytes,
                                 .max_ms = config->fetch_ms,
                                 .allow_private = config->fetch_private,
                                 .allow = config->fetch_allow};

    if (store_call(sv->store, take_over, &s, e) < 0)
        return -1;
    keys_take(sv, s.keys, s.key_count);
    sv->counts.sessions[SESSION_ASLEEP] = s.asleep;
    sv->fetcher = fetcher_new(sv->loop, &fetch, e);
    sv->engine = en;
    if (!sv->fetcher || pool_entries_start(sv, config, e) < 0)
        return -1;
    pools_restore(sv, s.pools, s.pool_count);
    if (nodes_start(sv, config->lease_ms, e) < 0)
        return -1;
    sv->sweep = timer_new(sv->loop, on_sweep, sv);
    sv->look = timer_new(sv->loop, on_look, sv);
    sv->fresh_due = timer_new(sv->loop, on_fresh_due, sv);
    timer_set(sv->sweep, SWEEP_FIRST);
    timer_set(sv->look, LOOK_MS);
    return 0;
}

struct service *service_new(struct loop *l, struct engine *en, struct store *st,
                            const struct service_config *config, struct err *e)
{
    struct service *sv = mem_zalloc(sizeof(*sv));

    *sv = (struct service){.loop = l, .store = st, .config = *config};
    sv->config.pools = sv->config.environments = NULL;
    sv->reads_end = &sv->reads_waiting;
    sv->bites_end = &sv->bites_waiting;
    sv->throttled_end = &sv->throttled;
    sv->relief = timer_new(l, on_relief, sv);
    sv->bites_due = timer_new(l, bites_look, sv);
    sv->config.fetch_allow = NULL;
    json_object_seed(0); /* before there is more than one thread that makes objects */
    if (start(sv, en, config, e) == 0)
        return sv;
    service_free(sv);
    return NULL;
}

bool service_is_ready(struct service *sv, const char **ret_why)
{
    *ret_why = NULL;
    if (sv->draining || sv->closing)
        *ret_why = "the server is shutting down";
    else if (store_is_full(sv->store, &sv->full))
        *ret_why = sv->full.text;
    return !*ret_why && pool_is_up(sv->pools->pool, ret_why);
}

struct service_pools service_look_at_pools(const struct service *sv)
{
    struct service_pools found = {0};

    for (const struct pool_entry *env = sv->pools; env; env = env->next) {
        const char *why;
        if (env->gone) /* and its pool may have been stopped */
            continue;
        found.all++;
        found.up += pool_is_up(env->pool, &why);
        if (!pool_is_refused(env->pool))
            continue;
        if (!found.refused++) {
            found.pool = env->config.name;
            found.why = why;
        }
    }
    return found;
}

/* --- the end --- */

static void tell_empty(void *arg)
{
    struct service *sv = arg;
    loop_fn *fn = sv->on_empty;

    sv->pending--;
    sv->on_empty = NULL;
    if (fn)
        fn(sv->on_empty_arg);
}

void service_check_empty(struct service *sv)
{
    if (!sv->draining || sv->foreground > 0 || sv->lendings || !sv->on_empty)
        return;
    sv->pending++;
    loop_later(sv->loop, tell_empty, sv);
}

void service_drain(struct service *sv, loop_fn *on_empty, void *arg)
{
    sv->draining = true;
    sv->on_empty = on_empty;
    sv->on_empty_arg = arg;
    lendings_recall(sv);
    service_check_empty(sv);
}

static void close_all(struct service *sv)
{
    AUTO_FREE void **all = table_all(&sv->sessions);
    size_t n = sv->sessions.n;

    for (size_t i = 0; i < n; i++)
        loaded_hold(all[i]);
    for (size_t i = 0; i < n; i++) {
        loaded_sleep(all[i], SLEEP_CLOSING);
        loaded_drop(all[i]);
    }
}

void service_end_all(struct service *sv)
{
    assert(sv->draining);
    sv->closing = true;
    close_all(sv);
    lendings_close(sv);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* Turns the loop until everything that is under way has been answered. */
static void settle(struct service *sv)
{
    struct timer *tick = timer_new(sv->loop, stop, sv->loop);

    while (sv->pending || sv->job_count) {
        timer_set(tick, 1);
        loop_run(sv->loop);
    }
    timer_free(tick);
}

void service_free(struct service *sv)
{
    if (!sv)
        return;
    sv->draining = sv->closing = true;
    fetcher_free(take_ptr(&sv->fetcher));
    timer_free(sv->sweep);
    timer_free(sv->look);
    timer_free(sv->fresh_due);
    close_all(sv);
    lendings_close(sv);
    approvals_close(sv);
    settle(sv);
    late_records_write(sv);
    settle(sv);
    late_records_free(sv);
    nodes_free(sv);
    assert(sv->sessions.n == 0 && sv->jobs.n == 0);
    timer_free(sv->relief);
    timer_free(sv->bites_due);
    pool_entries_free(sv);
    keys_free(sv->keys, sv->key_count);
    table_done(&sv->sessions);
    table_done(&sv->jobs);
    table_done(&sv->tenants);
    free(sv);
}
