/* Everything that can be wrong with what is named on the command line. */
#include "cli/cli_int.h"
#include "scratch.h"

struct desk {
    struct scratch dir;
    struct settings s;
    struct sources sources;
    struct inputs inputs;
    struct err e;
};

static int open_desk(void **state)
{
    static struct desk d;

    d = (struct desk){.s.pool.limits.disk_bytes = 1 * MiB};
    *state = &d;
    return scratch_open(&d.dir);
}

static int close_desk(void **state)
{
    struct desk *d = *state;

    sources_done(&d->sources);
    inputs_done(&d->inputs);
    settings_done(&d->s);
    return scratch_close(&d->dir);
}

static int load(struct desk *d)
{
    sources_done(&d->sources);
    return sources_load(&d->sources, &d->s, &d->e);
}

static void test_order_and_labels(void **state)
{
    struct desk *d = *state;

    work_add(&d->s, WORK_SCRIPT, scratch_put(&d->dir, "a.py", STR("#!/usr/bin/python3\nx = 1\n")));
    work_add(&d->s, WORK_CODE, "x");
    work_add(&d->s, WORK_SHELL, "ls");
    assert_int_equal(load(d), 0);
    assert_int_equal(d->sources.count, 3);
    assert_string_equal(d->sources.item[0].label, d->s.work.item[0].arg);
    assert_int_equal(d->sources.item[0].n, 25);
    assert_int_equal(d->sources.item[0].kind, EXEC_CELL);
    assert_string_equal(d->sources.item[1].label, "-c");
    assert_string_equal(d->sources.item[2].label, "--shell");
    assert_int_equal(d->sources.item[2].kind, EXEC_COMMAND);
}

static void test_empty_script_and_byte_order_mark(void **state)
{
    struct desk *d = *state;

    work_add(&d->s, WORK_SCRIPT, scratch_put(&d->dir, "empty", STR("")));
    work_add(&d->s, WORK_SCRIPT, scratch_put(&d->dir, "mark", STR("\xef\xbb\xbfx = 1")));
    assert_int_equal(load(d), 0);
    assert_int_equal(d->sources.item[0].n, 0);
    assert_int_equal(d->sources.item[1].n, 5);
    assert_memory_equal(d->sources.item[1].code, "x = 1", 5);
}

static void expect_refused(struct desk *d, const char *path, const char *why)
{
    settings_done(&d->s);
    work_add(&d->s, WORK_SCRIPT, path);
    assert_int_equal(load(d), -1);
    assert_has(d->e.text, why);
}

static void test_refused(void **state)
{
    struct desk *d = *state;
    AUTO_CLOSE int big = openat(d->dir.fd, "big", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    char path[64];

    assert_int_equal(load(d), -1);
    assert_has(d->e.text, "nothing to run");
    expect_refused(d, "/no/such/file", "cannot open /no/such/file: No such file");
    expect_refused(d, d->dir.path, "is a directory, not a script");
    expect_refused(d, scratch_put(&d->dir, "nul", STR("a\nb\0c")), "NUL byte in line 2");
    expect_refused(d, scratch_put(&d->dir, "latin", STR("\n\n# caf\xe9\n")),
                   "not UTF-8 text: see line 3");
    expect_refused(d, "/dev/zero", "larger than 16 MiB");
    assert_int_equal(ftruncate(big, EXEC_CODE_MAX + 1), 0);
    snprintf(path, sizeof(path), "%s/big", d->dir.path);
    expect_refused(d, path, "larger than 16 MiB");
    settings_done(&d->s);
    work_add(&d->s, WORK_CODE, "\xff");
    assert_int_equal(load(d), -1);
    assert_has(d->e.text, "-c is not UTF-8 text");
}

static void test_one_standard_input(void **state)
{
    struct desk *d = *state;
    int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    AUTO_CLOSE int in = open(scratch_put(&d->dir, "in", STR("x = 2")), O_RDONLY | O_CLOEXEC);

    assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
    work_add(&d->s, WORK_SCRIPT, "-");
    assert_int_equal(load(d), 0);
    assert_int_equal(d->sources.item[0].n, 5);
    work_add(&d->s, WORK_SCRIPT, "-");
    assert_int_equal(load(d), -1);
    assert_has(d->e.text, "can be given once");
    dup2(saved, STDIN_FILENO);
    fd_closep(&saved);
}

/* --- files --- */

static void add_file(struct desk *d, const char *path)
{
    struct err e;

    assert_int_equal(option_set(option_by_letter('f', IN(COMMAND_RUN)), &d->s, "-f", path, &e), 0);
}

static int open_inputs(struct desk *d)
{
    inputs_done(&d->inputs);
    return inputs_open(&d->inputs, &d->s, &d->e);
}

static void test_files(void **state)
{
    struct desk *d = *state;

    assert_int_equal(open_inputs(d), 0);
    add_file(d, scratch_put(&d->dir, "a.csv", STR("1,2")));
    add_file(d, scratch_put(&d->dir, "b", STR("")));
    assert_int_equal(open_inputs(d), 0);
    assert_int_equal(d->inputs.count, 2);
    assert_string_equal(d->inputs.item[0].name, "a.csv");

    assert_int_equal(mkdirat(d->dir.fd, "sub", 0755), 0);
    add_file(d, scratch_put(&d->dir, "sub/b", STR("")));
    assert_int_equal(open_inputs(d), -1);
    assert_string_equal(d->e.text, "two files with the name b");
}

static void test_files_refused(void **state)
{
    static const struct {
        const char *path, *why;
    } rows[] = {
        {"/no/such",  "cannot open /no/such"           },
        {"/tmp",      "/tmp is a directory, not a file"},
        {"/",         "/ is a directory"               },
        {"/dev/null", "a device or pipe"               },
    };
    struct desk *d = *state;
    char path[64];

    for (size_t i = 0; i < COUNT(rows); i++) {
        settings_done(&d->s);
        add_file(d, rows[i].path);
        assert_int_equal(open_inputs(d), -1);
        assert_has(d->e.text, rows[i].why);
    }

    /* A pipe nobody writes to must not make us wait. */
    snprintf(path, sizeof(path), "%s/fifo", d->dir.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    settings_done(&d->s);
    add_file(d, path);
    assert_int_equal(open_inputs(d), -1);
    assert_has(d->e.text, "a device or pipe");
}

static void test_files_must_fit(void **state)
{
    struct desk *d = *state;

    d->s.pool.limits.disk_bytes = 10;
    add_file(d, scratch_put(&d->dir, "a", STR("123456")));
    assert_int_equal(open_inputs(d), 0);
    add_file(d, scratch_put(&d->dir, "b", STR("12345")));
    assert_int_equal(open_inputs(d), -1);
    assert_has(d->e.text, "does not fit into the workspace");
}

#define AT_DESK(t) cmocka_unit_test_setup_teardown(t, open_desk, close_desk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_DESK(test_order_and_labels),
        AT_DESK(test_empty_script_and_byte_order_mark),
        AT_DESK(test_refused),
        AT_DESK(test_one_standard_input),
        AT_DESK(test_files),
        AT_DESK(test_files_refused),
        AT_DESK(test_files_must_fit),
    };

    return RUN(tests);
}
