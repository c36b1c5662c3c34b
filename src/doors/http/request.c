/* A request: what came in, who holds it, and when it ends. */
#include "doors/http/http_mhd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct request *request_new(struct http *h, const char *target)
{
    struct request *r = mem_zalloc(sizeof(*r));

    r->http = h;
    r->target = mem_strdup(target);
    r->began_us = time_mono_us();
    id_make(r->caller.request, "req_");
    h->requests++;
    return r;
}

static void request_free(struct request *r)
{
    struct http *h = r->http;

    while (r->keeps) {
        struct keep *k = r->keeps;
        r->keeps = k->next;
        k->fn(k->p);
        free(k);
    }
    body_free(r);
    outflow_free(r->stream);
    free(r->base_url);
    json_decref(r->json);
    for (size_t i = 0; i < r->upload_count; i++) {
        blob_free(r->uploads[i].blob);
        free((char *)r->uploads[i].field.p);
        free((char *)r->uploads[i].name.p);
        free((char *)r->uploads[i].mime.p);
        free((char *)r->uploads[i].text.p);
    }
    free(r->uploads);
    for (size_t i = 0; i < r->answer_header_count; i++) {
        free((char *)r->answer_headers[i].name.p);
        free((char *)r->answer_headers[i].value.p);
    }
    free(r->text);
    free(r->target);
    free(r);
    h->requests--;
    http_release(h);
}

void request_settle(struct request *r)
{
    bool handler = r->stage == STAGE_HANDLER || r->stage == STAGE_STREAM;

    if (!r->mhd && !handler && r->pins == 0)
        request_free(r);
}

/* --- the head --- */

struct copy {
    struct request *r;
    const char *at; /* where the next line of the head must begin; NULL: it did not */
    size_t bytes;
    char *to; /* NULL: only counts */
};

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                 size_t name_n, const char *value, size_t value_n)
{
    struct copy *c = arg;
    struct request *r = c->r;

    (void)kind;
    if (!c->to) {
        c->bytes += name_n + value_n + 2;
        c->at = c->at == name ? value + value_n + 2 : NULL;
        return ++r->header_count <= HEADERS_MAX ? MHD_YES : MHD_NO;
    }
    struct http_pair *p = &r->headers[r->header_count++];
    p->name = (struct str){c->to, name_n};
    memcpy(c->to, name, name_n);
    c->to += name_n + 1;
    p->value = (struct str){c->to, value_n};
    memcpy(c->to, value, value_n);
    c->to += value_n + 1;
    while (p->value.n && (c->to[-2] == ' ' || c->to[-2] == '\t')) /* blanks at its end */
        *(--c->to - 1) = '\0', p->value.n--;
    return MHD_YES;
}

/*
 * The library is lenient where a proxy in front of us may not be, and what two parsers read
 * differently is how requests are smuggled: a bare LF ends a line for it, a NUL byte ends a value
 * or the whole head, a line that begins with a blank is glued to the one before. Its views of the
 * head give this away. Where each line ends with CR LF, the next begins two bytes after the end of
 * the value before it; so a head without gaps has been read the one way there is. Newer versions
 * refuse all of this themselves when told to (see listener.c), and leave out blanks.
 */
static bool head_is_tight(struct request *r, struct copy *c, const char *method, const char *url,
                          const char *version)
{
    const union MHD_ConnectionInfo *size;

    if (!MHD_IS_STRICT &&
        (method + strlen(method) + 1 != url || url + strlen(r->target) + 1 != version))
        return false;
    c->at = version + strlen(version) + 2;
    MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, on_header, c);
    if (MHD_IS_STRICT)
        return true;
    size = MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return r->header_count > HEADERS_MAX ||
           (size && c->at && c->at + 2 == method + size->header_size);
}

/* Copies, as a request may outlive its connection. One block holds all texts: the headers, and
 * later the path's parameters and the query, decoded. */
bool request_head(struct request *r, const char *method, const char *url, const char *version)
{
    struct copy c = {.r = r};
    bool tight = head_is_tight(r, &c, method, url, version);
    size_t count = r->header_count;

    r->header_count = 0;
    if (!str_to_cstr(str_of(method), r->method, sizeof(r->method)))
        r->method[0] = '\0';
    r->head_only = strcmp(r->method, "HEAD") == 0;
    if (count > HEADERS_MAX) {
        answer_fail(r, 431, "too_large", NULL, "there are more than %d headers", HEADERS_MAX);
        return false;
    }
    if (!tight) {
        answer_fail(r, 400, "invalid_request", NULL,
                    "the head of the request holds a NUL byte, a line without CR LF, or one that "
                    "begins with a blank");
        return false;
    }
    r->text = mem_zalloc(c.bytes + 2 * strlen(r->target) + PARAMS_MAX + (size_t)2 * QUERY_MAX);
    c.to = r->text;
    MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, on_header, &c);
    r->text_end = c.to;
    return true;
}

/* --- suspended, resumed, over --- */

void request_seek(struct request *r)
{
    r->seeking = true;
    r->late = r->has_body;
    r->pins++;
}

void request_suspend(struct request *r)
{
    assert(r->mhd && !r->suspended);
    r->suspended = true;
    conn_expect(r->conn, 0); /* it waits for us */
    MHD_suspend_connection(r->mhd);
}

void request_resume(struct request *r)
{
    assert(r->mhd && r->suspended);
    r->suspended = false;
    if (r->stage == STAGE_BODY)
        conn_expect(r->conn, r->http->config.header_ms);
    MHD_resume_connection(r->mhd);
    listener_kick(r->conn->listener);
}

static void on_later(void *arg)
{
    struct request *r = arg;

    r->later = false;
    if (r->gone_due) {
        loop_fn *fn = r->on_gone;
        r->gone_due = false;
        r->on_gone = NULL;
        if (fn)
            fn(r->gone_arg);
    }
    if (r->low_due) {
        r->low_due = false;
        stream_tell_low(r);
    }
    r->pins--;
    request_settle(r);
}

void request_later(struct request *r)
{
    if (r->later)
        return;
    r->later = true;
    r->pins++;
    loop_later(r->http->loop, on_later, r);
}

/* For as long as there is the connection: most have many requests, and to begin and end a watch for
 * each would be two system calls. */
static void on_hangup(void *arg)
{
    struct http_conn *c = arg;
    struct request *r = c->request;

    c->gone = true;
    if (!r || !r->on_gone)
        return;
    r->gone_due = true;
    request_later(r);
}

void request_over(struct request *r, bool whole)
{
    bool early = r->stage == STAGE_HANDLER || r->stage == STAGE_STREAM || !whole;

    forward_gone(r);
    channel_up_gone(r);
    r->mhd = NULL;
    r->conn = NULL;
    r->suspended = false;
    r->sent = !early;
    if (early && r->on_gone && r->stage != STAGE_ANSWERED) {
        r->gone_due = true;
        request_later(r);
    }
    if (r->stage == STAGE_STREAM)
        stream_gone(r);
    request_settle(r);
}

/* A client that closes its socket and one that only will send no more look the same until we
 * write. Common clients do not half-close, and code that runs for nobody costs more than the
 * answer of one that does: both count as gone. */
void request_on_gone(struct request *r, loop_fn *fn, void *arg)
{
    assert(r->stage == STAGE_HANDLER || r->stage == STAGE_STREAM);
    r->on_gone = fn;
    r->gone_arg = arg;
    if (r->mhd && !r->conn->hangup)
        r->conn->hangup = watch_new_hangup(r->http->loop, r->conn->fd, on_hangup, r->conn);
    if (!r->mhd || r->conn->gone) {
        r->gone_due = true;
        request_later(r);
    }
}

bool request_is_sent(struct request *r)
{
    return r->sent;
}

void request_drop(struct request *r)
{
    assert(r->stage == STAGE_HANDLER || r->stage == STAGE_STREAM);
    r->on_gone = NULL;
    if (r->stage == STAGE_STREAM) {
        stream_cut(r);
        return;
    }
    r->refused = true; /* the library asks again, and is told to close */
    if (r->suspended)
        request_resume(r);
    answer_done(r);
}

/* --- what a handler asks --- */

static struct str pair_value(const struct http_pair *pairs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(pairs[i].name, name))
            return pairs[i].value;
    return (struct str){0};
}

void *request_ctx(struct request *r)
{
    return r->door->ctx;
}

struct service *request_service(struct request *r)
{
    return r->http->config.service;
}

enum http_method request_method(struct request *r)
{
    return r->route->method;
}

const char *request_route_path(struct request *r)
{
    return r->route->path;
}

const struct caller *request_caller(struct request *r)
{
    return &r->caller;
}

struct str request_path(struct request *r, const char *name)
{
    return pair_value(r->params, r->param_count, name);
}

struct str request_query(struct request *r, const char *name)
{
    return pair_value(r->queries, r->query_count, name);
}

struct str request_query_next(struct request *r, const char *name, size_t *at)
{
    while (*at < r->query_count) {
        const struct http_pair *p = &r->queries[(*at)++];
        if (str_is(p->name, name))
            return p->value;
    }
    return (struct str){0};
}

struct str request_header(struct request *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (str_same(r->headers[i].name, name))
            return r->headers[i].value;
    return (struct str){0};
}

/* As it was when the connection was made. */
bool request_peer(struct request *r, uid_t *ret)
{
    const struct http *h = r->http;
    int domain;
    socklen_t n = sizeof(domain);

    return getsockopt(r->conn->fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
           h->config.peer && h->config.peer(h->config.peer_arg, r->conn->fd, ret);
}

const char *request_base_url(struct request *r)
{
    struct str host = request_header(r, "host"), known = str_of(r->http->config.public_url);

    while (known.n && known.p[known.n - 1] == '/')
        known.n--;
    if (host.n == 0 && known.n == 0)
        return "";
    if (!r->base_url && known.n)
        r->base_url = mem_strndup(known);
    else if (!r->base_url &&
             asprintf(&r->base_url, "%s://%.*s", r->http->tls_cert ? "https" : "http", (int)host.n,
                      host.p) < 0)
        abort();
    return r->base_url;
}

json_t *request_json(struct request *r)
{
    return r->json;
}

struct page request_page(struct request *r)
{
    struct str limit = request_query(r, "limit"), after = request_query(r, "after");
    struct page page = {.after = after.n ? after.p : NULL, .limit = 100};

    if (limit.n)
        page.limit = strtoul(limit.p, NULL, 10);
    if (page.limit < 1 || page.limit > 1000) /* a route's table refuses these already */
        page.limit = 1000;
    return page;
}

bool request_is_head(struct request *r)
{
    return r->head_only;
}

struct upload *request_uploads(struct request *r, size_t *ret_count)
{
    *ret_count = r->upload_count;
    return r->uploads;
}

void request_keep(struct request *r, void (*fn)(void *), void *p)
{
    struct keep *k = mem_zalloc(sizeof(*k));

    *k = (struct keep){r->keeps, fn, p};
    r->keeps = k;
}
