/*
 * Steps of the schema in PostgreSQL: the same as everywhere, in its words. The table
 * retort_schema has how many a database has taken.
 *
 * An advisory lock lets one process at a time take a step, also in a database that has
 * no table yet.
 */
#include "store/postgres_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_MS  600000 /* an index of a large table takes its time */
#define TEXT_MAX (64 * KiB)

static int exec(void *conn, const char *text, struct err *e)
{
    PGresult *r = postgres_exec(conn, STEP_MS, text, NULL, 0, e);

    PQclear(r);
    return r ? 0 : -1;
}

/* NULL is 0. */
static int get_number(void *conn, const char *text, int64_t *ret, struct err *e)
{
    PGresult *r = postgres_exec(conn, STEP_MS, text, NULL, 0, e);

    if (!r)
        return -1;
    *ret = PQntuples(r) ? strtoll(PQgetvalue(r, 0, 0), NULL, 10) : 0;
    PQclear(r);
    return 0;
}

static int begin(void *conn, struct err *e)
{
    return exec(
        conn, "BEGIN; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(1919251567, 1)", e);
}

static int commit(void *conn, struct err *e)
{
    return exec(conn, "COMMIT", e);
}

static void rollback(void *conn)
{
    struct err ignored;

    (void)!exec(conn, "ROLLBACK", &ignored);
}

static int has_table(void *conn, const char *name, struct err *e)
{
    char ask[128];
    int64_t there = 0;

    snprintf(ask, sizeof(ask), "SELECT count(*) WHERE to_regclass('%s') IS NOT NULL", name);
    return get_number(conn, ask, &there, e) < 0 ? -1 : there > 0;
}

/* What only this engine has, beside the version: the writers of postgres.c, the nodes of
 * postgres_nodes.c. */
static const char own_tables[] =
    "CREATE TABLE retort_schema (version BIGINT NOT NULL);"
    "INSERT INTO retort_schema VALUES (0);"
    "CREATE TABLE retort_writers (id TEXT COLLATE \"C\" PRIMARY KEY, number BIGINT NOT NULL,"
    " fence BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL) WITH (fillfactor = 50)";

static const char node_tables[] =
    "ALTER TABLE retort_writers ADD COLUMN name TEXT COLLATE \"C\","
    " ADD COLUMN url TEXT COLLATE \"C\", ADD COLUMN until TIMESTAMPTZ;"
    "CREATE TABLE retort_homes (tenant TEXT COLLATE \"C\" PRIMARY KEY,"
    " node TEXT COLLATE \"C\" NOT NULL);"
    "CREATE INDEX retort_homes_by_node ON retort_homes (node)";

static const char room_columns[] =
    "ALTER TABLE retort_writers ADD COLUMN room TEXT COLLATE \"C\", ADD COLUMN lent BIGINT";

static int has_room(void *conn, struct err *e)
{
    static const char ask[] = "SELECT count(*) FROM pg_attribute WHERE attname = 'room'"
                              " AND attrelid = to_regclass('retort_writers') AND NOT attisdropped";
    int64_t there = 0;

    return get_number(conn, ask, &there, e) < 0 ? -1 : there > 0;
}

static int version(void *conn, int64_t *ret, struct err *e)
{
    int there = has_table(conn, "retort_schema", e);

    if (there < 0 || (there == 0 && exec(conn, own_tables, e) < 0))
        return -1;
    there = has_table(conn, "retort_homes", e);
    if (there < 0 || (there == 0 && exec(conn, node_tables, e) < 0))
        return -1;
    there = has_room(conn, e);
    if (there < 0 || (there == 0 && exec(conn, room_columns, e) < 0))
        return -1;
    return get_number(conn, "SELECT version FROM retort_schema", ret, e);
}

static int set_version(void *conn, int64_t to, struct err *e)
{
    char text[96];

    snprintf(text, sizeof(text), "UPDATE retort_schema SET version = %" PRId64, to);
    return exec(conn, text, e);
}

/* Numbers have 64 bits; ids sort by their bytes, whatever language the database speaks. */
static const struct {
    const char *word, *ours;
} words[] = {
    {" STRICT, WITHOUT ROWID", ""                  },
    {" STRICT",                ""                  },
    {"INTEGER",                "BIGINT"            },
    {"BLOB",                   "BYTEA"             },
    {"TEXT",                   "TEXT COLLATE \"C\""},
};

static void translate(const char *text, struct buf *ret)
{
    while (*text) {
        size_t i = 0;
        while (i < COUNT(words) && strncmp(text, words[i].word, strlen(words[i].word)) != 0)
            i++;
        if (i < COUNT(words))
            buf_printf(ret, "%s", words[i].ours);
        else
            buf_printf(ret, "%c", *text);
        text += i < COUNT(words) ? strlen(words[i].word) : 1;
    }
}

static int step(void *conn, const struct schema_step *s, const char *text, struct err *e)
{
    AUTO(buf_done) struct buf ours = BUF(TEXT_MAX);

    translate(text, &ours);
    if (s->postgres)
        buf_printf(&ours, "%s", s->postgres);
    if (buf_check(&ours, e) < 0)
        return -1;
    return exec(conn, ours.p, e);
}

const struct schema_ops postgres_schema = {
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .version = version,
    .set_version = set_version,
    .has_table = has_table,
    .step = step,
};
