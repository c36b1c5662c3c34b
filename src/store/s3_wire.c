/*
 * One request to S3, signed by libcurl (AWS Signature, version 4).
 *
 * libcurl 7.88 signs path and query as they stand, so both are in their canonical form from the
 * start: the query in the order of its names, with %XX in capitals and a '=' after each name. The
 * hash of the body goes with every request: S3 refuses a body that was changed on the way.
 *
 * A request that fails for a reason that passes is repeated, each time after a longer pause, of
 * which a random part is waited: many nodes do not come back at the same moment. When the last try
 * has failed too, S3 is away: further requests fail at once, so that workers do not pile up behind
 * it, until a probe (blob_s3.c makes them) finds it again.
 */
#include "store/s3_int.h"

#include "loop/loop.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TRIES        5
#define PAUSE_MS     200 /* before the second try; doubled for each further one */
#define DEADLINE_US  (INT64_C(15) * 1000000) /* no new try after that */
#define CONNECT_MS   5000
#define STALL_S      15 /* with less than STALL_BYTES a second: given up */
#define STALL_BYTES  1024
#define ANSWER_MS    60000 /* of a request, and: */
#define BYTES_MS     256   /* this many bytes a millisecond at least */
#define TEXT_MAX     (4 * MiB)
#define IDLE_MAX     16         /* handles, each with its connection */
#define RETRY_S      2          /* what clients are told */
#define NOT_OURS_MAX (64 * KiB) /* of the text of an error */

struct s3 {
    char *bucket_url;                    /* owned: without a slash at its end */
    char *prefix;                        /* owned: "a/b/", or "" */
    char *shown;                         /* owned */
    char *user, *sign, *token, *ca_file; /* owned; token and ca_file may be NULL */
    pthread_mutex_t mutex;               /* for what is below */
    pthread_cond_t stopped;
    CURL *idle[IDLE_MAX];
    size_t idle_count;
    struct err away; /* ERR_NONE: it is there */
    bool stopping;
};

/* One try of a request. */
struct s3_attempt {
    const struct s3_request *q;
    struct s3_answer *answer;
    CURL *easy;                 /* borrowed */
    struct curl_slist *headers; /* owned */
    uint64_t sent, taken;       /* of the bodies */
    struct err failed;          /* of the caller's on_body, or of reading fd */
};

/* --- the server --- */

static char *print(const char *fmt, ...) PRINTF(1, 2);

static char *print(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        abort();
    va_end(ap);
    return text;
}

/* "https://host:port" and the bucket, in front of the host or behind it. */
static char *bucket_url(const struct s3_config *c)
{
    const char *host = strstr(c->endpoint, "://");
    size_t n = strlen(c->endpoint);

    assert(host); /* s3_config_check() */
    host += 3;
    while (n > 0 && c->endpoint[n - 1] == '/')
        n--;
    if (!c->virtual_host)
        return print("%.*s/%s", (int)n, c->endpoint, c->bucket);
    return print("%.*s%s.%.*s", (int)(host - c->endpoint), c->endpoint, c->bucket,
                 (int)(n - (size_t)(host - c->endpoint)), host);
}

struct s3 *s3_new(const struct s3_config *c, struct err *e)
{
    struct s3 *s = mem_zalloc(sizeof(*s));
    pthread_condattr_t clock;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(s);
        err_set(e, ERR_HOST, "libcurl does not start");
        return NULL;
    }
    s->bucket_url = bucket_url(c);
    s->prefix = *c->prefix ? print("%s/", c->prefix) : mem_strdup("");
    s->shown = print("s3://%s/%s", c->bucket, c->prefix);
    s->user = print("%s:%s", c->key_id, c->secret);
    s->sign = print("aws:amz:%s:s3", c->region);
    s->token = c->token && *c->token ? print("x-amz-security-token: %s", c->token) : NULL;
    s->ca_file = c->ca_file ? mem_strdup(c->ca_file) : NULL;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->stopped, &clock);
    pthread_condattr_destroy(&clock);
    return s;
}

static void forget_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void s3_free(struct s3 *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->idle_count; i++)
        curl_easy_cleanup(s->idle[i]);
    pthread_cond_destroy(&s->stopped);
    pthread_mutex_destroy(&s->mutex);
    forget_secret(s->user);
    forget_secret(s->token);
    free(s->bucket_url);
    free(s->prefix);
    free(s->shown);
    free(s->sign);
    free(s->ca_file);
    free(s);
}

const char *s3_shown(const struct s3 *s)
{
    return s->shown;
}

const char *s3_prefix(const struct s3 *s)
{
    return s->prefix;
}

void s3_stop(struct s3 *s)
{
    pthread_mutex_lock(&s->mutex);
    s->stopping = true;
    pthread_cond_broadcast(&s->stopped);
    pthread_mutex_unlock(&s->mutex);
}

bool s3_is_away(struct s3 *s, struct err *e)
{
    bool away;

    pthread_mutex_lock(&s->mutex);
    away = s->away.kind != ERR_NONE;
    if (away)
        *e = s->away;
    pthread_mutex_unlock(&s->mutex);
    return away;
}

/* NULL: it is there. Returns whether that is news. */
static void set_away(struct s3 *s, const struct err *why)
{
    bool was;

    pthread_mutex_lock(&s->mutex);
    was = s->away.kind != ERR_NONE;
    s->away = why ? *why : (struct err){0};
    pthread_mutex_unlock(&s->mutex);
    if (why && !was)
        log_error("%s", why->text);
    else if (!why && was)
        log_info("%s answers again", s->shown);
}

/* --- handles: each keeps its connection --- */

static CURL *take_handle(struct s3 *s)
{
    CURL *easy = NULL;

    pthread_mutex_lock(&s->mutex);
    if (s->idle_count > 0)
        easy = s->idle[--s->idle_count];
    pthread_mutex_unlock(&s->mutex);
    return easy ? easy : curl_easy_init();
}

static void give_handle(struct s3 *s, CURL *easy)
{
    curl_easy_reset(easy); /* keeps the connection */
    pthread_mutex_lock(&s->mutex);
    if (s->idle_count < IDLE_MAX) {
        s->idle[s->idle_count++] = easy;
        easy = NULL;
    }
    pthread_mutex_unlock(&s->mutex);
    if (easy)
        curl_easy_cleanup(easy);
}

/* --- what libcurl calls --- */

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)arg;
    (void)purpose;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static size_t on_send(char *to, size_t one, size_t n, void *arg)
{
    struct s3_attempt *a = arg;
    uint64_t left = a->q->size - a->sent;
    ssize_t got;

    (void)one;
    if (left < n)
        n = (size_t)left;
    if (n == 0)
        return 0;
    do
        got = pread(a->q->fd, to, n, (off_t)(a->q->at + a->sent));
    while (got < 0 && errno == EINTR);
    if (got <= 0) { /* it cannot have become shorter: it has no name */
        err_sys(&a->failed, "read a blob to send it");
        return CURL_READFUNC_ABORT;
    }
    a->sent += (uint64_t)got;
    return (size_t)got;
}

/* A connection that was kept and has died takes the body from its start. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct s3_attempt *a = arg;

    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_FAIL;
    a->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int status_of(const struct s3_attempt *a)
{
    long status = 0;

    (void)curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

/* Returning less than n ends the transfer. */
static size_t on_bytes(char *bytes, size_t one, size_t n, void *arg)
{
    struct s3_attempt *a = arg;
    struct str part = {bytes, n};
    int status = status_of(a);
    bool good = status / 100 == 2;

    (void)one;
    if (!good)
        return a->answer->text.n > NOT_OURS_MAX || buf_put(&a->answer->text, part) < 0 ? 0 : n;
    if (!a->q->on_body)
        return buf_put(&a->answer->text, part) < 0 ? 0 : n;
    if (a->q->from > 0 && status != 206) {
        err_set(&a->failed, ERR_HOST, "S3 does not send ranges");
        return 0;
    }
    if (a->q->on_body(a->q->arg, part, &a->failed) < 0)
        return 0;
    a->taken += n;
    return n;
}

/* --- one try --- */

#define SET(option, value) ok = ok && curl_easy_setopt(a->easy, option, value) == CURLE_OK

static bool set_manners(struct s3_attempt *a, const struct s3 *s)
{
    bool ok = true;

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_USERAGENT, "retort");
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (s->ca_file)
        SET(CURLOPT_CAINFO, s->ca_file);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    return ok;
}

static bool set_limits(struct s3_attempt *a)
{
    uint64_t bytes = a->q->on_body ? 64 * GiB : a->q->size; /* of a body to come: STALL_S ends it */
    bool ok = true;

    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_TIMEOUT_MS, (long)(ANSWER_MS + bytes / BYTES_MS));
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    SET(CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    SET(CURLOPT_BUFFERSIZE, (long)(256 * KiB));
    SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)(256 * KiB));
    SET(CURLOPT_WRITEFUNCTION, on_bytes);
    SET(CURLOPT_WRITEDATA, a);
    return ok;
}

static bool add_header(struct s3_attempt *a, const char *line)
{
    struct curl_slist *more = curl_slist_append(a->headers, line);

    if (more)
        a->headers = more;
    return more != NULL;
}

static bool set_headers(struct s3_attempt *a, const struct s3 *s)
{
    AUTO(buf_done) struct buf b = BUF(1 * KiB);
    char hash[HASH_HEX];
    bool ok;

    if (a->q->hash)
        snprintf(hash, sizeof(hash), "%s", a->q->hash);
    else
        hash_of(a->q->text, hash);
    buf_printf(&b, "x-amz-content-sha256: %s", hash);
    buf_put(&b, (struct str){"", 1});
    ok = add_header(a, b.p);
    if (s->token)
        ok = ok && add_header(a, s->token);
    if (a->q->date) {
        buf_clear(&b);
        buf_printf(&b, "x-amz-date: %s", a->q->date);
        buf_put(&b, (struct str){"", 1});
        ok = ok && add_header(a, b.p);
    }
    /* A server that refuses does so fast enough, and one that never says "continue" costs a second
     * each time. */
    ok = ok && add_header(a, "Expect:");
    SET(CURLOPT_HTTPHEADER, a->headers);
    SET(CURLOPT_USERPWD, s->user);
    SET(CURLOPT_AWS_SIGV4, s->sign);
    return ok;
}

static bool set_body(struct s3_attempt *a)
{
    const struct s3_request *q = a->q;
    char range[32];
    bool ok = true;

    if (q->has_body) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->size);
        SET(CURLOPT_READFUNCTION, on_send);
        SET(CURLOPT_READDATA, a);
        SET(CURLOPT_SEEKFUNCTION, on_seek);
        SET(CURLOPT_SEEKDATA, a);
    } else if (strcmp(q->method, "POST") == 0 || q->text.n > 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->text.n);
        SET(CURLOPT_POSTFIELDS, q->text.n > 0 ? q->text.p : "");
        SET(CURLOPT_CUSTOMREQUEST, q->method);
    } else if (strcmp(q->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else {
        SET(CURLOPT_CUSTOMREQUEST, q->method);
    }
    if (q->from > 0) {
        snprintf(range, sizeof(range), "%llu-", (unsigned long long)q->from);
        SET(CURLOPT_RANGE, range);
    }
    return ok;
}

static bool set_url(struct s3_attempt *a, const struct s3 *s)
{
    AUTO(buf_done) struct buf b = BUF(8 * KiB);
    bool ok = true;

    buf_printf(&b, "%s/%s%s%s%s", s->bucket_url, a->q->key ? s->prefix : "",
               a->q->key ? a->q->key : "", a->q->query ? "?" : "", a->q->query ? a->q->query : "");
    if (buf_put(&b, (struct str){"", 1}) < 0)
        return false;
    SET(CURLOPT_URL, b.p);
    return ok;
}

static void note_headers(struct s3_attempt *a)
{
    struct curl_header *h = NULL;
    curl_off_t length = -1;
    struct tm tm;
    time_t t;

    (void)curl_easy_getinfo(a->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    a->answer->length = length > 0 ? (uint64_t)length : 0;

    if (curl_easy_header(a->easy, "etag", 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
        snprintf(a->answer->etag, sizeof(a->answer->etag), "%s", h->value);
    if (curl_easy_header(a->easy, "date", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return;
    t = curl_getdate(h->value, NULL);
    if (t > 0 && gmtime_r(&t, &tm)) {
        a->answer->date_s = t;
        strftime(a->answer->date, sizeof(a->answer->date), "%Y%m%dT%H%M%SZ", &tm);
    }
}

/* Returns what libcurl says; the rest is in *a. */
static CURLcode perform(struct s3 *s, struct s3_attempt *a)
{
    CURLcode code = CURLE_OUT_OF_MEMORY;

    a->easy = take_handle(s);
    if (!a->easy)
        return code;
    if (set_manners(a, s) && set_limits(a) && set_headers(a, s) && set_body(a) && set_url(a, s)) {
        work_wait_begin();
        code = curl_easy_perform(a->easy);
        work_wait_end();
    }
    a->answer->status = status_of(a);
    note_headers(a);
    give_handle(s, a->easy);
    curl_slist_free_all(a->headers);
    a->headers = NULL;
    return code;
}

/* --- what came of it --- */

enum s3_verdict { GOOD, AGAIN, REFUSED };

/* <Code> of an error, or "". */
static void code_of(const struct s3_answer *a, char *ret, size_t size)
{
    size_t at = 0;
    struct str code = xml_next(buf_str(&a->text), "Code", &at);

    snprintf(ret, size, "%.*s", (int)(code.n < size ? code.n : size - 1), code.n ? code.p : "");
    for (char *p = ret; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

static enum s3_verdict judge(CURLcode code, const struct s3_attempt *a, const char *s3_code)
{
    static const int passing[] = {408, 409, 425, 429, 500, 502, 503, 504};
    /* With 400: the body was not what it should be when it came there. */
    static const char *const broken[] = {"RequestTimeout", "IncompleteBody", "BadDigest",
                                         "XAmzContentSHA256Mismatch"};
    int status = a->answer->status;

    if (code != CURLE_OK)
        return code == CURLE_PEER_FAILED_VERIFICATION ? REFUSED : AGAIN;
    if (status / 100 == 2 || status == 416)
        return GOOD;
    if (status == 404)
        return strcmp(s3_code, "NoSuchBucket") == 0 ? REFUSED : GOOD;
    for (size_t i = 0; i < COUNT(passing); i++)
        if (status == passing[i])
            return AGAIN;
    for (size_t i = 0; i < COUNT(broken); i++)
        if (strcmp(s3_code, broken[i]) == 0)
            return AGAIN;
    return REFUSED;
}

static int say_why(const struct s3 *s, CURLcode code, const struct s3_attempt *a,
                   const char *s3_code, struct err *e)
{
    if (a->failed.kind) {
        *e = a->failed;
        return -1;
    }
    if (code != CURLE_OK)
        err_set(e, ERR_AWAY, "the store of files, %s, does not answer: %s", s->shown,
                curl_easy_strerror(code));
    else
        err_set(e, ERR_AWAY, "the store of files, %s, refuses: %d%s%s", s->shown, a->answer->status,
                *s3_code ? " " : "", s3_code);
    e->retry_s = RETRY_S;
    return -1;
}

/* Some of the pause, by chance. False: we are closing. */
static bool pause_for(struct s3 *s, unsigned ms)
{
    uint32_t chance;
    struct timespec until;
    bool go_on;

    random_bytes(&chance, sizeof(chance));
    ms = ms / 2 + chance % (ms / 2 + 1);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    work_wait_begin();
    pthread_mutex_lock(&s->mutex);
    while (!s->stopping && pthread_cond_timedwait(&s->stopped, &s->mutex, &until) != ETIMEDOUT)
        ;
    go_on = !s->stopping;
    pthread_mutex_unlock(&s->mutex);
    work_wait_end();
    return go_on;
}

void s3_answer_done(struct s3_answer *a)
{
    buf_done(&a->text);
}

/* Whether it is over, and how: 0 or -1. 1: once more. */
static int try_once(struct s3 *s, const struct s3_request *q, bool last, struct s3_answer *ret,
                    struct err *e)
{
    struct s3_attempt a = {.q = q, .answer = ret};
    char s3_code[64];
    CURLcode code;
    enum s3_verdict v;

    buf_done(&ret->text);
    *ret = (struct s3_answer){.text = BUF(TEXT_MAX)};
    code = perform(s, &a);
    code_of(ret, s3_code, sizeof(s3_code));
    v = judge(code, &a, s3_code);
    if (v == GOOD) {
        set_away(s, NULL);
        return 0;
    }
    say_why(s, code, &a, s3_code, e);
    if (a.failed.kind || a.taken > 0) /* the caller knows how far it has come */
        return -1;
    if (v == AGAIN && !last)
        return 1;
    if (!q->once || q->probe)
        set_away(s, e);
    return -1;
}

int s3_call(struct s3 *s, const struct s3_request *q, struct s3_answer *ret, struct err *e)
{
    int tries = q->once ? 1 : TRIES, rc = 1;
    int64_t began_us = time_mono_us();
    struct err why = {0}; /* of a try: where a later one succeeds, nothing has happened */

    *ret = (struct s3_answer){.text = BUF(TEXT_MAX)};
    for (int i = 0; rc > 0; i++) {
        if (!q->probe && s3_is_away(s, &why))
            break;
        rc = try_once(s, q, i + 1 >= tries || time_mono_us() - began_us > DEADLINE_US, ret, &why);
        if (rc > 0 && !pause_for(s, PAUSE_MS << i))
            break;
    }
    if (rc == 0)
        return 0;
    *e = why;
    return -1;
}

int s3_probe(struct s3 *s, int *ret_status, struct err *e)
{
    const struct s3_request q = {.method = "PUT",
                                 .key = "retort.probe",
                                 .text = STR("retort\n"),
                                 .once = true,
                                 .probe = true};
    struct s3_answer a;
    int rc = s3_call(s, &q, &a, e);

    if (rc == 0 && a.status == 404)
        rc = err_set(e, ERR_AWAY, "the store of files, %s, is not there", s->shown);
    *ret_status = a.status;
    s3_answer_done(&a);
    return rc;
}
