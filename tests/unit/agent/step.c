/* The loop without anything around it: events in, record and actions out. */
#include "agent/agent_int.h"
#include "unit.h"

#include <stdio.h>

struct play {
    struct run_record r;
    json_t *actions; /* owned: of the last step */
    int64_t now;
};

static void begin_with(struct play *p, struct agent_budget b, bool can_answer)
{
    const struct agent_spec spec = {
        .tool = STR("t"), .request = STR("count"), .can_answer = can_answer};

    step_budget_fill(&b);
    *p = (struct play){.now = 1000};
    step_begin(&p->r, "toolu_1", &spec, &b, 1000);
}

/* Takes the event. */
static void happens(struct play *p, json_t *event)
{
    json_decref(p->actions);
    p->now += 10;
    p->actions = step(&p->r, event, p->now);
    json_decref(event);
}

/* The last thing to be done; "" for none. */
static const char *todo(const struct play *p)
{
    const char *what = "";
    const json_t *a;
    size_t i;

    json_array_foreach(p->actions, i, a) {
        if (!json_is(a, "do", "tell"))
            what = json_str(a, "do").p;
    }
    return what;
}

static const json_t *last_action(const struct play *p)
{
    return json_array_get(p->actions, json_array_size(p->actions) - 1);
}

static void done(struct play *p)
{
    record_done(&p->r);
    json_decref(p->actions);
}

static void begun(struct play *p)
{
    happens(p, json_pack("{s:s, s:s, s:s}", "type", "begun", "sandbox", "sess_1", "facts", ""));
    assert_string_equal(todo(p), "ask");
    assert_true(json_is(last_action(p), "kind", "plan"));
}

static void says(struct play *p, const char *text)
{
    happens(p, json_pack("{s:s, s:[{s:s, s:s}], s:s, s:i, s:i}", "type", "reply", "parts", "type",
                         "text", "text", text, "stop", "done", "input_tokens", 10, "output_tokens",
                         5));
}

static void calls(struct play *p, const char *name, const char *key, const char *value)
{
    happens(p,
            json_pack("{s:s, s:[{s:s, s:s, s:s, s:{s:s}}], s:s}", "type", "reply", "parts", "type",
                      "call", "id", "c1", "name", name, "args", key, value, "stop", "calls"));
}

static void planned(struct play *p, size_t steps)
{
    char text[256];
    size_t n = 0;

    for (size_t i = 0; i < steps; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"s\"", i ? ", " : "{\"steps\": [");
    assert_true(n + 2 < sizeof(text));
    snprintf(text + n, sizeof(text) - n, "]}");
    says(p, text);
    assert_int_equal(p->r.state, RUN_CODE);
}

static void ran(struct play *p, const char *status, const char *text)
{
    happens(p, json_pack("{s:s, s:{s:s, s:s, s:s, s:[], s:b, s:b}}", "type", "ran", "seen",
                         "status", status, "text", text, "log", "STDOUT:\n\nSTATUS: x\n", "files",
                         "empty", 0, "lost", strcmp(status, "lost") == 0));
}

static void run_round(struct play *p, const char *code, const char *status, const char *text)
{
    calls(p, "run_python", "code", code);
    assert_string_equal(todo(p), "run");
    ran(p, status, text);
}

static void test_the_way_of_a_request(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    assert_true(p.r.status == RUN_PENDING);
    begun(&p);
    planned(&p, 1);
    assert_int_equal(p.r.rounds, 4);
    run_round(&p, "print(42)", "ok", "STATUS: ok\n42");
    assert_string_equal(todo(&p), "ask");
    calls(&p, "finish", "answer", "It is 42.");
    assert_string_equal(todo(&p), "end");
    assert_true(p.r.status == RUN_COMPLETED && str_is(json_text(p.r.answer), "It is 42."));
    assert_true(p.r.state == RUN_OVER && p.r.ended_ms == p.now);
    assert_int_equal(p.r.usage.calls, 3);
    done(&p);
}

/* What comes too late changes nothing. */
static void test_after_the_end_nothing_happens(void **state)
{
    static const char *const events[] = {"reply", "ran",    "cancel", "input",
                                         "late",  "resume", "queued"};
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    happens(&p, json_pack("{s:s, s:b}", "type", "cancel", "hard", 1));
    assert_true(p.r.status == RUN_CANCELLED);
    for (size_t i = 0; i < COUNT(events); i++) {
        json_t *before = record_json(&p.r, true), *after;
        happens(&p, json_pack("{s:s}", "type", events[i]));
        assert_int_equal(json_array_size(p.actions), 0);
        after = record_json(&p.r, true);
        assert_true(json_equal(before, after));
        json_decref(before);
        json_decref(after);
    }
    done(&p);
}

static void test_rounds_follow_the_plan(void **state)
{
    static const struct {
        size_t steps;
        uint64_t most;
        int64_t rounds;
    } rows[] = {
        {1, 0, 4 },
        {3, 0, 6 },
        {6, 0, 12},
        {6, 8, 8 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct play p;
        begin_with(&p, (struct agent_budget){.rounds = rows[i].most}, false);
        begun(&p);
        planned(&p, rows[i].steps);
        assert_int_equal(p.r.rounds, rows[i].rounds);
        done(&p);
    }
}

static void test_each_budget_ends_in_one_last_question(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){.tokens = 25}, false);
    begun(&p);
    planned(&p, 1); /* 15 */
    says(&p, "hm"); /* 30 */
    assert_true(json_is(last_action(&p), "kind", "final"));
    says(&p, "I do not know.");
    assert_true(p.r.status == RUN_INCOMPLETE && str_is(json_text(p.r.answer), "I do not know."));
    done(&p);

    begin_with(&p, (struct agent_budget){.wall_ms = 5000}, false);
    begun(&p);
    planned(&p, 1);
    p.now += 5000;
    run_round(&p, "print(1)", "ok", "1");
    assert_true(json_is(last_action(&p), "kind", "final"));
    says(&p, "");
    assert_true(p.r.status == RUN_INCOMPLETE);
    assert_has(json_string_value(p.r.answer), "No model has written this");
    done(&p);

    begin_with(&p, (struct agent_budget){.input_chars = 300}, false);
    begun(&p);
    says(&p,
         "{\"steps\": [\"a long sentence about what is to be done, so that there is no room for "
         "anything else in the conversation, and then some more of it, and more, and more, and "
         "still more of it, until nobody can say any more how it began or why it was said\"]}");
    assert_true(json_is(last_action(&p), "kind", "final"));
    done(&p);
}

/* 1, 2, 4 and 8 seconds, or later where the endpoint says so. */
static void test_a_busy_model_is_asked_later(void **state)
{
    static const int64_t waits[] = {1000, 2000, 30000, 8000};
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    begun(&p);
    for (size_t i = 0; i < COUNT(waits); i++) {
        happens(&p, json_pack("{s:s, s:s, s:i}", "type", "trouble", "trouble", "busy", "retry_ms",
                              i == 2 ? 30000 : 0));
        assert_string_equal(todo(&p), "ask");
        assert_int_equal(json_num(last_action(&p), "after_ms"), waits[i]);
    }
    happens(&p,
            json_pack("{s:s, s:s, s:s}", "type", "trouble", "trouble", "busy", "message", "full"));
    assert_true(p.r.status == RUN_FAILED);
    assert_true(json_is(p.r.error, "code", "ModelUnavailable"));
    done(&p);
}

static void trouble(struct play *p, const char *what)
{
    happens(p, json_pack("{s:s, s:s, s:s}", "type", "trouble", "trouble", what, "message", "no"));
}

static void test_other_troubles(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    begun(&p);
    planned(&p, 1);
    trouble(&p, "no_tools");
    assert_true(p.r.text_mode && strcmp(todo(&p), "ask") == 0);
    trouble(&p, "too_long");
    assert_true(p.r.compacted && json_is(last_action(&p), "kind", "code"));
    trouble(&p, "too_long");
    assert_true(json_is(last_action(&p), "kind", "final"));
    trouble(&p, "too_long");
    assert_true(p.r.status == RUN_INCOMPLETE);
    done(&p);

    begin_with(&p, (struct agent_budget){0}, false);
    begun(&p);
    trouble(&p, "denied");
    assert_true(p.r.status == RUN_FAILED);
    done(&p);
}

static void test_a_gate_that_is_refused(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, true);
    begun(&p);
    planned(&p, 2);
    calls(&p, "run_python", "code", "print(1)");
    assert_string_equal(todo(&p), "run");
    happens(&p, json_pack("{s:s, s:s, s:s, s:i}", "type", "asked", "approval", "apr_1", "prompt",
                          "May it?", "expires_ms", 999999));
    assert_string_equal(todo(&p), "wait");
    assert_true(p.r.status == RUN_WAITING);
    happens(&p, json_pack("{s:s, s:s}", "type", "refused", "reason", "no"));
    assert_string_equal(todo(&p), "ask");
    assert_true(p.r.status == RUN_RUNNING && !p.r.question);
    calls(&p, "run_python", "code", "print(2)");
    happens(&p, json_pack("{s:s, s:s}", "type", "refused", "reason", "no"));
    assert_true(json_is(last_action(&p), "kind", "final"));
    assert_has(json_string_value(p.r.logs), "STATUS: Execution refused");
    done(&p);
}

static void test_code_that_was_agreed_to_runs(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, true);
    begun(&p);
    planned(&p, 1);
    calls(&p, "run_python", "code", "print(1)");
    happens(&p, json_pack("{s:s, s:s, s:s, s:i}", "type", "asked", "approval", "apr_1", "prompt",
                          "May it?", "expires_ms", 999999));
    happens(&p, json_pack("{s:s, s:s}", "type", "queued", "execution", "exec_1"));
    assert_true(p.r.state == RUN_EXEC && p.r.status == RUN_RUNNING && !p.r.question);
    assert_string_equal(todo(&p), "");
    happens(&p, json_pack("{s:s, s:b}", "type", "cancel", "hard", 1));
    assert_string_equal(todo(&p), "interrupt");
    ran(&p, "interrupted", "");
    assert_int_equal(p.r.status, RUN_CANCELLED);
    done(&p);
}

static void test_waiting_costs_no_time(void **state)
{
    struct play p;
    int64_t deadline;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, true);
    begun(&p);
    planned(&p, 1);
    deadline = p.r.deadline_ms;
    calls(&p, "ask_user", "question", "Which?");
    p.now += 100000;
    happens(&p, json_pack("{s:s, s:s}", "type", "input", "text", "that one"));
    assert_int_equal(p.r.deadline_ms, deadline + 100010);
    done(&p);
}

/* The record alone: a copy of it, as the store gives it back, goes on like the first. */
static void test_a_record_is_all_there_is(void **state)
{
    static const struct {
        enum run_state state;
        const char *what;
    } rows[] = {
        {RUN_BEGIN, "begin"  },
        {RUN_PLAN,  "ask"    },
        {RUN_CODE,  "ask"    },
        {RUN_GATE,  "run"    },
        {RUN_WAIT,  "wait"   },
        {RUN_EXEC,  "recover"},
        {RUN_READ,  "read"   },
        {RUN_FINAL, "ask"    },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct play p;
        begin_with(&p, (struct agent_budget){0}, true);
        begun(&p);
        p.r.state = rows[i].state;
        json_t *stored = record_json(&p.r, true);
        record_done(&p.r);
        assert_true(record_read(&p.r, stored));
        json_decref(stored);
        happens(&p, json_pack("{s:s}", "type", "resume"));
        assert_string_equal(todo(&p), rows[i].what);
        done(&p);
    }
}

/* A server that was ending has not begun it, and says so. */
static void test_what_was_not_begun_is_run(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    begun(&p);
    planned(&p, 1);
    calls(&p, "run_python", "code", "print(1)");
    p.r.unbegun = true;
    happens(&p, json_pack("{s:s}", "type", "resume"));
    assert_string_equal(todo(&p), "run");
    happens(&p, json_pack("{s:s}", "type", "resume"));
    assert_string_equal(todo(&p), "recover");
    done(&p);
}

/* Failures count in a row, and the attempts of a step are its own. */
static void test_a_success_ends_a_row_of_failures(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    begun(&p);
    planned(&p, 4);
    run_round(&p, "a", "error", "1");
    run_round(&p, "b", "error", "2");
    assert_int_equal(p.r.failures, 2);
    run_round(&p, "c", "ok", "3");
    run_round(&p, "d", "error", "4");
    assert_int_equal(p.r.failures, 1);
    assert_int_equal(p.r.attempts, 1);
    done(&p);
}

/* The house is full, and the code waits for its turn: nothing runs that could be waited for. */
static void test_a_stop_while_the_house_is_full(void **state)
{
    struct play p;

    (void)state;
    begin_with(&p, (struct agent_budget){0}, false);
    begun(&p);
    planned(&p, 1);
    calls(&p, "run_python", "code", "print(1)");
    assert_string_equal(todo(&p), "run");
    happens(&p, json_pack("{s:s, s:b, s:s}", "type", "unreachable", "busy", 1, "message", "full"));
    assert_string_equal(todo(&p), "run");
    assert_int_equal(json_num(last_action(&p), "after_ms"), 1000);
    happens(&p, json_pack("{s:s, s:b}", "type", "cancel", "hard", 0));
    assert_true(p.r.status == RUN_CANCELLED);
    assert_string_equal(todo(&p), "end");
    done(&p);
}

/* What is old is one line, so that a record has an end. */
static void test_a_record_does_not_grow_for_ever(void **state)
{
    struct play p;
    char code[64];
    size_t whole = 0, i;
    const json_t *item;

    (void)state;
    begin_with(&p, (struct agent_budget){.plan_steps = 20, .rounds = 100}, false);
    begun(&p);
    planned(&p, 20);
    for (int k = 0; k < 30; k++) {
        snprintf(code, sizeof(code), "print(%d)", k);
        run_round(&p, code, "ok", code);
    }
    json_array_foreach(p.r.talk, i, item)
        whole += json_object_get(item, "parts") != NULL;
    assert_true(whole <= 5);
    done(&p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_way_of_a_request),
        cmocka_unit_test(test_after_the_end_nothing_happens),
        cmocka_unit_test(test_rounds_follow_the_plan),
        cmocka_unit_test(test_each_budget_ends_in_one_last_question),
        cmocka_unit_test(test_a_busy_model_is_asked_later),
        cmocka_unit_test(test_other_troubles),
        cmocka_unit_test(test_a_gate_that_is_refused),
        cmocka_unit_test(test_code_that_was_agreed_to_runs),
        cmocka_unit_test(test_waiting_costs_no_time),
        cmocka_unit_test(test_a_record_is_all_there_is),
        cmocka_unit_test(test_what_was_not_begun_is_run),
        cmocka_unit_test(test_a_success_ends_a_row_of_failures),
        cmocka_unit_test(test_a_stop_while_the_house_is_full),
        cmocka_unit_test(test_a_record_does_not_grow_for_ever),
    };

    return RUN(tests);
}
