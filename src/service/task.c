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

    t->again = false;
    t->bite_us = time_mono_us();
    return current(t)->store(t, db, e);
}

bool bite_is_over(const struct task *t)
{
    return time_mono_us() - t->bite_us > BITE_US;
}

int task_read_on(struct task *t, int rc)
{
    t->again = rc > 0;
    return rc < 0 ? -1 : 0;
}

void task_write_on(struct task *t)
{
    t->again = t->writes = true;
}

/* Tasks with much to write take turns, so that those with little find a short queue. Those with
 * very much do not get ahead of the disk. */
static struct task *take_bite(struct service *sv)
{
    bool behind = sv->bites_waiting && store_is_behind(sv->store);
    struct task *t, **at = &sv->bites_waiting;

    while (behind && *at && (*at)->writes && (*at)->bites > BITES_FREE)
        at = &(*at)->bite_next;
    if (at != &sv->bites_waiting)
        timer_set(sv->bites_due, BITES_DUE_MS);
    t = *at;
    if (t)
        *at = t->bite_next;
    if (t && !*at)
        sv->bites_end = at;
    return t;
}

static void next_bite(struct service *sv)
{
    struct task *t = sv->bites < BITES_MAX ? take_bite(sv) : NULL;

    if (!t)
        return;
    sv->bites++;
    t->is_bite = true;
    go_on(t);
}

void bites_look(void *arg)
{
    next_bite(arg);
}

static bool bite_end(struct task *t)
{
    bool was_bite = t->is_bite;

    t->sv->bites -= was_bite;
    t->is_bite = false;
    return was_bite;
}

static void wait_for_bite(struct task *t)
{
    struct service *sv = t->sv;

    t->step -= 2;
    assert(t->step->loop);
    t->bite_next = NULL;
    t->bites++;
    *sv->bites_end = t;
    sv->bites_end = &t->bite_next;
    next_bite(sv);
}

static void on_stored(void *arg, const struct err *failed)
{
    struct task *t = arg;
    struct service *sv = t->sv;
    bool was_bite = bite_end(t);

    if (failed)
        t->err = *failed;
    if (t->again && !failed)
        wait_for_bite(t);
    else
        go_on(t);
    if (was_bite)
        next_bite(sv);
}

static struct task *next_read(struct service *sv)
{
    struct task *t = sv->reads_waiting;

    if (!t) {
        sv->reads--;
        return NULL;
    }
    sv->reads_waiting = t->next;
    if (!t->next)
        sv->reads_end = &sv->reads_waiting;
    return t;
}

/* Returns the one whose turn it is now, or NULL. */
static struct task *finish(struct task *t)
{
    struct service *sv = t->sv;
    struct loaded *l = t->loaded;
    struct task *next = NULL;
    struct err err = t->err;
    bool is_read = t->is_read, was_bite = bite_end(t);

    if (l) {
        assert(l->tasks == t);
        l->tasks = t->next;
    }
    t->done(t, err.kind ? &err : NULL);
    if (l) {
        next = l->tasks; /* which holds the session, too */
        l->at_work = next != NULL;
        loaded_drop(l);
    }
    sv->pending--;
    if (was_bite) /* its step on the loop has ended it */
        next_bite(sv);
    return is_read ? next_read(sv) : next;
}

/* False when it waits for somebody who calls go_on() again. */
static bool advance(struct task *t)
{
    while (t->err.kind == ERR_NONE) {
        const struct step *s = t->step;
        if (s->work || s->store || s->loop)
            t->step++;
        if (s->work) {
            loop_work_for(t->sv->loop, t->whose, do_work, go_on, t);
            return false;
        }
        if (s->store) {
            store_run(t->sv->store, do_store, on_stored, t);
            return false;
        }
        if (!s->loop)
            break;
        (void)!s->loop(t, &t->err);
    }
    return true;
}

/* In a loop: as many as there are clients may wait here with nothing to do but take their turn. */
static void go_on(void *arg)
{
    struct task *t = arg;

    while (t && advance(t))
        t = finish(t);
}

static void fill(struct task *t, struct service *sv, struct loaded *l, const struct step *steps,
                 task_fn *done)
{
    t->sv = sv;
    t->loaded = l;
    if (l)
        t->whose = l->whose;
    t->step = steps;
    t->done = done;
    t->err = (struct err){0};
    t->next = NULL;
    t->is_read = t->again = t->is_bite = t->writes = false;
    t->bites = 0;
    sv->pending++;
}

void task_start_read(struct task *t, struct service *sv, const struct step *steps, task_fn *done)
{
    fill(t, sv, NULL, steps, done);
    t->is_read = true;
    if (sv->reads < READS_MAX) {
        sv->reads++;
        return go_on(t);
    }
    *sv->reads_end = t;
    sv->reads_end = &t->next;
}

void task_start(struct task *t, struct service *sv, struct loaded *l, const struct step *steps,
                task_fn *done)
{
    struct task **at;

    fill(t, sv, l, steps, done);
    if (!l)
        return go_on(t);
    loaded_hold(l);
    for (at = &l->tasks; *at; at = &(*at)->next)
        ;
    *at = t;
    if (l->at_work)
        return;
    l->at_work = true;
    go_on(t);
}

int task_go_on(struct task *t, struct err *e)
{
    (void)t;
    (void)e;
    return 0;
}

int task_session_there(struct task *t, struct err *e)
{
    if (t->loaded->state == SESSION_ENDED)
        return err_set(e, ERR_MISSING, "the session has been deleted");
    return 0;
}

/* --- work of a door --- */

struct chore {
    struct service *sv; /* borrowed: not freed before */
    loop_fn *work, *done;
    void *arg;
};

static void do_chore(void *arg)
{
    struct chore *c = arg;

    c->work(c->arg);
}

static void end_chore(void *arg)
{
    struct chore *c = arg;
    struct service *sv = c->sv;

    c->done(c->arg);
    mem_freep(&c);
    sv->pending--; /* after what done() has asked for is counted */
}

void service_work(struct service *sv, loop_fn *work, loop_fn *done, void *arg)
{
    struct chore *c = mem_zalloc(sizeof(*c));

    *c = (struct chore){sv, work, done, arg};
    sv->pending++;
    loop_work(sv->loop, do_chore, end_chore, c);
}
