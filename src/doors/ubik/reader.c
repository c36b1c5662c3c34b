/*
 * One who reads a stream of events about an execution: what was, what comes, the end.
 *
 * A reader is held by its request, and by what is under way for it (something is looked
 * for, or the agent is watched); either may end first. What is said, and in which words,
 * is its voice's business.
 */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

static void let_go(void *arg)
{
    struct reader *rd = arg;

    if (--rd->holders == 0)
        free(rd);
}

static void on_gone(void *arg)
{
    struct reader *rd = arg;

    agent_watch_free(take_ptr(&rd->watch));
    request_drop(take_ptr(&rd->r));
    if (!rd->looking)
        let_go(rd);
}

struct reader *reader_new(struct request *r, const struct voice *voice)
{
    struct reader *rd = mem_zalloc(sizeof(*rd));

    *rd = (struct reader){.r = r, .u = request_ctx(r), .voice = voice, .holders = 1};
    request_keep(r, let_go, rd);
    if (!who_read(r, &rd->who))
        return NULL;
    rd->holders++;
    rd->looking = true;
    request_on_gone(r, on_gone, rd);
    return rd;
}

void reader_refuse(struct reader *rd, const struct err *failed, const char *missing)
{
    rd->looking = false;
    if (rd->r && failed)
        detail_err(take_ptr(&rd->r), failed, missing);
    else if (rd->r)
        detail(take_ptr(&rd->r), 404, "%s", missing);
    let_go(rd);
}

static void end(struct reader *rd)
{
    agent_watch_free(take_ptr(&rd->watch));
    answer_stream_end(take_ptr(&rd->r));
}

void reader_say(struct reader *rd, const char *name, uint64_t id, json_t *data)
{
    struct buf b;

    if (!rd->r) {
        json_decref(data);
        return;
    }
    buf_init(&b, 64 * MiB);
    event_put(&b, rd->u, name, id, data);
    if (answer_stream_put(rd->r, buf_str(&b)) > WAITING_BYTES)
        end(rd);
    buf_done(&b);
}

static void look(struct reader *rd, execution_fn *fn)
{
    rd->looking = true;
    execution_find(rd->u, request_service(rd->r), request_caller(rd->r), &rd->who, str_of(rd->id),
                   fn, rd);
}

static void on_over(void *arg, const struct execution *x, const struct err *failed)
{
    struct reader *rd = arg;

    rd->looking = false;
    if (rd->r && !failed)
        rd->voice->end(rd, x);
    if (rd->r)
        end(rd);
    let_go(rd);
}

static void on_event(void *arg, const json_t *ev)
{
    struct reader *rd = arg;

    rd->voice->event(rd, ev);
    if (!rd->r)
        let_go(rd);
}

static void on_end(void *arg, const json_t *record, const struct err *failed)
{
    struct reader *rd = arg;

    (void)record;
    if (!failed) {
        look(rd, on_over);
        return;
    }
    end(rd);
    let_go(rd);
}

static void on_found(void *arg, const struct execution *x, const struct err *failed)
{
    static const struct agent_watcher watcher = {on_event, on_end};
    struct reader *rd = arg;
    struct agent *a = NULL;
    struct err e;

    if (!rd->r || failed) {
        reader_refuse(rd, failed, rd->voice->missing);
        return;
    }
    rd->looking = false;
    answer_header(rd->r, "cache-control", "no-cache");
    answer_stream(rd->r, 200, "text/event-stream", STR(": ping\n\n"));
    rd->voice->begin(rd);
    if (x->record)
        a = ubik_agent(rd->u, &e);
    if (a)
        rd->watch = agent_watch(a, request_caller(rd->r), str_of(x->id), rd->after, &watcher, rd);
    else
        on_over(rd, x, NULL);
}

void reader_follow(struct reader *rd)
{
    look(rd, on_found);
}
