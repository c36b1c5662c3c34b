/*
 * Workspace sync: the workspace of an awake session and its saved files stay the same. What
 * has changed in the sandbox is saved before a client hears of it; a fresh sandbox gets the
 * saved files. Changes found while code runs are saved at once and told when it ends.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS_AT_ONCE 500

/* --- changes --- */

/* Whether a task under way has put this file there. */
static bool space_is_ours(const struct loaded *l, struct str path)
{
    return l->tasks && l->tasks->brings && l->tasks->brings(l->tasks, path);
}

void space_change(struct loaded *l, const struct event *ev)
{
    if (ev->kind != EVENT_FILE || !space_is_ours(l, ev->file.path))
        changes_put(&l->changes, ev);
}

static void on_change(void *arg, const struct event *ev)
{
    space_change(arg, ev);
}

static bool is_running(const struct loaded *l)
{
    for (const struct execution *j = l->jobs; j; j = j->next)
        if (j->state == JOB_STARTED)
            return true;
    return false;
}

int space_take(struct loaded *l, struct space *ret, struct err *e)
{
    if (l->state == SESSION_ENDED)
        return err_set(e, ERR_MISSING, "the session has been deleted");
    if (!l->session)
        return err_set(e, ERR_HOST, "the sandbox is closed");
    return workspace_dup(l->session, ret, e);
}

/* --- saving --- */

/* The next look finds no change in them: they have been seen. */
void space_return(struct loaded *l, struct changes *unsaved)
{
    if (!loaded_is_awake(l) || !changes_has_files(unsaved))
        return;
    changes_return(&l->changes, unsaved);
    l->unsaved = l->sv->unsaved = true;
}

struct syncing {
    struct task task;
    struct loaded *loaded;  /* held while on_quiet() is on its way */
    struct changes changes; /* owned */
    struct space space;     /* owned */
    struct look *look;      /* owned */
    done_fn *fn;
    void *arg;
};

static const struct step nothing_more[] = {{0}};

/* Without a sandbox the saved files are all there is. */
static int begin_look(struct task *t, struct err *e)
{
    struct syncing *s = OWNER(t, struct syncing, task);
    struct loaded *l = t->loaded;

    if (l->state == SESSION_ENDED)
        return task_session_there(t, e);
    s->look = l->session ? workspace_look(l->session) : NULL;
    if (s->look)
        return space_take(l, &s->space, e);
    t->step = nothing_more;
    return 0;
}

static int walk(struct task *t, struct err *e)
{
    struct syncing *s = OWNER(t, struct syncing, task);

    look_walk(s->look, &s->space);
    /* Else a sandbox would end whose changes nobody has seen. */
    if (look_is_blind(s->look))
        return err_set(e, ERR_HOST,
                       "the workspace could not be looked through: too few "
                       "descriptors or too little memory");
    return 0;
}

static int end_look(struct task *t, struct err *e)
{
    struct syncing *s = OWNER(t, struct syncing, task);
    struct loaded *l = t->loaded;

    if (task_session_there(t, e) < 0)
        return -1;
    if (l->session)
        workspace_tell(l->session, take_ptr(&s->look), on_change, l);
    changes_seal(&l->changes);
    if (is_running(l)) {
        s->changes = changes_copy(&l->changes);
    } else {
        s->changes = l->changes;
        l->changes = (struct changes){0};
    }
    if (!changes_has_files(&s->changes))
        t->step = nothing_more;
    return 0;
}

static int save(struct task *t, struct err *e)
{
    struct syncing *s = OWNER(t, struct syncing, task);

    return changes_save(&s->changes, t->sv->store, &s->space, &t->loaded->env->config.limits, e);
}

static int write_saved(struct task *t, struct db *db, struct err *e)
{
    return changes_write(&OWNER(t, struct syncing, task)->changes, t, db, t->loaded->row.id, e);
}

static void on_synced(struct task *t, const struct err *failed)
{
    struct syncing *s = OWNER(t, struct syncing, task);

    if (failed)
        space_return(t->loaded, &s->changes);
    else
        feed_saved(t->loaded, &s->changes);
    s->fn(s->arg, failed);
    look_free(s->look);
    space_close(&s->space);
    changes_done(&s->changes);
    free(s);
}

static void start_sync(struct syncing *s, struct loaded *l)
{
    static const struct step steps[] = {{.loop = begin_look},
                                        {.work = walk},
                                        {.loop = end_look},
                                        {.work = save},
                                        {.loop = task_session_there},
                                        {.store = write_saved},
                                        {0}};

    task_start(&s->task, l->sv, l, steps, on_synced);
}

/* Nothing is being saved, and there is nothing to save. */
static bool is_quiet(const struct loaded *l)
{
    return !l->tasks && l->state != SESSION_ENDED && l->session && l->changes.n == 0 &&
           workspace_is_bare(l->session);
}

static void on_quiet(void *arg)
{
    struct syncing *s = arg;
    struct loaded *l = s->loaded;

    l->sv->pending--;
    if (is_quiet(l)) {
        s->fn(s->arg, NULL);
        free(s);
    } else {
        start_sync(s, l);
    }
    loaded_drop(l);
}

/* Also when nothing has changed it takes its turn: a save under way must be done first. An empty
 * workspace needs no worker to look at it. */
void space_sync(struct loaded *l, done_fn *fn, void *arg)
{
    struct syncing *s = mem_zalloc(sizeof(*s));

    *s = (struct syncing){.loaded = l, .space.dir = -1, .fn = fn, .arg = arg};
    if (!is_quiet(l))
        return start_sync(s, l);
    l->sv->pending++;
    loaded_hold(l);
    loop_later(l->sv->loop, on_quiet, s);
}

/* One that has failed again is marked again. */
static void on_saved_late(void *arg, const struct err *failed)
{
    struct loaded *l = arg;

    if (!failed)
        log_info("session %s: its files are saved now", l->row.id);
    loaded_drop(l);
}

/* Else they would be in the sandbox alone until somebody asks for something there. */
void space_save_late(struct service *sv)
{
    AUTO_FREE void **all = NULL;
    size_t n = sv->sessions.n;
    struct err why;

    if (!sv->unsaved || store_is_full(sv->store, &why))
        return;
    sv->unsaved = false;
    all = table_all(&sv->sessions);
    for (size_t i = 0; i < n; i++) {
        struct loaded *l = all[i];
        bool wanted = l->unsaved && loaded_is_awake(l) && !l->sleeping; /* sleep saves, too */
        l->unsaved = false;
        if (!wanted)
            continue;
        loaded_hold(l);
        space_sync(l, on_saved_late, l);
    }
}

/* --- putting back --- */

int space_rows_read(struct task *t, struct db *db, const char *session, struct space_row **rows,
                    size_t *count, struct err *e)
{
    for (size_t n = ROWS_AT_ONCE; n == ROWS_AT_ONCE;) {
        struct str after = *count ? str_of((*rows)[*count - 1].path) : (struct str){0};
        AUTO_FREE struct space_row *more = NULL;
        if (*count && bite_is_over(t)) {
            t->again = true;
            return 0;
        }
        if (db_space_next(db, session, after, ROWS_AT_ONCE, &more, &n, e) < 0)
            return -1;
        *rows = mem_realloc(*rows, (*count + n + 1) * sizeof(**rows));
        memcpy(*rows + *count, more, n * sizeof(**rows));
        *count += n;
    }
    return 0;
}

struct restoring {
    struct task task;
    struct space_row *rows; /* owned */
    size_t count, missing;
    struct space roots[HOME_ROOTS]; /* owned */
    struct look *look;              /* owned */
    size_t home_missing;
    char why[512]; /* the first of those that are missing, and why */
    done_fn *fn;
    void *arg;
};

static int read_rows(struct task *t, struct db *db, struct err *e)
{
    struct restoring *r = OWNER(t, struct restoring, task);

    return space_rows_read(t, db, t->loaded->row.id, &r->rows, &r->count, e);
}

static int take_for_restoring(struct task *t, struct err *e)
{
    struct restoring *r = OWNER(t, struct restoring, task);

    if (task_session_there(t, e) < 0)
        return -1;
    if (!t->loaded->session)
        return err_set(e, ERR_HOST, "the sandbox is closed");
    if (home_dup(t->loaded->session, r->roots, e) < 0)
        return -1;
    r->look = workspace_look(t->loaded->session);
    return 0;
}

/* A file that cannot be put back is no reason to keep the others from their owner. But one that is
 * only away for a while is: it would be missed, and then taken for deleted. */
static int put_back(struct task *t, struct err *e)
{
    struct restoring *r = OWNER(t, struct restoring, task);

    for (size_t i = 0; i < r->count; i++) {
        const struct space_row *row = &r->rows[i];
        char shown[NAME_SHOWN];
        struct err lost = {0};
        work_yield();
        AUTO_CLOSE int fd = blob_open(t->sv->store, row->hash, &lost);
        if (fd >= 0 && space_put(&r->roots[HOME_WORKSPACE], str_of(row->path), fd, row->mode,
                                 row->mtime_ms, &lost) >= 0)
            continue;
        if (lost.kind == ERR_AWAY) {
            *e = lost;
            return -1;
        }
        if (r->missing++ == 0)
            snprintf(r->why, sizeof(r->why), "%s: %.300s", name_show(shown, str_of(row->path)),
                     lost.text);
        log_warn("session %s: a file is not put back: %s", t->loaded->row.id, lost.text);
    }
    if (home_put_back(t, r->roots, &r->home_missing, e) < 0)
        return -1;
    if (r->look)
        look_walk(r->look, &r->roots[HOME_WORKSPACE]);
    return 0;
}

static void ignore(void *arg, const struct event *ev)
{
    (void)arg;
    (void)ev;
}

static void on_put_back(struct task *t, const struct err *failed)
{
    struct restoring *r = OWNER(t, struct restoring, task);
    struct loaded *l = t->loaded;
    char note[sizeof(r->why) + 256];
    int n = 0;

    if (!failed && l->session && r->look) /* no code has run: all of it is ours */
        workspace_tell(l->session, take_ptr(&r->look), ignore, NULL);
    if (r->missing)
        n = snprintf(note, sizeof(note), "%zu of %zu files could not be put back; %s", r->missing,
                     r->count, r->why);
    if (r->home_missing)
        snprintf(
            note + n, sizeof(note) - (size_t)n,
            "%sin /tmp, or among links and folders, %zu could not be kept: unreadable, or more "
            "than the setting home-size",
            n ? "; " : "", r->home_missing);
    if (r->missing || r->home_missing) {
        free(l->note);
        l->note = mem_strdup(note);
    }
    r->fn(r->arg, failed);
    for (size_t i = 0; i < r->count; i++)
        space_row_done(&r->rows[i]);
    free(r->rows);
    look_free(r->look);
    for (int i = 0; i < HOME_ROOTS; i++)
        space_close(&r->roots[i]);
    free(r);
}

void space_restore(struct loaded *l, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.loop = task_go_on},
                                        {.store = read_rows},
                                        {.loop = take_for_restoring},
                                        {.work = put_back},
                                        {0}};
    struct restoring *r = mem_zalloc(sizeof(*r));

    *r = (struct restoring){
        .roots = {{.dir = -1}, {.dir = -1}},
          .fn = fn, .arg = arg
    };
    task_start(&r->task, l->sv, l, steps, on_put_back);
}

/* --- what a failed put means --- */

int space_blame(struct err *e, const char *path)
{
    static const int in_the_way[] = {ENOTDIR, EISDIR, EEXIST, ENOTEMPTY,
                                     ELOOP,   EXDEV,  EACCES, EPERM};

    if (e->sys == ENOSPC || e->sys == EDQUOT || e->sys == EFBIG)
        return err_set(e, ERR_LIMIT, "'%s' does not fit into the workspace", path);
    for (size_t i = 0; i < COUNT(in_the_way); i++)
        if (e->sys == in_the_way[i])
            return err_set(e, ERR_CONFLICT, "'%s' cannot be written: something else is there",
                           path);
    return -1;
}
