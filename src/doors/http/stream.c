/*
 * Answers of unknown length: what is put goes out at once, in chunks.
 *
 * The library asks for bytes when the client can take some. When there are none the
 * connection sleeps until something is put; so a stream costs nothing while it is
 * silent, and a client that reads slowly shows as bytes that wait.
 */
#include "doors/http/http_mhd.h"

#include <stdlib.h>

struct outflow {
    struct buf bytes; /* from `sent` on they wait */
    size_t sent;
    bool ended, cut;
    char *ping; /* owned, or NULL */
    struct timer *timer;
    int64_t put_us; /* the last time something was put */
    size_t low;     /* 0: nobody asked */
    bool was_high;
    loop_fn *on_low;
    void *low_arg;
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
    free(s->ping);
    free(s);
}

/* --- from the library --- */

static void look_low(struct request *r)
{
    struct outflow *s = r->stream;

    if (!s->was_high || waiting(s) >= s->low)
        return;
    s->was_high = false;
    r->low_due = true;
    request_later(r);
}

void stream_tell_low(struct request *r)
{
    if (r->stage == STAGE_STREAM && r->stream->on_low)
        r->stream->on_low(r->stream->low_arg);
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
    look_low(r); /* whoever waits for room need not wait any more */
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
    if (waiting(s) == 0)
        answer_stream_put(r, str_of(s->ping));
    timer_set(s->timer, PING_MS);
}

void answer_stream(struct request *r, int status, const char *mime, struct str ping)
{
    struct outflow *s = mem_zalloc(sizeof(*s));
    /* To a HEAD the library would send the end of the chunks it has not sent. */
    struct MHD_Response *resp =
        r->head_only
            ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
            : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * KiB, on_read, r, NULL);

    assert(r->stage == STAGE_HANDLER);
    r->stream = s;
    s->put_us = time_mono_us();
    buf_init(&s->bytes, STREAM_MAX);
    MHD_add_response_header(resp, "content-type", mime);
    MHD_add_response_header(resp, "x-accel-buffering", "no"); /* nginx would hold it back */
    answer_send(r, status, resp, 0);
    r->stage = STAGE_STREAM;
    if (ping.n && r->mhd) {
        s->ping = mem_strndup(ping);
        s->timer = timer_new(r->http->loop, on_ping, r);
        timer_set(s->timer, PING_MS);
    }
}

/* What has been sent is moved out of the way only when it is the larger part. */
static void compact(struct outflow *s)
{
    if (s->sent < s->bytes.n / 2)
        return;
    memmove(s->bytes.p, s->bytes.p + s->sent, waiting(s));
    s->bytes.n -= s->sent;
    s->sent = 0;
}

size_t answer_stream_put(struct request *r, struct str bytes)
{
    struct outflow *s = r->stream;
    struct err e;

    assert(r->stage == STAGE_STREAM && !s->ended);
    if (!r->mhd || s->cut)
        return 0;
    s->put_us = time_mono_us();
    if (s->sent && s->bytes.n + bytes.n > s->bytes.cap)
        compact(s);
    if (buf_put(&s->bytes, bytes, &e) < 0) {
        log_error("%s: a client that reads slowly was left to itself", r->caller.request);
        s->cut = true;
    }
    if (s->low && waiting(s) >= s->low)
        s->was_high = true;
    if (r->suspended && (bytes.n || s->cut))
        request_resume(r);
    return waiting(s);
}

void answer_stream_on_low(struct request *r, size_t below, loop_fn *fn, void *arg)
{
    struct outflow *s = r->stream;

    assert(r->stage == STAGE_STREAM);
    s->low = below;
    s->on_low = fn;
    s->low_arg = arg;
    s->was_high = waiting(s) >= below;
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
