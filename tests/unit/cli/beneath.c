/* Names that try to lead out of the directory, and things planted in it. */
#include "cli/cli_int.h"
#include "scratch.h"

struct yard {
    struct scratch dir, outside;
    struct err e;
};

static int open_yard(void **state)
{
    static struct yard y;

    *state = &y;
    return scratch_open(&y.dir) < 0 || scratch_open(&y.outside) < 0 ? -1 : 0;
}

static int close_yard(void **state)
{
    struct yard *y = *state;

    return scratch_close(&y->dir) < 0 || scratch_close(&y->outside) < 0 ? -1 : 0;
}

static int put(struct yard *y, struct str path)
{
    return beneath_write_bytes(y->dir.fd, path, STR("new"), &y->e);
}

static void test_plain_and_nested(void **state)
{
    struct yard *y = *state;

    assert_int_equal(put(y, STR("a.txt")), 0);
    scratch_expect(&y->dir, "a.txt", STR("new"));
    assert_int_equal(put(y, STR("x/y/z.txt")), 0);
    scratch_expect(&y->dir, "x/y/z.txt", STR("new"));
    assert_int_equal(put(y, STR("x/y/other")), 0);
    assert_int_equal(scratch_count(&y->dir), 5); /* and no temporary file */
}

static void test_any_bytes(void **state)
{
    struct yard *y = *state;

    assert_int_equal(put(y, STR("new\nline \xff\x1b[2J")), 0);
    scratch_expect(&y->dir, "new\nline \xff\x1b[2J", STR("new"));
    assert_int_equal(put(y, STR("...")), 0);
    assert_int_equal(put(y, STR("-rf")), 0);
}

static void test_refused_names(void **state)
{
    static char long_name[300];
    struct yard *y = *state;
    const struct str rows[] = {
        STR(""),
        STR("/"),
        STR("/etc/x"),
        STR(".."),
        STR("../x"),
        STR("a/../b"),
        STR("a/.."),
        STR("."),
        STR("./a"),
        STR("a//b"),
        STR("a/"),
        STR("a\0b"),
        STR("a/b/../../../x"),
        {long_name, sizeof(long_name)},
    };

    memset(long_name, 'x', sizeof(long_name));
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(put(y, rows[i]), -1);
        assert_int_equal(y->e.kind, ERR_CALLER);
        assert_has(y->e.text, "no name to write to");
    }
    assert_int_equal(scratch_count(&y->outside), 0);
}

static void test_link_in_place_of_the_file(void **state)
{
    struct yard *y = *state;
    const char *victim = scratch_put(&y->outside, "victim", STR("old"));
    struct stat st;

    assert_int_equal(symlinkat(victim, y->dir.fd, "a"), 0);
    assert_int_equal(put(y, STR("a")), 0);
    scratch_expect(&y->outside, "victim", STR("old"));
    assert_int_equal(fstatat(y->dir.fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
}

static void test_hard_link_in_place_of_the_file(void **state)
{
    struct yard *y = *state;
    const char *victim = scratch_put(&y->outside, "victim", STR("old"));

    assert_int_equal(linkat(AT_FDCWD, victim, y->dir.fd, "a", 0), 0);
    assert_int_equal(put(y, STR("a")), 0);
    scratch_expect(&y->outside, "victim", STR("old"));
}

static void test_link_in_place_of_a_folder(void **state)
{
    struct yard *y = *state;

    assert_int_equal(symlinkat(y->outside.path, y->dir.fd, "a"), 0);
    assert_int_equal(put(y, STR("a/b")), -1);
    assert_int_equal(y->e.sys, ELOOP);
    assert_int_equal(scratch_count(&y->outside), 0);
    /* A link to a folder that is inside is a link too. */
    assert_int_equal(mkdirat(y->dir.fd, "real", 0755), 0);
    assert_int_equal(symlinkat("real", y->dir.fd, "alias"), 0);
    assert_int_equal(put(y, STR("alias/b")), -1);
}

static void test_things_in_the_way(void **state)
{
    struct yard *y = *state;

    scratch_put(&y->dir, "file", STR("old"));
    assert_int_equal(mkdirat(y->dir.fd, "folder", 0755), 0);
    assert_int_equal(put(y, STR("file/x")), -1);
    assert_int_equal(put(y, STR("folder")), -1);
    assert_int_equal(y->e.kind, ERR_HOST);
    scratch_expect(&y->dir, "file", STR("old"));
    assert_int_equal(scratch_count(&y->dir), 2); /* the temporary file is gone */
}

static void test_copy(void **state)
{
    struct yard *y = *state;
    AUTO_CLOSE int src =
        open(scratch_put(&y->outside, "src", STR("12345678")), O_RDONLY | O_CLOEXEC);

    assert_int_equal(beneath_write(y->dir.fd, STR("copy"), src, 8, &y->e), 0);
    scratch_expect(&y->dir, "copy", STR("12345678"));
    assert_int_equal(lseek(src, 0, SEEK_SET), 0);
    assert_int_equal(beneath_write(y->dir.fd, STR("copy"), src, 7, &y->e), -1);
    assert_int_equal(y->e.kind, ERR_LIMIT);
    scratch_expect(&y->dir, "copy", STR("12345678")); /* what was there stays */
    assert_int_equal(scratch_count(&y->dir), 1);
}

#define IN_YARD(t) cmocka_unit_test_setup_teardown(t, open_yard, close_yard)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_YARD(test_plain_and_nested),
        IN_YARD(test_any_bytes),
        IN_YARD(test_refused_names),
        IN_YARD(test_link_in_place_of_the_file),
        IN_YARD(test_hard_link_in_place_of_the_file),
        IN_YARD(test_link_in_place_of_a_folder),
        IN_YARD(test_things_in_the_way),
        IN_YARD(test_copy),
    };

    return RUN(tests);
}
