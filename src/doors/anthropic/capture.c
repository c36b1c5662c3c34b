/* What a call prints, and the files it leaves for the user: those at the top of $OUTPUT_DIR. */
#include "doors/anthropic/messages_int.h"

#include <stdlib.h>

#define PRINTED_MAX (32 * MiB) /* the pool's own limit is lower */
#define IMAGES_MAX  4
#define IMAGE_BYTES (2 * MiB)

void capture_init(struct capture *c, enum sub sub)
{
    *c = (struct capture){
        .images = json_array(), .outputs = json_array(), .listed = json_array(), .sub = sub};
    buf_init(&c->out, PRINTED_MAX);
    buf_init(&c->err, PRINTED_MAX);
}

void capture_done(struct capture *c)
{
    buf_done(&c->out);
    buf_done(&c->err);
    json_decref(c->images);
    json_decref(c->outputs);
    json_decref(c->listed);
    for (size_t i = 0; i < c->count; i++)
        free(c->paths[i]);
    free(c->paths);
}

/* --- what it says --- */

/* A NUL becomes U+FFFD: JSON can say it, but clients send back what they got, and neither they nor
 * models can be relied on to read it. */
static void put(struct buf *b, struct str text)
{
    struct err e;

    while (text.n > 0) {
        size_t n = strnlen(text.p, text.n);

        (void)!buf_put(b, (struct str){text.p, n}, &e);
        if (n == text.n)
            break;
        (void)!buf_put(b, STR("\xef\xbf\xbd"), &e);
        text = (struct str){text.p + n + 1, text.n - n - 1};
    }
}

static void put_line(struct buf *b, struct str text)
{
    put(b, text);
    if (text.n == 0 || text.p[text.n - 1] != '\n')
        put(b, STR("\n"));
}

void capture_note(struct capture *c, const char *text)
{
    if (c->err.n > 0 && c->err.p[c->err.n - 1] != '\n')
        put(&c->err, STR("\n"));
    put(&c->err, STR("["));
    put(&c->err, str_of(text));
    put(&c->err, STR("]\n"));
}

static void take_bundle(struct capture *c, const struct event *ev)
{
    for (size_t i = 0; i < ev->bundle.count; i++) {
        const struct mime_part *p = &ev->bundle.part[i];

        if (str_is(p->mime, "text/plain"))
            put_line(&c->out, p->data);
        else if (str_is(p->mime, "image/png") && p->data.n <= IMAGE_BYTES &&
                 json_array_size(c->images) < IMAGES_MAX)
            json_array_append_new(c->images, json_pack("{s:s, s:o}", "mime", "image/png", "data",
                                                       record_base64(p->data)));
    }
}

/* --- what it leaves --- */

static bool is_for_user(const struct capture *c, struct str path)
{
    size_t n = strlen(c->folder);

    if (path.n > n + 1 && memcmp(path.p, c->folder, n) == 0 && path.p[n] == '/')
        return !memchr(path.p + n + 1, '/', path.n - n - 1);
    return c->cwd && !memchr(path.p, '/', path.n);
}

static void take_file(struct capture *c, const struct event *ev)
{
    if (ev->file.change == FILE_DELETED || ev->file.unlisted || !is_for_user(c, ev->file.path))
        return;
    if (ev->file.too_large) {
        c->too_large = true;
        return;
    }
    if (c->count == OUTPUTS_MAX) {
        capture_note(c, "there are more files in $OUTPUT_DIR than are given to the user");
        return;
    }
    if (!c->paths)
        c->paths = mem_zalloc(OUTPUTS_MAX * sizeof(*c->paths));
    c->paths[c->count++] = mem_strndup(ev->file.path);
}

void capture_event(struct capture *c, const struct event *ev)
{
    AUTO_FREE char *text = NULL;

    switch (ev->kind) {
    case EVENT_STDOUT:
        put(&c->out, ev->text);
        break;
    case EVENT_STDERR:
        put(&c->err, ev->text);
        break;
    case EVENT_DISPLAY:
    case EVENT_RESULT:
        take_bundle(c, ev);
        break;
    case EVENT_ERROR:
        put_line(&c->err, ev->error.traceback);
        break;
    case EVENT_STATUS:
        text = mem_strndup(ev->text);
        capture_note(c, text);
        break;
    case EVENT_FILE:
        take_file(c, ev);
        break;
    case EVENT_CLEAR:
        break;
    }
}

/* --- kept --- */

static void keep_next(struct capture *c);

static void on_kept(void *arg, const struct file_row *file, const struct err *failed)
{
    struct capture *c = arg;
    json_t *name;

    if (failed) {
        capture_note(c, failed->kind == ERR_HOST ? "a file could not be given to the user"
                                                 : failed->text);
        if (failed->kind == ERR_HOST)
            log_error("%s: %s", c->caller->request, failed->text);
    } else {
        name = record_text(str_of(file->name));
        json_array_append_new(c->outputs,
                              json_pack("{s:s, s:s, s:O, s:I, s:s}", "type",
                                        sub_tools[c->sub].output_type, "file_id", file->id,
                                        "filename", name, "size_bytes", (json_int_t)file->size,
                                        "mime_type", file->mime));
        json_array_append_new(c->listed,
                              json_pack("{s:o, s:I, s:s, s:s, s:s, s:o}", "name", name, "size",
                                        (json_int_t)file->size, "sha256", file->hash, "mime",
                                        file->mime, "file_id", file->id, "path",
                                        record_text(str_of(c->paths[c->at]))));
    }
    c->at++;
    keep_next(c);
}

static void keep_next(struct capture *c)
{
    if (c->at == c->count)
        c->fn(c->arg);
    else
        service_file_of_space(c->service, c->caller, str_of(c->session), str_of(c->paths[c->at]),
                              on_kept, c);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void capture_keep(struct capture *c, loop_fn *fn, void *arg)
{
    assert(c->count > 0);
    qsort(c->paths, c->count, sizeof(*c->paths), by_name);
    c->fn = fn;
    c->arg = arg;
    keep_next(c);
}
