/* Paths as models write them. */
#include "doors/anthropic/anthropic_int.h"
#include "unit.h"

#include <stdio.h>

static const struct editor_dirs dirs = {"input", "out/0123"};

static void test_meant(void **state)
{
    static const char *const rows[][2] = {
        {"conf.json",             "conf.json"         },
        {"./a//b/./c.txt",        "a/b/c.txt"         },
        {"sub/",                  "sub"               },
        {"/workspace/a/b",        "a/b"               },
        {"/mnt/data/a",           "a"                 },
        {"$INPUT_DIR/data.csv",   "input/data.csv"    },
        {"${INPUT_DIR}/data.csv", "input/data.csv"    },
        {"$OUTPUT_DIR/x",         "out/0123/x"        },
        {"$INPUT_DIR",            "input"             },
        {"$INPUT_DIR/",           "input"             },
        {"$INPUT_DIRECTORY/x",    "$INPUT_DIRECTORY/x"},
        {".",                     ""                  },
        {"./",                    ""                  },
        {"/workspace",            ""                  },
        {"/workspace/",           ""                  },
        {"/workspacex",           NULL                },
        {"/tmp/x",                NULL                },
        {"/",                     NULL                },
        {"",                      NULL                },
        {"a/../../b",             NULL                },
        {"$INPUT_DIR/../x",       NULL                },
        {"/workspace//etc",       NULL                },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char got[SPACE_PATH_MAX];
        struct err e;
        int rc = editor_path(str_of(rows[i][0]), &dirs, got, &e);
        assert_int_equal(rc, rows[i][1] ? 0 : -1);
        if (rows[i][1])
            assert_string_equal(got, rows[i][1]);
        else
            assert_int_equal(e.kind, ERR_CALLER);
    }
}

static void test_no_such_folder(void **state)
{
    const struct editor_dirs none = {0};
    char got[SPACE_PATH_MAX], longest[2 * SPACE_PATH_MAX];
    struct err e;

    (void)state;
    assert_int_equal(editor_path(STR("$OUTPUT_DIR/x"), &none, got, &e), -1);
    memset(longest, 'x', sizeof(longest));
    longest[snprintf(longest, sizeof(longest), "$INPUT_DIR/")] = 'x';
    assert_int_equal(editor_path((struct str){longest, sizeof(longest)}, &dirs, got, &e), -1);
    assert_int_equal(editor_path(STR("a\0b"), &dirs, got, &e), -1);
    assert_int_equal(editor_path(STR("$INPUT_DIR/a\0b"), &dirs, got, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meant),
        cmocka_unit_test(test_no_such_folder),
    };

    return RUN(tests);
}
