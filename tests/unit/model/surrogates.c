/* Characters in halves. */
#include "golden.h"
#include "model/model_int.h"

static void joins(unsigned *half, const char *given, const char *wanted)
{
    AUTO(buf_done) struct buf b = BUF(4096);
    struct str got = surrogates_join(&b, str_of(given), half);

    assert_int_equal(got.n, strlen(wanted));
    assert_memory_equal(got.p, wanted, got.n);
}

static void test_halves(void **state)
{
    unsigned half = 0;

    (void)state;
    joins(&half, "{\"t\":\"a\"}", "{\"t\":\"a\"}");
    joins(&half, "{\"t\":\"\\ud83d\\uDE00\"}", "{\"t\":\"\\ud83d\\uDE00\"}"); /* a pair */
    joins(&half, "{\"t\":\"a\\ud83d\"}", "{\"t\":\"a\"}");
    assert_int_equal(half, 0xd83d);
    joins(&half, "{\"t\":\"x\"}", "{\"t\":\"x\"}"); /* such as a ping */
    joins(&half, "{\"t\":\"\\uDe00b\"}", "{\"t\":\"\\ud83d\\ude00b\"}");
    assert_int_equal(half, 0);
    joins(&half, "{\"t\":\"\\ude00\"}", "{\"t\":\"\\ufffd\"}"); /* nobody's second half */
    joins(&half, "{\"t\":\"\\ud83db\"}", "{\"t\":\"\\ufffdb\"}");
    joins(&half, "\\ud83d", "\\ufffd");
    joins(&half, "{\"t\":\"\\\\ud83d\"}", "{\"t\":\"\\\\ud83d\"}"); /* no escape */
    joins(&half, "{\"t\":\"\\ud83\"}", "{\"t\":\"\\ud83\"}");
    assert_int_equal(half, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_halves)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
