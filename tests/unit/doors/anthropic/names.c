/* Names of files, from clients and to them. */
#include "doors/anthropic/anthropic_int.h"
#include "unit.h"

/* The name it gets, or NULL where it is refused. */
static const char *taken(struct str name, struct str mime)
{
    static char ret[FILE_NAME_MAX + 1];
    struct err e;

    if (file_name_take(name, mime, ret, &e) == 0)
        return ret;
    assert_int_equal(e.kind, ERR_CALLER);
    return NULL;
}

static void test_taken(void **state)
{
    static const struct {
        const char *given, *mime, *name;
    } rows[] = {
        {"data.csv",       "text/csv",                 "data.csv"      },
        {"../../etc/x.y",  "text/csv",                 "x.y"           },
        {"über maß.txt", "",                         "über maß.txt"},
        {"",               "text/csv",                 "unnamed.csv"   },
        {"dir/",           "image/png",                "unnamed.png"   },
        {"",               "application/octet-stream", "unnamed"       },
        {"",               "",                         "unnamed"       },
        {".hidden",        "",                         ".hidden"       },
        {"a'b(c)[d].csv",  "",                         "a'b(c)[d].csv" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(taken(str_of(rows[i].given), str_of(rows[i].mime)), rows[i].name);
}

static void test_refused(void **state)
{
    static const struct str rows[] = {
        STR("a<b"),  STR("a>b"),  STR("a:b"),  STR("a\"b"),   STR("a|b"), STR("a?b"),
        STR("a*b"),  STR("a\\b"), STR("a\nb"), STR("a\0b"),   STR("."),   STR(".."),
        STR("x/.."), STR("\x7f"), STR("\x1f"), STR("\xff.x"),
    };
    char longest[FILE_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_null(taken(rows[i], (struct str){0}));
    memset(longest, 'x', sizeof(longest));
    assert_non_null(taken((struct str){longest, FILE_NAME_MAX}, (struct str){0}));
    assert_null(taken((struct str){longest, FILE_NAME_MAX + 1}, (struct str){0}));
}

static void test_types(void **state)
{
    static const char *const rows[][2] = {
        {"text/csv",                 "text/csv"},
        {"text/csv; charset=utf-8",  "text/csv"},
        {"text/csv ;x",              "text/csv"},
        {"application/octet-stream", ""        },
        {"",                         ""        },
        {"text",                     ""        },
        {"text/c sv",                ""        },
        {"text/\xff",                ""        },
    };
    char longest[200];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str mime = file_mime_take(str_of(rows[i][0]));
        assert_true(str_is(mime, rows[i][1]));
    }
    memset(longest, '/', sizeof(longest));
    assert_int_equal(file_mime_take((struct str){longest, sizeof(longest)}).n, 0);
    assert_int_equal(file_mime_take((struct str){0}).n, 0);
}

static void test_disposition(void **state)
{
    char text[DISPOSITION_MAX], longest[FILE_NAME_MAX];

    (void)state;
    disposition_print(STR("numbers.csv"), text);
    assert_string_equal(text, "attachment; filename*=utf-8''numbers.csv");
    disposition_print(STR("é \"x\"\r\n.csv"), text);
    assert_string_equal(text, "attachment; filename*=utf-8''%C3%A9%20%22x%22%0D%0A.csv");
    memset(longest, ' ', sizeof(longest));
    disposition_print((struct str){longest, sizeof(longest)}, text);
    assert_int_equal(strlen(text), strlen("attachment; filename*=utf-8''") + sizeof(longest) * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_disposition),
    };

    return RUN(tests);
}
