/* Documents on their way in: files of a form, one after the other, and URLs, which are fetched
 * after the answer. */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_BYTES (256 * KiB) /* of URLs */

/* --- items --- */

/* Takes body. */
static void put_item(struct service *sv, const struct caller *c, const char *id, const char *owner,
                     const char *parent, json_t *body, done_fn *fn, void *arg)
{
    AUTO_FREE char *text = record_dump(body, false, NULL);
    char kind[] = "document";
    const struct item_row row = {.id = (char *)(uintptr_t)id,
                                 .kind = kind,
                                 .owner = (char *)(uintptr_t)owner,
                                 .parent = (char *)(uintptr_t)parent,
                                 .body = text};

    json_decref(body);
    service_item_put(sv, c, &row, fn, arg);
}

/* --- by URL --- */

struct fetching {
    struct service *sv; /* borrowed */
    struct caller caller;
    char *id, *owner, *parent; /* owned */
    json_t *body;              /* owned */
};

static void fetching_free(void *arg)
{
    struct fetching *f = arg;

    json_decref(f->body);
    free(f->id);
    free(f->owner);
    free(f->parent);
    free(f);
}

static void on_file_gone(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed && failed->kind != ERR_MISSING)
        log_warn("a file that no document names stays: %s", failed->text);
}

static void drop_file(struct fetching *f, struct str id)
{
    if (id.n)
        service_file_delete(f->sv, &f->caller, id, on_file_gone, NULL);
}

static void on_written(void *arg, const struct err *failed)
{
    if (failed)
        log_warn("what came of a document is not on record: %s", failed->text);
    fetching_free(arg);
}

/* It may have been deleted meanwhile, and must not come back. */
static void on_still_there(void *arg, const struct item_row *item, const struct err *failed)
{
    struct fetching *f = arg;

    (void)item;
    if (failed) {
        drop_file(f, json_view(json_object_get(f->body, "file_id")));
        fetching_free(f);
        return;
    }
    put_item(f->sv, &f->caller, f->id, f->owner, f->parent, json_incref(f->body), on_written, f);
}

static void on_fetched(void *arg, const struct file_row *file, const struct err *failed)
{
    struct fetching *f = arg;

    json_object_set_new(f->body, "status", json_string(failed ? "failed" : "completed"));
    if (failed) {
        json_object_set_new(f->body, "error",
                            failed->kind == ERR_HOST ? json_string("It could not be kept.")
                                                     : record_text(str_of(failed->text)));
    } else {
        drop_file(f, json_view(json_object_get(f->body, "file_id"))); /* of the last time */
        json_object_del(f->body, "error");
        json_object_set_new(f->body, "name", record_text(str_of(file->name)));
        json_object_set_new(f->body, "mime", record_text(str_of(file->mime)));
        json_object_set_new(f->body, "size", json_integer((json_int_t)file->size));
        json_object_set_new(f->body, "file_id", json_string(file->id));
    }
    service_item_get(f->sv, &f->caller, "document", str_of(f->id), on_still_there, f);
}

static void on_pending(void *arg, const struct err *failed)
{
    struct fetching *f = arg;

    if (failed) {
        on_written(f, failed);
        return;
    }
    service_file_fetch(f->sv, &f->caller, json_view(json_object_get(f->body, "url")),
                       (struct str){0}, on_fetched, f);
}

void document_fetch(struct ubik *u, struct service *sv, const struct caller *c,
                    const struct item_row *item)
{
    struct fetching *f = mem_zalloc(sizeof(*f));

    (void)u;
    *f = (struct fetching){.sv = sv,
                           .caller = *c,
                           .id = mem_strdup(item->id),
                           .owner = mem_strdup(item->owner),
                           .parent = mem_strdup(item->parent ? item->parent : ""),
                           .body = json_loads(item->body, 0, NULL)};
    json_object_set_new(f->body, "status", json_string("pending"));
    put_item(sv, c, f->id, f->owner, f->parent, json_incref(f->body), on_pending, f);
}

/* --- a form --- */

struct uploading {
    struct request *r; /* borrowed */
    struct who who;
    char *parent;       /* owned: a session, or "" */
    bool single;        /* the answer is one document, not a list */
    size_t at;          /* of the uploads of the request */
    json_t *metadata;   /* owned: object */
    json_t *workspaces; /* owned: array */
    json_t *urls;       /* owned: array */
    json_t *documents;  /* owned: array, in the making */
    char id[UUID_MAX];  /* of the one at work */
    json_t *body;       /* owned: likewise */
};

static void uploading_free(void *arg)
{
    struct uploading *u = arg;

    free(u->parent);
    json_decref(u->metadata);
    json_decref(u->workspaces);
    json_decref(u->urls);
    json_decref(u->documents);
    json_decref(u->body);
    free(u);
}

static json_t *split(struct str text)
{
    json_t *list = json_array();

    while (text.n > 0 && json_array_size(list) <= DOCUMENTS_MAX) {
        const char *comma = memchr(text.p, ',', text.n);
        struct str one = {text.p, comma ? (size_t)(comma - text.p) : text.n};
        size_t step = one.n + (comma != NULL);
        while (one.n && (*one.p == ' ' || *one.p == '\n' || *one.p == '\r'))
            one.p++, one.n--;
        while (one.n && strchr(" \r\n", one.p[one.n - 1]))
            one.n--;
        if (one.n)
            json_array_append_new(list, record_text(one));
        text = (struct str){text.p + step, text.n - step};
    }
    return list;
}

static bool take_metadata(struct uploading *u, struct str text)
{
    struct err e;
    json_t *v = NULL;

    if (text.n <= METADATA_BYTES && json_read_any(text, &v, &e) == 0 && json_is_object(v)) {
        json_decref(u->metadata);
        u->metadata = v;
        return true;
    }
    json_decref(v);
    invalid(u->r, "body", "api_metadata", false, "must be an object, written as JSON");
    return false;
}

static bool is_file(const struct upload *up)
{
    return up->blob && (str_is(up->field, "files") || str_is(up->field, "files[]") ||
                        str_is(up->field, "file"));
}

/* Its texts; what crawlers are told elsewhere is no setting here. */
static bool take_texts(struct uploading *u, size_t *ret_files)
{
    size_t count;
    struct upload *up = request_uploads(u->r, &count);

    for (size_t i = 0; i < count; i++) {
        *ret_files += is_file(&up[i]);
        if (up[i].blob)
            continue;
        if (str_is(up[i].field, "api_metadata") && up[i].text.n && !take_metadata(u, up[i].text))
            return false;
        if (str_is(up[i].field, "external_user_id") && !who_take(u->r, &u->who, up[i].text))
            return false;
        if (str_is(up[i].field, "urls") && up[i].text.n <= LIST_BYTES) {
            json_decref(u->urls);
            u->urls = split(up[i].text);
        } else if (str_is(up[i].field, "workspace_ids")) {
            json_decref(u->workspaces);
            u->workspaces = split(up[i].text);
        }
    }
    return true;
}

static void go_on(struct uploading *u);

static json_t *body_of(struct uploading *u, json_t *name, const char *status)
{
    return json_pack("{s:o, s:s, s:O, s:O}", "name", name, "status", status, "api_metadata",
                     u->metadata, "workspace_ids", u->workspaces);
}

static void add_shown(struct uploading *u)
{
    AUTO_FREE char *text = record_dump(u->body, false, NULL);
    const struct item_row row = {.id = u->id,
                                 .owner = u->who.user,
                                 .created_ms = clock_ms(),
                                 .updated_ms = clock_ms(),
                                 .body = text};

    json_array_append_new(u->documents, document_show(request_ctx(u->r), &row));
}

static void on_put(void *arg, const struct err *failed)
{
    struct uploading *u = arg;

    if (failed) {
        detail_err(u->r, failed, NULL);
        return;
    }
    add_shown(u);
    go_on(u);
}

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct uploading *u = arg;

    if (failed) {
        detail_err(u->r, failed, NULL);
        return;
    }
    uuid_make(u->id);
    json_decref(u->body);
    u->body = body_of(u, record_text(str_of(file->name)), "completed");
    json_object_set_new(u->body, "mime", record_text(str_of(file->mime)));
    json_object_set_new(u->body, "size", json_integer((json_int_t)file->size));
    json_object_set_new(u->body, "file_id", json_string(file->id));
    put_item(request_service(u->r), request_caller(u->r), u->id, u->who.user, u->parent,
             json_incref(u->body), on_put, u);
}

/* The answer says pending; it is there, or not, a while after. */
static void start_url(struct uploading *u, json_t *url)
{
    AUTO_FREE char *text = NULL;
    struct item_row row = {.id = u->id, .owner = u->who.user, .parent = u->parent};

    uuid_make(u->id);
    json_decref(u->body);
    u->body = body_of(u, json_incref(url), "pending");
    json_object_set(u->body, "url", url);
    text = record_dump(u->body, false, NULL);
    row.body = text;
    document_fetch(request_ctx(u->r), request_service(u->r), request_caller(u->r), &row);
    add_shown(u);
}

static void finish(struct uploading *u)
{
    json_t *url;
    size_t i;

    json_array_foreach(u->urls, i, url) start_url(u, url);
    answer_json(u->r, 200, json_incref(u->single ? json_array_get(u->documents, 0) : u->documents));
}

static void go_on(struct uploading *u)
{
    size_t count;
    struct upload *up = request_uploads(u->r, &count);

    while (u->at < count && !is_file(&up[u->at]))
        u->at++;
    if (u->at == count) {
        finish(u);
        return;
    }
    struct upload *one = &up[u->at++];
    struct file_spec spec = {.name = last_segment(one->name), .mime = one->mime};
    if (str_is(spec.mime, "application/octet-stream")) /* of what clients do not know */
        spec.mime = (struct str){0};
    service_file_create(request_service(u->r), request_caller(u->r), &spec, take_ptr(&one->blob),
                        on_file, u);
}

static void on_room(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct uploading *u = arg;

    (void)items, (void)count;
    if (failed)
        detail_err(u->r, failed, NULL);
    else if (total >= KEPT_MAX)
        detail(u->r, 413, "An account has at most %d documents: delete some first.", KEPT_MAX);
    else
        go_on(u);
}

/* Those that come at the same time may be a few more. */
static void find_room(struct uploading *u)
{
    const struct item_filter all = {.kind = "document", .view = ITEMS_ALL, .owner = ""};

    service_item_list(request_service(u->r), request_caller(u->r), &all, on_room, u);
}

static struct uploading *begin(struct request *r, const struct who *w, const char *parent)
{
    struct uploading *u = mem_zalloc(sizeof(*u));

    *u = (struct uploading){.r = r,
                            .who = *w,
                            .parent = mem_strdup(parent),
                            .metadata = json_object(),
                            .workspaces = json_array(),
                            .urls = json_array(),
                            .documents = json_array()};
    request_keep(r, uploading_free, u);
    return u;
}

void upload_one(struct request *r, const struct who *w, const char *session)
{
    struct uploading *u = begin(r, w, session);
    size_t files = 0;

    u->single = true;
    if (!take_texts(u, &files))
        return;
    json_array_clear(u->urls);
    if (files == 1)
        find_room(u);
    else
        invalid(r, "body", "file", files == 0, "one file, and no more");
}

void handle_document_post(struct request *r)
{
    struct who w;
    struct uploading *u;
    size_t files = 0;

    if (!who_read(r, &w))
        return;
    u = begin(r, &w, "");
    if (!take_texts(u, &files))
        return;
    if (files + json_array_size(u->urls) == 0)
        detail(r, 400, "Either 'files' or 'urls' must be provided.");
    else if (files + json_array_size(u->urls) > DOCUMENTS_MAX)
        detail(r, 400, "At most %d documents can be sent at a time.", DOCUMENTS_MAX);
    else
        find_room(u);
}
