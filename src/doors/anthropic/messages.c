/*
 * POST /v1/messages: a request becomes a turn, or the reader of one that has begun.
 *
 * A client that loses its connection sends the same body again, and a retry must not run code
 * again. So a turn without a reader continues for a while, and its message is kept for a while
 * longer: the registry holds both. A request with the same bytes and the same key that says it is a
 * retry (each SDK counts retries in a header) reads that message from its beginning, unless all of
 * it went out to a client: then the turn is another request's, and equal requests are usual where a
 * prompt is sampled. A request without the header gets a turn that has lost its reader, and no
 * other. Requests with the same Idempotency-Key are the same request, by their client's own word,
 * and those with different ones are not.
 *
 * POST /v1/messages/count_tokens: each model counts tokens in a way that nobody outside of it
 * knows. So the count is an estimate, and the documentation says so: four bytes of text are a
 * token, and so is each value around them.
 */
#include "doors/anthropic/turn_int.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES_A_TOKEN   4
#define IMAGE_TOKENS    1600 /* the most that one of Anthropic's images takes */
#define TICK_MS         2000
#define SILENT_MS       5000   /* then a ping: SDKs want one within ten seconds */
#define ALONE_MS        30000  /* a turn continues without a reader */
#define KEPT_MS         600000 /* a message is kept without a reader */
#define ENTRIES_MAX     2048   /* of which a tenant has at most as many as are free */
#define IDEMPOTENCY_MAX 256
#define KEPT_MAX        256
#define KEPT_BYTES      (64 * MiB)

/* A request that reads the message of a turn. Owned by the request. */
struct turn_reader {
    struct turn_reader *next;
    struct turn_entry *entry; /* borrowed; NULL: the request is answered */
    struct request *request;
    bool started; /* the stream */
    size_t at;    /* in the log */
    int64_t put_us;
    struct turn_reader *sends_next;
    struct turn_entry *sends; /* borrowed: the answer is on its way; or NULL */
};

struct turn_entry {
    struct turn_entry *next;
    struct turn_registry *registry; /* borrowed */
    char tenant[64], key[ID_MAX];
    uint8_t hash[32];            /* of the request's body */
    struct turn *turn;           /* owned */
    struct turn_reader *readers; /* owned by their requests */
    struct turn_reader *sending; /* the same: answered, and not all of it sent */
    bool delivered;              /* a client has all of it */
    char idempotency[IDEMPOTENCY_MAX];
    int64_t since_us; /* when the last reader went, or the turn ended */
    bool over;
    size_t bytes; /* of a turn that is over */
};

struct turn_registry {
    struct anthropic *anthropic; /* borrowed */
    struct turn_entry *entries;
    size_t count;
    struct timer *tick; /* owned */
    bool closed;
};

static const struct turn_failure closing = {
    .status = 529, .code = CODE_INVALID, .text = "The server is shutting down.", .retry_s = 5};
static const struct turn_failure full = {
    .status = 529, .code = CODE_INVALID, .text = "Too many messages are under way.", .retry_s = 5};

/* --- limits --- */

static void entry_free(struct turn_entry *n)
{
    struct turn_entry **at = &n->registry->entries;

    assert(!n->readers);
    for (struct turn_reader *r = n->sending; r; r = r->sends_next)
        r->sends = NULL;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    n->registry->count--;
    turn_leave(n->turn);
    free(n);
}

/* How many entries the tenant has. */
static size_t count_of(const struct turn_registry *d, const char *tenant)
{
    size_t count = 0;

    for (const struct turn_entry *n = d->entries; n; n = n->next)
        count += strcmp(n->tenant, tenant) == 0;
    return count;
}

/* Counts the messages that are kept, of this tenant or (NULL) of all, and their bytes. */
static size_t kept_by(const struct turn_registry *d, const char *tenant, size_t *ret_bytes)
{
    size_t count = 0;

    *ret_bytes = 0;
    for (const struct turn_entry *n = d->entries; n; n = n->next)
        if (n->over && (!tenant || strcmp(n->tenant, tenant) == 0)) {
            count++;
            *ret_bytes += n->bytes;
        }
    return count;
}

/* Frees the oldest message without a reader of the tenant that keeps the most. False: there is
 * none. */
static bool shed(struct turn_registry *d)
{
    struct turn_entry *oldest = NULL;
    size_t most = 0, weight = 0, bytes;
    const char *tenant = "";

    for (struct turn_entry *n = d->entries; n; n = n->next) {
        if (!n->over || n->readers)
            continue;
        if (strcmp(n->tenant, tenant) != 0 || weight == 0)
            weight = kept_by(d, n->tenant, &bytes) * (KEPT_BYTES / KEPT_MAX) + bytes;
        tenant = n->tenant;
        if (!oldest || weight > most || (weight == most && n->since_us < oldest->since_us)) {
            oldest = n;
            most = weight;
        }
    }
    if (oldest)
        entry_free(oldest);
    return oldest != NULL;
}

static void trim(struct turn_registry *d)
{
    size_t bytes;

    while ((kept_by(d, NULL, &bytes) > KEPT_MAX || bytes > KEPT_BYTES) && shed(d))
        ;
}

/* --- answers --- */

static void reader_drop(struct turn_reader *r)
{
    struct turn_reader **at;

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
    answer_event(r, NULL, "error", str_of(text));
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

static void pump(struct turn_reader *r);

static void on_hold(void *arg, bool held)
{
    struct turn_reader *r = arg;

    if (r->entry && !held)
        pump(r);
}

/* True: the reader has everything there will be. */
static bool pump_stream(struct turn_reader *r)
{
    const struct turn *turn = r->entry->turn;
    const struct message *m = &turn->message;

    if (!r->started && m->log.n == 0)
        return false;
    if (!r->started) {
        r->started = true;
        answer_stream(r->request, 200, "text/event-stream; charset=utf-8", (struct str){0});
        answer_stream_on_hold(r->request, on_hold, r);
    }
    if (r->at < m->log.n)
        r->put_us = time_mono_us();
    if (!answer_stream_put_some(r->request, buf_str(&m->log), &r->at) || !turn->over)
        return false;
    if (turn->failure.status)
        put_failure(r->request, &turn->failure);
    else
        answer_stream_end(r->request);
    return true;
}

/* Sends the reader what there is now; after the last of it the reader is dropped. */
static void pump(struct turn_reader *r)
{
    const struct turn *turn = r->entry->turn;

    if (turn->over && turn->failure.status && !r->started) {
        answer_failure(r->request, &turn->failure);
    } else if (turn->message.stream) {
        if (!pump_stream(r))
            return;
    } else if (turn->over) {
        answer_json(r->request, 200, message_value(&turn->message));
    } else {
        return;
    }
    r->sends = r->entry;
    r->sends_next = r->entry->sending;
    r->entry->sending = r;
    reader_drop(r);
}

/* The request is over. */
static void reader_end(void *arg)
{
    struct turn_reader *r = arg, **at;

    if (r->sends) {
        r->sends->delivered |= request_is_sent(r->request);
        for (at = &r->sends->sending; *at != r; at = &(*at)->sends_next)
            ;
        *at = r->sends_next;
    }
    free(r);
}

/* --- turns --- */

/* The turn may be the caller, so it is freed later: with the tick. */
static void on_news(void *arg)
{
    struct turn_entry *n = arg;

    for (struct turn_reader *r = n->readers, *next; r; r = next) {
        next = r->next;
        pump(r);
    }
    if (n->turn->over && !n->over) {
        n->over = true;
        n->since_us = time_mono_us();
    }
}

static void look_at(struct turn_entry *n, int64_t now)
{
    int64_t alone_ms = (now - n->since_us) / 1000;
    const struct message *m = &n->turn->message;

    for (struct turn_reader *r = n->readers, *next; r; r = next) {
        next = r->next;
        if ((now - r->put_us) / 1000 < SILENT_MS || !m->stream || n->over)
            continue;
        if (r->started && r->at < m->log.n)
            continue; /* a slow reader may be in the middle of an event */
        r->put_us = now;
        turn_greet(n->turn);
        if (r->started)
            answer_stream_put(r->request, message_ping);
        else
            pump(r);
    }
    if (n->readers)
        return;
    if (alone_ms >= (n->over ? KEPT_MS : ALONE_MS) || (n->over && n->turn->failure.status))
        entry_free(n);
}

static void on_tick(void *arg)
{
    struct turn_registry *d = arg;
    int64_t now = time_mono_us();

    for (struct turn_entry *n = d->entries, *next; n; n = next) {
        next = n->next;
        if (n->over && n->bytes == 0 && !n->readers)
            n->bytes = turn_settle(n->turn) + 1;
        look_at(n, now);
    }
    trim(d);
    if (d->entries)
        timer_set(d->tick, TICK_MS);
}

/* --- requests --- */

static void on_gone(void *arg)
{
    struct turn_reader *r = arg;

    if (!r->entry)
        return;
    reader_drop(r);
    request_drop(r->request);
}

static void attach(struct turn_entry *n, struct request *request)
{
    struct turn_reader *r = mem_zalloc(sizeof(*r));

    *r = (struct turn_reader){.next = n->readers, .entry = n, .request = request};
    r->put_us = time_mono_us();
    n->readers = r;
    request_keep(request, reader_end, r);
    request_on_gone(request, on_gone, r);
    pump(r);
}

/* Whether this request is one that n was begun for. */
static bool is_again(const struct turn_entry *n, struct str retries, struct str idempotency)
{
    if (idempotency.n > 0 || *n->idempotency)
        return str_is(idempotency, n->idempotency);
    if (retries.n > 0)
        return !str_is(retries, "0") && !n->delivered;
    return !n->over && !n->readers;
}

static struct turn_entry *find(struct turn_registry *d, struct messages_request *m)
{
    const struct caller *c = request_caller(m->request);
    struct str retries = request_header(m->request, "x-stainless-retry-count");
    struct str idempotency = request_header(m->request, "idempotency-key");

    for (struct turn_entry *n = d->entries; n; n = n->next)
        if (memcmp(n->hash, m->hash, sizeof(n->hash)) == 0 && strcmp(n->tenant, c->tenant) == 0 &&
            strcmp(n->key, c->key) == 0 && !n->turn->failure.status &&
            is_again(n, retries, idempotency))
            return n;
    return NULL;
}

/* With the turn that a retrying client has begun, else with a new one. */
static void answer_with_turn(struct turn_registry *d, struct messages_request *m)
{
    struct request *r = m->request;
    const struct caller *c = request_caller(r);
    struct turn_entry *n = find(d, m);

    if (n)
        return attach(n, r);
    if (d->closed || d->anthropic->draining)
        return answer_failure(r, &closing);
    trim(d);
    if (count_of(d, c->tenant) >= ENTRIES_MAX - d->count)
        return answer_failure(r, &full);
    n = mem_zalloc(sizeof(*n));
    *n = (struct turn_entry){.registry = d, .next = d->entries};
    d->entries = n;
    if (d->count++ == 0)
        timer_set(d->tick, TICK_MS);
    memcpy(n->tenant, c->tenant, sizeof(n->tenant));
    memcpy(n->key, c->key, sizeof(n->key));
    memcpy(n->hash, m->hash, sizeof(n->hash));
    if (!str_to_cstr(request_header(r, "idempotency-key"), n->idempotency, sizeof(n->idempotency)))
        *n->idempotency = '\0';
    n->turn = turn_start(d->anthropic, m, on_news, n);
    attach(n, r);
}

/* --- the registry --- */

struct turn_registry *turn_registry_new(struct anthropic *a)
{
    struct turn_registry *d = mem_zalloc(sizeof(*d));

    d->anthropic = a;
    d->tick = timer_new(a->config.loop, on_tick, d);
    return d;
}

static void close_reader(struct turn_reader *r)
{
    reader_drop(r);
    if (r->started)
        put_failure(r->request, &closing);
    else
        answer_failure(r->request, &closing);
}

void turn_registry_close(struct turn_registry *d)
{
    d->closed = true;
    for (struct turn_entry *n = d->entries, *next; n; n = next) {
        next = n->next;
        for (struct turn_reader *r = n->readers, *more; r; r = more) {
            more = r->next;
            close_reader(r);
        }
        entry_free(n);
    }
    timer_clear(d->tick);
}

void turn_registry_free(struct turn_registry *d)
{
    turn_registry_close(d);
    timer_free(d->tick);
    free(d);
}

/* --- POST /v1/messages --- */

/* On any thread: touches nothing but the messages_request and the bytes of its body. */
static void parse(void *arg)
{
    struct messages_request *m = arg;
    struct str bytes = request_body(m->request);
    json_t *body = NULL;

    if (request_value(m->request, &body, &m->failed) < 0 ||
        request_params_read(&m->params, body, &m->failed) < 0)
        return;
    m->thread = json_object_get(body, "thread") && !json_is_null(json_object_get(body, "thread"));
    if (m->thread || history_read(&m->history, json_object_get(body, "messages"), &m->failed) < 0)
        return;
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.p, bytes.n, m->hash) < 0)
        err_set(&m->failed, ERR_HOST, "the body cannot be hashed");
}

static void answer(void *arg)
{
    struct messages_request *m = arg;
    struct request *r = m->request;
    const struct anthropic *a = request_ctx(r);

    if (m->failed.kind == ERR_HOST)
        answer_error(r, &m->failed, NULL);
    else if (m->failed.kind)
        answer_fail(r, 400, CODE_INVALID, NULL, "%s", m->failed.text);
    else if (m->thread) /* a client that believes in threads would send only new messages from now
                           on */
        answer_fail(r, 400, CODE_THREAD_UNSUPPORTED, "thread",
                    "Threads are not supported by this server.");
    else {
        m->params.betas = request_betas(request_header(r, "anthropic-beta"));
        answer_with_turn(a->registry, m);
    }
    request_params_done(&m->params);
    history_done(&m->history);
    free(m);
}

/* --- POST /v1/messages/count_tokens --- */

static uint64_t text_tokens(size_t bytes)
{
    return (bytes + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
}

/* The bytes of an image say nothing of what it costs. */
static bool is_image(const json_t *v)
{
    return str_is(view_of(v, "type"), "base64") && json_is_string(json_object_get(v, "data"));
}

uint64_t tokens_of(const json_t *v)
{
    uint64_t sum = 0;
    const char *name;
    size_t i;
    json_t *one;

    if (json_is_string(v))
        return text_tokens(json_string_length(v));
    if (is_image(v))
        return IMAGE_TOKENS;
    json_array_foreach((json_t *)v, i, one)
        sum += 1 + tokens_of(one);
    json_object_foreach((json_t *)v, name, one)
        sum += text_tokens(strlen(name)) + tokens_of(one);
    return sum + (json_is_number(v) || json_is_boolean(v));
}

/* As parse(). */
static void estimate(void *arg)
{
    static const char *const parts[] = {"system", "messages", "tools"}; /* that a model is shown */
    struct messages_request *m = arg;
    json_t *body = NULL;

    if (request_value(m->request, &body, &m->failed) < 0)
        return;
    if (json_array_size(json_object_get(body, "messages")) == 0)
        err_set(&m->failed, ERR_CALLER, "messages: at least one message is required");
    for (size_t i = 0; i < COUNT(parts); i++)
        m->tokens += tokens_of(json_object_get(body, parts[i]));
    json_decref(body);
}

static void answer_count(void *arg)
{
    struct messages_request *m = arg;

    if (m->failed.kind)
        answer_fail(m->request, 400, CODE_INVALID, NULL, "%s", m->failed.text);
    else
        answer_json(
            m->request, 200,
            json_pack("{s:I, s:n}", "input_tokens", (json_int_t)m->tokens, "context_management"));
    free(m);
}

/* --- routes --- */

/* A long body is parsed on another thread. */
static void read_body(struct request *r, loop_fn *work, loop_fn *done)
{
    struct messages_request *m = mem_zalloc(sizeof(*m));

    m->request = r;
    m->service = request_service(r);
    m->caller = *request_caller(r);
    if (request_body(r).n > BODY_SMALL)
        return service_work(request_service(r), work, done, m);
    work(m);
    done(m);
}

void handle_messages(struct request *r)
{
    read_body(r, parse, answer);
}

void handle_count_tokens(struct request *r)
{
    read_body(r, estimate, answer_count);
}
