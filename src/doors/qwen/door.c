/*
 * POST /qwen/code_interpreter and /qwen/python_executor: the body is a model's text, in any form.
 * Options stand beside "code" in JSON, or in the query; a header can name the instance, too.
 */
#include "doors/qwen/qwen_int.h"
#include "lenient/lenient.h"

#include <stdio.h>
#include <stdlib.h>

struct tool_request {
    struct request *r;             /* borrowed: outlives us */
    struct interpreter_call *call; /* borrowed; NULL before it begins and once it is over */
    const char *tool;              /* static */
    bool stateless;
    bool gone;                 /* while its body was read */
    json_t *options;           /* owned */
    struct parsed_code parsed; /* what the body says */
};

static void tool_request_free(void *arg)
{
    struct tool_request *v = arg;

    json_decref(v->options);
    parsed_code_done(&v->parsed);
    free(v);
}

static void on_gone(void *arg)
{
    struct tool_request *v = arg;

    v->gone = true;
    if (!v->call)
        return;
    interpreter_call_leave(take_ptr(&v->call));
    request_drop(v->r);
}

/* Only what a header can carry. */
static void header(struct request *r, const char *name, const char *value)
{
    for (const char *p = value; *p; p++)
        if (*p < ' ' || *p == 0x7f)
            return;
    if (*value)
        answer_header(r, name, value);
}

/* For programs: the text, and what they need to fetch the files that the code has made. */
static json_t *reply_object(const struct interpreter_call *c)
{
    json_t *v = json_pack("{s:o, s:b, s:s, s:s}", "text", record_text(c->reply), "is_error",
                          c->is_error, "session", c->session, "execution", c->execution);
    json_t *files = json_array();
    const json_t *ev;
    size_t i;

    json_array_foreach(c->events, i, ev) {
        if (event_is(ev, "file") && json_object_get(ev, "path"))
            json_array_append_new(files,
                                  json_pack("{s:O, s:O}", "path", json_object_get(ev, "path"),
                                            "change", json_object_get(ev, "change")));
    }
    json_object_set_new(v, "files", files);
    return v;
}

static void on_reply(void *arg, const struct interpreter_call *c)
{
    struct tool_request *v = arg;
    bool is_pair = v->stateless && !c->is_error && c->reply.n;

    v->call = NULL;
    header(v->r, "x-qwen-session", c->session);
    header(v->r, "x-qwen-execution", c->execution);
    header(v->r, "x-qwen-uploaded", c->uploaded);
    if (!v->stateless && str_is(str_trim(request_header(v->r, "accept")), "application/json")) {
        answer_json(v->r, c->status, reply_object(c));
        return;
    }
    answer_text(v->r, c->status, is_pair ? "application/json" : "text/markdown; charset=utf-8",
                c->reply);
}

/* --- call parameters --- */

/* A list in a query is JSON; what is none is one file. */
static json_t *query_value(const char *name, struct str text)
{
    json_t *v = strcmp(name, "files") == 0 && text.n && *text.p == '[' ? json5_read(text) : NULL;

    return v ? v : record_text(text);
}

static json_t *query_options(struct request *r)
{
    static const char *const names[] = {
        "instance",  "timeout",           "files",           "work_dir",
        "traceback", "get_answer_symbol", "get_answer_expr", "get_answer_from_stdout"};
    json_t *options = json_object();
    struct str instance = request_header(r, "x-qwen-instance");

    if (instance.n)
        json_object_set_new(options, "instance", record_text(instance));
    for (size_t i = 0; i < COUNT(names); i++) {
        struct str v = request_query(r, names[i]);
        if (v.p)
            json_object_set_new(options, names[i], query_value(names[i], v));
    }
    return options;
}

static int take_params(struct tool_request *v, struct call_params *p, struct err *e)
{
    call_params_init(p, request_ctx(v->r));
    json_object_update(v->options, v->parsed.more);
    call_params_set_code(p, &v->parsed);
    if (call_params_take(p, request_ctx(v->r), v->options, e) < 0)
        return -1;
    if (!*p->instance)
        snprintf(p->instance, sizeof(p->instance), INSTANCE_DEFAULT);
    return 0;
}

static void read_body(void *arg)
{
    struct tool_request *v = arg;

    parse_code(request_body(v->r), &v->parsed);
}

static void on_read(void *arg)
{
    struct tool_request *v = arg;
    struct request *r = v->r;
    struct qwen *q = request_ctx(r);
    const struct interpreter_call_spec spec = {.qwen = q,
                                               .service = request_service(r),
                                               .caller = request_caller(r),
                                               .tool = v->tool,
                                               .base = request_base_url(r),
                                               .stateless = v->stateless};
    struct call_params p;
    struct err e;

    if (v->gone) {
        request_drop(r);
    } else if (take_params(v, &p, &e) < 0) {
        call_params_done(&p);
        answer_error(r, &e, NULL);
    } else {
        v->call = interpreter_call_start(&spec, &p, on_reply, v);
    }
}

static void handle(struct request *r, const char *tool, bool stateless)
{
    struct tool_request *v = mem_zalloc(sizeof(*v));

    *v = (struct tool_request){.r = r, .tool = tool, .stateless = stateless};
    v->options = query_options(r);
    request_keep(r, tool_request_free, v);
    request_on_gone(r, on_gone, v);
    if (request_body(r).n > LARGE_BODY) {
        service_work(request_service(r), read_body, on_read, v);
        return;
    }
    read_body(v);
    on_read(v);
}

static void handle_interpreter(struct request *r)
{
    handle(r, "code_interpreter", false);
}

static void handle_executor(struct request *r)
{
    handle(r, "python_executor", true);
}

/* --- the table --- */

// clang-format off
static const struct field call_query[] = {
    {"instance",  FIELD_TEXT, OPTIONAL, 1, INSTANCE_MAX, NULL,
     "Whose variables and files: each name has its own. Also the header X-Qwen-Instance.", "\"chat-17\""},
    {"timeout",   FIELD_TEXT, OPTIONAL, 0, 0, NULL, "Seconds.", "\"60\""},
    {"files",     FIELD_TEXT, OPTIONAL, 0, 0, NULL,
     "A URL or a path of the server, or a JSON list of them.", NULL},
    {"work_dir",  FIELD_TEXT, OPTIONAL, 0, 0, NULL, "A folder below the operator's work dir.", NULL},
    {"traceback", FIELD_TEXT, OPTIONAL, 0, 0, NULL, "full: errors come with their frames.", NULL},
    {"get_answer_symbol", FIELD_TEXT, OPTIONAL, 0, 0, NULL, "python_executor: this variable is the answer.", NULL},
    {"get_answer_expr",   FIELD_TEXT, OPTIONAL, 0, 0, NULL, "python_executor: this expression is the answer.", NULL},
    {"get_answer_from_stdout", FIELD_TEXT, OPTIONAL, 0, 0, NULL,
     "python_executor: false: the value of the last line is the answer.", NULL},
    {0},
};

static const struct field files_query[] = {
    {"instance",  FIELD_TEXT, OPTIONAL, 1, INSTANCE_MAX, NULL,
     "Whose files. Also the header X-Qwen-Instance.", "\"chat-17\""},
    {0},
};

static const struct field batch_body[] = {
    {"code", FIELD_LIST, REQUIRED, 0, SNIPPETS_MAX, "string", "Snippets, each by itself.",
     "[\"print(1)\", \"1/0\"]"},
    {"timeout", FIELD_ANY, OPTIONAL, 0, 0, NULL, "Seconds for each.", NULL},
    {"timeout_length", FIELD_ANY, OPTIONAL, 0, 0, NULL, "The same.", NULL},
    {"files", FIELD_ANY, OPTIONAL, 0, 0, NULL, "As of one call; each snippet has its own.", NULL},
    {"get_answer_symbol", FIELD_ANY, OPTIONAL, 0, 0, NULL, "This variable is the answer.", NULL},
    {"get_answer_expr", FIELD_ANY, OPTIONAL, 0, 0, NULL, "This expression is the answer.", NULL},
    {"get_answer_from_stdout", FIELD_ANY, OPTIONAL, 0, 0, NULL,
     "false: the value of the last line is the answer.", NULL},
    {0},
};

static const struct route routes[] = {
    {.method = HTTP_POST, .path = "/qwen/code_interpreter", .id = "qwen_code_interpreter",
     .flags = ROUTE_HIDDEN, .body_kind = BODY_TEXT, .body_max = BODY_QWEN_MAX, .query = call_query,
     .status = 200, .handle = handle_interpreter},
    {.method = HTTP_POST, .path = "/qwen/python_executor", .id = "qwen_python_executor",
     .flags = ROUTE_HIDDEN, .body_kind = BODY_TEXT, .body_max = BODY_QWEN_MAX, .query = call_query,
     .status = 200, .handle = handle_executor},
    {.method = HTTP_POST, .path = "/qwen/python_executor/batch", .id = "qwen_python_executor_batch",
     .flags = ROUTE_HIDDEN, .body_kind = BODY_JSON, .body = batch_body, .body_max = BODY_QWEN_MAX,
     .status = 200, .handle = handle_batch},
    {.method = HTTP_POST, .path = "/qwen/files", .id = "qwen_files_post", .flags = ROUTE_HIDDEN,
     .body_kind = BODY_FORM, .query = files_query, .status = 200, .handle = handle_files_post},
    {.method = HTTP_GET, .path = "/qwen/files/{path...}", .id = "qwen_files_get",
     .flags = ROUTE_HIDDEN, .query = files_query, .status = 200, .handle = handle_files_get},
    {.method = HTTP_GET, .path = "/qwen/static/{name}", .id = "qwen_static",
     .flags = ROUTE_HIDDEN | ROUTE_OPEN, .status = 200, .handle = handle_static},
};
// clang-format on

const struct door qwen_door = {.name = "qwen", .routes = routes, .route_count = COUNT(routes)};
