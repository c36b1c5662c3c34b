/*
 * Arbitrary packets, with and without descriptors, on a socket: what is received is
 * what was sent, what is malformed is refused, and no descriptor is left behind.
 */
#include "wire/wire.h"

#include "support/fuzz.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_SENT (WIRE_FDS_MAX + 2)

/* One packet of the script: raw bytes, or a head that tells the truth about them. */
static void send_one(int sock, struct feed *feed, char *bytes, size_t *ret_n)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_SENT * sizeof(int))];
    } control = {0};
    uint8_t how = feed_byte(feed);
    unsigned nfds = how & 1 ? feed_byte(feed) % (FDS_SENT + 1) : 0;
    bool honest = how & 8;
    struct str text = feed_text(feed, feed_num(feed, 2));
    size_t repeat = how & 0x80 ? 1 + (feed_byte(feed) << 6) : 1;
    size_t n = 0;
    struct wire_head head = {.type = 1, .id = 2};

    n += honest ? sizeof(head) : 0;
    for (size_t i = 0; i < repeat && text.n && n + text.n <= WIRE_BODY_MAX + KiB; i++) {
        memcpy(bytes + n, text.p, text.n);
        n += text.n;
    }
    if (honest) {
        head.len = (uint32_t)(n - sizeof(head));
        memcpy(bytes, &head, sizeof(head));
    }
    struct iovec iov = {bytes, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (nfds > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(nfds * 4)};
        for (unsigned i = 0; i < nfds; i++)
            memcpy(CMSG_DATA(c) + i * sizeof(int), &sock, sizeof(int));
    }
    EXPECT(sendmsg(sock, &m, MSG_DONTWAIT) == (ssize_t)n);
    *ret_n = n;
}

static void recv_one(int sock, const char *sent, size_t n, unsigned want_fds)
{
    static char body[WIRE_BODY_MAX];
    struct wire_head head;
    int fds[WIRE_FDS_MAX];
    size_t nfds = 0;
    int rc = wire_recv(sock, &head, body, want_fds ? fds : NULL, want_fds, want_fds ? &nfds : NULL);
    uint32_t len = 0;

    if (n >= sizeof(head))
        memcpy(&len, sent + offsetof(struct wire_head, len), sizeof(len));
    EXPECT((rc == 1) == (n >= sizeof(head) && len == n - sizeof(head) && len <= WIRE_BODY_MAX));
    if (rc == 1) {
        EXPECT(head.len == len && memcmp(body, sent + sizeof(head), len) == 0);
        EXPECT(nfds <= want_fds);
        for (size_t i = 0; i < nfds; i++)
            EXPECT(close(fds[i]) == 0);
    } else {
        EXPECT(n == 0 ? rc == 0 : rc == -1 && errno == EBADMSG);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[WIRE_BODY_MAX + 2 * KiB];
    struct feed feed = {data, size};
    unsigned open_before = fds_open();
    struct err e;
    int pair[2];

    EXPECT(wire_pair(pair, &e) == 0);
    while (feed.n > 0) {
        unsigned want_fds = feed_byte(&feed) % (WIRE_FDS_MAX + 1);
        size_t n;
        send_one(pair[0], &feed, bytes, &n);
        recv_one(pair[1], bytes, n, want_fds);
    }
    close(pair[0]);
    close(pair[1]);
    EXPECT(fds_open() == open_before);
    return 0;
}
