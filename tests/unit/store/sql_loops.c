/* Loops of an agent in the database. */
#include "shop.h"

static void put(struct shop *s, const char *id, const char *tenant, const char *owner,
                int64_t created_ms, int64_t ended_ms)
{
    struct loop_row r = {
        .tenant = mem_strdup(tenant),
        .owner = mem_strdup(owner),
        .status = mem_strdup(ended_ms ? "completed" : "running"),
        .created_ms = created_ms,
        .ended_ms = ended_ms,
        .record = mem_strdup("{\"a\":1}"),
        .events = mem_strdup("[1]"),
    };

    snprintf(r.id, sizeof(r.id), "%s", id);
    assert_ok(s, db_loop_put(s->db, &r, &s->e));
    loop_row_done(&r);
}

static const char *ids_of(struct loop_row *rows, size_t count)
{
    static char ids[1024];

    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id);
    rows_free(&loop_type, rows, count);
    return ids;
}

static void test_it_changes_and_comes_back(void **state)
{
    struct shop *s = *state;
    struct loop_row got = {0};

    put(s, "toolu_a", "acme", "ann", 1, 0);
    put(s, "toolu_a", "other", "bob", 9, 7);
    shop_reopen(s);
    assert_int_equal(db_loop_get(s->db, "acme", "toolu_a", &got, &s->e), 1);
    assert_string_equal(got.tenant, "acme"); /* whose it is stays as it was */
    assert_string_equal(got.owner, "ann");
    assert_string_equal(got.status, "completed");
    assert_int_equal(got.created_ms, 1);
    assert_int_equal(got.ended_ms, 7);
    assert_string_equal(got.record, "{\"a\":1}");
    assert_string_equal(got.events, "[1]");
    loop_row_done(&got);
    assert_int_equal(db_loop_get(s->db, "other", "toolu_a", &got, &s->e), 0);
}

static void test_what_goes_on_and_what_is_old(void **state)
{
    struct shop *s = *state;
    struct loop_row got = {0};
    struct loop_row *rows;
    size_t count;

    put(s, "toolu_a", "acme", "", 1, 5);
    put(s, "toolu_b", "acme", "", 2, 0);
    put(s, "toolu_c", "other", "", 3, 0);
    put(s, "toolu_d", "other", "", 4, 50);
    assert_ok(s, db_loop_unfinished(s->db, NULL, 10, &rows, &count, &s->e));
    assert_string_equal(ids_of(rows, count), "toolu_b toolu_c ");
    assert_int_equal(db_loop_forget(s->db, 10, 100, &s->e), 1);
    assert_int_equal(db_loop_get(s->db, "acme", "toolu_a", &got, &s->e), 0);
    assert_int_equal(db_loop_get(s->db, "other", "toolu_d", &got, &s->e), 1);
    loop_row_done(&got);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_changes_and_comes_back, shop_open, shop_close),
        cmocka_unit_test_setup_teardown(test_what_goes_on_and_what_is_old, shop_open, shop_close),
    };

    return RUN(tests);
}
