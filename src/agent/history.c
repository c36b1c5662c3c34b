/*
 * The conversation as it is sent. The request, its context and the plan come first and
 * whole; so do the last three rounds; what is older is one line each. Where even that is
 * too long for a model, one round is left, and less of it.
 */
#include "agent/agent_int.h"

#include <stdio.h>

#define ROUNDS_WHOLE 3
#define TIGHT_CHARS  2000 /* of a result, once the conversation was too long */
#define TEXT_MAX     (4 * MiB)

#define say(b, ...)                                                                                \
    do {                                                                                           \
        struct err say_e_;                                                                         \
        (void)!buf_printf(b, &say_e_, __VA_ARGS__);                                                \
    } while (0)

static json_t *text_part(struct str s)
{
    return json_pack("{s:s, s:o}", "type", "text", "text",
                     json_stringn_nocheck(s.n ? s.p : "", str_utf8_len(s)));
}

static json_t *message(const char *role, json_t *parts)
{
    return json_pack("{s:s, s:o}", "role", role, "parts", parts);
}

/* --- what came before --- */

/* The first exchange that is sent whole. */
static size_t whole_from(const json_t *talk, size_t rounds)
{
    size_t i = json_array_size(talk);

    while (i > 0 && rounds > 0) {
        const json_t *item = json_array_get(talk, --i);
        rounds -= json_str(item, "line").p != NULL;
    }
    return i;
}

static void put_lines(struct buf *b, const json_t *talk, size_t end)
{
    bool first = true;

    for (size_t i = 0; i < end; i++) {
        struct str line = json_str(json_array_get(talk, i), "line");

        if (line.n > 0)
            say(b, "%s- %.*s\n", first ? "\nWhat was run before:\n" : "", (int)line.n, line.p);
        first &= line.n == 0;
    }
}

static void put_plan(struct buf *b, const json_t *record)
{
    const json_t *plan = json_object_get(record, "plan"), *v;
    struct str context = json_str(record, "context");
    size_t i;

    if (context.n > 0)
        say(b, "Context:\n%.*s\n\n", (int)context.n, context.p);
    json_array_foreach(plan, i, v)
        say(b, "%s%zu. %s\n", i ? "" : "The plan:\n", i + 1, json_string_value(v));
}

/* The request stands by itself, as it came. */
static json_t *first_message(const json_t *record, const char *kind, size_t from)
{
    const json_t *inner = json_object_get(record, "inner");
    json_t *parts = json_array();
    struct str why = json_str(inner, "plan_why");
    struct buf b;

    buf_init(&b, TEXT_MAX);
    json_array_append_new(parts, text_part(json_str(record, "request")));
    if (strcmp(kind, "plan") == 0)
        prompt_plan(&b, record, why.n ? why.p : NULL);
    else
        put_plan(&b, record);
    put_lines(&b, json_object_get(inner, "talk"), from);
    json_array_append_new(parts, text_part(buf_str(&b)));
    buf_done(&b);
    return message("user", parts);
}

/* --- one exchange --- */

static bool has_call(const json_t *parts)
{
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part)
    {
        if (json_is(part, "type", "call"))
            return true;
    }
    return false;
}

/* What it said, with the code as text where it was a call and there are no calls any more. */
static json_t *said_in_text(const json_t *item)
{
    struct str code = json_str(item, "code"), text = json_str(item, "text");
    bool called = has_call(json_object_get(item, "parts"));
    json_t *parts = json_array();
    struct buf b;

    buf_init(&b, TEXT_MAX);
    if (text.n > 0)
        say(&b, "%.*s", (int)text.n, text.p);
    if (called && code.n > 0)
        say(&b, "%s```python\n%.*s\n```", b.n ? "\n" : "", (int)code.n, code.p);
    if (b.n == 0)
        say(&b, "(no text)");
    json_array_append_new(parts, text_part(buf_str(&b)));
    buf_done(&b);
    return parts;
}

static json_t *said(const json_t *item, bool text_mode)
{
    json_t *parts = json_object_get(item, "parts");

    if (text_mode || json_array_size(parts) == 0)
        return said_in_text(item);
    return json_incref(parts);
}

static struct str result_of(const json_t *item, bool tight, struct buf *room)
{
    struct str s = json_str(item, "result");

    if (!tight || s.n <= TIGHT_CHARS)
        return s;
    observe_cut(room, s, TIGHT_CHARS, NULL);
    return buf_str(room);
}

/* Every call gets its result, also those that were not done. */
static json_t *answered(const json_t *item, bool text_mode, bool tight)
{
    json_t *parts = json_array(), *id = json_object_get(item, "id"), *extra;
    struct buf room, b;
    struct str text;
    size_t i;

    buf_init(&room, TEXT_MAX);
    buf_init(&b, TEXT_MAX);
    text = result_of(item, tight, &room);
    if (json_is_string(id) && !text_mode) {
        json_array_append_new(
            parts, json_pack("{s:s, s:O, s:o, s:b}", "type", "result", "id", id, "text",
                             json_stringn_nocheck(text.n ? text.p : "", str_utf8_len(text)),
                             "error", json_on(item, "error")));
        json_array_foreach(json_object_get(item, "extra"), i, extra) json_array_append_new(
            parts, json_pack("{s:s, s:O, s:s, s:b}", "type", "result", "id", extra, "text",
                             "not run: one call at a time", "error", 1));
    } else {
        say(&b, "%s%.*s", json_is_string(json_object_get(item, "code")) ? "Observation:\n" : "",
            (int)text.n, text.p ? text.p : "");
        json_array_append_new(parts, text_part(buf_str(&b)));
    }
    buf_done(&room);
    buf_done(&b);
    return parts;
}

/* --- all of it --- */

static void add_prompt(json_t *messages, const json_t *record, const char *kind)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    struct buf b;

    buf_init(&b, TEXT_MAX);
    if (strcmp(kind, "final") == 0)
        prompt_final(&b, record);
    else if (strcmp(kind, "code") == 0)
        prompt_round(&b, record);
    if (b.n > 0)
        json_array_append_new(json_object_get(last, "parts"), text_part(buf_str(&b)));
    buf_done(&b);
}

size_t history_chars(const json_t *v)
{
    size_t n = 0, i;
    const char *key;
    json_t *member;

    if (json_is_string(v))
        return json_string_length(v);
    json_array_foreach((json_t *)v, i, member) n += history_chars(member);
    json_object_foreach((json_t *)v, key, member) n += history_chars(member);
    return n;
}

json_t *history_messages(const json_t *record, const char *kind, size_t *ret_chars)
{
    const json_t *inner = json_object_get(record, "inner"), *talk = json_object_get(inner, "talk");
    bool text_mode = json_on(inner, "text_mode"), tight = json_on(inner, "compacted");
    size_t from = whole_from(talk, tight ? 1 : ROUNDS_WHOLE);
    json_t *messages = json_array();

    if (strcmp(kind, "plan") == 0)
        from = whole_from(talk, 0);
    json_array_append_new(messages, first_message(record, kind, from));
    for (size_t i = from; i < json_array_size(talk); i++) {
        const json_t *item = json_array_get(talk, i);

        json_array_append_new(messages, message("assistant", said(item, text_mode)));
        json_array_append_new(messages, message("user", answered(item, text_mode, tight)));
    }
    add_prompt(messages, record, kind);
    *ret_chars = history_chars(messages);
    return messages;
}
