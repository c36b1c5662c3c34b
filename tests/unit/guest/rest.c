/* A process at rest: which pages it holds, and that its memory is whole when it goes on. */
#include "guest/heap_int.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pages of the image, in three parts: written to and again as they were, changed in three words,
 * and changed all over. The last are what a rest leaves. */
#define SAME 40
#define FEW  100
#define ALL  30
#define SUM  (SAME + FEW + ALL)

static size_t page;
static uint64_t *area;
static int wakes[2], done[2];
static volatile sig_atomic_t whole_in_handler;

static uint64_t before(size_t i)
{
    return i * 0x9e3779b97f4a7c15u;
}

static uint64_t after(size_t i)
{
    size_t words = page / sizeof(*area), number = i / words, word = i % words;

    if (number < SAME || (number < SAME + FEW && word != 0 && word != 77 && word != words - 1))
        return before(i);
    return ~before(i);
}

static bool is_whole(void)
{
    for (size_t i = 0; i < SUM * page / sizeof(*area); i++)
        if (area[i] != after(i))
            return false;
    return true;
}

static void on_signal(int number)
{
    (void)number;
    whole_in_handler = is_whole() ? 1 : -1;
}

static void *wait_for_end(void *arg)
{
    char byte;

    (void)arg;
    return read(wakes[0], &byte, 1) == 1 ? arg : NULL;
}

/* In the child: frozen, then written to. */
static void prepare(void)
{
    struct err e;

    area = mmap(NULL, SUM * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < SUM * page / sizeof(*area); i++)
        area[i] = before(i);
    if (heap_freeze(&e) < 0)
        _exit(2);
    for (size_t i = 0; i < SUM * page / sizeof(*area); i++)
        area[i] = after(i);
    signal(SIGUSR1, on_signal);
    if (write(done[1], &area, sizeof(area)) != sizeof(area))
        _exit(3);
}

static pid_t start(void (*child)(void))
{
    pid_t pid;

    page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(pipe2(wakes, O_CLOEXEC), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prepare();
        child();
        _exit(is_whole() ? 0 : 1);
    }
    assert_int_equal(read(done[0], &area, sizeof(area)), sizeof(area));
    return pid;
}

static size_t own_pages(pid_t pid)
{
    char path[64];
    uint64_t flags[SUM];
    size_t n = 0;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(
        pread(fd, flags, sizeof(flags), (off_t)((uintptr_t)area / page * sizeof(*flags))),
        sizeof(flags));
    close(fd);
    for (size_t i = 0; i < SUM; i++)
        n += is_own(flags[i]);
    return n;
}

static void wait_for_rest(pid_t pid)
{
    while (own_pages(pid) != ALL)
        usleep(1000);
}

static void end(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (int i = 0; i < 2; i++) {
        close(wakes[i]);
        close(done[i]);
    }
}

static void rest_twice(void)
{
    for (int i = 0; i < 2; i++) {
        char byte;
        pages_rest(wakes[0]);
        if (!is_whole() || read(wakes[0], &byte, 1) != 1)
            _exit(4);
        *(volatile uint64_t *)area = before(0); /* so that it owns a page again */
        if (write(done[1], &byte, 1) != 1)
            _exit(8);
    }
}

static void test_it_lets_go_and_is_whole_again(void **state)
{
    pid_t pid = start(rest_twice);
    char byte;

    (void)state;
    for (int i = 0; i < 2; i++) {
        wait_for_rest(pid);
        assert_int_equal(write(wakes[1], "w", 1), 1);
        assert_int_equal(read(done[0], &byte, 1), 1);
    }
    end(pid);
}

static void rest_until_signal(void)
{
    pages_rest(wakes[0]);
    if (whole_in_handler != 1)
        _exit(5);
}

static void test_a_signal_finds_it_whole(void **state)
{
    pid_t pid = start(rest_until_signal);

    (void)state;
    wait_for_rest(pid);
    kill(pid, SIGUSR1);
    end(pid);
}

static void do_not_rest(void)
{
    pthread_t other;

    if (pthread_create(&other, NULL, wait_for_end, NULL) != 0)
        _exit(6);
    pages_rest(wakes[0]); /* nobody writes: only at once does it come back */
    if (write(wakes[1], "e", 1) != 1 || pthread_join(other, NULL) != 0)
        _exit(7);
}

static void test_nobody_rests_while_a_thread_runs(void **state)
{
    (void)state;
    end(start(do_not_rest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_lets_go_and_is_whole_again),
        cmocka_unit_test(test_a_signal_finds_it_whole),
        cmocka_unit_test(test_nobody_rests_while_a_thread_runs),
    };

    return RUN(tests);
}
