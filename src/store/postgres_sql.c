/*
 * Statements of PostgreSQL, in libpq's pipeline mode: what a job writes is sent at once, and its
 * answers are read together later. So a job that only writes costs one round trip in all, not one
 * for each row. When one of these statements fails, the job fails: postgres.c reads all answers
 * before it commits. A statement with a result that the job needs now, a row or a count, is waited
 * for, together with all before it.
 *
 * Outside of a transaction each statement is sent by itself and waited for.
 *
 * Texts are sent and read as their bytes, numbers as eight bytes, the highest first.
 */
#include "store/postgres_int.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define ARGS_MAX 32
#define SQL_MAX  2048
#define ANSWER_MS                                                                                  \
    10000 /* an answer that takes longer does not come: the connection is given up                 \
           */
#define OID_BYTEA   17
#define OID_INT8    20
#define OID_TEXT    25
#define STATE_CHARS 5 /* of an error: SQLSTATE */

/* --- what went wrong --- */

int postgres_away(struct err *e, const char *why)
{
    char line[256];

    snprintf(line, sizeof(line), "%s", why && *why ? why : "it does not answer");
    line[strcspn(line, "\n")] = '\0';
    err_set(e, ERR_AWAY, "the database cannot be reached: %s", line);
    e->retry_s = 1;
    return -1;
}

int postgres_fail(const PGconn *conn, const PGresult *r, struct err *e)
{
    /* The beginning of an SQLSTATE; the first that fits. */
    static const struct {
        const char *state;
        enum err_kind kind;
        int sys;
        const char *text;
    } known[] = {
        {"23505", ERR_CONFLICT, 0,      "it is there already"                            },
        {"23502", ERR_CONFLICT, 0,      "something of another tenant has this id"        },
        {"23503", ERR_MISSING,  0,      "what it belongs to is not there"                },
        {"22021", ERR_CALLER,   0,      "there is a text in it that is not UTF-8"        },
        {"54",    ERR_LIMIT,    0,      "it is larger than a row can be"                 },
        {"40",    ERR_BUSY,     0,      "another process writes to the database"         },
        {"55P03", ERR_BUSY,     0,      "another process writes to the database"         },
        {"53100", ERR_HOST,     ENOSPC, "database: its disk is full"                     },
        {"25006", ERR_AWAY,     0,      "the database is read-only, as a standby is"     },
        {"22012", ERR_AWAY,     0,      "the connection to the database was given up"    },
        {"08",    ERR_AWAY,     0,      "the connection to the database is lost"         },
        {"57P",   ERR_AWAY,     0,      "the database is about to stop, or to start"     },
        {"533",   ERR_AWAY,     0,      "the database has as many clients as it may have"},
    };
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    if (!state || strlen(state) != STATE_CHARS) /* libpq itself: there is nobody at the other end */
        return postgres_away(e, PQerrorMessage(conn));
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strncmp(known[i].state, state, strlen(known[i].state)) != 0)
            continue;
        err_set(e, known[i].kind, "%s", known[i].text);
        e->sys = known[i].sys;
        e->retry_s = known[i].kind == ERR_AWAY;
        return disk_blame(e);
    }
    return err_set(e, ERR_HOST, "database: %s", text ? text : state);
}

static int lose(struct postgres *pg, struct err *e)
{
    postgres_away(e, PQerrorMessage(pg->conn));
    if (pg->broken.kind == ERR_NONE)
        pg->broken = *e;
    return -1;
}

/* --- waiting --- */

/* false: nothing came in time, or the connection is lost. */
static bool wait_for_answer(PGconn *conn, int within_ms)
{
    int64_t until_us = time_mono_us() + within_ms * INT64_C(1000);

    while (PQisBusy(conn)) {
        struct pollfd p = {.fd = PQsocket(conn), .events = POLLIN};
        int64_t left_us = until_us - time_mono_us();
        if (left_us <= 0 || poll(&p, 1, (int)(left_us / 1000) + 1) < 0)
            return false;
        if (p.revents && !PQconsumeInput(conn))
            return false;
    }
    return true;
}

PGresult *postgres_exec(PGconn *conn, int within_ms, const char *text, const char *const *args,
                        int count, struct err *e)
{
    PGresult *r = NULL, *last = NULL;

    if (count == 0 ? !PQsendQuery(conn, text)
                   : !PQsendQueryParams(conn, text, count, NULL, args, NULL, NULL, 0)) {
        postgres_away(e, PQerrorMessage(conn));
        return NULL;
    }
    for (;;) {
        if (!wait_for_answer(conn, within_ms)) {
            postgres_away(e, PQerrorMessage(conn));
            PQclear(last);
            return NULL;
        }
        r = PQgetResult(conn);
        if (!r)
            break;
        if (PQresultStatus(last) == PGRES_FATAL_ERROR && last) {
            PQclear(r);
            continue;
        }
        PQclear(last);
        last = r;
    }
    if (PQresultStatus(last) == PGRES_COMMAND_OK || PQresultStatus(last) == PGRES_TUPLES_OK)
        return last;
    postgres_fail(conn, last, e);
    PQclear(last);
    return NULL;
}

/* --- the pipeline --- */

static void note_failure(struct postgres *pg, const PGresult *r)
{
    if (pg->broken.kind == ERR_NONE)
        postgres_fail(pg->conn, r, &pg->broken);
}

/* Of a statement that was sent; the answer is ours. */
static void take_answer(struct postgres *pg, const struct flight *f, PGresult *r,
                        PGresult **ret_last)
{
    ExecStatusType status = PQresultStatus(r);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;

    if (f->prepares)
        f->prepares->there = good;
    if (!good && status != PGRES_PIPELINE_ABORTED) /* which only follows another */
        note_failure(pg, r);
    if (good && ret_last && !f->prepares) {
        PQclear(*ret_last);
        *ret_last = r;
        return;
    }
    PQclear(r);
}

/* The answer to the next statement in the pipeline, and the NULL that ends it. */
static PGresult *next_answer(struct postgres *pg)
{
    PGresult *r = wait_for_answer(pg->conn, ANSWER_MS) ? PQgetResult(pg->conn) : NULL;

    if (r && PQresultStatus(r) != PGRES_PIPELINE_SYNC && wait_for_answer(pg->conn, ANSWER_MS))
        PQclear(PQgetResult(pg->conn));
    return r;
}

static int read_answers(struct postgres *pg, PGresult **ret_last, struct err *e)
{
    PGresult *r;

    if (!PQpipelineSync(pg->conn))
        return lose(pg, e);
    for (size_t i = 0; i < pg->flying; i++) {
        r = next_answer(pg);
        if (!r)
            return lose(pg, e);
        take_answer(pg, &pg->flights[i], r, ret_last);
    }
    r = next_answer(pg);
    if (!r || PQresultStatus(r) != PGRES_PIPELINE_SYNC) {
        PQclear(r);
        return lose(pg, e);
    }
    PQclear(r);
    return 0;
}

int postgres_settle(struct postgres *pg, PGresult **ret_last, struct err *e)
{
    int rc = 0;

    if (!pg->conn)
        return *e = pg->broken.kind ? pg->broken : pg->why, -1;
    if (pg->flying > 0)
        rc = read_answers(pg, ret_last, e);
    pg->flying = pg->flying_bytes = 0;
    if (rc == 0 && pg->broken.kind) {
        *e = pg->broken;
        rc = -1;
    }
    if (rc < 0 && ret_last) {
        PQclear(*ret_last);
        *ret_last = NULL;
    }
    return rc;
}

static void note_flight(struct postgres *pg, struct flight f)
{
    assert(pg->flying < FLIGHTS_MAX);
    pg->flights[pg->flying++] = f;
}

/* --- sending --- */

/* ?1, ?2 or ? become $1, $2. */
static void translate(const char *text, char *ret, size_t size)
{
    size_t n = 0;
    unsigned number = 0;
    bool quoted = false;

    for (; *text && n + 8 < size; text++) {
        quoted ^= *text == '\'';
        if (*text != '?' || quoted) {
            ret[n++] = *text;
            continue;
        }
        ret[n++] = '$';
        if (text[1] < '0' || text[1] > '9')
            n += (size_t)snprintf(ret + n, size - n, "%u", ++number);
    }
    assert(!*text);
    ret[n] = '\0';
}

static Oid type_of(const struct arg *a)
{
    return a->kind == ARG_TEXT ? OID_TEXT : a->kind == ARG_BYTES ? OID_BYTEA : OID_INT8;
}

static void name_of(const struct postgres *pg, const struct prepared *p, char ret[16])
{
    snprintf(ret, 16, "s%zu", (size_t)(p - pg->cache));
}

/* Prepared on this connection when the pipeline comes to it; NULL: the connection is lost. */
static struct prepared *find(struct postgres *pg, const char *text, const struct arg *args,
                             size_t count)
{
    struct prepared *p = pg->cache;
    char sql[SQL_MAX], name[16];
    Oid types[ARGS_MAX];

    while (p < pg->cache + pg->cached && strcmp(p->text, text) != 0)
        p++;
    if (p == pg->cache + pg->cached) {
        assert(pg->cached < STATEMENTS_MAX);
        pg->cached++;
        *p = (struct prepared){.text = mem_strdup(text)};
    }
    if (p->there)
        return p;
    for (size_t i = 0; i < count; i++)
        types[i] = type_of(&args[i]);
    translate(text, sql, sizeof(sql));
    name_of(pg, p, name);
    if (!PQsendPrepare(pg->conn, name, sql, (int)count, types))
        return NULL;
    note_flight(pg, (struct flight){.prepares = p});
    p->there = true; /* or its answer says otherwise */
    return p;
}

static int send_args(struct postgres *pg, const struct prepared *p, const struct arg *args,
                     size_t count)
{
    static const int binary[ARGS_MAX] = {[0 ... ARGS_MAX - 1] = 1};
    const char *values[ARGS_MAX];
    int lengths[ARGS_MAX];
    uint64_t numbers[ARGS_MAX];
    char name[16];

    for (size_t i = 0; i < count; i++) {
        struct str bytes = args[i].bytes;
        if (args[i].kind == ARG_TEXT)
            bytes = (struct str){args[i].text, args[i].text ? strlen(args[i].text) : 0};
        if (args[i].kind == ARG_NUMBER) {
            numbers[i] = htobe64((uint64_t)args[i].number);
            bytes = (struct str){(const char *)&numbers[i], sizeof(numbers[i])};
        }
        values[i] = bytes.p;
        lengths[i] = (int)bytes.n;
        pg->flying_bytes += bytes.n;
    }
    name_of(pg, p, name);
    return PQsendQueryPrepared(pg->conn, name, (int)count, values, lengths, binary, 1);
}

/* Lengths are ints for libpq, and the protocol's messages no longer than that. */
static int check_size(const struct arg *args, size_t count, struct err *e)
{
    size_t all = 0;

    for (size_t i = 0; i < count; i++)
        all += args[i].kind == ARG_TEXT && args[i].text ? strlen(args[i].text) : args[i].bytes.n;
    return all > 1000 * MiB ? err_set(e, ERR_LIMIT, "it is larger than a row can be") : 0;
}

int postgres_send(struct postgres *pg, const char *text, const struct arg *args, size_t count,
                  struct err *e)
{
    struct prepared *p;

    assert(count <= ARGS_MAX);
    if (pg->in_transaction && pg->broken.kind) { /* nothing more counts in it */
        *e = pg->broken;
        return -1;
    }
    if (!pg->conn) {
        *e = pg->why;
        return -1;
    }
    if (check_size(args, count, e) < 0) {
        pg->broken = *e;
        return -1;
    }
    if ((pg->flying + 2 > FLIGHTS_MAX || pg->flying_bytes > FLIGHTS_BYTES) &&
        postgres_settle(pg, NULL, e) < 0)
        return -1;
    p = find(pg, text, args, count);
    if (!p || !send_args(pg, p, args, count))
        return lose(pg, e);
    note_flight(pg, (struct flight){0});
    return 0;
}

/* --- the table --- */

/* Outside of a transaction nothing that failed stands in the way of the next statement. */
static void begin_alone(struct postgres *pg)
{
    if (!pg->in_transaction)
        pg->broken = (struct err){0};
}

static int run(struct db *db, const char *text, const struct arg *args, size_t count, struct err *e)
{
    struct postgres *pg = postgres_of(db);
    PGresult *r = NULL;
    int changed;

    begin_alone(pg);
    pg->wrote = true;
    if (postgres_send(pg, text, args, count, e) < 0 || postgres_settle(pg, &r, e) < 0)
        return -1;
    changed = (int)strtol(PQcmdTuples(r), NULL, 10);
    PQclear(r);
    return changed;
}

static int post(struct db *db, const char *text, const struct arg *args, size_t count,
                struct err *e)
{
    struct postgres *pg = postgres_of(db);

    begin_alone(pg);
    pg->wrote = true;
    if (postgres_send(pg, text, args, count, e) < 0)
        return -1;
    return pg->in_transaction ? 0 : postgres_settle(pg, NULL, e);
}

struct answer {
    PGresult *r; /* owned */
    int row;
};

static struct answer *ask(struct db *db, const char *text, const struct arg *args, size_t count,
                          struct err *e)
{
    struct postgres *pg = postgres_of(db);
    struct answer *a;
    PGresult *r = NULL;

    begin_alone(pg);
    if (postgres_send(pg, text, args, count, e) < 0 || postgres_settle(pg, &r, e) < 0)
        return NULL;
    a = mem_zalloc(sizeof(*a));
    *a = (struct answer){.r = r, .row = -1};
    return a;
}

static int next(struct db *db, struct answer *a, struct err *e)
{
    (void)db;
    (void)e;
    return ++a->row < PQntuples(a->r);
}

static size_t columns(const struct answer *a)
{
    return (size_t)PQnfields(a->r);
}

static struct str bytes(struct answer *a, size_t column)
{
    int at = (int)column;

    if (PQgetisnull(a->r, a->row, at))
        return (struct str){0};
    return (struct str){PQgetvalue(a->r, a->row, at), (size_t)PQgetlength(a->r, a->row, at)};
}

/* Of one byte (a boolean), four or eight. NULL is 0. */
static int64_t number(struct answer *a, size_t column)
{
    struct str b = bytes(a, column);
    uint64_t n = b.n == 4 && (b.p[0] & 0x80) ? UINT64_MAX : 0;

    for (size_t i = 0; i < b.n; i++)
        n = n << 8 | (unsigned char)b.p[i];
    return (int64_t)n;
}

static void close_answer(struct answer *a)
{
    PQclear(a->r);
    free(a);
}

const struct sql_ops postgres_sql = {
    .run = run,
    .post = post,
    .ask = ask,
    .next = next,
    .columns = columns,
    .bytes = bytes,
    .number = number,
    .close = close_answer,
    .events_joined = "string_agg(events, ',' ORDER BY number)",
    .tables = "SELECT relname::text COLLATE \"C\" FROM pg_class WHERE relkind = 'r'"
              " AND relnamespace = current_schema()::regnamespace ORDER BY 1",
    .columns_of = "SELECT attname::text COLLATE \"C\", CASE format_type(atttypid, NULL)"
                  "  WHEN 'bigint' THEN 0 WHEN 'text' THEN 1 ELSE 2 END,"
                  " coalesce(array_position(indkey::int2[], attnum) + 1, 0)"
                  " FROM pg_attribute LEFT JOIN pg_index ON indrelid = attrelid AND indisprimary"
                  " WHERE attrelid = ?1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1",
};
