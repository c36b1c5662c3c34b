/* The key that a client gets with a pool, and gets again when it asks again. */
#include "service/service_int.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

struct handing {
    struct task task;
    struct service *sv;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *pool;       /* owned */
    const char *door; /* static */
    bool anew;
    struct pool_key_row row; /* owned */
    struct key_row *keys;    /* owned: all of them, afterwards */
    size_t count;
    pool_key_fn *fn;
    void *arg;
    struct err failed;
};

static void handing_free(struct handing *h)
{
    if (h->row.secret)
        gnutls_memset(h->row.secret, 0, strlen(h->row.secret));
    pool_key_row_done(&h->row);
    keys_free(h->keys, h->count);
    free(h->pool);
    free(h);
}

/* Whether it may still be used: an operator may have revoked it. And it is for nothing else. */
static bool is_good(const struct handing *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->keys[i].id, h->row.key) == 0)
            return h->keys[i].revoked_ms == 0 && h->keys[i].pools && h->keys[i].doors &&
                   strcmp(h->keys[i].pools, h->pool) == 0 && strcmp(h->keys[i].doors, h->door) == 0;
    return false;
}

static int make(struct handing *h, struct db *db, struct err *e)
{
    struct key_row key = {0};
    char secret[KEY_SECRET_MAX], name[96];
    int rc;

    snprintf(name, sizeof(name), "clients of pool %s", h->pool);
    key_make(&key, secret, h->tenant, name, false);
    pool_key_row_done(&h->row);
    h->row = (struct pool_key_row){.pool = mem_strdup(h->pool),
                                   .tenant = mem_strdup(h->tenant),
                                   .key = mem_strdup(key.id),
                                   .secret = mem_strdup(secret)};
    gnutls_memset(secret, 0, sizeof(secret));
    key.pools = mem_strdup(h->pool);
    key.doors = mem_strdup(h->door);
    rc = db_key_put(db, &key, e);
    key_row_done(&key);
    return rc < 0 ? -1 : db_pool_key_put(db, &h->row, e);
}

static int find_or_make(struct task *t, struct db *db, struct err *e)
{
    struct handing *h = OWNER(t, struct handing, task);
    int found = db_pool_key_get(db, h->pool, h->tenant, &h->row, e);

    if (found < 0 || db_key_list(db, &h->keys, &h->count, e) < 0)
        return -1;
    if (found && !h->anew && is_good(h))
        return 0;
    if (found && db_key_revoke(db, h->row.key, time_now_ms(), e) < 0)
        return -1;
    if (make(h, db, e) < 0)
        return -1;
    keys_free(take_ptr(&h->keys), h->count);
    h->count = 0;
    return db_key_list(db, &h->keys, &h->count, e);
}

static void on_made(struct task *t, const struct err *failed)
{
    struct handing *h = OWNER(t, struct handing, task);

    if (!failed) {
        keys_take(t->sv, take_ptr(&h->keys), h->count);
        h->count = 0;
    }
    h->fn(h->arg, failed ? NULL : h->row.secret, failed);
    handing_free(h);
}

static void fail_later(void *arg)
{
    struct handing *h = arg;

    h->sv->pending--;
    h->fn(h->arg, NULL, &h->failed);
    handing_free(h);
}

void service_pool_key(struct service *sv, const struct caller *c, struct str pool, const char *door,
                      bool anew, pool_key_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = find_or_make}, {0}};
    struct handing *h = mem_zalloc(sizeof(*h));

    *h = (struct handing){
        .sv = sv, .pool = mem_strndup(pool), .door = door, .anew = anew, .fn = fn, .arg = arg};
    snprintf(h->tenant, sizeof(h->tenant), "%s", c->tenant);
    if (!c->admin)
        err_set(&h->failed, ERR_DENIED, "this needs the key of an administrator");
    else if (!pool_entry_find(sv, pool))
        err_set(&h->failed, ERR_MISSING, "there is no such pool");
    else if (!service_has_keys(sv))
        err_set(&h->failed, ERR_CONFLICT, "no key is needed here: none has been made");
    if (!h->failed.kind)
        return task_start(&h->task, sv, NULL, steps, on_made);
    sv->pending++;
    loop_later(sv->loop, fail_later, h);
}
