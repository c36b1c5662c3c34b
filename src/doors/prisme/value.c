/* The answer to a script: its result, the printed lines, its duration and its error. */
#include "doors/prisme/prisme_int.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUE_MIME "application/vnd.retort.value+json"
#define LOG_LINES  10000 /* one more line tells how many are left out */
#define OUTPUT_MAX (256 * MiB)

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
    struct event_reader r;
    size_t left_out = 0;
    char line[64];

    event_reader_init(&r, events);
    r.settles = true;
    while (event_reader_next(&r))
        if (IN(r.kind) & (IN(EVENT_STDOUT) | IN(EVENT_STDERR) | IN(EVENT_STATUS)))
            put_lines(logs, r.text, &left_out);
    event_reader_done(&r);
    if (left_out > 0) {
        snprintf(line, sizeof(line), "... %zu more lines", left_out);
        json_array_append_new(logs, json_string(line));
    }
    return logs;
}

static json_t *stdout_of(const json_t *events)
{
    AUTO(buf_done) struct buf b = BUF(OUTPUT_MAX);

    events_output(events, IN(EVENT_STDOUT), &b);
    while (b.n > 0 && (b.p[b.n - 1] == '\n' || b.p[b.n - 1] == '\r'))
        b.n--;
    return b.n > 0 ? record_text(buf_str(&b)) : json_null();
}

/* --- its value --- */

/* {"value", "notes"}: the guest wrote it, so it cannot be trusted. NULL and *e: it cannot be read.
 */
static json_t *read_value(struct str s, struct err *e)
{
    json_t *v = NULL;

    if (s.n == 0) {
        err_set(e, ERR_CALLER, "it did not arrive whole");
        return NULL;
    }
    if (json_read_any(s, &v, e) < 0)
        return NULL;
    if (json_object_get(v, "value"))
        return v;
    json_decref(v);
    err_set(e, ERR_CALLER, "it is not what was expected");
    return NULL;
}

/* --- errors --- */

static json_t *error_object(struct str code, struct str message, struct str stack)
{
    return json_pack("{s:o, s:o, s:o}", "code", record_text(code), "message", record_text(message),
                     "stack", record_text(stack));
}

/* Sets result to the value that the script has told of, else to what was printed. */
static void put_result(json_t *answer, const json_t *events)
{
    struct str told = {0};
    struct event_reader r;
    struct err e;
    char text[sizeof(e.text) + 128];
    json_t *v;

    event_reader_init(&r, events);
    while (event_reader_next(&r))
        if (r.kind == EVENT_RESULT)
            told = event_text(json_object_get(r.event, "data"), VALUE_MIME);
    event_reader_done(&r);
    if (!told.p) {
        json_object_set_new(answer, "result", stdout_of(events));
        return;
    }
    v = read_value(told, &e);
    if (!v) {
        snprintf(text, sizeof(text), "the script has ended well, and its result cannot be read: %s",
                 e.text);
        json_object_set_new(answer, "error",
                            error_object(STR("ResultUnreadable"), str_of(text), STR("")));
        return;
    }
    json_object_set(answer, "result", json_object_get(v, "value"));
    if (json_array_size(json_object_get(v, "notes")) > 0)
        json_object_set(answer, "notes", json_object_get(v, "notes"));
    json_decref(v);
}

/* How it ended. What is left of the session is of no use to a script: the next has another. */
static struct str cause_of(const struct outcome *o)
{
    return o->state_at > 0 ? (struct str){o->line, o->state_at} : str_of(o->line);
}

/* NULL: the script ended well. */
static json_t *error_of(const struct exec_info *info)
{
    static const char *const codes[][2] = {
        {"timeout",      "ExecutionTimeout"      },
        {"memory",       "MemoryLimitExceeded"   },
        {"interrupted",  "ExecutionInterrupted"  },
        {"died",         "InterpreterDied"       },
        {"session_lost", "CodeSandboxUnreachable"},
    };
    struct str status = event_text(info->outcome, "status"), code = STR("ExecutionFailed");
    const json_t *raised = events_error(info->events);

    if (str_is(status, "ok"))
        return NULL;
    for (size_t i = 0; i < COUNT(codes); i++)
        if (str_is(status, codes[i][0])) {
            code = str_of(codes[i][1]);
            raised = NULL;
        }
    if (raised)
        return error_object(event_text(raised, "name"), event_text(raised, "message"),
                            event_text(raised, "traceback"));
    return error_object(code, cause_of(info->how), STR(""));
}

/* --- files that a script leaves --- */

static json_t *files_of(const struct exec_info *info)
{
    json_t *files = json_array();
    const json_t *ev;
    size_t i;

    json_array_foreach(info->events, i, ev) {
        if (event_is(ev, "file") && !str_is(event_text(ev, "change"), "deleted"))
            json_array_append_new(
                files, json_pack("{s:O, s:O, s:O}", "path", json_object_get(ev, "path"), "size",
                                 json_object_get(ev, "size"), "mime", json_object_get(ev, "mime")));
    }
    return files;
}

json_t *value_of_run(const struct exec_info *info)
{
    json_t *error = error_of(info), *files = files_of(info);
    json_t *v = json_pack("{s:n, s:o, s:I}", "result", "logs", logs_of(info->events), "duration",
                          (json_int_t)(info->how->wall_us / 1000));

    if (error)
        json_object_set_new(v, "error", error);
    else
        put_result(v, info->events);
    if (json_array_size(files) > 0) {
        json_object_set(v, "files", files);
        json_object_set_new(v, "session", json_string(info->row->session));
    }
    json_decref(files);
    return v;
}

json_t *value_of_failure(const char *code, const char *message)
{
    return json_pack("{s:n, s:[], s:o, s:i}", "result", "logs", "error",
                     error_object(str_of(code), str_of(message), STR("")), "duration", 0);
}

json_t *value_of_blocked(void)
{
    return json_pack("{s:n, s:[], s:i, s:s}", "result", "logs", "duration", 0, "blocked",
                     "user_first");
}
