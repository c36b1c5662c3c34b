/* Conditions on a call: what can be said, what holds, and what cannot be read. */
#include "service/service_int.h"
#include "unit.h"

static bool holds(const char *text, const char *args)
{
    json_t *v = json_loads(args, 0, NULL);
    const char *code = json_string_value(json_object_get(v, "code"));
    struct approval_spec spec = {
        .tool = STR("run_code"), .language = STR("python"), .code = str_of(code), .args = v};
    struct err e = {0};
    struct when *w = when_new(text, &e);
    bool held;

    if (!w)
        fail_msg("%s: %s", text, e.text);
    held = when_holds(w, &spec);
    when_free(w);
    json_decref(v);
    return held;
}

static const struct {
    const char *text, *args;
    bool holds;
} cases[] = {
  /* the whole value, or a part of it */
    {"code=abc",                "{\"code\":\"abc\"}",          true },
    {"code=abc",                "{\"code\":\"abcd\"}",         false},
    {"code~bc",                 "{\"code\":\"abcd\"}",         true },
    {"code~BC",                 "{\"code\":\"abcd\"}",         false},
    {"code!=abc",               "{\"code\":\"abcd\"}",         true },
    {"code!~bc",                "{\"code\":\"abcd\"}",         false},
 /* patterns */
    {"code=a*d",                "{\"code\":\"abcd\"}",         true },
    {"code=a?c*",               "{\"code\":\"abc\"}",          true },
    {"code=*",                  "{\"code\":\"\"}",             true },
    {"code=a*b*c",              "{\"code\":\"a-b-b-c\"}",      true },
    {"code=a*b*c",              "{\"code\":\"a-c-b\"}",        false},
    {"code~a*d",                "{\"code\":\"abcd\"}",         false},
 /* any of the words, any of the rules, all of the tests */
    {"code~x|y | c",            "{\"code\":\"abc\"}",          true },
    {"code~x, code~c",          "{\"code\":\"abc\"}",          true },
    {"code~a & code~c",         "{\"code\":\"abc\"}",          true },
    {"code~a & code~x",         "{\"code\":\"abc\"}",          false},
    {"code~x & code~a, code~b", "{\"code\":\"abc\"}",          true },
    {"code~a & code~x, code~y", "{\"code\":\"abc\"}",          false},
    {"code~y, code~a & code~x", "{\"code\":\"abc\"}",          false},
 /* quotes */
    {"code~\"a, b | c & d\"",   "{\"code\":\"a, b | c & d\"}", true },
    {"code = \" x\"",           "{\"code\":\" x\"}",           true },
    {"code=\"\\\"\\\\\"",       "{\"code\":\"\\\"\\\\\"}",     true },
 /* what is always there, and what is no string */
    {"tool=run_*",              "{}",                          true },
    {"language=shell",          "{\"language\":\"shell\"}",    false},
    {"language!=shell",         "{}",                          true },
    {"timeout_ms=100",          "{\"timeout_ms\":100}",        true },
    {"background=true",         "{\"background\":true}",       true },
    {"env~\"\\\"HOME\\\"\"",    "{\"env\":{\"HOME\":\"/x\"}}", true },
    {"nothing=*",               "{}",                          false},
    {"nothing!=x",              "{}",                          true },
    {"code~x",                  "{}",                          false},
};

static void test_what_holds(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (holds(cases[i].text, cases[i].args) != cases[i].holds)
            fail_msg("%s of %s", cases[i].text, cases[i].args);
}

static void test_none_is_any(void **state)
{
    struct approval_spec spec = {0};

    (void)state;
    assert_true(when_holds(NULL, &spec));
}

static void test_what_cannot_be_read(void **state)
{
    static const char *const bad[][2] = {
        {"",             "the name of an argument is missing at its end"},
        {"code",         "=, !=, ~ or !~ is missing at its end"         },
        {"code~",        "a value is missing at its end"                },
        {"code~a,",      "the name of an argument is missing at its end"},
        {"code~a|",      "a value is missing at its end"                },
        {"code~|a",      "a value is missing before '|a'"               },
        {"code~\"a",     "a quotation mark is missing at its end"       },
        {"code~\"\"",    "a value is missing at its end"                },
        {"code~\"a\" b", "a comma, & or | is missing before 'b'"        },
        {"code~a\"b\"",  "a comma, & or | is missing before '\"b\"'"    },
        {"code!a",       "=, !=, ~ or !~ is missing before 'a'"         },
        {"a=b & ",       "the name of an argument is missing at its end"},
        {"a=b; c=d, !",  "the name of an argument is missing before '!'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err e = {0};
        assert_null(when_new(bad[i][0], &e));
        assert_int_equal(e.kind, ERR_CALLER);
        assert_string_equal(e.text, bad[i][1]);
    }
}

static void test_no_more_than_so_many(void **state)
{
    char tests[65 * 4 + 1] = "", words[2 + 65 * 2 + 1] = "a=";
    struct err e;
    struct when *w;

    (void)state;
    for (size_t i = 0; i < 65; i++) {
        memcpy(tests + i * 4, i < 64 ? "a=b," : "a=b", i < 64 ? 4 : 3);
        memcpy(words + 2 + i * 2, i < 64 ? "x|" : "x", i < 64 ? 2 : 1);
    }
    assert_null(when_new(tests, &e));
    assert_has(e.text, "more than 64");
    assert_null(when_new(words, &e));
    assert_has(e.text, "more values");
    tests[64 * 4 - 1] = words[2 + 64 * 2 - 1] = '\0';
    w = when_new(tests, &e);
    assert_non_null(w);
    when_free(w);
    w = when_new(words, &e);
    assert_non_null(w);
    when_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_holds),
        cmocka_unit_test(test_none_is_any),
        cmocka_unit_test(test_what_cannot_be_read),
        cmocka_unit_test(test_no_more_than_so_many),
    };

    return RUN(tests);
}
