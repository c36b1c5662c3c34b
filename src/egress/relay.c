/*
 * One direction of a connection. What is read is written at once; only what did
 * not fit is kept, and while there is something kept nothing is read. So a slow
 * reader costs one read's worth of memory, and the sender feels it.
 */
#include "egress/egress_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_MAX (64 * KiB)

struct relay {
    struct loop *loop; /* borrowed */
    int from, to;      /* borrowed */
    int to_again;      /* owned: a second number for to, as the loop watches a number once */
    struct watch *readable, *writable; /* owned */
    struct body *body;                 /* borrowed, or NULL */
    char *kept; /* owned: the last kept_n - kept_at bytes are to be written */
    size_t kept_at, kept_n;
    bool ended; /* nothing more will be read */
    enum relay_end state;
    uint64_t bytes;
    char begin[12];
    size_t begun;
    relay_fn *fn;
    void *arg;
};

static void on_writable(void *arg);

/* Writes what it can. Returns how much, or -1 when the reader is gone. */
static ssize_t write_some(struct relay *r, struct str s)
{
    ssize_t n;

    do
        n = send(r->to, s.p, s.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

static void keep(struct relay *r, struct str s)
{
    assert(!r->kept && s.n > 0);
    r->kept = mem_strndup(s);
    r->kept_n = s.n;
    r->kept_at = 0;
    watch_pause(r->readable);
    if (!r->writable) {
        r->to_again = fcntl(r->to, F_DUPFD_CLOEXEC, 0);
        if (r->to_again < 0) {
            r->state = RELAY_BROKEN;
            return;
        }
        r->writable = watch_new_writable(r->loop, r->to_again, on_writable, r);
    } else {
        watch_resume(r->writable);
    }
}

static void pass(struct relay *r, struct str s)
{
    ssize_t n = s.n > 0 ? write_some(r, s) : 0;

    if (n < 0)
        r->state = RELAY_BROKEN;
    else if ((size_t)n < s.n)
        keep(r, (struct str){s.p + n, s.n - (size_t)n});
}

/* Everything that will ever be written has been. In a tunnel the other side is told; a host that
 * has a whole request knows, and some take a half-closed connection for an aborted one. */
static void settle(struct relay *r)
{
    if (!r->ended || r->kept || r->state != RELAY_GOES_ON)
        return;
    if (!r->body)
        (void)shutdown(r->to, SHUT_WR);
    r->state = RELAY_ENDED;
}

static void on_writable(void *arg)
{
    struct relay *r = arg;
    ssize_t n = write_some(r, (struct str){r->kept + r->kept_at, r->kept_n - r->kept_at});

    if (n < 0)
        r->state = RELAY_BROKEN;
    else
        r->kept_at += (size_t)n;
    if (r->kept_at == r->kept_n) {
        mem_freep(&r->kept);
        watch_pause(r->writable);
        if (!r->ended)
            watch_resume(r->readable);
    } else if (r->state == RELAY_BROKEN) {
        watch_pause(r->writable);
    }
    settle(r);
    r->fn(r->arg, r);
}

static void end_reading(struct relay *r)
{
    r->ended = true;
    watch_pause(r->readable);
}

/* The part of what was read that belongs to the request. */
static struct str cut(struct relay *r, struct str s)
{
    if (!r->body)
        return s;
    s.n = body_take(r->body, s);
    if (r->body->bad)
        r->state = RELAY_BROKEN;
    if (r->body->done)
        end_reading(r);
    return s;
}

static void take(struct relay *r, struct str s)
{
    size_t room = sizeof(r->begin) - r->begun, n = s.n < room ? s.n : room;

    memcpy(r->begin + r->begun, s.p, n);
    r->begun += n;
    s = cut(r, s);
    r->bytes += s.n;
    pass(r, s);
}

static void on_readable(void *arg)
{
    static char bytes[READ_MAX]; /* the loop has one thread */
    struct relay *r = arg;
    ssize_t n;

    do
        n = recv(r->from, bytes, sizeof(bytes), MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0)
        take(r, (struct str){bytes, (size_t)n});
    else if (n < 0 || r->body) /* a request that stops in the middle is none */
        r->state = RELAY_BROKEN;
    else
        end_reading(r);
    if (r->state == RELAY_BROKEN)
        watch_pause(r->readable);
    settle(r);
    r->fn(r->arg, r);
}

struct relay *relay_new(struct loop *l, int from, int to, struct str first, struct body *body,
                        relay_fn *fn, void *arg)
{
    struct relay *r = mem_zalloc(sizeof(*r));

    *r = (struct relay){
        .loop = l, .from = from, .to = to, .to_again = -1, .body = body, .fn = fn, .arg = arg};
    r->readable = watch_new(l, from, on_readable, r);
    if (body && body->done)
        end_reading(r);
    pass(r, first);
    settle(r);
    return r;
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    watch_free(r->readable);
    watch_free(r->writable);
    fd_closep(&r->to_again);
    free(r->kept);
    free(r);
}

enum relay_end relay_state(const struct relay *r)
{
    return r->state;
}

uint64_t relay_bytes(const struct relay *r)
{
    return r->bytes;
}

struct str relay_begin(const struct relay *r)
{
    return (struct str){r->begin, r->begun};
}
