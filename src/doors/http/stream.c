/*
 * Answers of unknown length, sent in chunks while the door writes them; event streams
 * among them, as server-sent events or as lines of JSON.
 *
 * libmicrohttpd asks for bytes when the client can take some. When there are none the
 * connection is suspended until the door writes more, so a silent stream costs nothing.
 * The bytes that wait for a slow client decide whether the producer is held.
 */
#include "doors/http/http_mhd.h"

#include <stdlib.h>

struct outflow {
    struct buf bytes; /* from `sent` on they wait */
    size_t sent;
    bool ended, cut;
    bool lines;      /* events are lines of JSON */
    bool held;       /* the producer waits until fewer than STREAM_LOW bytes do */
    struct str ping; /* borrowed: static; empty: none */
    struct timer *timer;
    int64_t put_us;   /* the last time something was put */
    hold_fn *on_hold; /* or NULL */
    void *hold_arg;
};

static size_t waiting(const struct outflow *s)
{
    return s->bytes.n - s->sent;
}

void outflow_free(struct outflow *s)
{
    if (!s)
        return;
    timer_free(s->timer);
    buf_done(&s->bytes);
    free(s);
}

/* --- from the library --- */

static void look_low(struct request *r)
{
    struct outflow *s = r->stream;

    if (!s->held || r->low_due || waiting(s) >= STREAM_LOW)
        return;
    r->low_due = true;
    request_later(r);
}

void stream_tell_low(struct request *r)
{
    struct outflow *s = r->stream;

    s->held = false;
    if (r->stage == STAGE_STREAM && s->on_hold)
        s->on_hold(s->hold_arg, false);
}

static ssize_t on_read(void *arg, uint64_t pos, char *to, size_t max)
{
    struct request *r = arg;
    struct outflow *s = r->stream;
    size_t n = waiting(s) < max ? waiting(s) : max;

    (void)pos;
    if (r->refused || s->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && s->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        request_suspend(r);
        return 0;
    }
    memcpy(to, s->bytes.p + s->sent, n);
    s->sent += n;
    r->bytes += n;
    if (s->sent == s->bytes.n)
        s->sent = s->bytes.n = 0;
    look_low(r);
    return (ssize_t)n;
}

void stream_gone(struct request *r)
{
    struct outflow *s = r->stream;

    s->sent = s->bytes.n = 0;
    if (s->timer)
        timer_clear(s->timer);
    look_low(r); /* a held producer need not wait any longer */
}

/* --- from the handler --- */

static void on_ping(void *arg)
{
    struct request *r = arg;
    struct outflow *s = r->stream;
    int64_t silent_ms = (time_mono_us() - s->put_us) / 1000;

    if (silent_ms < PING_MS) {
        timer_set(s->timer, (uint64_t)(PING_MS - silent_ms));
        return;
    }
    if (waiting(s) == 0 && !s->held) /* a held producer may have stopped within an event */
        answer_stream_put(r, s->ping);
    timer_set(s->timer, PING_MS);
}

struct MHD_Response *stream_response(struct request *r, int status, uint64_t length)
{
    bool empty = status == 204 || status == 304 || (r->head_only && length == UINT64_MAX);

    /* To a HEAD the library would send the end of the chunks it has not sent. */
    return empty
               ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
               : MHD_create_response_from_callback(length == UINT64_MAX ? MHD_SIZE_UNKNOWN : length,
                                                   16 * KiB, on_read, r, NULL);
}

void stream_begin(struct request *r, int status, struct MHD_Response *resp)
{
    struct outflow *s = mem_zalloc(sizeof(*s));

    assert(r->stage == STAGE_HANDLER);
    r->stream = s;
    s->put_us = time_mono_us();
    buf_init(&s->bytes, STREAM_MAX);
    answer_send(r, status, resp, 0);
    r->stage = STAGE_STREAM;
}

void answer_stream(struct request *r, int status, const char *mime, struct str ping)
{
    struct MHD_Response *resp = stream_response(r, status, UINT64_MAX);

    MHD_add_response_header(resp, "content-type", mime);
    MHD_add_response_header(resp, "x-accel-buffering", "no"); /* nginx would hold it back */
    stream_begin(r, status, resp);
    if (ping.n && r->mhd) {
        r->stream->ping = ping;
        r->stream->timer = timer_new(r->http->loop, on_ping, r);
        timer_set(r->stream->timer, PING_MS);
    }
}

/* Makes room for n bytes. What has been sent is moved out of the way only when it is the larger
 * part. False: the client has gone. */
static bool make_room(struct request *r, size_t n)
{
    struct outflow *s = r->stream;

    assert(r->stage == STAGE_STREAM && !s->ended);
    if (!r->mhd || s->cut)
        return false;
    s->put_us = time_mono_us();
    if (s->sent == 0 || s->bytes.n + n <= s->bytes.cap || s->sent < s->bytes.n / 2)
        return true;
    memmove(s->bytes.p, s->bytes.p + s->sent, waiting(s));
    s->bytes.n -= s->sent;
    s->sent = 0;
    return true;
}

/* Sends what has been added to the bytes; rc < 0: they are more than STREAM_MAX. */
static void flush(struct request *r, int rc)
{
    struct outflow *s = r->stream;

    if (rc < 0) {
        log_error("%s: a client that reads slowly was left to itself", r->caller.request);
        s->cut = true;
    }
    if (r->suspended && (waiting(s) || s->cut))
        request_resume(r);
    if (s->held || waiting(s) <= STREAM_HIGH)
        return;
    s->held = true;
    if (s->on_hold)
        s->on_hold(s->hold_arg, true);
}

void answer_stream_put(struct request *r, struct str bytes)
{
    if (make_room(r, bytes.n))
        flush(r, buf_put(&r->stream->bytes, bytes));
}

bool answer_stream_put_some(struct request *r, struct str all, size_t *at)
{
    while (*at < all.n && !r->stream->held) {
        size_t n = all.n - *at < STREAM_HIGH ? all.n - *at : STREAM_HIGH;
        answer_stream_put(r, (struct str){all.p + *at, n});
        *at += n;
    }
    return *at == all.n;
}

void answer_stream_on_hold(struct request *r, hold_fn *fn, void *arg)
{
    assert(r->stage == STAGE_STREAM);
    r->stream->on_hold = fn;
    r->stream->hold_arg = arg;
}

bool answer_stream_is_held(const struct request *r)
{
    return r->stream->held;
}

size_t answer_stream_waits(const struct request *r)
{
    return waiting(r->stream);
}

static void finish(struct request *r)
{
    struct outflow *s = r->stream;

    if (s->timer)
        timer_clear(s->timer);
    if (r->suspended)
        request_resume(r);
    answer_done(r);
}

void answer_stream_end(struct request *r)
{
    assert(r->stage == STAGE_STREAM && !r->stream->ended);
    r->stream->ended = true;
    finish(r);
}

void stream_cut(struct request *r)
{
    r->stream->cut = true;
    finish(r);
}

void stream_revoke(struct request *r)
{
    if (r->stream->cut)
        return;
    log_info("%s: its key is no longer good: the stream ends", r->caller.request);
    r->stream->cut = true;
    if (r->suspended)
        request_resume(r);
}

/* --- events --- */

void answer_events(struct request *r, enum event_format format)
{
    static const struct {
        const char *mime;
        struct str ping;
    } formats[] = {
        [EVENTS_SSE] = {"text/event-stream",    STR(": ping\n\n")           },
        [EVENTS_NDJSON] = {"application/x-ndjson", STR("{\"type\":\"ping\"}\n")},
    };

    answer_stream(r, 200, formats[format].mime, formats[format].ping);
    r->stream->lines = format == EVENTS_NDJSON;
}

void event_write(struct buf *b, const char *id, const char *name, struct str data)
{
    if (id)
        buf_printf(b, "id: %s\n", id);
    if (name)
        buf_printf(b, "event: %s\n", name);
    buf_put(b, STR("data: "));
    buf_put(b, data);
    buf_put(b, STR("\n\n"));
}

void answer_event(struct request *r, const char *id, const char *name, struct str data)
{
    struct buf *b = &r->stream->bytes;

    if (!make_room(r, data.n))
        return;
    if (!r->stream->lines) {
        event_write(b, id, name, data);
    } else {
        buf_put(b, data);
        buf_put(b, STR("\n"));
    }
    flush(r, b->full ? -1 : 0);
}
