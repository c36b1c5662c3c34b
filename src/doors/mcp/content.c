/* What a tool says: texts, images and links, as a model is to read them. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

void content_init(struct content *t)
{
    t->items = json_array();
}

void content_done(struct content *t)
{
    json_decref(take_ptr(&t->items));
}

void content_text(struct content *t, struct str text)
{
    json_array_append_new(t->items,
                          json_pack("{s:s, s:o}", "type", "text", "text", record_text(text)));
}

void content_printf(struct content *t, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    content_text(t, str_of(text));
}

void content_image(struct content *t, const char *mime, json_t *base64)
{
    json_array_append_new(
        t->items, json_pack("{s:s, s:o, s:s}", "type", "image", "data", base64, "mimeType", mime));
}

void content_link(struct content *t, const struct call *c, const char *uri, struct str name,
                  const char *mime, uint64_t size)
{
    if (!(c->client.version->has & HAS_STRUCTURED))
        return;
    json_array_append_new(t->items, json_pack("{s:s, s:s, s:o, s:s, s:I}", "type", "resource_link",
                                              "uri", uri, "name", record_text(name), "mimeType",
                                              mime, "size", (json_int_t)size));
}

json_t *content_result(struct content *t, bool is_error)
{
    return json_pack("{s:o, s:b}", "content", take_ptr(&t->items), "isError", is_error);
}

void content_answer(struct content *t, struct call *c, bool is_error)
{
    call_result(c, content_result(t, is_error));
}

void tool_fail(struct call *c, const char *fmt, ...)
{
    struct content t;
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    content_init(&t);
    content_text(&t, str_of(text));
    content_answer(&t, c, true);
}

void tool_refuse(struct call *c, const struct err *e)
{
    if (e->kind == ERR_HOST)
        call_fail(c, e);
    else
        tool_fail(c, "%s", e->text);
}
