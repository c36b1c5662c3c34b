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

/* To be read, of a file that holds the first `there` bytes of it; nobody has written to it. */
static char *map_to_read(size_t bytes, size_t there)
{
    int fd = memfd_create("to-read", MFD_CLOEXEC);
    char *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);

    if (fd < 0 || ftruncate(fd, (off_t)there) < 0 || pwrite(fd, "r", 1, 0) != 1)
        return MAP_FAILED;
    close(fd);
    return p;
}

/* In the child: the mapping that starts here or has grown together with what lies before. */
static const struct map *map_of(const void *p)
{
    static struct maps maps;
    unsigned long at = (unsigned long)p;

    if (!maps_read(&maps))
        return NULL;
    maps_done(&maps);
    for (size_t i = 0; i < maps.count; i++)
        if (maps.map[i].from <= at && at < maps.map[i].to)
            return &maps.map[i];
    return NULL;
}

/* A fork pays for each mapping, so small ones are to grow together; large ones stay the file's. */
static int look_at_files(const char *small, const char *large, const char *cut)
{
    const struct map *m = map_of(small);

    if (!m || !m->image || m->prot != (PROT_READ | PROT_EXEC) || small[0] != 'r' || small[1] != 0)
        return 8;
    m = map_of(large);
    if (!m || m->image || m->prot != PROT_READ || large[0] != 'r')
        return 9;
    m = map_of(cut);
    return m && !m->image && cut[0] == 'r' ? 0 : 10;
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
    const char *small = map_to_read(HEAP_SMALL, HEAP_SMALL);
    const char *large = map_to_read(HEAP_SMALL + page, HEAP_SMALL + page);
    const char *cut = map_to_read(2 * page, page);
    AUTO_FREE char *heap = malloc(100000);
    char second = 0;
    struct err e;

    if (fd < 0 || own == MAP_FAILED || file == MAP_FAILED || wiped == MAP_FAILED || !heap ||
        small == MAP_FAILED || large == MAP_FAILED || cut == MAP_FAILED ||
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
    return look_at_files(small, large, cut);
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
