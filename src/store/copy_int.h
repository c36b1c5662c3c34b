/* Private to a copy of a store: copy.c says in which order, copy_rows.c copies tables, and
 * copy_blobs.c files. */
#pragma once

#include "store/s3_int.h"
#include "store/sql_int.h"

struct copying {
    const struct store_copy_watch *watch; /* borrowed */
    struct store_copied done;
};

void copy_tell(struct copying *c, const char *what, uint64_t done, uint64_t total);

/* --- copy_rows.c --- */

/* Whether the database has such a table: 1, 0, -1. */
int rows_has_table(struct db *db, const char *name, struct err *e) MUST_CHECK;
/* Of all tables that hold what the store keeps. */
int rows_count(struct db *db, uint64_t *ret, struct err *e) MUST_CHECK;
/* What is in `to` already is the beginning of each table. */
int rows_copy(struct copying *c, struct db *from, struct db *to, struct err *e) MUST_CHECK;
/* Whether both have the same rows; ERR_DAMAGED says where they have not. */
int rows_compare(struct copying *c, struct db *from, struct db *to, struct err *e) MUST_CHECK;

/* --- copy_blobs.c --- */

/* One of the two places as far as it holds blobs. */
struct blob_place {
    const struct blob_place_ops *ops;
    int dir;       /* owned: of blobs, or -1 */
    struct s3 *s3; /* owned, or NULL */
};

/* makes: where it is missing. */
int blob_place_open(struct blob_place *p, const struct store_place *of, bool makes,
                    struct err *e) MUST_CHECK;
void blob_place_close(struct blob_place *p);
/* How many, with how many bytes. */
int blobs_count(struct blob_place *p, uint64_t *ret, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
int blobs_copy(struct copying *c, struct blob_place *from, struct blob_place *to,
               struct err *e) MUST_CHECK;
/* Reads all of them in `to`; one that is not right is copied once more. */
int blobs_check(struct copying *c, struct blob_place *from, struct blob_place *to,
                struct err *e) MUST_CHECK;
/* The mark of a copy that has not ended: a text, owned, or NULL. */
int blobs_mark(struct blob_place *p, const char *text, struct err *e) MUST_CHECK;
int blobs_marked(struct blob_place *p, char **ret, struct err *e) MUST_CHECK;
int blobs_unmark(struct blob_place *p, struct err *e) MUST_CHECK;
