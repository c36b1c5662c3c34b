/* list_files, write_file: the files of a session's workspace. */
#include "doors/mcp/execution.h"

#include <stdlib.h>

#define LIST_BYTES 9000        /* of the list */
#define LARGE      (256 * KiB) /* of base64: more is decoded by a worker */

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

    time_print(file->mtime_ms, when);
    when[19] = '\0'; /* no fractions of a second */
    buf_printf(b, "%s | %s | %s | %sZ\n", name_show(name, file->path), size_show(size, file->size),
               file->mime, when);
}

static void put_files(struct buf *b, const struct space_file *files, size_t count,
                      const char *below, size_t from)
{
    size_t at = 0, told = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(files[i].path, below) || at++ < from || b->n > LIST_BYTES)
            continue;
        put_file(b, &files[i]);
        told++;
    }
    if (at == 0)
        buf_printf(b, "%s is empty.\n", *below ? "This folder" : "/workspace");
    else if (from + told < at)
        buf_printf(b, "%zu of %zu files shown: list_files with offset=%zu shows more\n", told, at,
                   from + told);
}

static void on_listed(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct call *c = arg;
    const json_t *args = json_object_get(c->params, "arguments");
    struct str path = call_arg(c, "path");
    char below[SPACE_PATH_MAX] = "";
    AUTO(buf_done) struct buf b = BUF(1 * MiB);
    struct err e = {0};

    if (!failed && path.n > 0 && !str_is(path, "/workspace") && !str_is(path, ".") &&
        space_path_clean(path, below, &e) < 0)
        failed = &e;
    if (failed) {
        tool_refuse_session(c, failed);
        return;
    }
    buf_printf(&b, "[session %s | /workspace%s%s]\n", c->session, *below ? "/" : "", below);
    put_files(&b, files, count, below, (size_t)json_integer_value(json_object_get(args, "offset")));
    tool_say(c, buf_str(&b));
}

static void list_files(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);

    (void)args;
    if (sv && call_session_exists(c))
        service_space_list(sv, &c->caller, str_of(c->session), on_listed, c);
}

/* --- write_file --- */

struct file_write {
    struct call *c;     /* borrowed: keeps this */
    struct service *sv; /* borrowed */
    char *bytes;        /* owned: decoded, on their way */
    size_t n;
    bool bad; /* base64 that is none */
};

static void file_write_free(void *arg)
{
    struct file_write *f = arg;

    free(f->bytes);
    free(f);
}

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct call *c = arg;
    char name[NAME_SHOWN], uri[URI_MAX];
    struct tool_content t;

    if (failed) {
        tool_refuse_session(c, failed);
        return;
    }
    assert(count == 1);
    content_init(&t);
    content_printf(&t, "[session %s%s]\nWritten: /workspace/%s (%llu bytes).", c->session,
                   call_session_note(c), name_show(name, files->path),
                   (unsigned long long)files->size);
    if (uri_of_file(uri, str_of(c->session), files->path))
        content_link(&t, c, uri, files->path, files->mime, files->size);
    content_answer(&t, c, false);
}

static void decode(void *arg) /* on a worker, where it is long */
{
    struct file_write *f = arg;
    struct str base64 = call_arg(f->c, "base64");

    f->bytes = mem_zalloc(base64.n / 4 * 3 + 1);
    f->bad = !base64_decode(base64, f->bytes, &f->n);
}

static void write_bytes(void *arg)
{
    struct file_write *f = arg;
    struct call *c = f->c;

    if (f->bad)
        tool_fail(c, "base64 is not base64: A-Z a-z 0-9 + / in groups of four, padded with =");
    else
        service_space_write(f->sv, &c->caller, str_of(c->session), call_arg(c, "path"),
                            take_ptr(&f->bytes), f->n, on_put, c);
}

static void write_there(struct file_write *f)
{
    struct call *c = f->c;
    struct str text = call_arg(c, "text"), url = call_arg(c, "url");

    if (url.p) {
        service_space_fetch(f->sv, &c->caller, str_of(c->session), call_arg(c, "path"), url, on_put,
                            c);
    } else if (text.p) {
        f->bytes = mem_strndup(text);
        f->n = text.n;
        write_bytes(f);
    } else if (call_arg(c, "base64").n > LARGE) {
        service_work(f->sv, decode, write_bytes, f);
    } else {
        decode(f);
        write_bytes(f);
    }
}

static void on_made(void *arg, const struct session_info *info, const struct err *failed)
{
    struct file_write *f = arg;

    if (failed) {
        tool_refuse_session(f->c, failed);
        return;
    }
    call_session_take(f->c, info->row->id);
    write_there(f);
}

/* Before a session is made for it. */
static const char *what_is_wrong(struct call *c, struct err *e)
{
    struct str path = call_arg(c, "path");
    char clean[SPACE_PATH_MAX];
    size_t sources = 0;

    sources += call_arg(c, "text").p != NULL;
    sources += call_arg(c, "base64").p != NULL;
    sources += call_arg(c, "url").p != NULL;
    if (sources != 1)
        return "Give exactly one of text, base64 and url.";
    if (path.n == 0)
        return call_arg(c, "url").p ? NULL : "path is needed: where the file goes in /workspace.";
    return space_path_clean(path, clean, e) < 0 ? e->text : NULL;
}

static void write_file(struct call *c, json_t *args)
{
    /* By the name of the conversation: two calls at the same moment get one session. */
    const struct session_spec spec = {.name = str_of(call_conversation(c)), .asleep = true};
    struct service *sv = call_service(c);
    struct file_write *f;
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
    *f = (struct file_write){.c = c, .sv = sv};
    call_keep(c, file_write_free, f);
    call_session_choose(c);
    if (*c->session)
        write_there(f);
    else
        service_session_create(sv, &c->caller, &spec, on_made, f);
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
