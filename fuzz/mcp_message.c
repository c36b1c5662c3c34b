/*
 * What a stranger says to MCP before a handler sees it: a message and its kind, headers
 * that repeat parts of it, the id of the last event. What passes has the shape that the
 * rest relies on; a header that was decoded lies in its room.
 *
 * links: src/doors/mcp/message.c src/doors/http/check.c src/doors/http/route.c
 * links: src/doors/values/values.c
 */
#include "doors/mcp/transport.h"

#include "support/fuzz.h"

#include <stdlib.h>

static const struct tool tool = {
    .name = "t",
    .schema = "{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"},"
              "\"b\":{\"properties\":{\"c\":{\"x-mcp-header\":\"C\"}}}}}",
};

static struct str same(void *arg, const char *name)
{
    const struct str *value = arg;

    EXPECT(strncmp(name, "mcp-param-", 10) == 0);
    return *value;
}

static void header(struct str value)
{
    char *room = malloc(value.n + 1);
    struct str trimmed = str_trim(value), said;

    EXPECT(trimmed.n <= value.n);
    if (header_decode(value, room, &said)) {
        EXPECT(said.n <= value.n);
        EXPECT(said.n == 0 || (said.p >= value.p && said.p + said.n <= value.p + value.n) ||
               (said.p == room));
        touch(said);
    }
    header_lists(value, "text/event-stream");
    free(room);
}

static void message(const json_t *v, struct str value)
{
    const char *why = NULL;
    enum message_kind kind = message_kind(v, &why);
    const json_t *id = message_id(v), *params = json_object_get(v, "params");

    EXPECT((kind == MESSAGE_BAD) == (why != NULL));
    EXPECT(!id || json_is_integer(id) || json_string_length(id) <= ID_TEXT_MAX);
    EXPECT(kind != MESSAGE_REQUEST || (id && json_is_string(json_object_get(v, "method"))));
    EXPECT(kind != MESSAGE_RESPONSE || id);
    EXPECT(kind == MESSAGE_BAD || kind == MESSAGE_RESPONSE || !params || json_is_object(params));
    if (kind == MESSAGE_REQUEST) {
        header_says(value, json_object_get(params, "name"));
        (void)headers_differ(&tool, json_object_get(params, "arguments"), same, &value);
    }
}

/* A line for the headers, the rest for the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    struct str value = {(const char *)data, end ? (size_t)(end - data) : size};
    struct str body = {end ? (const char *)end + 1 : "", end ? size - value.n - 1 : 0};
    json_t *v = NULL;
    struct err e;

    header(value);
    if (json_read_any(body, &v, &e) == 0)
        message(v, value);
    json_decref(v);
    return 0;
}
