/* What was packed comes back as it was; what cannot be read says so, and harms nothing. */
#include "engine/engine.h"
#include "scratch.h"

#include <sys/mman.h>

struct places {
    struct scratch from[HOME_ROOTS], to[HOME_ROOTS];
    struct space sources[HOME_ROOTS], targets[HOME_ROOTS];
};

static void places_init(struct places *p)
{
    for (int i = 0; i < HOME_ROOTS; i++) {
        assert_int_equal(scratch_open(&p->from[i]), 0);
        assert_int_equal(scratch_open(&p->to[i]), 0);
        p->sources[i] = (struct space){p->from[i].fd, geteuid()};
        p->targets[i] = (struct space){p->to[i].fd, geteuid()};
    }
}

static void places_done(struct places *p)
{
    for (int i = 0; i < HOME_ROOTS; i++) {
        (void)!fchmodat(p->from[i].fd, "a/b", 0755, 0);
        (void)!fchmodat(p->to[i].fd, "a/b", 0755, 0);
        assert_int_equal(scratch_close(&p->from[i]), 0);
        assert_int_equal(scratch_close(&p->to[i]), 0);
    }
}

static void write_at(int dir, const char *name, const char *text)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int add(void *arg, struct str bytes, struct err *e)
{
    int fd = *(int *)arg;

    return fd_write_all(fd, bytes, e);
}

static int packed(struct places *p, uint64_t max)
{
    int fd = memfd_create("home", MFD_CLOEXEC);
    struct err e = {0};

    assert_int_equal(home_pack(p->sources, max, add, &fd, &e), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void fill(struct places *p)
{
    int tmp = p->sources[HOME_TMP].dir, work = p->sources[HOME_WORKSPACE].dir;

    assert_int_equal(mkdirat(tmp, "a", 0755), 0);
    assert_int_equal(mkdirat(tmp, "a/b", 0755), 0);
    write_at(tmp, "a/b/file", "text");
    assert_int_equal(fchmodat(tmp, "a/b", 0555, 0), 0);
    write_at(tmp, "large", "twelve bytes");
    assert_int_equal(symlinkat("a/b/file", tmp, "link"), 0);
    write_at(work, "of the store", "x");
    assert_int_equal(mkdirat(work, "empty", 0700), 0);
    assert_int_equal(symlinkat("/nowhere", work, "dangling"), 0);
}

static void there_and_back(void **state)
{
    AUTO_CLOSE int fd = -1;
    struct places p;
    struct err e = {0};
    size_t left_out = 9;
    struct stat st;
    char text[32] = "";

    (void)state;
    places_init(&p);
    fill(&p);
    fd = packed(&p, 1000);
    assert_int_equal(home_unpack(p.targets, fd, &left_out, &e), 0);
    assert_int_equal(left_out, 0);
    int tmp = p.targets[HOME_TMP].dir, work = p.targets[HOME_WORKSPACE].dir;
    assert_int_equal(fd_read_file_at(tmp, "a/b/file", text, sizeof(text)), 4);
    assert_int_equal(fstatat(tmp, "a/b", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0555);
    assert_int_equal(fstatat(tmp, "a/b/file", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(readlinkat(work, "dangling", text, sizeof(text)), 8);
    assert_int_equal(fstatat(work, "empty", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(fstatat(work, "of the store", &st, 0), -1);
    places_done(&p);
}

static void what_does_not_fit_is_counted(void **state)
{
    AUTO_CLOSE int fd = -1;
    struct places p;
    struct err e = {0};
    size_t left_out = 0;
    struct stat st;

    (void)state;
    places_init(&p);
    fill(&p);
    fd = packed(&p, 8);
    assert_int_equal(home_unpack(p.targets, fd, &left_out, &e), 0);
    assert_int_equal(left_out, 1);
    assert_int_equal(fstatat(p.targets[HOME_TMP].dir, "large", &st, 0), -1);
    assert_int_equal(fstatat(p.targets[HOME_TMP].dir, "a/b/file", &st, 0), 0);
    places_done(&p);
}

static void nothing_is_no_byte(void **state)
{
    AUTO_CLOSE int fd = -1;
    struct places p;

    (void)state;
    places_init(&p);
    fd = packed(&p, 1000);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    places_done(&p);
}

/* Every byte of it changed in turn, and every length: an error or not, but an end. */
static void damaged(void **state)
{
    struct places p;
    size_t left_out;

    (void)state;
    places_init(&p);
    fill(&p);
    AUTO_CLOSE int whole = packed(&p, 1000);
    char bytes[1024];
    ssize_t n = read(whole, bytes, sizeof(bytes));
    assert_true(n > 100 && n < (ssize_t)sizeof(bytes));
    if (n < 1)
        return;
    for (ssize_t i = 0; i < 2 * n; i++) {
        AUTO_CLOSE int fd = memfd_create("home", MFD_CLOEXEC);
        struct err e = {0};
        char old = bytes[i % n];
        bytes[i % n] = (char)~old;
        assert_int_equal(write(fd, bytes, (size_t)(i < n ? n : i - n)), i < n ? n : i - n);
        bytes[i % n] = old;
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        if (home_unpack(p.targets, fd, &left_out, &e) < 0)
            assert_int_equal(e.kind, ERR_HOST);
    }
    places_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(nothing_is_no_byte),
        cmocka_unit_test(damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
