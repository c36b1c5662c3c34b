/*
 * What an endpoint says about its model: its creation time, its limits, its capabilities. The
 * endpoint is asked when a client wants to know, and the answer is kept for a while. An endpoint
 * without an answer is not asked again for a minute.
 */
#include "base/json.h"
#include "model/model_int.h"

#include <stdlib.h>

#define SAID_US   (INT64_C(3600) * 1000000)
#define SILENT_US (INT64_C(60) * 1000000)
#define WALL_MS   3000
#define BYTES_MAX (256 * KiB)

struct about_waiter {
    struct about_waiter *next;
    model_about_fn *fn;
    void *arg;
};

struct about {
    struct about_spec spec;
    char *url;             /* owned */
    struct web_post *post; /* or NULL */
    struct buf bytes;
    json_t *said; /* owned: what was said last, {} for nothing; or NULL */
    int64_t until_us;
    struct about_waiter *waiters; /* owned */
};

struct about *about_new(const struct about_spec *spec)
{
    struct about *a = mem_zalloc(sizeof(*a));
    size_t n = strlen(spec->base) + strlen(spec->adapter->about_path);
    char *end;

    a->spec = *spec;
    a->url = mem_zalloc(n + 3 * strlen(spec->name) + 1);
    end = stpcpy(stpcpy(a->url, spec->base), spec->adapter->about_path);
    url_encode(end, str_of(spec->name));
    buf_init(&a->bytes, BYTES_MAX);
    return a;
}

void about_free(struct about *a)
{
    struct about_waiter *w;

    if (!a)
        return;
    if (a->post)
        web_post_cancel(a->post);
    while ((w = a->waiters)) {
        a->waiters = w->next;
        free(w);
    }
    buf_done(&a->bytes);
    json_decref(a->said);
    free(a->url);
    free(a);
}

/* The callbacks may ask again. */
static void tell_all(struct about *a)
{
    struct about_waiter *all = take_ptr(&a->waiters), *w;
    json_t *said = json_incref(a->said);

    while ((w = all)) {
        all = w->next;
        w->fn(w->arg, said);
        free(w);
    }
    json_decref(said);
}

static void on_body(void *arg, int status, struct str bytes)
{
    struct about *a = arg;

    (void)status;
    buf_put(&a->bytes, bytes);
}

static void on_end(void *arg, const struct web_post_end *end)
{
    struct about *a = arg;
    bool fine = end->status == 200 && !end->why && !end->flood && !a->bytes.full;
    json_t *body = fine ? json_load_limited(buf_str(&a->bytes), 0) : NULL;

    a->post = NULL;
    buf_clear(&a->bytes);
    json_decref(a->said);
    a->said = json_is_object(body) ? a->spec.adapter->about(body) : json_object();
    a->until_us = time_mono_us() + (json_object_size(a->said) > 0 ? SAID_US : SILENT_US);
    json_decref(body);
    tell_all(a);
}

bool about_is_asking(const struct about *a)
{
    return a->post != NULL;
}

void about_ask(struct about *a, model_about_fn *fn, void *arg)
{
    static const struct web_post_watcher watcher = {on_body, on_end};
    const char *headers[] = {"Accept: application/json", NULL, NULL, NULL};
    size_t n = 1;
    struct about_waiter *w;

    if (!a->post && a->said && time_mono_us() < a->until_us)
        return fn(arg, a->said);
    w = mem_zalloc(sizeof(*w));
    *w = (struct about_waiter){.next = a->waiters, .fn = fn, .arg = arg};
    a->waiters = w;
    if (a->post)
        return;
    if (a->spec.key_header)
        headers[n++] = a->spec.key_header;
    headers[n] = a->spec.adapter->header;
    a->post = web_post_start(a->spec.web,
                             &(struct web_post_spec){.url = a->url,
                                                     .headers = headers,
                                                     .proxy = a->spec.proxy,
                                                     .ca_file = a->spec.ca_file,
                                                     .wall_ms = WALL_MS},
                             &watcher, a);
}
