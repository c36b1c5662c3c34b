/* Executions in the database: the audit log. */
#include "shop.h"

static struct exec_row exec_of(const char *id, const char *tenant, const char *session,
                               int64_t created_ms)
{
    struct exec_row r = {
        .tenant = mem_strdup(tenant),
        .session = mem_strdup(session),
        .pool = mem_strdup("default"),
        .request = mem_strdup("req_1"),
        .door = mem_strdup("rest"),
        .kind = mem_strdup("cell"),
        .code = mem_strdup("print(1)"),
        .status = mem_strdup("ok"),
        .created_ms = created_ms,
    };

    snprintf(r.id, sizeof(r.id), "%s", id);
    return r;
}

static void set(char **field, const char *text)
{
    free(*field);
    *field = mem_strdup(text);
}

static void put_exec(struct shop *s, const char *id, const char *tenant, const char *session,
                     int64_t created_ms)
{
    struct exec_row r = exec_of(id, tenant, session, created_ms);

    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    exec_row_done(&r);
}

static const char *list(struct shop *s, struct exec_filter f, struct page page)
{
    static char ids[1024];
    struct exec_row *rows;
    size_t count;

    assert_ok(s, db_exec_list(s->db, &f, page, false, &rows, &count, &s->e));
    *ids = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", rows[i].id + 5);
    rows_free(&exec_type, rows, count);
    return ids;
}

#define ALL ((struct page){.limit = 100})

static void fill(struct shop *s)
{
    put_exec(s, "exec_1", "t", "sess_a", 10);
    put_exec(s, "exec_2", "t", "sess_b", 20);
    put_exec(s, "exec_3", "u", "sess_c", 20);
    put_exec(s, "exec_4", "t", "sess_a", 20);
    put_exec(s, "exec_5", "t", "sess_a", 30);
}

static void test_all_of_it_comes_back(void **state)
{
    struct shop *s = *state;
    struct exec_row got, r = exec_of("exec_1", "acme", "sess_a", 1);

    set(&r.key, "key_1");
    set(&r.outcome, "{\"status\":\"ok\"}");
    set(&r.events, "[]");
    snprintf(r.events_hash, sizeof(r.events_hash), "%s", HASH_B);
    r.started_ms = 2;
    r.ended_ms = 3;
    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    shop_reopen(s);
    assert_int_equal(db_exec_get(s->db, "acme", "exec_1", &got, &s->e), 1);
    assert_string_equal(got.id, "exec_1");
    assert_string_equal(got.tenant, "acme");
    assert_string_equal(got.session, "sess_a");
    assert_string_equal(got.pool, "default");
    assert_string_equal(got.key, "key_1");
    assert_string_equal(got.request, "req_1");
    assert_string_equal(got.door, "rest");
    assert_string_equal(got.kind, "cell");
    assert_string_equal(got.code, "print(1)");
    assert_string_equal(got.status, "ok");
    assert_string_equal(got.outcome, r.outcome);
    assert_string_equal(got.events, "[]");
    assert_string_equal(got.events_hash, HASH_B);
    assert_int_equal(got.created_ms, 1);
    assert_int_equal(got.started_ms, 2);
    assert_int_equal(got.ended_ms, 3);
    exec_row_done(&got);
    exec_row_done(&r);
}

/* What came of it changes; who asked for what does not. */
static void test_put_again(void **state)
{
    struct shop *s = *state;
    struct exec_row got, r = exec_of("exec_1", "t", "sess_a", 1);

    set(&r.status, "running");
    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    set(&r.status, "timeout");
    set(&r.outcome, "{}");
    set(&r.events, "[1]");
    set(&r.code, "something else");
    r.ended_ms = 9;
    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    assert_int_equal(db_exec_get(s->db, "t", "exec_1", &got, &s->e), 1);
    assert_string_equal(got.status, "timeout");
    assert_string_equal(got.outcome, "{}");
    assert_string_equal(got.events, "[1]");
    assert_string_equal(got.code, "print(1)");
    assert_int_equal(got.ended_ms, 9);
    exec_row_done(&got);
    set(&r.tenant, "evil");
    assert_refused(s, db_exec_put(s->db, &r, &s->e), ERR_CONFLICT);
    assert_int_equal(db_exec_get(s->db, "evil", "exec_1", &got, &s->e), 0);
    exec_row_done(&r);
}

static void test_filters(void **state)
{
    static const struct {
        struct exec_filter f;
        const char *expected;
    } rows[] = {
        {{0},                                             "5 4 3 2 1 "},
        {{.tenant = "t"},                                 "5 4 2 1 "  },
        {{.tenant = "u"},                                 "3 "        },
        {{.tenant = "t", .oldest_first = true},           "1 2 4 5 "  },
        {{.session = "sess_a"},                           "5 4 1 "    },
        {{.tenant = "t", .session = "sess_a"},            "5 4 1 "    },
        {{.tenant = "u", .session = "sess_a"},            ""          },
        {{.session = "sess_a", .oldest_first = true},     "1 4 5 "    },
        {{.since_ms = 20},                                "5 4 3 2 "  },
        {{.until_ms = 20},                                "1 "        },
        {{.since_ms = 20, .until_ms = 30},                "4 3 2 "    },
        {{.tenant = "t", .since_ms = 11, .until_ms = 30}, "4 2 "      },
        {{.since_ms = 30, .until_ms = 20},                ""          },
        {{.oldest_first = true, .since_ms = 20},          "2 3 4 5 "  },
        {{.tenant = "nobody"},                            ""          },
    };
    struct shop *s = *state;

    fill(s);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(list(s, rows[i].f, ALL), rows[i].expected);
}

static void test_pages(void **state)
{
    static const struct {
        struct exec_filter f;
        struct page page;
        const char *expected;
    } rows[] = {
        {{0},                                    {NULL, 2},          "5 4 "    },
        {{0},                                    {"exec_4", 2},      "3 2 "    },
        {{0},                                    {"exec_2", 2},      "1 "      },
        {{0},                                    {"exec_1", 2},      ""        },
        {{.tenant = "t"},                        {"exec_4", 1},      "2 "      },
        {{.session = "sess_a"},                  {"exec_4", 9},      "1 "      },
        {{.oldest_first = true},                 {"exec_2", 2},      "3 4 "    },
        {{.oldest_first = true, .since_ms = 20}, {"exec_1", 9},      "2 3 4 5 "},
        {{.oldest_first = true, .until_ms = 30}, {"exec_2", 9},      "3 4 "    },
        {{.until_ms = 20},                       {"exec_5", 9},      "1 "      },
        {{.since_ms = 20},                       {"exec_3", 9},      "2 "      },
        {{0},                                    {"exec_45", 9, 20}, "4 3 2 1 "},
    };
    struct shop *s = *state;
    struct exec_row *found;
    size_t count;

    fill(s);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(list(s, rows[i].f, rows[i].page), rows[i].expected);
    /* Another tenant's id is as good as none. */
    assert_refused(s,
                   db_exec_list(s->db, &(struct exec_filter){.tenant = "t"},
                                (struct page){.after = "exec_3", .limit = 1}, false, &found, &count,
                                &s->e),
                   ERR_CALLER);
}

static void test_whole(void **state)
{
    struct shop *s = *state;
    struct exec_row *rows, r = exec_of("exec_1", "t", "sess_a", 1);
    size_t count;

    set(&r.events, "[]");
    set(&r.outcome, "{}");
    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    exec_row_done(&r);
    for (int whole = 0; whole < 2; whole++) {
        assert_ok(s,
                  db_exec_list(s->db, &(struct exec_filter){0}, ALL, whole, &rows, &count, &s->e));
        assert_int_equal(count, 1);
        assert_string_equal(rows[0].outcome, "{}");
        assert_int_equal(rows[0].code != NULL, whole);
        assert_int_equal(rows[0].events != NULL, whole);
        rows_free(&exec_type, rows, count);
    }
}

static void test_all_lost(void **state)
{
    static const char *const status[] = {"queued", "running", "ok", "error"};
    static const char *const after[] = {"session_lost", "session_lost", "ok", "error"};
    struct shop *s = *state;
    char id[ID_MAX];

    for (size_t i = 0; i < COUNT(status); i++) {
        snprintf(id, sizeof(id), "exec_%zu", i);
        struct exec_row r = exec_of(id, "t", "sess_a", 1);
        set(&r.status, status[i]);
        assert_ok(s, db_exec_put(s->db, &r, &s->e));
        exec_row_done(&r);
    }
    assert_ok(s, db_exec_output_put(s->db, "exec_1", 2, "{\"b\":2},{\"c\":3}", &s->e));
    assert_ok(s, db_exec_output_put(s->db, "exec_1", 1, "{\"a\":1}", &s->e));
    assert_ok(s, db_exec_output_put(s->db, "exec_0", 1, "{}", &s->e));
    assert_ok(s, db_exec_output_drop(s->db, "exec_0", &s->e));
    assert_int_equal(db_exec_all_lost(s->db, NULL, 77, "{}", &s->e), 2);
    /* They are in its record, and no longer beside it. */
    assert_ok(s, db_exec_output_put(s->db, "exec_1", 1, "{}", &s->e));
    for (size_t i = 0; i < COUNT(status); i++) {
        struct exec_row r;
        snprintf(id, sizeof(id), "exec_%zu", i);
        assert_int_equal(db_exec_get(s->db, "t", id, &r, &s->e), 1);
        assert_string_equal(r.status, after[i]);
        assert_int_equal(r.ended_ms, i < 2 ? 77 : 0);
        if (i == 1)
            assert_string_equal(r.events, "[{\"a\":1},{\"b\":2},{\"c\":3}]");
        if (i < 2)
            assert_string_equal(r.outcome, "{}");
        exec_row_done(&r);
    }
}

static void test_forget(void **state)
{
    struct shop *s = *state;

    fill(s);
    assert_int_equal(db_exec_forget(s->db, 30, 2, &s->e), 2);
    assert_string_equal(list(s, (struct exec_filter){0}, ALL), "5 4 3 ");
    assert_int_equal(db_exec_forget(s->db, 30, 100, &s->e), 2);
    assert_int_equal(db_exec_forget(s->db, 30, 100, &s->e), 0);
    assert_string_equal(list(s, (struct exec_filter){0}, ALL), "5 ");
}

static void test_of_pools(void **state)
{
    struct shop *s = *state;
    struct exec_row r = exec_of("exec_6", "t", "sess_a", 40);

    fill(s);
    set(&r.pool, "a_b");
    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    exec_row_done(&r);
    assert_string_equal(list(s, (struct exec_filter){0}, (struct page){.limit = 9, .pools = "a_b"}),
                        "6 ");
    assert_string_equal(list(s, (struct exec_filter){.tenant = "t", .session = "sess_a"},
                             (struct page){.limit = 9, .pools = "default,x"}),
                        "5 4 1 ");
    assert_string_equal(list(s, (struct exec_filter){.tenant = "t"},
                             (struct page){.limit = 9, .pools = "a,b,axb,default,a_b"}),
                        "6 5 4 2 1 ");
    assert_string_equal(list(s, (struct exec_filter){0}, (struct page){.limit = 9, .pools = "axb"}),
                        "");
    assert_string_equal(list(s, (struct exec_filter){0}, (struct page){.limit = 9, .pools = ""}),
                        "");
}

/* Few of many are wanted: a call looks at a part of them, and the next goes on from there. */
static void test_few_of_many(void **state)
{
    enum { MANY = 2500, EVERY = 1000 };
    struct shop *s = *state;
    struct progress progress = {0};
    const struct exec_filter f = {.tenant = "t", .status = "timeout"};
    struct page page = {.limit = 10, .progress = &progress};
    struct exec_row *rows = NULL;
    size_t count = 0;
    int rc, calls = 1;

    for (int i = 0; i < MANY; i++) {
        char id[ID_MAX];
        snprintf(id, sizeof(id), "exec_%d", i);
        struct exec_row r = exec_of(id, "t", "sess_a", i);
        if (i % EVERY == 0)
            set(&r.status, "timeout");
        assert_ok(s, db_exec_put(s->db, &r, &s->e));
        exec_row_done(&r);
    }
    while ((rc = db_exec_list(s->db, &f, page, false, &rows, &count, &s->e)) > 0)
        calls++;
    assert_ok(s, rc);
    assert_int_equal(calls, 3);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].id, "exec_2000");
    assert_string_equal(rows[2].id, "exec_0");
    rows_free(&exec_type, rows, count);
    progress_done(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_all_of_it_comes_back),
        IN_SHOP(test_put_again),
        IN_SHOP(test_filters),
        IN_SHOP(test_pages),
        IN_SHOP(test_whole),
        IN_SHOP(test_all_lost),
        IN_SHOP(test_forget),
        IN_SHOP(test_of_pools),
        IN_SHOP(test_few_of_many),
    };

    return RUN(tests);
}
