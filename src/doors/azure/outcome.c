/* The result of an execution, in the shape of each dialect. */
#include "doors/azure/azure_int.h"

#include <stdio.h>

/* --- streams --- */

/* On a line of its own. */
static void put_line(struct buf *b, struct str s)
{
    if (s.n == 0)
        return;
    if (b->n > 0 && b->p[b->n - 1] != '\n')
        buf_put(b, STR("\n"));
    buf_put(b, s);
    if (s.p[s.n - 1] != '\n')
        buf_put(b, STR("\n"));
}

void streams_read(struct streams_text *ret, const struct exec_info *info)
{
    struct str status = event_text(info->outcome, "status");
    struct event_reader r;

    buf_init(&ret->out, 2 * OUTPUT_MAX);
    buf_init(&ret->err, 2 * OUTPUT_MAX);
    buf_init(&ret->note, 2 * OUTPUT_MAX);
    event_reader_init(&r, info->events);
    while (event_reader_next(&r)) {
        if (r.kind == EVENT_STDOUT)
            buf_put(&ret->out, r.text);
        else if (r.kind == EVENT_STDERR)
            buf_put(&ret->err, r.text);
        else if (r.kind == EVENT_ERROR)
            put_line(&ret->err, event_text(r.event, "traceback"));
        else if (r.kind == EVENT_STATUS)
            buf_printf(&ret->note, "%s%.*s", ret->note.n ? "; " : "", (int)r.text.n, r.text.p);
    }
    event_reader_done(&r);
    if (status.n && !str_is(status, "ok") && !str_is(status, "raised"))
        put_line(&ret->err, event_text(info->outcome, "message"));
}

void streams_done(struct streams_text *s)
{
    buf_done(&s->out);
    buf_done(&s->err);
    buf_done(&s->note);
}

/* --- values --- */

/* NULL: the event shows no image. */
static json_t *image_of(const struct event_reader *r)
{
    bool is_svg = r->image && strcmp(r->mime, "image/svg+xml") == 0;

    if (!r->image)
        return NULL;
    return json_pack("{s:s, s:s, s:o}", "type", "image", "format",
                     is_svg ? "svg" : r->mime + strlen("image/"), "base64_data",
                     is_svg ? record_base64(json_view(r->image)) : json_incref((json_t *)r->image));
}

json_t *images_of(const json_t *events)
{
    json_t *all = json_array();
    struct event_reader r;

    event_reader_init(&r, events);
    while (event_reader_next(&r))
        if (r.image)
            json_array_append_new(all, image_of(&r));
    event_reader_done(&r);
    return all;
}

/* NULL: the event has no value. */
static json_t *value_in(const struct event_reader *r, bool jupyter)
{
    if (r->kind != EVENT_RESULT && r->kind != EVENT_DISPLAY)
        return NULL;
    if (jupyter)
        return json_incref(json_object_get(r->event, "data"));
    return r->image || r->kind == EVENT_DISPLAY ? image_of(r) : literal_value(r->text);
}

json_t *value_of(const json_t *events, bool jupyter)
{
    json_t *last = NULL;
    struct event_reader r;

    event_reader_init(&r, events);
    while (event_reader_next(&r)) {
        json_t *value = value_in(&r, jupyter);
        if (!value)
            continue;
        json_decref(last);
        last = value;
    }
    event_reader_done(&r);
    return last ? last : json_string("");
}

/* --- parts that dialects share --- */

/* As many characters of s as it may have; 0: all. */
static struct str head_of(struct str s, uint64_t most)
{
    size_t n = 0;
    uint64_t seen = 0;

    if (most == 0)
        return s;
    while (n < s.n && seen < most) {
        size_t one = utf8_char((struct str){s.p + n, s.n - n});
        n += one ? one : 1;
        seen++;
    }
    return (struct str){s.p, n};
}

static int64_t wall_ms(const struct exec_info *info)
{
    return (int64_t)(json_number_value(json_object_get(info->outcome, "wall_ms")) + 0.5);
}

/* stdout and stderr; how long the whole is, where it is cut; a note, where there is one. */
static void put_streams(json_t *to, const struct azure_exec_options *w,
                        const struct exec_info *info)
{
    struct streams_text s;
    const struct {
        const char *name, *length;
        const struct buf *b;
    } rows[] = {
        {"stdout", "stdoutLength", &s.out},
        {"stderr", "stderrLength", &s.err},
    };

    streams_read(&s, info);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str all = buf_str(rows[i].b), head = head_of(all, w->most);
        json_object_set_new(to, rows[i].name, record_text(head));
        if (head.n < all.n)
            json_object_set_new(to, rows[i].length, json_integer((json_int_t)all.n));
    }
    if (s.note.n > 0)
        json_object_set_new(to, "note", record_text(buf_str(&s.note)));
    streams_done(&s);
}

static void put_value(json_t *to, const char *name, const struct azure_exec_options *w,
                      const json_t *events)
{
    json_t *images = images_of(events);

    json_object_set_new(to, name, value_of(events, w->jupyter));
    if (json_array_size(images) > 1) /* one value cannot say it */
        json_object_set(to, "images", images);
    json_decref(images);
}

static bool went_well(const struct exec_info *info)
{
    return str_is(event_text(info->outcome, "status"), "ok");
}

/* --- {"properties": {...}}, and the same without it --- */

static json_t *show_flat(const struct azure_exec_options *w, const struct exec_info *info)
{
    json_t *v = json_pack("{s:s}", "status", went_well(info) ? "Success" : "Failure");

    put_streams(v, w, info);
    put_value(v, "result", w, info->events);
    json_object_set_new(v, "executionTimeInMilliseconds", json_integer(wall_ms(info)));
    return v;
}

static json_t *show_nested(const struct azure_exec_options *w, const struct exec_info *info)
{
    json_t *v = json_pack("{s:s, s:o}", "$id", "1", "properties", show_flat(w, info));
    json_t *props = json_object_get(v, "properties");

    json_object_set_new(props, "$id", json_string("2"));
    json_object_set(props, "executionResult", json_object_get(props, "result"));
    return v;
}

/* --- {"id", "status", "result": {...}, "error"} --- */

static const struct {
    const char *outcome, *status, *code;
} endings[] = {
    {"ok",           "Succeeded",  NULL              },
    {"raised",       "Failed",     "ExecutionFailed" },
    {"timeout",      "Failed",     "ExecutionTimeout"},
    {"memory",       "Failed",     "OutOfMemory"     },
    {"interrupted",  "Canceled",   "Canceled"        },
    {"died",         "Failed",     "KernelDied"      },
    {"session_lost", "Failed",     "SessionLost"     },
    {"queued",       "NotStarted", NULL              },
    {"running",      "Running",    NULL              },
};

static size_t ending_of(const struct exec_info *info)
{
    struct str status =
        info->outcome ? event_text(info->outcome, "status") : str_of(info->row->status);

    for (size_t i = 0; i < COUNT(endings); i++)
        if (str_is(status, endings[i].outcome))
            return i;
    return 1;
}

/* The exception by its name, or what ended the code. */
static json_t *show_error(const struct exec_info *info, const char *code)
{
    const json_t *raised = strcmp(code, "ExecutionFailed") == 0 ? events_error(info->events) : NULL;
    struct str name = raised ? event_text(raised, "name") : str_of(code);
    struct str message = event_text(raised ? raised : info->outcome, "message");

    return json_pack("{s:{s:o, s:o}}", "error", "code", record_text(name), "message",
                     record_text(message));
}

/* Of a command the exit status itself. */
static json_t *status_of(const struct azure_exec_options *w, const struct exec_info *info,
                         size_t ending)
{
    json_int_t code = json_integer_value(json_object_get(info->outcome, "exit_code"));

    if (!w->shell || !info->outcome)
        return json_string(endings[ending].status);
    if (code == 0 && !went_well(info))
        code = -1;
    return json_sprintf("%" JSON_INTEGER_FORMAT, code);
}

static json_t *show_envelope(const struct azure_exec_options *w, struct str identifier,
                             const struct exec_info *info)
{
    size_t ending = ending_of(info);
    json_t *v = json_pack("{s:s, s:o, s:s, s:o, s:n, s:n}", "id",
                          *w->operation ? w->operation : info->row->id, "identifier",
                          record_text(identifier), "executionType",
                          w->background ? "Asynchronous" : "Synchronous", "status",
                          status_of(w, info, ending), "result", "error");

    if (info->outcome) {
        json_t *result = json_object();
        put_streams(result, w, info);
        if (!w->shell)
            put_value(result, "executionResult", w, info->events);
        json_object_set_new(result, "executionTimeInMilliseconds", json_integer(wall_ms(info)));
        json_object_set_new(v, "result", result);
    }
    /* An exit status that is not 0 is no error of the execution. */
    if (info->outcome && endings[ending].code &&
        !(w->shell && strcmp(endings[ending].outcome, "raised") == 0))
        json_object_set_new(v, "error", show_error(info, endings[ending].code));
    return v;
}

/* As the shell image has it. */
static json_t *show_shell(const struct azure_exec_options *w, struct str identifier,
                          const struct exec_info *info)
{
    size_t ending = ending_of(info);
    bool well = went_well(info);
    bool late = str_is(event_text(info->outcome, "status"), "timeout");
    json_t *result = json_object();

    put_streams(result, w, info);
    json_object_set_new(result, "executionTimeInMilliseconds", json_integer(wall_ms(info)));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "status", well ? "Succeeded" : "Failed",
                     "errorName", endings[ending].code ? endings[ending].code : "", "errorMessage",
                     record_text(well ? STR("") : event_text(info->outcome, "message")), "exitCode",
                     late ? json_integer(-1)
                          : json_incref(json_object_get(info->outcome, "exit_code")),
                     "identifier", record_text(identifier), "result", result);
}

json_t *outcome_show(const struct azure_exec_options *w, struct str identifier,
                     const struct exec_info *info)
{
    switch (w->dialect) {
    case DIALECT_NESTED:
        return show_nested(w, info);
    case DIALECT_FLAT:
        return show_flat(w, info);
    case DIALECT_SHELL:
        return show_shell(w, identifier, info);
    default:
        return show_envelope(w, identifier, info);
    }
}
