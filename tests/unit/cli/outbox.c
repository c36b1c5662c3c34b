/* Readers that do not keep up, and readers that are gone. */
#include "cli/cli_int.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct post {
    struct outbox box;
    struct term out, err;
    int pipe[2]; /* both streams go into it, and writing to it blocks */
    size_t fills;
};

static int open_post(void **state)
{
    static struct post p;

    *state = &p;
    if (pipe2(p.pipe, O_CLOEXEC) < 0)
        return -1;
    p.fills = (size_t)fcntl(p.pipe[1], F_SETPIPE_SZ, 8192);
    outbox_init(&p.box);
    term_init(&p.out, &p.box, p.pipe[1], false);
    term_init(&p.err, &p.box, fcntl(p.pipe[1], F_DUPFD_CLOEXEC, 3), false);
    return 0;
}

static int close_post(void **state)
{
    struct post *p = *state;

    outbox_done(&p->box);
    fd_closep(&p->err.fd);
    fd_closep(&p->pipe[0]);
    fd_closep(&p->pipe[1]);
    return 0;
}

static size_t fill(struct post *p, struct term *t, char c, size_t n)
{
    AUTO_FREE char *bytes = mem_zalloc(n);

    memset(bytes, c, n);
    outbox_put(&p->box, t, (struct str){bytes, n});
    return n;
}

static void test_goes_out_at_once(void **state)
{
    struct post *p = *state;
    char got[16];

    outbox_put(&p->box, &p->out, STR("hello"));
    outbox_put(&p->box, &p->out, STR(""));
    assert_int_equal(outbox_waits_for(&p->box), -1);
    assert_int_equal(read(p->pipe[0], got, sizeof(got)), 5);
}

/* Nothing blocks, nothing is lost, and the order of both streams is kept. */
static void test_slow_reader(void **state)
{
    struct post *p = *state;
    size_t sent = 0, got = 0;
    char order[4], last = 0, chunk[1000];
    int changes = 0;
    ssize_t n;

    sent += fill(p, &p->out, 'a', 3 * p->fills);
    assert_int_equal(outbox_waits_for(&p->box), p->out.fd);
    sent += fill(p, &p->err, 'b', 10);
    sent += fill(p, &p->out, 'c', p->fills);
    while (got < sent) {
        n = read(p->pipe[0], chunk, sizeof(chunk));
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++) {
            if (chunk[i] != last) {
                assert_true(changes < (int)sizeof(order));
                order[changes++] = last = chunk[i];
            }
        }
        got += (size_t)n;
        outbox_push(&p->box);
    }
    assert_int_equal(changes, 3);
    assert_memory_equal(order, "abc", 3);
    assert_int_equal(outbox_waits_for(&p->box), -1);
}

/* A stream that others have made non-blocking is no error. */
static void test_nonblocking_stream(void **state)
{
    struct post *p = *state;

    assert_int_equal(fd_set_nonblock(p->pipe[1]), 0);
    fill(p, &p->out, 'a', 3 * p->fills);
    assert_false(p->out.failed);
    assert_true(outbox_waits_for(&p->box) >= 0);
}

static void test_reader_gone(void **state)
{
    struct post *p = *state;

    signal(SIGPIPE, SIG_IGN);
    fill(p, &p->out, 'a', 3 * p->fills);
    fd_closep(&p->pipe[0]);
    outbox_push(&p->box);
    assert_true(p->out.failed);
    assert_int_equal(p->out.sys, EPIPE);
    assert_int_equal(outbox_waits_for(&p->box), -1); /* what waited for it is dropped */
    outbox_put(&p->box, &p->out, STR("more"));
    assert_int_equal(outbox_waits_for(&p->box), -1);
}

static void test_wait(void **state)
{
    struct post *p = *state;
    size_t n = 5 * p->fills;
    char chunk[4096];
    pid_t reader = fork();
    int status;

    if (reader == 0) {
        fd_closep(&p->pipe[1]);
        fd_closep(&p->err.fd);
        while (n > 0) {
            ssize_t got = read(p->pipe[0], chunk, sizeof(chunk));
            if (got <= 0)
                _exit(1);
            n -= (size_t)got;
        }
        _exit(0);
    }
    fill(p, &p->out, 'a', n);
    outbox_wait(&p->box);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_int_equal(outbox_waits_for(&p->box), -1);
    assert_false(p->out.failed);
}

#define AT_POST(t) cmocka_unit_test_setup_teardown(t, open_post, close_post)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_POST(test_goes_out_at_once), AT_POST(test_slow_reader), AT_POST(test_nonblocking_stream),
        AT_POST(test_reader_gone),      AT_POST(test_wait),
    };

    return RUN(tests);
}
