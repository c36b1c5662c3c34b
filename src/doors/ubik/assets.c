/*
 * Assets: the files that an execution has made. When the execution ends, each file is kept
 * as it is then, because the sandbox may be deleted and later code may overwrite the file.
 * Until then an asset is read from the workspace.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- keeping the files --- */

struct follow {
    struct follow *next, **link;
    struct end_user user;
    char id[ID_MAX];
    json_t *record;            /* owned, once it is over */
    struct agent_watch *watch; /* owned, or NULL */
    struct model *own;         /* owned, or NULL */
};

static void follow_free(struct follow *f)
{
    agent_watch_free(f->watch);
    if (f->own)
        f->own->ops->free(f->own);
    json_decref(f->record);
    *f->link = f->next;
    if (f->next)
        f->next->link = f->link;
    free(f);
}

static void on_kept(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed)
        log_warn("a file of an execution is not kept: %s", failed->text);
}

static void keep(struct follow *f, const json_t *file, const struct space_file *there)
{
    AUTO_FREE char *id = NULL;
    int n = asprintf(&id, "%s/%s", f->id, json_string_value(json_object_get(file, "path")));
    struct item_row row = {.id = id,
                           .owner = f->user.id,
                           .parent = f->id,
                           .size = there->size,
                           .expires_ms = item_expiry_ms(f->user.u)};

    assert(n > 0);
    snprintf(row.hash, sizeof(row.hash), "%s", there->hash ? there->hash : "");
    item_put(&f->user, "asset", row, 0, file, on_kept, NULL);
}

static void on_space(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct follow *f = arg;
    const json_t *file;
    size_t i;

    if (failed)
        log_warn("the files of %s are not kept: %s", f->id, failed->text);
    json_array_foreach(json_object_get(f->record, "files"), i, file) {
        struct str path = json_view(json_object_get(file, "path"));
        for (size_t k = 0; k < count && path.n; k++)
            if (str_eq(files[k].path, path))
                keep(f, file, &files[k]);
    }
    follow_free(f);
}

static void on_event(void *arg, const json_t *ev)
{
    (void)arg, (void)ev;
}

static void on_end(void *arg, const json_t *record, const struct err *failed)
{
    struct follow *f = arg;
    struct str session = json_view(json_object_get(record, "sandbox_id"));

    if (failed) { /* the server stops; the agent may ask the model until it is freed */
        agent_watch_free(take_ptr(&f->watch));
        return;
    }
    if (!session.n || json_array_size(json_object_get(record, "files")) == 0) {
        follow_free(f);
        return;
    }
    f->record = json_incref((json_t *)record);
    service_space_list(f->user.sv, &f->user.caller, session, on_space, f);
}

void follow_start(const struct end_user *user, const char *id, struct model *own)
{
    static const struct agent_watcher watcher = {on_event, on_end};
    struct follow *f = mem_zalloc(sizeof(*f));
    struct ubik *u = user->u;
    struct err e;
    struct agent *a = ubik_agent(u, &e);

    *f = (struct follow){.user = *user, .own = own, .next = u->follows, .link = &u->follows};
    if (f->next)
        f->next->link = &f->next;
    u->follows = f;
    snprintf(f->id, sizeof(f->id), "%s", id);
    assert(a); /* it has just started this execution */
    f->watch = agent_watch(a, &user->caller, str_of(id), UINT64_MAX, &watcher, f);
}

void follows_stop(struct ubik *u)
{
    for (struct follow *f = u->follows; f; f = f->next)
        agent_watch_free(take_ptr(&f->watch));
}

void follows_free(struct ubik *u)
{
    for (struct follow *f = u->follows, *next; f; f = next) {
        next = f->next;
        follow_free(f);
    }
}

/* --- download --- */

static void answer(struct request *r, int *fd, uint64_t size, const char *mime, const char *hash)
{
    /* A page that code has made must not run as a page of this server. */
    answer_header(r, "x-content-type-options", "nosniff");
    answer_header(r, "content-security-policy", "sandbox");
    answer_file(r, take_fd(fd), size, mime, str_base(request_path(r, "path"), "/\\"), hash);
}

static void on_live(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Asset not found");
    else
        answer(arg, fd, file->size, file->mime, file->hash);
}

static bool was_made(const struct tool_execution *x, struct str path)
{
    const json_t *file;
    size_t i;

    json_array_foreach(json_object_get(x->record, "files"), i, file)
        if (str_eq(json_view(json_object_get(file, "path")), path))
            return true;
    return false;
}

/* The file is not kept, or not yet. */
static void on_execution(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct request *r = arg;
    struct str path = request_path(r, "path");

    if (failed || !was_made(x, path))
        detail(r, 404, "Asset not found");
    else
        service_space_open(request_service(r), request_caller(r),
                           json_view(json_object_get(x->record, "sandbox_id")), path, on_live, r);
}

static void on_kept_open(void *arg, int *fd, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    const char *mime = json_string_value(json_object_get(body, "mime"));
    struct end_user user;

    (void)failed;
    if (!end_user_read(r, &user))
        ;
    else if (!item)
        tool_execution_find(&user, request_path(r, "execution"), on_execution, r);
    else if (!end_user_owns(&user, item->owner))
        detail(r, 404, "Asset not found");
    else
        answer(r, fd, item->size, mime ? mime : "application/octet-stream", item->hash);
    json_decref(body);
}

void handle_asset(struct request *r)
{
    struct str execution = request_path(r, "execution"), path = request_path(r, "path");
    AUTO_FREE char *id = NULL;
    int n;

    if (!catalog_find(request_path(r, "tool")) || !id_is(execution, "toolu_")) {
        detail(r, 404, "Asset not found");
        return;
    }
    n = asprintf(&id, "%.*s/%.*s", (int)execution.n, execution.p, (int)path.n, path.p);
    assert(n > 0);
    service_item_open(request_service(r), request_caller(r), "asset", str_of(id), on_kept_open, r);
}
