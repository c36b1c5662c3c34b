#include "egress/egress_int.h"
#include "unit.h"

static struct body b;

static void begin(enum request_body kind, uint64_t length)
{
    struct egress_request r = {.body = kind, .length = length};

    body_init(&b, &r);
}

static size_t take(const char *text)
{
    return body_take(&b, str_of(text));
}

static void test_none(void **state)
{
    (void)state;
    begin(BODY_NONE, 0);
    assert_true(b.done);
    assert_int_equal(take("GET"), 0);
}

static void test_length(void **state)
{
    (void)state;
    begin(BODY_LENGTH, 0);
    assert_true(b.done);
    begin(BODY_LENGTH, 5);
    assert_int_equal(take("abc"), 3);
    assert_false(b.done);
    assert_int_equal(take("deGET"), 2);
    assert_true(b.done);
    assert_int_equal(take("GET"), 0);
}

/* The same, whole and byte by byte. */
static void test_chunks(void **state)
{
    static const char text[] = "3\r\nabc\r\n0a\r\n0123456789\r\n000\r\n\r\nGET";

    (void)state;
    begin(BODY_CHUNKED, 0);
    assert_int_equal(take(text), sizeof(text) - 4);
    assert_true(b.done && !b.bad);
    begin(BODY_CHUNKED, 0);
    for (size_t i = 0; i < sizeof(text) - 4; i++) {
        assert_false(b.done);
        assert_int_equal(body_take(&b, (struct str){text + i, 1}), 1);
    }
    assert_true(b.done && !b.bad);
    assert_int_equal(take("G"), 0);
}

static void test_bad_chunks(void **state)
{
    static const char *const rows[] = {
        "\r\n",       "x\r\n",       " 3\r\n",        "3 \r\n",  "3;a=b\r\n",
        "0x3\r\n",    "-1\r\n",      "3\nabc",        "3\rabc",  "3\r\nabcd",
        "3\r\nabc\n", "3\r\nabc\rx", "0\r\nA: b\r\n", "0\r\n\n", "1234567890abc\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin(BODY_CHUNKED, 0);
        size_t n = take(rows[i]);
        if (!b.bad || n >= strlen(rows[i]))
            fail_msg("row %zu is no chunk", i);
        assert_int_equal(take("0\r\n\r\n"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_bad_chunks),
    };

    return RUN(tests);
}
