#include "doors/mcp/transport.h"

#include "unit.h"

#include <stdio.h>

struct scene {
    struct loop *loop;
    struct mcp *mcp;
};

static int begin(void **state)
{
    static struct scene s;
    struct mcp_config config = {.loop = s.loop = loop_new(&(struct err){0})};

    s.mcp = mcp_new(&config);
    *state = &s;
    return 0;
}

static int finish(void **state)
{
    struct scene *s = *state;

    mcp_free(s->mcp);
    loop_free(s->loop);
    return 0;
}

static struct caller who(const char *tenant, const char *key)
{
    struct caller c = {.door = "mcp"};

    snprintf(c.tenant, sizeof(c.tenant), "%s", tenant);
    snprintf(c.key, sizeof(c.key), "%s", key);
    return c;
}

/* http: it is one over HTTP. */
static struct conversation *make(struct scene *s, const char *tenant, bool http)
{
    struct caller owner = who(tenant, "key_1");
    struct conversation *v = conversation_new(s->mcp, &owner);

    if (v && http)
        v->streams = streams_new(v);
    return v;
}

static bool is_there(struct scene *s, const char *id, const char *tenant, const char *key)
{
    struct caller c = who(tenant, key);

    return conversation_find(s->mcp, str_of(id), &c) != NULL;
}

static void test_found_by_its_owner(void **state)
{
    struct scene *s = *state;
    char id[ID_MAX];

    assert_false(is_there(s, "mcp_x", "a", "key_1"));
    snprintf(id, sizeof(id), "%s", make(s, "a", true)->id);
    make(s, "b", true);
    assert_true(is_there(s, id, "a", "key_1"));
    assert_false(is_there(s, id, "b", "key_1"));
    assert_false(is_there(s, id, "a", "key_2"));
    assert_false(is_there(s, id, "a", ""));
    assert_false(is_there(s, "", "a", "key_1"));
    conversation_free(s->mcp->conversations); /* the last that was found */
    assert_false(is_there(s, id, "a", "key_1"));
    assert_int_equal(s->mcp->conversation_count, 1);
}

static void age(struct conversation *v)
{
    v->used_us -= (int64_t)(IDLE_MS + 1) * 1000;
}

static void test_idle_ones_end(void **state)
{
    struct scene *s = *state;
    struct conversation *old = make(s, "a", true), *stays = make(s, "a", false);
    struct conversation *used = make(s, "a", true);
    char id[ID_MAX];

    snprintf(id, sizeof(id), "%s", old->id);
    age(old);
    age(stays);
    conversations_sweep(s->mcp);
    assert_false(is_there(s, id, "a", "key_1"));
    assert_true(is_there(s, stays->id, "a", "key_1"));
    assert_true(is_there(s, used->id, "a", "key_1"));
    assert_int_equal(s->mcp->conversation_count, 2);
    conversations_sweep(s->mcp);
    assert_int_equal(s->mcp->conversation_count, 2);
}

static void test_all_of_a_tenant_may_end(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 3; i++) {
        age(make(s, "a", true));
        age(make(s, "b", true));
    }
    conversations_sweep(s->mcp);
    assert_int_equal(s->mcp->conversation_count, 0);
    assert_non_null(make(s, "a", true));
}

static void test_the_longest_unused_makes_room(void **state)
{
    struct scene *s = *state;
    char first[ID_MAX], second[ID_MAX];

    make(s, "b", true);
    snprintf(first, sizeof(first), "%s", make(s, "a", true)->id);
    snprintf(second, sizeof(second), "%s", make(s, "a", true)->id);
    for (int i = 2; i < TENANT_CONVERSATIONS; i++)
        assert_non_null(make(s, "a", true));
    assert_true(is_there(s, first, "a", "key_1")); /* now the second is the oldest */
    assert_non_null(make(s, "a", true));
    assert_true(is_there(s, first, "a", "key_1"));
    assert_false(is_there(s, second, "a", "key_1"));
    assert_int_equal(s->mcp->conversation_count, TENANT_CONVERSATIONS + 1);
}

static void test_no_tenant_makes_room_for_another(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < TENANT_CONVERSATIONS; i++) {
        make(s, "a", true);
        make(s, "b", true);
    }
    assert_int_equal(s->mcp->conversation_count, CONVERSATION_MAX);
    assert_null(make(s, "c", true));
    assert_non_null(make(s, "a", true));
    assert_int_equal(s->mcp->conversation_count, CONVERSATION_MAX);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_found_by_its_owner),
        TEST(test_idle_ones_end),
        TEST(test_all_of_a_tenant_may_end),
        TEST(test_the_longest_unused_makes_room),
        TEST(test_no_tenant_makes_room_for_another),
    };

    return RUN(tests);
}
