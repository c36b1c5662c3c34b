/* What the outside cannot tell apart; tests/egress has the long list of what is refused. */
#include "egress/egress_int.h"
#include "unit.h"

static struct egress_request r;
static struct buf out;
static struct err e;

static int parse(const char *text)
{
    buf_done(&out);
    buf_init(&out, 64 * KiB);
    e = (struct err){0};
    assert_int_equal(request_head_len(str_of(text)), strlen(text));
    return request_parse(str_of(text), &r, &out, &e);
}

static int done(void **state)
{
    (void)state;
    buf_done(&out);
    return 0;
}

static void test_head_len(void **state)
{
    (void)state;
    assert_int_equal(request_head_len(STR("")), 0);
    assert_int_equal(request_head_len(STR("GET / HTTP/1.1\r\n\r")), 0);
    assert_int_equal(request_head_len(STR("A\r\n\r\nB\r\n\r\n")), 5);
    assert_int_equal(request_head_len(STR("A\n\n")), 0);
}

static void test_connect(void **state)
{
    (void)state;
    assert_int_equal(parse("CONNECT PyPI.org.:443 HTTP/1.1\r\nHost: other\r\n\r\n"), 0);
    assert_true(r.connect);
    assert_string_equal(r.method, "CONNECT");
    assert_string_equal(r.host_text, "pypi.org");
    assert_int_equal(r.port, 443);
    assert_int_equal(out.n, 0);
    assert_int_equal(parse("CONNECT [2001:DB8::1]:443 HTTP/1.0\r\n\r\n"), 0);
    assert_string_equal(r.host_text, "[2001:db8::1]");
    assert_int_equal(parse("CONNECT [::ffff:1.2.3.4]:443 HTTP/1.1\r\n\r\n"), 0);
    assert_string_equal(r.host_text, "1.2.3.4");
    assert_int_equal(parse("connect a.com:443 HTTP/1.1\r\n\r\n"), -1);
}

static void test_plain(void **state)
{
    (void)state;
    assert_int_equal(parse("GET HTTP://A.com?x=/y HTTP/1.0\r\nHost: b.com\r\nX:  y \r\n\r\n"), 0);
    assert_str(buf_str(&out),
               "GET /?x=/y HTTP/1.0\r\nHost: a.com\r\nConnection: close\r\nX: y\r\n\r\n");
    assert_int_equal(r.port, 80);
    assert_int_equal(r.body, BODY_NONE);
    assert_int_equal(parse("PUT http://a.com:8080/p HTTP/1.1\r\nContent-length: 12\r\n\r\n"), 0);
    assert_str(buf_str(&out), "PUT /p HTTP/1.1\r\nHost: a.com:8080\r\nConnection: close\r\n"
                              "Content-length: 12\r\n\r\n");
    assert_int_equal(r.body, BODY_LENGTH);
    assert_int_equal(r.length, 12);
    assert_int_equal(parse("PUT http://a.com/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"), 0);
    assert_int_equal(r.body, BODY_CHUNKED);
}

/* The sentences reach people who debug a client inside. */
static void test_sentences(void **state)
{
    (void)state;
    assert_int_equal(parse("GET / HTTP/1.1\r\n\r\n"), -1);
    assert_has(e.text, "this is a proxy");
    assert_int_equal(parse("GET http://a.com/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n"), -1);
    assert_has(e.text, "not 'Name: value'");
    assert_int_equal(parse("GET http://a.com/ HTTP/1.1\r\nContent-Length: 1\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n"),
                     -1);
    assert_has(e.text, "said twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_len),
        cmocka_unit_test_teardown(test_connect, done),
        cmocka_unit_test_teardown(test_plain, done),
        cmocka_unit_test_teardown(test_sentences, done),
    };

    return RUN(tests);
}
