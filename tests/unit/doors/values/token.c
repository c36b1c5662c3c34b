/* Tokens: what was signed comes back, and nothing else does. */
#include "doors/values/values.h"
#include "unit.h"

#include <stdlib.h>

#define KEY "0123456789abcdef0123456789abcdef"
#define NOW 1700000000

static char *make(int64_t exp)
{
    return token_sign(json_pack("{s:s, s:I}", "sub", "alice", "exp", (json_int_t)exp), STR(KEY));
}

static void test_what_was_signed_comes_back(void **state)
{
    AUTO_FREE char *token = make(NOW + 60);
    json_t *claims = token_open(str_of(token), STR(KEY), NOW, 60);

    (void)state;
    assert_true(token_is(str_of(token)));
    assert_true(str_is(json_view(json_object_get(claims, "sub")), "alice"));
    json_decref(claims);
}

static void test_each_byte_counts(void **state)
{
    AUTO_FREE char *token = make(NOW + 60);

    (void)state;
    for (size_t i = 0; i < strlen(token) - 1; i++) { /* the last one has bits to spare */
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        assert_null(token_open(str_of(token), STR(KEY), NOW, 60));
        token[i] = was;
    }
}

static void test_another_key_and_another_time(void **state)
{
    AUTO_FREE char *token = make(NOW + 60);

    (void)state;
    assert_null(token_open(str_of(token), STR("another key, also of some length"), NOW, 60));
    assert_null(token_open(str_of(token), STR(""), NOW, 60));
    assert_null(token_open(str_of(token), STR(KEY), NOW + 60, 60));
    assert_null(token_open(str_of(token), STR(KEY), NOW, 59));
}

static void test_what_is_none(void **state)
{
    static const char *const none[] = {"", ".", "..", "a.b", "rt_abc", "a.b.c.d"};

    (void)state;
    for (size_t i = 0; i < COUNT(none); i++)
        assert_null(token_open(str_of(none[i]), STR(KEY), NOW, 60));
    assert_false(token_is(STR("rt_abc")));
    assert_false(token_is(STR("a.b")));
}

static void test_claims_have_a_limit(void **state)
{
    char long_text[TOKEN_BYTES] = "";

    (void)state;
    memset(long_text, 'a', sizeof(long_text) - 1);
    assert_null(token_sign(json_pack("{s:s}", "sub", long_text), STR(KEY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_signed_comes_back),
        cmocka_unit_test(test_each_byte_counts),
        cmocka_unit_test(test_another_key_and_another_time),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_claims_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
