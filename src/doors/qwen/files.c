/*
 * Files of an instance over HTTP: uploads before its code runs, downloads of what the code made.
 *
 * POST /qwen/files takes a form of any size and puts each file of it under its name; the session of
 * an instance that is new is made, without a sandbox yet. GET /qwen/files/NAME gives one back.
 */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>

struct files_request {
    struct request *r; /* borrowed: outlives us */
    struct upload *upload;
    size_t count, at;
    char session[ID_MAX];
    json_t *stored; /* owned */
};

static void files_request_free(void *arg)
{
    struct files_request *f = arg;

    json_decref(f->stored);
    free(f);
}

static struct files_request *files_request_new(struct request *r)
{
    struct files_request *f = mem_zalloc(sizeof(*f));

    *f = (struct files_request){.r = r, .stored = json_array()};
    request_keep(r, files_request_free, f);
    return f;
}

/* "qwen/NAME"; false: refused. */
static bool session_name(struct request *r, char ret[INSTANCE_MAX + 16])
{
    struct str query = request_query(r, "instance");
    struct str given = query.n ? query : str_trim(request_header(r, "x-qwen-instance"));
    json_t *options = json_object();
    struct call_params p;
    struct err e;
    bool ok;

    if (given.n)
        json_object_set_new(options, "instance", record_text(given));
    call_params_init(&p, request_ctx(r));
    ok = call_params_take(&p, request_ctx(r), options, &e) == 0;
    if (ok)
        snprintf(ret, INSTANCE_MAX + 16, "qwen/%s", *p.instance ? p.instance : INSTANCE_DEFAULT);
    else
        answer_error(r, &e, "instance");
    call_params_done(&p);
    json_decref(options);
    return ok;
}

/* --- POST --- */

/* The last part of what the client calls it: a form may hold a path of the client's machine. */
static int take_name(const struct upload *u, char ret[SPACE_PATH_MAX], struct err *e)
{
    struct str name = u->name;

    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '/' || name.p[i - 1] == '\\') {
            name = str_from(name, i);
            break;
        }
    return space_path_clean(name, ret, e);
}

static void store_next(struct files_request *f);

static void on_stored(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct files_request *f = arg;

    if (failed) {
        answer_error(f->r, failed, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(f->stored, json_pack("{s:o, s:I}", "name", record_text(files[i].path),
                                                   "size", (json_int_t)files[i].size));
    f->at++;
    store_next(f);
}

static void store_next(struct files_request *f)
{
    char path[SPACE_PATH_MAX];
    struct err e;

    while (f->at < f->count && !f->upload[f->at].blob)
        f->at++;
    if (f->at == f->count) {
        answer_header(f->r, "x-qwen-session", f->session);
        answer_json(f->r, 200, json_pack("{s:O}", "files", f->stored));
    } else if (take_name(&f->upload[f->at], path, &e) < 0) {
        answer_error(f->r, &e, "file");
    } else {
        service_space_put(request_service(f->r), request_caller(f->r), str_of(f->session),
                          str_of(path), take_ptr(&f->upload[f->at].blob), on_stored, f);
    }
}

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct files_request *f = arg;

    if (failed) {
        answer_error(f->r, failed, NULL);
        return;
    }
    snprintf(f->session, sizeof(f->session), "%s", info->row->id);
    store_next(f);
}

void handle_files_post(struct request *r)
{
    const struct qwen *q = request_ctx(r);
    struct files_request *f = files_request_new(r);
    char name[INSTANCE_MAX + 16];
    bool found = false;

    f->upload = request_uploads(r, &f->count);
    for (size_t i = 0; i < f->count; i++)
        found |= f->upload[i].blob != NULL;
    if (!found) {
        answer_fail(r, 400, "invalid_request", "file", "the form holds no file");
        return;
    }
    if (!session_name(r, name))
        return;
    service_session_create(request_service(r), request_caller(r),
                           &(struct session_spec){.pool = str_of(q->config.pool),
                                                  .name = str_of(name),
                                                  .asleep = true},
                           on_session, f);
}

/* --- GET --- */

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct files_request *f = arg;

    if (failed)
        answer_error(f->r, failed, NULL);
    else
        answer_file(f->r, take_fd(fd), file->size, file->mime, file->path, file->hash);
}

static void on_found(void *arg, const struct session_info *info, const struct err *failed)
{
    struct files_request *f = arg;
    char path[SPACE_PATH_MAX];
    struct err e;

    if (failed)
        answer_error(f->r, failed, NULL);
    else if (space_path_clean(request_path(f->r, "path"), path, &e) < 0)
        answer_error(f->r, &e, "path");
    else
        service_space_open(request_service(f->r), request_caller(f->r), str_of(info->row->id),
                           str_of(path), on_open, f);
}

void handle_files_get(struct request *r)
{
    const struct qwen *q = request_ctx(r);
    char name[INSTANCE_MAX + 16];

    if (session_name(r, name))
        service_session_named(request_service(r), request_caller(r), str_of(q->config.pool),
                              str_of(name), on_found, files_request_new(r));
}
