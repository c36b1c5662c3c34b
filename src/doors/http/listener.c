/*
 * The HTTP library inside the loop: one daemon for each listening socket, no threads.
 *
 * Each daemon has an epoll fd that the loop watches; MHD_run() does what is ready and returns. The
 * library also has to run after a connection was resumed, which no fd tells: listener_kick(). A
 * tick checks the time limits: ours for heads and bodies, which end a client that sends byte by
 * byte, and the library's own for a client that reads nothing.
 *
 * A client that still sends while we close would get a reset, and lose the answer with it. So such
 * a socket stays open for a while after the library has closed it, and what arrives is dropped.
 */
#include "doors/http/http_mhd.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define RUNS       8   /* in a row; then the rest of the loop gets its turn */
#define LINGER_MAX 256 /* sockets kept that way */
#define ACCEPTS    64  /* connections taken in a row */
#define REST_MS    100 /* when there is no descriptor left for one */

#define US(ms) ((int64_t)(ms)*1000)

static const char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static void run(struct http_listener *li);

/* --- clocks --- */

static uint64_t tick_ms(const struct http *h)
{
    uint64_t ms = h->config.header_ms / 4;

    return ms < 50 ? 50 : ms > 1000 ? 1000 : ms;
}

/* Ends a connection from outside: the library finds out. */
static void hang_up(struct http_conn *c)
{
    c->deadline_us = 0;
    shutdown(c->fd, SHUT_RDWR);
}

/* The end of a stream that comes together with bytes is an edge the library misses: it reads until
 * it gets less than it asked for, and waits for the next. So those we expect bytes from are asked
 * now and then; 10,000 of them take a few milliseconds. */
static bool has_left(const struct http_conn *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The library does not tell of bytes before it has a whole request line, but the kernel counts
 * them. It does so for TCP alone; a Unix socket has only its idle time. */
static uint64_t bytes_heard(const struct http_conn *c)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);

    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_received : 0;
}

void conn_whole(struct http_conn *c)
{
    conn_expect(c, 0);
    c->heard = bytes_heard(c);
}

void conn_idle(struct http_conn *c)
{
    conn_expect(c, IDLE_MS);
    c->idle = true;
}

/* A next request has begun: its head has as long as that of the first. */
static void look_begun(struct http *h, struct http_conn *c)
{
    if (!c->idle || bytes_heard(c) == c->heard)
        return;
    c->idle = false;
    conn_expect(c, h->config.header_ms);
}

static void on_tick(void *arg)
{
    struct http *h = arg;
    int64_t now = time_mono_us();

    for (struct http_conn *c = h->conns; c; c = c->next) {
        look_begun(h, c);
        if (c->deadline_us && (c->deadline_us < now || has_left(c)))
            hang_up(c);
        else if (c->request && c->request->stage == STAGE_STREAM && !guard_stands(c->request)) {
            stream_revoke(c->request);
            hang_up(c); /* also where the client takes no byte */
        }
    }
    for (struct http_listener *li = h->listeners; li; li = li->next)
        run(li);
    if (h->conns)
        timer_set(h->tick, tick_ms(h));
}

struct timer *clock_new(struct http *h)
{
    return timer_new(h->loop, on_tick, h);
}

void conn_expect(struct http_conn *c, uint64_t ms)
{
    c->deadline_us = ms ? time_mono_us() + US(ms) : 0;
}

/* --- lingering --- */

struct straggler {
    struct straggler *next, **link;
    struct http *http; /* borrowed */
    int fd;            /* owned */
    struct watch *watch;
    struct timer *timer;
};

static void linger_end(void *arg)
{
    struct straggler *g = arg;

    *g->link = g->next;
    if (g->next)
        g->next->link = g->link;
    g->http->straggler_count--;
    watch_free(g->watch);
    timer_free(g->timer);
    close(g->fd);
    free(g);
}

static void on_linger(void *arg)
{
    struct straggler *g = arg;
    char nowhere[16 * KiB];
    ssize_t n = recv(g->fd, nowhere, sizeof(nowhere), MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        linger_end(g);
}

static void linger_begin(struct http *h, int fd)
{
    struct straggler *g;
    int copy = h->straggler_count < LINGER_MAX && !h->freed ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (copy < 0)
        return;
    g = mem_zalloc(sizeof(*g));
    *g = (struct straggler){.next = h->stragglers, .link = &h->stragglers, .http = h, .fd = copy};
    if (g->next)
        g->next->link = &g->next;
    h->stragglers = g;
    h->straggler_count++;
    g->watch = watch_new(h->loop, copy, on_linger, g);
    g->timer = timer_new(h->loop, linger_end, g);
    timer_set(g->timer, LINGER_MS);
}

void linger_free(struct http *h)
{
    for (struct straggler *g = h->stragglers, *next; g; g = next) {
        next = g->next;
        linger_end(g);
    }
}

/* --- connections --- */

static void address_key(const struct sockaddr *sa, uint8_t ret[16])
{
    memset(ret, 0, 16);
    if (sa && sa->sa_family == AF_INET)
        memcpy(ret + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
    else if (sa && sa->sa_family == AF_INET6)
        memcpy(ret, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
}

/* A look at every connection: 10,000 take some microseconds, and only where a limit is set. */
static uint64_t from_address(struct http *h, const struct sockaddr *sa)
{
    uint8_t key[16];
    uint64_t count = 0;

    address_key(sa, key);
    for (struct http_conn *c = h->conns; c; c = c->next)
        count += memcmp(c->address, key, sizeof(key)) == 0;
    return count;
}

static bool has_room(struct http *h, const struct sockaddr *sa)
{
    bool ip = sa->sa_family == AF_INET || sa->sa_family == AF_INET6;

    return h->counts.connections < h->config.max_connections &&
           (!h->config.max_per_address || !ip || from_address(h, sa) < h->config.max_per_address);
}

static void on_rested(void *arg)
{
    struct http_listener *li = arg;

    if (li->accepts)
        watch_resume(li->accepts);
}

/* Left to the library, a listener that has met the end of our descriptors never accepts again,
 * unless one of its own connections ends. */
static void on_connect(void *arg)
{
    struct http_listener *li = arg;
    struct http *h = li->http;

    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage from = {0};
        struct sockaddr *sa = (struct sockaddr *)&from;
        socklen_t n = sizeof(from);
        int fd = accept4(li->fd, sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 && errno == EAGAIN)
            break;
        if (fd < 0) {
            log_warn("no connection is taken for %d ms: %s", REST_MS, strerror(errno));
            watch_pause(li->accepts);
            timer_set(li->rest, REST_MS);
            break;
        }
        if (has_room(h, sa)) {
            (void)MHD_add_connection(li->daemon, fd, sa, n); /* closes fd when it fails */
        } else {
            h->counts.refused++;
            close(fd);
        }
    }
    run(li);
}

static void conn_start(struct http_listener *li, struct MHD_Connection *mhd, void **ctx)
{
    struct http *h = li->http;
    struct http_conn *c = mem_zalloc(sizeof(*c));
    /* Each call may overwrite what the one before returned. */
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    *c = (struct http_conn){.next = h->conns, .link = &h->conns, .listener = li, .fd = fd};
    address_key(address ? address->client_addr : NULL, c->address);
    if (c->next)
        c->next->link = &c->next;
    else
        timer_set(h->tick, tick_ms(h));
    h->conns = c;
    h->counts.connections++;
    h->counts.accepted++;
    conn_expect(c, h->config.header_ms);
    *ctx = c;
}

static void conn_end(struct http_conn *c)
{
    struct http *h = c->listener->http;
    int unread = 0;

    assert(!c->request);
    watch_free(c->hangup);
    if (c->linger || (ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0))
        linger_begin(h, c->fd);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    h->counts.connections--;
    free(c);
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **ctx,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        conn_start(arg, mhd, ctx);
    else if (*ctx)
        conn_end(take_ptr(ctx));
}

/* --- the daemon --- */

static void on_ready(void *arg)
{
    run(arg);
}

static void on_kick(void *arg)
{
    struct http_listener *li = arg;

    li->kicked = false;
    if (li->dead)
        free(li);
    else
        run(li);
}

void listener_kick(struct http_listener *li)
{
    if (li->kicked)
        return;
    li->kicked = true;
    loop_later(li->http->loop, on_kick, li);
}

static void run(struct http_listener *li)
{
    MHD_UNSIGNED_LONG_LONG ms;

    for (int i = 0; i < RUNS; i++) {
        MHD_run(li->daemon);
        /* Only 0 matters, "there is more": the clocks are the tick's. */
        if (MHD_get_timeout(li->daemon, &ms) == MHD_NO || ms > 0)
            return;
    }
    listener_kick(li);
}

int listener_new(struct http *h, int fd, bool local, struct err *e)
{
    struct http_listener *li = mem_zalloc(sizeof(*li));
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                     (h->tls_cert ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT,                                  0, h->tls_cert         },
        {MHD_OPTION_HTTPS_MEM_KEY,                                   0, h->tls_key          },
        {MHD_OPTION_HTTPS_PRIORITIES,                                0, (void *)tls_versions},
        {h->tls_trust ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, h->tls_trust        },
        {MHD_OPTION_END,                                             0, NULL                },
    };

    *li = (struct http_listener){.http = h, .local = local, .fd = fd};
    li->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, http_on_request, li, STRICTNESS, /* */
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->config.max_connections + 1,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_MS / 1000, /* */
                         MHD_OPTION_URI_LOG_CALLBACK, http_on_target, li,         /* */
                         MHD_OPTION_NOTIFY_COMPLETED, http_on_over, li,           /* */
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, li,         /* */
                         MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,                    /* */
                         h->tls_cert ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls, MHD_OPTION_END);
    if (!li->daemon) {
        free(li);
        return err_set(e, ERR_HOST, "cannot serve on this socket%s",
                       h->tls_cert ? ": is the certificate that of the key?" : "");
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(li->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    li->watch = watch_new(h->loop, info->epoll_fd, on_ready, li);
    li->accepts = watch_new(h->loop, fd, on_connect, li);
    li->rest = timer_new(h->loop, on_rested, li);
    li->next = h->listeners;
    h->listeners = li;
    return 0;
}

void listener_close(struct http_listener *li)
{
    watch_free(take_ptr(&li->accepts));
    fd_closep(&li->fd);
}

/* Everything suspended has been resumed; the library insists. */
void listener_free(struct http_listener *li)
{
    listener_close(li);
    timer_free(li->rest);
    watch_free(li->watch);
    MHD_stop_daemon(li->daemon);
    li->dead = true;
    if (!li->kicked)
        free(li);
}
