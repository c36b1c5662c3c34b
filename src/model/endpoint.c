/*
 * A model behind an HTTP endpoint.
 *
 * When the endpoint refuses a parameter that is not essential, the request is sent again
 * without it, and the endpoint is remembered to refuse it. Nothing else is tried twice: the
 * caller is told what is wrong and decides.
 *
 * The first byte shows whether an answer is a stream, whatever its content type: JSON begins
 * with a brace, an event never does. on_piece() may cancel the call while its bytes are being
 * read: cancelling then only marks the call, and the reader frees it.
 */
#include "base/json.h"
#include "model/model_int.h"

#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>

#define WALL_MS     120000
#define REQUEST_MAX (64 * MiB)
#define WHOLE_MAX   (8 * MiB) /* parsed JSON takes a multiple of this */
#define EVENT_MAX   (4 * MiB)
#define ERROR_MAX   (64 * KiB)

#define ABOUTS_MAX 16 /* names of models that it has been asked about */

struct endpoint {
    struct model model;
    const struct adapter *adapter;
    struct loop *loop; /* borrowed, as is the next */
    struct web *web;
    char *label, *url;                         /* owned */
    char *name, *key_header, *proxy, *ca_file; /* owned, or NULL */
    const char *key;                           /* within key_header, or NULL */
    uint64_t wall_ms, max_tokens;
    bool no_tools;      /* by its settings: it is never offered tools */
    unsigned fallbacks; /* IN(row of the adapter): parameters it refuses */
    struct {
        char *name;          /* owned */
        struct about *about; /* owned, or NULL: nobody has asked yet */
    } abouts[ABOUTS_MAX];
    size_t about_at; /* the next to give way */
};

enum form { FORM_UNKNOWN, FORM_STREAM, FORM_WHOLE };

struct endpoint_call {
    struct model_call call;
    struct model_watcher watcher;
    void *arg;
    struct endpoint *endpoint; /* borrowed: outlives us */
    json_t *request;           /* owned: as last sent */
    char *betas_header;        /* owned, or NULL */
    unsigned fallbacks, tried; /* of this call; each is tried once */
    bool with_tools, own_name;
    int64_t deadline_us;

    struct web_post *post; /* or NULL */
    enum form form;
    struct buf bytes; /* of an answer that is no stream, or of an error */
    struct sse_reader sse;
    struct buf joined; /* an event with halves of characters joined */
    unsigned half;     /* of a character that the next event completes; or 0 */
    struct draft draft;
    bool reading, cancelled;
    bool nonsense; /* the answer is not a reply */
    bool events;   /* there was an event */
};

static char *join(const char *a, size_t n, const char *b)
{
    size_t size = n + strlen(b) + 1;
    char *text = mem_zalloc(size);

    snprintf(text, size, "%.*s%s", (int)n, a, b);
    return text;
}

static void call_free(struct endpoint_call *a)
{
    if (a->post)
        web_post_cancel(a->post);
    json_decref(a->request);
    free(a->betas_header);
    buf_done(&a->bytes);
    buf_done(&a->joined);
    sse_done(&a->sse);
    draft_done(&a->draft);
    free(a);
}

/* --- the end: exactly one of these --- */

static void give(struct endpoint_call *a)
{
    struct model_reply reply = {
        .input_tokens = a->draft.input_tokens,
        .output_tokens = a->draft.output_tokens,
        .cache_read = a->draft.cache_read,
        .cache_written = a->draft.cache_written,
        .cache_hour = a->draft.cache_hour,
        .stop_sequence = a->draft.stop_sequence,
        .name = a->draft.name,
    };

    if (a->tried)
        a->endpoint->fallbacks = a->fallbacks;
    a->reading = true; /* a cancel from inside on_piece() or on_end() does no harm */
    draft_tell_rest(&a->draft);
    if (a->cancelled)
        return call_free(a);
    reply.parts = draft_parts(&a->draft, &reply.stop);
    a->watcher.on_end(a->arg, &reply, NULL);
    json_decref(reply.parts);
    call_free(a);
}

static void fail(struct endpoint_call *a, struct model_failure *f, const char *what)
{
    failure_say(f, a->endpoint->label, a->endpoint->key, what);
    if (f->trouble == MODEL_NO_TOOLS && a->own_name)
        a->endpoint->model.text_only = true;
    a->reading = true;
    a->watcher.on_end(a->arg, NULL, f);
    call_free(a);
}

static void fail_with(struct endpoint_call *a, enum model_trouble trouble, int status,
                      const char *what)
{
    struct model_failure f = {.trouble = trouble, .status = status};

    fail(a, &f, what);
}

/* --- reading --- */

/* -1: read no more. */
static int on_event(void *arg, struct str data)
{
    struct endpoint_call *a = arg;
    json_t *event;

    if (str_is(data, "[DONE]")) {
        a->draft.ended = a->events;
        return -1;
    }
    data = surrogates_join(&a->joined, data, &a->half);
    event = json_load_limited(data, JSON_ALLOW_NUL);
    a->nonsense = !json_is_object(event) || a->endpoint->adapter->event(&a->draft, event) < 0;
    a->events = true;
    json_decref(event);
    return a->nonsense || a->cancelled || a->draft.ended || a->draft.trouble ? -1 : 0;
}

static void on_piece(void *arg, const struct model_piece *piece)
{
    struct endpoint_call *a = arg;

    if (!a->cancelled)
        a->watcher.on_piece(a->arg, piece);
}

static bool is_over(const struct endpoint_call *a)
{
    return a->nonsense || a->draft.ended || a->draft.trouble;
}

static enum form form_of(struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        if (!strchr(" \t\r\n", bytes.p[i]))
            return bytes.p[i] == '{' ? FORM_WHOLE : FORM_STREAM;
    return FORM_UNKNOWN;
}

static void read_bytes(struct endpoint_call *a, struct str bytes)
{
    struct err e;

    if (a->form == FORM_UNKNOWN)
        a->form = form_of(bytes);
    if (a->form == FORM_WHOLE)
        a->nonsense = buf_put(&a->bytes, bytes) < 0;
    else if (sse_feed(&a->sse, bytes, on_event, a, &e) < 0 && e.kind != ERR_NONE)
        a->nonsense = true;
}

static void judge(struct endpoint_call *a, int status, const char *why);

static void on_body(void *arg, int status, struct str bytes)
{
    struct endpoint_call *a = arg;
    size_t room = ERROR_MAX - (a->bytes.n < ERROR_MAX ? a->bytes.n : ERROR_MAX);

    if (status / 100 != 2) {
        if (buf_put(&a->bytes, (struct str){bytes.p, bytes.n < room ? bytes.n : room}) < 0)
            a->nonsense = true;
        return;
    }
    a->reading = true;
    read_bytes(a, bytes);
    a->reading = false;
    if (a->cancelled) {
        call_free(a);
    } else if (is_over(a)) {
        /* Some endpoints do not close the stream that they have ended. */
        web_post_release(a->post);
        a->post = NULL;
        judge(a, status, NULL);
    }
}

/* --- judging what came --- */

static void judge_error(struct endpoint_call *a, int status, uint64_t retry_ms,
                        const struct endpoint_error *p)
{
    struct model_failure f = {
        .trouble = trouble_of(status, p, a->with_tools), .status = status, .retry_ms = retry_ms};

    fail(a, &f, p->text);
}

static void read_whole(struct endpoint_call *a)
{
    struct str text = surrogates_join(&a->joined, buf_str(&a->bytes), &a->half);
    json_t *body = json_load_limited(text, JSON_ALLOW_NUL);

    a->reading = true;
    a->nonsense = !json_is_object(body) || a->endpoint->adapter->whole(&a->draft, body) < 0;
    a->reading = false;
    json_decref(body);
}

/* Ends the call with what has arrived. why: what cut the answer off, or NULL. */
static void judge(struct endpoint_call *a, int status, const char *why)
{
    static const char cut[] = "hung up before the end of its answer";
    bool begun = a->form == FORM_UNKNOWN || (a->form == FORM_STREAM && sse_is_one(&a->sse));

    if (!why && a->form == FORM_WHOLE && !a->nonsense)
        read_whole(a);
    if (a->cancelled)
        return call_free(a);
    if (a->draft.trouble) {
        struct endpoint_error p;

        endpoint_error_of_json(&p, a->draft.trouble);
        judge_error(a, p.status, 0, &p);
        endpoint_error_done(&p); /* the call is freed already */
    } else if (!a->nonsense && (a->draft.ended || (a->draft.has_stop && !why))) {
        give(a);
    } else if (!a->nonsense && (why || begun)) {
        fail_with(a, MODEL_BUSY, status, why ? why : cut);
    } else {
        fail_with(a, MODEL_NONSENSE, status, "answered something that is no reply");
    }
}

static void send_request(struct endpoint_call *a);

/* Whether the request can be sent again without a refused parameter. */
static bool fall_back(struct endpoint_call *a, const struct endpoint_error *p)
{
    const struct adapter *ad = a->endpoint->adapter;

    for (size_t i = 0; i < ad->fallback_count; i++) {
        const struct request_fallback *b = &ad->fallbacks[i];
        json_t *value = json_object_get(a->request, b->key);

        if (!value || (a->tried & IN(i)) || !endpoint_error_mentions(p, b->key))
            continue;
        a->tried |= IN(i);
        a->fallbacks = b->back ? a->fallbacks & ~(IN(i) >> 1) : a->fallbacks | IN(i);
        if (b->to)
            json_object_set(a->request, b->to, value);
        json_object_del(a->request, b->key);
        return true;
    }
    return false;
}

static void judge_refusal(struct endpoint_call *a, const struct web_post_end *end)
{
    struct endpoint_error p;
    bool again;

    endpoint_error_of_body(&p, buf_str(&a->bytes));
    again = (end->status == 400 || end->status == 422) &&
            trouble_of(end->status, &p, false) != MODEL_TOO_LONG && fall_back(a, &p);
    if (again) {
        buf_clear(&a->bytes);
        send_request(a);
    } else {
        judge_error(a, end->status, end->retry_ms, &p);
    }
    endpoint_error_done(&p);
}

static void on_end(void *arg, const struct web_post_end *end)
{
    struct endpoint_call *a = arg;

    a->post = NULL;
    if (end->flood) {
        fail_with(a, MODEL_NONSENSE, end->status, end->why);
    } else if (end->status / 100 == 3) {
        fail_with(a, MODEL_DENIED, end->status,
                  "it sends us elsewhere; set its url to where it is");
    } else if (end->status != 0 && end->status / 100 != 2) {
        judge_refusal(a, end);
    } else {
        a->reading = true;
        if (!end->why && a->form == FORM_STREAM)
            sse_finish(&a->sse, on_event, a);
        a->reading = false;
        judge(a, end->status, end->why);
    }
}

/* --- asking --- */

static void on_too_large(void *arg)
{
    struct endpoint_call *a = arg;

    if (a->cancelled)
        call_free(a);
    else
        fail_with(a, MODEL_TOO_LONG, 0, "is not sent a request of more than 64 MiB");
}

static void send_request(struct endpoint_call *a)
{
    static const struct web_post_watcher watcher = {on_body, on_end};
    struct endpoint *ep = a->endpoint;
    /* No Expect: a large body is sent at once. */
    const char *headers[7] = {"Content-Type: application/json",
                              "Accept: text/event-stream, application/json", "Expect:"};
    int64_t left_us = a->deadline_us - time_mono_us();
    size_t n = 3;
    struct web_post_spec spec = {.url = ep->url,
                                 .headers = headers,
                                 .proxy = ep->proxy,
                                 .ca_file = ep->ca_file,
                                 .wall_ms = left_us > 1000 ? (uint64_t)left_us / 1000 : 1};

    if (ep->key_header)
        headers[n++] = ep->key_header;
    if (a->betas_header)
        headers[n++] = a->betas_header;
    headers[n] = ep->adapter->header;
    spec.body = json_dumps(a->request, JSON_COMPACT);
    spec.body_n = spec.body ? strlen(spec.body) : 0;
    if (!spec.body || spec.body_n > REQUEST_MAX) {
        free(spec.body);
        a->reading = true; /* until on_too_large() */
        loop_later(ep->loop, on_too_large, a);
        return;
    }
    a->post = web_post_start(ep->web, &spec, &watcher, a);
}

static json_t *build_request(struct endpoint_call *a, const struct model_ask *ask)
{
    const struct endpoint *ep = a->endpoint;
    const struct adapter *ad = ep->adapter;
    AUTO_FREE char *name = ask->name.n > 0 ? mem_strndup(ask->name) : NULL;
    uint64_t most = ask->max_tokens ? ask->max_tokens : ep->max_tokens;
    struct model_ask asked = *ask;
    const struct question q = {
        .ask = &asked,
        .name = ep->name ? ep->name
                : name   ? name
                         : ep->label,
        .max_tokens = most ? most : ad->max_tokens,
        .sees_images = ep->model.sees_images,
    };
    json_t *request;

    if (ep->no_tools)
        asked.tools = NULL;
    request = ad->request(&q);

    for (size_t i = 0; i < ad->fallback_count; i++) {
        json_t *value =
            ep->fallbacks & IN(i) ? json_object_get(request, ad->fallbacks[i].key) : NULL;

        if (value && ad->fallbacks[i].to)
            json_object_set(request, ad->fallbacks[i].to, value);
        if (value)
            json_object_del(request, ad->fallbacks[i].key);
    }
    return request;
}

static struct model_call *endpoint_ask(struct model *m, const struct model_ask *ask,
                                       const struct model_watcher *w, void *arg)
{
    struct endpoint *ep = (struct endpoint *)m;
    struct endpoint_call *a = mem_zalloc(sizeof(*a));
    uint64_t least_ms = ask->wall_ms && ask->wall_ms < ep->wall_ms ? ask->wall_ms : ep->wall_ms;
    uint64_t wall_ms = least_ms < INT32_MAX ? least_ms : INT32_MAX;

    *a = (struct endpoint_call){
        .call.model = m,
        .watcher = *w,
        .arg = arg,
        .endpoint = ep,
        .fallbacks = ep->fallbacks,
        .with_tools = !ep->no_tools && json_array_size(ask->tools) > 0,
        .own_name = ep->name || ask->name.n == 0,
        .deadline_us = time_mono_us() + (int64_t)wall_ms * 1000,
    };
    buf_init(&a->bytes, WHOLE_MAX);
    buf_init(&a->joined, WHOLE_MAX);
    sse_init(&a->sse, EVENT_MAX);
    draft_init(&a->draft);
    if (w->on_piece) {
        a->draft.on_piece = on_piece;
        a->draft.arg = a;
    }
    a->request = build_request(a, ask);
    if (ep->adapter->betas_header && ask->betas)
        a->betas_header =
            join(ep->adapter->betas_header, strlen(ep->adapter->betas_header), ask->betas);
    send_request(a);
    return &a->call;
}

static void endpoint_cancel(struct model_call *c)
{
    struct endpoint_call *a = (struct endpoint_call *)c;

    if (a->post)
        web_post_cancel(take_ptr(&a->post));
    if (a->reading)
        a->cancelled = true;
    else
        call_free(a);
}

/* --- the endpoint --- */

static void endpoint_free(struct model *m)
{
    struct endpoint *ep = (struct endpoint *)m;
    char *owned[] = {ep->label, ep->url, ep->name, ep->proxy, ep->ca_file};

    if (ep->key_header)
        explicit_bzero(ep->key_header, strlen(ep->key_header));
    for (size_t i = 0; i < ABOUTS_MAX; i++) {
        about_free(ep->abouts[i].about);
        free(ep->abouts[i].name);
    }
    free(ep->key_header);
    for (size_t i = 0; i < COUNT(owned); i++)
        free(owned[i]);
    free(ep);
}

static char *copy(const char *text)
{
    return text && *text ? mem_strdup(text) : NULL;
}

/* People write the base URL with or without a slash or /v1 at its end. */
static char *url_of(const struct adapter *ad, const char *base)
{
    size_t n = strlen(base), v1 = strlen("/v1");

    while (n > 0 && base[n - 1] == '/')
        n--;
    if (strncmp(ad->path, "/v1/", 4) == 0 && n > v1 && memcmp(base + n - v1, "/v1", v1) == 0)
        n -= v1;
    return join(base, n, ad->path);
}

/* NULL: so many are being asked about that this one has no place. */
static struct about *about_of(struct endpoint *ep, struct str name)
{
    AUTO_FREE char *base = join(ep->url, strlen(ep->url) - strlen(ep->adapter->path), "");
    size_t at = ep->about_at;

    for (size_t i = 0; i < ABOUTS_MAX; i++)
        if (ep->abouts[i].about && str_is(name, ep->abouts[i].name))
            return ep->abouts[i].about;
    if (ep->abouts[at].about && about_is_asking(ep->abouts[at].about))
        return NULL;
    about_free(ep->abouts[at].about);
    free(ep->abouts[at].name);
    ep->abouts[at].name = mem_strndup(name);
    ep->abouts[at].about = about_new(&(struct about_spec){.adapter = ep->adapter,
                                                          .web = ep->web,
                                                          .base = base,
                                                          .name = ep->abouts[at].name,
                                                          .key_header = ep->key_header,
                                                          .proxy = ep->proxy,
                                                          .ca_file = ep->ca_file});
    ep->about_at = (at + 1) % ABOUTS_MAX;
    return ep->abouts[at].about;
}

static void endpoint_about(struct model *m, struct str name, model_about_fn *fn, void *arg)
{
    struct endpoint *ep = (struct endpoint *)m;
    struct about *a =
        about_of(ep, m->many && name.n > 0 ? name : str_of(ep->name ? ep->name : ep->label));
    json_t *nothing;

    if (a)
        return about_ask(a, fn, arg);
    nothing = json_object();
    fn(arg, nothing);
    json_decref(nothing);
}

struct model *endpoint_new(struct loop *l, struct web *w, const struct model_config *config)
{
    static const struct model_ops ops = {endpoint_ask, endpoint_cancel, endpoint_free,
                                         endpoint_about};
    static const struct adapter *const adapters[] = {
        [MODEL_OPENAI] = &adapter_openai, [MODEL_ANTHROPIC] = &adapter_anthropic};
    struct endpoint *ep = mem_zalloc(sizeof(*ep));
    const struct adapter *ad = adapters[config->api];

    *ep = (struct endpoint){
        .adapter = ad,
        .loop = l,
        .web = w,
        .label = mem_strdup(config->label),
        .url = url_of(ad, config->url),
        .name = copy(config->name),
        .proxy = copy(config->proxy),
        .ca_file = copy(config->ca_file),
        .wall_ms = config->timeout_ms ? config->timeout_ms : WALL_MS,
        .max_tokens = config->max_tokens,
        .no_tools = config->text_only,
    };
    if (config->key && *config->key) {
        ep->key_header = join(ad->key_header, strlen(ad->key_header), config->key);
        ep->key = ep->key_header + strlen(ad->key_header);
    }
    ep->model = (struct model){.ops = &ops,
                               .label = ep->label,
                               .sees_images = config->images,
                               .takes_pdf = ad->pdf,
                               .many = !ep->name,
                               .options = ad->options,
                               .text_only = config->text_only};
    return &ep->model;
}
