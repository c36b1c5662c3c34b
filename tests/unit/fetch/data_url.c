#include "fetch/fetch.h"
#include "unit.h"

static void test_good(void **state)
{
    static const struct {
        const char *url, *mime, *data;
    } rows[] = {
        {"data:,",                           "text/plain",             ""        },
        {"data:,a%20b+c",                    "text/plain",             "a b+c"   },
        {"data:text/csv,a%2Cb",              "text/csv",               "a,b"     },
        {"DATA:Text/HTML;charset=utf-8,<p>", "text/html",              "<p>"     },
        {"data:;charset=utf-8,x",            "text/plain",             "x"       },
        {"data:image/png;base64,",           "image/png",              ""        },
        {"data:;base64,YQ==",                "text/plain",             "a"       },
        {"data:;base64,YWI=",                "text/plain",             "ab"      },
        {"data:;BASE64,YWJj",                "text/plain",             "abc"     },
        {"data:;base64,YWI%3D",              "text/plain",             "ab"      },
        {"data:;base64,YWJjZGU%3d",          "text/plain",             "abcde"   },
        {"data:a/b;x=y;base64,Pz8/Pj4%2B",   "a/b",                    "?\?\?>>>"},
        {"data:,a,b",                        "text/plain",             "a,b"     },
        {"data:,a#fragment",                 "text/plain",             "a"       },
        {"data:;base64;x=y,YQ==",            "text/plain",             "YQ=="    },
        {"data:application/vnd.x+json,{}",   "application/vnd.x+json", "{}"      },
    };
    char mime[64];
    struct buf b;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        buf_init(&b, 100);
        if (data_url_parse(str_of(rows[i].url), &b, mime, sizeof(mime), &e) < 0)
            fail_msg("%s: %s", rows[i].url, e.text);
        assert_string_equal(mime, rows[i].mime);
        assert_int_equal(b.n, strlen(rows[i].data));
        assert_memory_equal(b.p ? b.p : "", rows[i].data, b.n);
        buf_done(&b);
    }
}

static void test_bad(void **state)
{
    static const char *const rows[] = {
        "",
        "data:",
        "data:text/plain",
        "data:#,x",
        "http://h/,x",
        "data:text,x",
        "data:/plain,x",
        "data:text/,x",
        "data:a/b/c,x",
        "data:te xt/plain,x",
        "data:,%",
        "data:,%4",
        "data:,%zz",
        "data:;base64,Y",
        "data:;base64,YQ",
        "data:;base64,YQ=",
        "data:;base64,YQ===",
        "data:;base64,YR==", /* bits that no byte gets */
        "data:;base64,YWJ=",
        "data:;base64,YQ==YQ==", /* something after the padding */
        "data:;base64,Y=Q=",
        "data:;base64,=QQQ",
        "data:;base64,YW Jj",
        "data:;base64,YW-_",
        "data:;base64,YQ%3",
    };
    char mime[64];
    struct buf b;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        buf_init(&b, 100);
        if (data_url_parse(str_of(rows[i]), &b, mime, sizeof(mime), &e) == 0)
            fail_msg("'%s' is no data URL", rows[i]);
        assert_int_equal(e.kind, ERR_CALLER);
        buf_done(&b);
    }
}

static void test_limits(void **state)
{
    char mime[8];
    struct buf b;
    struct err e;

    (void)state;
    buf_init(&b, 4);
    assert_int_equal(data_url_parse(STR("data:,1234"), &b, mime, sizeof(mime), &e), -1);
    assert_int_equal(e.kind, ERR_CALLER); /* text/plain does not fit */
    assert_int_equal(data_url_parse(STR("data:a/b,1234"), &b, mime, sizeof(mime), &e), 0);
    b.n = 0;
    assert_int_equal(data_url_parse(STR("data:a/b,12345"), &b, mime, sizeof(mime), &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    b.n = 0;
    assert_int_equal(data_url_parse(STR("data:a/b;base64,MTIzNDU="), &b, mime, 8, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_limits),
    };

    return RUN(tests);
}
