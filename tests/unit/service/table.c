/* Things by name. */
#include "service/service_int.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { MANY = 1000 };

static void test_put_get_drop(void **state)
{
    static char keys[MANY][16];
    struct table t = {0};

    (void)state;
    assert_null(table_get(&t, "a"));
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key-%d", i);
        table_put(&t, keys[i], keys[i]);
    }
    for (int i = 0; i < MANY; i += 2)
        table_drop(&t, keys[i]);
    assert_int_equal(t.n, MANY / 2);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(table_get(&t, keys[i]), i % 2 ? keys[i] : NULL);
    table_done(&t);
}

static void test_all(void **state)
{
    static char keys[3][4] = {"a", "b", "c"};
    struct table t = {0};
    unsigned seen = 0;
    void **all;

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++)
        table_put(&t, keys[i], keys[i]);
    all = table_all(&t);
    for (size_t i = 0; i < t.n; i++)
        seen |= IN(*(char *)all[i] - 'a');
    assert_int_equal(seen, 7);
    free(all);
    table_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_drop),
        cmocka_unit_test(test_all),
    };

    return RUN(tests);
}
