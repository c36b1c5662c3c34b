/*
 * Decides whether a request may come in: the form of its head, Host, Origin, the key.
 *
 * While there is no key, everybody who can connect is let in, and a web page can make the browser
 * of its reader connect. Two checks keep web pages out. A page that has pointed its own name at
 * 127.0.0.1 sends that name as Host, which is not one of ours. A page of another origin sends that
 * origin as Origin: a browser leaves Origin out of nothing but a plain GET, whose answer the page
 * cannot read.
 *
 * Where keys are needed any Host will do, because a page has no key to send. Origin is checked in
 * any case: the operator decides which pages may use the service, not the author of a page that
 * holds a key.
 */
#include "doors/http/http_int.h"

#include <stdlib.h>

#define REFUSE(r, status, type, ...) (answer_fail((r), (status), (type), NULL, __VA_ARGS__), false)

/* --- the head --- */

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return s.n > 0;
}

static bool is_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return true;
}

static size_t count_headers(const struct request *r, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < r->header_count; i++)
        count += str_same(r->headers[i].name, name);
    return count;
}

/* Where a message ends must be said once, and in one way: two parsers that differ on it are how
 * requests are smuggled past a proxy. */
static bool framing(struct request *r)
{
    struct str length = request_header(r, "content-length");
    struct str coding = request_header(r, "transfer-encoding");

    if (coding.p && length.p)
        return REFUSE(r, 400, "invalid_request",
                      "Content-Length and Transfer-Encoding exclude each other");
    if (coding.p && !str_same(coding, "chunked"))
        return REFUSE(r, 400, "invalid_request", "the only Transfer-Encoding known is chunked");
    r->chunked = coding.p != NULL;
    r->body_length = coding.p ? UINT64_MAX : length.p ? strtoull(length.p, NULL, 10) : 0;
    r->has_body = r->body_length > 0;
    return true;
}

bool guard_head(struct request *r)
{
    static const char *const once[] = {"host",         "content-length", "transfer-encoding",
                                       "content-type", "authorization",  "x-api-key",
                                       "x-ms-apikey",  "origin",         "mcp-session-id",
                                       "mcp-method",   "mcp-name",       "mcp-protocol-version"};
    struct err e;

    for (size_t i = 0; i < r->header_count; i++)
        if (!is_name(r->headers[i].name) || !is_value(r->headers[i].value))
            return REFUSE(r, 400, "invalid_request", "a header is malformed");
    for (size_t i = 0; i < COUNT(once); i++)
        if (count_headers(r, once[i]) > 1)
            return REFUSE(r, 400, "invalid_request", "the header %s is given twice", once[i]);
    if (!framing(r))
        return false;
    if (strlen(r->target) > TARGET_MAX)
        return REFUSE(r, 414, "too_large", "the path and query have more than %zu bytes",
                      TARGET_MAX);
    if (!*r->method || !is_name(str_of(r->method)))
        return REFUSE(r, 400, "invalid_request", "there is no such method");
    if (target_split(str_of(r->target), &r->path, &r->query, &e) < 0)
        return REFUSE(r, 400, "invalid_request", "%s", e.text);
    return true;
}

/* --- Host --- */

/* Whether s is an item of a comma-separated list. */
static bool listed(const char *list, struct str s)
{
    struct str rest = list ? str_of(list) : (struct str){0}, one;
    char item[256];

    while (str_next(&rest, ',', &one))
        if (one.n && str_to_cstr(one, item, sizeof(item)) && str_same(s, item))
            return true;
    return false;
}

/* Without its port. */
static struct str host_name(struct str host)
{
    const char *bracket = host.n && host.p[0] == '[' ? memchr(host.p, ']', host.n) : NULL;
    const char *colon;

    if (bracket)
        return (struct str){host.p, (size_t)(bracket - host.p) + 1};
    colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    return (struct str){host.p, colon ? (size_t)(colon - host.p) : host.n};
}

static bool host_is_valid(struct str host)
{
    struct str name = host_name(host), port = {host.p + name.n, host.n - name.n};

    if (name.n == 0 || name.n > 255 || port.n == 1 || port.n > 6 || (port.n && *port.p != ':'))
        return false;
    for (size_t i = 1; i < port.n; i++)
        if (port.p[i] < '0' || port.p[i] > '9')
            return false;
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || strchr("/\\?#@,", name.p[i]))
            return false;
    return true;
}

/* A proxy on this machine makes every stranger come from loopback. What one says of where a request
 * came from is never believed; that it says so tells that it came from elsewhere. */
static bool is_forwarded(const struct request *r)
{
    static const char *const names[] = {
        "forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"};
    static const struct str family = STR("x-forwarded-");

    for (size_t i = 0; i < r->header_count; i++) {
        struct str name = r->headers[i].name;
        for (size_t k = 0; k < COUNT(names); k++)
            if (str_same(name, names[k]))
                return true;
        if (name.n > family.n && str_same((struct str){name.p, family.n}, family.p))
            return true;
    }
    return false;
}

static bool is_local(const struct request *r)
{
    return r->conn->listener->local && !is_forwarded(r);
}

/* Whether no key is needed while there is none: from this machine; or the operator has named the
 * Host that a proxy lets in. */
static bool needs_no_key(struct request *r)
{
    const char *hosts = r->http->hosts;
    struct str host = request_header(r, "host");

    return is_local(r) ||
           (r->conn->listener->local && (listed(hosts, host) || listed(hosts, host_name(host))));
}

bool guard_host(struct request *r)
{
    struct http *h = r->http;
    struct str host = request_header(r, "host"), name;

    if (r->from_peer) /* which has checked it */
        return true;
    if (!host.p || !host_is_valid(host))
        return REFUSE(r, 400, "invalid_request", "a valid Host header is needed");
    if (!r->conn->listener->local || service_has_keys(h->config.service))
        return true;
    name = host_name(host);
    if (str_same(name, "localhost") || str_is(name, "127.0.0.1") || str_is(name, "[::1]") ||
        listed(h->hosts, name) || listed(h->hosts, host))
        return true;
    return REFUSE(r, 403, "forbidden",
                  "this Host is not served without a key: use localhost, or have it added to the "
                  "hosts of the configuration");
}

/* --- Origin --- */

static bool same_origin(struct request *r, struct str origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct str host = request_header(r, "host");
    char text[300];

    if (!str_to_cstr(host, text, sizeof(text)))
        return false;
    for (size_t i = 0; i < COUNT(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (origin.n > n && str_same((struct str){origin.p, n}, schemes[i]) &&
            str_same((struct str){origin.p + n, origin.n - n}, text))
            return true;
    }
    return false;
}

/* An image, a script or a frame of another site. Its request has no Origin, and where no key is
 * needed nothing else tells it from the user's own. */
static bool is_from_a_page(struct request *r)
{
    return !service_has_keys(r->http->config.service) &&
           str_same(request_header(r, "sec-fetch-site"), "cross-site") &&
           !str_same(request_header(r, "sec-fetch-dest"), "document");
}

bool guard_origin(struct request *r)
{
    struct str origin = request_header(r, "origin");

    if (r->from_peer)
        return true;
    if (!origin.p && is_from_a_page(r))
        return REFUSE(r, 403, "forbidden", "pages of other sites may not use this service");
    if (!origin.p || same_origin(r, origin) || listed(r->http->origins, origin))
        return true;
    return REFUSE(r, 403, "forbidden",
                  "pages of this origin may not use the service: have it added to the origins of "
                  "the configuration");
}

struct str guard_cors(struct request *r)
{
    struct str origin = request_header(r, "origin");

    return origin.p && listed(r->http->origins, origin) ? origin : (struct str){0};
}

/* --- the key --- */

static struct str query_secret(struct request *r)
{
    struct str key = request_query(r, "api_key");

    return key.p ? key : request_query(r, "token");
}

struct str request_secret(struct request *r)
{
    struct str bearer = request_header(r, "authorization");
    struct str key = request_header(r, "x-api-key");

    if (bearer.n > 7 && str_same((struct str){bearer.p, 7}, "Bearer "))
        return str_trim(str_from(bearer, 7));
    if (key.n == 0) /* an empty one is none */
        key = request_header(r, "x-ms-apikey");
    return key.n > 0 || !(r->route->flags & ROUTE_QUERY_KEY) ? key : query_secret(r);
}

/* Whether what let a request in still does. A trusted source has no key; its connection goes when
 * the server does. */
bool guard_stands(struct request *r)
{
    const struct caller *c = &r->caller;

    if (c->until_ms && c->until_ms <= time_now_ms())
        return false;
    return !r->keyed || service_key_stands(r->http->config.service, c->tenant, c->key);
}

/* What the route is, against the limits of the key. The answer of an open route needs no key. */
static bool guard_scope(struct request *r, const struct caller *caller)
{
    struct service *sv = r->http->config.service;
    bool reads = r->route->method == HTTP_GET || (r->route->flags & ROUTE_READS);
    const char *door = r->door->name;
    struct err e;

    if (!service_is_limited(sv, caller))
        return true;
    if (r->door->part)
        door = r->door->part(r, &reads);
    if (service_may(sv, caller, door, reads, &e) == 0)
        return true;
    return REFUSE(r, 403, "forbidden", "%s", e.text);
}

/* It may have been made a moment ago. */
static bool seek_key(struct request *r, done_fn *on_sought)
{
    if (r->sought_key ||
        !service_key_seek(r->http->config.service, request_secret(r), on_sought, r))
        return false;
    r->sought_key = true;
    request_seek(r);
    return true;
}

/* The one place where a request gets its tenant. */
bool guard_key(struct request *r, done_fn *on_sought)
{
    struct caller caller = {0};
    bool keyed = r->keyed,
         open = (r->route->flags & ROUTE_OPEN) || ((r->route->flags & ROUTE_LOCAL) && is_local(r));

    int known = r->from_peer                 ? 1
                : open || !r->door->identify ? 0
                                             : r->door->identify(r, r->door->identify_arg, &caller);

    if (r->from_peer)
        caller = r->caller;
    if (known < 0)
        return false;
    if (!open && !known &&
        !service_authorise(r->http->config.service, request_secret(r), needs_no_key(r), &caller)) {
        if (seek_key(r, on_sought))
            return false;
        answer_header(r, "www-authenticate", r->door->challenge ? r->door->challenge : "Bearer");
        return REFUSE(r, 401, "unauthorized",
                      "a valid key is needed: Authorization: Bearer KEY, or x-api-key: KEY");
    }
    if (!open && !guard_scope(r, &caller))
        return false;
    if ((r->route->flags & ROUTE_ADMIN) && !caller.admin)
        return REFUSE(r, 403, "forbidden", "this needs the key of an administrator");
    if ((r->route->flags & ROUTE_NODES) && !r->from_peer)
        return REFUSE(r, 404, "not_found", "this is for other nodes of the server alone");
    memcpy(caller.request, r->caller.request, sizeof(caller.request));
    caller.door = r->door->name;
    r->caller = caller;
    r->keyed = r->from_peer ? keyed : !open && (!known || *caller.key);
    return true;
}
