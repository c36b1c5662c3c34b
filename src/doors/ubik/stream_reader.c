/*
 * A client that reads the events of an execution as a stream: past events, new events,
 * the end. struct sse_format decides how each event is written.
 *
 * A reader belongs to its request. At any moment either a lookup is under way, which
 * keeps the request, or the agent is watched until the client has gone.
 */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

static void on_gone(void *arg)
{
    struct stream_reader *rd = arg;

    rd->gone = true;
    if (!rd->watch)
        return;
    agent_watch_free(take_ptr(&rd->watch));
    request_drop(rd->r);
}

struct stream_reader *stream_reader_new(struct request *r, const struct sse_format *format)
{
    struct stream_reader *rd = mem_zalloc(sizeof(*rd));

    *rd = (struct stream_reader){.r = r, .format = format};
    request_keep(r, free, rd);
    if (!end_user_read(r, &rd->user))
        return NULL;
    request_on_gone(r, on_gone, rd);
    return rd;
}

void stream_reader_say(struct stream_reader *rd, const char *name, uint64_t id, json_t *data)
{
    if (rd->slow) {
        json_decref(data);
        return;
    }
    event_put(rd->r, name, id, data);
    rd->slow = answer_stream_waits(rd->r) > WAITING_BYTES;
}

static void end(struct stream_reader *rd)
{
    agent_watch_free(take_ptr(&rd->watch));
    answer_stream_end(rd->r);
}

static void look(struct stream_reader *rd, tool_execution_fn *fn)
{
    tool_execution_find(&rd->user, str_of(rd->id), fn, rd);
}

static void on_over(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct stream_reader *rd = arg;

    if (!failed)
        rd->format->end(rd, x);
    end(rd);
}

static void on_event(void *arg, const json_t *ev)
{
    struct stream_reader *rd = arg;

    rd->format->event(rd, ev);
    if (rd->slow)
        end(rd);
}

static void on_end(void *arg, const json_t *record, const struct err *failed)
{
    struct stream_reader *rd = arg;

    (void)record;
    agent_watch_free(take_ptr(&rd->watch));
    if (failed)
        end(rd);
    else
        look(rd, on_over);
}

static void on_found(void *arg, const struct tool_execution *x, const struct err *failed)
{
    static const struct agent_watcher watcher = {on_event, on_end};
    struct stream_reader *rd = arg;
    struct agent *a = NULL;
    struct err e;

    if (failed) {
        detail_err(rd->r, failed, rd->format->missing);
        return;
    }
    if (rd->gone) {
        request_drop(rd->r);
        return;
    }
    answer_header(rd->r, "cache-control", "no-cache");
    answer_events(rd->r, EVENTS_SSE);
    rd->format->begin(rd);
    if (x->record)
        a = ubik_agent(rd->user.u, &e);
    if (a)
        rd->watch = agent_watch(a, request_caller(rd->r), str_of(x->id), rd->after, &watcher, rd);
    else
        on_over(rd, x, NULL);
}

void stream_reader_follow(struct stream_reader *rd)
{
    look(rd, on_found);
}
