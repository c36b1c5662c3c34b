/*
 * Sandboxes: sessions, as Ubik calls them. The name of the session contains the sandbox_id,
 * so only its tenant finds a sandbox; the metadata of the session name the end user.
 * Unused, a sandbox loses its variables after the pool's idle time and its files after the
 * retention.
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

/* The end user, or ""; owned. */
static char *owner_of(const struct session_row *row)
{
    json_t *metadata = row->metadata ? json_loads(row->metadata, 0, NULL) : NULL;
    const char *user = json_string_value(json_object_get(metadata, "agent_owner"));
    char *copy = mem_strdup(user ? user : "");

    json_decref(metadata);
    return copy;
}

/* --- find or make one --- */

struct sandbox_lookup {
    char sandbox[SANDBOX_CHARS + 1];
    struct end_user user;
    struct err failed;
    sandbox_fn *fn;
    void *arg;
};

static void tell(struct sandbox_lookup *l, const char *session, const struct err *failed)
{
    l->fn(l->arg, l->sandbox, session, failed);
    free(l);
}

static void on_made(void *arg, const struct session_info *info, const struct err *failed)
{
    tell(arg, failed ? NULL : info->row->id, failed);
}

void sandbox_make(const struct end_user *user, sandbox_fn *fn, void *arg)
{
    struct sandbox_lookup *l = mem_zalloc(sizeof(*l));
    json_t *metadata = json_pack("{s:s}", "agent_owner", user->id);
    const struct ubik_config *config = &user->u->config;
    char name[64];

    *l = (struct sandbox_lookup){.fn = fn, .arg = arg};
    sandbox_id_make(l->sandbox);
    snprintf(name, sizeof(name), PREFIX "%s", l->sandbox);
    const struct session_spec spec = {.pool = str_of(config->pool),
                                      .name = str_of(name),
                                      .metadata = metadata,
                                      .env = config->env,
                                      .env_count = config->env_count,
                                      .asleep = true};
    service_session_create(user->sv, &user->caller, &spec, on_made, l);
    json_decref(metadata);
}

static void on_found(void *arg, const struct session_info *info, const struct err *failed)
{
    struct sandbox_lookup *l = arg;
    AUTO_FREE char *owner = failed ? NULL : owner_of(info->row);
    struct err e;

    if (!failed && end_user_owns(&l->user, owner)) {
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
    struct sandbox_lookup *l = arg;

    tell(l, NULL, &l->failed);
}

void sandbox_find(const struct end_user *user, struct str id, sandbox_fn *fn, void *arg)
{
    struct sandbox_lookup *l = mem_zalloc(sizeof(*l));
    char name[64];

    *l = (struct sandbox_lookup){.user = *user, .fn = fn, .arg = arg};
    if (!sandbox_id_is(id) || !str_to_cstr(id, l->sandbox, sizeof(l->sandbox))) {
        err_set(&l->failed, ERR_MISSING, "there is no such sandbox: an id has %d characters",
                SANDBOX_CHARS);
        loop_later(user->u->config.loop, on_none, l);
        return;
    }
    snprintf(name, sizeof(name), PREFIX "%s", l->sandbox);
    service_session_named(user->sv, &user->caller, str_of(user->u->config.pool), str_of(name),
                          on_found, l);
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

/* The owner is part of the metadata, so a page is found by reading all sandboxes. */
struct sandbox_list {
    struct request *r; /* borrowed */
    struct end_user user;
    struct pages pages;
    json_t *items;      /* owned */
    uint64_t seen;      /* of this end user */
    char after[ID_MAX]; /* the last session that was read, or "" */
    int64_t after_ms;
};

static void list_free(void *arg)
{
    struct sandbox_list *l = arg;

    json_decref(l->items);
    free(l);
}

static void list_on(struct sandbox_list *l);

static void on_sessions(void *arg, const struct session_info *infos, size_t count, bool more,
                        const struct err *failed)
{
    struct sandbox_list *l = arg;

    if (failed) {
        detail_err(l->r, failed, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        AUTO_FREE char *owner = owner_of(infos[i].row);
        if (!name_is(infos[i].row->name) || !end_user_owns(&l->user, owner))
            continue;
        if (l->seen++ / l->pages.limit != l->pages.page - 1)
            continue;
        json_array_append_new(l->items, show(&infos[i]));
        pages_last(&l->pages, infos[i].row->id, infos[i].row->created_ms);
    }
    if (more && count > 0) {
        memcpy(l->after, infos[count - 1].row->id, sizeof(l->after));
        l->after_ms = infos[count - 1].row->created_ms;
        list_on(l);
    } else {
        pages_answer(l->r, &l->pages, json_incref(l->items), l->seen);
    }
}

static void list_on(struct sandbox_list *l)
{
    const struct page page = {.name_prefix = PREFIX,
                              .after = *l->after ? l->after : NULL,
                              .after_ms = l->after_ms,
                              .limit = 1000};

    service_session_list(l->user.sv, &l->user.caller, page, on_sessions, l);
}

void handle_sandboxes(struct request *r)
{
    struct sandbox_list *l = mem_zalloc(sizeof(*l));

    request_keep(r, list_free, l);
    l->r = r;
    if (!end_user_read(r, &l->user) || !pages_read(r, &l->pages))
        return;
    l->items = json_array();
    memcpy(l->after, l->pages.after, sizeof(l->after));
    l->after_ms = l->pages.after_ms;
    list_on(l);
}

/* --- one sandbox --- */

struct sandbox_request {
    struct request *r; /* borrowed */
    void (*then)(struct request *r, struct str session);
};

static void on_sandbox(void *arg, const char *sandbox, const char *session,
                       const struct err *failed)
{
    struct sandbox_request *q = arg;

    (void)sandbox;
    if (failed)
        detail_err(q->r, failed, "Sandbox not found");
    else
        q->then(q->r, str_of(session));
}

static void find(struct request *r, void (*then)(struct request *r, struct str session))
{
    struct sandbox_request *q = mem_zalloc(sizeof(*q));
    struct end_user user;

    *q = (struct sandbox_request){r, then};
    request_keep(r, free, q);
    if (end_user_read(r, &user))
        sandbox_find(&user, request_path(r, "sandbox"), on_sandbox, q);
}

static void on_shown(void *arg, const struct session_info *info, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Sandbox not found");
    else
        answer_json(arg, 200, show(info));
}

static void look(struct request *r, struct str session)
{
    service_session_get(request_service(r), request_caller(r), session, on_shown, r);
}

void handle_sandbox(struct request *r)
{
    find(r, look);
}

static void extend(struct request *r, struct str session)
{
    service_session_extend(request_service(r), request_caller(r), session, 0, on_shown, r);
}

void handle_sandbox_extend(struct request *r)
{
    find(r, extend);
}

static void on_deleted(void *arg, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Sandbox not found");
    else
        answer_empty(arg, 204);
}

static void drop(struct request *r, struct str session)
{
    service_session_delete(request_service(r), request_caller(r), session, on_deleted, r);
}

void handle_sandbox_delete(struct request *r)
{
    find(r, drop);
}
