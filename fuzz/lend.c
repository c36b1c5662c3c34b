/*
 * What two nodes say to each other about a sandbox that one of them lends: every message of a
 * stream, read as either side reads it. Whatever is accepted lies inside the message and within
 * the limits that others rely on, and says the same when it is written and read once more.
 *
 * links: src/engine/lend_message.c src/engine/event.c src/engine/limits.c src/engine/mime.c
 */
#include "engine/lend_int.h"

#include "support/fuzz.h"

static void check(struct str body, struct str s)
{
    EXPECT(s.n == 0 || (s.p >= body.p && s.p + s.n <= body.p + body.n));
    touch(s);
}

static void check_path(struct str path)
{
    EXPECT(path.n > 0 && path.n < SPACE_NAME_MAX && path.p[0] != '/');
    EXPECT(!memchr(path.p, '\0', path.n));
    EXPECT(!memmem(path.p, path.n, "//", 2) && path.p[path.n - 1] != '/');
    EXPECT(!str_is(path, "..") && !memmem(path.p, path.n, "/../", 4));
    EXPECT(path.n < 3 || memcmp(path.p, "../", 3) != 0);
    EXPECT(path.n < 3 || memcmp(path.p + path.n - 3, "/..", 3) != 0);
}

static void event(struct str body)
{
    static struct event ev, same;
    AUTO(buf_done) struct buf b = BUF(2 * LEND_BODY_MAX);

    if (lend_take_event(body, &ev) < 0)
        return;
    EXPECT(event_kind_name(ev.kind));
    check(body, ev.text);
    if (ev.kind == EVENT_FILE) {
        EXPECT(file_change_name(ev.file.change) && ev.file.mime);
        check_path(ev.file.path);
    }
    for (size_t i = 0; i < ev.bundle.count; i++)
        check(body, ev.bundle.part[i].data);
    lend_put_event(&b, &ev);
    EXPECT(lend_take_event(buf_str(&b), &same) == 0);
    EXPECT(same.kind == ev.kind && same.late == ev.late && str_eq(same.text, ev.text));
    EXPECT(same.bundle.count == ev.bundle.count && same.error.count == ev.error.count);
    EXPECT(ev.kind != EVENT_FILE ||
           (str_eq(same.file.path, ev.file.path) && same.file.size == ev.file.size));
}

static void outcome(struct str body)
{
    struct outcome o, same;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    if (lend_take_outcome(body, &o) < 0)
        return;
    EXPECT(outcome_status_name(o.status) && strlen(o.line) < sizeof(o.line));
    EXPECT(o.state_at <= strlen(o.line) && o.output_dropped <= o.output_bytes && !o.untaken);
    lend_put_outcome(&b, &o);
    EXPECT(lend_take_outcome(buf_str(&b), &same) == 0);
    EXPECT(strcmp(same.line, o.line) == 0 && same.wall_us == o.wall_us);
}

static void answer(struct str body)
{
    struct lend_answer a;
    struct err e = {0};

    if (lend_take_answer(body, &a) < 0)
        return;
    EXPECT(lend_answer_err(&a, &e) == (a.kind ? -1 : 0));
    EXPECT(e.kind <= ERR_HOST && strlen(e.text) < sizeof(e.text) && a.mode <= 0777);
}

static void exec(struct str body)
{
    static struct exec_env env[LEND_ENV_MAX];
    struct exec_config config;

    if (lend_take_exec(body, &config, env) < 0)
        return;
    EXPECT(config.env_count <= LEND_ENV_MAX && config.kind <= EXEC_COMMAND);
    check(body, config.code);
    for (size_t i = 0; i < config.env_count; i++) {
        check(body, config.env[i].name);
        check(body, config.env[i].value);
    }
}

static void ask(struct str body)
{
    struct lend_ask a;
    struct str path;

    if (lend_take_ask(body, &a, &path) < 0)
        return;
    EXPECT(a.op <= LEND_UNPACK && a.mode <= 0777);
    check(body, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct lend_message m;

    while (lend_next(&rest, &m) == 1) {
        EXPECT(m.type < LEND__COUNT && m.body.n <= LEND_BODY_MAX);
        event(m.body);
        outcome(m.body);
        answer(m.body);
        exec(m.body);
        ask(m.body);
    }
    return 0;
}
