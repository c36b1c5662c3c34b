/*
 * The text editor tool: view, create and str_replace on the files of a session.
 *
 * Theory of operation: an edit goes one way. The file is opened by the service, which
 * saves what the sandbox has changed before; a worker reads it, and makes of it what is
 * shown or what is to be written; another puts that into a blob, and the service puts the
 * blob into the workspace, in the store and in the sandbox at once. What goes wrong on the
 * way is a result of the tool, never an error of the request. Calls of one container come
 * one after the other, so nobody writes between the reading and the writing but code that
 * was left running.
 */
#include "doors/anthropic/anthropic_int.h"

#include "doors/values/values.h"
#include "record/record.h"

#include <stdlib.h>
#include <unistd.h>

#define EDIT_MAX (16 * MiB) /* of a file that is read */

struct edit;

struct command {
    const char *name;
    int (*check)(struct edit *d, struct err *e); /* what it was given */
};

struct edit {
    struct service *sv; /* borrowed */
    struct caller caller;
    char session[ID_MAX];
    char path[SPACE_PATH_MAX];
    const struct command *command;
    json_t *range, *text, *old, *new; /* owned, or NULL: of the input; only ever read */
    int fd;                           /* owned */
    char *bytes;                      /* owned: of the file, later of the new one */
    size_t size;
    struct blob *blob; /* owned */
    json_t *content;   /* owned: the result, once it is known */
    struct err failed;
    editor_fn *fn;
    void *arg;
};

/* --- the end --- */

static json_t *error_content(const char *code, const char *message)
{
    return json_pack("{s:s, s:s, s:o}", "type", "text_editor_code_execution_tool_result_error",
                     "error_code", code, "error_message",
                     message ? record_text(str_of(message)) : json_null());
}

static const char *code_of(enum err_kind kind)
{
    switch (kind) {
    case ERR_MISSING:
        return "file_not_found";
    case ERR_BUSY:
        return "too_many_requests";
    case ERR_NONE:
    case ERR_HOST:
        return "unavailable";
    default:
        return "invalid_tool_input";
    }
}

static void edit_free(struct edit *d)
{
    json_decref(d->range);
    json_decref(d->text);
    json_decref(d->old);
    json_decref(d->new);
    json_decref(d->content);
    fd_closep(&d->fd);
    free(d->bytes);
    blob_free(d->blob);
    free(d);
}

static void end(struct edit *d, const struct err *failed)
{
    const char *code = failed ? code_of(failed->kind) : NULL;
    bool ours = code && strcmp(code, "unavailable") == 0;

    if (ours)
        log_error("%s: text editor: %s", d->caller.request, failed->text);
    if (code) {
        json_decref(d->content);
        d->content = error_content(code, ours ? NULL : failed->text);
    }
    d->fn(d->arg, d->content);
    edit_free(d);
}

static void end_later(void *arg)
{
    struct edit *d = arg;
    const struct err failed = d->failed;

    end(d, &failed);
}

/* --- writing --- */

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    (void)files, (void)count;
    end(arg, failed);
}

static void fill_blob(void *arg)
{
    struct edit *d = arg;

    if (d->size > 0)
        (void)!blob_write(d->blob, (struct str){d->bytes, d->size}, &d->failed);
}

static void on_filled(void *arg)
{
    struct edit *d = arg;

    if (d->failed.kind)
        return end(d, &d->failed);
    service_space_put(d->sv, &d->caller, str_of(d->session), str_of(d->path), take_ptr(&d->blob),
                      on_put, d);
}

static void write_file(struct edit *d)
{
    d->blob = service_blob_new(d->sv, &d->caller, &d->failed);
    if (!d->blob)
        return end(d, &d->failed);
    service_work(d->sv, fill_blob, on_filled, d);
}

/* --- create --- */

static int check_create(struct edit *d, struct err *e)
{
    if (!json_is_string(d->text))
        return err_set(e, ERR_CALLER, "file_text is missing: the text of the file");
    return *d->path ? 0 : err_set(e, ERR_CALLER, "path names a folder");
}

static void create(struct edit *d, bool is_there)
{
    struct str text = json_view(d->text);

    d->bytes = mem_strndup(text);
    d->size = text.n;
    d->content = json_pack("{s:s, s:b}", "type", "text_editor_code_execution_create_result",
                           "is_file_update", (int)is_there);
    write_file(d);
}

/* --- str_replace --- */

static int check_replace(struct edit *d, struct err *e)
{
    if (json_string_length(d->old) == 0)
        return err_set(e, ERR_CALLER, "old_str is missing: the text to be replaced");
    if (d->new && !json_is_string(d->new) && !json_is_null(d->new))
        return err_set(e, ERR_CALLER, "new_str is no string");
    if (str_eq(json_view(d->old), json_view(d->new)))
        return err_set(e, ERR_CALLER, "old_str and new_str are the same");
    return *d->path ? 0 : err_set(e, ERR_CALLER, "path names a folder");
}

static size_t line_at(struct str text, const char *at)
{
    size_t line = 1;

    for (const char *p = text.p; p < at; p++)
        line += *p == '\n';
    return line;
}

/* The one place where it is. */
static const char *find_once(struct edit *d, struct str text, struct err *e)
{
    struct str old = json_view(d->old);
    const char *first = text.n ? memmem(text.p, text.n, old.p, old.n) : NULL, *second;

    if (!first) {
        err_set(e, ERR_CALLER, "old_str is not in %s: it has to be there exactly as it is given",
                d->path);
        return NULL;
    }
    second = memmem(first + 1, text.n - (size_t)(first + 1 - text.p), old.p, old.n);
    if (second) {
        err_set(e, ERR_CALLER,
                "old_str is in %s more than once, at lines %zu and %zu: give more of the lines "
                "around it",
                d->path, line_at(text, first), line_at(text, second));
        return NULL;
    }
    return first;
}

static void replace(struct edit *d, struct err *e)
{
    struct str text = {d->bytes, d->size}, old = json_view(d->old), new = json_view(d->new);
    const char *at;
    size_t before;
    char *result;

    if (text_is_binary(text)) {
        err_set(e, ERR_CALLER, "%s is no text; change it with a command", d->path);
        return;
    }
    at = find_once(d, text, e);
    if (!at)
        return;
    before = (size_t)(at - text.p);
    d->size = text.n - old.n + new.n;
    result = mem_zalloc(d->size + 1);
    memcpy(result, text.p, before);
    if (new.n > 0)
        memcpy(result + before, new.p, new.n);
    memcpy(result + before + new.n, at + old.n, text.n - before - old.n);
    d->content = hunk_value(text, (struct str){result, d->size});
    json_object_set_new(d->content, "type",
                        json_string("text_editor_code_execution_str_replace_result"));
    free(d->bytes);
    d->bytes = result;
}

/* --- view --- */

static int check_view(struct edit *d, struct err *e)
{
    (void)d, (void)e;
    return 0;
}

static void on_files(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct edit *d = arg;
    struct err e;

    if (failed)
        return end(d, failed);
    d->content = view_folder(d->path, files, count);
    if (d->content)
        return end(d, NULL);
    err_set(&e, ERR_MISSING, "there is no file or folder %s", d->path);
    end(d, &e);
}

static void view_names(struct edit *d)
{
    service_space_list(d->sv, &d->caller, str_of(d->session), on_files, d);
}

/* --- reading --- */

static const struct command commands[] = {
    {"view",        check_view   },
    {"create",      check_create },
    {"str_replace", check_replace},
};
enum { VIEW, CREATE };

static bool is(const struct edit *d, size_t command)
{
    return d->command == &commands[command];
}

/* On a worker. */
static void read_file(void *arg)
{
    struct edit *d = arg;
    size_t done = 0;

    d->bytes = mem_zalloc(d->size + 1);
    while (done < d->size) {
        ssize_t n = pread(d->fd, d->bytes + done, d->size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            err_set(&d->failed, ERR_HOST, "'%s' cannot be read: %s", d->path,
                    n < 0 ? strerror(errno) : "it is shorter than it was");
            return;
        }
        done += (size_t)n;
    }
    if (is(d, VIEW))
        d->content = view_bytes((struct str){d->bytes, d->size}, d->range, &d->failed);
    else
        replace(d, &d->failed);
}

static void on_read(void *arg)
{
    struct edit *d = arg;

    if (d->failed.kind)
        end(d, &d->failed);
    else if (is(d, VIEW))
        end(d, NULL);
    else
        write_file(d);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct edit *d = arg;
    bool missing = failed && failed->kind == ERR_MISSING;
    struct err e;

    if (missing && is(d, VIEW))
        return view_names(d);
    if (is(d, CREATE) && (!failed || missing))
        return create(d, !failed);
    if (failed)
        return end(d, failed);
    if (file->size > EDIT_MAX) {
        err_set(&e, ERR_CALLER, "%s has %llu bytes, and the editor reads %zu: use a command",
                d->path, (unsigned long long)file->size, EDIT_MAX);
        return end(d, &e);
    }
    d->fd = take_fd(fd);
    d->size = (size_t)file->size;
    service_work(d->sv, read_file, on_read, d);
}

/* --- the beginning --- */

static const struct command *command_of(struct str name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (str_is(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static json_t *member(const json_t *input, const char *name)
{
    return json_incref(json_object_get(input, name));
}

static int take_input(struct edit *d, const json_t *input, const struct editor_dirs *dirs,
                      struct err *e)
{
    d->command = command_of(json_view(json_object_get(input, "command")));
    if (!d->command)
        return err_set(e, ERR_CALLER, "command is one of view, create and str_replace");
    d->range = member(input, "view_range");
    d->text = member(input, "file_text");
    d->old = member(input, "old_str");
    d->new = member(input, "new_str");
    if (editor_path(json_view(json_object_get(input, "path")), dirs, d->path, e) < 0)
        return -1;
    return d->command->check(d, e);
}

void editor_run(struct loop *l, struct service *sv, const struct caller *c, struct str session,
                const struct editor_dirs *dirs, const json_t *input, editor_fn *fn, void *arg)
{
    struct edit *d = mem_zalloc(sizeof(*d));

    *d = (struct edit){.sv = sv, .caller = *c, .fd = -1, .fn = fn, .arg = arg};
    if (!str_to_cstr(session, d->session, sizeof(d->session)))
        d->session[0] = '\0'; /* which is nobody's */
    if (take_input(d, input, dirs, &d->failed) < 0)
        return loop_later(l, end_later, d);
    if (!*d->path)
        return view_names(d);
    service_space_open(sv, &d->caller, session, str_of(d->path), on_open, d);
}
