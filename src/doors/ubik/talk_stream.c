/* The answers of an agent session: as text with tags, and as the frame of events around an
 * execution. */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_BYTES (4 * MiB)

/* --- text --- */

/* What is said between tags has none of its own: "<<" would be read as one. */
static void put_plain(struct buf *b, struct str s)
{
    struct err e;

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '<' && i + 1 < s.n && s.p[i + 1] == '<')
            (void)!buf_put(b, STR("< "), &e);
        else
            (void)!buf_put(b, (struct str){s.p + i, 1}, &e);
}

/* As JSON the same is said by an escape, which a reader of JSON undoes. */
static void put_json(struct buf *b, const json_t *v)
{
    AUTO_FREE char *text = record_dump(v, false, NULL);
    struct str s = str_of(text);
    struct err e;

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '<' && i + 1 < s.n && s.p[i + 1] == '<')
            (void)!buf_put(b, STR("\\u003c"), &e);
        else
            (void)!buf_put(b, (struct str){s.p + i, 1}, &e);
}

static void put_error(struct buf *b, const json_t *error)
{
    struct err e;

    (void)!buf_put(b, STR("<<ERROR_START>>"), &e);
    put_plain(b, json_view(json_object_get(error, "message")));
    (void)!buf_put(b, STR("<<ERROR_END>>\n<<ERROR_JSON_START>>"), &e);
    put_json(b, error);
    (void)!buf_put(b, STR("<<ERROR_JSON_END>>\n"), &e);
}

static void put_question(struct buf *b, const json_t *question)
{
    struct err e;

    (void)!buf_put(b, STR("<<INPUT_REQUIRED_START>>"), &e);
    put_json(b, question);
    (void)!buf_put(b, STR("<<INPUT_REQUIRED_END>>\n"), &e);
}

json_t *talk_text(const struct execution *x, const char *base)
{
    const char *tool = json_string_value(json_object_get(x->body, "tool"));
    json_t *outputs = outputs_of(x, base), *v;
    const json_t *question = json_object_get(x->record, "question");
    struct buf b;
    struct err e;

    buf_init(&b, MESSAGE_BYTES);
    (void)!buf_printf(&b, &e, "<<STEP_START>>\n<<SINGLE_STEP_FLAG>>\n<<TOOL_STEP_START/%s:%s>>\n",
                      tool, x->id);
    (void)!buf_put(&b, STR("<<TOOL_STEP_INPUT_START>>"), &e);
    put_json(&b, json_object_get(x->body, "inputs"));
    (void)!buf_put(&b, STR("<<TOOL_STEP_INPUT_END>>\n"), &e);
    if (json_is_object(question))
        put_question(&b, question);
    if (execution_is_over(x)) {
        (void)!buf_put(&b, STR("<<TOOL_STEP_RESULT_START>>"), &e);
        put_json(&b, outputs);
        (void)!buf_put(&b, STR("<<TOOL_STEP_RESULT_END>>\n"), &e);
    }
    (void)!buf_printf(&b, &e, "<<TOOL_STEP_END/%s:%s>>\n<<STEP_END>>\n", tool, x->id);
    if (json_object_get(outputs, "error"))
        put_error(&b, json_object_get(outputs, "error"));
    put_plain(&b, json_view(json_object_get(outputs, "answer")));
    json_decref(outputs);
    v = record_text(buf_str(&b));
    buf_done(&b);
    return v;
}

/* --- the frame --- */

/* Takes data. */
static void say(struct reader *rd, const char *name, json_t *data)
{
    json_object_set_new(data, "session_id", json_string(rd->session));
    json_object_set_new(data, "task_id", json_string(rd->id));
    json_object_set_new(data, "timestamp", time_json(clock_ms()));
    reader_say(rd, name, ++rd->last, data);
}

static void say_step(struct reader *rd, const char *name, const char *text)
{
    say(rd, name,
        json_pack("{s:i, s:s, s:b}", "step", 1, "description", text, "single_step_agent", 1));
}

static void say_begin(struct reader *rd)
{
    say(rd, "connection_established", json_object());
    say(rd, "agent_processing_started", json_object());
    say(rd, "response_stream_start", json_object());
    say_step(rd, "agent_step_started", "Code execution");
}

static void tell(struct reader *rd, const json_t *ev)
{
    json_t *data = NULL;
    const char *name = event_of(ev, &data);

    if (!name)
        return;
    if (event_is(ev, "console") && !rd->chunks) {
        json_decref(data);
        return;
    }
    if (event_is(ev, "question"))
        say(rd, "input_required", json_deep_copy(data));
    if (event_is(ev, "phase"))
        say(rd, "agent_step_progress",
            json_pack("{s:i, s:O*}", "step", 1, "description", json_object_get(ev, "message")));
    if (event_is(ev, "error")) /* the frame's own comes last */
        json_decref(data);
    else
        say(rd, name,
            json_pack("{s:s, s:s, s:s, s:o}", "type", name, "tool_execution_id", rd->id,
                      "tool_name", "code_execution", "data", data));
}

static void say_result(struct reader *rd, const struct execution *x, json_t *outputs)
{
    AUTO_FREE char *base = base_url(rd->u, rd->r);

    say(rd, "tool_end",
        json_pack("{s:s, s:s, s:s, s:O}", "type", "tool_end", "tool_execution_id", rd->id,
                  "tool_name", "code_execution", "data", outputs));
    say_step(rd, "agent_step_completed", "Code execution");
    say(rd, "agent_progress",
        json_pack("{s:i, s:i, s:i}", "step", 1, "total_steps", 1, "progress", 100));
    if (rd->chunks)
        say(rd, "response_chunk",
            json_pack("{s:O?}", "content", json_object_get(outputs, "answer")));
    say(rd, "agent_response_update", json_pack("{s:o}", "content", talk_text(x, base)));
}

static void tell_end(struct reader *rd, const struct execution *x)
{
    AUTO_FREE char *base = base_url(rd->u, rd->r);
    json_t *outputs = outputs_of(x, base), *error = json_object_get(outputs, "error");

    if (str_is(json_view(json_object_get(outputs, "status")), "cancelled"))
        say(rd, "agent_stop_requested", json_object());
    say_result(rd, x, outputs);
    if (error && strcmp(execution_status(x), "failed") == 0)
        say(rd, "agent_processing_error",
            json_pack("{s:O, s:s, s:O}", "error", json_object_get(error, "message"), "traceback",
                      "", "code", json_object_get(error, "code")));
    else
        say(rd, "agent_processing_complete", json_pack("{s:s}", "status", execution_status(x)));
    json_decref(outputs);
}

/* --- which task --- */

/* The one that is named, if it is of this session; else the last. */
static bool take_task(struct reader *rd, const json_t *messages)
{
    struct str wanted = request_query(rd->r, "task_id");
    const json_t *m;
    size_t i;

    json_array_foreach(messages, i, m)
    {
        struct str task = json_view(json_object_get(m, "task"));
        if (!wanted.n || str_eq(wanted, task))
            (void)!str_to_cstr(task, rd->id, sizeof(rd->id));
    }
    return *rd->id;
}

static void on_session(void *arg, const struct item_row *item, const struct err *failed)
{
    struct reader *rd = arg;
    bool theirs = item && who_owns(&rd->who, item->owner);
    json_t *body = theirs ? json_loads(item->body, 0, NULL) : NULL;

    if (rd->r && theirs && take_task(rd, json_object_get(body, "messages"))) {
        snprintf(rd->session, sizeof(rd->session), "%s", item->id);
        reader_follow(rd);
    } else {
        reader_refuse(rd, failed,
                      theirs ? "There is no such task in this session" : "Agent session not found");
    }
    json_decref(body);
}

void handle_talk_stream(struct request *r)
{
    static const struct voice voice = {"Task not found", say_begin, tell, tell_end};
    struct reader *rd = reader_new(r, &voice);

    if (!rd)
        return;
    rd->chunks = !str_is(request_query(r, "include_chunks"), "false");
    service_item_get(request_service(r), request_caller(r), "agent session",
                     request_path(r, "session"), on_session, rd);
}
