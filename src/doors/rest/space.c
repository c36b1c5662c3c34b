/* Files of a session's workspace, one at a time. */
#include "doors/rest/rest_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- list --- */

#define LIST_SMALL 500 /* more are made into an answer by a worker */

static json_t *render_files(struct str session, const struct space_file *files, size_t count)
{
    json_t *data = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(data, render_space_file(session, &files[i]));
    return render_list(data, false, NULL);
}

struct space_listing {
    struct request *r;       /* borrowed: until it is answered */
    struct space_file *file; /* owned, each with its path and hash */
    size_t count;
    char *text; /* owned: the answer */
    size_t n;
};

static void space_listing_free(void *p)
{
    struct space_listing *g = p;

    for (size_t i = 0; i < g->count; i++) {
        free((char *)g->file[i].path.p);
        free((char *)g->file[i].hash);
    }
    free(g->file);
    free(g->text);
    free(g);
}

static void write_list(void *arg) /* on a worker */
{
    struct space_listing *g = arg;
    json_t *v = render_files(request_path(g->r, "session"), g->file, g->count);

    g->text = record_dump(v, false, &g->n);
    json_decref(v);
}

static void on_written(void *arg)
{
    struct space_listing *g = arg;

    answer_text(g->r, 200, "application/json", (struct str){g->text, g->n});
}

static void list_later(struct request *r, const struct space_file *files, size_t count)
{
    struct space_listing *g = mem_zalloc(sizeof(*g));

    *g = (struct space_listing){
        .r = r, .file = mem_zalloc(count * sizeof(*g->file)), .count = count};
    for (size_t i = 0; i < count; i++) {
        g->file[i] = files[i];
        g->file[i].path.p = mem_strndup(files[i].path);
        g->file[i].hash = mem_strdup(files[i].hash);
    }
    request_keep(r, space_listing_free, g);
    service_work(request_service(r), write_list, on_written, g);
}

static void on_list(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else if (count > LIST_SMALL)
        list_later(r, files, count);
    else
        answer_json(r, 200, render_files(request_path(r, "session"), files, count));
}

HANDLE_ID(handle_list_workspace, service_space_list, "session", on_list)

/* --- one file --- */

/* The path of the route as it is kept; false when it is none and that has been answered. */
static bool take_path(struct request *r, char ret[SPACE_PATH_MAX])
{
    struct err e;

    if (space_path_clean(request_path(r, "path"), ret, &e) == 0)
        return true;
    answer_error(r, &e, "path");
    return false;
}

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    assert(failed || count == 1);
    answer_value(arg, 201,
                 failed ? NULL : render_space_file(request_path(arg, "session"), &files[0]),
                 failed);
}

void handle_put_workspace_file(struct request *r)
{
    char path[SPACE_PATH_MAX];
    size_t count;
    struct upload *u = request_uploads(r, &count);

    if (!take_path(r, path))
        return;
    assert(count == 1 && u->blob);
    service_space_put(request_service(r), request_caller(r), request_path(r, "session"),
                      str_of(path), take_ptr(&u->blob), on_put, r);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_file(r, take_fd(fd), file->size, file->mime, file->path, file->hash);
}

void handle_get_workspace_file(struct request *r)
{
    char path[SPACE_PATH_MAX];

    if (take_path(r, path))
        service_space_open(request_service(r), request_caller(r), request_path(r, "session"),
                           str_of(path), on_open, r);
}

static void on_moved(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct request *r = arg;

    (void)count;
    answer_value(r, 200, failed ? NULL : render_space_file(request_path(r, "session"), files),
                 failed);
}

void handle_move_workspace_file(struct request *r)
{
    struct str to = json_view(json_object_get(request_json(r), "path"));
    char path[SPACE_PATH_MAX], clean[SPACE_PATH_MAX];
    struct err e;

    if (!take_path(r, path))
        return;
    if (space_path_clean(to, clean, &e) < 0)
        answer_error(r, &e, "path");
    else
        service_space_move(request_service(r), request_caller(r), request_path(r, "session"),
                           str_of(path), str_of(clean), on_moved, r);
}

void handle_delete_workspace_file(struct request *r)
{
    char path[SPACE_PATH_MAX];

    if (take_path(r, path))
        service_space_delete(request_service(r), request_caller(r), request_path(r, "session"),
                             str_of(path), on_deleted, r);
}

/* --- several files by form --- */

/* Every path is checked before the first file is stored; then one after the other. */
struct form_upload {
    struct request *r;
    struct upload *upload; /* borrowed from the request */
    size_t count, at;
    struct str folder;         /* borrowed: the field `path`, or empty */
    char path[SPACE_PATH_MAX]; /* of upload[at] */
    json_t *stored;            /* owned: array */
};

static void form_upload_free(void *p)
{
    struct form_upload *f = p;

    json_decref(f->stored);
    free(f);
}

/* The error names the file, which need not be UTF-8. */
static void fail(struct form_upload *f, const struct err *failed)
{
    char shown[NAME_SHOWN];
    struct err e = *failed;

    name_show(shown, f->upload[f->at].name);
    err_wrap(&e, "'%s' was not stored", shown);
    answer_error(f->r, &e, shown);
}

static int take_name(struct form_upload *f, struct err *e)
{
    struct str name = f->upload[f->at].name;
    char joined[2 * SPACE_PATH_MAX];
    int n;

    if (name.n == 0)
        return err_set(e, ERR_CALLER, "a file needs a name, which is its path in the workspace");
    if (f->folder.n + name.n >= sizeof(joined) - 1)
        return err_set(e, ERR_LIMIT, "a path has less than %d bytes", SPACE_PATH_MAX);
    n = snprintf(joined, sizeof(joined), "%.*s%s%.*s", (int)f->folder.n,
                 f->folder.n ? f->folder.p : "", f->folder.n ? "/" : "", (int)name.n, name.p);
    return space_path_clean((struct str){joined, (size_t)n}, f->path, e);
}

static void next(struct form_upload *f);

static void on_stored(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct form_upload *f = arg;

    if (failed) {
        fail(f, failed);
        return;
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(f->stored,
                              render_space_file(request_path(f->r, "session"), &files[i]));
    f->at++;
    next(f);
}

static void next(struct form_upload *f)
{
    struct err e;

    while (f->at < f->count && !f->upload[f->at].blob)
        f->at++;
    if (f->at == f->count)
        answer_json(f->r, 201, render_list(json_incref(f->stored), false, NULL));
    else if (take_name(f, &e) < 0)
        fail(f, &e);
    else
        service_space_put(request_service(f->r), request_caller(f->r),
                          request_path(f->r, "session"), str_of(f->path),
                          take_ptr(&f->upload[f->at].blob), on_stored, f);
}

/* Finds the folder; refuses fields we do not know and a form without files. */
static bool take_fields(struct form_upload *f)
{
    size_t files = 0;

    for (size_t i = 0; i < f->count; i++) {
        const struct upload *u = &f->upload[i];
        char shown[NAME_SHOWN];
        files += u->blob != NULL;
        if (!u->blob && !str_is(u->field, "path")) {
            answer_fail(f->r, 400, "invalid_request", name_show(shown, u->field),
                        "the form has files and one text field, \"path\"");
            return false;
        }
        if (!u->blob)
            f->folder = u->text;
    }
    if (files == 0)
        answer_fail(f->r, 400, "invalid_request", "file", "the form holds no file");
    return files > 0;
}

static bool check_names(struct form_upload *f)
{
    struct err e;

    for (f->at = 0; f->at < f->count; f->at++)
        if (f->upload[f->at].blob && take_name(f, &e) < 0) {
            fail(f, &e);
            return false;
        }
    f->at = 0;
    return true;
}

void handle_upload_workspace_files(struct request *r)
{
    struct form_upload *f = mem_zalloc(sizeof(*f));

    f->r = r;
    f->stored = json_array();
    f->upload = request_uploads(r, &f->count);
    request_keep(r, form_upload_free, f);
    if (take_fields(f) && check_names(f))
        next(f);
}
