/*
 * HTTP requests on the loop, with libcurl.
 *
 * The sockets that libcurl waits for are in an epoll set, and the loop watches the fd of
 * that set. libcurl's callbacks only buffer bytes; tell_all() calls the watchers afterwards,
 * so that they may start and cancel posts.
 *
 * Endpoints are not trusted: answers have limits, redirects are not followed, certificates
 * are verified.
 */
#include "model/model_int.h"

#include "loop/loop.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HEAD_MAX    (64 * KiB)
#define BODY_MAX    (32 * MiB)
#define ERROR_MAX   (64 * KiB) /* of an error; the rest is not read */
#define CONNECT_MS  15000
#define LINGER_MS   1000
#define RETRY_MAX_S 3600ull
#define IDLE_MAX    16  /* idle connections */
#define TOTAL_MAX   512 /* connections; further posts wait, and their time runs */
#define EVENTS      64
#define BUFFER      (64 * KiB)

struct web {
    struct loop *loop; /* borrowed */
    CURLM *multi;      /* owned */
    int epoll;         /* owned */
    struct watch *watch;
    struct timer *timer;
    struct web_post *all;   /* owned */
    struct web_post *ready; /* posts with something to tell, oldest first */
    struct web_post **ready_end;
    struct web_post *telling; /* NULL once cancelled */
};

struct web_post {
    struct web_post *next, **here; /* in web.all */
    struct web_post *next_ready;
    bool is_ready;
    struct web *web; /* borrowed: outlives us */
    struct web_post_watcher watcher;
    void *arg;
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    char *body;                 /* owned */
    struct timer *linger;       /* owned, once released; or NULL */
    struct buf in;              /* not told yet */
    size_t head_bytes, body_bytes;
    bool ended, flood, enough;
    CURLcode code;
};

/* --- posts that have something to tell --- */

static void make_ready(struct web_post *p)
{
    struct web *w = p->web;

    if (p->is_ready)
        return;
    p->is_ready = true;
    p->next_ready = NULL;
    *w->ready_end = p;
    w->ready_end = &p->next_ready;
}

static void unready(struct web_post *p)
{
    struct web *w = p->web;
    struct web_post **at = &w->ready;

    if (!p->is_ready)
        return;
    while (*at != p)
        at = &(*at)->next_ready;
    *at = p->next_ready;
    if (w->ready_end == &p->next_ready)
        w->ready_end = at;
    p->is_ready = false;
}

static void web_post_free(struct web_post *p)
{
    unready(p);
    *p->here = p->next;
    if (p->next)
        p->next->here = p->here;
    if (p->easy) {
        (void)curl_multi_remove_handle(p->web->multi, p->easy);
        curl_easy_cleanup(p->easy);
    }
    curl_slist_free_all(p->headers);
    if (p->linger)
        timer_free(p->linger);
    buf_done(&p->in);
    free(p->body);
    free(p);
}

static int status_of(const struct web_post *p)
{
    long status = 0;

    if (p->easy)
        (void)curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

/* --- how a post ends --- */

static const char *why(CURLcode code)
{
    static const struct {
        CURLcode code;
        const char *text;
    } rows[] = {
        {CURLE_COULDNT_RESOLVE_HOST,     "has a name without an address"         },
        {CURLE_COULDNT_RESOLVE_PROXY,    "is behind a proxy without an address"  },
        {CURLE_COULDNT_CONNECT,          "could not be reached"                  },
        {CURLE_OPERATION_TIMEDOUT,       "did not answer in time"                },
        {CURLE_PARTIAL_FILE,             "hung up before the end of its answer"  },
        {CURLE_GOT_NOTHING,              "hung up without an answer"             },
        {CURLE_RECV_ERROR,               "hung up before the end of its answer"  },
        {CURLE_SEND_ERROR,               "hung up before it was asked"           },
        {CURLE_SSL_CONNECT_ERROR,        "does not speak TLS that can be used"   },
        {CURLE_PEER_FAILED_VERIFICATION, "has no certificate that can be trusted"},
        {CURLE_SSL_CACERT_BADFILE,       "has no certificate that can be trusted"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].code == code)
            return rows[i].text;
    return code == CURLE_OK ? NULL : "did not answer as an HTTP server does";
}

/* libcurl reads Retry-After in seconds or as a date, but not retry-after-ms. */
static uint64_t retry_of(const struct web_post *p)
{
    struct curl_header *ms = NULL;
    curl_off_t s = 0;

    if (curl_easy_header(p->easy, "retry-after-ms", 0, CURLH_HEADER, -1, &ms) == CURLHE_OK) {
        double v = strtod(ms->value, NULL);

        if (v > 0)
            return v < (double)RETRY_MAX_S * 1000 ? (uint64_t)v + 1 : RETRY_MAX_S * 1000;
    }
    (void)curl_easy_getinfo(p->easy, CURLINFO_RETRY_AFTER, &s);
    return s <= 0 ? 0 : ((uint64_t)s < RETRY_MAX_S ? (uint64_t)s : RETRY_MAX_S) * 1000;
}

static void end(struct web_post *p)
{
    struct web_post_watcher watcher = p->watcher;
    void *arg = p->arg;
    bool told = p->linger != NULL;
    struct web_post_end how = {
        .status = status_of(p),
        .retry_ms = p->easy ? retry_of(p) : 0,
        .why = p->enough ? NULL : why(p->code),
        .flood = p->flood,
    };

    if (p->flood)
        how.why = "sent more than anybody can read";
    web_post_free(p);
    if (!told)
        watcher.on_end(arg, &how);
}

/* The watcher may start and cancel posts, also this one. */
static void tell(struct web_post *p)
{
    struct web *w = p->web;
    struct buf taken = p->in;

    unready(p);
    w->telling = p;
    buf_init(&p->in, BODY_MAX);
    if (taken.n > 0 && !p->linger)
        p->watcher.on_body(p->arg, status_of(p), buf_str(&taken));
    buf_done(&taken);
    if (w->telling && p->ended)
        end(p);
    w->telling = NULL;
}

static void tell_all(struct web *w)
{
    struct CURLMsg *msg;
    struct web_post *p;
    int left;

    while (w->multi && (msg = curl_multi_info_read(w->multi, &left))) {
        if (msg->msg != CURLMSG_DONE ||
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &p) != CURLE_OK)
            continue;
        p->ended = true;
        p->code = msg->data.result;
        make_ready(p);
    }
    while (w->ready)
        tell(w->ready); /* NOLINT(clang-analyzer-unix.Malloc): tell() takes it off the list */
}

/* --- what the loop and libcurl call --- */

static void on_sockets(void *arg)
{
    struct web *w = arg;
    struct epoll_event events[EVENTS];
    int n = epoll_wait(w->epoll, events, EVENTS, 0), running;

    for (int i = 0; i < n; i++) {
        uint32_t got = events[i].events;
        int what = (got & EPOLLIN ? CURL_CSELECT_IN : 0) | (got & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (got & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

        (void)curl_multi_socket_action(w->multi, events[i].data.fd, what, &running);
    }
    tell_all(w);
}

static void on_timer(void *arg)
{
    struct web *w = arg;
    int running;

    if (w->multi)
        (void)curl_multi_socket_action(w->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    tell_all(w);
}

static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct web *w = arg;
    struct epoll_event ev = {.data.fd = fd};

    (void)easy;
    (void)known;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, &ev);
        return 0;
    }
    ev.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
        return 0;
    return errno == EEXIST && epoll_ctl(w->epoll, EPOLL_CTL_MOD, fd, &ev) == 0 ? 0 : -1;
}

static int on_deadline(CURLM *multi, long ms, void *arg)
{
    struct web *w = arg;

    (void)multi;
    if (ms < 0)
        timer_clear(w->timer);
    else
        timer_set(w->timer, (uint64_t)ms);
    return 0;
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)arg;
    (void)purpose;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static size_t on_head(char *line, size_t one, size_t n, void *arg)
{
    struct web_post *p = arg;

    (void)line;
    (void)one;
    p->head_bytes += n;
    p->flood = p->flood || p->head_bytes > HEAD_MAX;
    return p->flood ? 0 : n;
}

/* Returning less than n ends the transfer. */
static size_t on_bytes(char *bytes, size_t one, size_t n, void *arg)
{
    struct web_post *p = arg;
    bool fine = status_of(p) / 100 == 2;

    (void)one;
    p->body_bytes += n;
    p->flood = fine && p->body_bytes > BODY_MAX;
    p->enough = !fine && p->body_bytes > ERROR_MAX;
    if (p->flood || p->enough)
        return 0;
    if (buf_put(&p->in, (struct str){bytes, n}) < 0)
        return 0;
    make_ready(p);
    return n;
}

/* --- starting --- */

#define SET(option, value) ok = ok && curl_easy_setopt(p->easy, option, value) == CURLE_OK

/* No redirects, so that the key goes nowhere else; no cookies, no .netrc, no compression. */
static bool set_manners(struct web_post *p, const struct web_post_spec *spec)
{
    bool ok = true;

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, spec->proxy ? spec->proxy : "");
    SET(CURLOPT_NOPROXY, spec->proxy ? "" : "*");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_ACCEPT_ENCODING, NULL);
    SET(CURLOPT_USERAGENT, "retort/" RETORT_VERSION);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (spec->ca_file)
        SET(CURLOPT_CAINFO, spec->ca_file);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* do not wait for the resolver thread */
    return ok;
}

static bool set_limits(struct web_post *p, uint64_t wall_ms)
{
    long wall = wall_ms < INT32_MAX ? (long)wall_ms : INT32_MAX;
    bool ok = true;

    SET(CURLOPT_TIMEOUT_MS, wall);
    SET(CURLOPT_CONNECTTIMEOUT_MS, wall < CONNECT_MS ? wall : CONNECT_MS);
    SET(CURLOPT_BUFFERSIZE, (long)BUFFER);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(CURLOPT_WRITEFUNCTION, on_bytes);
    SET(CURLOPT_WRITEDATA, p);
    SET(CURLOPT_HEADERFUNCTION, on_head);
    SET(CURLOPT_HEADERDATA, p);
    SET(CURLOPT_PRIVATE, p);
    return ok;
}

static bool set_request(struct web_post *p, const struct web_post_spec *spec)
{
    bool ok = true;

    for (const char *const *h = spec->headers; *h; h++) {
        struct curl_slist *more = curl_slist_append(p->headers, *h);

        if (!more)
            return false;
        p->headers = more;
    }
    SET(CURLOPT_URL, spec->url);
    SET(CURLOPT_HTTPHEADER, p->headers);
    if (!p->body)
        return ok;
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->body_n);
    SET(CURLOPT_POSTFIELDS, p->body);
    return ok;
}

#define SET_ALL(option, value)                                                                     \
    ok = ok && curl_multi_setopt(w->multi, CURLMOPT_##option, value) == CURLM_OK

/* Opened by the first post, so that a process that asks nothing has no fds. */
static bool is_open(struct web *w)
{
    bool ok = true;

    if (w->multi)
        return true;
    if (w->epoll < 0)
        w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return false;
    w->multi = curl_multi_init();
    if (!w->multi)
        return false;
    SET_ALL(SOCKETFUNCTION, on_interest);
    SET_ALL(SOCKETDATA, w);
    SET_ALL(TIMERFUNCTION, on_deadline);
    SET_ALL(TIMERDATA, w);
    SET_ALL(MAXCONNECTS, (long)IDLE_MAX);
    SET_ALL(MAX_TOTAL_CONNECTIONS, (long)TOTAL_MAX);
    assert(ok); /* every supported libcurl knows these */
    w->watch = watch_new(w->loop, w->epoll, on_sockets, w);
    return true;
}

static bool begin(struct web_post *p, const struct web_post_spec *spec)
{
    p->easy = is_open(p->web) ? curl_easy_init() : NULL;
    return p->easy && set_manners(p, spec) && set_limits(p, spec->wall_ms) &&
           set_request(p, spec) && curl_multi_add_handle(p->web->multi, p->easy) == CURLM_OK;
}

struct web_post *web_post_start(struct web *w, const struct web_post_spec *spec,
                                const struct web_post_watcher *pw, void *arg)
{
    struct web_post *p = mem_zalloc(sizeof(*p));

    *p = (struct web_post){.web = w, .watcher = *pw, .arg = arg, .body = spec->body};
    p->next = w->all;
    p->here = &w->all;
    if (p->next)
        p->next->here = &p->next;
    w->all = p;
    buf_init(&p->in, BODY_MAX);
    if (!begin(p, spec)) { /* no memory, or a bad URL */
        p->ended = true;
        p->code = CURLE_FAILED_INIT;
        make_ready(p);
        timer_set(w->timer, 0);
    }
    return p;
}

void web_post_cancel(struct web_post *p)
{
    if (p->web->telling == p)
        p->web->telling = NULL;
    web_post_free(p);
}

static void on_lingered(void *arg)
{
    web_post_free(arg);
}

void web_post_release(struct web_post *p)
{
    assert(!p->linger);
    p->linger = timer_new(p->web->loop, on_lingered, p);
    timer_set(p->linger, LINGER_MS);
}

/* --- the web --- */

struct web *web_new(struct loop *l)
{
    struct web *w = mem_zalloc(sizeof(*w));

    *w = (struct web){.loop = l, .epoll = -1, .ready_end = &w->ready};
    w->timer = timer_new(l, on_timer, w);
    return w;
}

void web_free(struct web *w)
{
    if (!w)
        return;
    while (w->all)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        web_post_free(w->all);
    if (w->multi)
        (void)curl_multi_cleanup(w->multi); /* calls on_interest() and on_deadline() */
    watch_free(w->watch);
    timer_free(w->timer);
    fd_closep(&w->epoll);
    free(w);
}
