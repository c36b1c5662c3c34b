/* Messages between our own processes: fields in a body, a body behind a head, descriptors beside
 * it. Nothing that comes in is trusted. */
#include "wire/wire.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct field_head {
    uint16_t tag;
    uint16_t zero;
    uint32_t len;
};

void wire_put(struct buf *b, uint16_t tag, struct str data)
{
    struct field_head h = {.tag = htole16(tag), .len = htole32((uint32_t)data.n)};
    char *at = data.n <= UINT32_MAX ? buf_room(b, sizeof(h) + data.n) : NULL;

    if (!at)
        abort();
    memcpy(at, &h, sizeof(h));
    if (data.n > 0)
        memcpy(at + sizeof(h), data.p, data.n);
    b->n += sizeof(h) + data.n;
}

void wire_put_num(struct buf *b, uint16_t tag, uint64_t value)
{
    uint64_t le = htole64(value);

    wire_put(b, tag, (struct str){(const char *)&le, sizeof(le)});
}

int wire_next(struct str *body, struct wire_field *ret)
{
    struct field_head h;

    if (body->n == 0)
        return 0;
    if (body->n < sizeof(h))
        return -1;
    memcpy(&h, body->p, sizeof(h));
    if (h.zero != 0 || le32toh(h.len) > body->n - sizeof(h))
        return -1;
    ret->tag = le16toh(h.tag);
    ret->data = (struct str){body->p + sizeof(h), le32toh(h.len)};
    body->p += sizeof(h) + ret->data.n;
    body->n -= sizeof(h) + ret->data.n;
    return 1;
}

int wire_num(struct wire_field f, uint64_t *ret)
{
    uint64_t le;

    if (f.data.n != sizeof(le))
        return -1;
    memcpy(&le, f.data.p, sizeof(le));
    *ret = le64toh(le);
    return 0;
}

bool wire_find(struct str body, uint16_t tag, struct str *ret)
{
    struct wire_field f;

    while (wire_next(&body, &f) == 1) {
        if (f.tag == tag) {
            *ret = f.data;
            return true;
        }
    }
    return false;
}

bool wire_find_num(struct str body, uint16_t tag, uint64_t *ret)
{
    struct wire_field f = {.tag = tag};

    return wire_find(body, tag, &f.data) && wire_num(f, ret) == 0;
}

static bool is_letter(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Names of letters and digits with dots between them: "numpy.linalg". */
static bool is_module(struct str s)
{
    bool begins = true;

    for (size_t i = 0; i < s.n; i++) {
        bool digit = s.p[i] >= '0' && s.p[i] <= '9';
        bool dot = s.p[i] == '.';
        if (begins ? !is_letter(s.p[i]) : !is_letter(s.p[i]) && !digit && !dot)
            return false;
        begins = dot;
    }
    return !begins && s.n <= WIRE_MODULE_MAX;
}

bool wire_are_modules(struct str list)
{
    const char *end;

    if (list.n > WIRE_MODULES_MAX)
        return false;
    while (list.n > 0 && (end = memchr(list.p, ',', list.n))) {
        if (!is_module((struct str){list.p, (size_t)(end - list.p)}))
            return false;
        list = str_from(list, (size_t)(end + 1 - list.p));
    }
    return is_module(list);
}

static int send_packet(int fd, struct wire_head head, struct str part, const int *fds, size_t nfds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
    } control = {0};
    struct iovec iov[2] = {
        {&head,          sizeof(head)},
        {(void *)part.p, part.n      }
    };
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = part.n ? 2 : 1};
    ssize_t n;

    if (nfds > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    }
    do
        n = sendmsg(fd, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

int wire_send(int fd, uint16_t type, uint64_t id, struct str body, const int *fds, size_t nfds)
{
    assert(nfds <= WIRE_FDS_MAX);
    do {
        struct str part = {body.p, body.n < WIRE_BODY_MAX ? body.n : WIRE_BODY_MAX};
        struct wire_head head = {
            .type = htole16(type),
            .flags = htole16(part.n < body.n ? WIRE_MORE : 0),
            .len = htole32((uint32_t)part.n),
            .id = htole64(id),
        };
        if (send_packet(fd, head, part, fds, nfds) < 0)
            return -1;
        nfds = 0;
        if (part.n > 0)
            body.p += part.n;
        body.n -= part.n;
    } while (body.n > 0);
    return 0;
}

int wire_send_whole(int fd, uint16_t type, uint64_t id, struct str body)
{
    struct wire_head head = {.type = htole16(type), .flags = htole16(WIRE_FILE), .id = htole64(id)};
    AUTO_CLOSE int file = -1;
    struct err e;

    if (body.n <= WIRE_BODY_MAX)
        return wire_send(fd, type, id, body, NULL, 0);
    file = memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* Sealed: the receiver may keep it, and must not be able to grow it past every limit. */
    if (file < 0 || fd_write_all(file, body, &e) < 0 ||
        fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -1;
    return send_packet(fd, head, (struct str){0}, &file, 1);
}

int wire_take_file(int file, struct buf *ret)
{
    off_t size = lseek(file, 0, SEEK_END);
    char *at = size < 0 ? NULL : buf_room(ret, (size_t)size);
    ssize_t n;

    for (off_t done = 0; at && done < size; done += n) {
        n = pread(file, at + done, (size_t)(size - done), done);
        if (n <= 0)
            return -1;
    }
    if (!at)
        return -1;
    ret->n += (size_t)size;
    return 0;
}

static size_t take_fds(struct msghdr *m, int *ret, size_t max)
{
    size_t count = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (count < max)
                ret[count++] = fd;
            else
                fd_closep(&fd);
        }
    }
    return count;
}

/* What came along with a packet that is not one. */
static void drop_fds(int *fds, size_t *nfds)
{
    for (size_t i = 0; fds && i < *nfds; i++)
        fd_closep(&fds[i]);
    if (fds)
        *nfds = 0;
}

int wire_recv(int fd, struct wire_head *ret_head, char *ret, int *ret_fds, size_t max_fds,
              size_t *ret_nfds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
    } control;
    struct wire_head head = {0};
    struct iovec iov[2] = {
        {&head, sizeof(head) },
        {ret,   WIRE_BODY_MAX}
    };
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n;

    assert(max_fds <= WIRE_FDS_MAX);
    if (ret_fds) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        *ret_nfds = 0;
    }
    do
        n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    if (ret_fds)
        *ret_nfds = take_fds(&m, ret_fds, max_fds);
    if (n == 0) { /* or an empty packet: whoever sends one has nothing more to say */
        drop_fds(ret_fds, ret_nfds);
        return 0;
    }
    *ret_head = (struct wire_head){
        .type = le16toh(head.type),
        .flags = le16toh(head.flags),
        .len = le32toh(head.len),
        .id = le64toh(head.id),
    };
    if ((size_t)n < sizeof(head) || (m.msg_flags & MSG_TRUNC) ||
        (size_t)n - sizeof(head) != ret_head->len) {
        drop_fds(ret_fds, ret_nfds);
        errno = EBADMSG;
        return -1;
    }
    return 1;
}

void wire_in_init(struct wire_in *in, size_t max)
{
    *in = (struct wire_in){0};
    buf_init(&in->body, max);
}

void wire_in_done(struct wire_in *in)
{
    buf_done(&in->body);
}

int wire_in_add(struct wire_in *in, struct wire_head head, struct str part)
{
    if (in->open && (head.type != in->head.type || head.id != in->head.id))
        return -1;
    if (!in->open)
        buf_clear(&in->body);
    in->head = head;
    in->open = head.flags & WIRE_MORE;
    if (buf_put(&in->body, part) < 0)
        return -1;
    return in->open ? 0 : 1;
}

int wire_pair(int ret[2], struct err *e)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
        return err_sys(e, "socketpair");
    return 0;
}
