/*
 * Standard input and output: one client, one conversation, one message a line.
 *
 * Lines are read while calls run, and answers are written when they are ready. Each request names
 * its era, so both eras can be mixed.
 *
 * What the client does not read is limited: progress is left out first (call.c), then every other
 * notification, then no more lines are read until there is room. Answers to earlier requests are
 * kept: at most CALLS_MAX, each shorter than LINE_MAX_BYTES.
 *
 * A shell may share the descriptors, so they stay blocking if they are; only bytes that are there
 * are read.
 */
#include "doors/mcp/transport.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES  (64 * KiB)
#define KEEP_BYTES  (1 * MiB) /* of a line's memory, once it has been read */
#define PAUSE_BYTES (1 * MiB) /* unread: no more lines until it is half of that */
#define LAST_MS     1000      /* without a byte read by a client that has closed its end */
#define WARM_MS     20        /* after the greeting: its answer goes out first */

struct stdio {
    struct peer peer;                  /* of every call */
    struct mcp *mcp;                   /* borrowed */
    struct conversation *conversation; /* borrowed */
    int in;                            /* borrowed */
    struct line_writer *writer;        /* owned */
    struct watch *readable;            /* owned; NULL: it is paused, over, or cannot be watched */
    struct watch *hangup;              /* owned: while it is paused */
    struct timer *again;               /* owned: goes on reading, from the loop */
    struct timer *last;                /* owned: after the end of input */
    struct timer *warm;                /* owned: makes the service after the first words */
    char roots[ID_MAX];                /* our request for the client's roots; "": none is open */
    json_t *held;                      /* owned: messages that wait for its answer; or NULL */
    struct buf line;                   /* what has been read and not yet served */
    size_t seen;                       /* of it, without a newline */
    bool skipping;                     /* the rest of a line that was too long */
    bool can_wait;                     /* in has a poll(); a file has none */
    bool roots_asked;                  /* or too late to ask */
    bool paused, over, ended;
    loop_fn *on_end;
    void *arg;
};

#define STDIO(p) ((struct stdio *)(void *)((char *)(p)-offsetof(struct stdio, peer)))

/* --- the end --- */

static void drop_watches(struct stdio *s)
{
    watch_free(take_ptr(&s->readable));
    watch_free(take_ptr(&s->hangup));
}

static void end(void *arg)
{
    struct stdio *s = arg;

    if (s->ended)
        return;
    s->ended = s->over = true;
    drop_watches(s);
    s->on_end(s->arg);
}

/* For a client that has closed its end, to read what it has asked for. */
static void wait_for_reader(struct stdio *s)
{
    if (!s->last)
        s->last = timer_new(s->mcp->config.loop, end, s);
    timer_set(s->last, LAST_MS);
}

static void input_over(struct stdio *s)
{
    s->over = true;
    drop_watches(s);
    if (line_writer_waits(s->writer) == 0)
        end(s);
    else
        wait_for_reader(s);
}

/* --- out --- */

static void resume(struct stdio *s);

static void on_written(void *arg)
{
    struct stdio *s = arg;
    size_t left = line_writer_waits(s->writer);

    if (s->over && left == 0)
        end(s);
    else if (s->paused && left <= PAUSE_BYTES / 2)
        resume(s);
}

/* Nobody reads, and nobody ever will. */
static void on_unread(void *arg)
{
    end(arg);
}

static bool put(struct stdio *s, const json_t *message)
{
    return s->ended || line_writer_put(s->writer, message);
}

/* Takes message. */
static void put_away(struct stdio *s, json_t *message)
{
    (void)put(s, message);
    json_decref(message);
}

static void stdio_send(struct peer *p, json_t *message)
{
    struct stdio *s = STDIO(p);

    if (line_writer_waits(s->writer) > PAUSE_BYTES && !json_object_get(message, "id"))
        json_decref(message);
    else
        put_away(s, message);
}

static void put_answer(struct stdio *s, const json_t *answer)
{
    if (!put(s, answer))
        put_away(s, rpc_error(json_object_get(answer, "id"), RPC_INTERNAL,
                              "the answer is longer than a client takes on one line; ask for less "
                              "of it at a time",
                              NULL));
}

/* Those of a batch that is too long come one by one. */
static void stdio_answer(struct peer *p, int status, json_t *message)
{
    struct stdio *s = STDIO(p);
    size_t i;
    json_t *one;

    (void)status;
    if (!json_is_array(message))
        put_answer(s, message);
    else if (!put(s, message))
        json_array_foreach(message, i, one)
            put_answer(s, one);
    json_decref(message);
}

static void stdio_drop(struct peer *p)
{
    (void)p;
}

static size_t stdio_waits(struct peer *p)
{
    return line_writer_waits(STDIO(p)->writer);
}

/* Of what we have written down already, which is short. */
static void stdio_answer_text(struct peer *p, char *text, size_t n)
{
    struct stdio *s = STDIO(p);

    if (s->ended)
        free(text);
    else
        (void)line_writer_put_text(s->writer, text, n);
}

static const struct peer_ops stdio_ops = {.send = stdio_send,
                                          .answer = stdio_answer,
                                          .drop = stdio_drop,
                                          .waits = stdio_waits,
                                          .answer_text = stdio_answer_text};

static void refuse(struct stdio *s, const json_t *id, int code, const char *text)
{
    put_away(s, rpc_error(id, code, text, NULL));
}

/* --- a request --- */

/* What it says of itself. False: it has been refused. */
static bool read_modern(struct stdio *s, const json_t *id, const json_t *meta, struct client *ret)
{
    struct str version = json_view(json_object_get(meta, META_VERSION));
    const json_t *level = json_object_get(meta, META_LOG);

    ret->capabilities = json_object_get(meta, META_CLIENT);
    ret->log_level = log_level_find(json_view(level));
    ret->version = version_find(version);
    if (!version.p || !json_is_object(ret->capabilities)) {
        refuse(s, id, RPC_PARAMS, "params._meta must have " META_VERSION " and " META_CLIENT);
        return false;
    }
    if (!ret->version || ret->version->era != ERA_MODERN) {
        put_away(s, rpc_bad_version(id, version));
        return false;
    }
    if (level && ret->log_level < 0) {
        refuse(s, id, RPC_PARAMS, META_LOG " is no level of a log");
        return false;
    }
    return true;
}

static void take_request(struct stdio *s, const json_t *message, const struct caller *who)
{
    struct str method = json_view(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id");
    json_t *params = json_object_get(message, "params");
    const json_t *meta = json_object_get(params, "_meta");
    struct client client = {.log_level = -1};

    if (conversation_call(s->conversation, id) || s->conversation->call_count >= CALLS_MAX) {
        refuse(s, id, RPC_INVALID, "a request with this id is under way, or too many are");
        return;
    }
    if (!json_object_get(meta, META_VERSION) && !str_is(method, "server/discover"))
        conversation_client(s->conversation, method, params, &client);
    else if (!read_modern(s, id, meta, &client))
        return;
    if (str_is(method, "initialize") || str_is(method, "server/discover"))
        timer_set(s->warm, WARM_MS);
    core_serve(
        call_new(s->mcp, s->mcp->tool_set, &s->peer, s->conversation, who, &client, id, params),
        method);
    if (str_is(method, "initialize") && roots_are_known(s->conversation))
        timer_set(s->warm, ROOTS_MS);
}

/* --- the client's roots --- */

static void take_message(struct stdio *s, const json_t *message);

static void ask_for_roots(struct stdio *s)
{
    s->roots_asked = true;
    put_away(s, roots_question(s->roots));
    timer_set(s->warm, ROOTS_MS);
}

/* The answer, or NULL: it did not come. What has waited for it is served. */
static void end_roots(struct stdio *s, const json_t *answer)
{
    json_t *held = take_ptr(&s->held), *message;
    size_t i;

    s->roots[0] = '\0';
    roots_take(s->mcp, answer);
    timer_set(s->warm, 0);
    json_array_foreach(held, i, message)
        take_message(s, message);
    json_decref(held);
}

static void forget_held(struct stdio *s, const json_t *id)
{
    size_t i;
    json_t *message;

    json_array_foreach(s->held, i, message)
        if (id && json_equal(json_object_get(message, "id"), id)) {
            json_array_remove(s->held, i);
            return;
        }
}

static void hold(struct stdio *s, const json_t *message)
{
    if (!s->held)
        s->held = json_array();
    if (json_array_size(s->held) < CALLS_MAX)
        json_array_append(s->held, (json_t *)message);
    else
        refuse(s, message_id(message), RPC_INVALID, "too many requests are under way");
}

/* True: the message is the answer, or waits for it. */
static bool waits_for_roots(struct stdio *s, const json_t *message)
{
    struct str method = json_view(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id");

    if (str_is(method, "notifications/initialized") && !s->roots_asked &&
        roots_are_known(s->conversation))
        ask_for_roots(s);
    if (!s->roots[0])
        return false;
    if (!method.p && str_is(json_view(id), s->roots)) {
        end_roots(s, message);
        return true;
    }
    if (str_is(method, "notifications/cancelled"))
        forget_held(s, json_object_get(json_object_get(message, "params"), "requestId"));
    if (!json_is_array(message) && (!id || !method.p || str_is(method, "ping")))
        return false;
    hold(s, message);
    return true;
}

/* --- a line --- */

static void take_message(struct stdio *s, const json_t *message)
{
    struct conversation *v = s->conversation;
    struct caller who = v->owner;
    const char *why = NULL;

    id_make(who.request, "req_");
    if (waits_for_roots(s, message))
        return;
    if (json_is_array(message)) {
        why = batch_refused(v, message);
        if (!why)
            batch_serve(v, &s->peer, s->mcp->tool_set, &who, message);
    } else if (core_take(v, message, &why) == MESSAGE_REQUEST) {
        take_request(s, message, &who);
    }
    if (why)
        refuse(s, message_id(message), RPC_INVALID, why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void take_line(struct stdio *s, struct str line)
{
    json_t *message;
    struct err e;

    while (line.n > 0 && is_blank(line.p[line.n - 1]))
        line.n--;
    if (line.n == 0)
        return;
    if (json_read_any(line, &message, &e) < 0) {
        refuse(s, NULL, RPC_PARSE, e.text);
        return;
    }
    take_message(s, message);
    json_decref(message);
}

/* --- in --- */

static void read_more(void *arg);
static void on_hangup(void *arg);

/* Its end is heard of even while nothing is read: a client that has gone must not be waited for. */
static void pause_reading(struct stdio *s)
{
    s->paused = true;
    watch_free(take_ptr(&s->readable));
    if (s->can_wait && !s->hangup)
        s->hangup = watch_new_hangup(s->mcp->config.loop, s->in, on_hangup, s);
}

static void wait_for_more(struct stdio *s)
{
    watch_free(take_ptr(&s->hangup));
    if (!s->can_wait)
        timer_set(s->again, 0);
    else if (!s->readable)
        s->readable = watch_new(s->mcp->config.loop, s->in, read_more, s);
}

static void too_long(struct stdio *s)
{
    s->skipping = true;
    s->line.n = s->seen = 0;
    refuse(s, NULL, RPC_PARSE, "a line is longer than 20 MiB, and was left out");
}

/* Serves whole lines until there are none, or until nobody reads the answers. */
static void take_lines(struct stdio *s)
{
    size_t at = 0;

    while (!s->over && line_writer_waits(s->writer) <= PAUSE_BYTES) {
        char *from = s->line.p + at, *newline = NULL;
        if (s->line.n > s->seen)
            newline = memchr(s->line.p + s->seen, '\n', s->line.n - s->seen);
        if (!newline) {
            s->seen = s->line.n;
            break;
        }
        if (!s->skipping)
            take_line(s, (struct str){from, (size_t)(newline - from)});
        s->skipping = false;
        at = s->seen = (size_t)(newline - s->line.p) + 1;
    }
    if (at > 0) {
        memmove(s->line.p, s->line.p + at, s->line.n - at);
        s->line.n -= at;
        s->seen -= at;
    }
    if (s->skipping)
        s->line.n = s->seen = 0;
    else if (s->seen > MESSAGE_MAX)
        too_long(s);
    if (s->line.n == 0 && s->line.cap > KEEP_BYTES)
        buf_done(&s->line);
}

static void go_on(struct stdio *s)
{
    take_lines(s);
    if (s->over)
        return;
    if (line_writer_waits(s->writer) > PAUSE_BYTES)
        pause_reading(s);
    else
        wait_for_more(s);
}

/* From the loop, as whoever makes room may be in the middle of something. */
static void resume(struct stdio *s)
{
    s->paused = false;
    if (s->last)
        timer_clear(s->last);
    timer_set(s->again, 0);
}

/* A last line need not have an end of its own. */
static void on_eof(struct stdio *s)
{
    if (s->line.n > 0 && !s->skipping)
        take_line(s, buf_str(&s->line));
    if (s->roots[0])
        end_roots(s, NULL);
    input_over(s);
}

/* There may be lines left to read, when there is room for their answers. */
static void on_hangup(void *arg)
{
    wait_for_reader(arg);
}

static void read_more(void *arg)
{
    struct stdio *s = arg;
    char *room;
    ssize_t n;

    if (s->over || s->paused)
        return;
    room = buf_room(&s->line, READ_BYTES);
    assert(room); /* lines are cut at MESSAGE_MAX */
    n = read(s->in, room, READ_BYTES);
    if (n > 0) {
        s->line.n += (size_t)n;
        go_on(s);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        on_eof(s);
    } else if (!s->can_wait) {
        wait_for_more(s);
    }
}

static void on_again(void *arg)
{
    struct stdio *s = arg;

    if (s->over || s->paused)
        return;
    if (s->seen < s->line.n)
        go_on(s);
    else if (s->can_wait)
        wait_for_more(s);
    else
        read_more(s);
}

/* An interpreter takes a second or two to import its packages. What goes wrong is told by the call
 * that needs it, which tries again. */
static void on_warm(void *arg)
{
    struct stdio *s = arg;
    struct err e;

    s->roots_asked = true; /* the interpreter does not wait for it any more */
    if (s->roots[0]) {
        log_warn("the client has roots and does not name them; sessions do without");
        end_roots(s, NULL);
        return;
    }
    if (!s->over && !s->ended && !s->mcp->config.service(s->mcp->config.arg, &e))
        log_debug("nothing is warm: %s", e.text);
}

/* --- the room's side --- */

static bool can_poll(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd)));
}

/* Whoever has our standard input started us, and may do what we may. */
void mcp_stdio(struct mcp *m, int in, int out, loop_fn *on_end, void *arg)
{
    static const struct caller who = {.tenant = "local", .door = "mcp", .admin = true};
    struct stdio *s = mem_zalloc(sizeof(*s));

    assert(!m->stdio);
    *s = (struct stdio){.peer = {&stdio_ops}, .mcp = m, .in = in};
    s->on_end = on_end;
    s->arg = arg;
    s->writer = line_writer_new(m->config.loop, out, on_written, on_unread, s);
    s->can_wait = can_poll(in);
    buf_init(&s->line, MESSAGE_MAX + 2 * READ_BYTES);
    s->conversation = conversation_new(m, &who);
    assert(s->conversation);
    s->conversation->aside = &s->peer;
    s->again = timer_new(m->config.loop, on_again, s);
    s->warm = timer_new(m->config.loop, on_warm, s);
    m->stdio = s;
    wait_for_more(s);
}

void stdio_free(struct stdio *s)
{
    if (!s)
        return;
    s->ended = s->over = true;
    drop_watches(s);
    timer_free(s->again);
    timer_free(s->last);
    timer_free(s->warm);
    line_writer_free(s->writer);
    json_decref(s->held);
    buf_done(&s->line);
    free(s);
}
