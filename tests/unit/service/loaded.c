/* The states of a session. */
#include "service/service_int.h"
#include "unit.h"

static void test_names(void **state)
{
    static const char *const names[] = {"starting", "idle", "running", "asleep", "ended"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(session_state_name((enum session_state)i), names[i]);
}

static void test_edges(void **state)
{
    /* from a row to a column: starting, idle, running, asleep, ended */
    static const bool can[5][5] = {
        {0, 1, 1, 1, 1},
        {0, 0, 1, 1, 1},
        {0, 1, 0, 1, 1},
        {1, 0, 0, 0, 1},
        {0, 0, 0, 0, 0},
    };

    (void)state;
    for (int from = 0; from < 5; from++)
        for (int to = 0; to < 5; to++)
            assert_int_equal(session_state_can((enum session_state)from, (enum session_state)to),
                             can[from][to]);
}

static void test_sleeps_at_the_earlier_of_both(void **state)
{
    struct loaded l = {.used_us = 5000000, .woke_us = 1000000};

    (void)state;
    l.row.idle_ms = 2000;
    l.row.lifetime_ms = 60000;
    assert_int_equal(loaded_sleeps_us(&l), 7000000);
    l.row.lifetime_ms = 5000;
    assert_int_equal(loaded_sleeps_us(&l), 6000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_sleeps_at_the_earlier_of_both),
    };

    return RUN(tests);
}
