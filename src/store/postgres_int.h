/* Private to PostgreSQL: one connection, and what is under way on it. */
#pragma once

#include "store/sql_int.h"

#include <libpq-fe.h>
#include <stdatomic.h>

#define FLIGHTS_MAX   256
#define FLIGHTS_BYTES (1 * MiB) /* of arguments: then the answers are waited for */

/* A statement that was prepared on this connection. */
struct prepared {
    char *text; /* owned: as the store says it */
    bool there;
};

/* A statement that was sent, and whose answer nobody has read yet. */
struct flight {
    struct prepared *prepares; /* or NULL */
};

struct postgres {
    struct db db;
    char **keywords, **values;  /* owned, each of them, too: how to connect, for libpq */
    bool serves;                /* no other server may use the database meanwhile ... */
    bool shares;                /* ... but for nodes, as we are one: postgres_nodes.c */
    char *node_name, *node_url; /* owned, or NULL */
    uint64_t lease_ms;
    atomic_bool fenced; /* another node has taken over: no connection is any good */
    bool power;         /* DURABLE_POWER */

    PGconn *conn; /* owned, or NULL: away */
    int backend;  /* its process, or that of the connection before; 0: there was none */
    struct prepared cache[STATEMENTS_MAX];
    size_t cached;

    struct flight flights[FLIGHTS_MAX]; /* in the order in which they were sent */
    size_t flying, flying_bytes;
    bool in_transaction;
    bool wrote;        /* this transaction did, or may have */
    struct err broken; /* what failed first in it, or in the job that runs; ERR_NONE: nothing */

    /* postgres.c, "whether it was committed" */
    char writer[ID_MAX];
    int64_t number; /* of the last transaction of ours that is known to be committed */
    int64_t fence;  /* of this connection */

    /* While away. */
    int64_t away_us;  /* since then; 0: it is not */
    int64_t again_us; /* when to try again */
    int64_t pause_ms;
    struct err why;
};

static inline struct postgres *postgres_of(struct db *db)
{
    return (struct postgres *)db; /* its first member */
}

/* --- postgres_sql.c: statements --- */

extern const struct sql_ops postgres_sql;

/* Sends a statement without waiting for its answer. -1: the connection is lost. */
int postgres_send(struct postgres *pg, const char *text, const struct arg *args, size_t count,
                  struct err *e) MUST_CHECK;
/* Waits for all answers. *ret_last: the last one, owned by the caller; or NULL. -1: something
 * failed; the first of it is in pg->broken, too. */
int postgres_settle(struct postgres *pg, PGresult **ret_last, struct err *e) MUST_CHECK;
/* One statement outside of the pipeline, its numbers and texts as text. NULL: failed. */
PGresult *postgres_exec(PGconn *conn, int within_ms, const char *text, const char *const *args,
                        int count, struct err *e);
/* What an answer says went wrong; -1. */
int postgres_fail(const PGconn *conn, const PGresult *r, struct err *e);
int postgres_away(struct err *e, const char *why); /* ERR_AWAY; -1 */

/* --- postgres_nodes.c --- */

/* The last thing of a node: nobody lives there any more. */
void postgres_leave(struct postgres *pg);

/* --- postgres_schema.c --- */

extern const struct schema_ops postgres_schema; /* conn is a PGconn * */

/* --- postgres_url.c: how to connect --- */

/* Owned, each of them, too, with a NULL at the end. */
int postgres_params(const char *url, const char *password, char ***ret_keywords, char ***ret_values,
                    struct err *e) MUST_CHECK;
void postgres_params_free(char **list);
/* A socket of this machine, or its loopback. */
bool postgres_host_is_near(const char *host);
