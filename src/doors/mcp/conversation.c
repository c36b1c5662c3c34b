/*
 * Conversations: what a client of the legacy era, or one on standard input, expects to be kept.
 *
 * Over HTTP there are many, and few clients end theirs. A conversation is found by the hash of its
 * id, which is random, so no stranger can choose it. All are in a list by their last use. A tenant
 * that has as many as it may loses the one that was unused for longest; all end after IDLE_MS. The
 * client is told "no such session" then, and begins again by itself.
 */
#include "doors/mcp/transport.h"

#include <stdlib.h>

#define BUCKETS  4096
#define SWEEP_MS 60000

struct conversation_index {
    struct conversation *by_id[BUCKETS];
    struct timer *sweep; /* owned */
};

/* --- by id --- */

/* Where a conversation of this id stands, or would stand. FNV-1a. */
static struct conversation **find(struct conversation_index *index, struct str id)
{
    struct conversation **at;
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < id.n; i++)
        h = (h ^ (unsigned char)id.p[i]) * 16777619u;
    for (at = &index->by_id[h % BUCKETS]; *at && !str_is(id, (*at)->id);)
        at = &(*at)->beside;
    return at;
}

/* --- by last use --- */

static void list_remove(struct conversation *v)
{
    *(v->prev ? &v->prev->next : &v->mcp->conversations) = v->next;
    *(v->next ? &v->next->prev : &v->mcp->oldest) = v->prev;
}

static void list_add(struct conversation *v)
{
    struct mcp *m = v->mcp;

    v->used_us = time_mono_us();
    v->prev = NULL;
    v->next = m->conversations;
    *(v->next ? &v->next->prev : &m->oldest) = v;
    m->conversations = v;
}

static bool is_idle(const struct conversation *v)
{
    return v->streams && !v->calls && !streams_are_open(v->streams);
}

/* False: there are as many as may be, and all of this tenant's are in use. */
static bool make_room(struct mcp *m, const char *tenant)
{
    struct conversation *idle = NULL;
    size_t count = 0;

    if (m->conversation_count < TENANT_CONVERSATIONS)
        return true;
    for (struct conversation *v = m->conversations; v; v = v->next)
        if (strcmp(v->owner.tenant, tenant) == 0) {
            count++;
            idle = is_idle(v) ? v : idle;
        }
    if (count < TENANT_CONVERSATIONS && m->conversation_count < CONVERSATION_MAX)
        return true;
    conversation_free(idle);
    return idle;
}

void conversations_sweep(struct mcp *m)
{
    int64_t before_us = time_mono_us() - (int64_t)IDLE_MS * 1000;

    for (struct conversation *v = m->oldest, *newer; v && v->used_us < before_us; v = newer) {
        newer = v->prev;
        if (is_idle(v)) {
            conversation_free(v);
        } else {
            list_remove(v);
            list_add(v);
        }
    }
    streams_expire(m);
}

static void on_sweep(void *arg)
{
    struct mcp *m = arg;

    conversations_sweep(m);
    timer_set(m->index->sweep, SWEEP_MS);
}

/* --- life --- */

static struct conversation_index *index_of(struct mcp *m)
{
    if (m->index)
        return m->index;
    m->index = mem_zalloc(sizeof(*m->index));
    m->index->sweep = timer_new(m->config.loop, on_sweep, m);
    timer_set(m->index->sweep, SWEEP_MS);
    return m->index;
}

void conversations_free(struct mcp *m)
{
    for (struct conversation *v = m->conversations, *next; v; v = next) {
        next = v->next;
        conversation_free(v);
    }
    if (m->index)
        timer_free(m->index->sweep);
    free(take_ptr(&m->index));
    free(take_ptr(&m->kept));
}

struct conversation *conversation_new(struct mcp *m, const struct caller *owner)
{
    struct conversation *v;

    if (!make_room(m, owner->tenant))
        return NULL;
    v = mem_zalloc(sizeof(*v));
    *v = (struct conversation){.mcp = m, .owner = *owner, .client.log_level = -1};
    id_make(v->id, "mcp_");
    *find(index_of(m), str_of(v->id)) = v;
    list_add(v);
    m->conversation_count++;
    return v;
}

/* An id is no key: the conversation of another tenant or another key is not found. */
struct conversation *conversation_find(struct mcp *m, struct str id, const struct caller *who)
{
    struct conversation *v = m->index ? *find(m->index, id) : NULL;

    if (!v || strcmp(v->owner.tenant, who->tenant) != 0 || strcmp(v->owner.key, who->key) != 0)
        return NULL;
    list_remove(v);
    list_add(v);
    return v;
}

struct call *conversation_call(struct conversation *v, const json_t *id)
{
    for (struct call *c = v->calls; c; c = c->next)
        if (json_equal(c->id, id))
            return c;
    return NULL;
}

void conversation_client(const struct conversation *v, struct str method, const json_t *params,
                         struct client *ret)
{
    const struct protocol_version *asked =
        version_find(json_view(json_object_get(params, "protocolVersion")));

    if (str_is(method, "initialize"))
        *ret = (struct client){.version = asked, .log_level = -1};
    else
        *ret = v->client;
    if (!ret->version || ret->version->era != ERA_LEGACY)
        ret->version = version_newest(ERA_LEGACY);
}

void conversation_free(struct conversation *v)
{
    if (!v)
        return;
    while (v->calls)
        call_cancel(v->calls);
    streams_free(v->streams);
    list_remove(v);
    *find(v->mcp->index, str_of(v->id)) = v->beside;
    v->mcp->conversation_count--;
    client_done(&v->client);
    json_decref(v->watched);
    json_decref(v->due.uris);
    free(v);
}
