/* What stands in a message: calls, results, and what a model reads of them. */
#include "doors/anthropic/messages_int.h"

#include <stdio.h>

/* --- ids --- */

#define SESSION_PREFIX "sess_"

/*
 * The session stands in the id, so whoever forgets the container and sends the history
 * finds it again. It gives nothing away: a session is looked up by its tenant, too.
 */
void tool_id_make(char ret[TOOL_ID_MAX], const char *prefix, const char *session)
{
    char own[ID_MAX];

    id_make(own, "u_");
    snprintf(ret, TOOL_ID_MAX, "%s%s%s", prefix, *session ? session + strlen(SESSION_PREFIX) : "",
             *session ? own + 1 : own + 2);
}

bool tool_id_session(const char *id, char ret[ID_MAX])
{
    const char *at = strchr(id, '_'), *end = at ? strchr(at + 1, '_') : NULL;
    char session[ID_MAX];

    if (!end)
        return false;
    snprintf(session, sizeof(session), SESSION_PREFIX "%.*s", (int)(end - at - 1), at + 1);
    if (end - at > ID_MAX || !id_is(str_of(session), SESSION_PREFIX))
        return false;
    memcpy(ret, session, sizeof(session));
    return true;
}

/* --- blocks --- */

json_t *block_use(enum sub sub, const char *id, json_t *input)
{
    return json_pack("{s:s, s:s, s:s, s:O, s:{s:s}}", "type", "server_tool_use", "id", id, "name",
                     sub_tools[sub].name, "input", input, "caller", "type", "direct");
}

json_t *block_client_use(const char *id, const char *name, json_t *input, json_t *caller)
{
    return json_pack("{s:s, s:s, s:s, s:O, s:o}", "type", "tool_use", "id", id, "name", name,
                     "input", input, "caller",
                     caller ? json_incref(caller) : json_pack("{s:s}", "type", "direct"));
}

json_t *block_result(enum sub sub, const char *id, json_t *content)
{
    return json_pack("{s:s, s:s, s:o}", "type", sub_tools[sub].result, "tool_use_id", id, "content",
                     content);
}

json_t *content_error(enum sub sub, const char *code)
{
    json_t *v = json_pack("{s:s, s:s}", "type", sub_tools[sub].error, "error_code", code);

    if (sub == SUB_EDITOR)
        json_object_set_new(v, "error_message", json_null());
    return v;
}

/* Of the end of s that is no whole character. */
static size_t whole(struct str s)
{
    return s.n - utf8_torn(s);
}

json_t *output_clip(struct str text, size_t max, uint64_t dropped)
{
    char marker[96];
    struct str head = {text.p, max / 2}, tail;
    struct buf b;
    struct err e;
    json_t *v;

    if (text.n <= max && dropped == 0)
        return record_text(text);
    if (text.n < max)
        head.n = text.n / 2;
    head.n = whole(head);
    tail = (struct str){text.p + text.n - (text.n < max ? text.n - head.n : max / 2), 0};
    while (tail.p < text.p + text.n && ((unsigned char)*tail.p & 0xc0) == 0x80)
        tail.p++;
    tail.n = (size_t)(text.p + text.n - tail.p);
    snprintf(marker, sizeof(marker), "\n[... %llu bytes of output left out ...]\n",
             (unsigned long long)(text.n - head.n - tail.n + dropped));
    buf_init(&b, max + sizeof(marker));
    (void)!buf_put(&b, head, &e);
    (void)!buf_put(&b, str_of(marker), &e);
    (void)!buf_put(&b, tail, &e);
    v = record_text(buf_str(&b));
    buf_done(&b);
    return v;
}

json_t *content_ran(enum sub sub, struct str out, struct str err, int code, json_t *outputs,
                    uint64_t dropped)
{
    return json_pack("{s:s, s:o, s:o, s:i, s:o}", "type", sub_tools[sub].inner, "stdout",
                     output_clip(out, OUTPUT_SHOWN, dropped), "stderr",
                     output_clip(err, OUTPUT_SHOWN, 0), "return_code", code, "content", outputs);
}

/* --- as a model reads it --- */

static void put(struct buf *b, const char *text)
{
    struct err e;

    (void)!buf_put(b, str_of(text), &e);
}

static void put_clipped(struct buf *b, const json_t *text)
{
    json_t *v = output_clip(json_view(text), MODEL_SHOWN, 0);
    struct err e;

    (void)!buf_put(b, json_view(v), &e);
    json_decref(v);
}

/* Said of an error, as its code alone helps nobody. */
static const struct {
    const char *code, *text;
} meanings[] = {
    {"invalid_tool_input",      "the input of this call is not what the tool takes"                   },
    {"unavailable",             "it was not run, or its result is lost: the sandbox was not available"},
    {"too_many_requests",       "it was not run: too much runs at the moment; try again later"        },
    {"execution_time_exceeded", "it took longer than a call may take, and was ended"                  },
    {"output_file_too_large",   "it left a file in $OUTPUT_DIR that is larger than may be shared"     },
    {"file_not_found",          "there is no such file"                                               },
};

static void put_error(struct buf *b, const json_t *content, const char *code)
{
    const char *message = json_string_value(json_object_get(content, "error_message"));
    struct err e;

    for (size_t i = 0; !message && i < COUNT(meanings); i++)
        if (strcmp(meanings[i].code, code) == 0)
            message = meanings[i].text;
    (void)!buf_printf(b, &e, "Error: %s%s%s", code, message ? ": " : "", message ? message : "");
}

static void put_run(struct buf *b, const json_t *content)
{
    struct str out = json_view(json_object_get(content, "stdout"));
    struct str err = json_view(json_object_get(content, "stderr"));
    json_int_t code = json_integer_value(json_object_get(content, "return_code"));
    const json_t *outputs = json_object_get(content, "content"), *one;
    struct err e;
    size_t i;

    put_clipped(b, json_object_get(content, "stdout"));
    if (err.n > 0) {
        put(b, out.n > 0 && out.p[out.n - 1] != '\n' ? "\n[stderr]\n" : "[stderr]\n");
        put_clipped(b, json_object_get(content, "stderr"));
    }
    if (code != 0)
        (void)!buf_printf(b, &e, "\n[return code %lld]", (long long)code);
    json_array_foreach((json_t *)outputs, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "filename"));
        if (name)
            (void)!buf_printf(b, &e, "\n[given to the user: %s]", name);
    }
    if (b->n == 0)
        put(b, "[it printed nothing]");
}

static void put_edit(struct buf *b, const json_t *content)
{
    const json_t *lines = json_object_get(content, "lines"), *line;
    const json_t *text = json_object_get(content, "content");
    size_t i;

    if (json_is_string(text))
        put_clipped(b, text);
    else if (json_is_array(lines))
        json_array_foreach((json_t *)lines, i, line)
        {
            put_clipped(b, line);
            put(b, "\n");
        }
    else
        put(b, json_is_true(json_object_get(content, "is_file_update")) ? "The file was replaced."
                                                                        : "The file was created.");
}

json_t *content_said(const json_t *content)
{
    const char *code = json_string_value(json_object_get(content, "error_code"));
    struct buf b;
    json_t *v;

    buf_init(&b, 4 * MODEL_SHOWN);
    if (code)
        put_error(&b, content, code);
    else if (json_object_get(content, "return_code"))
        put_run(&b, content);
    else
        put_edit(&b, content);
    v = record_text(buf_str(&b));
    buf_done(&b);
    return v;
}
