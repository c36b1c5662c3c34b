/* Files of a sandbox that is lent: what its home wants of them, done on a worker. One thing at a
 * time, as its home asks no more. */
#include "engine/lent_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADS_MAX (64 * MiB) /* of what was packed, beside the bytes of files */

struct lent_op {
    struct lent *lent; /* borrowed */
    struct lend_ask ask;
    char path[SPACE_NAME_MAX];
    struct space roots[HOME_ROOTS]; /* owned */
    struct look *look;              /* owned, or NULL */
    int fd;                         /* owned: what came, or is to go */
    struct lend_spool spool;
    struct lend_feed feed;
    struct lend_answer answer;
    struct err failed;
    bool at_work;
};

static void op_free(struct lent_op *op)
{
    for (int i = 0; i < HOME_ROOTS; i++)
        space_close(&op->roots[i]);
    look_free(op->look);
    fd_closep(&op->fd);
    free(op);
}

void lent_drop_op(struct lent *t)
{
    struct lent_op *op = take_ptr(&t->op);

    if (op && !op->at_work)
        op_free(op);
}

/* --- on a worker --- */

static int put(struct lent_op *op, struct err *e)
{
    return space_put(&op->roots[HOME_WORKSPACE], str_of(op->path), op->fd, op->ask.mode,
                     op->ask.mtime_ms, e);
}

static int get(struct lent_op *op, struct err *e)
{
    struct stat st;

    op->fd = space_get(&op->roots[HOME_WORKSPACE], str_of(op->path), e);
    if (op->fd < 0)
        return -1;
    if (fstat(op->fd, &st) < 0)
        return err_sys(e, "look at a file");
    op->answer.mode = st.st_mode & 0777;
    op->answer.mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    op->feed = (struct lend_feed){.fd = op->fd, .left = op->ask.max};
    return 0;
}

static int make_dir(struct lent_op *op, struct err *e)
{
    return space_mkdir(&op->roots[HOME_WORKSPACE], str_of(op->path), e);
}

static int delete (struct lent_op *op, struct err *e)
{
    int rc = space_delete(&op->roots[HOME_WORKSPACE], str_of(op->path), e);

    op->answer.number = rc > 0;
    return rc < 0 ? -1 : 0;
}

static int look(struct lent_op *op, struct err *e)
{
    (void)e;
    look_walk(op->look, &op->roots[HOME_WORKSPACE]);
    return 0;
}

static int write_out(void *arg, struct str bytes, struct err *e)
{
    return fd_write_all(((struct lent_op *)arg)->fd, bytes, e);
}

static int pack(struct lent_op *op, struct err *e)
{
    op->fd = op->lent->config.spool(op->lent->config.arg, e);
    if (op->fd < 0 || home_pack(op->roots, op->ask.max, write_out, op, e) < 0)
        return -1;
    if (lseek(op->fd, 0, SEEK_SET) < 0)
        return err_sys(e, "read what is kept of a home");
    op->feed = (struct lend_feed){.fd = op->fd, .left = UINT64_MAX};
    return 0;
}

static int unpack(struct lent_op *op, struct err *e)
{
    size_t left_out = 0;
    int rc = lseek(op->fd, 0, SEEK_SET) < 0 ? err_sys(e, "read what was kept of a home")
                                            : home_unpack(op->roots, op->fd, &left_out, e);

    op->answer.number = left_out;
    return rc;
}

static const struct {
    int (*work)(struct lent_op *op, struct err *e);
    bool takes_bytes, has_path;
} ops[] = {
    [LEND_PUT] = {put,      true,  true },
      [LEND_GET] = {get,      false, true },
    [LEND_MKDIR] = {make_dir, false, true },
      [LEND_DELETE] = {delete,   false, true },
    [LEND_LOOK] = {look,     false, false},
      [LEND_PACK] = {pack,     false, false},
    [LEND_UNPACK] = {unpack,   true,  false},
};

static void work(void *arg)
{
    struct lent_op *op = arg;

    if (ops[op->ask.op].work(op, &op->failed) < 0 && !op->failed.kind)
        err_set(&op->failed, ERR_HOST, "a file of a sandbox cannot be worked on");
}

/* --- on the loop --- */

static void answer(struct lent *t)
{
    struct lent_op *op = take_ptr(&t->op);
    AUTO(buf_done) struct buf body = BUF(4 * KiB);

    if (op->failed.kind)
        op->answer = lend_answer_of(&op->failed);
    lend_put_answer(&body, &op->answer);
    pipe_send(&t->pipe, LEND_ANSWER, 0, buf_str(&body));
    op_free(op);
}

void lent_feed(struct lent *t)
{
    if (t->op && !t->op->at_work && t->op->feed.fd >= 0 && feed_step(&t->op->feed, &t->pipe))
        answer(t);
}

static void on_seen(void *arg, const struct event *ev)
{
    lent_send_event(arg, LEND_SEEN, 0, ev);
}

static void done(void *arg)
{
    struct lent_op *op = arg;
    struct lent *t = op->lent;

    t->pending--;
    op->at_work = false;
    if (t->ended) {
        op_free(op);
        return lent_settle(t);
    }
    if (op->look) {
        op->answer.number = look_is_blind(op->look);
        workspace_tell(t->session, take_ptr(&op->look), on_seen, t);
    }
    if (!op->failed.kind && op->feed.fd >= 0)
        lent_feed(t);
    else
        answer(t);
}

static void start(struct lent *t)
{
    struct lent_op *op = t->op;

    if (op->spool.failed.kind)
        op->failed = op->spool.failed;
    if (op->failed.kind || home_dup(t->session, op->roots, &op->failed) < 0)
        return answer(t);
    if (op->ask.op == LEND_LOOK)
        op->look = workspace_look(t->session);
    op->at_work = true;
    t->pending++;
    loop_work_for(t->loop, t->whose, work, done, op);
}

bool lent_on_bytes(struct lent *t, const struct lend_message *m)
{
    if (!t->op || t->op->at_work || !spool_take(&t->op->spool, m))
        return false;
    if (t->op->spool.ended)
        start(t);
    return true;
}

/* As much as a workspace, or what is kept of a home, can be. */
static uint64_t most_bytes(const struct lent *t)
{
    const struct limits *l = pool_limits(t->pool);

    return l->disk_bytes + l->tmp_bytes + HEADS_MAX;
}

bool lent_on_ask(struct lent *t, const struct lend_message *m)
{
    struct lent_op *op;
    struct str path;
    struct lend_ask ask;
    struct err e;

    if (t->op || lend_take_ask(m->body, &ask, &path) < 0)
        return false;
    op = mem_zalloc(sizeof(*op));
    *op = (struct lent_op){
        .lent = t,
        .ask = ask,
        .roots = {{.dir = -1}, {.dir = -1}},
        .fd = -1,
        .spool.fd = -1,
        .feed.fd = -1
    };
    t->op = op;
    if (ops[ask.op].has_path && space_check_path(path, op->path, &e) < 0)
        return false;
    if (!ops[ask.op].takes_bytes) {
        start(t);
        return true;
    }
    op->fd = t->config.spool(t->config.arg, &op->failed);
    if (op->fd < 0)
        return false;
    op->spool = (struct lend_spool){.fd = op->fd, .max = most_bytes(t)};
    return true;
}
