/*
 * Files of a workspace on another node. Workers ask and wait; the loop sends, receives and wakes
 * them. One question at a time is on the line of a session, as its tasks come one after the other
 * anyway. Bytes that come are kept in a file without a name until all of them are there.
 */
#include "engine/lend_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADS_MAX   (64 * MiB) /* of what is packed, beside the bytes of files */
#define SEEN_EVENTS 50000      /* of one look */
#define GONE        "the node that had this sandbox is gone"

static struct borrowed *of(struct far_files *f)
{
    return (struct borrowed *)f;
}
static_assert(offsetof(struct borrowed, files) == 0, "what is held is all of it");

/* --- on the loop --- */

static void finish(struct borrowed *b, const struct lend_answer *answer)
{
    pthread_mutex_lock(&b->lock);
    b->ask->answer = *answer;
    b->ask->done = true;
    b->ask = NULL;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void fail(struct borrowed *b, const struct err *e)
{
    struct lend_answer a = lend_answer_of(e);

    finish(b, &a);
}

void borrowed_end_asks(struct borrowed *b)
{
    struct err e;

    pthread_mutex_lock(&b->lock);
    b->closed = true;
    pthread_mutex_unlock(&b->lock);
    err_set(&e, ERR_AWAY, GONE);
    if (b->ask)
        fail(b, &e);
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void borrowed_feed(struct borrowed *b)
{
    if (b->ask && b->ask->feed.fd >= 0)
        (void)feed_step(&b->ask->feed, &b->pipe);
}

/* From the loop: a worker waits for this. */
static void on_ask(void *arg)
{
    struct borrowed *b = arg;
    AUTO(buf_done) struct buf body = BUF(4 * KiB);

    if (b->ask && b->pipe.line) {
        lend_put_ask(&body, &b->ask->ask, b->ask->path);
        pipe_send(&b->pipe, LEND_ASK, 0, buf_str(&body));
        borrowed_feed(b);
    }
    borrowed_unref(b);
}

static bool on_seen(struct borrowed *b, const struct lend_message *m)
{
    struct buf *seen = b->ask->look ? look_seen(b->ask->look) : NULL;
    struct event ev;

    if (!seen || lend_take_event(m->body, &ev) < 0 || m->body.n + KiB > seen->max - seen->n ||
        b->ask->seen++ == SEEN_EVENTS)
        return false;
    wire_put(seen, TAG_BLOB, m->body);
    return true;
}

static bool on_answer(struct borrowed *b, const struct lend_message *m)
{
    struct borrowed_ask *a = b->ask;
    struct lend_answer answer;

    if (lend_take_answer(m->body, &answer) < 0 || a->feed.fd >= 0 ||
        (a->spool.fd >= 0 && !answer.kind && !a->spool.ended))
        return false;
    if (!answer.kind && a->spool.failed.kind)
        answer = lend_answer_of(&a->spool.failed);
    if (a->look && !answer.kind)
        pipe_hold(&b->pipe, true);
    finish(b, &answer);
    return true;
}

bool borrowed_on_file(struct borrowed *b, const struct lend_message *m)
{
    if (!b->ask)
        return false;
    return m->type == LEND_SEEN     ? on_seen(b, m)
           : m->type == LEND_ANSWER ? on_answer(b, m)
                                    : spool_take(&b->ask->spool, m);
}

static void go_on(void *arg)
{
    struct borrowed *b = arg;

    if (b->pipe.held) {
        pipe_hold(&b->pipe, false);
        borrowed_take(b, (struct str){0});
    }
    borrowed_unref(b);
}

/* Those who tell of a look are in the middle of something. */
static void look_done(struct far_files *f)
{
    loop_later(of(f)->loop, go_on, of(f));
}

/* --- on a worker --- */

static int wait_for(struct borrowed *b, struct borrowed_ask *a, struct err *e)
{
    bool closed;

    *e = (struct err){0};
    work_wait_begin();
    pthread_mutex_lock(&b->lock);
    while (b->ask && !b->closed)
        pthread_cond_wait(&b->changed, &b->lock);
    closed = b->closed;
    if (!closed)
        b->ask = a;
    pthread_mutex_unlock(&b->lock);
    if (!closed) {
        loop_post(b->loop, on_ask, borrowed_ref(b));
        pthread_mutex_lock(&b->lock);
        while (!a->done)
            pthread_cond_wait(&b->changed, &b->lock);
        pthread_mutex_unlock(&b->lock);
    }
    work_wait_end();
    return closed ? err_set(e, ERR_AWAY, GONE) : lend_answer_err(&a->answer, e);
}

static struct borrowed_ask ask_of(enum lend_op op, struct str path)
{
    return (struct borrowed_ask){
        .ask.op = (uint32_t)op,
        .path = path,
        .feed.fd = -1,
        .spool.fd = -1,
    };
}

/* A path that is too long for a message is too long for a workspace. */
static int check(struct str path, struct err *e)
{
    char name[SPACE_NAME_MAX];

    return space_check_path(path, name, e);
}

static int send_file(struct borrowed *b, struct borrowed_ask *a, int fd, struct err *e)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "read a file for another node");
    a->feed = (struct lend_feed){.fd = fd, .left = UINT64_MAX};
    return wait_for(b, a, e);
}

static int new_spool(struct borrowed *b, struct err *e)
{
    return b->config.spool(b->config.arg, e);
}

static int put(struct far_files *f, struct str path, int src, uint32_t mode, int64_t mtime_ms,
               struct err *e)
{
    struct borrowed_ask a = ask_of(LEND_PUT, path);

    a.ask.mode = mode & 0777;
    a.ask.mtime_ms = mtime_ms;
    return check(path, e) < 0 ? -1 : send_file(of(f), &a, src, e);
}

static int get(struct far_files *f, struct str path, struct err *e)
{
    struct borrowed_ask a = ask_of(LEND_GET, path);
    AUTO_CLOSE int fd = -1;

    if (check(path, e) < 0 || (fd = new_spool(of(f), e)) < 0)
        return -1;
    /* One byte too many says that it is too large. */
    a.ask.max = pool_limits(of(f)->pool)->artifact_bytes + 1;
    a.spool = (struct lend_spool){.fd = fd, .max = a.ask.max};
    if (wait_for(of(f), &a, e) < 0)
        return -1;
    const struct timespec times[] = {
        {.tv_nsec = UTIME_NOW                     },
        { a.answer.mtime_ms / 1000, labs(a.answer.mtime_ms % 1000) * 1000000},
    };
    if (fchmod(fd, a.answer.mode) < 0 || futimens(fd, times) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "keep a file from another node");
    return take_fd(&fd);
}

static int make_dir(struct far_files *f, struct str path, struct err *e)
{
    struct borrowed_ask a = ask_of(LEND_MKDIR, path);

    return check(path, e) < 0 ? -1 : wait_for(of(f), &a, e);
}

static int remove_file(struct far_files *f, struct str path, struct err *e)
{
    struct borrowed_ask a = ask_of(LEND_DELETE, path);

    return check(path, e) < 0 || wait_for(of(f), &a, e) < 0 ? -1 : a.answer.number != 0;
}

static int hand_on(int fd, home_write_fn *write, void *arg, struct err *e)
{
    char chunk[LEND_CHUNK];
    ssize_t n;

    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "read what is kept of a home");
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        if (write(arg, (struct str){chunk, (size_t)n}, e) < 0)
            return -1;
    return n < 0 ? err_sys(e, "read what is kept of a home") : 0;
}

static int pack(struct far_files *f, uint64_t max, home_write_fn *write, void *arg, struct err *e)
{
    struct borrowed_ask a = ask_of(LEND_PACK, (struct str){0});
    AUTO_CLOSE int fd = new_spool(of(f), e);

    if (fd < 0)
        return -1;
    a.ask.max = max;
    a.spool = (struct lend_spool){.fd = fd, .max = max + HEADS_MAX};
    return wait_for(of(f), &a, e) < 0 ? -1 : hand_on(fd, write, arg, e);
}

static int unpack(struct far_files *f, int fd, size_t *ret_left_out, struct err *e)
{
    struct borrowed_ask a = ask_of(LEND_UNPACK, (struct str){0});
    int rc = send_file(of(f), &a, fd, e);

    *ret_left_out = (size_t)a.answer.number;
    return rc;
}

static void look(struct far_files *f, struct look *k)
{
    struct borrowed_ask a = ask_of(LEND_LOOK, (struct str){0});
    struct err e;

    a.look = k;
    if (wait_for(of(f), &a, &e) < 0 || a.answer.number)
        look_set_blind(k);
}

static void unref(struct far_files *f)
{
    borrowed_unref(of(f));
}

struct far_files *borrowed_files(struct borrowed *b)
{
    return &borrowed_ref(b)->files;
}

const struct far_ops borrowed_ops = {
    .put = put,
    .get = get,
    .make_dir = make_dir,
    .remove = remove_file,
    .pack = pack,
    .unpack = unpack,
    .look = look,
    .look_done = look_done,
    .unref = unref,
};
