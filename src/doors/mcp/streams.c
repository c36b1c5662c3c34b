/*
 * Event streams over HTTP: messages before, beside and after an answer.
 *
 * Legacy: every event has an id, "STREAM-EVENT", and is kept for a while. A client that lost its
 * connection sends a GET with the id of the last event it has, and gets the rest. A stream has at
 * most one reader: the POST that began it, or the GET that resumed it. It goes on without a reader.
 * Stream 0 of a conversation has the messages that belong to no call; a GET without an id reads it.
 * Modern: events have no ids, and nothing is kept. In the transport of 2024-11-05 (old_sse.c)
 * stream 0 has all messages of a conversation, and nothing is kept, either.
 *
 * All of this is limited: the events and bytes of a stream (the last event, the response, is never
 * dropped), the streams of a conversation, and the bytes of all conversations. The streams that
 * ended first are dropped first.
 */
#include "doors/mcp/transport.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX   256 /* kept, of one stream */
#define EVENTS_BYTES (4 * MiB)
#define STREAMS_MAX  64          /* kept after their end, of one conversation */
#define KEPT_BYTES   (256 * MiB) /* in streams that ended, of all conversations */
#define KEPT_MS      300000
#define SLOW_BYTES   (1 * MiB) /* a client that has not read so much hears of no more but answers */
#define RETRY_MS     1000      /* after which a client is to come back */
#define EVENT_ID_MAX 44

struct sse_event {
    struct sse_event *next;
    uint64_t number;
    size_t n;
    char text[];
};

struct sse_stream {
    struct sse_stream *next, **link; /* of its conversation; link NULL: it has none */
    struct streams *streams;         /* borrowed, or NULL */
    uint64_t number;
    uint64_t last;                      /* number of the last event */
    struct sse_event *events;           /* owned: oldest first */
    struct sse_event **end;             /* where the next one goes */
    size_t count, bytes;                /* of events */
    struct request *reader;             /* held, or NULL */
    int64_t ended_us;                   /* 0: it goes on */
    struct sse_stream *earlier, *later; /* of all that ended */
};

struct streams {
    struct peer peer;           /* for what belongs to no call */
    struct conversation *owner; /* borrowed */
    struct sse_stream *list;    /* newest first */
    struct sse_stream *aside;   /* number 0; NULL before the first GET */
    uint64_t last;              /* number of a stream */
    size_t ended;
};

/* Streams that ended, of all conversations. */
struct kept {
    struct sse_stream *first, *last;
    size_t bytes;
};

/* --- events --- */

static void drop_first(struct sse_stream *s)
{
    struct sse_event *first = s->events;

    s->events = first->next;
    if (!s->events)
        s->end = &s->events;
    s->count--;
    s->bytes -= first->n;
    free(first);
}

static void keep_event(struct sse_stream *s, struct str text)
{
    struct sse_event *ev = mem_zalloc(sizeof(*ev) + text.n);

    ev->number = s->last;
    ev->n = text.n;
    memcpy(ev->text, text.p, text.n);
    *s->end = ev;
    s->end = &ev->next;
    s->count++;
    s->bytes += ev->n;
    while (s->count > 1 && (s->count > EVENTS_MAX || s->bytes > EVENTS_BYTES))
        drop_first(s);
}

static const char *event_id(const struct sse_stream *s, char ret[EVENT_ID_MAX])
{
    snprintf(ret, EVENT_ID_MAX, "%llu-%llu", (unsigned long long)s->number,
             (unsigned long long)s->last);
    return ret;
}

size_t sse_waits(const struct sse_stream *s)
{
    return s->reader ? answer_stream_waits(s->reader) : s->bytes;
}

static bool is_notification(const json_t *message)
{
    return json_object_get(message, "method") && !json_object_get(message, "id");
}

void sse_put(struct sse_stream *s, json_t *message)
{
    bool is_left_out = is_notification(message) && sse_waits(s) > SLOW_BYTES;
    AUTO_FREE char *text = is_left_out ? NULL : record_dump(message, true, NULL);
    AUTO(buf_done) struct buf out = BUF(2 * GiB);
    char id[EVENT_ID_MAX];

    json_decref(message);
    if (!text)
        return;
    s->last++;
    event_write(&out, s->streams ? event_id(s, id) : NULL, "message", str_of(text));
    if (s->streams)
        keep_event(s, buf_str(&out));
    if (s->reader)
        answer_stream_put(s->reader, buf_str(&out));
}

/* --- readers --- */

static void on_gone(void *arg)
{
    sse_gone(arg);
}

void sse_gone(struct sse_stream *s)
{
    struct request *r = take_ptr(&s->reader);

    if (r)
        request_drop(r);
}

void sse_hang_up(struct sse_stream *s)
{
    struct request *r = take_ptr(&s->reader);

    if (r)
        answer_stream_end(r);
}

static void read_by(struct sse_stream *s, struct request *r)
{
    sse_hang_up(s);
    s->reader = r;
    answer_events(r, EVENTS_SSE);
}

void sse_open(struct sse_stream *s, struct request *r, bool primed)
{
    char text[EVENT_ID_MAX + 32], id[EVENT_ID_MAX];
    int n;

    read_by(s, r);
    if (!s->streams || !primed)
        return;
    n = snprintf(text, sizeof(text), "id: %s\nretry: %d\ndata: \n\n", event_id(s, id), RETRY_MS);
    answer_stream_put(r, (struct str){text, (size_t)n});
}

/* --- those that ended --- */

static void kept_remove(struct kept *k, struct sse_stream *s)
{
    *(s->earlier ? &s->earlier->later : &k->first) = s->later;
    *(s->later ? &s->later->earlier : &k->last) = s->earlier;
    k->bytes -= s->bytes;
}

static void kept_add(struct kept *k, struct sse_stream *s)
{
    s->earlier = k->last;
    *(k->last ? &k->last->later : &k->first) = s;
    k->last = s;
    k->bytes += s->bytes;
}

void sse_free(struct sse_stream *s)
{
    if (!s)
        return;
    sse_hang_up(s);
    if (s->ended_us) {
        kept_remove(s->streams->owner->mcp->kept, s);
        s->streams->ended--;
    }
    if (s->link) {
        *s->link = s->next;
        if (s->next)
            s->next->link = s->link;
    }
    while (s->events)
        drop_first(s);
    free(s);
}

/* The one of a conversation that ended first; they begin and end in much the same order. */
static struct sse_stream *oldest(const struct streams *all)
{
    struct sse_stream *found = NULL;

    for (struct sse_stream *s = all->list; s; s = s->next)
        if (s->ended_us)
            found = s;
    return found;
}

static struct kept *kept_of(struct mcp *m)
{
    if (!m->kept)
        m->kept = mem_zalloc(sizeof(*m->kept));
    return m->kept;
}

void sse_end(struct sse_stream *s)
{
    struct kept *k;

    if (!s->streams) {
        sse_free(s);
        return;
    }
    sse_hang_up(s);
    s->ended_us = time_mono_us();
    k = kept_of(s->streams->owner->mcp);
    kept_add(k, s);
    if (++s->streams->ended > STREAMS_MAX)
        sse_free(oldest(s->streams));
    while (k->bytes > KEPT_BYTES && k->first != s)
        sse_free(k->first);
}

void streams_expire(struct mcp *m)
{
    int64_t before_us = time_mono_us() - (int64_t)KEPT_MS * 1000;

    while (m->kept && m->kept->first && m->kept->first->ended_us < before_us)
        sse_free(m->kept->first);
}

/* --- of a conversation --- */

struct sse_stream *sse_new(struct streams *all)
{
    struct sse_stream *s = mem_zalloc(sizeof(*s));

    s->end = &s->events;
    s->streams = all;
    if (!all)
        return s;
    s->number = ++all->last;
    s->next = all->list;
    s->link = &all->list;
    if (s->next)
        s->next->link = &s->next;
    all->list = s;
    return s;
}

static struct streams *streams_of(struct peer *p)
{
    return (struct streams *)(void *)((char *)p - offsetof(struct streams, peer));
}

static void aside_send(struct peer *p, json_t *message)
{
    sse_put(streams_of(p)->aside, message);
}

static size_t aside_waits(struct peer *p)
{
    return sse_waits(streams_of(p)->aside);
}

/* Of a conversation that has one stream. */
static void aside_answer(struct peer *p, int status, json_t *message)
{
    (void)status;
    sse_put(streams_of(p)->aside, message);
}

static void aside_drop(struct peer *p)
{
    (void)p;
}

static const struct peer_ops aside_ops = {
    .send = aside_send, .answer = aside_answer, .drop = aside_drop, .waits = aside_waits};

struct streams *streams_new(struct conversation *owner)
{
    struct streams *all = mem_zalloc(sizeof(*all));

    *all = (struct streams){.peer = {&aside_ops}, .owner = owner};
    return all;
}

void streams_free(struct streams *all)
{
    if (!all)
        return;
    for (struct sse_stream *s = all->list, *next; s; s = next) {
        next = s->next;
        if (s->ended_us) {
            sse_free(s);
        } else { /* a call that has left the conversation says the rest to whoever reads now */
            s->streams = NULL;
            s->link = NULL;
        }
    }
    sse_free(all->aside);
    free(all);
}

bool streams_are_open(const struct streams *all)
{
    return all->aside && all->aside->reader;
}

void streams_close(struct streams *all)
{
    if (all->aside)
        sse_hang_up(all->aside);
}

/* --- GET --- */

static void add_aside(struct streams *all)
{
    if (all->aside)
        return;
    all->aside = mem_zalloc(sizeof(*all->aside));
    all->aside->end = &all->aside->events;
    all->aside->streams = all->owner->has_one_stream ? NULL : all;
    all->owner->aside = &all->peer;
}

void streams_listen(struct streams *all, struct request *r)
{
    add_aside(all);
    sse_open(all->aside, r, all->owner->client.version->has & HAS_ICONS);
    request_on_gone(r, on_gone, all->aside);
    conversation_listens(all->owner);
}

void streams_leave(struct streams *all)
{
    sse_gone(all->aside);
}

void streams_begin(struct streams *all, struct request *r, const char *endpoint)
{
    AUTO(buf_done) struct buf out = BUF(8 * KiB);

    add_aside(all);
    sse_open(all->aside, r, false);
    event_write(&out, NULL, "endpoint", str_of(endpoint));
    answer_stream_put(r, buf_str(&out));
}

size_t streams_wait(const struct streams *all)
{
    return sse_waits(all->aside);
}

static bool read_number(struct str *rest, uint64_t *ret)
{
    size_t n = 0;

    for (*ret = 0; n < rest->n && n < 18 && rest->p[n] >= '0' && rest->p[n] <= '9'; n++)
        *ret = *ret * 10 + (uint64_t)(rest->p[n] - '0');
    rest->p += n, rest->n -= n;
    return n > 0;
}

bool event_id_read(struct str id, uint64_t *ret_stream, uint64_t *ret_event)
{
    if (!read_number(&id, ret_stream) || id.n == 0 || *id.p != '-')
        return false;
    id.p++, id.n--;
    return read_number(&id, ret_event) && id.n == 0;
}

static struct sse_stream *find(const struct streams *all, uint64_t number)
{
    struct sse_stream *s = number ? all->list : all->aside;

    while (number && s && s->number != number)
        s = s->next;
    return s;
}

bool streams_resume(struct streams *all, struct request *r, struct str last_id)
{
    uint64_t number, after;
    struct sse_stream *s = event_id_read(last_id, &number, &after) ? find(all, number) : NULL;

    if (!s || after > s->last)
        return false;
    read_by(s, r);
    for (const struct sse_event *ev = s->events; ev; ev = ev->next)
        if (ev->number > after)
            answer_stream_put(r, (struct str){ev->text, ev->n});
    if (s->ended_us)
        sse_hang_up(s);
    else
        request_on_gone(r, on_gone, s);
    return true;
}
