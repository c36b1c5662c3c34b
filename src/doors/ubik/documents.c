/*
 * Documents: files for executions. A document is an item that names a file of the store;
 * a document from a URL is pending until the URL is fetched.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- as clients see them --- */

/* Whether the server was restarted during the fetch: nothing fetches the document any more. */
static bool is_stuck(const struct ubik *u, const struct item_row *item, const json_t *body)
{
    return str_is(json_view(json_object_get(body, "status")), "pending") &&
           item->updated_ms < u->started_ms;
}

json_t *document_show(const struct ubik *u, const struct item_row *item)
{
    json_t *body = json_loads(item->body, 0, NULL);
    bool stuck = is_stuck(u, item, body);
    json_t *shown = json_pack(
        "{s:s, s:O, s:O, s:O?, s:O?, s:o, s:o, s:s, s:O?, s:O?, s:O?, s:O?, s:s?}", "id", item->id,
        "name", json_object_get(body, "name"), "file_name", json_object_get(body, "name"),
        "file_type", json_object_get(body, "mime"), "size", json_object_get(body, "size"),
        "created_at", time_json(item->created_ms), "updated_at", time_json(item->updated_ms),
        "processing_pipeline", "none", "status", json_object_get(body, "status"), "error_message",
        json_object_get(body, "error"), "api_metadata", json_object_get(body, "api_metadata"),
        "workspace_ids", json_object_get(body, "workspace_ids"), "external_user_id",
        *item->owner ? item->owner : NULL);

    if (stuck) {
        json_object_set_new(shown, "status", json_string("failed"));
        json_object_set_new(
            shown, "error_message",
            json_string("The server was restarted meanwhile: reprocess the document."));
    }
    json_decref(body);
    return shown;
}

/* --- for a submission --- */

struct document_lookup {
    struct end_user user;
    json_t *ids;   /* owned */
    json_t *files; /* owned */
    json_t *names; /* owned: object, those that are taken */
    size_t at;
    documents_fn *fn;
    void *arg;
};

static void lookup_end(struct document_lookup *f, const struct err *failed)
{
    f->fn(f->arg, failed ? NULL : f->files, failed);
    json_decref(f->ids);
    json_decref(f->files);
    json_decref(f->names);
    free(f);
}

static void add_file(struct document_lookup *f, const json_t *body)
{
    const char *name = json_string_value(json_object_get(body, "name"));
    char other[NAME_BYTES + 16];

    snprintf(other, sizeof(other), "%s", name ? name : "document");
    for (size_t n = 2; json_object_get(f->names, other); n++)
        snprintf(other, sizeof(other), "%zu_%.*s", n, (int)text_head(str_of(name), 240), name);
    json_object_set_new(f->names, other, json_true());
    json_array_append_new(f->files, json_pack("{s:s, s:O}", "name", other, "file_id",
                                              json_object_get(body, "file_id")));
}

static void find_next(struct document_lookup *f);

static void on_item(void *arg, const struct item_row *item, const struct err *failed)
{
    struct document_lookup *f = arg;
    struct str id = json_view(json_array_get(f->ids, f->at));
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    char shown[NAME_SHOWN];
    struct err e = {0};

    if (failed && failed->kind != ERR_MISSING)
        e = *failed;
    else if (!item || !end_user_sees(&f->user, item->owner))
        err_set(&e, ERR_MISSING, "there is no document %s", name_show(shown, id));
    else if (!json_is_string(json_object_get(body, "file_id")))
        err_set(&e, ERR_CONFLICT, "the document %s is not ready, or could not be fetched",
                item->id);
    else
        add_file(f, body);
    json_decref(body);
    f->at++;
    if (e.kind)
        lookup_end(f, &e);
    else
        find_next(f);
}

static void find_next(struct document_lookup *f)
{
    if (f->at == json_array_size(f->ids))
        lookup_end(f, NULL);
    else
        service_item_get(f->user.sv, &f->user.caller, "document",
                         json_view(json_array_get(f->ids, f->at)), on_item, f);
}

void documents_find(const struct end_user *user, const json_t *ids, documents_fn *fn, void *arg)
{
    struct document_lookup *f = mem_zalloc(sizeof(*f));

    *f = (struct document_lookup){.user = *user,
                                  .ids = json_incref((json_t *)ids),
                                  .files = json_array(),
                                  .names = json_object(),
                                  .fn = fn,
                                  .arg = arg};
    find_next(f);
}

void handle_documents(struct request *r)
{
    items_answer(r, "document", ITEMS_OWN_AND_COMMON, document_show);
}

/* --- one document --- */

struct document_request {
    struct request *r; /* borrowed */
    struct end_user user;
    json_t *shown;                 /* owned */
    int fd;                        /* owned */
    struct document_text *extract; /* owned, or NULL: its text comes */
    char *text;                    /* owned: what it begins with */
    size_t n;
    bool own; /* an end user must own the document, not only see it */
    void (*then)(struct document_request *o, const struct item_row *item, json_t *body);
};

static void request_free(void *arg)
{
    struct document_request *o = arg;

    json_decref(o->shown);
    fd_closep(&o->fd);
    free(o->text);
    free(o);
}

static void on_one(void *arg, const struct item_row *item, const struct err *failed)
{
    struct document_request *o = arg;
    json_t *body;

    if (failed) {
        detail_err(o->r, failed, "Document not found");
        return;
    }
    if (!end_user_sees(&o->user, item->owner)) {
        detail(o->r, 404, "Document not found");
        return;
    }
    if (o->own && !end_user_owns(&o->user, item->owner)) {
        detail(o->r, 403, "This document is the account's, not this end user's");
        return;
    }
    body = json_loads(item->body, 0, NULL);
    o->then(o, item, body);
    json_decref(body);
}

static void find(struct request *r, bool own,
                 void (*then)(struct document_request *o, const struct item_row *item,
                              json_t *body))
{
    struct document_request *o = mem_zalloc(sizeof(*o));

    *o = (struct document_request){.r = r, .fd = -1, .own = own, .then = then};
    request_keep(r, request_free, o);
    if (end_user_read(r, &o->user))
        service_item_get(o->user.sv, &o->user.caller, "document", request_path(r, "document"),
                         on_one, o);
}

/* --- the text --- */

static void read_text(void *arg)
{
    struct document_request *o = arg;
    ssize_t n;

    o->text = mem_zalloc(TEXT_BYTES);
    while (o->n < TEXT_BYTES && (n = read(o->fd, o->text + o->n, TEXT_BYTES - o->n)) > 0)
        o->n += (size_t)n;
}

static void on_text(void *arg)
{
    struct document_request *o = arg;
    struct str text = {o->text, o->n};
    bool whole = o->n < TEXT_BYTES;

    if (!whole)
        text.n -= utf8_torn(text);
    /* A file with a NUL, or not in UTF-8, is no text, whatever its MIME type. */
    if (str_utf8_len(text) == text.n && !(text.n && memchr(text.p, '\0', text.n)))
        json_object_set_new(o->shown, "markdown_content", record_text(text));
    json_object_set_new(o->shown, "markdown_truncated", json_boolean(!whole));
    answer_json(o->r, 200, json_incref(o->shown));
}

static void on_file(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    struct document_request *o = arg;

    (void)file;
    if (failed) {
        answer_json(o->r, 200, json_incref(o->shown));
        return;
    }
    o->fd = take_fd(fd);
    service_work(request_service(o->r), read_text, on_text, o);
}

/* A sentence stands in the place of a text that there is not. */
static void on_extracted(void *arg, struct str text, bool cut, const struct err *none)
{
    struct document_request *o = arg;
    AUTO(buf_done) struct buf b = BUF(KiB);

    o->extract = NULL;
    if (none) {
        buf_printf(&b, "[There is no text of this file: %s]",
                   none->kind == ERR_HOST ? "the sandbox cannot be reached" : none->text);
        text = buf_str(&b);
    }
    json_object_set_new(o->shown, "markdown_content", record_text(text));
    json_object_set_new(o->shown, "markdown_truncated", json_boolean(cut));
    answer_json(o->r, 200, json_incref(o->shown));
}

static void on_gone(void *arg)
{
    struct document_request *o = arg;

    if (!o->extract)
        return;
    document_text_leave(take_ptr(&o->extract));
    request_drop(o->r);
}

static void extract(struct document_request *o, struct str file)
{
    request_on_gone(o->r, on_gone, o);
    o->extract = document_text_start(o->user.sv, &o->user.caller, o->user.u->config.pool,
                                     (struct file_input){.file_id = file}, on_extracted, o);
}

static void show(struct document_request *o, const struct item_row *item, json_t *body)
{
    struct str file = json_view(json_object_get(body, "file_id"));
    struct str mime = json_view(json_object_get(body, "mime"));

    o->shown = document_show(request_ctx(o->r), item);
    json_object_set_new(o->shown, "markdown_content", json_null());
    if (file.p && mime_is_text(mime))
        service_file_open(request_service(o->r), request_caller(o->r), file, on_file, o);
    else if (file.p && document_text_can(mime))
        extract(o, file);
    else
        answer_json(o->r, 200, json_incref(o->shown));
}

void handle_document(struct request *r)
{
    find(r, false, show);
}

/* --- deletion --- */

static void on_file_gone(void *arg, const struct err *failed)
{
    struct request *r = arg;

    if (failed && failed->kind != ERR_MISSING)
        detail_err(r, failed, NULL);
    else
        answer_empty(r, 204);
}

static void on_item_gone(void *arg, const struct err *failed)
{
    struct document_request *o = arg;
    struct str file = json_view(json_object_get(o->shown, "file_id"));

    if (failed)
        detail_err(o->r, failed, "Document not found");
    else if (file.p)
        service_file_delete(request_service(o->r), request_caller(o->r), file, on_file_gone, o->r);
    else
        answer_empty(o->r, 204);
}

static void drop(struct document_request *o, const struct item_row *item, json_t *body)
{
    o->shown = json_incref(body);
    service_item_delete(request_service(o->r), request_caller(o->r), "document", str_of(item->id),
                        on_item_gone, o);
}

void handle_document_delete(struct request *r)
{
    find(r, true, drop);
}

/* --- fetching again --- */

static void again(struct document_request *o, const struct item_row *item, json_t *body)
{
    o->shown = document_show(request_ctx(o->r), item);
    if (json_is_string(json_object_get(body, "url")) &&
        !str_is(json_view(json_object_get(o->shown, "status")), "pending")) {
        document_fetch(&o->user, item);
        json_object_set_new(o->shown, "status", json_string("pending"));
    }
    answer_json(o->r, 200, json_incref(o->shown));
}

void handle_document_reprocess(struct request *r)
{
    find(r, true, again);
}
