#include "doors/http/http_int.h"

#include "unit.h"

#include <stdio.h>

static bool splits(const char *target)
{
    struct str path, query;
    struct err e;

    return target_split(str_of(target), &path, &query, &e) == 0;
}

static void test_targets(void **state)
{
    struct str path, query;
    struct err e;

    (void)state;
    assert_int_equal(target_split(STR("/a%20b?c=d?e"), &path, &query, &e), 0);
    assert_true(str_is(path, "/a%20b") && str_is(query, "c=d?e"));
    assert_int_equal(target_split(STR("/"), &path, &query, &e), 0);
    assert_true(str_is(path, "/") && query.n == 0);
    assert_true(splits("/?") && splits("/\xc3\xa9"));
    assert_false(splits("") || splits("a") || splits("*") || splits("http://a/b") || splits("?a"));
    assert_false(splits("/a b") || splits("/a\tb") || splits("/a#b") || splits("/\x7f"));
    assert_false(splits("/%") || splits("/%1") || splits("/%1g") || splits("/%00"));
    assert_false(splits("/?%") || splits("/?%00") || splits("/?a b"));
}

static void test_decoded(void **state)
{
    char room[32];
    size_t n;
    struct err e;

    (void)state;
    assert_int_equal(percent_decode(STR("a%2fb+%2B%fF"), false, room, &n, &e), 0);
    assert_true(n == 6 && memcmp(room, "a/b++\xff", 7) == 0);
    assert_int_equal(percent_decode(STR("a+b%2B"), true, room, &n, &e), 0);
    assert_string_equal(room, "a b+");
    assert_int_equal(percent_decode(STR("%252e"), false, room, &n, &e), 0);
    assert_string_equal(room, "%2e");
    assert_int_equal(percent_decode(STR("%0"), false, room, &n, &e), -1);
    assert_int_equal(percent_decode(STR("a%00"), false, room, &n, &e), -1);
}

/* The parameters, one after the other, or NULL. */
static const char *fits(const char *pattern, const char *path)
{
    static char out[128];
    struct http_pair p[PARAMS_MAX];
    size_t count, n = 0;

    if (!path_fits(pattern, str_of(path), p, &count))
        return NULL;
    *out = '\0';
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%.*s=%.*s%s", (int)p[i].name.n,
                              p[i].name.p, (int)p[i].value.n, p[i].value.p, p[i].rest ? ";;" : ";");
    return out;
}

static void test_paths(void **state)
{
    (void)state;
    assert_string_equal(fits("/v1/a", "/v1/a"), "");
    assert_string_equal(fits("/", "/"), "");
    assert_null(fits("/v1/a", "/v1/a/"));
    assert_null(fits("/v1/a", "/v1//a"));
    assert_null(fits("/v1/a", "/v1"));
    assert_null(fits("/v1/a", "/v1/A"));
    assert_null(fits("/v1/a", "/v1/%61"));
    assert_string_equal(fits("/s/{id}/x", "/s/1/x"), "id=1;");
    assert_null(fits("/s/{id}/x", "/s//x"));
    assert_null(fits("/s/{id}", "/s/"));
    assert_null(fits("/s/{id}", "/s/a/b"));
    assert_string_equal(fits("/s/{id}", "/s/a%2Fb"), "id=a%2Fb;");
    assert_string_equal(fits("/s/{id}/f/{path...}", "/s/1/f/a/../b//c"), "id=1;path=a/../b//c;;");
    assert_string_equal(fits("/s/{id}/f/{path...}", "/s/1/f//a"), "id=1;path=/a;;");
    assert_null(fits("/s/{id}/f/{path...}", "/s/1/f/"));
    assert_null(fits("/s/{id}/f/{path...}", "/s/1/f"));
}

static int param(const char *value, bool rest)
{
    struct http_pair p = {STR("x"), str_of(value), rest};
    char room[64];
    struct err e;

    return path_param(&p, room, &e);
}

static void test_params(void **state)
{
    (void)state;
    assert_int_equal(param("a", false), 0);
    assert_int_equal(param("...", false), 0);
    assert_int_equal(param("%252f", false), 0);
    assert_int_equal(param("..", false), -1);
    assert_int_equal(param("%2e", false), -1);
    assert_int_equal(param("a%2fb", false), -1);
    assert_int_equal(param("a%2f../b", true), 0);
    assert_int_equal(param("%00", true), -1);
}

static void test_queries(void **state)
{
    struct http_pair q[QUERY_MAX];
    char room[512], many[2 * QUERY_MAX + 1];
    size_t n;
    struct err e;

    (void)state;
    assert_int_equal(query_split(STR("a=b&c&d=%26=x&&=e"), room, q, &n, &e), 0);
    assert_int_equal(n, 4);
    assert_true(str_is(q[0].name, "a") && str_is(q[0].value, "b"));
    assert_true(str_is(q[1].name, "c") && q[1].value.p && q[1].value.n == 0);
    assert_true(str_is(q[2].name, "d") && str_is(q[2].value, "&=x"));
    assert_true(q[3].name.n == 0 && str_is(q[3].value, "e"));
    assert_int_equal(query_split(STR(""), room, q, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(query_split(STR("a=%ff"), room, q, &n, &e), -1);
    for (size_t i = 0; i < sizeof(many); i++)
        many[i] = i % 2 ? '&' : 'a';
    assert_int_equal(query_split((struct str){many, sizeof(many) - 1}, room, q, &n, &e), 0);
    assert_int_equal(query_split((struct str){many, sizeof(many)}, room, q, &n, &e), -1);
}

static void test_lists(void **state)
{
    struct str rest = STR(" a, ,b\t"), one;

    (void)state;
    assert_true(str_next(&rest, ',', &one) && str_is(one, "a"));
    assert_true(str_next(&rest, ',', &one) && one.n == 0);
    assert_true(str_next(&rest, ',', &one) && str_is(one, "b"));
    assert_false(str_next(&rest, ',', &one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets), cmocka_unit_test(test_decoded),
        cmocka_unit_test(test_paths),   cmocka_unit_test(test_params),
        cmocka_unit_test(test_queries), cmocka_unit_test(test_lists),
    };
    return RUN(tests);
}
