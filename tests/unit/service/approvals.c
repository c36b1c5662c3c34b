/* What an approval stands for, and in which pool an execution may run. */
#include "service/service_int.h"
#include "unit.h"

static uint8_t scene[32]; /* what the session has */

static void digest(const char *tool, const char *session, bool implied, const char *pool,
                   const char *args, uint8_t ret[32])
{
    json_t *v = json_loads(args, 0, NULL);
    struct approval_spec spec = {
        .tool = str_of(tool), .session = str_of(session), .implied = implied, .args = v};

    assert_non_null(v);
    approval_digest(&spec, pool, scene, ret);
    json_decref(v);
}

static bool is_same(const uint8_t a[32], const uint8_t b[32])
{
    return memcmp(a, b, 32) == 0;
}

static void test_however_it_is_written(void **state)
{
    uint8_t a[32], b[32];

    (void)state;
    digest("t", "s", false, "p", "{\"a\": 1, \"b\": {\"c\": \"x\", \"d\": 2}}", a);
    digest("t", "s", false, "p", "{\"b\":{\"d\":2,\"c\":\"\\u0078\"},\"a\":1}", b);
    assert_true(is_same(a, b));
}

static void test_any_difference_counts(void **state)
{
    static const struct {
        const char *tool, *session, *pool, *args;
    } others[] = {
        {"u",  "s",  "p", "{\"a\":1}"           },
        {"t",  "r",  "p", "{\"a\":1}"           },
        {"t",  "",   "p", "{\"a\":1}"           },
        {"t",  "s",  "q", "{\"a\":1}"           },
        {"t",  "s",  "p", "{\"a\":2}"           },
        {"t",  "s",  "p", "{\"a\":1.0}"         },
        {"t",  "s",  "p", "{\"a\":\"1\"}"       },
        {"t",  "s",  "p", "{\"a\":1,\"b\":null}"},
        {"ts", "",   "p", "{\"a\":1}"           },
        {"t",  "sp", "",  "{\"a\":1}"           },
    };
    uint8_t a[32], b[32];

    (void)state;
    digest("t", "s", false, "p", "{\"a\":1}", a);
    for (size_t i = 0; i < COUNT(others); i++) {
        digest(others[i].tool, others[i].session, false, others[i].pool, others[i].args, b);
        assert_false(is_same(a, b));
    }
}

static void test_another_scene_is_another_call(void **state)
{
    uint8_t a[32], b[32];

    (void)state;
    digest("t", "s", false, "p", "{}", a);
    scene[31] = 1;
    digest("t", "s", false, "p", "{}", b);
    scene[31] = 0;
    assert_false(is_same(a, b));
}

/* The session of a conversation may be another after a restart. */
static void test_a_session_that_was_not_named(void **state)
{
    uint8_t a[32], b[32];

    (void)state;
    digest("t", "s", true, "p", "{}", a);
    digest("t", "r", true, "p", "{}", b);
    assert_true(is_same(a, b));
}

static void test_clearance(void **state)
{
    char name[] = "data";
    struct pool_entry env = {.config = {.name = name}};
    static const struct execution none, other = {.cleared = "web"}, good = {.cleared = "data"};

    (void)state;
    assert_true(job_is_cleared_for(&none, &env));
    for (int policy = POLICY_ASK_FIRST; policy <= POLICY_ALWAYS_ASK; policy++) {
        env.config.approval = (enum approval_policy)policy;
        assert_false(job_is_cleared_for(&none, &env));
        assert_false(job_is_cleared_for(&other, &env));
        assert_true(job_is_cleared_for(&good, &env));
    }
}

static void test_names_of_states(void **state)
{
    (void)state;
    for (int s = 0; s < APPROVAL__STATES; s++)
        assert_int_equal(approval_state_find(str_of(approval_state_name(s))), s);
    assert_int_equal(approval_state_find(STR("lost")), -1);
    assert_int_equal(approval_state_find(STR("")), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_however_it_is_written),
        cmocka_unit_test(test_any_difference_counts),
        cmocka_unit_test(test_another_scene_is_another_call),
        cmocka_unit_test(test_a_session_that_was_not_named),
        cmocka_unit_test(test_clearance),
        cmocka_unit_test(test_names_of_states),
    };

    return RUN(tests);
}
