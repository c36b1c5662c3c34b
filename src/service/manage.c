/*
 * Pools that are made, changed and deleted while the service runs.
 *
 * The request for a pool is stored as one JSON object. The pool is made from this object, now and
 * at every start, together with the settings at that time.
 */
#include "service/service_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define END_ROWS 20 /* sessions ended at a time */

/* --- settings of a pool, as they are kept --- */

/* The numbers, each with its place and what may be asked for. */
static const struct pool_number {
    const char *name;
    size_t in_spec, in_pool;
    uint64_t min, max;
} numbers[] = {
#define NUMBER(name, spec, pool, min, max)                                                         \
    {                                                                                              \
        name, offsetof(struct pool_spec, spec), offsetof(struct service_pool, pool), min, max      \
    }
    NUMBER("max_sessions", max_sessions, max_sessions, 1, 30000),
    NUMBER("idle_ms", idle_ms, idle_ms, 1000, 3650ull * 86400000),
    NUMBER("lifetime_ms", lifetime_ms, lifetime_ms, 1000, 3650ull * 86400000),
    NUMBER("cpu_percent", cpu_percent, limits.cpu_percent, 1, 102400),
    NUMBER("memory_bytes", memory_bytes, limits.memory_bytes, 32 * MiB, 64ull * 1024 * GiB),
    NUMBER("wall_ms", wall_ms, limits.wall_ms, 10, 86400000),
#undef NUMBER
};

static uint64_t *at(void *base, size_t offset)
{
    return (uint64_t *)(void *)((char *)base + offset);
}

static int check_name(struct str name, struct err *e)
{
    char text[POOL_NAME_MAX + 1];

    if (name.n == 0 || !str_to_cstr(name, text, sizeof(text)) ||
        strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != name.n || strchr("-_.", text[0]))
        return err_set(e, ERR_CALLER,
                       "a pool's name has up to %d of a-z, 0-9, '-', '_' and '.', the first a "
                       "letter or digit",
                       POOL_NAME_MAX);
    return 0;
}

static const struct service_pool *find_make(struct service *sv, struct str name)
{
    for (size_t i = 0; i < sv->make_count; i++)
        if (str_is(name.n ? name : STR(DEFAULT_ENVIRONMENT), sv->makes[i].name))
            return &sv->makes[i];
    return NULL;
}

/* Owned by the caller, or NULL. */
static json_t *settings_make(const struct pool_spec *spec, struct err *e)
{
    json_t *v, *vars;

    if (vars_from(spec->env, spec->env_count, &vars, e) < 0)
        return NULL;
    v = json_pack("{s:o, s:I, s:b, s:o}", "environment", record_text(spec->environment), "ready",
                  (json_int_t)spec->ready, "egress", spec->egress, "egress_hosts",
                  record_text(spec->egress_hosts));
    for (size_t i = 0; i < COUNT(numbers); i++)
        json_object_set_new(v, numbers[i].name,
                            json_integer((json_int_t)*at((void *)spec, numbers[i].in_spec)));
    if (vars)
        json_object_set_new(v, "vars", vars);
    return v;
}

/* ret: copies are the caller's to free. On the ground of the first pool. */
static int settings_read(struct service *sv, const char *name, const json_t *v,
                         struct service_pool *ret, struct err *e)
{
    const json_t *vars = json_object_get(v, "vars");
    const char *named = json_string_value(json_object_get(v, "environment"));
    const struct service_pool *make = find_make(sv, str_of(named));

    if (!make)
        return err_set(e, ERR_CALLER, "there is no environment '%s'", named);
    *ret = sv->pools->config;
    ret->text = ret->images = NULL;
    ret->approval_when = ret->approval_when ? mem_strdup(ret->approval_when) : NULL;
    ret->name = mem_strdup(name);
    ret->python = make->python ? mem_strdup(make->python) : NULL;
    ret->preload = make->preload ? mem_strdup(make->preload) : NULL;
    ret->vars = vars ? json_dumps(vars, JSON_COMPACT) : NULL;
    ret->egress = json_is_true(json_object_get(v, "egress")) ? EGRESS_ALLOW_LIST : EGRESS_NONE;
    ret->egress_hosts = mem_strdup(json_string_value(json_object_get(v, "egress_hosts")));
    ret->ready = (uint64_t)json_integer_value(json_object_get(v, "ready"));
    for (size_t i = 0; i < COUNT(numbers); i++) {
        uint64_t n = (uint64_t)json_integer_value(json_object_get(v, numbers[i].name));
        if (n)
            *at(ret, numbers[i].in_pool) = n;
    }
    return 0;
}

static int check_numbers(const struct service_pool *p, struct err *e)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        uint64_t n = *at((void *)p, numbers[i].in_pool);
        if (n < numbers[i].min || n > numbers[i].max)
            return err_set(e, ERR_CALLER, "%s is %" PRIu64 ", and must be %" PRIu64 " to %" PRIu64,
                           numbers[i].name, n, numbers[i].min, numbers[i].max);
    }
    if (p->ready > p->max_sessions)
        return err_set(e, ERR_CALLER,
                       "%" PRIu64 " sandboxes cannot be kept ready for %" PRIu64 " sessions",
                       p->ready, p->max_sessions);
    return 0;
}

static int check_egress(const struct service_pool *p, struct err *e)
{
    struct egress_policy *policy;

    if (p->egress == EGRESS_NONE)
        return 0;
    policy = egress_policy_new(p->egress_hosts, false, e);
    egress_policy_free(policy);
    return policy ? 0 : -1;
}

/* --- a change under way --- */

struct pool_op {
    struct task task;
    struct service *sv;
    struct pool_row row;      /* owned */
    struct service_pool pool; /* owned */
    json_t *document;         /* owned, or NULL */
    struct session_row *rows; /* owned: to be ended */
    size_t count, left;
    pool_fn *fn;
    done_fn *done;
    void *arg;
    struct err failed;
};

static void op_free(struct pool_op *op)
{
    pool_row_done(&op->row);
    service_pool_done(&op->pool);
    json_decref(op->document);
    free(op);
}

static void answer(struct pool_op *op, const struct pool_info *info, const struct err *failed)
{
    if (op->fn)
        op->fn(op->arg, info, failed);
    else
        op->done(op->arg, failed);
    op_free(op);
}

static void fail_later(void *arg)
{
    struct pool_op *op = arg;

    op->sv->pending--;
    answer(op, NULL, &op->failed);
}

static void refuse(struct pool_op *op)
{
    op->sv->pending++;
    loop_later(op->sv->loop, fail_later, op);
}

/* Who may, and which. *ret_env: the pool of this name, or NULL. */
static int check_right(struct service *sv, const struct caller *c, struct str name,
                       struct pool_entry **ret_env, struct err *e)
{
    if (!c->admin)
        return err_set(e, ERR_DENIED, "this needs the key of an administrator");
    if (service_has_nodes(sv))
        return err_set(e, ERR_CONFLICT,
                       "several nodes serve here: their pools stand in their settings");
    if (sv->draining || sv->closing)
        return closing_down(sv, e);
    if (check_name(name, e) < 0)
        return -1;
    *ret_env = pool_entry_find(sv, name);
    if (*ret_env && (*ret_env)->fixed)
        return err_set(e, ERR_CONFLICT,
                       "this pool is one of the server's settings, and is changed there");
    return 0;
}

/* --- made and changed --- */

static int write_pool(struct task *t, struct db *db, struct err *e)
{
    return db_pool_put(db, &OWNER(t, struct pool_op, task)->row, e);
}

static void on_written(struct task *t, const struct err *failed)
{
    struct pool_op *op = OWNER(t, struct pool_op, task);
    struct pool_entry *env = NULL;
    struct pool_info info;
    struct err e;

    if (!failed)
        env = pool_entry_add(op->sv, &op->pool, &e);
    if (!env) {
        answer(op, NULL, failed ? failed : &e);
        return;
    }
    env->document = json_incref(op->document);
    log_info("pool %s: made, or changed", env->config.name);
    info = pool_entry_info(env);
    answer(op, &info, NULL);
}

static int take_spec(struct pool_op *op, const struct pool_spec *spec, struct err *e)
{
    json_t *settings = settings_make(spec, e);

    if (!settings)
        return -1;
    op->row.name = mem_strndup(spec->name);
    op->row.settings = json_dumps(settings, JSON_COMPACT);
    op->row.created_ms = op->row.updated_ms = time_now_ms();
    op->document = spec->document ? json_deep_copy(spec->document) : NULL;
    op->row.document = op->document ? json_dumps(op->document, JSON_COMPACT) : NULL;
    int rc = settings_read(op->sv, op->row.name, settings, &op->pool, e);
    json_decref(settings);
    return rc < 0 || check_numbers(&op->pool, e) < 0 || check_egress(&op->pool, e) < 0 ? -1 : 0;
}

static int op_prepare(struct pool_op *op, const struct caller *c, const struct pool_spec *spec,
                      struct err *e)
{
    struct pool_entry *env = NULL;

    if (check_right(op->sv, c, spec->name, &env, e) < 0)
        return -1;
    if (!env && service_pool_count(op->sv) >= POOLS_MADE_MAX)
        return err_set(e, ERR_LIMIT, "there are %d pools already", POOLS_MADE_MAX);
    return take_spec(op, spec, e);
}

int service_pool_check(struct service *sv, const struct caller *c, const struct pool_spec *spec,
                       struct err *e)
{
    struct pool_op *op = mem_zalloc(sizeof(*op));
    int rc;

    op->sv = sv;
    rc = op_prepare(op, c, spec, e);
    op_free(op);
    return rc;
}

void service_pool_put(struct service *sv, const struct caller *c, const struct pool_spec *spec,
                      pool_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = write_pool}, {0}};
    struct pool_op *op = mem_zalloc(sizeof(*op));

    *op = (struct pool_op){.sv = sv, .fn = fn, .arg = arg};
    if (op_prepare(op, c, spec, &op->failed) < 0)
        refuse(op);
    else
        task_start(&op->task, sv, NULL, steps, on_written);
}

/* --- deleted --- */

static void end_more(struct pool_op *op);

static int drop_pool(struct task *t, struct db *db, struct err *e)
{
    struct pool_op *op = OWNER(t, struct pool_op, task);
    int rc = db_pool_delete(db, op->row.name, e);

    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such pool") : rc < 0 ? -1 : 0;
}

static void on_dropped(struct task *t, const struct err *failed)
{
    struct pool_op *op = OWNER(t, struct pool_op, task);
    struct pool_entry *env = pool_entry_find(op->sv, str_of(op->row.name));

    if (env && !failed)
        pool_entry_retire(env);
    if (failed) {
        answer(op, NULL, failed);
        return;
    }
    log_info("pool %s: deleted", op->row.name);
    end_more(op);
}

static int read_sessions(struct task *t, struct db *db, struct err *e)
{
    struct pool_op *op = OWNER(t, struct pool_op, task);

    return db_session_in_pool(db, op->row.name, END_ROWS, &op->rows, &op->count, e);
}

static void on_ended(void *arg, const struct err *failed)
{
    struct pool_op *op = arg;

    if (failed)
        op->failed = *failed;
    if (--op->left > 0)
        return;
    if (op->failed.kind)
        answer(op, NULL, &op->failed);
    else
        end_more(op);
}

/* One in memory, or one that is not: any pool will do for that, as its own is gone. */
static void end_one(struct pool_op *op, struct session_row *row)
{
    struct loaded *l = table_get(&op->sv->sessions, row->id);

    if (l)
        loaded_hold(l);
    else
        l = loaded_enter(op->sv, op->sv->pools, row, SESSION_ASLEEP);
    if (l->state == SESSION_ENDED) /* somebody else is at it */
        on_ended(op, NULL);
    else
        loaded_end(l, on_ended, op);
    loaded_drop(l);
}

static void on_read(struct task *t, const struct err *failed)
{
    struct pool_op *op = OWNER(t, struct pool_op, task);
    struct session_row *rows = take_ptr(&op->rows);
    size_t count = op->count;

    op->count = 0;
    if (failed || count == 0 || op->sv->closing) {
        free(rows);
        answer(op, NULL, failed);
        return;
    }
    op->left = count + 1; /* and us: some end at once, and the last to end answers */
    for (size_t i = 0; i < count; i++) {
        end_one(op, &rows[i]); /* NOLINT(clang-analyzer-unix.Malloc): we are the last */
        session_row_done(&rows[i]);
    }
    free(rows);
    on_ended(op, NULL); /* NOLINT(clang-analyzer-unix.Malloc): the same */
}

/* Until there is none: those that are about to be written come with a later round. */
static void end_more(struct pool_op *op)
{
    static const struct step steps[] = {{.store = read_sessions}, {0}};

    op->task = (struct task){0};
    task_start(&op->task, op->sv, NULL, steps, on_read);
}

void service_pool_delete(struct service *sv, const struct caller *c, struct str name, done_fn *fn,
                         void *arg)
{
    static const struct step steps[] = {{.store = drop_pool}, {0}};
    struct pool_op *op = mem_zalloc(sizeof(*op));
    struct pool_entry *env = NULL;

    *op = (struct pool_op){.sv = sv, .done = fn, .arg = arg};
    op->row.name = mem_strndup(name);
    if (check_right(sv, c, name, &env, &op->failed) < 0)
        refuse(op);
    else
        task_start(&op->task, sv, NULL, steps, on_dropped);
}

/* --- at start --- */

static int restore(struct service *sv, const struct pool_row *row, struct err *e)
{
    struct service_pool pool = {0};
    struct pool_entry *env = pool_entry_find(sv, str_of(row->name));
    json_t *settings = json_loads(row->settings, 0, NULL);
    int rc = -1;

    if (env)
        err_set(e, ERR_CONFLICT, "the settings have a pool of this name, which counts");
    else if (!json_is_object(settings))
        err_set(e, ERR_HOST, "what is kept of it cannot be read");
    else
        rc = settings_read(sv, row->name, settings, &pool, e);
    if (rc == 0) {
        env = pool_entry_add(sv, &pool, e);
        rc = env ? 0 : -1;
    }
    if (rc == 0) {
        env->document = row->document ? json_loads(row->document, 0, NULL) : NULL;
        env->created_ms = row->created_ms;
        env->updated_ms = row->updated_ms;
    }
    service_pool_done(&pool);
    json_decref(settings);
    return rc;
}

void pools_restore(struct service *sv, struct pool_row *rows, size_t count)
{
    struct err e;

    for (size_t i = 0; i < count; i++) {
        if (restore(sv, &rows[i], &e) < 0)
            log_error("pool %s, made earlier, is not there: %s", rows[i].name, e.text);
        pool_row_done(&rows[i]);
    }
    free(rows);
}
