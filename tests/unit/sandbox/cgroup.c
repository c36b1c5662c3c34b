/* What /proc says about cgroups, on the hosts that there are. */
#include "sandbox/box_int.h"
#include "unit.h"

static char found[48];

static bool own(const char *text, const char *controller)
{
    AUTO_FREE char *copy = mem_strdup(text);

    *found = '\0';
    return cgroup_own_path(copy, controller, found, sizeof(found));
}

static void test_own_path(void **state)
{
    static const char v1[] = "12:pids:/user.slice/a\n"
                             "4:cpu,cpuacct:/b\n"
                             "3:memory:/docker/0123\n"
                             "1:name=systemd:/user.slice\n"
                             "0::/init.scope\n";

    (void)state;
    assert_true(own(v1, "memory"));
    assert_string_equal(found, "/docker/0123");
    assert_true(own(v1, "cpuacct"));
    assert_string_equal(found, "/b");
    assert_true(own(v1, ""));
    assert_string_equal(found, "/init.scope");
    assert_false(own(v1, "mem"));
    assert_false(own(v1, "systemd"));
    assert_true(own("0::/\n", ""));
    assert_string_equal(found, "/");
    assert_true(own("0::/with:colon\n", ""));
    assert_string_equal(found, "/with:colon");
}

static void test_own_path_of_nothing(void **state)
{
    static const char *const rows[] = {"", "\n", "0", "0:", "::", ":memory", "memory", "3:memory"};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_false(own(rows[i], "memory"));
    assert_false(own("3:memory:/0123456789012345678901234567890123456789012345678901234567890123",
                     "memory")); /* does not fit */
}

static bool mounted(const char *line, const char *controller)
{
    *found = '\0';
    return cgroup_mounted_at(line, controller, found, sizeof(found));
}

static void test_mounted(void **state)
{
    static const char v2[] = "35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
                             "rw,nsdelegate\n";
    static const char v1[] = "41 35 0:36 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
                             "rw,cpu,cpuacct\n";

    (void)state;
    assert_true(mounted(v2, ""));
    assert_string_equal(found, "/sys/fs/cgroup");
    assert_false(mounted(v2, "memory"));
    assert_true(mounted(v1, "cpu"));
    assert_string_equal(found, "/sys/fs/cgroup/cpu,cpuacct");
    assert_true(mounted(v1, "cpuacct"));
    assert_false(mounted(v1, "memory"));
    assert_false(mounted(v1, "cpua"));
    assert_false(mounted(v1, ""));
}

static void test_not_mounted(void **state)
{
    static const char *const rows[] = {
        "",
        " - ",
        "35 25 0:30 / /x rw",
        "35 25 0:30 / /x rw - cgroup2",
        "35 25 0:30 - cgroup2 cgroup2 rw",
        "35 25 0:30 /sub /sys/fs/cgroup rw - cgroup2 cgroup2 rw", /* not from its root */
        "35 25 0:30 / /x rw - tmpfs cgroup2 rw,cgroup2",
        "1 2 0:3 / /a/path/of/more/than/forty-seven/characters/which/does/not/fit r - cgroup2 x r",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (mounted(rows[i], ""))
            fail_msg("row %zu was taken for a mount", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_path),
        cmocka_unit_test(test_own_path_of_nothing),
        cmocka_unit_test(test_mounted),
        cmocka_unit_test(test_not_mounted),
    };

    return RUN(tests);
}
