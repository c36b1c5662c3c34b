/*
 * The text editor tool: view, create and str_replace on the files of a session.
 *
 * Theory of operation: the service reads the file; a worker computes what to show or to write; the
 * service writes the file, in the store and in the sandbox at once. Errors are results of the tool,
 * never of the request. What another request, or code that still runs, writes to the file in
 * between is lost.
 */
#include "doors/anthropic/anthropic_int.h"

#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>

#define EDIT_MAX (16 * MiB) /* of a file that is read */

enum edit_command { EDIT_VIEW, EDIT_CREATE, EDIT_REPLACE, EDIT__COUNT };
static const char *const command_names[EDIT__COUNT] = {"view", "create", "str_replace"};

struct edit {
    struct service *sv; /* borrowed */
    struct caller caller;
    char session[ID_MAX];
    char path[SPACE_PATH_MAX];
    enum edit_command command;
    json_t *input; /* owned; only ever read */
    char *bytes;   /* owned: of the file, then of the new file */
    size_t size;
    json_t *content; /* owned: the result, once it is known */
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
    json_decref(d->input);
    json_decref(d->content);
    free(d->bytes);
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

static void write_file(struct edit *d)
{
    service_space_write(d->sv, &d->caller, str_of(d->session), str_of(d->path), take_ptr(&d->bytes),
                        d->size, on_put, d);
}

/* --- create --- */

static int check_create(struct edit *d, struct err *e)
{
    if (!text_of(d->input, "file_text"))
        return err_set(e, ERR_CALLER, "file_text is missing: the text of the file");
    return *d->path ? 0 : err_set(e, ERR_CALLER, "path names a folder");
}

static void create(struct edit *d, bool is_there)
{
    struct str text = view_of(d->input, "file_text");

    d->bytes = mem_strndup(text);
    d->size = text.n;
    d->content = json_pack("{s:s, s:b}", "type", "text_editor_code_execution_create_result",
                           "is_file_update", (int)is_there);
    write_file(d);
}

/* --- str_replace --- */

static int check_replace(struct edit *d, struct err *e)
{
    const json_t *new = json_object_get(d->input, "new_str");

    if (view_of(d->input, "old_str").n == 0)
        return err_set(e, ERR_CALLER, "old_str is missing: the text to be replaced");
    if (new && !json_is_string(new) && !json_is_null(new))
        return err_set(e, ERR_CALLER, "new_str is no string");
    if (str_eq(view_of(d->input, "old_str"), json_view(new)))
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

/* Where old_str is, when it is there exactly once; else NULL and *e. */
static const char *find_once(struct edit *d, struct str text, struct err *e)
{
    struct str old = view_of(d->input, "old_str");
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
    struct str text = {d->bytes, d->size}, old = view_of(d->input, "old_str");
    struct str new = view_of(d->input, "new_str");
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

/* On a worker. */
static void compute(void *arg)
{
    struct edit *d = arg;

    if (d->command == EDIT_VIEW)
        d->content = view_bytes((struct str){d->bytes, d->size},
                                json_object_get(d->input, "view_range"), &d->failed);
    else
        replace(d, &d->failed);
}

static void on_computed(void *arg)
{
    struct edit *d = arg;

    if (d->failed.kind)
        end(d, &d->failed);
    else if (d->command == EDIT_VIEW)
        end(d, NULL);
    else
        write_file(d);
}

static void on_read(void *arg, char **bytes, size_t n, const struct space_file *file,
                    const struct err *failed)
{
    struct edit *d = arg;
    bool missing = failed && failed->kind == ERR_MISSING;
    struct err e;

    if (missing && d->command == EDIT_VIEW)
        return view_names(d);
    if (d->command == EDIT_CREATE && (!failed || missing))
        return create(d, !failed);
    if (failed)
        return end(d, failed);
    if (file->size > EDIT_MAX) {
        err_set(&e, ERR_CALLER, "%s has %llu bytes, and the editor reads %zu: use a command",
                d->path, (unsigned long long)file->size, EDIT_MAX);
        return end(d, &e);
    }
    d->bytes = take_ptr(bytes);
    d->size = n;
    service_work(d->sv, compute, on_computed, d);
}

/* --- the beginning --- */

static int check(struct edit *d, const struct editor_dirs *dirs, struct err *e)
{
    struct str name = view_of(d->input, "command");

    while (d->command < EDIT__COUNT && !str_is(name, command_names[d->command]))
        d->command++;
    if (d->command == EDIT__COUNT)
        return err_set(e, ERR_CALLER, "command is one of view, create and str_replace");
    if (editor_path(view_of(d->input, "path"), dirs, d->path, e) < 0)
        return -1;
    if (d->command == EDIT_CREATE)
        return check_create(d, e);
    return d->command == EDIT_REPLACE ? check_replace(d, e) : 0;
}

void editor_run(struct loop *l, struct service *sv, const struct caller *c, const char *session,
                const struct editor_dirs *dirs, json_t *input, editor_fn *fn, void *arg)
{
    struct edit *d = mem_zalloc(sizeof(*d));

    *d = (struct edit){.sv = sv, .caller = *c, .input = json_incref(input), .fn = fn, .arg = arg};
    snprintf(d->session, sizeof(d->session), "%s", session);
    if (check(d, dirs, &d->failed) < 0)
        return loop_later(l, end_later, d);
    if (!*d->path)
        return view_names(d);
    service_space_read(sv, &d->caller, str_of(session), str_of(d->path), 0,
                       d->command == EDIT_CREATE ? 1 : EDIT_MAX, on_read, d);
}
