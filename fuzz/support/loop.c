/*
 * loop.h without libuv: nothing happens by itself. What is freed while callbacks
 * run is kept until they have returned, as libuv keeps it, but a callback of a
 * freed object is never made.
 */
#include "loop/loop.h"

#include "support/fuzz.h"

#include <poll.h>

struct watch {
    struct watch *next;
    struct loop *loop;
    int fd;
    short events;
    loop_fn *fn;
    void *arg;
    bool paused, freed;
};

struct timer {
    struct timer *next;
    struct loop *loop;
    loop_fn *fn;
    void *arg;
    uint64_t due;
    bool set, freed;
};

struct later {
    struct later *next;
    loop_fn *fn;
    void *arg;
};

struct loop {
    struct watch *watches; /* newest last */
    struct timer *timers;
    struct later *later;
    uint64_t now;
    unsigned depth; /* of loop_turn() and loop_advance() */
};

struct loop *loop_new(struct err *e)
{
    (void)e;
    return mem_zalloc(sizeof(struct loop));
}

static void sweep(struct loop *l)
{
    if (l->depth > 0)
        return;
    for (struct watch **at = &l->watches, *w; (w = *at);) {
        if (w->freed) {
            *at = w->next;
            free(w);
        } else {
            at = &w->next;
        }
    }
    for (struct timer **at = &l->timers, *t; (t = *at);) {
        if (t->freed) {
            *at = t->next;
            free(t);
        } else {
            at = &t->next;
        }
    }
}

unsigned loop_alive(const struct loop *l)
{
    unsigned count = 0;

    for (struct watch *w = l->watches; w; w = w->next)
        count += !w->freed;
    for (struct timer *t = l->timers; t; t = t->next)
        count += !t->freed;
    for (struct later *one = l->later; one; one = one->next)
        count++;
    return count;
}

void loop_free(struct loop *l)
{
    EXPECT(l->depth == 0 && loop_alive(l) == 0);
    sweep(l);
    free(l);
}

static unsigned run_later(struct loop *l)
{
    struct later *todo = l->later;
    unsigned count = 0;

    l->later = NULL;
    while (todo) {
        struct later *one = todo;
        todo = one->next;
        one->fn(one->arg);
        free(one);
        count++;
    }
    return count;
}

unsigned loop_turn(struct loop *l)
{
    unsigned count;

    l->depth++;
    count = run_later(l);
    for (struct watch *w = l->watches; w; w = w->next) {
        struct pollfd p = {w->fd, w->events, 0};
        if (w->freed || w->paused)
            continue;
        while (poll(&p, 1, 0) < 0) /* libFuzzer's clock is a signal */
            EXPECT(errno == EINTR);
        EXPECT(!(p.revents & POLLNVAL)); /* closed before watch_free() */
        if (p.revents) {
            w->fn(w->arg);
            count++;
        }
    }
    l->depth--;
    sweep(l);
    return count;
}

static struct timer *next_due(struct loop *l)
{
    struct timer *first = NULL;

    for (struct timer *t = l->timers; t; t = t->next)
        if (!t->freed && t->set && t->due <= l->now && (!first || t->due < first->due))
            first = t;
    return first;
}

void loop_advance(struct loop *l, uint64_t ms)
{
    struct timer *t;

    l->depth++;
    l->now += ms;
    /* A timer that sets itself again is due in the future, unless by 0 ms: then once a turn. */
    for (unsigned i = 0; i < 64 && (t = next_due(l)); i++) {
        t->set = false;
        t->fn(t->arg);
    }
    l->depth--;
    sweep(l);
}

static struct watch *watch_open(struct loop *l, int fd, short events, loop_fn *fn, void *arg)
{
    struct watch *w = mem_zalloc(sizeof(*w));
    struct watch **at = &l->watches;

    *w = (struct watch){.loop = l, .fd = fd, .events = events, .fn = fn, .arg = arg};
    for (; *at; at = &(*at)->next)
        EXPECT((*at)->freed || (*at)->fd != fd); /* libuv watches a descriptor once */
    *at = w;
    return w;
}

struct watch *watch_new(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    return watch_open(l, fd, POLLIN, fn, arg);
}

struct watch *watch_new_writable(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    return watch_open(l, fd, POLLOUT, fn, arg);
}

void watch_pause(struct watch *w)
{
    EXPECT(!w->freed);
    w->paused = true;
}

void watch_resume(struct watch *w)
{
    EXPECT(!w->freed);
    w->paused = false;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    EXPECT(!w->freed);
    w->freed = true;
    sweep(w->loop);
}

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg)
{
    struct timer *t = mem_zalloc(sizeof(*t));

    *t = (struct timer){.next = l->timers, .loop = l, .fn = fn, .arg = arg};
    l->timers = t;
    return t;
}

void timer_set(struct timer *t, uint64_t ms)
{
    EXPECT(!t->freed);
    t->due = t->loop->now + ms;
    t->set = true;
}

void timer_clear(struct timer *t)
{
    EXPECT(!t->freed);
    t->set = false;
}

void timer_free(struct timer *t)
{
    if (!t)
        return;
    EXPECT(!t->freed);
    t->freed = true;
    sweep(t->loop);
}

void loop_later(struct loop *l, loop_fn *fn, void *arg)
{
    struct later *one = mem_zalloc(sizeof(*one));
    struct later **at = &l->later;

    *one = (struct later){.fn = fn, .arg = arg};
    while (*at)
        at = &(*at)->next;
    *at = one;
}

/* One thread is all there is: the work is done at once, and its end comes from the loop. */
void loop_work_for(struct loop *l, struct whose whose, loop_fn *work, loop_fn *done, void *arg)
{
    (void)whose;
    loop_work(l, work, done, arg);
}

void work_yield(void) {}

void work_wait_begin(void) {}

void work_wait_end(void) {}

void loop_post(struct loop *l, loop_fn *fn, void *arg)
{
    loop_later(l, fn, arg);
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
    work(arg);
    loop_later(l, done, arg);
}
