/*
 * Adapter for Anthropic's Messages.
 *
 * Roles must alternate, so messages of one role in a row become one; results of calls come
 * first; no text may be blank. Unknown blocks, such as thinking, are sent back unchanged.
 */
#include "model/model_int.h"

#define MAX_TOKENS 8192
#define INDEX_MAX  4096

/* --- the request --- */

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static json_t *text_block(json_t *text)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", text);
}

static json_t *source_of(const json_t *part)
{
    if (*text_of(part, "url"))
        return json_pack("{s:s, s:s}", "type", "url", "url", text_of(part, "url"));
    return json_pack("{s:s, s:s, s:s}", "type", "base64", "media_type", text_of(part, "mime"),
                     "data", text_of(part, "data"));
}

static json_t *image_block(const json_t *image, bool sees)
{
    if (!sees)
        return text_block(image_note(image));
    return json_pack("{s:s, s:o}", "type", "image", "source", source_of(image));
}

static json_t *document_block(const json_t *part)
{
    return json_pack("{s:s, s:o, s:O*}", "type", "document", "source", source_of(part), "title",
                     json_object_get(part, "title"));
}

static json_t *block_of(const json_t *part, bool sees);

/* Plain text when nothing is attached to the result. */
static json_t *result_content(const json_t *part, bool sees)
{
    const json_t *attached = json_object_get(part, "attached"), *one;
    json_t *blocks, *block;
    size_t i;

    if (json_array_size(attached) == 0)
        return text_in(part, "text");
    blocks = json_array();
    if (!is_blank(text_of(part, "text")))
        json_array_append_new(blocks, text_block(text_in(part, "text")));
    json_array_foreach(attached, i, one) {
        block = block_of(one, sees);
        if (block)
            json_array_append_new(blocks, block);
    }
    return blocks;
}

static json_t *result_block(const json_t *part, bool sees)
{
    json_t *block = json_pack("{s:s, s:s, s:o}", "type", "tool_result", "tool_use_id",
                              text_of(part, "id"), "content", result_content(part, sees));

    if (json_is_true(json_object_get(part, "error")))
        json_object_set_new(block, "is_error", json_true());
    return block;
}

/* NULL: the part is not sent. */
static json_t *block_of(const json_t *part, bool sees)
{
    const char *type = text_of(part, "type");

    if (strcmp(type, "text") == 0)
        return is_blank(text_of(part, "text")) ? NULL : text_block(text_in(part, "text"));
    if (strcmp(type, "image") == 0)
        return image_block(part, sees);
    if (strcmp(type, "document") == 0)
        return document_block(part);
    if (strcmp(type, "result") == 0)
        return result_block(part, sees);
    if (strcmp(type, "call") == 0)
        return json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id", text_of(part, "id"),
                         "name", text_of(part, "name"), "input", call_args(part));
    if (strcmp(type, "kept") == 0 && strcmp(text_of(part, "api"), "anthropic") == 0)
        return json_deep_copy(json_object_get(part, "block"));
    return NULL;
}

static void put_cache(json_t *block, const json_t *cache)
{
    if (block && json_is_object(cache))
        json_object_set_new(block, "cache_control", json_deep_copy(cache));
}

/* results: only results, or everything else. */
static void put_blocks(json_t *content, const json_t *parts, bool results, bool sees)
{
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part) {
        bool is_result = strcmp(text_of(part, "type"), "result") == 0;
        json_t *block = is_result == results ? block_of(part, sees) : NULL;

        put_cache(block, json_object_get(part, "cache"));
        if (block)
            json_array_append_new(content, block);
    }
}

/* Joins the messages of one role at `at`; returns the index of the next role. */
static size_t put_turn(json_t *messages, const json_t *from, size_t at, bool sees)
{
    const char *role = text_of(json_array_get(from, at), "role");
    json_t *content = json_array();
    size_t end = at;

    while (end < json_array_size(from) &&
           strcmp(text_of(json_array_get(from, end), "role"), role) == 0)
        end++;
    for (int results = 1; results >= 0; results--)
        for (size_t i = at; i < end; i++)
            put_blocks(content, json_object_get(json_array_get(from, i), "parts"), results, sees);
    if (json_array_size(content) > 0)
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", role, "content", content));
    json_decref(content);
    return end;
}

static json_t *tools_of(const json_t *tools)
{
    json_t *items = json_array();
    const json_t *tool;
    size_t i;

    json_array_foreach(tools, i, tool) {
        json_array_append_new(items, json_pack("{s:s, s:s, s:o}", "name", text_of(tool, "name"),
                                               "description", text_of(tool, "description"),
                                               "input_schema", tool_schema(tool)));
        put_cache(json_array_get(items, i), json_object_get(tool, "cache"));
    }
    return items;
}

static void put_tools(json_t *request, const struct model_ask *ask)
{
    json_t *choice;

    if (json_array_size(ask->tools) == 0)
        return;
    json_object_set_new(request, "tools", tools_of(ask->tools));
    if (ask->choice == MODEL_AUTO && !ask->one_at_a_time)
        return;
    if (ask->choice == MODEL_MUST_CALL && ask->tool.n > 0)
        choice = json_pack("{s:s, s:s%}", "type", "tool", "name", ask->tool.p, ask->tool.n);
    else
        choice = json_pack("{s:s}", "type",
                           ask->choice == MODEL_NO_CALL     ? "none"
                           : ask->choice == MODEL_MUST_CALL ? "any"
                                                            : "auto");
    if (ask->one_at_a_time && ask->choice != MODEL_NO_CALL)
        json_object_set_new(choice, "disable_parallel_tool_use", json_true());
    json_object_set_new(request, "tool_choice", choice);
}

static const char *const options[] = {"temperature",   "top_p",    "top_k",         "thinking",
                                      "output_config", "metadata", "cache_control", NULL};

static json_t *make_request(const struct question *q)
{
    const struct model_ask *ask = q->ask;
    json_t *messages = json_array(), *r;

    for (size_t i = 0; i < json_array_size(ask->messages);)
        i = put_turn(messages, ask->messages, i, q->sees_images);
    r = json_pack("{s:s, s:I, s:b, s:o}", "model", q->name, "max_tokens", (json_int_t)q->max_tokens,
                  "stream", 1, "messages", messages);
    if (ask->system.n > 0 && ask->system_cache) {
        json_t *block = text_block(json_stringn(ask->system.p, ask->system.n));
        put_cache(block, ask->system_cache);
        json_object_set_new(r, "system", json_pack("[o]", block));
    } else if (ask->system.n > 0) {
        json_object_set_new(r, "system", json_stringn(ask->system.p, ask->system.n));
    }
    put_tools(r, ask);
    put_options(r, ask->options, options);
    if (json_array_size(ask->stop) > 0)
        json_object_set_new(r, "stop_sequences", json_deep_copy(ask->stop));
    return r;
}

/* --- the reply --- */

static void take_stop(struct draft *d, const json_t *reason)
{
    static const struct stop_word words[] = {
        {"end_turn",                      MODEL_DONE   },
        {"stop_sequence",                 MODEL_DONE   },
        {"tool_use",                      MODEL_CALLS  },
        {"max_tokens",                    MODEL_LENGTH },
        {"pause_turn",                    MODEL_PAUSE  },
        {"refusal",                       MODEL_REFUSAL},
        {"model_context_window_exceeded", MODEL_WINDOW },
    };

    draft_stop_word(d, words, COUNT(words), reason);
}

static uint64_t tokens_of(const json_t *usage, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(usage, key));

    return n > 0 ? (uint64_t)n : 0;
}

/* Tokens read from or written to a cache count as input. */
static void take_usage(struct draft *d, const json_t *usage)
{
    uint64_t written = tokens_of(usage, "cache_creation_input_tokens");
    uint64_t read = tokens_of(usage, "cache_read_input_tokens");
    uint64_t hour =
        tokens_of(json_object_get(usage, "cache_creation"), "ephemeral_1h_input_tokens");
    uint64_t in = tokens_of(usage, "input_tokens") + written + read;
    uint64_t out = tokens_of(usage, "output_tokens");

    if (in > 0) {
        d->input_tokens = in;
        d->cache_written = written;
        d->cache_read = read;
        d->cache_hour = hour < written ? hour : written;
    }
    d->output_tokens = out ? out : d->output_tokens;
}

static int take_block(struct draft *d, size_t at, const json_t *block)
{
    const char *type = json_string_value(json_object_get(block, "type"));

    if (!type)
        return -1;
    if (strcmp(type, "text") == 0)
        return draft_text(d, at, json_object_get(block, "text"));
    if (strcmp(type, "tool_use") == 0)
        return draft_call(d, at, text_of(block, "id"), text_of(block, "name")) < 0
                   ? -1
                   : draft_args_json(d, at, json_object_get(block, "input"));
    return draft_kept(d, at, "anthropic", block);
}

static int take_delta(struct draft *d, size_t at, const json_t *delta)
{
    const char *type = text_of(delta, "type");

    if (strcmp(type, "text_delta") == 0)
        return draft_text(d, at, json_object_get(delta, "text"));
    if (strcmp(type, "input_json_delta") == 0)
        return draft_args(d, at, json_view(json_object_get(delta, "partial_json")));
    if (strcmp(type, "thinking_delta") == 0)
        return draft_kept_more(d, at, "thinking", json_object_get(delta, "thinking"));
    if (strcmp(type, "signature_delta") == 0)
        return draft_kept_more(d, at, "signature", json_object_get(delta, "signature"));
    return 0; /* unknown kinds are ignored */
}

static int take_event(struct draft *d, const json_t *data)
{
    const char *type = json_string_value(json_object_get(data, "type"));
    const json_t *message = json_object_get(data, "message");
    json_int_t index = json_integer_value(json_object_get(data, "index"));
    size_t at = index >= 0 && index < INDEX_MAX ? (size_t)index : INDEX_MAX;

    if (!type)
        return -1;
    if (strcmp(type, "content_block_start") == 0)
        return take_block(d, at, json_object_get(data, "content_block"));
    if (strcmp(type, "content_block_delta") == 0)
        return take_delta(d, at, json_object_get(data, "delta"));
    if (strcmp(type, "message_start") == 0) {
        draft_name(d, json_object_get(message, "model"));
        take_usage(d, json_object_get(message, "usage"));
    } else if (strcmp(type, "message_delta") == 0) {
        take_stop(d, json_object_get(json_object_get(data, "delta"), "stop_reason"));
        draft_stop_sequence(d, json_object_get(json_object_get(data, "delta"), "stop_sequence"));
        take_usage(d, json_object_get(data, "usage"));
    } else if (strcmp(type, "message_stop") == 0) {
        d->ended = true;
    } else if (strcmp(type, "error") == 0) {
        draft_trouble(d, json_object_get(data, "error"));
    }
    return 0;
}

static int take_whole(struct draft *d, const json_t *body)
{
    const json_t *content = json_object_get(body, "content"), *block;
    size_t i;

    if (strcmp(text_of(body, "type"), "error") == 0)
        return take_event(d, body);
    if (!json_is_array(content))
        return -1;
    json_array_foreach(content, i, block) {
        if (take_block(d, i, block) < 0)
            return -1;
    }
    draft_name(d, json_object_get(body, "model"));
    take_usage(d, json_object_get(body, "usage"));
    take_stop(d, json_object_get(body, "stop_reason"));
    draft_stop_sequence(d, json_object_get(body, "stop_sequence"));
    d->ended = true;
    return 0;
}

/* Only what has the type that it should have. */
static json_t *about_of(const json_t *body)
{
    static const char *const texts[] = {"created_at", "display_name"};
    static const char *const counts[] = {"max_input_tokens", "max_tokens"};
    json_t *v = json_object(), *one;

    for (size_t i = 0; i < COUNT(texts); i++)
        if (json_is_string(one = json_object_get(body, texts[i])))
            json_object_set(v, texts[i], one);
    for (size_t i = 0; i < COUNT(counts); i++)
        if (json_is_integer(one = json_object_get(body, counts[i])) && json_integer_value(one) > 0)
            json_object_set(v, counts[i], one);
    if (json_is_object(one = json_object_get(body, "capabilities")))
        json_object_set(v, "capabilities", one);
    return v;
}

const struct adapter adapter_anthropic = {
    .api = "anthropic",
    .path = "/v1/messages",
    .key_header = "x-api-key: ",
    .header = "anthropic-version: 2023-06-01",
    .betas_header = "anthropic-beta: ",
    .max_tokens = MAX_TOKENS,
    .options = options,
    .pdf = true,
    .request = make_request,
    .event = take_event,
    .whole = take_whole,
    .about_path = "/v1/models/",
    .about = about_of,
};
