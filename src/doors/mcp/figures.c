/*
 * The images of a result. A client may refuse a whole conversation for one image it cannot
 * take, so each is looked at and counted; what cannot be shown as it is, is shown as the
 * preview that the guest has made of it, or told of. Originals are on record.
 */
#include "doors/mcp/mcp_int.h"

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
    struct err e;
    size_t n;

    if (base64.n >= 128 && base64_decode((struct str){base64.p, 128}, head, &n) &&
        picture_look((struct str){head, n}, &p) && p.width > 0)
        (void)!buf_printf(b, &e, ", %u x %u", p.width, p.height);
}

static const char *show(struct figures *f, const json_t *ev, const json_t *image, bool *ret_small)
{
    const char *mime, *why;
    const json_t *preview = event_preview(ev, &mime);

    *ret_small = false;
    if (f->only ? f->seen != f->only : f->shown >= PICTURES_MAX)
        return f->only ? "" : "an answer shows 4 at most";
    why = figure_put(f->items, &f->sum, json_view(image));
    if (!why || !preview)
        return why;
    *ret_small = true;
    return figure_put(f->items, &f->sum, json_view(preview)) ? why : NULL;
}

/* Where it is to be had, for who cannot follow links, too. */
static void put_where(struct figures *f, struct buf *b, bool by_tool)
{
    char uri[URI_MAX];
    struct err e;

    uri_of_image(uri, str_of(f->execution), f->seen);
    if (by_tool)
        (void)!buf_printf(b, &e, "; get_execution with execution_id=%s and image=%zu shows it",
                          f->execution, f->seen);
    else
        (void)!buf_printf(b, &e, "; the original is %s", uri);
}

void figures_add(struct figures *f, const json_t *ev, struct buf *text)
{
    const char *mime, *why;
    const json_t *image = event_image(ev, &mime);
    bool is_small, is_one_too_many = !f->only && f->shown >= PICTURES_MAX;
    struct err e;

    f->seen++;
    why = show(f, ev, image, &is_small);
    f->shown += !why;
    if (why && !*why)
        return;
    (void)!buf_printf(text, &e, "image %zu: %s", f->seen, mime);
    put_size(text, json_view(image));
    if (why)
        (void)!buf_printf(text, &e, ", not shown: %s", why);
    else if (is_small)
        (void)!buf_put(text, STR(", shown smaller"), &e);
    if (why || is_small)
        put_where(f, text, is_one_too_many);
    (void)!buf_put(text, STR("\n"), &e);
}
