/*
 * Answers for executions with much output. A worker writes such an answer, because writing takes
 * long. All of them together may hold a limited number of bytes until their clients have read them.
 * An answer past that limit is refused; the execution stays on record.
 */
#include "doors/rest/rest_int.h"

#include <stdlib.h>

#define LARGE     (256 * KiB) /* of code and events: longer ones are written by a worker */
#define LARGE_SUM (1 * GiB)
#define TEXT_MAX  (4 * GiB) /* the service keeps less; this only stops a runaway */

struct large {
    struct pump pump;
    struct request *r;       /* borrowed: until it is answered */
    struct service *service; /* borrowed */
    int status;
    unsigned kinds; /* of events, for the output */
    json_t *brief;  /* owned */
    json_t *events; /* owned reference; what is in it is nobody's to change */
    char *code;     /* owned */
    size_t counted; /* of sum */
    char *text;     /* owned: the answer, NULL until it is made */
    size_t n, at;   /* so much of it has been handed over */
};

static size_t sum; /* bytes of all of them; the loop's */

static void count(struct large *g, size_t bytes)
{
    sum += bytes - g->counted;
    service_hold(g->service, g->counted, bytes);
    g->counted = bytes;
}

static void large_free(void *p)
{
    struct large *g = p;

    count(g, 0);
    json_decref(g->brief);
    json_decref(g->events);
    free(g->code);
    free(g->text);
    free(g);
}

static size_t size_of(const struct exec_info *info)
{
    return info->bytes + (info->row->code ? strlen(info->row->code) : 0);
}

/* NULL when it has been refused. What it has said is twice in an answer. */
static struct large *large_new(struct request *r, const struct exec_info *info)
{
    size_t bytes = 2 * size_of(info);
    struct large *g;
    struct err e;

    if (sum > 0 && (sum >= LARGE_SUM || bytes > LARGE_SUM - sum)) {
        err_set(&e, ERR_BUSY, "the server has as many long answers to send as it may; this is %s",
                info->row->id);
        e.retry_s = 1;
        answer_error(r, &e, NULL);
        return NULL;
    }
    g = mem_zalloc(sizeof(*g));
    g->r = r;
    g->service = request_service(r);
    g->brief = render_exec_brief(info);
    g->events = json_incref(info->events);
    g->code = info->row->code ? mem_strdup(info->row->code) : NULL;
    count(g, bytes);
    request_keep(r, large_free, g);
    return g;
}

/* --- the execution --- */

static void write_all(void *arg) /* on a worker */
{
    struct large *g = arg;
    json_t *v = render_exec_parts(take_ptr(&g->brief), g->code, g->events);

    g->text = record_dump(v, false, &g->n);
    json_decref(v);
}

static void on_written(void *arg)
{
    struct large *g = arg;
    struct err e;

    if (!pump_back(&g->pump))
        return;
    if (!g->text) {
        err_set(&e, ERR_HOST, "an execution is too long to be written");
        pump_fail(&g->pump, &e);
        return;
    }
    count(g, g->n); /* escaped it may be six times as long as it was */
    json_decref(take_ptr(&g->events));
    pump_open(&g->pump, g->status, "application/json");
    pump_next(&g->pump);
}

static void step(void *arg)
{
    struct large *g = arg;

    if (!g->text)
        return service_work(g->service, write_all, on_written, g);
    if (answer_stream_put_some(g->r, (struct str){g->text, g->n}, &g->at))
        answer_stream_end(g->pump.r);
    else
        pump_next(&g->pump);
}

void answer_exec(struct request *r, int status, const struct exec_info *info)
{
    struct large *g;

    if (size_of(info) <= LARGE) {
        answer_json(r, status, render_exec(info));
        return;
    }
    g = large_new(r, info);
    if (!g)
        return;
    g->status = status;
    pump_start(&g->pump, r, step, g);
}

/* --- its output --- */

static void join(void *arg) /* on a worker */
{
    struct large *g = arg;
    struct buf text;

    buf_init(&text, TEXT_MAX);
    events_output(g->events, g->kinds, &text);
    g->text = text.p;
    g->n = text.n;
}

static void on_joined(void *arg)
{
    struct large *g = arg;

    answer_range(g->r, "text/plain; charset=utf-8", g->n ? (struct str){g->text, g->n} : STR(""));
}

void answer_output(struct request *r, unsigned kinds, const struct exec_info *info)
{
    struct large small = {.r = r, .kinds = kinds, .events = info->events}, *g;

    if (size_of(info) <= LARGE) {
        join(&small);
        on_joined(&small);
        free(small.text);
        return;
    }
    g = large_new(r, info);
    if (!g)
        return;
    g->kinds = kinds;
    service_work(g->service, join, on_joined, g);
}
