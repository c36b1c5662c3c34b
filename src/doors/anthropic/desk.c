/*
 * Requests and the turns that answer them.
 *
 * A client that lost its connection, or patience, tries again with the same body; its code
 * must not run again. So a turn goes on for a while when its client has gone, and what came
 * of it is kept for a while longer: whoever sends the same bytes with the same key and says
 * that he tries again reads that one from its beginning. Whoever does not say so (each SDK
 * counts its retries in a header) gets a turn that has lost its reader, and no other: two
 * equal questions may well be meant.
 */
#include "doors/anthropic/messages_int.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK_MS      2000
#define SILENT_MS    5000   /* then a ping: with a tick, well below ten seconds */
#define ALONE_MS     30000  /* a turn without a reader goes on for so long */
#define KEPT_MS      600000 /* and its message for so long */
#define ENTRIES_MAX  2048   /* a tenant has at most as many as are left for the others */
#define KEPT_MAX     256
#define KEPT_BYTES   (64 * MiB)
#define WAITING_HIGH (256 * KiB) /* bytes that a slow reader has not taken yet */

/* Owned by its request, which may tell it that its client has gone when all has been said. */
struct reader {
    struct reader *next;
    struct entry *entry; /* borrowed; NULL: all has been said */
    struct request *request;
    bool started;
    size_t at; /* in the log */
    int64_t put_us;
};

/* What a tenant has here; while it has anything. */
struct share {
    struct share *next;
    char tenant[64];
    size_t count, kept, kept_bytes;
};

struct entry {
    struct entry *next;
    struct desk *desk;   /* borrowed */
    struct share *share; /* borrowed */
    char key[ID_MAX];
    uint8_t hash[32];
    struct turn *turn;      /* owned */
    struct reader *readers; /* owned */
    int64_t since_us;       /* without a reader, or over */
    bool over;
    size_t bytes; /* when it is over */
};

struct desk {
    struct anthropic *anthropic; /* borrowed */
    struct entry *entries;
    struct share *shares; /* owned */
    size_t count, kept, kept_bytes;
    struct timer *tick; /* owned */
    bool closed;
};

static const struct turn_failure closing = {
    .status = 529, .code = CODE_INVALID, .text = "The server is shutting down.", .retry_s = 5};
static const struct turn_failure full = {
    .status = 529, .code = CODE_INVALID, .text = "Too many messages are under way.", .retry_s = 5};

/* --- shares --- */

/* Makes one where there is none. */
static struct share *share_of(struct desk *d, const char *tenant)
{
    struct share *s = d->shares;

    while (s && strcmp(s->tenant, tenant) != 0)
        s = s->next;
    if (s)
        return s;
    s = mem_zalloc(sizeof(*s));
    snprintf(s->tenant, sizeof(s->tenant), "%s", tenant);
    s->next = d->shares;
    d->shares = s;
    return s;
}

static void share_drop(struct desk *d, struct share *s)
{
    struct share **at = &d->shares;

    if (s->count > 0)
        return;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
}

static void keep(struct entry *n)
{
    n->over = true;
    n->since_us = time_mono_us();
    n->desk->kept++;
    n->share->kept++;
}

static void weigh(struct entry *n)
{
    n->bytes = turn_settle(n->turn) + 1;
    n->desk->kept_bytes += n->bytes;
    n->share->kept_bytes += n->bytes;
}

static void entry_free(struct entry *n)
{
    struct desk *d = n->desk;
    struct entry **at = &d->entries;

    assert(!n->readers);
    while (*at && *at != n)
        at = &(*at)->next;
    *at = n->next;
    d->count--;
    n->share->count--;
    if (n->over) {
        d->kept--;
        d->kept_bytes -= n->bytes;
        n->share->kept--;
        n->share->kept_bytes -= n->bytes;
    }
    share_drop(d, n->share);
    turn_leave(n->turn);
    free(n);
}

/* Of the tenant that keeps the most, the oldest that nobody reads. False: there is none. */
static bool shed(struct desk *d)
{
    struct entry *oldest = NULL;
    size_t most = 0;

    for (struct entry *n = d->entries; n; n = n->next) {
        size_t weight = n->share->kept_bytes + n->share->kept * (KEPT_BYTES / KEPT_MAX);
        if (!n->over || n->readers || weight < most)
            continue;
        if (!oldest || weight > most || n->since_us < oldest->since_us)
            oldest = n;
        most = weight;
    }
    if (oldest)
        entry_free(oldest);
    return oldest != NULL;
}

static void trim(struct desk *d)
{
    while ((d->kept > KEPT_MAX || d->kept_bytes > KEPT_BYTES) && shed(d))
        ;
}

/* --- answers --- */

static void reader_drop(struct reader *r)
{
    struct reader **at;

    assert(r->entry);
    at = &r->entry->readers;
    while (*at && *at != r)
        at = &(*at)->next;
    *at = r->next;
    if (!r->entry->readers)
        r->entry->since_us = time_mono_us();
    r->entry = NULL;
}

static void put_failure(struct request *r, const struct turn_failure *f)
{
    json_t *error = anthropic_error(r, f->status, f->code, NULL, record_text(str_of(f->text)));
    AUTO_FREE char *text = record_dump(error, false, NULL);

    json_decref(error);
    answer_stream_put(r, STR("event: error\ndata: "));
    answer_stream_put(r, str_of(text));
    answer_stream_put(r, STR("\n\n"));
    answer_stream_end(r);
}

static void answer_failure(struct request *r, const struct turn_failure *f)
{
    char seconds[16];

    if (f->retry_s > 0) {
        snprintf(seconds, sizeof(seconds), "%d", f->retry_s);
        answer_header(r, "retry-after", seconds);
    }
    if (f->final)
        answer_header(r, "x-should-retry", "false");
    answer_fail(r, f->status, f->code, NULL, "%s", f->text);
}

static void pump(struct reader *r);

static void on_low(void *arg)
{
    struct reader *r = arg;

    if (r->entry)
        pump(r);
}

/* True: it has all there will be. */
static bool pump_stream(struct reader *r)
{
    const struct message *m = turn_message(r->entry->turn);
    const struct turn_failure *f = turn_failure(r->entry->turn);
    size_t waits = 0;

    if (!r->started && m->log.n == 0)
        return false;
    if (!r->started) {
        r->started = true;
        answer_stream(r->request, 200, "text/event-stream; charset=utf-8", (struct str){0});
        answer_stream_on_low(r->request, WAITING_HIGH / 2, on_low, r);
    }
    while (r->at < m->log.n && waits < WAITING_HIGH) {
        size_t n = m->log.n - r->at < WAITING_HIGH ? m->log.n - r->at : WAITING_HIGH;
        waits = answer_stream_put(r->request, (struct str){m->log.p + r->at, n});
        r->at += n;
        r->put_us = time_mono_us();
    }
    if (r->at < m->log.n || !turn_is_over(r->entry->turn))
        return false;
    if (f)
        put_failure(r->request, f);
    else
        answer_stream_end(r->request);
    return true;
}

/* What there is for it now. It is gone when that was the last. */
static void pump(struct reader *r)
{
    const struct message *m = turn_message(r->entry->turn);
    const struct turn_failure *f = turn_failure(r->entry->turn);
    bool over = turn_is_over(r->entry->turn);

    if (over && f && !r->started) {
        answer_failure(r->request, f);
    } else if (m->stream) {
        if (!pump_stream(r))
            return;
    } else if (over) {
        answer_json(r->request, 200, message_value(m));
    } else {
        return;
    }
    reader_drop(r);
}

/* --- turns --- */

/* It may be from inside of the turn, so what frees it comes later: with the tick. */
static void on_news(void *arg)
{
    struct entry *n = arg;

    for (struct reader *r = n->readers, *next; r; r = next) {
        next = r->next;
        pump(r);
    }
    if (turn_is_over(n->turn) && !n->over)
        keep(n);
}

static void look_at(struct entry *n, int64_t now)
{
    int64_t alone_ms = (now - n->since_us) / 1000;
    const struct message *m = turn_message(n->turn);

    for (struct reader *r = n->readers, *next; r; r = next) {
        next = r->next;
        if ((now - r->put_us) / 1000 < SILENT_MS || !m->stream || n->over)
            continue;
        if (r->started && r->at < m->log.n)
            continue; /* it reads slowly, and may be in the middle of an event */
        r->put_us = now;
        turn_greet(n->turn);
        if (r->started)
            answer_stream_put(r->request, message_ping);
        else
            pump(r);
    }
    if (n->readers)
        return;
    if (alone_ms >= (n->over ? KEPT_MS : ALONE_MS) || (n->over && turn_failure(n->turn)))
        entry_free(n);
}

static void on_tick(void *arg)
{
    struct desk *d = arg;
    int64_t now = time_mono_us();

    for (struct entry *n = d->entries, *next; n; n = next) {
        next = n->next;
        if (n->over && n->bytes == 0 && !n->readers)
            weigh(n);
        look_at(n, now);
    }
    trim(d);
    if (d->entries)
        timer_set(d->tick, TICK_MS);
}

/* --- requests --- */

static void on_gone(void *arg)
{
    struct reader *r = arg;

    if (!r->entry)
        return;
    reader_drop(r);
    request_drop(r->request);
}

static void attach(struct entry *n, struct request *request)
{
    struct reader *r = mem_zalloc(sizeof(*r));

    *r = (struct reader){.next = n->readers, .entry = n, .request = request};
    r->put_us = time_mono_us();
    n->readers = r;
    request_keep(request, free, r);
    request_on_gone(request, on_gone, r);
    pump(r);
}

static struct entry *find(struct desk *d, const struct caller *c, const uint8_t hash[32])
{
    for (struct entry *n = d->entries; n; n = n->next)
        if (memcmp(n->hash, hash, sizeof(n->hash)) == 0 &&
            strcmp(n->share->tenant, c->tenant) == 0 && strcmp(n->key, c->key) == 0 &&
            !turn_failure(n->turn))
            return n;
    return NULL;
}

static bool is_wanted(const struct entry *n, struct str retries)
{
    if (retries.n > 0)
        return !str_is(retries, "0");
    return !n->over && !n->readers;
}

void desk_read(struct desk *d, struct request *r, const uint8_t hash[32], struct ask *ask,
               struct history *h)
{
    const struct caller *c = request_caller(r);
    const struct turn_spec spec = {d->anthropic, request_service(r), c};
    struct entry *n = find(d, c, hash);
    struct share *share;

    if (n && is_wanted(n, request_header(r, "x-stainless-retry-count"))) {
        attach(n, r);
        return;
    }
    if (d->closed || d->anthropic->draining)
        return answer_failure(r, &closing);
    trim(d);
    share = share_of(d, c->tenant);
    if (share->count >= ENTRIES_MAX - d->count) {
        share_drop(d, share);
        return answer_failure(r, &full);
    }
    n = mem_zalloc(sizeof(*n));
    *n = (struct entry){.desk = d, .share = share, .next = d->entries};
    d->entries = n;
    share->count++;
    if (d->count++ == 0)
        timer_set(d->tick, TICK_MS);
    snprintf(n->key, sizeof(n->key), "%s", c->key);
    memcpy(n->hash, hash, sizeof(n->hash));
    n->turn = turn_start(&spec, ask, h, on_news, n);
    attach(n, r);
}

/* --- the desk --- */

struct desk *desk_new(struct anthropic *a)
{
    struct desk *d = mem_zalloc(sizeof(*d));

    d->anthropic = a;
    d->tick = timer_new(a->config.loop, on_tick, d);
    return d;
}

static void close_reader(struct reader *r)
{
    reader_drop(r);
    if (r->started)
        put_failure(r->request, &closing);
    else
        answer_failure(r->request, &closing);
}

void desk_close(struct desk *d)
{
    d->closed = true;
    for (struct entry *n = d->entries, *next; n; n = next) {
        next = n->next;
        for (struct reader *r = n->readers, *more; r; r = more) {
            more = r->next;
            close_reader(r);
        }
        entry_free(n);
    }
    timer_clear(d->tick);
}

void desk_free(struct desk *d)
{
    desk_close(d);
    timer_free(d->tick);
    free(d);
}
