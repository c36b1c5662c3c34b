/* Keys in the database. */
#include "shop.h"

static void put_key(struct shop *s, const char *id, const char *tenant, int64_t created_ms)
{
    char secret[KEY_SECRET_MAX];
    struct key_row r;

    key_make(&r, secret, tenant, "for a test", false);
    snprintf(r.id, sizeof(r.id), "%s", id);
    r.created_ms = created_ms;
    assert_ok(s, db_key_put(s->db, &r, &s->e));
    key_row_done(&r);
}

static struct key_row *list_keys(struct shop *s, size_t expected)
{
    struct key_row *rows;
    size_t count;

    assert_ok(s, db_key_list(s->db, &rows, &count, &s->e));
    assert_int_equal(count, expected);
    return rows;
}

static void test_what_is_put_is_listed(void **state)
{
    struct shop *s = *state;
    char secret[KEY_SECRET_MAX];
    struct key_row r, *rows;

    key_make(&r, secret, "acme", "it's \"ci\"", true);
    r.pools = mem_strdup("a,b");
    r.doors = mem_strdup("azure/mcp");
    r.read_only = true;
    r.expires_ms = 77;
    assert_ok(s, db_key_put(s->db, &r, &s->e));
    shop_reopen(s);
    rows = list_keys(s, 1);
    assert_string_equal(rows[0].id, r.id);
    assert_string_equal(rows[0].tenant, "acme");
    assert_string_equal(rows[0].name, "it's \"ci\"");
    assert_string_equal(rows[0].hint, r.hint);
    assert_memory_equal(rows[0].hash, r.hash, sizeof(r.hash));
    assert_true(rows[0].admin);
    assert_string_equal(rows[0].pools, "a,b");
    assert_string_equal(rows[0].doors, "azure/mcp");
    assert_true(rows[0].read_only);
    assert_int_equal(rows[0].expires_ms, 77);
    assert_int_equal(rows[0].created_ms, r.created_ms);
    assert_int_equal(rows[0].used_ms, 0);
    assert_int_equal(rows[0].revoked_ms, 0);
    rows_free(&key_type, rows, 1);
    assert_refused(s, db_key_put(s->db, &r, &s->e), ERR_CONFLICT);
    key_row_done(&r);
}

static void test_a_key_without_limits(void **state)
{
    struct shop *s = *state;
    struct key_row *rows;

    put_key(s, "key_1", "acme", 1);
    rows = list_keys(s, 1);
    assert_null(rows[0].pools);
    assert_null(rows[0].doors);
    assert_false(rows[0].read_only);
    assert_int_equal(rows[0].expires_ms, 0);
    rows_free(&key_type, rows, 1);
}

static void test_the_secret_is_nowhere(void **state)
{
    struct shop *s = *state;
    static char bytes[4 * MiB];
    char secret[KEY_SECRET_MAX];
    struct key_row r;
    ssize_t n;

    key_make(&r, secret, "acme", "ci", false);
    assert_ok(s, db_key_put(s->db, &r, &s->e));
    n = engine_url()
            ? engine_text("SELECT string_agg(k::text, '') FROM keys k", bytes, sizeof(bytes))
            : fd_read_file_at(s->dir.fd, "retort.db-wal", bytes, sizeof(bytes));
    assert_true(n > 0);
    assert_non_null(memmem(bytes, (size_t)n, r.id, strlen(r.id)));
    assert_null(memmem(bytes, (size_t)n, secret, strlen(secret)));
    key_row_done(&r);
}

static void test_oldest_first(void **state)
{
    struct shop *s = *state;
    struct key_row *rows;

    put_key(s, "key_b", "t", 20);
    put_key(s, "key_c", "t", 10);
    put_key(s, "key_a", "u", 20);
    rows = list_keys(s, 3);
    assert_string_equal(rows[0].id, "key_c");
    assert_string_equal(rows[1].id, "key_a");
    assert_string_equal(rows[2].id, "key_b");
    rows_free(&key_type, rows, 3);
}

static void test_used_and_revoked(void **state)
{
    struct shop *s = *state;
    struct key_row *rows;

    put_key(s, "key_a", "t", 1);
    put_key(s, "key_b", "t", 2);
    assert_int_equal(db_key_used(s->db, "key_a", 7, &s->e), 1);
    assert_int_equal(db_key_revoke(s->db, "key_a", 8, &s->e), 1);
    assert_int_equal(db_key_revoke(s->db, "key_a", 9, &s->e), 1);
    assert_int_equal(db_key_revoke(s->db, "key_x", 9, &s->e), 0);
    assert_int_equal(db_key_used(s->db, "key_x", 9, &s->e), 0);
    rows = list_keys(s, 2);
    assert_int_equal(rows[0].used_ms, 7);
    assert_int_equal(rows[0].revoked_ms, 8);
    assert_int_equal(rows[1].used_ms, 0);
    assert_int_equal(rows[1].revoked_ms, 0);
    rows_free(&key_type, rows, 2);
}

static void test_none(void **state)
{
    struct shop *s = *state;

    rows_free(&key_type, list_keys(s, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_what_is_put_is_listed), IN_SHOP(test_a_key_without_limits),
        IN_SHOP(test_the_secret_is_nowhere), IN_SHOP(test_oldest_first),
        IN_SHOP(test_used_and_revoked),      IN_SHOP(test_none),
    };

    return RUN(tests);
}
