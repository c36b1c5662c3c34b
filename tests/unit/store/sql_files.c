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

static const char *page_at(struct shop *s, const char *tenant, int64_t now_ms, struct page page)
{
    static char ids[1024];
    struct file_row *rows;
    size_t count;

    assert_ok(s, db_file_list(s->db, tenant, now_ms, page, &rows, &count, &s->e));
    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id);
    rows_free(&file_type, rows, count);
    return ids;
}

static const char *page_of(struct shop *s, const char *tenant, struct page page)
{
    return page_at(s, tenant, 1, page);
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

/* What is newer comes newest first, too, and it is what stands next to the one named. */
static void test_pages_back(void **state)
{
    struct shop *s = *state;
    struct page page = {.after = "file_a", .limit = 2, .newer = true};

    put_file(s, "file_a", "t", 10, 0);
    put_file(s, "file_b", "t", 10, 0);
    put_file(s, "file_c", "t", 11, 0);
    put_file(s, "file_d", "t", 12, 0);
    assert_string_equal(page_of(s, "t", page), "file_c file_b ");
    page.after = "file_c";
    assert_string_equal(page_of(s, "t", page), "file_d ");
    page.after = "file_d";
    assert_string_equal(page_of(s, "t", page), "");
}

/* A page goes on where a file was that has been deleted meanwhile, if its time is known. */
static void test_pages_after_what_is_gone(void **state)
{
    struct shop *s = *state;
    struct page page = {.after = "file_b", .limit = 9};

    put_file(s, "file_a", "t", 10, 0);
    put_file(s, "file_c", "t", 11, 0);
    assert_refused(s,
                   db_file_list(s->db, "t", 1, page, &(struct file_row *){0}, &(size_t){0}, &s->e),
                   ERR_CALLER);
    page.after_ms = 10;
    assert_string_equal(page_of(s, "t", page), "file_a ");
    page.newer = true;
    assert_string_equal(page_of(s, "t", page), "file_c ");
}

static void assert_hash(struct shop *s, const char *id, const char *hash)
{
    struct file_row r;

    assert_int_equal(db_file_get(s->db, "t", id, &r, &s->e), 1);
    assert_string_equal(r.hash, hash);
    file_row_done(&r);
}

static void test_expired_ones_are_not_listed(void **state)
{
    struct shop *s = *state;

    put_file(s, "file_a", "t", 1, 0); /* never */
    put_file(s, "file_b", "t", 2, 20);
    put_file(s, "file_c", "t", 3, 30);
    assert_string_equal(page_at(s, "t", 19, (struct page){.limit = 9}), "file_c file_b file_a ");
    assert_string_equal(page_at(s, "t", 20, (struct page){.limit = 9}), "file_c file_a ");
    assert_string_equal(page_at(s, "t", 99, (struct page){.limit = 9}), "file_a ");
}

static void test_expire(void **state)
{
    struct shop *s = *state;
    struct file_row r;

    put_file(s, "file_a", "t", 1, 0); /* never */
    put_file(s, "file_b", "t", 2, 20);
    put_file(s, "file_c", "t", 3, 10);
    put_file(s, "file_d", "t", 4, 30);
    assert_int_equal(db_file_expire(s->db, 30, 0, 1, &s->e), 1); /* the oldest */
    assert_hash(s, "file_c", "");
    assert_hash(s, "file_b", HASH_A);
    assert_int_equal(db_file_expire(s->db, 30, 0, 9, &s->e), 1);
    assert_hash(s, "file_b", "");
    assert_int_equal(db_file_expire(s->db, 30, 0, 9, &s->e), 0);
    assert_hash(s, "file_d", HASH_A);
    assert_hash(s, "file_a", HASH_A);
    assert_int_equal(db_file_expire(s->db, 30, 20, 9, &s->e), 1); /* it was known long enough */
    assert_int_equal(db_file_get(s->db, "t", "file_c", &r, &s->e), 0);
    assert_hash(s, "file_b", "");
}

static void test_bytes(void **state)
{
    struct shop *s = *state;
    uint64_t sum = 1;

    assert_ok(s, db_file_bytes(s->db, "t", 5, &sum, &s->e));
    assert_int_equal(sum, 0);
    put_file(s, "file_a", "t", 1, 0);
    put_file(s, "file_b", "t", 1, 6);
    put_file(s, "file_c", "t", 1, 5);
    put_file(s, "file_d", "u", 1, 0);
    assert_ok(s, db_file_bytes(s->db, "t", 5, &sum, &s->e));
    assert_int_equal(sum, 4 * GiB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_all_of_it_comes_back),
        IN_SHOP(test_tenants_are_apart),
        IN_SHOP(test_pages),
        IN_SHOP(test_pages_back),
        IN_SHOP(test_pages_after_what_is_gone),
        IN_SHOP(test_expired_ones_are_not_listed),
        IN_SHOP(test_expire),
        IN_SHOP(test_bytes),
    };

    return RUN(tests);
}
