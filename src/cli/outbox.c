/*
 * Bytes for our own stdout and stderr, in the order in which they were produced. A reader that
 * stops reading (less, a stopped pipe) must not stop the loop: time limits and Ctrl-C go on
 * working, and what is not taken waits here. How much that can be is bounded by what the engine
 * keeps of an execution's output, and the next execution waits until all of it has been taken.
 *
 * One queue for both streams, since both may be the same pipe.
 */
#include "cli/cli_int.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

struct parcel {
    struct parcel *next; /* owned */
    struct term *to;     /* borrowed */
    size_t n, done;
    char bytes[];
};

void outbox_init(struct outbox *o)
{
    *o = (struct outbox){0};
    o->end = &o->first;
}

static void drop_first(struct outbox *o)
{
    struct parcel *p = o->first;

    o->first = p->next;
    if (!o->first)
        o->end = &o->first;
    free(p);
}

void outbox_done(struct outbox *o)
{
    while (o->first)
        drop_first(o);
}

static bool can_write(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    /* Any answer will do: the write that follows tells errors. */
    return poll(&p, 1, timeout_ms) > 0;
}

/* The streams are shared with others, so O_NONBLOCK is not ours to set. What fits into PIPE_BUF
 * does not block once poll() has said that there is room. Bytes written, 0 when it would block. */
static size_t write_some(struct term *t, struct str s)
{
    ssize_t n;

    if (!can_write(t->fd, 0))
        return 0;
    n = write(t->fd, s.p, s.n < PIPE_BUF ? s.n : PIPE_BUF);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        t->failed = true;
        t->sys = errno;
    }
    return n < 0 ? 0 : (size_t)n;
}

void outbox_push(struct outbox *o)
{
    while (o->first) {
        struct parcel *p = o->first;
        size_t n = 0;

        if (!p->to->failed)
            n = write_some(p->to, (struct str){p->bytes + p->done, p->n - p->done});
        p->done += n;
        if (p->to->failed || p->done == p->n)
            drop_first(o);
        else if (n == 0)
            return;
    }
}

void outbox_put(struct outbox *o, struct term *to, struct str s)
{
    struct parcel *p;

    if (to->failed || s.n == 0)
        return;
    p = mem_zalloc(sizeof(*p) + s.n);
    *p = (struct parcel){.to = to, .n = s.n};
    memcpy(p->bytes, s.p, s.n);
    *o->end = p;
    o->end = &p->next;
    outbox_push(o);
}

int outbox_waits_for(const struct outbox *o)
{
    return o->first ? o->first->to->fd : -1;
}

void outbox_wait(struct outbox *o)
{
    for (outbox_push(o); o->first; outbox_push(o))
        (void)can_write(o->first->to->fd, -1);
}
