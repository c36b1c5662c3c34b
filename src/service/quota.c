/* The disk quota of a tenant: its files, and the items that doors keep for it. Workspaces have
 * limits of their own. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

int quota_check(struct service *sv, struct db *db, const char *tenant, uint64_t bytes,
                struct err *e)
{
    uint64_t max = sv->config.tenant_bytes, files = 0, items = 0;

    if (!max)
        return 0;
    if (db_file_bytes(db, tenant, time_sure_ms(), &files, e) < 0 ||
        db_item_bytes(db, tenant, &items, e) < 0)
        return -1;
    if (files <= max && items <= max - files && bytes <= max - files - items)
        return 0;
    err_set(e, ERR_LIMIT, "the files of this tenant would take more than %llu bytes",
            (unsigned long long)max);
    e->sys = FILE_QUOTA;
    return -1;
}

struct room_op {
    struct task task;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    uint64_t bytes;
    done_fn *fn;
    void *arg;
};

static int check(struct task *t, struct db *db, struct err *e)
{
    struct room_op *op = OWNER(t, struct room_op, task);

    return quota_check(t->sv, db, op->tenant, op->bytes, e);
}

static void on_done(struct task *t, const struct err *failed)
{
    struct room_op *op = OWNER(t, struct room_op, task);

    op->fn(op->arg, failed);
    free(op);
}

void service_room(struct service *sv, const struct caller *c, uint64_t bytes, done_fn *fn,
                  void *arg)
{
    static const struct step steps[] = {{.store = check}, {0}};
    struct room_op *op = mem_zalloc(sizeof(*op));

    *op = (struct room_op){.bytes = bytes, .fn = fn, .arg = arg};
    snprintf(op->tenant, sizeof(op->tenant), "%s", c->tenant);
    task_start_read(&op->task, sv, steps, on_done);
}
