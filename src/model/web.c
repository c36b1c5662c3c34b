/*
 * HTTP requests on the loop, with libcurl.
 *
 * libcurl's callbacks only buffer bytes; tell_all() calls the watchers afterwards, so that they
 * may start and cancel posts.
 *
 * Endpoints are not trusted: answers have limits, redirects are not followed, certificates
 * are verified.
 */
#include "model/model_int.h"

#include "loop/loop.h"
#include "multi/multi.h"

#include <stdlib.h>

#define HEAD_MAX    (64 * KiB)
#define BODY_MAX    (32 * MiB)
#define ERROR_MAX   (64 * KiB) /* of an error; the rest is not read */
#define CONNECT_MS  15000
#define LINGER_MS   1000
#define RETRY_MAX_S 3600ull
#define IDLE_MAX    16  /* idle connections */
#define TOTAL_MAX   512 /* connections; further posts wait, and their time runs */
#define BUFFER      (64 * KiB)

struct web {
    struct loop *loop;      /* borrowed */
    struct multi *multi;    /* owned */
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
        (void)curl_multi_remove_handle(multi_handle(p->web->multi), p->easy);
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

static void tell_all(void *arg)
{
    struct web *w = arg;
    CURLM *curl = multi_handle(w->multi);
    struct CURLMsg *msg;
    struct web_post *p;
    int left;

    while (curl && (msg = curl_multi_info_read(curl, &left))) {
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

/* --- what libcurl calls --- */

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
    SET(CURLOPT_OPENSOCKETFUNCTION, multi_socket);
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

static bool begin(struct web_post *p, const struct web_post_spec *spec)
{
    CURLM *curl = multi_handle(p->web->multi);

    p->easy = curl ? curl_easy_init() : NULL;
    return p->easy && set_manners(p, spec) && set_limits(p, spec->wall_ms) &&
           set_request(p, spec) && curl_multi_add_handle(curl, p->easy) == CURLM_OK;
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
        multi_kick(w->multi);
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

    *w = (struct web){.loop = l, .ready_end = &w->ready};
    w->multi = multi_new(l, IDLE_MAX, TOTAL_MAX, tell_all, w);
    return w;
}

void web_free(struct web *w)
{
    if (!w)
        return;
    while (w->all)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        web_post_free(w->all);
    multi_free(w->multi);
    free(w);
}
