/* How much memory a transcript takes, as it counts it. */
#include "record/record.h"
#include "unit.h"

static void test_bytes_are_counted(void **state)
{
    struct event out = {.kind = EVENT_STDOUT, .text = STR("0123456789")};
    struct event shown = {.kind = EVENT_DISPLAY};
    struct event raised = {.kind = EVENT_ERROR, .error.message = STR("0123456789")};
    struct transcript t;
    size_t before;

    (void)state;
    transcript_init(&t);
    assert_int_equal(t.bytes, 0);
    transcript_event(&t, &out);
    before = t.bytes;
    assert_between(before, 10, 1000);
    transcript_event(&t, &out); /* a piece more of the same event */
    assert_int_equal(t.bytes, before + 10);
    shown.bundle.count = 1;
    shown.bundle.part[0] = (struct mime_part){
        STR("image/png"), {"xyz", 3000}
    };
    assert_between(transcript_cost(&t, &shown), 4000, 5000); /* base64 */
    assert_between(transcript_cost(&t, &raised), 10, 1000);
    raised.error.count = EVENT_FRAMES_MAX;
    assert_true(transcript_cost(&t, &raised) > EVENT_FRAMES_MAX * (size_t)100);
    transcript_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_counted),
    };

    return RUN(tests);
}
