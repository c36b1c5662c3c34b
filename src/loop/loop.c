/*
 * The event loop. File descriptors are in an epoll set of our own; libuv has the timers, the
 * signals and what other threads post, and its own set is one of the descriptors in ours. libuv
 * would end the process when the kernel refuses one more watch, and other processes of the same
 * user can use up all watches that the user may have. When the kernel refuses a watch, a timer
 * checks the descriptor until the kernel has room.
 *
 * We wait in our set rather than in libuv's: most of what happens is a descriptor, and would go
 * through both sets, with a system call and a wake-up for each.
 */
#include "loop/loop_int.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#define BATCH       64 /* events taken from the kernel at a time */
#define ROOM        12 /* descriptors and watches of an event loop, and some more */
#define SLOW_MS     20 /* between two looks at watches that have no place in the set */
#define ROUNDS      3 /* of later calls that ask for later calls, before the next look at the set */
#define LAST_ROUNDS 8 /* of the same, when the loop is freed */

/* What loop_later() was asked for; a row lives until it has run. */
struct later {
    struct later *next; /* owned */
    loop_fn *fn;
    void *arg;
};

struct loop {
    uv_loop_t uv;
    bool stopping;
    struct later *later; /* owned: oldest first */
    struct later **later_end;
    uv_async_t async; /* another thread has posted */
    uv_mutex_t lock;  /* of the two below */
    struct later *posted;
    struct later **posted_end;
    struct workers *workers; /* owned */
    int epoll;               /* owned */
    uv_signal_t signals;     /* never started: libuv watches its pipe from the first one on */
    uv_timer_t slow;         /* active while a watch is slow */
    struct watch *watches;   /* owned */
    struct epoll_event batch[BATCH];
    int batch_n, batch_at; /* events in it; the next one to be told */
};

struct watch {
    struct loop *loop;          /* borrowed */
    struct watch *next, **link; /* of loop->watches */
    int fd;
    uint32_t events;
    bool once;
    bool slow; /* not in the epoll set: there is no room */
    loop_fn *fn;
    void *arg;
};

/* These two begin with their libuv handle, so that on_closed() frees either. */

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

static_assert(offsetof(struct timer, uv) == 0 && offsetof(struct catcher, uv) == 0,
              "on_closed() frees the handle's own address");

/* libuv fails here only for want of memory, or for a handle that is not ours. */
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

static void run_later(struct loop *l, int rounds)
{
    for (int i = 0; i < rounds && l->later; i++) {
        struct later *todo = l->later;
        l->later = NULL;
        l->later_end = &l->later;
        run_all(todo);
    }
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

/* What libuv itself will open and have watched, tried before it does: it ends the process when the
 * kernel refuses either. */
static int check_room(struct err *e)
{
    int fds[ROOM];
    int set = epoll_create1(EPOLL_CLOEXEC);
    int n = 0, rc = 0;
    struct epoll_event ev = {.events = EPOLLIN};

    while (set >= 0 && rc == 0 && n < ROOM) {
        fds[n] = eventfd(0, EFD_CLOEXEC);
        rc = fds[n] < 0 ? -1 : epoll_ctl(set, EPOLL_CTL_ADD, fds[n++], &ev);
    }
    if (set < 0)
        rc = -1;
    if (rc < 0)
        err_sys(e,
                errno == ENOSPC
                    ? "this user's epoll watches are used up (fs.epoll.max_user_watches): end the "
                      "processes that hold them, or raise the limit"
                    : "no event loop can be made");
    while (n > 0)
        close(fds[--n]);
    fd_closep(&set);
    return rc;
}

/* libuv's set in ours. */
static int watch_uv(struct loop *l)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &l->uv};

    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    return l->epoll < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, uv_backend_fd(&l->uv), &ev) < 0
               ? -errno
               : 0;
}

struct loop *loop_new(struct err *e)
{
    struct loop *l;

    if (check_room(e) < 0)
        return NULL;
    l = mem_zalloc(sizeof(*l));
    must(uv_loop_init(&l->uv));
    must(watch_uv(l));
    must(uv_timer_init(&l->uv, &l->slow));
    must(uv_async_init(&l->uv, &l->async, on_posted));
    must(uv_signal_init(&l->uv, &l->signals));
    must(uv_mutex_init(&l->lock));
    l->slow.data = l->async.data = l;
    l->later_end = &l->later;
    l->posted_end = &l->posted;
    uv_run(&l->uv, UV_RUN_NOWAIT); /* libuv's watches are in the kernel now, and stay there */
    l->workers = workers_new(l);
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

    bool part = (char *)h >= (char *)l && (char *)h < (char *)(l + 1);

    if (!uv_is_closing(h))
        uv_close(h, part ? NULL : on_closed);
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    /* What was put off is often the freeing of something; what asks for itself anew is not. */
    for (int round = 0; (l->later || l->posted) && round < LAST_ROUNDS; round++) {
        run_later(l, 1);
        on_posted(&l->async);
    }
    while (workers_wait(l->workers)) /* what is told may ask for more */
        on_posted(&l->async);
    workers_free(l->workers);
    while (l->watches)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        watch_free(l->watches);
    uv_walk(&l->uv, close_handle, l);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    must(uv_loop_close(&l->uv));
    uv_mutex_destroy(&l->lock);
    close(l->epoll);
    forget(l->later);
    forget(l->posted);
    free(l);
}

void loop_stop(struct loop *l)
{
    l->stopping = true;
}

void loop_later(struct loop *l, loop_fn *fn, void *arg)
{
    struct later *one = mem_zalloc(sizeof(*one));

    *one = (struct later){.fn = fn, .arg = arg};
    *l->later_end = one;
    l->later_end = &one->next;
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

struct workers *loop_workers(struct loop *l)
{
    return l->workers;
}

/* --- fds --- */

/* Errors count as ready: the call that follows tells what is the matter. */
static void tell(struct watch *w)
{
    if (w->once)
        watch_pause(w);
    w->fn(w->arg);
}

/* A callback may free any watch: watch_free() takes it out of the batch. Returns whether libuv's
 * set was among what is ready. */
static bool take_ready(struct loop *l, int timeout_ms)
{
    int n = epoll_wait(l->epoll, l->batch, BATCH, timeout_ms);
    bool is_uv = false;

    l->batch_n = n > 0 ? n : 0;
    for (l->batch_at = 0; l->batch_at < l->batch_n;) { /* in the order in which they became ready */
        void *who = l->batch[l->batch_at++].data.ptr;
        if (who == &l->uv)
            is_uv = true;
        else if (who)
            tell(who);
    }
    l->batch_n = 0;
    return is_uv;
}

/* When libuv wants to be called, in ms: 0 also while it closes something; -1: nothing is set. */
static int uv_due_ms(struct loop *l)
{
    uv_update_time(&l->uv);
    return uv_backend_timeout(&l->uv);
}

void loop_run(struct loop *l)
{
    do {
        bool is_uv = take_ready(l, l->later || l->stopping ? 0 : uv_due_ms(l));
        if (is_uv || uv_due_ms(l) == 0)
            uv_run(&l->uv, UV_RUN_NOWAIT);
        run_later(l, ROUNDS);
    } while (!l->stopping);
    l->stopping = false;
}

static void on_slow(uv_timer_t *h)
{
    struct loop *l = h->data;
    bool again = false;

    for (struct watch *w = l->watches; w; w = w->next) {
        again |= w->slow;
        if (!w->slow)
            continue;
        struct pollfd p = {.fd = w->fd, .events = (short)w->events};
        watch_resume(w);
        if (w->slow && poll(&p, 1, 0) > 0) {
            tell(w);
            break; /* the list may be another now; the others are looked at next time */
        }
    }
    if (!again)
        uv_timer_stop(&l->slow);
}

static struct watch *watch_open(struct loop *l, int fd, uint32_t events, loop_fn *fn, void *arg)
{
    struct watch *w = mem_zalloc(sizeof(*w));

    *w = (struct watch){.loop = l,
                        .next = l->watches,
                        .link = &l->watches,
                        .fd = fd,
                        .events = events,
                        .fn = fn,
                        .arg = arg};
    if (w->next)
        w->next->link = &w->next;
    l->watches = w;
    watch_resume(w);
    return w;
}

struct watch *watch_new(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    return watch_open(l, fd, EPOLLIN, fn, arg);
}

struct watch *watch_new_writable(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    return watch_open(l, fd, EPOLLOUT, fn, arg);
}

struct watch *watch_new_hangup(struct loop *l, int fd, loop_fn *fn, void *arg)
{
    struct watch *w = watch_open(l, fd, EPOLLRDHUP, fn, arg);

    w->once = true;
    return w;
}

/* Out of the set, not merely without events: the kernel tells of a hangup in any case. */
void watch_pause(struct watch *w)
{
    struct loop *l = w->loop;

    w->slow = false;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    for (int i = l->batch_at; i < l->batch_n; i++)
        if (l->batch[i].data.ptr == w)
            l->batch[i].data.ptr = NULL;
}

void watch_resume(struct watch *w)
{
    struct epoll_event ev = {.events = w->events, .data.ptr = w};

    w->slow = epoll_ctl(w->loop->epoll, EPOLL_CTL_ADD, w->fd, &ev) < 0 && errno != EEXIST;
    if (w->slow && !uv_is_active((uv_handle_t *)&w->loop->slow))
        must(uv_timer_start(&w->loop->slow, on_slow, SLOW_MS, SLOW_MS));
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    watch_pause(w);
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    free(w);
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
