/* What came of a script: its value, the lines it printed, how long it took, what went wrong. */
#include "doors/prisme/prisme_int.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUE_MIME "application/vnd.retort.value+json"
#define LOG_LINES  10000 /* the rest is one line that tells how many there were */
#define OUTPUT_MAX (256 * MiB)

static struct str type_of(const json_t *ev)
{
    return json_view(json_object_get(ev, "type"));
}

/* --- what was printed --- */

static void put_lines(json_t *logs, struct str text, size_t *left_out)
{
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        if (json_array_size(logs) < LOG_LINES)
            json_array_append_new(logs, record_text((struct str){text.p, n}));
        else
            ++*left_out;
        n += end != NULL;
        text = (struct str){text.p + n, text.n - n};
    }
}

static json_t *logs_of(const json_t *events)
{
    json_t *logs = json_array();
    size_t left_out = 0, i;
    const json_t *ev;
    char line[64];

    json_array_foreach(events, i, ev) if (str_is(type_of(ev), "stdout") ||
                                          str_is(type_of(ev), "stderr") ||
                                          str_is(type_of(ev), "status"))
        put_lines(logs, json_view(json_object_get(ev, "text")), &left_out);
    if (left_out > 0) {
        snprintf(line, sizeof(line), "... %zu more lines", left_out);
        json_array_append_new(logs, json_string(line));
    }
    return logs;
}

static json_t *stdout_of(const json_t *events)
{
    struct buf b;
    struct err e;
    const json_t *ev;
    json_t *v;
    size_t i;

    buf_init(&b, OUTPUT_MAX);
    json_array_foreach(events, i, ev) if (str_is(type_of(ev), "stdout"))(void) !buf_put(
        &b, json_view(json_object_get(ev, "text")), &e);
    while (b.n > 0 && (b.p[b.n - 1] == '\n' || b.p[b.n - 1] == '\r'))
        b.n--;
    v = b.n > 0 ? record_text(buf_str(&b)) : json_null();
    buf_done(&b);
    return v;
}

/* --- its value --- */

/* The guest wrote it, so it is a stranger's; what cannot be read is a text. */
static json_t *read_value(const json_t *data)
{
    const json_t *text = json_object_get(data, VALUE_MIME);
    AUTO_FREE char *bytes = NULL;
    struct str s = json_view(text);
    size_t n = 0;
    json_t *v = NULL;
    struct err e;

    if (s.n == 0)
        return NULL;
    bytes = mem_zalloc(s.n + 1); /* on record it is base64, as its MIME type is no text's */
    if (!base64_decode(s, bytes, &n) || json_read_any((struct str){bytes, n}, &v, &e) < 0)
        return NULL;
    return v;
}

static json_t *result_of(const json_t *events)
{
    json_t *v = NULL;
    const json_t *ev;
    size_t i;

    json_array_foreach(events, i, ev)
    {
        if (!str_is(type_of(ev), "result"))
            continue;
        json_decref(v);
        v = read_value(json_object_get(ev, "data"));
    }
    return v ? v : stdout_of(events);
}

/* --- errors --- */

static json_t *error_object(json_t *code, json_t *message, json_t *stack)
{
    return json_pack("{s:o, s:o, s:o}", "code", code, "message", message, "stack", stack);
}

static json_t *copy_of(const json_t *v)
{
    return json_is_string(v) ? json_incref((json_t *)v) : json_string("");
}

static json_t *raised(const json_t *events)
{
    const json_t *ev, *last = NULL;
    size_t i;

    json_array_foreach(events, i, ev) if (str_is(type_of(ev), "error")) last = ev;
    return last ? error_object(copy_of(json_object_get(last, "name")),
                               copy_of(json_object_get(last, "message")),
                               copy_of(json_object_get(last, "traceback")))
                : NULL;
}

/* How it ended where no exception tells. */
static json_t *error_of(const struct exec_info *info)
{
    static const char *const codes[][2] = {
        {"timeout",      "ExecutionTimeout"      },
        {"memory",       "MemoryLimitExceeded"   },
        {"interrupted",  "ExecutionInterrupted"  },
        {"died",         "InterpreterDied"       },
        {"session_lost", "CodeSandboxUnreachable"},
    };
    struct str status = json_view(json_object_get(info->outcome, "status"));
    json_t *error;

    if (str_is(status, "ok"))
        return NULL;
    for (size_t i = 0; i < COUNT(codes); i++)
        if (str_is(status, codes[i][0]))
            return error_object(json_string(codes[i][1]),
                                copy_of(json_object_get(info->outcome, "message")),
                                json_string(""));
    error = raised(info->events);
    return error
               ? error
               : error_object(json_string("ExecutionFailed"),
                              copy_of(json_object_get(info->outcome, "message")), json_string(""));
}

/* --- files that a script leaves --- */

static json_t *files_of(const struct exec_info *info)
{
    json_t *files = json_array();
    const json_t *ev;
    size_t i;

    json_array_foreach(info->events, i,
                       ev) if (str_is(type_of(ev), "file") &&
                               !str_is(json_view(json_object_get(ev, "change")), "deleted"))
        json_array_append_new(
            files, json_pack("{s:O, s:O, s:O}", "path", json_object_get(ev, "path"), "size",
                             json_object_get(ev, "size"), "mime", json_object_get(ev, "mime")));
    return files;
}

json_t *value_of_run(const struct exec_info *info, uint64_t ms)
{
    json_t *error = error_of(info), *files = files_of(info);
    json_t *v =
        json_pack("{s:o, s:o, s:I}", "result", error ? json_null() : result_of(info->events),
                  "logs", logs_of(info->events), "duration", (json_int_t)ms);

    if (error)
        json_object_set_new(v, "error", error);
    if (json_array_size(files) > 0) {
        json_object_set(v, "files", files);
        json_object_set_new(v, "session", json_string(info->row->session));
    }
    json_decref(files);
    return v;
}

json_t *value_of_failure(const char *code, const char *message, uint64_t ms)
{
    json_t *error = error_object(json_string(code), record_text(str_of(message)), json_string(""));

    return json_pack("{s:n, s:[], s:o, s:I}", "result", "logs", "error", error, "duration",
                     (json_int_t)ms);
}

json_t *value_of_blocked(void)
{
    return json_pack("{s:n, s:[], s:i, s:s}", "result", "logs", "duration", 0, "blocked",
                     "user_first");
}

bool value_is_error(const json_t *value)
{
    return json_object_get(value, "error") != NULL;
}
