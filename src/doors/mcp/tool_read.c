/* read_file: text by pages, images as images, other bytes as base64 if they are few. */
#include "doors/mcp/execution.h"

#define PAGE_DEFAULT 9000
#define PAGE_MOST    90000 /* what anthropic/maxResultSizeChars below leaves room for */
#define BASE64_MAX   60000 /* bytes, asked for as base64 */
#define SMALL_BINARY 2048  /* bytes, shown as base64 without being asked for */
#define IMAGE_MOST   (PICTURE_BYTES / 4 * 3 + 3)

static bool is_auto(struct str encoding)
{
    return !str_is(encoding, "text") && !str_is(encoding, "base64");
}

/* Which bytes are asked for. */
static void read_window(const struct call *c, uint64_t *ret_offset, size_t *ret_limit)
{
    const json_t *args = json_object_get(c->params, "arguments");
    size_t most = str_is(call_arg(c, "encoding"), "base64") ? BASE64_MAX : PAGE_MOST;
    size_t limit = (size_t)json_integer_value(json_object_get(args, "limit"));

    *ret_offset = (uint64_t)json_integer_value(json_object_get(args, "offset"));
    *ret_limit = limit == 0 ? PAGE_DEFAULT : limit < most ? limit : most;
}

/* A page of a file, on its way into an answer. */
struct file_page {
    const struct space_file *file;
    struct str bytes; /* from offset on; of what may be an image more than a page */
    uint64_t offset;
    size_t limit;
    struct tool_content *images;
    struct buf text;
};

static bool is_text(struct str s)
{
    return str_utf8_len(s) == s.n && !memchr(s.p, '\0', s.n);
}

static void put_next(struct file_page *p, uint64_t next, const char *more)
{
    if (next < p->file->size)
        buf_printf(&p->text, "\n[next: read_file with offset=%llu%s]", (unsigned long long)next,
                   more);
}

static void put_text_page(struct file_page *p, struct str page)
{
    uint64_t begin = p->offset + (uint64_t)(page.p - p->bytes.p), next = begin + page.n;

    if (p->offset > 0 || next < p->file->size)
        buf_printf(&p->text, "bytes %llu to %llu of %llu:\n", (unsigned long long)begin,
                   (unsigned long long)next, (unsigned long long)p->file->size);
    buf_put(&p->text, page);
    put_next(p, next, "");
}

static void put_base64_page(struct file_page *p, struct str page)
{
    json_t *encoded = record_base64(page);
    uint64_t next = p->offset + page.n;

    buf_printf(&p->text, "bytes %llu to %llu of %llu, base64:\n%s", (unsigned long long)p->offset,
               (unsigned long long)next, (unsigned long long)p->file->size,
               json_string_value(encoded));
    put_next(p, next, " and encoding=base64");
    json_decref(encoded);
}

/* True: the file is an image, and is among the images, or the text says why not. */
static bool put_image(struct file_page *p)
{
    const char *why = "it has more than 500 kB";
    struct picture look;
    size_t sum = 0;

    if (!picture_look(p->bytes, &look))
        return false;
    buf_printf(&p->text, "%s, %u x %u", look.mime, look.width, look.height);
    if (p->file->size == p->bytes.n) {
        json_t *encoded = record_base64(p->bytes);
        why = figure_put(p->images->items, &sum, json_view(encoded));
        json_decref(encoded);
    }
    if (why)
        buf_printf(&p->text,
                   "; not shown: %s. Make a smaller copy and read that: "
                   "from PIL import Image; i = Image.open('%.*s'); i.thumbnail((1500, 1500)); "
                   "i.convert('RGB').save('smaller.jpg')",
                   why, (int)p->file->path.n, p->file->path.p);
    return true;
}

static void put_page(struct file_page *p, struct str encoding)
{
    struct str page = {p->bytes.p, p->bytes.n < p->limit ? p->bytes.n : p->limit}, text;
    char size[SIZE_SHOWN];

    if (is_auto(encoding) && p->offset == 0 && put_image(p))
        return;
    text = text_whole(page, false, p->offset + page.n >= p->file->size);
    if (!str_is(encoding, "base64") && (str_is(encoding, "text") || is_text(text)))
        put_text_page(p, text);
    else if (str_is(encoding, "base64") || p->file->size <= SMALL_BINARY)
        put_base64_page(p, page);
    else
        buf_printf(&p->text,
                   "It is binary (%s, %s) and not shown. Read it with code, by run_code; or in "
                   "pieces of at most %d bytes, with encoding=base64.",
                   p->file->mime, size_show(size, p->file->size), BASE64_MAX);
}

static void answer(struct call *c, const struct space_file *file, struct str bytes)
{
    struct tool_content t, images;
    struct file_page p = {.file = file, .bytes = bytes, .images = &images};
    char name[NAME_SHOWN], size[SIZE_SHOWN], uri[URI_MAX];

    content_init(&t);
    content_init(&images);
    buf_init(&p.text, 2 * MiB);
    read_window(c, &p.offset, &p.limit);
    buf_printf(&p.text, "[session %s | %s | %s]\n", c->session, name_show(name, file->path),
               size_show(size, file->size));
    put_page(&p, call_arg(c, "encoding"));
    content_text(&t, buf_str(&p.text));
    json_array_extend(t.items, images.items);
    if (uri_of_file(uri, str_of(c->session), file->path))
        content_link(&t, c, uri, file->path, file->mime, file->size);
    buf_done(&p.text);
    content_done(&images);
    content_answer(&t, c, false);
}

/* --- on the way --- */

/* Which is missing, the session or the file? */
static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct call *c = arg;
    char name[NAME_SHOWN];

    if (info)
        tool_fail(c, "There is no file %s in session %s. list_files shows what there is.",
                  name_show(name, call_arg(c, "path")), c->session);
    else
        tool_refuse_session(c, failed);
}

static void on_bytes(void *arg, char **bytes, size_t n, const struct space_file *file,
                     const struct err *failed)
{
    struct call *c = arg;

    if (failed && failed->kind == ERR_MISSING)
        service_session_get(call_service(c), &c->caller, str_of(c->session), on_session, c);
    else if (failed)
        tool_refuse_session(c, failed);
    else
        answer(c, file, (struct str){*bytes, n});
}

static void run(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    uint64_t offset;
    size_t limit;

    (void)args;
    if (!sv || !call_session_exists(c))
        return;
    read_window(c, &offset, &limit);
    if (is_auto(call_arg(c, "encoding")) && offset == 0 && limit < IMAGE_MOST)
        limit = IMAGE_MOST;
    service_space_read(sv, &c->caller, str_of(c->session), call_arg(c, "path"), offset, limit,
                       on_bytes, c);
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
