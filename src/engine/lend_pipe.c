/* Messages on a line between two nodes, and files that go over it in pieces. */
#include "engine/lend_int.h"

#include <unistd.h>

#define PUT_SIZE (256 * KiB) /* given to the line at a time */
#define IN_MAX   (LEND_BODY_MAX + 16 * MiB)

void pipe_init(struct lend_pipe *p, struct channel *n, const struct channel_user *user, void *arg)
{
    *p = (struct lend_pipe){.line = n, .full = true, .heard_us = time_mono_us()};
    buf_init(&p->in, IN_MAX);
    buf_init(&p->out, LEND_WAITS_MAX);
    n->user = user;
    n->arg = arg;
}

void pipe_close(struct lend_pipe *p)
{
    struct channel *n = take_ptr(&p->line);

    if (n)
        n->ops->close(n);
    buf_done(&p->in);
    buf_done(&p->out);
    p->out_at = 0;
}

/* --- out --- */

static void flush(struct lend_pipe *p)
{
    while (p->line && !p->full && p->out_at < p->out.n) {
        size_t left = p->out.n - p->out_at, n = left < PUT_SIZE ? left : PUT_SIZE;
        p->full = !p->line->ops->put(p->line, (struct str){p->out.p + p->out_at, n});
        p->out_at += n;
    }
    if (p->out_at == p->out.n) {
        buf_clear(&p->out);
        p->out_at = 0;
    } else if (p->out_at > p->out.n / 2) {
        memmove(p->out.p, p->out.p + p->out_at, p->out.n - p->out_at);
        p->out.n -= p->out_at;
        p->out_at = 0;
    }
}

void pipe_send(struct lend_pipe *p, enum lend_type type, uint64_t id, struct str body)
{
    if (!p->line || p->broken)
        return;
    lend_head(&p->out, type, id, body.n);
    p->broken = buf_put(&p->out, body) < 0 || p->out.full;
    flush(p);
}

void pipe_send_number(struct lend_pipe *p, enum lend_type type, uint64_t id, uint64_t number)
{
    AUTO(buf_done) struct buf b = BUF(1 * KiB);

    wire_put_num(&b, TAG_NUMBER, number);
    pipe_send(p, type, id, buf_str(&b));
}

void pipe_on_room(struct lend_pipe *p)
{
    p->full = false;
    flush(p);
}

/* --- in --- */

int pipe_take(struct lend_pipe *p, struct str bytes, lend_fn *fn, void *arg)
{
    struct lend_message m;
    struct str rest;
    size_t begun;
    int rc = 0;

    if (bytes.n)
        p->heard_us = time_mono_us();
    if (buf_put(&p->in, bytes) < 0)
        return -1;
    rest = buf_str(&p->in);
    begun = rest.n;
    while (p->line && !p->held && (rc = lend_next(&rest, &m)) == 1)
        if (!fn(arg, &m))
            return -1;
    if (!p->line) /* closed meanwhile: the bytes are gone */
        return 0;
    if (rest.n < begun && rest.n > 0)
        memmove(p->in.p, rest.p, rest.n);
    p->in.n = rest.n;
    return rc < 0 ? -1 : 0;
}

void pipe_hold(struct lend_pipe *p, bool held)
{
    p->held = held;
    if (p->line)
        p->line->ops->hold(p->line, held);
}

/* --- files --- */

bool feed_step(struct lend_feed *f, struct lend_pipe *p)
{
    char chunk[LEND_CHUNK];

    while (p->line && !p->full && !p->broken) {
        size_t most = f->left < sizeof(chunk) ? (size_t)f->left : sizeof(chunk);
        ssize_t n = most ? read(f->fd, chunk, most) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            pipe_send_number(p, LEND_END, 0, n < 0);
            f->fd = -1;
            return true;
        }
        pipe_send(p, LEND_BYTES, 0, (struct str){chunk, (size_t)n});
        f->left -= (uint64_t)n;
    }
    return false;
}

static bool is_zero(struct str bytes)
{
    return bytes.p[0] == '\0' && memcmp(bytes.p, bytes.p + 1, bytes.n - 1) == 0;
}

/* What is nothing but zeros stays a hole, so that a file takes no more room than it did. */
static int spool_put(struct lend_spool *s, struct str bytes)
{
    if (s->failed.kind || bytes.n == 0)
        return 0;
    if (bytes.n > s->max - s->at)
        return err_set(&s->failed, ERR_LIMIT, "a file is longer than it may be");
    for (size_t done = 0; !is_zero(bytes) && done < bytes.n;) {
        ssize_t n = pwrite(s->fd, bytes.p + done, bytes.n - done, (off_t)(s->at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(&s->failed, "keep a file on its way from another node");
        done += (size_t)n;
    }
    s->at += bytes.n;
    return 0;
}

bool spool_take(struct lend_spool *s, const struct lend_message *m)
{
    uint64_t cut = 0;

    if (s->fd < 0 || s->ended)
        return false;
    if (m->type == LEND_BYTES) {
        (void)!spool_put(s, m->body);
        return true;
    }
    s->ended = true;
    if (!s->failed.kind && ftruncate(s->fd, (off_t)s->at) < 0)
        err_sys(&s->failed, "keep a file on its way from another node");
    if (!wire_find_num(m->body, TAG_NUMBER, &cut))
        return false;
    if (cut && !s->failed.kind)
        err_set(&s->failed, ERR_HOST, "the other node could not read a file to its end");
    return true;
}
