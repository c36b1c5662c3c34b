/* What every unit test includes. cmocka wants these four headers before its own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#undef stop /* a macro of version 2, for debuggers; a plain word of ours */

#include "base/base.h"

#define assert_str(s, literal)                                                                     \
    do {                                                                                           \
        struct str assert_s_ = (s);                                                                \
        assert_int_equal(assert_s_.n, sizeof(literal) - 1);                                        \
        assert_memory_equal(assert_s_.p ? assert_s_.p : "", literal, sizeof(literal) - 1);         \
    } while (0)

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("'%s' is not in: %s", (part), (text));                                        \
    } while (0)

/* cmocka has this under other names in version 2 and calls the old one deprecated. */
#define assert_between(value, low, high)                                                           \
    do {                                                                                           \
        intmax_t assert_v_ = (intmax_t)(value);                                                    \
        if (assert_v_ < (intmax_t)(low) || assert_v_ > (intmax_t)(high))                           \
            fail_msg("%s is %jd, not from %jd to %jd", #value, assert_v_, (intmax_t)(low),         \
                     (intmax_t)(high));                                                            \
    } while (0)

#define RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)
