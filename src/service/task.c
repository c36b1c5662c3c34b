/* Steps of a task: the store's thread, a worker or the loop, one after the other. */
#include "service/service_int.h"

static void go_on(void *arg);

static const struct step *current(const struct task *t)
{
    return t->step - 1;
}

static void do_work(void *arg)
{
    struct task *t = arg;

    if (current(t)->work(t, &t->err) < 0 && t->err.kind == ERR_NONE)
        err_set(&t->err, ERR_HOST, "a step failed");
}

static int do_store(struct db *db, void *arg, struct err *e)
{
    struct task *t = arg;

    return current(t)->store(t, db, e);
}

static void on_stored(void *arg, const struct err *failed)
{
    struct task *t = arg;

    if (failed)
        t->err = *failed;
    go_on(t);
}

static void finish(struct task *t)
{
    struct service *sv = t->sv;
    struct live *l = t->live;
    struct err err = t->err;

    if (l) {
        assert(l->tasks == t);
        l->tasks = t->next;
    }
    t->done(t, err.kind ? &err : NULL);
    if (l) {
        l->at_work = l->tasks != NULL;
        if (l->tasks)
            go_on(l->tasks);
        live_drop(l);
    }
    sv->pending--;
}

static void go_on(void *arg)
{
    struct task *t = arg;

    while (t->err.kind == ERR_NONE) {
        const struct step *s = t->step;
        if (s->work || s->store || s->loop)
            t->step++;
        if (s->work)
            return loop_work(t->sv->loop, do_work, go_on, t);
        if (s->store)
            return store_run(t->sv->store, do_store, on_stored, t);
        if (!s->loop)
            break;
        (void)!s->loop(t, &t->err);
    }
    finish(t);
}

void task_start(struct task *t, struct service *sv, struct live *l, const struct step *steps,
                task_fn *done)
{
    struct task **at;

    t->sv = sv;
    t->live = l;
    t->step = steps;
    t->done = done;
    t->err = (struct err){0};
    t->next = NULL;
    sv->pending++;
    if (!l)
        return go_on(t);
    live_hold(l);
    for (at = &l->tasks; *at; at = &(*at)->next)
        ;
    *at = t;
    if (l->at_work)
        return;
    l->at_work = true;
    go_on(t);
}

int task_session_there(struct task *t, struct err *e)
{
    if (t->live->state == SESSION_ENDED)
        return err_set(e, ERR_MISSING, "the session has been deleted");
    return 0;
}
