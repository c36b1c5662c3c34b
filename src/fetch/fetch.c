/*
 * The queue and the thread.
 *
 * A fetch goes through four lists: fresh -> waiting -> active -> finished. The loop fills fresh and
 * empties finished, under the lock; only the thread uses the other two. Every fetch ends in
 * finished, once, and its callback is called from there. Of those that wait, the first of the
 * tenant with the fewest under way goes next, and no tenant has more than its share.
 *
 * The thread posts to the loop when finished was empty. fetcher_free() does not wait for that post,
 * so the fetcher stays in memory until the post has come.
 */
#include "fetch/fetch_int.h"

#include "loop/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define URL_MAX     (8 * KiB)
#define FETCHES_MAX 1024  /* at a time, waiting ones included */
#define SHARES      4     /* as many tenants can have all they may have, and wait for nobody */
#define POLL_MS     60000 /* a wakeup comes for whatever matters */

struct fetch_list {
    struct fetch *first, **end;
};

struct fetcher {
    struct loop *loop; /* borrowed */
    struct fetch_rules rules;
    unsigned share; /* of one tenant at a time */
    CURLM *multi;   /* owned */
    pthread_t thread;

    pthread_mutex_t lock; /* of the next three */
    struct fetch_list fresh, finished;
    bool stopping, posted;

    struct fetch_list waiting, active; /* the thread's */
    unsigned active_count;

    unsigned count; /* the loop's: fetches whose done is still to come */
    unsigned delivering;
    bool closed; /* freed as soon as nobody uses it */
};

/* --- lists: oldest first --- */

static void list_init(struct fetch_list *l)
{
    *l = (struct fetch_list){NULL, &l->first};
}

static void push(struct fetch_list *l, struct fetch *f)
{
    f->next = NULL;
    *l->end = f;
    l->end = &f->next;
}

static void drop(struct fetch_list *l, struct fetch *f)
{
    struct fetch **at = &l->first;

    while (*at && *at != f)
        at = &(*at)->next;
    assert(*at);
    *at = f->next;
    if (l->end == &f->next)
        l->end = at;
}

static struct fetch *pop(struct fetch_list *l)
{
    struct fetch *f = l->first;

    if (f)
        drop(l, f);
    return f;
}

/* --- whose turn it is, on the thread --- */

static unsigned active_of(const struct fetcher *r, const char *tenant)
{
    unsigned n = 0;

    for (const struct fetch *f = r->active.first; f; f = f->next)
        n += strcmp(f->tenant, tenant) == 0;
    return n;
}

/* NULL: whoever waits has its share, or all are taken. */
static struct fetch *next_in_turn(struct fetcher *r)
{
    struct fetch *next = NULL;
    unsigned fewest = r->share;

    for (struct fetch *f = r->waiting.first; f && r->active_count < SHARES * r->share;
         f = f->next) {
        unsigned n = active_of(r, f->tenant);
        if (n < fewest) {
            fewest = n;
            next = f;
        }
    }
    if (next)
        drop(&r->waiting, next);
    return next;
}

/* --- the end of a fetch, on the loop --- */

static void destroy(struct fetcher *r)
{
    if (r->multi)
        curl_multi_cleanup(r->multi);
    host_list_free(r->rules.allow);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void deliver(struct fetch *f)
{
    struct fetch_result result = {
        .name = *f->name ? f->name : "download",
        .mime = *f->mime ? f->mime : "application/octet-stream",
        .size = f->received,
    };

    if (f->err.kind == ERR_NONE && f->cancelled)
        err_set(&f->err, ERR_CALLER, "the fetch was cancelled");
    if (f->err.kind == ERR_NONE)
        f->done(f->arg, &result, NULL);
    else
        f->done(f->arg, NULL, &f->err);
    free(f->url);
    free(f);
}

static void deliver_all(struct fetcher *r)
{
    struct fetch *f;

    do {
        pthread_mutex_lock(&r->lock);
        f = pop(&r->finished);
        pthread_mutex_unlock(&r->lock);
        if (f) {
            r->count--;
            deliver(f);
        }
    } while (f);
}

static void on_finished(void *arg)
{
    struct fetcher *r = arg;

    pthread_mutex_lock(&r->lock);
    r->posted = false;
    pthread_mutex_unlock(&r->lock);
    r->delivering++; /* done() may free the fetcher */
    deliver_all(r);
    if (--r->delivering == 0 && r->closed)
        destroy(r);
}

static void finish(struct fetcher *r, struct fetch *f)
{
    bool post;

    pthread_mutex_lock(&r->lock);
    push(&r->finished, f);
    post = !r->posted;
    r->posted = true;
    pthread_mutex_unlock(&r->lock);
    if (post)
        loop_post(r->loop, on_finished, r);
}

/* --- the thread --- */

static void end_active(struct fetcher *r, struct fetch *f)
{
    transfer_end(f, r->multi);
    drop(&r->active, f);
    r->active_count--;
    finish(r, f);
}

static bool is_data(const struct fetch *f)
{
    return strncasecmp(f->url, "data:", 5) == 0;
}

/* A data URL is over before it has begun. */
static void read_data_url(struct fetch *f)
{
    struct buf bytes;

    url_file_name((struct str){f->url, f->url_n}, f->name, sizeof(f->name));
    buf_init(&bytes, f->rules->max_bytes);
    if (data_url_parse((struct str){f->url, f->url_n}, &bytes, f->mime, sizeof(f->mime), &f->err) <
        0)
        assert(f->err.kind != ERR_NONE);
    else if (bytes.n > 0 && f->sink(f->arg, buf_str(&bytes), &f->err) < 0)
        assert(f->err.kind != ERR_NONE);
    else
        f->received = bytes.n;
    buf_done(&bytes);
}

static void begin(struct fetcher *r, struct fetch *f)
{
    if (is_data(f)) {
        read_data_url(f);
        finish(r, f);
        return;
    }
    push(&r->active, f);
    r->active_count++;
    if (transfer_begin(f, r->multi, &f->err) < 0)
        end_active(r, f);
}

static void end_cancelled(struct fetcher *r)
{
    for (struct fetch *f = r->waiting.first, *next; f; f = next) {
        next = f->next;
        if (!f->cancelled)
            continue;
        drop(&r->waiting, f);
        finish(r, f);
    }
    for (struct fetch *f = r->active.first, *next; f; f = next) {
        next = f->next;
        if (f->cancelled)
            end_active(r, f);
    }
}

static void collect(struct fetcher *r)
{
    struct CURLMsg *msg;
    struct fetch *f;
    int left;

    while ((msg = curl_multi_info_read(r->multi, &left))) {
        CURLcode code = msg->data.result;
        struct err e = {0};
        if (msg->msg != CURLMSG_DONE ||
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &f) != CURLE_OK)
            continue;
        int rc = transfer_next(f, r->multi, code, &e);
        if (rc < 0)
            f->err = e;
        if (rc <= 0)
            end_active(r, f);
    }
}

/* Moves what the loop has asked for; false when it is time to end. */
static bool take_fresh(struct fetcher *r)
{
    struct fetch *f;
    bool stopping;

    pthread_mutex_lock(&r->lock);
    while ((f = pop(&r->fresh)))
        push(&r->waiting, f);
    stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    return !stopping;
}

static void end_all(struct fetcher *r)
{
    for (struct fetch *f = r->waiting.first; f; f = f->next)
        f->cancelled = true;
    for (struct fetch *f = r->active.first; f; f = f->next)
        f->cancelled = true;
    end_cancelled(r);
}

static void *run(void *arg)
{
    struct fetcher *r = arg;
    struct fetch *f;
    unsigned ended;
    int running;

    while (take_fresh(r)) {
        end_cancelled(r);
        while ((f = next_in_turn(r)))
            begin(r, f);
        (void)curl_multi_perform(r->multi, &running);
        ended = r->active_count;
        collect(r);
        if (!r->waiting.first || r->active_count == ended) /* else one that waits may begin */
            (void)curl_multi_poll(r->multi, NULL, 0, POLL_MS, NULL);
    }
    end_all(r);
    return NULL;
}

/* --- the loop's side --- */

/* Signals are the loop's. */
static int start_thread(struct fetcher *r, struct err *e)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = rc;
    return rc == 0 ? 0 : err_sys(e, "start the fetch thread");
}

static int open_curl(struct fetcher *r, struct err *e)
{
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(r->multi = curl_multi_init()))
        return err_set(e, ERR_HOST, "libcurl does not start");
    if (curl_multi_wakeup(r->multi) != CURLM_OK) /* or it would sleep through our end */
        return err_set(e, ERR_HOST, "libcurl has no descriptors left to be woken by");
    if (!(v->features & CURL_VERSION_ASYNCHDNS))
        return err_set(e, ERR_HOST, "this libcurl cannot look up names without blocking");
    return 0;
}

struct fetcher *fetcher_new(struct loop *l, const struct fetch_config *config, struct err *e)
{
    struct fetcher *r = mem_zalloc(sizeof(*r));

    r->loop = l;
    r->rules = (struct fetch_rules){
        .max_bytes = config->max_bytes ? config->max_bytes : 100 * MiB,
        .max_ms = config->max_ms ? config->max_ms : 60000,
        .max_redirects = config->max_redirects ? config->max_redirects : 5,
        .allow_private = config->allow_private,
        .allow = host_list_new(config->allow, e),
    };
    r->share = config->max_parallel ? config->max_parallel : 16;
    pthread_mutex_init(&r->lock, NULL);
    list_init(&r->fresh);
    list_init(&r->finished);
    list_init(&r->waiting);
    list_init(&r->active);
    if (r->rules.allow && open_curl(r, e) == 0 && start_thread(r, e) == 0)
        return r;
    destroy(r);
    return NULL;
}

void fetcher_free(struct fetcher *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_mutex_unlock(&r->lock);
    curl_multi_wakeup(r->multi);
    pthread_join(r->thread, NULL);
    r->closed = true;
    r->delivering++;
    deliver_all(r);
    if (--r->delivering == 0 && !r->posted)
        destroy(r);
}

/* What is wrong with a URL before anybody looks into it. */
static int check_url(const struct fetcher *r, struct str url, struct err *e)
{
    bool data = url.n >= 5 && strncasecmp(url.p, "data:", 5) == 0;
    /* Every byte of a data URL may be escaped, and its type needs room. */
    uint64_t max = data ? r->rules.max_bytes * 3 + KiB : URL_MAX;

    if (url.n > max)
        return err_set(e, ERR_LIMIT, "the URL is longer than %zu bytes", (size_t)max);
    if (url.n == 0 || memchr(url.p, '\0', url.n))
        return err_set(e, ERR_CALLER, "this is not a URL that can be fetched");
    if (r->closed)
        return err_set(e, ERR_BUSY, "the server is stopping");
    if (r->count >= FETCHES_MAX)
        return err_set(e, ERR_BUSY, "%d fetches are under way; try again later", FETCHES_MAX);
    return 0;
}

struct fetch *fetch_start(struct fetcher *r, const char *tenant, struct str url,
                          fetch_sink_fn *sink, fetch_done_fn *done, void *arg)
{
    struct fetch *f = mem_zalloc(sizeof(*f));

    *f = (struct fetch){
        .fetcher = r, .rules = &r->rules, .sink = sink, .done = done, .arg = arg, .url_n = url.n};
    assert(!r->closed || r->delivering > 0);
    snprintf(f->tenant, sizeof(f->tenant), "%s", tenant);
    if (check_url(r, url, &f->err) < 0) {
        r->count++;
        finish(r, f);
        return f;
    }
    r->count++;
    f->url = mem_strndup(url);
    pthread_mutex_lock(&r->lock);
    push(&r->fresh, f);
    pthread_mutex_unlock(&r->lock);
    curl_multi_wakeup(r->multi);
    return f;
}

void fetch_cancel(struct fetch *f)
{
    f->cancelled = true;
    curl_multi_wakeup(f->fetcher->multi);
}
