#include "doors/mcp/transport.h"

#include "unit.h"

static void test_trim(void **state)
{
    (void)state;
    assert_str(str_trim(STR(" \t a b\t ")), "a b");
    assert_str(str_trim(STR("  ")), "");
    assert_str(str_trim(STR("")), "");
}

static void test_lists(void **state)
{
    (void)state;
    assert_true(header_lists(STR("application/json, text/event-stream"), "text/event-stream"));
    assert_true(header_lists(STR("Text/Event-Stream;q=0.5,*/*"), "text/event-stream"));
    assert_true(header_lists(STR(" */* ;q=0"), "*/*"));
    assert_false(header_lists(STR("text/event-streams"), "text/event-stream"));
    assert_false(header_lists(STR("text/event"), "text/event-stream"));
    assert_false(header_lists(STR(",,;,"), "text/event-stream"));
    assert_false(header_lists(STR(""), "x"));
}

static const struct {
    const char *value, *said; /* said NULL: broken */
} texts[] = {
    {"plain",                       "plain"          },
    {"  plain ",                    "plain"          },
    {"",                            ""               },
    {"=?base64?aGk=?=",             "hi"             },
    {" =?base64?aGk=?= ",           "hi"             },
    {"=?base64?w7w=?=",             "\xc3\xbc"       },
    {"=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?x?="   },
    {"=?base64?aGk?=",              NULL             },
    {"=?base64?aGk==?=",            NULL             },
    {"=?base64?aGl=?=",             NULL             }, /* stray bits */
    {"=?base64?a Gk=?=",            NULL             },
    {"=?base64?aGk_?=",             NULL             },
    {"=?BASE64?aGk=?=",             "=?BASE64?aGk=?="},
    {"=?base64?aGk=",               "=?base64?aGk="  },
    {"base64?aGk=?=",               "base64?aGk=?="  },
    {"=?base64?=",                  "=?base64?="     },
};

static void test_decode(void **state)
{
    static const char nothing[] = {'=', '?', 'b', 'a', 's', 'e', '6', '4', '?', '?', '='};
    char room[64];
    struct str said;

    (void)state;
    assert_true(header_decode((struct str){nothing, sizeof(nothing)}, room, &said));
    assert_int_equal(said.n, 0);
    for (size_t i = 0; i < COUNT(texts); i++) {
        bool ok = header_decode(str_of(texts[i].value), room, &said);
        assert_int_equal(ok, texts[i].said != NULL);
        if (ok)
            assert_true(str_is(said, texts[i].said));
    }
}

static bool says(const char *value, json_t *v)
{
    bool ok = header_says(str_of(value), v);

    json_decref(v);
    return ok;
}

static void test_numbers(void **state)
{
    (void)state;
    assert_true(says("7", json_integer(7)));
    assert_true(says("07", json_integer(7)));
    assert_true(says("+7", json_integer(7)));
    assert_true(says("7.0", json_integer(7)));
    assert_true(says("7", json_real(7)));
    assert_true(says("-9223372036854775808", json_integer(INT64_MIN)));
    assert_true(says("9223372036854775807", json_integer(INT64_MAX)));
    assert_false(says("9223372036854775808", json_integer(INT64_MAX)));
    assert_false(says("9223372036854775806", json_integer(INT64_MAX)));
    assert_false(says("", json_integer(0)));
    assert_false(says("0x7", json_integer(7)));
    assert_false(says("7 ", json_integer(8)));
    assert_false(says("nan", json_integer(0)));
    assert_false(says("inf", json_integer(0)));
    assert_false(says("7,0", json_integer(7)));
}

static void test_others(void **state)
{
    (void)state;
    assert_true(says("true", json_true()));
    assert_true(says("false", json_false()));
    assert_false(says("True", json_true()));
    assert_false(says("1", json_true()));
    assert_true(says("7", json_string("7")));
    assert_false(says("07", json_string("7")));
    assert_false(says("null", json_null()));
}

/* --- marked arguments --- */

static const struct tool marked = {
    .name = "t",
    .schema = "{\"type\":\"object\",\"properties\":{"
              "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
              "\"deep\":{\"type\":\"object\",\"properties\":{"
              "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"Deep-N\"}}},"
              "\"list\":{\"type\":\"array\",\"items\":{\"x-mcp-header\":\"No\"}}}}",
};

struct said {
    const char *region, *n;
};

static struct str lookup(void *arg, const char *name)
{
    const struct said *said = arg;

    if (strcasecmp(name, "mcp-param-region") == 0)
        return str_of(said->region);
    if (strcasecmp(name, "mcp-param-deep-n") == 0)
        return str_of(said->n);
    fail_msg("nobody marked %s", name);
    return (struct str){0};
}

static bool fits(const char *args, const char *region, const char *n)
{
    json_t *v = json_loads(args, 0, NULL);
    struct said said = {region, n};
    const char *why = headers_differ(&marked, v, lookup, &said);

    json_decref(v);
    return !why;
}

static void test_marked(void **state)
{
    (void)state;
    assert_true(fits("{}", NULL, NULL));
    assert_true(fits("{\"region\":\"eu\"}", "eu", NULL));
    assert_true(fits("{\"region\":null,\"deep\":{\"n\":null}}", NULL, NULL));
    assert_true(fits("{\"deep\":{\"n\":7},\"list\":[1]}", NULL, "07"));
    assert_true(fits("{\"region\":[]}", NULL, NULL));
    assert_false(fits("{\"region\":\"eu\"}", NULL, NULL));
    assert_false(fits("{\"region\":\"eu\"}", "us", NULL));
    assert_false(fits("{}", "eu", NULL));
    assert_false(fits("{\"deep\":{\"n\":7}}", NULL, "8"));
    assert_false(fits("{\"deep\":{\"n\":7}}", NULL, NULL));
    assert_true(headers_differ(&(struct tool){.name = "u"}, NULL, lookup, NULL) == NULL);
}

/* --- revisions: each era has a newest one, and each is found by its name alone --- */

static void test_versions_are_found(void **state)
{
    (void)state;
    for (const struct protocol_version *v = versions; v->name; v++)
        assert_ptr_equal(version_find(str_of(v->name)), v);
}

static void test_no_other_version_is(void **state)
{
    static const char *const rows[] = {"",          "2025",       "2025-11-25 ",
                                       "2025-11-2", "2024-10-07", "latest"};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_null(version_find(str_of(rows[i])));
    assert_null(version_find((struct str){NULL, 0}));
    assert_null(version_find(STR("2025-11-25\0")));
}

static void test_newest_of_an_era(void **state)
{
    (void)state;
    assert_string_equal(version_newest(ERA_LEGACY)->name, "2025-11-25");
    assert_string_equal(version_newest(ERA_MODERN)->name, "2026-07-28");
}

static void test_the_list_is_what_http_serves(void **state)
{
    json_t *list = versions_list(), *v;
    size_t i;

    (void)state;
    assert_int_equal(json_array_size(list), 4);
    json_array_foreach(list, i, v)
        assert_false(version_find(json_view(v))->has & HAS_STDIO_ONLY);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_marked),
        cmocka_unit_test(test_versions_are_found),
        cmocka_unit_test(test_no_other_version_is),
        cmocka_unit_test(test_newest_of_an_era),
        cmocka_unit_test(test_the_list_is_what_http_serves),
    };

    return RUN(tests);
}
