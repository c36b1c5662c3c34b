/*
 * A copy of a store: rows and blobs of one place, to another.
 *
 * The mark. Before anything is written, the target gets a mark with the name of the source: a table
 * in a database, a file or an object beside blobs. It goes when all was compared. While it is
 * there, no server uses the database (copy_refuse_half()), and only the same copy goes on there. A
 * target without a mark must be empty. Blobs are marked after the rows and unmarked before them, so
 * that one mark is there at any moment; either of them says that the copy may go on.
 *
 * Blobs come before rows, as everywhere: no row names a blob that is not there.
 */
#include "store/copy_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MARK_TABLE "retort_copy"
#define PATH_SIZE  4096

void copy_tell(struct copying *c, const char *what, uint64_t done, uint64_t total)
{
    c->watch->on_progress(c->watch->arg, what, done, total);
}

int copy_refuse_half(struct db *db, struct err *e)
{
    int half = rows_has_table(db, MARK_TABLE, e);

    if (half > 0)
        return err_set(e, ERR_SETUP,
                       "a copy into this database has begun and not ended; go on with the same "
                       "retort store copy");
    return half;
}

/* --- the places --- */

struct copy_place {
    const struct store_place *of; /* borrowed */
    struct db *db;                /* owned, or NULL: rows are not copied */
    struct blob_place blobs;
    bool has_blobs; /* or blobs are not */
    bool is_target;
};

static bool holds_rows(const struct store_place *p)
{
    return p->dir || p->url;
}

static bool holds_blobs(const struct store_place *p)
{
    return p->dir || p->s3;
}

static struct db *open_rows(const struct store_place *p, bool makes, struct err *e)
{
    char path[PATH_SIZE];

    if (p->url)
        return postgres_open(&(const struct store_config){.url = p->url,
                                                          .password = p->password,
                                                          .durability = DURABLE_POWER},
                             true, e);
    if ((size_t)snprintf(path, sizeof(path), "%s/retort.db", p->dir) >= sizeof(path)) {
        err_set(e, ERR_CALLER, "the path is too long");
        return NULL;
    }
    if (!makes && access(path, F_OK) < 0) {
        err_set(e, ERR_CALLER, "there is no database in %s", p->dir);
        return NULL;
    }
    return sqlite_open(path, e);
}

/* What the last server has left in its logs belongs to the rows. */
static struct db *open_here(const struct store_place *p, bool makes, struct err *e)
{
    struct db *db = open_rows(p, makes, e);
    AUTO_CLOSE int dir = -1;

    if (!db || p->url)
        return db;
    dir = open(p->dir, O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && redo_put_back(dir, db, e) == 0 && record_log_put_back(dir, db, e) == 0)
        return db;
    if (dir < 0)
        err_sys(e, "open");
    db->ops->close(db);
    return NULL;
}

static void close_place(struct copy_place *p)
{
    if (p->db)
        p->db->ops->close(p->db);
    if (p->has_blobs)
        blob_place_close(&p->blobs);
}

static int open_place(struct copy_place *p, bool rows, bool blobs, struct err *e)
{
    int rc = 0;

    if (rows && !(p->db = open_here(p->of, p->is_target, e)))
        rc = -1;
    if (rc == 0 && blobs) {
        p->has_blobs = true;
        rc = blob_place_open(&p->blobs, p->of, p->is_target, e);
    }
    return rc < 0 ? err_wrap(e, "%s", p->of->shown) : 0;
}

/* --- the mark --- */

/* arg: that of the second statement, if there is one. */
static int run_all(struct db *db, const char *first, const char *second, const char *arg,
                   struct err *e)
{
    if (db->ops->begin(db, e) < 0)
        return -1;
    if (sql_post(db, first, NULL, 0, e) < 0 ||
        (second && sql_post(db, second, ARGS(TEXT(arg)), e) < 0) || db->ops->commit(db, e) < 0) {
        db->ops->rollback(db);
        return -1;
    }
    return db->ops->sync(db, e);
}

/* Owned; NULL: there is no mark. */
static int read_mark(struct copy_place *p, char **ret, struct err *e)
{
    struct answer *a;
    int rc = p->db ? rows_has_table(p->db, MARK_TABLE, e) : 0;

    *ret = NULL;
    if (rc < 0)
        return -1;
    if (rc == 0)
        return p->has_blobs ? blobs_marked(&p->blobs, ret, e) : 0;
    a = p->db->sql->ask(p->db, "SELECT source FROM " MARK_TABLE, NULL, 0, e);
    rc = a ? p->db->sql->next(p->db, a, e) : -1;
    if (rc >= 0)
        *ret = rc ? mem_strndup(p->db->sql->bytes(a, 0)) : mem_strdup("");
    if (a)
        p->db->sql->close(a);
    return rc < 0 ? -1 : 0;
}

static int put_mark(struct copy_place *p, const char *text, struct err *e)
{
    if (p->db && run_all(p->db, "CREATE TABLE " MARK_TABLE " (source TEXT NOT NULL)",
                         "INSERT INTO " MARK_TABLE " VALUES (?1)", text, e) < 0)
        return -1;
    return p->has_blobs ? blobs_mark(&p->blobs, text, e) : 0;
}

static int drop_mark(struct copy_place *p, struct err *e)
{
    if (p->has_blobs && blobs_unmark(&p->blobs, e) < 0)
        return -1;
    return p->db ? run_all(p->db, "DROP TABLE " MARK_TABLE, NULL, NULL, e) : 0;
}

/* --- before and after --- */

static int count_all(struct copy_place *p, uint64_t *ret, struct err *e)
{
    uint64_t rows = 0, blobs = 0, bytes;

    if ((p->db && rows_count(p->db, &rows, e) < 0) ||
        (p->has_blobs && blobs_count(&p->blobs, &blobs, &bytes, e) < 0))
        return -1;
    *ret = rows + blobs;
    return 0;
}

static int begin(struct copy_place *from, struct copy_place *to, struct err *e)
{
    AUTO_FREE char *mark = NULL;
    char mine[PATH_SIZE];
    uint64_t there = 0;
    int half = from->db ? copy_refuse_half(from->db, e) : 0;

    if (half < 0)
        return err_wrap(e, "%s", from->of->shown);
    snprintf(mine, sizeof(mine), "%s%s%s", from->db ? "rows " : "", from->has_blobs ? "files " : "",
             from->of->shown);
    if (read_mark(to, &mark, e) < 0)
        return -1;
    if (mark && strcmp(mark, mine) == 0)
        return 0;
    if (mark)
        return err_set(e, ERR_CALLER,
                       "a copy of another place has begun in %s and not ended (%.200s). Go on with "
                       "that one, or empty the target",
                       to->of->shown, mark);
    if (count_all(from, &there, e) < 0)
        return -1;
    if (there == 0)
        return err_set(e, ERR_CALLER, "there is nothing in %s", from->of->shown);
    if (count_all(to, &there, e) < 0)
        return -1;
    if (there > 0)
        return err_set(e, ERR_CALLER, "%s is not empty, and a copy goes only where nothing is",
                       to->of->shown);
    return put_mark(to, mine, e);
}

static int copy_all(struct copying *c, struct copy_place *from, struct copy_place *to,
                    struct err *e)
{
    if (from->has_blobs && blobs_copy(c, &from->blobs, &to->blobs, e) < 0)
        return -1;
    if (from->db && rows_copy(c, from->db, to->db, e) < 0)
        return -1;
    c->done.damaged = 0; /* they are met once more */
    if (from->has_blobs && blobs_check(c, &from->blobs, &to->blobs, e) < 0)
        return -1;
    if (from->db && rows_compare(c, from->db, to->db, e) < 0)
        return -1;
    if (c->done.damaged == 0)
        return drop_mark(to, e);
    return err_set(
        e, ERR_DAMAGED,
        "%llu files of %s are damaged, and were left out. Delete those, or put back what "
        "they were, and copy again",
        (unsigned long long)c->done.damaged, from->of->shown);
}

int store_copy(const struct store_place *from, const struct store_place *to,
               const struct store_copy_watch *watch, struct store_copied *ret, struct err *e)
{
    struct copy_place a = {.of = from}, b = {.of = to, .is_target = true};
    struct copying c = {.watch = watch};
    bool rows = holds_rows(from) && holds_rows(to), blobs = holds_blobs(from) && holds_blobs(to);
    int rc;

    if (!from->dir && !to->dir)
        return err_set(e, ERR_CALLER, "one of the two must be a state directory");
    rc = open_place(&a, rows, blobs, e) < 0 || open_place(&b, rows, blobs, e) < 0 ||
                 begin(&a, &b, e) < 0
             ? -1
             : copy_all(&c, &a, &b, e);
    close_place(&a);
    close_place(&b);
    *ret = c.done;
    return rc;
}
