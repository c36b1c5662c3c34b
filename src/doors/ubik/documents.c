/*
 * Documents: files that executions may be given. Each is an item that names a file of the
 * store; one that comes from a URL is pending until it is there.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- as clients see them --- */

/* Whoever was to fetch it is not there any more. */
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
        json_object_set_new(shown, "error_message",
                            json_string("The server was restarted meanwhile: reprocess it."));
    }
    json_decref(body);
    return shown;
}

/* --- for an order --- */

struct finding {
    struct service *sv; /* borrowed */
    struct caller caller;
    struct who who;
    json_t *ids;   /* owned */
    json_t *files; /* owned */
    json_t *names; /* owned: object, those that are taken */
    size_t at;
    documents_fn *fn;
    void *arg;
};

static void finding_end(struct finding *f, const struct err *failed)
{
    f->fn(f->arg, failed ? NULL : f->files, failed);
    json_decref(f->ids);
    json_decref(f->files);
    json_decref(f->names);
    free(f);
}

static void add_file(struct finding *f, const json_t *body)
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

static void find_next(struct finding *f);

static void on_item(void *arg, const struct item_row *item, const struct err *failed)
{
    struct finding *f = arg;
    struct str id = json_view(json_array_get(f->ids, f->at));
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    char shown[NAME_SHOWN];
    struct err e = {0};

    if (failed && failed->kind != ERR_MISSING)
        e = *failed;
    else if (!item || !who_sees(&f->who, item->owner))
        err_set(&e, ERR_MISSING, "there is no document %s", name_show(shown, id));
    else if (!json_is_string(json_object_get(body, "file_id")))
        err_set(&e, ERR_CONFLICT, "the document %s is not ready, or could not be fetched",
                item->id);
    else
        add_file(f, body);
    json_decref(body);
    f->at++;
    if (e.kind)
        finding_end(f, &e);
    else
        find_next(f);
}

static void find_next(struct finding *f)
{
    if (f->at == json_array_size(f->ids))
        finding_end(f, NULL);
    else
        service_item_get(f->sv, &f->caller, "document", json_view(json_array_get(f->ids, f->at)),
                         on_item, f);
}

void documents_find(struct service *sv, const struct caller *c, const struct who *w,
                    const json_t *ids, documents_fn *fn, void *arg)
{
    struct finding *f = mem_zalloc(sizeof(*f));

    *f = (struct finding){.sv = sv,
                          .caller = *c,
                          .who = *w,
                          .ids = json_incref((json_t *)ids),
                          .files = json_array(),
                          .names = json_object(),
                          .fn = fn,
                          .arg = arg};
    find_next(f);
}

/* --- the list --- */

static void on_list(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct request *r = arg;
    struct pages p;
    json_t *list;

    if (failed) {
        detail_err(r, failed, NULL);
        return;
    }
    if (!pages_read(r, &p))
        return;
    list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, document_show(request_ctx(r), &items[i]));
    pages_answer(r, &p, list, total);
}

void handle_documents(struct request *r)
{
    struct who w;
    struct pages p;

    if (!who_read(r, &w) || !pages_read(r, &p))
        return;
    const struct item_filter f = {.kind = "document",
                                  .view = *w.user ? ITEMS_OWN_AND_COMMON : ITEMS_ALL,
                                  .owner = w.user,
                                  .offset = (p.page - 1) * p.limit,
                                  .limit = p.limit};
    service_item_list(request_service(r), request_caller(r), &f, on_list, r);
}

/* --- one of them --- */

struct one {
    struct request *r; /* borrowed */
    json_t *shown;     /* owned */
    int fd;            /* owned */
    char *text;        /* owned: what it begins with */
    size_t n;
    void (*then)(struct one *o, const struct item_row *item, json_t *body);
};

static void one_free(void *arg)
{
    struct one *o = arg;

    json_decref(o->shown);
    fd_closep(&o->fd);
    free(o->text);
    free(o);
}

static void on_one(void *arg, const struct item_row *item, const struct err *failed)
{
    struct one *o = arg;
    struct who w;
    json_t *body;

    if (failed) {
        detail_err(o->r, failed, "Document not found");
        return;
    }
    if (!who_read(o->r, &w))
        return;
    if (!who_sees(&w, item->owner)) {
        detail(o->r, 404, "Document not found");
        return;
    }
    body = json_loads(item->body, 0, NULL);
    o->then(o, item, body);
    json_decref(body);
}

static void find(struct request *r,
                 void (*then)(struct one *o, const struct item_row *item, json_t *body))
{
    struct one *o = mem_zalloc(sizeof(*o));

    *o = (struct one){.r = r, .fd = -1, .then = then};
    request_keep(r, one_free, o);
    service_item_get(request_service(r), request_caller(r), "document", request_path(r, "document"),
                     on_one, o);
}

/* --- its text --- */

static void read_text(void *arg)
{
    struct one *o = arg;
    ssize_t n;

    o->text = mem_zalloc(TEXT_BYTES);
    while (o->n < TEXT_BYTES && (n = read(o->fd, o->text + o->n, TEXT_BYTES - o->n)) > 0)
        o->n += (size_t)n;
}

static void on_text(void *arg)
{
    struct one *o = arg;
    struct str text = {o->text, o->n};
    bool whole = o->n < TEXT_BYTES;

    if (!whole)
        text.n -= utf8_torn(text);
    /* What has a NUL, or is no UTF-8, is no text, whatever it is called. */
    if (str_utf8_len(text) == text.n && !(text.n && memchr(text.p, '\0', text.n)))
        json_object_set_new(o->shown, "markdown_content", record_text(text));
    json_object_set_new(o->shown, "markdown_truncated", json_boolean(!whole));
    answer_json(o->r, 200, json_incref(o->shown));
}

static void on_file(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    struct one *o = arg;

    (void)file;
    if (failed) {
        answer_json(o->r, 200, json_incref(o->shown));
        return;
    }
    o->fd = take_fd(fd);
    loop_work(request_loop(o->r), read_text, on_text, o);
}

static bool is_texty(struct str mime)
{
    static const char *const kinds[] = {"text/",           "application/json",
                                        "application/xml", "application/x-ndjson",
                                        "image/svg+xml",   "application/javascript"};

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (mime.n >= strlen(kinds[i]) && memcmp(mime.p, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

static void show(struct one *o, const struct item_row *item, json_t *body)
{
    struct str file = json_view(json_object_get(body, "file_id"));

    o->shown = document_show(request_ctx(o->r), item);
    json_object_set_new(o->shown, "markdown_content", json_null());
    if (file.p && is_texty(json_view(json_object_get(body, "mime"))))
        service_file_open(request_service(o->r), request_caller(o->r), file, on_file, o);
    else
        answer_json(o->r, 200, json_incref(o->shown));
}

void handle_document(struct request *r)
{
    find(r, show);
}

/* --- away with it --- */

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
    struct one *o = arg;
    struct str file = json_view(json_object_get(o->shown, "file_id"));

    if (failed)
        detail_err(o->r, failed, "Document not found");
    else if (file.p)
        service_file_delete(request_service(o->r), request_caller(o->r), file, on_file_gone, o->r);
    else
        answer_empty(o->r, 204);
}

/* What is nobody's is the account's to delete. */
static void drop(struct one *o, const struct item_row *item, json_t *body)
{
    struct who w;

    if (!who_read(o->r, &w))
        return;
    if (!who_owns(&w, item->owner)) {
        detail(o->r, 403, "This document is the account's, not this end user's");
        return;
    }
    o->shown = json_incref(body);
    service_item_delete(request_service(o->r), request_caller(o->r), "document", str_of(item->id),
                        on_item_gone, o);
}

void handle_document_delete(struct request *r)
{
    find(r, drop);
}

/* --- once more --- */

static void again(struct one *o, const struct item_row *item, json_t *body)
{
    struct who w;

    if (!who_read(o->r, &w))
        return;
    if (!who_owns(&w, item->owner)) {
        detail(o->r, 403, "This document is the account's, not this end user's");
        return;
    }
    o->shown = document_show(request_ctx(o->r), item);
    if (json_is_string(json_object_get(body, "url")) &&
        !str_is(json_view(json_object_get(o->shown, "status")), "pending")) {
        document_fetch(request_ctx(o->r), request_service(o->r), request_caller(o->r), item);
        json_object_set_new(o->shown, "status", json_string("pending"));
    }
    answer_json(o->r, 200, json_incref(o->shown));
}

void handle_document_reprocess(struct request *r)
{
    find(r, again);
}
