/*
 * An execution as a stream of events: past events, new events, the end. The id of an
 * event is the agent's number, so a client that reconnects says where it was.
 *
 * Ubik documents two ways to read an event, by its name and by event_type in its data;
 * both work. For the same reason the last event has the outputs at its top level and
 * under "outputs". An event that is longer than event_bytes comes in pieces.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- pieces --- */

/* The id goes with the last piece: a client that missed the last piece missed the event. */
static void put_pieces(struct request *r, const char *name, const char *id, struct str data,
                       size_t most)
{
    size_t total = (data.n + most - 1) / most;
    char chunk[UUID_MAX], piece_name[64];

    uuid_make(chunk);
    snprintf(piece_name, sizeof(piece_name), "%s_delta_sse", name);
    for (size_t i = 0; i < total; i++) { /* the text is ASCII: any cut is good */
        size_t n = i + 1 < total ? most : data.n - i * most;
        json_t *piece =
            json_pack("{s:s, s:I, s:I, s:s, s:s%, s:b}", "chunk_id", chunk, "chunk_index",
                      (json_int_t)i, "total_chunks", (json_int_t)total, "original_event_type", name,
                      "chunk_data", data.p + i * most, n, "is_last_chunk", i + 1 == total);
        AUTO_FREE char *text = record_dump(piece, true, NULL);
        answer_event(r, i + 1 == total ? id : NULL, piece_name, str_of(text));
        json_decref(piece);
    }
}

void event_put(struct request *r, const char *name, uint64_t id, json_t *data)
{
    const size_t most = ((struct ubik *)request_ctx(r))->config.event_bytes;
    AUTO_FREE char *text = NULL;
    char number[24];
    size_t n = 0;

    json_object_set_new(data, "event_type", json_string(name));
    text = record_dump(data, true, &n);
    json_decref(data);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)id);
    if (n <= most)
        answer_event(r, number, name, (struct str){text, n});
    else
        put_pieces(r, name, number, (struct str){text, n}, most);
}

/* --- events of the agent --- */

static json_t *question_of(const json_t *ev)
{
    int64_t left = json_integer_value(json_object_get(ev, "expires_ms")) - time_now_ms();
    bool approval = json_object_get(ev, "approval") != NULL;

    return json_pack("{s:O*, s:[s], s:I, s:s, s:O*}", "prompt", json_object_get(ev, "prompt"),
                     "input_types", "text", "timeout", (json_int_t)(left > 0 ? left / 1000 : 0),
                     "state", approval ? "approval" : "question", "approval",
                     json_object_get(ev, "approval"));
}

const char *event_of(const json_t *ev, json_t **ret)
{
    if (event_is(ev, "phase")) {
        *ret = json_pack("{s:O*, s:O*, s:s, s:{s:O*, s:O*, s:O*}}", "phase",
                         json_object_get(ev, "phase"), "message", json_object_get(ev, "message"),
                         "output_key", "logs", "data", "step", json_object_get(ev, "step"), "round",
                         json_object_get(ev, "round"), "code", json_object_get(ev, "code"));
        return "tool_update";
    }
    if (event_is(ev, "console")) {
        *ret =
            json_pack("{s:O*, s:s}", "content", json_object_get(ev, "text"), "output_key", "logs");
        return "tool_partial_update";
    }
    if (event_is(ev, "question")) {
        *ret = question_of(ev);
        return "tool_input_required";
    }
    if (event_is(ev, "error")) {
        *ret = json_pack("{s:O*, s:O*}", "message", json_object_get(ev, "message"), "code",
                         json_object_get(ev, "code"));
        return "error";
    }
    return NULL;
}

/* --- the format --- */

static void begin(struct stream_reader *rd)
{
    rd->last = rd->after;
}

static void tell(struct stream_reader *rd, const json_t *ev)
{
    json_t *data = NULL;
    const char *name = event_of(ev, &data);

    rd->last = (uint64_t)json_integer_value(json_object_get(ev, "seq"));
    if (!name)
        return;
    rd->told_error |= strcmp(name, "error") == 0;
    stream_reader_say(rd, name, rd->last, data);
}

/* The last event: "error" of a failed execution, else "tool_end". */
static void tell_end(struct stream_reader *rd, const struct tool_execution *x)
{
    AUTO_FREE char *base = base_url(request_base_url(rd->r));
    json_t *outputs = outputs_of(x, base), *data, *error = json_object_get(outputs, "error");
    bool failed = strcmp(tool_execution_status(x), "failed") == 0 &&
                  !str_is(json_view(json_object_get(outputs, "status")), "cancelled");

    if (failed && !rd->told_error) {
        data = json_pack("{s:O*, s:O*}", "message", json_object_get(error, "message"), "code",
                         json_object_get(error, "code"));
        stream_reader_say(rd, "error", rd->last + 1, data);
    } else if (!failed) {
        data = json_deep_copy(outputs);
        json_object_set_new(data, "execution_id", json_string(x->id));
        json_object_set_new(data, "status", json_string(tool_execution_status(x)));
        json_object_set(data, "outputs", outputs);
        stream_reader_say(rd, "tool_end", rd->last + 1, data);
    }
    json_decref(outputs);
}

static uint64_t last_id(struct request *r)
{
    struct str v = request_header(r, "last-event-id");
    char text[24];

    return str_to_cstr(v, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

void handle_stream(struct request *r)
{
    static const struct sse_format format = {"Tool execution not found", begin, tell, tell_end};
    struct stream_reader *rd = stream_reader_new(r, &format);

    if (!rd)
        return;
    rd->after = last_id(r);
    if (str_to_cstr(request_path(r, "execution"), rd->id, sizeof(rd->id)))
        stream_reader_follow(rd);
    else
        detail(r, 404, "%s", format.missing);
}
