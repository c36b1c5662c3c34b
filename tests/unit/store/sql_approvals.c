/* Approvals in the database. */
#include "shop.h"

static struct approval_row row_of(const char *id, const char *tenant, const char *session,
                                  int64_t created_ms)
{
    struct approval_row r = {
        .tenant = mem_strdup(tenant),
        .key = mem_strdup("key_1"),
        .pool = mem_strdup("default"),
        .session = mem_strdup(session),
        .conversation = mem_strdup("mcp_1"),
        .tool = mem_strdup("run_code"),
        .door = mem_strdup("mcp"),
        .request = mem_strdup("req_1"),
        .digest = {7},
        .created_ms = created_ms,
        .expires_ms = 1000,
        .text = mem_strdup("print(1)"),
        .text_chars = 8,
    };

    snprintf(r.id, sizeof(r.id), "%s", id);
    return r;
}

static void put(struct shop *s, struct approval_row *r)
{
    assert_ok(s, db_approval_put(s->db, r, &s->e));
}

static void put_new(struct shop *s, const char *id, const char *tenant, int state,
                    int64_t created_ms)
{
    struct approval_row r = row_of(id, tenant, "sess_1", created_ms);

    r.state = state;
    put(s, &r);
    approval_row_done(&r);
}

static const char *list(struct shop *s, int state, struct page page)
{
    static char ids[1024];
    struct approval_row *rows;
    size_t count;

    assert_ok(s, db_approval_list(s->db, "t", state, page, &rows, &count, &s->e));
    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id + 4);
    rows_free(&approval_type, rows, count);
    return ids;
}

#define ALL ((struct page){.limit = 100})

static void test_all_of_it_comes_back(void **state)
{
    struct shop *s = *state;
    struct approval_row got, r = row_of("apr_1", "t", "", 5);

    put(s, &r);
    r.lasting = true;
    r.state = APPROVAL_APPROVED;
    r.decided_by = mem_strdup("key_2");
    r.decided_how = mem_strdup("approver");
    r.reason = mem_strdup("why not");
    r.execution = mem_strdup("exec_1");
    free(r.session);
    r.session = mem_strdup("sess_9");
    r.decided_ms = 6;
    r.taken_ms = 7;
    r.expires_ms = 8;
    free(r.text);
    r.text = mem_strdup("what was asked stays as it was");
    put(s, &r);
    approval_row_done(&r);
    shop_reopen(s);
    assert_int_equal(db_approval_get(s->db, "t", "apr_1", &got, &s->e), 1);
    assert_string_equal(got.text, "print(1)");
    assert_string_equal(got.session, "sess_9");
    assert_string_equal(got.decided_by, "key_2");
    assert_string_equal(got.decided_how, "approver");
    assert_string_equal(got.reason, "why not");
    assert_string_equal(got.execution, "exec_1");
    assert_int_equal(got.state, APPROVAL_APPROVED);
    assert_true(got.lasting);
    assert_int_equal(got.digest[0], 7);
    assert_int_equal(got.created_ms, 5);
    assert_int_equal(got.decided_ms, 6);
    assert_int_equal(got.taken_ms, 7);
    assert_int_equal(got.expires_ms, 8);
    approval_row_done(&got);
}

static void test_tenants_are_apart(void **state)
{
    struct shop *s = *state;
    struct approval_row got, r = row_of("apr_1", "u", "sess_1", 1);

    put_new(s, "apr_1", "t", APPROVAL_PENDING, 1);
    assert_int_equal(db_approval_get(s->db, "u", "apr_1", &got, &s->e), 0);
    assert_int_equal(db_approval_put(s->db, &r, &s->e), -1);
    assert_int_equal(s->e.kind, ERR_CONFLICT);
    assert_int_equal(db_approval_open(s->db, "u", "key_1", r.digest, 0, &got, &s->e), 0);
    approval_row_done(&r);
}

static int open_id(struct shop *s, const char *key, uint8_t first, int64_t now_ms, char ret[ID_MAX])
{
    uint8_t digest[32] = {first};
    struct approval_row got = {0};
    int rc = db_approval_open(s->db, "t", key, digest, now_ms, &got, &s->e);

    memcpy(ret, got.id, ID_MAX);
    approval_row_done(&got);
    return rc;
}

static void test_what_is_open(void **state)
{
    struct shop *s = *state;
    struct approval_row taken = row_of("apr_5", "t", "sess_1", 50);
    char id[ID_MAX];

    put_new(s, "apr_1", "t", APPROVAL_PENDING, 10);
    put_new(s, "apr_2", "t", APPROVAL_DECLINED, 20);
    put_new(s, "apr_3", "t", APPROVAL_EXPIRED, 30);
    put_new(s, "apr_4", "t", APPROVAL_USED, 40);
    taken.state = APPROVAL_APPROVED;
    taken.taken_ms = 60;
    put(s, &taken);
    approval_row_done(&taken);
    assert_int_equal(open_id(s, "key_1", 7, 999, id), 1);
    assert_string_equal(id, "apr_2");
    assert_int_equal(open_id(s, "key_2", 7, 999, id), 0);
    assert_int_equal(open_id(s, "key_1", 8, 999, id), 0);
    assert_int_equal(open_id(s, "key_1", 7, 1000, id), 0);
}

static int find_lasting(struct shop *s, const char *key, const char *tool, const char *session,
                        const char *conversation)
{
    struct approval_row got = {0};
    int rc =
        db_approval_lasting(s->db, "t", key, tool, "default", session, conversation, &got, &s->e);

    approval_row_done(&got);
    return rc;
}

static void test_what_lasts(void **state)
{
    struct shop *s = *state;
    struct approval_row r = row_of("apr_1", "t", "sess_1", 10);

    r.state = APPROVAL_APPROVED;
    r.lasting = true;
    put(s, &r);
    assert_int_equal(find_lasting(s, "key_1", "run_code", "sess_1", ""), 0); /* not taken yet */
    r.taken_ms = 20;
    put(s, &r);
    assert_int_equal(find_lasting(s, "key_1", "run_code", "sess_1", ""), 1);
    assert_int_equal(find_lasting(s, "key_1", "run_code", "sess_2", "mcp_1"), 1);
    assert_int_equal(find_lasting(s, "key_1", "run_code", "sess_2", "mcp_2"), 0);
    assert_int_equal(find_lasting(s, "key_1", "run_code", "", ""), 0);
    assert_int_equal(
        db_approval_lasting(s->db, "t", "key_1", "run_code", "other", "sess_1", "", &r, &s->e), 0);
    assert_int_equal(find_lasting(s, "key_1", "run_shell", "sess_1", "mcp_1"), 0);
    assert_int_equal(find_lasting(s, "key_2", "run_code", "sess_1", "mcp_1"), 0);
    r.state = APPROVAL_DECLINED;
    put(s, &r);
    assert_int_equal(find_lasting(s, "key_1", "run_code", "sess_1", "mcp_1"), 0);
    approval_row_done(&r);
}

static void test_lists(void **state)
{
    struct shop *s = *state;
    uint64_t pending;

    put_new(s, "apr_1", "t", APPROVAL_PENDING, 10);
    put_new(s, "apr_2", "t", APPROVAL_USED, 20);
    put_new(s, "apr_3", "t", APPROVAL_PENDING, 30);
    put_new(s, "apr_4", "u", APPROVAL_PENDING, 40);
    assert_string_equal(list(s, -1, ALL), "3 2 1 ");
    assert_string_equal(list(s, APPROVAL_PENDING, ALL), "3 1 ");
    assert_string_equal(list(s, -1, (struct page){.after = "apr_3", .limit = 1}), "2 ");
    assert_string_equal(list(s, APPROVAL_PENDING, (struct page){.after = "apr_3", .limit = 9}),
                        "1 ");
    assert_ok(s, db_approval_count(s->db, "t", 999, &pending, &s->e));
    assert_int_equal(pending, 2);
    assert_ok(s, db_approval_count(s->db, "t", 1000, &pending, &s->e));
    assert_int_equal(pending, 0);
}

static void test_time(void **state)
{
    struct shop *s = *state;

    put_new(s, "apr_1", "t", APPROVAL_PENDING, 10);
    put_new(s, "apr_2", "t", APPROVAL_APPROVED, 20);
    put_new(s, "apr_3", "t", APPROVAL_DECLINED, 30);
    assert_int_equal(db_approval_expire(s->db, 999, &s->e), 0);
    assert_int_equal(db_approval_expire(s->db, 1000, &s->e), 2);
    assert_string_equal(list(s, APPROVAL_EXPIRED, ALL), "2 1 ");
    assert_int_equal(db_approval_forget(s->db, 30, 1, &s->e), 1);
    assert_int_equal(db_approval_forget(s->db, 30, 9, &s->e), 1);
    assert_string_equal(list(s, -1, ALL), "3 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_all_of_it_comes_back),
        IN_SHOP(test_tenants_are_apart),
        IN_SHOP(test_what_is_open),
        IN_SHOP(test_what_lasts),
        IN_SHOP(test_lists),
        IN_SHOP(test_time),
    };

    return RUN(tests);
}
