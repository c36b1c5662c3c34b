/*
 * Runs the requests of batches: a few at a time, of all batches in turns.
 *
 * Each is a turn without a reader. What comes of it is stored before it is counted, so that a
 * restart asks again only for requests whose result nobody can have seen. A busy model is asked
 * again until the batch expires.
 */
#include "doors/anthropic/batches_int.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#define SEATS    8    /* requests at a time, of all tenants */
#define PAUSE_MS 2000 /* after a model was busy, or the store */
#define LOOKED   16   /* requests of a batch that are read at a time, after a restart */

const char *const batch_result_names[BATCH__RESULTS] = {
    [BATCH_SUCCEEDED] = "succeeded",
    [BATCH_ERRORED] = "errored",
    [BATCH_CANCELED] = "canceled",
    [BATCH_EXPIRED] = "expired",
};

struct batches {
    struct anthropic *anthropic; /* borrowed */
    struct service *service;     /* borrowed */
    struct batch *list;
    struct batch_run *runs;
    unsigned running;
    struct timer *timer; /* owned: after a pause */
    bool closed;
};

/* A request that is run. */
struct batch_run {
    struct batch_run *next;
    struct batch *batch; /* borrowed: it does not end before us */
    uint32_t i;
    char *text;    /* owned: the item */
    json_t *entry; /* owned */
    struct messages_request asked;
    struct turn *turn; /* owned, or NULL */
    bool over;         /* the turn, and it is known */
    unsigned waits;    /* callbacks that will come */
    enum batch_result kind;
};

static void pump(struct batches *bs);

/* --- batches --- */

struct batch *batch_new(size_t count)
{
    struct batch *b = mem_zalloc(sizeof(*b));

    b->count = count;
    b->todo = mem_zalloc((count + 1) * sizeof(*b->todo));
    return b;
}

void batch_free(struct batch *b)
{
    free(b->todo);
    free(b->betas);
    free(b);
}

static void todo_put(struct batch *b, uint32_t i)
{
    b->todo[(b->todo_at + b->todo_count++) % b->count] = i;
}

static uint32_t todo_take(struct batch *b)
{
    uint32_t i = b->todo[b->todo_at];

    b->todo_at = (b->todo_at + 1) % b->count;
    b->todo_count--;
    return i;
}

struct batch *batch_find(struct batches *bs, const char *tenant, struct str id)
{
    for (struct batch *b = bs->list; b; b = b->next)
        if (str_is(id, b->id) && strcmp(b->caller.tenant, tenant) == 0)
            return b;
    return NULL;
}

static void ignore(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed)
        log_warn("the state of a batch could not be stored: %s", failed->text);
}

/* Stores what changes: fn, or NULL. */
static void batch_save(struct batch *b, done_fn *fn, void *arg)
{
    json_t *body = batch_body(b);
    AUTO_FREE char *text = json_dumps(body, JSON_COMPACT);
    const struct item_row row = {.id = b->id,
                                 .kind = (char *)BATCH_KIND,
                                 .parent = (char *)(b->ended_ms ? "" : BATCH_OPEN),
                                 .created_ms = b->created_ms,
                                 .expires_ms = b->created_ms + RESULTS_MS,
                                 .body = text};

    json_decref(body);
    service_item_put(b->all->service, &b->caller, &row, fn ? fn : ignore, arg);
}

void batch_cancel(struct batch *b)
{
    b->cancel_ms = time_now_ms();
    batch_save(b, NULL, NULL);
    pump(b->all);
}

/* --- the end of a batch --- */

static void on_ended(void *arg, const struct err *failed)
{
    struct batch *b = arg, **at = &b->all->list;

    if (failed) { /* it is tried again with the next pump */
        ignore(NULL, failed);
        b->ending = false;
        b->ended_ms = 0;
        if (!b->all->closed)
            timer_set(b->all->timer, PAUSE_MS);
        return;
    }
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    batch_free(b);
}

static void end_if_done(struct batch *b)
{
    if (b->ending || b->running > 0 || b->todo_count > 0 || b->all->closed)
        return;
    b->ending = true;
    b->ended_ms = time_now_ms();
    batch_save(b, on_ended, b);
}

/* --- a request --- */

static void run_free(struct batch_run *n)
{
    struct batches *bs = n->batch->all;
    struct batch_run **at = &bs->runs;

    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    bs->running--;
    n->batch->running--;
    if (n->turn)
        turn_leave(n->turn);
    request_params_done(&n->asked.params);
    history_done(&n->asked.history);
    json_decref(n->entry);
    free(n->text);
    free(n);
}

/* Each callback calls this first. True: nobody wants to know, and the run is freed. */
static bool is_gone(struct batch_run *n)
{
    n->waits--;
    if (!n->batch->all->closed)
        return false;
    if (n->waits == 0)
        run_free(n);
    return true;
}

/* It is run again, later. */
static void put_back(struct batch_run *n, uint64_t pause_ms)
{
    struct batches *bs = n->batch->all;

    todo_put(n->batch, n->i);
    run_free(n);
    timer_set(bs->timer, pause_ms);
}

static void on_stored(void *arg, const struct err *failed)
{
    struct batch_run *n = arg;
    struct batch *b = n->batch;

    if (is_gone(n))
        return;
    if (failed) {
        log_warn("a result of a batch could not be stored: %s", failed->text);
        return put_back(n, PAUSE_MS);
    }
    b->results[n->kind]++;
    run_free(n);
    end_if_done(b);
    pump(b->all);
}

/* Takes result. */
static void conclude(struct batch_run *n, enum batch_result kind, json_t *result)
{
    char id[BATCH_ENTRY_ID];
    struct batch *b = n->batch;
    json_t *body = json_pack("{s:O?, s:o}", "custom_id", json_object_get(n->entry, "custom_id"),
                             "result", result);
    AUTO_FREE char *text = NULL;

    json_object_set_new(result, "type", json_string(batch_result_names[kind]));
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    batch_entry_id(id, b->id, n->i);
    n->kind = kind;
    n->waits++;
    service_item_put(b->all->service, &b->caller,
                     &(struct item_row){.id = id,
                                        .kind = (char *)BATCH_REQUEST,
                                        .parent = b->id,
                                        .created_ms = b->created_ms - (int64_t)n->i,
                                        .expires_ms = b->created_ms + RESULTS_MS,
                                        .body = text},
                     on_stored, n);
}

static void fail(struct batch_run *n, int status, const char *code, const char *text)
{
    json_t *error =
        anthropic_error_of(n->asked.caller.request, status, code, record_text(str_of(text)));

    conclude(n, BATCH_ERRORED, json_pack("{s:o}", "error", error));
}

static void take_turn(void *arg)
{
    struct batch_run *n = arg;
    const struct turn_failure *f = &n->turn->failure;

    if (is_gone(n))
        return;
    if (n->batch->all->anthropic->draining)
        return put_back(n, PAUSE_MS); /* it was cut short: the next server asks again */
    if (!f->status)
        conclude(n, BATCH_SUCCEEDED,
                 json_pack("{s:o}", "message", message_value(&n->turn->message)));
    else if ((f->status == 429 || f->status == 529) && !f->final)
        put_back(n, f->retry_s > 0 ? (uint64_t)f->retry_s * 1000 : PAUSE_MS);
    else
        fail(n, f->status, f->code, f->text);
}

static void on_news(void *arg)
{
    struct batch_run *n = arg;

    if (!n->turn || !n->turn->over || n->over)
        return;
    n->over = true;
    n->waits++;
    loop_later(n->batch->all->anthropic->config.loop, take_turn, n);
}

/* On another thread. */
static void parse(void *arg)
{
    struct batch_run *n = arg;
    json_t *params;

    n->entry = json_load_limited(str_of(n->text), 0);
    params = json_object_get(n->entry, "params");
    if (!json_is_object(params)) {
        err_set(&n->asked.failed, ERR_CALLER, "params: Input should be an object");
        return;
    }
    if (request_params_read(&n->asked.params, json_incref(params), &n->asked.failed) < 0)
        return;
    n->asked.params.stream = false;
    if (history_read(&n->asked.history, json_object_get(params, "messages"), &n->asked.failed) < 0)
        return;
}

static void on_parsed(void *arg)
{
    struct batch_run *n = arg;
    struct batch *b = n->batch;

    if (is_gone(n))
        return;
    if (b->cancel_ms)
        conclude(n, BATCH_CANCELED, json_object());
    else if (time_now_ms() > b->created_ms + BATCH_MS)
        conclude(n, BATCH_EXPIRED, json_object());
    else if (n->asked.failed.kind)
        fail(n, 400, CODE_INVALID, n->asked.failed.text);
    else if (!service_key_stands(b->all->service, b->caller.tenant, b->caller.key))
        fail(n, 401, CODE_INVALID, "The key that has created the batch is not valid any more.");
    else {
        n->asked.params.betas = b->betas ? mem_strdup(b->betas) : NULL;
        n->turn = turn_start(b->all->anthropic, &n->asked, on_news, n);
    }
}

static void on_entry(void *arg, const struct item_row *item, const struct err *failed)
{
    struct batch_run *n = arg;

    if (is_gone(n))
        return;
    if (failed && failed->kind != ERR_MISSING)
        return put_back(n, PAUSE_MS);
    if (failed) /* somebody has deleted it */
        return fail(n, 500, CODE_INVALID, "The request is not there any more.");
    n->text = mem_strdup(item->body);
    n->waits++;
    service_work(n->batch->all->service, parse, on_parsed, n);
}

static void start(struct batch *b)
{
    struct batches *bs = b->all;
    struct batch_run *n = mem_zalloc(sizeof(*n));
    char id[BATCH_ENTRY_ID];

    *n = (struct batch_run){.next = bs->runs, .batch = b, .i = todo_take(b), .waits = 1};
    n->asked.service = bs->service;
    n->asked.caller = b->caller;
    id_make(n->asked.caller.request, "req_");
    bs->runs = n;
    bs->running++;
    b->running++;
    batch_entry_id(id, b->id, n->i);
    service_item_get(bs->service, &b->caller, BATCH_REQUEST, str_of(id), on_entry, n);
}

/* Starts what there is room for; the batch that is asked next is the one that was asked longest
 * ago. */
static void pump(struct batches *bs)
{
    bool found = true;

    while (found && bs->running < SEATS && !bs->closed && !bs->anthropic->draining) {
        found = false;
        for (struct batch *b = bs->list; b && bs->running < SEATS; b = b->next) {
            if (b->todo_count == 0)
                continue;
            start(b);
            found = true;
        }
    }
}

static void on_timer(void *arg)
{
    struct batches *bs = arg;

    for (struct batch *b = bs->list; b; b = b->next)
        end_if_done(b);
    pump(bs);
}

static void list_put(struct batches *bs, struct batch *b)
{
    b->all = bs;
    b->next = bs->list;
    bs->list = b;
}

void batch_add(struct batches *bs, struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        todo_put(b, (uint32_t)i);
    list_put(bs, b);
    pump(bs);
}

/* --- after a restart --- */

/* A batch whose requests are looked through: which of them are over. */
struct batch_look {
    struct batch *batch; /* owned */
    struct batches *all; /* borrowed */
    struct batch_place at;
};

static void look_on(struct batch_look *l);

static void look_at(struct batch *b, const struct item_row *item)
{
    json_t *entry = json_load_limited(str_of(item->body), 0);
    const char *type = text_of(json_object_get(entry, "result"), "type");
    const char *number = strrchr(item->id, '.');
    unsigned long i = number ? strtoul(number + 1, NULL, 10) : b->count;
    size_t k = 0;

    while (k < BATCH__RESULTS && (!type || strcmp(type, batch_result_names[k]) != 0))
        k++;
    if (k < BATCH__RESULTS)
        b->results[k]++;
    else if (i < b->count && b->todo_count < b->count)
        todo_put(b, (uint32_t)i);
    json_decref(entry);
}

static void on_looked(void *arg, const struct item_row *items, size_t count, uint64_t total,
                      const struct err *failed)
{
    struct batch_look *l = arg;
    struct batch *b = l->batch;

    for (size_t i = 0; i < count; i++)
        look_at(b, &items[i]);
    (void)total;
    batch_place_note(&l->at, items, count);
    if (!failed && count == LOOKED && !l->all->closed)
        return look_on(l);
    if (failed || l->all->closed) {
        if (failed)
            log_warn("%s cannot be read, and does not go on: %s", b->id, failed->text);
        batch_free(b);
    } else {
        list_put(l->all, b);
        end_if_done(b);
        pump(l->all);
    }
    free(l);
}

static void look_on(struct batch_look *l)
{
    const struct item_filter f = {.kind = BATCH_REQUEST,
                                  .owner = "",
                                  .parent = l->batch->id,
                                  .page = batch_place_page(&l->at, LOOKED)};

    service_item_list(l->all->service, &l->batch->caller, &f, on_looked, l);
}

static void resume(struct batches *bs, const struct item_row *item)
{
    struct batch_look *l = mem_zalloc(sizeof(*l));
    json_t *body = json_loads(item->body, 0, NULL);
    json_int_t count = json_integer_value(json_object_get(body, "count"));
    struct batch *b = batch_new(count > 0 ? (size_t)count : 1);

    (void)!str_to_cstr(str_of(item->id), b->id, sizeof(b->id));
    (void)!str_to_cstr(str_of(item->tenant), b->caller.tenant, sizeof(b->caller.tenant));
    (void)!str_to_cstr(view_of(body, "key"), b->caller.key, sizeof(b->caller.key));
    b->caller.door = "anthropic";
    id_make(b->caller.request, "req_");
    b->created_ms = item->created_ms;
    b->cancel_ms = json_integer_value(json_object_get(body, "cancel_ms"));
    b->betas = text_of(body, "betas") ? mem_strdup(text_of(body, "betas")) : NULL;
    json_decref(body);
    *l = (struct batch_look){.batch = b, .all = bs};
    b->all = bs;
    look_on(l);
}

static void on_open(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct batches *bs = arg;

    (void)total;
    if (failed)
        log_warn("batches do not go on: %s", failed->text);
    for (size_t i = 0; i < count && !bs->closed; i++)
        resume(bs, &items[i]);
}

static void on_home(void *arg, const char *tenant)
{
    struct batches *bs = arg;

    if (!bs->closed)
        service_item_everybodys(bs->service, tenant, BATCH_KIND, BATCH_OPEN, on_open, bs);
}

/* --- all of them --- */

struct batches *batches_new(struct anthropic *a)
{
    struct batches *bs = mem_zalloc(sizeof(*bs));

    bs->anthropic = a;
    bs->service = a->config.service;
    bs->timer = timer_new(a->config.loop, on_timer, bs);
    if (service_has_nodes(bs->service))
        service_on_home(bs->service, BATCH_KIND, BATCH_OPEN, on_home, bs);
    else
        service_item_everybodys(bs->service, NULL, BATCH_KIND, BATCH_OPEN, on_open, bs);
    return bs;
}

void batches_close(struct batches *bs)
{
    bs->closed = true;
    timer_clear(bs->timer);
    for (struct batch_run *n = bs->runs, *next; n; n = next) {
        next = n->next;
        if (n->turn)
            turn_leave(take_ptr(&n->turn));
        if (n->waits == 0)
            run_free(n);
    }
}

void batches_free(struct batches *bs)
{
    assert(!bs->runs);
    for (struct batch *b = bs->list, *next; b; b = next) {
        next = b->next;
        batch_free(b);
    }
    timer_free(bs->timer);
    free(bs);
}
