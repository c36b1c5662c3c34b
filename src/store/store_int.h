/* Private to the store: transactions, the columns of each row, the thread. */
#pragma once

#include "store/store.h"

#include <pthread.h>

/* --- what a database does --- */

/* The frame of transactions; the db_* of store.h stand in sqlite_*.c. Tests put their own here. */
struct db_ops {
    int (*begin)(struct db *db, struct err *e);
    int (*commit)(struct db *db, struct err *e);    /* 1: something was written */
    int (*try_write)(struct db *db, struct err *e); /* something, outside of a transaction */
    int (*sync)(struct db *db, struct err *e); /* what is committed is on the disk; any thread */
    void (*rollback)(struct db *db); /* also when nothing was begun, or all is lost already */
    /* A job's own part of the transaction. -1 from either end: the whole transaction is lost. */
    int (*savepoint)(struct db *db, struct err *e);
    int (*release)(struct db *db, bool keep, struct err *e);
    /* The log moves to the database, and is synced by that. Any thread, but one at a time. */
    void (*tidy)(struct db *db);
    /* The log is long; much longer: it grows because it is written to while it is moved. */
    bool (*is_untidy)(struct db *db, bool very);
    void (*close)(struct db *db);

    /* Whether any row names this blob: 1, 0, -1. */
    int (*blob_named)(struct db *db, const char *hash, struct err *e);
};

struct db {
    const struct db_ops *ops;
    bool must_sync;    /* the job that runs wants to be on the disk before it is answered */
    bool names_blobs;  /* something in this transaction does */
    int blobs;         /* borrowed: the directory that they are in */
    bool checks_blobs; /* the disk is low: one that is named may have been removed meanwhile */
};

/* The database in the file of this name, at this version's schema. */
struct db *sqlite_open(const char *path, struct err *e);

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
};
/* Tells those who asked. failed: it is not known to be on the disk; or NULL. From any thread. */
void jobs_answer(struct store *s, struct job *jobs, const struct err *failed);

/* With all signals blocked: they are the loop's. */
int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg,
                 struct err *e) MUST_CHECK;

struct flush;

struct store {
    struct loop *loop;   /* borrowed, or NULL: no thread either */
    struct db *db;       /* owned: the thread's, where there is one */
    int dir, lock;       /* owned */
    bool power;          /* DURABLE_POWER */
    struct flush *flush; /* owned */
    bool has_spare;      /* space is held back */
    pthread_mutex_t disk_mutex;
    struct err disk_failed; /* ERR_NONE: it takes what is written */

    pthread_t thread;
    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t more, answered;
    struct job *first, **end; /* not begun yet, in the order given */
    bool closing;

    int blobs;                /* owned: their directory */
    uint64_t reserve;         /* bytes of the disk that they leave alone */
    bool temp_names;          /* the file system has no O_TMPFILE */
    pthread_mutex_t naming;   /* a blob gets or loses its name, or is found to have one */
    struct blob_known *known; /* owned, or NULL: large blobs that were good a while ago */
    unsigned shard;           /* where the next sweep begins */
    char (*doomed)[HASH_HEX]; /* owned: what the sweep found in this transaction */
    size_t doomed_count;
};

/* Makes or opens blobs/ below s->dir. alone: nobody else has it open, what is half-written is of
 * the dead. */
int blobs_open(struct store *s, bool alone, struct err *e) MUST_CHECK;
void blobs_close(struct store *s);
/* The transaction with the sweep in it is committed, or it is not. */
void blobs_swept(struct store *s, bool committed);

/* --- blob_check.c --- */

/* Whether fd has the bytes of this name; ERR_DAMAGED. */
int blob_check(struct store *s, const char *hash, int fd, struct err *e) MUST_CHECK;
/* It has: they were hashed on their way in. */
void blob_note_good(struct store *s, const char *hash, int fd);
void hash_show(const uint8_t hash[32], char ret[HASH_HEX]);

/* --- flush.c: what was written reaches the disk --- */

int flush_start(struct store *s, struct err *e) MUST_CHECK;
void flush_stop(struct store *s); /* when all of it has */
/* A blob has its name in this directory. Takes fd. */
void flush_blob(struct store *s, int fd, unsigned shard);
/* Before a commit of rows that name blobs. */
void flush_gate(struct store *s);
/* A transaction that wrote something is committed; these are answered when it is on the disk. */
void flush_rows(struct store *s, struct job *waiting);
/* Syncs the blobs that there are, on the caller's thread. */
int flush_blobs(struct store *s, struct err *e) MUST_CHECK;
/* Moves the log into the database, on the caller's thread. */
void flush_tidy(struct store *s);

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
