/* The schema: old databases are brought up to date, newer ones refused, lookups have an index. */
#include "shop.h"
#include "store/sqlite_int.h"

static sqlite3 *conn_of(struct shop *s)
{
    return sqlite_of(s->db)->conn;
}

static void exec_sql(sqlite3 *conn, const char *text)
{
    if (sqlite3_exec(conn, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(conn));
}

static int64_t number(sqlite3 *conn, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    int64_t n;

    assert_int_equal(sqlite3_prepare_v2(conn, text, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return n;
}

/* --- versions --- */

static const struct schema_step story[] = {
    {"CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (1);"},
    {"ALTER TABLE t ADD COLUMN b TEXT; UPDATE t SET b = 'two';"},
    {"CREATE INDEX t_b ON t (b); INSERT INTO t VALUES (3, 'three');"},
};

static int open_empty(void **state)
{
    sqlite3 *conn = NULL;

    *state = NULL;
    if (sqlite3_open(":memory:", &conn) != SQLITE_OK)
        return -1;
    *state = conn;
    return 0;
}

static int close_empty(void **state)
{
    return sqlite3_close(*state);
}

static void test_step_by_step(void **state)
{
    sqlite3 *conn = *state;
    struct err e = {0};

    assert_int_equal(schema_migrate(&sqlite_schema, conn, story, 1, &e), 0);
    assert_int_equal(number(conn, "PRAGMA user_version"), 1);
    exec_sql(conn, "INSERT INTO t VALUES (10)");
    assert_int_equal(schema_migrate(&sqlite_schema, conn, story, 3, &e), 0);
    assert_int_equal(number(conn, "PRAGMA user_version"), 3);
    assert_int_equal(number(conn, "SELECT count(*) FROM t"), 3);
    assert_int_equal(number(conn, "SELECT a FROM t WHERE b = 'two' ORDER BY a DESC"), 10);
    assert_int_equal(schema_migrate(&sqlite_schema, conn, story, 3, &e), 0);
    assert_int_equal(number(conn, "SELECT count(*) FROM t"), 3);
}

static void test_a_step_that_fails_undoes_itself(void **state)
{
    static const struct schema_step broken[] = {
        {"CREATE TABLE t (a INTEGER) STRICT;"},
        {"CREATE TABLE u (a INTEGER) STRICT; INSERT INTO t VALUES ('text');"},
    };
    sqlite3 *conn = *state;
    struct err e = {0};

    assert_int_equal(schema_migrate(&sqlite_schema, conn, broken, 2, &e), -1);
    assert_int_equal(e.kind, ERR_HOST);
    assert_has(e.text, "from version 1 to 2");
    assert_int_equal(number(conn, "PRAGMA user_version"), 1);
    assert_int_equal(number(conn, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_true(sqlite3_get_autocommit(conn));
}

static void test_newer_is_refused(void **state)
{
    struct shop *s = *state;
    struct store_config config = {.dir = s->dir.path};

    exec_sql(conn_of(s), "PRAGMA user_version = 1000");
    store_close(s->store);
    s->store = store_open(NULL, &config, &s->e);
    assert_null(s->store);
    assert_has(s->e.text, "newer version of retort");
    assert_has(s->e.text, "1000");
    assert_has(s->e.text, s->dir.path);
}

static void test_not_a_database(void **state)
{
    struct shop *s = *state;
    struct store_config config = {.dir = s->dir.path};

    store_close(s->store);
    assert_int_equal(unlinkat(s->dir.fd, "retort.db", 0), 0);
    scratch_put(&s->dir, "retort.db",
                STR("this is a text that is long enough to be looked at, "
                    "and it is no database at all, as anybody can see."));
    s->store = store_open(NULL, &config, &s->e);
    assert_null(s->store);
    assert_has(s->e.text, "not a database");
}

static void test_settings(void **state)
{
    struct shop *s = *state;
    struct stat st;

    assert_int_equal(number(conn_of(s), "PRAGMA foreign_keys"), 1);
    assert_int_equal(number(conn_of(s), "PRAGMA synchronous"), 1);
    assert_int_equal(number(conn_of(s), "PRAGMA secure_delete"), 1);
    assert_int_equal(number(conn_of(s), "SELECT count(*) FROM pragma_table_list"
                                        " WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
                                        " AND NOT strict"),
                     0);
    assert_int_equal(fstatat(s->dir.fd, "retort.db", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fstatat(s->dir.fd, "retort.db-wal", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* --- every lookup has its index --- */

/* Of these there are few: nobody makes more by asking often. */
static const char *const few[] = {"keys", "execs USING INDEX execs_open"};

static bool is_walk(const char *detail)
{
    if (strncmp(detail, "SCAN ", 5) != 0)
        return strstr(detail, "TEMP B-TREE");
    for (size_t i = 0; i < COUNT(few); i++)
        if (strncmp(detail + 5, few[i], strlen(few[i])) == 0)
            return false;
    return true;
}

/* Whether the plan of a statement goes through a whole table, sorts, or counts rows to leave out.
 */
static bool is_slow(sqlite3 *conn, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
    bool slow = strstr(text, "OFFSET");

    assert_int_equal(sqlite3_prepare_v2(conn, explain, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(stmt, 3);
        slow |= is_walk(detail);
    }
    sqlite3_finalize(stmt);
    sqlite3_free(explain);
    return slow;
}

static void ask_everything(struct shop *s)
{
    struct db *db = s->db;
    struct err *e = &s->e;
    struct page page = {.after = "x", .limit = 1};
    struct key_row *keys;
    struct session_row session, *sessions;
    struct space_row space, *spaces;
    struct exec_row exec, *execs;
    struct file_row file, *files;
    struct item_filter filter = {.tenant = "x", .kind = "x", .owner = "", .page.limit = 1};
    struct item_row item, *items;
    struct loop_row loop;
    struct pool_key_row pool_key;
    struct approval_row approval = {0}, *approvals;
    const uint8_t digest[32] = {0};
    uint64_t pending;
    size_t n;

    assert_ok(s, db_key_list(db, &keys, &n, e));
    rows_free(&key_type, keys, n);
    assert_ok(s, db_key_revoke(db, "x", 1, e));
    assert_ok(s, db_key_used(db, "x", 1, e));
    assert_ok(s, db_session_get(db, "x", "x", &session, e));
    assert_ok(s, db_session_named(db, "x", "x", "x", &session, e));
    assert_ok(s, db_session_delete(db, "x", "x", e));
    assert_ok(s, db_session_expired(db, 1, 1, &sessions, &n, e));
    rows_free(&session_type, sessions, n);
    assert_ok(s, db_space_get(db, "x", STR("x"), &space, e));
    assert_ok(s, db_space_drop(db, "x", STR("x"), e));
    assert_ok(s, db_space_list(db, "x", &spaces, &n, e));
    rows_free(&space_type, spaces, n);
    assert_ok(s, db_exec_get(db, "x", "x", &exec, e));
    assert_ok(s, db_exec_all_lost(db, NULL, 1, "{}", e));
    assert_ok(s, db_exec_forget(db, 1, 1, e));
    assert_ok(s, db_file_get(db, "x", "x", &file, e));
    assert_ok(s, db_file_delete(db, "x", "x", e));
    assert_ok(s, db_file_bytes(db, "x", 1, &pending, e));
    assert_ok(s, db_file_expire(db, 1, 1, 1, e));
    assert_ok(s, db_item_get(db, "x", "x", "x", &item, e));
    assert_ok(s, db_item_delete(db, "x", "x", "x", e));
    assert_ok(s, db_item_list(db, &filter, &items, &n, e));
    rows_free(&item_type, items, n);
    assert_ok(s, db_item_count(db, "x", "x", &pending, e));
    assert_ok(s, db_item_bytes(db, "x", &pending, e));
    assert_ok(s, db_loop_get(db, "x", "x", &loop, e));
    assert_ok(s, db_loop_forget(db, 1, 1, e));
    assert_ok(s, db_pool_delete(db, "x", e));
    assert_ok(s, db_pool_key_get(db, "x", "x", &pool_key, e));
    assert_ok(s, db_session_bury(db, "x", "x", e));
    assert_ok(s, db_space_drop_some(db, "x", 1, e));
    assert_ok(s, db_space_next(db, "x", STR("x"), 1, &spaces, &n, e));
    rows_free(&space_type, spaces, n);
    assert_ok(s, db_exec_output_drop(db, "x", e));
    assert_ok(s, db_item_expire(db, 1, 1, e));
    assert_ok(s, db_blob_named(db, HASH_A, e));
    assert_ok(s, db_approval_get(db, "x", "x", &approval, e));
    assert_ok(s, db_approval_open(db, "x", "x", digest, 1, &approval, e));
    assert_ok(s, db_approval_lasting(db, "x", "x", "x", "p", "x", "x", &approval, e));
    assert_ok(s, db_approval_count(db, "x", 1, &pending, e));
    assert_ok(s, db_approval_expire(db, 1, e));
    assert_ok(s, db_approval_forget(db, 1, 1, e));
    for (int known = 0; known < 2; known++) {
        page.after_ms = known;
        for (int of = -1; of < 1; of++) {
            (void)!db_approval_list(db, "x", of, page, &approvals, &n, e);
            rows_free(&approval_type, approvals, known ? n : 0);
        }
        (void)!db_session_list(db, "x", page, &sessions, &n, e);
        rows_free(&session_type, sessions, known ? n : 0);
        for (int newer = 0; newer < 2; newer++) {
            page.newer = newer;
            (void)!db_file_list(db, "x", 1, page, &files, &n, e);
            rows_free(&file_type, files, known ? n : 0);
        }
    }
    for (unsigned way = 0; way < 16; way++) {
        struct exec_filter f = {.tenant = way & 1 ? "x" : NULL,
                                .session = way & 2 ? "x" : NULL,
                                .status = "x",
                                .key = "x",
                                .oldest_first = way & 4};
        assert_ok(s, db_exec_list(db, &f, page, way & 8, &execs, &n, e));
        rows_free(&exec_type, execs, n);
    }
}

static void test_every_lookup_has_its_index(void **state)
{
    struct shop *s = *state;
    struct sqlite *q = sqlite_of(s->db);

    ask_everything(s);
    assert_true(q->cached > 30);
    for (size_t i = 0; i < q->cached; i++)
        /* The schema itself has no index; it is looked at once, at the start. */
        if (!strstr(sqlite3_sql(q->cache[i]), "FROM sqlite_schema") &&
            is_slow(q->conn, sqlite3_sql(q->cache[i])))
            fail_msg("no index for: %s", sqlite3_sql(q->cache[i]));
    assert_true(is_slow(q->conn, "SELECT * FROM sessions WHERE used_ms = 1"));
    assert_true(is_slow(q->conn, "SELECT * FROM sessions WHERE tenant = 'x' ORDER BY used_ms"));
    assert_true(is_slow(q->conn, "SELECT id FROM execs ORDER BY created_ms, id"));
    assert_true(is_slow(q->conn, "SELECT id FROM execs WHERE id = 'x' LIMIT 1 OFFSET 9"));
}

/* Deep in a long list, a page starts where it should: by both ends of the span. */
static void test_pages_start_in_the_index(void **state)
{
    struct shop *s = *state;
    struct sqlite *q = sqlite_of(s->db);
    size_t spans = 0;

    ask_everything(s);
    for (size_t i = 0; i < q->cached; i++) {
        sqlite3_stmt *stmt = NULL;
        char *explain;
        if (!strstr(sqlite3_sql(q->cache[i]), IN_SPAN))
            continue;
        spans++;
        explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(q->cache[i]));
        assert_int_equal(sqlite3_prepare_v2(q->conn, explain, -1, &stmt, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        assert_has((const char *)sqlite3_column_text(stmt, 3),
                   "(created_ms,id)>(?,?) AND (created_ms,id)<(?,?)");
        sqlite3_finalize(stmt);
        sqlite3_free(explain);
    }
    assert_int_equal(spans, 22);
}

#define EMPTY(f) cmocka_unit_test_setup_teardown(f, open_empty, close_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMPTY(test_step_by_step),
        EMPTY(test_a_step_that_fails_undoes_itself),
        IN_SHOP(test_newer_is_refused),
        IN_SHOP(test_not_a_database),
        IN_SHOP(test_settings),
        IN_SHOP(test_every_lookup_has_its_index),
        IN_SHOP(test_pages_start_in_the_index),
    };

    return RUN(tests);
}
