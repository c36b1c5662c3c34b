#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void test_ownership(void **state)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), mine;

    (void)state;
    mine = take_fd(&fd);
    assert_int_equal(fd, -1);
    errno = EPIPE;
    fd_closep(&fd); /* nothing to close */
    fd_closep(&mine);
    assert_int_equal(mine, -1);
    assert_int_equal(errno, EPIPE);
}

static void test_write_all(void **state)
{
    int pipe_fds[2];
    char got[16];
    struct err e;

    (void)state;
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    assert_int_equal(fd_write_all(pipe_fds[1], STR("all of it"), &e), 0);
    assert_int_equal(read(pipe_fds[0], got, sizeof(got)), 9);
    assert_memory_equal(got, "all of it", 9);
    fd_closep(&pipe_fds[0]);
    fd_closep(&pipe_fds[1]);
    assert_int_equal(fd_write_all(-1, STR("x"), &e), -1);
    assert_int_equal(e.sys, EBADF);
}

static void test_small_files(void **state)
{
    char dir[] = "/tmp/retort-unit.XXXXXX", got[6];
    AUTO_CLOSE int at = -1;
    AUTO_CLOSE int made = -1;

    (void)state;
    assert_non_null(mkdtemp(dir));
    at = open(dir, O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fd_write_file_at(at, "none", STR("x")), -1); /* never creates */
    assert_int_equal(errno, ENOENT);
    made = openat(at, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_file_at(at, "f", STR("123")), 0);
    assert_int_equal(fd_read_file_at(at, "f", got, sizeof(got)), 3);
    assert_string_equal(got, "123");
    assert_int_equal(fd_write_file_at(at, "f", STR("1234567890")), 0);
    assert_int_equal(fd_read_file_at(at, "f", got, sizeof(got)), 5); /* as much as fits */
    assert_string_equal(got, "12345");
    assert_int_equal(fd_read_file_at(at, "none", got, sizeof(got)), -1);
    unlinkat(at, "f", 0);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_write_all),
        cmocka_unit_test(test_small_files),
    };

    return RUN(tests);
}
