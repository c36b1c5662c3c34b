/*
 * Files of a session, in both dialects. To clients they are in /mnt/data, which is the
 * workspace; the older dialect has files alone, by their whole path, the newer one
 * folders, too.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- paths --- */

static bool cut(struct str *s, struct str front)
{
    if (s->n < front.n || memcmp(s->p, front.p, front.n) != 0)
        return false;
    *s = str_from(*s, front.n);
    return true;
}

/* Relative to the root, without slashes at its ends. */
static struct str below_root(struct str s)
{
    if (str_is(s, "/mnt/data") || str_is(s, "mnt/data"))
        return STR("");
    if (!cut(&s, STR("/mnt/data/")))
        cut(&s, STR("mnt/data/"));
    while (s.n && s.p[0] == '/')
        s.p++, s.n--;
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    return str_is(s, ".") ? STR("") : s;
}

static struct str folder_of(struct azure_request *v)
{
    struct str path = request_query(v->r, "path");

    return path.n ? below_root(path) : STR("");
}

/* folder and name as the service keeps them; false: answered. */
static bool join(struct azure_request *v, struct str folder, struct str name,
                 char ret[SPACE_PATH_MAX])
{
    char joined[2 * SPACE_PATH_MAX];
    struct err e;
    int n;

    name = below_root(name);
    if (folder.n + name.n + 2 > sizeof(joined)) {
        azure_fail(v, 400, "FilePathInvalid", "a path has less than %d bytes", SPACE_PATH_MAX);
        return false;
    }
    n = snprintf(joined, sizeof(joined), "%.*s%s%.*s", (int)folder.n, folder.n ? folder.p : "",
                 folder.n ? "/" : "", (int)name.n, name.n ? name.p : "");
    if (space_path_clean((struct str){joined, (size_t)n}, ret, &e) == 0)
        return true;
    azure_fail(v, 400, "FilePathInvalid", "%s", e.text);
    return false;
}

/* --- as they are shown --- */

static json_t *show_old(const struct space_file *f)
{
    return json_pack("{s:{s:o, s:I, s:o}}", "properties", "filename", record_text(f->path), "size",
                     (json_int_t)f->size, "lastModifiedTime", time_json(f->mtime_ms));
}

/* By itself, as the recorded service has it. */
static json_t *show_old_one(const struct space_file *f)
{
    json_t *v = show_old(f);

    json_object_set_new(v, "$id", json_string("1"));
    return v;
}

static json_t *show(const struct space_file *f)
{
    struct str base = str_base(f->path, "/");
    size_t folder = f->path.n - base.n;

    return json_pack("{s:o, s:s, s:s, s:I, s:o, s:o}", "name", record_text(base), "type", "file",
                     "contentType", f->mime, "sizeInBytes", (json_int_t)f->size, "lastModifiedAt",
                     time_json(f->mtime_ms), "directory",
                     record_text((struct str){f->path.p, folder ? folder - 1 : 0}));
}

static json_t *show_folder(struct str name, struct str in, int64_t mtime_ms)
{
    return json_pack("{s:o, s:s, s:n, s:i, s:o, s:o}", "name", record_text(name), "type",
                     "directory", "contentType", "sizeInBytes", 0, "lastModifiedAt",
                     time_json(mtime_ms), "directory", record_text(in));
}

/* --- list --- */

static void on_list_old(void *arg, const struct space_file *files, size_t count,
                        const struct err *failed)
{
    struct azure_request *v = arg;
    json_t *value;

    if (failed) {
        azure_fail_err(v, failed, "NoSessionFoundError");
        return;
    }
    value = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(value, show_old(&files[i]));
    azure_answer(v, 200, json_pack("{s:s, s:o}", "$id", "1", "value", value));
}

void op_files_list_old(struct azure_request *v)
{
    if (!*v->session)
        return on_list_old(v, NULL, 0, NULL);
    service_space_list(azure_service(v), azure_caller(v), str_of(v->session), on_list_old, v);
}

/* The service has files by their paths, in order, so those of one folder are side by side. */
static json_t *list_folder(struct str folder, bool deep, const struct space_file *files,
                           size_t count)
{
    json_t *value = json_array();
    struct str last = {0};

    for (size_t i = 0; i < count; i++) {
        struct str path = files[i].path, left = path;
        const char *slash;
        if (folder.n && (!cut(&left, folder) || !cut(&left, STR("/"))))
            continue;
        slash = deep ? NULL : memchr(left.p, '/', left.n);
        if (!slash) {
            json_array_append_new(value, show(&files[i]));
            continue;
        }
        struct str name = {left.p, (size_t)(slash - left.p)};
        if (!last.p || !str_eq(last, name))
            json_array_append_new(value, show_folder(name, folder, files[i].mtime_ms));
        last = name;
    }
    return value;
}

static void on_list(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed)
{
    struct azure_request *v = arg;
    struct str deep = request_query(v->r, "recursive");

    if (failed)
        azure_fail_err(v, failed, "NoSessionFoundError");
    else
        azure_answer(
            v, 200,
            json_pack("{s:o, s:n}", "value",
                      list_folder(folder_of(v), str_nocase(deep, STR("true")), files, count),
                      "nextLink"));
}

void op_files_list(struct azure_request *v)
{
    space_fn *shown = azure_is_old(v) ? on_list_old : on_list;

    if (!*v->session)
        return shown(v, NULL, 0, NULL);
    service_space_list(azure_service(v), azure_caller(v), str_of(v->session), shown, v);
}

bool op_is_list(void (*run)(struct azure_request *v))
{
    return run == op_files_list || run == op_files_list_old;
}

/* --- upload --- */

/* One file after the other; every name is checked before the first is stored. */
struct azure_upload {
    struct azure_request *v;
    struct upload *upload; /* borrowed from the request */
    size_t count, at;
    bool old;
    char path[SPACE_PATH_MAX]; /* of upload[at] */
    json_t *stored;            /* owned: array */
};

static void azure_upload_free(void *p)
{
    struct azure_upload *f = p;

    json_decref(f->stored);
    free(f);
}

static void answer_stored(struct azure_upload *f)
{
    if (f->old)
        azure_answer(f->v, 200, json_pack("{s:s, s:O}", "$id", "1", "value", f->stored));
    else if (json_array_size(f->stored) == 1)
        azure_answer(f->v, 200, json_incref(json_array_get(f->stored, 0)));
    else
        azure_answer(f->v, 200, json_pack("{s:O}", "value", f->stored));
}

static void store_next(struct azure_upload *f);

static void on_stored(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct azure_upload *f = arg;

    if (failed) {
        azure_fail_err(f->v, failed, "NoSessionFoundError");
        return;
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(f->stored, f->old ? show_old(&files[i]) : show(&files[i]));
    f->at++;
    store_next(f);
}

static bool name_next(struct azure_upload *f)
{
    while (f->at < f->count && !f->upload[f->at].blob)
        f->at++;
    return f->at < f->count;
}

static void store_next(struct azure_upload *f)
{
    struct azure_request *v = f->v;

    if (!name_next(f))
        answer_stored(f);
    else if (join(v, folder_of(v), f->upload[f->at].name, f->path))
        service_space_put(azure_service(v), azure_caller(v), str_of(v->session), str_of(f->path),
                          take_ptr(&f->upload[f->at].blob), on_stored, f);
}

static void upload(struct azure_request *v, bool old)
{
    struct azure_upload *f = mem_zalloc(sizeof(*f));

    *f = (struct azure_upload){.v = v, .old = old, .stored = json_array()};
    f->upload = request_uploads(v->r, &f->count);
    request_keep(v->r, azure_upload_free, f);
    if (!name_next(f)) {
        azure_invalid(v, "file", "the form holds no file");
        return;
    }
    for (; name_next(f); f->at++)
        if (!join(v, folder_of(v), f->upload[f->at].name, f->path))
            return;
    f->at = 0;
    store_next(f);
}

void op_files_upload(struct azure_request *v)
{
    upload(v, false);
}

void op_files_upload_old(struct azure_request *v)
{
    upload(v, true);
}

/* --- one file --- */

static bool take_path(struct azure_request *v, char ret[SPACE_PATH_MAX])
{
    struct str name = v->name.n ? v->name : request_query(v->r, "filename");

    if (name.n)
        return join(v, folder_of(v), name, ret);
    azure_invalid(v, "filename", "the name of a file is needed");
    return false;
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed)
        azure_fail_err(v, failed, "FileNotFound");
    else
        answer_file(v->r, take_fd(fd), file->size, file->mime, file->path, file->hash);
}

void op_file_download(struct azure_request *v)
{
    char path[SPACE_PATH_MAX];

    if (take_path(v, path))
        service_space_open(azure_service(v), azure_caller(v), str_of(v->session), str_of(path),
                           on_open, v);
}

static void on_stat(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct azure_request *v = arg;

    (void)fd;
    if (failed)
        azure_fail_err(v, failed, "FileNotFound");
    else if (azure_is_old(v))
        azure_answer(v, 200, show_old_one(file));
    else
        azure_answer(v, 200, show(file));
}

void op_file_stat(struct azure_request *v)
{
    char path[SPACE_PATH_MAX];

    if (take_path(v, path))
        service_space_open(azure_service(v), azure_caller(v), str_of(v->session), str_of(path),
                           on_stat, v);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed)
        azure_fail_err(v, failed, "FileNotFound");
    else
        answer_empty(v->r, 204);
}

void op_file_delete(struct azure_request *v)
{
    char path[SPACE_PATH_MAX];

    if (take_path(v, path))
        service_space_delete(azure_service(v), azure_caller(v), str_of(v->session), str_of(path),
                             on_deleted, v);
}
