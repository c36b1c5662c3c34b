/*
 * Limits how much output of an execution is passed on. The beginning is passed on as it comes,
 * the end is kept in rings and passed on last, and a line between the two says what is missing.
 * Displays count against the same limit.
 */
#include "engine/session_int.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX 10000 /* told one by one; text past that comes in one piece at the end */
#define RING_SMALL (16 * KiB)
#define ERRORS_MAX 64 /* do not count as output: the error that ends a cell is always told */

/* --- telling --- */

/* A callback may do anything, closing this session included. What lies below it on the stack must
 * still be there when it returns, so while one runs session_close() leaves the rest to the loop. */
void exec_tell(struct exec *x, const struct event *ev)
{
    struct session *s = x->session;

    if (x->over)
        return;
    x->events++;
    s->telling++;
    x->cb.on_event(x->arg, ev);
    s->telling--;
}

void exec_tell_text(struct exec *x, enum event_kind kind, struct str text, bool late)
{
    struct event ev = {.kind = kind, .text = text, .late = late};

    if (text.n > 0)
        exec_tell(x, &ev);
}

static void tell_output(struct exec *x, enum event_kind kind, struct str text)
{
    if (!x->over)
        x->told += text.n;
    exec_tell_text(x, kind, text, false);
}

void exec_tell_outcome(struct exec *x)
{
    struct session *s = x->session;

    if (x->over)
        return;
    x->over = true;
    x->outcome.output_dropped = x->outcome.output_bytes - x->told;
    s->telling++;
    x->cb.on_outcome(x->arg, &x->outcome);
    s->telling--;
}

static void tail_put(struct tail *t, size_t cap, struct str s)
{
    assert(cap > 0);
    if (!t->p) {
        t->cap = cap;
        t->p = mem_zalloc(cap);
    }
    t->cut |= t->n + s.n > t->cap;
    if (s.n > t->cap)
        s = (struct str){s.p + s.n - t->cap, t->cap};
    size_t first = t->cap - t->at < s.n ? t->cap - t->at : s.n;
    memcpy(t->p + t->at, s.p, first);
    memcpy(t->p, s.p + first, s.n - first);
    t->at = (t->at + s.n) % t->cap;
    t->n = t->n + s.n < t->cap ? t->n + s.n : t->cap;
}

/* Two rings of this size are counted. When the server holds much already, a small one does. */
static size_t ring_size(struct exec *x, size_t wanted)
{
    struct engine *en = pool_engine(x->session->pool);

    if (!engine_hold(en, 2 * wanted))
        return wanted < RING_SMALL ? wanted : RING_SMALL;
    x->held_bytes = 2 * wanted;
    return wanted;
}

/* Both streams' rings share what the beginning has left of the budget, and a quarter of it where
 * displays have left less: the longer ring gives up what is too much. */
static void keep_tail(struct exec *x, enum event_kind kind, struct str text)
{
    uint64_t budget = x->limits.output_bytes;
    uint64_t least = budget / 4 ? budget / 4 : 1;
    struct tail *t = x->tail;

    if (x->tail_max == 0)
        x->tail_max = ring_size(x, (size_t)(x->told + least < budget ? budget - x->told : least));
    tail_put(&t[kind == EVENT_STDERR], x->tail_max, text);
    if (t[0].n + t[1].n > x->tail_max) {
        struct tail *longer = t[0].n > t[1].n ? &t[0] : &t[1];
        longer->n -= t[0].n + t[1].n - x->tail_max;
        longer->cut = true;
    }
}

/* Where to cut text of which only n bytes are wanted: before a character, not within. */
static size_t cut_at(struct str text, size_t n)
{
    for (size_t back = 0; back <= 3 && back < n; back++)
        if (((unsigned char)text.p[n - back] & 0xc0) != 0x80)
            return n - back;
    return n; /* not UTF-8 */
}

/* Three quarters of the budget are the beginning, told as it comes; past that the end is kept in
 * rings and told last. Once over the budget the rest is read slowly: it costs time and says
 * nothing. */
void exec_output(struct exec *x, enum event_kind kind, struct str text)
{
    uint64_t budget = x->limits.output_bytes;
    uint64_t head = budget - budget / 4;
    bool past = x->tail_max > 0 || x->told >= head || x->events >= EVENTS_MAX;
    size_t now = past                       ? 0
                 : text.n <= head - x->told ? text.n
                                            : cut_at(text, (size_t)(head - x->told));

    x->outcome.output_bytes += text.n;
    tell_output(x, kind, (struct str){text.p, now});
    if (now == text.n)
        return;
    keep_tail(x, kind, (struct str){text.p + now, text.n - now});
    if (x->tail[0].cut || x->tail[1].cut) {
        x->outcome.limits_hit |= IN(LIMIT_OUTPUT);
        if (x->kind == EXEC_CELL)
            guest_throttle(x->session->guest, true);
        stream_throttle(x->out, true);
        stream_throttle(x->err, true);
    }
}

/* The ring's bytes in a row, into ret of t->n bytes. */
static void tail_flatten(const struct tail *t, char *ret)
{
    size_t from = (t->at + t->cap - t->n) % t->cap;
    size_t first = t->cap - from < t->n ? t->cap - from : t->n;

    memcpy(ret, t->p + from, first);
    memcpy(ret + first, t->p, t->n - first);
}

/* A ring that has given up its beginning may begin within a character. */
static void tail_trim(struct tail *t)
{
    for (int i = 0; i < 3 && t->cut && t->n > 0; i++) {
        unsigned char c = (unsigned char)t->p[(t->at + t->cap - t->n) % t->cap];
        if ((c & 0xc0) != 0x80)
            break;
        t->n--;
    }
}

/* What the rings hold, after a line that says how much is missing before it. */
void exec_tell_tails(struct exec *x)
{
    struct tail *t = x->tail;
    uint64_t missing;
    char note[128];

    if (x->tails_told)
        return;
    x->tails_told = true;
    tail_trim(&t[0]);
    tail_trim(&t[1]);
    missing = x->outcome.output_bytes - x->told - x->left_out - t[0].n - t[1].n;
    if (missing > 0) {
        snprintf(note, sizeof(note), "%llu bytes of output left out here",
                 (unsigned long long)missing);
        exec_tell_text(x, EVENT_STATUS, str_of(note), false);
    }
    for (int i = 0; i < 2; i++) {
        AUTO_FREE char *flat = t[i].n ? mem_zalloc(t[i].n) : NULL;
        if (!flat)
            continue;
        tail_flatten(&t[i], flat);
        tell_output(x, i ? EVENT_STDERR : EVENT_STDOUT, (struct str){flat, t[i].n});
    }
}

static size_t bundle_bytes(const struct event *ev)
{
    size_t sum = 0;

    for (size_t i = 0; i < ev->bundle.count; i++)
        sum += ev->bundle.part[i].data.n;
    return sum;
}
void exec_event(struct exec *x, const struct event *ev)
{
    size_t bytes = bundle_bytes(ev);
    char note[128];

    x->outcome.output_bytes += bytes;
    if (ev->kind == EVENT_ERROR ? x->errors++ >= ERRORS_MAX : x->events >= EVENTS_MAX) {
        x->outcome.limits_hit |= IN(LIMIT_OUTPUT);
        x->left_out += bytes;
        return;
    }
    if (bytes > x->limits.output_bytes || x->told > x->limits.output_bytes - bytes) {
        x->outcome.limits_hit |= IN(LIMIT_OUTPUT);
        x->left_out += bytes;
        snprintf(note, sizeof(note), "a %s of %zu bytes left out here", event_kind_name(ev->kind),
                 bytes);
        return exec_tell_text(x, EVENT_STATUS, str_of(note), false);
    }
    x->told += bytes;
    exec_tell(x, ev);
}

/* --- output between executions --- */

void session_keep_late(struct session *s, enum event_kind kind, struct str text)
{
    if (s->late_count == LATE_PARTS || s->late_bytes >= LATE_MAX)
        return;
    if (text.n > LATE_MAX - s->late_bytes)
        text.n = LATE_MAX - s->late_bytes;
    s->late[s->late_count++] = (struct late){
        kind, {mem_strndup(text), text.n}
    };
    s->late_bytes += text.n;
}

void session_tell_late(struct session *s, struct exec *x)
{
    for (size_t i = 0; i < s->late_count; i++) {
        if (x)
            exec_tell_text(x, s->late[i].kind, s->late[i].text, true);
        free((char *)s->late[i].text.p);
    }
    s->late_count = s->late_bytes = 0;
}
