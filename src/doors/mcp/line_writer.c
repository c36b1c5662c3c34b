/*
 * Writes messages to a file descriptor, one line each.
 *
 * Writing never blocks: lines that the reader has no room for are kept until it has. The descriptor
 * itself stays in the mode it has, as the process that started this one may share it.
 */
#include "doors/mcp/transport.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct line {
    struct line *next;
    char *text; /* owned */
    size_t n, sent;
};

enum way { WAY_SOCKET, WAY_PIPE, WAY_OTHER };

struct line_writer {
    struct loop *loop; /* borrowed */
    int fd;            /* borrowed */
    enum way way;
    struct watch *writable;    /* owned: while something waits */
    struct line *first, **end; /* owned */
    size_t waits;              /* bytes of them */
    loop_fn *on_written, *on_unread;
    void *arg;
};

static enum way way_of(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return WAY_OTHER;
    return S_ISSOCK(st.st_mode) ? WAY_SOCKET : S_ISFIFO(st.st_mode) ? WAY_PIPE : WAY_OTHER;
}

struct line_writer *line_writer_new(struct loop *l, int fd, loop_fn *on_written, loop_fn *on_unread,
                                    void *arg)
{
    struct line_writer *o = mem_zalloc(sizeof(*o));

    *o = (struct line_writer){.loop = l, .fd = fd, .way = way_of(fd), .arg = arg};
    o->on_written = on_written;
    o->on_unread = on_unread;
    o->end = &o->first;
    return o;
}

static void drop_first(struct line_writer *o)
{
    struct line *one = o->first;

    o->first = one->next;
    if (!o->first)
        o->end = &o->first;
    o->waits -= one->n;
    free(one->text);
    free(one);
}

static void drop_all(struct line_writer *o)
{
    watch_free(take_ptr(&o->writable));
    while (o->first)
        drop_first(o);
}

void line_writer_free(struct line_writer *o)
{
    if (!o)
        return;
    drop_all(o);
    free(o);
}

size_t line_writer_waits(const struct line_writer *o)
{
    return o->waits;
}

/* What there is room for at this moment: at least one byte, or -1 with EAGAIN. */
static ssize_t write_some(struct line_writer *o, const char *p, size_t n)
{
    struct iovec piece = {(void *)p, n};
    struct pollfd room = {o->fd, POLLOUT, 0};
    ssize_t done;

    if (o->way == WAY_SOCKET)
        return send(o->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (o->way == WAY_PIPE) {
        done = pwritev2(o->fd, &piece, 1, -1, RWF_NOWAIT);
        if (done >= 0 || (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS))
            return done;
        o->way = WAY_OTHER; /* before Linux 6.4 */
    }
    if (poll(&room, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    /* A pipe that has room has it for so much (pipe(7)). */
    return write(o->fd, p, n < PIPE_BUF ? n : PIPE_BUF);
}

/* -1 with EAGAIN when something is left. */
static int write_all(struct line_writer *o)
{
    while (o->first) {
        struct line *one = o->first;
        ssize_t n = write_some(o, one->text + one->sent, one->n - one->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        one->sent += (size_t)n;
        if (one->sent == one->n)
            drop_first(o);
    }
    return 0;
}

static void push(void *arg)
{
    struct line_writer *o = arg;

    if (write_all(o) == 0) {
        watch_free(take_ptr(&o->writable));
    } else if (errno != EAGAIN) {
        drop_all(o);
        o->on_unread(o->arg);
        return;
    } else if (!o->writable) {
        o->writable = watch_new_writable(o->loop, o->fd, push, o);
    }
    o->on_written(o->arg);
}

bool line_writer_put_text(struct line_writer *o, char *text, size_t n)
{
    struct line *one;

    if (!text || n >= LINE_MAX_BYTES) {
        free(text);
        return false;
    }
    text = mem_realloc(text, n + 1);
    text[n] = '\n'; /* one write, one line */
    one = mem_zalloc(sizeof(*one));
    *one = (struct line){.text = text, .n = n + 1};
    *o->end = one;
    o->end = &one->next;
    o->waits += one->n;
    if (!o->writable)
        push(o);
    return true;
}

bool line_writer_put(struct line_writer *o, const json_t *message)
{
    size_t n = 0;
    char *text = record_dump(message, false, &n);

    return line_writer_put_text(o, text, n);
}
