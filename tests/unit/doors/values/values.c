/* What clients write as text: times, seconds. */
#include "doors/values/values.h"
#include "unit.h"

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"1970-01-01T00:00:00Z",           0              },
        {"1970-01-01t00:00:00.25z",        250            },
        {"2026-01-31T12:00:00.1239Z",      1769860800123  },
        {"2026-01-31T13:30:00+01:30",      1769860800000  },
        {"2026-01-31T13:30:00 01:30",      1769860800000  }, /* a query's "+" */
        {"2026-01-31T07:00:00-05:00",      1769860800000  },
        {"2024-02-29T00:00:00Z",           1709164800000  },
        {"2016-12-31T23:59:60Z",           1483228799000  },
        {"1969-12-31T23:59:59Z",           -1000          },
        {"9999-12-31T23:59:59.999999999Z", 253402300799999},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms;
        assert_true(time_parse(str_of(rows[i].text), &ms));
        assert_true(ms == rows[i].ms);
    }
}

static void test_not_times(void **state)
{
    static const char *const rows[] = {
        "",
        "now",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-1-31T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2025-02-29T00:00:00Z",
        "2026-04-31T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-01-00T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:61Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+1:30",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00ZZ",
        "-026-01-31T12:00:00Z",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms;
        if (time_parse(str_of(rows[i]), &ms))
            fail_msg("'%s' was taken for a time", rows[i]);
    }
}

static void test_times_are_printed(void **state)
{
    char text[TIME_TEXT];

    (void)state;
    time_print(1769860800123, text);
    assert_string_equal(text, "2026-01-31T12:00:00.123Z");
    time_print(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
}

static void test_seconds(void **state)
{
    static const struct {
        const char *json;
        uint64_t ms;
    } rows[] = {
        {"[1]",     1000                 },
        {"[0.25]",  250                  },
        {"[1.1]",   1100                 },
        {"[1e-9]",  1                    },
        {"[0]",     0                    },
        {"[-1]",    0                    },
        {"[1e99]",  SECONDS_MAX * 1000ull},
        {"[\"1\"]", 0                    },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *v = json_loads(rows[i].json, 0, NULL);
        assert_int_equal(json_ms(json_array_get(v, 0)), rows[i].ms);
        json_decref(v);
    }
    assert_int_equal(json_ms(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_not_times),
        cmocka_unit_test(test_times_are_printed),
        cmocka_unit_test(test_seconds),
    };
    return RUN(tests);
}
