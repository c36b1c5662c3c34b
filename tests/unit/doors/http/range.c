/* Range headers. */
#include "doors/http/http_int.h"

#include "unit.h"

static void test_ranges(void **state)
{
    static const struct {
        const char *header;
        uint64_t size;
        enum range range;
        uint64_t from, count;
    } rows[] = {
        {NULL,                                   10, RANGE_ALL,    0, 10},
        {"bytes=0-",                             10, RANGE_PART,   0, 10},
        {"bytes=0-0",                            10, RANGE_PART,   0, 1 },
        {"bytes=3-5",                            10, RANGE_PART,   3, 3 },
        {"bytes=3-99",                           10, RANGE_PART,   3, 7 },
        {"bytes=9-",                             10, RANGE_PART,   9, 1 },
        {"bytes=10-",                            10, RANGE_BEYOND, 0, 10},
        {"bytes=0-",                             0,  RANGE_BEYOND, 0, 0 },
        {"bytes=-3",                             10, RANGE_PART,   7, 3 },
        {"bytes=-99",                            10, RANGE_PART,   0, 10},
        {"bytes=-0",                             10, RANGE_BEYOND, 0, 10},
        {"bytes=-3",                             0,  RANGE_BEYOND, 0, 0 },
        {"bytes=2-18446744073709551615",         10, RANGE_PART,   2, 8 },
        {"bytes=99999999999999999999999999999-", 10, RANGE_BEYOND, 0, 10},
        {"bytes=-99999999999999999999999999999", 10, RANGE_PART,   0, 10},
        {"bytes=5-3",                            10, RANGE_ALL,    0, 10},
        {"bytes=",                               10, RANGE_ALL,    0, 10},
        {"bytes=-",                              10, RANGE_ALL,    0, 10},
        {"bytes=1",                              10, RANGE_ALL,    0, 10},
        {"bytes=1-2,4-5",                        10, RANGE_ALL,    0, 10},
        {"bytes=1-x",                            10, RANGE_ALL,    0, 10},
        {"bytes= 1-2",                           10, RANGE_ALL,    0, 10},
        {"lines=1-2",                            10, RANGE_ALL,    0, 10},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t from, count;
        enum range got = range_parse(str_of(rows[i].header), rows[i].size, &from, &count);
        if (got != rows[i].range || from != rows[i].from || count != rows[i].count)
            fail_msg("%s of %d: %d, %d bytes from %d", rows[i].header, (int)rows[i].size, got,
                     (int)count, (int)from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
    };
    return RUN(tests);
}
