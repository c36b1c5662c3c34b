/* The sockets that libcurl waits for are in an epoll set, and the loop watches the fd of that set.
 */
#include "multi/multi.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 64

struct multi {
    struct loop *loop; /* borrowed */
    long idle, total;
    CURLM *curl; /* owned */
    int epoll;   /* owned */
    bool kicked; /* the timer is at 0 for us, whatever libcurl wants it for */
    struct watch *watch;
    struct timer *timer;
    loop_fn *after;
    void *arg;
};

static void on_sockets(void *arg)
{
    struct multi *m = arg;
    struct epoll_event events[EVENTS];
    int n = epoll_wait(m->epoll, events, EVENTS, 0), running;

    for (int i = 0; i < n; i++) {
        uint32_t got = events[i].events;
        int what = (got & EPOLLIN ? CURL_CSELECT_IN : 0) | (got & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (got & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

        (void)curl_multi_socket_action(m->curl, events[i].data.fd, what, &running);
    }
    m->after(m->arg);
}

static void on_timer(void *arg)
{
    struct multi *m = arg;
    int running;

    m->kicked = false;
    if (m->curl) /* libcurl says again how long it wants to wait */
        (void)curl_multi_socket_action(m->curl, CURL_SOCKET_TIMEOUT, 0, &running);
    m->after(m->arg);
}

static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct multi *m = arg;
    struct epoll_event ev = {.data.fd = fd};

    (void)easy;
    (void)known;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, fd, &ev);
        return 0;
    }
    ev.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
        return 0;
    return errno == EEXIST && epoll_ctl(m->epoll, EPOLL_CTL_MOD, fd, &ev) == 0 ? 0 : -1;
}

static int on_deadline(CURLM *curl, long ms, void *arg)
{
    struct multi *m = arg;

    (void)curl;
    if (m->kicked)
        return 0;
    if (ms < 0)
        timer_clear(m->timer);
    else
        timer_set(m->timer, (uint64_t)ms);
    return 0;
}

curl_socket_t multi_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)arg;
    (void)purpose;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

#define SET_ALL(option, value)                                                                     \
    ok = ok && curl_multi_setopt(m->curl, CURLMOPT_##option, value) == CURLM_OK

CURLM *multi_handle(struct multi *m)
{
    bool ok = true;

    if (m->curl)
        return m->curl;
    if (m->epoll < 0)
        m->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (m->epoll < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    m->curl = curl_multi_init();
    if (!m->curl)
        return NULL;
    SET_ALL(SOCKETFUNCTION, on_interest);
    SET_ALL(SOCKETDATA, m);
    SET_ALL(TIMERFUNCTION, on_deadline);
    SET_ALL(TIMERDATA, m);
    SET_ALL(MAXCONNECTS, m->idle);
    SET_ALL(MAX_TOTAL_CONNECTIONS, m->total);
    assert(ok); /* every supported libcurl knows these */
    m->watch = watch_new(m->loop, m->epoll, on_sockets, m);
    return m->curl;
}

void multi_kick(struct multi *m)
{
    m->kicked = true;
    timer_set(m->timer, 0);
}

struct multi *multi_new(struct loop *l, long idle, long total, loop_fn *after, void *arg)
{
    struct multi *m = mem_zalloc(sizeof(*m));

    *m = (struct multi){
        .loop = l, .idle = idle, .total = total, .epoll = -1, .after = after, .arg = arg};
    m->timer = timer_new(l, on_timer, m);
    return m;
}

void multi_free(struct multi *m)
{
    if (!m)
        return;
    if (m->curl)
        (void)curl_multi_cleanup(m->curl); /* calls on_interest() and on_deadline() */
    watch_free(m->watch);
    timer_free(m->timer);
    fd_closep(&m->epoll);
    free(m);
}
