#include "cli/cli_int.h"
#include "unit.h"

static void test_whole(void **state)
{
    static const struct {
        const char *cell;
        bool whole;
    } rows[] = {
        {"x = 1",                       true },
        {"f(1,",                        false},
        {"f(1,\n2)",                    true },
        {"for i in x:",                 false},
        {"for i in x:\n    print(i)",   false},
        {"for i in x:\n    print(i)\n", true },
        {"@cached",                     false},
        {"s = '''a",                    false},
        {"s = '''a\n'''\n",             true },
        {"s = '('",                     true },
        {"s = 'it\\'s ('",              true },
        {"x = 1 # (",                   true },
        {"x = 1 + \\",                  false},
        {"!ls (",                       true },
        {"%time f(",                    true },
        {"%%bash",                      false},
        {"%%bash\necho\n",              true },
        {")",                           true },
        {"'''",                         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (repl_is_whole(str_of(rows[i].cell)) != rows[i].whole)
            fail_msg("%s", rows[i].cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole)};

    return RUN(tests);
}
