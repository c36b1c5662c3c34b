/* The files an execution has made, as a model is told of them. */
#include "doors/mcp/mcp_int.h"

#define FILES_MAX  20   /* told of; list_files has the others */
#define FILES_TEXT 1500 /* bytes of their names */

static bool is_deleted(const json_t *ev)
{
    return str_is(event_text(ev, "change"), "deleted");
}

static bool is_too_large(const json_t *ev)
{
    return json_is_true(json_object_get(ev, "too_large"));
}

static uint64_t size_of(const json_t *ev)
{
    return (uint64_t)json_integer_value(json_object_get(ev, "size"));
}

static void put_one(struct buf *b, const json_t *ev)
{
    char name[NAME_SHOWN], size[SIZE_SHOWN];
    struct err e;

    (void)!buf_printf(b, &e, "%s (%s%s)", name_show(name, event_text(ev, "path")),
                      is_deleted(ev) ? "deleted" : size_show(size, size_of(ev)),
                      is_too_large(ev) ? ", too large to be kept" : "");
}

void artifacts_put(const json_t *events, struct buf *ret)
{
    size_t told = 0, left = 0, from = ret->n;
    struct err e;

    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *ev = json_array_get(events, i);
        if (!event_is(ev, "file"))
            continue;
        if (told >= FILES_MAX || ret->n - from > FILES_TEXT) {
            left++;
            continue;
        }
        (void)!buf_put(ret, told++ == 0 ? STR("files in /workspace: ") : STR(", "), &e);
        put_one(ret, ev);
    }
    if (left > 0)
        (void)!buf_printf(ret, &e, ", and %zu more: list_files has them", left);
    if (told > 0)
        (void)!buf_put(ret, STR("\n"), &e);
}

/* There is no way back from U+FFFD to the bytes of a name. */
static bool has_address(const json_t *ev)
{
    struct str path = event_text(ev, "path");

    return !is_deleted(ev) && !is_too_large(ev) && !memmem(path.p, path.n, "\xef\xbf\xbd", 3);
}

void artifacts_link(const json_t *events, struct content *t, const struct call *c,
                    const char *session)
{
    size_t told = 0;
    char uri[URI_MAX];

    for (size_t i = 0; i < json_array_size(events) && told < FILES_MAX; i++) {
        const json_t *ev = json_array_get(events, i);
        struct str path = event_text(ev, "path");
        if (!event_is(ev, "file") || !has_address(ev) || !uri_of_file(uri, str_of(session), path))
            continue;
        content_link(t, c, uri, path, json_string_value(json_object_get(ev, "mime")), size_of(ev));
        told++;
    }
}
