/* Private to the store: transactions, the columns of each row, the thread. */
#pragma once

#include "store/store.h"

#include <gnutls/crypto.h>
#include <pthread.h>

/* --- what a database does --- */

/* The frame of transactions; the db_* of store.h stand in sql_*.c. Tests put their own here. */
struct db_ops {
    int (*begin)(struct db *db, struct err *e);
    int (*commit)(struct db *db, struct err *e);    /* 1: something was written */
    int (*try_write)(struct db *db, struct err *e); /* something, outside of a transaction */
    int (*sync)(struct db *db, struct err *e); /* what is committed is on the disk; any thread */
    void (*rollback)(struct db *db); /* also when nothing was begun, or all is lost already */
    /* A job's own part of the transaction. -1 from either end: the whole transaction is lost. */
    int (*savepoint)(struct db *db, struct err *e);
    /* 1: it cannot be kept after all, and is undone; *failed says why. */
    int (*release)(struct db *db, bool keep, struct err *failed, struct err *e);
    /* Or NULL. -1: it cannot be reached. While nothing is to be done, and without waiting. */
    int (*look)(struct db *db, struct err *e);
    /* Part of a transaction: the number of the last job of the redo log in it. NULL: this database
     * has no such log. */
    int (*stamp)(struct db *db, uint32_t number, struct err *e);
    int (*stamped)(struct db *db, uint32_t *ret_number, struct err *e);
    bool commits_to_disk; /* what is committed is on the disk at once, so what it names must be */
    /* The log moves to the database, and is synced by that. Any thread, but one at a time. How many
     * pages have come to it meanwhile. */
    size_t (*tidy)(struct db *db);
    /* The log is long; very: it grows because it is written to while it is moved. */
    bool (*is_untidy)(struct db *db, bool very);
    size_t (*unsynced)(struct db *db); /* pages that are not on the disk. Any thread; or NULL */
    void (*close)(struct db *db);
    /* Until the end of the transaction: those that name blobs (shared) and those that announce the
     * removal of blobs (not shared) keep out of each other's way, over all nodes. NULL:
     * transactions run one after the other anyway. */
    int (*lock_removals)(struct db *db, bool shared, struct err *e);
};

struct sql_ops;

struct db {
    const struct db_ops *ops;
    const struct sql_ops *sql;
    bool syncs;              /* some job of this transaction does, see below */
    bool must_sync;          /* the job that runs wants to be on the disk before it is answered */
    struct err write_failed; /* of the job that runs, the first; ERR_NONE: all went well */
    bool names_blobs;        /* something in this transaction does */
    struct store *store;     /* borrowed: whose it is */
    char holds[HASH_HEX]; /* a blob that this transaction may name: it had a name when it began */
    int blobs;            /* borrowed: the directory that they are in */
    bool checks_blobs;    /* the disk is low: one that is named may have been removed meanwhile */
    struct redo_entry *redo; /* borrowed, or NULL: where the job that runs notes what it writes */
};

/* Of a session that may be gone: it has had so many executions, or more, and was used then, or
 * later. */
int db_session_figures(struct db *db, const char *id, int64_t executions, int64_t used_ms,
                       struct err *e) MUST_CHECK;

/* Whether any row names this blob: 1, 0, -1. */
int db_blob_named(struct db *db, const char *hash, struct err *e) MUST_CHECK;

/* The database in the file of this name, at this version's schema. */
struct db *sqlite_open(const char *path, struct err *e);
/* That of the URL of the config. serves: no other server may use it meanwhile, except for nodes
 * beside a node. */
struct db *postgres_open(const struct store_config *config, bool serves, struct err *e);
/* Of a node: see store.h. */
const char *postgres_writer(const struct db *db);
bool postgres_is_fenced(const struct db *db); /* from any thread */

/* --- what a row is made of --- */

enum column_kind {
    COLUMN_FIXED, /* char[n]: text with its NUL */
    COLUMN_TEXT,  /* char *, owned, or NULL */
    COLUMN_PATH,  /* the same, but any bytes rather than text */
    COLUMN_HASH,  /* uint8_t[n] */
    COLUMN_INT,   /* int or int64_t */
    COLUMN_UINT,  /* bool, uint32_t or uint64_t */
};

struct column {
    enum column_kind kind;
    size_t at, size; /* of the field in the row */
};

/* The order of the columns is the one in every statement that puts or reads a whole row. */
struct row_type {
    const struct column *columns;
    size_t count, size;
};
extern const struct row_type key_type, session_type, space_type, exec_type, file_type,
    approval_type, pool_type, pool_key_type, item_type, loop_type;
extern const struct row_type number_type; /* one int64_t */

/* A field of a row: a number, or the bytes of any other kind; p NULL is NULL. What is set is copied
 * into a field that is zero. */
int64_t column_number(const struct column *c, const char *field);
void column_set_number(const struct column *c, char *field, int64_t n);
struct str column_bytes(const struct column *c, const char *field);
void column_set_bytes(const struct column *c, char *field, struct str bytes);

void rows_free(const struct row_type *t, void *rows, size_t count);

/* --- the store itself --- */

struct job {
    struct job *next;
    store_fn *fn;
    store_done_fn *done; /* NULL: a caller waits for `answered` */
    void *arg;
    struct err failed; /* ERR_NONE: it is kept */
    bool must_sync;    /* not answered before it is on the disk */
    bool answered;
    bool soon;   /* nobody waits for it */
    bool logged; /* what it writes is in the record log */
    bool redone; /* it is answered when the redo log has it */
};
/* Tells those who asked. failed: it is not known to be on the disk; or NULL. From any thread. */
void jobs_answer(struct store *s, struct job *jobs, const struct err *failed);

/* With all signals blocked: they are the loop's. */
int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg,
                 struct err *e) MUST_CHECK;

struct flush;
struct redo;
struct arg;

/* --- blobs --- */

/* Where blobs are kept if not on the disk; blob_s3.c, and tests put their own here. These block,
 * but for name(), which is part of a transaction. */
struct blob_ops {
    int (*start)(struct store *s, struct err *e); /* a server's store is open */
    void (*stop)(struct store *s);                /* it will be closed; what waits is given up */
    /* All bytes of fd, by their hash. When it returns, they are kept. */
    int (*put)(struct store *s, int fd, const char *hash, uint64_t size, struct err *e);
    /* They are written into b, which is new. ERR_MISSING, ERR_AWAY. */
    int (*get)(struct store *s, const char *hash, struct blob *b, struct err *e);
    /* What get() brought was something else: who puts the blob again must reach S3. */
    void (*is_damaged)(struct store *s, const char *hash);
    /* A row is about to name this one. ERR_AWAY: it may be gone; whoever has the bytes puts them
     * again. */
    int (*name)(struct db *db, const char *hash, struct err *e);
    /* Removes what nobody needs, on a thread of its own, soon. */
    void (*sweep)(struct store *s);
    bool (*is_away)(struct store *s, struct err *e);
    void (*close)(struct store *s);
};

struct blob {
    struct store *store;   /* borrowed */
    int fd;                /* owned */
    char temp[ID_MAX];     /* its name in tmp/, or "" */
    int temp_dir;          /* owned, or -1: a blob given up may outlive its store */
    gnutls_hash_hd_t hash; /* owned */
    uint64_t size, max;
    bool broken; /* what is in the file is not what was hashed */
};

/* A session that an entry of the log is about. */
struct logged_session {
    size_t at; /* where the entry begins */
    char id[ID_MAX];
};

struct record_log {
    int fd;                          /* owned, or -1: there is none */
    size_t at;                       /* where the next entry begins */
    uint32_t seed;                   /* of the entries that there are */
    size_t open;                     /* entries whose jobs have not ended */
    bool unsynced;                   /* it was written to since it was synced */
    bool stuck;                      /* the job of an entry has failed */
    struct logged_session *sessions; /* owned */
    size_t session_count, session_cap;
};

struct store {
    struct loop *loop;       /* borrowed, or NULL: no thread either */
    struct db *db;           /* owned: the thread's, where there is one */
    int dir, lock;           /* owned */
    bool power;              /* DURABLE_POWER */
    struct flush *flush;     /* owned */
    struct redo *redo;       /* owned, or NULL: PostgreSQL, no loop */
    bool has_spare;          /* space is held back */
    _Atomic int64_t room_us; /* when the disk was last seen to have room */
    pthread_mutex_t disk_mutex;
    struct store_counts counts; /* of batches; with disk_mutex held */
    struct err disk_failed;     /* ERR_NONE: it takes what is written */

    pthread_t thread;
    bool running;          /* the thread */
    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t more, answered;
    struct job *first, **end; /* not begun yet, in the order given */
    struct record_log log;    /* but for its fd */
    bool hurry;               /* somebody waits for one of them */
    bool closing;

    struct timer *soon; /* owned: when those begin for which nobody waits; the loop's */
    bool soon_is_set;

    int blobs;                /* owned: their directory */
    uint64_t reserve;         /* bytes of the disk that they leave alone */
    bool temp_names;          /* the file system has no O_TMPFILE */
    pthread_mutex_t naming;   /* a blob gets or loses its name, or is found to have one */
    struct blob_known *known; /* owned, or NULL: large blobs that were good a while ago */
    unsigned shard;           /* where the next sweep begins */
    char (*doomed)[HASH_HEX]; /* owned: what the sweep found in this transaction */
    size_t doomed_count;

    bool has_nodes;
    _Atomic int64_t lease_us; /* ours holds until then */

    const struct blob_ops *remote; /* NULL: blobs are on the disk, and the directory is no cache */
    struct s3_blobs *s3;           /* owned by remote, or NULL */
    uint64_t cache_bytes;          /* the most that the cache may have */
    uint64_t cached_bytes;         /* what it has; with `naming` held */
};

/* Makes or opens blobs/ below s->dir. alone: nobody else has it open, what is half-written is of
 * the dead. */
int blobs_open(struct store *s, bool alone, struct err *e) MUST_CHECK;
void blobs_close(struct store *s);
bool blob_is_hash(const char *hash);
/* Of its file, from the directory of blobs. */
void blob_path(const char *hash, char ret[HASH_HEX + 1]);
void hash_of(struct str bytes, char ret[HASH_HEX]); /* SHA-256 */
/* The hash of what was written, once; and the name of that in the directory. */
void blob_finish_hash(struct blob *b, char ret[HASH_HEX]);
int blob_give_name(struct blob *b, const char *hash, struct err *e) MUST_CHECK;
/* The file of this name in the directory, touched; -1 and ERR_MISSING. */
int blob_open_file(struct store *s, const char *hash, struct err *e) MUST_CHECK;
/* The transaction with the sweep in it is committed, or it is not. */
void blobs_swept(struct store *s, bool committed);

/* --- blob_check.c --- */

/* Whether fd has the bytes of this name: 1, 0, -1. */
int blob_is_good(struct store *s, const char *hash, int fd, struct err *e) MUST_CHECK;
/* The same, with ERR_DAMAGED. */
int blob_check(struct store *s, const char *hash, int fd, struct err *e) MUST_CHECK;
/* It has: they were hashed on their way in. */
void blob_note_good(struct store *s, const char *hash, int fd);
void hash_show(const uint8_t hash[32], char ret[HASH_HEX]);

/* --- blob_cache.c: the directory as a cache of blobs that are kept elsewhere --- */

/* Counts what is there. */
int cache_open(struct store *s, struct err *e) MUST_CHECK;
/* b is kept elsewhere: the cache takes it, if it is not too large. */
void cache_keep(struct blob *b, const char *hash);
/* From the cache, or from where it is kept. */
int cache_blob_open(struct store *s, const char *hash, struct err *e) MUST_CHECK;
/* What was not used for the longest time gives way, where there is too much. */
void cache_trim(struct store *s);

/* --- copy.c --- */

/* ERR_SETUP where a copy into this database has begun and not ended. */
int copy_refuse_half(struct db *db, struct err *e) MUST_CHECK;

/* --- blob_s3.c --- */

int s3_blobs_open(struct store *s, const struct s3_config *c, struct err *e) MUST_CHECK;

/* --- record_log.c --- */

/* Puts what a server before has left in the log of this directory into its database: before
 * anything else is done with either. The caller holds the lock of the directory. */
int record_log_put_back(int dir, struct db *db, struct err *e) MUST_CHECK;
/* From now on the log takes entries, if there can be one. */
void record_log_open(struct store *s);
void record_log_close(struct store *s);
/* With the mutex held: a job of an entry has ended, and is kept or not. */
void record_log_settle(struct store *s, bool kept);
/* On the flush's thread, before the database is synced. */
int record_log_sync(struct store *s, struct err *e) MUST_CHECK;

/* --- flush.c: what was written reaches the disk --- */

int flush_start(struct store *s, struct err *e) MUST_CHECK;
void flush_stop(struct store *s); /* when all of it has */
/* A blob has its name in this directory. Takes fd. */
void flush_blob(struct store *s, int fd, unsigned shard);
/* Before a commit of rows that name blobs: those are on the disk first where the rows could be. */
int flush_named(struct store *s, struct err *e) MUST_CHECK;
/* Around a batch of the store's thread: it waits while the end of a long log is moved. */
void flush_begin(struct store *s);
void flush_end(struct store *s);
/* A transaction that wrote something is committed; these are answered when it is on the disk. */
void flush_rows(struct store *s, struct job *waiting);
/* Syncs the blobs that there are, on the caller's thread. */
int flush_blobs(struct store *s, struct err *e) MUST_CHECK;
/* Moves the log into the database, on the caller's thread. */
void flush_tidy(struct store *s);

/* --- redo_entry.c: a job as bytes --- */

#define REDO_NAME     "retort.redo"
#define REDO_BLOB_MAX (1 * MiB)    /* a larger one is synced by itself */
#define REDO_SEED     ((size_t)16) /* bytes at the beginning of a half */
#define REDO_END      ((size_t)40) /* bytes of the mark behind its last entry */
#define REDO_IDS      4096         /* that are told apart, most of the time */

/* What one job writes: its statements, and the blobs that they name. */
struct redo_entry {
    struct redo_entry *next;
    struct job *job;         /* borrowed: waits for it; or NULL */
    uint64_t number;         /* 0: there is nothing in it */
    struct buf statements;   /* as they stand in the log; full: it is too long for that */
    char (*blobs)[HASH_HEX]; /* owned */
    size_t blob_count;
    uint64_t blob_bytes;
    bool writes;                 /* it has a statement */
    uint64_t ids[REDO_IDS / 64]; /* a bit for each id in those */
};
struct redo_entry *redo_entry_new(void);
void redo_entry_free(struct redo_entry *n);
/* Of the job that runs, which db->redo is for, if it is for any. */
void redo_note(struct db *db, const char *text, const struct arg *args, size_t count);
void redo_note_blob(struct db *db, const char *hash);
/* All of it as it stands in the log, with the bytes of its blobs and the mark of the log's end
 * behind it, but for the head; that is put by the next one. False: something is too long. */
bool redo_entry_put(struct buf *b, const struct redo_entry *n, int blobs);
void redo_entry_seal(struct buf *b, const uint8_t seed[REDO_SEED]);
/* The half of the log that begins there has no entry. */
int redo_empty_half(int fd, uint64_t at);
/* Puts what a server before has left in the log of this directory into its database and its
 * blobs. The caller holds the lock of the directory. */
int redo_put_back(int dir, struct db *db, struct err *e) MUST_CHECK;

/* --- redo.c: the log of what waits for the disk --- */

int redo_start(struct store *s, struct err *e) MUST_CHECK;
void redo_stop(struct store *s); /* everybody in it is answered, or handed to flush.c */
void redo_free(struct store *s); /* after flush_stop() */
/* Whether a blob of this size need not be synced by itself. From any thread. */
bool redo_takes(struct store *s, uint64_t size);
/* On the store's thread: around a job, before the commit, and after it. */
void redo_job_begin(struct store *s);
void redo_job_end(struct store *s, struct job *j, bool kept);
int redo_stamp(struct store *s, struct err *e) MUST_CHECK;
void redo_batch_end(struct store *s, bool committed);
/* The number of the last job that is committed; and what was committed until then is on the disk,
 * so the log need not have it any more, or it could not be brought there. */
uint64_t redo_committed(struct store *s);
void redo_flushed(struct store *s, uint64_t number, bool well);

/* --- disk.c: whether the disk takes what is written --- */

/* Makes ERR_FULL of an error that is the disk's; -1. */
int disk_blame(struct err *e);
/* Something could not be written: the store is full until disk_try_again() finds otherwise. */
void disk_failed(struct store *s, const struct err *e);
/* Blobs leave some of the disk to the database; ERR_FULL. */
int disk_room_for_blobs(struct store *s, struct err *e) MUST_CHECK;
/* These are for the store's thread: before a batch; while not all is well, once in a while. */
void disk_look(struct store *s);
bool disk_is_well(struct store *s);
void disk_try_again(struct store *s);

/* A row names this blob, or "" for none. ERR_FULL when it is gone: the disk is low. */
int names_blob(struct db *db, const char *hash, struct err *e) MUST_CHECK;
