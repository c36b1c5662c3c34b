/*
 * Message Batches: requests that a client leaves here, and whose results it fetches later. These
 * are the routes; batch_run.c runs the requests.
 */
#include "doors/anthropic/batches_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define CUSTOM_ID_MAX 64
#define RESULTS_READ  8 /* results that are read at a time */

void batch_entry_id(char ret[BATCH_ENTRY_ID], const char *batch, size_t i)
{
    snprintf(ret, BATCH_ENTRY_ID, "%s.%06zu", batch, i);
}

/* --- as they are stored, and as clients see them --- */

json_t *batch_body(const struct batch *b)
{
    json_t *results = json_object();

    for (size_t i = 0; i < BATCH__RESULTS; i++)
        json_object_set_new(results, batch_result_names[i],
                            json_integer((json_int_t)b->results[i]));
    return json_pack("{s:I, s:s, s:I, s:I, s:o, s:s*}", "count", (json_int_t)b->count, "key",
                     b->caller.key, "cancel_ms", (json_int_t)b->cancel_ms, "ended_ms",
                     (json_int_t)b->ended_ms, "results", results, "betas", b->betas);
}

static json_int_t number_of(const json_t *body, const char *name)
{
    return json_integer_value(json_object_get(body, name));
}

static json_t *counts_of(const json_t *body)
{
    json_t *counts = json_copy(json_object_get(body, "results")), *one;
    json_int_t left = number_of(body, "count");
    const char *name;

    json_object_foreach(counts, name, one)
        left -= json_integer_value(one);
    json_object_set_new(counts, "processing", json_integer(left));
    return counts;
}

static json_t *results_url(struct request *r, const char *id)
{
    return json_sprintf("%s/anthropic/v1/messages/batches/%s/results", request_base_url(r), id);
}

/* Takes body. */
static json_t *show(struct request *r, const char *id, int64_t created_ms, json_t *body)
{
    int64_t cancel_ms = number_of(body, "cancel_ms"), ended_ms = number_of(body, "ended_ms");
    json_t *v =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:n, s:o}", "id", id, "type",
                  "message_batch", "processing_status",
                  ended_ms    ? "ended"
                  : cancel_ms ? "canceling"
                              : "in_progress",
                  "request_counts", counts_of(body), "created_at", time_json(created_ms),
                  "expires_at", time_json(created_ms + BATCH_MS), "ended_at", time_json(ended_ms),
                  "cancel_initiated_at", time_json(cancel_ms), "archived_at", "results_url",
                  ended_ms ? results_url(r, id) : json_null());

    json_decref(body);
    return v;
}

static struct batches *all_of(struct request *r)
{
    return ((struct anthropic *)request_ctx(r))->batches;
}

/* What is known now: of one that runs more than is stored. */
static json_t *show_item(struct request *r, const struct item_row *item)
{
    const struct batch *b = batch_find(all_of(r), request_caller(r)->tenant, str_of(item->id));

    return show(r, item->id, item->created_ms, b ? batch_body(b) : json_loads(item->body, 0, NULL));
}

static void answer_failed(struct request *r, const struct err *failed)
{
    char shown[NAME_SHOWN];

    if (failed->kind == ERR_MISSING)
        answer_fail(r, 404, CODE_MISSING, NULL, "Message Batch `%s` not found.",
                    name_show(shown, request_path(r, "batch")));
    else
        answer_error(r, failed, NULL);
}

/* --- one batch --- */

static void find(struct request *r, item_fn *fn, void *arg)
{
    service_item_get(request_service(r), request_caller(r), BATCH_KIND, request_path(r, "batch"),
                     fn, arg);
}

static void on_batch(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;

    assert(item || failed);
    if (failed)
        answer_failed(r, failed);
    else
        answer_json(r, 200, show_item(r, item));
}

void handle_message_batch(struct request *r)
{
    find(r, on_batch, r);
}

static void on_to_cancel(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;
    struct batch *b =
        item ? batch_find(all_of(r), request_caller(r)->tenant, str_of(item->id)) : NULL;

    if (b && !b->cancel_ms && !b->ending)
        batch_cancel(b);
    on_batch(r, item, failed);
}

void handle_batch_cancel(struct request *r)
{
    find(r, on_to_cancel, r);
}

/* --- deletion --- */

static void ignore(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed && failed->kind != ERR_MISSING)
        log_warn("a request of a batch that was deleted remains until it expires: %s",
                 failed->text);
}

struct batch_deletion {
    struct request *r; /* borrowed: until it is answered */
    char id[ID_MAX];
    size_t count;
};

static void on_deleted(void *arg, const struct err *failed)
{
    struct batch_deletion *d = arg;
    char entry[BATCH_ENTRY_ID];

    if (failed)
        return answer_failed(d->r, failed);
    for (size_t i = 0; i < d->count; i++) {
        batch_entry_id(entry, d->id, i);
        service_item_delete(request_service(d->r), request_caller(d->r), BATCH_REQUEST,
                            str_of(entry), ignore, NULL);
    }
    answer_json(d->r, 200, json_pack("{s:s, s:s}", "id", d->id, "type", "message_batch_deleted"));
}

static void on_to_delete(void *arg, const struct item_row *item, const struct err *failed)
{
    struct batch_deletion *d = arg;
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;

    assert(item || failed);
    if (failed) {
        answer_failed(d->r, failed);
    } else if (number_of(body, "ended_ms") == 0) {
        answer_fail(d->r, 400, CODE_INVALID, NULL,
                    "Message Batch `%s` is still processing: cancel it, and delete it when it has "
                    "ended.",
                    item->id);
    } else {
        (void)!str_to_cstr(str_of(item->id), d->id, sizeof(d->id));
        d->count = (size_t)number_of(body, "count");
        service_item_delete(request_service(d->r), request_caller(d->r), BATCH_KIND,
                            str_of(item->id), on_deleted, d);
    }
    json_decref(body);
}

void handle_batch_delete(struct request *r)
{
    struct batch_deletion *d = mem_zalloc(sizeof(*d));

    d->r = r;
    request_keep(r, free, d);
    find(r, on_to_delete, d);
}

/* --- the list --- */

struct batch_page {
    struct request *r; /* borrowed */
    struct list_query want;
};

/* How many are newer than the one with this id, which may be gone: ids are in the order of time. */
static size_t newer_than(struct str id, const struct item_row *items, size_t count)
{
    size_t n = 0;

    while (n < count && strcmp(items[n].id, id.p) > 0)
        n++;
    return n;
}

/* There are at most BATCHES_KEPT, so all are looked at. */
static void on_list(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct batch_page *p = arg;
    size_t from = 0, end = count;
    json_t *data;

    (void)total;
    if (failed)
        return answer_error(p->r, failed, NULL);
    if (p->want.newer) {
        end = newer_than(p->want.from, items, count);
        from = end > p->want.limit ? end - p->want.limit : 0;
    } else if (p->want.from.n > 0) {
        from = newer_than(p->want.from, items, count);
        from += from < count && str_is(p->want.from, items[from].id);
    }
    bool more = p->want.newer ? from > 0 : end - from > p->want.limit;
    if (end - from > p->want.limit)
        end = from + p->want.limit;
    data = json_array();
    for (size_t i = from; i < end; i++)
        json_array_append_new(data, show_item(p->r, &items[i]));
    answer_json(p->r, 200, list_value(data, more, p->want.newer));
}

void handle_batches(struct request *r)
{
    const struct item_filter all = {.kind = BATCH_KIND, .owner = "", .page.limit = BATCHES_KEPT};
    struct batch_page *p = mem_zalloc(sizeof(*p));

    p->r = r;
    request_keep(r, free, p);
    if (list_query_read(r, BATCH_PREFIX, &p->want))
        service_item_list(request_service(r), request_caller(r), &all, on_list, p);
}

/* --- requests of a batch, some at a time --- */

struct page batch_place_page(const struct batch_place *p, size_t limit)
{
    return (struct page){.after = *p->id ? p->id : NULL, .after_ms = p->created_ms, .limit = limit};
}

void batch_place_note(struct batch_place *p, const struct item_row *items, size_t count)
{
    if (count == 0)
        return;
    snprintf(p->id, sizeof(p->id), "%s", items[count - 1].id);
    p->created_ms = items[count - 1].created_ms;
}

/* --- results --- */

/* A client that reads results: a line of JSON each. */
struct batch_reader {
    struct request *r; /* borrowed: owns us */
    char id[ID_MAX];
    struct batch_place at;
    bool asking, gone;
};

static void read_more(struct batch_reader *d);

static void on_results(void *arg, const struct item_row *items, size_t count, uint64_t total,
                       const struct err *failed)
{
    struct batch_reader *d = arg;

    d->asking = false;
    if (d->gone)
        return request_drop(d->r);
    for (size_t i = 0; i < count; i++) {
        answer_stream_put(d->r, str_of(items[i].body));
        answer_stream_put(d->r, STR("\n"));
    }
    (void)total;
    batch_place_note(&d->at, items, count);
    if (failed || count < RESULTS_READ)
        return answer_stream_end(d->r);
    if (!answer_stream_is_held(d->r))
        read_more(d);
}

static void read_more(struct batch_reader *d)
{
    const struct item_filter f = {.kind = BATCH_REQUEST,
                                  .owner = "",
                                  .parent = d->id,
                                  .page = batch_place_page(&d->at, RESULTS_READ)};

    d->asking = true;
    service_item_list(request_service(d->r), request_caller(d->r), &f, on_results, d);
}

static void on_hold(void *arg, bool held)
{
    struct batch_reader *d = arg;

    if (!held && !d->asking && !d->gone)
        read_more(d);
}

static void on_gone(void *arg)
{
    struct batch_reader *d = arg;

    d->gone = true;
    if (!d->asking)
        request_drop(d->r);
}

static void on_to_read(void *arg, const struct item_row *item, const struct err *failed)
{
    struct batch_reader *d = arg;
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    bool ended = number_of(body, "ended_ms") != 0;

    json_decref(body);
    if (failed)
        return answer_failed(d->r, failed);
    if (!ended)
        return answer_fail(d->r, 400, CODE_INVALID, NULL,
                           "Message Batch `%s` has no results yet: it is still processing.",
                           item->id);
    (void)!str_to_cstr(str_of(item->id), d->id, sizeof(d->id));
    answer_stream(d->r, 200, "application/x-jsonl", (struct str){0});
    answer_stream_on_hold(d->r, on_hold, d);
    request_on_gone(d->r, on_gone, d);
    read_more(d);
}

void handle_batch_results(struct request *r)
{
    struct batch_reader *d = mem_zalloc(sizeof(*d));

    d->r = r;
    request_keep(r, free, d);
    find(r, on_to_read, d);
}

/* --- creation --- */

struct batch_creation {
    struct request *r; /* borrowed: owns us */
    json_t *requests;  /* owned */
    json_t *body;      /* owned: holds the requests */
    struct batch *batch;
    size_t bytes, waits;
    struct err failed;
};

static void creation_free(void *arg)
{
    struct batch_creation *c = arg;

    if (c->batch)
        batch_free(c->batch);
    json_decref(c->requests);
    json_decref(c->body);
    free(c);
}

static bool is_custom_id(const char *id)
{
    size_t n = id ? strlen(id) : 0;

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)id[i]) && id[i] != '_' && id[i] != '-')
            return false;
    return n > 0 && n <= CUSTOM_ID_MAX;
}

static int check(const json_t *requests, struct err *e)
{
    json_t *seen = json_object(), *one;
    size_t i;
    int rc = 0;

    if (json_array_size(requests) == 0 || json_array_size(requests) > BATCH_REQUESTS)
        rc = err_set(e, ERR_CALLER, "requests: an array of 1 to %d requests is expected",
                     BATCH_REQUESTS);
    json_array_foreach((json_t *)requests, i, one) {
        const char *id = text_of(one, "custom_id");

        if (rc < 0)
            break;
        if (!is_custom_id(id))
            rc = err_set(e, ERR_CALLER,
                         "requests.%zu.custom_id: String should match pattern "
                         "'^[a-zA-Z0-9_-]{1,64}$'",
                         i);
        else if (json_object_get(seen, id))
            rc = err_set(e, ERR_CALLER, "requests.%zu.custom_id: `%s` is there twice", i, id);
        else if (!json_is_object(json_object_get(one, "params")))
            rc = err_set(e, ERR_CALLER, "requests.%zu.params: Input should be an object", i);
        else
            json_object_set_new(seen, id, json_true());
    }
    json_decref(seen);
    return rc;
}

/* On any thread. */
static void parse(void *arg)
{
    struct batch_creation *c = arg;

    c->bytes = request_body(c->r).n;
    if (request_value(c->r, &c->body, &c->failed) < 0)
        return;
    c->requests = json_incref(json_object_get(c->body, "requests"));
    (void)!check(c->requests, &c->failed);
}

static void on_kept(void *arg, const struct err *failed)
{
    struct batch_creation *c = arg;
    struct batch *b = c->batch;

    if (failed)
        return answer_error(c->r, failed, NULL);
    answer_json(c->r, 200, show(c->r, b->id, b->created_ms, batch_body(b)));
    batch_add(all_of(c->r), take_ptr(&c->batch));
}

/* The requests are stored before the batch: one that is there is whole. */
static void on_entry(void *arg, const struct err *failed)
{
    struct batch_creation *c = arg;
    json_t *body;
    AUTO_FREE char *text = NULL;

    if (failed && !c->failed.kind)
        c->failed = *failed;
    if (--c->waits > 0)
        return;
    if (c->failed.kind)
        return answer_error(c->r, &c->failed, NULL);
    body = batch_body(c->batch);
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    service_item_put_up_to(request_service(c->r), request_caller(c->r),
                           &(struct item_row){.id = c->batch->id,
                                              .kind = (char *)BATCH_KIND,
                                              .parent = (char *)BATCH_OPEN,
                                              .created_ms = c->batch->created_ms,
                                              .expires_ms = c->batch->created_ms + RESULTS_MS,
                                              .body = text},
                           BATCHES_KEPT, on_kept, c);
}

static void store_entries(void *arg, const struct err *failed)
{
    struct batch_creation *c = arg;
    struct batch *b = c->batch;
    char id[BATCH_ENTRY_ID];
    json_t *one;
    size_t i;

    if (failed)
        return anthropic_fail(c->r, failed);
    c->waits = json_array_size(c->requests);
    json_array_foreach(c->requests, i, one) {
        AUTO_FREE char *text = json_dumps(one, JSON_COMPACT);

        batch_entry_id(id, b->id, i);
        /* The first is the newest, so that lists have them in their order. */
        service_item_put(request_service(c->r), request_caller(c->r),
                         &(struct item_row){.id = id,
                                            .kind = (char *)BATCH_REQUEST,
                                            .parent = b->id,
                                            .created_ms = b->created_ms - (int64_t)i,
                                            .expires_ms = b->created_ms + RESULTS_MS,
                                            .body = text},
                         on_entry, c);
    }
}

static void on_parsed(void *arg)
{
    struct batch_creation *c = arg;
    const struct anthropic *a = request_ctx(c->r);

    if (c->failed.kind == ERR_CALLER)
        return answer_fail(c->r, 400, CODE_INVALID, NULL, "%s", c->failed.text);
    if (c->failed.kind)
        return answer_error(c->r, &c->failed, NULL);
    if (a->draining)
        return answer_fail(c->r, 529, CODE_INVALID, NULL, "The server is shutting down.");
    c->batch = batch_new(json_array_size(c->requests));
    c->batch->betas = request_betas(request_header(c->r, "anthropic-beta"));
    c->batch->caller = *request_caller(c->r);
    id_make(c->batch->id, BATCH_PREFIX);
    c->batch->created_ms = id_ms(str_of(c->batch->id));
    service_room(request_service(c->r), request_caller(c->r), c->bytes, store_entries, c);
}

void handle_batch_create(struct request *r)
{
    struct batch_creation *c = mem_zalloc(sizeof(*c));

    c->r = r;
    request_keep(r, creation_free, c);
    service_work(request_service(r), parse, on_parsed, c);
}
