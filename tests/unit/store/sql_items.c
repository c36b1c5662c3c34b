/* What doors keep of their own, in the database. */
#include "shop.h"

static void put(struct shop *s, const char *tenant, const char *id, const char *owner,
                int64_t created_ms, int64_t expires_ms)
{
    char body[] = "{}", kind[] = "note", parent[] = "p";
    struct item_row r = {.id = (char *)(uintptr_t)id,
                         .tenant = (char *)(uintptr_t)tenant,
                         .kind = kind,
                         .owner = (char *)(uintptr_t)owner,
                         .parent = parent,
                         .hash = HASH_A,
                         .created_ms = created_ms,
                         .expires_ms = expires_ms,
                         .body = body};

    assert_ok(s, db_item_put(s->db, &r, &s->e));
}

static const char *seen(struct shop *s, enum item_view view, const char *owner, size_t skip,
                        size_t limit, uint64_t *ret_total)
{
    static char ids[256];
    struct progress progress = {0};
    const struct item_filter f = {
        .tenant = "acme",
        .kind = "note",
        .view = view,
        .owner = owner,
        .page = {.skip = skip, .limit = limit, .progress = &progress},
        .count = true
    };
    struct item_row *rows = NULL;
    size_t count = 0;

    assert_ok(s, db_item_list(s->db, &f, &rows, &count, &s->e));
    *ret_total = progress.seen;
    progress_done(&progress);
    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id);
    rows_free(&item_type, rows, count);
    return ids;
}

static void fill(struct shop *s)
{
    put(s, "acme", "a", "ann", 1, 0);
    put(s, "acme", "b", "bob", 2, 0);
    put(s, "acme", "c", "", 3, 5);
    put(s, "other", "d", "ann", 4, 0);
}

static void test_each_sees_what_is_theirs(void **state)
{
    struct shop *s = *state;
    uint64_t total;

    fill(s);
    assert_string_equal(seen(s, ITEMS_ALL, "", 0, 10, &total), "c b a ");
    assert_int_equal(total, 3);
    assert_string_equal(seen(s, ITEMS_OWN, "ann", 0, 10, &total), "a ");
    assert_int_equal(total, 1);
    assert_string_equal(seen(s, ITEMS_OWN_AND_COMMON, "ann", 0, 10, &total), "c a ");
    assert_int_equal(total, 2);
    assert_string_equal(seen(s, ITEMS_OWN, "", 0, 10, &total), "c ");
    assert_string_equal(seen(s, ITEMS_ALL, "", 1, 1, &total), "b ");
    assert_int_equal(total, 3);
}

static void test_pages_go_on_after_a_row(void **state)
{
    struct shop *s = *state;
    struct item_filter f = {
        .tenant = "acme", .kind = "note", .page = {.after = "c", .after_ms = 3, .limit = 1}
    };
    struct item_row *rows;
    size_t count;
    uint64_t total;

    fill(s);
    put(s, "acme", "e", "ann", 9, 0); /* comes while somebody reads: nobody sees a row twice */
    assert_ok(s, db_item_list(s->db, &f, &rows, &count, &s->e));
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].id, "b");
    rows_free(&item_type, rows, count);
    assert_ok(s, db_item_count(s->db, "acme", "note", &total, &s->e));
    assert_int_equal(total, 4);
}

static void test_only_of_its_tenant(void **state)
{
    struct shop *s = *state;
    struct item_row r;

    fill(s);
    assert_int_equal(db_item_get(s->db, "acme", "note", "d", &r, &s->e), 0);
    assert_int_equal(db_item_get(s->db, "other", "note", "d", &r, &s->e), 1);
    assert_string_equal(r.owner, "ann");
    item_row_done(&r);
    assert_int_equal(db_item_delete(s->db, "acme", "note", "d", &s->e), 0);
    assert_int_equal(db_item_delete(s->db, "other", "note", "d", &s->e), 1);
}

static void test_everybodys(void **state)
{
    struct shop *s = *state;
    struct item_row *rows;
    size_t count;

    fill(s);
    assert_ok(s, db_item_everybodys(s->db, NULL, "note", "p", 10, &rows, &count, &s->e));
    assert_int_equal(count, 4);
    assert_string_equal(rows[0].id, "a");
    assert_string_equal(rows[3].tenant, "other");
    rows_free(&item_type, rows, count);
    assert_ok(s, db_item_everybodys(s->db, NULL, "note", "q", 10, &rows, &count, &s->e));
    assert_int_equal(count, 0);
    rows_free(&item_type, rows, count);
}

static void test_an_owner_stays(void **state)
{
    struct shop *s = *state;
    struct item_row r;

    fill(s);
    put(s, "acme", "a", "bob", 9, 0);
    assert_int_equal(db_item_get(s->db, "acme", "note", "a", &r, &s->e), 1);
    assert_string_equal(r.owner, "ann");
    assert_int_equal(r.created_ms, 1);
    item_row_done(&r);
}

static void test_its_bytes_are_kept_until_it_ends(void **state)
{
    struct shop *s = *state;
    uint64_t total;

    put(s, "acme", "c", "", 3, 5);
    assert_int_equal(db_blob_named(s->db, HASH_A, &s->e), 1);
    assert_int_equal(db_item_expire(s->db, 5, 10, &s->e), 0);
    assert_int_equal(db_item_expire(s->db, 6, 10, &s->e), 1);
    assert_string_equal(seen(s, ITEMS_ALL, "", 0, 10, &total), "");
    assert_int_equal(db_blob_named(s->db, HASH_A, &s->e), 0);
}

static uint64_t held(struct shop *s, const char *tenant)
{
    uint64_t bytes = 1;

    assert_ok(s, db_item_bytes(s->db, tenant, &bytes, &s->e));
    return bytes;
}

static void test_what_a_tenant_holds(void **state)
{
    struct shop *s = *state;
    char id[] = "z", kind[] = "note", tenant[] = "acme", none[] = "", body[] = "{\"a\":1}";
    struct item_row r = {
        .id = id, .tenant = tenant, .kind = kind, .owner = none, .parent = none, .body = body};

    assert_int_equal(held(s, "acme"), 0);
    assert_ok(s, db_item_put(s->db, &r, &s->e));
    assert_int_equal(held(s, "acme"), strlen(body));
    snprintf(r.hash, sizeof(r.hash), "%s", HASH_A);
    r.size = 100;
    r.expires_ms = 5;
    assert_ok(s, db_item_put(s->db, &r, &s->e));
    assert_int_equal(held(s, "acme"), 100);
    assert_int_equal(held(s, "other"), 0);
    id[0] = 'y';
    r.expires_ms = 0;
    assert_ok(s, db_item_put(s->db, &r, &s->e));
    assert_int_equal(held(s, "acme"), 200);
    assert_int_equal(db_item_expire(s->db, 6, 10, &s->e), 1);
    assert_int_equal(held(s, "acme"), 100);
    assert_int_equal(db_item_delete(s->db, "acme", "note", "y", &s->e), 1);
    assert_int_equal(held(s, "acme"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_each_sees_what_is_theirs), IN_SHOP(test_pages_go_on_after_a_row),
        IN_SHOP(test_only_of_its_tenant),       IN_SHOP(test_everybodys),
        IN_SHOP(test_an_owner_stays),           IN_SHOP(test_its_bytes_are_kept_until_it_ends),
        IN_SHOP(test_what_a_tenant_holds),
    };

    return RUN(tests);
}
