/* The hosts that sandboxes of a pool may connect to. */
#include "egress/egress_int.h"

#include <stdlib.h>

struct egress_policy {
    struct host_list *hosts; /* owned */
    bool allow_private;
};

struct egress_policy *egress_policy_new(const char *hosts, bool allow_private, struct err *e)
{
    struct host_list *list = host_list_new(hosts, e);
    struct egress_policy *p;

    if (!list)
        return NULL;
    host_list_set_web_only(list);
    p = mem_zalloc(sizeof(*p));
    *p = (struct egress_policy){.hosts = list, .allow_private = allow_private};
    return p;
}

void egress_policy_free(struct egress_policy *p)
{
    if (p)
        host_list_free(p->hosts);
    free(p);
}

bool policy_allows(const struct egress_policy *p, const struct host *h, uint16_t port)
{
    return host_list_has(p->hosts, h, port);
}

/* "*" and names say nothing about private addresses: a public name may point to one. */
bool policy_may_dial(const struct egress_policy *p, const struct host *h, const struct sockaddr *a)
{
    return address_is_public(a) || p->allow_private ||
           (h->is_address && host_list_has_address(p->hosts, a));
}
