/* Finds a session by its name and never makes one. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

struct naming {
    struct task task;
    struct caller caller;
    char *pool, *name;      /* owned */
    struct session_row row; /* owned; id "" when there is none */
    session_fn *fn;
    void *arg;
};

static int find(struct task *t, struct db *db, struct err *e)
{
    struct naming *n = OWNER(t, struct naming, task);

    return db_session_named(db, n->caller.tenant, n->pool, n->name, &n->row, e) < 0 ? -1 : 0;
}

static void on_found(struct task *t, const struct err *failed)
{
    struct naming *n = OWNER(t, struct naming, task);
    struct loaded *l = *n->row.id ? loaded_get(t->sv, &n->caller, str_of(n->row.id)) : NULL;
    struct session_info info = {.row = &n->row, .state = SESSION_ASLEEP};
    struct err e;

    err_set(&e, ERR_MISSING, "there is no such session");
    if (l)
        info = loaded_info(l);
    else
        info.note = session_note(&n->row);
    info.existed = true;
    if (failed)
        n->fn(n->arg, NULL, failed);
    else if (!*n->row.id || !service_sees_pool(t->sv, &n->caller, n->row.pool))
        n->fn(n->arg, NULL, &e);
    else
        n->fn(n->arg, &info, NULL);
    session_row_done(&n->row);
    free(n->pool);
    free(n->name);
    free(n);
}

void service_session_named(struct service *sv, const struct caller *c, struct str pool,
                           struct str name, session_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = find}, {0}};
    struct naming *n = mem_zalloc(sizeof(*n));
    const struct pool_entry *env;
    struct err e; /* a pool that is none has no sessions */

    env = pool.n == 0 ? scope_pool_entry(sv, c, pool, &e) : NULL;
    if (env)
        pool = str_of(env->config.name);
    *n =
        (struct naming){.pool = mem_strndup(pool), .name = mem_strndup(name), .fn = fn, .arg = arg};
    n->caller = *c;
    task_start(&n->task, sv, NULL, steps, on_found);
}
