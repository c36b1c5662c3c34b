/* Makes documents: of the files of a form, one after the other, and of URLs, which are fetched
 * after the answer. */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_BYTES (256 * KiB) /* of URLs */

/* Marks a document as complete. */
static void describe(json_t *body, const struct file_row *file)
{
    json_object_set_new(body, "status", json_string("completed"));
    json_object_set_new(body, "name", record_text(str_of(file->name)));
    json_object_set_new(body, "mime", record_text(str_of(file->mime)));
    json_object_set_new(body, "size", json_integer((json_int_t)file->size));
    json_object_set_new(body, "file_id", json_string(file->id));
}

/* --- by URL --- */

struct document_download {
    struct end_user user;
    char *id, *owner, *parent; /* owned */
    json_t *body;              /* owned */
};

static void download_free(void *arg)
{
    struct document_download *f = arg;

    json_decref(f->body);
    free(f->id);
    free(f->owner);
    free(f->parent);
    free(f);
}

static void put(struct document_download *f, done_fn *fn)
{
    const struct item_row row = {.id = f->id, .owner = f->owner, .parent = f->parent};

    item_put(&f->user, "document", row, 0, f->body, fn, f);
}

static void on_file_gone(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed && failed->kind != ERR_MISSING)
        log_warn("a file without a document could not be deleted: %s", failed->text);
}

static void drop_file(struct document_download *f, struct str id)
{
    if (id.n)
        service_file_delete(f->user.sv, &f->user.caller, id, on_file_gone, NULL);
}

static void on_written(void *arg, const struct err *failed)
{
    if (failed)
        log_warn("the state of a document could not be written: %s", failed->text);
    download_free(arg);
}

/* A document that was deleted meanwhile must not come back. */
static void on_still_there(void *arg, const struct item_row *item, const struct err *failed)
{
    struct document_download *f = arg;

    (void)item;
    if (!failed) {
        put(f, on_written);
        return;
    }
    drop_file(f, json_view(json_object_get(f->body, "file_id")));
    download_free(f);
}

static void on_fetched(void *arg, const struct file_row *file, const struct err *failed)
{
    struct document_download *f = arg;

    if (failed) {
        json_object_set_new(f->body, "status", json_string("failed"));
        json_object_set_new(f->body, "error",
                            failed->kind == ERR_HOST ? json_string("The file could not be stored.")
                                                     : record_text(str_of(failed->text)));
    } else {
        drop_file(f, json_view(json_object_get(f->body, "file_id"))); /* of an earlier fetch */
        json_object_del(f->body, "error");
        describe(f->body, file);
    }
    service_item_get(f->user.sv, &f->user.caller, "document", str_of(f->id), on_still_there, f);
}

static void on_pending(void *arg, const struct err *failed)
{
    struct document_download *f = arg;

    if (failed) {
        on_written(f, failed);
        return;
    }
    service_file_fetch(f->user.sv, &f->user.caller, json_view(json_object_get(f->body, "url")),
                       (struct str){0}, on_fetched, f);
}

void document_fetch(const struct end_user *user, const struct item_row *item)
{
    struct document_download *f = mem_zalloc(sizeof(*f));

    *f = (struct document_download){.user = *user,
                                    .id = mem_strdup(item->id),
                                    .owner = mem_strdup(item->owner),
                                    .parent = mem_strdup(item->parent ? item->parent : ""),
                                    .body = json_loads(item->body, 0, NULL)};
    json_object_set_new(f->body, "status", json_string("pending"));
    put(f, on_pending);
}

/* --- a form --- */

struct document_upload {
    struct request *r; /* borrowed */
    struct end_user user;
    char parent[UUID_MAX]; /* an agent session, or "" */
    bool single;           /* the answer is one document, not a list */
    size_t at;             /* of the uploads of the request */
    json_t *metadata;      /* owned: object */
    json_t *workspaces;    /* owned: array */
    json_t *urls;          /* owned: array */
    json_t *documents;     /* owned: array, in the making */
    char id[UUID_MAX];     /* of the document in hand */
    json_t *body;          /* owned: likewise */
};

static void upload_free(void *arg)
{
    struct document_upload *u = arg;

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
    struct str one;

    while (json_array_size(list) <= DOCUMENTS_MAX && str_next(&text, ',', &one))
        if (one.n)
            json_array_append_new(list, record_text(one));
    return list;
}

static bool take_metadata(struct document_upload *u, struct str text)
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

/* Reads the text fields. Settings of Ubik's crawler are ignored. */
static bool take_texts(struct document_upload *u, size_t *ret_files)
{
    size_t count;
    struct upload *up = request_uploads(u->r, &count);

    for (size_t i = 0; i < count; i++) {
        *ret_files += is_file(&up[i]);
        if (up[i].blob)
            continue;
        if (str_is(up[i].field, "api_metadata") && up[i].text.n && !take_metadata(u, up[i].text))
            return false;
        if (str_is(up[i].field, "external_user_id") && !end_user_take(u->r, &u->user, up[i].text))
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

static void go_on(struct document_upload *u);

/* The next document: u->id and u->body. */
static void new_document(struct document_upload *u)
{
    uuid_make(u->id);
    json_decref(u->body);
    u->body = json_pack("{s:O, s:O}", "api_metadata", u->metadata, "workspace_ids", u->workspaces);
}

static void add_shown(struct document_upload *u)
{
    AUTO_FREE char *text = record_dump(u->body, false, NULL);
    const struct item_row row = {.id = u->id,
                                 .owner = u->user.id,
                                 .created_ms = time_now_ms(),
                                 .updated_ms = time_now_ms(),
                                 .body = text};

    json_array_append_new(u->documents, document_show(request_ctx(u->r), &row));
}

static void on_put(void *arg, const struct err *failed)
{
    struct document_upload *u = arg;

    if (failed) {
        detail_err(u->r, failed, NULL);
        return;
    }
    add_shown(u);
    go_on(u);
}

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct document_upload *u = arg;

    if (failed) {
        detail_err(u->r, failed, NULL);
        return;
    }
    new_document(u);
    describe(u->body, file);
    const struct item_row row = {.id = u->id, .owner = u->user.id, .parent = u->parent};
    item_put(&u->user, "document", row, 0, u->body, on_put, u);
}

/* The answer says pending; the fetch goes on after it. */
static void start_url(struct document_upload *u, json_t *url)
{
    AUTO_FREE char *text = NULL;
    struct item_row row = {.id = u->id, .owner = u->user.id, .parent = u->parent};

    new_document(u);
    json_object_set(u->body, "name", url);
    json_object_set(u->body, "url", url);
    json_object_set_new(u->body, "status", json_string("pending"));
    text = record_dump(u->body, false, NULL);
    row.body = text;
    document_fetch(&u->user, &row);
    add_shown(u);
}

static void finish(struct document_upload *u)
{
    json_t *url;
    size_t i;

    json_array_foreach(u->urls, i, url)
        start_url(u, url);
    answer_json(u->r, 200, json_incref(u->single ? json_array_get(u->documents, 0) : u->documents));
}

static void go_on(struct document_upload *u)
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
    struct file_spec spec = {.name = str_base(one->name, "/\\"), .mime = one->mime};
    if (str_is(spec.mime, "application/octet-stream")) /* the client does not know the type */
        spec.mime = (struct str){0};
    service_file_create(request_service(u->r), request_caller(u->r), &spec, take_ptr(&one->blob),
                        on_file, u);
}

static void on_room(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct document_upload *u = arg;

    (void)items, (void)count;
    if (failed)
        detail_err(u->r, failed, NULL);
    else if (total >= KEPT_MAX)
        detail(u->r, 413, "An account has at most %d documents: delete some first.", KEPT_MAX);
    else
        go_on(u);
}

/* Uploads at the same time may exceed the limit by a few. */
static void find_room(struct document_upload *u)
{
    const struct item_filter all = {
        .kind = "document", .view = ITEMS_ALL, .owner = "", .page.limit = 1, .count = true};

    service_item_list(request_service(u->r), request_caller(u->r), &all, on_room, u);
}

static struct document_upload *begin(struct request *r, const struct end_user *user,
                                     const char *parent)
{
    struct document_upload *u = mem_zalloc(sizeof(*u));

    *u = (struct document_upload){.r = r,
                                  .user = *user,
                                  .metadata = json_object(),
                                  .workspaces = json_array(),
                                  .urls = json_array(),
                                  .documents = json_array()};
    snprintf(u->parent, sizeof(u->parent), "%s", parent);
    request_keep(r, upload_free, u);
    return u;
}

void upload_one(struct request *r, const struct end_user *user, const char *session)
{
    struct document_upload *u = begin(r, user, session);
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
    struct end_user user;
    struct document_upload *u;
    size_t files = 0;

    if (!end_user_read(r, &user))
        return;
    u = begin(r, &user, "");
    if (!take_texts(u, &files))
        return;
    if (files + json_array_size(u->urls) == 0)
        detail(r, 400, "Either 'files' or 'urls' must be provided.");
    else if (files + json_array_size(u->urls) > DOCUMENTS_MAX)
        detail(r, 400, "At most %d documents can be sent at a time.", DOCUMENTS_MAX);
    else
        find_room(u);
}
