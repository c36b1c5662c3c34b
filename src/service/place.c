/*
 * Where the sandbox of a session is: on this node while its pool has room here, else on the node
 * that has most. All else of the session stays here, at the home of its tenant; above the engine
 * nothing but this file knows the difference.
 *
 * How much room a node has stands in its row, which is as old as a beat, so the other node has the
 * last word: when it refuses, the next is asked. When all do, the session that has been idle here
 * for the longest time makes room, as on a server alone.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define TRIES_MAX   3
#define PART_SILENT 2 /* of a lease: then whoever says nothing is gone */

void service_on_dial(struct service *sv, dial_fn *fn, void *arg)
{
    sv->dial = fn;
    sv->dial_arg = arg;
}

static int spool(void *arg, struct err *e)
{
    return store_spool(arg, e);
}

struct lend_config place_config(struct service *sv)
{
    return (struct lend_config){
        .silent_ms = sv->nodes->lease_ms / PART_SILENT, .spool = spool, .arg = sv->store};
}

/* --- room --- */

static uint64_t room_of(const struct pool_entry *env)
{
    uint64_t live = pool_entry_live(env), most = env->config.max_sessions;

    return live < most ? most - live : 0;
}

/* Sandboxes with a way out stay with the tenant they belong to. */
static bool is_lent(const struct pool_entry *env)
{
    return !env->gone && !env->policy;
}

char *place_room(struct service *sv)
{
    json_t *room = json_object();
    char *text;

    for (const struct pool_entry *env = sv->pools; env; env = env->next)
        if (is_lent(env) && !sv->draining && !sv->closing)
            json_object_set_new(room, env->config.name, json_integer((json_int_t)room_of(env)));
    text = json_dumps(room, JSON_COMPACT);
    json_decref(room);
    return text;
}

static int64_t room_told(const struct node_row *row, const char *pool)
{
    json_t *all = row->room ? json_loads(row->room, 0, NULL) : NULL;
    int64_t room = json_integer_value(json_object_get(all, pool));

    json_decref(all);
    return room - row->taken;
}

/* --- another node --- */

struct placing {
    struct loaded *loaded; /* held by whom it is for */
    session_open_fn *on_open;
    char tried[TRIES_MAX][ID_MAX];
    size_t tries;
};

static bool was_tried(const struct placing *p, const char *id)
{
    for (size_t i = 0; p && i < p->tries; i++)
        if (strcmp(p->tried[i], id) == 0)
            return true;
    return false;
}

/* p: or NULL, none has been tried. */
static struct node_row *best(struct service *sv, const struct pool_entry *env,
                             const struct placing *p)
{
    struct node_row *found = NULL;
    int64_t most = 0;

    if (!sv->nodes || !sv->dial || !is_lent(env))
        return NULL;
    for (size_t i = 0; i < sv->nodes->count; i++) {
        struct node_row *row = &sv->nodes->rows[i];
        int64_t room = room_told(row, env->config.name);
        if (room <= most || strcmp(row->id, store_node(sv->store)) == 0 || row->left_ms <= 0 ||
            was_tried(p, row->id))
            continue;
        most = room;
        found = row;
    }
    return found;
}

bool place_is_elsewhere(struct service *sv, const struct pool_entry *env)
{
    return best(sv, env, NULL) != NULL;
}

bool place_is_full(const struct loaded *l)
{
    return pool_entry_live(l->env) > l->env->config.max_sessions;
}

static void count(struct loaded *l, int by)
{
    struct service *sv = l->sv;

    l->env->away += (unsigned)by;
    sv->borrowed += (size_t)by;
    for (size_t i = 0; i < sv->nodes->count; i++)
        if (strcmp(sv->nodes->rows[i].id, l->lender) == 0)
            sv->nodes->rows[i].taken += by;
}

/* id: "" for none. */
static void set_lender(struct loaded *l, const char *id)
{
    if (*l->lender)
        count(l, -1);
    snprintf(l->lender, sizeof(l->lender), "%s", id);
    if (*l->lender)
        count(l, 1);
}

void place_leave(struct loaded *l)
{
    set_lender(l, "");
}

static bool try_next(struct placing *p);

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    struct placing *p = arg;
    struct loaded *l = p->loaded;
    session_open_fn *fn = p->on_open;

    if (!s) {
        log_info("session %s: %s has no sandbox for it: %s", l->row.id, l->lender, failed->text);
        if (l->state != SESSION_ENDED && !l->sv->closing && try_next(p))
            return;
        set_lender(l, "");
    }
    free(p);
    fn(l, s, NULL);
}

static bool try_next(struct placing *p)
{
    struct loaded *l = p->loaded;
    struct service *sv = l->sv;
    struct node_row *row = p->tries < TRIES_MAX ? best(sv, l->env, p) : NULL;
    struct lend_config config;
    struct caller c = {0};

    if (!row)
        return false;
    config = place_config(sv);
    snprintf(p->tried[p->tries++], ID_MAX, "%s", row->id);
    set_lender(l, row->id);
    snprintf(c.tenant, sizeof(c.tenant), "%s", l->row.tenant);
    id_make(c.request, "req_");
    session_borrow(l->env->pool, str_of(l->env->config.name), sv->dial(sv->dial_arg, row->url, &c),
                   &config, on_open, p);
    return true;
}

void place_borrow(struct loaded *l, session_open_fn *fn)
{
    struct placing *p = mem_zalloc(sizeof(*p));
    bool tries;

    *p = (struct placing){.loaded = l, .on_open = fn};
    tries = try_next(p);
    assert(tries);
}
