/* Streams of events, with readers that are played: what is kept, and what is not. */
#include "doors/mcp/transport.h"

#include "unit.h"

#include <stdlib.h>

/* --- a reader --- */

struct request {
    struct buf got;
    size_t waits; /* what it has not read, as far as it says */
    bool ended, dropped;
};

void answer_events(struct request *r, enum event_format format)
{
    assert_int_equal(format, EVENTS_SSE);
    buf_init(&r->got, 1 * GiB);
}

void answer_stream_put(struct request *r, struct str bytes)
{
    assert_false(r->ended || r->dropped);
    assert_int_equal(buf_put(&r->got, bytes), 0);
}

void event_write(struct buf *b, const char *id, const char *name, struct str data)
{
    assert_int_equal(buf_printf(b, "%s%s%sevent: %s\ndata: ", id ? "id: " : "", id ? id : "",
                                id ? "\n" : "", name),
                     0);
    buf_put(b, data);
    assert_int_equal(buf_put(b, STR("\n\n")), 0);
}

size_t answer_stream_waits(const struct request *r)
{
    return r->waits;
}

void answer_stream_end(struct request *r)
{
    assert_false(r->ended || r->dropped);
    r->ended = true;
}

void request_on_gone(struct request *r, loop_fn *fn, void *arg)
{
    (void)r, (void)fn, (void)arg;
}

void request_drop(struct request *r)
{
    assert_false(r->ended || r->dropped);
    r->dropped = true;
}

void conversation_listens(struct conversation *v)
{
    assert_true(streams_are_open(v->streams));
}

static size_t count(const struct request *r, const char *what)
{
    size_t n = 0;

    for (const char *p = r->got.p, *end = p ? p + r->got.n : p; p && p < end; p++, n++) {
        p = memmem(p, (size_t)(end - p), what, strlen(what));
        if (!p)
            break;
    }
    return n;
}

static void forget(struct request *r)
{
    buf_done(&r->got);
    *r = (struct request){0};
}

/* --- a conversation --- */

struct scene {
    struct mcp mcp;
    struct conversation v;
    struct request r;
};

static int begin(void **state)
{
    struct scene *s = mem_zalloc(sizeof(*s));

    s->v.mcp = &s->mcp;
    s->v.client.version = version_newest(ERA_LEGACY);
    s->v.streams = streams_new(&s->v);
    *state = s;
    return 0;
}

static int finish(void **state)
{
    struct scene *s = *state;

    streams_free(s->v.streams);
    free(s->mcp.kept);
    buf_done(&s->r.got);
    free(s);
    return 0;
}

static json_t *note(size_t bytes)
{
    char *text = mem_zalloc(bytes + 1);
    json_t *v;

    memset(text, 'x', bytes);
    v = json_pack("{s:s, s:s, s:{s:s}}", "jsonrpc", "2.0", "method", "notifications/progress",
                  "params", "message", text);
    free(text);
    return v;
}

static json_t *response(void)
{
    return json_pack("{s:s, s:i, s:{}}", "jsonrpc", "2.0", "id", 7, "result");
}

static bool resumes(struct scene *s, const char *id)
{
    forget(&s->r);
    return streams_resume(s->v.streams, &s->r, str_of(id));
}

/* --- */

static void test_ids(void **state)
{
    static const char *const bad[] = {"",    "1",    "-",    "1-",   "-1",   "1-x",
                                      "x-1", "1-1 ", " 1-1", "1--1", "+1-1", "1-1-1"};
    uint64_t a, b;

    (void)state;
    assert_true(event_id_read(STR("12-345"), &a, &b));
    assert_int_equal(a, 12);
    assert_int_equal(b, 345);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(event_id_read(str_of(bad[i]), &a, &b));
    assert_false(event_id_read(STR("99999999999999999999999-1"), &a, &b));
}

static void test_resumed(void **state)
{
    struct scene *s = *state;
    struct sse_stream *e = sse_new(s->v.streams);

    sse_open(e, &s->r, true);
    assert_int_equal(count(&s->r, "id: 1-0\nretry: 1000\ndata: \n\n"), 1);
    sse_put(e, note(1));
    sse_gone(e);
    assert_true(s->r.dropped);
    sse_put(e, note(2));
    assert_true(resumes(s, "1-1"));
    assert_int_equal(count(&s->r, "id: 1-"), 1);
    assert_int_equal(count(&s->r, "id: 1-2\n"), 1);
    sse_put(e, response());
    sse_end(e);
    assert_true(s->r.ended);
    assert_int_equal(count(&s->r, "\"result\""), 1);
    assert_true(resumes(s, "1-2"));
    assert_true(s->r.ended);
    assert_int_equal(count(&s->r, "\"result\""), 1);
    assert_false(resumes(s, "1-4"));
    assert_false(resumes(s, "2-0"));
    assert_false(resumes(s, "0-0"));
}

static void test_events_are_bounded(void **state)
{
    struct scene *s = *state;
    struct sse_stream *e = sse_new(s->v.streams);

    for (int i = 0; i < 1000; i++)
        sse_put(e, note(10));
    sse_put(e, response());
    sse_end(e);
    assert_true(resumes(s, "1-0"));
    assert_int_equal(count(&s->r, "\nevent: "), 256);
    assert_int_equal(count(&s->r, "\"result\""), 1);
}

static void test_nobody_reads(void **state)
{
    struct scene *s = *state;
    struct sse_stream *e = sse_new(s->v.streams);

    for (int i = 0; i < 100; i++)
        sse_put(e, note(100000));
    assert_true(sse_waits(e) < 2 * MiB);
    sse_put(e, response());
    sse_end(e);
    assert_true(resumes(s, "1-0"));
    assert_int_equal(count(&s->r, "\"result\""), 1);
}

static void test_slow_reader(void **state)
{
    struct scene *s = *state;
    struct sse_stream *e = sse_new(NULL);

    sse_open(e, &s->r, false);
    s->r.waits = 2 * MiB;
    sse_put(e, note(1));
    assert_int_equal(count(&s->r, "event: "), 0);
    sse_put(e, json_pack("{s:s, s:s, s:s}", "jsonrpc", "2.0", "id", "ask", "method", "roots/list"));
    sse_put(e, response());
    assert_int_equal(count(&s->r, "event: "), 2);
    sse_end(e);
    assert_true(s->r.ended);
}

static void test_modern_has_no_ids(void **state)
{
    struct scene *s = *state;
    struct sse_stream *e = sse_new(NULL);

    sse_open(e, &s->r, true);
    sse_put(e, note(1));
    sse_put(e, response());
    sse_end(e);
    assert_int_equal(count(&s->r, "id: "), 0);
    assert_int_equal(count(&s->r, "event: message\ndata: {"), 2);
}

static void test_ended_streams_are_bounded(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 200; i++) {
        struct sse_stream *e = sse_new(s->v.streams);
        sse_put(e, response());
        sse_end(e);
    }
    assert_false(resumes(s, "1-0"));
    assert_false(resumes(s, "136-0"));
    assert_true(resumes(s, "137-0"));
    assert_true(resumes(s, "200-0"));
}

static void test_a_call_may_outlive_its_conversation(void **state)
{
    struct scene *s = *state;
    struct sse_stream *e = sse_new(s->v.streams);

    sse_open(e, &s->r, true);
    sse_put(e, note(1));
    streams_free(s->v.streams);
    s->v.streams = NULL;
    sse_put(e, response());
    sse_end(e);
    assert_true(s->r.ended);
    assert_int_equal(count(&s->r, "\"result\""), 1);
}

static void test_beside(void **state)
{
    struct scene *s = *state;
    struct request second = {0};

    assert_null(s->v.aside);
    streams_listen(s->v.streams, &s->r);
    assert_non_null(s->v.aside);
    assert_true(streams_are_open(s->v.streams));
    s->v.aside->ops->send(s->v.aside, note(1));
    assert_int_equal(count(&s->r, "id: 0-1\n"), 1);
    streams_listen(s->v.streams, &second);
    assert_true(s->r.ended);
    s->v.aside->ops->send(s->v.aside, note(1));
    assert_int_equal(count(&s->r, "id: 0-2\n"), 0);
    assert_int_equal(count(&second, "id: 0-2\n"), 1);
    streams_close(s->v.streams);
    assert_true(second.ended);
    assert_false(streams_are_open(s->v.streams));
    buf_done(&second.got);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        TEST(test_resumed),
        TEST(test_events_are_bounded),
        TEST(test_nobody_reads),
        TEST(test_slow_reader),
        TEST(test_modern_has_no_ids),
        TEST(test_ended_streams_are_bounded),
        TEST(test_a_call_may_outlive_its_conversation),
        TEST(test_beside),
    };

    return RUN(tests);
}
