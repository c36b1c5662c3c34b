/* What of a conversation is sent. */
#include "agent/agent_int.h"
#include "unit.h"

#include <stdio.h>

/* A record with so many rounds behind it. */
static struct run_record record_with(size_t rounds)
{
    json_t *talk = json_array();

    for (size_t i = 1; i <= rounds; i++) {
        char code[32], line[32], result[3000];
        snprintf(code, sizeof(code), "print(%zu)", i);
        snprintf(line, sizeof(line), "round %zu: ok", i);
        memset(result, 'x', sizeof(result) - 1);
        result[sizeof(result) - 1] = '\0';
        json_array_append_new(
            talk,
            json_pack("{s:[{s:s, s:s, s:s, s:{s:s}}], s:s, s:[s], s:s, s:s, s:s, s:s}", "parts",
                      "type", "call", "id", "c", "name", "run_python", "args", "code", code, "id",
                      "c", "extra", "d", "text", "", "code", code, "result", result, "line", line));
    }
    return (struct run_record){
        .request = json_string("count"),
        .context = json_string("of sheep"),
        .plan = json_pack("[s, s]", "a", "b"),
        .total_rounds = (int64_t)rounds,
        .talk = talk,
        .step = 1,
        .rounds = 6,
        .final_why = json_string("it is late"),
    };
}

static char *messages_of(const struct run_record *record, const char *kind, size_t *ret_count)
{
    size_t chars;
    json_t *messages = history_messages(record, kind, &chars);
    char *text = json_dumps(messages, JSON_COMPACT);

    *ret_count = json_array_size(messages);
    assert_true(chars > 0 && chars < strlen(text));
    json_decref(messages);
    return text;
}

static void test_three_rounds_are_whole(void **state)
{
    struct run_record r = record_with(5);
    size_t n;
    char *text = messages_of(&r, "code", &n);

    (void)state;
    assert_int_equal(n, 7);
    assert_has(text, "[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"count\"}");
    assert_has(text, "Context:\\nof sheep");
    assert_has(text, "- round 1: ok\\n- round 2: ok\\n");
    assert_null(strstr(text, "round 3: ok"));
    assert_null(strstr(text, "print(2)"));
    assert_has(text, "print(3)");
    assert_has(text, "not run: one call at a time");
    assert_has(text, "Step 2/2: b\\nRounds left: 1.\\nDone so far: 1. a;");
    mem_freep(&text);
    record_done(&r);
}

static void test_what_was_too_long_is_shorter(void **state)
{
    struct run_record r = record_with(3);
    size_t n, before;
    char *text = messages_of(&r, "code", &n);

    (void)state;
    before = strlen(text);
    mem_freep(&text);
    r.compacted = true;
    text = messages_of(&r, "code", &n);
    assert_int_equal(n, 3);
    assert_true(strlen(text) < before / 2);
    assert_has(text, "omitted");
    mem_freep(&text);
    record_done(&r);
}

/* Without tools no call is left in what is sent. */
static void test_in_text(void **state)
{
    struct run_record r = record_with(2);
    size_t n;
    char *text;

    (void)state;
    r.text_mode = true;
    text = messages_of(&r, "final", &n);
    assert_int_equal(n, 5);
    assert_null(strstr(text, "\"call\""));
    assert_null(strstr(text, "\"result\""));
    assert_has(text, "```python\\nprint(1)\\n```");
    assert_has(text, "Observation:\\nxxx");
    assert_has(text, "The work ends here: it is late.");
    mem_freep(&text);
    record_done(&r);
}

static void test_a_plan_is_asked_for_in_one_message(void **state)
{
    struct run_record r = record_with(4);
    size_t n;
    char *text = messages_of(&r, "plan", &n);

    (void)state;
    assert_int_equal(n, 1);
    assert_has(text, "{\\\"steps\\\": [");
    assert_has(text, "- round 4: ok");
    mem_freep(&text);
    record_done(&r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_rounds_are_whole),
        cmocka_unit_test(test_what_was_too_long_is_shorter),
        cmocka_unit_test(test_in_text),
        cmocka_unit_test(test_a_plan_is_asked_for_in_one_message),
    };

    return RUN(tests);
}
