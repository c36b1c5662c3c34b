/*
 * The life of a request.
 *
 * The library calls http_on_request() when the head is there, once for each piece of the
 * body, and once when all of it is. A request that has a body is let in by its head,
 * before a byte of the body is read; one that has none is let in at the end, since an
 * answer before the end costs it its connection.
 */
#include "doors/http/http_mhd.h"

#include <stdio.h>

/* --- route --- */

static const char *const methods[] = {
    [HTTP_GET] = "GET",       [HTTP_PUT] = "PUT",     [HTTP_POST] = "POST",
    [HTTP_DELETE] = "DELETE", [HTTP_PATCH] = "PATCH",
};

static bool method_fits(const struct request *r, enum http_method m)
{
    return strcmp(r->method, methods[m]) == 0 || (m == HTTP_GET && r->head_only);
}

/* The first row that fits; *ret_others gets the methods of the rows with another one. */
static bool find_route(struct request *r, unsigned *ret_others)
{
    const struct tables *t = &r->http->tables;

    *ret_others = 0;
    for (size_t d = 0; d < t->count; d++)
        for (size_t i = 0; i < t->doors[d]->route_count; i++) {
            const struct route *route = &t->doors[d]->routes[i];
            if (!path_fits(route->path, r->path, r->params, &r->param_count))
                continue;
            if (method_fits(r, route->method)) {
                r->door = t->doors[d];
                r->route = route;
                return true;
            }
            *ret_others |= IN(route->method);
        }
    return false;
}

static void allow(struct request *r, const char *header, unsigned set)
{
    char list[64] = "";
    size_t n = 0;

    for (size_t m = 0; m < COUNT(methods); m++)
        if (set & IN(m))
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s, ",
                                  m == HTTP_GET ? "HEAD, " : "", methods[m]);
    snprintf(list + n, sizeof(list) - n, "OPTIONS");
    answer_header(r, header, list);
}

/* A browser asks before a page of another origin may send what it wants to. */
static void answer_options(struct request *r, unsigned set)
{
    struct str wanted = request_header(r, "access-control-request-headers");
    char text[512];

    allow(r, "allow", set);
    if (guard_cors(r).p) {
        allow(r, "access-control-allow-methods", set);
        answer_header(r, "access-control-max-age", "600");
        if (wanted.n && str_to_cstr(wanted, text, sizeof(text)))
            answer_header(r, "access-control-allow-headers", text);
    }
    answer_empty(r, 204);
}

static bool decode_path(struct request *r)
{
    struct err e;

    for (size_t i = 0; i < r->param_count; i++) {
        if (path_param(&r->params[i], r->text_end, &e) < 0) {
            char name[32] = "";
            (void)!str_to_cstr(r->params[i].name, name, sizeof(name));
            answer_fail(r, 400, "invalid_request", name, "%s: %s", name, e.text);
            return false;
        }
        r->text_end += r->params[i].value.n + 1;
    }
    return true;
}

/* The door that formats errors when no route matches: by the prefix of the target as it was sent.
 */
static void claim(struct request *r)
{
    const struct tables *t = &r->http->tables;

    for (size_t d = 0; d < t->count; d++) {
        const char *prefix = t->doors[d]->prefix;
        size_t n = prefix ? strlen(prefix) : 0;
        if (n > 0 && strncmp(r->target, prefix, n) == 0 && strchr("/?", r->target[n]))
            r->door = t->doors[d];
    }
}

static bool route(struct request *r)
{
    unsigned others;

    if (find_route(r, &others))
        return decode_path(r);
    r->param_count = 0;
    if (!others)
        answer_fail(r, 404, "not_found", NULL, "there is nothing at this path");
    else if (strcmp(r->method, "OPTIONS") == 0)
        answer_options(r, others);
    else {
        allow(r, "allow", others);
        answer_fail(r, 405, "method_not_allowed", NULL, "%s is not possible here", r->method);
    }
    return false;
}

static bool query(struct request *r)
{
    const char *param = NULL;
    struct err e;

    if (query_split(r->query, r->text_end, r->queries, &r->query_count, &e) < 0) {
        answer_fail(r, 400, "invalid_request", NULL, "%s", e.text);
        return false;
    }
    if (r->route->flags & ROUTE_QUERY)
        return true;
    if (query_check(r->queries, r->query_count, r->route->query, &param, &e) < 0) {
        answer_fail(r, 400, "invalid_request", param, "%s: %s", param, e.text);
        return false;
    }
    return true;
}

/* --- the life of a request --- */

static void on_home(void *arg, const struct err *failed);

void *http_on_target(void *arg, const char *target, struct MHD_Connection *mhd)
{
    struct http_listener *li = arg;
    struct http *h = li->http;
    struct request *r = request_new(h, target ? target : "");
    struct http_conn *c =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    int64_t latest = time_mono_us() + (int64_t)h->config.header_ms * 1000;
    char *mark = target ? strchr((char *)target, '?') : NULL;

    /* We read the query ourselves. Were it left to the library, too, a few hundred parameters
     * would use up its memory, and then it forgets that it has answered and spins. */
    if (mark && mark[1])
        mark[1] = '\0';
    if (c->deadline_us == 0 || c->deadline_us > latest)
        c->deadline_us = latest;
    c->idle = false;
    r->mhd = mhd;
    r->conn = c;
    c->request = r;
    return r;
}

void http_refused(struct request *r)
{
    if (r->stage == STAGE_LINE) {
        r->stage = STAGE_BODY;
        r->http->in_hand++;
        claim(r);
    }
    r->past = true;
}

/* Here, on another node, or it is not known yet where. False when it has answered. */
static bool place(struct request *r)
{
    const char *url = NULL;

    if ((r->route->flags & ROUTE_NODES) && r->has_body)
        return channel_up(r);
    switch (forward_where(r, &url)) {
    case FORWARD_NOT:
        return body_begin(r);
    case FORWARD_TO:
        forward_begin(r, url);
        return true;
    case FORWARD_SEEK:
        r->sought = true;
        request_seek(r);
        service_home_find(request_service(r), r->caller.tenant, on_home, r);
        return true;
    case FORWARD_ANSWERED:
        break;
    }
    return false;
}

/* It is placed, and all of it is there. */
static void take_whole(struct request *r)
{
    if (r->forward)
        return forward_end(r);
    if (r->body)
        return body_end(r);
    r->stage = STAGE_HANDLER;
    r->route->handle(r);
}

/* The database has answered: on with it. */
static void go_on(struct request *r, const struct err *failed, bool (*next)(struct request *r))
{
    r->seeking = false;
    if (!r->mhd || r->stage > STAGE_WHOLE)
        ; /* the client has gone, or sent what nobody can read */
    else if (failed)
        answer_error(r, failed, NULL);
    else if (next(r) && !r->seeking) {
        if (r->stage == STAGE_WHOLE)
            take_whole(r);
        else if (r->suspended)
            request_resume(r);
    }
    r->pins--;
    request_settle(r);
}

static void on_home(void *arg, const struct err *failed)
{
    go_on(arg, failed, place);
}

static void on_key(void *arg, const struct err *failed);

/* Who asks, and where that is answered. */
static bool enter(struct request *r)
{
    bool may = r->route->flags & ROUTE_QUERY_KEY ? query(r) && guard_key(r, on_key)
                                                 : guard_key(r, on_key) && query(r);

    return may && place(r);
}

static void on_key(void *arg, const struct err *failed)
{
    go_on(arg, failed, enter);
}

/* False: it has been answered, or its key is being sought. */
static bool admit(struct request *r)
{
    return forward_take(r) && guard_host(r) && guard_origin(r) && route(r) && enter(r);
}

enum MHD_Result http_on_request(void *arg, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *piece,
                                size_t *piece_n, void **ctx)
{
    struct request *r = *ctx;

    (void)arg, (void)mhd;
    if (r->refused)
        return MHD_NO;

    if (r->stage == STAGE_LINE) { /* the head is there */
        r->stage = STAGE_BODY;
        r->http->in_hand++;
        conn_expect(r->conn, r->http->config.header_ms);
        r->body_us = time_mono_us();
        claim(r);
        if (!request_head(r, method, url, version) || !guard_head(r))
            return MHD_YES;
        if (r->has_body)
            (void)!admit(r);
        return MHD_YES;
    }

    if (*piece_n && r->seeking) { /* it comes again */
        if (!r->suspended)
            request_suspend(r);
        return MHD_YES;
    }
    if (*piece_n) { /* some of the body */
        if (r->route && (r->route->flags & ROUTE_NODES) && !r->body)
            channel_piece(r, (struct str){piece, *piece_n});
        else if (r->forward)
            forward_piece(r, (struct str){piece, *piece_n});
        else
            body_piece(r, (struct str){piece, *piece_n});
        *piece_n = 0;
        return r->refused ? MHD_NO : MHD_YES;
    }

    r->stage = STAGE_WHOLE; /* all of it */
    r->whole = true;
    conn_whole(r->conn);
    if ((r->has_body || admit(r)) && !r->seeking)
        take_whole(r);
    if (r->refused)
        return MHD_NO;
    if (r->stage < STAGE_STREAM && !r->suspended)
        request_suspend(r);
    return MHD_YES;
}

/* What the library has said by itself counts, too. */
static void count(struct request *r, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
    double ms = (double)(time_mono_us() - r->began_us) / 1000;
    size_t path_n = strcspn(r->target, "?"); /* a query may hold secrets */

    if (!r->status && info)
        r->status = (int)info->http_status;
    if (r->status >= 100 && r->status < 600)
        r->http->counts.answers[r->status / 100]++;
    log_info("%s %s %.*s %d %.1f ms %llu bytes", r->caller.request, *r->method ? r->method : "-",
             path_n < 300 ? (int)path_n : 300, r->target, r->status, ms,
             (unsigned long long)r->bytes);
}

void http_on_over(void *arg, struct MHD_Connection *mhd, void **ctx,
                  enum MHD_RequestTerminationCode how)
{
    struct request *r = *ctx;

    (void)arg;
    if (!r)
        return;
    *ctx = NULL;
    count(r, mhd);
    if (r->stage > STAGE_LINE)
        r->http->in_hand--;
    conn_idle(r->conn);
    r->conn->linger |= !r->whole;
    r->conn->request = NULL;
    request_over(r, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}
