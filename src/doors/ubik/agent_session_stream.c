/* The answers of an agent session: as text with the tags that clients of Ubik look for, and as a
 * stream of events. */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_BYTES (4 * MiB)

/* --- text --- */

/* "<<" would be read as a tag: its first character is replaced. */
static void put_escaped(struct buf *b, struct str s, struct str instead)
{
    for (size_t i = 0; i < s.n; i++)
        buf_put(b, s.p[i] == '<' && i + 1 < s.n && s.p[i + 1] == '<' ? instead
                                                                     : (struct str){s.p + i, 1});
}

static void put_tagged(struct buf *b, const char *tag, const json_t *v)
{
    AUTO_FREE char *text = record_dump(v, false, NULL);

    buf_printf(b, "<<%s_START>>", tag);
    put_escaped(b, str_of(text), STR("\\u003c"));
    buf_printf(b, "<<%s_END>>\n", tag);
}

json_t *agent_session_text(const struct tool_execution *x, const char *base)
{
    const char *tool = json_string_value(json_object_get(x->body, "tool"));
    json_t *outputs = outputs_of(x, base);
    const json_t *question = json_object_get(x->record, "question");
    const json_t *error = json_object_get(outputs, "error");
    AUTO(buf_done) struct buf b = BUF(MESSAGE_BYTES);

    buf_printf(&b, "<<STEP_START>>\n<<SINGLE_STEP_FLAG>>\n<<TOOL_STEP_START/%s:%s>>\n", tool,
               x->id);
    put_tagged(&b, "TOOL_STEP_INPUT", json_object_get(x->body, "inputs"));
    if (json_is_object(question))
        put_tagged(&b, "INPUT_REQUIRED", question);
    if (tool_execution_is_over(x))
        put_tagged(&b, "TOOL_STEP_RESULT", outputs);
    buf_printf(&b, "<<TOOL_STEP_END/%s:%s>>\n<<STEP_END>>\n", tool, x->id);
    if (error) {
        buf_put(&b, STR("<<ERROR_START>>"));
        put_escaped(&b, json_view(json_object_get(error, "message")), STR("< "));
        buf_put(&b, STR("<<ERROR_END>>\n"));
        put_tagged(&b, "ERROR_JSON", error);
    }
    put_escaped(&b, json_view(json_object_get(outputs, "answer")), STR("< "));
    json_decref(outputs);
    return record_text(buf_str(&b));
}

/* --- events --- */

/* Takes data. */
static void say(struct stream_reader *rd, const char *name, json_t *data)
{
    json_object_set_new(data, "session_id", json_string(rd->session));
    json_object_set_new(data, "task_id", json_string(rd->id));
    json_object_set_new(data, "timestamp", time_json(time_now_ms()));
    stream_reader_say(rd, name, ++rd->last, data);
}

static void say_step(struct stream_reader *rd, const char *name, const char *text)
{
    say(rd, name,
        json_pack("{s:i, s:s, s:b}", "step", 1, "description", text, "single_step_agent", 1));
}

static void say_begin(struct stream_reader *rd)
{
    say(rd, "connection_established", json_object());
    say(rd, "agent_processing_started", json_object());
    say(rd, "response_stream_start", json_object());
    say_step(rd, "agent_step_started", "Code execution");
}

static void tell(struct stream_reader *rd, const json_t *ev)
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
    if (event_is(ev, "error")) /* tell_end() sends the error */
        json_decref(data);
    else
        say(rd, name,
            json_pack("{s:s, s:s, s:s, s:o}", "type", name, "tool_execution_id", rd->id,
                      "tool_name", "code_execution", "data", data));
}

static void say_result(struct stream_reader *rd, const struct tool_execution *x, json_t *outputs)
{
    AUTO_FREE char *base = base_url(request_base_url(rd->r));

    say(rd, "tool_end",
        json_pack("{s:s, s:s, s:s, s:O}", "type", "tool_end", "tool_execution_id", rd->id,
                  "tool_name", "code_execution", "data", outputs));
    say_step(rd, "agent_step_completed", "Code execution");
    say(rd, "agent_progress",
        json_pack("{s:i, s:i, s:i}", "step", 1, "total_steps", 1, "progress", 100));
    if (rd->chunks)
        say(rd, "response_chunk",
            json_pack("{s:O?}", "content", json_object_get(outputs, "answer")));
    say(rd, "agent_response_update", json_pack("{s:o}", "content", agent_session_text(x, base)));
}

static void tell_end(struct stream_reader *rd, const struct tool_execution *x)
{
    AUTO_FREE char *base = base_url(request_base_url(rd->r));
    json_t *outputs = outputs_of(x, base), *error = json_object_get(outputs, "error");

    if (str_is(json_view(json_object_get(outputs, "status")), "cancelled"))
        say(rd, "agent_stop_requested", json_object());
    say_result(rd, x, outputs);
    if (error && strcmp(tool_execution_status(x), "failed") == 0)
        say(rd, "agent_processing_error",
            json_pack("{s:O, s:s, s:O}", "error", json_object_get(error, "message"), "traceback",
                      "", "code", json_object_get(error, "code")));
    else
        say(rd, "agent_processing_complete",
            json_pack("{s:s}", "status", tool_execution_status(x)));
    json_decref(outputs);
}

/* --- the task --- */

/* The task of the query, if it is of this session; without a query the last task. */
static bool take_task(struct stream_reader *rd, const json_t *messages)
{
    struct str wanted = request_query(rd->r, "task_id");
    const json_t *m;
    size_t i;

    json_array_foreach(messages, i, m) {
        struct str task = json_view(json_object_get(m, "task"));
        if (!wanted.n || str_eq(wanted, task))
            (void)!str_to_cstr(task, rd->id, sizeof(rd->id));
    }
    return *rd->id;
}

static void on_session(void *arg, const struct item_row *item, const struct err *failed)
{
    struct stream_reader *rd = arg;
    bool theirs = item && end_user_owns(&rd->user, item->owner);
    json_t *body = theirs ? json_loads(item->body, 0, NULL) : NULL;

    if (failed)
        detail_err(rd->r, failed, "Agent session not found");
    else if (!theirs)
        detail(rd->r, 404, "Agent session not found");
    else if (!take_task(rd, json_object_get(body, "messages")))
        detail(rd->r, 404, "There is no such task in this session");
    else {
        snprintf(rd->session, sizeof(rd->session), "%s", item->id);
        stream_reader_follow(rd);
    }
    json_decref(body);
}

void handle_agent_session_stream(struct request *r)
{
    static const struct sse_format format = {"Task not found", say_begin, tell, tell_end};
    struct stream_reader *rd = stream_reader_new(r, &format);

    if (!rd)
        return;
    rd->chunks = !str_is(request_query(r, "include_chunks"), "false");
    service_item_get(request_service(r), request_caller(r), "agent session",
                     request_path(r, "session"), on_session, rd);
}
