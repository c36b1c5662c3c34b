/*
 * Agent sessions: messages one after the other, each of them an execution in the same
 * sandbox. What is kept of a session is who said what; an answer is read from the record
 * of its execution, and written with the tags that clients of Ubik look for.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- one at hand --- */

struct talk {
    struct request *r; /* borrowed */
    struct who who;
    char id[UUID_MAX];
    char *owner;  /* owned */
    json_t *body; /* owned: {"name", "sandbox", "messages": [{id, role, content?, task?, at}]} */
    int64_t created_ms;
    void (*then)(struct talk *t);
    json_t *list; /* owned: what is shown, in the making */
    size_t at;
    json_t *talking; /* borrowed, or NULL: of the room; no other message is taken meanwhile */
};

static void talk_free(void *arg)
{
    struct talk *t = arg;

    if (t->talking)
        json_object_del(t->talking, t->id);
    free(t->owner);
    json_decref(t->body);
    json_decref(t->list);
    free(t);
}

static json_t *messages(const struct talk *t)
{
    return json_object_get(t->body, "messages");
}

static json_t *show(const char *id, const char *owner, const json_t *body, int64_t created_ms)
{
    return json_pack("{s:s, s:O, s:s?, s:I, s:O?, s:o}", "id", id, "name",
                     json_object_get(body, "name"), "external_user_id", *owner ? owner : NULL,
                     "message_count",
                     (json_int_t)json_array_size(json_object_get(body, "messages")), "sandbox_id",
                     json_object_get(body, "sandbox"), "created_at", time_json(created_ms));
}

static void put(struct talk *t, done_fn *fn)
{
    AUTO_FREE char *text = record_dump(t->body, false, NULL);
    char kind[] = "agent session";
    const uint64_t keep_ms = ((struct ubik *)request_ctx(t->r))->config.keep_ms;
    const struct item_row row = {.id = t->id,
                                 .kind = kind,
                                 .owner = t->owner,
                                 .expires_ms = keep_ms ? clock_ms() + (int64_t)keep_ms : 0,
                                 .body = text};

    service_item_put_up_to(request_service(t->r), request_caller(t->r), &row, KEPT_MAX, fn, t);
}

static struct talk *talk_new(struct request *r)
{
    struct talk *t = mem_zalloc(sizeof(*t));

    t->r = r;
    request_keep(r, talk_free, t);
    return t;
}

static void on_found(void *arg, const struct item_row *item, const struct err *failed)
{
    struct talk *t = arg;

    if (failed || !who_owns(&t->who, item->owner)) {
        struct err e = {.kind = ERR_MISSING};
        detail_err(t->r, failed ? failed : &e, "Agent session not found");
        return;
    }
    t->owner = mem_strdup(item->owner);
    t->body = json_loads(item->body, 0, NULL);
    t->created_ms = item->created_ms;
    snprintf(t->id, sizeof(t->id), "%s", item->id);
    t->then(t);
}

static void look(struct talk *t, void (*then)(struct talk *t))
{
    t->then = then;
    if (who_read(t->r, &t->who))
        service_item_get(request_service(t->r), request_caller(t->r), "agent session",
                         request_path(t->r, "session"), on_found, t);
}

static void find(struct request *r, void (*then)(struct talk *t))
{
    look(talk_new(r), then);
}

/* --- new, all, away --- */

// clang-format off
static const struct field new_fields[] = {
    {"name", FIELD_TEXT, OPTIONAL, 0, NAME_BYTES, NULL, "What people call it.", NULL},
    {"external_user_id", FIELD_TEXT, OPTIONAL, 0, USER_MAX, NULL,
     "Whose it is, where no header says so.", NULL},
    {0},
};
// clang-format on

static void on_made(void *arg, const struct err *failed)
{
    struct talk *t = arg;

    if (failed)
        detail_err(t->r, failed, NULL);
    else
        answer_json(t->r, 201, show(t->id, t->owner, t->body, clock_ms()));
}

void handle_talk_post(struct request *r)
{
    struct talk *t = talk_new(r);
    json_t *body = who_read(r, &t->who) ? body_object(r, new_fields) : NULL;
    struct str name = json_view(json_object_get(body, "name"));

    if (!body || !who_take(r, &t->who, json_view(json_object_get(body, "external_user_id")))) {
        json_decref(body);
        return;
    }
    uuid_make(t->id);
    t->owner = mem_strdup(t->who.user);
    t->body = json_pack("{s:o, s:n, s:[]}", "name",
                        name.n ? record_text(name) : json_string("Session"), "sandbox", "messages");
    json_decref(body);
    put(t, on_made);
}

static void on_list(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct request *r = arg;
    struct pages p;
    json_t *list;

    if (failed) {
        detail_err(r, failed, NULL);
        return;
    }
    if (!pages_read(r, &p))
        return;
    list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *body = json_loads(items[i].body, 0, NULL);
        json_array_append_new(list, show(items[i].id, items[i].owner, body, items[i].created_ms));
        json_decref(body);
    }
    pages_answer(r, &p, list, total);
}

void handle_talks(struct request *r)
{
    struct who w;
    struct pages p;

    if (!who_read(r, &w) || !pages_read(r, &p))
        return;
    const struct item_filter f = {.kind = "agent session",
                                  .view = *w.user ? ITEMS_OWN : ITEMS_ALL,
                                  .owner = w.user,
                                  .offset = (p.page - 1) * p.limit,
                                  .limit = p.limit};
    service_item_list(request_service(r), request_caller(r), &f, on_list, r);
}

static void answer_talk(struct talk *t)
{
    answer_json(t->r, 200, show(t->id, t->owner, t->body, t->created_ms));
}

void handle_talk(struct request *r)
{
    find(r, answer_talk);
}

static void on_deleted(void *arg, const struct err *failed)
{
    if (failed)
        detail_err(arg, failed, "Agent session not found");
    else
        answer_empty(arg, 204);
}

static void drop(struct talk *t)
{
    service_item_delete(request_service(t->r), request_caller(t->r), "agent session", str_of(t->id),
                        on_deleted, t->r);
}

void handle_talk_delete(struct request *r)
{
    find(r, drop);
}

static void take_file(struct talk *t)
{
    upload_one(t->r, &t->who, t->id);
}

void handle_talk_upload(struct request *r)
{
    find(r, take_file);
}

/* --- a message --- */

// clang-format off
static const struct field say_fields[] = {
    {"content", FIELD_TEXT, REQUIRED, 1, REQUEST_BYTES, NULL, "What is said.", "\"Plot the sales\""},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, DOCUMENTS_MAX, "string", "Documents it speaks of.", NULL},
    {0},
};
// clang-format on

static void on_said(void *arg, const struct err *failed)
{
    struct talk *t = arg;
    AUTO_FREE char *base = base_url(request_ctx(t->r), t->r);
    const json_t *last = json_array_get(messages(t), json_array_size(messages(t)) - 1);
    const char *task = json_string_value(json_object_get(last, "task"));

    if (failed)
        detail_err(t->r, failed, NULL);
    else
        answer_json(
            t->r, 202,
            json_pack("{s:s, s:s, s:O, s:s, s:o}", "session_id", t->id, "task_id", task,
                      "message_id", json_object_get(last, "id"), "status", "pending", "stream_url",
                      json_sprintf("%s/agent-sessions/%s/stream?task_id=%s", base, t->id, task)));
}

static void add_message(struct talk *t, const char *role, json_t *content, const char *task)
{
    char id[UUID_MAX];

    uuid_make(id);
    json_array_append_new(messages(t),
                          json_pack("{s:s, s:s, s:o*, s:s, s:I}", "id", id, "role", role, "content",
                                    content, "task", task, "at", (json_int_t)clock_ms()));
}

/* The sandbox of the first message is that of all. */
static void on_started(void *arg, const struct execution *x, const struct err *failed)
{
    struct talk *t = arg;

    if (!x) {
        detail_err(t->r, failed, NULL);
        return;
    }
    if (json_is_true(json_object_get(x->body, "agent")))
        json_object_set(t->body, "sandbox", json_object_get(x->body, "sandbox"));
    put(t, on_said);
}

static void on_ordered(void *arg, const char *id, const struct err *failed)
{
    struct talk *t = arg;

    if (failed) {
        detail_err(t->r, failed, NULL);
        return;
    }
    add_message(t, "user", json_incref(json_object_get(t->list, "request")), id);
    add_message(t, "assistant", NULL, id);
    execution_find(request_ctx(t->r), request_service(t->r), request_caller(t->r), &t->who,
                   str_of(id), on_started, t);
}

static void order(struct talk *t)
{
    const struct order_spec spec = {.ubik = request_ctx(t->r),
                                    .service = request_service(t->r),
                                    .caller = request_caller(t->r),
                                    .user = str_of(t->owner),
                                    .tool = catalog_named("code_execution"),
                                    .inputs = t->list,
                                    .can_answer = true,
                                    .parent = t->id};

    order_start(&spec, on_ordered, t);
}

/* Which documents it speaks of was not said: then all that were uploaded to the session. */
static void on_documents(void *arg, const struct item_row *items, size_t count, uint64_t total,
                         const struct err *failed)
{
    struct talk *t = arg;
    json_t *ids = json_array();

    (void)total;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(ids, json_string(items[i].id));
    json_object_set_new(t->list, "document_ids", ids);
    if (failed)
        detail_err(t->r, failed, NULL);
    else
        order(t);
}

static void say(struct talk *t)
{
    json_t *body = body_object(t->r, say_fields), *sandbox = json_object_get(t->body, "sandbox");
    const struct item_filter f = {.kind = "document", .parent = t->id, .limit = DOCUMENTS_MAX};

    if (!body)
        return;
    t->list = json_pack("{s:O, s:O*}", "request", json_object_get(body, "content"), "document_ids",
                        json_object_get(body, "document_ids"));
    if (json_is_string(sandbox))
        json_object_set(t->list, "sandbox_id", sandbox);
    json_decref(body);
    if (json_array_size(messages(t)) >= TURNS_OF_TALK)
        detail(t->r, 409, "This session has %d messages: begin another", TURNS_OF_TALK);
    else if (json_object_get(t->list, "document_ids"))
        order(t);
    else
        service_item_list(request_service(t->r), request_caller(t->r), &f, on_documents, t);
}

/* Marked before it is read, so that two messages at once are not written over each other. */
void handle_talk_say(struct request *r)
{
    struct ubik *u = request_ctx(r);
    struct str id = request_path(r, "session");
    struct talk *t = talk_new(r);

    if (!str_to_cstr(id, t->id, sizeof(t->id))) {
        detail(r, 404, "Agent session not found");
    } else if (json_object_get(u->talking, t->id)) {
        detail(r, 409, "Another message of this session is being taken");
    } else {
        t->talking = u->talking;
        json_object_set_new(t->talking, t->id, json_true());
        look(t, say);
    }
}

/* --- all that was said --- */

static void tell_on(struct talk *t);

static void add_told(struct talk *t, json_t *content, const char *status)
{
    const json_t *m = json_array_get(messages(t), t->at++);

    json_array_append_new(
        t->list, json_pack("{s:O, s:O, s:o, s:O, s:s, s:o}", "id", json_object_get(m, "id"), "role",
                           json_object_get(m, "role"), "content", content, "task_id",
                           json_object_get(m, "task"), "status", status, "created_at",
                           time_json(json_integer_value(json_object_get(m, "at")))));
}

static void on_told(void *arg, const struct execution *x, const struct err *failed)
{
    struct talk *t = arg;
    AUTO_FREE char *base = base_url(request_ctx(t->r), t->r);

    if (failed && failed->kind != ERR_MISSING) {
        detail_err(t->r, failed, NULL);
        return;
    }
    add_told(t, x ? talk_text(x, base) : json_string(""), x ? execution_status(x) : "failed");
    tell_on(t);
}

static void tell_on(struct talk *t)
{
    const json_t *m = json_array_get(messages(t), t->at);
    json_t *content = json_object_get(m, "content");

    while (content) {
        add_told(t, json_incref(content), "completed");
        m = json_array_get(messages(t), t->at);
        content = json_object_get(m, "content");
    }
    if (!m)
        answer_json(t->r, 200,
                    json_pack("{s:O, s:I}", "items", t->list, "total",
                              (json_int_t)json_array_size(t->list)));
    else
        execution_find(request_ctx(t->r), request_service(t->r), request_caller(t->r), &t->who,
                       json_view(json_object_get(m, "task")), on_told, t);
}

static void tell(struct talk *t)
{
    t->list = json_array();
    tell_on(t);
}

void handle_talk_messages(struct request *r)
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

static void stop(struct talk *t)
{
    const json_t *last = json_array_get(messages(t), json_array_size(messages(t)) - 1);
    struct str task = json_view(json_object_get(last, "task"));
    struct err e;
    struct agent *a = ubik_agent(request_ctx(t->r), &e);

    if (!task.p)
        detail(t->r, 409, "Nothing runs in this session");
    else if (!a)
        detail_err(t->r, &e, NULL);
    else
        agent_cancel(a, request_caller(t->r), task, str_is(request_query(t->r, "hard"), "true"),
                     on_stopped, t->r);
}

void handle_talk_stop(struct request *r)
{
    find(r, stop);
}
