/*
 * Builds the conversation that is sent to the model: the request, its context, the plan and
 * the last three rounds in full, older rounds as one line each. When that is too long for
 * the model, only the last round is sent, shortened.
 */
#include "agent/agent_int.h"

#define ROUNDS_WHOLE 3
#define TIGHT_CHARS  2000 /* of a result, when the conversation is too long */
#define TEXT_MAX     (4 * MiB)

static json_t *text_part(struct str s)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", text_value(s));
}

static json_t *message(const char *role, json_t *parts)
{
    return json_pack("{s:s, s:o}", "role", role, "parts", parts);
}

/* --- what came before --- */

/* Index of the first exchange that is sent in full. */
static size_t whole_from(const json_t *talk, size_t rounds)
{
    size_t i = json_array_size(talk);

    while (i > 0 && rounds > 0)
        rounds -= json_object_get(json_array_get(talk, --i), "line") != NULL;
    return i;
}

static void put_lines(struct buf *b, const json_t *talk, size_t end)
{
    bool first = true;

    for (size_t i = 0; i < end; i++) {
        struct str line = json_str(json_array_get(talk, i), "line");

        if (line.n > 0)
            buf_printf(b, "%s- %.*s\n", first ? "\nWhat was run before:\n" : "", (int)line.n,
                       line.p);
        first &= line.n == 0;
    }
}

static void put_plan(struct buf *b, const struct run_record *r)
{
    const json_t *plan = r->plan, *v;
    struct str context = json_text(r->context);
    size_t i;

    if (context.n > 0)
        buf_printf(b, "Context:\n%.*s\n\n", (int)context.n, context.p);
    json_array_foreach(plan, i, v)
        buf_printf(b, "%s%zu. %s\n", i ? "" : "The plan:\n", i + 1, json_string_value(v));
}

/* The request is a part of its own, unchanged. */
static json_t *first_message(const struct run_record *r, const char *kind, size_t from)
{
    json_t *parts = json_array();
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);

    json_array_append_new(parts, text_part(json_text(r->request)));
    if (strcmp(kind, "plan") == 0)
        prompt_plan(&b, r);
    else
        put_plan(&b, r);
    put_lines(&b, r->talk, from);
    json_array_append_new(parts, text_part(buf_str(&b)));
    return message("user", parts);
}

/* --- one exchange --- */

static bool has_call(const json_t *parts)
{
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part) {
        if (json_is(part, "type", "call"))
            return true;
    }
    return false;
}

/* What the model said, for a model without tools: the code of a call becomes text. */
static json_t *said_in_text(const json_t *item)
{
    struct str code = json_str(item, "code"), text = json_str(item, "text");
    bool called = has_call(json_object_get(item, "parts"));
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);

    buf_put(&b, text);
    if (called && code.n > 0)
        buf_printf(&b, "%s```python\n%.*s\n```", b.n ? "\n" : "", (int)code.n, code.p);
    if (b.n == 0)
        buf_printf(&b, "(no text)");
    return json_pack("[o]", text_part(buf_str(&b)));
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

/* Every call needs a result, also those that were not done. */
static json_t *answered(const json_t *item, bool text_mode, bool tight)
{
    json_t *parts = json_array(), *id = json_object_get(item, "id"), *extra;
    AUTO(buf_done) struct buf room = BUF(TEXT_MAX);
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);
    struct str text = result_of(item, tight, &room);
    size_t i;

    if (json_is_string(id) && !text_mode) {
        json_array_append_new(parts,
                              json_pack("{s:s, s:O, s:o, s:b}", "type", "result", "id", id, "text",
                                        text_value(text), "error", json_on(item, "error")));
        json_array_foreach(json_object_get(item, "extra"), i, extra)
            json_array_append_new(parts,
                                  json_pack("{s:s, s:O, s:s, s:b}", "type", "result", "id", extra,
                                            "text", "not run: one call at a time", "error", 1));
    } else {
        if (json_is_string(json_object_get(item, "code")))
            buf_put(&b, STR("Observation:\n"));
        buf_put(&b, text);
        json_array_append_new(parts, text_part(buf_str(&b)));
    }
    return parts;
}

/* --- all of it --- */

static void add_prompt(json_t *messages, const struct run_record *r, const char *kind)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);

    if (strcmp(kind, "final") == 0)
        prompt_final(&b, r);
    else if (strcmp(kind, "code") == 0)
        prompt_round(&b, r);
    if (b.n > 0)
        json_array_append_new(json_object_get(last, "parts"), text_part(buf_str(&b)));
}

size_t history_chars(const json_t *v)
{
    size_t n = 0, i;
    const char *key;
    json_t *member;

    if (json_is_string(v))
        return json_string_length(v);
    json_array_foreach((json_t *)v, i, member)
        n += history_chars(member);
    json_object_foreach((json_t *)v, key, member)
        n += history_chars(member);
    return n;
}

json_t *history_messages(const struct run_record *r, const char *kind, size_t *ret_chars)
{
    const json_t *talk = r->talk;
    bool text_mode = r->text_mode, tight = r->compacted;
    size_t from = whole_from(talk, tight ? 1 : ROUNDS_WHOLE);
    json_t *messages = json_array();

    if (strcmp(kind, "plan") == 0)
        from = whole_from(talk, 0);
    json_array_append_new(messages, first_message(r, kind, from));
    for (size_t i = from; i < json_array_size(talk); i++) {
        const json_t *item = json_array_get(talk, i);

        json_array_append_new(messages, message("assistant", said(item, text_mode)));
        json_array_append_new(messages, message("user", answered(item, text_mode, tight)));
    }
    add_prompt(messages, r, kind);
    *ret_chars = history_chars(messages);
    return messages;
}
