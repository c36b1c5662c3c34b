/*
 * Conversations: what a client of the legacy era, or one on standard input, expects to be
 * kept.
 *
 * Those over HTTP are many, and their clients seldom say goodbye. They are found by the
 * hash of their id, which is random, so no stranger can choose it. Each tenant has a
 * number of them, ordered by their last use: the one unused for longest makes room for a
 * new one, and all end after a while. Their clients are told "no such session" then, and
 * begin again by themselves.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define BUCKETS  4096
#define SWEEP_MS 60000

/* The conversations of one tenant. */
struct crowd {
    struct crowd *next;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    size_t count;
    struct conversation *newest, *oldest; /* by their last use */
};

/* Who is there. */
struct roll {
    struct conversation *by_id[BUCKETS];
    struct crowd *crowds;
    struct timer *sweep;
};

/* --- by id --- */

/* FNV-1a. */
static struct conversation **bucket(struct roll *roll, struct str id)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < id.n; i++)
        h = (h ^ (unsigned char)id.p[i]) * 16777619u;
    return &roll->by_id[h % BUCKETS];
}

static void id_put(struct roll *roll, struct conversation *v)
{
    struct conversation **at = bucket(roll, str_of(v->id));

    v->beside = *at;
    *at = v;
}

static void id_remove(struct roll *roll, const struct conversation *v)
{
    struct conversation **at = bucket(roll, str_of(v->id));

    while (*at != v)
        at = &(*at)->beside;
    *at = v->beside;
}

/* --- by tenant --- */

static struct crowd *crowd_of(struct roll *roll, const char *tenant)
{
    struct crowd *c = roll->crowds;

    while (c && strcmp(c->tenant, tenant) != 0)
        c = c->next;
    if (c)
        return c;
    c = mem_zalloc(sizeof(*c));
    snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    c->next = roll->crowds;
    roll->crowds = c;
    return c;
}

static void crowd_free(struct roll *roll, struct crowd *c)
{
    struct crowd **at = &roll->crowds;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

static void crowd_leave(struct conversation *v)
{
    struct crowd *c = v->crowd;

    *(v->newer ? &v->newer->older : &c->newest) = v->older;
    *(v->older ? &v->older->newer : &c->oldest) = v->newer;
    c->count--;
}

static void crowd_enter(struct conversation *v)
{
    struct crowd *c = v->crowd;

    v->newer = NULL;
    v->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = v;
    c->newest = v;
    c->count++;
}

static void touch(struct conversation *v)
{
    v->used_us = time_mono_us();
    crowd_leave(v);
    crowd_enter(v);
}

/* --- those nobody uses --- */

static bool is_idle(const struct conversation *v)
{
    return v->streams && !v->calls && !streams_are_open(v->streams);
}

/* False when all of them are in use. */
static bool make_room(struct crowd *c)
{
    for (struct conversation *v = c->oldest; v; v = v->newer)
        if (is_idle(v)) {
            conversation_free(v);
            return true;
        }
    return false;
}

static void sweep(struct crowd *c, int64_t before_us)
{
    for (struct conversation *v = c->oldest, *newer; v && v->used_us < before_us; v = newer) {
        newer = v->newer;
        if (!is_idle(v))
            touch(v);
        else
            conversation_free(v);
    }
}

void conversations_sweep(struct mcp *m)
{
    int64_t before_us = time_mono_us() - (int64_t)IDLE_MS * 1000;

    for (struct crowd *c = m->roll->crowds, *next; c; c = next) {
        next = c->next;
        sweep(c, before_us);
        if (c->count == 0)
            crowd_free(m->roll, c);
    }
    streams_expire(m);
}

static void on_sweep(void *arg)
{
    struct mcp *m = arg;

    conversations_sweep(m);
    timer_set(m->roll->sweep, SWEEP_MS);
}

/* --- life --- */

static struct roll *roll_of(struct mcp *m)
{
    if (m->roll)
        return m->roll;
    m->roll = mem_zalloc(sizeof(*m->roll));
    m->roll->sweep = timer_new(m->config.loop, on_sweep, m);
    timer_set(m->roll->sweep, SWEEP_MS);
    return m->roll;
}

void roll_free(struct mcp *m)
{
    struct roll *roll = take_ptr(&m->roll);

    if (!roll)
        return;
    while (roll->crowds)
        crowd_free(roll, roll->crowds);
    timer_free(roll->sweep);
    free(roll);
    free(take_ptr(&m->kept));
}

struct conversation *conversation_new(struct mcp *m, const struct caller *owner)
{
    struct crowd *c = crowd_of(roll_of(m), owner->tenant);
    struct conversation *v;

    if ((c->count >= CROWD_MAX || m->conversation_count >= CONVERSATION_MAX) && !make_room(c))
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
    v->crowd = c;
    crowd_enter(v);
    id_put(m->roll, v);
    return v;
}

/* One of another tenant, or of another key, is none: an id is no key. */
struct conversation *conversation_find(struct mcp *m, struct str id, const struct caller *who)
{
    struct conversation *v = m->roll ? *bucket(m->roll, id) : NULL;

    while (v && !str_is(id, v->id))
        v = v->beside;
    if (!v || strcmp(v->owner.tenant, who->tenant) != 0 || strcmp(v->owner.key, who->key) != 0)
        return NULL;
    touch(v);
    return v;
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
    streams_free(v->streams);
    crowd_leave(v);
    id_remove(v->mcp->roll, v);
    *v->link = v->next;
    if (v->next)
        v->next->link = v->link;
    v->mcp->conversation_count--;
    client_done(&v->client);
    json_decref(v->watched);
    json_decref(v->due.uris);
    free(v);
}
