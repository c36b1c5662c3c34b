/* Every form in which models hand code over, each with the code that is meant. */
#include "doors/qwen/parse_code.h"
#include "unit.h"

#include <stdlib.h>

#define F "```"

static const struct golden {
    const char *text, *code;
} texts[] = {
  /* plain */
    {"print(1)",                                                                                  "print(1)"                                   },
    {"  x = 1\n",                                                                                 "  x = 1\n"                                  },
    {"",                                                                                          ""                                           },
    {"42",                                                                                        "42"                                         },
    {"[1,2]",                                                                                     "[1,2]"                                      },
    {"null",                                                                                      "null"                                       },
    {"{\"a\":1}",                                                                                 "{\"a\":1}"                                  },
    {"\"hi\"",                                                                                    "\"hi\""                                     },
    {"\"print(1)\"",                                                                              "print(1)"                                   },
    {"print('" F "')",                                                                            "print('" F "')"                             },
    {"s = '<code>x</code>'",                                                                      "s = '<code>x</code>'"                       },
    {"x = {'name': 'a', 'arguments': 1}",                                                         "x = {'name': 'a', 'arguments': 1}"          },
    {"print('Action: x')",                                                                        "print('Action: x')"                         },
 /* the same in long strings of a program */
    {"s = '''\n<code>\nhi\n</code>\n'''\nprint(s)",                                               "s = '''\n<code>\nhi\n</code>\n'''\nprint(s)"},
    {"p = f\"\"\"Be brief.\nAction: code_interpreter\nAction Input: {x}\nObservation:\n\"\"\"",
     "p = f\"\"\"Be brief.\nAction: code_interpreter\nAction Input: {x}\nObservation:\n\"\"\""                                                 },
    {"f(\n'''\n<tool_call>\n{\"name\":\"x\",\"arguments\":{\"code\":\"1\"}}\n</tool_call>\n''')",
     "f(\n'''\n<tool_call>\n{\"name\":\"x\",\"arguments\":{\"code\":\"1\"}}\n</tool_call>\n''')"                                               },
    {"def f():\n    return '''\n" F "py\n1\n" F "\n'''",
     "def f():\n    return '''\n" F "py\n1\n" F "\n'''"                                                                                        },
    {"s = 'a\\\n<code>\\\n'",                                                                     "s = 'a\\\n<code>\\\n'"                      },
    {F "py\ns = '''\n" F "\n'''\nprint(s)\n" F,                                                   "s = '''\n" F "\n'''\nprint(s)"              },
    {F "py\ns = \"it's\"  # ''' no string\n" F "\nDone.",                                         "s = \"it's\"  # ''' no string"              },
    {"Use ''' here:\n" F "py\na = '''x'''\n" F,                                                   "a = '''x'''"                                },
    {"It's <code> that's meant:\n<code>\n1\n</code>",                                             "1"                                          },
    {"<code>\ns = '''\n</code>\n'''\n</code>",                                                    "s = '''\n</code>\n'''"                      },
 /* JSON and JSON5 */
    {"{\"code\":\"print(1)\"}",                                                                   "print(1)"                                   },
    {"{code:'print(1)',}",                                                                        "print(1)"                                   },
    {"// why\n{code: 'a\\nb', /* more */ timeout: +5,}",                                          "a\nb"                                       },
    {"{'code': 'a\\\nb'}",                                                                        "ab"                                         },
    {"{\"code\": \"a\nb\"}",                                                                      "a\nb"                                       },
    {"{\"code\": \"\\u4e2d\\ud83d\\ude00\\x41\"}",                                                "\xe4\xb8\xad\xf0\x9f\x98\x80"
                                                   "A"                                       },
    {"{\"code\": \"" F "py\\nprint(1)\\n" F "\"}",                                                "print(1)"                                   },
    {"{\"code\": \"\"}",                                                                          ""                                           },
    {"{\"name\":\"code_interpreter\",\"arguments\":{\"code\":\"1\"}}",                            "1"                                          },
    {"{\"name\":\"code_interpreter\",\"arguments\":\"{\\\"code\\\":\\\"1\\\"}\"}",                "1"                                          },
    {"{\"code\": 7}",                                                                             "{\"code\": 7}"                              },
 /* fences */
    {F "python\nprint(1)\n" F,                                                                    "print(1)"                                   },
    {"Sure:\n" F "py\nprint(1)\n" F "\nDone.",                                                    "print(1)"                                   },
    {F "\nprint(1)\n" F,                                                                          "print(1)"                                   },
    {F "foo\nprint(1)\n" F,                                                                       "print(1)"                                   },
    {F "py\na\n" F "\n" F "py\nb\n" F,                                                            "a\n\nb"                                     },
    {F "sh\nls\n" F "\n" F "py\nb\n" F,                                                           "b"                                          },
    {F "print(1)" F,                                                                              "print(1)"                                   },
    {F "python print(1)" F,                                                                       "print(1)"                                   },
    {F "py\nprint(1)",                                                                            "print(1)"                                   },
    {F "print(1)\nprint(2)\n" F,                                                                  "print(1)\nprint(2)"                         },
    {F "py\nprint('" F "')\n" F,                                                                  "print('" F "')"                             },
    {"````py\n" F "\n````",                                                                       F                                            },
    {F "py\r\nprint(1)\r\n" F,                                                                    "print(1)"                                   },
    {F "py\nprint(1)" F,                                                                          "print(1)"                                   },
 /* tags */
    {"<code>\nprint(1)\n</code>",                                                                 "print(1)"                                   },
    {"Here:\n<code>print(1)</code>",                                                              "print(1)"                                   },
    {"<code>\nprint(1)",                                                                          "print(1)"                                   },
 /* calls */
    {"<tool_call>\n{\"name\":\"code_interpreter\",\"arguments\":{\"code\":\"1\"}}\n</tool_call>",
     "1"                                                                                                                                       },
    {"<tool_call>\n{\"name\":\"x\",\"arguments\":{\"code\":\"\"}}\n<code>\n2\n</code>\n</"
     "tool_call>",                                                                           "2"                                          },
    {"<tool_call>{\"name\":\"x\",\"arguments\":{\"code\":\"1\"}}</tool_call>\n"
     "<tool_call>{\"name\":\"x\",\"arguments\":{\"code\":\"2\"}}</tool_call>",               "1\n\n2"                                     },
    {"<think>\n<tool_call>{\"name\":\"x\",\"arguments\":{\"code\":\"no\"}}</tool_call>\n</think>\n"
     "<tool_call>{\"name\":\"x\",\"arguments\":{\"code\":\"yes\"}}</tool_call>",             "yes"                                        },
    {"<tool_call>{\"name\":\"x\",\"arguments\":{\"code\":\"print(\"a\")\\nb\"}}</tool_call>",
     "print(\"a\")\nb"                                                                                                                         },
 /* ReAct */
    {"Thought: t\nAction: code_interpreter\nAction Input: {\"code\": \"1\"}\nObservation: x",     "1"                                          },
    {"Action: code_interpreter\nAction Input: " F "py\n1\n" F "\nObservation:",                   "1"                                          },
    {"Action: code_interpreter\nAction Input: print(1)\nprint(2)",                                "print(1)\nprint(2)"                         },
    {"Action: a\nAction Input: 1\nObservation: 1\nAction: b\nAction Input: 2\n",                  "2"                                          },
    {"Thought: no action\nFinal Answer: 5",                                                       "Thought: no action\nFinal Answer: 5"        },
};

static void test_every_form_gives_its_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct parsed_code p;
        parse_code(str_of(texts[i].text), &p);
        assert_non_null(p.code);
        assert_int_equal(strlen(p.code), p.code_n);
        if (strcmp(p.code, texts[i].code) != 0)
            fail_msg("'%s' gave '%s', not '%s'", texts[i].text, p.code, texts[i].code);
        parsed_code_done(&p);
    }
}

static void test_what_stands_beside_the_code_is_kept(void **state)
{
    struct parsed_code p;

    (void)state;
    parse_code(STR("{code: 'x', timeout: 5, files: ['a']}"), &p);
    assert_int_equal(json_integer_value(json_object_get(p.more, "timeout")), 5);
    assert_int_equal(json_array_size(json_object_get(p.more, "files")), 1);
    parsed_code_done(&p);
}

static void test_the_tool_is_known_by_its_name(void **state)
{
    struct parsed_code p;

    (void)state;
    parse_code(STR("Action: python_executor\nAction Input: 1"), &p);
    assert_string_equal(p.tool, "python_executor");
    parsed_code_done(&p);
    parse_code(STR("Action: rm\nAction Input: 1"), &p);
    assert_null(p.tool);
    parsed_code_done(&p);
}

/* In a JSON string already: a value of Python's stays one. */
static void test_a_code_member_is_unwrapped_and_no_more(void **state)
{
    static const struct golden rows[] = {
        {F "py\n1\n" F,                   "1"                            },
        {"<code>1</code>",                "1"                            },
        {"\"hi (there)\"",                "\"hi (there)\""               },
        {"x = '''\n" F "py\ny\n" F "'''", "x = '''\n" F "py\ny\n" F "'''"},
        {"{\"code\": \"1\"}",             "1"                            },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct parsed_code p;
        parse_code_value(str_of(rows[i].text), &p);
        assert_string_equal(p.code, rows[i].code);
        parsed_code_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form_gives_its_code),
        cmocka_unit_test(test_what_stands_beside_the_code_is_kept),
        cmocka_unit_test(test_the_tool_is_known_by_its_name),
        cmocka_unit_test(test_a_code_member_is_unwrapped_and_no_more),
    };

    return RUN(tests);
}
