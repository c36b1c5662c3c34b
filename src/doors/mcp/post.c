/*
 * The answer of one POST. It is JSON, unless something is said before the call ends, or it
 * takes long: then it is a stream of events, whose last is the response.
 *
 * Modern: a client that goes has cancelled its call. Legacy: it has not; the call goes on,
 * and a client that has seen the id of an event comes back for the rest.
 */
#include "doors/mcp/mcp_int.h"

#include <stdlib.h>

#define LATE_MS 2000 /* without an answer: proxies want to see something, clients an id */

struct post {
    struct peer peer;
    struct streams *streams; /* borrowed; NULL: modern */
    struct request *request; /* held; NULL when the stream has it, or it has gone */
    struct sse *sse;         /* owned; NULL: nothing was said yet */
    struct call *call;       /* borrowed; cancelled when a modern client goes */
    struct timer *timer;     /* owned, or NULL */
    bool *over;              /* told when we are gone; or NULL */
    bool plain;              /* the client reads no streams */
    bool primed;
};

#define POST(p) ((struct post *)(void *)((char *)(p)-offsetof(struct post, peer)))

static void post_free(struct post *t)
{
    timer_free(t->timer);
    if (t->over)
        *t->over = true;
    free(t);
}

static void open_stream(struct post *t)
{
    t->sse = sse_new(t->streams);
    sse_open(t->sse, take_ptr(&t->request), t->primed);
}

/* --- as a peer --- */

/* A client that reads no streams does without notifications. A question has no other way. */
static void post_send(struct peer *p, struct call *c, json_t *message)
{
    struct post *t = POST(p);

    (void)c;
    if (!t->sse && (!t->request || (t->plain && !json_object_get(message, "id")))) {
        json_decref(message);
        return;
    }
    if (!t->sse)
        open_stream(t);
    sse_put(t->sse, message);
}

static void post_answer(struct peer *p, struct call *c, int status, json_t *message)
{
    struct post *t = POST(p);

    (void)c;
    if (t->sse) {
        sse_put(t->sse, message);
        sse_end(t->sse);
    } else if (t->request) {
        answer_json(t->request, status, message);
    } else {
        json_decref(message);
    }
    post_free(t);
}

static void post_answer_text(struct peer *p, struct call *c, char *text, size_t n)
{
    struct post *t = POST(p);

    if (t->sse) {
        post_answer(p, c, 200, json_loadb(text, n, 0, NULL));
    } else {
        if (t->request)
            answer_text(t->request, 200, "application/json", (struct str){text, n});
        post_free(t);
    }
    free(text);
}

static void post_drop(struct peer *p, struct call *c)
{
    struct post *t = POST(p);

    (void)c;
    if (t->request)
        open_stream(t); /* and nothing in it */
    sse_free(t->sse);
    post_free(t);
}

static size_t post_waits(struct peer *p)
{
    return POST(p)->sse ? sse_waits(POST(p)->sse) : 0;
}

static void post_hang_up(struct peer *p)
{
    struct post *t = POST(p);

    if (!t->streams || !t->primed)
        return;
    if (t->request)
        open_stream(t);
    if (t->sse)
        sse_hang_up(t->sse);
}

static const struct peer_ops ops = {post_send,  post_answer,      post_drop,
                                    post_waits, post_answer_text, post_hang_up};

/* --- what happens meanwhile --- */

static void on_gone(void *arg)
{
    struct post *t = arg;

    if (t->sse)
        sse_gone(t->sse);
    else
        request_drop(take_ptr(&t->request));
    if (!t->streams && t->call)
        call_cancel(t->call);
}

static void on_late(void *arg)
{
    struct post *t = arg;

    if (t->request && !t->plain)
        open_stream(t);
}

/* --- life --- */

struct peer *post_new(struct request *r, struct conversation *v)
{
    struct post *t = mem_zalloc(sizeof(*t));
    struct str accept = request_header(r, "accept");

    *t = (struct post){.peer = {&ops}, .request = r, .streams = v ? v->streams : NULL};
    t->plain = accept.n && !header_lists(accept, "text/event-stream") &&
               !header_lists(accept, "text/*") && !header_lists(accept, "*/*");
    t->primed = v && v->client.version && (v->client.version->has & HAS_ICONS);
    return &t->peer;
}

void post_watch(struct peer *p, struct call *c, bool *ret_over)
{
    POST(p)->call = c;
    POST(p)->over = ret_over;
}

void post_wait(struct peer *p, struct loop *l)
{
    struct post *t = POST(p);

    t->over = NULL;
    t->timer = timer_new(l, on_late, t);
    timer_set(t->timer, LATE_MS);
    if (t->request)
        request_on_gone(t->request, on_gone, t);
    else if (t->sse)
        sse_on_gone(t->sse, on_gone, t);
}

void post_forget(struct peer *p)
{
    free(POST(p));
}
