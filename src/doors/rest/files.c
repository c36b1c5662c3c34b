/* Files: uploaded once, used in many sessions. */
#include "doors/rest/rest_int.h"

/* --- create --- */

static void on_created(void *arg, const struct file_row *file, const struct err *failed)
{
    answer_value(arg, 201, failed ? NULL : render_file(file), failed);
}

/* One part `file`, and a text `name` if its own will not do. */
static bool take_form(struct request *r, struct upload *u, size_t count, struct upload **ret_file,
                      struct str *ret_name)
{
    struct str name = {0};

    *ret_file = NULL;
    for (size_t i = 0; i < count; i++) {
        char shown[NAME_SHOWN];
        if (u[i].blob && str_is(u[i].field, "file") && !*ret_file) {
            *ret_file = &u[i];
        } else if (!u[i].blob && str_is(u[i].field, "name") && !name.p) {
            name = u[i].text;
        } else {
            answer_fail(r, 400, "invalid_request", name_show(shown, u[i].field),
                        "the form has one file, \"file\", and may have one text, \"name\"");
            return false;
        }
    }
    if (!*ret_file) {
        answer_fail(r, 400, "invalid_request", "file", "the form holds no file \"file\"");
        return false;
    }
    *ret_name = name.n ? name : str_base((*ret_file)->name, "/\\"); /* browsers may send a path */
    return true;
}

static void upload(struct request *r, struct upload *u, size_t count)
{
    struct upload *file;
    struct str name, mime;

    if (!take_form(r, u, count, &file, &name))
        return;
    mime = file->mime;
    if (str_is(mime, "application/octet-stream")) /* what clients say of what they do not know */
        mime = (struct str){0};
    if (name.n == 0 || name.n > NAME_MAX_BYTES)
        answer_fail(r, 400, "invalid_request", "name", "a file's name has 1 to %d bytes",
                    NAME_MAX_BYTES);
    else
        service_file_create(request_service(r), request_caller(r),
                            &(struct file_spec){.name = name, .mime = mime}, take_ptr(&file->blob),
                            on_created, r);
}

void handle_create_file(struct request *r)
{
    size_t count;
    struct upload *u = request_uploads(r, &count);
    struct str url;

    if (count > 0) {
        upload(r, u, count);
        return;
    }
    url = json_view(json_object_get(request_json(r), "url"));
    if (url.n == 0)
        answer_fail(r, 400, "invalid_request", "url",
                    "send a form with a \"file\", or JSON with a \"url\"");
    else
        service_file_fetch(request_service(r), request_caller(r), url,
                           json_view(json_object_get(request_json(r), "name")), on_created, r);
}

/* --- look --- */

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    answer_value(arg, 200, failed ? NULL : render_file(file), failed);
}

HANDLE_ID(handle_get_file, service_file_get, "file", on_file)

ON_LIST(on_files, file_row, render_file)

void handle_list_files(struct request *r)
{
    service_file_list(request_service(r), request_caller(r), request_page(r), on_files, r);
}

static void on_open(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_file(r, take_fd(fd), file->size, file->mime, str_of(file->name), file->hash);
}

HANDLE_ID(handle_get_file_content, service_file_open, "file", on_open)
HANDLE_ID(handle_delete_file, service_file_delete, "file", on_deleted)
