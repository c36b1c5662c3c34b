/* Executions: the audit log. */
#include "store/sql_int.h"

#include <stdio.h>

#define SHORT_COLUMNS                                                                              \
    "id, tenant, session, pool, key, request, door, kind, approval, status, created_ms, "          \
    "started_ms, ended_ms, events_hash, outcome"
#define COLUMNS SHORT_COLUMNS ", code, events"
#define OWN     UNLESS_ANOTHERS("execs", "status")

/* Who asked for what, and when, is written once. Only what came of it is set anew, so the indices
 * on the rest are left alone. */
int db_exec_put(struct db *db, const struct exec_row *r, struct err *e)
{
    if (names_blob(db, r->events_hash, e) < 0)
        return -1;
    return sql_put(db,
                   "INSERT INTO execs (" COLUMNS ")"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                   " ON CONFLICT (id) DO UPDATE SET " OWN ","
                   " started_ms = excluded.started_ms, ended_ms = excluded.ended_ms,"
                   " events_hash = excluded.events_hash, outcome = excluded.outcome,"
                   " events = excluded.events",
                   &exec_type, r, NULL, 0, e);
}

int db_exec_get(struct db *db, const char *tenant, const char *id, struct exec_row *ret,
                struct err *e)
{
    return sql_one(db, "SELECT " COLUMNS " FROM execs WHERE id = ?2 AND tenant = ?1",
                   ARGS(TEXT(tenant), TEXT(id)), &exec_type, ret, e);
}

/* One statement for each way to ask, as each has its index. With a session that one's is the
 * narrowest, and an expression keeps an engine from taking the tenant's. */
#define WANTED OF_POOLS("?8") " AND (?9 IS NULL OR status = ?9) AND (?10 IS NULL OR key = ?10)"

static void write_ask(char *ret, size_t size, const struct exec_filter *f, bool whole)
{
    static const char *const which[2][2] = {
        {"",                 " AND session = ?7"                      },
        {" AND tenant = ?6", " AND session = ?7 AND tenant || '' = ?6"},
    };
    int n = snprintf(ret, size, "SELECT %s" LOOK_AT(WANTED) " FROM execs WHERE " IN_SPAN "%s%s",
                     whole ? COLUMNS : SHORT_COLUMNS, which[f->tenant != NULL][f->session != NULL],
                     f->oldest_first ? OLDEST_FIRST : NEWEST_FIRST);

    assert(n > 0 && (size_t)n < size);
}

int db_exec_list(struct db *db, const struct exec_filter *f, struct page page, bool whole,
                 struct exec_row **ret, size_t *ret_count, struct err *e)
{
    struct span s = SPAN_ALL;
    void *rows = page.progress ? *ret : NULL;
    char text[768];

    *ret = NULL;
    s.oldest_first = f->oldest_first;
    if (f->since_ms)
        s.above_ms = f->since_ms;
    if (f->until_ms)
        s.below_ms = f->until_ms;
    if (span_go_on(db, &s, MADE_WHEN("execs"), f->tenant, page, e) < 0)
        return -1;
    write_ask(text, sizeof(text), f, whole);
    int rc = sql_page(
        db, text, s,
        ARGS(TEXT(f->tenant), TEXT(f->session), TEXT(page.pools), TEXT(f->status), TEXT(f->key)),
        &exec_type, page, false, &rows, ret_count, e);
    *ret = rows;
    return rc;
}

int db_exec_output_put(struct db *db, const char *exec, int64_t group, const char *events,
                       struct err *e)
{
    return sql_post(db, "INSERT INTO exec_output (exec, number, events) VALUES (?1, ?2, ?3)",
                    ARGS(TEXT(exec), NUMBER(group), TEXT(events)), e);
}

int db_exec_output_drop(struct db *db, const char *exec, struct err *e)
{
    return sql_post(db, "DELETE FROM exec_output WHERE exec = ?1", ARGS(TEXT(exec)), e);
}

/* What there is of it is of executions that run now, so this looks at few. */
static int drop_output_of(struct db *db, const char *tenant, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM exec_output WHERE exec IN"
                   " (SELECT execs.id FROM exec_output JOIN execs ON execs.id = exec_output.exec"
                   " WHERE execs.tenant = ?1 AND execs.status NOT IN ('queued', 'running'))",
                   ARGS(TEXT(tenant)), e);
}

int db_exec_all_lost(struct db *db, const char *tenant, int64_t now_ms, const char *outcome,
                     struct err *e)
{
    char text[512];
    int lost;

    snprintf(text, sizeof(text),
             "UPDATE execs SET status = 'session_lost', ended_ms = ?1, outcome = ?2,"
             " events = (SELECT '[' || %s || ']' FROM exec_output WHERE exec = execs.id)"
             " WHERE status IN ('queued', 'running') AND " OF_TENANT("?3"),
             db->sql->events_joined);
    lost = sql_run(db, text, ARGS(NUMBER(now_ms), TEXT(outcome), TEXT(tenant)), e);
    if (lost < 0 || (tenant ? drop_output_of(db, tenant, e)
                            : sql_run(db, "DELETE FROM exec_output", NULL, 0, e)) < 0)
        return -1;
    return lost;
}

int db_exec_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e)
{
    return sql_run(db,
                   "DELETE FROM execs WHERE id IN (SELECT id FROM execs WHERE created_ms < ?1"
                   " ORDER BY created_ms, id LIMIT ?2)",
                   ARGS(NUMBER(before_ms), NUMBER(limit)), e);
}
