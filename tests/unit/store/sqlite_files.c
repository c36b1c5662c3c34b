/* Uploaded files in the database. */
#include "shop.h"

static struct file_row file_of(const char *id, const char *tenant, int64_t created_ms)
{
    struct file_row r = {
        .tenant = mem_strdup(tenant),
        .name = mem_strdup("a.csv"),
        .mime = mem_strdup("text/csv"),
        .hash = HASH_A,
        .size = 2 * GiB,
        .created_ms = created_ms,
        .downloadable = true,
    };

    snprintf(r.id, sizeof(r.id), "%s", id);
    return r;
}

static void put_file(struct shop *s, const char *id, const char *tenant, int64_t created_ms,
                     int64_t expires_ms)
{
    struct file_row r = file_of(id, tenant, created_ms);

    r.expires_ms = expires_ms;
    assert_ok(s, db_file_put(s->db, &r, &s->e));
    file_row_done(&r);
}

static const char *page_of(struct shop *s, const char *tenant, struct page page)
{
    static char ids[1024];
    struct file_row *rows;
    size_t count;

    assert_ok(s, db_file_list(s->db, tenant, page, &rows, &count, &s->e));
    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id);
    rows_free(&file_type, rows, count);
    return ids;
}

static void test_all_of_it_comes_back(void **state)
{
    struct shop *s = *state;
    struct file_row r = file_of("file_a", "acme", 1), got;

    r.expires_ms = 5;
    assert_ok(s, db_file_put(s->db, &r, &s->e));
    shop_reopen(s);
    assert_int_equal(db_file_get(s->db, "acme", "file_a", &got, &s->e), 1);
    assert_string_equal(got.id, "file_a");
    assert_string_equal(got.tenant, "acme");
    assert_string_equal(got.name, "a.csv");
    assert_string_equal(got.mime, "text/csv");
    assert_string_equal(got.hash, HASH_A);
    assert_int_equal(got.size, 2 * GiB);
    assert_int_equal(got.created_ms, 1);
    assert_int_equal(got.expires_ms, 5);
    assert_true(got.downloadable);
    file_row_done(&got);
    assert_refused(s, db_file_put(s->db, &r, &s->e), ERR_CONFLICT);
    file_row_done(&r);
}

static void test_tenants_are_apart(void **state)
{
    struct shop *s = *state;
    struct file_row r;

    put_file(s, "file_a", "acme", 1, 0);
    assert_int_equal(db_file_get(s->db, "evil", "file_a", &r, &s->e), 0);
    assert_int_equal(db_file_delete(s->db, "evil", "file_a", &s->e), 0);
    assert_string_equal(page_of(s, "evil", (struct page){.limit = 9}), "");
    assert_string_equal(page_of(s, "acme", (struct page){.limit = 9}), "file_a ");
    assert_int_equal(db_file_delete(s->db, "acme", "file_a", &s->e), 1);
    assert_int_equal(db_file_get(s->db, "acme", "file_a", &r, &s->e), 0);
}

static void test_pages(void **state)
{
    struct shop *s = *state;

    put_file(s, "file_a", "t", 10, 0);
    put_file(s, "file_c", "t", 10, 0);
    put_file(s, "file_b", "t", 10, 0);
    put_file(s, "file_x", "u", 10, 0);
    assert_string_equal(page_of(s, "t", (struct page){.limit = 2}), "file_c file_b ");
    assert_string_equal(page_of(s, "t", (struct page){.after = "file_b", .limit = 2}), "file_a ");
}

static void test_expire(void **state)
{
    struct shop *s = *state;

    put_file(s, "file_a", "t", 1, 0); /* never */
    put_file(s, "file_b", "t", 2, 20);
    put_file(s, "file_c", "u", 3, 10);
    put_file(s, "file_d", "t", 4, 30);
    assert_int_equal(db_file_expire(s->db, 30, 1, &s->e), 1);
    assert_string_equal(page_of(s, "u", (struct page){.limit = 9}), ""); /* the oldest */
    assert_int_equal(db_file_expire(s->db, 30, 9, &s->e), 1);
    assert_int_equal(db_file_expire(s->db, 30, 9, &s->e), 0);
    assert_string_equal(page_of(s, "t", (struct page){.limit = 9}), "file_d file_a ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_all_of_it_comes_back),
        IN_SHOP(test_tenants_are_apart),
        IN_SHOP(test_pages),
        IN_SHOP(test_expire),
    };

    return RUN(tests);
}
