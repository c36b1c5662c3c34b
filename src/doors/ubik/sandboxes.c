/*
 * Sandboxes: sessions under another name. A sandbox_id is part of its session's name, so
 * that it is found by the tenant and by nothing else; whose it is stands in the session's
 * metadata. It lives as long as the session: without use its variables go with the pool's
 * idle time, its files when the retention is over.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define PREFIX "ubik-"

static bool name_is(const char *name)
{
    return name && strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 &&
           sandbox_id_is(str_of(name + sizeof(PREFIX) - 1));
}

/* Owned, "" where it is nobody's. */
static char *owner_of(const struct session_row *row)
{
    json_t *metadata = row->metadata ? json_loads(row->metadata, 0, NULL) : NULL;
    const char *user = json_string_value(json_object_get(metadata, "agent_owner"));
    char *copy = mem_strdup(user ? user : "");

    json_decref(metadata);
    return copy;
}

static struct str pool_of(const struct ubik *u, struct service *sv)
{
    struct pool_info first;

    if (u->config.pool)
        return str_of(u->config.pool);
    service_pool_get(sv, 0, &first);
    return str_of(first.pool->name);
}

/* --- for others --- */

struct looking {
    char sandbox[SANDBOX_CHARS + 1];
    struct who who;
    struct err failed;
    sandbox_fn *fn;
    void *arg;
};

static void tell(struct looking *l, const char *session, const struct err *failed)
{
    l->fn(l->arg, l->sandbox, session, failed);
    free(l);
}

static void on_made(void *arg, const struct session_info *info, const struct err *failed)
{
    tell(arg, failed ? NULL : info->row->id, failed);
}

void sandbox_make(struct ubik *u, struct service *sv, const struct caller *c, struct str user,
                  sandbox_fn *fn, void *arg)
{
    struct looking *l = mem_zalloc(sizeof(*l));
    json_t *metadata = json_pack("{s:s%}", "agent_owner", user.n ? user.p : "", user.n);
    char name[64];

    l->fn = fn;
    l->arg = arg;
    sandbox_id_make(l->sandbox);
    snprintf(name, sizeof(name), PREFIX "%s", l->sandbox);
    const struct session_spec spec = {.pool = str_of(u->config.pool),
                                      .name = str_of(name),
                                      .metadata = metadata,
                                      .env = u->config.env,
                                      .env_count = u->config.env_count};
    service_session_create(sv, c, &spec, on_made, l);
    json_decref(metadata);
}

static void on_found(void *arg, const struct session_info *info, const struct err *failed)
{
    struct looking *l = arg;
    AUTO_FREE char *owner = failed ? NULL : owner_of(info->row);
    struct err e;

    if (!failed && who_owns(&l->who, owner)) {
        tell(l, info->row->id, NULL);
        return;
    }
    if (!failed || failed->kind == ERR_MISSING) {
        err_set(&e, ERR_MISSING, "there is no sandbox %s, or not any more", l->sandbox);
        failed = &e;
    }
    tell(l, NULL, failed);
}

static void on_none(void *arg)
{
    struct looking *l = arg;

    tell(l, NULL, &l->failed);
}

void sandbox_find(struct ubik *u, struct service *sv, const struct caller *c, struct str user,
                  struct str id, sandbox_fn *fn, void *arg)
{
    struct looking *l = mem_zalloc(sizeof(*l));
    char name[64];

    l->fn = fn;
    l->arg = arg;
    if (!sandbox_id_is(id) || !str_to_cstr(id, l->sandbox, sizeof(l->sandbox)) ||
        !str_to_cstr(user, l->who.user, sizeof(l->who.user))) {
        err_set(&l->failed, ERR_MISSING, "there is no such sandbox: an id has %d characters",
                SANDBOX_CHARS);
        loop_later(u->config.loop, on_none, l);
        return;
    }
    snprintf(name, sizeof(name), PREFIX "%s", l->sandbox);
    service_session_named(sv, c, pool_of(u, sv), str_of(name), on_found, l);
}

/* --- over HTTP --- */

static json_t *show(const struct session_info *info)
{
    AUTO_FREE char *owner = owner_of(info->row);

    return json_pack("{s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:I}", "sandbox_id",
                     info->row->name + sizeof(PREFIX) - 1, "status",
                     session_state_name(info->state), "external_user_id", *owner ? owner : NULL,
                     "created_at", time_json(info->row->created_ms), "last_used_at",
                     time_json(info->row->used_ms), "variables_until", time_json(info->sleeps_ms),
                     "files_until", time_json(info->row->expires_ms), "executions",
                     (json_int_t)info->row->executions);
}

/* Sessions of other doors are between them, so pages are made by walking. */
struct listing {
    struct request *r; /* borrowed */
    struct who who;
    struct pages pages;
    json_t *items; /* owned */
    uint64_t seen;
    char after[ID_MAX];
    int64_t after_ms;
};

static void listing_free(void *arg)
{
    struct listing *l = arg;

    json_decref(l->items);
    free(l);
}

static void list_on(struct listing *l);

static void on_sessions(void *arg, const struct session_info *infos, size_t count, bool more,
                        const struct err *failed)
{
    struct listing *l = arg;

    if (failed) {
        detail_err(l->r, failed, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        AUTO_FREE char *owner = owner_of(infos[i].row);
        if (!name_is(infos[i].row->name) || !who_owns(&l->who, owner))
            continue;
        if (l->seen++ / l->pages.limit == l->pages.page - 1)
            json_array_append_new(l->items, show(&infos[i]));
    }
    if (more && count > 0) {
        snprintf(l->after, sizeof(l->after), "%s", infos[count - 1].row->id);
        l->after_ms = infos[count - 1].row->created_ms;
        list_on(l);
        return;
    }
    pages_answer(l->r, &l->pages, json_incref(l->items), l->seen);
}

static void list_on(struct listing *l)
{
    const struct page page = {
        .after = *l->after ? l->after : NULL, .limit = 1000, .after_ms = l->after_ms};

    service_session_list(request_service(l->r), request_caller(l->r), page, on_sessions, l);
}

void handle_sandboxes(struct request *r)
{
    struct listing *l = mem_zalloc(sizeof(*l));

    request_keep(r, listing_free, l);
    l->r = r;
    if (!who_read(r, &l->who) || !pages_read(r, &l->pages))
        return;
    l->items = json_array();
    list_on(l);
}

/* --- one of them --- */

static void find(struct request *r, sandbox_fn *fn)
{
    struct who w;

    if (who_read(r, &w))
        sandbox_find(request_ctx(r), request_service(r), request_caller(r), user_of(&w),
                     request_path(r, "sandbox"), fn, r);
}

static void on_shown(void *arg, const struct session_info *info, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Sandbox not found");
    else
        answer_json(arg, 200, show(info));
}

static void on_look(void *arg, const char *sandbox, const char *session, const struct err *failed)
{
    (void)sandbox;
    if (failed)
        detail_err(arg, failed, "Sandbox not found");
    else
        service_session_get(request_service(arg), request_caller(arg), str_of(session), on_shown,
                            arg);
}

void handle_sandbox(struct request *r)
{
    find(r, on_look);
}

static void on_extend(void *arg, const char *sandbox, const char *session, const struct err *failed)
{
    struct request *r = arg;

    (void)sandbox;
    if (failed)
        detail_err(r, failed, "Sandbox not found");
    else
        service_session_extend(request_service(r), request_caller(r), str_of(session), 0, on_shown,
                               r);
}

void handle_sandbox_extend(struct request *r)
{
    find(r, on_extend);
}

static void on_deleted(void *arg, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Sandbox not found");
    else
        answer_empty(arg, 204);
}

static void on_delete(void *arg, const char *sandbox, const char *session, const struct err *failed)
{
    struct request *r = arg;

    (void)sandbox;
    if (failed)
        detail_err(r, failed, "Sandbox not found");
    else
        service_session_delete(request_service(r), request_caller(r), str_of(session), on_deleted,
                               r);
}

void handle_sandbox_delete(struct request *r)
{
    find(r, on_delete);
}
