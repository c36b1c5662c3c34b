/*
 * Streams of what changes in the sessions of a tenant, for pages and scripts that show live lists.
 *
 * A change is written as JSON once, for all streams that may see it. A stream that is held has a
 * count instead of events, so a client that does not read costs no more than STREAM_HIGH. Streams
 * have no end of their own: rest_drain() ends them when the server is about to end.
 */
#include "doors/rest/rest_int.h"

#include <stdlib.h>

#define STREAMS_MAX    1024 /* at a time */
#define STREAMS_TENANT 64   /* of one tenant */

struct change_stream {
    struct change_stream *next, **link; /* link: NULL when it is on no list */
    struct request *r;                  /* borrowed: outlives us */
    uint64_t missed;                    /* events that were left out, as the reader does not read */
};

static const char *const kinds[] = {
    [CHANGED_SESSION] = "session",
    [CHANGED_FILE] = "file",
    [CHANGED_EXECUTION] = "execution",
    [CHANGED_APPROVAL] = "approval",
};

/* --- one stream --- */

/* Takes v. */
static void put(struct request *r, json_t *v)
{
    AUTO_FREE char *line = json_line(v);

    answer_event(r, NULL, json_string_value(json_object_get(v, "type")), str_of(line));
    json_decref(v);
}

static void on_hold(void *arg, bool held)
{
    struct change_stream *s = arg;

    if (held || s->missed == 0)
        return;
    put(s->r, json_pack("{s:s, s:I}", "type", "missed", "count", (json_int_t)s->missed));
    s->missed = 0;
}

/* No further change is told to it: its request may live on for a while after its end. */
static void leave_list(struct change_stream *s)
{
    if (!s->link)
        return;
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->link = NULL;
}

static void on_gone(void *arg)
{
    struct change_stream *s = arg;

    leave_list(s);
    request_drop(s->r);
}

static void stream_free(void *arg)
{
    struct change_stream *s = arg;

    leave_list(s);
    free(s);
}

/* --- what changed --- */

static json_t *change_value(const struct service_change *c)
{
    const char *kind = kinds[c->kind];

    if (c->kind == CHANGED_FILE)
        return json_pack("{s:s, s:s, s:o, s:o}", "type", kind, "session", c->session, "pool",
                         render_text(c->pool), "path", record_text(c->path));
    if (c->kind == CHANGED_SESSION)
        return json_pack("{s:s, s:s, s:o, s:s}", "type", kind, "id", c->id, "pool",
                         render_text(c->pool), "state", c->state);
    return json_pack("{s:s, s:s, s:o, s:o, s:s}", "type", kind, "id", c->id, "session",
                     *c->session ? render_text(c->session) : json_null(), "pool",
                     render_text(c->pool), c->kind == CHANGED_EXECUTION ? "status" : "state",
                     c->state);
}

static bool may_see(const struct change_stream *s, const struct service_change *c)
{
    const struct caller *who = request_caller(s->r);

    return strcmp(who->tenant, c->tenant) == 0 &&
           service_sees_pool(request_service(s->r), who, c->pool);
}

static void on_change(void *arg, const struct service_change *c)
{
    struct rest *rest = arg;
    AUTO_FREE char *line = NULL;

    for (struct change_stream *s = rest->streams; s; s = s->next) {
        if (!may_see(s, c))
            continue;
        if (answer_stream_is_held(s->r)) {
            s->missed++;
            continue;
        }
        if (!line) {
            json_t *v = change_value(c);
            line = json_line(v);
            json_decref(v);
        }
        answer_event(s->r, NULL, kinds[c->kind], str_of(line));
    }
}

/* --- the request --- */

static size_t count(const struct rest *rest, const char *tenant)
{
    size_t n = 0;

    for (const struct change_stream *s = rest->streams; s; s = s->next)
        n += !tenant || strcmp(request_caller(s->r)->tenant, tenant) == 0;
    return n;
}

static void open_stream(struct rest *rest, struct request *r)
{
    struct change_stream *s = mem_zalloc(sizeof(*s));

    *s = (struct change_stream){.next = rest->streams, .link = &rest->streams, .r = r};
    if (s->next)
        s->next->link = &s->next;
    rest->streams = s;
    if (!rest->watch)
        rest->watch = service_watch_changes(request_service(r), on_change, rest);
    request_keep(r, stream_free, s);
    request_on_gone(r, on_gone, s);
    answer_header(r, "cache-control", "no-store");
    answer_events(r, str_is(request_query(r, "format"), "ndjson") ? EVENTS_NDJSON : EVENTS_SSE);
    answer_stream_on_hold(r, on_hold, s);
    put(r, json_pack("{s:s}", "type", "open"));
}

void handle_get_events(struct request *r)
{
    struct rest *rest = request_ctx(r);
    struct err e;

    if (rest->draining)
        err_set(&e, ERR_BUSY, "the server is about to end");
    else if (count(rest, NULL) >= STREAMS_MAX ||
             count(rest, request_caller(r)->tenant) >= STREAMS_TENANT)
        err_set(&e, ERR_BUSY, "there are as many streams of changes as there may be: end another");
    else
        return open_stream(rest, r);
    answer_error(r, &e, NULL);
}

/* --- the room --- */

struct rest *rest_new(struct http *http)
{
    struct rest *rest = mem_zalloc(sizeof(*rest));

    rest->http = http;
    return rest;
}

void rest_drain(void *arg)
{
    struct rest *rest = arg;

    rest->draining = true;
    while (rest->streams) {
        struct request *r = rest->streams->r;
        leave_list(rest->streams);
        answer_stream_end(r);
    }
}

void rest_stop(void *arg)
{
    struct rest *rest = arg;

    change_watch_free(take_ptr(&rest->watch));
}

void rest_free(void *arg)
{
    free(arg);
}
