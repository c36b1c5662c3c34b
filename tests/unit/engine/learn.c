/* Votes on modules: who counts, what is asked for, what is never asked for again. */
#include "engine/engine_int.h"
#include "unit.h"

#include <stdio.h>

static uint64_t next_session = 1;

static void vote(struct learn *l, unsigned sessions, const char *modules)
{
    for (unsigned i = 0; i < sessions; i++) {
        learn_session(l);
        assert_int_equal(learn_vote(l, next_session++, str_of(modules)), 0);
    }
}

static void expect_asked(struct learn *l, const char *want)
{
    AUTO(buf_done) struct buf asked = BUF(WIRE_MODULES_MAX);

    learn_ask(l, &asked);
    if (!str_is(buf_str(&asked), want))
        fail_msg("asked for '%.*s', not for '%s'", (int)asked.n, asked.p, want);
}

static void test_one_session_is_not_enough(void **state)
{
    struct learn *l = learn_new();

    (void)state;
    vote(l, 1, "sympy,sklearn");
    assert_false(learn_is_due(l));
    expect_asked(l, "");
    vote(l, 1, "sklearn,sklearn.svm");
    assert_true(learn_is_due(l));
    expect_asked(l, "sklearn");
    learn_free(l);
}

static void test_a_session_has_one_vote(void **state)
{
    struct learn *l = learn_new();

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(learn_vote(l, 7, STR("sympy")), 0);
    assert_false(learn_is_due(l));
    learn_free(l);
}

static void test_what_is_there_is_not_due(void **state)
{
    struct learn *l = learn_new();
    const char *learned[LEARNED_MAX];

    (void)state;
    vote(l, 3, "b");
    vote(l, 2, "a,c");
    expect_asked(l, "b,a,c"); /* most votes first */
    learn_take(l, STR("b,c,never_asked"));
    assert_int_equal(learn_tell(l, learned), 2);
    assert_string_equal(learned[0], "b");
    assert_string_equal(learned[1], "c");
    assert_false(learn_is_due(l)); /* a could not be had */
    vote(l, 9, "a");
    assert_false(learn_is_due(l));
    expect_asked(l, "b,c");
    learn_free(l);
}

static void test_nothing_that_kept_it_from_coming_up(void **state)
{
    struct learn *l = learn_new();

    (void)state;
    vote(l, 2, "a,b");
    expect_asked(l, "a,b");
    learn_give_up(l);
    assert_false(learn_is_due(l));
    expect_asked(l, "");
    learn_free(l);
}

static void test_what_is_rare_is_not_asked_for(void **state)
{
    struct learn *l = learn_new();

    (void)state;
    vote(l, 2, "rare");
    vote(l, 60, "common");
    expect_asked(l, "common");
    learn_free(l);
}

static void test_what_nobody_wants_goes(void **state)
{
    struct learn *l = learn_new();

    (void)state;
    vote(l, 4, "old");
    expect_asked(l, "old");
    learn_take(l, STR("old"));
    for (int i = 0; i < 300; i++) {
        vote(l, 1, "new");
        if (i == 100) /* it stays for as long as there is a vote for it */
            expect_asked(l, "new,old");
    }
    expect_asked(l, "new");
    learn_free(l);
}

static void test_no_flood_takes_the_room(void **state)
{
    struct learn *l = learn_new();
    char name[32];

    (void)state;
    vote(l, 2, "wanted");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "flood%d", i);
        assert_int_equal(learn_vote(l, next_session++, str_of(name)), 0);
    }
    expect_asked(l, "wanted");
    learn_free(l);
}

static void test_no_more_than_it_may(void **state)
{
    struct learn *l = learn_new();
    AUTO(buf_done) struct buf asked = BUF(WIRE_MODULES_MAX);
    char name[WIRE_MODULE_MAX + 1];
    struct str rest, one;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "m%0*d", WIRE_MODULE_MAX - 1, i);
        for (uint64_t session = 1; session <= 2; session++)
            assert_int_equal(learn_vote(l, session, str_of(name)), 0);
    }
    learn_ask(l, &asked);
    rest = buf_str(&asked);
    assert_true(wire_are_modules(rest));
    while (str_next(&rest, ',', &one))
        n++;
    assert_int_equal(n, LEARNED_MAX);
    learn_free(l);
}

static void test_what_is_no_module(void **state)
{
    struct learn *l = learn_new();

    (void)state;
    assert_int_equal(learn_vote(l, 1, STR("../x")), -1);
    assert_int_equal(learn_vote(l, 1, STR("")), -1);
    learn_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_session_is_not_enough),
        cmocka_unit_test(test_a_session_has_one_vote),
        cmocka_unit_test(test_what_is_there_is_not_due),
        cmocka_unit_test(test_nothing_that_kept_it_from_coming_up),
        cmocka_unit_test(test_what_is_rare_is_not_asked_for),
        cmocka_unit_test(test_what_nobody_wants_goes),
        cmocka_unit_test(test_no_flood_takes_the_room),
        cmocka_unit_test(test_no_more_than_it_may),
        cmocka_unit_test(test_what_is_no_module),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
