/* Steps of the schema in SQLite. PRAGMA user_version has how many a database has taken. */
#include "store/sqlite_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int exec(void *conn, const char *text, struct err *e)
{
    return sqlite3_exec(conn, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_fail(conn, e);
}

static int on_number(void *arg, int count, char **values, char **names)
{
    int64_t *ret = arg;

    (void)names;
    if (count != 1 || !values[0])
        return 1;
    *ret = strtoll(values[0], NULL, 10);
    return 0;
}

static int get_number(void *conn, const char *text, int64_t *ret, struct err *e)
{
    return sqlite3_exec(conn, text, on_number, ret, NULL) == SQLITE_OK ? 0 : sqlite_fail(conn, e);
}

static int begin(void *conn, struct err *e)
{
    return exec(conn, "BEGIN IMMEDIATE", e);
}

static int commit(void *conn, struct err *e)
{
    return exec(conn, "COMMIT", e);
}

static void rollback(void *conn)
{
    (void)sqlite3_exec(conn, "ROLLBACK", NULL, NULL, NULL);
}

static int version(void *conn, int64_t *ret, struct err *e)
{
    return get_number(conn, "PRAGMA user_version", ret, e);
}

static int set_version(void *conn, int64_t to, struct err *e)
{
    char text[64];

    snprintf(text, sizeof(text), "PRAGMA user_version = %" PRId64, to);
    return exec(conn, text, e);
}

static int has_table(void *conn, const char *name, struct err *e)
{
    char ask[128];
    int64_t there = 0;

    snprintf(ask, sizeof(ask), "SELECT count(*) FROM sqlite_schema WHERE name = '%s'", name);
    return get_number(conn, ask, &there, e) < 0 ? -1 : there > 0;
}

static int step(void *conn, const struct schema_step *s, const char *text, struct err *e)
{
    if (exec(conn, text, e) < 0)
        return -1;
    return s->sqlite ? exec(conn, s->sqlite, e) : 0;
}

const struct schema_ops sqlite_schema = {
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .version = version,
    .set_version = set_version,
    .has_table = has_table,
    .step = step,
};
