#include "unit.h"

static void test_views(void **state)
{
    (void)state;
    assert_int_equal(str_of(NULL).n, 0);
    assert_int_equal(str_of("abc").n, 3);
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_false(str_eq(STR("a"), STR("ab")));
    assert_true(str_eq((struct str){NULL, 0}, STR("")));
    assert_true(str_is(STR("name"), "name"));
    assert_false(str_is(STR("name\0"), "name"));
}

static void test_to_cstr(void **state)
{
    char out[4] = "???";

    (void)state;
    assert_true(str_to_cstr(STR("abc"), out, sizeof(out)));
    assert_string_equal(out, "abc");
    assert_false(str_to_cstr(STR("abcd"), out, sizeof(out)));
    assert_false(str_to_cstr(STR("a\0c"), out, sizeof(out)));
    assert_true(str_to_cstr((struct str){NULL, 0}, out, sizeof(out)));
    assert_string_equal(out, "");
}

/* valid: how many bytes from the start are whole, valid UTF-8. */
static void test_utf8(void **state)
{
    static const struct {
        struct str bytes;
        size_t valid;
    } rows[] = {
        {STR(""),                 0},
        {STR("plain"),            5},
        {STR("a\0b"),             3},
        {STR("\x7f"),             1},
        {STR("\xc2\x80"),         2}, /* U+0080, the least of two bytes */
        {STR("\xdf\xbf"),         2}, /* U+07FF */
        {STR("\xe0\xa0\x80"),     3}, /* U+0800 */
        {STR("\xed\x9f\xbf"),     3}, /* U+D7FF, before the surrogates */
        {STR("\xee\x80\x80"),     3}, /* U+E000, after them */
        {STR("\xef\xbf\xbf"),     3}, /* U+FFFF */
        {STR("\xf0\x90\x80\x80"), 4}, /* U+10000 */
        {STR("\xf4\x8f\xbf\xbf"), 4}, /* U+10FFFF, the last */
        {STR("\xf4\x90\x80\x80"), 0}, /* past it */
        {STR("\xf5\x80\x80\x80"), 0},
        {STR("\xff"),             0},
        {STR("\xfe"),             0},
        {STR("ok\x80"),           2}, /* a continuation of nothing */
        {STR("\xc0\x80"),         0}, /* overlong NUL */
        {STR("\xc1\xbf"),         0}, /* overlong U+007F */
        {STR("\xe0\x80\xaf"),     0}, /* overlong slash */
        {STR("\xe0\x9f\xbf"),     0}, /* overlong U+07FF */
        {STR("\xf0\x80\x80\xaf"), 0},
        {STR("\xf0\x8f\xbf\xbf"), 0}, /* overlong U+FFFF */
        {STR("\xed\xa0\x80"),     0}, /* first surrogate */
        {STR("\xed\xbf\xbf"),     0}, /* last surrogate */
        {STR("x\xe2\x82"),        1}, /* torn at the end */
        {STR("x\xf0\x9f\x98"),    1},
        {STR("\xe2\x82\xac!"),    4},
        {STR("\xe2\x28\xa1"),     0}, /* second byte is no continuation */
        {STR("\xc3\xa9\xc3"),     2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t got = str_utf8_len(rows[i].bytes);
        if (got != rows[i].valid)
            fail_msg("row %zu: %zu valid bytes, not %zu", i, got, rows[i].valid);
    }
}

/* Every sequence of two bytes, against the definition: ASCII pairs and C2..DF with a continuation.
 */
static void test_utf8_two_bytes(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char bytes[2] = {(char)a, (char)b};
            bool pair = a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf;
            size_t want = a < 0x80 ? (b < 0x80 ? 2 : 1) : pair ? 2 : 0;
            assert_int_equal(str_utf8_len((struct str){bytes, 2}), want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_to_cstr),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_utf8_two_bytes),
    };

    return RUN(tests);
}
