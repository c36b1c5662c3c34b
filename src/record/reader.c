/*
 * Reads a transcript: what an execution has said, as every client is to see it. All doors and the
 * agent read with this one, so all show the same images in the same order.
 */
#include "record/record.h"

#define TEXT_MAX (4 * GiB) /* the engine keeps less */

struct str event_text(const json_t *ev, const char *key)
{
    const json_t *v = json_object_get(ev, key);

    return v && json_is_string(v) ? (struct str){json_string_value(v), json_string_length(v)}
                                  : STR("");
}

bool event_is(const json_t *ev, const char *type)
{
    return str_is(event_text(ev, "type"), type);
}

static enum event_kind kind_of(const json_t *ev)
{
    struct str type = event_text(ev, "type");
    enum event_kind k = EVENT_STDOUT;

    while (k < EVENT_STATUS && !str_is(type, event_kind_name(k)))
        k++;
    return k;
}

/* --- images --- */

/* The best format of those it has. */
static const json_t *find_image(const json_t *data, const char **ret_mime)
{
    static const char *const mimes[] = {"image/png", "image/jpeg", "image/webp", "image/gif",
                                        "image/svg+xml"};
    const json_t *part = NULL;

    for (size_t i = 0; i < COUNT(mimes) && !json_is_string(part); i++) {
        part = json_object_get(data, mimes[i]);
        *ret_mime = mimes[i];
    }
    return json_is_string(part) ? part : NULL;
}

static const json_t *find_preview(const json_t *data, const char **ret_mime)
{
    const json_t *png = json_object_get(data, "image/png;preview=1");
    const json_t *part = png ? png : json_object_get(data, "image/jpeg;preview=1");

    *ret_mime = png ? "image/png" : "image/jpeg";
    return json_is_string(part) ? part : NULL;
}

/* --- the reader --- */

/* Owned: the same events when no display was updated. */
static json_t *apply_updates(const json_t *events)
{
    json_t *shown = json_array(), *places = json_object(), *ev;
    size_t i;

    json_array_foreach((json_t *)events, i, ev) {
        const char *id = json_string_value(json_object_get(ev, "display_id"));
        bool update = id && json_is_true(json_object_get(ev, "update"));
        const json_t *place = update ? json_object_get(places, id) : NULL;
        if (place) {
            json_array_set(shown, (size_t)json_integer_value(place), ev);
            continue;
        }
        if (id)
            json_object_set_new_nocheck(places, id,
                                        json_integer((json_int_t)json_array_size(shown)));
        json_array_append(shown, ev);
    }
    json_decref(places);
    return shown;
}

void event_reader_init(struct event_reader *r, const json_t *events)
{
    *r = (struct event_reader){.events = apply_updates(events)};
    buf_init(&r->settled, TEXT_MAX);
}

void event_reader_done(struct event_reader *r)
{
    buf_done(&r->settled);
    json_decref(r->events);
    *r = (struct event_reader){0};
}

static void settle(struct event_reader *r)
{
    if (r->text.n == 0 || !memchr(r->text.p, '\r', r->text.n))
        return;
    buf_clear(&r->settled);
    text_settle(&r->settled, r->text);
    r->text = buf_str(&r->settled);
}

bool event_reader_next(struct event_reader *r)
{
    const json_t *data;

    r->event = json_array_get(r->events, r->at++);
    r->kind = kind_of(r->event);
    r->text = event_text(r->event, "text");
    r->image = r->preview = NULL;
    if (r->settles && (r->kind == EVENT_STDOUT || r->kind == EVENT_STDERR))
        settle(r);
    if (r->kind != EVENT_DISPLAY && r->kind != EVENT_RESULT)
        return r->event;
    data = json_object_get(r->event, "data");
    r->text = event_text(data, "text/plain");
    r->preview = find_preview(data, &r->preview_mime);
    r->image = find_image(data, &r->mime);
    if (!r->image) { /* the original was larger than a bundle may be */
        r->image = r->preview;
        r->mime = r->preview_mime;
    }
    r->images += r->image != NULL;
    return true;
}

/* --- parts of a transcript --- */

void events_output(const json_t *events, unsigned kinds, struct buf *ret)
{
    const json_t *ev;
    size_t i;

    json_array_foreach((json_t *)events, i, ev) {
        if (kinds & IN(kind_of(ev)))
            buf_put(ret, event_text(ev, "text"));
    }
}

const json_t *events_image(const json_t *events, size_t n, const char **ret_mime)
{
    const json_t *found = NULL;
    struct event_reader r;

    event_reader_init(&r, events);
    while (!found && event_reader_next(&r))
        found = r.images == n ? r.image : NULL;
    *ret_mime = r.mime;
    event_reader_done(&r);
    return found;
}

const json_t *events_error(const json_t *events)
{
    for (size_t i = json_array_size(events); i > 0; i--)
        if (event_is(json_array_get(events, i - 1), "error"))
            return json_array_get(events, i - 1);
    return NULL;
}
