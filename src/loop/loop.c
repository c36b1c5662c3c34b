#include "loop/loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <uv.h>

#define LAST_ROUNDS 8 /* of later calls that ask for later calls, when the loop is freed */

/* What loop_later() was asked for; a row lives until it has run. */
struct later {
    struct later *next; /* owned */
    loop_fn *fn;
    void *arg;
};

struct loop {
    uv_loop_t uv;
    uv_idle_t idle;      /* active while later is not empty */
    struct later *later; /* owned: oldest first */
    struct later **later_end;
    uv_async_t async; /* another thread has posted */
    uv_mutex_t lock;  /* of the two below */
    struct later *posted;
    struct later **posted_end;
};

/* Each of these begins with its libuv handle, so that on_closed() frees any of them. */
struct watch {
    uv_poll_t uv;
    int events;
    bool once;
    loop_fn *fn;
    void *arg;
};

struct timer {
    uv_timer_t uv;
    loop_fn *fn;
    void *arg;
};

struct catcher {
    uv_signal_t uv;
    loop_signal_fn *fn;
    void *arg;
};

static_assert(offsetof(struct watch, uv) == 0 && offsetof(struct timer, uv) == 0 &&
                  offsetof(struct catcher, uv) == 0,
              "on_closed() frees the handle's own address");

/* libuv fails here only for want of memory or fds at start, or for a handle that is not ours. */
static void must(int status)
{
    if (status < 0) {
        log_error("event loop: %s", uv_strerror(status));
        abort();
    }
}

static void on_closed(uv_handle_t *h)
{
    free(h);
}

/* --- the loop --- */

static void run_all(struct later *todo)
{
    while (todo) {
        struct later *one = todo;
        todo = one->next;
        one->fn(one->arg);
        free(one);
    }
}

static void on_idle(uv_idle_t *idle)
{
    struct loop *l = idle->data;
    struct later *todo = l->later;

    /* What these ask for runs in the next round, so that the loop gets to its fds. */
    l->later = NULL;
    l->later_end = &l->later;
    run_all(todo);
    if (!l->later)
        uv_idle_stop(&l->idle);
}

static void on_posted(uv_async_t *async)
{
    struct loop *l = async->data;
    struct later *todo;

    uv_mutex_lock(&l->lock);
    todo = l->posted;
    l->posted = NULL;
    l->posted_end = &l->posted;
    uv_mutex_unlock(&l->lock);
    run_all(todo);
}

struct loop *loop_new(void)
{
    struct loop *l = mem_zalloc(sizeof(*l));

    must(uv_loop_init(&l->uv));
    must(uv_idle_init(&l->uv, &l->idle));
    must(uv_async_init(&l->uv, &l->async, on_posted));
    must(uv_mutex_init(&l->lock));
    l->idle.data = l->async.data = l;
    l->later_end = &l->later;
    l->posted_end = &l->posted;
    return l;
}

static void forget(struct later *list)
{
    while (list) {
        struct later *one = list;
        list = one->next;
        free(one);
    }
}

static void close_handle(uv_handle_t *h, void *arg)
{
    struct loop *l = arg;

    if (!uv_is_closing(h))
        uv_close(h,
                 h == (uv_handle_t *)&l->idle || h == (uv_handle_t *)&l->async ? NULL : on_closed);
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    /* What was put off is often the freeing of something; what asks for itself anew is not. */
    for (int round = 0; (l->later || l->posted) && round < LAST_ROUNDS; round++) {
        on_idle(&l->idle);
        on_posted(&l->async);
    }
    uv_walk(&l->uv, close_handle, l);
    while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0)
        ; /* a pending loop_stop() ends the first round before anything is closed */
    must(uv_loop_close(&l->uv));
    uv_mutex_destroy(&l->lock);
    forget(l->later);
    forget(l->posted);
    free(l);
}

void loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

void loop_later(struct loop *l, loop_fn *fn, void *arg)
{
    struct later *one = mem_zalloc(sizeof(*one));

    *one = (struct later){.fn = fn, .arg = arg};
    *l->later_end = one;
    l->later_end = &one->next;
    must(uv_idle_start(&l->idle, on_idle));
}

void loop_post(struct loop *l, loop_fn *fn, void *arg)
{
    struct later *one = mem_zalloc(sizeof(*one));

    *one = (struct later){.fn = fn, .arg = arg};
    uv_mutex_lock(&l->lock);
    *l->posted_end = one;
    l->posted_end = &one->next;
    uv_mutex_unlock(&l->lock);
    must(uv_async_send(&l->async));
}

/* --- blocking work --- */

struct work {
    uv_work_t uv;
    loop_fn *work, *done;
    void *arg;
};

static void on_work(uv_work_t *uv)
{
    struct work *w = uv->data;

    w->work(w->arg);
}

static void on_worked(uv_work_t *uv, int status)
{
    struct work *w = uv->data;

    (void)status; /* nothing here is ever cancelled */
    w->done(w->arg);
    free(w);
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
    struct work *w = mem_zalloc(sizeof(*w));

    *w = (struct work){.uv.data = w, .work = work, .done = done, .arg = arg};
    must(uv_queue_work(&l->uv, &w->uv, on_work, on_worked));
}

/* --- fds --- */

/* Errors count as ready: the call that follows tells what is the matter. */
static void on_poll(uv_poll_t *h, int status, int events)
{
    struct watch *w = h->data;

    (void)status;
    (void)events;
    if (w->once)
        watch_pause(w);
    w->fn(w->arg);
}

static struct watch *watch_open(struct loop *l, int fd, int events, loop_fn *fn, void *arg)
{
    struct watch *w = mem_zalloc(sizeof(*w));
    int flags = fcntl(fd, F_GETFL);

    *w = (struct watch){.events = events, .fn = fn, .arg = arg};
    must(uv_poll_init(&l->uv, &w->uv, fd));
    /* uv_poll_init() makes the fd non-blocking; whether it should be is the caller's affair. */
    if (flags >= 0 && !(flags & O_NONBLOCK))
        (void)fcntl(fd, F_SETFL, flags);
    w->uv.data = w;
    watch_resume(w);
    return w;
}

struct watch *watch_new(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    return watch_open(l, fd, UV_READABLE, fn, arg);
}

struct watch *watch_new_writable(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    return watch_open(l, fd, UV_WRITABLE, fn, arg);
}

struct watch *watch_new_hangup(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    struct watch *w = watch_open(l, fd, UV_DISCONNECT, fn, arg);

    w->once = true;
    return w;
}

void watch_pause(struct watch *w)
{
    uv_poll_stop(&w->uv);
}

void watch_resume(struct watch *w)
{
    must(uv_poll_start(&w->uv, w->events, on_poll));
}

void watch_free(struct watch *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->uv, on_closed);
}

/* --- timers --- */

static void on_timer(uv_timer_t *h)
{
    struct timer *t = h->data;

    t->fn(t->arg);
}

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg)
{
    struct timer *t = mem_zalloc(sizeof(*t));

    *t = (struct timer){.fn = fn, .arg = arg};
    must(uv_timer_init(&l->uv, &t->uv));
    t->uv.data = t;
    return t;
}

void timer_set(struct timer *t, uint64_t ms)
{
    /* The loop's clock stands still during a callback; after a long one it would fire early. */
    uv_update_time(t->uv.loop);
    must(uv_timer_start(&t->uv, on_timer, ms, 0));
}

void timer_clear(struct timer *t)
{
    uv_timer_stop(&t->uv);
}

void timer_free(struct timer *t)
{
    if (t)
        uv_close((uv_handle_t *)&t->uv, on_closed);
}

/* --- signals --- */

static void on_signal(uv_signal_t *h, int signum)
{
    struct catcher *c = h->data;

    c->fn(c->arg, signum);
}

void loop_on_signal(struct loop *l, int signum, loop_signal_fn *fn, void *arg)
{
    struct catcher *c = mem_zalloc(sizeof(*c));

    *c = (struct catcher){.fn = fn, .arg = arg};
    must(uv_signal_init(&l->uv, &c->uv));
    c->uv.data = c;
    must(uv_signal_start(&c->uv, on_signal, signum));
    /* Waiting for a signal is no reason for the loop to go on. */
    uv_unref((uv_handle_t *)&c->uv);
}
