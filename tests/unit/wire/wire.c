#include "wire/wire.h"
#include "unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- bodies --- */

static void test_fields_round_trip(void **state)
{
    struct wire_field f;
    struct buf b;
    struct str body, got;
    uint64_t n;

    (void)state;
    buf_init(&b, 4096);
    wire_put(&b, TAG_CODE, STR("a\0b"));
    wire_put(&b, TAG_TEXT, STR(""));
    wire_put_num(&b, TAG_NUMBER, UINT64_MAX);
    body = buf_str(&b);

    assert_int_equal(wire_next(&body, &f), 1);
    assert_int_equal(f.tag, TAG_CODE);
    assert_str(f.data, "a\0b");
    assert_int_equal(wire_num(f, &n), -1); /* three bytes are no number */
    assert_int_equal(wire_next(&body, &f), 1);
    assert_int_equal(f.data.n, 0);
    assert_int_equal(wire_next(&body, &f), 1);
    assert_int_equal(wire_num(f, &n), 0);
    assert_true(n == UINT64_MAX);
    assert_int_equal(wire_next(&body, &f), 0);

    assert_true(wire_find(buf_str(&b), TAG_CODE, &got));
    assert_str(got, "a\0b");
    assert_false(wire_find(buf_str(&b), TAG_NAME, &got));
    assert_true(wire_find_num(buf_str(&b), TAG_NUMBER, &n));
    assert_false(wire_find_num(buf_str(&b), TAG_CODE, &n));
    buf_done(&b);
}

/* The bytes on the wire are little-endian on every machine. */
static void test_layout(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 64);
    wire_put_num(&b, 0x0102, 0x0304);
    assert_str(buf_str(&b), "\x02\x01\0\0\x08\0\0\0\x04\x03\0\0\0\0\0\0");
    buf_done(&b);
}

static void test_bad_fields(void **state)
{
    static const struct str rows[] = {
        STR("\x01"),                     /* no whole head */
        STR("\x01\0\0\0\0\0\0"),         /* one byte short of one */
        STR("\x01\0\0\0\x01\0\0\0"),     /* a byte announced, none there */
        STR("\x01\0\0\0\x05\0\0\0abcd"), /* one byte short */
        STR("\x01\0\0\0\xff\xff\xff\xff"
            "abcd"),                    /* the longest lie */
        STR("\x01\0\x01\0\x01\0\0\0x"), /* reserved bytes are zero */
    };
    struct wire_field f;
    struct str got;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str body = rows[i];
        assert_int_equal(wire_next(&body, &f), -1);
        assert_false(wire_find(rows[i], 1, &got));
    }
}

/* --- packets --- */

struct pair {
    int fd[2];
    char body[WIRE_BODY_MAX];
};

static int open_pair(void **state)
{
    static struct pair p;
    struct err e;

    *state = &p;
    return wire_pair(p.fd, &e);
}

static int close_pair(void **state)
{
    struct pair *p = *state;

    fd_closep(&p->fd[0]);
    fd_closep(&p->fd[1]);
    return 0;
}

static void test_pair_is_private(void **state)
{
    struct pair *p = *state;

    for (int i = 0; i < 2; i++)
        assert_true(fcntl(p->fd[i], F_GETFD) & FD_CLOEXEC);
}

static void test_packet(void **state)
{
    struct pair *p = *state;
    struct wire_head h;

    assert_int_equal(wire_send(p->fd[0], MSG_TRIP, 1ull << 40, STR("body"), NULL, 0), 0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), 1);
    assert_int_equal(h.type, MSG_TRIP);
    assert_int_equal(h.flags, 0);
    assert_int_equal(h.len, 4);
    assert_true(h.id == 1ull << 40);
    assert_memory_equal(p->body, "body", 4);

    assert_int_equal(wire_send(p->fd[0], MSG_ACK, 0, STR(""), NULL, 0), 0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), 1);
    assert_int_equal(h.len, 0);
}

static void test_end_and_nothing_yet(void **state)
{
    struct pair *p = *state;
    struct wire_head h;

    assert_int_equal(fd_set_nonblock(p->fd[1]), 0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    fd_closep(&p->fd[0]);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), 0);
    assert_int_equal(wire_send(p->fd[1], MSG_ACK, 0, STR("x"), NULL, 0), -1);
    assert_int_equal(errno, EPIPE); /* and no SIGPIPE */
}

/* What a hostile peer can put on the socket itself. */
static void test_torn_packets(void **state)
{
    struct pair *p = *state;
    struct wire_head good = {.type = MSG_DONE, .len = 4}, h;
    static char big[sizeof(good) + WIRE_BODY_MAX + 1];
    struct {
        struct wire_head head;
        char body[8];
    } packet;
    static const struct {
        size_t sent;  /* bytes in the packet */
        uint32_t len; /* what its head says of the body */
        int want;
    } rows[] = {
        {1,                0,          -1},
        {sizeof(good) - 1, 0,          -1},
        {sizeof(good),     0,          1 },
        {sizeof(good),     1,          -1},
        {sizeof(good) + 4, 3,          -1},
        {sizeof(good) + 4, 4,          1 },
        {sizeof(good) + 4, 5,          -1},
        {sizeof(good) + 4, UINT32_MAX, -1},
        {sizeof(good) + 8, 8,          1 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        packet.head = good;
        packet.head.len = rows[i].len;
        memcpy(packet.body, "12345678", 8);
        assert_int_equal(send(p->fd[0], &packet, rows[i].sent, 0), rows[i].sent);
        errno = 0;
        assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), rows[i].want);
        if (rows[i].want < 0)
            assert_int_equal(errno, EBADMSG);
    }

    good.len = WIRE_BODY_MAX + 1;
    memcpy(big, &good, sizeof(good));
    assert_int_equal(send(p->fd[0], big, sizeof(big), 0), sizeof(big));
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), -1);
    assert_int_equal(errno, EBADMSG);
}

/* --- fds --- */

static size_t open_fds(void)
{
    size_t n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_fds_travel(void **state)
{
    struct pair *p = *state;
    int sent[2] = {open("/dev/null", O_RDONLY | O_CLOEXEC),
                   open("/dev/zero", O_RDONLY | O_CLOEXEC)};
    int got[WIRE_FDS_MAX] = {-1, -1, -1, -1};
    struct wire_head h;
    struct stat a, b;
    size_t n;

    assert_int_equal(wire_send(p->fd[0], MSG_KERNEL, 0, STR("x"), sent, 2), 0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, got, WIRE_FDS_MAX, &n), 1);
    assert_int_equal(n, 2);
    for (int i = 0; i < 2; i++) {
        fstat(sent[i], &a);
        fstat(got[i], &b);
        assert_int_equal(a.st_rdev, b.st_rdev);
        assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
        fd_closep(&sent[i]);
        fd_closep(&got[i]);
    }
}

/* Fds nobody asked for do not stay open, whatever the reason. */
static void test_fds_do_not_leak(void **state)
{
    struct pair *p = *state;
    int nul = open("/dev/null", O_RDONLY | O_CLOEXEC), four[WIRE_FDS_MAX] = {nul, nul, nul, nul};
    size_t before = open_fds(), n;
    int got[WIRE_FDS_MAX];
    struct wire_head h;

    /* The reader takes none. */
    assert_int_equal(wire_send(p->fd[0], MSG_DONE, 0, STR(""), four, 4), 0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), 1);
    assert_int_equal(open_fds(), before);

    /* It takes fewer than came. */
    assert_int_equal(wire_send(p->fd[0], MSG_READY, 0, STR(""), four, 4), 0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, got, 1, &n), 1);
    assert_int_equal(n, 1);
    fd_closep(&got[0]);
    assert_int_equal(open_fds(), before);

    /* The packet they came with is malformed. */
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {
        .align = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}
    };
    struct iovec iov = {(char *)(uintptr_t) "?", 1};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    memcpy(CMSG_DATA(&control.align), &nul, sizeof(nul));
    assert_int_equal(sendmsg(p->fd[0], &m, 0), 1);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, got, WIRE_FDS_MAX, &n), -1);
    assert_int_equal(open_fds(), before);
    fd_closep(&nul);
}

/* --- messages longer than a packet --- */

static void test_long_message(void **state)
{
    struct pair *p = *state;
    size_t size = 2 * WIRE_BODY_MAX + 17, packets = 0;
    AUTO_FREE char *sent = mem_zalloc(size);
    struct wire_head h;
    struct wire_in in;
    int whole;

    for (size_t i = 0; i < size; i++)
        sent[i] = (char)(i * 31);
    wire_in_init(&in, size);
    assert_int_equal(wire_send(p->fd[0], MSG_RESULT, 7, (struct str){sent, size}, NULL, 0), 0);
    do {
        assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), 1);
        whole = wire_in_add(&in, h, (struct str){p->body, h.len});
        packets++;
    } while (whole == 0);
    assert_int_equal(whole, 1);
    assert_int_equal(packets, 3);
    assert_int_equal(in.body.n, size);
    assert_memory_equal(in.body.p, sent, size);

    /* The next message starts afresh. */
    assert_int_equal(wire_in_add(&in, (struct wire_head){.type = MSG_DONE}, STR("x")), 1);
    assert_str(buf_str(&in.body), "x");
    wire_in_done(&in);
}

/* A body of exactly one packet has no empty one behind it. */
static void test_whole_packet_message(void **state)
{
    struct pair *p = *state;
    AUTO_FREE char *sent = mem_zalloc(WIRE_BODY_MAX);
    struct wire_head h;

    assert_int_equal(wire_send(p->fd[0], MSG_RESULT, 7, (struct str){sent, WIRE_BODY_MAX}, NULL, 0),
                     0);
    assert_int_equal(wire_recv(p->fd[1], &h, p->body, NULL, 0, NULL), 1);
    assert_int_equal(h.len, WIRE_BODY_MAX);
    assert_int_equal(h.flags, 0);
}

static void test_wrong_continuation(void **state)
{
    static const struct wire_head begun = {.type = MSG_RESULT, .flags = WIRE_MORE, .id = 1};
    static const struct wire_head rows[] = {
        {.type = MSG_DONE,    .id = 1},
        {                .type = MSG_RESULT,            .id = 2       },
        { .type = MSG_DONE, .id = 1,        .flags = WIRE_MORE},
    };
    struct wire_in in;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wire_in_init(&in, 4096);
        assert_int_equal(wire_in_add(&in, begun, STR("part")), 0);
        assert_int_equal(wire_in_add(&in, rows[i], STR("other")), -1);
        wire_in_done(&in);
    }
}

static void test_message_ceiling(void **state)
{
    struct wire_head more = {.type = MSG_RESULT, .flags = WIRE_MORE}, last = {.type = MSG_RESULT};
    struct wire_in in;

    (void)state;
    wire_in_init(&in, 8);
    assert_int_equal(wire_in_add(&in, more, STR("1234")), 0);
    assert_int_equal(wire_in_add(&in, more, STR("")), 0); /* empty packets add nothing */
    assert_int_equal(wire_in_add(&in, last, STR("5678")), 1);
    assert_int_equal(wire_in_add(&in, more, STR("12345678")), 0);
    assert_int_equal(wire_in_add(&in, last, STR("9")), -1);
    wire_in_done(&in);
}

#define WITH_PAIR(t) cmocka_unit_test_setup_teardown(t, open_pair, close_pair)

static void test_modules(void **state)
{
    static const struct {
        const char *list;
        bool good;
    } rows[] = {
        {"json",              true },
        {"json,numpy.linalg", true },
        {"_a1.B_2",           true },
        {"",                  false},
        {",",                 false},
        {"a,",                false},
        {",a",                false},
        {"a,,b",              false},
        {"a b",               false},
        {"a, b",              false},
        {".a",                false},
        {"a.",                false},
        {"a..b",              false},
        {"1a",                false},
        {"a.1",               false},
        {"-a",                false},
        {"../a",              false},
        {"a/b",               false},
        {"\xc3\xa9",          false},
    };
    char long_name[2 * WIRE_MODULE_MAX], long_list[WIRE_MODULES_MAX + 2];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (wire_are_modules(str_of(rows[i].list)) != rows[i].good)
            fail_msg("'%s'", rows[i].list);
    memset(long_name, 'a', sizeof(long_name));
    assert_true(wire_are_modules((struct str){long_name, WIRE_MODULE_MAX}));
    assert_false(wire_are_modules((struct str){long_name, WIRE_MODULE_MAX + 1}));
    for (size_t i = 0; i < sizeof(long_list); i++)
        long_list[i] = i % 2 ? ',' : 'a';
    assert_true(wire_are_modules((struct str){long_list, WIRE_MODULES_MAX - 1}));
    assert_false(wire_are_modules((struct str){long_list, WIRE_MODULES_MAX + 1}));
    assert_false(wire_are_modules(STR("a\0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_bad_fields),
        WITH_PAIR(test_pair_is_private),
        WITH_PAIR(test_packet),
        WITH_PAIR(test_end_and_nothing_yet),
        WITH_PAIR(test_torn_packets),
        WITH_PAIR(test_fds_travel),
        WITH_PAIR(test_fds_do_not_leak),
        WITH_PAIR(test_long_message),
        WITH_PAIR(test_whole_packet_message),
        cmocka_unit_test(test_wrong_continuation),
        cmocka_unit_test(test_message_ceiling),
        cmocka_unit_test(test_modules),
    };

    return RUN(tests);
}
