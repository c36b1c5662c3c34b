/* Gives a session another name. The name is in the store before the caller hears of it. */
#include "service/service_int.h"

#include <stdlib.h>

struct renaming {
    struct task task;
    struct loaded *loaded;    /* held once found */
    struct session_row taken; /* owned: its name alone is set */
    struct session_row other; /* owned: the one that has the name; id "" when there is none */
    struct session_row row;   /* as it is written; strings are borrowed */
    char *before;             /* owned, or NULL: the name to go back to */
    bool named;               /* the new name is in memory */
    session_fn *fn;
    void *arg;
    struct err failed;
};

static void answer(struct renaming *n, const struct err *failed)
{
    struct session_info info;

    if (!failed)
        info = loaded_info(n->loaded);
    n->fn(n->arg, failed ? NULL : &info, failed);
    if (n->loaded)
        loaded_drop(n->loaded);
    session_row_done(&n->taken);
    session_row_done(&n->other);
    free(n->before);
    free(n);
}

static int find(struct task *t, struct db *db, struct err *e)
{
    struct renaming *n = OWNER(t, struct renaming, task);
    const struct session_row *row = &n->loaded->row;

    return db_session_named(db, row->tenant, row->pool, n->taken.name, &n->other, e) < 0 ? -1 : 0;
}

/* From here on others find the name taken, in memory. */
static int take(struct task *t, struct err *e)
{
    struct renaming *n = OWNER(t, struct renaming, task);
    struct loaded *l = n->loaded;
    struct loaded *held = session_in_memory(t->sv, l->row.tenant, l->row.pool, n->taken.name);

    if (l->state == SESSION_ENDED)
        return err_set(e, ERR_MISSING, "there is no such session");
    if ((held && held != l) || (!held && *n->other.id && strcmp(n->other.id, l->row.id) != 0))
        return err_set(e, ERR_CONFLICT, "another session of the pool has this name");
    n->before = l->row.name;
    l->row.name = mem_strdup(n->taken.name);
    n->named = true;
    n->row = l->row;
    n->row.name = n->taken.name; /* that of the session may change again while this is written */
    return 0;
}

static int write_row(struct task *t, struct db *db, struct err *e)
{
    db_must_sync(db);
    return db_session_put(db, &OWNER(t, struct renaming, task)->row, e);
}

static void on_written(struct task *t, const struct err *failed)
{
    struct renaming *n = OWNER(t, struct renaming, task);

    if (failed && n->named) {
        free(n->loaded->row.name);
        n->loaded->row.name = take_ptr(&n->before);
    }
    if (!failed)
        feed_session(n->loaded, true);
    answer(n, failed);
}

static void on_found(void *arg, struct loaded *l, const struct err *failed)
{
    static const struct step steps[] = {{.store = find}, {.loop = take}, {.store = write_row}, {0}};
    struct renaming *n = arg;

    if (!l)
        return answer(n, failed);
    loaded_hold(l);
    n->loaded = l;
    if (n->failed.kind)
        return answer(n, &n->failed);
    task_start(&n->task, l->sv, NULL, steps, on_written);
}

void service_session_rename(struct service *sv, const struct caller *c, struct str id,
                            struct str name, session_fn *fn, void *arg)
{
    struct renaming *n = mem_zalloc(sizeof(*n));

    *n = (struct renaming){.fn = fn, .arg = arg};
    if (name.n == 0)
        err_set(&n->failed, ERR_CALLER, "the name is empty");
    else if (session_name_take(&n->taken, name, &n->failed) == 0)
        n->failed = (struct err){0};
    loaded_find(sv, c, id, on_found, n);
}
