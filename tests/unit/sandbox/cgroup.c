/*
 * What /proc says about cgroups, on the hosts that there are; and groups of both versions in a tree
 * of plain files, as not every host has them. mkdirat() and unlinkat() are this program's own: a
 * new directory has the files that the kernel would put there, and they go with it.
 */
#include "sandbox/box_int.h"
#include "scratch.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <sys/syscall.h>

/* --- a tree --- */

static const char *const files[] = {
    "cgroup.procs", "cgroup.kill",     "cgroup.subtree_control",
    "memory.max",   "memory.swap.max", "pids.max",
    "cpu.max",      "cpu.weight",      "memory.events",
    "pids.events",  "cpu.stat",        "memory.peak",
    "tasks",        "cpuacct.usage",   "memory.limit_in_bytes",
};
static bool is_busy;

int mkdirat(int dir, const char *name, mode_t mode)
{
    char path[256];

    if (syscall(SYS_mkdirat, dir, name, mode) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", name, files[i]);
        close(openat(dir, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    }
    return 0;
}

int unlinkat(int dir, const char *name, int flags)
{
    char path[256];

    if (is_busy) {
        errno = EBUSY;
        return -1;
    }
    for (size_t i = 0; flags && i < COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", name, files[i]);
        syscall(SYS_unlinkat, dir, path, 0);
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

struct tree {
    struct scratch dir;
    struct cgroups *groups;
    char box[128]; /* from dir: that of box 1 */
};

static int tree_open(void **state)
{
    static struct tree t;

    t = (struct tree){0};
    is_busy = false;
    *state = &t;
    if (scratch_open(&t.dir) < 0)
        return -1;
    scratch_put(&t.dir, "cgroup.controllers", STR("cpuset cpu io memory pids\n"));
    scratch_put(&t.dir, "cgroup.subtree_control", STR(""));
    return 0;
}

static int tree_close(void **state)
{
    struct tree *t = *state;

    cgroups_close(t->groups);
    return scratch_close(&t->dir);
}

static int is_instance(const struct dirent *entry)
{
    return strchr(entry->d_name, '-') != NULL;
}

/* With one box in it. */
static void fill(struct tree *t)
{
    struct dirent **found;
    struct err e;
    char path[64];

    t->groups = cgroups_open_v2(t->dir.path);
    assert_int_equal(cgroups_mode(t->groups), CGROUP_V2);
    assert_int_equal(cgroup_make(t->groups, 1, &e), 0);
    snprintf(path, sizeof(path), "%s/retort", t->dir.path);
    assert_int_equal(scandir(path, &found, is_instance, NULL), 1);
    snprintf(t->box, sizeof(t->box), "retort/%.60s/b1", found[0]->d_name);
    free(found[0]);
    free(found);
}

static const char *in_box(const struct tree *t, const char *file)
{
    static char path[192];

    snprintf(path, sizeof(path), "%s/%s", t->box, file);
    return path;
}

static const struct box_plan plan = {.memory_bytes = 1048576, .pids = 7, .cpu_percent = 50};

static void test_limits(void **state)
{
    struct tree *t = *state;
    struct err e;

    fill(t);
    assert_int_equal(cgroup_limit(t->groups, 1, &plan, &e), 0);
    scratch_expect(&t->dir, in_box(t, "memory.max"), STR("1048576"));
    scratch_expect(&t->dir, in_box(t, "memory.swap.max"), STR("0"));
    scratch_expect(&t->dir, in_box(t, "pids.max"), STR("7"));
    scratch_expect(&t->dir, in_box(t, "cpu.max"), STR("50000 100000"));
    scratch_expect(&t->dir, "retort/cpu.weight", STR("1600"));
}

/* A kernel without swap or the cpu controller loses a nicety; one without memory.max the limit. */
static void test_limits_that_are_needed(void **state)
{
    struct tree *t = *state;
    struct err e = {0};

    fill(t);
    assert_int_equal(unlinkat(t->dir.fd, in_box(t, "memory.swap.max"), 0), 0);
    assert_int_equal(unlinkat(t->dir.fd, in_box(t, "cpu.max"), 0), 0);
    assert_int_equal(cgroup_limit(t->groups, 1, &plan, &e), 0);
    assert_int_equal(unlinkat(t->dir.fd, in_box(t, "memory.max"), 0), 0);
    assert_int_equal(cgroup_limit(t->groups, 1, &plan, &e), -1);
    assert_has(e.text, "memory.max");
}

static void test_what_a_box_has_used(void **state)
{
    struct tree *t = *state;
    struct box_usage used;
    int meters[METERS];
    uint64_t cpu_us, bytes;

    fill(t);
    scratch_put(&t->dir, in_box(t, "memory.events"), STR("low 0\noom 4\noom_kill 3\n"));
    scratch_put(&t->dir, in_box(t, "pids.events"), STR("max 2\n"));
    scratch_put(&t->dir, in_box(t, "cpu.stat"), STR("usage_usec 1234\nuser_usec 1000\n"));
    scratch_put(&t->dir, in_box(t, "memory.peak"), STR("4096\n"));
    cgroup_usage(t->groups, 1, &used);
    assert_int_equal(used.oom_kills, 3);
    assert_int_equal(used.pid_hits, 2);
    cgroup_meters(t->groups, 1, meters);
    assert_true(meter_read_cpu(meters[METER_CPU], &cpu_us));
    assert_int_equal(cpu_us, 1234);
    assert_true(meter_read_memory(meters[METER_MEMORY], &bytes));
    assert_int_equal(bytes, 4096);
    for (int i = 0; i < METERS; i++)
        fd_closep(&meters[i]);
}

/* The new process is born in the directory that the one door is. */
static void test_door(void **state)
{
    struct tree *t = *state;
    int doors[CGROUP_DOORS_MAX];
    struct stat door, box;
    struct err e;

    fill(t);
    assert_int_equal(cgroup_doors(t->groups, 1, doors, &e), 1);
    assert_int_equal(fstat(doors[0], &door), 0);
    assert_int_equal(fstatat(t->dir.fd, t->box, &box, 0), 0);
    assert_int_equal(door.st_ino, box.st_ino);
    fd_closep(&doors[0]);
}

static bool is_there(const struct tree *t, const char *path)
{
    return faccessat(t->dir.fd, path, F_OK, 0) == 0;
}

static void test_the_end(void **state)
{
    struct tree *t = *state;

    fill(t);
    is_busy = true;
    assert_int_equal(cgroup_remove(t->groups, 1), -1);
    assert_int_equal(errno, EBUSY);
    is_busy = false;
    assert_int_equal(cgroup_remove(t->groups, 1), 0);
    assert_int_equal(cgroup_remove(t->groups, 1), 0); /* it is gone already */
    cgroups_close(take_ptr(&t->groups));
    assert_false(is_there(t, "retort"));
}

static void test_what_the_dead_have_left(void **state)
{
    struct tree *t = *state;

    assert_int_equal(mkdirat(t->dir.fd, "retort", 0755), 0);
    assert_int_equal(mkdirat(t->dir.fd, "retort/1-abc", 0755), 0);
    assert_int_equal(mkdirat(t->dir.fd, "retort/1-abc/b1", 0755), 0);
    fill(t);
    assert_false(is_there(t, "retort/1-abc"));
    assert_true(is_there(t, t->box));
}

static void test_not_ours(void **state)
{
    struct tree *t = *state;

    assert_int_equal(unlinkat(t->dir.fd, "cgroup.subtree_control", 0), 0);
    t->groups = cgroups_open_v2(t->dir.path);
    assert_int_equal(cgroups_mode(t->groups), CGROUP_NONE);
    assert_has(cgroups_why(t->groups), "is not delegated to this user");
}

static void test_without_memory(void **state)
{
    struct tree *t = *state;

    scratch_put(&t->dir, "cgroup.controllers", STR("cpuset cpu io pids memory2\n"));
    t->groups = cgroups_open_v2(t->dir.path);
    assert_int_equal(cgroups_mode(t->groups), CGROUP_NONE);
}

/* cpu and cpuacct are one hierarchy on most hosts, and a group is made there once. */
static void test_version_1(void **state)
{
    struct tree *t = *state;
    char memory[96], pids[96], cpu[96];
    const char *const base[] = {memory, pids, cpu, cpu};
    int doors[CGROUP_DOORS_MAX], meters[METERS];
    struct err e;

    snprintf(memory, sizeof(memory), "%s/memory", t->dir.path);
    snprintf(pids, sizeof(pids), "%s/pids", t->dir.path);
    snprintf(cpu, sizeof(cpu), "%s/cpu", t->dir.path);
    assert_int_equal(mkdirat(t->dir.fd, "memory", 0755), 0);
    assert_int_equal(mkdirat(t->dir.fd, "pids", 0755), 0);
    assert_int_equal(mkdirat(t->dir.fd, "cpu", 0755), 0);
    t->groups = cgroups_open_v1(base);
    assert_int_equal(cgroups_mode(t->groups), CGROUP_V1);
    assert_int_equal(cgroup_make(t->groups, 1, &e), 0);
    assert_int_equal(cgroup_limit(t->groups, 1, &plan, &e), 0);
    assert_int_equal(cgroup_doors(t->groups, 1, doors, &e), 4);
    for (int i = 0; i < 4; i++)
        close(doors[i]);
    cgroup_meters(t->groups, 1, meters);
    assert_true(meters[METER_CPU] >= 0);
    for (int i = 0; i < METERS; i++)
        fd_closep(&meters[i]);
    assert_int_equal(cgroup_remove(t->groups, 1), 0);
    cgroups_close(take_ptr(&t->groups));
    assert_false(is_there(t, "cpu/retort"));
    assert_false(is_there(t, "memory/retort"));
}

/* --- what /proc says --- */

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

#define IN_TREE(f) cmocka_unit_test_setup_teardown(f, tree_open, tree_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_path),
        cmocka_unit_test(test_own_path_of_nothing),
        cmocka_unit_test(test_mounted),
        cmocka_unit_test(test_not_mounted),
        IN_TREE(test_limits),
        IN_TREE(test_limits_that_are_needed),
        IN_TREE(test_what_a_box_has_used),
        IN_TREE(test_door),
        IN_TREE(test_the_end),
        IN_TREE(test_what_the_dead_have_left),
        IN_TREE(test_not_ours),
        IN_TREE(test_without_memory),
        IN_TREE(test_version_1),
    };

    return RUN(tests);
}
