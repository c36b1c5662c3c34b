/* read_file: text by pages, images as images, other bytes as base64 where they are few. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_DEFAULT 9000
#define PAGE_MOST    90000 /* what anthropic/maxResultSizeChars below leaves room for */
#define BASE64_MAX   60000 /* bytes, asked for as base64 */
#define SMALL_BINARY 2048  /* bytes, shown as base64 without being asked for */

enum encoding { ENCODING_AUTO, ENCODING_TEXT, ENCODING_BASE64 };

struct reading {
    struct call *c;     /* borrowed: held by us until it is answered */
    struct service *sv; /* borrowed */
    char session[ID_MAX];
    enum encoding encoding;
    uint64_t offset, limit;
    /* the file: */
    int fd; /* owned */
    uint64_t size;
    char *mime, *path; /* owned */
    struct buf text;
    json_t *images; /* owned */
};

static void reading_free(struct reading *r)
{
    fd_closep(&r->fd);
    free(r->mime);
    free(r->path);
    buf_done(&r->text);
    json_decref(r->images);
    free(r);
}

/* --- on a worker --- */

/* How many bytes there are to be had from there, read into an owned buffer. */
static char *read_at(int fd, uint64_t offset, size_t most, size_t *ret_n)
{
    char *bytes = mem_zalloc(most + 1);

    *ret_n = 0;
    while (*ret_n < most) {
        ssize_t got = pread(fd, bytes + *ret_n, most - *ret_n, (off_t)(offset + *ret_n));
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        *ret_n += got > 0 ? (size_t)got : 0;
    }
    return bytes;
}

/* A page may begin and end within a character. */
static struct str whole_characters(struct str s, bool is_end)
{
    size_t skip = 0;

    while (skip < 3 && skip < s.n && ((unsigned char)s.p[skip] & 0xc0) == 0x80)
        skip++;
    s = (struct str){s.p + skip, s.n - skip};
    s.n -= is_end ? 0 : utf8_torn(s);
    return s;
}

static bool is_text(struct str s)
{
    return str_utf8_len(s) == s.n && !memchr(s.p, '\0', s.n);
}

static void put_text_page(struct reading *r, struct str page, size_t from)
{
    struct err e;
    uint64_t begin = r->offset + from, next = begin + page.n;

    if (r->offset > 0 || next < r->size)
        (void)!buf_printf(&r->text, &e, "bytes %llu to %llu of %llu:\n", (unsigned long long)begin,
                          (unsigned long long)next, (unsigned long long)r->size);
    (void)!buf_put(&r->text, page, &e);
    if (next < r->size)
        (void)!buf_printf(&r->text, &e, "\n[next: read_file with offset=%llu]",
                          (unsigned long long)next);
}

static void put_base64_page(struct reading *r, struct str bytes)
{
    json_t *encoded = record_base64(bytes);
    uint64_t next = r->offset + bytes.n;
    struct err e;

    (void)!buf_printf(&r->text, &e, "bytes %llu to %llu of %llu, base64:\n%s",
                      (unsigned long long)r->offset, (unsigned long long)next,
                      (unsigned long long)r->size, json_string_value(encoded));
    if (next < r->size)
        (void)!buf_printf(&r->text, &e, "\n[next: read_file with offset=%llu and encoding=base64]",
                          (unsigned long long)next);
    json_decref(encoded);
}

/* True: it was one, and is among the images, or the text says why not. */
static bool put_image(struct reading *r)
{
    size_t n, sum = 0, most = PICTURE_BYTES / 4 * 3 + 3;
    AUTO_FREE char *bytes = read_at(r->fd, 0, r->size < most ? (size_t)r->size : most, &n);
    const char *why = "it has more than 500 kB";
    struct picture p;
    struct err e;

    if (!picture_look((struct str){bytes, n}, &p))
        return false;
    (void)!buf_printf(&r->text, &e, "%s, %u x %u", p.mime, p.width, p.height);
    if (r->size == n) {
        json_t *encoded = record_base64((struct str){bytes, n});
        why = figure_put(r->images, &sum, json_view(encoded));
        json_decref(encoded);
    }
    if (why)
        (void)!buf_printf(&r->text, &e,
                          "; not shown: %s. Make a smaller copy and read that: "
                          "from PIL import Image; i = Image.open('%s'); i.thumbnail((1500, 1500)); "
                          "i.convert('RGB').save('smaller.jpg')",
                          why, r->path);
    return true;
}

static void put_binary(struct reading *r, struct str start)
{
    char size[SIZE_SHOWN];
    struct err e;

    if (r->size <= SMALL_BINARY) {
        put_base64_page(r, start);
        return;
    }
    (void)!buf_printf(&r->text, &e,
                      "It is binary (%s, %s) and not shown. Read it with code, by run_code; or in "
                      "pieces of at most %d bytes, with encoding=base64.",
                      r->mime, size_show(size, r->size), BASE64_MAX);
}

static void read_it(void *arg) /* on a worker */
{
    struct reading *r = arg;
    AUTO_FREE char *bytes = NULL;
    struct str page, all;
    size_t n;

    if (r->encoding == ENCODING_AUTO && r->offset == 0 && put_image(r))
        return;
    bytes = read_at(r->fd, r->offset, (size_t)r->limit, &n);
    all = (struct str){bytes, n};
    if (r->encoding == ENCODING_BASE64) {
        put_base64_page(r, all);
        return;
    }
    page = whole_characters(all, r->offset + n >= r->size);
    if (r->encoding == ENCODING_TEXT || is_text(page))
        put_text_page(r, page, (size_t)(page.p - all.p));
    else
        put_binary(r, all);
}

/* --- on the loop --- */

static void on_read(void *arg)
{
    struct reading *r = arg;
    char name[NAME_SHOWN], size[SIZE_SHOWN], uri[URI_MAX];
    struct call *c = r->c;
    struct content t;
    struct buf all;
    struct err e;

    buf_init(&all, 2 * MiB);
    content_init(&t);
    (void)!buf_printf(&all, &e, "[session %s | %s | %s]\n", r->session,
                      name_show(name, str_of(r->path)), size_show(size, r->size));
    (void)!buf_put(&all, buf_str(&r->text), &e);
    content_text(&t, buf_str(&all));
    buf_done(&all);
    json_array_extend(t.items, r->images);
    if (uri_of_file(uri, str_of(r->session), str_of(r->path)))
        content_link(&t, c, uri, str_of(r->path), r->mime, r->size);
    reading_free(r);
    content_answer(&t, c, false);
}

/* Which of the two is not there? */
static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct reading *r = arg;
    struct call *c = r->c;
    char name[NAME_SHOWN];

    if (info)
        tool_fail(c, "There is no file %s in session %s. list_files shows what there is.",
                  name_show(name, json_view(json_object_get(json_object_get(c->params, "arguments"),
                                                            "path"))),
                  r->session);
    else
        place_refuse(c, r->session, failed);
    reading_free(r);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct reading *r = arg;

    if (failed && failed->kind == ERR_MISSING) {
        service_session_get(r->sv, &r->c->caller, str_of(r->session), on_session, r);
        return;
    }
    if (failed) {
        place_refuse(r->c, r->session, failed);
        reading_free(r);
        return;
    }
    r->fd = take_fd(fd);
    r->size = file->size;
    r->mime = mem_strdup(file->mime);
    r->path = mem_strndup(file->path);
    loop_work(r->c->mcp->config.loop, read_it, on_read, r);
}

static enum encoding encoding_of(struct str name)
{
    return str_is(name, "text")     ? ENCODING_TEXT
           : str_is(name, "base64") ? ENCODING_BASE64
                                    : ENCODING_AUTO;
}

static void run(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    struct reading *r;
    uint64_t most;

    if (!sv)
        return;
    r = mem_zalloc(sizeof(*r));
    *r = (struct reading){.c = c, .sv = sv, .fd = -1, .images = json_array()};
    r->encoding = encoding_of(json_view(json_object_get(args, "encoding")));
    most = r->encoding == ENCODING_BASE64 ? BASE64_MAX : PAGE_MOST;
    r->offset = (uint64_t)json_integer_value(json_object_get(args, "offset"));
    r->limit = (uint64_t)json_integer_value(json_object_get(args, "limit"));
    r->limit = r->limit == 0 ? PAGE_DEFAULT : r->limit < most ? r->limit : most;
    buf_init(&r->text, 1 * MiB);
    if (place_there(c, json_view(json_object_get(args, "session_id")), r->session))
        service_space_open(sv, &c->caller, str_of(r->session),
                           json_view(json_object_get(args, "path")), on_open, r);
    else
        reading_free(r);
}

static const struct field params[] = {
    {"path",                               FIELD_TEXT, REQUIRED, 1, SPACE_PATH_MAX, NULL, "The file, relative to /workspace.",
     "\"report.csv\""},
    {"session_id",                            FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "The session. Left out: the one of this conversation.", NULL},
    {"offset",                      FIELD_INT, OPTIONAL, 0, 1e15, NULL, "The first byte to read.", "0"},
    {"limit", FIELD_INT, OPTIONAL, 1, PAGE_MOST, NULL,
     "How many bytes: 9000 when left out, at most 90000, of base64 at most 60000.", NULL},
    {"encoding",                                    FIELD_ENUM, OPTIONAL, 0, 0, "auto|text|base64",
     "auto (the default) shows text as text and images as images.", NULL},
    {0},
};

const struct tool tool_read_file = {
    .name = "read_file",
    .title = "Read a file",
    .text = "Read a file of a session's /workspace: text comes as text, page by page (offset and "
            "limit count bytes; each page names the next offset), PNG, JPEG, GIF and WebP come as "
            "images you can see. Other binary files are better read by code; base64 gives their "
            "bytes in small pieces. Images larger than 1568 pixels or 500 kB have to be made "
            "smaller first.\n"
            "Example: {\"path\": \"plot.png\", \"session_id\": \"sess_...\"}",
    .params = params,
    .meta = "{\"anthropic/maxResultSizeChars\": 100000}",
    .hints = TOOL_READS | TOOL_REPEATABLE,
    .run = run,
};
