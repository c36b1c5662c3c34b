/* What has changed, for whoever has asked to hear of it. Nothing is done when nobody has. */
#include "service/service_int.h"

void service_on_change(struct service *sv, change_fn *fn, void *arg)
{
    sv->on_change = fn;
    sv->on_change_arg = arg;
}

static void tell(const struct live *l, struct service_change what)
{
    what.tenant = l->row.tenant;
    what.session = l->row.id;
    if (l->sv->on_change)
        l->sv->on_change(l->sv->on_change_arg, &what);
}

void tell_session(const struct live *l)
{
    tell(l, (struct service_change){.listed = true});
}

void tell_file(const struct live *l, struct str path, bool listed)
{
    tell(l, (struct service_change){.path = path, .listed = listed});
}

void tell_saved(const struct live *l, const struct changes *saved)
{
    for (size_t i = 0; i < saved->n && l->sv->on_change; i++) {
        const struct change *c = &saved->at[i];
        if (!c->is_note)
            tell_file(l, str_of(c->path), c->change != FILE_CHANGED || c->problem);
    }
}

void tell_execution(const struct job *j)
{
    tell(j->live, (struct service_change){.execution = j->row.id});
}
