/*
 * POST /qwen/python_executor/batch: many snippets, each in an interpreter of its own, and a pair
 * for each, in their order. SNIPPETS_AT_ONCE run at a time, shared among tenants.
 */
#include "doors/qwen/qwen_int.h"

#include <stdlib.h>

struct executor_batch {
    struct request *r; /* borrowed; NULL once it is answered or dropped */
    json_t *pairs;     /* owned: null where there is none yet */
    size_t left;
    size_t bytes; /* of the pairs */
    struct batch_snippet {
        struct executor_batch *batch;
        struct interpreter_call *call; /* borrowed; NULL: it has ended */
    } snippets[SNIPPETS_MAX];
};

static void executor_batch_free(void *arg)
{
    struct executor_batch *b = arg;

    json_decref(b->pairs);
    free(b);
}

static void on_gone(void *arg)
{
    struct executor_batch *b = arg;
    struct request *r = take_ptr(&b->r);

    if (!r)
        return;
    for (size_t i = 0; i < json_array_size(b->pairs); i++)
        if (b->snippets[i].call)
            interpreter_call_leave(take_ptr(&b->snippets[i].call));
    request_drop(r);
}

/* The report of a snippet that could not run is the reason. */
static json_t *pair_in(struct executor_batch *b, const struct interpreter_call *c)
{
    struct str report = c->reply.n ? c->reply : STR("Done");
    json_t *pair = NULL;
    struct err e;

    b->bytes += c->reply.n;
    if (b->bytes > SNIPPETS_BYTES)
        report = STR("It has run, but the answers of this batch are too long together");
    else if (!c->is_error && c->reply.n && json_read_any(c->reply, &pair, &e) == 0)
        return pair;
    return json_pack("[s, o]", "", record_text(report));
}

static void on_reply(void *arg, const struct interpreter_call *c)
{
    struct batch_snippet *s = arg;
    struct executor_batch *b = s->batch;

    s->call = NULL;
    json_array_set_new(b->pairs, (size_t)(s - b->snippets), pair_in(b, c));
    if (--b->left == 0)
        answer_json(take_ptr(&b->r), 200, json_incref(b->pairs));
}

static int start(struct executor_batch *b, size_t i, struct str code, struct err *e)
{
    struct qwen *q = request_ctx(b->r);
    const struct interpreter_call_spec spec = {.qwen = q,
                                               .service = request_service(b->r),
                                               .caller = request_caller(b->r),
                                               .tool = "python_executor",
                                               .lane = &q->lane,
                                               .stateless = true};
    struct parsed_code parsed;
    struct call_params p;

    call_params_init(&p, q);
    if (call_params_take(&p, q, request_json(b->r), e) < 0) {
        call_params_done(&p);
        return -1;
    }
    parse_code_value(code, &parsed);
    call_params_set_code(&p, &parsed);
    parsed_code_done(&parsed);
    b->snippets[i] = (struct batch_snippet){b, NULL};
    b->snippets[i].call = interpreter_call_start(&spec, &p, on_reply, &b->snippets[i]);
    return 0;
}

void handle_batch(struct request *r)
{
    json_t *codes = json_object_get(request_json(r), "code"), *code;
    struct executor_batch *b = mem_zalloc(sizeof(*b));
    struct err e;
    size_t i;

    *b = (struct executor_batch){.r = r, .pairs = json_array(), .left = json_array_size(codes)};
    request_keep(r, executor_batch_free, b);
    request_on_gone(r, on_gone, b);
    json_array_foreach(codes, i, code) {
        json_array_append_new(b->pairs, json_null());
        if (start(b, i, json_view(code), &e) < 0) { /* the first: all have the same options */
            answer_error(take_ptr(&b->r), &e, NULL);
            return;
        }
    }
    if (b->left == 0)
        answer_json(take_ptr(&b->r), 200, json_array());
}
