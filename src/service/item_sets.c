/* Items that belong together: put at once with their bytes, and deleted with all that hangs on
 * them. A crash leaves all of them, or none. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define CHILDREN_MAX 1000

struct item_set {
    struct task task;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *pools;           /* owned, or NULL: of the caller's key */
    struct item_row *rows; /* owned: to be put */
    struct blob **blobs;   /* owned, each: or NULL */
    size_t count;
    uint64_t max;
    const char *const *kinds; /* static: of a deletion */
    char *id;                 /* owned: of a deletion */
    done_fn *fn;
    void *arg;
};

static struct item_set *set_new(struct service *sv, const struct caller *c, done_fn *fn, void *arg)
{
    struct item_set *s = mem_zalloc(sizeof(*s));

    s->fn = fn;
    s->arg = arg;
    s->pools = scope_pools_copy(sv, c);
    snprintf(s->tenant, sizeof(s->tenant), "%s", c->tenant);
    return s;
}

static void on_done(struct task *t, const struct err *failed)
{
    struct item_set *s = OWNER(t, struct item_set, task);

    s->fn(s->arg, failed);
    for (size_t i = 0; i < s->count; i++) {
        item_row_done(&s->rows[i]);
        blob_free(s->blobs[i]);
    }
    free(s->rows);
    free(s->blobs);
    free(s->pools);
    free(s->id);
    free(s);
}

/* --- coming in --- */

static int keep_blobs(struct task *t, struct err *e)
{
    struct item_set *s = OWNER(t, struct item_set, task);

    for (size_t i = 0; i < s->count; i++)
        if (s->blobs[i] &&
            blob_keep(take_ptr(&s->blobs[i]), BLOB_LATER, s->rows[i].hash, &s->rows[i].size, e) < 0)
            return -1;
    return 0;
}

static int check_room(struct item_set *s, struct db *db, struct err *e)
{
    uint64_t count = 0;

    if (db_item_count(db, s->tenant, s->rows[0].kind, &count, e) < 0)
        return -1;
    return count < s->max ? 0
                          : err_set(e, ERR_LIMIT, "there are %llu of them, which is the most",
                                    (unsigned long long)count);
}

static int write_rows(struct task *t, struct db *db, struct err *e)
{
    struct item_set *s = OWNER(t, struct item_set, task);

    uint64_t bytes = 0;

    for (size_t i = 0; i < s->count; i++)
        bytes += s->rows[i].size;
    if ((s->max && check_room(s, db, e) < 0) || quota_check(t->sv, db, s->tenant, bytes, e) < 0)
        return -1;
    for (size_t i = 0; i < s->count; i++)
        if (db_item_put(db, &s->rows[i], e) < 0)
            return -1;
    return 0;
}

static char *copy_of(const char *s)
{
    return mem_strdup(s ? s : "");
}

void service_items_put(struct service *sv, const struct caller *c, const struct item_row *rows,
                       struct blob **blobs, size_t count, uint64_t max, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.work = keep_blobs}, {.store = write_rows}, {0}};
    struct item_set *s = set_new(sv, c, fn, arg);
    int64_t now = time_now_ms();

    s->max = max;
    s->count = count;
    s->rows = mem_zalloc((count + 1) * sizeof(*s->rows));
    s->blobs = mem_zalloc((count + 1) * sizeof(*s->blobs));
    for (size_t i = 0; i < count; i++) {
        struct item_row *row = &s->rows[i];

        *row = rows[i];
        row->id = copy_of(rows[i].id);
        row->tenant = mem_strdup(s->tenant);
        row->kind = copy_of(rows[i].kind);
        row->owner = copy_of(rows[i].owner);
        row->parent = copy_of(rows[i].parent);
        row->body = copy_of(rows[i].body);
        row->pools = s->pools ? mem_strdup(s->pools) : NULL;
        row->created_ms = rows[i].created_ms ? rows[i].created_ms : now;
        row->updated_ms = now;
        s->blobs[i] = take_ptr(&blobs[i]);
    }
    task_start(&s->task, sv, NULL, steps, on_done);
}

/* --- going --- */

/* Children first, as many as there are. */
static int delete_below(struct item_set *s, struct db *db, const char *const *kinds, const char *id,
                        struct err *e)
{
    const struct item_filter below = {.tenant = s->tenant,
                                      .kind = kinds[1],
                                      .owner = "",
                                      .parent = id,
                                      .page.limit = CHILDREN_MAX};
    struct item_row *found = NULL;
    size_t count = 0;
    int rc = 0;

    do {
        rc = kinds[1] ? db_item_list(db, &below, &found, &count, e) : 0;
        for (size_t i = 0; i < count; i++) {
            if (rc >= 0)
                rc = delete_below(s, db, kinds + 1, found[i].id, e);
            item_row_done(&found[i]);
        }
        free(take_ptr(&found));
    } while (rc >= 0 && count == CHILDREN_MAX);
    return rc < 0 ? -1 : db_item_delete(db, s->tenant, kinds[0], id, e);
}

static int delete_all(struct task *t, struct db *db, struct err *e)
{
    struct item_set *s = OWNER(t, struct item_set, task);
    struct item_row row = {0};
    int rc = db_item_get(db, s->tenant, s->kinds[0], s->id, &row, e);

    if (rc > 0 && s->pools && !(row.pools && strcmp(s->pools, row.pools) == 0))
        rc = 0;
    item_row_done(&row);
    if (rc > 0)
        return delete_below(s, db, s->kinds, s->id, e) < 0 ? -1 : 0;
    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such %s", s->kinds[0]) : -1;
}

void service_items_delete(struct service *sv, const struct caller *c, const char *const *kinds,
                          struct str id, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = delete_all}, {0}};
    struct item_set *s = set_new(sv, c, fn, arg);

    s->kinds = kinds;
    s->id = id.n && !memchr(id.p, '\0', id.n) ? mem_strndup(id) : mem_strdup("");
    task_start(&s->task, sv, NULL, steps, on_done);
}
