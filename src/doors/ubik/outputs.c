/*
 * The outputs of an execution, made of the agent's record: the seven members that Ubik
 * documents, and answer, status and usage. Clients know a session by its sandbox_id, so
 * the log names that, too.
 */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

#define LOGS_BYTES (2 * MiB)

/* --- files --- */

static json_t *link_to(const struct tool_execution *x, struct str path, const char *tool,
                       const char *base)
{
    char uri[URI_MAX];
    AUTO_FREE char *coded = mem_zalloc(3 * path.n + 1);

    if (!base) {
        const char *named =
            uri_of_file(uri, json_view(json_object_get(x->record, "sandbox_id")), path);
        return named ? json_string(named) : json_null();
    }
    url_encode(coded, path);
    return json_sprintf("%s/assets/tools/%s/%s/%s", base, tool, x->id, coded);
}

static json_t *reference(const struct tool_execution *x, const json_t *file, const char *base,
                         bool image)
{
    struct str path = json_view(json_object_get(file, "path"));
    char id[UUID_MAX];

    uuid_of(id, "tool", json_string_value(json_object_get(x->body, "tool")));
    return json_pack("{s:s, s:O, s:o, s:s, s:s, s:O*, s:O*}", "type",
                     image ? "media_reference" : "file_reference", "asset_filename",
                     json_object_get(file, "path"), "url", link_to(x, path, id, base), "tool_id",
                     id, "execution_id", x->id, "mime", json_object_get(file, "mime"), "size",
                     json_object_get(file, "size"));
}

static json_t *files_of(const struct tool_execution *x, const char *base, bool images)
{
    json_t *list = json_array();
    const json_t *file;
    size_t i;

    json_array_foreach(json_object_get(x->record, "files"), i, file)
        if (json_is_true(json_object_get(file, "image")) == images)
            json_array_append_new(list, reference(x, file, base, images));
    return list;
}

/* --- the log --- */

static json_t *logs_of(const struct tool_execution *x)
{
    struct str logs = json_view(json_object_get(x->record, "logs"));
    struct str session = json_view(json_object_get(x->record, "sandbox_id"));
    struct str sandbox = json_view(json_object_get(x->body, "sandbox"));
    const char *end = logs.n ? memchr(logs.p, '\n', logs.n) : NULL;
    struct str line = {logs.p, end ? (size_t)(end - logs.p) : logs.n};
    const char *at = session.n ? memmem(line.p, line.n, session.p, session.n) : NULL;
    AUTO(buf_done) struct buf b = BUF(LOGS_BYTES);

    if (!at)
        return record_text(logs);
    buf_put(&b, (struct str){logs.p, (size_t)(at - logs.p)});
    buf_put(&b, sandbox);
    at += session.n;
    buf_put(&b, (struct str){at, logs.n - (size_t)(at - logs.p)});
    return record_text(buf_str(&b));
}

/* --- the outputs --- */

static json_t *or_else(json_t *v, json_t *otherwise)
{
    if (!v || json_is_null(v))
        return otherwise;
    json_decref(otherwise);
    return json_incref(v);
}

static json_t *error_of(const struct tool_execution *x)
{
    json_t *error = json_object_get(x->body, "error");

    if (!error)
        error = json_object_get(x->record, "error");
    if (json_is_object(error))
        return json_incref(error);
    if (json_is_true(json_object_get(x->body, "agent")) && !x->record)
        return json_pack("{s:s, s:s}", "code", "RecordGone", "message",
                         "The record of this execution is not kept any more.");
    if (str_is(json_view(json_object_get(x->record, "status")), "cancelled"))
        return json_pack("{s:s, s:s}", "code", "Cancelled", "message",
                         "The execution was stopped.");
    return NULL;
}

static json_t *skill_outputs(const struct tool_execution *x, const char *base)
{
    bool good = str_is(json_view(json_object_get(x->printed, "status")), "ok");
    json_t *sandbox = json_object_get(x->body, "sandbox");

    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:O, s:s}", "status",
                     good ? "success" : "error", "action", "executed", "stdout",
                     or_else(json_object_get(x->printed, "stdout"), json_string("")), "stderr",
                     or_else(json_object_get(x->printed, "stderr"), json_string("")), "artifacts",
                     files_of(x, base, true), "generated_files", files_of(x, base, false),
                     "sandbox_id", sandbox, "execution_id", x->id);
}

json_t *outputs_of(const struct tool_execution *x, const char *base)
{
    const char *tool = json_string_value(json_object_get(x->body, "tool"));
    struct str sandbox = json_view(json_object_get(x->body, "sandbox"));
    json_t *ready = json_object_get(x->body, "outputs"), *untraced, *error, *v;

    if (ready)
        return json_deep_copy(ready);
    if (x->printed && catalog_named(tool)->kind == CATALOG_SKILL)
        return skill_outputs(x, base);
    v = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "sandbox_id",
        sandbox.n ? record_text(sandbox) : json_null(), "plan",
        or_else(json_object_get(x->record, "plan"), json_array()), "logs", logs_of(x),
        "total_rounds", or_else(json_object_get(x->record, "total_rounds"), json_integer(0)),
        "generated_files", files_of(x, base, false), "artifacts", files_of(x, base, true),
        "execution_id", x->id, "answer", or_else(json_object_get(x->record, "answer"), json_null()),
        "status", or_else(json_object_get(x->record, "status"), json_string("failed")), "usage",
        or_else(json_object_get(x->record, "usage"), json_object()));
    untraced = json_object_get(x->record, "untraced");
    if (json_is_object(untraced))
        json_object_set(v, "untraced", untraced);
    error = error_of(x);
    if (error)
        json_object_set_new(v, "error", error);
    return v;
}

/* --- the execution --- */

static json_t *error_text(const json_t *error)
{
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));

    return error ? json_sprintf("%s: %s", code ? code : "Failed", message ? message : "")
                 : json_null();
}

static json_t *time_of(const struct tool_execution *x, const char *key)
{
    return time_json(json_integer_value(json_object_get(x->record, key)));
}

json_t *tool_execution_show(const struct tool_execution *x, const char *base)
{
    const char *tool = json_string_value(json_object_get(x->body, "tool"));
    bool over = tool_execution_is_over(x), direct = !x->record;
    json_t *error = over ? error_of(x) : NULL, *v;
    char id[UUID_MAX], user[UUID_MAX];

    uuid_of(id, "tool", tool);
    uuid_of(user, "user", x->owner);
    v = json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:O, s:o, s:o, s:O?, s:o, s:o, s:o}", "id",
                  x->id, "tool_id", id, "tool_name", tool, "user_id", user, "external_user_id",
                  *x->owner ? x->owner : NULL, "status", tool_execution_status(x), "inputs",
                  json_object_get(x->body, "inputs"), "outputs",
                  over || x->record ? outputs_of(x, base) : json_null(), "error", error_text(error),
                  "error_code", json_object_get(error, "code"), "created_at",
                  time_json(x->created_ms), "started_at",
                  direct ? time_json(x->created_ms) : time_of(x, "started_ms"), "completed_at",
                  direct ? time_json(x->created_ms) : time_of(x, "ended_ms"));
    if (json_is_object(json_object_get(x->record, "question")))
        json_object_set(v, "question", json_object_get(x->record, "question"));
    json_decref(error);
    return v;
}
