/* A pipe read in pieces: nothing lost, nothing twice, characters whole. */
#include "engine/engine_int.h"
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

struct tap {
    struct loop *loop;
    struct stream *stream;
    int in;
    size_t pieces;
    struct buf got;
    struct timer *stop;
};

static void on_text(void *arg, enum event_kind kind, struct str text)
{
    struct tap *t = arg;

    assert_int_equal(kind, EVENT_STDOUT);
    assert_true(text.n > 0);
    assert_int_equal(buf_put(&t->got, text), 0);
    t->pieces++;
}

static void stop(void *arg)
{
    struct tap *t = arg;

    loop_stop(t->loop);
}

static int open_tap(void **state)
{
    static struct tap t;
    int p[2];

    t = (struct tap){.loop = loop_new(&(struct err){0})};
    buf_init(&t.got, 4 * MiB);
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    t.in = p[1];
    t.stream = stream_new(t.loop, p[0], EVENT_STDOUT, on_text, &t);
    t.stop = timer_new(t.loop, stop, &t);
    *state = &t;
    return 0;
}

static int close_tap(void **state)
{
    struct tap *t = *state;

    stream_free(t->stream);
    timer_free(t->stop);
    loop_free(t->loop);
    fd_closep(&t->in);
    buf_done(&t->got);
    return 0;
}

static void say(struct tap *t, struct str s)
{
    struct err e;

    assert_int_equal(fd_write_all(t->in, s, &e), 0);
}

static void run_ms(struct tap *t, uint64_t ms)
{
    timer_set(t->stop, ms);
    loop_run(t->loop);
}

/* Until so many bytes have come, however slow the machine. */
static void run_until(struct tap *t, size_t bytes)
{
    for (int i = 0; i < 4000 && t->got.n < bytes; i++)
        run_ms(t, 5);
    assert_int_equal(t->got.n, bytes);
}

static void test_split_character(void **state)
{
    struct tap *t = *state;

    say(t, STR("a\xe2\x82")); /* the first two bytes of a euro sign */
    stream_drain(t->stream);
    assert_str(buf_str(&t->got), "a");
    say(t, STR("\xac"));
    stream_drain(t->stream);
    assert_str(buf_str(&t->got), "a\xe2\x82\xac");
    assert_int_equal(t->pieces, 2);
    stream_flush(t->stream);
    assert_int_equal(t->pieces, 2);
}

static void test_flush_of_a_half(void **state)
{
    struct tap *t = *state;

    say(t, STR("\xf0\x9f"));
    stream_drain(t->stream);
    assert_int_equal(t->pieces, 0);
    stream_flush(t->stream);
    assert_str(buf_str(&t->got), "\xf0\x9f");
    stream_flush(t->stream);
    assert_int_equal(t->pieces, 1);
}

/* What is no UTF-8 is passed on as it is, and never held back for more than a character's length.
 */
static void test_not_utf8(void **state)
{
    struct tap *t = *state;

    say(t, STR("\xff\x80\x80\x80\x80\xc3("));
    stream_drain(t->stream);
    assert_str(buf_str(&t->got), "\xff\x80\x80\x80\x80\xc3(");
}

static void test_by_the_loop(void **state)
{
    struct tap *t = *state;

    say(t, STR("one"));
    run_until(t, 3);
    assert_str(buf_str(&t->got), "one");
    fd_closep(&t->in); /* end of file ends the watching, not the loop */
    run_ms(t, 5);
    stream_drain(t->stream);
    assert_str(buf_str(&t->got), "one");
}

static void test_throttled(void **state)
{
    static char block[32 * 1024];
    struct tap *t = *state;
    int64_t begun = time_mono_us();

    say(t, (struct str){block, sizeof(block)});
    stream_throttle(t->stream, true);
    stream_throttle(t->stream, true);
    run_until(t, sizeof(block));
    assert_true(time_mono_us() - begun >= 9000);
    stream_throttle(t->stream, false);
    say(t, STR("at once"));
    run_until(t, sizeof(block) + 7);
}

static void test_throttled_to_the_end(void **state)
{
    struct tap *t = *state;

    stream_throttle(t->stream, true);
    say(t, STR("last words"));
    fd_closep(&t->in);
    run_until(t, 10);
    assert_str(buf_str(&t->got), "last words");
    stream_throttle(t->stream, false);
    run_ms(t, 2);
}

/* A drain takes no more than a pipe full, however fast the other side writes. */
static void test_drain_is_bounded(void **state)
{
    static char block[256 * 1024];
    struct tap *t = *state;

    if (fcntl(t->in, F_SETPIPE_SZ, (int)sizeof(block)) < (int)sizeof(block))
        return; /* a host that allows no larger pipe needs no bound */
    say(t, (struct str){block, sizeof(block)});
    stream_drain(t->stream);
    assert_between(t->got.n, 64 * KiB, 128 * KiB);
}

static void test_null(void **state)
{
    (void)state;
    stream_drain(NULL);
    stream_flush(NULL);
    stream_throttle(NULL, true);
    stream_free(NULL);
}

#define WITH_TAP(f) cmocka_unit_test_setup_teardown(f, open_tap, close_tap)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TAP(test_split_character),  WITH_TAP(test_flush_of_a_half),
        WITH_TAP(test_not_utf8),         WITH_TAP(test_by_the_loop),
        WITH_TAP(test_throttled),        WITH_TAP(test_throttled_to_the_end),
        WITH_TAP(test_drain_is_bounded), cmocka_unit_test(test_null),
    };

    return RUN(tests);
}
