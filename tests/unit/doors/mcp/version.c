/* Revisions of the protocol: each era has a newest one, and each is found by its name alone. */
#include "doors/mcp/mcp_int.h"
#include "unit.h"

static void test_each_is_found(void **state)
{
    (void)state;
    for (const struct version *v = versions; v->name; v++)
        assert_ptr_equal(version_find(str_of(v->name)), v);
}

static void test_nothing_else_is(void **state)
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
    json_array_foreach(list, i, v) assert_false(version_find(json_view(v))->has & HAS_STDIO_ONLY);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_found),
        cmocka_unit_test(test_nothing_else_is),
        cmocka_unit_test(test_newest_of_an_era),
        cmocka_unit_test(test_the_list_is_what_http_serves),
    };
    return RUN(tests);
}
