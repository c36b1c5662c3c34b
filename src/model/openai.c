/*
 * Adapter for chat completions, as spoken by OpenAI and, nearly, by many others.
 *
 * The text of a reply is piece TEXT_AT; call n is piece CALL_AT + n. reasoning_content is
 * dropped: no endpoint needs it back, and some refuse it.
 */
#include "model/model_int.h"

#include <stdlib.h>
#include <time.h>

#define TEXT_AT     0
#define CALL_AT     1
#define INDEX_MAX   4096
#define CREATED_MAX INT64_C(253402300800) /* the year 10000 */

/* --- the request --- */

static json_t *text_item(const json_t *part)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", text_in(part, "text"));
}

static json_t *image_item(const json_t *image, bool sees)
{
    json_t *url;

    if (!sees)
        return json_pack("{s:s, s:o}", "type", "text", "text", image_note(image));
    if (*text_of(image, "url"))
        return json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url",
                         text_of(image, "url"));
    url = json_sprintf("data:%s;base64,%s", text_of(image, "mime"), text_of(image, "data"));
    return json_pack("{s:s, s:{s:o}}", "type", "image_url", "image_url", "url", url);
}

/* A single text as a string, else the items. Takes items. */
static json_t *content_of(json_t *items)
{
    json_t *first = json_array_get(items, 0), *text = json_object_get(first, "text");

    if (json_array_size(items) != 1 || !text)
        return items;
    json_incref(text);
    json_decref(items);
    return text;
}

static void put_item(json_t *items, const json_t *part, bool sees)
{
    if (strcmp(text_of(part, "type"), "text") == 0)
        json_array_append_new(items, text_item(part));
    else if (strcmp(text_of(part, "type"), "image") == 0)
        json_array_append_new(items, image_item(part, sees));
}

/* The text of a result with the texts that are attached to it, up to an image: *rest is its number.
 */
static json_t *result_content(const json_t *part, size_t *rest)
{
    const json_t *attached = json_object_get(part, "attached"), *one;
    AUTO(buf_done) struct buf b = BUF(SIZE_MAX);

    buf_put(&b, json_view(json_object_get(part, "text")));
    for (*rest = 0; (one = json_array_get(attached, *rest)); (*rest)++) {
        if (strcmp(text_of(one, "type"), "text") != 0)
            break;
        buf_put(&b, b.n > 0 ? STR("\n\n") : STR(""));
        buf_put(&b, json_view(json_object_get(one, "text")));
    }
    return json_stringn(b.p ? b.p : "", b.n);
}

/* Results come first, one message each, because they must follow the calls. The role tool has only
 * text: images, and what follows them, go in front of the user's text. */
static void put_user(json_t *messages, const json_t *parts, bool sees)
{
    json_t *items = json_array();
    const json_t *part, *one;
    size_t i, k;

    json_array_foreach(parts, i, part) {
        const char *type = text_of(part, "type");

        if (strcmp(type, "result") != 0)
            continue;
        json_array_append_new(messages,
                              json_pack("{s:s, s:s, s:o}", "role", "tool", "tool_call_id",
                                        text_of(part, "id"), "content", result_content(part, &k)));
        for (; (one = json_array_get(json_object_get(part, "attached"), k)); k++)
            put_item(items, one, sees);
    }
    json_array_foreach(parts, i, part) {
        put_item(items, part, sees);
    }
    if (json_array_size(items) > 0)
        json_array_append_new(
            messages, json_pack("{s:s, s:o}", "role", "user", "content", content_of(items)));
    else
        json_decref(items);
}

static json_t *call_item(const json_t *call)
{
    json_t *args = call_args(call), *item;
    char *text = json_dumps(args, JSON_COMPACT);

    item = json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", text_of(call, "id"), "type", "function",
                     "function", "name", text_of(call, "name"), "arguments", text ? text : "{}");
    free(text);
    json_decref(args);
    return item;
}

static void put_assistant(json_t *messages, const json_t *parts)
{
    json_t *calls = json_array(), *message = json_pack("{s:s}", "role", "assistant");
    AUTO(buf_done) struct buf text = BUF(SIZE_MAX);
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part) {
        const char *type = text_of(part, "type");

        if (strcmp(type, "text") == 0)
            buf_put(&text, json_view(json_object_get(part, "text")));
        else if (strcmp(type, "call") == 0)
            json_array_append_new(calls, call_item(part));
    }
    json_object_set_new(message, "content",
                        text.n > 0 ? json_stringn(text.p, text.n) : json_null());
    if (json_array_size(calls) > 0)
        json_object_set(message, "tool_calls", calls);
    if (text.n > 0 || json_array_size(calls) > 0)
        json_array_append(messages, message);
    json_decref(calls);
    json_decref(message);
}

static json_t *messages_of(const struct question *q)
{
    json_t *messages = json_array();
    const json_t *message;
    size_t i;

    if (q->ask->system.n > 0)
        json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", "system", "content",
                                                  q->ask->system.p, q->ask->system.n));
    json_array_foreach(q->ask->messages, i, message) {
        const json_t *parts = json_object_get(message, "parts");

        if (strcmp(text_of(message, "role"), "assistant") == 0)
            put_assistant(messages, parts);
        else
            put_user(messages, parts, q->sees_images);
    }
    return messages;
}

static json_t *tools_of(const json_t *tools)
{
    json_t *items = json_array();
    const json_t *tool;
    size_t i;

    json_array_foreach(tools, i, tool) {
        json_array_append_new(items, json_pack("{s:s, s:{s:s, s:s, s:o}}", "type", "function",
                                               "function", "name", text_of(tool, "name"),
                                               "description", text_of(tool, "description"),
                                               "parameters", tool_schema(tool)));
    }
    return items;
}

static void put_tools(json_t *request, const struct model_ask *ask)
{
    if (json_array_size(ask->tools) == 0)
        return;
    json_object_set_new(request, "tools", tools_of(ask->tools));
    if (ask->choice == MODEL_NO_CALL)
        json_object_set_new(request, "tool_choice", json_string("none"));
    else if (ask->choice == MODEL_MUST_CALL && ask->tool.n > 0)
        json_object_set_new(request, "tool_choice",
                            json_pack("{s:s, s:{s:s%}}", "type", "function", "function", "name",
                                      ask->tool.p, ask->tool.n));
    else if (ask->choice == MODEL_MUST_CALL)
        json_object_set_new(request, "tool_choice", json_string("required"));
    if (ask->one_at_a_time)
        json_object_set_new(request, "parallel_tool_calls", json_false());
}

static const char *const options[] = {"temperature", "top_p", NULL};

static json_t *make_request(const struct question *q)
{
    json_t *r = json_pack("{s:s, s:o, s:b, s:{s:b}}", "model", q->name, "messages", messages_of(q),
                          "stream", 1, "stream_options", "include_usage", 1);

    put_tools(r, q->ask);
    put_options(r, q->ask->options, options);
    if (q->max_tokens)
        json_object_set_new(r, "max_tokens", json_integer((json_int_t)q->max_tokens));
    if (json_array_size(q->ask->stop) > 0)
        json_object_set_new(r, "stop", json_deep_copy(q->ask->stop));
    return r;
}

/* --- the reply --- */

static const struct stop_word stops[] = {
    {"stop",           MODEL_DONE   },
    {"tool_calls",     MODEL_CALLS  },
    {"length",         MODEL_LENGTH },
    {"content_filter", MODEL_REFUSAL},
};

/* The piece of a call. Some endpoints send no index, or the same for all calls: then the id tells
 * calls apart. */
static size_t call_at(const struct draft *d, const json_t *call, const char *id)
{
    const json_t *index = json_object_get(call, "index");
    json_int_t v = json_integer_value(index);
    const char *last;
    size_t n = draft_calls(d);

    if (json_is_integer(index))
        return CALL_AT + (v >= 0 && v < INDEX_MAX ? (size_t)v : INDEX_MAX);
    last = n > 0 ? draft_id(d, CALL_AT + n - 1) : NULL;
    return n > 0 && (!*id || (last && strcmp(last, id) == 0)) ? CALL_AT + n - 1 : CALL_AT + n;
}

static int take_calls(struct draft *d, const json_t *calls, bool whole)
{
    const json_t *call;
    size_t i;

    json_array_foreach(calls, i, call) {
        const json_t *function = json_object_get(call, "function");
        const char *id = text_of(call, "id");
        size_t at = whole ? CALL_AT + i : call_at(d, call, id);

        if (draft_call(d, at, id, text_of(function, "name")) < 0 ||
            draft_args_json(d, at, json_object_get(function, "arguments")) < 0)
            return -1;
    }
    return 0;
}

/* A string, or, from some endpoints, a list of text items. */
static int take_content(struct draft *d, const json_t *content)
{
    const json_t *item;
    size_t i;

    if (json_is_string(content))
        return draft_text(d, TEXT_AT, content);
    json_array_foreach(content, i, item) {
        if (strcmp(text_of(item, "type"), "text") == 0 &&
            draft_text(d, TEXT_AT, json_object_get(item, "text")) < 0)
            return -1;
    }
    return 0;
}

/* Reads a message, or a delta of one. */
static int take_message(struct draft *d, const json_t *m, bool whole)
{
    const json_t *refusal = json_object_get(m, "refusal");

    if (json_string_length(refusal) > 0)
        draft_stop(d, MODEL_REFUSAL);
    return take_content(d, json_object_get(m, "content")) < 0 ||
                   draft_text(d, TEXT_AT, refusal) < 0 ||
                   take_calls(d, json_object_get(m, "tool_calls"), whole) < 0
               ? -1
               : 0;
}

static void take_usage(struct draft *d, const json_t *usage)
{
    json_int_t in = json_integer_value(json_object_get(usage, "prompt_tokens"));
    json_int_t out = json_integer_value(json_object_get(usage, "completion_tokens"));

    json_int_t read = json_integer_value(
        json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens"));

    if (in > 0)
        d->input_tokens = (uint64_t)in;
    if (read > 0 && read <= in)
        d->cache_read = (uint64_t)read;
    if (out > 0)
        d->output_tokens = (uint64_t)out;
}

static int take_choice(struct draft *d, const json_t *data, bool whole)
{
    const json_t *choices = json_object_get(data, "choices"), *choice = json_array_get(choices, 0);
    json_t *error = json_object_get(data, "error");

    if (error && !json_is_null(error)) {
        draft_trouble(d, error);
        return 0;
    }
    if (!json_is_array(choices))
        return -1;
    draft_name(d, json_object_get(data, "model"));
    take_usage(d, json_object_get(data, "usage"));
    if (take_message(d, json_object_get(choice, whole ? "message" : "delta"), whole) < 0)
        return -1;
    draft_stop_sequence(d, json_object_get(choice, "stop_reason")); /* of vLLM and its kin */
    if (!d->has_stop)
        draft_stop_word(d, stops, COUNT(stops), json_object_get(choice, "finish_reason"));
    return 0;
}

static int take_event(struct draft *d, const json_t *data)
{
    return take_choice(d, data, false);
}

static int take_whole(struct draft *d, const json_t *body)
{
    bool none = json_array_size(json_object_get(body, "choices")) == 0;

    if (take_choice(d, body, true) < 0)
        return -1;
    d->ended = true;
    return none && !d->trouble ? -1 : 0;
}

static const struct request_fallback fallbacks[] = {
    {"parallel_tool_calls",   NULL                   },
    {"max_tokens",            "max_completion_tokens"},
    {"max_completion_tokens", "max_tokens",            .back = true},
    {"stream_options",                       NULL                              },
};

/* Seconds since 1970; 0 where nobody knows. */
static json_t *about_of(const json_t *body)
{
    time_t created = (time_t)json_integer_value(json_object_get(body, "created"));
    json_t *v = json_object();
    char text[32];
    struct tm t;

    if (created > 0 && created < CREATED_MAX && gmtime_r(&created, &t) &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &t) > 0)
        json_object_set_new(v, "created_at", json_string(text));
    return v;
}

const struct adapter adapter_openai = {
    .api = "openai",
    .path = "/chat/completions",
    .key_header = "Authorization: Bearer ",
    .fallbacks = fallbacks,
    .fallback_count = COUNT(fallbacks),
    .options = options,
    .request = make_request,
    .event = take_event,
    .whole = take_whole,
    .about_path = "/models/",
    .about = about_of,
};
