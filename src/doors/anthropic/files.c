/* The Files API: files that clients uploaded, and files that code made. */
#include "doors/anthropic/anthropic_int.h"

#include "record/record.h"

#include <stdlib.h>

#define EXPIRES_MIN 3600
#define EXPIRES_MAX 7776000

/* --- what clients see --- */

static bool can_download(struct request *r, const struct file_row *f)
{
    const struct anthropic *a = request_ctx(r);

    return f->downloadable || a->config.download_uploads;
}

/* Has the members of all versions of the API: clients ignore those they do not know. */
static json_t *file_value(struct request *r, const struct file_row *f)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:b, s:o, s:n}", "id", f->id, "type", "file",
                     "filename", record_text(str_of(f->name)), "mime_type",
                     record_text(str_of(f->mime)), "size_bytes", (json_int_t)f->size, "created_at",
                     time_json(f->created_ms), "downloadable", (int)can_download(r, f),
                     "expires_at", time_json(f->expires_ms), "scope");
}

static void fail(struct request *r, const struct err *failed)
{
    char shown[NAME_SHOWN];

    name_show(shown, request_path(r, "file"));
    if (failed->kind == ERR_MISSING && failed->sys == FILE_EXPIRED)
        answer_fail(r, 404, CODE_FILE_EXPIRED, NULL, "File `%s` has expired.", shown);
    else if (failed->kind == ERR_MISSING)
        answer_fail(r, 404, CODE_MISSING, NULL, "File `%s` not found.", shown);
    else
        anthropic_fail(r, failed);
}

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        fail(r, failed);
    else
        answer_json(r, 200, file_value(r, file));
}

/* --- upload --- */

/* An upload. A part of the form without a filename comes as text, and has no blob yet. */
struct arrival {
    struct request *r; /* borrowed: until it is answered */
    struct str text;   /* borrowed from the request */
    struct blob *blob; /* owned */
    struct file_spec spec;
    char name[FILE_NAME_MAX + 1];
    struct err failed;
};

static void write_text(void *arg)
{
    struct arrival *a = arg;

    if (a->text.n > 0 && blob_write(a->blob, a->text, &a->failed) < 0)
        blob_free(take_ptr(&a->blob));
}

static void create(void *arg)
{
    struct arrival *a = arg;

    if (!a->blob)
        fail(a->r, &a->failed);
    else
        service_file_create(request_service(a->r), request_caller(a->r), &a->spec,
                            take_ptr(&a->blob), on_file, a->r);
    free(a);
}

static bool refuse(struct request *r, const char *name, const char *text)
{
    answer_fail(r, 400, CODE_INVALID, name, "%s: %s", name, text);
    return false;
}

/* The first part of this name. Unknown parts are ignored. */
static struct upload *part_of(struct request *r, const char *name)
{
    size_t count;
    struct upload *u = request_uploads(r, &count);

    for (size_t i = 0; i < count; i++)
        if (str_is(u[i].field, name))
            return &u[i];
    return NULL;
}

static bool read_expiry(struct request *r, uint64_t *ret_ms)
{
    const struct upload *u = part_of(r, "expires_in_seconds");
    uint64_t seconds = 0;

    *ret_ms = 0;
    if (!u)
        return true;
    for (size_t i = 0; i < u->text.n && seconds <= EXPIRES_MAX; i++) {
        if (u->text.p[i] < '0' || u->text.p[i] > '9')
            return refuse(r, "expires_in_seconds", "a whole number is expected");
        seconds = seconds * 10 + (uint64_t)(u->text.p[i] - '0');
    }
    if (seconds < EXPIRES_MIN || seconds > EXPIRES_MAX)
        return refuse(r, "expires_in_seconds", "a number from 3600 to 7776000 is expected");
    *ret_ms = seconds * 1000;
    return true;
}

void handle_file_upload(struct request *r)
{
    struct upload *u = part_of(r, "file");
    struct arrival *a;
    uint64_t expires_ms;
    struct err e = {0};

    if (!u) {
        (void)!refuse(r, "file", "the form has no part of this name");
        return;
    }
    if (!read_expiry(r, &expires_ms))
        return;
    a = mem_zalloc(sizeof(*a));
    *a = (struct arrival){.r = r, .text = u->text, .blob = take_ptr(&u->blob)};
    a->spec.mime = file_mime_take(u->mime);
    a->spec.expires_ms = expires_ms;
    if (file_name_take(u->name, a->spec.mime, a->name, &e) < 0 ||
        (!a->blob && !(a->blob = service_blob_new(request_service(r), request_caller(r), &e)))) {
        a->failed = e;
        blob_free(take_ptr(&a->blob));
        return create(a);
    }
    a->spec.name = str_of(a->name);
    if (a->text.p)
        service_work(request_service(r), write_text, create, a);
    else
        create(a);
}

/* --- one file, and lists --- */

void handle_file(struct request *r)
{
    service_file_get(request_service(r), request_caller(r), request_path(r, "file"), on_file, r);
}

static void on_files(void *arg, const struct file_row *files, size_t count, bool more,
                     const struct err *failed)
{
    struct request *r = arg;
    json_t *data;

    if (failed)
        return fail(r, failed);
    data = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(data, file_value(r, &files[i]));
    answer_json(r, 200, list_value(data, more, request_query(r, "before_id").n > 0));
}

/* Adds the ids of one query parameter. False: there are too many, and the request is answered. */
static bool add_ids(struct request *r, const char *name, struct str ids[FILE_IDS_MAX],
                    size_t *count)
{
    struct str id;

    for (size_t at = 0; (id = request_query_next(r, name, &at)).p;) {
        bool known = false;
        for (size_t i = 0; i < *count; i++)
            known |= str_eq(ids[i], id);
        if (known)
            continue;
        if (*count == FILE_IDS_MAX)
            return refuse(r, "ids", "at most 100 ids can be asked for at a time");
        ids[(*count)++] = id;
    }
    return true;
}

void handle_files(struct request *r)
{
    struct str ids[FILE_IDS_MAX];
    size_t count = 0;
    struct list_query want;

    if (!add_ids(r, "ids[]", ids, &count) || !add_ids(r, "ids", ids, &count) ||
        !list_query_read(r, "file_", &want))
        return;
    if (count > 0 && (want.from.n > 0 || request_query(r, "limit").n > 0)) {
        (void)!refuse(r, "ids", "these exclude page, limit, after_id and before_id");
        return;
    }
    if (request_query(r, "scope_id").n > 0) /* no file here has a scope */
        return on_files(r, NULL, 0, false, NULL);
    if (count > 0)
        return service_file_pick(request_service(r), request_caller(r), ids, count, on_files, r);
    service_file_list(request_service(r), request_caller(r),
                      (struct page){.after = want.from.n ? want.from.p : NULL,
                                    .after_ms = want.from.n ? id_ms(want.from) : 0,
                                    .limit = want.limit,
                                    .newer = want.newer},
                      on_files, r);
}

/* --- content --- */

static void on_open(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    struct request *r = arg;
    char disposition[DISPOSITION_MAX];

    if (failed)
        return fail(r, failed);
    if (!can_download(r, file)) {
        answer_fail(r, 400, CODE_NOT_DOWNLOADABLE, NULL,
                    "File `%s` is not downloadable: it was uploaded, not made by a tool.",
                    file->id);
        return;
    }
    disposition_print(str_of(file->name), disposition);
    answer_header(r, "content-disposition", disposition);
    answer_file(r, take_fd(fd), file->size, file->mime, (struct str){0}, file->hash);
}

void handle_file_content(struct request *r)
{
    service_file_open(request_service(r), request_caller(r), request_path(r, "file"), on_open, r);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        return fail(r, failed);
    answer_json(r, 200,
                json_pack("{s:s, s:s}", "id", request_path(r, "file").p, "type", "file_deleted"));
}

void handle_file_delete(struct request *r)
{
    service_file_delete(request_service(r), request_caller(r), request_path(r, "file"), on_deleted,
                        r);
}
