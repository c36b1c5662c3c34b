/*
 * Watchers hear the events of a run from the first on. A live run tells them itself; the
 * events of a run that is over come from the store.
 */
#include "agent/agent_run.h"

#include <stdlib.h>

struct agent_watch {
    struct agent *agent;   /* held */
    struct agent_run *run; /* borrowed; NULL: over, or still looked up */
    struct agent_watch *next;
    struct agent_watcher watcher;
    void *arg;
    uint64_t after;
    unsigned refs; /* the watcher's, and one for each pending call */
    bool freed;
};

static void watch_drop(struct agent_watch *w)
{
    if (--w->refs > 0)
        return;
    agent_drop(w->agent);
    free(w);
}

/* The watcher may free the watch from inside. */
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

/* Takes shown. */
static void tell_end(struct agent_watch *w, json_t *shown, const struct err *failed)
{
    if (!w->freed)
        w->watcher.on_end(w->arg, shown, failed);
    json_decref(shown);
}

/* --- live runs --- */

/* Watches may join and leave from inside: those that join see all events by themselves. */
void watches_tell(struct agent_run *run, const json_t *event)
{
    struct agent_watch *all[WATCHES_MAX];
    size_t count = 0;

    for (struct agent_watch *w = run->watches; w && count < WATCHES_MAX; w = w->next) {
        w->refs++;
        all[count++] = w;
    }
    for (size_t i = 0; i < count; i++) {
        tell_event(all[i], event);
        watch_drop(all[i]);
    }
}

void watches_end(struct agent_run *run, const struct err *failed)
{
    struct agent_watch *w;

    while ((w = run->watches)) {
        run->watches = w->next;
        w->run = NULL;
        w->refs++;
        tell_end(w, failed ? NULL : record_json(&run->record, false), failed);
        watch_drop(w);
    }
}

static void on_found(void *arg, struct agent_run *run, const struct loop_row *row,
                     const struct err *failed)
{
    struct agent_watch *w = arg;
    size_t count = 0;
    struct err e;

    for (const struct agent_watch *other = run ? run->watches : NULL; other; other = other->next)
        count++;
    if (run && !w->freed && count >= WATCHES_MAX) {
        err_set(&e, ERR_BUSY, "it is watched by as many as may watch it");
        tell_end(w, NULL, &e);
    } else if (run && !w->freed) {
        w->run = run;
        w->next = run->watches;
        run->watches = w;
        tell_all(w, run->events, run->told);
    } else if (failed) {
        tell_end(w, NULL, failed);
    } else if (!run) {
        json_t *events = json_loads(row->events, 0, NULL);
        json_t *record = json_loads(row->record, 0, NULL);
        tell_all(w, events, json_array_size(events));
        json_object_del(record, "inner");
        tell_end(w, record, NULL);
        json_decref(events);
    }
    watch_drop(w);
}

struct agent_watch *agent_watch(struct agent *a, const struct caller *c, struct str id,
                                uint64_t after, const struct agent_watcher *w, void *arg)
{
    struct agent_watch *watch = mem_zalloc(sizeof(*watch));

    *watch = (struct agent_watch){
        .agent = agent_hold(a), .watcher = *w, .arg = arg, .after = after, .refs = 2};
    run_look_up(a, c, id, on_found, watch);
    return watch;
}

void agent_watch_free(struct agent_watch *w)
{
    if (!w)
        return;
    w->freed = true;
    if (w->run) {
        struct agent_watch **at = &w->run->watches;
        while (*at != w)
            at = &(*at)->next;
        *at = w->next;
        w->run = NULL;
    }
    watch_drop(w);
}
