/* Values by their repr: which are JSON, and which stay as they are. */
#include "doors/azure/azure_int.h"
#include "unit.h"

#include <stdlib.h>

static const struct {
    const char *repr, *json;
} rows[] = {
    {"2",                         "2"                            },
    {"-2",                        "-2"                           },
    {"007",                       "\"007\""                      },
    {"1.5",                       "1.5"                          },
    {"1.",                        "\"1.\""                       },
    {"1e400",                     "\"1e400\""                    },
    {"1e",                        "\"1e\""                       },
    {"-",                         "\"-\""                        },
    {"123456789012345678901234",  "\"123456789012345678901234\"" },
    {"True",                      "true"                         },
    {"False",                     "false"                        },
    {"nan",                       "\"nan\""                      },
    {"''",                        "\"\""                         },
    {"'a'",                       "\"a\""                        },
    {"\"it's\"",                  "\"it's\""                     },
    {"'a\\'b\\\\\\n'",            "\"a'b\\\\\\n\""               },
    {"'\\x41\\u00e9\\U0001f600'", "\"A\xc3\xa9\xf0\x9f\x98\x80\""},
    {"'\\ud800'",                 "\"\xef\xbf\xbd\""             },
    {"'\\q'",                     "\"'\\\\q'\""                  },
    {"'\\x4'",                    "\"'\\\\x4'\""                 },
    {"'\\'",                      "\"'\\\\'\""                   },
    {"'a' 'b'",                   "\"'a' 'b'\""                  },
    {"'",                         "\"'\""                        },
    {"[1]",                       "\"[1]\""                      },
    {"",                          "\"\""                         },
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *v = literal_value(str_of(rows[i].repr));
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        assert_string_equal(text, rows[i].json);
        free(text);
        json_decref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
