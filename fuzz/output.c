/*
 * What is kept of an execution's output: of each stream a beginning and an end,
 * with what is missing counted, and never more than the budget allows. One cell of
 * one session, whose kernel prints and shows what the input says.
 *
 * links: src/engine/exec_end.c src/engine/engine.c src/engine/event.c src/engine/guest.c
 * links: src/engine/guest_messages.c src/engine/learn.c src/engine/limits.c
 * links: src/engine/outcome.c src/engine/output.c src/engine/parked.c src/engine/pool.c
 * links: src/engine/pool_alive.c src/engine/session.c
 * links: src/engine/scan.c src/engine/stream.c src/engine/tree.c
 * links: src/engine/verdict.c
 * links: src/engine/mime.c src/engine/workspace.c src/sandbox/cgroup.c
 * links: src/engine/borrowed.c src/engine/borrowed_files.c
 * links: src/engine/lend_message.c src/engine/lend_pipe.c
 */
#include "engine/engine_int.h"
#include "warden/warden.h"

#include "support/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PRINTED_MAX (64 * KiB)
#define NO_FILES    "/proc/self/ns" /* a folder with nothing in it but links */

/* One stream: all that was printed, and what of it was told. */
struct log {
    size_t n, told;
    char printed[PRINTED_MAX], kept[PRINTED_MAX];
};

static struct {
    struct loop *loop;
    struct engine *engine;
    struct session *session;
    uint64_t budget;
    int warden, ctl, sock, pipe[2]; /* owned: the far ends */
    struct log log[2];
    uint64_t shown, told; /* bytes of displays: all, and those told */
    uint64_t noted;       /* bytes that notes say were left out */
    bool over;
} run;

/* --- the far side, which is honest --- */

void environments_learn(struct engine *en, const struct engine_config *config)
{
    static struct known_environment one;

    (void)config;
    en->environments = &one;
}

void environments_forget(struct engine *en)
{
    (void)en;
}

int environments_hand_over(struct engine *en, const struct engine_config *config, struct err *e)
{
    int pair[2];

    (void)config;
    en->warden_pidfd = -1;
    EXPECT(wire_pair(pair, e) == 0 && fd_set_nonblock(pair[1]) == 0);
    run.warden = pair[1];
    return pair[0];
}

int environment_number(const struct engine *en, const struct engine_environment *env, struct err *e)
{
    (void)en;
    (void)env;
    (void)e;
    return 0;
}

/* Lets the server work, then takes its next message of this type. */
static struct wire_head take(int fd, uint16_t type, int *fds, size_t want)
{
    static char bytes[WIRE_BODY_MAX];
    struct wire_head head = {0};
    size_t nfds = 0;

    for (int i = 0; head.type != type; i++) {
        EXPECT(i < 16);
        loop_turn(run.loop);
        while (head.type != type && wire_recv(fd, &head, bytes, fds, want, &nfds) == 1)
            EXPECT(head.type != type || nfds == want);
    }
    return head;
}

static void say(int fd, uint16_t type, uint64_t id, const struct buf *body)
{
    EXPECT(wire_send(fd, type, id, buf_str(body), NULL, 0) == 0);
    loop_turn(run.loop);
}

static void on_ready(void *arg, const struct err *failed)
{
    (void)arg;
    EXPECT(!failed);
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    (void)arg;
    EXPECT(s && !failed);
    run.session = s;
}

static void bring_up(void)
{
    struct pool_config config = {.name = "fuzz"};
    const struct buf nothing = {0};
    AUTO_CLOSE int dir = open(NO_FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int dirs[] = {dir, dir, dir};
    struct wire_head asked;
    struct buf body;
    struct err e;
    int fds[3];

    run.loop = loop_new(&(struct err){0});
    run.engine = engine_new(
        run.loop, &(struct engine_config){.guest_dir = "/guest", .cache_dir = "/tmp"}, &e);
    EXPECT(run.engine && dir >= 0);
    limits_default(&config.limits);
    config.limits.output_bytes = run.budget;
    struct pool *pool = pool_start(run.engine, &config, on_ready, NULL);
    asked = take(run.warden, MSG_POOL_START, fds, 0);
    say(run.warden, MSG_POOL_UP, asked.id, &nothing);
    session_open(pool, on_open, NULL);
    asked = take(run.warden, MSG_SPAWN, &run.ctl, 1);
    EXPECT(fd_set_nonblock(run.ctl) == 0);
    buf_init(&body, KiB);
    wire_put_num(&body, TAG_UID, geteuid());
    wire_put_num(&body, TAG_FLAGS, 1);
    say(run.warden, MSG_SPAWNED, asked.id, &body);
    buf_done(&body);
    EXPECT(wire_send(run.ctl, MSG_READY, 0, (struct str){0}, dirs, COUNT(dirs)) == 0);
    take(run.ctl, MSG_KERNEL, fds, 3);
    run.sock = fds[0];
    run.pipe[0] = fds[1];
    run.pipe[1] = fds[2];
    EXPECT(fd_set_nonblock(run.sock) == 0);
    say(run.sock, MSG_IDLE, 0, &nothing);
    EXPECT(run.session);
}

/* --- what is told --- */

static void on_event(void *arg, const struct event *ev)
{
    unsigned long long n;

    (void)arg;
    EXPECT(!run.over);
    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR) {
        struct log *l = &run.log[ev->kind == EVENT_STDERR];
        EXPECT(ev->text.n > 0 && ev->text.n <= l->n - l->told);
        memcpy(l->kept + l->told, ev->text.p, ev->text.n);
        l->told += ev->text.n;
    } else if (ev->kind == EVENT_DISPLAY) {
        run.told += ev->bundle.part[0].data.n;
    } else {
        char text[128];
        EXPECT(ev->kind == EVENT_STATUS && str_to_cstr(ev->text, text, sizeof(text)));
        if (sscanf(text, "%llu bytes of output", &n) == 1 ||
            sscanf(text, "a display of %llu bytes", &n) == 1)
            run.noted += n;
    }
}

/* The told part of a stream is a beginning and an end of it. */
static void check_log(const struct log *l)
{
    size_t head = 0;

    while (head < l->told && l->kept[head] == l->printed[head])
        head++;
    EXPECT(memcmp(l->kept + head, l->printed + l->n - (l->told - head), l->told - head) == 0);
}

static void on_outcome(void *arg, const struct outcome *o)
{
    uint64_t printed = run.log[0].n + run.log[1].n + run.shown;
    uint64_t told = run.log[0].told + run.log[1].told + run.told;
    uint64_t budget = run.budget;

    (void)arg;
    EXPECT(!run.over);
    run.over = true;
    EXPECT(o->status == OUTCOME_OK || o->status == OUTCOME_RAISED);
    EXPECT(o->output_bytes == printed && o->output_dropped == printed - told);
    EXPECT(run.noted == o->output_dropped);
    EXPECT(told <= budget + budget / 4 + 4);
    EXPECT((o->output_dropped > 0) == !!(o->limits_hit & IN(LIMIT_OUTPUT)));
    EXPECT(printed > budget || o->output_dropped == 0);
    check_log(&run.log[0]);
    check_log(&run.log[1]);
}

/* --- the script --- */

static void print(struct feed *feed, uint8_t op)
{
    struct log *l = &run.log[op & 1];
    struct str text = feed_text(feed, feed_byte(feed));
    size_t repeat = op & 2 ? 1u + feed_byte(feed) : 1;
    struct err e;

    while (repeat-- > 0 && text.n > 0 && text.n <= PRINTED_MAX - l->n) {
        memcpy(l->printed + l->n, text.p, text.n);
        l->n += text.n;
        EXPECT(fd_write_all(run.pipe[op & 1], text, &e) == 0);
        if (op & 8) /* else it comes in larger pieces */
            loop_turn(run.loop);
    }
    loop_turn(run.loop);
    loop_advance(run.loop, 10);
}

static void show(struct feed *feed)
{
    static const char bytes[8192];
    struct str data = {bytes, feed_num(feed, 2) % sizeof(bytes)};
    struct buf body;

    buf_init(&body, 16 * KiB);
    wire_put(&body, TAG_MIME, STR("text/plain"));
    wire_put(&body, TAG_DATA, data);
    run.shown += data.n;
    say(run.sock, MSG_DISPLAY, 0, &body);
    buf_done(&body);
    take(run.sock, MSG_ACK, NULL, 0);
}

static void finish(uint64_t cell, uint64_t status)
{
    const struct buf nothing = {0};
    struct buf body;

    buf_init(&body, KiB);
    wire_put_num(&body, TAG_STATUS, status);
    say(run.sock, MSG_DONE, cell, &body);
    buf_done(&body);
    if (!run.over)
        say(run.warden, MSG_USED, take(run.warden, MSG_USAGE, NULL, 0).id, &nothing);
    EXPECT(run.over);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct exec_callbacks callbacks = {on_event, on_outcome};
    unsigned open_before = fds_open();
    struct feed feed = {data, size};
    struct err e;
    uint64_t cell;

    run.log[0].n = run.log[0].told = run.log[1].n = run.log[1].told = 0;
    run.shown = run.told = run.noted = 0;
    run.over = false;
    run.session = NULL;
    run.budget = 1 + feed_num(&feed, 2) % (32 * KiB);
    bring_up();
    EXPECT(exec_start(run.session, &(struct exec_config){EXEC_CELL, STR("x"), 0}, &callbacks, NULL,
                      &e));
    cell = take(run.sock, MSG_CELL, NULL, 0).id;
    while (feed.n > 0) {
        uint8_t op = feed_byte(&feed);
        if (op & 4)
            show(&feed);
        else
            print(&feed, op);
    }
    finish(cell, size & 1);
    session_close(run.session);
    engine_free(run.engine);
    while (loop_alive(run.loop))
        loop_turn(run.loop);
    loop_free(run.loop);
    fd_closep(&run.warden);
    fd_closep(&run.ctl);
    fd_closep(&run.sock);
    fd_closep(&run.pipe[0]);
    fd_closep(&run.pipe[1]);
    EXPECT(fds_open() == open_before);
    return 0;
}
