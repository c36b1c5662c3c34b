/* Items: rows of JSON that a door stores for a tenant. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define EVERYBODYS_MAX 10000

struct item_op {
    struct task task;
    struct item_row row;   /* owned: to be put, or read */
    char *kind, *id;       /* owned, or NULL */
    char *owner, *parent;  /* owned, or NULL */
    struct item_row *rows; /* owned */
    size_t count;
    uint64_t max; /* 0: any number of them */
    struct item_filter filter;
    struct progress progress;
    char *after; /* owned, or NULL */
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *pools; /* owned, or NULL: of the caller's key */
    int fd;      /* owned */
    item_fn *fn;
    items_fn *list_fn;
    item_open_fn *open_fn;
    done_fn *done_fn;
    void *arg;
};

static struct item_op *op_new(struct service *sv, const struct caller *c, const char *kind,
                              struct str id, void *arg)
{
    struct item_op *op = mem_zalloc(sizeof(*op));

    op->fd = -1;
    op->arg = arg;
    op->pools = scope_pools_copy(sv, c);
    op->kind = mem_strdup(kind);
    /* A NUL would end it early, and then it might be another's. */
    op->id = id.n && !memchr(id.p, '\0', id.n) ? mem_strndup(id) : mem_strdup("");
    snprintf(op->tenant, sizeof(op->tenant), "%s", c->tenant);
    return op;
}

static void op_free(struct item_op *op)
{
    item_row_done(&op->row);
    for (size_t i = 0; i < op->count; i++)
        item_row_done(&op->rows[i]);
    free(op->rows);
    free(op->after);
    progress_done(&op->progress);
    free(op->kind);
    free(op->pools);
    free(op->id);
    free(op->owner);
    free(op->parent);
    fd_closep(&op->fd);
    free(op);
}

static void on_done(struct task *t, const struct err *failed)
{
    struct item_op *op = OWNER(t, struct item_op, task);

    if (op->fn)
        op->fn(op->arg, failed ? NULL : &op->row, failed);
    else if (op->open_fn)
        op->open_fn(op->arg, &op->fd, failed ? NULL : &op->row, failed);
    else if (op->list_fn)
        op->list_fn(op->arg, op->rows, failed ? 0 : op->count, op->progress.seen, failed);
    else
        op->done_fn(op->arg, failed);
    op_free(op);
}

/* --- coming in --- */

/* In the transaction of the put, so that two at once cannot both be the last. */
static int check_room(struct item_op *op, struct db *db, struct err *e)
{
    struct item_row old = {0};
    uint64_t count = 0;
    int there = db_item_get(db, op->tenant, op->kind, op->row.id, &old, e);

    item_row_done(&old);
    if (there != 0)
        return there < 0 ? -1 : 0;
    if (db_item_count(db, op->tenant, op->kind, &count, e) < 0)
        return -1;
    return count < op->max ? 0
                           : err_set(e, ERR_LIMIT, "there are %llu of them, which is the most",
                                     (unsigned long long)count);
}

/* Whether the caller's key sees what was read. */
static bool is_seen(const struct item_op *op, const struct item_row *row)
{
    return !op->pools || (row->pools && strcmp(op->pools, row->pools) == 0);
}

/* What other keys have made stays as it is. */
static int check_seen(struct item_op *op, struct db *db, struct err *e)
{
    struct item_row old = {0};
    int rc = op->pools ? db_item_get(db, op->tenant, op->kind, op->row.id, &old, e) : 0;

    if (rc > 0 && !is_seen(op, &old))
        rc = err_set(e, ERR_CONFLICT, "there is one with this id that this key does not see");
    item_row_done(&old);
    return rc < 0 ? -1 : 0;
}

static int write_row(struct task *t, struct db *db, struct err *e)
{
    struct item_op *op = OWNER(t, struct item_op, task);

    if (check_seen(op, db, e) < 0 ||
        (*op->row.hash && quota_check(t->sv, db, op->tenant, op->row.size, e) < 0))
        return -1;
    return op->max && check_room(op, db, e) < 0 ? -1 : db_item_put(db, &op->row, e);
}

static char *copy_of(const char *s)
{
    return mem_strdup(s ? s : "");
}

void service_item_put(struct service *sv, const struct caller *c, const struct item_row *row,
                      done_fn *fn, void *arg)
{
    service_item_put_up_to(sv, c, row, 0, fn, arg);
}

void service_item_put_up_to(struct service *sv, const struct caller *c, const struct item_row *row,
                            uint64_t max, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = write_row}, {0}};
    struct item_op *op = op_new(sv, c, row->kind, (struct str){0}, arg);
    int64_t now = time_now_ms();

    op->done_fn = fn;
    op->max = max;
    op->row = *row;
    op->row.id = copy_of(row->id);
    op->row.tenant = mem_strdup(op->tenant);
    op->row.kind = copy_of(row->kind);
    op->row.owner = copy_of(row->owner);
    op->row.parent = copy_of(row->parent);
    op->row.body = copy_of(row->body);
    op->row.pools = op->pools ? mem_strdup(op->pools) : NULL;
    op->row.created_ms = row->created_ms ? row->created_ms : now;
    op->row.updated_ms = now;
    task_start(&op->task, sv, NULL, steps, on_done);
}

/* --- there --- */

static int read_row(struct task *t, struct db *db, struct err *e)
{
    struct item_op *op = OWNER(t, struct item_op, task);
    int rc = db_item_get(db, op->tenant, op->kind, op->id, &op->row, e);

    if (rc > 0 && !is_seen(op, &op->row))
        rc = 0;
    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such %s", op->kind) : rc;
}

void service_item_get(struct service *sv, const struct caller *c, const char *kind, struct str id,
                      item_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = read_row}, {0}};
    struct item_op *op = op_new(sv, c, kind, id, arg);

    op->fn = fn;
    task_start(&op->task, sv, NULL, steps, on_done);
}

static int open_it(struct task *t, struct err *e)
{
    struct item_op *op = OWNER(t, struct item_op, task);

    if (!*op->row.hash)
        return err_set(e, ERR_MISSING, "this %s has no bytes", op->kind);
    op->fd = blob_open(t->sv->store, op->row.hash, e);
    return op->fd < 0 ? -1 : 0;
}

void service_item_open(struct service *sv, const struct caller *c, const char *kind, struct str id,
                       item_open_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = read_row}, {.work = open_it}, {0}};
    struct item_op *op = op_new(sv, c, kind, id, arg);

    op->open_fn = fn;
    task_start(&op->task, sv, NULL, steps, on_done);
}

static int read_list(struct task *t, struct db *db, struct err *e)
{
    struct item_op *op = OWNER(t, struct item_op, task);

    return task_read_on(t, db_item_list(db, &op->filter, &op->rows, &op->count, e));
}

void service_item_list(struct service *sv, const struct caller *c, const struct item_filter *f,
                       items_fn *fn, void *arg)
{
    static const struct step steps[] = {{.loop = task_go_on}, {.store = read_list}, {0}};
    struct item_op *op = op_new(sv, c, f->kind, (struct str){0}, arg);

    op->list_fn = fn;
    op->owner = copy_of(f->owner);
    op->parent = f->parent ? mem_strdup(f->parent) : NULL;
    op->filter = *f;
    op->filter.tenant = op->tenant;
    op->filter.kind = op->kind;
    op->filter.owner = op->owner;
    op->filter.parent = op->parent;
    op->after = f->page.after ? mem_strdup(f->page.after) : NULL;
    op->filter.page.after = op->after;
    op->filter.page.pools = op->pools;
    op->filter.page.limit = f->page.limit && f->page.limit < PAGE_MAX ? f->page.limit : PAGE_MAX;
    op->filter.page.progress = &op->progress;
    task_start_read(&op->task, sv, steps, on_done);
}

static int delete_row(struct task *t, struct db *db, struct err *e)
{
    struct item_op *op = OWNER(t, struct item_op, task);
    int rc;

    if (op->pools && read_row(t, db, e) < 0)
        return -1;
    rc = db_item_delete(db, op->tenant, op->kind, op->id, e);

    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such %s", op->kind) : rc;
}

void service_item_delete(struct service *sv, const struct caller *c, const char *kind,
                         struct str id, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = delete_row}, {0}};
    struct item_op *op = op_new(sv, c, kind, id, arg);

    op->done_fn = fn;
    task_start(&op->task, sv, NULL, steps, on_done);
}

static int read_everybodys(struct task *t, struct db *db, struct err *e)
{
    struct item_op *op = OWNER(t, struct item_op, task);

    return db_item_everybodys(db, *op->tenant ? op->tenant : NULL, op->kind, op->parent,
                              EVERYBODYS_MAX, &op->rows, &op->count, e);
}

void service_item_everybodys(struct service *sv, const char *tenant, const char *kind,
                             const char *parent, items_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = read_everybodys}, {0}};
    struct caller of = {0};
    struct item_op *op;

    (void)!str_to_cstr(str_of(tenant ? tenant : ""), of.tenant, sizeof(of.tenant));
    op = op_new(sv, &of, kind, (struct str){0}, arg);

    op->list_fn = fn;
    op->parent = mem_strdup(parent);
    task_start_read(&op->task, sv, steps, on_done);
}
