/* Freezing this process's memory into a file, and what is in it afterwards. */
#include "guest/heap_int.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 700 /* more than are looked at in one go */

/* Swap, and moving pages about to make room for large ones, cannot be had at will. Here the kernel
 * says of every page that it is on its way, as it does of a few under load. */
static bool moving;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*): as the linker has them
bool __wrap_maps_flags(const struct maps *m, unsigned long at, uint64_t *ret, size_t pages);
bool __real_maps_flags(const struct maps *m, unsigned long at, uint64_t *ret, size_t pages);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl*)

bool __wrap_maps_flags(const struct maps *m, unsigned long at, uint64_t *ret, size_t pages)
{
    bool done = __real_maps_flags(m, at, ret, pages);

    for (size_t i = 0; i < pages && moving; i++)
        if (ret[i] & PAGEMAP_IN)
            ret[i] = PAGEMAP_SWAP;
    return done;
}

static char mark(size_t i)
{
    return (char)(i % 251 + 1);
}

/* In the child, whose memory is frozen: what is wrong, from 1 on; 0: nothing. Pages of four kinds:
 * written, never touched, of a file and changed, of a file and left alone. */
static int freeze_and_look(size_t page, const char *program)
{
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    char *own =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *file = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *wiped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    AUTO_FREE char *heap = malloc(100000);
    char second = 0;
    struct err e;

    if (fd < 0 || own == MAP_FAILED || file == MAP_FAILED || wiped == MAP_FAILED || !heap ||
        madvise(wiped, page, MADV_WIPEONFORK) < 0 || pread(fd, &second, 1, (off_t)page) != 1)
        return 1;
    for (size_t i = 0; i < PAGES; i += 2)
        memset(own + i * page, mark(i), page);
    memset(heap, 'h', 100000);
    file[0] = 'f';
    wiped[0] = 'w';

    if (heap_freeze(&e) < 0)
        return 2;
    for (size_t i = 0; i < PAGES * page; i++)
        if (own[i] != (i / page % 2 ? 0 : mark(i / page)))
            return 3;
    if (heap[0] != 'h' || heap[99999] != 'h')
        return 4;
    if (file[0] != 'f' || file[page] != second)
        return 5;
    if (heap_frozen_bytes() < PAGES / 2 * page)
        return 6;
    /* What fork() is to wipe is not of the image, for that would bring it back. */
    pid_t pid = fork();
    int status = 0;
    if (pid == 0)
        _exit(wiped[0] != 0 || own[0] != mark(0));
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return 7;
    return 0;
}

static void check(void)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(freeze_and_look((size_t)sysconf(_SC_PAGESIZE), "/proc/self/exe"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status))
        fail_msg("the child was ended by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_everything_is_in_it(void **state)
{
    (void)state;
    moving = false;
    check();
}

static void test_pages_that_are_moved_are_in_it(void **state)
{
    (void)state;
    moving = true;
    check();
    moving = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_is_in_it),
        cmocka_unit_test(test_pages_that_are_moved_are_in_it),
    };

    return RUN(tests);
}
