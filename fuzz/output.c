/*
 * What is kept of an execution's output: of each stream a beginning and an end,
 * with what is missing counted, and never more than the budget allows.
 *
 * links: src/engine/session.c src/engine/limits.c src/engine/outcome.c src/engine/stream.c
 */
#include "engine/engine_int.h"

#include "support/fuzz.h"

#include <stdio.h>

#define PRINTED_MAX (64 * KiB)

/* One stream: all that was printed, and what of it was told. */
struct log {
    size_t n, told;
    char printed[PRINTED_MAX], kept[PRINTED_MAX];
};

static struct {
    struct loop *loop;
    struct engine engine;
    struct limits limits;
    const struct guest_owner *owner;
    void *session;
    uint64_t cell; /* id of the running cell */
    bool slow;
    struct log log[2];
    uint64_t shown, told; /* bytes of displays: all, and those told */
    uint64_t noted;       /* bytes that notes say were left out */
    bool over;
} run;

/* --- a guest and a pool that do nothing --- */

struct engine *pool_engine(struct pool *p)
{
    (void)p;
    return &run.engine;
}

const struct limits *pool_limits(struct pool *p)
{
    (void)p;
    return &run.limits;
}

void guest_set_owner(struct guest *g, const struct guest_owner *owner, void *arg)
{
    (void)g;
    run.owner = owner;
    run.session = arg;
}

enum guest_state guest_state(const struct guest *g)
{
    (void)g;
    return run.cell ? GUEST_RUNNING : GUEST_IDLE;
}

int guest_cell(struct guest *g, uint64_t id, struct str code, uint64_t number)
{
    (void)g;
    (void)code;
    (void)number;
    run.cell = id;
    return 0;
}

int guest_pipe(int ret[2])
{
    (void)ret;
    return -1;
}

int guest_command(struct guest *g, uint64_t id, struct str line, int out, int err)
{
    (void)g;
    (void)id;
    (void)line;
    (void)out;
    (void)err;
    return -1;
}

void guest_throttle(struct guest *g, bool slow)
{
    (void)g;
    run.slow = slow;
}

void guest_ask_usage(struct guest *g)
{
    struct box_usage u = {0};

    (void)g;
    run.owner->on_usage(run.session, &u);
}

void guest_signal(struct guest *g, uint64_t id, int number)
{
    (void)g;
    (void)id;
    (void)number;
}

void guest_watch(struct guest *g, uint64_t cpu_us, uint64_t memory)
{
    (void)g;
    (void)cpu_us;
    (void)memory;
}

void guest_free(struct guest *g)
{
    (void)g;
}

void guest_end(struct guest *g, const char *why)
{
    (void)g;
    (void)why;
}

int guest_space(const struct guest *g)
{
    (void)g;
    return -1;
}

int guest_tmp(const struct guest *g)
{
    (void)g;
    return -1;
}

int guest_shm(const struct guest *g)
{
    (void)g;
    return -1;
}

uid_t guest_uid(const struct guest *g)
{
    (void)g;
    return 0;
}

bool guest_in_cgroup(const struct guest *g)
{
    (void)g;
    return true;
}

struct tree *tree_new(void)
{
    return NULL;
}

void tree_free(struct tree *t)
{
    (void)t;
}

uint32_t tree_scan(struct tree *t, int space, uid_t uid, const struct limits *l, tree_fn *fn,
                   void *arg)
{
    (void)t;
    (void)space;
    (void)uid;
    (void)l;
    (void)fn;
    (void)arg;
    return 0;
}

int space_put(int space, uid_t uid, struct str path, int src, struct err *e)
{
    (void)space;
    (void)uid;
    (void)path;
    (void)src;
    return err_set(e, ERR_HOST, "no");
}

int space_get(int space, uid_t uid, struct str path, struct err *e)
{
    (void)space;
    (void)uid;
    (void)path;
    return err_set(e, ERR_HOST, "no");
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
    uint64_t budget = run.limits.output_bytes;

    (void)arg;
    EXPECT(!run.over);
    run.over = true;
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

    while (repeat-- > 0 && text.n > 0 && text.n <= PRINTED_MAX - l->n) {
        memcpy(l->printed + l->n, text.p, text.n);
        l->n += text.n;
        run.owner->on_text(run.session, op & 1 ? EVENT_STDERR : EVENT_STDOUT, text);
    }
}

static void show(struct feed *feed)
{
    static struct event ev;
    static const char bytes[8192];

    ev = (struct event){.kind = EVENT_DISPLAY, .bundle.count = 1};
    ev.bundle.part[0] = (struct mime_part){
        STR("text/plain"), {bytes, feed_num(feed, 2) % 8192}
    };
    run.shown += ev.bundle.part[0].data.n;
    run.owner->on_event(run.session, &ev);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct exec_callbacks callbacks = {on_event, on_outcome};
    struct feed feed = {data, size};
    struct session *s;
    struct err e;

    run.log[0].n = run.log[0].told = run.log[1].n = run.log[1].told = 0;
    run.cell = run.shown = run.told = run.noted = 0;
    run.over = false;
    run.loop = loop_new();
    run.engine = (struct engine){.loop = run.loop, .next_id = 1, .warden = -1};
    limits_default(&run.limits);
    run.limits.output_bytes = 1 + feed_num(&feed, 2) % (32 * KiB);
    s = session_new(NULL, NULL);
    EXPECT(exec_start(s, &(struct exec_config){EXEC_CELL, STR("x"), 0}, &callbacks, NULL, &e));
    /* start_later() looks for a guest to tell a closed session by. */
    run.owner->on_idle(run.session);
    EXPECT(run.cell);
    while (feed.n > 0) {
        uint8_t op = feed_byte(&feed);
        if (op & 4)
            show(&feed);
        else
            print(&feed, op);
    }
    run.cell = 0;
    run.owner->on_done(run.session, size & 1);
    EXPECT(run.over);
    session_close(s);
    while (loop_alive(run.loop))
        loop_turn(run.loop);
    loop_free(run.loop);
    return 0;
}
