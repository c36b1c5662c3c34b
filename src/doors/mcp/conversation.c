/* Conversations: what a client of the legacy era, or one on standard input, expects to be kept. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

struct conversation *conversation_new(struct mcp *m, const struct caller *owner)
{
    struct conversation *v;

    if (m->conversation_count >= CONVERSATION_MAX)
        return NULL;
    v = mem_zalloc(sizeof(*v));
    *v = (struct conversation){.mcp = m, .next = m->conversations, .link = &m->conversations};
    id_make(v->id, "mcp_");
    v->owner = *owner;
    v->client.log_level = -1;
    v->used_us = time_mono_us();
    if (v->next)
        v->next->link = &v->next;
    m->conversations = v;
    m->conversation_count++;
    return v;
}

/* One of another tenant is none: an id is no key. */
struct conversation *conversation_find(struct mcp *m, struct str id, const struct caller *who)
{
    for (struct conversation *v = m->conversations; v; v = v->next)
        if (str_is(id, v->id) && strcmp(v->owner.tenant, who->tenant) == 0) {
            v->used_us = time_mono_us();
            return v;
        }
    return NULL;
}

struct call *conversation_call(struct conversation *v, const json_t *id)
{
    for (struct call *c = v->calls; c; c = c->next)
        if (json_equal(c->id, id))
            return c;
    return NULL;
}

void conversation_free(struct conversation *v)
{
    if (!v)
        return;
    while (v->calls)
        call_cancel(v->calls);
    asks_forget(v, NULL);
    *v->link = v->next;
    if (v->next)
        v->next->link = v->link;
    v->mcp->conversation_count--;
    client_done(&v->client);
    json_decref(v->watched);
    free(v);
}
