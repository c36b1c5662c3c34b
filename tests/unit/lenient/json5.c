/* JSON5: what is read, and what is refused. */
#include "lenient/lenient.h"
#include "unit.h"

#include <stdlib.h>

static const struct {
    const char *text, *json; /* NULL: refused */
} rows[] = {
    {"{}",                        "{}"                       },
    {"[1, 2,]",                   "[1,2]"                    },
    {"{a: 1, 'b': 2, \"c\": 3,}", "{\"a\":1,\"b\":2,\"c\":3}"},
    {"'it''s'",                   NULL                       },
    {"'a\\'b'",                   "\"a'b\""                  },
    {"// c\n[/* d */1]// e",      "[1]"                      },
    {"+1",                        "1"                        },
    {"-0x10",                     "-16"                      },
    {".5",                        "0.5"                      },
    {"5.",                        "5.0"                      },
    {"1e3",                       "1000.0"                   },
    {"Infinity",                  "null"                     },
    {"-NaN",                      "null"                     },
    {"true",                      "true"                     },
    {"{a: 1, a: 2}",              "{\"a\":2}"                },
    {"{\xe4\xb8\xad: 1}",         "{\"\xe4\xb8\xad\":1}"     },
    {"\"\\ud800\"",               "\"\xef\xbf\xbd\""         },
    {"\"a\tb\"",                  "\"a\\tb\""                },
    {"",                          NULL                       },
    {"[",                         NULL                       },
    {"[,]",                       NULL                       },
    {"{a}",                       NULL                       },
    {"{a:}",                      NULL                       },
    {"{,}",                       NULL                       },
    {"1 2",                       NULL                       },
    {"'open",                     NULL                       },
    {"\"\\u12\"",                 NULL                       },
    {"/* open",                   NULL                       },
    {"1p3",                       NULL                       },
    {"--1",                       NULL                       },
    {"undefined",                 NULL                       },
    {"{\"a\\u0000b\": 1}",        NULL                       },
    {"\"\xff\"",                  NULL                       },
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *v = json5_read(str_of(rows[i].text));
        char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        if (!rows[i].json && v)
            fail_msg("'%s' was read as %s", rows[i].text, text);
        if (rows[i].json && (!text || strcmp(text, rows[i].json) != 0))
            fail_msg("'%s' was read as %s, not %s", rows[i].text, text ? text : "nothing",
                     rows[i].json);
        free(text);
        json_decref(v);
    }
}

static void test_depth_has_an_end(void **state)
{
    enum { BOTH = 2 * JSON5_DEPTH };
    char text[BOTH + 3] = "";

    (void)state;
    for (size_t n = 0; n < JSON5_DEPTH; n++) {
        text[n] = '[';
        text[BOTH - 1 - n] = ']';
    }
    json_t *v = json5_read((struct str){text, BOTH});
    assert_non_null(v);
    json_decref(v);
    memmove(text + 1, text, BOTH);
    text[0] = '[';
    text[BOTH + 1] = ']';
    assert_null(json5_read((struct str){text, BOTH + 2}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_depth_has_an_end),
    };

    return RUN(tests);
}
