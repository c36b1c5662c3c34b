/*
 * Agent sessions: conversations whose messages are executions in one sandbox. The store
 * keeps who said what; an answer is read from the record of its execution.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

struct agent_session {
    struct request *r; /* borrowed */
    struct end_user user;
    char id[UUID_MAX];
    char *owner;  /* owned */
    json_t *body; /* owned: {"name", "sandbox", "messages": [{id, role, content?, task?, at}]} */
    int64_t created_ms;
    void (*then)(struct agent_session *s);
    json_t *list; /* owned: inputs of a submission, or messages to show; or NULL */
    struct pages pages;
    size_t at;    /* the message to show next */
    json_t *busy; /* borrowed: ubik.busy_sessions while this session is in it; or NULL */
};

static void session_free(void *arg)
{
    struct agent_session *s = arg;

    if (s->busy)
        json_object_del(s->busy, s->id);
    free(s->owner);
    json_decref(s->body);
    json_decref(s->list);
    free(s);
}

static json_t *messages(const struct agent_session *s)
{
    return json_object_get(s->body, "messages");
}

static json_t *show(const char *id, const char *owner, const json_t *body, int64_t created_ms)
{
    return json_pack("{s:s, s:O, s:s?, s:I, s:O?, s:o}", "id", id, "name",
                     json_object_get(body, "name"), "external_user_id", *owner ? owner : NULL,
                     "message_count",
                     (json_int_t)json_array_size(json_object_get(body, "messages")), "sandbox_id",
                     json_object_get(body, "sandbox"), "created_at", time_json(created_ms));
}

static void put(struct agent_session *s, done_fn *fn)
{
    const struct item_row row = {
        .id = s->id, .owner = s->owner, .expires_ms = item_expiry_ms(s->user.u)};

    item_put(&s->user, "agent session", row, KEPT_MAX, s->body, fn, s);
}

static struct agent_session *session_new(struct request *r)
{
    struct agent_session *s = mem_zalloc(sizeof(*s));

    s->r = r;
    request_keep(r, session_free, s);
    return s;
}

static void on_found(void *arg, const struct item_row *item, const struct err *failed)
{
    struct agent_session *s = arg;

    if (failed || !end_user_owns(&s->user, item->owner)) {
        struct err e = {.kind = ERR_MISSING};
        detail_err(s->r, failed ? failed : &e, "Agent session not found");
        return;
    }
    s->owner = mem_strdup(item->owner);
    s->body = json_loads(item->body, 0, NULL);
    s->created_ms = item->created_ms;
    snprintf(s->id, sizeof(s->id), "%s", item->id);
    s->then(s);
}

static void look(struct agent_session *s, void (*then)(struct agent_session *s))
{
    s->then = then;
    if (end_user_read(s->r, &s->user))
        service_item_get(request_service(s->r), request_caller(s->r), "agent session",
                         request_path(s->r, "session"), on_found, s);
}

static void find(struct request *r, void (*then)(struct agent_session *s))
{
    look(session_new(r), then);
}

/* --- creation, list, deletion --- */

// clang-format off
static const struct field new_fields[] = {
    {"name", FIELD_TEXT, OPTIONAL, 0, NAME_BYTES, NULL, "The name that people see.", NULL},
    {"external_user_id", FIELD_TEXT, OPTIONAL, 0, USER_MAX, NULL,
     "The end user, where no header names one.", NULL},
    {0},
};
// clang-format on

static void on_made(void *arg, const struct err *failed)
{
    struct agent_session *s = arg;

    if (failed)
        detail_err(s->r, failed, NULL);
    else
        answer_json(s->r, 201, show(s->id, s->owner, s->body, time_now_ms()));
}

void handle_agent_session_post(struct request *r)
{
    struct agent_session *s = session_new(r);
    json_t *body = end_user_read(r, &s->user) ? body_object(r, new_fields) : NULL;
    struct str name = json_view(json_object_get(body, "name"));

    if (!body ||
        !end_user_take(r, &s->user, json_view(json_object_get(body, "external_user_id")))) {
        json_decref(body);
        return;
    }
    uuid_make(s->id);
    s->owner = mem_strdup(s->user.id);
    s->body = json_pack("{s:o, s:n, s:[]}", "name",
                        name.n ? record_text(name) : json_string("Session"), "sandbox", "messages");
    json_decref(body);
    put(s, on_made);
}

static json_t *show_item(const struct ubik *u, const struct item_row *item)
{
    json_t *body = json_loads(item->body, 0, NULL), *v;

    (void)u;
    v = show(item->id, item->owner, body, item->created_ms);
    json_decref(body);
    return v;
}

void handle_agent_sessions(struct request *r)
{
    items_answer(r, "agent session", ITEMS_OWN, show_item);
}

static void answer_session(struct agent_session *s)
{
    answer_json(s->r, 200, show(s->id, s->owner, s->body, s->created_ms));
}

void handle_agent_session(struct request *r)
{
    find(r, answer_session);
}

static void on_deleted(void *arg, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Agent session not found");
    else
        answer_empty(arg, 204);
}

static void drop(struct agent_session *s)
{
    service_item_delete(request_service(s->r), request_caller(s->r), "agent session", str_of(s->id),
                        on_deleted, s->r);
}

void handle_agent_session_delete(struct request *r)
{
    find(r, drop);
}

static void take_file(struct agent_session *s)
{
    upload_one(s->r, &s->user, s->id);
}

void handle_agent_session_upload(struct request *r)
{
    find(r, take_file);
}

/* --- a message --- */

// clang-format off
static const struct field say_fields[] = {
    {"content", FIELD_TEXT, REQUIRED, 1, REQUEST_BYTES, NULL, "The message.", "\"Plot the sales\""},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, DOCUMENTS_MAX, "string", "Documents for the message.", NULL},
    {0},
};
// clang-format on

static void on_said(void *arg, const struct err *failed)
{
    struct agent_session *s = arg;
    AUTO_FREE char *base = base_url(request_base_url(s->r));
    const json_t *last = json_array_get(messages(s), json_array_size(messages(s)) - 1);
    const char *task = json_string_value(json_object_get(last, "task"));

    if (failed)
        detail_err(s->r, failed, NULL);
    else
        answer_json(
            s->r, 202,
            json_pack("{s:s, s:s, s:O, s:s, s:o}", "session_id", s->id, "task_id", task,
                      "message_id", json_object_get(last, "id"), "status", "pending", "stream_url",
                      json_sprintf("%s/agent-sessions/%s/stream?task_id=%s", base, s->id, task)));
}

static void add_message(struct agent_session *s, const char *role, json_t *content,
                        const char *task)
{
    char id[UUID_MAX];

    uuid_make(id);
    json_array_append_new(messages(s),
                          json_pack("{s:s, s:s, s:o*, s:s, s:I}", "id", id, "role", role, "content",
                                    content, "task", task, "at", (json_int_t)time_now_ms()));
}

/* The sandbox of the first message is the sandbox of all messages. */
static void on_started(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct agent_session *s = arg;

    if (!x) {
        detail_err(s->r, failed, NULL);
        return;
    }
    if (json_is_true(json_object_get(x->body, "agent")))
        json_object_set(s->body, "sandbox", json_object_get(x->body, "sandbox"));
    put(s, on_said);
}

static void on_submitted(void *arg, const char *id, const struct err *failed)
{
    struct agent_session *s = arg;

    if (failed) {
        detail_err(s->r, failed, NULL);
        return;
    }
    add_message(s, "user", json_incref(json_object_get(s->list, "request")), id);
    add_message(s, "assistant", NULL, id);
    tool_execution_find(&s->user, str_of(id), on_started, s);
}

static void submit(struct agent_session *s)
{
    const struct agent_request q = {
        .tool = "code_execution", .inputs = s->list, .can_answer = true};
    struct end_user owner = s->user;

    (void)!str_to_cstr(str_of(s->owner), owner.id, sizeof(owner.id));
    submission_start(&owner, &q, s->id, on_submitted, s);
}

/* A message that names no documents gets all that were uploaded to the session. */
static void on_documents(void *arg, const struct item_row *items, size_t count, uint64_t total,
                         const struct err *failed)
{
    struct agent_session *s = arg;
    json_t *ids = json_array();

    (void)total;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(ids, json_string(items[i].id));
    json_object_set_new(s->list, "document_ids", ids);
    if (failed)
        detail_err(s->r, failed, NULL);
    else
        submit(s);
}

static void say(struct agent_session *s)
{
    json_t *body = body_object(s->r, say_fields), *sandbox = json_object_get(s->body, "sandbox");
    const struct item_filter f = {.kind = "document", .parent = s->id, .page.limit = DOCUMENTS_MAX};

    if (!body)
        return;
    s->list = json_pack("{s:O, s:O*}", "request", json_object_get(body, "content"), "document_ids",
                        json_object_get(body, "document_ids"));
    if (json_is_string(sandbox))
        json_object_set(s->list, "sandbox_id", sandbox);
    json_decref(body);
    if (json_array_size(messages(s)) >= SESSION_MESSAGES_MAX)
        detail(s->r, 409, "This session has %d messages: begin another", SESSION_MESSAGES_MAX);
    else if (json_object_get(s->list, "document_ids"))
        submit(s);
    else
        service_item_list(request_service(s->r), request_caller(s->r), &f, on_documents, s);
}

/* The session is marked before it is read, so that of two messages at once neither is lost. */
void handle_agent_session_say(struct request *r)
{
    struct ubik *u = request_ctx(r);
    struct str id = request_path(r, "session");
    struct agent_session *s = session_new(r);

    if (!str_to_cstr(id, s->id, sizeof(s->id))) {
        detail(r, 404, "Agent session not found");
    } else if (json_object_get(u->busy_sessions, s->id)) {
        detail(r, 409, "Another message of this session is being taken");
    } else {
        s->busy = u->busy_sessions;
        json_object_set_new(s->busy, s->id, json_true());
        look(s, say);
    }
}

/* --- the list of messages --- */

static void tell_on(struct agent_session *s);

static void add_told(struct agent_session *s, json_t *content, const char *status)
{
    const json_t *m = json_array_get(messages(s), s->at++);

    json_array_append_new(
        s->list, json_pack("{s:O, s:O, s:o, s:O, s:s, s:o}", "id", json_object_get(m, "id"), "role",
                           json_object_get(m, "role"), "content", content, "task_id",
                           json_object_get(m, "task"), "status", status, "created_at",
                           time_json(json_integer_value(json_object_get(m, "at")))));
}

static void on_told(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct agent_session *s = arg;
    AUTO_FREE char *base = base_url(request_base_url(s->r));

    if (failed && failed->kind != ERR_MISSING) {
        detail_err(s->r, failed, NULL);
        return;
    }
    add_told(s, x ? agent_session_text(x, base) : json_string(""),
             x ? tool_execution_status(x) : "failed");
    tell_on(s);
}

static void tell_on(struct agent_session *s)
{
    for (;;) {
        const json_t *m =
            json_array_size(s->list) < s->pages.limit ? json_array_get(messages(s), s->at) : NULL;
        json_t *content = json_object_get(m, "content");

        if (!m)
            return pages_answer(s->r, &s->pages, json_incref(s->list),
                                json_array_size(messages(s)));
        if (!content)
            return tool_execution_find(&s->user, json_view(json_object_get(m, "task")), on_told, s);
        add_told(s, json_incref(content), "completed");
    }
}

static void tell(struct agent_session *s)
{
    if (!pages_read(s->r, &s->pages))
        return;
    if (*s->pages.after)
        return invalid(s->r, "query", "after", false,
                       "messages stay in their order: page is enough");
    s->list = json_array();
    s->at = s->pages.page - 1 > SESSION_MESSAGES_MAX ? SESSION_MESSAGES_MAX
                                                     : (s->pages.page - 1) * s->pages.limit;
    tell_on(s);
}

void handle_agent_session_messages(struct request *r)
{
    find(r, tell);
}

/* --- stop --- */

static void on_stopped(void *arg, const json_t *record, const struct err *failed)
{
    (void)record;
    if (failed && failed->kind != ERR_CONFLICT && failed->kind != ERR_MISSING)
        detail_err(arg, failed, NULL);
    else
        answer_json(arg, 200, json_pack("{s:s}", "status", "stop_requested"));
}

static void stop(struct agent_session *s)
{
    const json_t *last = json_array_get(messages(s), json_array_size(messages(s)) - 1);
    struct str task = json_view(json_object_get(last, "task"));

    if (task.p)
        run_cancel(s->r, task, on_stopped);
    else
        detail(s->r, 409, "Nothing runs in this session");
}

void handle_agent_session_stop(struct request *r)
{
    find(r, stop);
}
