/* Private to the store: the table a database implements, and what a row is made of. */
#pragma once

#include "store/store.h"

#include <pthread.h>

/* --- what a database does --- */

/* One function for each db_* of store.h, and the frame around them. A database embeds struct db and
 * knows its own by that. */
struct db_ops {
    int (*begin)(struct db *db, struct err *e);
    int (*commit)(struct db *db, struct err *e);
    void (*rollback)(struct db *db); /* also when nothing was begun, or all is lost already */
    /* A job's own part of the transaction. -1 from either end: the whole transaction is lost. */
    int (*savepoint)(struct db *db, struct err *e);
    int (*release)(struct db *db, bool keep, struct err *e);
    /* What can wait until a batch has been answered. */
    void (*tidy)(struct db *db);
    void (*close)(struct db *db);

    int (*key_put)(struct db *db, const struct key_row *r, struct err *e);
    int (*key_list)(struct db *db, struct key_row **ret, size_t *ret_count, struct err *e);
    int (*key_revoke)(struct db *db, const char *id, int64_t now_ms, struct err *e);
    int (*key_used)(struct db *db, const char *id, int64_t now_ms, struct err *e);

    int (*session_put)(struct db *db, const struct session_row *r, struct err *e);
    int (*session_get)(struct db *db, const char *tenant, const char *id, struct session_row *ret,
                       struct err *e);
    int (*session_named)(struct db *db, const char *tenant, const char *pool, const char *name,
                         struct session_row *ret, struct err *e);
    int (*session_list)(struct db *db, const char *tenant, struct page page,
                        struct session_row **ret, size_t *ret_count, struct err *e);
    int (*session_delete)(struct db *db, const char *tenant, const char *id, struct err *e);
    int (*session_expired)(struct db *db, int64_t now_ms, size_t limit, struct session_row **ret,
                           size_t *ret_count, struct err *e);
    int (*session_in_pool)(struct db *db, const char *pool, size_t limit, struct session_row **ret,
                           size_t *ret_count, struct err *e);
    int (*session_count)(struct db *db, uint64_t *ret, struct err *e);
    int (*session_all_asleep)(struct db *db, int live_state, int asleep_state, struct err *e);

    int (*space_put)(struct db *db, const char *session, const struct space_row *r, struct err *e);
    int (*space_drop)(struct db *db, const char *session, struct str path, struct err *e);
    int (*space_get)(struct db *db, const char *session, struct str path, struct space_row *ret,
                     struct err *e);
    int (*space_list)(struct db *db, const char *session, struct space_row **ret, size_t *ret_count,
                      struct err *e);

    int (*exec_put)(struct db *db, const struct exec_row *r, struct err *e);
    int (*exec_get)(struct db *db, const char *tenant, const char *id, struct exec_row *ret,
                    struct err *e);
    int (*exec_list)(struct db *db, const struct exec_filter *f, struct page page, bool whole,
                     struct exec_row **ret, size_t *ret_count, struct err *e);
    int (*exec_all_lost)(struct db *db, int64_t now_ms, struct err *e);
    int (*exec_forget)(struct db *db, int64_t before_ms, size_t limit, struct err *e);

    int (*approval_put)(struct db *db, const struct approval_row *r, struct err *e);
    int (*approval_get)(struct db *db, const char *tenant, const char *id, struct approval_row *ret,
                        struct err *e);
    int (*approval_open)(struct db *db, const char *tenant, const char *key,
                         const uint8_t digest[32], int64_t now_ms, struct approval_row *ret,
                         struct err *e);
    int (*approval_lasting)(struct db *db, const char *tenant, const char *key, const char *tool,
                            const char *session, const char *conversation, struct approval_row *ret,
                            struct err *e);
    int (*approval_count)(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret_pending,
                          struct err *e);
    int (*approval_list)(struct db *db, const char *tenant, int state, struct page page,
                         struct approval_row **ret, size_t *ret_count, struct err *e);
    int (*approval_expire)(struct db *db, int64_t now_ms, struct err *e);
    int (*approval_forget)(struct db *db, int64_t before_ms, size_t limit, struct err *e);

    int (*pool_put)(struct db *db, const struct pool_row *r, struct err *e);
    int (*pool_list)(struct db *db, struct pool_row **ret, size_t *ret_count, struct err *e);
    int (*pool_delete)(struct db *db, const char *name, struct err *e);
    int (*pool_key_put)(struct db *db, const struct pool_key_row *r, struct err *e);
    int (*pool_key_get)(struct db *db, const char *pool, const char *tenant,
                        struct pool_key_row *ret, struct err *e);

    int (*loop_put)(struct db *db, const struct loop_row *r, struct err *e);
    int (*loop_get)(struct db *db, const char *tenant, const char *id, struct loop_row *ret,
                    struct err *e);
    int (*loop_list)(struct db *db, const char *tenant, const char *owner, struct page page,
                     struct loop_row **ret, size_t *ret_count, struct err *e);
    int (*loop_unfinished)(struct db *db, size_t limit, struct loop_row **ret, size_t *ret_count,
                           struct err *e);
    int (*loop_forget)(struct db *db, int64_t before_ms, size_t limit, struct err *e);

    int (*file_put)(struct db *db, const struct file_row *r, struct err *e);
    int (*file_get)(struct db *db, const char *tenant, const char *id, struct file_row *ret,
                    struct err *e);
    int (*file_list)(struct db *db, const char *tenant, int64_t now_ms, struct page page,
                     struct file_row **ret, size_t *ret_count, struct err *e);
    int (*file_bytes)(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret,
                      struct err *e);
    int (*file_delete)(struct db *db, const char *tenant, const char *id, struct err *e);
    int (*file_expire)(struct db *db, int64_t now_ms, int64_t forget_ms, size_t limit,
                       struct err *e);

    int (*item_put)(struct db *db, const struct item_row *r, struct err *e);
    int (*item_get)(struct db *db, const char *tenant, const char *kind, const char *id,
                    struct item_row *ret, struct err *e);
    int (*item_list)(struct db *db, const struct item_filter *f, struct item_row **ret,
                     size_t *ret_count, uint64_t *ret_total, struct err *e);
    int (*item_delete)(struct db *db, const char *tenant, const char *kind, const char *id,
                       struct err *e);
    int (*item_expire)(struct db *db, int64_t now_ms, size_t limit, struct err *e);

    /* Whether any row names this blob: 1, 0, -1. */
    int (*blob_named)(struct db *db, const char *hash, struct err *e);
};

struct db {
    const struct db_ops *ops;
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

void row_done(const struct row_type *t, void *row);
void rows_free(const struct row_type *t, void *rows, size_t count);

/* --- the store itself --- */

struct job;

struct store {
    struct loop *loop; /* borrowed, or NULL: no thread either */
    struct db *db;     /* owned: the thread's, where there is one */
    int dir, lock;     /* owned */

    pthread_t thread;
    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t more, answered;
    struct job *first, **end; /* not begun yet, in the order given */
    bool closing;

    int blobs;                /* owned: their directory */
    uint64_t reserve;         /* bytes of the disk that they leave alone */
    bool temp_names;          /* the file system has no O_TMPFILE */
    pthread_mutex_t naming;   /* a blob gets or loses its name, or is found to have one */
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
