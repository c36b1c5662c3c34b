/*
 * store: what must outlive the process. Rows in a database, bytes in blobs.
 *
 * Touches: one database, one directory of blobs or a bucket of S3, threads of its
 * own. Never touches: the engine, clients, sandboxes, policy.
 *
 * store_open(), then store_run(fn, done): fn runs on the store's thread inside a
 * transaction, against the blocking calls of struct db; done comes from the loop
 * when the transaction is committed, or with the error that undid it. Jobs run
 * in the order given; those that wait together are committed together. Blob calls
 * block, too: make them from a worker (loop_work), never from the loop.
 *
 * Every lookup of something a tenant owns is by (tenant, id). A row's strings are
 * owned by the row; <row>_done() frees them and accepts a zeroed row. A list is an
 * array: <row>_done() for each, then free(). After a failure it is NULL.
 */
#pragma once

#include "base/base.h"

struct loop;
struct store;
struct db;

/* When what a job has written is kept. PROCESS: from then on it outlives this process; a power cut
 * may take what was written in the last 200 ms, but never keys, approvals, pools and uploads.
 * POWER: it outlives a power cut, too. In PostgreSQL both do; POWER waits for its synchronous
 * standbys as well, and PROCESS for those only with keys, approvals, pools and uploads. */
enum durability { DURABLE_PROCESS, DURABLE_POWER };

/* Blobs in S3, or in a server that speaks its protocol. All strings are borrowed. */
#define S3_SAFE "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./"
struct s3_config {
    const char *bucket;
    const char *prefix;   /* of letters that are S3_SAFE, without a slash at either end; or "" */
    const char *endpoint; /* "https://host", "http://host:port" */
    const char *region;
    bool virtual_host; /* the bucket is part of the host's name, not of the path */
    const char *key_id, *secret;
    const char *token;    /* or NULL */
    const char *ca_file;  /* or NULL: the system's */
    uint64_t cache_bytes; /* of the disk, for copies of blobs */
};
/* Whether these could be right, in their form; ERR_CALLER. */
int s3_config_check(const struct s3_config *c, struct err *e) MUST_CHECK;

/* Several servers with one database: this one. Needs a url and S3 below. All strings are borrowed.
 */
struct node_config {
    const char *name;  /* for people */
    const char *url;   /* where the others reach it */
    uint64_t lease_ms; /* so long after its last sign it counts as gone */
};

struct store_config {
    const char *dir;            /* holds retort.db and blobs/; made when missing, mode 0700 */
    const struct s3_config *s3; /* or NULL: blobs on the disk. Then dir has a cache of them */
    uint64_t reserve; /* bytes of the disk that blobs leave to the database and to others; 0: 512
                         MiB, or a twentieth of a small disk */
    enum durability durability;
    const char *url;      /* postgresql://...: the rows are there, and not in dir; or NULL */
    const char *password; /* for it; or NULL: libpq finds it where its programs do */
    const struct node_config *node; /* or NULL: no other server may use the database meanwhile */
};

/* Whether such a URL can be used; ERR_CALLER says why not. Asks nobody. */
int store_url_check(const char *url, struct err *e) MUST_CHECK;
bool store_url_is(const char *url); /* it begins like one */

/* Opens or makes the database and brings it to this version's schema. A database from a newer
 * version is refused, and so is, with a loop, a directory that another process serves from.
 * Blocks: at start only. */
struct store *store_open(struct loop *l, const struct store_config *config, struct err *e);
/* Runs what was asked for, then closes. The answers still come from the loop. */
void store_close(struct store *s);

/* -1 undoes what fn wrote, nothing else. err.kind tells whose fault it is. So does a write of fn's
 * that fails, whatever fn returns: a database may tell it only when fn is through. */
typedef int store_fn(struct db *db, void *arg, struct err *e);
typedef void store_done_fn(void *arg, const struct err *failed); /* failed NULL: it is kept */
void store_run(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/* The same for what nobody waits for: it begins together with the next job of the others, or 20 ms
 * later. logged: what it writes is what the log has taken last, see store_log_exec(). */
void store_run_soon(struct store *s, bool logged, store_fn *fn, store_done_fn *done, void *arg);
/* The same as store_run(), blocking: for the command line, which has no loop (store_open with l
 * NULL: fn then runs on the caller's thread), and for a server's start. */
int store_call(struct store *s, store_fn *fn, void *arg, struct err *e) MUST_CHECK;

/* From a store_fn: what this job writes is on the disk before done comes. */
void db_must_sync(struct db *db);

/* Whether nothing more is taken: *e says why, ERR_FULL for the disk, ERR_AWAY for S3. What could
 * not be kept should not be begun. It gets over that by itself. From any thread; costs one system
 * call.
 */
bool store_is_full(struct store *s, struct err *e);
/* Whether it takes no more blobs; for some time before it is full. */
bool store_is_low(struct store *s);
/* So much is written that is not on the disk that who has much more to write waits: the disk would
 * be busy with it while others need little of it. */
bool store_is_behind(struct store *s);

struct store_counts {
    uint64_t flushes, flush_failures; /* groups of writes that reached the disk, or did not */
    bool unflushed;                   /* something that was written is not on the disk yet */
    uint64_t batches, jobs;           /* transactions, and what was done in them */
    uint64_t batch_us;                /* how long those took together */
};
struct store_counts store_counts(struct store *s); /* from any thread */

/* --- ids --- */

/* A prefix, "sess_" and the like with its underscore, then 28 characters of base 32: the time, so
 * that ids sort in the order they were made, and 85 random bits. */
#define ID_MAX 40
void id_make(char ret[ID_MAX], const char *prefix);
/* Whether it could be one of ours: prefix, length, alphabet. */
bool id_is(struct str id, const char *prefix);
/* When one that id_is() of ours was made: the milliseconds of its time. */
int64_t id_ms(struct str id);
/* The same of any text; 0: it has not the shape of an id. */
int64_t id_time(struct str id);

/* --- nodes: servers that share a database (postgres_nodes.c). The clock is the database's. --- */

struct node_row {
    char id[ID_MAX];  /* "writer_..." */
    char *name, *url; /* owned */
    int64_t left_ms;  /* of its lease; below 0: it is over, and nobody has taken over yet */
    int64_t homes;    /* tenants that live there */
    char
        *room; /* owned, or NULL: none. A JSON object: sandboxes it may still have, by their pool */
    int64_t lent;  /* sandboxes it has for tenants of other nodes */
    int64_t taken; /* not of the database: of its room, by us since this was read */
};
void node_row_done(struct node_row *r);

/* Whether the store is shared: all below is for such a store alone. Closing it
 * lets go of our tenants. */
bool store_has_nodes(const struct store *s);
const char *store_node(const struct store *s); /* our id */
/* The lease holds until then, by our own clock: afterwards store_is_full(). From any thread. */
void store_lease(struct store *s, int64_t until_us);
bool store_lease_holds(struct store *s, struct err *e);
/* Another node has taken over what was ours. Nothing can be written any more, for ever: a process
 * that finds this ends. */
bool store_is_fenced(struct store *s);

/* Our lease begins anew; room and lent as in our row. 0: another node has taken over; 1, -1. */
int db_node_renew(struct db *db, const char *room, int64_t lent, struct err *e) MUST_CHECK;
/* Nodes whose lease is over, or those that have had our URL: they cannot write any more, and nobody
 * lives there from here on. Returns how many. */
int db_node_bury(struct db *db, bool same_url, struct err *e) MUST_CHECK;
/* By name. */
int db_node_list(struct db *db, struct node_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* Where a tenant lives: here, if it lived nowhere and takes is true. 1: ret_node is set; 0:
 * nowhere, or another node is taking it just now. */
int db_home_find(struct db *db, const char *tenant, bool takes, char ret_node[ID_MAX],
                 struct err *e) MUST_CHECK;
/* Tenants who live nowhere, and for whom something is to be done without being asked: runs of the
 * agent, items of this kind and parent, executions that ended with their node, sessions that
 * expired before now_ms. Owned, each of them, too. */
int db_home_wanted(struct db *db, const char *kind, const char *parent, int64_t now_ms,
                   size_t limit, char ***ret, size_t *ret_count, struct err *e) MUST_CHECK;

/* --- keys: a secret is shown once and only its SHA-256 is kept --- */

struct key_row {
    char id[ID_MAX]; /* "key_..." */
    char *tenant;    /* owned */
    char *name;      /* owned: what it is for, in the operator's words */
    char hint[16];   /* the first characters of the secret, to tell keys apart */
    uint8_t hash[32];
    bool admin;                              /* may manage keys and see every tenant's audit log */
    bool approver;                           /* may decide approvals of its tenant */
    int64_t created_ms, used_ms, revoked_ms; /* 0: never */
    /* What it is limited to. */
    char *pools;        /* owned: names, comma-separated, in order; or NULL: any pool */
    char *doors;        /* owned: the same of doors and their parts ("azure/mcp"); or NULL: any */
    bool read_only;     /* it changes nothing and runs nothing */
    int64_t expires_ms; /* 0: never */
};
void key_row_done(struct key_row *r);

/* A new secret "rt_..." of 240 random bits, and its row ready for db_key_put(). */
#define KEY_SECRET_MAX 64
void key_make(struct key_row *ret, char ret_secret[KEY_SECRET_MAX], const char *tenant,
              const char *name, bool admin);
void key_hash(struct str secret, uint8_t ret[32]);

/* What is done to a key is on the disk before done comes: no power cut brings a revoked one back.
 */
int db_key_put(struct db *db, const struct key_row *r, struct err *e) MUST_CHECK;
/* All of them, revoked ones too, oldest first. */
int db_key_list(struct db *db, struct key_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* 1: there is a key with this hash; 0: there is none. */
int db_key_is_there(struct db *db, const uint8_t hash[32], struct err *e) MUST_CHECK;
/* 1 done, 0 there is no such key, -1 failed. The first time of several counts. */
int db_key_revoke(struct db *db, const char *id, int64_t now_ms, struct err *e) MUST_CHECK;
int db_key_used(struct db *db, const char *id, int64_t now_ms, struct err *e) MUST_CHECK;

#define HASH_HEX 65 /* SHA-256 in hex and its NUL */

/* --- sessions --- */

/* What a client has not been told yet. Variables are gone; so is what was changed outside of the
 * workspace since the session last slept; or all that was there. */
enum session_lost { LOST_NOTHING, LOST_VARIABLES, LOST_CHANGES, LOST_HOME };

struct session_row {
    char id[ID_MAX]; /* "sess_..." */
    char *tenant;    /* owned */
    char *pool;      /* owned */
    char *name;      /* owned, or NULL: the client's own name for it, unique per tenant and pool */
    char *metadata;  /* owned, or NULL: a JSON object of the client's */
    char *env;       /* owned, or NULL: a JSON object of strings; never shown or logged */
    int state;       /* the service's enum */
    int64_t created_ms, used_ms;
    int64_t idle_ms;     /* without use for this long: the interpreter goes */
    int64_t lifetime_ms; /* so long after created_ms at the latest, too */
    int64_t expires_ms;  /* when the workspace goes, too */
    int64_t executions;  /* how many there have been */
    int lost;            /* enum session_lost */
    char home[HASH_HEX]; /* a blob: what else it keeps while it sleeps; "": nothing */
};
void session_row_done(struct session_row *r);
void session_row_copy(struct session_row *ret, const struct session_row *r);

/* How far a list has been read. One call looks at a thousand rows at most, however few of them are
 * wanted, so that no other job waits for the end of a long list; it returns 1 when there are more
 * to look at, and the next call goes on with the same rows. Zeroed at first. */
struct progress {
    int64_t ms;    /* of the last row that was looked at: its created_ms */
    char *id;      /* owned, or NULL: nothing was looked at */
    uint64_t seen; /* rows that are wanted, among those looked at */
};
void progress_done(struct progress *p);

struct page {
    const char *after; /* id of the last one seen, or NULL; ERR_CALLER when it is not there */
    size_t limit;
    int64_t after_ms; /* its created_ms where that is known, else 0: then it need not be there */
    struct progress *progress; /* borrowed, or NULL: the whole page in one call */
    bool newer; /* of files alone: what is newer than it, and next to it; newest first, too */
    const char *pools; /* comma-separated: what is of one of these pools, or NULL: any. Of files:
                          what was made by a key of exactly these pools */
    /* Of sessions alone. */
    const char *pool; /* of this pool; NULL: of any */
    const char
        *name_prefix; /* whose name begins so, "" for any name; NULL: with a name or without */
    size_t skip;      /* so many of these are left out first; of items, too */
};

/* Or replaces; id, tenant, pool and created_ms stay. ERR_CONFLICT when the name is taken. */
int db_session_put(struct db *db, const struct session_row *r, struct err *e) MUST_CHECK;
/* The same, but one that is there already stays as it is. */
int db_session_add(struct db *db, const struct session_row *r, struct err *e) MUST_CHECK;
/* 1 found, 0 not, -1 failed. */
int db_session_get(struct db *db, const char *tenant, const char *id, struct session_row *ret,
                   struct err *e) MUST_CHECK;
int db_session_named(struct db *db, const char *tenant, const char *pool, const char *name,
                     struct session_row *ret, struct err *e) MUST_CHECK;
/* Newest first. This list and the others: 0, or 1 as struct progress says. */
int db_session_list(struct db *db, const char *tenant, struct page page, struct session_row **ret,
                    size_t *ret_count, struct err *e) MUST_CHECK;
/* Of nobody from here on, and expired: the rest of it can be deleted bit by bit. 1 or 0 as above.
 */
int db_session_bury(struct db *db, const char *tenant, const char *id, struct err *e) MUST_CHECK;
/* With its saved files; executions stay. 1 or 0 as above. */
int db_session_delete(struct db *db, const char *tenant, const char *id, struct err *e) MUST_CHECK;
/* Every tenant's whose expires_ms is past, oldest first: for the sweep. */
int db_session_expired(struct db *db, int64_t now_ms, size_t limit, struct session_row **ret,
                       size_t *ret_count, struct err *e) MUST_CHECK;
/* Every tenant's of this pool. */
int db_session_in_pool(struct db *db, const char *pool, size_t limit, struct session_row **ret,
                       size_t *ret_count, struct err *e) MUST_CHECK;
/* tenant NULL, here and below: every tenant's. */
int db_session_count(struct db *db, const char *tenant, uint64_t *ret, struct err *e) MUST_CHECK;
/* What was live in a process that is gone is asleep now, with LOST_CHANGES. Returns how many. */
int db_session_all_asleep(struct db *db, const char *tenant, int live_state, int asleep_state,
                          struct err *e) MUST_CHECK;

/* --- files of a workspace, as saved --- */

struct space_row {
    char *path; /* owned: any bytes but NUL */
    char hash[HASH_HEX];
    uint64_t size;
    uint32_t mode;    /* permission bits */
    int64_t mtime_ms; /* of the file */
};
void space_row_done(struct space_row *r);

/* Or replaces. ERR_MISSING when the session is gone. */
int db_space_put(struct db *db, const char *session, const struct space_row *r,
                 struct err *e) MUST_CHECK;
/* 1, 0, -1. */
int db_space_drop(struct db *db, const char *session, struct str path, struct err *e) MUST_CHECK;
int db_space_get(struct db *db, const char *session, struct str path, struct space_row *ret,
                 struct err *e) MUST_CHECK; /* 1, 0, -1 */
/* limit of them, whichever. How many there were. */
int db_space_drop_some(struct db *db, const char *session, size_t limit, struct err *e) MUST_CHECK;
/* At most limit of them, by path, after this one (empty: from the first). */
int db_space_next(struct db *db, const char *session, struct str after, size_t limit,
                  struct space_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* By path. */
int db_space_list(struct db *db, const char *session, struct space_row **ret, size_t *ret_count,
                  struct err *e) MUST_CHECK;

/* --- executions: the audit log --- */

struct exec_row {
    char id[ID_MAX];            /* "exec_..." */
    char *tenant;               /* owned */
    char *session;              /* owned */
    char *pool;                 /* owned */
    char *key;                  /* owned, or NULL: the id of the key that asked */
    char *request;              /* owned: request id */
    char *door;                 /* owned: "rest", "mcp", ... */
    char *kind;                 /* owned: "cell" or "command" */
    char *approval;             /* owned, or NULL: the id of the approval it ran by */
    char *code;                 /* owned */
    char *status;               /* owned: an outcome's name, "queued" or "running" */
    char *outcome;              /* owned, or NULL: JSON as record_outcome() gives it */
    char *events;               /* owned, or NULL: JSON array; NULL also when it is in a blob */
    char events_hash[HASH_HEX]; /* or "" */
    int64_t created_ms, started_ms, ended_ms;
};
void exec_row_done(struct exec_row *r);
void exec_row_copy(struct exec_row *ret, const struct exec_row *r);

/* Or replaces what came of it: status, outcome, events, started_ms and ended_ms. Who asked for
 * what, and when, stays as it was first put. */
int db_exec_put(struct db *db, const struct exec_row *r, struct err *e) MUST_CHECK;
int db_exec_get(struct db *db, const char *tenant, const char *id, struct exec_row *ret,
                struct err *e) MUST_CHECK; /* 1, 0, -1 */

/* From the loop: writes the end of an execution, and how often its session was used, where it
 * outlives this process, with one system call. Who gets true may tell of it, and gives the rows to
 * store_run_soon(). False: it is not written (it is long, or there is no such place: PostgreSQL,
 * DURABLE_POWER, a full disk), and whoever tells of it waits for a job, as always. */
bool store_log_exec(struct store *s, const struct exec_row *x, const struct session_row *n);
/* The same for a new session. One with a name waits for a job always: only the database knows
 * whether the name is taken. */
bool store_log_session(struct store *s, const struct session_row *n);
/* Before anybody hears that a session was deleted: no crash brings it back. */
void store_log_strike(struct store *s, const char *session);
/* A job of store_run_soon() has failed, which ends this; now its rows are written in another way.
 */
void store_log_mend(struct store *s);

struct exec_filter {
    const char *tenant;         /* NULL: everybody's, for an admin */
    const char *session;        /* NULL: any */
    const char *status, *key;   /* NULL: any */
    int64_t since_ms, until_ms; /* of created_ms: from, and before; 0: open */
    bool oldest_first;          /* for the export */
};
/* Without events and code unless whole. Newest first unless the filter says otherwise. */
int db_exec_list(struct db *db, const struct exec_filter *f, struct page page, bool whole,
                 struct exec_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* What one that still runs has said, group by group: JSON objects with commas between them. */
int db_exec_output_put(struct db *db, const char *exec, int64_t group, const char *events,
                       struct err *e) MUST_CHECK;
int db_exec_output_drop(struct db *db, const char *exec, struct err *e) MUST_CHECK;
/* What a dead process left running has the status "session_lost", this outcome, and the events that
 * were put as its output. Returns how many. */
int db_exec_all_lost(struct db *db, const char *tenant, int64_t now_ms, const char *outcome,
                     struct err *e) MUST_CHECK;
/* Older than this: gone. Returns how many. */
int db_exec_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e) MUST_CHECK;

/* --- approvals: what a person is asked before code runs --- */

/* Each is only ever followed by a later one. */
enum approval_state {
    APPROVAL_PENDING,
    APPROVAL_APPROVED,
    APPROVAL_DECLINED,
    APPROVAL_EXPIRED,
    APPROVAL_USED, /* approved, and taken by the one call it was for */
    APPROVAL__STATES
};

struct approval_row {
    char id[ID_MAX];    /* "apr_..." */
    char *tenant;       /* owned */
    char *key;          /* owned: the id of the asker's key; "" without one */
    char *pool;         /* owned */
    char *session;      /* owned: "" as long as there is none */
    char *conversation; /* owned: the door's, or "" */
    char *tool;         /* owned */
    char *door;         /* owned */
    char *request;      /* owned: request id */
    uint8_t digest[32]; /* of all that is asked for: it stands for nothing else */
    bool lasting;       /* approved, it is for the tool in this session and conversation */
    int state;          /* enum approval_state */
    char *decided_by;   /* owned, or NULL: id of the key; "" without one */
    char *decided_how;  /* owned, or NULL: "client" or "approver" */
    char *reason;       /* owned, or NULL: in the words of the person who decided */
    char *execution;    /* owned, or NULL: the last that ran by it */
    int64_t created_ms;
    int64_t expires_ms; /* pending, or approved and not taken yet: until then */
    int64_t decided_ms; /* 0: not yet */
    int64_t taken_ms;   /* the asker has heard of the decision; 0: not yet */
    int64_t text_chars; /* of the whole text */
    char *text;         /* owned: its beginning */
};
void approval_row_done(struct approval_row *r);

/* Or replaces what may change: session, conversation, lasting, state, who decided, execution,
 * expires_ms, decided_ms and taken_ms. On the disk before done comes. */
int db_approval_put(struct db *db, const struct approval_row *r, struct err *e) MUST_CHECK;
int db_approval_get(struct db *db, const char *tenant, const char *id, struct approval_row *ret,
                    struct err *e) MUST_CHECK; /* 1, 0, -1 */
/* The newest of this key's with this digest that is open or decided, and not taken: 1, 0, -1. */
int db_approval_open(struct db *db, const char *tenant, const char *key, const uint8_t digest[32],
                     int64_t now_ms, struct approval_row *ret, struct err *e) MUST_CHECK;
/* One that lasts, for this tool in this session or conversation ("" is none): 1, 0, -1. */
int db_approval_lasting(struct db *db, const char *tenant, const char *key, const char *tool,
                        const char *pool, const char *session, const char *conversation,
                        struct approval_row *ret, struct err *e) MUST_CHECK;
int db_approval_count(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret_pending,
                      struct err *e) MUST_CHECK;
/* Newest first. state -1: any. */
int db_approval_list(struct db *db, const char *tenant, int state, struct page page,
                     struct approval_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* Those whose expires_ms is past are expired. Returns how many. */
int db_approval_expire(struct db *db, int64_t now_ms, struct err *e) MUST_CHECK;
/* Older than this: gone. Returns how many. */
int db_approval_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e) MUST_CHECK;

/* --- pools that were made while a server ran --- */

struct pool_row {
    char *name;     /* owned */
    char *settings; /* owned: a JSON object of the service's; may hold secrets of its users */
    char *document; /* owned, or NULL: a JSON object of the door that made it */
    int64_t created_ms, updated_ms;
};
void pool_row_done(struct pool_row *r);

/* Or replaces; created_ms stays. On the disk before done comes. */
int db_pool_put(struct db *db, const struct pool_row *r, struct err *e) MUST_CHECK;
/* Oldest first. */
int db_pool_list(struct db *db, struct pool_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
int db_pool_delete(struct db *db, const char *name, struct err *e) MUST_CHECK; /* 1, 0, -1 */

/* A key that managers of the pool can read again, so its secret is stored. */
struct pool_key_row {
    char *pool;   /* owned */
    char *tenant; /* owned: whose key it is */
    char *key;    /* owned: its id */
    char *secret; /* owned */
};
void pool_key_row_done(struct pool_key_row *r);

int db_pool_key_put(struct db *db, const struct pool_key_row *r, struct err *e) MUST_CHECK;
int db_pool_key_get(struct db *db, const char *pool, const char *tenant, struct pool_key_row *ret,
                    struct err *e) MUST_CHECK; /* 1, 0, -1 */

/* --- loops: what an agent does about a request in plain words --- */

struct loop_row {
    char id[ID_MAX];              /* "toolu_..." */
    char *tenant;                 /* owned */
    char *owner;                  /* owned: the end user of the tenant, or "" */
    char *status;                 /* owned */
    int64_t created_ms, ended_ms; /* ended_ms 0: it goes on */
    char *record;                 /* owned: a JSON object of the agent's */
    char *events;                 /* owned: a JSON array of the same */
    char *pool;                   /* owned, or NULL: the pool it works in, once that is known */
};
void loop_row_done(struct loop_row *r);

/* Or replaces what may change: status, ended_ms, record, events and pool. */
int db_loop_put(struct db *db, const struct loop_row *r, struct err *e) MUST_CHECK;
int db_loop_get(struct db *db, const char *tenant, const char *id, struct loop_row *ret,
                struct err *e) MUST_CHECK; /* 1, 0, -1 */
/* What goes on, oldest first. */
int db_loop_unfinished(struct db *db, const char *tenant, size_t limit, struct loop_row **ret,
                       size_t *ret_count, struct err *e) MUST_CHECK;
/* Ended before this: gone. Returns how many. */
int db_loop_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e) MUST_CHECK;

/* --- files: uploaded once, used in many sessions --- */

struct file_row {
    char id[ID_MAX]; /* "file_..." */
    char *tenant;    /* owned */
    char *name;      /* owned */
    char *mime;      /* owned */
    char hash[HASH_HEX];
    uint64_t size;
    int64_t created_ms;
    int64_t expires_ms; /* 0: never */
    bool downloadable;  /* made by code; uploads need not be */
    char *pools; /* owned, or NULL: of the key that made it, which was limited to these pools */
};
void file_row_done(struct file_row *r);

int db_file_put(struct db *db, const struct file_row *r, struct err *e) MUST_CHECK;
int db_file_get(struct db *db, const char *tenant, const char *id, struct file_row *ret,
                struct err *e) MUST_CHECK; /* 1, 0, -1 */
/* Newest first, without those whose expires_ms is past. */
int db_file_list(struct db *db, const char *tenant, int64_t now_ms, struct page page,
                 struct file_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* The sizes of all that have not expired, summed up. */
int db_file_bytes(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret,
                  struct err *e) MUST_CHECK;
/* 1, 0, -1. */
int db_file_delete(struct db *db, const char *tenant, const char *id, struct err *e) MUST_CHECK;
/* Those whose expires_ms is past lose their bytes (hash is then ""); those whose it was before
 * forget_ms are gone. Returns how many there were of the kind that had more; limit is of each. */
int db_file_expire(struct db *db, int64_t now_ms, int64_t forget_ms, size_t limit,
                   struct err *e) MUST_CHECK;

/* --- items: what a door keeps of its own --- */

struct item_row {
    char *id;            /* owned: of its kind and tenant */
    char *tenant, *kind; /* owned */
    char *owner;         /* owned: whose of the tenant's, or "" */
    char *parent;        /* owned: what it belongs to, or "" */
    char hash[HASH_HEX]; /* of bytes that are kept with it, or "" */
    uint64_t size;       /* of those bytes; without them, of the body */
    int64_t created_ms, updated_ms;
    int64_t expires_ms; /* 0: never */
    char *body;         /* owned: JSON of the door's */
    char *pools; /* owned, or NULL: of the key that made it, which was limited to these pools */
};
void item_row_done(struct item_row *r);

enum item_view { ITEMS_ALL, ITEMS_OWN, ITEMS_OWN_AND_COMMON };
struct item_filter {
    const char *tenant, *kind;
    enum item_view view;
    const char *owner;  /* whose view it is */
    const char *parent; /* NULL: any */
    struct page page;   /* where there is an `after` its after_ms is known */
    bool count;         /* reads on to the end, for progress.seen to be how many there are */
};

/* Or replaces; id, tenant, kind, owner, pools and created_ms stay. */
int db_item_put(struct db *db, const struct item_row *r, struct err *e) MUST_CHECK;
int db_item_get(struct db *db, const char *tenant, const char *kind, const char *id,
                struct item_row *ret, struct err *e) MUST_CHECK; /* 1, 0, -1 */
/* Newest first. */
int db_item_list(struct db *db, const struct item_filter *f, struct item_row **ret,
                 size_t *ret_count, struct err *e) MUST_CHECK;
/* How many of this kind. */
int db_item_count(struct db *db, const char *tenant, const char *kind, uint64_t *ret,
                  struct err *e) MUST_CHECK;
/* What all items of a tenant hold. */
int db_item_bytes(struct db *db, const char *tenant, uint64_t *ret, struct err *e) MUST_CHECK;
/* Of this kind and parent, oldest first. tenant NULL: every tenant's. */
int db_item_everybodys(struct db *db, const char *tenant, const char *kind, const char *parent,
                       size_t limit, struct item_row **ret, size_t *ret_count,
                       struct err *e) MUST_CHECK;
int db_item_delete(struct db *db, const char *tenant, const char *kind, const char *id,
                   struct err *e) MUST_CHECK; /* 1, 0, -1 */
/* Those whose expires_ms is past: gone. Returns how many. */
int db_item_expire(struct db *db, int64_t now_ms, size_t limit, struct err *e) MUST_CHECK;

/* --- blobs: bytes by what they are --- */

/* A blob on its way in. It has no name until it is whole, so a crash leaves nothing. Used by one
 * thread at a time. */
struct blob;
struct blob *blob_new(struct store *s, uint64_t max, struct err *e);
/* ERR_LIMIT past max; ERR_FULL, as blob_new(), when the disk is nearly full. */
int blob_write(struct blob *b, struct str bytes, struct err *e) MUST_CHECK;
/* All of fd from its start. */
int blob_write_fd(struct blob *b, int fd, struct err *e) MUST_CHECK;
/* Its first bytes, as far as they are there; how many, or -1. */
ssize_t blob_peek(const struct blob *b, char *ret, size_t size);
/* When the bytes of a blob reach the disk; always before a row that names it. LATER: with that row,
 * unless they are many bytes.
 * NOW: before blob_keep() returns, or with the job that must be on the disk, so that no other job
 * waits for them. MANY: when its caller calls blobs_settle(), before a row names it. */
enum blob_sync { BLOB_LATER, BLOB_NOW, BLOB_MANY };
/* Names it and frees b in any case. With S3 it is there when this returns, and ERR_AWAY when it is
 * not. */
int blob_keep(struct blob *b, enum blob_sync when, char ret_hash[HASH_HEX], uint64_t *ret_size,
              struct err *e) MUST_CHECK;
/* From a worker: all blobs that are kept are on the disk. */
int blobs_settle(struct store *s, struct err *e) MUST_CHECK;
void blob_free(struct blob *b);
/* A new file without a name, on the disk of the blobs: an owned fd, or -1. From any thread. */
int store_spool(struct store *s, struct err *e) MUST_CHECK;
/* An owned fd for reading, or -1. ERR_MISSING when it is not there; ERR_DAMAGED when its bytes are
 * not those that were put; ERR_AWAY. Reads all of it, unless that was done a while ago. */
int blob_open(struct store *s, const char *hash, struct err *e) MUST_CHECK;
/* From a store_fn that is about to take a blob's name away and to name it again. */
int db_blob_hold(struct db *db, const char *hash, struct err *e) MUST_CHECK;
/* Removes blobs that no row names and that nobody has put or opened for an hour, or for some
 * seconds while the disk is nearly full, when the job that calls it is committed. Returns how many.
 * Of a large store it looks at a part, and goes on from there the next time. */
int blob_sweep(struct store *s, struct db *db, struct err *e) MUST_CHECK;

/* --- a copy: rows and blobs of one place, to another --- */

/* A state directory, a database, a bucket, or the last two. All strings are borrowed. */
struct store_place {
    const char *shown;          /* as the operator says it; a copy that goes on must say the same */
    const char *dir;            /* rows are in its retort.db and blobs in its blobs/; or NULL: */
    const char *url, *password; /* rows; or NULL */
    const struct s3_config *s3; /* blobs; or NULL */
};

struct store_copied {
    uint64_t rows, blobs, bytes;
    uint64_t damaged; /* blobs of `from` that are not what they should be */
};

struct store_copy_watch {
    /* what: "files" and the like. total 0: not known. Often. */
    void (*on_progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void (*on_damaged)(void *arg, const char *hash);
    void *arg;
};

/* Copies what both places can hold. One of them is a directory. Nobody else may use either: the
 * caller has locked the directory. `to` is empty, or has the beginning of the same copy, which is
 * then ended. Each row and each byte in `to` is read and compared in the end; until that was good
 * no server takes `to` for whole. Blocks for as long as it takes. */
int store_copy(const struct store_place *from, const struct store_place *to,
               const struct store_copy_watch *watch, struct store_copied *ret,
               struct err *e) MUST_CHECK;

/* --- probes: for a person who sets up a database or a bucket --- */

enum store_state { STORE_GOOD, STORE_WEAK, STORE_BAD };
struct store_finding {
    const char *name;
    enum store_state state;
    char detail[400];
    const char *remedy; /* where it is not good; or NULL */
};
typedef void store_finding_fn(void *arg, const struct store_finding *f);

/* Tell what they find, one after the other, and stop where nothing more can be found. They block.
 */
void store_probe_rows(const char *url, const char *password, store_finding_fn *fn, void *arg);
void store_probe_blobs(const struct s3_config *c, store_finding_fn *fn, void *arg);
