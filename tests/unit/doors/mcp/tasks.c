/* Tasks: whose they are, how they end, and how many there may be. */
#include "doors/mcp/mcp_int.h"
#include "unit.h"

#include <stdlib.h>

/* --- a client that remembers what it was told last --- */

static json_t *told; /* owned: the last response */

static void on_send(struct peer *p, json_t *message)
{
    (void)p;
    json_decref(message);
}

static void on_answer(struct peer *p, int status, json_t *message)
{
    (void)p, (void)status;
    json_decref(told);
    told = message;
}

static void on_drop(struct peer *p)
{
    (void)p;
}

static size_t on_waits(struct peer *p)
{
    (void)p;
    return 0;
}

static const struct peer_ops ops = {on_send, on_answer, on_drop, on_waits};
static struct peer peer = {&ops};

struct scene {
    struct loop *loop;
    struct mcp *mcp;
    struct caller ann;
    struct client client;
};

static int set_up(void **state)
{
    struct scene *s = mem_zalloc(sizeof(*s));
    struct mcp_config config = {0};

    s->loop = config.loop = loop_new(&(struct err){0});
    s->mcp = mcp_new(&config);
    strcpy(s->ann.tenant, "ann");
    strcpy(s->ann.key, "key_1");
    s->client.version = version_newest(ERA_MODERN);
    s->client.capabilities = json_pack("{s:{s:{}}, s:{}}", "extensions", EXT_TASKS, "elicitation");
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    json_decref(take_ptr(&told));
    mcp_free(s->mcp);
    client_done(&s->client);
    loop_free(s->loop);
    free(s);
    return 0;
}

static struct call *call_of(struct scene *s, const struct caller *who, json_t *params)
{
    json_t *id = json_integer(1);
    struct call *c = call_new(s->mcp, s->mcp->tool_set, &peer, NULL, who, &s->client, id, params);

    json_decref(id);
    json_decref(params);
    c->method = "tools/call";
    return c;
}

static const char *told_text(const char *name)
{
    const char *text = json_string_value(json_object_get(json_object_get(told, "result"), name));

    return text ? text : "";
}

/* A call that has become a task: its id is in ret. */
static struct call *begin(struct scene *s, const struct caller *who, char ret[ID_MAX])
{
    struct call *c = call_of(s, who, json_object());

    assert_true(call_to_task(c, "begun"));
    assert_string_equal(told_text("resultType"), "task");
    assert_string_equal(told_text("status"), "working");
    assert_string_equal(told_text("statusMessage"), "begun");
    assert_true(id_is(str_of(told_text("taskId")), "task_"));
    snprintf(ret, ID_MAX, "%s", told_text("taskId"));
    return c;
}

/* Asks for it; the error's code, or 0. */
static int get(struct scene *s, const struct caller *who, const char *id)
{
    struct call *c = call_of(s, who, json_pack("{s:s}", "taskId", id));

    handle_tasks_get(c);
    return (int)json_integer_value(json_object_get(json_object_get(told, "error"), "code"));
}

static void test_the_result_goes_into_the_task(void **state)
{
    struct scene *s = *state;
    struct call *c;
    char id[ID_MAX];

    c = begin(s, &s->ann, id);
    call_task_status(c, STR("half"));
    assert_int_equal(get(s, &s->ann, id), 0);
    assert_string_equal(told_text("statusMessage"), "half");
    tool_fail(c, "no luck");
    assert_int_equal(get(s, &s->ann, id), 0);
    assert_string_equal(told_text("status"), "completed");
    assert_true(json_is_true(
        json_object_get(json_object_get(json_object_get(told, "result"), "result"), "isError")));
}

static void test_an_error_makes_it_fail(void **state)
{
    struct scene *s = *state;
    char id[ID_MAX];
    struct call *c = begin(s, &s->ann, id);

    call_error(c, RPC_INTERNAL, NULL, "broken");
    assert_int_equal(get(s, &s->ann, id), 0);
    assert_string_equal(told_text("status"), "failed");
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_object_get(told, "result"), "error"), "message")),
                        "broken");
}

static void test_what_is_dropped_fails(void **state)
{
    struct scene *s = *state;
    char id[ID_MAX];

    call_drop(begin(s, &s->ann, id));
    assert_int_equal(get(s, &s->ann, id), 0);
    assert_string_equal(told_text("status"), "failed");
}

static void test_another_key_has_none(void **state)
{
    struct scene *s = *state;
    struct caller bob = s->ann, other = s->ann;
    char id[ID_MAX];

    strcpy(bob.tenant, "bob");
    strcpy(other.key, "key_2");
    call_drop(begin(s, &s->ann, id));
    assert_int_equal(get(s, &bob, id), RPC_PARAMS);
    assert_int_equal(get(s, &other, id), RPC_PARAMS);
    assert_int_equal(get(s, &s->ann, "task_nothing"), RPC_PARAMS);
    assert_int_equal(get(s, &s->ann, id), 0);
}

static void on_cancel(void *arg)
{
    call_drop(arg);
}

static void test_cancel_tells_the_work(void **state)
{
    struct scene *s = *state;
    char id[ID_MAX];
    struct call *c = begin(s, &s->ann, id);

    call_on_cancel(c, on_cancel, c); /* a call that nobody ends would be a leak */
    handle_tasks_cancel(call_of(s, &s->ann, json_pack("{s:s}", "taskId", id)));
    assert_int_equal(get(s, &s->ann, id), 0);
    assert_string_equal(told_text("status"), "cancelled");
    handle_tasks_cancel(call_of(s, &s->ann, json_pack("{s:s}", "taskId", id)));
    assert_non_null(json_object_get(told, "result"));
}

static void test_who_cannot_have_one_has_none(void **state)
{
    struct scene *s = *state;
    struct call *c;

    json_object_del(s->client.capabilities, "extensions");
    c = call_of(s, &s->ann, json_object());
    assert_false(call_to_task(c, "begun"));
    call_drop(c);
    assert_int_equal(get(s, &s->ann, "task_nothing"), RPC_CAPABILITY);
    s->client.version = version_newest(ERA_LEGACY);
    c = call_of(s, &s->ann, json_object());
    assert_false(call_to_task(c, "begun"));
    call_drop(c);
}

/* Finished ones make room; those under way do not, and another tenant still has room. */
static void test_one_tenant_has_so_many(void **state)
{
    struct scene *s = *state;
    struct caller bob = s->ann;
    char first[ID_MAX], id[ID_MAX];
    struct call *calls[256], *c;

    strcpy(bob.tenant, "bob");
    call_drop(begin(s, &s->ann, first));
    for (size_t i = 0; i < COUNT(calls); i++)
        calls[i] = begin(s, &s->ann, id);
    assert_int_equal(get(s, &s->ann, first), RPC_PARAMS);
    c = call_of(s, &s->ann, json_object());
    assert_false(call_to_task(c, "one too many"));
    call_drop(c);
    call_drop(begin(s, &bob, id));
    for (size_t i = 0; i < COUNT(calls); i++)
        call_drop(calls[i]);
    call_drop(begin(s, &s->ann, id));
}

static void test_results_are_kept_within_bounds(void **state)
{
    struct scene *s = *state;
    AUTO_FREE char *text = mem_zalloc(20 * MiB + 1);
    char first[ID_MAX], second[ID_MAX];

    memset(text, 'x', 20 * MiB);
    call_result(begin(s, &s->ann, first), json_pack("{s:s}", "text", text));
    assert_int_equal(get(s, &s->ann, first), 0);
    call_result(begin(s, &s->ann, second), json_pack("{s:s}", "text", text));
    assert_int_equal(get(s, &s->ann, second), 0);
    assert_int_equal(get(s, &s->ann, first), RPC_PARAMS);
}

int main(void)
{
#define WITH(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH(test_the_result_goes_into_the_task), WITH(test_an_error_makes_it_fail),
        WITH(test_what_is_dropped_fails),         WITH(test_another_key_has_none),
        WITH(test_cancel_tells_the_work),         WITH(test_who_cannot_have_one_has_none),
        WITH(test_one_tenant_has_so_many),        WITH(test_results_are_kept_within_bounds),
    };
    return RUN(tests);
}
