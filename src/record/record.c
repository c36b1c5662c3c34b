/* Events and outcomes as JSON. Everything a guest said is made UTF-8 on the way. */
#include "record/record.h"

#define TEXT_MAX   (4 * GiB) /* the engine keeps less; this only stops a runaway */
#define VALUE_COST 512       /* of an event beside its texts, as jansson keeps it */

/* "[1,1,1" takes two bytes on the wire and about forty in memory. */
#define METADATA_COST 20

/* --- values --- */

json_t *record_text(struct str s)
{
    AUTO(buf_done) struct buf clean = BUF(TEXT_MAX);
    json_t *v;

    if (str_utf8_len(s) == s.n)
        return json_stringn_nocheck(s.n ? s.p : "", s.n);
    if (utf8_put(&clean, s) < 0)
        clean.n = 0;
    v = json_stringn_nocheck(clean.n ? clean.p : "", clean.n);
    return v;
}

json_t *record_base64(struct str s)
{
    enum { PAD = 64 };
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    const unsigned char *p = (const unsigned char *)s.p;
    AUTO_FREE char *out = mem_zalloc((s.n + 2) / 3 * 4 + 1);
    char *at = out;

    for (size_t i = 0; i < s.n; i += 3) {
        size_t left = s.n - i;
        uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (left > 2 ? p[i + 2] : 0);
        *at++ = digits[v >> 18];
        *at++ = digits[v >> 12 & 63];
        *at++ = digits[left > 1 ? v >> 6 & 63 : PAD];
        *at++ = digits[left > 2 ? v & 63 : PAD];
    }
    return json_stringn_nocheck(out, (size_t)(at - out));
}

/* jansson wants keys as C strings; ours are strangers' bytes. */
static void set_key(json_t *object, struct str key, json_t *value)
{
    json_t *clean = record_text(key);

    json_object_set_new_nocheck(object, json_string_value(clean), value);
    json_decref(clean);
}

static void set_text(json_t *object, const char *key, struct str s)
{
    json_object_set_new_nocheck(object, key, record_text(s));
}

static void set_num(json_t *object, const char *key, uint64_t v)
{
    json_object_set_new(object, key, json_integer((json_int_t)v));
}

static void set_flag(json_t *object, const char *key, bool v)
{
    if (v)
        json_object_set_new(object, key, json_true());
}

static json_t *event_value(enum event_kind kind)
{
    return json_pack("{s:s}", "type", event_kind_name(kind));
}

/* --- events --- */

/* Width and height of a picture, whether HTML wants a frame of its own: how to show the data. What
 * a guest sent in place of an object is left out. */
static void put_metadata(json_t *v, struct str text)
{
    json_t *metadata = text.n > 0 ? json_loadb(text.p, text.n, 0, NULL) : NULL;

    if (json_is_object(metadata) && json_object_size(metadata) > 0)
        json_object_set(v, "metadata", metadata);
    json_decref(metadata);
}

static void put_bundle(json_t *v, const struct event *ev)
{
    json_t *data = json_object();

    for (size_t i = 0; i < ev->bundle.count; i++) {
        const struct mime_part *p = &ev->bundle.part[i];
        set_key(data, p->mime,
                mime_is_text(p->mime) ? record_text(p->data) : record_base64(p->data));
    }
    json_object_set_new(v, "data", data);
    if (ev->bundle.display_id.n > 0)
        set_text(v, "display_id", ev->bundle.display_id);
    put_metadata(v, ev->bundle.metadata);
    set_flag(v, "update", ev->bundle.update);
}

static void put_error(json_t *v, const struct event *ev)
{
    json_t *frames = json_array();

    set_text(v, "name", ev->error.type);
    set_text(v, "message", ev->error.message);
    set_text(v, "traceback", ev->error.traceback);
    for (size_t i = 0; i < ev->error.count; i++) {
        const struct frame *f = &ev->error.frame[i];
        json_t *frame = json_object();
        set_text(frame, "file", f->file);
        set_num(frame, "line", f->line);
        set_text(frame, "function", f->function);
        set_text(frame, "text", f->text);
        json_array_append_new(frames, frame);
    }
    json_object_set_new(v, "frames", frames);
}

static void put_file(json_t *v, const struct event *ev)
{
    set_text(v, "path", ev->file.path);
    set_text(v, "change", str_of(file_change_name(ev->file.change)));
    set_num(v, "size", ev->file.size);
    set_text(v, "mime", str_of(ev->file.mime));
    set_flag(v, "too_large", ev->file.too_large);
}

json_t *record_event(const struct event *ev)
{
    json_t *v = event_value(ev->kind);

    if (ev->kind == EVENT_DISPLAY || ev->kind == EVENT_RESULT)
        put_bundle(v, ev);
    else if (ev->kind == EVENT_ERROR)
        put_error(v, ev);
    else if (ev->kind == EVENT_FILE)
        put_file(v, ev);
    else if (ev->kind != EVENT_CLEAR)
        set_text(v, "text", ev->text);
    set_flag(v, "late", ev->late);
    return v;
}

json_t *record_outcome(const struct outcome *o)
{
    json_t *v = json_object(), *limits = json_array();

    set_text(v, "status", str_of(outcome_status_name(o->status)));
    for (enum limit l = LIMIT_NONE + 1; l < LIMIT__COUNT; l++)
        if (o->limits_hit & IN(l))
            json_array_append_new(limits, json_string(limit_name(l)));
    json_object_set_new(v, "limits_hit", limits);
    json_object_set_new(v, "state_lost", json_boolean(o->state_lost));
    json_object_set_new(v, "exit_code", json_integer(o->exit_code));
    set_text(v, "message", str_of(o->line));
    json_object_set_new(v, "wall_ms", json_real((double)o->wall_us / 1000));
    json_object_set_new(v, "cpu_ms",
                        o->has_cpu ? json_real((double)o->cpu_us / 1000) : json_null());
    json_object_set_new(v, "memory_peak_bytes",
                        o->has_memory ? json_integer((json_int_t)o->memory_peak_bytes)
                                      : json_null());
    set_num(v, "output_bytes", o->output_bytes);
    set_num(v, "output_dropped", o->output_dropped);
    return v;
}

/* --- a transcript --- */

void transcript_init(struct transcript *t)
{
    *t = (struct transcript){.events = json_array()};
    for (size_t i = 0; i < COUNT(t->stream); i++)
        buf_init(&t->stream[i].text, TEXT_MAX);
}

void transcript_done(struct transcript *t)
{
    json_decref(t->events);
    for (size_t i = 0; i < COUNT(t->stream); i++)
        buf_done(&t->stream[i].text);
    *t = (struct transcript){0};
}

static void flush(struct transcript *t, enum event_kind kind, bool last)
{
    struct buf *held = &t->stream[kind].text;
    struct event ev = {.kind = kind, .late = t->stream[kind].late, .text = buf_str(held)};
    size_t torn = last ? 0 : utf8_torn(ev.text);

    ev.text.n -= torn;
    if (ev.text.n > 0) {
        json_array_append_new(t->events, record_event(&ev));
        memmove(held->p, held->p + ev.text.n, torn); /* its other half comes later */
    }
    held->n = torn;
}

void transcript_flush(struct transcript *t, bool last)
{
    flush(t, EVENT_STDOUT, last);
    flush(t, EVENT_STDERR, last);
}

static size_t error_bytes(const struct event *ev)
{
    size_t n = ev->error.type.n + ev->error.message.n + ev->error.traceback.n;

    for (size_t i = 0; i < ev->error.count; i++) {
        const struct frame *f = &ev->error.frame[i];
        n += VALUE_COST + f->file.n + f->function.n + f->text.n;
    }
    return n;
}

/* Bytes that are no text become four for three. */
static size_t bundle_bytes(const struct event *ev)
{
    size_t n = ev->bundle.metadata.n * METADATA_COST;

    for (size_t i = 0; i < ev->bundle.count; i++)
        n += ev->bundle.part[i].mime.n + ev->bundle.part[i].data.n / 3 * 4 + VALUE_COST / 4;
    return n;
}

size_t transcript_cost(const struct transcript *t, const struct event *ev)
{
    size_t n = VALUE_COST + ev->text.n + ev->file.path.n;

    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR)
        return t->stream[ev->kind].text.n > 0 ? ev->text.n : n;
    if (ev->kind == EVENT_ERROR)
        return n + error_bytes(ev);
    return n + bundle_bytes(ev);
}

static void put_output(struct transcript *t, const struct event *ev)
{
    struct buf *held = &t->stream[ev->kind].text;
    struct err e;

    flush(t, ev->kind == EVENT_STDOUT ? EVENT_STDERR : EVENT_STDOUT, false);
    if (held->n > 0 && t->stream[ev->kind].late != ev->late)
        flush(t, ev->kind, true);
    t->stream[ev->kind].late = ev->late;
    buf_put(held, ev->text);
    if (buf_check(held, &e) < 0)
        log_warn("output left out of the record: %s", e.text);
}

void transcript_event(struct transcript *t, const struct event *ev)
{
    t->bytes += transcript_cost(t, ev);
    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR) {
        put_output(t, ev);
        return;
    }
    transcript_flush(t, false);
    json_array_append_new(t->events, record_event(ev));
}
