/*
 * Channels between two nodes: what the home of a session and the lender of its sandbox say to each
 * other (engine/lend_int.h) travels in two requests. The home sends a GET, whose answer has the
 * lender's words, and when that has begun a POST, whose body has its own. Neither ends before the
 * channel does. Both are signed as a request that is forwarded is (forward.c), so a channel is
 * between nodes of ours and nobody else.
 *
 * Each side gives the other no more than it takes: a slow home makes the library wait with the
 * answer, a slow lender libcurl with the body. When one of the two requests ends, so does the
 * other.
 */
#include "doors/http/http_mhd.h"
#include "peer/peer.h"

#include <stdio.h>
#include <stdlib.h>

#define HOST      "node" /* a name of no use but to be signed */
#define PATH      "/v1/nodes/channels/"
#define SECOND_MS 5000 /* the POST comes that soon after the GET */
#define LINGER_UP 3000 /* a body whose channel has ended */
#define HUNG_UP   "has hung up"

struct node_channel {
    struct channel channel;
    struct http *http; /* counted among its requests */
    char id[ID_MAX];
    bool ending;
    const char *why; /* static */

    /* of one that we have made */
    struct peer_call *down, *up; /* owned, or NULL */
    char *url;                   /* owned */
    struct caller caller;

    /* of one that another node has made */
    struct node_channel *next, **link; /* link NULL: it is ours */
    struct request *answer, *body;     /* borrowed, or NULL */
    struct timer *second;              /* owned */
};

static struct node_channel *of(struct channel *c)
{
    return (struct node_channel *)((char *)c - offsetof(struct node_channel, channel));
}

/* --- the end --- */

static void let_go_of_requests(struct node_channel *n)
{
    if (n->body) {
        n->body->channel = NULL;
        conn_expect(n->body->conn, LINGER_UP);
    }
    if (n->answer)
        answer_stream_end(n->answer);
    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    timer_free(n->second);
}

/* From the loop, as the calls and requests may be in the middle of something. */
static void end_later(void *arg)
{
    struct node_channel *n = arg;
    struct http *h = n->http;

    if (n->channel.user)
        n->channel.user->on_end(n->channel.arg, n->why);
    if (n->down)
        peer_call_cancel(n->down);
    if (n->up)
        peer_call_cancel(n->up);
    if (n->link)
        let_go_of_requests(n);
    free(n->url);
    free(n);
    h->requests--;
    http_release(h);
}

static void end(struct node_channel *n, const char *why)
{
    if (n->ending)
        return;
    n->ending = true;
    n->why = why;
    loop_later(n->http->loop, end_later, n);
}

static void close_channel(struct channel *c)
{
    c->user = NULL;
    end(of(c), HUNG_UP);
}

static void tell(struct node_channel *n, struct str bytes)
{
    if (!n->ending)
        n->channel.user->on_bytes(n->channel.arg, bytes);
}

static void tell_room(struct node_channel *n)
{
    if (!n->ending)
        n->channel.user->on_room(n->channel.arg);
}

static struct node_channel *channel_new(struct http *h, const struct channel_ops *ops)
{
    struct node_channel *n = mem_zalloc(sizeof(*n));

    n->channel.ops = ops;
    n->http = h;
    h->requests++;
    return n;
}

/* --- at home --- */

static bool home_put(struct channel *c, struct str bytes)
{
    struct node_channel *n = of(c);

    return !n->ending && n->up && peer_call_put(n->up, bytes);
}

static void home_hold(struct channel *c, bool held)
{
    struct node_channel *n = of(c);

    if (!n->ending && n->down)
        peer_call_hold(n->down, held);
}

static const struct channel_ops home_ops = {home_put, home_hold, close_channel};

static struct peer_call *call(struct node_channel *n, const char *method,
                              const struct peer_watcher *w)
{
    const struct http_config *config = &n->http->config;
    char target[sizeof(PATH) + ID_MAX], value[PEER_VALUE_MAX], line[PEER_VALUE_MAX + 32];
    const char *headers[] = {line, "host: " HOST, "accept:", "expect:", NULL};
    const struct peer_spec spec = {.url = n->url,
                                   .target = target,
                                   .method = method,
                                   .headers = headers,
                                   .ca_file = config->peer_ca,
                                   .cert_file = config->peer_cert,
                                   .key_file = config->peer_key,
                                   .has_body = strcmp(method, "POST") == 0,
                                   .body_length = UINT64_MAX};

    snprintf(target, sizeof(target), PATH "%s", n->id);
    forward_sign(n->http, method, target, STR(HOST), &n->caller, false, value);
    snprintf(line, sizeof(line), PEER_HEADER ": %s", value);
    return peer_call_start(n->http->peers, &spec, w, n);
}

static void on_up_head(void *arg, int status)
{
    (void)status;
    end(arg, HUNG_UP); /* an answer comes when the body is over */
}

static void on_up_body(void *arg, struct str bytes)
{
    (void)arg;
    (void)bytes;
}

static void on_up_room(void *arg)
{
    tell_room(arg);
}

static void on_up_end(void *arg, const char *why, bool sent)
{
    struct node_channel *n = arg;

    (void)sent;
    n->up = NULL;
    end(n, why ? why : HUNG_UP);
}

static const struct peer_watcher up_watcher = {on_up_head, on_up_body, on_up_room, on_up_end};

static void on_down_head(void *arg, int status)
{
    struct node_channel *n = arg;

    if (n->ending)
        return;
    if (status != 200)
        return end(n, "lends nothing to this one");
    n->up = call(n, "POST", &up_watcher);
    tell_room(n);
}

static void on_down_body(void *arg, struct str bytes)
{
    tell(arg, bytes);
}

static void on_down_room(void *arg)
{
    (void)arg;
}

static void on_down_end(void *arg, const char *why, bool sent)
{
    struct node_channel *n = arg;

    (void)sent;
    n->down = NULL;
    end(n, why ? why : HUNG_UP);
}

static const struct peer_watcher down_watcher = {on_down_head, on_down_body, on_down_room,
                                                 on_down_end};

struct channel *channel_dial(void *http, const char *url, const struct caller *c)
{
    struct node_channel *n = channel_new(http, &home_ops);

    id_make(n->id, "chan_");
    n->url = mem_strdup(url);
    n->caller = *c;
    n->down = call(n, "GET", &down_watcher);
    return &n->channel;
}

/* --- at the lender --- */

static bool lender_put(struct channel *c, struct str bytes)
{
    struct node_channel *n = of(c);

    if (n->ending || !n->answer)
        return false;
    answer_stream_put(n->answer, bytes);
    return !answer_stream_is_held(n->answer);
}

/* What comes is written to a file or acted on at once. */
static void lender_hold(struct channel *c, bool held)
{
    (void)c;
    (void)held;
}

static const struct channel_ops lender_ops = {lender_put, lender_hold, close_channel};

static void on_hold(void *arg, bool held)
{
    if (!held)
        tell_room(arg);
}

static void on_gone(void *arg)
{
    end(arg, HUNG_UP);
}

static struct node_channel *find(struct http *h, struct str id)
{
    struct node_channel *n = h->channels;

    while (n && (n->ending || !str_is(id, n->id)))
        n = n->next;
    return n;
}

void handle_channel(struct request *r)
{
    struct http *h = r->http;
    struct str id = request_path(r, "channel");
    struct node_channel *n;

    if (r->head_only || id.n >= ID_MAX || find(h, id))
        return answer_fail(r, 400, "invalid_request", "channel", "there can be no such channel");
    n = channel_new(h, &lender_ops);
    snprintf(n->id, sizeof(n->id), "%.*s", (int)id.n, id.p);
    n->next = h->channels;
    n->link = &h->channels;
    if (n->next)
        n->next->link = &n->next;
    h->channels = n;
    n->answer = r;
    n->second = timer_new(h->loop, on_gone, n);
    timer_set(n->second, SECOND_MS);
    answer_stream(r, 200, "application/octet-stream", (struct str){0});
    answer_stream_on_hold(r, on_hold, n);
    request_on_gone(r, on_gone, n);
    service_lend(h->config.service, &r->caller, &n->channel);
}

bool channel_up(struct request *r)
{
    struct node_channel *n = NULL;

    if (r->route->method == HTTP_POST)
        n = find(r->http, request_path(r, "channel"));
    if (!n || n->body) {
        answer_fail(r, 404, "not_found", NULL, "there is no such channel");
        return false;
    }
    r->channel = n;
    n->body = r;
    timer_clear(n->second);
    conn_expect(r->conn, 0); /* the two ends have a clock of their own */
    tell_room(n);
    return true;
}

void channel_piece(struct request *r, struct str piece)
{
    r->body_seen += piece.n;
    if (r->channel)
        tell(r->channel, piece);
}

static void let_go(struct request *r)
{
    struct node_channel *n = take_ptr(&r->channel);

    if (!n)
        return;
    n->body = NULL;
    end(n, HUNG_UP);
}

void channel_up_gone(struct request *r)
{
    let_go(r);
}

void handle_channel_end(struct request *r)
{
    let_go(r);
    answer_empty(r, 204);
}
