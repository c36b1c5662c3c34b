/* Helpers for adapters: parts of messages. */
#include "model/model_int.h"

const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

json_t *text_in(const json_t *object, const char *key)
{
    json_t *text = json_object_get(object, key);

    return json_is_string(text) ? json_incref(text) : json_string("");
}

json_t *image_note(const json_t *image)
{
    char size[SIZE_SHOWN];

    if (*text_of(image, "url"))
        return json_sprintf("[an image at %s, which you cannot see]", text_of(image, "url"));
    size_t n = json_string_length(json_object_get(image, "data"));

    return json_sprintf("[an image, %s, %s, which you cannot see]", text_of(image, "mime"),
                        size_show(size, n / 4 * 3));
}

json_t *call_args(const json_t *call)
{
    json_t *args = json_object_get(call, "args");

    return json_is_object(args) ? json_incref(args)
                                : json_pack("{s:o}", "raw", text_in(call, "raw"));
}

json_t *tool_schema(const json_t *tool)
{
    json_t *schema = json_object_get(tool, "schema");

    return json_is_object(schema) ? json_incref(schema) : json_pack("{s:s}", "type", "object");
}

void put_options(json_t *request, const json_t *options, const char *const *names)
{
    for (; options && *names; names++) {
        json_t *value = json_object_get(options, *names);
        if (value && !json_is_null(value))
            json_object_set_new(request, *names, json_deep_copy(value));
    }
}
