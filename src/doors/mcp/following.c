/* What changes in the service, told to whoever has asked to hear of it. */
#include "doors/mcp/mcp_int.h"

/* A name is made only when somebody may be listening. */
static void on_change(void *arg, const struct service_change *what)
{
    struct mcp *m = arg;
    char uri[URI_MAX];

    if (!m->listeners && !m->conversations)
        return;
    if (what->execution)
        mcp_publish(m, CHANGE_RESOURCE, what->tenant, uri_of_output(uri, str_of(what->execution)));
    else if (what->path.p && uri_of_file(uri, str_of(what->session), what->path))
        mcp_publish(m, CHANGE_RESOURCE, what->tenant, uri);
    if (what->listed)
        mcp_publish(m, CHANGE_RESOURCES, what->tenant, NULL);
}

void mcp_follow(struct mcp *m, struct service *sv)
{
    if (m->followed == sv || !m->face->changes)
        return;
    m->followed = sv;
    service_on_change(sv, on_change, m);
}

void mcp_unfollow(struct mcp *m)
{
    if (m->followed)
        service_on_change(m->followed, NULL, NULL);
    m->followed = NULL;
}
