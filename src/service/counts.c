/* Counters for /metrics. */
#include "service/service_int.h"

/* From a tenth of a millisecond to five minutes, about three to a decade. */
static const uint64_t bounds_us[LATENCY_BUCKETS] = {
    100,    250,    500,     1000,    2500,     5000,     10000,    25000,
    100000, 250000, 1000000, 2500000, 10000000, 30000000, 60000000, 300000000,
};

uint64_t histogram_bound_us(size_t i)
{
    assert(i < LATENCY_BUCKETS);
    return bounds_us[i];
}

void histogram_add(struct histogram *h, uint64_t us)
{
    size_t i = 0;

    while (i < LATENCY_BUCKETS && us > bounds_us[i])
        i++;
    h->bucket[i]++;
    h->count++;
    h->sum_us += us;
}

const struct service_counts *service_counts(struct service *sv)
{
    return &sv->counts;
}

struct store_counts service_store_counts(struct service *sv)
{
    return store_counts(sv->store);
}
