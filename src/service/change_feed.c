/* The change feed: sessions, files and executions that changed, for service_on_change(). */
#include "service/service_int.h"

void service_on_change(struct service *sv, change_fn *fn, void *arg)
{
    sv->on_change = fn;
    sv->on_change_arg = arg;
}

static void tell(const struct loaded *l, struct service_change what)
{
    what.tenant = l->row.tenant;
    what.session = l->row.id;
    if (l->sv->on_change)
        l->sv->on_change(l->sv->on_change_arg, &what);
}

void feed_session(const struct loaded *l)
{
    tell(l, (struct service_change){.listed = true});
}

void feed_file(const struct loaded *l, struct str path, bool listed)
{
    tell(l, (struct service_change){.path = path, .listed = listed});
}

void feed_saved(const struct loaded *l, const struct changes *saved)
{
    for (size_t i = 0; i < saved->n && l->sv->on_change; i++) {
        const struct change *c = &saved->at[i];
        if (!c->is_note)
            feed_file(l, str_of(c->path), c->change != FILE_CHANGED || c->problem);
    }
}

void feed_execution(const struct execution *j)
{
    tell(j->loaded, (struct service_change){.execution = j->row.id});
}
