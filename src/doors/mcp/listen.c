/*
 * Tells subscribers what has changed.
 *
 * A change is marked at every subscriber that wants it, and sent a moment later with all others;
 * what changes twice before that is sent once. A client that does not read has marks and no
 * messages, so it costs no more than its subscriptions.
 *
 * Modern: the subscriber is a call of subscriptions/listen that is held open. Legacy: it is the
 * conversation, with its stream for messages that belong to no call.
 */
#include "doors/mcp/resource.h"
#include "doors/mcp/transport.h"

#include <stdlib.h>

#define TELL_MS    50          /* from a change to its message */
#define AGAIN_MS   1000        /* when somebody reads too slowly */
#define SLOW_BYTES (256 * KiB) /* unread: they are not told more */

struct change_listener {
    struct change_listener *next, **link;
    struct call *call; /* borrowed: held open */
    unsigned kinds;    /* IN(CHANGE_*) */
    json_t *uris;      /* owned: object */
    struct changes_due due;
};

struct change_listeners {
    struct change_listener *first;
    struct timer *timer; /* owned */
    bool set;
};

static const struct {
    const char *filter, *method;
} kinds[] = {
    [CHANGE_TOOLS] = {"toolsListChanged",      "notifications/tools/list_changed"    },
    [CHANGE_PROMPTS] = {"promptsListChanged",    "notifications/prompts/list_changed"  },
    [CHANGE_RESOURCES] = {"resourcesListChanged",  "notifications/resources/list_changed"},
    [CHANGE_RESOURCE] = {"resourceSubscriptions", "notifications/resources/updated"     },
};

/* --- telling --- */

/* id: of the listening request, or NULL. uri: or NULL. */
static void send(struct peer *p, enum list_change what, const char *uri, const json_t *id)
{
    json_t *params = json_object();

    if (uri)
        json_object_set_new(params, "uri", json_string(uri));
    if (id)
        json_object_set_new(params, "_meta", json_pack("{s:O}", META_LISTEN, id));
    p->ops->send(p, rpc_notification(kinds[what].method, params));
}

/* id: as of send(). False: there is something left to tell. */
static bool tell(struct changes_due *due, struct peer *p, const json_t *id)
{
    const char *uri;
    json_t *v;

    if (due->kinds == 0)
        return true;
    if (p->ops->waits(p) > SLOW_BYTES)
        return false;
    for (enum list_change what = 0; what < CHANGE_RESOURCE; what++)
        if (due->kinds & IN(what))
            send(p, what, NULL, id);
    json_object_foreach(due->uris, uri, v)
        send(p, CHANGE_RESOURCE, uri, id);
    due->kinds = 0;
    json_decref(take_ptr(&due->uris));
    return true;
}

static void set(struct mcp *m, uint64_t ms)
{
    if (!m->listeners->set)
        timer_set(m->listeners->timer, ms);
    m->listeners->set = true;
}

static void on_time(void *arg)
{
    struct mcp *m = arg;
    bool all = true;

    m->listeners->set = false;
    for (struct change_listener *l = m->listeners->first; l; l = l->next)
        all &= tell(&l->due, l->call->peer, l->call->id);
    for (struct conversation *v = m->conversations; v; v = v->next)
        if (v->aside)
            all &= tell(&v->due, v->aside, NULL);
    if (!all)
        set(m, AGAIN_MS);
}

static struct change_listeners *listeners_of(struct mcp *m)
{
    if (!m->listeners) {
        m->listeners = mem_zalloc(sizeof(*m->listeners));
        m->listeners->timer = timer_new(m->config.loop, on_time, m);
    }
    return m->listeners;
}

/* --- what changed --- */

static void mark(struct changes_due *due, enum list_change what, const char *uri)
{
    due->kinds |= IN(what);
    if (what != CHANGE_RESOURCE)
        return;
    if (!due->uris)
        due->uris = json_object();
    json_object_set_new(due->uris, uri, json_true());
}

/* Legacy: lists are told of without being asked. */
static bool conversation_wants(const struct conversation *v, enum list_change what, const char *uri)
{
    if (!v->client.version)
        return false;
    return what != CHANGE_RESOURCE || json_object_get(v->watched, uri);
}

static bool wants(const struct change_listener *l, enum list_change what, const char *uri)
{
    return (l->kinds & IN(what)) && (what != CHANGE_RESOURCE || json_object_get(l->uris, uri));
}

void mcp_publish(struct mcp *m, enum list_change what, const char *tenant, const char *uri)
{
    bool any = false;

    assert((what == CHANGE_RESOURCE) == (uri != NULL));
    if (m->freed || !(m->tool_set->changes & IN(what)))
        return;
    for (struct change_listener *l = listeners_of(m)->first; l; l = l->next)
        if (wants(l, what, uri) && (!tenant || strcmp(tenant, l->call->caller.tenant) == 0)) {
            mark(&l->due, what, uri);
            any = true;
        }
    for (struct conversation *v = m->conversations; v; v = v->next)
        if (conversation_wants(v, what, uri) && (!tenant || strcmp(tenant, v->owner.tenant) == 0)) {
            mark(&v->due, what, uri);
            any = true;
        }
    if (any)
        set(m, TELL_MS);
}

void conversation_listens(struct conversation *v)
{
    listeners_of(v->mcp);
    if (v->due.kinds)
        set(v->mcp, TELL_MS);
}

/* --- modern --- */

static void listener_free(struct change_listener *l)
{
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    json_decref(l->uris);
    json_decref(l->due.uris);
    free(l);
}

static void on_cancel(void *arg)
{
    struct change_listener *l = arg;
    struct call *c = l->call;

    listener_free(l);
    call_drop(c);
}

static size_t count(const struct change_listeners *ls, const char *tenant)
{
    size_t n = 0;

    for (const struct change_listener *l = ls->first; l; l = l->next)
        n += !tenant || strcmp(l->call->caller.tenant, tenant) == 0;
    return n;
}

/* NULL: they are not a list of URIs, or too many, or too long. Else owned: an object. */
static json_t *read_uris(const json_t *list)
{
    json_t *uris = json_object(), *v;
    size_t i;

    if ((list && !json_is_array(list)) || json_array_size(list) > WATCHED_MAX)
        json_decref(take_ptr(&uris));
    json_array_foreach(list, i, v) {
        if (!uris || !json_is_string(v) || json_string_length(v) > WATCHED_URI_MAX) {
            json_decref(uris);
            return NULL;
        }
        json_object_set_new(uris, json_string_value(v), json_true());
    }
    return uris;
}

/* What was asked for and is there, as the client is to see it. */
static json_t *agree(struct change_listener *l, const json_t *filter)
{
    const unsigned there = l->call->tool_set->changes;
    json_t *shown = json_object();

    for (enum list_change what = 0; what < CHANGE_RESOURCE; what++)
        if ((there & IN(what)) && json_is_true(json_object_get(filter, kinds[what].filter))) {
            l->kinds |= IN(what);
            json_object_set_new(shown, kinds[what].filter, json_true());
        }
    if ((there & IN(CHANGE_RESOURCE)) && json_object_size(l->uris) > 0) {
        l->kinds |= IN(CHANGE_RESOURCE);
        json_object_set(shown, kinds[CHANGE_RESOURCE].filter,
                        json_object_get(filter, kinds[CHANGE_RESOURCE].filter));
    }
    return shown;
}

static void begin(struct call *c, json_t *filter, json_t *uris)
{
    struct change_listeners *ls = c->mcp->listeners;
    struct change_listener *l = mem_zalloc(sizeof(*l));

    *l = (struct change_listener){.call = c, .uris = uris, .next = ls->first, .link = &ls->first};
    if (l->next)
        l->next->link = &l->next;
    ls->first = l;
    call_on_cancel(c, on_cancel, l);
    c->peer->ops->send(c->peer,
                       rpc_notification("notifications/subscriptions/acknowledged",
                                        json_pack("{s:{s:O}, s:o}", "_meta", META_LISTEN, c->id,
                                                  "notifications", agree(l, filter))));
}

void handle_listen(struct call *c)
{
    json_t *filter = json_object_get(c->params, "notifications");
    json_t *uris = read_uris(json_object_get(filter, kinds[CHANGE_RESOURCE].filter));
    struct change_listeners *ls = listeners_of(c->mcp);

    if (!json_is_object(filter) || !uris) {
        json_decref(uris);
        call_error(c, RPC_PARAMS, NULL,
                   "notifications must be an object, its resourceSubscriptions at most %d URIs of "
                   "at most %d bytes",
                   WATCHED_MAX, WATCHED_URI_MAX);
    } else if (c->mcp->draining || count(ls, NULL) >= LISTENERS_MAX ||
               count(ls, c->caller.tenant) >= LISTENERS_TENANT) {
        json_decref(uris);
        call_error(c, RPC_INTERNAL, NULL,
                   "the server has as many streams of changes as it may, or is about to end: end "
                   "another one, or try later");
    } else {
        begin(c, filter, uris);
    }
}

void listeners_end(struct mcp *m)
{
    struct change_listener *l = m->listeners ? m->listeners->first : NULL;

    for (struct change_listener *next; l; l = next) {
        struct call *c = l->call;

        next = l->next;
        tell(&l->due, c->peer, c->id);
        listener_free(l);
        call_result(c, json_pack("{s:{s:O}}", "_meta", META_LISTEN, c->id));
    }
}

void listeners_free(struct mcp *m)
{
    struct change_listeners *ls = take_ptr(&m->listeners);

    if (ls)
        timer_free(ls->timer);
    free(ls);
}

/* --- legacy --- */

void handle_subscribe(struct call *c)
{
    const json_t *uri = json_object_get(c->params, "uri");
    struct conversation *v = c->conversation;

    if (!json_is_string(uri) || json_string_length(uri) > WATCHED_URI_MAX) {
        call_error(c, RPC_PARAMS, NULL, "uri must be a string of at most %d bytes",
                   WATCHED_URI_MAX);
        return;
    }
    if (!v->watched)
        v->watched = json_object();
    if (json_object_size(v->watched) >= WATCHED_MAX) {
        call_error(c, RPC_PARAMS, NULL,
                   "at most %d resources can be subscribed to: unsubscribe some", WATCHED_MAX);
        return;
    }
    json_object_set_new(v->watched, json_string_value(uri), json_true());
    call_result(c, json_object());
}

void handle_unsubscribe(struct call *c)
{
    struct str uri = json_view(json_object_get(c->params, "uri"));

    if (!uri.p) {
        call_error(c, RPC_PARAMS, NULL, "uri must be a string");
        return;
    }
    json_object_del(c->conversation->watched, uri.p);
    call_result(c, json_object());
}

/* --- changes in the service --- */

/* Whether any client has asked to hear of single resources. */
static bool has_watched(const struct mcp *m)
{
    if (m->listeners)
        for (const struct change_listener *l = m->listeners->first; l; l = l->next)
            if (json_object_size(l->uris) > 0)
                return true;
    for (const struct conversation *v = m->conversations; v; v = v->next)
        if (json_object_size(v->watched) > 0)
            return true;
    return false;
}

/* The URI of what has changed is made only when a client may want to hear of it: most calls come
 * from clients that watch no resource. */
static void on_change(void *arg, const struct service_change *what)
{
    struct mcp *m = arg;
    char uri[URI_MAX];

    if (has_watched(m)) {
        if (what->over)
            mcp_publish(m, CHANGE_RESOURCE, what->tenant, uri_of_output(uri, str_of(what->id)));
        else if (what->path.p && uri_of_file(uri, str_of(what->session), what->path))
            mcp_publish(m, CHANGE_RESOURCE, what->tenant, uri);
    }
    if (what->listed && (m->listeners || m->conversations))
        mcp_publish(m, CHANGE_RESOURCES, what->tenant, NULL);
}

void mcp_follow(struct mcp *m, struct service *sv)
{
    if (m->followed == sv || !m->tool_set->changes)
        return;
    m->followed = sv;
    m->watch = service_watch_changes(sv, on_change, m);
}

void mcp_unfollow(struct mcp *m)
{
    change_watch_free(take_ptr(&m->watch));
    m->followed = NULL;
}
