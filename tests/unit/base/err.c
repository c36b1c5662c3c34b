#include "unit.h"

static void test_set(void **state)
{
    struct err e = {.sys = 7};

    (void)state;
    assert_int_equal(err_set(&e, ERR_CALLER, "no %s", "good"), -1);
    assert_int_equal(e.kind, ERR_CALLER);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.text, "no good");
}

static void test_sys_keeps_errno(void **state)
{
    struct err e;

    (void)state;
    errno = ENOENT;
    assert_int_equal(err_sys(&e, "open %s", "it"), -1);
    assert_int_equal(e.kind, ERR_HOST);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.text, "open it: No such file or directory");
    assert_int_equal(errno, ENOENT);
}

static void test_wrap_puts_context_in_front(void **state)
{
    struct err e;

    (void)state;
    err_set(&e, ERR_LIMIT, "too much");
    assert_int_equal(err_wrap(&e, "read %d", 5), -1);
    assert_string_equal(e.text, "read 5: too much");
    assert_int_equal(e.kind, ERR_LIMIT);
}

/* However long what is said, the text is cut and ends. */
static void test_long_text(void **state)
{
    char text[2000];
    struct err e;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&e, ERR_HOST, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_sys(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_wrap(&e, "%s", text);
    err_wrap(&e, "outside");
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    assert_memory_equal(e.text, "outside: xxx", 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_sys_keeps_errno),
        cmocka_unit_test(test_wrap_puts_context_in_front),
        cmocka_unit_test(test_long_text),
    };

    return RUN(tests);
}
