/* Bare code is told from prose. */
#include "agent/agent_int.h"
#include "unit.h"

static void test_code(void **state)
{
    static const char *const codes[] = {
        "print(1)",
        "x = 1",
        "import os",
        "from os import path as p\np.join('a')",
        "for i in range(3):\n    print(f'{i} of three')",
        "def f(a, *b):\n    '''Say two words.'''\n    return a if b else not a\n\nf(1)",
        "df[df['a'] > 1].describe()  # a comment, with words",
        "a = [x for x in y if x is not None]",
        "with open('x') as f: s = f.read()",
        "assert x == 1, 'two words'\nprint(x)",
        "x = (1 +\n     2)",
        "x: int = 3",
        "n = 5.\nm = .5",
        "x = ...",
        "from . import x",
        "a = 'x' 'y' b'z'",
        "print('a' if b else 'c' 'd')",
        "('a'\n 'b').join(x)",
        "@wraps\nasync def f() -> int:\n    await g()",
        "print(f'{x!r:>{w}}', end='')  # don't",
        "'''What it's for.'''\nx = '''two\nlines'''",
        "print('a\\\nb')",
        "try:\n    f()\nexcept (A, B) as e:\n    raise",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(codes); i++)
        if (!python_likely(str_of(codes[i])))
            fail_msg("%s", codes[i]);
}

static void test_prose(void **state)
{
    static const char *const texts[] = {
        "",
        "42",
        "x",
        "Done.",
        "I will now compute the sum.",
        "The answer is 42",
        "Let me call print(1) first",
        "It's done",
        "print(1",
        "print(1))",
        "s = 'open",
        "Result: good",
        "1. Load the data",
        "x = 'the' value",
        "print 'two' words",
        "I ran f(x).",
        "See https://x.y/z (it's there).",
        "x = 1\n\nThat was it",
        "print(1) print(2)",
        "print(1)?",
        "x = $y",
        "OK!",
        "Yes (I think)",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        if (python_likely(str_of(texts[i])))
            fail_msg("%s", texts[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_prose),
    };

    return RUN(tests);
}
