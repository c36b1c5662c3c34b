/* What an execution has said, read from its record. */
#include "doors/mcp/mcp_int.h"

struct str event_text(const json_t *ev, const char *key)
{
    struct str s = json_view(json_object_get(ev, key));

    return s.p ? s : STR("");
}

bool event_is(const json_t *ev, const char *type)
{
    return str_is(event_text(ev, "type"), type);
}

void events_output(const json_t *events, struct buf *ret)
{
    struct err e;

    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *ev = json_array_get(events, i);
        if ((event_is(ev, "stdout") || event_is(ev, "stderr")) &&
            buf_put(ret, event_text(ev, "text"), &e) < 0)
            return;
    }
}

/* --- displays that take the place of others --- */

json_t *events_last(const json_t *events)
{
    json_t *last = json_object();

    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *ev = json_array_get(events, i);
        const char *id = json_string_value(json_object_get(ev, "display_id"));
        if (id && json_is_true(json_object_get(ev, "update")))
            json_object_set_new_nocheck(last, id, json_integer((json_int_t)i));
    }
    return last;
}

bool event_is_replaced(const json_t *last, const json_t *ev, size_t at)
{
    const char *id = json_string_value(json_object_get(ev, "display_id"));
    const json_t *by = id ? json_object_get(last, id) : NULL;

    return by && (size_t)json_integer_value(by) > at;
}

/* --- images --- */

static const char *const kinds[] = {"image/png", "image/jpeg", "image/webp", "image/gif",
                                    "image/svg+xml"};

const json_t *event_image(const json_t *ev, const char **ret_mime)
{
    const json_t *data = json_object_get(ev, "data");

    for (size_t i = 0; i < COUNT(kinds); i++) {
        const json_t *part = json_object_get(data, kinds[i]);
        *ret_mime = kinds[i];
        if (json_is_string(part))
            return part;
    }
    return event_preview(ev, ret_mime); /* the original was larger than a bundle may be */
}

const json_t *event_preview(const json_t *ev, const char **ret_mime)
{
    static const struct {
        const char *mime, *key;
    } previews[] = {
        {"image/png",  "image/png;preview=1" },
        {"image/jpeg", "image/jpeg;preview=1"},
    };
    const json_t *data = json_object_get(ev, "data");

    for (size_t i = 0; i < COUNT(previews); i++) {
        const json_t *part = json_object_get(data, previews[i].key);
        *ret_mime = previews[i].mime;
        if (json_is_string(part))
            return part;
    }
    return NULL;
}

const json_t *events_image(const json_t *events, size_t n, const char **ret_mime)
{
    json_t *last = events_last(events);
    const json_t *found = NULL;

    for (size_t i = 0; i < json_array_size(events) && n > 0; i++) {
        const json_t *ev = json_array_get(events, i);
        const json_t *image = event_is_replaced(last, ev, i) ? NULL : event_image(ev, ret_mime);
        if (image && --n == 0)
            found = image;
    }
    json_decref(last);
    return found;
}
