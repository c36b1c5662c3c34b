#include "base/json.h"
#include "doors/http/http_int.h"

#include "unit.h"

#include <stdio.h>

static const struct field inner[] = {
    {"path", FIELD_TEXT, REQUIRED, 1, 4, NULL, ""},
    {NULL,     FIELD_END             },
};
static const struct field fields[] = {
    {"text",     FIELD_TEXT,       OPTIONAL, 0, 3, NULL, ""},
    {"count",         FIELD_INT,                        OPTIONAL, 1, 9, NULL, ""},
    {"wall",        FIELD_NUMBER,                        OPTIONAL, -0.5, 2, NULL, ""},
    {"flag",FIELD_BOOL,OPTIONAL, 0, 0, NULL, ""},
    {"kind",         FIELD_ENUM,                     OPTIONAL, 0, 0, "one|two", ""},
    {"env",          FIELD_MAP,                     OPTIONAL, 0, 2, NULL, ""},
    {"one",  FIELD_OBJECT,OPTIONAL, 0, 0, "inner", ""},
    {"list",      FIELD_LIST,                    OPTIONAL, 0, 2, "inner", ""},
    {"names",     FIELD_LIST,                   OPTIONAL, 0, 0, "string", ""},
    {"any",         FIELD_ANY,                        OPTIONAL, 0, 0, NULL, ""},
    {NULL,        FIELD_END                       },
};
static const struct schema schemas[] = {
    {"inner", "", inner},
};
static const struct door door = {"d", NULL, 0, schemas, COUNT(schemas), NULL};
static const struct tables tables = {{&door}, 1};

/* Where it is wrong, "" when it is not, and what the reader says when it cannot be read. */
static const char *wrong(const char *text)
{
    static char param[PARAM_TEXT];
    static struct err e;
    json_t *v = NULL;
    int rc;

    if (json_read_any(str_of(text), &v, &e) < 0)
        return e.text;
    rc = json_check(&tables, v, fields, false, param, &e);
    json_decref(v);
    if (rc == 0)
        assert_string_equal(param, "");
    return param;
}

static void test_members(void **state)
{
    (void)state;
    assert_string_equal(wrong("{}"), "");
    assert_string_equal(wrong("{\"text\":\"abc\",\"count\":9,\"wall\":-0.5,\"flag\":true,"
                              "\"kind\":\"two\",\"env\":{\"a\":\"\"},\"one\":{\"path\":\"a\"},"
                              "\"list\":[{\"path\":\"a\"}],\"names\":[],\"any\":null}"),
                        "");
    assert_string_equal(wrong("{\"text\":\"abcd\"}"), "text");
    assert_string_equal(wrong("{\"count\":10}"), "count");
    assert_string_equal(wrong("{\"count\":1.0}"), "count");
    assert_string_equal(wrong("{\"wall\":-0.6}"), "wall");
    assert_string_equal(wrong("{\"kind\":\"\"}"), "kind");
    assert_string_equal(wrong("{\"env\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}"), "env");
    assert_string_equal(wrong("{\"env\":{\"a\":[]}}"), "env.a");
    assert_string_equal(wrong("{\"one\":{}}"), "one.path");
    assert_string_equal(wrong("{\"one\":{\"path\":\"a\",\"x\":1}}"), "one.x");
    assert_string_equal(wrong("{\"list\":[{\"path\":\"a\"},{\"path\":\"\"}]}"), "list[1].path");
    assert_string_equal(wrong("{\"list\":[[]]}"), "list[0]");
    assert_string_equal(wrong("{\"names\":[\"a\",null]}"), "names[1]");
    assert_string_equal(wrong("{\"other\":1}"), "other");
}

static void test_long_names(void **state)
{
    char name[901] = "", text[1024];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    snprintf(text, sizeof(text), "{\"env\":{\"%s\":1}}", name);
    assert_int_equal(strlen(wrong(text)), PARAM_TEXT - 1);
}

static void test_unreadable(void **state)
{
    (void)state;
    assert_non_null(strstr(wrong("{\n\"a\" 1}"), "line 2, column 5"));
    assert_null(strstr(wrong("{\"secret"), "secret"));
    assert_non_null(strstr(wrong(""), "not valid JSON"));
}

static void test_depth(void **state)
{
    char open[JSON_DEPTH_MAX + 1] = "", shut[JSON_DEPTH_MAX + 1] = "", text[3 * JSON_DEPTH_MAX];

    (void)state;
    memset(open, '[', JSON_DEPTH_MAX - 1);
    memset(shut, ']', JSON_DEPTH_MAX - 1);
    snprintf(text, sizeof(text), "{\"any\":%s%s}", open, shut);
    assert_string_equal(wrong(text), "");
    snprintf(text, sizeof(text), "{\"any\":[%s%s]}", open, shut);
    assert_has(wrong(text), "levels deep");
}

static const char *query_wrong(const char *text)
{
    struct http_pair q[QUERY_MAX];
    const char *param = "";
    char room[256];
    static char out[64];
    size_t n;
    struct err e;

    assert_int_equal(query_split(str_of(text), room, q, &n, &e), 0);
    if (query_check(q, n, fields, &param, &e) == 0)
        return "";
    snprintf(out, sizeof(out), "%s", param);
    return out;
}

static void test_queries(void **state)
{
    (void)state;
    assert_string_equal(query_wrong("text=abc&count=9&wall=-0.25&flag=false&kind=one"), "");
    assert_string_equal(query_wrong("text=abcd"), "text");
    assert_string_equal(query_wrong("count=1.5"), "count");
    assert_string_equal(query_wrong("count=0x1"), "count");
    assert_string_equal(query_wrong("count=+1"), "count");
    assert_string_equal(query_wrong("wall=1.2.3"), "wall");
    assert_string_equal(query_wrong("wall=inf"), "wall");
    assert_string_equal(query_wrong("wall=-"), "wall");
    assert_string_equal(query_wrong("flag=1"), "flag");
    assert_string_equal(query_wrong("kind=one&kind=two"), "kind");
    assert_string_equal(query_wrong("other"), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),    cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_unreadable), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_queries),
    };
    return RUN(tests);
}
