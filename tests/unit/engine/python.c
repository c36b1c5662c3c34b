/* Which Python a pool gets: the interpreter's own word, and what is made of it. */
#include "engine/engine_int.h"
#include "scratch.h"

static struct python_info info;
static struct err e;

static int parse(const char *text)
{
    AUTO_FREE char *copy = mem_strdup(text);

    info = (struct python_info){0};
    return python_parse(copy, "python3", &info, &e);
}

static void test_system(void **state)
{
    (void)state;
    assert_int_equal(python_probe("/usr/bin/python3", NULL, &info, &e), 0);
    assert_string_equal(info.executable, "/usr/bin/python3");
    assert_true(info.version[0] == '3' && info.version[1] == '.');
    assert_int_equal(info.dir_count, 0); /* all of it lies below /usr */
}

static void test_default(void **state)
{
    (void)state;
    assert_int_equal(python_probe(NULL, NULL, &info, &e), 0);
    assert_int_equal(info.executable[0], '/');
}

static void test_none(void **state)
{
    (void)state;
    assert_int_equal(python_probe("/nonexistent/python3", NULL, &info, &e), -1);
    assert_int_equal(e.kind, ERR_CALLER);
    assert_has(e.text, "/nonexistent/python3");
}

/* Programs that run and are no Python. */
static void test_garbage(void **state)
{
    static const struct {
        const char *path;
    } rows[] = {{"/bin/true"}, {"/bin/false"}, {"/bin/echo"}, {"/bin/cat"}};
    struct scratch d;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(python_probe(rows[i].path, NULL, &info, &e), -1);
        assert_int_equal(e.kind, ERR_CALLER);
        assert_has(e.text, rows[i].path);
    }
    assert_int_equal(scratch_open(&d), 0);
    const char *script = scratch_put(&d, "script", STR("#!/bin/sh\nhead -c 100000 /dev/zero\n"));
    assert_int_equal(chmod(script, 0700), 0);
    assert_int_equal(python_probe(script, NULL, &info, &e), -1);
    assert_int_equal(scratch_close(&d), 0);
}

static void test_environment_of_its_own(void **state)
{
    (void)state;
    assert_int_equal(parse("/srv/app/venv/bin/python\n3.12.1\n/srv/app/venv\n/srv/app/venv\n"
                           "/usr\n/srv/python\n/srv/python/lib\n"),
                     0);
    assert_string_equal(info.version, "3.12.1");
    assert_int_equal(info.dir_count, 2);
    assert_string_equal(info.dirs[0], "/srv/app/venv");
    assert_string_equal(info.dirs[1], "/srv/python");
}

static void test_too_wide(void **state)
{
    static const char *const rows[] = {"/", "//", "/home", "/root", "/etc", "/var", "/opt/../etc"};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[128];
        snprintf(text, sizeof(text), "/bin/python\n3.11.2\n%s\n", rows[i]);
        if (parse(text) == 0)
            fail_msg("'%s' was accepted", rows[i]);
        assert_int_equal(e.kind, ERR_CALLER);
    }
}

/* A link is as wide as what it leads to. */
static void test_link_to_everything(void **state)
{
    char text[128];
    struct scratch d;

    (void)state;
    assert_int_equal(scratch_open(&d), 0);
    assert_int_equal(symlinkat("/", d.fd, "python"), 0);
    snprintf(text, sizeof(text), "/bin/python\n3.11.2\n%s/python\n", d.path);
    assert_int_equal(parse(text), -1);
    assert_has(e.text, "would show that whole directory");
    assert_int_equal(scratch_close(&d), 0);
}

static void test_too_much(void **state)
{
    char text[8192];
    size_t at = 0;

    (void)state;
    at += (size_t)snprintf(text, sizeof(text), "/bin/python\n3.11.2\n");
    for (int i = 0; i <= PYTHON_DIRS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "/srv/%d\n", i);
    assert_int_equal(parse(text), -1);
    assert_int_equal(e.kind, ERR_LIMIT);

    memset(text, 'x', 600);
    text[0] = '/';
    snprintf(text + 600, sizeof(text) - 600, "\n3.11.2\n");
    assert_int_equal(parse(text), -1);
    assert_int_equal(parse(""), -1);
    assert_int_equal(parse("\n\n\n"), -1);
    assert_int_equal(parse("python3\n3.11.2\n"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_environment_of_its_own),
        cmocka_unit_test(test_too_wide),
        cmocka_unit_test(test_link_to_everything),
        cmocka_unit_test(test_too_much),
    };

    return RUN(tests);
}
