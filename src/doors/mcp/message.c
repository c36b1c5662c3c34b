/* Messages of JSON-RPC: which of them are some, and of what kind. */
#include "doors/mcp/mcp_int.h"

static bool id_is_good(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_TEXT_MAX);
}

const json_t *message_id(const json_t *message)
{
    const json_t *id = json_object_get(message, "id");

    return id_is_good(id) ? id : NULL;
}

static enum message_kind bad(const char **ret_why, const char *why)
{
    *ret_why = why;
    return MESSAGE_BAD;
}

enum message_kind message_kind(const json_t *message, const char **ret_why)
{
    const json_t *id = json_object_get(message, "id");
    const json_t *method = json_object_get(message, "method");
    const json_t *params = json_object_get(message, "params");

    if (!json_is_object(message) || !str_is(json_view(json_object_get(message, "jsonrpc")), "2.0"))
        return bad(ret_why, "a message is an object with \"jsonrpc\": \"2.0\"");
    if (id && !id_is_good(id))
        return bad(ret_why, "id must be a string of at most 1024 bytes, or an integer");
    if (!method && id && (json_object_get(message, "result") || json_object_get(message, "error")))
        return MESSAGE_RESPONSE;
    if (!json_is_string(method))
        return bad(ret_why, "a message needs a method, or an id and a result");
    if (params && !json_is_object(params))
        return bad(ret_why, "params must be an object");
    return id ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION;
}
