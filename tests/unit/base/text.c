#include "base/base.h"
#include "unit.h"

static void test_names(void **state)
{
    static const struct {
        struct str name;
        const char *shown;
    } rows[] = {
        {STR("plot.png"),               "plot.png"                 },
        {STR("caf\xc3\xa9"),            "caf\xc3\xa9"              },
        {STR("two\nlines"),             "two\\x0alines"            },
        {STR("\x1b[2J"),                "\\x1b[2J"                 },
        {STR("a\\b"),                   "a\\\\b"                   },
        {STR("\x7f"),                   "\\x7f"                    },
        {STR("\xc2\x9b"),               "\\xc2\\x9b"               }, /* CSI in one character */
        {STR("\xff\xfe"),               "\\xff\\xfe"               },
        {STR("x\xe2\x82"),              "x\\xe2\\x82"              },
        {STR("gpj\xe2\x80\xaegnp.exe"), "gpj\\xe2\\x80\\xaegnp.exe"}, /* reads backwards */
        {STR("a\xe2\x80\xa8z"),         "a\\xe2\\x80\\xa8z"        }, /* a line separator */
        {STR("\xe2\x82\xac"),           "\xe2\x82\xac"             },
        {STR("a\0b"),                   "a\\x00b"                  },
        {STR(""),                       ""                         },
    };
    char shown[NAME_SHOWN];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(name_show(shown, rows[i].name), rows[i].shown);
}

static void test_long_names_are_cut(void **state)
{
    char name[5000], shown[NAME_SHOWN];

    (void)state;
    for (size_t n = NAME_SHOWN - 20; n < NAME_SHOWN + 20; n++) {
        memset(name, 'x', n);
        name_show(shown, (struct str){name, n});
        assert_true(strlen(shown) < NAME_SHOWN);
    }
    memset(name, '\n', sizeof(name));
    name_show(shown, (struct str){name, sizeof(name)});
    assert_string_equal(shown + strlen(shown) - 7, "\\x0a...");
}

static void test_sizes(void **state)
{
    char shown[SIZE_SHOWN];

    (void)state;
    assert_string_equal(size_show(shown, 0), "0 B");
    assert_string_equal(size_show(shown, 999), "999 B");
    assert_string_equal(size_show(shown, 1000), "1.0 kB");
    assert_string_equal(size_show(shown, 12300), "12.3 kB");
    assert_string_equal(size_show(shown, 999949), "999.9 kB");
    assert_string_equal(size_show(shown, 999999), "1.0 MB");
    assert_string_equal(size_show(shown, UINT64_MAX), "18.4 EB");
}

static void test_torn(void **state)
{
    (void)state;
    assert_int_equal(utf8_torn(STR("")), 0);
    assert_int_equal(utf8_torn(STR("abc")), 0);
    assert_int_equal(utf8_torn(STR("a\xe2")), 1);
    assert_int_equal(utf8_torn(STR("a\xe2\x82")), 2);
    assert_int_equal(utf8_torn(STR("a\xe2\x82\xac")), 0);
    assert_int_equal(utf8_torn(STR("\xf0\x9f\x98")), 3);
    assert_int_equal(utf8_torn(STR("\xf0\x9f\x98\x80")), 0);
    assert_int_equal(utf8_torn(STR("\x80\x80\x80\x80")), 0);
    assert_int_equal(utf8_torn(STR("\xff")), 0);
    assert_int_equal(utf8_torn(STR("\xc0")), 0);
}

static void test_replaced(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 64);
    assert_int_equal(utf8_put(&b, STR("a\xff\xe2\x82\xac\xe2z\0")), 0);
    assert_str(buf_str(&b), "a\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbdz\0");
    buf_done(&b);
    buf_init(&b, 2);
    assert_int_equal(utf8_put(&b, STR("a\xff")), -1);
    buf_done(&b);
}

static void test_json_sizes(void **state)
{
    static const struct {
        const char *text;
        enum json_size size; /* at most three levels and six values */
    } rows[] = {
        {"",                       JSON_FITS    },
        {"1",                      JSON_FITS    },
        {"[[[1]]]",                JSON_FITS    },
        {"[[[[1]]]]",              JSON_TOO_DEEP},
        {"[1,2,3,4,5]",            JSON_FITS    },
        {"[1,2,3,4,5,6]",          JSON_TOO_MANY},
        {"{\"a\":1,\"b\":2}",      JSON_FITS    },
        {"{\"a\":{},\"b\":{}}",    JSON_TOO_MANY},
        {"[],[],[]",               JSON_FITS    },
        {"[],[],[],[]",            JSON_TOO_MANY},
        {"\"[[[[,,,,,,,:\"",       JSON_FITS    }, /* a string */
        {"\"\\\"[[[[,,,,,,,:\"",   JSON_FITS    }, /* with a quote in it */
        {"\"\\\\\",1,1,1,1,1,1,1", JSON_TOO_MANY}, /* with a backslash before its end */
        {"]]]]]]]]]",              JSON_FITS    }, /* a parser refuses it */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(json_measure(str_of(rows[i].text), 3, 6), rows[i].size);
}

static void test_settled(void **state)
{
    static const struct {
        struct str said, shown;
    } rows[] = {
        {STR(""),                             STR("")                      },
        {STR("plain\nlines\n"),               STR("plain\nlines\n")        },
        {STR("\r  0%\r 50%\r100%\nend"),      STR("100%\nend")             },
        {STR("dos\r\nlines\r\n"),             STR("dos\nlines\n")          },
        {STR("12345\rab\n"),                  STR("ab345\n")               }, /* a terminal leaves the rest */
        {STR("1\rlonger\rxy"),                STR("xynger")                },
        {STR("\xc3\xa9\xc3\xa9\xc3\xa9\rab"), STR("ab\xc3\xa9")            },
        {STR("ab\r\xe2\x96\x88"),             STR("\xe2\x96\x88"
                                      "b")},
        {STR("\r\r\r\n\r"),                   STR("\n")                    },
        {STR("a\0b\rc"),                      STR("c\0b")                  },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf b = BUF(KiB);
        text_settle(&b, rows[i].said);
        assert_int_equal(b.n, rows[i].shown.n);
        assert_true(b.n == 0 || memcmp(b.p, rows[i].shown.p, b.n) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),    cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_sizes),    cmocka_unit_test(test_torn),
        cmocka_unit_test(test_replaced), cmocka_unit_test(test_json_sizes),
        cmocka_unit_test(test_settled),
    };

    return RUN(tests);
}
