#include "doors/mcp/resource.h"

#include "unit.h"

#define SESSION   "sess_01h455vb4pex5vsknk084sn02q12"
#define EXECUTION "exec_01h455vb4pex5vsknk084sn02q12"
#define FILES     "retort://sessions/" SESSION "/files/"
#define OUTPUT    "retort://executions/" EXECUTION "/output"

static void test_made_and_read_again(void **state)
{
    static const struct str paths[] = {
        {"a.txt",             5 },
        {"dir/b c.txt",       11},
        {"100%25.txt",        10},
        {"?offset=1&#",       11},
        {"\xc3\xbc/\xff\x01", 5 },
    };
    char text[URI_MAX];
    struct uri u;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_non_null(uri_of_file(text, STR(SESSION), paths[i]));
        assert_int_equal(uri_read(str_of(text), &u, &e), 0);
        assert_int_equal(u.kind, URI_FILE);
        assert_string_equal(u.id, SESSION);
        assert_true(str_is(paths[i], u.path));
        assert_false(u.is_part);
    }
}

static void test_a_path_too_long_has_no_name(void **state)
{
    char path[SPACE_PATH_MAX], text[URI_MAX];

    (void)state;
    memset(path, '\xff', sizeof(path));
    assert_null(uri_of_file(text, STR(SESSION), (struct str){path, SPACE_PATH_MAX}));
    assert_non_null(uri_of_file(text, STR(SESSION), (struct str){path, SPACE_PATH_MAX - 1}));
    assert_true(strlen(text) < URI_MAX);
}

static void test_parts(void **state)
{
    struct uri u;
    struct err e;

    (void)state;
    assert_int_equal(uri_read(STR(OUTPUT "?limit=7&offset=123456789012345"), &u, &e), 0);
    assert_int_equal(u.kind, URI_OUTPUT);
    assert_true(u.is_part && u.limit == 7 && u.offset == 123456789012345);
    assert_int_equal(uri_read(STR(OUTPUT "?"), &u, &e), 0);
    assert_false(u.is_part);
}

static void test_images(void **state)
{
    char text[URI_MAX];
    struct uri u;
    struct err e;

    (void)state;
    uri_of_image(text, STR(EXECUTION), 3);
    assert_int_equal(uri_read(str_of(text), &u, &e), 0);
    assert_int_equal(u.kind, URI_IMAGE);
    assert_int_equal(u.image, 3);
    assert_int_equal(uri_read(STR("retort://executions/" EXECUTION "/images/x"), &u, &e), 0);
    assert_string_equal(u.id, "");
    assert_int_equal(uri_read(STR("retort://executions/" EXECUTION "/images/1?offset=1"), &u, &e),
                     -1);
}

static void test_wrong(void **state)
{
    static const char *const wrong[] = {
        FILES "../x",
        FILES "%2e%2e/x",
        FILES "a%00b",
        FILES "%",
        FILES "%4",
        FILES "a%g0",
        FILES,
        OUTPUT "?offset=",
        OUTPUT "?offset=-1",
        OUTPUT "?limit=0",
        OUTPUT "?x=1",
        OUTPUT "?offset",
        OUTPUT "?limit=1&&",
        OUTPUT "?limit=1e9",
        OUTPUT "?offset=1234567890123456",
    };
    struct uri u;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (uri_read(str_of(wrong[i]), &u, &e) == 0)
            fail_msg("%s was read", wrong[i]);
}

static void test_of_nothing_there(void **state)
{
    static const char *const none[] = {
        "retort://sessions/",
        "retort://sessions/x/files/a",
        "retort://sessions/" SESSION,
        "retort://sessions/" SESSION "/other/a",
        "retort://executions/" SESSION "/output",
        "retort://executions/" EXECUTION "/outputs",
        "retort://executions/" EXECUTION,
    };
    struct uri u;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(none); i++) {
        assert_int_equal(uri_read(str_of(none[i]), &u, &e), 0);
        assert_int_not_equal(u.kind, URI_OTHER);
        assert_string_equal(u.id, "");
    }
    assert_int_equal(uri_read(STR("file:///etc/passwd"), &u, &e), 0);
    assert_int_equal(u.kind, URI_OTHER);
    assert_int_equal(uri_read(STR(""), &u, &e), 0);
    assert_int_equal(u.kind, URI_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_and_read_again),
        cmocka_unit_test(test_a_path_too_long_has_no_name),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_of_nothing_there),
    };

    return RUN(tests);
}
