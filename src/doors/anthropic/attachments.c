/*
 * Images and documents of messages that are uploaded files: their bytes go into the parts that
 * models are sent, as base64; a text becomes text.
 */
#include "doors/anthropic/turn_int.h"

#include <stdlib.h>
#include <unistd.h>

#define ATTACHED_MAX (24 * MiB) /* of all files of a request: more than a model takes */

struct attachment_reader {
    struct turn *turn; /* borrowed: it waits */
    size_t at;         /* in history.attached */
    size_t bytes;      /* so far */
    int fd;            /* owned */
    char *data;        /* owned */
    size_t n, size;
    char mime[128];
    bool failed;
    json_t *text, *base64; /* owned, or NULL */
};

static void read_next(struct attachment_reader *g);

static void reader_free(struct attachment_reader *g)
{
    fd_closep(&g->fd);
    free(g->data);
    json_decref(g->text);
    json_decref(g->base64);
    free(g);
}

static const json_t *current(const struct attachment_reader *g)
{
    return json_array_get(g->turn->history.attached, g->at);
}

static void fail(struct attachment_reader *g, const struct err *why, const char *code)
{
    turn_fail(g->turn, why, code);
    reader_free(g);
}

/* On another thread. */
static void read_bytes(void *arg)
{
    struct attachment_reader *g = arg;
    struct str text;
    ssize_t n;

    g->data = mem_zalloc(g->size + 1);
    while (g->n < g->size && (n = read(g->fd, g->data + g->n, g->size - g->n)) > 0)
        g->n += (size_t)n;
    g->failed = g->n < g->size;
    text = (struct str){g->data, g->n};
    if (mime_is_text(str_of(g->mime)) && str_utf8_len(text) == text.n)
        g->text = record_text(text);
    else
        g->base64 = record_base64(text);
    free(take_ptr(&g->data));
    fd_closep(&g->fd);
}

/* Fills in the part; false: it is neither an image nor a document. */
static bool fill(struct attachment_reader *g, json_t *part)
{
    struct history *h = &g->turn->history;
    size_t at = (size_t)json_integer_value(json_object_get(current(g), "at"));
    bool image = strncmp(g->mime, "image/", 6) == 0, asked = str_is(view_of(part, "type"), "image");

    if (g->text && !asked) {
        json_object_set_new(part, "type", json_string("text"));
        json_object_set_new(part, "text", take_ptr(&g->text));
        return true;
    }
    if (!g->base64 || image != asked || (!image && strcmp(g->mime, "application/pdf") != 0))
        return false;
    json_object_set_new(part, "mime", json_string(g->mime));
    json_object_set_new(part, "data", take_ptr(&g->base64));
    if (!image)
        json_array_append_new(h->documents,
                              json_pack("{s:O, s:I, s:O}", "part", part, "at", (json_int_t)at, "id",
                                        json_object_get(current(g), "id")));
    else if (!h->first_image.is && !json_is_true(json_object_get(current(g), "of_result")))
        h->first_image = (struct attachment){true, at};
    return true;
}

static void on_bytes(void *arg)
{
    struct attachment_reader *g = arg;
    struct err e;

    if (turn_is_gone(g->turn))
        return reader_free(g);
    if (g->failed) {
        err_set(&e, ERR_HOST, "a file could not be read");
        return fail(g, &e, NULL);
    }
    if (!fill(g, json_object_get(current(g), "part"))) {
        err_set(&e, ERR_CALLER,
                "messages.%lld: a file of the type %s is no %s. As a container_upload, code can "
                "read it",
                json_integer_value(json_object_get(current(g), "at")), g->mime,
                text_of(json_object_get(current(g), "part"), "type"));
        return fail(g, &e, CODE_INVALID);
    }
    json_decref(take_ptr(&g->text));
    json_decref(take_ptr(&g->base64));
    g->at++;
    read_next(g);
}

static void on_file(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    struct attachment_reader *g = arg;
    struct err e;
    char shown[NAME_SHOWN];

    if (turn_is_gone(g->turn))
        return reader_free(g);
    if (failed && failed->kind == ERR_MISSING) {
        bool expired = failed->sys == FILE_EXPIRED;
        err_set(&e, ERR_MISSING, expired ? "File `%s` has expired." : "File `%s` not found.",
                name_show(shown, view_of(current(g), "id")));
        return fail(g, &e, expired ? CODE_FILE_EXPIRED : CODE_MISSING);
    }
    if (failed)
        return fail(g, failed, NULL);
    g->bytes += file->size;
    if (g->bytes > ATTACHED_MAX) {
        err_set(&e, ERR_CALLER,
                "messages: attached files have more than %d MiB. As a container_upload, code can "
                "read them",
                (int)(ATTACHED_MAX / MiB));
        return fail(g, &e, CODE_INVALID);
    }
    g->fd = take_fd(fd);
    g->size = file->size;
    g->n = 0;
    if (!str_to_cstr(str_of(file->mime), g->mime, sizeof(g->mime)))
        *g->mime = '\0';
    g->turn->waits++;
    service_work(g->turn->service, read_bytes, on_bytes, g);
}

static void read_next(struct attachment_reader *g)
{
    struct turn *r = g->turn;

    if (g->at == json_array_size(r->history.attached)) {
        reader_free(g);
        turn_on_attached(r);
        return;
    }
    r->waits++;
    service_file_open(r->service, &r->caller, view_of(current(g), "id"), on_file, g);
}

void attachments_read(struct turn *r)
{
    struct attachment_reader *g = mem_zalloc(sizeof(*g));

    g->turn = r;
    g->fd = -1;
    read_next(g);
}
