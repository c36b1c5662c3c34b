/*
 * Keys: the one place where a secret becomes a tenant. The service keeps the list in memory and
 * reads it again every few seconds, as the command line creates and revokes keys in the same
 * database.
 */
#include "service/service_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

#define USED_EVERY_MS 60000 /* how exact "last used" is */
#define SOUGHT_MAX    20    /* unknown keys a second that the database is asked about */

void keys_free(struct key_row *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        key_row_done(&keys[i]);
    free(keys);
}

void keys_take(struct service *sv, struct key_row *keys, size_t count)
{
    keys_free(sv->keys, sv->key_count);
    sv->keys = keys;
    sv->key_count = count;
}

/* --- who asks --- */

bool service_has_keys(struct service *sv)
{
    return sv->key_count > 0;
}

static void take_caller(struct caller *ret, const char *tenant, const char *key, bool admin,
                        bool approver)
{
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", tenant);
    snprintf(ret->key, sizeof(ret->key), "%s", key);
    ret->admin = admin;
    ret->approver = admin || approver;
}

struct key_use {
    struct task task;
    char id[ID_MAX];
    int64_t when_ms;
};

static int write_use(struct task *t, struct db *db, struct err *e)
{
    struct key_use *u = OWNER(t, struct key_use, task);

    return db_key_used(db, u->id, u->when_ms, e) < 0 ? -1 : 0;
}

static void on_used(struct task *t, const struct err *failed)
{
    if (failed)
        log_warn("the use of a key is not on record: %s", failed->text);
    free(OWNER(t, struct key_use, task));
}

static void note_use(struct service *sv, struct key_row *k)
{
    static const struct step steps[] = {{.store = write_use}, {0}};
    int64_t now = time_now_ms();
    struct key_use *u;

    if (now - k->used_ms < USED_EVERY_MS)
        return;
    k->used_ms = now;
    u = mem_zalloc(sizeof(*u));
    u->when_ms = now;
    memcpy(u->id, k->id, sizeof(u->id));
    task_start(&u->task, sv, NULL, steps, on_used);
}

static bool is_good(const struct key_row *k)
{
    return k->revoked_ms == 0 && (k->expires_ms == 0 || k->expires_ms > time_now_ms());
}

/* Every key is compared, to the last byte, whichever it is. */
static struct key_row *match(struct service *sv, struct str secret)
{
    struct key_row *found = NULL;
    uint8_t hash[32];

    key_hash(secret, hash);
    for (size_t i = 0; i < sv->key_count; i++) {
        struct key_row *k = &sv->keys[i];
        bool same = gnutls_memcmp(k->hash, hash, sizeof(hash)) == 0;
        if (same && is_good(k))
            found = k;
    }
    return found;
}

bool service_authorise(struct service *sv, struct str secret, bool local, struct caller *ret)
{
    struct key_row *k = match(sv, secret);

    ret->tenant[0] = ret->key[0] = '\0';
    ret->admin = ret->approver = false;
    if (k && secret.n > 0) {
        take_caller(ret, k->tenant, k->id, k->admin, k->approver);
        note_use(sv, k);
        return true;
    }
    if (sv->key_count == 0 && local) {
        take_caller(ret, "local", "", true, true);
        return true;
    }
    sv->counts.refused_auth++;
    return false;
}

bool service_key_stands(struct service *sv, const char *tenant, const char *id)
{
    if (!*id)
        return sv->key_count == 0 && strcmp(tenant, "local") == 0;
    for (size_t i = 0; i < sv->key_count; i++)
        if (strcmp(sv->keys[i].id, id) == 0)
            return is_good(&sv->keys[i]) && strcmp(sv->keys[i].tenant, tenant) == 0;
    return false;
}

bool service_key_tenant(struct service *sv, const char *id, char ret[64])
{
    const char *tenant = *id ? NULL : "local";

    for (size_t i = 0; i < sv->key_count && *id; i++)
        if (strcmp(sv->keys[i].id, id) == 0)
            tenant = sv->keys[i].tenant;
    snprintf(ret, 64, "%s", tenant ? tenant : "");
    return tenant != NULL;
}

/* --- the list --- */

struct key_op {
    struct task task;
    struct service *sv;
    struct key_row row; /* owned */
    char id[ID_MAX];
    char secret[KEY_SECRET_MAX];
    bool is_there;        /* the key that is sought */
    struct key_row *keys; /* owned: all of them, afterwards */
    size_t count;
    struct err failed;
    key_fn *fn;
    keys_fn *list_fn;
    done_fn *done_fn;
    void *arg;
};

static int read_all(struct task *t, struct db *db, struct err *e)
{
    struct key_op *op = OWNER(t, struct key_op, task);

    return db_key_list(db, &op->keys, &op->count, e) < 0 ? -1 : 0;
}

static void answer(struct key_op *op, const struct err *failed)
{
    if (op->fn)
        op->fn(op->arg, failed ? NULL : &op->row, failed ? NULL : op->secret, failed);
    else if (op->list_fn)
        op->list_fn(op->arg, op->sv->keys, failed ? 0 : op->sv->key_count, failed);
    else if (op->done_fn)
        op->done_fn(op->arg, failed);
    gnutls_memset(op->secret, 0, sizeof(op->secret));
    key_row_done(&op->row);
    free(op);
}

static bool is_before(const struct key_row *a, const struct key_row *b)
{
    return a->created_ms != b->created_ms ? a->created_ms < b->created_ms
                                          : strcmp(a->id, b->id) < 0;
}

/* When it was last used is written once in a while only; here it is known better. Both lists are in
 * the order of db_key_list(): one walk, for there may be a key for each customer of somebody's. */
static void keep_uses(const struct service *sv, struct key_op *op)
{
    struct key_row *read = op->keys, *end = read + op->count;

    for (size_t i = 0; i < sv->key_count; i++) {
        while (read < end && is_before(read, &sv->keys[i]))
            read++;
        if (read < end && strcmp(read->id, sv->keys[i].id) == 0 &&
            sv->keys[i].used_ms > read->used_ms)
            read->used_ms = sv->keys[i].used_ms;
    }
}

static void on_read(struct task *t, const struct err *failed)
{
    struct key_op *op = OWNER(t, struct key_op, task);

    if (failed) {
        keys_free(op->keys, op->count);
    } else {
        keep_uses(op->sv, op);
        keys_take(op->sv, op->keys, op->count);
    }
    answer(op, failed);
}

static void on_reload(void *arg, const struct err *failed)
{
    struct service *sv = arg;

    sv->reading_keys = false;
    if (failed)
        log_warn("the keys are not read again: %s", failed->text);
}

static const struct step reading[] = {{.store = read_all}, {0}};

void service_reload(struct service *sv)
{
    struct key_op *op;

    if (sv->reading_keys)
        return;
    sv->reading_keys = true;
    op = mem_zalloc(sizeof(*op));
    *op = (struct key_op){.sv = sv, .done_fn = on_reload, .arg = sv};
    task_start(&op->task, sv, NULL, reading, on_read);
}

/* --- one that is not in the list --- */

static int look_up(struct task *t, struct db *db, struct err *e)
{
    struct key_op *op = OWNER(t, struct key_op, task);
    int rc = db_key_is_there(db, op->row.hash, e);

    op->is_there = rc > 0;
    return rc < 0 ? -1 : op->is_there ? db_key_list(db, &op->keys, &op->count, e) : 0;
}

static void on_looked_up(struct task *t, const struct err *failed)
{
    struct key_op *op = OWNER(t, struct key_op, task);

    if (op->is_there)
        on_read(t, failed);
    else
        answer(op, failed);
}

/* Strangers send what they like: so many a second, and the others wait for the next reading. */
static bool may_seek(struct service *sv)
{
    int64_t now = time_mono_us();

    if (now - sv->sought_us >= 1000000) {
        sv->sought_us = now;
        sv->keys_sought = 0;
    }
    return sv->keys_sought++ < SOUGHT_MAX;
}

bool service_key_seek(struct service *sv, struct str secret, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = look_up}, {0}};
    struct key_op *op;

    if (secret.n == 0 || sv->closing || !may_seek(sv))
        return false;
    sv->counts.refused_auth--; /* not yet */
    op = mem_zalloc(sizeof(*op));
    *op = (struct key_op){.sv = sv, .done_fn = fn, .arg = arg};
    key_hash(secret, op->row.hash);
    task_start(&op->task, sv, NULL, steps, on_looked_up);
    return true;
}

/* --- an admin's --- */

static void refuse_later(void *arg)
{
    struct key_op *op = arg;

    op->sv->pending--;
    answer(op, &op->failed);
}

static void start(struct key_op *op, const struct caller *c, const struct step *steps)
{
    if (!c->admin)
        err_set(&op->failed, ERR_CALLER, "only an admin's key may manage keys");
    if (op->failed.kind == ERR_NONE)
        return task_start(&op->task, op->sv, NULL, steps, on_read);
    op->sv->pending++;
    loop_later(op->sv->loop, refuse_later, op);
}

static struct key_op *op_new(struct service *sv, void *arg)
{
    struct key_op *op = mem_zalloc(sizeof(*op));

    *op = (struct key_op){.sv = sv, .arg = arg};
    return op;
}

/* Tenants are names in logs and lists. */
static bool is_plain(struct str s, char *ret, size_t size)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
    return str_utf8_len(s) == s.n && str_to_cstr(s, ret, size);
}

static int write_key(struct task *t, struct db *db, struct err *e)
{
    return db_key_put(db, &OWNER(t, struct key_op, task)->row, e);
}

void service_key_create(struct service *sv, const struct caller *c, const struct key_spec *spec,
                        key_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = write_key}, {.store = read_all}, {0}};
    struct key_op *op = op_new(sv, arg);
    char tenant_text[sizeof(c->tenant)], name_text[256];

    op->fn = fn;
    if (spec->tenant.n == 0 || !is_plain(spec->tenant, tenant_text, sizeof(tenant_text)))
        err_set(&op->failed, ERR_CALLER, "a tenant is 1 to %zu bytes of plain text",
                sizeof(tenant_text) - 1);
    else if (!is_plain(spec->name, name_text, sizeof(name_text)))
        err_set(&op->failed, ERR_CALLER, "a key's name is at most %zu bytes of plain text",
                sizeof(name_text) - 1);
    else
        key_make(&op->row, op->secret, tenant_text, name_text, spec->admin);
    op->row.approver = spec->approver;
    if (!op->failed.kind)
        (void)!key_limit(&op->row, &spec->limits, &op->failed);
    start(op, c, steps);
}

void service_key_list(struct service *sv, const struct caller *c, keys_fn *fn, void *arg)
{
    struct key_op *op = op_new(sv, arg);

    op->list_fn = fn;
    start(op, c, reading);
}

static int revoke(struct task *t, struct db *db, struct err *e)
{
    struct key_op *op = OWNER(t, struct key_op, task);
    int rc = db_key_revoke(db, op->id, time_now_ms(), e);

    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such key") : rc;
}

void service_key_revoke(struct service *sv, const struct caller *c, struct str id, done_fn *fn,
                        void *arg)
{
    static const struct step steps[] = {{.store = revoke}, {.store = read_all}, {0}};
    struct key_op *op = op_new(sv, arg);

    op->done_fn = fn;
    if (!str_to_cstr(id, op->id, sizeof(op->id)))
        op->id[0] = '\0'; /* which is nobody's */
    start(op, c, steps);
}
