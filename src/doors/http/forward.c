/*
 * A request for a tenant that lives on another node goes there whole, and the answer comes back:
 * for every door in the same way, as the tenant is all that decides (service/nodes.c).
 *
 * It is let in here first. What this has found, who asks above all, goes along in the header
 * retort-peer, which is signed with the secret that all nodes share, together with the method, the
 * target and the Host. The other node checks the signature in place of Host, Origin and the key,
 * and never forwards what has come with one: there is one hop at most. Where nodes have
 * certificates (node-cert), it must have come over a connection with one, too. A client's own
 * header of this name has no such signature, and is refused.
 *
 * The body goes up as it comes, and no faster than the other node takes it; the answer comes down
 * no faster than the client reads. A client that leaves takes its request with it. An answer that
 * comes before the whole body has been read waits, as the library takes none in the middle of a
 * body; the rest of the body is then read and dropped.
 */
#include "doors/http/http_mhd.h"
#include "peer/peer.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADER       PEER_HEADER
#define ELSEWHERE    "retort-home"    /* of an answer: the tenant does not live there */
#define REFUSED      "retort-refused" /* likewise: who sent it is no node of ours, it says */
#define MAC_BYTES    32
#define VALUE_MAX    PEER_VALUE_MAX
#define SKEW_S       300  /* the clocks of two nodes differ by less */
#define LOOK_MS      1000 /* whether the other node is still there */
#define HEADER_LINES (HEADERS_MAX + 4)

struct forward {
    struct request *r;      /* held by a pin */
    struct peer_call *call; /* NULL: it has ended */
    struct timer *look;
    char url[512];
    bool has_head, done; /* done: the answer is whole */
    bool sent;           /* it may have begun to work on it */
    bool answering;      /* it goes to the client */
    bool gone;           /* the client */
    int status;
    const char *why; /* static: what went wrong */
};

/* --- who sends it --- */

static void mac_of(const struct http *h, const char *method, const char *target, struct str host,
                   struct str claims, char ret[2 * MAC_BYTES + 1])
{
    AUTO(buf_done) struct buf b = BUF(64 * KiB);
    uint8_t mac[MAC_BYTES];
    int rc;

    buf_printf(&b, "%s\n%s\n%.*s\n%.*s", method, target, (int)host.n, host.p, (int)claims.n,
               claims.p);
    rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, h->config.peer_secret, PEER_SECRET_BYTES, b.p, b.n,
                          mac);
    assert(rc == 0 && !b.full);
    for (size_t i = 0; i < MAC_BYTES; i++)
        snprintf(ret + 2 * i, 3, "%02x", mac[i]);
}

/* "time;keyed;admin;approver;until;request;key;tenant;mac". A tenant's name may hold anything but
 * control characters, so it is last and in hex. */
void forward_sign(const struct http *h, const char *method, const char *target, struct str host,
                  const struct caller *c, bool keyed, char ret[PEER_VALUE_MAX])
{
    char mac[2 * MAC_BYTES + 1], tenant[2 * sizeof(c->tenant) + 1] = "";
    int n;

    for (size_t i = 0; c->tenant[i]; i++)
        snprintf(tenant + 2 * i, 3, "%02x", (unsigned char)c->tenant[i]);
    n = snprintf(ret, VALUE_MAX, "%lld;%d;%d;%d;%lld;%s;%s;%s", (long long)(time_now_ms() / 1000),
                 keyed, c->admin, c->approver, (long long)c->until_ms, c->request, c->key, tenant);
    mac_of(h, method, target, host, (struct str){ret, (size_t)n}, mac);
    snprintf(ret + n, VALUE_MAX - (size_t)n, ";%s", mac);
}

static bool take_tenant(struct str hex, char *ret, size_t size)
{
    if (hex.n % 2 || hex.n / 2 >= size)
        return false;
    for (size_t i = 0; i < hex.n / 2; i++) {
        char two[3] = {hex.p[2 * i], hex.p[2 * i + 1], '\0'};
        ret[i] = (char)strtoul(two, NULL, 16);
    }
    ret[hex.n / 2] = '\0';
    return true;
}

/* Only after the signature is known to be good: then all of it is ours. */
static bool take_claims(struct request *r, struct str claims)
{
    struct str field[8];
    struct caller c = {0};

    for (size_t i = 0; i < COUNT(field); i++)
        if (!str_next(&claims, ';', &field[i]))
            return false;
    c.admin = str_is(field[2], "1");
    c.approver = str_is(field[3], "1");
    c.until_ms = strtoll(field[4].p, NULL, 10);
    if (!str_to_cstr(field[5], c.request, sizeof(c.request)) ||
        !str_to_cstr(field[6], c.key, sizeof(c.key)) ||
        !take_tenant(field[7], c.tenant, sizeof(c.tenant)))
        return false;
    r->caller = c;
    r->keyed = str_is(field[1], "1");
    r->from_peer = true;
    return true;
}

bool forward_take(struct request *r)
{
    struct str value = request_header(r, HEADER);
    const size_t tail = (size_t)2 * MAC_BYTES + 1;
    struct str claims = {value.p, value.n > tail ? value.n - tail : 0};
    char mac[2 * MAC_BYTES + 1];

    if (!value.p)
        return true;
    if (r->http->peers && claims.n) {
        int64_t sent_s = strtoll(claims.p, NULL, 10), skew_s = time_now_ms() / 1000 - sent_s;
        mac_of(r->http, r->method, r->target, request_header(r, "host"), claims, mac);
        if (peer_is_certified(r) && claims.p[claims.n] == ';' &&
            gnutls_memcmp(mac, claims.p + claims.n + 1, tail - 1) == 0 && skew_s < SKEW_S &&
            skew_s > -SKEW_S && take_claims(r, claims))
            return true;
    }
    answer_header(r, REFUSED, "refused");
    answer_fail(r, 403, "forbidden", NULL, "the header " HEADER " is not a node's of ours");
    return false;
}

/* --- the answer, back to the client --- */

/* Not those of one connection, and not those that every answer of ours gets anyway. */
static bool is_passed(struct request *r, const char *name)
{
    static const char *const not [] = {"connection",
                                       "keep-alive",
                                       "transfer-encoding",
                                       "content-length",
                                       "date",
                                       "trailer",
                                       "x-request-id",
                                       "x-content-type-options",
                                       "vary",
                                       "access-control-allow-origin",
                                       "access-control-expose-headers",
                                       "x-correlation-id",
                                       ELSEWHERE};

    for (size_t i = 0; i < COUNT(not ); i++)
        if (str_same(str_of(name), not [i]))
            return false;
    return !r->door->id_header || !str_same(str_of(name), r->door->id_header);
}

static void copy_headers(struct request *r, struct peer_call *call, struct MHD_Response *resp)
{
    const char *name, *value;
    void *at = NULL;

    while (peer_call_header(call, &at, &name, &value))
        if (str_same(str_of(name), "retry-after"))
            answer_header(r, "retry-after", value);
        else if (is_passed(r, name))
            (void)!MHD_add_response_header(resp, name, value);
}

static void on_hold(void *arg, bool held)
{
    struct forward *f = arg;

    if (f->call)
        peer_call_hold(f->call, held);
}

static void forward_free(struct forward *f)
{
    struct request *r = f->r;

    if (f->call)
        peer_call_cancel(f->call);
    timer_free(f->look);
    r->forward = NULL;
    free(f);
    r->pins--;
    request_settle(r);
}

/* At its end, one way or the other, when the whole request has been read. */
static void finish(struct forward *f)
{
    struct request *r = f->r;

    if (f->answering && f->done)
        answer_stream_end(r);
    else if (f->answering || f->gone)
        request_drop(r);
    else if (!f->sent || r->head_only || strcmp(r->method, "GET") == 0) {
        answer_header(r, "retry-after", "1");
        answer_fail(r, 503, "unavailable", NULL, "the node of this tenant %s", f->why);
    } else {
        answer_fail(
            r, 502, "unavailable", NULL,
            "the node of this tenant %s, and whether it has done this is not known: look before "
            "you send it again",
            f->why);
    }
    forward_free(f);
}

/* The request has been read to its end, and the head of the answer is there. */
static void begin_answer(struct forward *f)
{
    struct request *r = f->r;
    struct MHD_Response *resp = stream_response(r, f->status, peer_call_length(f->call));

    f->answering = true;
    copy_headers(r, f->call, resp);
    stream_begin(r, f->status, resp);
    answer_stream_on_hold(r, on_hold, f);
    peer_call_hold(f->call, false);
}

static void on_client_gone(void *arg)
{
    struct forward *f = arg;

    f->gone = true;
    finish(f);
}

static void look_on(struct forward *f)
{
    struct request *r = f->r;

    if (r->stage != STAGE_HANDLER)
        return;
    if (f->has_head && !f->answering)
        begin_answer(f);
    else if (!f->has_head && f->why)
        finish(f);
}

/* --- from the other node --- */

/* Of a body whose end is awaited. */
static void read_on(struct request *r)
{
    if (r->mhd && r->suspended && r->stage == STAGE_BODY)
        request_resume(r);
}

static void fail(struct forward *f, const char *why)
{
    f->why = why;
    if (f->answering)
        return finish(f);
    f->has_head = false; /* of an answer that nobody will see */
    read_on(f->r);
    look_on(f);
}

static bool has_header(struct peer_call *call, const char *wanted)
{
    const char *name, *value;
    void *at = NULL;

    while (peer_call_header(call, &at, &name, &value))
        if (str_same(str_of(name), wanted))
            return true;
    return false;
}

/* Nodes that do not know each other are the operator's to mend, and nothing that the client did. */
static void on_refused(struct forward *f)
{
    log_warn("%s does not take this node for one of its own: do the secrets and certificates of "
             "nodes belong together?",
             f->url);
    peer_call_cancel(take_ptr(&f->call));
    fail(f, "does not take this one for a node of ours");
}

static void on_head(void *arg, int status)
{
    struct forward *f = arg;

    if (has_header(f->call, REFUSED))
        return on_refused(f);
    f->has_head = true;
    f->status = status;
    if (has_header(f->call, ELSEWHERE))
        service_home_forget(f->r->http->config.service, f->r->caller.tenant);
    peer_call_hold(f->call, true); /* until its head is on its way to the client */
    read_on(f->r);
    look_on(f);
}

static void on_body(void *arg, struct str bytes)
{
    struct forward *f = arg;

    answer_stream_put(f->r, bytes);
}

static void on_room(void *arg)
{
    read_on(((struct forward *)arg)->r);
}

static void on_end(void *arg, const char *why, bool sent)
{
    struct forward *f = arg;

    f->call = NULL;
    f->sent |= sent;
    if (why) {
        log_warn("%s %s", f->url, why);
        return fail(f, why);
    }
    f->done = true;
    finish(f); /* a call that is held does not end: the whole answer was put */
}

static const struct peer_watcher watcher = {on_head, on_body, on_room, on_end};

/* A node that was stopped answers nothing, and does not hang up either. */
static void on_look(void *arg)
{
    struct forward *f = arg;

    timer_set(f->look, LOOK_MS);
    if (!f->call || service_node_is_there(f->r->http->config.service, f->url))
        return;
    f->sent = true;
    peer_call_cancel(take_ptr(&f->call));
    fail(f, "is gone");
}

/* --- to the other node --- */

static bool goes_along(struct str name)
{
    static const char *const not [] = {"connection",
                                       "keep-alive",
                                       "te",
                                       "trailer",
                                       "upgrade",
                                       "transfer-encoding",
                                       "content-length",
                                       "expect",
                                       "accept",
                                       "proxy-connection",
                                       "proxy-authorization",
                                       HEADER};

    for (size_t i = 0; i < COUNT(not ); i++)
        if (str_same(name, not [i]))
            return false;
    return true;
}

static char *line(const char *name, struct str value)
{
    char *text = NULL;

    if (asprintf(&text, value.n ? "%s: %.*s" : "%s;", name, (int)value.n, value.p) < 0)
        abort();
    return text;
}

/* libcurl sends Accept and Expect by itself unless it is told not to. */
static size_t write_head(struct request *r, char *lines[HEADER_LINES])
{
    struct str accept = request_header(r, "accept");
    char value[VALUE_MAX], name[256];
    size_t n = 0;

    forward_sign(r->http, r->method, r->target, request_header(r, "host"), &r->caller, r->keyed,
                 value);
    lines[n++] = line(HEADER, str_of(value));
    lines[n++] = accept.n ? line("accept", accept) : mem_strdup("accept:");
    lines[n++] = mem_strdup("expect:");
    for (size_t i = 0; i < r->header_count; i++)
        if (goes_along(r->headers[i].name) && str_to_cstr(r->headers[i].name, name, sizeof(name)))
            lines[n++] = line(name, r->headers[i].value);
    lines[n] = NULL;
    return n;
}

void forward_begin(struct request *r, const char *url)
{
    struct forward *f = mem_zalloc(sizeof(*f));
    char *lines[HEADER_LINES];
    size_t count = write_head(r, lines);
    const struct peer_spec spec = {.url = url,
                                   .target = r->target,
                                   .method = r->method,
                                   .headers = (const char *const *)lines,
                                   .ca_file = r->http->config.peer_ca,
                                   .cert_file = r->http->config.peer_cert,
                                   .key_file = r->http->config.peer_key,
                                   .has_body = r->has_body,
                                   .body_length = r->body_length};

    f->r = r;
    r->forward = f;
    r->pins++;
    r->http->counts.forwarded++;
    snprintf(f->url, sizeof(f->url), "%s", url);
    f->look = timer_new(r->http->loop, on_look, f);
    timer_set(f->look, LOOK_MS);
    f->call = peer_call_start(r->http->peers, &spec, &watcher, f);
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
}

void forward_piece(struct request *r, struct str piece)
{
    struct forward *f = r->forward;

    r->body_seen += piece.n;
    conn_expect(r->conn, r->http->config.header_ms);
    /* The library brings the other chunks that it has read in any case. */
    if (f->call && !f->has_head && !peer_call_put(f->call, piece) && !r->suspended)
        request_suspend(r);
}

void forward_end(struct request *r)
{
    struct forward *f = r->forward;

    r->stage = STAGE_HANDLER;
    if (f->call && r->has_body)
        peer_call_end_body(f->call);
    request_on_gone(r, on_client_gone, f);
    look_on(f);
}

/* In the middle of its body, or refused there: else request_on_gone() tells. */
void forward_gone(struct request *r)
{
    struct forward *f = r->forward;

    if (!f || r->stage == STAGE_HANDLER || r->stage == STAGE_STREAM)
        return;
    r->pins++; /* the library still holds it */
    forward_free(f);
    r->pins--;
}

/* --- where to --- */

enum forward_to forward_where(struct request *r, const char **ret_url)
{
    struct service *sv = r->http->config.service;
    struct err e;

    if (!service_has_nodes(sv) || (r->route->flags & (ROUTE_OPEN | ROUTE_LOCAL | ROUTE_NODES)))
        return FORWARD_NOT;
    if (!service_lease_holds(sv, &e)) {
        answer_error(r, &e, NULL);
        return FORWARD_ANSWERED;
    }
    switch (service_home(sv, r->caller.tenant, ret_url)) {
    case HOME_HERE:
        return FORWARD_NOT;
    case HOME_UNKNOWN:
        break;
    case HOME_ELSEWHERE:
        if (!r->from_peer && *ret_url)
            return FORWARD_TO;
        if (!r->sought)
            break;
        if (r->from_peer)
            answer_header(r, ELSEWHERE, "elsewhere");
        answer_header(r, "retry-after", "1");
        answer_fail(r, 503, "unavailable", NULL, "this tenant has just moved to another node");
        return FORWARD_ANSWERED;
    }
    if (!r->sought)
        return FORWARD_SEEK;
    answer_header(r, "retry-after", "1");
    answer_fail(r, 503, "unavailable", NULL, "this tenant is just moving to another node");
    return FORWARD_ANSWERED;
}
