/* What nodes say to each other about a sandbox that is lent: it arrives as it was said, and what
 * cannot be is refused. */
#include "engine/lend_int.h"
#include "unit.h"

static struct event ev, got;

static int send(const struct event *e)
{
    static struct buf b;

    buf_done(&b);
    buf_init(&b, LEND_BODY_MAX);
    lend_put_event(&b, e);
    return lend_take_event(buf_str(&b), &got);
}

static void test_texts(void **state)
{
    (void)state;
    ev = (struct event){.kind = EVENT_STDERR, .late = true, .text = STR("said\0\xff")};
    assert_int_equal(send(&ev), 0);
    assert_true(got.kind == EVENT_STDERR && got.late && str_eq(got.text, ev.text));
}

static void test_displays(void **state)
{
    (void)state;
    ev = (struct event){.kind = EVENT_DISPLAY};
    ev.bundle.count = 2;
    ev.bundle.part[0] = (struct mime_part){STR("text/plain"), STR("a")};
    ev.bundle.part[1] = (struct mime_part){STR("image/png"), STR("\x89\0")};
    ev.bundle.display_id = STR("id");
    ev.bundle.metadata = STR("{}");
    ev.bundle.update = true;
    assert_int_equal(send(&ev), 0);
    assert_true(got.bundle.count == 2 && got.bundle.update && got.bundle.part[1].data.n == 2);
    assert_true(str_is(got.bundle.display_id, "id") && str_is(got.bundle.metadata, "{}"));
}

static void test_errors(void **state)
{
    (void)state;
    ev = (struct event){.kind = EVENT_ERROR};
    ev.error.type = STR("ValueError");
    ev.error.message = STR("no");
    ev.error.count = 1;
    ev.error.frame[0] = (struct frame){STR("<cell 1>"), 7, STR("f"), STR("raise")};
    assert_int_equal(send(&ev), 0);
    assert_true(str_is(got.error.type, "ValueError") && got.error.frame[0].line == 7);
}

static void test_files(void **state)
{
    static const char *const bad[] = {"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.."};

    (void)state;
    ev = (struct event){.kind = EVENT_FILE};
    ev.file.change = FILE_CHANGED;
    ev.file.path = STR("a/b c.csv");
    ev.file.size = 1ull << 40;
    ev.file.unlisted = true;
    assert_int_equal(send(&ev), 0);
    assert_true(str_is(got.file.path, "a/b c.csv") && got.file.size == 1ull << 40);
    assert_true(got.file.change == FILE_CHANGED && got.file.unlisted && !got.file.too_large);
    assert_string_equal(got.file.mime, "text/csv");
    for (size_t i = 0; i < COUNT(bad); i++) {
        ev.file.path = str_of(bad[i]);
        assert_int_equal(send(&ev), -1);
    }
    ev.file.path = STR("a\0b");
    assert_int_equal(send(&ev), -1);
}

static void test_outcomes(void **state)
{
    struct outcome o = {.status = OUTCOME_TIMEOUT,
                        .limits_hit = IN(LIMIT_WALL),
                        .state_lost = true,
                        .exit_code = 137,
                        .line = "stopped; variables are lost",
                        .state_at = 7,
                        .wall_us = 12,
                        .has_memory = true,
                        .memory_peak_bytes = 1ull << 33,
                        .output_bytes = 10,
                        .output_dropped = 4};
    struct outcome same;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    (void)state;
    lend_put_outcome(&b, &o);
    assert_int_equal(lend_take_outcome(buf_str(&b), &same), 0);
    assert_memory_equal(&o, &same, sizeof(o));
    buf_clear(&b);
    o.output_dropped = 11; /* more than there was */
    lend_put_outcome(&b, &o);
    assert_int_equal(lend_take_outcome(buf_str(&b), &same), -1);
}

static void test_answers(void **state)
{
    struct err e, same = {0};
    struct lend_answer a, got_a;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    (void)state;
    err_set(&e, ERR_LIMIT, "too much");
    e.sys = ENOSPC;
    a = lend_answer_of(&e);
    lend_put_answer(&b, &a);
    assert_int_equal(lend_take_answer(buf_str(&b), &got_a), 0);
    assert_int_equal(lend_answer_err(&got_a, &same), -1);
    assert_true(same.kind == ERR_LIMIT && same.sys == ENOSPC);
    assert_string_equal(same.text, "too much");
}

static void test_code(void **state)
{
    const struct exec_env env[] = {
        {STR("A"), STR("1")},
        {STR("B"), STR("") }
    };
    const struct exec_config config = {
        .kind = EXEC_COMMAND, .code = STR("ls"), .wall_ms = 5, .env = env, .env_count = 2};
    struct exec_env got_env[LEND_ENV_MAX];
    struct exec_config same;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    (void)state;
    lend_put_exec(&b, &config);
    assert_int_equal(lend_take_exec(buf_str(&b), &same, got_env), 0);
    assert_true(same.kind == EXEC_COMMAND && same.wall_ms == 5 && same.env_count == 2);
    assert_true(str_is(same.code, "ls") && str_is(got_env[1].name, "B") && got_env[1].value.n == 0);
}

/* A message is taken when all of it is there; a length that no message has is refused before that.
 */
static void test_a_stream(void **state)
{
    AUTO(buf_done) struct buf b = BUF(64 * KiB);
    struct lend_message m;
    struct str some;

    (void)state;
    lend_head(&b, LEND_BYTES, 3, 2);
    assert_int_equal(buf_put(&b, STR("xyz")), 0);
    for (size_t n = 0; n < 18; n++) {
        some = (struct str){b.p, n};
        assert_int_equal(lend_next(&some, &m), 0);
        assert_int_equal(some.n, n);
    }
    some = buf_str(&b);
    assert_int_equal(lend_next(&some, &m), 1);
    assert_true(m.type == LEND_BYTES && m.id == 3 && str_is(m.body, "xy") && some.n == 1);
    b.p[2] = 1; /* 64 KiB more */
    some = (struct str){b.p, 16};
    assert_int_equal(lend_next(&some, &m), -1);
    b.p[2] = 0;
    b.p[4] = LEND__COUNT;
    some = (struct str){b.p, 16};
    assert_int_equal(lend_next(&some, &m), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_displays),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_outcomes), cmocka_unit_test(test_answers),
        cmocka_unit_test(test_code),     cmocka_unit_test(test_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
