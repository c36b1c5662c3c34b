#include "unit.h"

#define SECOND 1000LL
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)
#define T0     (20000 * DAY)

struct moment {
    int64_t boot, now, want; /* since the first */
};

static void follow(int64_t last, const struct moment *at, size_t count)
{
    struct sure_clock c = {0};

    sure_clock_begin(&c, last, T0, 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sure_clock_read(&c, T0 + at[i].now, at[i].boot), T0 + at[i].want);
}
#define FOLLOW(last, ...)                                                                          \
    follow(last, (const struct moment[]){__VA_ARGS__},                                             \
           sizeof((const struct moment[]){__VA_ARGS__}) / sizeof(struct moment))

static void test_a_clock_that_is_kept_right(void **state)
{
    (void)state;
    FOLLOW(0, {0, 0, 0}, {HOUR, HOUR, HOUR}, {30 * DAY, 30 * DAY, 30 * DAY});
    /* NTP sets it by a little, again and again. */
    FOLLOW(T0, {HOUR, HOUR + 20 * SECOND, HOUR + 20 * SECOND},
           {2 * HOUR, 2 * HOUR + 40 * SECOND, 2 * HOUR + 40 * SECOND},
           {3 * HOUR, 3 * HOUR - 40 * SECOND, 3 * HOUR - 40 * SECOND});
}

static void test_set_forward_it_is_believed_a_day_later(void **state)
{
    (void)state;
    FOLLOW(0, {HOUR, HOUR + 365 * DAY, HOUR}, {2 * HOUR, 2 * HOUR + 365 * DAY, 2 * HOUR},
           {DAY, DAY + 365 * DAY, DAY},
           {DAY + HOUR, DAY + HOUR + 365 * DAY, DAY + HOUR + 365 * DAY});
}

static void test_set_right_again_nothing_has_happened(void **state)
{
    (void)state;
    FOLLOW(0, {HOUR, HOUR + 365 * DAY, HOUR}, {2 * HOUR, 2 * HOUR, 2 * HOUR},
           {DAY + 2 * HOUR, DAY + 3 * HOUR + 365 * DAY, DAY + 2 * HOUR}); /* a day for each time */
}

static void test_set_back_all_gets_younger(void **state)
{
    (void)state;
    FOLLOW(0, {HOUR, -365 * DAY, -365 * DAY}, {2 * HOUR, HOUR - 365 * DAY, HOUR - 365 * DAY});
}

static void test_a_start(void **state)
{
    (void)state;
    FOLLOW(T0 - HOUR, {0, 0, 0});     /* away for an hour */
    FOLLOW(T0 + 30 * DAY, {0, 0, 0}); /* the clock was ahead, and is right now */
    FOLLOW(T0 - 30 * DAY, {0, 0, -30 * DAY}, {HOUR, HOUR, HOUR - 30 * DAY},
           {DAY, DAY, DAY}); /* away for long, or the clock is wrong */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clock_that_is_kept_right),
        cmocka_unit_test(test_set_forward_it_is_believed_a_day_later),
        cmocka_unit_test(test_set_right_again_nothing_has_happened),
        cmocka_unit_test(test_set_back_all_gets_younger),
        cmocka_unit_test(test_a_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
