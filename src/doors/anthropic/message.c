/*
 * A message as it grows: its JSON value, and all bytes of its stream, which several requests may
 * read.
 *
 * The rules of the stream: the name of an event is its type; indexes count from 0 without a gap; a
 * call begins with an empty input that deltas fill, a result comes whole; the container is in
 * message_start and in message_delta, as some versions of the SDKs read only one of them.
 */
#include "doors/anthropic/messages_int.h"

#include <stdlib.h>

const struct str message_ping = {"event: ping\ndata: {\"type\": \"ping\"}\n\n", 36};

void message_init(struct message *m, const char *model, bool stream)
{
    *m = (struct message){.model = mem_strdup(model), .stream = stream, .content = json_array()};
    id_make(m->id, "msg_");
    buf_init(&m->log, LOG_BYTES);
    buf_init(&m->text, MESSAGE_BYTES);
}

void message_done(struct message *m)
{
    free(m->model);
    free(m->stop_sequence);
    buf_done(&m->log);
    buf_done(&m->text);
    json_decref(m->content);
    json_decref(m->container);
    json_decref(m->approval);
    json_decref(m->open);
}

/* --- values --- */

static json_t *usage_of(const struct message *m)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:{s:I, s:I}, s:{s:i, s:i, s:I}, s:n, s:s, s:n, s:n, "
                     "s:n, s:n}",
                     "input_tokens", (json_int_t)m->input_tokens, "output_tokens",
                     (json_int_t)m->output_tokens, "cache_creation_input_tokens",
                     (json_int_t)m->cache_written, "cache_read_input_tokens",
                     (json_int_t)m->cache_read, "cache_creation", "ephemeral_5m_input_tokens",
                     (json_int_t)(m->cache_written - m->cache_hour), "ephemeral_1h_input_tokens",
                     (json_int_t)m->cache_hour, "server_tool_use", "web_search_requests", 0,
                     "web_fetch_requests", 0, "code_execution_requests", (json_int_t)m->runs,
                     "output_tokens_details", "service_tier", "standard", "inference_geo", "speed",
                     "iterations", "fallback_credit");
}

static json_t *container_of(const struct message *m)
{
    return m->container ? json_incref(m->container) : json_null();
}

static json_t *envelope(const struct message *m, json_t *content)
{
    json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:n, s:o, s:n, s:n, s:o}", "id",
                          m->id, "type", "message", "role", "assistant", "model", m->model,
                          "content", content, "stop_reason", m->stop, "stop_sequence",
                          m->stop_sequence, "stop_details", "container", container_of(m),
                          "context_management", "diagnostics", "usage", usage_of(m));

    if (m->approval)
        json_object_set(v, "pending_approval", m->approval);
    return v;
}

json_t *message_value(const struct message *m)
{
    return envelope(m, json_incref(m->content));
}

/* --- events --- */

/* Takes data. */
static void put_event(struct message *m, const char *name, json_t *data)
{
    AUTO_FREE char *text = NULL;
    size_t n = 0, before = m->log.n;

    if (m->stream && !m->full) {
        json_object_set_new(data, "type", json_string(name));
        text = record_dump(data, false, &n);
        if (text)
            event_write(&m->log, NULL, name, (struct str){text, n});
        m->full = !text || m->log.full;
        if (m->full)
            m->log.n = before; /* drop the half that was written */
    }
    json_decref(data);
}

void message_begin(struct message *m)
{
    if (m->begun)
        return;
    m->begun = true;
    put_event(m, "message_start", json_pack("{s:o}", "message", envelope(m, json_array())));
}

static json_int_t place(const struct message *m)
{
    return (json_int_t)json_array_size(m->content);
}

static void put_start(struct message *m, json_t *block)
{
    message_begin(m);
    put_event(m, "content_block_start",
              json_pack("{s:I, s:o}", "index", place(m), "content_block", block));
}

/* Takes delta. */
static void put_delta(struct message *m, const char *type, json_t *delta)
{
    json_object_set_new(delta, "type", json_string(type));
    put_event(m, "content_block_delta", json_pack("{s:I, s:o}", "index", place(m), "delta", delta));
}

static void put_stop(struct message *m)
{
    put_event(m, "content_block_stop", json_pack("{s:I}", "index", place(m)));
}

/* --- blocks that grow --- */

void message_text(struct message *m, struct str piece)
{
    if (piece.n == 0)
        return;
    if (m->open)
        message_close(m, NULL);
    if (!m->growing)
        put_start(m, json_pack("{s:s, s:s, s:n}", "type", "text", "text", "", "citations"));
    m->growing = true;
    put_delta(m, "text_delta", json_pack("{s:o}", "text", record_text(piece)));
    m->full |= buf_put(&m->text, piece) < 0;
}

static void text_end(struct message *m)
{
    if (!m->growing)
        return;
    put_stop(m);
    m->growing = false;
    json_array_append_new(m->content, json_pack("{s:s, s:o, s:n}", "type", "text", "text",
                                                record_text(buf_str(&m->text)), "citations"));
    buf_clear(&m->text);
}

/* Begins a block that grows. Takes block, as it is at its beginning. */
static void message_open(struct message *m, json_t *block)
{
    message_close(m, NULL);
    m->open = block;
    put_start(m, json_deep_copy(block));
}

void message_more(struct message *m, const char *type, const char *key, struct str piece)
{
    assert(m->open);
    put_delta(m, type, json_pack("{s:o}", key, record_text(piece)));
}

void message_close(struct message *m, json_t *block)
{
    text_end(m);
    if (!m->open) {
        json_decref(block);
        return;
    }
    put_stop(m);
    json_array_append_new(m->content, block ? block : json_incref(m->open));
    json_decref(take_ptr(&m->open));
}

/* --- whole blocks --- */

static void put_use(struct message *m, const json_t *block)
{
    AUTO_FREE char *input = record_dump(json_object_get(block, "input"), false, NULL);

    message_open_use(m, block);
    message_more(m, "input_json_delta", "partial_json", str_of(input ? input : "{}"));
}

void message_open_use(struct message *m, const json_t *block)
{
    json_t *start = json_copy((json_t *)block);

    json_object_set_new(start, "input", json_object());
    message_open(m, start);
    message_more(m, "input_json_delta", "partial_json", STR(""));
}

static void put_thinking(struct message *m, const json_t *block)
{
    message_open_thinking(m);
    if (view_of(block, "thinking").n > 0)
        message_more(m, "thinking_delta", "thinking", view_of(block, "thinking"));
    if (view_of(block, "signature").n > 0)
        message_more(m, "signature_delta", "signature", view_of(block, "signature"));
}

void message_open_thinking(struct message *m)
{
    message_open(m,
                 json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""));
}

void message_block(struct message *m, json_t *block)
{
    const char *type = text_of(block, "type");

    if (strcmp(type, "server_tool_use") == 0 || strcmp(type, "tool_use") == 0)
        put_use(m, block);
    else if (strcmp(type, "thinking") == 0)
        put_thinking(m, block);
    else
        message_open(m, json_incref(block));
    message_close(m, block);
}

/* --- the end --- */

void message_end(struct message *m, const char *stop)
{
    json_t *delta;

    message_close(m, NULL);
    message_begin(m);
    m->stop = stop;
    m->ended = true;
    delta = json_pack("{s:s, s:s?, s:n, s:o}", "stop_reason", stop, "stop_sequence",
                      m->stop_sequence, "stop_details", "container", container_of(m));
    if (m->approval)
        json_object_set(delta, "pending_approval", m->approval);
    put_event(
        m, "message_delta",
        json_pack("{s:o, s:o, s:n}", "delta", delta, "usage", usage_of(m), "context_management"));
    put_event(m, "message_stop", json_object());
}
