/* The listener of one sandbox, and the limits on the number and the rate of its connections. */
#include "egress/egress_int.h"

#include <stdlib.h>
#include <sys/socket.h>

/* A guest that connects, is refused and connects again costs the loop a bounded share. */
#define ACCEPTS_MAX 100
#define PACE_MS     1000

static void hold(struct egress *g)
{
    if (!g->held)
        watch_pause(g->watch);
    g->held = true;
}

static void let_go(struct egress *g)
{
    if (!g->held || g->count >= EGRESS_CONNS_MAX || g->accepted >= ACCEPTS_MAX)
        return;
    g->held = false;
    watch_resume(g->watch);
}

static void on_pace(void *arg)
{
    struct egress *g = arg;

    g->accepted = 0;
    let_go(g);
}

static void on_connect(void *arg)
{
    struct egress *g = arg;
    int fd = accept4(g->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (g->accepted++ == 0)
        timer_set(g->pace, PACE_MS);
    if (fd >= 0) {
        g->count++;
        conn_new(g, fd);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        /* Out of descriptors, most likely; the connection stays in the queue. */
        g->accepted = ACCEPTS_MAX;
    }
    if (g->count >= EGRESS_CONNS_MAX || g->accepted >= ACCEPTS_MAX)
        hold(g);
}

void egress_ended(struct egress *g)
{
    g->count--;
    if (g->watch)
        let_go(g);
}

struct egress *egress_open(struct loop *l, const struct egress_policy *p, int listener,
                           egress_log_fn *log, void *arg)
{
    struct egress *g = mem_zalloc(sizeof(*g));

    *g = (struct egress){.loop = l, .policy = p, .listener = listener, .log = log, .arg = arg};
    /* A connection that is gone by the time it is accepted must not stop the loop. */
    if (fd_set_nonblock(listener) < 0)
        log_warn("egress: the listener cannot be made non-blocking");
    g->pace = timer_new(l, on_pace, g);
    g->watch = watch_new(l, listener, on_connect, g);
    return g;
}

void egress_close(struct egress *g)
{
    if (!g)
        return;
    watch_free(g->watch);
    g->watch = NULL;
    while (g->conns)
        conn_free(g->conns);
    timer_free(g->pace);
    fd_closep(&g->listener);
    free(g);
}
