/*
 * The images of a result. Some clients end a whole conversation over one image they cannot take, so
 * each image is checked and counted. An image that cannot be sent is replaced by the preview that
 * the guest has made, or by a line of text. The original stays on record.
 */
#include "doors/mcp/execution.h"
#include "doors/mcp/resource.h"

const char *figure_put(json_t *items, size_t *sum, struct str base64)
{
    AUTO_FREE char *bytes = NULL;
    struct picture p;
    const char *why;
    size_t n;

    if (base64.n > PICTURE_BYTES)
        return "it has more than 500 kB";
    bytes = mem_zalloc(base64.n / 4 * 3 + 1);
    if (!base64_decode(base64, bytes, &n) || !picture_look((struct str){bytes, n}, &p))
        return "it is no PNG, JPEG, GIF or WebP";
    why = picture_why_not(&p, n);
    if (why)
        return why;
    if (*sum + base64.n > PICTURES_SUM)
        return "the images before it are as much as one answer may hold";
    *sum += base64.n;
    json_array_append_new(items,
                          json_pack("{s:s, s:o, s:s}", "type", "image", "data",
                                    json_stringn_nocheck(base64.p, base64.n), "mimeType", p.mime));
    return NULL;
}

/* " of 640 x 480" where that can be told from its first bytes. */
static void put_size(struct buf *b, struct str base64)
{
    char head[96];
    struct picture p;
    size_t n;

    if (base64.n >= 128 && base64_decode((struct str){base64.p, 128}, head, &n) &&
        picture_look((struct str){head, n}, &p) && p.width > 0)
        buf_printf(b, ", %u x %u", p.width, p.height);
}

/* The width and height at which the code wants its image shown, for clients that draw it. */
static void put_metadata(struct figures *f, const struct event_reader *at)
{
    json_t *item = json_array_get(f->items, json_array_size(f->items) - 1);
    json_t *of = json_object_get(json_object_get(at->event, "metadata"), at->mime);

    if (json_is_object(of))
        json_object_set_new(item, "_meta", json_pack("{s:O}", "retort/display", of));
}

static const char *show(struct figures *f, const struct event_reader *at, bool *ret_small)
{
    const char *why;

    *ret_small = false;
    if (f->only ? f->seen != f->only : f->shown >= PICTURES_MAX)
        return f->only ? "" : "an answer shows 4 at most";
    why = figure_put(f->items, &f->sum, json_view(at->image));
    if (!why || !at->preview)
        return why;
    *ret_small = true;
    return figure_put(f->items, &f->sum, json_view(at->preview)) ? why : NULL;
}

/* Where it is to be had, for who cannot follow links, too. */
static void put_where(struct figures *f, struct buf *b, bool by_tool)
{
    char uri[URI_MAX];

    uri_of_image(uri, str_of(f->execution), f->seen);
    if (by_tool)
        buf_printf(b, "; get_execution with execution_id=%s and image=%zu shows it", f->execution,
                   f->seen);
    else
        buf_printf(b, "; the original is %s", uri);
}

void figures_add(struct figures *f, const struct event_reader *at, struct buf *text)
{
    const char *why;
    bool is_small, is_one_too_many = !f->only && f->shown >= PICTURES_MAX;

    f->seen++;
    why = show(f, at, &is_small);
    f->shown += !why;
    if (!why && !is_small && f->seen < 64)
        f->whole |= UINT64_C(1) << f->seen;
    if (!why)
        put_metadata(f, at);
    if (why && !*why)
        return;
    buf_printf(text, "image %zu: %s", f->seen, at->mime);
    put_size(text, json_view(at->image));
    if (why)
        buf_printf(text, ", not shown: %s", why);
    else if (is_small)
        buf_put(text, STR(", shown smaller"));
    if (why || is_small)
        put_where(f, text, is_one_too_many);
    buf_put(text, STR("\n"));
}
