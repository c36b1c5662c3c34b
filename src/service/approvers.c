/* Approvals, from the side of the approver: list them, show one, decide. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS (24ll * 60 * 60 * 1000) /* where the pool is no more */

/* --- who waits for a decision --- */

struct approval_watch *approval_watch_new(struct service *sv, const char *id, loop_fn *fn,
                                          void *arg)
{
    struct approval_watch *w = mem_zalloc(sizeof(*w));

    *w = (struct approval_watch){.next = sv->watches, .link = &sv->watches, .fn = fn, .arg = arg};
    snprintf(w->id, sizeof(w->id), "%s", id);
    if (w->next)
        w->next->link = &w->next;
    sv->watches = w;
    return w;
}

void approval_unwatch(struct approval_watch *w)
{
    if (!w)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    free(w);
}

/* From the start each time: whoever is told may take any of them away. */
static void tell(struct service *sv, const char *id)
{
    struct approval_watch *w;

    for (w = sv->watches; w; w = w->next)
        w->told = false;
    do {
        for (w = sv->watches; w && (w->told || strcmp(w->id, id) != 0);)
            w = w->next;
        if (w) {
            w->told = true;
            w->fn(w->arg);
        }
    } while (w);
}

/* --- one --- */

struct inquiry {
    struct task task;
    struct caller caller;
    char id[ID_MAX], after[ID_MAX];
    bool approve;
    char reason[APPROVAL_REASON_MAX + 1];
    int64_t wait_ms;    /* for it to be used, once it is approved */
    bool needs_other;   /* the asker's own yes does not count */
    char *pools;        /* owned, or NULL: of the caller's key */
    struct err refused; /* before anything was looked up */
    int expired;
    struct approval_row row; /* owned */
    /* a list */
    int state;
    struct page page;
    struct progress progress;
    struct approval_row *rows; /* owned */
    size_t count;
    approval_fn *fn;
    approvals_fn *list_fn;
    void *arg;
};

static void inquiry_free(struct inquiry *k)
{
    for (size_t i = 0; i < k->count; i++)
        approval_row_done(&k->rows[i]);
    free(k->rows);
    progress_done(&k->progress);
    approval_row_done(&k->row);
    free(k->pools);
    free(k);
}

static struct inquiry *inquiry_new(struct service *sv, const struct caller *c, struct str id,
                                   void *arg)
{
    struct inquiry *k = mem_zalloc(sizeof(*k));

    *k = (struct inquiry){.caller = *c, .pools = scope_pools_copy(sv, c), .arg = arg};
    if (!str_to_cstr(id, k->id, sizeof(k->id)))
        k->id[0] = '\0'; /* which is nobody's */
    return k;
}

static int check(struct task *t, struct err *e)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);

    if (k->refused.kind == ERR_NONE)
        return 0;
    *e = k->refused;
    return -1;
}

/* So that nobody reads of one as pending that is not. */
static int expire(struct task *t, struct db *db, struct err *e)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);

    k->expired = db_approval_expire(db, time_now_ms(), e);
    return k->expired < 0 ? -1 : 0;
}

static int read_one(struct task *t, struct db *db, struct err *e)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    int rc = db_approval_get(db, k->caller.tenant, k->id, &k->row, e);

    if (rc > 0 && !pools_have(k->pools, k->row.pool))
        rc = 0;

    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such approval") : rc < 0 ? -1 : 0;
}

static void count(struct inquiry *k)
{
    if (k->expired > 0)
        k->task.sv->counts.approvals[APPROVAL_EXPIRED] += (uint64_t)k->expired;
}

static void on_one(struct task *t, const struct err *failed)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    struct approval_info info = {.row = &k->row, .verdict = APPROVAL_WAIT};

    count(k);
    k->fn(k->arg, failed ? NULL : &info, failed);
    inquiry_free(k);
}

void service_approval_get(struct service *sv, const struct caller *c, struct str id,
                          approval_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = expire}, {.store = read_one}, {0}};
    struct inquiry *k = inquiry_new(sv, c, id, arg);

    k->fn = fn;
    task_start(&k->task, sv, NULL, steps, on_one);
}

/* --- many --- */

static int read_list(struct task *t, struct db *db, struct err *e)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    struct page page = k->page;

    page.limit++;
    page.pools = k->pools;
    return task_read_on(
        t, db_approval_list(db, k->caller.tenant, k->state, page, &k->rows, &k->count, e));
}

static void on_list(struct task *t, const struct err *failed)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    bool more = k->count > k->page.limit;

    count(k);
    k->list_fn(k->arg, k->rows, failed ? 0 : more ? k->page.limit : k->count, more, failed);
    inquiry_free(k);
}

void service_approval_list(struct service *sv, const struct caller *c, int state, struct page page,
                           approvals_fn *fn, void *arg)
{
    static const struct step steps[] = {
        {.store = expire}, {.loop = task_go_on}, {.store = read_list}, {0}};
    struct inquiry *k = inquiry_new(sv, c, (struct str){0}, arg);

    k->list_fn = fn;
    k->state = state;
    k->page = page;
    k->page.limit = page.limit && page.limit < PAGE_MAX ? page.limit : PAGE_MAX;
    k->page.progress = &k->progress;
    if (page.after) {
        snprintf(k->after, sizeof(k->after), "%s", page.after);
        k->page.after = k->after;
    }
    task_start_read(&k->task, sv, steps, on_list);
}

/* --- deciding --- */

/* Pools are the loop's to look at. */
static int find_wait(struct task *t, struct err *e)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    const struct pool_entry *env = pool_entry_find(t->sv, str_of(k->row.pool));

    (void)e;
    k->wait_ms = env ? (int64_t)env->config.approval_wait_ms : WAIT_MS;
    k->needs_other = !env || env->config.approval_by == APPROVAL_BY_APPROVER;
    approval_row_done(&k->row);
    return 0;
}

static int decide(struct task *t, struct db *db, struct err *e)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    struct approval_row *r = &k->row;

    if (read_one(t, db, e) < 0)
        return -1;
    if (r->state != APPROVAL_PENDING)
        return err_set(e, ERR_CONFLICT, "it is not pending any more, but %s",
                       approval_state_name(r->state));
    if (k->approve && k->needs_other && *k->caller.key && strcmp(r->key, k->caller.key) == 0)
        return err_set(
            e, ERR_DENIED,
            "this key has asked for it: where approval-by = approver, the key of another "
            "approver must decide");
    r->state = k->approve ? APPROVAL_APPROVED : APPROVAL_DECLINED;
    r->decided_by = mem_strdup(k->caller.key);
    r->decided_how = mem_strdup("approver");
    r->reason = *k->reason ? mem_strdup(k->reason) : NULL;
    r->decided_ms = time_now_ms();
    r->expires_ms = r->decided_ms + k->wait_ms;
    return db_approval_put(db, r, e);
}

static void on_decided(struct task *t, const struct err *failed)
{
    struct inquiry *k = OWNER(t, struct inquiry, task);
    struct service *sv = t->sv;
    char id[ID_MAX];

    memcpy(id, k->id, sizeof(id));
    if (!failed) {
        sv->counts.approvals[k->row.state]++;
        log_info("approval %s: %s by %s", id, approval_state_name(k->row.state),
                 *k->caller.key ? k->caller.key : "somebody local");
        feed_approval(sv, &k->row);
    }
    on_one(t, failed);
    if (!failed)
        tell(sv, id);
}

static void check_decision(struct inquiry *k, struct str reason)
{
    if (!k->caller.approver)
        err_set(&k->refused, ERR_DENIED,
                "only a key that was made with --approver, or an admin's, decides approvals");
    else if (reason.n > APPROVAL_REASON_MAX || !str_to_cstr(reason, k->reason, sizeof(k->reason)))
        err_set(&k->refused, ERR_CALLER, "a reason has up to %d bytes", APPROVAL_REASON_MAX);
}

void service_approval_decide(struct service *sv, const struct caller *c, struct str id,
                             bool approve, struct str reason, approval_fn *fn, void *arg)
{
    static const struct step steps[] = {{.loop = check},     {.store = expire}, {.store = read_one},
                                        {.loop = find_wait}, {.store = decide}, {0}};
    struct inquiry *k = inquiry_new(sv, c, id, arg);

    k->fn = fn;
    k->approve = approve;
    check_decision(k, reason);
    task_start(&k->task, sv, NULL, steps, on_decided);
}
