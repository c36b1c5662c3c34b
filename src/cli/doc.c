/* --json: one document with every event and outcome. */
#include "cli/cli_int.h"

#define DOC_TEXT_MAX (4 * GiB) /* the engine keeps less; this only stops a runaway */

/* --- values --- */

static json_t *text_value(struct str s)
{
    struct buf clean;
    struct err e;
    json_t *v;

    if (str_utf8_len(s) == s.n)
        return json_stringn_nocheck(s.n ? s.p : "", s.n);
    buf_init(&clean, DOC_TEXT_MAX);
    if (utf8_put(&clean, s, &e) < 0)
        clean.n = 0;
    v = json_stringn_nocheck(clean.n ? clean.p : "", clean.n);
    buf_done(&clean);
    return v;
}

static json_t *base64_value(struct str s)
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

static bool is_text_mime(struct str mime)
{
    return (mime.n > 5 && memcmp(mime.p, "text/", 5) == 0) || str_is(mime, "application/json") ||
           str_is(mime, "image/svg+xml");
}

/* jansson wants keys as C strings; ours are strangers' bytes. */
static void set_key(json_t *object, struct str key, json_t *value)
{
    json_t *clean = text_value(key);

    json_object_set_new_nocheck(object, json_string_value(clean), value);
    json_decref(clean);
}

static void set_text(json_t *object, const char *key, struct str s)
{
    json_object_set_new_nocheck(object, key, text_value(s));
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

static void put_bundle(json_t *v, const struct event *ev)
{
    json_t *data = json_object();

    for (size_t i = 0; i < ev->bundle.count; i++) {
        const struct mime_part *p = &ev->bundle.part[i];
        set_key(data, p->mime, is_text_mime(p->mime) ? text_value(p->data) : base64_value(p->data));
    }
    json_object_set_new(v, "data", data);
    if (ev->bundle.display_id.n > 0)
        set_text(v, "display_id", ev->bundle.display_id);
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

/* Output arrives in whatever pieces the pipe gave. Pieces of one stream with nothing between them
 * become one event, so that the document does not depend on timing. */
static void flush(struct doc *d, enum event_kind kind, bool last)
{
    struct stream *st = &d->stream[kind];
    struct str text = buf_str(&st->text);
    size_t torn = last ? 0 : utf8_torn(text);

    text.n -= torn;
    if (text.n > 0) {
        json_t *v = event_value(kind);
        set_text(v, "text", text);
        set_flag(v, "late", st->late);
        json_array_append_new(d->events, v);
        memmove(st->text.p, st->text.p + text.n, torn); /* its other half comes later */
    }
    st->text.n = torn;
}

static void flush_all(struct doc *d, bool last)
{
    flush(d, EVENT_STDOUT, last);
    flush(d, EVENT_STDERR, last);
}

static void put_output(struct doc *d, const struct event *ev)
{
    struct stream *st = &d->stream[ev->kind];
    struct err e;

    flush(d, ev->kind == EVENT_STDOUT ? EVENT_STDERR : EVENT_STDOUT, false);
    if (st->text.n > 0 && st->late != ev->late)
        flush(d, ev->kind, true);
    st->late = ev->late;
    if (buf_put(&st->text, ev->text, &e) < 0)
        log_warn("output left out of the document: %s", e.text);
}

void doc_event(struct doc *d, const struct event *ev)
{
    json_t *v;

    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR) {
        put_output(d, ev);
        return;
    }
    flush_all(d, false);
    v = event_value(ev->kind);
    if (ev->kind == EVENT_DISPLAY || ev->kind == EVENT_RESULT)
        put_bundle(v, ev);
    else if (ev->kind == EVENT_ERROR)
        put_error(v, ev);
    else if (ev->kind == EVENT_FILE)
        put_file(v, ev);
    else if (ev->kind == EVENT_STATUS)
        set_text(v, "text", ev->text);
    set_flag(v, "late", ev->late);
    json_array_append_new(d->events, v);
}

/* --- the document --- */

void doc_init(struct doc *d)
{
    *d = (struct doc){.root = json_object(), .executions = json_array()};
    json_object_set_new(d->root, "version", json_integer(1));
    json_object_set_new(d->root, "executions", d->executions);
    for (size_t i = 0; i < COUNT(d->stream); i++)
        buf_init(&d->stream[i].text, DOC_TEXT_MAX);
}

void doc_done(struct doc *d)
{
    json_decref(d->root);
    for (size_t i = 0; i < COUNT(d->stream); i++)
        buf_done(&d->stream[i].text);
    *d = (struct doc){0};
}

void doc_begin(struct doc *d, const struct source *src)
{
    json_t *one = json_object();

    set_text(one, "kind", src->kind == EXEC_COMMAND ? STR("command") : STR("cell"));
    set_text(one, "source", str_of(src->label));
    d->events = json_array();
    json_object_set_new(one, "events", d->events);
    json_array_append_new(d->executions, one);
}

void doc_outcome(struct doc *d, const struct outcome *o)
{
    json_t *one = json_array_get(d->executions, json_array_size(d->executions) - 1);
    json_t *v = json_object(), *limits = json_array();

    flush_all(d, true);
    set_text(v, "status", str_of(outcome_status_name(o->status)));
    for (enum limit l = LIMIT_NONE + 1; l < LIMIT__COUNT; l++)
        if (o->limits_hit & IN(l))
            json_array_append_new(limits, json_string(limit_name(l)));
    json_object_set_new(v, "limits_hit", limits);
    json_object_set_new(v, "state_lost", json_boolean(o->state_lost));
    json_object_set_new(v, "exit_code", json_integer(o->exit_code));
    set_text(v, "message", str_of(o->line));
    json_object_set_new(v, "wall_ms", json_real((double)o->wall_us / 1000));
    json_object_set_new(v, "cpu_ms", json_real((double)o->cpu_us / 1000));
    set_num(v, "memory_peak_bytes", o->memory_peak_bytes);
    set_num(v, "output_bytes", o->output_bytes);
    set_num(v, "output_dropped", o->output_dropped);
    json_object_set_new(one, "outcome", v);
}

char *doc_print(struct doc *d, int status, const struct err *failed)
{
    if (failed)
        set_text(d->root, "error", str_of(failed->text));
    json_object_set_new(d->root, "exit", json_integer(status));
    return json_dumps(d->root, JSON_COMPACT | JSON_REAL_PRECISION(12));
}
