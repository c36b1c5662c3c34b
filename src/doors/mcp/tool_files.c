/* list_files, write_file: what a session has in its workspace. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_BYTES 9000        /* of the list */
#define LARGE      (256 * KiB) /* of what is written: more is a worker's */

static struct str arg_text(const struct call *c, const char *name)
{
    return json_view(json_object_get(json_object_get(c->params, "arguments"), name));
}

/* A call about a file, and where. */
struct file_call {
    struct call *c;     /* borrowed: held by us until it is answered */
    struct service *sv; /* borrowed */
    char session[ID_MAX];
    enum run_session how;
    struct blob *blob; /* owned: of write_file, on its way */
    struct err failed;
};

static void file_call_free(struct file_call *f)
{
    blob_free(f->blob);
    free(f);
}

static void refuse(struct file_call *f, const struct err *failed)
{
    place_refuse(f->c, f->session, failed);
    file_call_free(f);
}

/* --- list_files --- */

/* path is one of the files, or below that folder. */
static bool is_wanted(struct str path, const char *below)
{
    size_t n = strlen(below);

    return n == 0 ||
           (path.n >= n && memcmp(path.p, below, n) == 0 && (path.n == n || path.p[n] == '/'));
}

static void put_file(struct buf *b, const struct space_file *file)
{
    char name[NAME_SHOWN], size[SIZE_SHOWN], when[TIME_TEXT];
    struct err e;

    time_print(file->mtime_ms, when);
    when[19] = '\0'; /* no fractions of a second */
    (void)!buf_printf(b, &e, "%s | %s | %s | %sZ\n", name_show(name, file->path),
                      size_show(size, file->size), file->mime, when);
}

static void put_files(struct buf *b, const struct space_file *files, size_t count,
                      const char *below, size_t from)
{
    size_t at = 0, told = 0;
    struct err e;

    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(files[i].path, below) || at++ < from || b->n > LIST_BYTES)
            continue;
        put_file(b, &files[i]);
        told++;
    }
    if (at == 0)
        (void)!buf_printf(b, &e, "%s is empty.\n", *below ? "This folder" : "/workspace");
    else if (from + told < at)
        (void)!buf_printf(b, &e, "%zu of %zu files shown: list_files with offset=%zu shows more\n",
                          told, at, from + told);
}

static void on_listed(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct file_call *f = arg;
    const json_t *args = json_object_get(f->c->params, "arguments");
    struct str path = arg_text(f->c, "path");
    char below[SPACE_PATH_MAX] = "";
    struct content t;
    struct buf b;
    struct err e = {0};

    if (failed) {
        refuse(f, failed);
        return;
    }
    if (path.n > 0 && !str_is(path, "/workspace") && !str_is(path, ".") &&
        space_path_clean(path, below, &e) < 0) {
        refuse(f, &e);
        return;
    }
    buf_init(&b, 1 * MiB);
    (void)!buf_printf(&b, &e, "[session %s | /workspace%s%s]\n", f->session, *below ? "/" : "",
                      below);
    put_files(&b, files, count, below, (size_t)json_integer_value(json_object_get(args, "offset")));
    content_init(&t);
    content_text(&t, buf_str(&b));
    buf_done(&b);
    content_answer(&t, f->c, false);
    file_call_free(f);
}

static void list_files(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    struct file_call *f;

    (void)args;
    if (!sv)
        return;
    f = mem_zalloc(sizeof(*f));
    *f = (struct file_call){.c = c, .sv = sv};
    if (place_there(c, arg_text(c, "session_id"), f->session))
        service_space_list(sv, &c->caller, str_of(f->session), on_listed, f);
    else
        file_call_free(f);
}

/* --- write_file --- */

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct file_call *f = arg;
    char name[NAME_SHOWN], uri[URI_MAX];
    struct content t;

    if (failed) {
        refuse(f, failed);
        return;
    }
    assert(count == 1);
    content_init(&t);
    content_printf(&t, "[session %s%s]\nWritten: /workspace/%s (%llu bytes).", f->session,
                   run_session_word(f->how), name_show(name, files->path),
                   (unsigned long long)files->size);
    if (uri_of_file(uri, str_of(f->session), files->path))
        content_link(&t, f->c, uri, files->path, files->mime, files->size);
    content_answer(&t, f->c, false);
    file_call_free(f);
}

/* A worker's, where it is long. */
static void fill(void *arg)
{
    struct file_call *f = arg;
    struct str text = arg_text(f->c, "text"), base64 = arg_text(f->c, "base64");
    AUTO_FREE char *bytes = NULL;
    size_t n;

    if (base64.p) {
        bytes = mem_zalloc(base64.n / 4 * 3 + 1);
        if (!base64_decode(base64, bytes, &n)) {
            err_set(&f->failed, ERR_CALLER,
                    "base64 is not base64: A-Z a-z 0-9 + / in groups of four, padded with =");
            return;
        }
        text = (struct str){bytes, n};
    }
    (void)!blob_write(f->blob, text, &f->failed);
}

static void on_filled(void *arg)
{
    struct file_call *f = arg;

    if (f->failed.kind)
        refuse(f, &f->failed);
    else
        service_space_put(f->sv, &f->c->caller, str_of(f->session), arg_text(f->c, "path"),
                          take_ptr(&f->blob), on_put, f);
}

static void write_bytes(struct file_call *f)
{
    f->blob = service_blob_new(f->sv, &f->c->caller, &f->failed);
    if (!f->blob) {
        refuse(f, &f->failed);
    } else if (arg_text(f->c, "text").n + arg_text(f->c, "base64").n > LARGE) {
        service_work(f->sv, fill, on_filled, f);
    } else {
        fill(f);
        on_filled(f);
    }
}

static void on_place(void *arg, const char *session, enum run_session how, const struct err *failed)
{
    struct file_call *f = arg;
    struct str url = arg_text(f->c, "url");

    snprintf(f->session, sizeof(f->session), "%s", session);
    f->how = how;
    if (failed)
        refuse(f, failed);
    else if (url.p)
        service_space_fetch(f->sv, &f->c->caller, str_of(f->session), arg_text(f->c, "path"), url,
                            on_put, f);
    else
        write_bytes(f);
}

/* Before a session is made for it. */
static const char *what_is_wrong(struct call *c, struct err *e)
{
    struct str path = arg_text(c, "path");
    char clean[SPACE_PATH_MAX];
    size_t sources = 0;

    sources += arg_text(c, "text").p != NULL;
    sources += arg_text(c, "base64").p != NULL;
    sources += arg_text(c, "url").p != NULL;
    if (sources != 1)
        return "Give exactly one of text, base64 and url.";
    if (path.n == 0)
        return arg_text(c, "url").p ? NULL : "path is needed: where the file goes in /workspace.";
    return space_path_clean(path, clean, e) < 0 ? e->text : NULL;
}

static void write_file(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    struct file_call *f;
    const char *wrong;
    struct err e;

    (void)args;
    if (!sv)
        return;
    wrong = what_is_wrong(c, &e);
    if (wrong) {
        tool_fail(c, "%s", wrong);
        return;
    }
    f = mem_zalloc(sizeof(*f));
    *f = (struct file_call){.c = c, .sv = sv};
    place_find(c, sv, arg_text(c, "session_id"), on_place, f);
}

/* --- rows --- */

static const struct field list_params[] = {
    {"session_id",                                           FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "The session. Left out: the one of this conversation.", NULL},
    {"path",                                              FIELD_TEXT, OPTIONAL, 0, SPACE_PATH_MAX, NULL,
     "Only what is in this folder of /workspace.", "\"data\""},
    {"offset",                                                    FIELD_INT, OPTIONAL, 0, 1e9, NULL, "Leave out so many files at the beginning.",
     NULL},
    {0},
};

static const struct field write_params[] = {
    {"path",                     FIELD_TEXT, OPTIONAL, 1, SPACE_PATH_MAX, NULL,
     "Where it goes, relative to /workspace; folders are made. With url it may be left out, and "
     "the file keeps its name.", "\"data/sales.csv\""},
    {"text",                  FIELD_TEXT, OPTIONAL, 0, 0, NULL, "What it is to hold, as text.", NULL},
    {"base64",            FIELD_TEXT, OPTIONAL, 0, 0, NULL, "The same for bytes that are no text.", NULL},
    {"url", FIELD_TEXT, OPTIONAL, 1, URL_MAX, NULL,
     "An http(s) address that the server fetches it from. The best way for anything large.", "\"https://example.com/sales.csv\""},
    {"session_id",                          FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "The session. Left out: the one of this conversation, or a new one; the answer names it.", NULL},
    {0},
};

const struct tool tool_list_files = {
    .name = "list_files",
    .title = "List files",
    .text = "List the files in a session's /workspace, with size, type and time of change (UTC). "
            "Works also while the session is asleep. read_file reads one.\n"
            "Example: {\"session_id\": \"sess_...\", \"path\": \"data\"}",
    .params = list_params,
    .hints = TOOL_READS | TOOL_REPEATABLE,
    .run = list_files,
};

const struct tool tool_write_file = {
    .name = "write_file",
    .title = "Write a file",
    .text = "Put a file into a session's /workspace, where code finds it: from text, from base64, "
            "or from a URL that the server fetches (so large data never passes through you). A "
            "file of that path is replaced, and folders are made. Without session_id a session is "
            "made; the answer names it, with the path and the size.\n"
            "Example: {\"url\": \"https://example.com/sales.csv\", \"path\": \"sales.csv\"}",
    .params = write_params,
    .hints = TOOL_DESTROYS | TOOL_REPEATABLE | TOOL_OUTSIDE,
    .run = write_file,
};
