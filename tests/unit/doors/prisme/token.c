/* Tokens of trusted sources: which one lets in, and as whom. */
#include "doors/prisme/prisme_int.h"
#include "unit.h"

#include <stdlib.h>

#define KEY "0123456789abcdef0123456789abcdef"
#define NOW 1700000000

/* Signed with KEY: {"alg":"HS256"}, {"iss":"agent-factory","exp":1700000060}. */
#define GOOD                                                                                       \
    "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJhZ2VudC1mYWN0b3J5IiwiZXhwIjoxNzAwMDAwMDYwfQ."                 \
    "5sxim1hjv6uaktlTtGiCcb9e-Q6RWGz6OUJgF_zYfdo"

static bool let_in(const char *token, const char *key, int64_t now, char name[64])
{
    return token_read(str_of(token), str_of(key), now, name, 64);
}

static void test_a_good_token_names_its_source(void **state)
{
    char name[64];

    (void)state;
    assert_true(let_in(GOOD, KEY, NOW, name));
    assert_string_equal(name, "agent-factory");
}

static void test_time_has_two_ends(void **state)
{
    char name[64];

    (void)state;
    assert_false(let_in(GOOD, KEY, NOW + 60, name));
    assert_true(let_in(GOOD, KEY, NOW + 59, name));
    assert_false(let_in(GOOD, KEY, NOW + 60 - TOKEN_LIFE_S - 1, name));
}

static void test_every_bit_counts(void **state)
{
    char name[64], bad[sizeof(GOOD)];

    (void)state;
    assert_false(let_in(GOOD, "0123456789abcdef0123456789abcdeF", NOW, name));
    assert_false(let_in(GOOD, "", NOW, name));
    for (size_t i = 0; i + 1 < sizeof(bad); i++) {
        memcpy(bad, GOOD, sizeof(bad));
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        assert_false(let_in(bad, KEY, NOW, name));
    }
    for (size_t n = 0; n + 1 < sizeof(bad); n++)
        assert_false(token_read((struct str){GOOD, n}, str_of(KEY), NOW, name, sizeof(name)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_token_names_its_source),
        cmocka_unit_test(test_time_has_two_ends),
        cmocka_unit_test(test_every_bit_counts),
    };

    return RUN(tests);
}
