/*
 * A loaded session: one that is in memory. A session is awake while it has a sandbox. One
 * that is asleep is loaded only while something is under way, and otherwise a row in the store.
 *
 * Code that needs a loaded session for longer than a callback holds it. The session stays in
 * the table until the last write about it is done: a row that was read from the store before
 * that write must not replace it.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

const char *lost_note(enum session_lost lost)
{
    static const char *const notes[] = {
        [LOST_NOTHING] = NULL,
        [LOST_VARIABLES] = "the sandbox was started anew: variables and processes are gone, files "
                           "are kept",
        [LOST_CHANGES] = "the sandbox or its server had died and was started anew: variables and "
                         "processes are gone, files in /workspace are kept; links, folders and "
                         "what is in /tmp are as they were when the session last slept",
        [LOST_HOME] = "the sandbox of a single execution was started anew: variables, processes, "
                      "links, empty folders and what was in /tmp are gone, files in /workspace are "
                      "kept",
    };

    return notes[lost];
}

/* --- states --- */

static const char *const state_names[] = {
    [SESSION_STARTING] = "starting", [SESSION_IDLE] = "idle",   [SESSION_RUNNING] = "running",
    [SESSION_ASLEEP] = "asleep",     [SESSION_ENDED] = "ended",
};

static const unsigned edges[] = {
    [SESSION_STARTING] =
        IN(SESSION_IDLE) | IN(SESSION_RUNNING) | IN(SESSION_ASLEEP) | IN(SESSION_ENDED),
    [SESSION_IDLE] = IN(SESSION_RUNNING) | IN(SESSION_ASLEEP) | IN(SESSION_ENDED),
    [SESSION_RUNNING] = IN(SESSION_IDLE) | IN(SESSION_ASLEEP) | IN(SESSION_ENDED),
    [SESSION_ASLEEP] = IN(SESSION_STARTING) | IN(SESSION_ENDED),
    [SESSION_ENDED] = 0,
};

const char *session_state_name(enum session_state s)
{
    return state_names[s];
}

bool session_state_can(enum session_state from, enum session_state to)
{
    return edges[from] & IN(to);
}

static bool takes_room(enum session_state s)
{
    return s == SESSION_STARTING || s == SESSION_IDLE || s == SESSION_RUNNING;
}

struct tenant *tenant_hold(struct service *sv, const char *name)
{
    struct tenant *t = table_get(&sv->tenants, name);

    if (!t) {
        t = mem_zalloc(sizeof(*t));
        snprintf(t->name, sizeof(t->name), "%s", name);
        table_put(&sv->tenants, t->name, t);
    }
    t->refs++;
    return t;
}

void tenant_drop(struct service *sv, struct tenant *t)
{
    if (--t->refs > 0)
        return;
    assert(t->awake == 0 && t->held == 0);
    table_drop(&sv->tenants, t->name);
    free(t);
}

/* One that is awake holds its tenant. */
static void count_room(struct loaded *l, int by)
{
    struct tenant *t = tenant_hold(l->sv, l->row.tenant);

    l->env->awake += (unsigned)by;
    t->awake += (unsigned)by;
    t->refs += (unsigned)by;
    tenant_drop(l->sv, t);
}

void loaded_go(struct loaded *l, enum session_state to)
{
    bool before = takes_room(l->state), after = takes_room(to);

    assert(session_state_can(l->state, to));
    log_debug("session %s: %s -> %s", l->row.id, state_names[l->state], state_names[to]);
    l->sv->counts.sessions[l->state]--;
    if (to != SESSION_ENDED)
        l->sv->counts.sessions[to]++;
    if (before != after)
        count_room(l, after ? 1 : -1);
    l->state = to;
    l->row.state = (int)(after ? SESSION_IDLE : to);
    if (l->kept && to != SESSION_ENDED) /* its end is told when the store knows it */
        feed_session(l, false);
}

bool loaded_is_awake(const struct loaded *l)
{
    return (l->state == SESSION_IDLE || l->state == SESSION_RUNNING) && l->session && !l->gone;
}

/* --- in memory --- */

/* Asleep ones are counted already. */
struct loaded *loaded_enter(struct service *sv, struct pool_entry *env, struct session_row *row,
                            enum session_state state)
{
    struct loaded *l = mem_zalloc(sizeof(*l));

    *l = (struct loaded){.sv = sv, .env = env, .row = *row, .state = state, .refs = 1};
    *row = (struct session_row){0};
    l->whose = whose_of(l->row.tenant, l->row.id);
    pool_entry_hold(env);
    l->kept = state == SESSION_ASLEEP;
    l->is_new = !l->kept;
    if (l->row.env)
        l->vars = json_loads(l->row.env, 0, NULL);
    l->clock = timer_new(sv->loop, loaded_on_clock, l);
    if (state == SESSION_STARTING) {
        sv->counts.sessions[state]++;
        count_room(l, 1);
    }
    l->row.state = (int)(takes_room(state) ? SESSION_IDLE : state);
    table_put(&sv->sessions, l->row.id, l);
    return l;
}

static void leave(struct loaded *l)
{
    assert(!l->jobs && !l->tasks && !l->session && !l->waiters);
    table_drop(&l->sv->sessions, l->row.id);
    timer_free(l->clock);
    pool_entry_drop(l->env);
    json_decref(l->vars);
    changes_done(&l->changes);
    free(l->note);
    session_row_done(&l->row);
    free(l);
}

void loaded_hold(struct loaded *l)
{
    l->refs++;
}

void loaded_drop(struct loaded *l)
{
    assert(l->refs > 0);
    if (--l->refs == 0 && !takes_room(l->state))
        leave(l);
}

struct loaded *loaded_get(struct service *sv, const struct caller *c, struct str id)
{
    char name[ID_MAX];
    struct loaded *l;

    if (!str_to_cstr(id, name, sizeof(name)))
        return NULL;
    l = table_get(&sv->sessions, name);
    return l && l->state != SESSION_ENDED && strcmp(l->row.tenant, c->tenant) == 0 &&
                   service_sees_pool(sv, c, l->row.pool)
               ? l
               : NULL;
}

struct loaded *loaded_adopt(struct service *sv, struct session_row *row)
{
    struct loaded *l = table_get(&sv->sessions, row->id);
    struct pool_entry *env = pool_entry_find(sv, str_of(row->pool));

    if (l) {
        loaded_hold(l);
        return l;
    }
    return env ? loaded_enter(sv, env, row, SESSION_ASLEEP) : NULL;
}

/* --- finding --- */

struct finding {
    struct task task;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *pools; /* owned, or NULL: of the caller's key */
    char id[ID_MAX];
    struct loaded *loaded; /* held: it was in memory, and may be asleep and about to leave */
    bool found;
    struct session_row row; /* owned */
    loaded_fn *fn;
    void *arg;
};

static int read_row(struct task *t, struct db *db, struct err *e)
{
    struct finding *f = OWNER(t, struct finding, task);
    int rc = db_session_get(db, f->tenant, f->id, &f->row, e);

    f->found = rc == 1 && pools_have(f->pools, f->row.pool);
    return rc < 0 ? -1 : 0;
}

static void on_read(struct task *t, const struct err *failed)
{
    struct finding *f = OWNER(t, struct finding, task);
    struct loaded *l = !failed && f->found ? loaded_adopt(t->sv, &f->row) : NULL;
    struct err e = {0};

    if (failed)
        e = *failed;
    else if (!l && f->found)
        err_set(&e, ERR_CONFLICT, "the pool of this session is no longer there");
    else if (!l || l->state == SESSION_ENDED)
        err_set(&e, ERR_MISSING, "there is no such session");
    f->fn(f->arg, e.kind ? NULL : l, e.kind ? &e : NULL);
    if (l)
        loaded_drop(l);
    session_row_done(&f->row);
    free(f->pools);
    free(f);
}

static void answer_finding(void *arg)
{
    struct finding *f = arg;
    struct loaded *l = f->loaded && f->loaded->state != SESSION_ENDED ? f->loaded : NULL;
    struct err e;

    f->task.sv->pending--;
    err_set(&e, ERR_MISSING, "there is no such session");
    f->fn(f->arg, l, l ? NULL : &e);
    if (f->loaded)
        loaded_drop(f->loaded);
    free(f->pools);
    free(f);
}

void loaded_find(struct service *sv, const struct caller *c, struct str id, loaded_fn *fn,
                 void *arg)
{
    static const struct step steps[] = {{.store = read_row}, {0}};
    struct finding *f = mem_zalloc(sizeof(*f));

    *f = (struct finding){.task.sv = sv, .fn = fn, .arg = arg};
    snprintf(f->tenant, sizeof(f->tenant), "%s", c->tenant);
    f->pools = scope_pools_copy(sv, c);
    f->loaded = loaded_get(sv, c, id);
    if (!f->loaded && id_is(id, "sess_") && str_to_cstr(id, f->id, sizeof(f->id)))
        return task_start(&f->task, sv, NULL, steps, on_read);
    if (f->loaded)
        loaded_hold(f->loaded);
    sv->pending++;
    loop_later(sv->loop, answer_finding, f);
}

/* --- its row --- */

struct keeping {
    struct task task;
    struct loaded *loaded;  /* held */
    struct session_row row; /* strings borrowed from loaded, ... */
    char *name;             /* ... but for this one, which may change meanwhile: owned, or NULL */
    bool is_new;
};

static int write_row(struct task *t, struct db *db, struct err *e)
{
    return db_session_put(db, &OWNER(t, struct keeping, task)->row, e);
}

static void on_kept(struct task *t, const struct err *failed)
{
    struct keeping *k = OWNER(t, struct keeping, task);
    struct loaded *l = k->loaded;

    if (failed)
        log_warn("session %s is not on record: %s", l->row.id, failed->text);
    if (k->is_new && failed && l->state != SESSION_ENDED) {
        loaded_fail_start(l, failed);
    } else if (k->is_new) {
        l->kept = true;
        feed_session(l, true);
        loaded_answer_if_there(l);
    }
    loaded_drop(l);
    free(k->name);
    free(k);
}

static struct keeping *keeping_new(struct loaded *l, bool is_new)
{
    struct keeping *k = mem_zalloc(sizeof(*k));

    *k = (struct keeping){.loaded = l, .row = l->row, .is_new = is_new};
    k->row.name = k->name = l->row.name ? mem_strdup(l->row.name) : NULL;
    loaded_hold(l);
    return k;
}

void loaded_keep(struct loaded *l, bool is_new)
{
    static const struct step steps[] = {{.store = write_row}, {0}};

    if (l->state != SESSION_ENDED)
        task_start(&keeping_new(l, is_new)->task, l->sv, NULL, steps, on_kept);
}

/* --- its row, written soon --- */

static int write_row_soon(struct db *db, void *arg, struct err *e)
{
    const struct keeping *k = arg;

    return db_session_put(db, &k->row, e);
}

static void on_kept_soon(void *arg, const struct err *failed)
{
    struct keeping *k = arg;
    struct loaded *l = k->loaded;

    l->sv->pending--;
    if (failed)
        log_warn("session %s is not in the database yet: %s", l->row.id, failed->text);
    /* Its entry stays in the store's log until this is written after all. */
    if (failed && (failed->kind == ERR_FULL || failed->kind == ERR_AWAY) && k->is_new &&
        l->state != SESSION_ENDED)
        late_session_add(l->sv, &k->row);
    loaded_drop(l);
    free(k->name);
    free(k);
}

static void write_soon(struct loaded *l, bool is_new)
{
    l->sv->pending++;
    store_run_soon(l->sv->store, is_new, write_row_soon, on_kept_soon, keeping_new(l, is_new));
}

void loaded_keep_new(struct loaded *l)
{
    if (!store_log_session(l->sv->store, &l->row))
        return loaded_keep(l, true);
    write_soon(l, true);
    l->kept = true;
    feed_session(l, true);
}

void loaded_keep_soon(struct loaded *l)
{
    write_soon(l, false);
}

/* --- who waits for it to be made --- */

struct waiter {
    struct waiter *next;
    session_fn *fn;
    void *arg;
    bool existed;
    int64_t since_us;
};

static bool is_there(const struct loaded *l)
{
    return l->kept && l->state != SESSION_STARTING;
}

void loaded_answer(struct loaded *l, const struct err *failed)
{
    struct waiter *w;

    while ((w = l->waiters)) {
        struct session_info info = loaded_info(l);
        info.existed = w->existed;
        l->waiters = w->next;
        if (!failed && !w->existed)
            histogram_add(&l->sv->counts.create, (uint64_t)(time_mono_us() - w->since_us));
        w->fn(w->arg, failed ? NULL : &info, failed);
        free(w);
    }
}

void loaded_answer_if_there(struct loaded *l)
{
    if (is_there(l))
        loaded_answer(l, NULL);
}

void loaded_wait(struct loaded *l, session_fn *fn, void *arg, bool existed)
{
    struct waiter *w = mem_zalloc(sizeof(*w)), **at = &l->waiters;

    *w = (struct waiter){.fn = fn, .arg = arg, .existed = existed, .since_us = time_mono_us()};
    while (*at)
        at = &(*at)->next;
    *at = w;
    /* One that sleeps and is woken by others at the moment is there all the same. */
    if (is_there(l) || (l->kept && !l->is_new))
        loaded_answer(l, NULL);
}

/* --- as others see it --- */

const char *session_note(const struct session_row *row)
{
    return row->executions > 0 ? lost_note((enum session_lost)row->lost) : NULL;
}

struct session_info loaded_info(struct loaded *l)
{
    struct session_info info = {.row = &l->row, .state = l->state};

    if (loaded_is_awake(l))
        info.sleeps_ms = time_now_ms() + (loaded_sleeps_us(l) - time_mono_us()) / 1000;
    for (struct execution *j = l->jobs; j; j = j->next)
        info.queued += j->state == JOB_WAITING || j->state == JOB_PLACING;
    info.memory_bytes = loaded_is_awake(l) ? l->memory_bytes : 0;
    info.note = session_note(&l->row);
    return info;
}
