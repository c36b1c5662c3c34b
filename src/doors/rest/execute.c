/*
 * Runs code for a request and answers with one JSON document or a stream. The state of the
 * execution is part of the request. When the client disconnects, the request leaves the execution.
 */
#include "doors/rest/rest_int.h"

#include <stdio.h>
#include <stdlib.h>

struct rest_execution {
    struct request *r;   /* borrowed: outlives us */
    struct execution *x; /* borrowed; NULL once it has ended or was left */
    bool background;
    bool streams; /* as events, in this format: */
    enum event_format format;
    bool streaming; /* headers are out */
    size_t missed;  /* events that were left out, as the reader does not read */
    char session[ID_MAX];
};

/* --- streams --- */

static void on_hold(void *arg, bool held)
{
    struct rest_execution *u = arg;

    if (u->x)
        execution_hold(u->x, held);
}

/* Takes v, an object with a "type", which is also the name of a server-sent event. */
static void put(struct rest_execution *u, json_t *v)
{
    AUTO_FREE char *line = json_line(v);

    answer_event(u->r, NULL, json_string_value(json_object_get(v, "type")), str_of(line));
    json_decref(v);
}

static void open_stream(struct rest_execution *u, const struct exec_info *info)
{
    json_t *v = render_exec(info);

    u->streaming = true;
    answer_header(u->r, "cache-control", "no-store");
    answer_events(u->r, u->format);
    answer_stream_on_hold(u->r, on_hold, u);
    json_object_set_new(v, "type", json_string("execution"));
    put(u, v);
}

static void tell_missed(struct rest_execution *u)
{
    char text[128];

    if (u->missed == 0)
        return;
    snprintf(text, sizeof(text), "%zu events left out here, as nobody read: they are on record",
             u->missed);
    u->missed = 0;
    put(u, json_pack("{s:s, s:s}", "type", "status", "text", text));
}

static json_t *done_value(const struct exec_info *info)
{
    static const char *const members[] = {"id",         "session",  "status",
                                          "started_at", "ended_at", "outcome"};
    json_t *whole = render_exec_brief(info);
    json_t *v = json_pack("{s:s}", "type", "done");

    for (size_t i = 0; i < COUNT(members); i++)
        json_object_set(v, members[i], json_object_get(whole, members[i]));
    json_decref(whole);
    return v;
}

static void end_stream(struct rest_execution *u, const struct exec_info *info,
                       const struct err *failed)
{
    const char *request = request_caller(u->r)->request;

    if (failed && failed->kind == ERR_HOST)
        log_error("%s: %s", request, failed->text);
    tell_missed(u);
    if (failed)
        put(u, json_pack("{s:s, s:o}", "type", "error", "error", render_error(failed, request)));
    else
        put(u, done_value(info));
    answer_stream_end(u->r);
}

/* --- what the service says --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct rest_execution *u = arg;

    snprintf(u->session, sizeof(u->session), "%s", info->row->session ? info->row->session : "");
    if (u->streams)
        open_stream(u, info);
    if (!u->background || u->streams)
        return;
    execution_leave(take_ptr(&u->x));
    answer_exec(u->r, 202, info);
}

static void on_event(void *arg, const struct event *ev)
{
    struct rest_execution *u = arg;

    if (!u->streaming)
        return;
    if (answer_stream_waits(u->r) > WAITING_MAX) {
        u->missed++;
        return;
    }
    tell_missed(u);
    put(u, render_event(ev, u->session));
}

/* A person must agree first, or has not agreed. */
static void answer_denied(struct rest_execution *u, const struct approval_info *info,
                          const struct err *failed)
{
    bool declined = info->row && info->verdict == APPROVAL_NO;

    answer_fail(u->r, 403, declined ? "approval_declined" : "approval_required", NULL, "%s",
                failed->text);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct rest_execution *u = arg;
    const struct approval_info *approval = execution_approval(take_ptr(&u->x));

    if (u->streaming)
        end_stream(u, info, failed);
    else if (approval)
        answer_denied(u, approval, failed);
    else if (failed)
        answer_error(u->r, failed, NULL);
    else
        answer_exec(u->r, 200, info);
}

static void on_gone(void *arg)
{
    struct rest_execution *u = arg;

    if (!u->x) /* all has been said; it only did not arrive */
        return;
    execution_leave(take_ptr(&u->x));
    request_drop(u->r);
}

/* --- the request --- */

static int take_format(struct rest_execution *u, const json_t *stream, struct err *e)
{
    struct str name = json_view(stream);

    u->streams = stream && !json_is_false(stream);
    u->format = str_is(name, "ndjson") ? EVENTS_NDJSON : EVENTS_SSE;
    if (u->streams && !json_is_true(stream) && !str_is(name, "sse") && !str_is(name, "ndjson"))
        return err_set(e, ERR_CALLER, "stream is true, false, \"sse\" or \"ndjson\"");
    return 0;
}

static int take_options(struct rest_execution *u, const json_t *body, struct exec_inputs *g,
                        char ret_param[PARAM_MAX], struct err *e)
{
    snprintf(ret_param, PARAM_MAX, "stream");
    if (take_format(u, json_object_get(body, "stream"), e) < 0)
        return -1;
    u->background = json_is_true(json_object_get(body, "background"));
    if (exec_inputs_env(g, json_object_get(body, "env"), ret_param, e) < 0)
        return -1;
    return exec_inputs_files(g, json_object_get(body, "files"), ret_param, e);
}

/* Tools have the same names as MCP's, so that one rule of a pool is about both. */
static void start(struct rest_execution *u, json_t *body, const struct exec_inputs *g)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    bool shell = str_is(json_view(json_object_get(body, "language")), "shell");
    struct str code = json_view(json_object_get(body, "code"));
    const struct exec_spec spec = {
        .session = request_path(u->r, "session"),
        .pool = json_view(json_object_get(body, "pool")),
        .kind = shell ? EXEC_COMMAND : EXEC_CELL,
        .code = code,
        .wall_ms = json_ms(json_object_get(body, "timeout")),
        .wall_is_asked = true,
        .env = g->env,
        .env_count = g->env_count,
        .files = g->file,
        .file_count = g->file_count,
        .background = u->background,
        .tells = u->streams,
        .ask = {.tool = shell ? STR("run_shell") : STR("run_code"), .args = body, .code = code},
    };

    request_on_gone(u->r, on_gone, u);
    u->x = service_execute(request_service(u->r), request_caller(u->r), &spec, &watcher, u);
}

void handle_execute(struct request *r)
{
    struct rest_execution *u = mem_zalloc(sizeof(*u));
    AUTO(exec_inputs_done) struct exec_inputs g = {0};
    char param[PARAM_MAX];
    struct err e;

    u->r = r;
    request_keep(r, free, u);
    if (take_options(u, request_json(r), &g, param, &e) < 0)
        answer_error(r, &e, param);
    else
        start(u, request_json(r), &g);
}
