/* The server's end of a guest's stdout or stderr. */
#include "engine/engine_int.h"

#include <stdlib.h>
#include <unistd.h>

#define PIPE_FULL (64 * KiB)
#define SLOW_MS   10
#define SLOW_READ                                                                                  \
    (256 * KiB) /* per SLOW_MS: a flood costs the server a bounded share of one core */

struct stream {
    struct loop *loop;   /* borrowed */
    int fd;              /* owned */
    struct watch *watch; /* owned; NULL after end of file */
    struct timer *slow;  /* owned; NULL until throttled */
    enum event_kind kind;
    char carry[4]; /* the first bytes of a character whose rest is still to come */
    size_t carried;
    stream_fn *fn;
    void *arg;
};

/* How many bytes at the end of s begin a UTF-8 character that is not complete: 0 to 3. */
static size_t partial_tail(struct str s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
        return want > back ? back : 0;
    }
    return 0;
}

static void hand_on(struct stream *s, char *bytes, size_t n)
{
    size_t tail = partial_tail((struct str){bytes, n});

    if (n > tail)
        s->fn(s->arg, s->kind, (struct str){bytes, n - tail});
    memcpy(s->carry, bytes + n - tail, tail);
    s->carried = tail;
}

/* Reads once, up to size bytes; what read(2) says. */
static ssize_t read_once(struct stream *s)
{
    static char bytes[sizeof(((struct stream *)0)->carry) + PIPE_FULL];
    size_t have = s->carried;
    ssize_t n;

    memcpy(bytes, s->carry, have);
    do
        n = read(s->fd, bytes + have, PIPE_FULL);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        hand_on(s, bytes, have + (size_t)n);
    return n;
}

static void at_end(struct stream *s)
{
    watch_free(s->watch);
    s->watch = NULL;
}

static void on_readable(void *arg)
{
    struct stream *s = arg;
    ssize_t n = read_once(s);

    if (n == 0 || (n < 0 && errno != EAGAIN))
        at_end(s);
}

static void on_slow(void *arg)
{
    struct stream *s = arg;
    ssize_t n = 1;

    for (size_t sum = 0; sum < SLOW_READ && n > 0; sum += (size_t)n)
        n = read_once(s);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        return at_end(s);
    timer_set(s->slow, SLOW_MS);
}

struct stream *stream_new(struct loop *l, int fd, enum event_kind kind, stream_fn *fn, void *arg)
{
    struct stream *s = mem_zalloc(sizeof(*s));

    *s = (struct stream){.loop = l, .fd = fd, .kind = kind, .fn = fn, .arg = arg};
    s->watch = watch_new(l, fd, on_readable, s);
    return s;
}

void stream_drain(struct stream *s)
{
    size_t sum = 0;
    ssize_t n;

    if (!s || !s->watch)
        return;
    while (sum < PIPE_FULL && (n = read_once(s)) > 0)
        sum += (size_t)n;
}

void stream_flush(struct stream *s)
{
    if (s && s->carried > 0)
        s->fn(s->arg, s->kind, (struct str){s->carry, s->carried});
    if (s)
        s->carried = 0;
}

void stream_throttle(struct stream *s, bool slow)
{
    if (!s || !s->watch || slow == (s->slow != NULL))
        return;
    if (slow) {
        watch_pause(s->watch);
        s->slow = timer_new(s->loop, on_slow, s);
        timer_set(s->slow, SLOW_MS);
    } else {
        timer_free(s->slow);
        s->slow = NULL;
        watch_resume(s->watch);
    }
}

void stream_hold(struct stream *s, bool hold)
{
    if (!s || !s->watch || s->slow)
        return;
    if (hold)
        watch_pause(s->watch);
    else
        watch_resume(s->watch);
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    if (s->watch)
        watch_free(s->watch);
    if (s->slow)
        timer_free(s->slow);
    fd_closep(&s->fd);
    free(s);
}
