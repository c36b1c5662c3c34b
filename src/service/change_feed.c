/* The change feed: sessions, files, executions and approvals that changed, for every watcher. */
#include "service/service_int.h"

#include <stdlib.h>

struct change_watch {
    struct change_watch *next, **link;
    change_fn *fn;
    void *arg;
};

struct change_watch *service_watch_changes(struct service *sv, change_fn *fn, void *arg)
{
    struct change_watch *w = mem_zalloc(sizeof(*w));

    *w = (struct change_watch){
        .next = sv->change_watches, .link = &sv->change_watches, .fn = fn, .arg = arg};
    if (w->next)
        w->next->link = &w->next;
    sv->change_watches = w;
    return w;
}

void change_watch_free(struct change_watch *w)
{
    if (!w)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    free(w);
}

static void tell(struct service *sv, const struct service_change *what)
{
    for (struct change_watch *w = sv->change_watches, *next; w; w = next) {
        next = w->next;
        w->fn(w->arg, what);
    }
}

static void tell_of(const struct loaded *l, struct service_change what)
{
    what.tenant = l->row.tenant;
    what.pool = l->row.pool;
    what.session = l->row.id;
    if (!what.id)
        what.id = l->row.id;
    tell(l->sv, &what);
}

void feed_session(const struct loaded *l, bool listed)
{
    tell_of(l, (struct service_change){.kind = CHANGED_SESSION,
                                       .state = session_state_name(l->state),
                                       .listed = listed});
}

void feed_file(const struct loaded *l, struct str path, bool listed)
{
    tell_of(l, (struct service_change){.kind = CHANGED_FILE, .path = path, .listed = listed});
}

void feed_saved(const struct loaded *l, const struct changes *saved)
{
    for (size_t i = 0; i < saved->n && l->sv->change_watches; i++) {
        const struct change *c = &saved->at[i];
        if (!c->is_note)
            feed_file(l, str_of(c->path), c->change != FILE_CHANGED || c->problem);
    }
}

void feed_execution(const struct execution *j, bool over)
{
    tell_of(j->loaded, (struct service_change){.kind = CHANGED_EXECUTION,
                                               .id = j->row.id,
                                               .state = over ? j->row.status : "queued",
                                               .over = over});
}

void feed_approval(struct service *sv, const struct approval_row *row)
{
    tell(sv, &(struct service_change){.kind = CHANGED_APPROVAL,
                                      .tenant = row->tenant,
                                      .pool = row->pool,
                                      .session = row->session,
                                      .id = row->id,
                                      .state = approval_state_name(row->state)});
}
