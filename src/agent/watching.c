/*
 * Watchers: what has happened so far, then what happens. One that goes on is watched where
 * it is; of one that has ended the store has everything.
 */
#include "agent/quest.h"
#include "loop/loop.h"

#include <stdlib.h>

struct agent_watch {
    struct agent *agent; /* held */
    struct quest *q;     /* borrowed, or NULL: it has ended, or is looked for */
    struct agent_watch *next;
    struct agent_watcher watcher;
    void *arg;
    uint64_t after;
    char tenant[64], id[ID_MAX];
    struct loop_row row; /* owned: from the store */
    bool found;
    unsigned refs; /* the watcher's, and one for each thing under way */
    bool freed;
    struct err failed;
};

static void watch_drop(struct agent_watch *w)
{
    if (--w->refs > 0)
        return;
    loop_row_done(&w->row);
    agent_drop(w->agent);
    free(w);
}

/* A watcher may go while it is told. */
static void tell_event(struct agent_watch *w, const json_t *event)
{
    uint64_t seq = (uint64_t)json_num(event, "seq");

    if (w->freed || seq <= w->after)
        return;
    w->after = seq;
    w->watcher.on_event(w->arg, event);
}

static void tell_all(struct agent_watch *w, json_t *events, size_t count)
{
    json_incref(events);
    for (size_t i = 0; i < count; i++)
        tell_event(w, json_array_get(events, i));
    json_decref(events);
}

static void tell_end(struct agent_watch *w, const json_t *record, const struct err *failed)
{
    json_t *shown = record ? record_shown(record) : NULL;

    if (!w->freed)
        w->watcher.on_end(w->arg, shown, failed);
    json_decref(shown);
}

/* --- of those that go on --- */

/* Whoever comes meanwhile sees all from its start; whoever goes is held until it is through. */
void watches_tell(struct quest *q, const json_t *event)
{
    struct agent_watch *all[WATCHES_MAX];
    size_t count = 0;

    for (struct agent_watch *w = q->watches; w && count < WATCHES_MAX; w = w->next) {
        w->refs++;
        all[count++] = w;
    }
    for (size_t i = 0; i < count; i++) {
        tell_event(all[i], event);
        watch_drop(all[i]);
    }
}

void watches_end(struct quest *q, const struct err *failed)
{
    struct agent_watch *w;

    while ((w = q->watches)) {
        q->watches = w->next;
        w->q = NULL;
        w->refs++;
        tell_end(w, failed ? NULL : q->record, failed);
        watch_drop(w);
    }
}

static size_t watch_count(const struct quest *q)
{
    size_t n = 0;

    for (const struct agent_watch *w = q->watches; w; w = w->next)
        n++;
    return n;
}

/* With the reference of what was under way. */
static void join(struct agent_watch *w, struct quest *q)
{
    if (watch_count(q) >= WATCHES_MAX) {
        err_set(&w->failed, ERR_BUSY, "it is watched by as many as may watch it");
        tell_end(w, NULL, &w->failed);
    } else {
        w->q = q;
        w->next = q->watches;
        q->watches = w;
        tell_all(w, q->events, q->told);
    }
    watch_drop(w);
}

/* --- of those that have ended --- */

static int read_row(struct db *db, void *arg, struct err *e)
{
    struct agent_watch *w = arg;
    int rc = db_loop_get(db, w->tenant, w->id, &w->row, e);

    w->found = rc > 0;
    return rc < 0 ? -1 : 0;
}

static void on_row(void *arg, const struct err *failed)
{
    struct agent_watch *w = arg;
    struct quest *q = w->freed ? NULL : quest_find(w->agent, w->tenant, str_of(w->id));
    json_t *events, *record;
    struct err e;

    if (q) { /* it was taken up after a restart, meanwhile */
        join(w, q);
        return;
    }
    events = w->found && !failed ? json_loads(w->row.events, 0, NULL) : NULL;
    record = w->found && !failed ? json_loads(w->row.record, 0, NULL) : NULL;
    err_set(&e, ERR_MISSING, "there is no such execution");
    if (record)
        tell_all(w, events, json_array_size(events));
    tell_end(w, record, failed ? failed : record ? NULL : &e);
    json_decref(events);
    json_decref(record);
    watch_drop(w);
}

static void on_begin(void *arg)
{
    struct agent_watch *w = arg;
    struct quest *q;

    if (w->agent->closed)
        agent_is_over(&w->failed);
    if (w->freed || w->failed.kind) {
        tell_end(w, NULL, &w->failed);
        watch_drop(w);
        return;
    }
    q = quest_find(w->agent, w->tenant, str_of(w->id));
    if (q)
        join(w, q);
    else
        store_run(w->agent->config.store, read_row, on_row, w); /* with our reference */
}

struct agent_watch *agent_watch(struct agent *a, const struct caller *c, struct str id,
                                uint64_t after, const struct agent_watcher *w, void *arg)
{
    struct agent_watch *watch = mem_zalloc(sizeof(*watch));

    *watch = (struct agent_watch){
        .agent = agent_hold(a), .watcher = *w, .arg = arg, .after = after, .refs = 2};
    memcpy(watch->tenant, c->tenant, sizeof(watch->tenant));
    if (!id_is(id, "toolu_") || !str_to_cstr(id, watch->id, sizeof(watch->id)))
        err_set(&watch->failed, ERR_MISSING, "there is no such execution");
    loop_later(a->config.loop, on_begin, watch);
    return watch;
}

void agent_watch_free(struct agent_watch *w)
{
    if (!w)
        return;
    w->freed = true;
    if (w->q) {
        struct agent_watch **at = &w->q->watches;
        while (*at != w)
            at = &(*at)->next;
        *at = w->next;
        w->q = NULL;
    }
    watch_drop(w);
}
