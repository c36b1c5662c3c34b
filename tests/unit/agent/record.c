/* A record as the store has it: what an earlier version wrote is read, and written back the same.
 */
#include "agent/agent_int.h"
#include "unit.h"

static const char stored[] =
    "{\"id\":\"toolu_1\",\"status\":\"waiting_for_input\",\"sandbox_id\":\"sess_1\",\"plan\":["
    "\"a\"],"
    "\"logs\":\"x\\n\",\"total_rounds\":2,\"files\":[{\"path\":\"a.png\",\"name\":\"a.png\","
    "\"mime\":\"image/png\",\"size\":3,\"image\":true}],\"answer\":null,\"usage\":{"
    "\"input_tokens\":10,\"output_tokens\":5,\"calls\":3},\"error\":null,\"question\":{"
    "\"prompt\":\"May it?\",\"approval\":\"apr_1\",\"expires_ms\":9},\"created_ms\":1,"
    "\"started_ms\":2,\"ended_ms\":0,\"inner\":{\"state\":\"wait\",\"budget\":{\"plan_steps\":6,"
    "\"rounds\":20,\"attempts\":3,\"run_ms\":60000,\"wall_ms\":600000,\"model_ms\":120000,"
    "\"input_chars\":400000,\"tokens\":2000000,\"wait_ms\":300000},\"talk\":[{\"line\":\"l\"}],"
    "\"runs\":[null,\"exec_1\"],\"seen\":{\"00ff\":1},\"known\":[\"k\"],\"can_answer\":true,"
    "\"external\":false,\"at_ms\":7,\"pool\":\"main\",\"input_dir\":\"\",\"model\":\"\","
    "\"own_only\":false,\"no_replan\":false,\"caller\":{\"tenant\":\"acme\",\"key\":\"key_1\","
    "\"request\":\"req_1\",\"door\":\"ubik\",\"admin\":false,\"approver\":true},\"given\":[],"
    "\"session\":\"sess_1\",\"deadline_ms\":600002,\"turns\":3,\"step\":0,"
    "\"rounds\":4,\"code\":\"print(1)\",\"lasting\":true,\"pending\":{\"parts\":[]}},"
    "\"tool\":\"code_execution\",\"owner\":\"ann\",\"request\":\"count\\u0000\",\"context\":\"\"}";

/* Whether each member of a is in b, with the same value. */
static void assert_within(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)a, key, v) {
        if (json_is_object(v))
            assert_within(v, json_object_get(b, key));
        else
            assert_true(json_equal(v, json_object_get(b, key)));
    }
}

static void test_a_stored_record_is_read_and_written(void **state)
{
    json_t *v = json_loads(stored, JSON_ALLOW_NUL, NULL), *again, *shown;
    struct run_record r, copy;

    (void)state;
    assert_true(record_read(&r, v));
    assert_true(r.state == RUN_WAIT && r.status == RUN_WAITING && r.usage.calls == 3);
    assert_true(r.lasting && r.can_answer && !r.external && !r.answer && r.deadline_ms == 600002);
    assert_string_equal(r.caller.tenant, "acme");
    assert_string_equal(r.caller.door, "ubik");
    assert_true(r.caller.approver && !r.caller.admin && r.budget.wait_ms == 300000);
    again = record_json(&r, true);
    assert_within(v, again);
    assert_true(record_read(&copy, again));
    json_decref(v);
    v = record_json(&copy, true);
    assert_true(json_equal(v, again));
    shown = record_json(&copy, false);
    json_object_del(v, "inner");
    assert_true(json_equal(shown, v));
    json_decref(v);
    json_decref(again);
    json_decref(shown);
    record_done(&r);
    record_done(&copy);
}

static void test_what_is_no_record_is_over(void **state)
{
    struct run_record r;

    (void)state;
    assert_false(record_read(&r, NULL));
    record_done(&r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stored_record_is_read_and_written),
        cmocka_unit_test(test_what_is_no_record_is_over),
    };

    return RUN(tests);
}
