/* Who holds what for how long: requests, jobs and streams that end in any order. */
#include "doors/rest/rest_int.h"
#include "scratch.h"

/* --- a request without a client --- */

struct request {
    json_t *json;
    const char *session, *query_name, *query;
    const char *range;
    void (*keep_fn)(void *), (*keep_fn_too)(void *);
    void *keep, *keep_too;
    loop_fn *on_gone;
    hold_fn *on_hold;
    void *gone_arg, *hold_arg;
    bool over; /* answered to the end, or dropped */
    bool dropped;
    int status;
    const char *type; /* of an error */
    char param[64], range_answer[64];
    json_t *answer;
    struct buf stream;
    size_t waits; /* what answer_stream_waits() says */
    bool streaming, held, lines;
};

static const struct caller caller = {.tenant = "acme", .request = "req_1", .door = "rest"};

static void end(struct request *r)
{
    assert_false(r->over);
    r->over = true;
    if (r->keep_fn)
        r->keep_fn(r->keep);
    if (r->keep_fn_too)
        r->keep_fn_too(r->keep_too);
}

void *request_ctx(struct request *r)
{
    return r;
}
struct service *request_service(struct request *r)
{
    return (struct service *)r;
}
json_t *request_json(struct request *r)
{
    return r->json;
}

const struct caller *request_caller(struct request *r)
{
    assert_false(r->over);
    return &caller;
}

struct str request_path(struct request *r, const char *name)
{
    return str_of(strcmp(name, "session") == 0 ? r->session : NULL);
}

struct str request_query(struct request *r, const char *name)
{
    return str_of(r->query_name && strcmp(name, r->query_name) == 0 ? r->query : NULL);
}

struct str request_header(struct request *r, const char *name)
{
    return str_of(strcmp(name, "range") == 0 ? r->range : NULL);
}

struct page request_page(struct request *r)
{
    (void)r;
    return (struct page){.limit = 100};
}

struct upload *request_uploads(struct request *r, size_t *ret_count)
{
    (void)r;
    *ret_count = 0;
    return NULL;
}

void request_keep(struct request *r, void (*fn)(void *), void *p)
{
    assert_null(r->keep_fn_too);
    if (r->keep_fn) {
        r->keep_fn_too = fn;
        r->keep_too = p;
        return;
    }
    r->keep_fn = fn;
    r->keep = p;
}

void request_on_gone(struct request *r, loop_fn *fn, void *arg)
{
    r->on_gone = fn;
    r->gone_arg = arg;
}

void request_drop(struct request *r)
{
    r->dropped = true;
    end(r);
}

void answer_header(struct request *r, const char *name, const char *value)
{
    if (strcmp(name, "content-range") == 0)
        snprintf(r->range_answer, sizeof(r->range_answer), "%s", value);
}

void answer_json(struct request *r, int status, json_t *value)
{
    r->status = status;
    r->answer = value;
    end(r);
}

void answer_text(struct request *r, int status, const char *mime, struct str text)
{
    (void)mime;
    answer_json(r, status, json_stringn(text.p, text.n));
}

void answer_empty(struct request *r, int status)
{
    answer_json(r, status, NULL);
}

void answer_fail(struct request *r, int status, const char *type, const char *param,
                 const char *fmt, ...)
{
    (void)fmt;
    snprintf(r->param, sizeof(r->param), "%s", param ? param : "");
    r->type = type;
    answer_json(r, status, NULL);
}

int http_status_of(const struct err *e)
{
    return e->kind == ERR_BUSY ? 429 : 400;
}
const char *http_type_of(const struct err *e)
{
    return e->kind == ERR_BUSY ? "busy" : "invalid_request";
}
json_t *http_openapi(struct http *h)
{
    return h ? json_object() : NULL;
}

void answer_error(struct request *r, const struct err *e, const char *param)
{
    answer_fail(r, http_status_of(e), "error", param, "%s", e->text);
}

void answer_file(struct request *r, int fd, uint64_t size, const char *mime, struct str name,
                 const char *hash)
{
    (void)size;
    (void)mime;
    (void)name;
    (void)hash;
    fd_closep(&fd);
    answer_json(r, 200, NULL);
}

void answer_stream(struct request *r, int status, const char *mime, struct str ping)
{
    (void)mime;
    (void)ping;
    buf_init(&r->stream, 64 * MiB);
    r->status = status;
    r->streaming = true;
}

void answer_stream_put(struct request *r, struct str bytes)
{
    assert_true(r->streaming && !r->over);
    assert_int_equal(buf_put(&r->stream, bytes), 0);
    if (r->held || r->waits <= STREAM_HIGH)
        return;
    r->held = true;
    r->on_hold(r->hold_arg, true);
}

bool answer_stream_put_some(struct request *r, struct str all, size_t *at)
{
    while (*at < all.n && !r->held) {
        size_t n = all.n - *at < STREAM_HIGH ? all.n - *at : STREAM_HIGH;
        answer_stream_put(r, (struct str){all.p + *at, n});
        *at += n;
    }
    return *at == all.n;
}

void answer_stream_on_hold(struct request *r, hold_fn *fn, void *arg)
{
    r->on_hold = fn;
    r->hold_arg = arg;
}

bool answer_stream_is_held(const struct request *r)
{
    return r->held;
}

size_t answer_stream_waits(const struct request *r)
{
    return r->waits;
}

void answer_events(struct request *r, enum event_format format)
{
    answer_stream(r, 200, "", STR(""));
    r->lines = format == EVENTS_NDJSON;
}

void answer_event(struct request *r, const char *id, const char *name, struct str data)
{
    assert_null(id);
    if (!r->lines)
        assert_int_equal(buf_printf(&r->stream, "event: %s\ndata: ", name), 0);
    assert_int_equal(buf_put(&r->stream, data), 0);
    answer_stream_put(r, r->lines ? STR("\n") : STR("\n\n"));
}

/* The client has taken what waited. */
static void drain(struct request *r)
{
    if (!r->held)
        return;
    r->held = false;
    r->on_hold(r->hold_arg, false);
}

void answer_stream_end(struct request *r)
{
    assert_true(r->streaming);
    end(r);
}

static void forget(struct request *r)
{
    assert_true(r->over);
    if (r->streaming) {
        assert_int_equal(buf_put(&r->stream, (struct str){"", 1}), 0);
        buf_done(&r->stream);
    }
    json_decref(r->answer);
    json_decref(r->json);
}

/* --- a service without sessions --- */

struct execution {
    struct exec_watcher w;
    void *arg;
    struct exec_spec spec;
    const struct approval_info *approval;
    bool left, held;
    unsigned holds;
} job;

struct execution *service_execute(struct service *sv, const struct caller *c,
                                  const struct exec_spec *spec, const struct exec_watcher *w,
                                  void *arg)
{
    (void)sv;
    (void)c;
    job = (struct execution){.w = *w, .arg = arg, .spec = *spec};
    return &job;
}

const char *approval_state_name(int s)
{
    return s == APPROVAL_PENDING ? "pending" : "used";
}

const struct approval_info *execution_approval(const struct execution *j)
{
    return j->approval;
}

void execution_leave(struct execution *j)
{
    j->left = true;
}

void service_hold(struct service *sv, uint64_t before, uint64_t now)
{
    (void)sv;
    (void)before;
    (void)now;
}

void execution_hold(struct execution *j, bool hold)
{
    assert_true(j->held != hold);
    j->held = hold;
    j->holds += hold;
}

static struct {
    execs_fn *fn;
    void *arg;
    struct exec_filter filter;
    struct page page;
    char after[ID_MAX];
    bool whole;
    unsigned calls;
} listed;

void service_exec_list(struct service *sv, const struct caller *c, const struct exec_filter *f,
                       struct page page, bool whole, execs_fn *fn, void *arg)
{
    (void)sv;
    (void)c;
    listed.fn = fn;
    listed.arg = arg;
    listed.filter = *f;
    listed.page = page;
    snprintf(listed.after, sizeof(listed.after), "%s", page.after ? page.after : "");
    listed.whole = whole;
    listed.calls++;
}

static struct {
    exec_fn *fn;
    void *arg;
} got;

void service_exec_get(struct service *sv, const struct caller *c, struct str id, exec_fn *fn,
                      void *arg)
{
    (void)sv;
    (void)c;
    (void)id;
    got.fn = fn;
    got.arg = arg;
}

void service_exec_interrupt(struct service *sv, const struct caller *c, struct str id, exec_fn *fn,
                            void *arg)
{
    service_exec_get(sv, c, id, fn, arg);
}

int space_path_clean(struct str path, char ret[SPACE_PATH_MAX], struct err *e)
{
    return str_to_cstr(path, ret, SPACE_PATH_MAX) ? 0 : err_set(e, ERR_CALLER, "no path");
}

const char *session_state_name(enum session_state s)
{
    (void)s;
    return "idle";
}

/* --- a workspace, and a worker that works when told --- */

static struct {
    space_fn *on_list;
    open_fn *on_open;
    void *arg;
    char path[64];
    loop_fn *work, *done;
} space;

void service_space_list(struct service *sv, const struct caller *c, struct str session,
                        space_fn *fn, void *arg)
{
    (void)sv;
    (void)c;
    (void)session;
    space.on_list = fn;
    space.arg = arg;
}

void service_space_open(struct service *sv, const struct caller *c, struct str session,
                        struct str path, open_fn *fn, void *arg)
{
    (void)sv;
    (void)c;
    (void)session;
    assert_true(str_to_cstr(path, space.path, sizeof(space.path)));
    space.on_open = fn;
    space.arg = arg;
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
    (void)l;
    space.work = work;
    space.done = done;
    space.arg = arg;
}

void service_work(struct service *sv, loop_fn *work, loop_fn *done, void *arg)
{
    (void)sv;
    loop_work(NULL, work, done, arg);
}

static void work(void)
{
    space.work(space.arg);
    space.done(space.arg);
}

/* --- one execution --- */

static char text_session[] = "sess_1", text_status[] = "ok", text_code[] = "1";
static struct exec_row row = {
    .id = "exec_1", .session = text_session, .status = text_status, .code = text_code};
static const struct exec_info info = {.row = &row};

static void ask(struct request *r, const char *json)
{
    *r = (struct request){.session = "sess_1", .json = json_loads(json, 0, NULL)};
    assert_non_null(r->json);
    handle_execute(r);
}

/* --- who must agree --- */

static void test_what_is_asked_about(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"language\": \"shell\"}");
    assert_str(job.spec.ask.tool, "run_shell");
    assert_str(job.spec.session, "sess_1");
    assert_ptr_equal(job.spec.ask.args, r.json);
    job.w.on_end(job.arg, &info, NULL);
    assert_int_equal(r.status, 200);
    forget(&r);
}

static void test_what_is_not_clear_is_refused(void **state)
{
    struct approval_row asked = {.id = "apr_1"};
    const struct approval_info infos[] = {
        {.verdict = APPROVAL_WAIT, .row = &asked},
        {.verdict = APPROVAL_NO,                        .row = &asked},
        {.verdict = APPROVAL_NO},
    };
    const struct err denied = {.kind = ERR_DENIED, .text = "a person must agree"};

    (void)state;
    for (size_t i = 0; i < COUNT(infos); i++) {
        struct request r;
        ask(&r, "{\"code\": \"1\"}");
        job.approval = &infos[i];
        job.w.on_end(job.arg, NULL, &denied);
        assert_int_equal(r.status, 403);
        forget(&r);
    }
}

static void test_gone_while_it_is_asked_about(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\"}");
    assert_false(r.over);
    r.on_gone(r.gone_arg);
    assert_true(job.left);
    assert_true(r.dropped);
    forget(&r);
}

static void say(struct str text)
{
    const struct event ev = {.kind = EVENT_STDOUT, .text = text};

    job.w.on_event(job.arg, &ev);
}

static const char *streamed(struct request *r)
{
    assert_int_equal(buf_put(&r->stream, (struct str){"", 1}), 0);
    r->stream.n--;
    return r->stream.p;
}

static void test_one_answer(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"timeout\": 1.5, \"language\": \"shell\"}");
    assert_str(job.spec.session, "sess_1");
    assert_int_equal(job.spec.wall_ms, 1500);
    assert_int_equal(job.spec.kind, EXEC_COMMAND);
    job.w.on_queued(job.arg, &info);
    say(STR("x"));
    assert_false(r.over);
    job.w.on_end(job.arg, &info, NULL);
    assert_int_equal(r.status, 200);
    assert_string_equal(json_string_value(json_object_get(r.answer, "id")), "exec_1");
    forget(&r);
}

static void test_refused(void **state)
{
    struct err busy;
    struct request r;

    (void)state;
    err_set(&busy, ERR_BUSY, "full");
    ask(&r, "{\"code\": \"1\"}");
    job.w.on_end(job.arg, NULL, &busy);
    assert_int_equal(r.status, 429);
    forget(&r);
    ask(&r, "{\"code\": \"1\", \"stream\": true}");
    job.w.on_end(job.arg, NULL, &busy); /* before anything was sent: a plain answer */
    assert_int_equal(r.status, 429);
    assert_false(r.streaming);
    forget(&r);
}

static void test_wrong_options(void **state)
{
    static const struct {
        const char *json, *param;
    } rows[] = {
        {"{\"stream\": 1}",            "stream"  },
        {"{\"stream\": \"xml\"}",      "stream"  },
        {"{\"env\": {\"a b\": \"\"}}", "env.a b" },
        {"{\"files\": [{}]}",          "files[0]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct request r;
        job = (struct execution){0};
        ask(&r, rows[i].json);
        assert_int_equal(r.status, 400);
        assert_string_equal(r.param, rows[i].param);
        assert_null(job.arg);
        forget(&r);
    }
}

static void test_server_sent_events(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"stream\": \"sse\"}");
    assert_false(r.streaming);
    job.w.on_queued(job.arg, &info);
    assert_true(r.streaming);
    say(STR("\u00e9\n"));
    job.w.on_end(job.arg, &info, NULL);
    assert_ptr_equal(strstr(streamed(&r), "event: execution\ndata: {\"id\":\"exec_1\","),
                     r.stream.p);
    assert_has(streamed(&r), "\n\nevent: stdout\n"
                             "data: {\"type\":\"stdout\",\"text\":\"\\u00E9\\n\"}\n\n");
    assert_has(streamed(&r), "event: done\ndata: {\"type\":\"done\",\"id\":\"exec_1\","
                             "\"session\":\"sess_1\",\"status\":\"ok\",");
    forget(&r);
}

static void test_lines_and_a_late_failure(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    err_set(&e, ERR_BUSY, "the pool is full");
    ask(&r, "{\"code\": \"1\", \"stream\": \"ndjson\"}");
    job.w.on_queued(job.arg, &info);
    job.w.on_end(job.arg, NULL, &e);
    assert_has(streamed(&r), "\"type\":\"execution\"}\n");
    assert_has(streamed(&r), "\n{\"type\":\"error\",\"error\":{\"type\":\"busy\",\"message\":"
                             "\"the pool is full\",\"param\":null,\"request_id\":\"req_1\"}}\n");
    assert_null(strstr(streamed(&r), "done"));
    forget(&r);
}

static void test_a_slow_reader_holds_the_code(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"stream\": true}");
    job.w.on_queued(job.arg, &info);
    r.waits = STREAM_HIGH;
    say(STR("x"));
    assert_false(job.held);
    r.waits = STREAM_HIGH + 1;
    say(STR("x"));
    assert_true(job.held);
    say(STR("x")); /* what was under way: still once */
    assert_int_equal(job.holds, 1);
    drain(&r);
    assert_false(job.held);
    drain(&r);
    say(STR("x"));
    assert_int_equal(job.holds, 2);
    job.w.on_end(job.arg, &info, NULL);
    forget(&r);
}

/* Code that is being ended is not held, and may say what it likes. */
static void test_a_reader_that_does_not_read_misses_events(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"stream\": \"ndjson\"}");
    job.w.on_queued(job.arg, &info);
    r.waits = WAITING_MAX + 1;
    say(STR("lost one"));
    say(STR("lost two"));
    r.waits = 0;
    say(STR("seen"));
    r.waits = WAITING_MAX + 1;
    say(STR("lost three"));
    job.w.on_end(job.arg, &info, NULL);
    assert_null(strstr(streamed(&r), "lost"));
    assert_has(streamed(&r), "2 events left out here");
    assert_true(strstr(streamed(&r), "2 events left") < strstr(streamed(&r), "seen"));
    assert_has(streamed(&r), "1 events left out here");
    forget(&r);
}

/* --- long answers --- */

/* An execution that has printed this many bytes; its events are the caller's to drop. */
static struct exec_info printed_much(size_t n)
{
    AUTO_FREE char *text = mem_zalloc(n + 1);
    struct exec_info much = info;

    memset(text, 'x', n);
    much.events = json_pack("[{s:s, s:s}]", "type", "stdout", "text", text);
    much.bytes = n;
    return much;
}

static void test_a_long_answer_is_made_by_a_worker(void **state)
{
    struct exec_info much = printed_much(3 * MiB);
    struct request r;
    json_t *v;

    (void)state;
    ask(&r, "{\"code\": \"1\"}");
    job.w.on_queued(job.arg, &info);
    job.w.on_end(job.arg, &much, NULL);
    json_decref(much.events); /* the job is gone */
    assert_false(r.over);
    r.waits = STREAM_HIGH + 1;
    work();
    assert_int_equal(r.status, 200);
    for (int i = 0; !r.over && i < 9; i++) {
        assert_true(r.stream.n <= (size_t)(i + 1) * STREAM_HIGH);
        drain(&r);
    }
    assert_true(r.over);
    v = json_loadb(r.stream.p, r.stream.n, 0, NULL);
    assert_int_equal(json_string_length(json_object_get(v, "stdout")), 3 * MiB);
    assert_string_equal(json_string_value(json_object_get(v, "id")), "exec_1");
    json_decref(v);
    forget(&r);
}

static void test_the_client_goes_while_a_long_answer_is_made(void **state)
{
    struct exec_info much = printed_much(3 * MiB);
    struct request r = {0};

    (void)state;
    handle_get_execution(&r);
    got.fn(got.arg, &much, NULL);
    json_decref(much.events);
    r.on_gone(r.gone_arg);
    assert_false(r.over); /* the worker has it */
    work();
    assert_true(r.dropped);
    forget(&r);
}

/* What all of them may take together. */
static void test_too_many_long_answers(void **state)
{
    struct exec_info much = printed_much(1 * MiB);
    struct request first = {0}, second = {0};
    loop_fn *work_first, *done_first;
    void *arg_first;

    (void)state;
    much.bytes = 600 * MiB;
    handle_get_execution(&first);
    got.fn(got.arg, &much, NULL);
    work_first = space.work, done_first = space.done, arg_first = space.arg;
    handle_get_execution(&second);
    got.fn(got.arg, &much, NULL);
    assert_int_equal(second.status, 429);
    forget(&second);
    work_first(arg_first);
    done_first(arg_first);
    assert_int_equal(first.status, 200);
    forget(&first);
    second = (struct request){0};
    handle_get_execution(&second);
    got.fn(got.arg, &much, NULL);
    work();
    assert_int_equal(second.status, 200);
    forget(&second);
    json_decref(much.events);
}

static void test_long_output(void **state)
{
    struct exec_info much = printed_much(1 * MiB);
    struct request r = {.range = "bytes=-3"};

    (void)state;
    handle_get_output(&r);
    got.fn(got.arg, &much, NULL);
    json_decref(much.events);
    work();
    assert_int_equal(r.status, 206);
    assert_string_equal(json_string_value(r.answer), "xxx");
    forget(&r);
}

static void test_the_client_goes(void **state)
{
    static const char *const bodies[] = {"{\"code\": \"1\"}",
                                         "{\"code\": \"1\", \"stream\": true}"};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(bodies); i++) {
        struct request r;
        ask(&r, bodies[i / 2]);
        if (i % 2)
            job.w.on_queued(job.arg, &info);
        r.on_gone(r.gone_arg);
        assert_true(job.left && r.dropped);
        forget(&r);
    }
}

/* The last bytes of a stream are on their way while the job is gone already. */
static void test_the_client_goes_after_the_end(void **state)
{
    struct request r;
    void (*keep_fn)(void *);

    (void)state;
    ask(&r, "{\"code\": \"1\", \"stream\": true}");
    job.w.on_queued(job.arg, &info);
    keep_fn = take_ptr(&r.keep_fn); /* the request does not end with the answer */
    job.w.on_end(job.arg, &info, NULL);
    drain(&r);
    r.on_gone(r.gone_arg);
    assert_false(job.left || r.dropped);
    keep_fn(r.keep);
    forget(&r);
}

static void test_background(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"background\": true}");
    assert_true(job.spec.background);
    job.w.on_queued(job.arg, &info);
    assert_int_equal(r.status, 202);
    assert_true(r.over);
    assert_true(job.left); /* it goes on by itself */
    forget(&r);
}

static void test_background_that_is_read(void **state)
{
    struct request r;

    (void)state;
    ask(&r, "{\"code\": \"1\", \"stream\": true, \"background\": true}");
    assert_true(job.spec.background);
    job.w.on_queued(job.arg, &info);
    assert_true(r.streaming && !job.left);
    r.on_gone(r.gone_arg);
    assert_true(job.left && r.dropped);
    forget(&r);
}

static void test_background_that_cannot_run(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    err_set(&e, ERR_BUSY, "full");
    ask(&r, "{\"code\": \"1\", \"background\": true}");
    job.w.on_end(job.arg, NULL, &e);
    assert_int_equal(r.status, 429);
    forget(&r);
}

/* --- output --- */

static void test_output_by_range(void **state)
{
    static const struct {
        const char *range;
        int status;
        const char *text, *answer;
    } rows[] = {
        {NULL,         200, "abc", ""           },
        {"bytes=1-",   206, "bc",  "bytes 1-2/3"},
        {"bytes=0-1",  206, "ab",  "bytes 0-1/3"},
        {"bytes=3-",   416, NULL,  "bytes */3"  },
        {"bytes=9-10", 416, NULL,  "bytes */3"  },
    };
    json_t *events = json_loads("[{\"type\":\"stdout\",\"text\":\"a\"},"
                                "{\"type\":\"stderr\",\"text\":\"bc\"}]",
                                0, NULL);
    const struct exec_info printed = {.row = &row, .events = events};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct request r = {.range = rows[i].range};
        handle_get_output(&r);
        got.fn(got.arg, &printed, NULL);
        assert_int_equal(r.status, rows[i].status);
        assert_string_equal(r.range_answer, rows[i].answer);
        if (rows[i].text)
            assert_string_equal(json_string_value(r.answer), rows[i].text);
        forget(&r);
    }
    json_decref(events);
}

static void test_output_of_nothing(void **state)
{
    struct request r = {.query_name = "stream", .query = "stderr"};

    (void)state;
    handle_get_output(&r);
    got.fn(got.arg, &info, NULL);
    assert_int_equal(r.status, 200);
    assert_string_equal(json_string_value(r.answer), "");
    forget(&r);
}

/* --- the export --- */

static void begin_export(struct request *r)
{
    *r = (struct request){.query_name = "format", .query = "jsonl"};
    listed.calls = 0;
    handle_list_executions(r);
    assert_int_equal(listed.calls, 1);
    assert_true(listed.whole && listed.filter.oldest_first);
    assert_string_equal(listed.filter.tenant, "acme");
}

static size_t lines(struct request *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->stream.n; i++)
        n += r->stream.p[i] == '\n';
    return n;
}

static void test_export_pages(void **state)
{
    const struct exec_info page[] = {info, info, info};
    struct request r;

    (void)state;
    begin_export(&r);
    assert_string_equal(listed.after, "");
    listed.fn(listed.arg, page, 3, true, NULL);
    assert_int_equal(listed.calls, 2);
    assert_string_equal(listed.after, "exec_1");
    listed.fn(listed.arg, page, 2, false, NULL);
    assert_true(r.over && !r.dropped);
    assert_int_equal(lines(&r), 5);
    forget(&r);
}

static void test_export_waits_for_its_reader(void **state)
{
    const struct exec_info page[] = {info, info, info};
    struct request r;

    (void)state;
    begin_export(&r);
    r.waits = STREAM_HIGH + 1;
    listed.fn(listed.arg, page, 3, false, NULL);
    assert_int_equal(lines(&r), 1);
    assert_int_equal(listed.calls, 1);
    drain(&r);
    assert_int_equal(listed.calls, 2); /* the two that did not fit */
    assert_int_equal(listed.page.limit, 1);
    r.waits = 0;
    listed.fn(listed.arg, page, 1, true, NULL);
    assert_int_equal(listed.page.limit, 2);
    listed.fn(listed.arg, page, 1, false, NULL);
    assert_true(r.over);
    assert_int_equal(lines(&r), 3);
    forget(&r);
}

static void test_a_long_record_goes_out_in_pieces(void **state)
{
    struct exec_row large = row;
    AUTO_FREE char *code = mem_zalloc(5 * MiB + 1);
    const struct exec_info page = {.row = &large};
    struct request r;
    unsigned pieces = 0;

    (void)state;
    memset(code, 'x', 5 * MiB);
    large.code = code;
    begin_export(&r);
    r.waits = STREAM_HIGH + 1;
    listed.fn(listed.arg, &page, 1, false, NULL);
    for (; !r.over && pieces < 9; pieces++) {
        assert_true(r.stream.n <= (pieces + 1) * STREAM_HIGH);
        drain(&r);
    }
    assert_true(r.over);
    assert_int_equal(lines(&r), 1);
    assert_true(r.stream.n > 5 * MiB);
    assert_int_equal(listed.calls, 1);
    forget(&r);
}

static void test_export_that_fails(void **state)
{
    const struct exec_info page[] = {info};
    struct request r;
    struct err e;

    (void)state;
    err_set(&e, ERR_HOST, "disk");
    begin_export(&r);
    listed.fn(listed.arg, NULL, 0, false, &e);
    assert_int_equal(r.status, 400); /* as our stub has it: an answer of its own */
    assert_false(r.streaming);
    forget(&r);
    begin_export(&r);
    listed.fn(listed.arg, page, 1, true, NULL);
    listed.fn(listed.arg, NULL, 0, false, &e);
    assert_true(r.dropped); /* not to be taken for whole */
    forget(&r);
}

static void test_the_reader_of_an_export_goes(void **state)
{
    const struct exec_info page[] = {info};
    struct request r;

    (void)state;
    begin_export(&r);
    r.on_gone(r.gone_arg); /* while the store is asked: its answer still comes */
    assert_false(r.over);
    listed.fn(listed.arg, page, 1, true, NULL);
    assert_true(r.dropped);
    forget(&r);
    begin_export(&r);
    r.waits = STREAM_HIGH + 1;
    listed.fn(listed.arg, page, 1, true, NULL);
    r.on_gone(r.gone_arg); /* while nothing is under way */
    assert_true(r.dropped);
    forget(&r);
}

static void test_wrong_filters(void **state)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"since",   "yesterday"                                          },
        {"until",   "2026-02-30T00:00:00Z"                               },
        {"session", "sess_0123456789012345678901234567890123456789012345"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct request r = {.query_name = rows[i].name, .query = rows[i].value};
        handle_list_executions(&r);
        assert_int_equal(r.status, 400);
        assert_string_equal(r.param, rows[i].name);
        forget(&r);
    }
}

/* --- archives --- */

static const struct space_file two_files[] = {
    {.path = STR("a"), .size = 3},
    {.path = STR("b"), .size = 0},
};

/* The list is there; the first file is asked for. */
static void begin_archive(struct request *r)
{
    *r = (struct request){.session = "sess_1"};
    handle_get_archive(r);
    space.on_list(space.arg, two_files, 2, NULL);
    assert_true(r->streaming);
    assert_string_equal(space.path, "a");
}

static void open_file(const struct space_file *f, struct str bytes)
{
    struct scratch d;
    int fd;

    assert_int_equal(scratch_open(&d), 0);
    fd = open(scratch_put(&d, "f", bytes), O_RDONLY | O_CLOEXEC);
    assert_int_equal(scratch_close(&d), 0);
    space.on_open(space.arg, &fd, f, NULL);
    fd_closep(&fd); /* as the service does with what was not taken */
}

static void test_an_archive_is_made_step_by_step(void **state)
{
    struct request r;

    (void)state;
    begin_archive(&r);
    open_file(&two_files[0], STR("xyz"));
    assert_int_equal(r.stream.n, 512);
    r.waits = STREAM_HIGH + 1;
    work();
    assert_int_equal(r.stream.n, 1024);
    assert_string_equal(space.path, "a"); /* the next waits for the reader */
    r.waits = 0;
    drain(&r);
    assert_string_equal(space.path, "b");
    open_file(&two_files[1], STR(""));
    assert_true(r.over && !r.dropped);
    assert_int_equal(r.stream.n, 1024 + 512 + 1024);
    forget(&r);
}

static void test_a_file_that_has_gone_is_left_out(void **state)
{
    struct request r;
    struct err e;
    int none = -1;

    (void)state;
    err_set(&e, ERR_MISSING, "gone");
    begin_archive(&r);
    space.on_open(space.arg, &none, NULL, &e);
    assert_string_equal(space.path, "b");
    space.on_open(space.arg, &none, NULL, &e);
    assert_true(r.over && !r.dropped);
    assert_int_equal(r.stream.n, 1024);
    forget(&r);
}

static void test_half_an_archive_is_not_taken_for_one(void **state)
{
    struct request r;
    struct err e;
    int none = -1;

    (void)state;
    err_set(&e, ERR_HOST, "disk");
    begin_archive(&r);
    space.on_open(space.arg, &none, NULL, &e);
    assert_true(r.dropped);
    forget(&r);
    begin_archive(&r);
    open_file(&two_files[0], STR("x")); /* shorter than it says */
    work();
    assert_false(r.over);
    work();
    assert_true(r.dropped);
    forget(&r);
}

static void test_the_reader_of_an_archive_goes(void **state)
{
    struct request r;

    (void)state;
    begin_archive(&r);
    open_file(&two_files[0], STR("xyz"));
    r.on_gone(r.gone_arg); /* the worker has our memory in hand */
    assert_false(r.over);
    work();
    assert_true(r.dropped);
    forget(&r);
    begin_archive(&r);
    r.on_gone(r.gone_arg);
    open_file(&two_files[0], STR("xyz"));
    assert_true(r.dropped);
    forget(&r);
}

static void test_no_workspace_no_archive(void **state)
{
    struct request r = {.session = "sess_1"};
    struct err e;

    (void)state;
    err_set(&e, ERR_MISSING, "there is no such session");
    handle_get_archive(&r);
    space.on_list(space.arg, NULL, 0, &e);
    assert_false(r.streaming);
    assert_int_equal(r.status, 400); /* as our stub has it */
    forget(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_answer),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_server_sent_events),
        cmocka_unit_test(test_lines_and_a_late_failure),
        cmocka_unit_test(test_a_slow_reader_holds_the_code),
        cmocka_unit_test(test_a_reader_that_does_not_read_misses_events),
        cmocka_unit_test(test_a_long_answer_is_made_by_a_worker),
        cmocka_unit_test(test_the_client_goes_while_a_long_answer_is_made),
        cmocka_unit_test(test_too_many_long_answers),
        cmocka_unit_test(test_long_output),
        cmocka_unit_test(test_the_client_goes),
        cmocka_unit_test(test_the_client_goes_after_the_end),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_background_that_is_read),
        cmocka_unit_test(test_background_that_cannot_run),
        cmocka_unit_test(test_output_by_range),
        cmocka_unit_test(test_output_of_nothing),
        cmocka_unit_test(test_export_pages),
        cmocka_unit_test(test_export_waits_for_its_reader),
        cmocka_unit_test(test_a_long_record_goes_out_in_pieces),
        cmocka_unit_test(test_export_that_fails),
        cmocka_unit_test(test_the_reader_of_an_export_goes),
        cmocka_unit_test(test_wrong_filters),
        cmocka_unit_test(test_an_archive_is_made_step_by_step),
        cmocka_unit_test(test_what_is_asked_about),
        cmocka_unit_test(test_what_is_not_clear_is_refused),
        cmocka_unit_test(test_gone_while_it_is_asked_about),
        cmocka_unit_test(test_a_file_that_has_gone_is_left_out),
        cmocka_unit_test(test_half_an_archive_is_not_taken_for_one),
        cmocka_unit_test(test_the_reader_of_an_archive_goes),
        cmocka_unit_test(test_no_workspace_no_archive),
    };
    return RUN(tests);
}
