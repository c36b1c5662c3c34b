/* Ids and keys. */
#include "store/store_int.h"
#include "unit.h"

static void test_id(void **state)
{
    char a[ID_MAX], b[ID_MAX];

    (void)state;
    id_make(a, "sess_");
    id_make(b, "sess_");
    assert_int_equal(strlen(a), 5 + 28);
    assert_memory_equal(a, "sess_", 5);
    assert_string_not_equal(a, b);
    assert_true(id_is(str_of(a), "sess_"));
    assert_false(id_is(str_of(a), "exec_"));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    assert_between(id_ms(str_of(b)), ms - 10000, ms);
    assert_int_equal(id_time(str_of(b)), id_ms(str_of(b)));
    const char *const none[] = {"", "x", "sess_", b + 1 + strlen("sess"),
                                "sess_0000000000000000000000000000_"};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(id_time(str_of(none[i])), 0);
    for (int i = 0; i < 1000; i++) { /* in the order they were made */
        assert_true(strcmp(a, b) < 0);
        memcpy(a, b, sizeof(a));
        id_make(b, "sess_");
    }
}

static void test_every_character_comes(void **state)
{
    bool seen[256] = {0};
    char id[ID_MAX];
    size_t kinds = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        id_make(id, "x_");
        for (const char *c = id + 2; *c; c++)
            seen[(unsigned char)*c] = true;
    }
    for (size_t i = 0; i < COUNT(seen); i++)
        kinds += seen[i];
    assert_int_equal(kinds, 32);
    assert_false(seen['i'] || seen['l'] || seen['o'] || seen['u'] || seen['A']);
}

static void test_what_is_no_id(void **state)
{
    static const struct str bad[] = {
        STR(""),
        STR("sess_"),
        STR("sess_0123456789abcdefghjkmnpqrst"),   /* short */
        STR("sess_0123456789abcdefghjkmnpqrstvw"), /* long */
        STR("sess_0123456789abcdefghjkmnpqrstQ"),
        STR("sess_0123456789abcdefghjkmnpqrstu"), /* not in the alphabet */
        STR("sess_0123456789abcdefghjkmnpqrs/."),
        STR("sess_0123456789abcdefghjkmnpqrs\0q"),
        STR("sesx_0123456789abcdefghjkmnpqrstv"),
    };

    (void)state;
    assert_true(id_is(STR("sess_0123456789abcdefghjkmnpqrstv"), "sess_"));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(id_is(bad[i], "sess_"));
    assert_false(id_is((struct str){NULL, 0}, "sess_"));
}

static void test_key(void **state)
{
    struct key_row a, b;
    char secret[KEY_SECRET_MAX], other[KEY_SECRET_MAX];
    uint8_t hash[32];

    (void)state;
    key_make(&a, secret, "acme", "ci", true);
    key_make(&b, other, "acme", "ci", false);
    assert_int_equal(strlen(secret), 3 + 48);
    assert_memory_equal(secret, "rt_", 3);
    assert_string_not_equal(secret, other);
    assert_true(id_is(str_of(a.id), "key_"));
    assert_string_equal(a.tenant, "acme");
    assert_string_equal(a.name, "ci");
    assert_true(a.admin);
    assert_false(b.admin);
    assert_true(a.created_ms > 1700000000000);
    assert_int_equal(strlen(a.hint), 9);
    assert_memory_equal(a.hint, secret, 9);
    key_hash(str_of(secret), hash);
    assert_memory_equal(a.hash, hash, 32);
    assert_memory_not_equal(b.hash, hash, 32);
    key_row_done(&a);
    key_row_done(&a); /* a zeroed one is fine */
    key_row_done(&b);
}

static void test_hash_is_sha256(void **state)
{
    static const uint8_t abc[32] = {
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
        0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
        0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    };
    uint8_t hash[32];

    (void)state;
    key_hash(STR("abc"), hash);
    assert_memory_equal(hash, abc, sizeof(abc));
    key_hash((struct str){NULL, 0}, hash);
    assert_int_equal(hash[0], 0xe3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_id),
        cmocka_unit_test(test_every_character_comes),
        cmocka_unit_test(test_what_is_no_id),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_hash_is_sha256),
    };

    return RUN(tests);
}
