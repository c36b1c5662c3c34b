/* requestState: what comes back is ours, for the same request, in time, and once. */
#include "doors/mcp/mcp_int.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t ahead; /* seconds by which this test is ahead of its time */

/* In place of the library's, for everything that is linked in here. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, id, ret);

    if (rc == 0 && id == CLOCK_REALTIME)
        ret->tv_sec += ahead;
    return (int)rc;
}

struct scene {
    struct mcp mcp;
    struct call call;
    char *text; /* signed for this call, with {"n": 1} */
};

static int set_up(void **state)
{
    struct scene *s = mem_zalloc(sizeof(*s));
    json_t *carried = json_pack("{s:i}", "n", 1);

    memset(s->mcp.config.secret, 7, sizeof(s->mcp.config.secret));
    s->call = (struct call){.mcp = &s->mcp, .method = "tools/call"};
    strcpy(s->call.caller.tenant, "ann");
    strcpy(s->call.caller.key, "key_1");
    s->call.params = json_pack("{s:s, s:{s:s, s:i}}", "name", "run_code", "arguments", "code", "1",
                               "timeout", 3);
    s->text = state_sign(&s->call, carried);
    json_decref(carried);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    states_free(&s->mcp);
    json_decref(s->call.params);
    free(s->text);
    free(s);
    return 0;
}

static int open_it(struct scene *s, const char *text, struct err *e)
{
    json_t *got = NULL;
    int rc = state_open(&s->call, str_of(text), &got, e);

    if (rc == 0)
        assert_int_equal(json_integer_value(json_object_get(got, "n")), 1);
    else
        assert_null(got);
    json_decref(got);
    return rc;
}

static void test_comes_back_once(void **state)
{
    struct scene *s = *state;
    struct err e;

    assert_int_equal(open_it(s, s->text, &e), 0);
    assert_int_equal(open_it(s, s->text, &e), -1);
    assert_has(e.text, "used before");
    assert_int_equal(e.kind, ERR_CALLER);
}

static void test_is_refused_when_its_time_is_over(void **state)
{
    struct scene *s = *state;
    struct err e;
    int late;

    ahead = STATE_MS / 1000 + 1;
    late = open_it(s, s->text, &e);
    ahead = STATE_MS / 1000 - 5;
    assert_int_equal(late, -1);
    assert_non_null(strstr(e.text, "older than 10 minutes"));
    assert_int_equal(open_it(s, s->text, &e), 0);
    ahead = 0;
}

static void test_each_is_another(void **state)
{
    struct scene *s = *state;
    json_t *carried = json_pack("{s:i}", "n", 1);
    AUTO_FREE char *other = state_sign(&s->call, carried);
    struct err e;

    json_decref(carried);
    assert_string_not_equal(other, s->text);
    assert_int_equal(open_it(s, other, &e), 0);
    assert_int_equal(open_it(s, s->text, &e), 0);
}

static void test_what_is_added_for_the_second_time_does_not_count(void **state)
{
    struct scene *s = *state;
    struct err e;

    json_object_set_new(s->call.params, "requestState", json_string(s->text));
    json_object_set_new(s->call.params, "inputResponses", json_object());
    json_object_set_new(s->call.params, "_meta", json_pack("{s:s}", "progressToken", "p"));
    assert_int_equal(open_it(s, s->text, &e), 0);
}

/* Each changes the scene so that the state is no longer for it. */
static void other_tenant(struct scene *s)
{
    strcpy(s->call.caller.tenant, "bob");
}

static void other_key(struct scene *s)
{
    strcpy(s->call.caller.key, "key_2");
}

static void no_key(struct scene *s)
{
    strcpy(s->call.caller.key, "");
}

/* Parts must not run into each other. */
static void shifted_key(struct scene *s)
{
    strcpy(s->call.caller.tenant, "annkey_1");
    strcpy(s->call.caller.key, "");
}

static void other_method(struct scene *s)
{
    s->call.method = "prompts/get";
}

static void other_tool(struct scene *s)
{
    json_object_set_new(s->call.params, "name", json_string("run_shell"));
}

static void other_argument(struct scene *s)
{
    json_object_set_new(json_object_get(s->call.params, "arguments"), "code", json_string("2"));
}

static void further_argument(struct scene *s)
{
    json_object_set_new(json_object_get(s->call.params, "arguments"), "env", json_object());
}

static void other_secret(struct scene *s)
{
    s->mcp.config.secret[31] ^= 1;
}

static void test_is_for_one_request_of_one_key(void **state)
{
    static void (*const changes[])(struct scene * s) = {
        other_tenant, other_key,      no_key,           shifted_key,  other_method,
        other_tool,   other_argument, further_argument, other_secret,
    };

    (void)state;
    for (size_t i = 0; i < COUNT(changes); i++) {
        void *scene;
        struct err e;

        set_up(&scene);
        changes[i](scene);
        if (open_it(scene, ((struct scene *)scene)->text, &e) == 0)
            fail_msg("change %zu is not noticed", i);
        assert_has(e.text, "not what this server gave");
        tear_down(&scene);
    }
}

static void test_every_bit_counts(void **state)
{
    struct scene *s = *state;
    struct err e;

    for (size_t i = 0; s->text[i]; i++) {
        char kept = s->text[i];
        s->text[i] = kept == 'A' ? 'B' : 'A';
        if (open_it(s, s->text, &e) == 0)
            fail_msg("byte %zu does not count", i);
        s->text[i] = kept;
    }
    assert_int_equal(open_it(s, s->text, &e), 0);
}

static void test_other_texts_are_refused(void **state)
{
    struct scene *s = *state;
    char longer[512];
    struct err e;

    snprintf(longer, sizeof(longer), "%s-TAMPERED", s->text);
    assert_int_equal(open_it(s, longer, &e), -1);
    assert_int_equal(open_it(s, "", &e), -1);
    assert_int_equal(open_it(s, NULL, &e), -1);
    assert_int_equal(open_it(s, "AAAA", &e), -1);
    s->text[strlen(s->text) - 4] = '\0';
    assert_int_equal(open_it(s, s->text, &e), -1);
}

static void test_too_much_is_not_signed(void **state)
{
    struct scene *s = *state;
    AUTO_FREE char *text = mem_zalloc(STATE_MAX + 1);
    json_t *carried;

    memset(text, 'x', STATE_MAX);
    carried = json_pack("{s:s}", "n", text);
    assert_null(state_sign(&s->call, carried));
    json_decref(carried);
}

/* Fuller than its memory, it forgets and takes nothing as old as what it forgot. */
static void test_a_flood_brings_nothing_back(void **state)
{
    struct scene *s = *state;
    json_t *carried = json_pack("{s:i}", "n", 1);
    struct err e;

    assert_int_equal(open_it(s, s->text, &e), 0);
    for (int i = 0; i < 20000; i++) {
        AUTO_FREE char *text = state_sign(&s->call, carried);
        assert_int_equal(open_it(s, text, &e), 0);
    }
    json_decref(carried);
    assert_int_equal(open_it(s, s->text, &e), -1);
}

int main(void)
{
#define WITH(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH(test_comes_back_once),
        WITH(test_is_refused_when_its_time_is_over),
        WITH(test_each_is_another),
        WITH(test_what_is_added_for_the_second_time_does_not_count),
        cmocka_unit_test(test_is_for_one_request_of_one_key),
        WITH(test_every_bit_counts),
        WITH(test_other_texts_are_refused),
        WITH(test_too_much_is_not_signed),
        WITH(test_a_flood_brings_nothing_back),
    };
    return RUN(tests);
}
