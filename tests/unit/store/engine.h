/*
 * Which database the tests of the store use: SQLite in the test's own directory, or, with
 * RETORT_TEST_STORE, the PostgreSQL server of that URL. There each test program makes a database
 * of its own, each test finds it empty, and the end of the program drops it.
 */
#pragma once

#include "store/store.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <unistd.h>

static char engine_url_[512];

static inline void engine_sql(const char *url, const char *text)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *r = PQexec(conn, text);
    ExecStatusType status = PQresultStatus(r);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        print_error("%s: %s\n", text, PQerrorMessage(conn));
    PQclear(r);
    PQfinish(conn);
}

static inline void engine_drop(void)
{
    char text[128];

    snprintf(text, sizeof(text), "DROP DATABASE unit_%d WITH (FORCE)", (int)getpid());
    engine_sql(getenv("RETORT_TEST_STORE"), text);
}

/* A program that the tests fork must not drop what its parent uses. */
static pid_t engine_owner_;
static inline void engine_end(void)
{
    if (getpid() == engine_owner_)
        engine_drop();
}

/* NULL: SQLite. The URL ends with the name of a database: ".../postgres?host=/run". */
static inline const char *engine_url(void)
{
    const char *url = getenv("RETORT_TEST_STORE"), *query;
    char text[128];

    if (!url || *engine_url_)
        return url ? engine_url_ : NULL;
    engine_owner_ = getpid();
    snprintf(text, sizeof(text), "CREATE DATABASE unit_%d", (int)engine_owner_);
    engine_sql(url, text);
    atexit(engine_end);
    query = strchr(url, '?');
    snprintf(engine_url_, sizeof(engine_url_), "postgresql:///unit_%d%s", (int)engine_owner_,
             query ? query : "");
    return engine_url_;
}

/* The text that a query of PostgreSQL gives; its length. */
static inline ssize_t engine_text(const char *query, char *ret, size_t size)
{
    PGconn *conn = PQconnectdb(engine_url());
    PGresult *r = PQexec(conn, query);
    int n = snprintf(ret, size, "%s", PQntuples(r) ? PQgetvalue(r, 0, 0) : PQerrorMessage(conn));

    PQclear(r);
    PQfinish(conn);
    return n;
}

/* Before each test. */
static inline void engine_reset(void)
{
    if (engine_url())
        engine_sql(engine_url(), "SET client_min_messages = warning;"
                                 "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
}

static inline struct store_config engine_config(const char *dir)
{
    return (struct store_config){.dir = dir, .url = engine_url()};
}
