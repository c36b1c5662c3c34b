/* JSON as text, held against what jansson makes of the same value. */
#include "record/record.h"
#include "unit.h"

#include <stdlib.h>

static void same(json_t *v)
{
    for (int ascii = 0; ascii < 2; ascii++) {
        size_t n = 0;
        size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(12) | (ascii ? JSON_ENSURE_ASCII : 0);
        AUTO_FREE char *want = json_dumps(v, flags | JSON_ENCODE_ANY);
        AUTO_FREE char *got = record_dump(v, ascii, &n);
        assert_non_null(want);
        assert_string_equal(got, want);
        assert_int_equal(n, strlen(want));
    }
    json_decref(v);
}

static void test_each_kind(void **state)
{
    (void)state;
    same(json_null());
    same(json_true());
    same(json_false());
    same(json_object());
    same(json_array());
    same(json_pack("{s:[i,i,n,b], s:{s:{}}}", "a", 1, -2, 1, "b", "c"));
    same(json_integer(INT64_MIN));
    same(json_integer(INT64_MAX));
}

/* The text is read back as the same number, and is no longer than it has to be. */
static void test_numbers(void **state)
{
    static const struct {
        double v;
        const char *text;
    } reals[] = {
        {0,                      "0.0"                    },
        {-0.0,                   "-0.0"                   },
        {2,                      "2.0"                    },
        {-1.5,                   "-1.5"                   },
        {0.1,                    "0.1"                    },
        {0.1 + 0.2,              "0.30000000000000004"    },
        {1.0 / 3,                "0.3333333333333333"     },
        {3.141592653589793,      "3.141592653589793"      },
        {123456789012,           "123456789012.0"         },
        {1763430000.123456,      "1763430000.123456"      },
        {1e22,                   "1e+22"                  },
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {5e-324,                 "4.94065645841247e-324"  },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(reals); i++) {
        json_t *v = json_real(reals[i].v);
        AUTO_FREE char *got = record_dump(v, false, NULL);
        assert_string_equal(got, reals[i].text);
        assert_true(strtod(got, NULL) == reals[i].v);
        json_decref(v);
    }
}

static void test_every_byte(void **state)
{
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)i;
    same(json_stringn(text, sizeof(text)));
    same(json_string("\u00e9\u07ff\u0800\ufffd\U00010000\U0010ffff"));
}

/* Characters of each length on the edge of every piece of it. */
static void test_long_text(void **state)
{
    static const char *const chars[] = {"x", "\x01", "\u00e9", "\u20ac", "\U0001f600"};
    struct buf text;

    (void)state;
    for (size_t i = 0; i < COUNT(chars); i++)
        for (size_t shift = 0; shift < 13; shift++) {
            buf_init(&text, MiB);
            for (size_t k = 0; k < shift; k++)
                assert_int_equal(buf_put(&text, STR("y")), 0);
            for (size_t k = 0; k < 5000; k++)
                assert_int_equal(buf_put(&text, str_of(chars[i])), 0);
            same(json_stringn(text.p, text.n));
            buf_done(&text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_long_text),
    };

    return RUN(tests);
}
