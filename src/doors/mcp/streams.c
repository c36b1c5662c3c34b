/*
 * Streams of events: what a server says before, beside and after its answer.
 *
 * Theory of operation: in the legacy era what is said has an id, "STREAM-EVENT", and is
 * kept for a while, so that a client that lost its connection comes back for the rest with
 * GET and the id of the last event it has. A stream has one reader at most: the POST that
 * began it, or the GET that came for it; it goes on without any. Stream 0 of a
 * conversation is what belongs to no call; a GET without an id reads it. In the modern era
 * there are no ids, and nothing is kept.
 *
 * All of it is bounded. A stream keeps so many events and bytes, of which the last, the
 * response, is never dropped; a conversation so many streams; all conversations together
 * so many bytes, and the streams that ended first go first.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX   256 /* kept, of one stream */
#define EVENTS_BYTES (4 * MiB)
#define STREAMS_MAX  64          /* kept after their end, of one conversation */
#define KEPT_BYTES   (256 * MiB) /* in streams that ended, of all conversations */
#define KEPT_MS      300000
#define SLOW_BYTES   (1 * MiB) /* a client that has not read so much hears of no more but answers */
#define RETRY_MS     1000      /* after which a client is to come back */

struct said {
    struct said *next;
    uint64_t number;
    size_t n;
    char text[];
};

struct sse {
    struct sse *next, **link; /* of its conversation; link NULL: it has none */
    struct streams *streams;  /* borrowed, or NULL */
    uint64_t number;
    uint64_t last;               /* number of the last event */
    struct said *events;         /* owned: oldest first */
    struct said **end;           /* where the next one goes */
    size_t count, bytes;         /* of events */
    struct request *reader;      /* held, or NULL */
    int64_t ended_us;            /* 0: it goes on */
    struct sse *earlier, *later; /* of all that ended */
};

struct streams {
    struct peer peer;           /* for what belongs to no call */
    struct conversation *owner; /* borrowed */
    struct sse *list;           /* newest first */
    struct sse *aside;          /* number 0; NULL before the first GET */
    uint64_t last;              /* number of a stream */
    size_t ended;
};

/* Streams that ended, of all conversations. */
struct kept {
    struct sse *first, *last;
    size_t bytes;
};

/* --- events --- */

static void drop_first(struct sse *s)
{
    struct said *first = s->events;

    s->events = first->next;
    if (!s->events)
        s->end = &s->events;
    s->count--;
    s->bytes -= first->n;
    free(first);
}

static void keep_event(struct sse *s, struct str text)
{
    struct said *ev = mem_zalloc(sizeof(*ev) + text.n);

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

size_t sse_waits(const struct sse *s)
{
    return s->reader ? answer_stream_put(s->reader, STR("")) : s->bytes;
}

static bool is_notification(const json_t *message)
{
    return json_object_get(message, "method") && !json_object_get(message, "id");
}

void sse_put(struct sse *s, json_t *message)
{
    AUTO_FREE char *text = NULL;
    struct buf out;
    struct err e;
    int rc = 0;

    if (is_notification(message) && sse_waits(s) > SLOW_BYTES) {
        json_decref(message);
        return;
    }
    text = record_dump(message, true, NULL);
    json_decref(message);
    buf_init(&out, 2 * GiB);
    s->last++;
    if (s->streams)
        rc = buf_printf(&out, &e, "id: %llu-%llu\n", (unsigned long long)s->number,
                        (unsigned long long)s->last);
    if (text && rc == 0 && buf_printf(&out, &e, "event: message\ndata: %s\n\n", text) == 0) {
        if (s->streams)
            keep_event(s, buf_str(&out));
        if (s->reader)
            answer_stream_put(s->reader, buf_str(&out));
    }
    buf_done(&out);
}

/* --- readers --- */

static void on_gone(void *arg)
{
    sse_gone(arg);
}

void sse_gone(struct sse *s)
{
    struct request *r = take_ptr(&s->reader);

    if (r)
        request_drop(r);
}

void sse_on_gone(struct sse *s, loop_fn *fn, void *arg)
{
    if (s->reader)
        request_on_gone(s->reader, fn, arg);
}

void sse_hang_up(struct sse *s)
{
    struct request *r = take_ptr(&s->reader);

    if (r)
        answer_stream_end(r);
}

static void read_by(struct sse *s, struct request *r)
{
    sse_hang_up(s);
    s->reader = r;
    answer_stream(r, 200, "text/event-stream", STR(": keep-alive\n\n"));
}

void sse_open(struct sse *s, struct request *r, bool primed)
{
    char text[64];
    int n;

    read_by(s, r);
    if (!s->streams || !primed)
        return;
    n = snprintf(text, sizeof(text), "id: %llu-%llu\nretry: %d\ndata: \n\n",
                 (unsigned long long)s->number, (unsigned long long)s->last, RETRY_MS);
    answer_stream_put(r, (struct str){text, (size_t)n});
}

/* --- those that ended --- */

static void kept_remove(struct kept *k, struct sse *s)
{
    *(s->earlier ? &s->earlier->later : &k->first) = s->later;
    *(s->later ? &s->later->earlier : &k->last) = s->earlier;
    k->bytes -= s->bytes;
}

static void kept_add(struct kept *k, struct sse *s)
{
    s->earlier = k->last;
    *(k->last ? &k->last->later : &k->first) = s;
    k->last = s;
    k->bytes += s->bytes;
}

void sse_free(struct sse *s)
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
static struct sse *oldest(const struct streams *all)
{
    struct sse *found = NULL;

    for (struct sse *s = all->list; s; s = s->next)
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

void sse_end(struct sse *s)
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

struct sse *sse_new(struct streams *all)
{
    struct sse *s = mem_zalloc(sizeof(*s));

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

static void aside_send(struct peer *p, struct call *c, json_t *message)
{
    (void)c;
    sse_put(streams_of(p)->aside, message);
}

static size_t aside_waits(struct peer *p)
{
    return sse_waits(streams_of(p)->aside);
}

static const struct peer_ops aside_ops = {.send = aside_send, .waits = aside_waits};

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
    for (struct sse *s = all->list, *next; s; s = next) {
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

void streams_listen(struct streams *all, struct request *r)
{
    if (!all->aside) {
        all->aside = mem_zalloc(sizeof(*all->aside));
        all->aside->end = &all->aside->events;
        all->aside->streams = all;
        all->owner->aside = &all->peer;
    }
    sse_open(all->aside, r, all->owner->client.version->has & HAS_ICONS);
    request_on_gone(r, on_gone, all->aside);
    conversation_listens(all->owner);
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

static struct sse *find(const struct streams *all, uint64_t number)
{
    struct sse *s = number ? all->list : all->aside;

    while (number && s && s->number != number)
        s = s->next;
    return s;
}

bool streams_resume(struct streams *all, struct request *r, struct str last_id)
{
    uint64_t number, after;
    struct sse *s = event_id_read(last_id, &number, &after) ? find(all, number) : NULL;

    if (!s || after > s->last)
        return false;
    read_by(s, r);
    for (const struct said *ev = s->events; ev; ev = ev->next)
        if (ev->number > after)
            answer_stream_put(r, (struct str){ev->text, ev->n});
    if (s->ended_us)
        sse_hang_up(s);
    else
        request_on_gone(r, on_gone, s);
    return true;
}
