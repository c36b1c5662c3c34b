/* libcurl's callbacks only take note; tell_all() calls the watchers afterwards. */
#include "peer/peer.h"

#include "loop/loop.h"
#include "multi/multi.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define CONNECT_MS 2000
#define SILENT_MS  10000 /* what was sent and nobody acknowledged */
#define HEAD_MAX   (64 * KiB)
#define BUFFER     (64 * KiB)
#define IDLE_MAX   64
#define BODY_CAP   (4 * MiB) /* more than can come after a hold */

struct peers {
    struct multi *multi;    /* owned */
    struct peer_call *all;  /* owned */
    struct peer_call *told; /* NULL once it is cancelled */
};

struct peer_call {
    struct peer_call *next, **here;
    struct peers *peers; /* borrowed */
    struct peer_watcher watcher;
    void *arg;
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    char *url, *method;         /* owned */
    struct buf out, in;
    size_t out_at, head_bytes;
    bool out_ended, out_full;   /* full: somebody waits for room */
    bool reading_stopped;       /* libcurl waits for more of the body */
    bool held, writing_stopped; /* libcurl waits until more can be taken */
    bool has_head, told_head;   /* of the answer */
    bool sent, ended;
    CURLcode code;
};

static void call_free(struct peer_call *c)
{
    *c->here = c->next;
    if (c->next)
        c->next->here = c->here;
    if (c->peers->told == c)
        c->peers->told = NULL;
    if (c->easy) {
        (void)curl_multi_remove_handle(multi_handle(c->peers->multi), c->easy);
        curl_easy_cleanup(c->easy);
    }
    curl_slist_free_all(c->headers);
    buf_done(&c->out);
    buf_done(&c->in);
    free(c->url);
    free(c->method);
    free(c);
}

/* --- what libcurl calls --- */

static size_t on_head(char *line, size_t one, size_t n, void *arg)
{
    struct peer_call *c = arg;
    long status = 0;

    (void)one;
    c->head_bytes += n;
    if (c->head_bytes > HEAD_MAX)
        return 0;
    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (n <= 2 && (*line == '\r' || *line == '\n') && status >= 200)
        c->has_head = true;
    return n;
}

static size_t on_bytes(char *bytes, size_t one, size_t n, void *arg)
{
    struct peer_call *c = arg;

    (void)one;
    if (c->held || c->in.n > PEER_WAITS) {
        c->writing_stopped = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return buf_put(&c->in, (struct str){bytes, n}) < 0 ? 0 : n;
}

static size_t on_read(char *to, size_t one, size_t n, void *arg)
{
    struct peer_call *c = arg;
    size_t left = c->out.n - c->out_at, most = one * n;

    c->sent = true;
    if (left == 0 && !c->out_ended) {
        c->reading_stopped = true;
        return CURL_READFUNC_PAUSE;
    }
    if (left > most)
        left = most;
    if (left)
        memcpy(to, c->out.p + c->out_at, left);
    c->out_at += left;
    if (c->out_at == c->out.n)
        c->out.n = c->out_at = 0;
    return left;
}

/* A node whose machine is gone acknowledges nothing. */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    const int ms = SILENT_MS, idle = 5, every = 2, times = 3;

    (void)arg;
    (void)purpose;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    return CURL_SOCKOPT_OK;
}

/* --- telling --- */

static void go_on(struct peer_call *c)
{
    bool read = c->reading_stopped && (c->out.n > c->out_at || c->out_ended);
    bool write = c->writing_stopped && !c->held && c->in.n <= PEER_WAITS;

    if ((!read && !write) || c->ended)
        return;
    c->reading_stopped &= !read;
    c->writing_stopped &= !write;
    (void)curl_easy_pause(c->easy, (c->reading_stopped ? CURLPAUSE_SEND : 0) |
                                       (c->writing_stopped ? CURLPAUSE_RECV : 0));
    multi_kick(c->peers->multi);
}

static const char *why(CURLcode code)
{
    return code == CURLE_OK                         ? NULL
           : code == CURLE_COULDNT_CONNECT          ? "cannot be reached"
           : code == CURLE_COULDNT_RESOLVE_HOST     ? "has a name without an address"
           : code == CURLE_OPERATION_TIMEDOUT       ? "does not answer"
           : code == CURLE_PEER_FAILED_VERIFICATION ? "has no certificate that can be trusted"
                                                    : "has hung up";
}

static void end(struct peer_call *c)
{
    struct peer_watcher w = c->watcher;
    void *arg = c->arg;
    const char *text = why(c->code);
    long bytes = 0;
    bool sent = c->sent;

    if (c->easy && curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &bytes) == CURLE_OK)
        sent |= bytes > 0;
    call_free(c);
    w.on_end(arg, text, sent);
}

/* False: it is gone. */
static bool tell(struct peer_call *c)
{
    struct peers *all = c->peers;
    struct buf taken;

    all->told = c;
    if (c->has_head && !c->told_head) {
        long status = 0;
        c->told_head = true;
        (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        c->watcher.on_head(c->arg, (int)status);
    }
    if (all->told && c->in.n > 0 && !c->held) {
        taken = c->in;
        buf_init(&c->in, BODY_CAP);
        c->watcher.on_body(c->arg, buf_str(&taken));
        buf_done(&taken);
    }
    if (all->told && c->out_full && c->out.n - c->out_at < PEER_WAITS) {
        c->out_full = false;
        c->watcher.on_room(c->arg);
    }
    if (all->told)
        go_on(c);
    if (all->told && c->ended && ((c->in.n == 0 && !c->held) || c->code != CURLE_OK))
        end(c);
    return all->told;
}

static void tell_all(void *arg)
{
    struct peers *all = arg;
    CURLM *curl = multi_handle(all->multi);
    struct peer_call *c, *next;
    struct CURLMsg *msg;
    int left;

    while (curl && (msg = curl_multi_info_read(curl, &left))) {
        if (msg->msg != CURLMSG_DONE ||
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &c) != CURLE_OK)
            continue;
        c->ended = true;
        c->code = msg->data.result;
    }
    /* A watcher ends its own call at most, so the next one stays. */
    for (c = all->all; c; c = next) {
        next = c->next;
        (void)tell(c);
    }
    all->told = NULL;
}

/* --- starting --- */

#define SET(option, value) ok = ok && curl_easy_setopt(c->easy, option, value) == CURLE_OK

static bool set_manners(struct peer_call *c, const struct peer_spec *spec)
{
    bool ok = true;

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (spec->ca_file)
        SET(CURLOPT_CAINFO, spec->ca_file);
    if (spec->cert_file) {
        SET(CURLOPT_SSLCERT, spec->cert_file);
        SET(CURLOPT_SSLKEY, spec->key_file);
    }
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_BUFFERSIZE, (long)BUFFER);
    SET(CURLOPT_OPENSOCKETFUNCTION, multi_socket);
    SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
    SET(CURLOPT_WRITEFUNCTION, on_bytes);
    SET(CURLOPT_WRITEDATA, c);
    SET(CURLOPT_HEADERFUNCTION, on_head);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_PRIVATE, c);
    return ok;
}

static bool set_request(struct peer_call *c, const struct peer_spec *spec)
{
    bool ok = true, is_head = strcmp(spec->method, "HEAD") == 0;

    for (const char *const *h = spec->headers; *h; h++) {
        struct curl_slist *more = curl_slist_append(c->headers, *h);

        if (!more)
            return false;
        c->headers = more;
    }
    SET(CURLOPT_URL, c->url);
    SET(CURLOPT_HTTPHEADER, c->headers);
    if (is_head)
        SET(CURLOPT_NOBODY, 1L);
    if (spec->has_body) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_READFUNCTION, on_read);
        SET(CURLOPT_READDATA, c);
        SET(CURLOPT_INFILESIZE_LARGE,
            spec->body_length == UINT64_MAX ? (curl_off_t)-1 : (curl_off_t)spec->body_length);
    }
    if (!is_head)
        SET(CURLOPT_CUSTOMREQUEST, c->method);
    return ok;
}

static bool begin(struct peer_call *c, const struct peer_spec *spec)
{
    CURLM *curl = multi_handle(c->peers->multi);

    c->easy = curl ? curl_easy_init() : NULL;
    return c->easy && set_manners(c, spec) && set_request(c, spec) &&
           curl_multi_add_handle(curl, c->easy) == CURLM_OK;
}

struct peer_call *peer_call_start(struct peers *all, const struct peer_spec *spec,
                                  const struct peer_watcher *w, void *arg)
{
    struct peer_call *c = mem_zalloc(sizeof(*c));
    size_t size = strlen(spec->url) + strlen(spec->target) + 1;

    *c = (struct peer_call){.peers = all, .watcher = *w, .arg = arg};
    c->next = all->all;
    c->here = &all->all;
    if (c->next)
        c->next->here = &c->next;
    all->all = c;
    buf_init(&c->out, BODY_CAP);
    buf_init(&c->in, BODY_CAP);
    c->out_ended = !spec->has_body;
    c->method = mem_strdup(spec->method);
    c->url = mem_zalloc(size);
    snprintf(c->url, size, "%s%s", spec->url, spec->target);
    if (!begin(c, spec)) { /* no memory, or a bad URL */
        c->ended = true;
        c->code = CURLE_COULDNT_CONNECT;
        multi_kick(all->multi);
    }
    return c;
}

bool peer_call_put(struct peer_call *c, struct str bytes)
{
    if (c->out_at > PEER_WAITS) {
        memmove(c->out.p, c->out.p + c->out_at, c->out.n - c->out_at);
        c->out.n -= c->out_at;
        c->out_at = 0;
    }
    if (buf_put(&c->out, bytes) < 0) { /* whoever stops when told so never comes here */
        c->ended = true;
        c->code = CURLE_OUT_OF_MEMORY;
    }
    go_on(c);
    c->out_full = c->out.n - c->out_at >= PEER_WAITS;
    return !c->out_full;
}

void peer_call_end_body(struct peer_call *c)
{
    c->out_ended = true;
    go_on(c);
}

void peer_call_hold(struct peer_call *c, bool held)
{
    c->held = held;
    if (held)
        return;
    go_on(c);
    multi_kick(c->peers->multi); /* what is there already */
}

void peer_call_cancel(struct peer_call *c)
{
    call_free(c);
}

bool peer_call_header(struct peer_call *c, void **at, const char **ret_name, const char **ret_value)
{
    struct curl_header *h = curl_easy_nextheader(c->easy, CURLH_HEADER, -1, *at);

    if (!h)
        return false;
    *at = h;
    *ret_name = h->name;
    *ret_value = h->value;
    return true;
}

uint64_t peer_call_length(struct peer_call *c)
{
    curl_off_t length = -1;

    (void)curl_easy_getinfo(c->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length < 0 ? UINT64_MAX : (uint64_t)length;
}

struct peers *peers_new(struct loop *l)
{
    struct peers *all = mem_zalloc(sizeof(*all));

    all->multi = multi_new(l, IDLE_MAX, 0, tell_all, all);
    return all;
}

void peers_free(struct peers *all)
{
    if (!all)
        return;
    while (all->all)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        call_free(all->all);
    multi_free(all->multi);
    free(all);
}
