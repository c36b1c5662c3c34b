#include "unit.h"

#include <stdlib.h>

static void test_grows(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 100000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_put(&b, STR("0123456789")), 0);
    assert_int_equal(b.n, 100000);
    assert_memory_equal(b.p + 99990, "0123456789", 10);
    buf_done(&b);
    assert_int_equal(buf_str(&b).n, 0);
}

static void test_ceiling(void **state)
{
    struct buf b;
    struct err e = {0};

    (void)state;
    buf_init(&b, 8);
    assert_int_equal(buf_put(&b, STR("12345678")), 0);
    assert_int_equal(buf_put(&b, STR("")), 0);
    assert_int_equal(buf_check(&b, &e), 0);
    assert_int_equal(buf_put(&b, STR("9")), -1);
    assert_int_equal(buf_check(&b, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    b.n = 0;
    assert_int_equal(buf_put(&b, STR("a")), -1); /* the first failure sticks */
    b.n = 8;
    assert_str(buf_str(&b), "12345678");
    assert_null(buf_room(&b, SIZE_MAX));
    assert_null(buf_room(&b, SIZE_MAX - 4));
    buf_done(&b);
    assert_int_equal(b.max, 8); /* still usable, still bounded */
    assert_int_equal(buf_put(&b, STR("123456789")), -1);
    buf_done(&b);
}

static void test_room(void **state)
{
    struct buf b;
    char *at;

    (void)state;
    buf_init(&b, 4096);
    at = buf_room(&b, 4096);
    assert_non_null(at);
    memset(at, 'x', 4096);
    assert_int_equal(b.n, 0); /* the caller says how much it used */
    b.n += 4096;
    assert_null(buf_room(&b, 1));
    buf_done(&b);
}

static void test_printf(void **state)
{
    struct buf b;
    struct err e = {0};

    (void)state;
    buf_init(&b, 16);
    assert_int_equal(buf_printf(&b, "%d-%s", 7, "ab"), 0);
    assert_int_equal(buf_printf(&b, "%s", ""), 0);
    assert_str(buf_str(&b), "7-ab");
    assert_int_equal(buf_printf(&b, "%s", "0123456789abcdef"), -1);
    assert_int_equal(buf_check(&b, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_str(buf_str(&b), "7-ab");
    buf_done(&b);
}

static void test_memory(void **state)
{
    AUTO_FREE char *copy = mem_strndup(STR("a\0b"));
    char *taken;

    (void)state;
    assert_memory_equal(copy, "a\0b\0", 4);
    taken = take_ptr(&copy);
    assert_null(copy);
    errno = EPIPE;
    mem_freep(&taken);
    assert_null(taken);
    assert_int_equal(errno, EPIPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),  cmocka_unit_test(test_ceiling), cmocka_unit_test(test_room),
        cmocka_unit_test(test_printf), cmocka_unit_test(test_memory),
    };

    return RUN(tests);
}
