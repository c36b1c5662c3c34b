/* Bytes written as text, and read back. */
#include "base/base.h"
#include "unit.h"

static void test_base64_reads_what_is_written(void **state)
{
    static const struct {
        const char *text;
        struct str bytes;
    } rows[] = {
        {"",         STR("")              },
        {"Zg==",     STR("f")             },
        {"Zm8=",     STR("fo")            },
        {"Zm9v",     STR("foo")           },
        {"AP/+",     STR("\0\xff\xfe")    },
        {"+/+/AA==", STR("\xfb\xff\xbf\0")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char got[16];
        size_t n;
        assert_true(base64_decode(str_of(rows[i].text), got, &n));
        assert_int_equal(n, rows[i].bytes.n);
        assert_memory_equal(got, rows[i].bytes.p, n);
    }
}

static void test_base64_is_strict(void **state)
{
    static const char *const rows[] = {
        "Zg",   "Zg=",  "Zg===",    "====", "Z===", "Zh==",  "Zm9=",  "Zm9v\n",
        " Zm9", "Zm-_", "Zg==Zg==", "Z=g=", "=Zg=", "Zm9v=", "Zm9vZ",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char got[16];
        size_t n;
        if (base64_decode(str_of(rows[i]), got, &n))
            fail_msg("'%s' was taken for base64", rows[i]);
    }
}

static void test_hex(void **state)
{
    char digits[7];

    (void)state;
    assert_ptr_equal(hex_print(digits, "\x00\x9f\xff", 3), digits + 6);
    assert_string_equal(digits, "009fff");
    assert_string_equal(hex_print(digits, "", 0), "");
    for (int c = -128; c < 128; c++) {
        const char *at = c > 0 ? strchr("0123456789abcdefABCDEF", c) : NULL;
        int want = !at ? -1 : at[0] <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        assert_int_equal(hex_digit((char)c), want);
    }
}

static void test_percent(void **state)
{
    static const struct {
        const char *text;
        int byte;
    } rows[] = {
        {"%41", 'A' },
        {"%fF", 0xff},
        {"%00", 0   },
        {"%4",  -1  },
        {"%",   -1  },
        {"%g0", -1  },
        {"%0g", -1  },
        {"411", -1  },
    };
    char coded[16];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(percent_at(str_of(rows[i].text), 0), rows[i].byte);
    assert_int_equal(percent_at(STR("ab%20"), 2), ' ');
    assert_int_equal(percent_at(STR("ab%20"), 3), -1);
    assert_ptr_equal(url_encode(coded, STR("a/\xc3 ")), coded + 8);
    assert_string_equal(coded, "a/%C3%20");
}

static void test_utf8(void **state)
{
    static const struct {
        uint32_t code;
        const char *text;
    } rows[] = {
        {'a',      "a"               },
        {0x7ff,    "\xdf\xbf"        },
        {0x800,    "\xe0\xa0\x80"    },
        {0xffff,   "\xef\xbf\xbf"    },
        {0x10000,  "\xf0\x90\x80\x80"},
        {0x10ffff, "\xf4\x8f\xbf\xbf"},
        {0xd800,   "\xef\xbf\xbd"    },
        {0xdfff,   "\xef\xbf\xbd"    },
        {0x110000, "\xef\xbf\xbd"    },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char got[5] = "";
        assert_int_equal(utf8_print(got, rows[i].code), strlen(rows[i].text));
        assert_string_equal(got, rows[i].text);
        assert_int_equal(utf8_count(str_of(got)), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_reads_what_is_written),
        cmocka_unit_test(test_base64_is_strict),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_utf8),
    };

    return RUN(tests);
}
