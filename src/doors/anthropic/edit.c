/*
 * The text editor tool: a command that runs guest/py/retort_guest/edit.py in the sandbox, so that
 * it reaches what commands of the user reach, leaves a record as they do, and waits for the same
 * approval. The call is the command's standard input, the result its standard output.
 */
#include "doors/anthropic/tool_call_int.h"
#include "doors/mcp/execution.h"

#include <stdlib.h>

#define TYPE       "text_editor_code_execution_"
#define IMAGE_SIDE 8000 /* pixels: endpoints refuse larger ones */
#define EDIT_START                                                                                 \
    "exec python3 -I -S -B /opt/retort/retort_guest/edit.py <<\\EDIT\n" /* no line of JSON is EDIT \
                                                                         */

char *edit_command(const json_t *input)
{
    AUTO_FREE char *call = json_dumps(input, JSON_COMPACT | JSON_ENSURE_ASCII);
    AUTO(buf_done) struct buf b = BUF(8 * MESSAGES_BODY_MAX);

    assert(call); /* it was JSON before */
    buf_put(&b, STR(EDIT_START));
    buf_put(&b, str_of(call));
    buf_put(&b, STR("\nEDIT"));
    return mem_strndup(buf_str(&b));
}

bool edit_reads(const json_t *input)
{
    return str_is(view_of(input, "command"), "view");
}

/* What a person is shown first: the text that is written. */
struct str edit_code(const json_t *input)
{
    static const char *const members[] = {"file_text", "new_str", "path"};

    for (size_t i = 0; i < COUNT(members); i++)
        if (json_is_string(json_object_get(input, members[i])))
            return view_of(input, members[i]);
    return (struct str){0};
}

/* --- the result --- */

static const char *const result_types[] = {TYPE "view_result", TYPE "create_result",
                                           TYPE "str_replace_result", TYPE "tool_result_error"};

static bool is_result(const json_t *content)
{
    for (size_t i = 0; i < COUNT(result_types); i++)
        if (str_is(view_of(content, "type"), result_types[i]))
            return true;
    return false;
}

json_t *model_image(json_t *data)
{
    struct str base64 = json_view(data);
    AUTO_FREE char *bytes = mem_zalloc(base64.n / 4 * 3 + 1);
    struct picture p;
    size_t n;

    if (!base64_decode(base64, bytes, &n) || !picture_look((struct str){bytes, n}, &p) ||
        !p.whole || p.width > IMAGE_SIDE || p.height > IMAGE_SIDE)
        return NULL;
    return json_pack("{s:s, s:s, s:O}", "type", "image", "mime", p.mime, "data", data);
}

json_t *edit_image(const json_t *content)
{
    if (!str_is(view_of(content, "file_type"), "image"))
        return NULL;
    return model_image(json_object_get(content, "content"));
}

json_t *edit_content(struct tool_call *c, struct str printed)
{
    json_t *content = json_loadb(printed.p, printed.n, 0, NULL), *image;

    if (!is_result(content)) { /* there is no Python, or the output was cut */
        json_decref(content);
        return content_error(TOOL_EDITOR, "unavailable");
    }
    image = edit_image(content);
    if (image)
        json_array_append_new(c->images, image);
    if (json_array_size(c->outputs) > 0 && !json_object_get(content, "content"))
        json_object_set(content, "content", c->outputs);
    return content;
}
