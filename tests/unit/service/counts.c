/* Latencies in buckets. */
#include "service/service_int.h"
#include "unit.h"

static void test_bounds_rise(void **state)
{
    (void)state;
    for (size_t i = 1; i < LATENCY_BUCKETS; i++)
        assert_true(histogram_bound_us(i) > histogram_bound_us(i - 1));
}

static void test_each_value_has_one_bucket(void **state)
{
    struct histogram h = {0};
    uint64_t sum = 0;

    (void)state;
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        histogram_add(&h, histogram_bound_us(i));     /* the last that belongs to it */
        histogram_add(&h, histogram_bound_us(i) + 1); /* the first of the next */
        sum += 2 * histogram_bound_us(i) + 1;
    }
    assert_int_equal(h.bucket[0], 1);
    for (size_t i = 1; i < LATENCY_BUCKETS; i++)
        assert_int_equal(h.bucket[i], 2);
    assert_int_equal(h.bucket[LATENCY_BUCKETS], 1);
    assert_int_equal(h.count, 2 * LATENCY_BUCKETS);
    assert_int_equal(h.sum_us, sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_rise),
        cmocka_unit_test(test_each_value_has_one_bucket),
    };

    return RUN(tests);
}
