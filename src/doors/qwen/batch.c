/*
 * POST /qwen/python_executor/batch: many snippets, each without a past and apart from the
 * others, and a pair for each, in their order. Some run at a time, the others wait for
 * their turn; what one of them does to itself is no business of its neighbours.
 */
#include "doors/qwen/qwen_int.h"

#include <stdlib.h>

struct batch {
    struct request *r; /* borrowed; NULL once it is answered or dropped */
    json_t *codes;     /* borrowed from the request */
    json_t *pairs;     /* owned: null where there is none yet */
    size_t next, done;
    size_t bytes; /* of the pairs */
    struct seat {
        struct batch *batch;
        size_t at;             /* whose turn it is */
        struct errand *errand; /* borrowed; NULL: it is free */
    } seats[SNIPPETS_AT_ONCE];
};

static void batch_free(void *arg)
{
    struct batch *b = arg;

    json_decref(b->pairs);
    free(b);
}

static void on_gone(void *arg)
{
    struct batch *b = arg;
    struct request *r = take_ptr(&b->r);

    if (!r)
        return;
    for (size_t i = 0; i < COUNT(b->seats); i++)
        if (b->seats[i].errand)
            errand_leave(take_ptr(&b->seats[i].errand));
    request_drop(r);
}

static void go_on(struct batch *b);

/* What could not be run has its reason for a report. */
static json_t *pair_in(struct batch *b, const struct reply *reply)
{
    struct str report = reply->text.n ? reply->text : STR("Done");
    json_t *pair = NULL;
    struct err e;

    b->bytes += reply->text.n;
    if (b->bytes > SNIPPETS_BYTES)
        report = STR("It has run, but the answers of this batch are too long together");
    else if (!reply->is_error && reply->text.n && json_read_any(reply->text, &pair, &e) == 0)
        return pair;
    return json_pack("[s, o]", "", record_text(report));
}

static void on_reply(void *arg, const struct reply *reply)
{
    struct seat *s = arg;
    struct batch *b = s->batch;

    s->errand = NULL;
    json_array_set_new(b->pairs, s->at, pair_in(b, reply));
    b->done++;
    if (b->done == json_array_size(b->codes))
        answer_json(take_ptr(&b->r), 200, json_incref(b->pairs));
    else
        go_on(b);
}

/* The options have been read once already, so that they are good. */
static void sit_down(struct seat *s)
{
    struct batch *b = s->batch;
    struct request *r = b->r;
    struct qwen *q = request_ctx(r);
    const struct errand_spec spec = {.qwen = q,
                                     .service = request_service(r),
                                     .caller = request_caller(r),
                                     .tool = "python_executor",
                                     .stateless = true};
    struct written p;
    struct order o;
    struct err e;

    s->at = b->next++;
    order_init(&o, q);
    (void)!order_take(&o, q, request_json(r), &e);
    params_code(json_view(json_array_get(b->codes, s->at)), &p);
    order_take_params(&o, &p);
    params_done(&p);
    s->errand = errand_start(&spec, &o, on_reply, s);
}

static void go_on(struct batch *b)
{
    for (size_t i = 0; i < COUNT(b->seats) && b->next < json_array_size(b->codes); i++)
        if (!b->seats[i].errand)
            sit_down(&b->seats[i]);
}

void handle_batch(struct request *r)
{
    json_t *codes = json_object_get(request_json(r), "code");
    struct batch *b;
    struct order o;
    struct err e;
    int rc;

    order_init(&o, request_ctx(r));
    rc = order_take(&o, request_ctx(r), request_json(r), &e);
    order_done(&o);
    if (rc < 0) {
        answer_error(r, &e, NULL);
        return;
    }
    if (json_array_size(codes) == 0) {
        answer_json(r, 200, json_array());
        return;
    }
    b = mem_zalloc(sizeof(*b));
    *b = (struct batch){.r = r, .codes = codes, .pairs = json_array()};
    for (size_t i = 0; i < json_array_size(codes); i++)
        json_array_append_new(b->pairs, json_null());
    for (size_t i = 0; i < COUNT(b->seats); i++)
        b->seats[i].batch = b;
    request_keep(r, batch_free, b);
    request_on_gone(r, on_gone, b);
    go_on(b);
}
