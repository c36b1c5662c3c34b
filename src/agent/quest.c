/*
 * A quest between two steps. What step() wants done waits until the record that says so
 * is in the store: after a crash nothing has been done that is not known, and what is
 * known as begun is not begun again.
 */
#include "agent/quest.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdlib.h>
#include <time.h>

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

json_t *quest_inner(const struct quest *q)
{
    return json_object_get(q->record, "inner");
}

json_t *record_shown(const json_t *record)
{
    json_t *shown = json_copy((json_t *)record);

    json_object_del(shown, "inner");
    return shown;
}

/* --- life --- */

static void on_timer(void *arg);

struct quest *quest_new(struct agent *a, const struct caller *c, json_t *record, json_t *events)
{
    struct quest *q = mem_zalloc(sizeof(*q));

    *q = (struct quest){.agent = a, .refs = 1, .caller = *c, .record = record, .events = events};
    q->door = mem_strdup(c->door ? c->door : "");
    q->caller.door = q->door;
    q->todo = json_array();
    q->told = json_array_size(events);
    (void)!str_to_cstr(json_str(record, "id"), q->id, sizeof(q->id));
    q->timer = timer_new(a->config.loop, on_timer, q);
    for (size_t i = 0; i < COUNT(q->console); i++)
        buf_init(&q->console[i], MiB);
    q->next = a->quests;
    a->quests = q;
    a->count++;
    return q;
}

static void quest_free(struct quest *q)
{
    given_files_done(q->files, q->file_count);
    quest_drop_figures(q);
    for (size_t i = 0; i < COUNT(q->console); i++)
        buf_done(&q->console[i]);
    json_decref(q->record);
    json_decref(q->events);
    json_decref(q->todo);
    json_decref(q->doing);
    json_decref(q->messages);
    json_decref(q->later);
    json_decref(q->seen);
    json_decref(q->args);
    free(q->reason);
    free(q->door);
    free(q);
}

struct quest *quest_hold(struct quest *q)
{
    q->refs++;
    return q;
}

void quest_drop(struct quest *q)
{
    if (--q->refs == 0)
        quest_free(q);
}

bool quest_back(struct quest *q)
{
    bool closed = q->closed;

    quest_drop(q);
    return closed;
}

void quest_close(struct quest *q)
{
    struct quest **at = &q->agent->quests;

    if (q->closed)
        return;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    q->agent->count--;
    q->closed = true;
    quest_stop_asking(q);
    quest_unwait(q);
    if (q->job)
        job_leave(take_ptr(&q->job));
    timer_free(take_ptr(&q->kill));
    timer_free(take_ptr(&q->timer));
    quest_drop(q);
}

void quest_rest(struct quest *q)
{
    struct err e;

    agent_is_over(&e);
    quest_stop_asking(q);
    quest_unwait(q);
    watches_end(q, &e);
}

struct quest *quest_find(struct agent *a, const char *tenant, struct str id)
{
    for (struct quest *q = a->quests; q; q = q->next)
        if (str_is(id, q->id) && strcmp(q->caller.tenant, tenant) == 0)
            return q;
    return NULL;
}

/* --- events --- */

/* Takes it. False: there are as many as may be. */
static bool append(struct quest *q, json_t *event)
{
    const json_t *last = json_array_get(q->events, json_array_size(q->events) - 1);
    bool must = json_is(event, "type", "end") || json_is(event, "type", "error") ||
                json_is(event, "type", "question");

    if (json_array_size(q->events) >= EVENTS_MAX && !must) {
        json_decref(event);
        return false;
    }
    json_put_num(event, "seq", json_num(last, "seq") + 1);
    json_put_num(event, "at_ms", now_ms());
    json_array_append_new(q->events, event);
    return true;
}

static void tell_up_to(struct quest *q, size_t count)
{
    while (q->told < count)
        watches_tell(q, json_array_get(q->events, q->told++));
}

/* What comes after something that is not kept yet waits with it. */
void quest_tell(struct quest *q, json_t *event)
{
    bool at_once = q->told == json_array_size(q->events);

    if (append(q, event) && at_once)
        tell_up_to(q, json_array_size(q->events));
}

/* --- the store --- */

struct saving {
    struct quest *q; /* held */
    struct loop_row row;
};

static int write_row(struct db *db, void *arg, struct err *e)
{
    struct saving *s = arg;

    return db_loop_put(db, &s->row, e);
}

static void perform(struct quest *q, const json_t *action);

static void do_all(struct quest *q)
{
    json_t *doing = take_ptr(&q->doing);
    const json_t *action;
    size_t i;

    json_array_foreach(doing, i, action)
    {
        if (!q->closed)
            perform(q, action);
    }
    json_decref(doing);
}

/* What cannot be kept is not done: it ends, and says why. */
static void on_unsaved(struct quest *q, const struct err *failed)
{
    log_error("loop %s is not in the store: %s", q->id, failed->text);
    if (q->broken || step_is_over(q->record)) {
        do_all(q);
        return;
    }
    q->broken = true;
    json_array_clear(q->doing);
    json_decref(take_ptr(&q->doing));
    quest_event(q, json_pack("{s:s, s:s, s:s}", "type", "failed", "code", "InternalError",
                             "message", "the server could not keep what it has done"));
}

static void on_saved(void *arg, const struct err *failed)
{
    struct saving *s = arg;
    struct quest *q = s->q;

    loop_row_done(&s->row);
    free(s);
    if (q->closed) {
        quest_drop(q);
        return;
    }
    tell_up_to(q, q->keeping);
    if (failed)
        on_unsaved(q, failed);
    else
        do_all(q);
    if (!q->closed && !q->doing && (q->dirty || json_array_size(q->todo) > 0))
        quest_save(q);
    quest_drop(q);
}

void quest_save(struct quest *q)
{
    struct saving *s;
    struct str owner = json_str(q->record, "owner");

    q->dirty = true;
    if (q->doing)
        return;
    s = mem_zalloc(sizeof(*s));
    s->q = quest_hold(q);
    q->doing = q->todo;
    q->todo = json_array();
    q->dirty = false;
    q->keeping = json_array_size(q->events);
    memcpy(s->row.id, q->id, sizeof(q->id));
    s->row.tenant = mem_strdup(q->caller.tenant);
    s->row.owner = mem_strndup(owner);
    s->row.status = mem_strndup(json_str(q->record, "status"));
    s->row.created_ms = json_num(q->record, "created_ms");
    s->row.ended_ms = json_num(q->record, "ended_ms");
    s->row.record = record_dump(q->record, false, NULL);
    s->row.events = record_dump(q->events, false, NULL);
    store_run(q->agent->config.store, write_row, on_saved, s);
}

/* --- what happens, and what is to be done --- */

void quest_event(struct quest *q, json_t *event)
{
    json_t *actions = step(q->record, event, now_ms()), *a;
    size_t i;

    json_array_foreach(actions, i, a)
    {
        if (json_is(a, "do", "tell"))
            append(q, json_incref(json_object_get(a, "event")));
        else
            json_array_append(q->todo, a);
    }
    json_decref(actions);
    json_decref(event);
    quest_save(q);
}

static void end(struct quest *q)
{
    watches_end(q, NULL);
    quest_close(q);
}

static const struct {
    const char *what;
    void (*fn)(struct quest *q);
} performances[] = {
    {"begin",     quest_begin      },
    {"run",       quest_run        },
    {"recover",   quest_recover    },
    {"read",      quest_read       },
    {"gate",      quest_gate       },
    {"wait",      quest_await      },
    {"interrupt", quest_interrupt  },
    {"drop",      quest_stop_asking},
    {"end",       end              },
};

/* That code has not been begun, although it was to be, is known only now. */
static void put_off(struct quest *q, const json_t *action)
{
    if (json_is(action, "do", "run")) {
        json_put_on(quest_inner(q), "unbegun", true);
        quest_save(q);
    }
    quest_rest(q);
}

static void perform(struct quest *q, const json_t *action)
{
    int64_t after = json_num(action, "after_ms");

    if (q->agent->draining && !json_is(action, "do", "end")) {
        put_off(q, action);
        return;
    }
    if (json_is(action, "do", "ask")) {
        quest_ask(q, action);
        return;
    }
    if (after > 0) {
        json_t *now = json_copy((json_t *)action);
        json_object_del(now, "after_ms");
        quest_wait(q, (uint64_t)after, now);
        return;
    }
    for (size_t i = 0; i < COUNT(performances); i++)
        if (json_is(action, "do", performances[i].what)) {
            performances[i].fn(q);
            return;
        }
}

void quest_wait(struct quest *q, uint64_t ms, json_t *action)
{
    json_decref(q->later);
    q->later = action;
    timer_set(q->timer, ms);
}

static void on_timer(void *arg)
{
    struct quest *q = arg;
    json_t *action = take_ptr(&q->later);

    if (json_is(action, "do", "late"))
        quest_event(q, json_pack("{s:s}", "type", "late"));
    else if (action)
        perform(q, action);
    json_decref(action);
}
