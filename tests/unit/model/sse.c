/* Server-sent events, cut at every place. */
#include "model/model_int.h"
#include "unit.h"

struct heard {
    struct buf all;
    int stop_after; /* 0: never */
    int count;
};

static int on_event(void *arg, struct str data)
{
    struct heard *h = arg;

    assert_int_equal(buf_put(&h->all, data) + buf_put(&h->all, STR("|")), 0);
    return ++h->count == h->stop_after ? -1 : 0;
}

static int feed(struct heard *h, struct str text, size_t piece, size_t max)
{
    struct sse_reader s;
    struct err e = {0};
    int rc = 0;

    buf_init(&h->all, MiB);
    sse_init(&s, max);
    for (size_t at = 0; at < text.n && rc == 0; at += piece)
        rc = sse_feed(&s, (struct str){text.p + at, text.n - at < piece ? text.n - at : piece},
                      on_event, h, &e);
    if (rc == 0)
        sse_finish(&s, on_event, h);
    sse_done(&s);
    return rc < 0 ? (int)e.kind - 1000 : 0;
}

static void test_forms(void **state)
{
    static const struct {
        struct str text;
        const char *heard;
    } rows[] = {
        {STR("data: a\n\ndata: b\n\n"),                 "a|b|" },
        {STR("data:a\r\n\r\ndata:  b\r\n\r\n"),         "a| b|"},
        {STR("data: a\r\rdata: b\r\r"),                 "a|b|" },
        {STR("event: x\nid: 1\nretry: 5\ndata: a\n\n"), "a|"   },
        {STR(": comment\n\n:\n\ndata: a\n\n"),          "a|"   },
        {STR("data: a\ndata: b\n\n"),                   "a\nb|"},
        {STR("\xef\xbb\xbf"
             "data: a\n\n"),
         "a|"                                                  },
        {STR("data: a\n\xef\xbb\xbf"
             "data: b\n\n"),
         "a|"                                                  },
        {STR("data\ndata:\n\n"),                        ""     },
        {STR("data: a\n\ndata: b\n"),                   "a|b|" }, /* whole lines count */
        {STR("data: a\n\ndata: b"),                     "a|"   }, /* half a line does not */
        {STR("datax: a\n\nxdata: b\n\n"),               ""     },
        {STR(""),                                       ""     },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t piece = 1; piece <= rows[i].text.n + 1; piece++) {
            struct heard h = {0};

            assert_int_equal(feed(&h, rows[i].text, piece, KiB), 0);
            assert_int_equal(h.all.n, strlen(rows[i].heard));
            assert_memory_equal(h.all.n ? h.all.p : "", rows[i].heard, h.all.n);
            buf_done(&h.all);
        }
    }
}

static void test_a_line_that_is_too_long(void **state)
{
    struct heard h = {0};

    (void)state;
    assert_int_equal(feed(&h, STR("data: 0123456789\n\n"), 3, 8), (int)ERR_LIMIT - 1000);
    buf_done(&h.all);
    /* Nor many lines of one event. */
    assert_int_equal(feed(&h, STR("data: 01\ndata: 01\ndata: 01\n\n"), 3, 8),
                     (int)ERR_LIMIT - 1000);
    buf_done(&h.all);
}

static void test_enough(void **state)
{
    struct heard h = {.stop_after = 1};

    (void)state;
    assert_int_equal(feed(&h, STR("data: a\n\ndata: b\n\n"), 100, KiB), (int)ERR_NONE - 1000);
    assert_str(buf_str(&h.all), "a|");
    buf_done(&h.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_a_line_that_is_too_long),
        cmocka_unit_test(test_enough),
    };

    return RUN(tests);
}
