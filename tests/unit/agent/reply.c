/* Every form in which models ask for something, each with what is meant. */
#include "agent/agent_int.h"
#include "unit.h"

#define F "```"

static json_t *read_text(const char *text)
{
    json_t *parts = json_pack("[{s:s, s:s}]", "type", "text", "text", text);
    json_t *act = reply_read(parts, false);

    json_decref(parts);
    return act;
}

static json_t *read_call(const char *name, const char *args, const char *raw)
{
    json_t *parts =
        json_pack("[{s:s, s:s, s:s, s:o, s:s?}]", "type", "call", "id", "c1", "name", name, "args",
                  args ? json_loads(args, 0, NULL) : json_null(), "raw", raw);
    json_t *act = reply_read(parts, false);

    json_decref(parts);
    return act;
}

/* what NULL: nothing but the act is looked at. */
static const struct golden {
    const char *text, *act, *member, *what;
} texts[] = {
    {"<tool_call>\n{\"name\":\"run_python\",\"arguments\":{\"code\":\"print(1)\"}}\n</tool_call>",
     "run",                                                                                                   "code",   "print(1)"                     },
    {"<tool_call>\n{\"name\":\"run_python\",\"arguments\":\"{\\\"code\\\":\\\"print(1)\\\"}\"}\n"
     "</tool_call>",                                                                          "run",     "code",   "print(1)"                     },
    {"<tool_call>\n{name:'run_python',arguments:{code:''}}\n<code>\nprint(1)\n</code>\n"
     "</tool_call>",                                                                          "run",     "code",   "print(1)"                     },
    {"<tool_call>\n{\"name\":\"finish\",\"arguments\":{\"answer\":\"It is 1.\"}}\n</tool_call>",
     "finish",                                                                                                "answer", "It is 1."                     },
    {"<tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>",                              "bad",     NULL,     NULL                           },
    {"<tool_call>nothing</tool_call>",                                                             "bad",     NULL,     NULL                           },
    {"{\"code\": \"print(1)\"}",                                                                   "run",     "code",   "print(1)"                     },
    {"{\"code\": \"" F "py\\nprint(1)\\n" F "\"}",                                                 "run",     "code",   "print(1)"                     },
    {"{\"answer\": \"It is 1.\"}",                                                                 "finish",  "answer", "It is 1."                     },
    {"<code>\nprint(1)\n</code>",                                                                  "run",     "code",   "print(1)"                     },
    {F "python\nprint(1)\n" F,                                                                     "run",     "code",   "print(1)"                     },
    {"First:\n" F "py\na = 1\n" F "\nthen:\n" F "\nprint(a)\n" F,                                  "run",     "code",
     "a = 1\n\nprint(a)"                                                                                                                               },
    {F "sh\nls\n" F,                                                                               "prose",   NULL,     NULL                           },
    {F "sh\nls\n" F "\n" F "py\nprint(1)\n" F,                                                     "run",     "code",   "print(1)"                     },
    {"Thought: x\nAction: run_python\nAction Input: print(1)\nObservation: 1",                     "run",     "code",
     "print(1)"                                                                                                                                        },
    {"Action: code_interpreter\nAction Input: " F "py\nprint(1)\n" F,                              "run",     "code",   "print(1)"                     },
    {"Action: final_answer\nAction Input: It is 1.",                                               "finish",  "answer", "It is 1."                     },
    {"Action: dance\nAction Input: x",                                                             "bad",     NULL,     NULL                           },
    {"FINAL: It is 1.",                                                                            "finish",  "answer", "It is 1."                     },
    {"Thought: done.\nFinal Answer: It is 1.",                                                     "finish",  "answer", "It is 1."                     },
    {"FINAL: see\n" F "\nx = 1\n" F,                                                               "finish",  "answer", "see\n" F "\nx = 1\n" F        },
    {F "py\nprint(1)\n" F "\nFINAL: 1",                                                            "run",     "code",   "print(1)"                     },
    {"print(1)",                                                                                   "run",     "code",   "print(1)"                     },
    {"import os\nprint(os.getcwd())",                                                              "run",     "code",   "import os\nprint(os.getcwd())"},
    {"I will compute it now.",                                                                     "prose",   NULL,     NULL                           },
    {"The result (see above) is good",                                                             "prose",   NULL,     NULL                           },
    {"",                                                                                           "nothing", NULL,     NULL                           },
    {"  \n ",                                                                                      "nothing", NULL,     NULL                           },
    {"<think>" F "py\nprint(0)\n" F "</think>" F "py\nprint(1)\n" F,                               "run",     "code",   "print(1)"                     },
    {"<think>" F "py\nprint(0)\n" F,                                                               "nothing", NULL,     NULL                           },
    {"a<think>x</think>b",                                                                         "prose",   "text",   "ab"                           },
    {F "py\n" F,                                                                                   "prose",   NULL,     NULL                           },
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        json_t *act = read_text(texts[i].text);
        if (!json_is(act, "act", texts[i].act) ||
            (texts[i].what && !json_is(act, texts[i].member, texts[i].what)))
            fail_msg("%s: %s", texts[i].text, json_dumps(act, 0));
        json_decref(act);
    }
}

static const struct {
    const char *name, *args, *raw, *act, *member, *what;
} calls[] = {
    {"run_python",  "{\"code\":\"print(1)\"}",   NULL,                                        "run",    "code",     "print(1)" },
    {"python",      "{\"code\":\"print(1)\"}",   NULL,                                        "run",    "code",     "print(1)" },
    {"run_python",  "{\"input\":\"print(1)\"}",  NULL,                                        "run",    "code",     "print(1)" },
    {"run_python",  "{\"a\":1,\"b\":2}",         NULL,                                        "bad",    NULL,       NULL       },
    {"run_python",  "{\"code\":\"  \"}",         NULL,                                        "bad",    NULL,       NULL       },
    {"run_python",  NULL,                        "print(1)",                                  "run",    "code",     "print(1)" },
    {"run_python",  NULL,                        "{code: 'print(1)'}",                        "run",    "code",     "print(1)" },
    {"run_python",  NULL,                        "{\"code\": \"print(1)\"}{\"code\": \"2\"}", "run",    "code",     "print(1)" },
    {"run_python",  NULL,                        "\"{\\\"code\\\": \\\"print(1)\\\"}\"",      "run",    "code",     "print(1)" },
    {"run_python",  NULL,                        "{\"code\": print(",                         "bad",    NULL,       NULL       },
    {"run_python",  NULL,                        "",                                          "bad",    NULL,       NULL       },
    {"finish",      "{\"answer\":\"42\"}",       NULL,                                        "finish", "answer",   "42"       },
    {"finish",      "{\"answer\":42}",           NULL,                                        "finish", "answer",   "42"       },
    {"finish",      NULL,                        "It is so.",                                 "finish", "answer",   "It is so."},
    {"update_plan", "{\"steps\":[\"a\"]}",       NULL,                                        "plan",   NULL,       NULL       },
    {"update_plan", "{\"steps\":[]}",            NULL,                                        "bad",    NULL,       NULL       },
    {"ask_user",    "{\"question\":\"Which?\"}", NULL,                                        "ask",    "question", "Which?"   },
    {"read_output", "{\"run\":1,\"offset\":5}",  NULL,                                        "read",   NULL,       NULL       },
    {"rm",          "{}",                        NULL,                                        "bad",    NULL,       NULL       },
};

static void test_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(calls); i++) {
        json_t *act = read_call(calls[i].name, calls[i].args, calls[i].raw);
        if (!json_is(act, "act", calls[i].act) || !json_is(act, "id", "c1") ||
            json_on(act, "formed") ||
            (calls[i].what && !json_is(act, calls[i].member, calls[i].what)))
            fail_msg("%s %s: %s", calls[i].name, calls[i].raw, json_dumps(act, 0));
        json_decref(act);
    }
}

static void test_further_calls_have_their_ids_kept(void **state)
{
    json_t *parts = json_loads(
        "[{\"type\":\"text\",\"text\":\"Now.\"},"
        "{\"type\":\"call\",\"id\":\"a\",\"name\":\"run_python\",\"args\":{\"code\":\"1\"}},"
        "{\"type\":\"call\",\"id\":\"b\",\"name\":\"finish\",\"args\":{\"answer\":\"x\"}}]",
        0, NULL);
    json_t *act = reply_read(parts, false), *extra = json_object_get(act, "extra");

    (void)state;
    assert_true(json_is(act, "act", "run") && json_is(act, "id", "a") &&
                json_is(act, "text", "Now."));
    assert_int_equal(json_array_size(extra), 1);
    assert_string_equal(json_string_value(json_array_get(extra, 0)), "b");
    json_decref(act);
    json_decref(parts);
}

static void test_what_was_cut_is_not_done(void **state)
{
    json_t *parts = json_loads("[{\"type\":\"call\",\"id\":\"a\",\"name\":\"run_python\",\"args\":"
                               "{\"code\":\"1\"}}]",
                               0, NULL);
    json_t *act = reply_read(parts, true);

    (void)state;
    assert_true(json_is(act, "act", "bad") && json_is(act, "id", "a"));
    json_decref(act);
    json_decref(parts);
}

static void plan_is(const char *text, const char *want)
{
    json_t *parts = json_pack("[{s:s, s:s}]", "type", "text", "text", text);
    json_t *plan = reply_plan(parts, 3);
    char *got = plan ? json_dumps(plan, JSON_COMPACT) : NULL;

    if (want ? !got || strcmp(got, want) != 0 : got != NULL)
        fail_msg("%s: %s", text, got);
    json_decref(plan);
    json_decref(parts);
    mem_freep(&got);
}

static void test_plans(void **state)
{
    (void)state;
    plan_is("{\"steps\": [\"a\", \"b\"]}", "[\"a\",\"b\"]");
    plan_is("Here:\n" F "json\n{\"steps\": [\"a\"]}\n" F, "[\"a\"]");
    plan_is("[\"a\", \"b\"]", "[\"a\",\"b\"]");
    plan_is("<think>{\"steps\":[\"no\"]}</think>{\"steps\":[\"yes\"]}", "[\"yes\"]");
    plan_is("{\"steps\": [\"a\", \"b\", \"c\", \"d\"]}", "[\"a\",\"b\",\"c\"]");
    plan_is("{\"steps\": [{\"step\": \"a\"}]}", "[\"a\"]");
    plan_is("{\"steps\": [\"a\\nb\"]}", "[\"a b\"]");
    plan_is("{\"steps\": []}", NULL);
    plan_is("1. do it", NULL);
    plan_is("", NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_further_calls_have_their_ids_kept),
        cmocka_unit_test(test_what_was_cut_is_not_done),
        cmocka_unit_test(test_plans),
    };

    return RUN(tests);
}
