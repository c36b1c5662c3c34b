/* Sessions and the files of their workspaces in the database. */
#include "shop.h"

static struct session_row session_of(const char *id, const char *tenant, int64_t created_ms)
{
    struct session_row r = {
        .tenant = mem_strdup(tenant),
        .pool = mem_strdup("default"),
        .created_ms = created_ms,
        .expires_ms = created_ms + 1000,
    };

    snprintf(r.id, sizeof(r.id), "%s", id);
    return r;
}

static void put_session(struct shop *s, const char *id, const char *tenant, const char *name,
                        int64_t created_ms)
{
    struct session_row r = session_of(id, tenant, created_ms);

    r.name = name ? mem_strdup(name) : NULL;
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    session_row_done(&r);
}

static bool has_session(struct shop *s, const char *tenant, const char *id)
{
    struct session_row r = {0};
    int rc = db_session_get(s->db, tenant, id, &r, &s->e);

    assert_ok(s, rc);
    session_row_done(&r);
    return rc == 1;
}

/* The ids of a page, joined. */
static const char *page_of(struct shop *s, const char *tenant, struct page page)
{
    static char ids[1024];
    struct session_row *rows;
    size_t count;

    assert_ok(s, db_session_list(s->db, tenant, page, &rows, &count, &s->e));
    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id);
    rows_free(&session_type, rows, count);
    return ids;
}

static void test_all_of_it_comes_back(void **state)
{
    struct shop *s = *state;
    struct session_row got, r = session_of("sess_a", "acme", 1);

    r.name = mem_strdup("näme");
    r.metadata = mem_strdup("{\"a\":1}");
    r.env = mem_strdup("{\"TOKEN\":\"x\"}");
    r.state = 3;
    r.used_ms = 2;
    r.idle_ms = 3;
    r.lifetime_ms = 4;
    r.expires_ms = INT64_MAX;
    r.executions = 5;
    r.lost = true;
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    shop_reopen(s);
    assert_int_equal(db_session_get(s->db, "acme", "sess_a", &got, &s->e), 1);
    assert_string_equal(got.id, "sess_a");
    assert_string_equal(got.tenant, "acme");
    assert_string_equal(got.pool, "default");
    assert_string_equal(got.name, "näme");
    assert_string_equal(got.metadata, r.metadata);
    assert_string_equal(got.env, r.env);
    assert_int_equal(got.state, 3);
    assert_int_equal(got.created_ms, 1);
    assert_int_equal(got.used_ms, 2);
    assert_int_equal(got.idle_ms, 3);
    assert_int_equal(got.lifetime_ms, 4);
    assert_int_equal(got.expires_ms, INT64_MAX);
    assert_int_equal(got.executions, 5);
    assert_true(got.lost);
    session_row_done(&got);
    session_row_done(&r);
}

static void test_put_again(void **state)
{
    struct shop *s = *state;
    struct space_row file = {.path = mem_strdup("a.csv"), .hash = HASH_A};
    struct session_row got, r = session_of("sess_a", "acme", 1);

    assert_ok(s, db_session_put(s->db, &r, &s->e));
    assert_ok(s, db_space_put(s->db, "sess_a", &file, &s->e));
    r.executions = 9;
    r.name = mem_strdup("late");
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    assert_int_equal(db_session_get(s->db, "acme", "sess_a", &got, &s->e), 1);
    assert_int_equal(got.executions, 9);
    assert_string_equal(got.name, "late");
    assert_null(got.env);
    session_row_done(&got);
    space_row_done(&file);
    /* Its files are there still. */
    assert_int_equal(db_space_get(s->db, "sess_a", STR("a.csv"), &file, &s->e), 1);
    space_row_done(&file);
    session_row_done(&r);
}

static void test_tenants_are_apart(void **state)
{
    struct shop *s = *state;
    struct session_row r = session_of("sess_a", "evil", 1);

    put_session(s, "sess_a", "acme", "x", 1);
    assert_false(has_session(s, "evil", "sess_a"));
    assert_int_equal(db_session_named(s->db, "evil", "default", "x", &r, &s->e), 0);
    assert_string_equal(page_of(s, "evil", (struct page){.limit = 10}), "");
    assert_int_equal(db_session_delete(s->db, "evil", "sess_a", &s->e), 0);
    assert_refused(s, db_session_put(s->db, &r, &s->e), ERR_CONFLICT);
    assert_true(has_session(s, "acme", "sess_a"));
    session_row_done(&r);
}

static void test_names(void **state)
{
    struct shop *s = *state;
    struct session_row r = session_of("sess_c", "acme", 1);

    put_session(s, "sess_a", "acme", "x", 1);
    put_session(s, "sess_b", "other", "x", 1);
    put_session(s, "sess_1", "acme", NULL, 1);
    put_session(s, "sess_2", "acme", NULL, 1);
    r.name = mem_strdup("x");
    assert_refused(s, db_session_put(s->db, &r, &s->e), ERR_CONFLICT);
    free(r.pool);
    r.pool = mem_strdup("science");
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    session_row_done(&r);
    assert_int_equal(db_session_named(s->db, "acme", "default", "x", &r, &s->e), 1);
    assert_string_equal(r.id, "sess_a");
    session_row_done(&r);
    assert_int_equal(db_session_named(s->db, "acme", "science", "x", &r, &s->e), 1);
    assert_string_equal(r.id, "sess_c");
    session_row_done(&r);
    assert_int_equal(db_session_named(s->db, "acme", "science", "y", &r, &s->e), 0);
}

static void test_pages(void **state)
{
    struct shop *s = *state;

    put_session(s, "sess_a", "t", NULL, 10);
    put_session(s, "sess_b", "t", NULL, 20);
    put_session(s, "sess_c", "t", NULL, 20); /* at the same time */
    put_session(s, "sess_d", "t", NULL, 30);
    put_session(s, "sess_x", "u", NULL, 25);
    assert_string_equal(page_of(s, "t", (struct page){.limit = 10}),
                        "sess_d sess_c sess_b sess_a ");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 2}), "sess_d sess_c ");
    /* One that comes meanwhile moves nothing. */
    put_session(s, "sess_e", "t", NULL, 40);
    assert_string_equal(page_of(s, "t", (struct page){.after = "sess_c", .limit = 2}),
                        "sess_b sess_a ");
    assert_string_equal(page_of(s, "t", (struct page){.after = "sess_a", .limit = 2}), "");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 0}), "");
}

static void test_after_one_that_is_not_there(void **state)
{
    struct shop *s = *state;
    struct session_row *rows = NULL;
    size_t count;

    put_session(s, "sess_a", "t", NULL, 10);
    put_session(s, "sess_x", "u", NULL, 20);
    assert_refused(s,
                   db_session_list(s->db, "t", (struct page){.after = "sess_z", .limit = 1}, &rows,
                                   &count, &s->e),
                   ERR_CALLER);
    assert_null(rows);
    assert_refused(s,
                   db_session_list(s->db, "t", (struct page){.after = "sess_x", .limit = 1}, &rows,
                                   &count, &s->e),
                   ERR_CALLER);
    /* When its time is known it need not be. */
    assert_string_equal(
        page_of(s, "t", (struct page){.after = "sess_z", .limit = 1, .after_ms = 11}), "sess_a ");
}

static void test_lists_of_a_pool_or_a_prefix(void **state)
{
    struct shop *s = *state;
    struct session_row r = session_of("sess_d", "t", 4);

    put_session(s, "sess_a", "t", NULL, 1);
    put_session(s, "sess_b", "t", "box_1", 2);
    put_session(s, "sess_c", "t", "b%x", 3);
    r.name = mem_strdup("box_2");
    free(r.pool);
    r.pool = mem_strdup("other");
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    assert_string_equal(page_of(s, "t", (struct page){.limit = 9, .pool = "other"}), "sess_d ");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 9, .pools = "x,other"}), "sess_d ");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 9, .pools = "the"}), "");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 9, .name_prefix = ""}),
                        "sess_d sess_c sess_b ");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 9, .name_prefix = "box_"}),
                        "sess_d sess_b ");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 1, .name_prefix = "box_"}),
                        "sess_d ");
    assert_string_equal(
        page_of(
            s, "t",
            (struct page){.limit = 9, .name_prefix = "box_", .pool = r.pool, .after = "sess_d"}),
        "");
    assert_string_equal(page_of(s, "t", (struct page){.limit = 1, .name_prefix = "", .skip = 1}),
                        "sess_c ");
    session_row_done(&r);
}

static void test_delete_takes_the_files(void **state)
{
    struct shop *s = *state;
    struct space_row file = {.path = mem_strdup("a"), .hash = HASH_A};

    put_session(s, "sess_a", "t", NULL, 1);
    assert_ok(s, db_space_put(s->db, "sess_a", &file, &s->e));
    assert_int_equal(db_session_delete(s->db, "t", "sess_a", &s->e), 1);
    assert_int_equal(db_session_delete(s->db, "t", "sess_a", &s->e), 0);
    assert_false(has_session(s, "t", "sess_a"));
    assert_refused(s, db_space_put(s->db, "sess_a", &file, &s->e), ERR_MISSING);
    space_row_done(&file);
    put_session(s, "sess_a", "t", NULL, 1);
    assert_int_equal(db_space_get(s->db, "sess_a", STR("a"), &file, &s->e), 0);
}

/* A session with many files is deleted bit by bit, and nobody finds it meanwhile. */
static void test_buried(void **state)
{
    struct shop *s = *state;
    struct session_row *rows;
    struct space_row *files, file = {.path = mem_strdup("a"), .hash = HASH_A};
    size_t n;

    put_session(s, "sess_a", "t", "box", 1);
    for (*file.path = 'a'; *file.path < 'f'; (*file.path)++)
        assert_ok(s, db_space_put(s->db, "sess_a", &file, &s->e));
    space_row_done(&file);
    assert_ok(s, db_space_next(s->db, "sess_a", STR("b"), 2, &files, &n, &s->e));
    assert_int_equal(n, 2);
    assert_string_equal(files[0].path, "c");
    assert_string_equal(files[1].path, "d");
    rows_free(&space_type, files, n);
    assert_ok(s, db_space_next(s->db, "sess_a", (struct str){0}, 9, &files, &n, &s->e));
    assert_int_equal(n, 5);
    rows_free(&space_type, files, n);
    assert_int_equal(db_space_drop_some(s->db, "sess_a", 3, &s->e), 3);
    assert_int_equal(db_session_bury(s->db, "evil", "sess_a", &s->e), 0);
    assert_int_equal(db_session_bury(s->db, "t", "sess_a", &s->e), 1);
    assert_false(has_session(s, "t", "sess_a"));
    put_session(s, "sess_b", "t", "box", 1); /* the name is free */
    assert_ok(s, db_session_expired(s->db, 1, 9, &rows, &n, &s->e));
    assert_int_equal(n, 1); /* who cleans up finds it */
    assert_string_equal(rows[0].id, "sess_a");
    assert_string_equal(rows[0].tenant, "");
    rows_free(&session_type, rows, n);
    assert_int_equal(db_space_drop_some(s->db, "sess_a", 3, &s->e), 2);
    assert_int_equal(db_session_delete(s->db, "", "sess_a", &s->e), 1);
}

static void test_expired(void **state)
{
    struct shop *s = *state;
    struct session_row *rows;
    size_t count;

    put_session(s, "sess_a", "t", NULL, 3000);
    put_session(s, "sess_b", "u", NULL, 1000);
    put_session(s, "sess_c", "t", NULL, 2000);
    assert_ok(s, db_session_expired(s->db, 4000, 10, &rows, &count, &s->e));
    assert_int_equal(count, 2); /* at 4000 the first has not */
    assert_string_equal(rows[0].id, "sess_b");
    assert_string_equal(rows[1].id, "sess_c");
    rows_free(&session_type, rows, count);
    assert_ok(s, db_session_expired(s->db, 4001, 1, &rows, &count, &s->e));
    assert_int_equal(count, 1);
    rows_free(&session_type, rows, count);
}

static void test_count(void **state)
{
    struct shop *s = *state;
    uint64_t count = 99;

    assert_ok(s, db_session_count(s->db, NULL, &count, &s->e));
    assert_int_equal(count, 0);
    for (int i = 0; i < 3; i++)
        assert_ok(s, numbered_put(s->db, i, &s->e));
    assert_ok(s, db_session_count(s->db, NULL, &count, &s->e));
    assert_int_equal(count, 3);
}

static void test_all_asleep(void **state)
{
    struct shop *s = *state;
    struct session_row r = session_of("sess_a", "t", 1);

    r.state = 1;
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    session_row_done(&r);
    r = session_of("sess_b", "t", 1);
    r.state = 4;
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    session_row_done(&r);
    assert_int_equal(db_session_all_asleep(s->db, NULL, 1, 3, &s->e), 1);
    assert_int_equal(db_session_get(s->db, "t", "sess_a", &r, &s->e), 1);
    assert_int_equal(r.state, 3);
    assert_true(r.lost);
    session_row_done(&r);
    assert_int_equal(db_session_get(s->db, "t", "sess_b", &r, &s->e), 1);
    assert_int_equal(r.state, 4);
    assert_false(r.lost);
    session_row_done(&r);
}

/* --- files of a workspace --- */

static void put_file(struct shop *s, const char *session, const char *path, uint64_t size)
{
    struct space_row r = {
        .path = mem_strdup(path), .hash = HASH_A, .size = size, .mode = 0640, .mtime_ms = 7};

    assert_ok(s, db_space_put(s->db, session, &r, &s->e));
    space_row_done(&r);
}

static void test_space(void **state)
{
    struct shop *s = *state;
    struct space_row r, *rows;
    size_t count;

    put_session(s, "sess_a", "t", NULL, 1);
    put_session(s, "sess_b", "t", NULL, 1);
    put_file(s, "sess_a", "b", 1);
    put_file(s, "sess_a", "a/\xff\xfe", 2); /* any bytes */
    put_file(s, "sess_a", "B", (uint64_t)1 << 40);
    put_file(s, "sess_b", "other", 4);
    put_file(s, "sess_a", "b", 5);
    assert_ok(s, db_space_list(s->db, "sess_a", &rows, &count, &s->e));
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].path, "B");
    assert_int_equal(rows[0].size, (uint64_t)1 << 40);
    assert_string_equal(rows[1].path, "a/\xff\xfe");
    assert_string_equal(rows[2].path, "b");
    assert_int_equal(rows[2].size, 5);
    rows_free(&space_type, rows, count);
    assert_int_equal(db_space_get(s->db, "sess_a", STR("a/\xff\xfe"), &r, &s->e), 1);
    assert_string_equal(r.hash, HASH_A);
    assert_int_equal(r.mode, 0640);
    assert_int_equal(r.mtime_ms, 7);
    space_row_done(&r);
    assert_int_equal(db_space_get(s->db, "sess_b", STR("b"), &r, &s->e), 0);
    assert_int_equal(db_space_drop(s->db, "sess_b", STR("b"), &s->e), 0);
    assert_int_equal(db_space_drop(s->db, "sess_a", STR("b"), &s->e), 1);
    assert_int_equal(db_space_get(s->db, "sess_a", STR("b"), &r, &s->e), 0);
    assert_int_equal(db_space_get(s->db, "sess_a", (struct str){NULL, 0}, &r, &s->e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_all_of_it_comes_back),
        IN_SHOP(test_put_again),
        IN_SHOP(test_tenants_are_apart),
        IN_SHOP(test_names),
        IN_SHOP(test_pages),
        IN_SHOP(test_after_one_that_is_not_there),
        IN_SHOP(test_lists_of_a_pool_or_a_prefix),
        IN_SHOP(test_delete_takes_the_files),
        IN_SHOP(test_buried),
        IN_SHOP(test_expired),
        IN_SHOP(test_count),
        IN_SHOP(test_all_asleep),
        IN_SHOP(test_space),
    };

    return RUN(tests);
}
