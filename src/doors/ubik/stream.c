/*
 * An execution as a stream of events: what was, then what comes, then the end. Each has
 * the agent's number as its id, so a client that comes back says where it was.
 *
 * Two ways of reading are documented: by the name of the event, and by event_type in its
 * data; both work. The last event has the outputs at its top level and under "outputs",
 * for the same reason. An event that is longer than event_bytes comes in pieces.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- bytes --- */

static void put(struct buf *b, const char *name, uint64_t id, struct str data)
{
    struct err e;

    if (id > 0)
        (void)!buf_printf(b, &e, "id: %llu\n", (unsigned long long)id);
    (void)!buf_printf(b, &e, "event: %s\ndata: ", name);
    (void)!buf_put(b, data, &e);
    (void)!buf_put(b, STR("\n\n"), &e);
}

/* The id goes with the last piece: who has not got that has not got the event. */
static void put_pieces(struct buf *b, const char *name, uint64_t id, struct str data, size_t most)
{
    size_t total = (data.n + most - 1) / most;
    char chunk[UUID_MAX], piece_name[64];

    uuid_make(chunk);
    snprintf(piece_name, sizeof(piece_name), "%s_delta_sse", name);
    for (size_t i = 0; i < total; i++) { /* the text is ASCII: cut where you like */
        size_t n = i + 1 < total ? most : data.n - i * most;
        json_t *piece =
            json_pack("{s:s, s:I, s:I, s:s, s:s%, s:b}", "chunk_id", chunk, "chunk_index",
                      (json_int_t)i, "total_chunks", (json_int_t)total, "original_event_type", name,
                      "chunk_data", data.p + i * most, n, "is_last_chunk", i + 1 == total);
        AUTO_FREE char *text = record_dump(piece, true, NULL);
        put(b, piece_name, i + 1 == total ? id : 0, str_of(text));
        json_decref(piece);
    }
}

void event_put(struct buf *b, const struct ubik *u, const char *name, uint64_t id, json_t *data)
{
    AUTO_FREE char *text = NULL;
    size_t n = 0;

    json_object_set_new(data, "event_type", json_string(name));
    text = record_dump(data, true, &n);
    json_decref(data);
    if (n <= u->config.event_bytes)
        put(b, name, id, (struct str){text, n});
    else
        put_pieces(b, name, id, (struct str){text, n}, u->config.event_bytes);
}

/* --- what the agent says --- */

static json_t *question_of(const json_t *ev)
{
    int64_t left = json_integer_value(json_object_get(ev, "expires_ms")) - clock_ms();
    bool approval = json_object_get(ev, "approval") != NULL;

    return json_pack("{s:O*, s:[s], s:I, s:s, s:O*}", "prompt", json_object_get(ev, "prompt"),
                     "input_types", "text", "timeout", (json_int_t)(left > 0 ? left / 1000 : 0),
                     "state", approval ? "approval" : "question", "approval",
                     json_object_get(ev, "approval"));
}

const char *event_of(const json_t *ev, json_t **ret)
{
    if (event_is(ev, "phase")) {
        *ret =
            json_pack("{s:O*, s:O*, s:s, s:{s:O*, s:O*}}", "phase", json_object_get(ev, "phase"),
                      "message", json_object_get(ev, "message"), "output_key", "logs", "data",
                      "step", json_object_get(ev, "step"), "round", json_object_get(ev, "round"));
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

/* --- a reader --- */

static void begin(struct reader *rd)
{
    rd->last = rd->after;
}

static void tell(struct reader *rd, const json_t *ev)
{
    json_t *data = NULL;
    const char *name = event_of(ev, &data);

    rd->last = (uint64_t)json_integer_value(json_object_get(ev, "seq"));
    if (!name)
        return;
    rd->told_error |= strcmp(name, "error") == 0;
    reader_say(rd, name, rd->last, data);
}

/* What has failed ends with "error", everything else with "tool_end". */
static void tell_end(struct reader *rd, const struct execution *x)
{
    AUTO_FREE char *base = base_url(rd->u, rd->r);
    json_t *outputs = outputs_of(x, base), *data, *error = json_object_get(outputs, "error");
    bool failed = strcmp(execution_status(x), "failed") == 0 &&
                  !str_is(json_view(json_object_get(outputs, "status")), "cancelled");

    if (failed && !rd->told_error) {
        data = json_pack("{s:O*, s:O*}", "message", json_object_get(error, "message"), "code",
                         json_object_get(error, "code"));
        reader_say(rd, "error", rd->last + 1, data);
    } else if (!failed) {
        data = json_deep_copy(outputs);
        json_object_set_new(data, "execution_id", json_string(x->id));
        json_object_set_new(data, "status", json_string(execution_status(x)));
        json_object_set(data, "outputs", outputs);
        reader_say(rd, "tool_end", rd->last + 1, data);
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
    static const struct voice voice = {"Tool execution not found", begin, tell, tell_end};
    struct reader *rd = reader_new(r, &voice);

    if (!rd)
        return;
    rd->after = last_id(r);
    if (str_to_cstr(request_path(r, "execution"), rd->id, sizeof(rd->id)))
        reader_follow(rd);
    else
        reader_refuse(rd, NULL, voice.missing);
}
