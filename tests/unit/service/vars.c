/* Environment variables as clients give them. */
#include "service/service_int.h"
#include "unit.h"

static int check(struct str name, struct str value, struct err *e)
{
    struct env_var v = {name, value};
    json_t *vars;
    int rc;

    *e = (struct err){0};
    rc = vars_from(&v, 1, &vars, e);
    json_decref(vars);
    return rc;
}

static void test_none(void **state)
{
    json_t *vars = (json_t *)(void *)1;
    struct err e;

    (void)state;
    assert_int_equal(vars_from(NULL, 0, &vars, &e), 0);
    assert_null(vars);
}

static void test_good(void **state)
{
    struct env_var v[] = {
        {STR("_A1"), STR("x=y \xc3\xa9")},
        {STR("B"),   STR("")            }
    };
    struct err e;
    json_t *vars;

    (void)state;
    assert_int_equal(vars_from(v, 2, &vars, &e), 0);
    assert_string_equal(json_string_value(json_object_get(vars, "_A1")), "x=y \xc3\xa9");
    assert_string_equal(json_string_value(json_object_get(vars, "B")), "");
    json_decref(vars);
}

static void test_bad(void **state)
{
    static const char secret[] = "s3cret";
    static const char *const names[] = {"", "1A", "A=B", "A B", "A-B", "\xc3\xa9"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(check(str_of(names[i]), STR("s3cret"), &e), -1);
        assert_int_equal(e.kind, ERR_CALLER);
        assert_null(strstr(e.text, secret));
    }
    assert_int_equal(check(STR("A"), (struct str){"a\0b", 3}, &e), -1);
    assert_int_equal(check(STR("A"), STR("\xff"), &e), -1);
    assert_int_equal(check((struct str){"A\0B", 3}, STR("x"), &e), -1);
}

static void test_too_much(void **state)
{
    static char big[EXEC_ENV_BYTES];
    static struct env_var many[EXEC_ENV_MAX + 1];
    struct err e;
    json_t *vars;

    (void)state;
    memset(big, 'x', sizeof(big));
    assert_int_equal(check(STR("A"), (struct str){big, sizeof(big)}, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = (struct env_var){STR("A"), STR("1")};
    assert_int_equal(vars_from(many, COUNT(many), &vars, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void assert_var(json_t *vars, const char *name, const char *value)
{
    const char *found = json_string_value(json_object_get(vars, name));

    if (!value)
        assert_null(found);
    else
        assert_string_equal(found, value);
}

static void test_proxy(void **state)
{
    static const char proxy[] = "http://127.0.0.1:3128", none[] = "localhost,127.0.0.1,::1";
    json_t *vars = json_object();

    (void)state;
    vars_add_proxy(vars);
    assert_int_equal(json_object_size(vars), 8);
    assert_var(vars, "http_proxy", proxy);
    assert_var(vars, "HTTPS_PROXY", proxy);
    assert_var(vars, "all_proxy", proxy);
    assert_var(vars, "no_proxy", none);
    assert_var(vars, "NO_PROXY", none);
    json_decref(vars);
}

/* The other spelling of a variable that is given is not ours to set. */
static void test_proxy_given(void **state)
{
    json_t *vars = json_pack("{ssssss}", "HTTPS_PROXY", "http://own:1", "no_proxy", "", "A", "1");

    (void)state;
    vars_add_proxy(vars);
    assert_int_equal(json_object_size(vars), 3 + 4);
    assert_var(vars, "HTTPS_PROXY", "http://own:1");
    assert_var(vars, "https_proxy", NULL);
    assert_var(vars, "no_proxy", "");
    assert_var(vars, "NO_PROXY", NULL);
    assert_var(vars, "HTTP_PROXY", "http://127.0.0.1:3128");
    json_decref(vars);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),  cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),   cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_proxy), cmocka_unit_test(test_proxy_given),
    };

    return RUN(tests);
}
