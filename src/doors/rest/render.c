/* Objects of the service as JSON. */
#include "doors/rest/rest_int.h"

#define TEXT_MAX (4 * GiB) /* the service keeps less; this only stops a runaway */

/* --- small values --- */

json_t *render_seconds(int64_t ms)
{
    return ms % 1000 == 0 ? json_integer(ms / 1000) : json_real((double)ms / 1000);
}

json_t *render_text(const char *s)
{
    return s ? record_text(str_of(s)) : json_null();
}

static json_t *text_or_null(const char *s)
{
    return s && *s ? render_text(s) : json_null();
}

char *json_line(const json_t *v)
{
    char *line = record_dump(v, true, NULL);

    return line ? line : mem_strdup("null"); /* longer than anything the service keeps */
}

json_t *render_list(json_t *data, bool more, const char *last_id)
{
    return json_pack("{s:o, s:b, s:s?}", "data", data, "has_more", (int)more, "last_id", last_id);
}

/* A JSON object kept as text, {} when there is none. */
static json_t *stored_object(const char *text)
{
    json_t *v = text ? json_loads(text, 0, NULL) : NULL;

    return v ? v : json_object();
}

/* "/v1/sessions/ID/files/PATH", every byte that is not plain escaped. */
static json_t *file_url(struct str session, struct str path)
{
    AUTO_FREE char *coded = mem_zalloc(path.n * 3 + 1);

    url_encode(coded, path);
    return json_sprintf("/v1/sessions/%.*s/files/%s", (int)session.n, session.p, coded);
}

/* --- sessions --- */

json_t *render_session(const struct session_info *info)
{
    const struct session_row *row = info->row;

    return json_pack(
        "{s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "id",
        row->id, "object", "session", "pool", render_text(row->pool), "name",
        render_text(row->name), "state", session_state_name(info->state), "created_at",
        time_json(row->created_ms), "last_used_at", time_json(row->used_ms), "sleeps_at",
        time_json(info->sleeps_ms), "expires_at", time_json(row->expires_ms), "idle_timeout",
        render_seconds(row->idle_ms), "lifetime", render_seconds(row->lifetime_ms), "executions",
        (json_int_t)row->executions, "queued", (json_int_t)info->queued, "metadata",
        stored_object(row->metadata), "memory_bytes",
        info->memory_bytes ? json_integer((json_int_t)info->memory_bytes) : json_null(), "note",
        render_text(info->note));
}

/* --- executions --- */

json_t *render_exec_brief(const struct exec_info *info)
{
    const struct exec_row *row = info->row;
    json_t *outcome = info->outcome ? json_incref(info->outcome) : json_null();

    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", row->id,
                     "object", "execution", "session", render_text(row->session), "pool",
                     render_text(row->pool), "kind", render_text(row->kind), "status",
                     render_text(row->status), "created_at", time_json(row->created_ms),
                     "started_at", time_json(row->started_ms), "ended_at", time_json(row->ended_ms),
                     "outcome", outcome, "key", text_or_null(row->key), "door",
                     render_text(row->door));
}

static json_t *joined(const json_t *events, enum event_kind kind)
{
    AUTO(buf_done) struct buf text = BUF(TEXT_MAX);

    events_output(events, IN(kind), &text);
    return json_stringn_nocheck(text.n ? text.p : "", text.n);
}

/* The last one that has a text. */
static json_t *result_text(const json_t *events)
{
    for (size_t i = json_array_size(events); i > 0; i--) {
        const json_t *ev = json_array_get(events, i - 1);
        json_t *text = json_object_get(json_object_get(ev, "data"), "text/plain");
        if (text && str_is(json_view(json_object_get(ev, "type")), "result"))
            return json_incref(text);
    }
    return json_null();
}

/* What is gone or was too large has nowhere to be had; nor is there a way back from U+FFFD to the
 * bytes of a name that is not UTF-8, which the workspace's own list has. */
static json_t *event_url(const json_t *ev, const char *session)
{
    struct str path = json_view(json_object_get(ev, "path"));

    if (str_is(json_view(json_object_get(ev, "change")), "deleted") ||
        json_is_true(json_object_get(ev, "too_large")) || memmem(path.p, path.n, "\xef\xbf\xbd", 3))
        return json_null();
    return file_url(str_of(session), path);
}

static json_t *files_made(const json_t *events, const char *session)
{
    static const char *const members[] = {"path", "change", "size", "mime"};
    json_t *files = json_array();

    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *ev = json_array_get(events, i);
        json_t *file;
        if (!str_is(json_view(json_object_get(ev, "type")), "file"))
            continue;
        file = json_object();
        for (size_t k = 0; k < COUNT(members); k++)
            json_object_set(file, members[k], json_object_get(ev, members[k]));
        json_object_set_new(file, "url", event_url(ev, session));
        json_array_append_new(files, file);
    }
    return files;
}

/* Brief, and what it is about. */
static json_t *add_record(json_t *v, const char *code, json_t *events)
{
    const char *session = json_string_value(json_object_get(v, "session"));

    json_object_set_new(v, "code", render_text(code));
    json_object_set_new(v, "files", files_made(events, session ? session : ""));
    json_object_set_new(v, "events", events ? json_incref(events) : json_array());
    return v;
}

json_t *render_exec_parts(json_t *brief, const char *code, json_t *events)
{
    json_t *v = add_record(brief, code, events);

    json_object_set_new(v, "stdout", joined(events, EVENT_STDOUT));
    json_object_set_new(v, "stderr", joined(events, EVENT_STDERR));
    json_object_set_new(v, "result", result_text(events));
    return v;
}

json_t *render_exec(const struct exec_info *info)
{
    return render_exec_parts(render_exec_brief(info), info->row->code, info->events);
}

json_t *render_audit(const struct exec_info *info)
{
    const struct exec_row *row = info->row;
    json_t *v = add_record(render_exec_brief(info), row->code, info->events);

    json_object_set_new(v, "tenant", render_text(row->tenant));
    json_object_set_new(v, "request_id", render_text(row->request));
    json_object_set_new(v, "approval", render_text(row->approval));
    return v;
}

json_t *render_event(const struct event *ev, const char *session)
{
    json_t *v = record_event(ev);

    if (ev->kind == EVENT_FILE) {
        bool there = ev->file.change != FILE_DELETED && !ev->file.too_large;
        json_object_set_new(v, "url",
                            there ? file_url(str_of(session), ev->file.path) : json_null());
    }
    return v;
}

/* --- files --- */

json_t *render_space_file(struct str session, const struct space_file *f)
{
    return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o}", "path", record_text(f->path), "size",
                     (json_int_t)f->size, "mime", render_text(f->mime), "modified_at",
                     time_json(f->mtime_ms), "sha256", render_text(f->hash), "url",
                     file_url(session, f->path));
}

json_t *render_file(const struct file_row *row)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:s, s:o, s:o}", "id", row->id, "object", "file",
                     "name", render_text(row->name), "mime", render_text(row->mime), "size",
                     (json_int_t)row->size, "sha256", row->hash, "created_at",
                     time_json(row->created_ms), "expires_at", time_json(row->expires_ms));
}

/* --- pools --- */

/* "a, b" as ["a", "b"]. */
static json_t *split(const char *text)
{
    json_t *list = json_array();
    size_t n;

    for (const char *p = text ? text : ""; *p; p += n) {
        p += strspn(p, ", \t");
        n = strcspn(p, ", \t");
        if (n > 0)
            json_array_append_new(list, record_text((struct str){p, n}));
    }
    return list;
}

static json_t *render_limits(const struct limits *l)
{
    return json_pack("{s:o, s:o, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "wall_s",
                     render_seconds((int64_t)l->wall_ms), "cpu_s",
                     l->cpu_ms ? render_seconds((int64_t)l->cpu_ms) : json_null(), "cpus",
                     (double)l->cpu_percent / 100, "memory_bytes", (json_int_t)l->memory_bytes,
                     "processes", (json_int_t)l->pids, "disk_bytes", (json_int_t)l->disk_bytes,
                     "tmp_bytes", (json_int_t)l->tmp_bytes, "open_files", (json_int_t)l->open_files,
                     "output_bytes", (json_int_t)l->output_bytes, "artifact_count",
                     (json_int_t)l->artifact_count, "artifact_bytes",
                     (json_int_t)l->artifact_bytes);
}

json_t *render_pool(const struct pool_info *info)
{
    const struct service_pool *p = info->pool;
    json_t *packages = info->packages ? json_incref(info->packages) : json_object();
    const char *mode = p->egress == EGRESS_ALLOW_LIST ? "allow-list" : "none";
    json_t *learned = json_array();

    for (size_t i = 0; i < info->learned_count; i++)
        json_array_append_new(learned, json_string(info->learned[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:o}, s:I, s:I, s:I, s:I, s:o, s:o, s:b, s:o}",
        "name", render_text(p->name), "description", render_text(p->text), "python",
        render_text(info->python), "packages", packages, "preload", split(p->preload), "learned",
        learned, "limits", render_limits(&p->limits), "egress", "mode", mode, "hosts",
        split(p->egress_hosts), "ready", (json_int_t)p->ready, "parked", (json_int_t)info->parked,
        "sessions", (json_int_t)info->live, "max_sessions", (json_int_t)p->max_sessions,
        "idle_timeout", render_seconds((int64_t)p->idle_ms), "lifetime",
        render_seconds((int64_t)p->lifetime_ms), "up", (int)info->up, "problem",
        info->up ? json_null() : render_text(info->why));
}

/* --- keys --- */

/* Comma-separated names as a list; null: none are listed. */
static json_t *render_names(const char *names)
{
    struct str rest = str_of(names), one;
    json_t *list = names ? json_array() : json_null();

    while (names && str_next(&rest, ',', &one))
        json_array_append_new(list, record_text(one));
    return list;
}

json_t *render_key(const struct key_row *row, const char *secret)
{
    json_t *v = json_pack(
        "{s:s, s:o, s:o, s:s, s:b, s:b, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "id", row->id,
        "tenant", render_text(row->tenant), "name", render_text(row->name), "hint", row->hint,
        "admin", (int)row->admin, "approver", (int)row->approver, "pools", render_names(row->pools),
        "doors", render_names(row->doors), "read_only", (int)row->read_only, "expires_at",
        time_json(row->expires_ms), "created_at", time_json(row->created_ms), "last_used_at",
        time_json(row->used_ms), "revoked_at", time_json(row->revoked_ms));

    if (secret)
        json_object_set_new(v, "secret", json_string(secret));
    return v;
}

/* --- approvals --- */

json_t *render_approval(const struct approval_row *row)
{
    char digest[2 * sizeof(row->digest) + 1];
    json_t *v;

    hex_print(digest, row->digest, sizeof(row->digest));
    v = json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:s, s:s, s:o}", "id", row->id, "object",
                  "approval", "state", approval_state_name(row->state), "tool",
                  render_text(row->tool), "text", render_text(row->text), "text_size",
                  (json_int_t)row->text_chars, "digest", digest, "scope",
                  row->lasting ? "conversation" : "once", "pool", render_text(row->pool));
    json_object_set_new(v, "session", text_or_null(row->session));
    json_object_set_new(v, "execution", text_or_null(row->execution));
    json_object_set_new(v, "key", text_or_null(row->key));
    json_object_set_new(v, "request_id", render_text(row->request));
    json_object_set_new(v, "door", render_text(row->door));
    json_object_set_new(v, "created_at", time_json(row->created_ms));
    json_object_set_new(v, "expires_at", time_json(row->expires_ms));
    json_object_set_new(v, "decided_at", time_json(row->decided_ms));
    json_object_set_new(v, "decided_by", text_or_null(row->decided_by));
    json_object_set_new(v, "decided_how", text_or_null(row->decided_how));
    json_object_set_new(v, "reason", text_or_null(row->reason));
    return v;
}

/* --- errors --- */

json_t *render_error(const struct err *e, const char *request)
{
    return json_pack("{s:s, s:o, s:n, s:s}", "type", http_type_of(e), "message",
                     e->kind == ERR_HOST ? json_string("something went wrong on our side")
                                         : render_text(e->text),
                     "param", "request_id", request);
}
