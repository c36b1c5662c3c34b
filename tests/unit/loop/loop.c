#include "loop/loop.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct seen {
    struct loop *loop;
    struct watch *watch;
    struct timer *timer;
    int pipe[2];
    int count;
    char order[16];
};

static int open_loop(void **state)
{
    struct seen *s = mem_zalloc(sizeof(*s));

    s->loop = loop_new(&(struct err){0});
    *state = s;
    return pipe2(s->pipe, O_CLOEXEC);
}

static int close_loop(void **state)
{
    struct seen *s = *state;

    loop_free(s->loop);
    fd_closep(&s->pipe[0]);
    fd_closep(&s->pipe[1]);
    free(s);
    return 0;
}

static void stop(void *arg)
{
    struct seen *s = arg;

    loop_stop(s->loop);
}

static void on_readable(void *arg)
{
    struct seen *s = arg;
    char byte;

    s->count++;
    if (read(s->pipe[0], &byte, 1) == 0) {
        /* Freed from its own callback, and its fd closed right after. */
        watch_free(s->watch);
        fd_closep(&s->pipe[0]);
        loop_stop(s->loop);
    }
}

static void test_watch(void **state)
{
    struct seen *s = *state;

    s->watch = watch_new(s->loop, s->pipe[0], on_readable, s);
    /* Watching does not change how the fd behaves for its owner. */
    assert_false(fcntl(s->pipe[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(write(s->pipe[1], "ab", 2), 2);
    fd_closep(&s->pipe[1]);
    loop_run(s->loop);
    assert_int_equal(s->count, 3); /* two bytes and the end */
}

/* The kernel takes no regular file into an epoll set, as it takes nothing when a user has as many
 * watches as one may have. */
static void test_watch_that_the_kernel_refuses(void **state)
{
    struct seen *s = *state;
    AUTO_CLOSE int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    s->watch = watch_new(s->loop, file, stop, s);
    loop_run(s->loop);
    watch_pause(s->watch);
    s->timer = timer_new(s->loop, stop, s);
    timer_set(s->timer, 60);
    loop_run(s->loop);
    watch_resume(s->watch);
    loop_run(s->loop);
    watch_free(s->watch);
    timer_free(s->timer);
}

static void test_watch_pause(void **state)
{
    struct seen *s = *state;

    assert_int_equal(write(s->pipe[1], "a", 1), 1);
    s->watch = watch_new(s->loop, s->pipe[0], on_readable, s);
    s->timer = timer_new(s->loop, stop, s);
    watch_pause(s->watch);
    timer_set(s->timer, 20);
    loop_run(s->loop);
    assert_int_equal(s->count, 0);
    watch_resume(s->watch);
    timer_set(s->timer, 20);
    loop_run(s->loop);
    assert_int_equal(s->count, 1);
    timer_free(s->timer);
    watch_free(s->watch);
}

static void on_room(void *arg)
{
    struct seen *s = arg;

    s->count++;
    watch_free(s->watch);
    loop_stop(s->loop);
}

static void test_watch_writable(void **state)
{
    struct seen *s = *state;

    s->watch = watch_new_writable(s->loop, s->pipe[1], on_room, s);
    loop_run(s->loop);
    assert_int_equal(s->count, 1);
}

static void test_timer(void **state)
{
    struct seen *s = *state;
    int64_t begun = time_mono_us();

    s->timer = timer_new(s->loop, stop, s);
    timer_set(s->timer, 1);
    timer_set(s->timer, 30); /* replaces the first */
    loop_run(s->loop);
    assert_true(time_mono_us() - begun >= 29000);

    /* The loop's clock may be old when a timer is set; the wait counts from now. */
    usleep(40000);
    begun = time_mono_us();
    timer_set(s->timer, 30);
    loop_run(s->loop);
    assert_true(time_mono_us() - begun >= 29000);
    timer_clear(s->timer);
    timer_free(s->timer);
}

static void note(struct seen *s, char c)
{
    s->order[s->count++] = c;
}

static void third(void *arg)
{
    note(arg, '3');
    stop(arg);
}

static void first(void *arg)
{
    struct seen *s = arg;

    note(s, '1');
    loop_later(s->loop, third, s);
}

static void second(void *arg)
{
    note(arg, '2');
}

static void test_later(void **state)
{
    struct seen *s = *state;

    loop_later(s->loop, first, s);
    loop_later(s->loop, second, s);
    assert_int_equal(s->count, 0); /* never from inside the call */
    loop_run(s->loop);
    assert_string_equal(s->order, "123");
}

static void on_usr1(void *arg, int signum)
{
    struct seen *s = arg;

    s->count = signum;
    loop_stop(s->loop);
}

static void test_signal(void **state)
{
    struct seen *s = *state;

    s->timer = timer_new(s->loop, stop, s);
    timer_set(s->timer, 2000);
    loop_on_signal(s->loop, SIGUSR1, on_usr1, s);
    raise(SIGUSR1);
    loop_run(s->loop);
    assert_int_equal(s->count, SIGUSR1);
    timer_free(s->timer);
}

/* Everything still open is closed; what was asked for later runs, for it may be a free(). */
static void test_free_with_things_left(void **state)
{
    struct seen *s = *state;

    s->watch = watch_new(s->loop, s->pipe[0], on_readable, s);
    timer_set(timer_new(s->loop, stop, s), 1);
    loop_later(s->loop, second, s);
    loop_stop(s->loop);
    loop_free(s->loop);
    assert_int_equal(s->count, 1);
    s->loop = NULL;
}

/* --- other threads --- */

static void count_up(void *arg)
{
    struct seen *s = arg;

    s->count++;
}

static void on_worked(void *arg)
{
    struct seen *s = arg;

    assert_int_equal(s->count, 1);
    s->count++;
    loop_stop(s->loop);
}

static void test_work(void **state)
{
    struct seen *s = *state;

    loop_work(s->loop, count_up, on_worked, s);
    loop_run(s->loop);
    assert_int_equal(s->count, 2);
}

enum { POSTS = 1000 };

static void on_post(void *arg)
{
    struct seen *s = arg;

    if (++s->count == POSTS)
        loop_stop(s->loop);
}

static void *post_many(void *arg)
{
    struct seen *s = arg;

    for (int i = 0; i < POSTS / 2; i++)
        loop_post(s->loop, on_post, s);
    return NULL;
}

static void test_post(void **state)
{
    struct seen *s = *state;
    pthread_t threads[2];

    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, s), 0);
    loop_run(s->loop);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(s->count, POSTS);
    loop_post(s->loop, count_up, s); /* the last ones run when the loop is freed */
    loop_free(s->loop);
    assert_int_equal(s->count, POSTS + 1);
    s->loop = NULL;
}

static void on_hangup(void *arg)
{
    struct seen *s = arg;

    s->count++;
}

/* Bytes are not a hang-up; the end is, and it is told once. */
static void test_hangup(void **state)
{
    struct seen *s = *state;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    s->watch = watch_new_hangup(s->loop, pair[0], on_hangup, s);
    s->timer = timer_new(s->loop, stop, s);
    assert_int_equal(write(pair[1], "x", 1), 1);
    timer_set(s->timer, 20);
    loop_run(s->loop);
    assert_int_equal(s->count, 0);
    fd_closep(&pair[1]);
    timer_set(s->timer, 20);
    loop_run(s->loop);
    assert_int_equal(s->count, 1);
    watch_free(s->watch);
    timer_free(s->timer);
    fd_closep(&pair[0]);
}

#define WITH_LOOP(t) cmocka_unit_test_setup_teardown(t, open_loop, close_loop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(test_watch),       WITH_LOOP(test_watch_that_the_kernel_refuses),
        WITH_LOOP(test_watch_pause), WITH_LOOP(test_watch_writable),
        WITH_LOOP(test_timer),       WITH_LOOP(test_later),
        WITH_LOOP(test_signal),      WITH_LOOP(test_free_with_things_left),
        WITH_LOOP(test_work),        WITH_LOOP(test_post),
        WITH_LOOP(test_hangup),
    };

    return RUN(tests);
}
