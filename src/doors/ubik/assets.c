/*
 * Files that an execution has made. When it ends, each is kept with it as it is then:
 * the sandbox may go, and later code may write over it. Until that is done the file is
 * read where it lies.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- keeping them --- */

struct follow {
    struct follow *next, **link;
    struct ubik *u;     /* borrowed */
    struct service *sv; /* borrowed */
    struct caller caller;
    char owner[USER_MAX + 1];
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
    const uint64_t keep_ms = f->u->config.keep_ms;
    const char *path = json_string_value(json_object_get(file, "path"));
    AUTO_FREE char *id = NULL, *body = record_dump(file, false, NULL);
    char kind[] = "asset";
    int n = asprintf(&id, "%s/%s", f->id, path);
    struct item_row row = {.id = id,
                           .kind = kind,
                           .owner = f->owner,
                           .parent = f->id,
                           .size = there->size,
                           .expires_ms = keep_ms ? clock_ms() + (int64_t)keep_ms : 0,
                           .body = body};

    assert(n > 0);
    snprintf(row.hash, sizeof(row.hash), "%s", there->hash ? there->hash : "");
    service_item_put(f->sv, &f->caller, &row, on_kept, NULL);
}

static void on_space(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct follow *f = arg;
    const json_t *file;
    size_t i;

    if (failed)
        log_warn("%s: its files are not kept: %s", f->id, failed->text);
    json_array_foreach(json_object_get(f->record, "files"), i, file)
    {
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

    if (failed) { /* the server goes, and its model may still be asked: it stays until then */
        agent_watch_free(take_ptr(&f->watch));
        return;
    }
    if (!session.n || json_array_size(json_object_get(record, "files")) == 0) {
        follow_free(f);
        return;
    }
    f->record = json_incref((json_t *)record);
    service_space_list(f->sv, &f->caller, session, on_space, f);
}

void follow_start(struct ubik *u, struct service *sv, const struct caller *c, const char *owner,
                  const char *id, struct model *own)
{
    static const struct agent_watcher watcher = {on_event, on_end};
    struct follow *f = mem_zalloc(sizeof(*f));
    struct err e;
    struct agent *a = ubik_agent(u, &e);

    *f = (struct follow){
        .u = u, .sv = sv, .caller = *c, .own = own, .next = u->follows, .link = &u->follows};
    if (f->next)
        f->next->link = &f->next;
    u->follows = f;
    snprintf(f->owner, sizeof(f->owner), "%s", owner);
    snprintf(f->id, sizeof(f->id), "%s", id);
    assert(a); /* it has just taken the order */
    f->watch = agent_watch(a, c, str_of(id), UINT64_MAX, &watcher, f);
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

/* --- handing them out --- */

static void answer(struct request *r, int *fd, uint64_t size, const char *mime, const char *hash)
{
    /* What code has made is a stranger's page: it is never run as one of ours. */
    answer_header(r, "x-content-type-options", "nosniff");
    answer_header(r, "content-security-policy", "sandbox");
    answer_file(r, take_fd(fd), size, mime, last_segment(request_path(r, "path")), hash);
}

static void on_live(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Asset not found");
    else
        answer(arg, fd, file->size, file->mime, file->hash);
}

static bool was_made(const struct execution *x, struct str path)
{
    const json_t *file;
    size_t i;

    json_array_foreach(
        json_object_get(x->record, "files"), i,
        file) if (str_eq(json_view(json_object_get(file, "path")), path)) return true;
    return false;
}

/* Not kept, or not yet. */
static void on_execution(void *arg, const struct execution *x, const struct err *failed)
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
    struct who w;

    (void)failed;
    if (!who_read(r, &w))
        ;
    else if (!item)
        execution_find(request_ctx(r), request_service(r), request_caller(r), &w,
                       request_path(r, "execution"), on_execution, r);
    else if (!who_owns(&w, item->owner))
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
