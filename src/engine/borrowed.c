/*
 * A session at its home whose sandbox another node has. Code, interrupts and the like go to the
 * lender; events and outcomes come back, and are told as those of any session. Files are in
 * borrowed_files.c.
 *
 * When the line ends, or nothing comes over it for the time of the config, the sandbox counts as
 * gone: what ran has the outcome of a sandbox that has died. The lender ends it likewise, so no
 * sandbox outlives what its home knows of it.
 */
#include "engine/lend_int.h"

#include <stdio.h>
#include <stdlib.h>

#define TICKS       4          /* signs of life in the time after which one is missed */
#define BESIDES_MAX (64 * MiB) /* of errors, files and notes, beside the output */
#define EVENTS_MAX  50000      /* of one execution, files among them */

/* --- its life --- */

struct borrowed *borrowed_ref(struct borrowed *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void borrowed_unref(struct borrowed *b)
{
    if (atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    free(b);
}

static void end_line(struct borrowed *b)
{
    timer_free(take_ptr(&b->tick));
    pipe_close(&b->pipe);
    borrowed_end_asks(b);
}

static void refuse(struct borrowed *b, const struct err *why)
{
    session_open_fn *on_open = take_ptr(&b->on_open);
    void *arg = b->arg;

    end_line(b);
    borrowed_unref(b);
    on_open(arg, NULL, why);
}

void borrowed_lose(struct borrowed *b, const char *why)
{
    struct err e;

    if (b->on_open) {
        err_set(&e, ERR_AWAY, "%s", why);
        return refuse(b, &e);
    }
    if (!b->tick)
        return;
    end_line(b);
    if (b->session)
        session_lose(b->session, why);
}

void borrowed_close(struct borrowed *b)
{
    b->session = NULL;
    end_line(b);
    borrowed_unref(b);
}

static void on_tick(void *arg)
{
    struct borrowed *b = arg;

    if (b->pipe.broken || time_mono_us() - b->pipe.heard_us > (int64_t)b->config.silent_ms * 1000)
        return borrowed_lose(b, "the node that has it does not answer");
    pipe_send(&b->pipe, LEND_PING, 0, (struct str){0});
    timer_set(b->tick, b->config.silent_ms / TICKS);
}

/* --- what the lender says --- */

static bool on_lent(struct borrowed *b, const struct lend_message *m)
{
    session_open_fn *on_open = take_ptr(&b->on_open);

    (void)m;
    b->session = session_new_borrowed(b->pool, b);
    on_open(b->arg, b->session, NULL);
    return true;
}

static bool on_refused(struct borrowed *b, const struct lend_message *m)
{
    struct lend_answer a;
    struct err e;

    if (lend_take_answer(m->body, &a) < 0 || lend_answer_err(&a, &e) == 0)
        return false;
    refuse(b, &e);
    return true;
}

static bool on_pong(struct borrowed *b, const struct lend_message *m)
{
    (void)b;
    (void)m;
    return true;
}

/* Generous: the lender has limits of its own, which an honest one keeps. */
static bool is_too_much(struct exec *x, size_t bytes)
{
    x->far_bytes += bytes;
    return x->far_bytes > 2 * x->limits.output_bytes + BESIDES_MAX || x->events > EVENTS_MAX;
}

/* Its outcome has the sum; but there may be none. */
static void count(struct exec *x, const struct event *ev)
{
    uint64_t bytes = ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR ? ev->text.n : 0;

    for (size_t i = 0; i < ev->bundle.count; i++)
        bytes += ev->bundle.part[i].data.n;
    x->told += bytes;
    x->outcome.output_bytes += bytes;
}

static bool on_event(struct borrowed *b, const struct lend_message *m)
{
    struct exec *x = session_find(b->session, m->id);
    struct event ev;

    if (lend_take_event(m->body, &ev) < 0 || (x && is_too_much(x, m->body.n)))
        return false;
    if (!x || x->over)
        return true;
    count(x, &ev);
    exec_tell(x, &ev);
    return true;
}

static bool on_outcome(struct borrowed *b, const struct lend_message *m)
{
    struct exec *x = session_find(b->session, m->id);
    struct outcome o;

    if (lend_take_outcome(m->body, &o) < 0)
        return false;
    if (!x)
        return true;
    x->outcome = o;
    x->told = o.output_bytes - o.output_dropped;
    exec_unlink(x);
    exec_tell_outcome(x);
    exec_free(x);
    return true;
}

static bool on_lost(struct borrowed *b, const struct lend_message *m)
{
    char why[200];
    struct str text = {0};

    (void)wire_find(m->body, TAG_TEXT, &text);
    if (str_utf8_len(text) != text.n || !str_to_cstr(text, why, sizeof(why)))
        return false;
    borrowed_lose(b, why);
    return true;
}

static bool on_recall(struct borrowed *b, const struct lend_message *m)
{
    struct session *s = b->session;

    (void)m;
    if (!s->closed && s->on_recall)
        s->on_recall(s->recall_arg);
    return true;
}

/* What is not here, or comes too early, ends the line. */
static const struct {
    bool (*fn)(struct borrowed *b, const struct lend_message *m);
    bool open, opening; /* it may be said of a session that is open; of one that is not yet */
} from_lender[LEND__COUNT] = {
    [LEND_LENT] = {on_lent,          false, true },
    [LEND_REFUSED] = {on_refused,       false, true },
    [LEND_PONG] = {on_pong,          true,  true },
    [LEND_EVENT] = {on_event,         true,  false},
    [LEND_OUTCOME] = {on_outcome,       true,  false},
    [LEND_LOST] = {on_lost,          true,  false},
    [LEND_RECALL] = {on_recall,        true,  false},
    [LEND_SEEN] = {borrowed_on_file, true,  false},
    [LEND_BYTES] = {borrowed_on_file, true,  false},
    [LEND_END] = {borrowed_on_file, true,  false},
    [LEND_ANSWER] = {borrowed_on_file, true,  false},
};

static bool on_message(void *arg, const struct lend_message *m)
{
    struct borrowed *b = arg;

    if (!from_lender[m->type].fn ||
        !(b->on_open ? from_lender[m->type].opening : b->session && from_lender[m->type].open))
        return false;
    return from_lender[m->type].fn(b, m);
}

void borrowed_take(struct borrowed *b, struct str bytes)
{
    borrowed_ref(b);
    if (pipe_take(&b->pipe, bytes, on_message, b) < 0 || b->pipe.broken)
        borrowed_lose(b, "the node that has it cannot be understood");
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): we hold it ourselves
    borrowed_unref(b);
}

/* --- the line --- */

static void on_bytes(void *arg, struct str bytes)
{
    borrowed_take(arg, bytes);
}

static void on_room(void *arg)
{
    struct borrowed *b = arg;

    pipe_on_room(&b->pipe);
    borrowed_feed(b);
}

static void on_end(void *arg, const char *why)
{
    struct borrowed *b = arg;
    char text[200];

    b->pipe.line = NULL;
    snprintf(text, sizeof(text), "the node that has it %s", why);
    borrowed_lose(b, text);
}

static const struct channel_user channel_user = {on_bytes, on_room, on_end};

void session_borrow(struct pool *p, struct str name, struct channel *n,
                    const struct lend_config *config, session_open_fn *on_open, void *arg)
{
    struct borrowed *b = mem_zalloc(sizeof(*b));
    AUTO(buf_done) struct buf want = BUF(4 * KiB);

    b->files.ops = &borrowed_ops;
    b->loop = pool_engine(p)->loop;
    b->pool = p;
    b->config = *config;
    b->on_open = on_open;
    b->arg = arg;
    atomic_init(&b->refs, 1);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    b->tick = timer_new(b->loop, on_tick, b);
    timer_set(b->tick, config->silent_ms / TICKS);
    pipe_init(&b->pipe, n, &channel_user, b);
    wire_put(&want, TAG_NAME, name);
    pipe_send(&b->pipe, LEND_WANT, 0, buf_str(&want));
}

/* --- what home says --- */

void borrowed_start(struct borrowed *b, uint64_t id, const struct exec_config *config)
{
    AUTO(buf_done) struct buf body = BUF(LEND_BODY_MAX);

    lend_put_exec(&body, config);
    pipe_send(&b->pipe, LEND_EXEC, id, buf_str(&body));
}

void borrowed_order(struct borrowed *b, enum lend_type type, uint64_t id, bool on)
{
    if (type == LEND_HOLD || type == LEND_CLOCK)
        pipe_send_number(&b->pipe, type, id, on);
    else
        pipe_send(&b->pipe, type, id, (struct str){0});
}

void borrowed_note(struct borrowed *b, struct str path)
{
    AUTO(buf_done) struct buf body = BUF(4 * KiB);

    if (path.n >= SPACE_NAME_MAX) /* nothing was put there */
        return;
    wire_put(&body, TAG_NAME, path);
    pipe_send(&b->pipe, LEND_NOTE, 0, buf_str(&body));
}
