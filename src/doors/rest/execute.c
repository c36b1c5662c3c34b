/*
 * One execution somebody asked for, as one JSON answer or as a stream.
 *
 * Two things hold a run: its request and its job, and either may end first. A
 * background run's request ends with the 202 while its job goes on; the last bytes
 * of a stream may still be on their way when the job is gone. So each lets go by
 * itself, and the second frees. A client that goes away takes its job with it,
 * unless the job is in the background.
 */
#include "doors/rest/rest_int.h"

#include <stdio.h>
#include <stdlib.h>

enum shape { SHAPE_JSON, SHAPE_SSE, SHAPE_NDJSON };

struct run {
    struct request *r; /* borrowed; NULL once it is answered or dropped */
    struct job *job;   /* borrowed; NULL once it has ended or we left it */
    unsigned holders;
    enum shape shape;
    bool background;
    bool streaming; /* headers are out */
    bool gone;      /* the client is, before anything was started */
    struct clearance clearance;
    bool held;     /* the reader is slow, and the code waits for it */
    size_t missed; /* events that were left out, as the reader does not read */
    char session[ID_MAX];
};

static void let_go(void *arg)
{
    struct run *u = arg;

    if (--u->holders == 0)
        free(u);
}

static void on_request_over(void *arg)
{
    struct run *u = arg;

    u->r = NULL;
    let_go(u);
}

/* --- streams --- */

static void on_low(void *arg)
{
    struct run *u = arg;

    if (!u->held || !u->job)
        return;
    u->held = false;
    job_hold(u->job, false);
}

static void hold_back(struct run *u, size_t waits)
{
    if (waits <= WAITING_HIGH || u->held || !u->job)
        return;
    u->held = true;
    job_hold(u->job, true);
}

/* Takes v, an object with a "type", which is also the name of a server-sent event. */
static void put(struct run *u, json_t *v)
{
    AUTO_FREE char *line = json_line(v);
    struct buf out;
    struct err e;
    int put;

    buf_init(&out, 2 * GiB);
    if (u->shape == SHAPE_SSE)
        put = buf_printf(&out, &e, "event: %s\ndata: %s\n\n",
                         json_string_value(json_object_get(v, "type")), line);
    else
        put = buf_printf(&out, &e, "%s\n", line);
    if (put == 0)
        hold_back(u, answer_stream_put(u->r, buf_str(&out)));
    buf_done(&out);
    json_decref(v);
}

static void open_stream(struct run *u, const struct exec_info *info)
{
    static const struct {
        const char *mime;
        struct str ping;
    } shapes[] = {
        [SHAPE_SSE] = {"text/event-stream",    STR(": keep-alive\n\n")     },
        [SHAPE_NDJSON] = {"application/x-ndjson", STR("{\"type\":\"ping\"}\n")},
    };
    json_t *v = render_exec(info);

    u->streaming = true;
    answer_header(u->r, "cache-control", "no-store");
    answer_stream(u->r, 200, shapes[u->shape].mime, shapes[u->shape].ping);
    answer_stream_on_low(u->r, WAITING_LOW, on_low, u);
    json_object_set_new(v, "type", json_string("execution"));
    put(u, v);
}

static void tell_missed(struct run *u)
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

static void end_stream(struct run *u, const struct exec_info *info, const struct err *failed)
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
    struct run *u = arg;

    snprintf(u->session, sizeof(u->session), "%s", info->row->session ? info->row->session : "");
    if (!u->r)
        return;
    if (u->shape != SHAPE_JSON) {
        open_stream(u, info);
    } else if (u->background) {
        struct request *r = take_ptr(&u->r);
        answer_exec(r, 202, info);
    }
}

static void on_event(void *arg, const struct event *ev)
{
    struct run *u = arg;

    if (!u->r || !u->streaming)
        return;
    if (answer_stream_put(u->r, STR("")) > WAITING_MAX) {
        u->missed++;
        return;
    }
    tell_missed(u);
    put(u, render_event(ev, u->session));
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct run *u = arg;

    u->job = NULL;
    if (u->r && u->streaming)
        end_stream(u, info, failed);
    else if (u->r && failed)
        answer_error(u->r, failed, NULL);
    else if (u->r)
        answer_exec(u->r, 200, info);
    u->r = NULL;
    let_go(u);
}

static void on_gone(void *arg)
{
    struct run *u = arg;
    struct request *r = take_ptr(&u->r);

    if (!r) /* all has been said; it only did not arrive */
        return;
    job_leave(take_ptr(&u->job));
    let_go(u);
    request_drop(r);
}

/* --- who must agree --- */

/* A person, before it can be started. */
static void say_required(struct run *u, const struct approval_info *info)
{
    struct request *r = take_ptr(&u->r);
    const struct approval_row *row = info->row;
    char reason[NAME_SHOWN];

    if (!row)
        answer_fail(r, 403, "approval_required", NULL,
                    "in this pool a person must agree before code runs, and no approver may be "
                    "asked for it: approval-by = client");
    else if (info->verdict == APPROVAL_NO)
        answer_fail(r, 403, "approval_declined", NULL, "%s is declined%s%s", row->id,
                    row->reason ? ": " : "",
                    row->reason ? name_show(reason, str_of(row->reason)) : "");
    else
        answer_fail(r, 403, "approval_required", NULL,
                    "%s is pending: when an approver has decided it with POST /v1/approvals/%s, "
                    "send the same request again",
                    row->id, row->id);
}

static void start_given(struct run *u);

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct run *u = arg;

    if (u->gone) {
        request_drop(take_ptr(&u->r));
    } else if (failed) {
        answer_error(take_ptr(&u->r), failed, NULL);
    } else if (info->verdict != APPROVAL_CLEAR) {
        say_required(u, info);
    } else {
        u->clearance = info->clearance;
        start_given(u);
    }
    let_go(u);
}

static void on_gone_early(void *arg)
{
    struct run *u = arg;

    u->gone = true;
}

/* The same names as those of MCP's tools, so that one rule is about both. */
static void ask(struct run *u)
{
    json_t *body = request_json(u->r);
    struct str language = json_view(json_object_get(body, "language"));
    bool shell = str_is(language, "shell");
    const struct approval_spec spec = {
        .tool = shell ? STR("run_shell") : STR("run_code"),
        .language = shell ? STR("shell") : STR("python"),
        .code = json_view(json_object_get(body, "code")),
        .args = body,
        .session = request_path(u->r, "session"),
        .pool = json_view(json_object_get(body, "pool")),
    };

    u->holders++;
    request_on_gone(u->r, on_gone_early, u);
    service_approval_request(request_service(u->r), request_caller(u->r), &spec, on_verdict, u);
}

/* --- the request --- */

static int take_shape(const json_t *stream, enum shape *ret, struct err *e)
{
    struct str name = json_view(stream);

    *ret = SHAPE_JSON;
    if (json_is_true(stream) || str_is(name, "sse"))
        *ret = SHAPE_SSE;
    else if (str_is(name, "ndjson"))
        *ret = SHAPE_NDJSON;
    else if (stream && !json_is_false(stream))
        return err_set(e, ERR_CALLER, "stream is true, false, \"sse\" or \"ndjson\"");
    return 0;
}

static int take_options(struct run *u, const json_t *body, struct given *g,
                        char ret_param[PARAM_MAX], struct err *e)
{
    snprintf(ret_param, PARAM_MAX, "stream");
    if (take_shape(json_object_get(body, "stream"), &u->shape, e) < 0)
        return -1;
    u->background = json_is_true(json_object_get(body, "background"));
    if (u->background && u->shape != SHAPE_JSON)
        return err_set(e, ERR_CALLER,
                       "a background execution is not streamed: GET /v1/executions/{execution} has "
                       "what it says");
    if (given_env(g, json_object_get(body, "env"), ret_param, e) < 0)
        return -1;
    return given_files(g, json_object_get(body, "files"), ret_param, e);
}

/* The service copies what it is given. */
static void start(struct run *u, const json_t *body, const struct given *g)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    bool shell = str_is(json_view(json_object_get(body, "language")), "shell");
    const struct exec_spec spec = {
        .session = request_path(u->r, "session"),
        .pool = json_view(json_object_get(body, "pool")),
        .kind = shell ? EXEC_COMMAND : EXEC_CELL,
        .code = json_view(json_object_get(body, "code")),
        .wall_ms = json_ms(json_object_get(body, "timeout")),
        .env = g->env,
        .env_count = g->env_count,
        .files = g->file,
        .file_count = g->file_count,
        .background = u->background,
        .clearance = &u->clearance,
    };

    request_on_gone(u->r, on_gone, u);
    u->holders++;
    u->job = service_execute(request_service(u->r), request_caller(u->r), &spec, &watcher, u);
}

/* What is wrong with a request is told before anybody is asked about it. */
static void start_given(struct run *u)
{
    AUTO(given_done) struct given g = {0};
    char param[PARAM_MAX];
    struct err e;

    if (take_options(u, request_json(u->r), &g, param, &e) < 0)
        answer_error(u->r, &e, param);
    else if (service_asks(request_service(u->r)) && !*u->clearance.pool)
        ask(u);
    else
        start(u, request_json(u->r), &g);
}

void handle_execute(struct request *r)
{
    struct run *u = mem_zalloc(sizeof(*u));

    *u = (struct run){.r = r, .holders = 1};
    request_keep(r, on_request_over, u);
    start_given(u);
}
