/* Expressions of templates. */
#include "doors/azure/azure_int.h"
#include "unit.h"

#include <stdlib.h>

static const struct {
    const char *text, *json; /* NULL: refused */
} rows[] = {
    {"plain",                                                  "\"plain\""                                            },
    {"[[bracket]",                                             "\"[bracket]\""                                        },
    {"['it''s']",                                              "\"it's\""                                             },
    {"[7]",                                                    "7"                                                    },
    {"[ concat( 'a' , 7, '' ) ]",                              "\"a7\""                                               },
    {"[parameters('given')]",                                  "\"G\""                                                },
    {"[PARAMETERS('usual')]",                                  "{\"a\":{\"b\":1}}"                                    },
    {"[parameters('usual').a.b]",                              "1"                                                    },
    {"[variables('v')]",                                       "true"                                                 },
    {"[resourceId('T/x', 'n')]",                               "\"/subscriptions/s/resourceGroups/g/providers/T/x/n\""},
    {"[resourceGroup().name]",                                 "\"g\""                                                },
    {"[reference('/id').made]",                                "2"                                                    },
    {"[resource('/other', '2024').location]",                  "\"local\""                                            },
    {"[resourceGroup().id]",                                   "\"/subscriptions/s/resourceGroups/g\""                },
    {"[subscription().subscriptionId]",                        "\"s\""                                                },
    {"[format('{0}-{1}{{x}}', 'a', 7)]",                       "\"a-7{x}\""                                           },
    {"[format('{1}', 'a')]",                                   NULL                                                   },
    {"[format('{0', 'a')]",                                    NULL                                                   },
    {"[format('{0:N2}', 1)]",                                  NULL                                                   },
    {"[if(equals('a', 'A'), 1, toUpper('b\u00e4'))]",          "\"B\u00e4\""                                          },
    {"[if('x', 1, 2)]",                                        NULL                                                   },
    {"[if(true(), 1)]",                                        NULL                                                   },
    {"[and(not(false()), or(less(1, 2), greater(1, 2)))]",     "true"                                                 },
    {"[and(true(), 1)]",                                       NULL                                                   },
    {"[lessOrEquals('a', 'b')]",                               "true"                                                 },
    {"[greaterOrEquals(2, 'b')]",                              NULL                                                   },
    {"[add(mul(3, 4), sub(1, int('-2')))]",                    "15"                                                   },
    {"[add(9223372036854775807, 1)]",                          NULL                                                   },
    {"[int('5x')]",                                            NULL                                                   },
    {"[bool('True')]",                                         "true"                                                 },
    {"[string(createArray(1, 'a'))]",                          "\"[1,\\\"a\\\"]\""                                    },
    {"[length(createArray(1, 'a', null()))]",                  "3"                                                    },
    {"[length('\u00e4\U0001f600')]",                           "3"                                                    },
    {"[empty('')]",                                            "true"                                                 },
    {"[empty(7)]",                                             NULL                                                   },
    {"[contains(createArray('a', 'b'), 'b')]",                 "true"                                                 },
    {"[contains('session', 'pool')]",                          "false"                                                },
    {"[coalesce(null(), parameters('given'))]",                "\"G\""                                                },
    {"[toLower(7)]",                                           NULL                                                   },
    {"[length(uniqueString(resourceGroup().id, 'a'))]",        "13"                                                   },
    {"[equals(uniqueString('a', 'b'), uniqueString('ab'))]",   "false"                                                },
    {"[",                                                      "\"[\""                                                },
    {"[]",                                                     NULL                                                   },
    {"[']",                                                    NULL                                                   },
    {"[f]",                                                    NULL                                                   },
    {"[f()]",                                                  NULL                                                   },
    {"[concat('a',)]",                                         NULL                                                   },
    {"[concat('a' 'b')]",                                      NULL                                                   },
    {"[concat(]",                                              NULL                                                   },
    {"[parameters('nope')]",                                   NULL                                                   },
    {"[parameters(1)]",                                        NULL                                                   },
    {"[variables('v').x]",                                     NULL                                                   },
    {"['a'.b]",                                                NULL                                                   },
    {"['a']]",                                                 NULL                                                   },
    {"[1 2]",                                                  NULL                                                   },
    {"[concat(concat(concat(concat(concat(concat(concat(concat(concat(concat(concat(concat(concat("
     "concat(concat(concat(concat('a')))))))))))))))))]", NULL                                                   },
};

static void test_values(void **state)
{
    json_t *all =
        json_pack("{s:{s:{s:s}}, s:{s:{}, s:{s:{s:{s:i}}}}, s:{s:b}, s:{s:{s:i}}}", "given",
                  "given", "value", "G", "parameters", "given", "usual", "defaultValue", "a", "b",
                  1, "variables", "v", 1, "made", "/id", "made", 2);
    unsigned calls = 0;
    const struct scope s = {.calls = &calls,
                            .given = json_object_get(all, "given"),
                            .parameters = json_object_get(all, "parameters"),
                            .variables = json_object_get(all, "variables"),
                            .made = json_object_get(all, "made"),
                            .subscription = STR("s"),
                            .group = STR("g")};

    (void)state;
    assert_non_null(all);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err e = {0};
        json_t *text_of = json_string(rows[i].text), *v = expression_fill(&s, text_of, &e);
        char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        if (rows[i].json)
            assert_string_equal(text, rows[i].json);
        else
            assert_true(!v && e.kind == ERR_CALLER);
        free(text);
        json_decref(text_of);
        json_decref(v);
    }
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
