/* Sessions as clients ask for them. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- create --- */

struct creation {
    struct task task;
    struct service *sv;
    struct pool_entry *env;
    struct session_row row;   /* owned: as it will be */
    struct session_row found; /* owned: one of this name */
    bool finds;               /* and makes none: the caller only reads */
    bool asleep;              /* without a sandbox until code runs */
    session_fn *fn;
    void *arg;
    struct err failed;
};

static void creation_free(struct creation *n)
{
    session_row_done(&n->row);
    session_row_done(&n->found);
    free(n);
}

static void fail(struct creation *n)
{
    n->fn(n->arg, NULL, &n->failed);
    creation_free(n);
}

static void fail_later(void *arg)
{
    struct creation *n = arg;

    n->sv->pending--;
    fail(n);
}

static uint64_t at_most(uint64_t asked, uint64_t most)
{
    return asked && asked < most ? asked : most;
}

void session_row_fill(struct session_row *ret, const struct pool_entry *env, const char *tenant)
{
    *ret = (struct session_row){
        .tenant = mem_strdup(tenant),
        .pool = mem_strdup(env->config.name),
        .idle_ms = (int64_t)env->config.idle_ms,
        .lifetime_ms = (int64_t)env->config.lifetime_ms,
    };
    id_make(ret->id, "sess_");
    ret->created_ms = id_ms(str_of(ret->id)); /* so a list can go on after one that is gone */
}

int session_name_take(struct session_row *row, struct str name, struct err *e)
{
    if (name.n == 0)
        return 0;
    if (name.n > SESSION_NAME_MAX)
        return err_set(e, ERR_LIMIT, "the name is longer than %d bytes", SESSION_NAME_MAX);
    if (str_utf8_len(name) != name.n)
        return err_set(e, ERR_CALLER, "the name is not UTF-8 text");
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f)
            return err_set(e, ERR_CALLER, "the name holds a control character");
    row->name = mem_strndup(name);
    return 0;
}

static int take_metadata(struct session_row *row, const json_t *metadata, struct err *e)
{
    if (!metadata)
        return 0;
    if (!json_is_object(metadata))
        return err_set(e, ERR_CALLER, "the metadata is not an object");
    row->metadata = json_dumps(metadata, JSON_COMPACT);
    if (!row->metadata || strlen(row->metadata) > METADATA_MAX)
        return err_set(e, ERR_LIMIT, "the metadata is longer than %zu bytes", METADATA_MAX);
    return 0;
}

static int take_spec(struct creation *n, const struct caller *c, const struct session_spec *spec,
                     struct err *e)
{
    json_t *vars;

    n->env = scope_pool_entry(n->sv, c, spec->pool, e);
    if (!n->env)
        return -1;
    n->finds = scope_writes(n->sv, c, &n->failed) < 0;
    if (n->finds && !spec->name.n)
        return -1;
    n->failed = (struct err){0};
    session_row_fill(&n->row, n->env, c->tenant);
    n->row.idle_ms = (int64_t)at_most(spec->idle_ms, n->env->config.idle_ms);
    n->row.lifetime_ms = (int64_t)at_most(spec->lifetime_ms, n->env->config.lifetime_ms);
    if (session_name_take(&n->row, spec->name, e) < 0 ||
        take_metadata(&n->row, spec->metadata, e) < 0 ||
        vars_from(spec->env, spec->env_count, &vars, e) < 0)
        return -1;
    if (vars)
        n->row.env = json_dumps(vars, JSON_COMPACT);
    json_decref(vars);
    return 0;
}

/* What takes no sandbox yet needs no room. */
static int check_room(struct creation *n)
{
    return n->asleep ? 0 : loaded_room(n->sv, n->env, n->row.tenant, &n->failed);
}

static void begin(struct creation *n)
{
    struct loaded *l = n->asleep ? loaded_begin_asleep(n->sv, n->env, &n->row)
                                 : loaded_begin(n->sv, n->env, &n->row);

    loaded_wait(l, n->fn, n->arg, false);
    loaded_drop(l);
    creation_free(n);
}

struct loaded *session_in_memory(struct service *sv, const char *tenant, const char *pool,
                                 const char *name)
{
    AUTO_FREE void **all = table_all(&sv->sessions);

    for (size_t i = 0; i < sv->sessions.n; i++) {
        struct loaded *l = all[i];
        if (l->state != SESSION_ENDED && strcmp(l->row.pool, pool) == 0 && l->row.name &&
            strcmp(l->row.name, name) == 0 && strcmp(l->row.tenant, tenant) == 0)
            return l;
    }
    return NULL;
}

static int find_named(struct task *t, struct db *db, struct err *e)
{
    struct creation *n = OWNER(t, struct creation, task);

    return db_session_named(db, n->row.tenant, n->row.pool, n->row.name, &n->found, e) < 0 ? -1 : 0;
}

static void on_named(struct task *t, const struct err *failed)
{
    struct creation *n = OWNER(t, struct creation, task);
    struct loaded *l = session_in_memory(n->sv, n->row.tenant, n->row.pool, n->row.name);

    n->env = pool_entry_find(n->sv, str_of(n->row.pool)); /* it may be another by now */
    if (failed)
        n->failed = *failed;
    else if (!n->env)
        err_set(&n->failed, ERR_CALLER, "there is no such pool");
    if (n->failed.kind)
        return fail(n);
    if (l)
        loaded_hold(l);
    else if (*n->found.id)
        l = loaded_adopt(n->sv, &n->found);
    if (l && l->state != SESSION_ENDED) {
        loaded_used(l);
        if (l->state == SESSION_ASLEEP)
            loaded_keep(l, false);
        loaded_wait(l, n->fn, n->arg, true);
        creation_free(n);
    } else if (n->finds) {
        err_set(&n->failed, ERR_MISSING, "there is no such session, and this key may only read");
        fail(n);
    } else if (check_room(n) < 0) {
        fail(n);
    } else {
        begin(n);
    }
    if (l)
        loaded_drop(l);
}

void service_session_create(struct service *sv, const struct caller *c,
                            const struct session_spec *spec, session_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = find_named}, {0}};
    struct creation *n = mem_zalloc(sizeof(*n));

    *n = (struct creation){.sv = sv, .asleep = spec->asleep, .fn = fn, .arg = arg};
    if (take_spec(n, c, spec, &n->failed) < 0 || (!n->row.name && check_room(n) < 0)) {
        sv->pending++;
        loop_later(sv->loop, fail_later, n);
    } else if (n->row.name) {
        task_start(&n->task, sv, NULL, steps, on_named);
    } else {
        begin(n);
    }
}

/* --- one that is there --- */

struct session_op {
    void (*act)(struct loaded *l, const struct session_op *op);
    uint64_t idle_ms;
    session_fn *fn;
    done_fn *done;
    void *arg;
};

static void on_found(void *arg, struct loaded *l, const struct err *failed)
{
    struct session_op *op = arg;
    struct session_info info;

    if (l && op->act)
        op->act(l, op);
    if (l)
        info = loaded_info(l);
    op->fn(op->arg, l ? &info : NULL, failed);
    free(op);
}

static void ask(struct service *sv, const struct caller *c, struct str id,
                const struct session_op *op)
{
    struct session_op *copy = mem_zalloc(sizeof(*copy));

    *copy = *op;
    loaded_find(sv, c, id, on_found, copy);
}

void service_session_get(struct service *sv, const struct caller *c, struct str id, session_fn *fn,
                         void *arg)
{
    ask(sv, c, id, &(struct session_op){.fn = fn, .arg = arg});
}

static void extend(struct loaded *l, const struct session_op *op)
{
    if (op->idle_ms)
        l->row.idle_ms = (int64_t)at_most(op->idle_ms, l->env->config.idle_ms);
    loaded_used(l);
    loaded_keep(l, false);
}

void service_session_extend(struct service *sv, const struct caller *c, struct str id,
                            uint64_t idle_ms, session_fn *fn, void *arg)
{
    ask(sv, c, id, &(struct session_op){.act = extend, .idle_ms = idle_ms, .fn = fn, .arg = arg});
}

static void interrupt(struct loaded *l, const struct session_op *op)
{
    (void)op;
    for (struct execution *j = l->jobs; j; j = j->next)
        if (j->state == JOB_STARTED)
            job_interrupt(j);
    loaded_used(l);
}

void service_session_interrupt(struct service *sv, const struct caller *c, struct str id,
                               session_fn *fn, void *arg)
{
    ask(sv, c, id, &(struct session_op){.act = interrupt, .fn = fn, .arg = arg});
}

/* What waits was meant for the interpreter that goes. One that sleeps has a new one anyway. */
static void restart(struct loaded *l, const struct session_op *op)
{
    (void)op;
    for (struct execution *j = l->jobs; j; j = j->next)
        if (j->state == JOB_WAITING || j->state == JOB_PLACING)
            job_interrupt(j);
    if (loaded_is_awake(l))
        session_restart(l->session);
    loaded_used(l);
}

void service_session_restart(struct service *sv, const struct caller *c, struct str id,
                             session_fn *fn, void *arg)
{
    ask(sv, c, id, &(struct session_op){.act = restart, .fn = fn, .arg = arg});
}

static void on_found_to_delete(void *arg, struct loaded *l, const struct err *failed)
{
    struct session_op *op = arg;

    if (l)
        loaded_end(l, op->done, op->arg);
    else
        op->done(op->arg, failed);
    free(op);
}

void service_session_delete(struct service *sv, const struct caller *c, struct str id, done_fn *fn,
                            void *arg)
{
    struct session_op *op = mem_zalloc(sizeof(*op));

    *op = (struct session_op){.done = fn, .arg = arg};
    loaded_find(sv, c, id, on_found_to_delete, op);
}

/* --- list --- */

struct listing {
    struct task task;
    struct service *sv;
    struct caller caller;
    char after[ID_MAX];
    char *pool, *pools, *name_prefix; /* owned, or NULL */
    struct page page;
    struct progress progress;
    struct session_row *rows; /* owned */
    size_t count;
    sessions_fn *fn;
    void *arg;
};

static int read_list(struct task *t, struct db *db, struct err *e)
{
    struct listing *g = OWNER(t, struct listing, task);
    struct page page = g->page;

    page.limit++;
    return task_read_on(t, db_session_list(db, g->caller.tenant, page, &g->rows, &g->count, e));
}

/* As many as the page may have, and fewer where their metadata is long: it is on the loop that
 * they become an answer. */
static size_t fitting(const struct listing *g)
{
    size_t n = 0, bytes = 0;

    while (n < g->count && n < g->page.limit && bytes < PAGE_BYTES) {
        const char *metadata = g->rows[n++].metadata;
        bytes += metadata ? strlen(metadata) : 0;
    }
    return n;
}

static void on_list(struct task *t, const struct err *failed)
{
    struct listing *g = OWNER(t, struct listing, task);
    size_t n = fitting(g);
    AUTO_FREE struct session_info *infos = mem_zalloc((n + 1) * sizeof(*infos));

    for (size_t i = 0; i < n; i++) {
        struct loaded *l = loaded_get(g->sv, &g->caller, str_of(g->rows[i].id));
        infos[i] = (struct session_info){
            .row = &g->rows[i], .state = SESSION_ASLEEP, .note = session_note(&g->rows[i])};
        if (l)
            infos[i] = loaded_info(l);
    }
    g->fn(g->arg, infos, failed ? 0 : n, g->count > n, failed);
    for (size_t i = 0; i < g->count; i++)
        session_row_done(&g->rows[i]);
    free(g->rows);
    progress_done(&g->progress);
    free(g->pool);
    free(g->pools);
    free(g->name_prefix);
    free(g);
}

void service_session_list(struct service *sv, const struct caller *c, struct page page,
                          sessions_fn *fn, void *arg)
{
    static const struct step steps[] = {{.loop = task_go_on}, {.store = read_list}, {0}};
    struct listing *g = mem_zalloc(sizeof(*g));

    *g = (struct listing){.sv = sv, .caller = *c, .page = page, .fn = fn, .arg = arg};
    if (page.after)
        snprintf(g->after, sizeof(g->after), "%s", page.after);
    g->page.after = page.after ? g->after : NULL;
    g->page.progress = &g->progress;
    g->page.pool = g->pool = page.pool ? mem_strdup(page.pool) : NULL;
    g->page.pools = g->pools = scope_pools_copy(sv, c);
    g->page.name_prefix = g->name_prefix = page.name_prefix ? mem_strdup(page.name_prefix) : NULL;
    g->page.limit = page.limit && page.limit < PAGE_MAX ? page.limit : PAGE_MAX;
    task_start_read(&g->task, sv, steps, on_list);
}
