/* Where a path leads. */
#include "doors/azure/azure_int.h"
#include "unit.h"

static bool read(const char *path, bool arm, struct azure_target *ret)
{
    static char room[1024];

    return azure_target_read(str_of(path), arm, room, ret);
}

static void test_places(void **state)
{
    static const struct {
        const char *path;
        bool arm;
        const char *pool, *rest;
    } rows[] = {
        {"pools/p",                                                   false, "p", ""            },
        {"pools//p//code/execute//",                                  false, "p", "code/execute"},
        {"POOLS/p/files",                                             false, "p", "files"       },
        {"pools",                                                     false, "",  ""            },
        {"s/resourceGroups/g/sessionPools/p/mcp",                     true,  "p", "mcp"         },
        {"s/resourcegroups/g/providers/microsoft.app/sessionpools/p", true,  "p", ""            },
        {"s/providers/Microsoft.App/sessionPools",                    true,  "",  ""            },
    };
    struct azure_target p;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(read(rows[i].path, rows[i].arm, &p));
        assert_true(str_is(p.pool, rows[i].pool));
        assert_true(str_is(p.rest, rows[i].rest));
    }
}

static void test_no_places(void **state)
{
    static const struct {
        const char *path;
        bool arm;
    } rows[] = {
        {"",                                            false},
        {"pool/p",                                      false},
        {"pools/a b",                                   false},
        {"pools/a\r\nb",                                false},
        {"s",                                           true },
        {"s/sessionPools/p",                            true },
        {"s/resourceGroups",                            true },
        {"s/resourceGroups/g/virtualMachines/v",        true },
        {"s/providers/Microsoft.App/sessionPools/p",    true },
        {"s/providers/Microsoft.Resources/deployments", true },
    };
    struct azure_target p;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_false(read(rows[i].path, rows[i].arm, &p));
}

static void test_rests(void **state)
{
    struct str name;

    (void)state;
    assert_true(rest_fits("files/**/content", STR("FILES/a/b/content"), &name));
    assert_true(str_is(name, "a/b"));
    assert_false(rest_fits("files/**/content", STR("files//content"), &name));
    assert_false(rest_fits("files/**/content", STR("files/content"), &name));
    assert_false(rest_fits("files/**", STR("files/"), &name));
    assert_true(name.p == NULL);
    assert_true(rest_fits("health", STR("Health"), &name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_no_places),
                                       cmocka_unit_test(test_rests)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
