/*
 * Messages before they are served: the revisions of the protocol, the kinds of JSON-RPC messages,
 * and the HTTP headers that repeat parts of a message, so that proxies can route by them. These
 * headers must be there and say the same as the body.
 *
 * A value that does not fit into a header is written as =?base64?...?=; every other value is
 * literal.
 */
#include "doors/mcp/transport.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define NUMBER_MAX 64 /* characters of a number */
#define MARK_KEY   "x-mcp-header"
#define MARK_MAX   64 /* bytes of a header's name after Mcp-Param- */

/* --- revisions --- */

const struct protocol_version versions[VERSION_COUNT + 1] = {
    {"2026-07-28",                                  ERA_MODERN, HAS_ANNOTATIONS | HAS_STRUCTURED | HAS_ICONS},
    {"2025-11-25", ERA_LEGACY, HAS_ANNOTATIONS | HAS_STRUCTURED | HAS_ICONS},
    {"2025-06-18",                                  ERA_LEGACY, HAS_ANNOTATIONS | HAS_STRUCTURED},
    {"2025-03-26", ERA_LEGACY, HAS_ANNOTATIONS | HAS_BATCH},
    {"2024-11-05",                                  ERA_LEGACY, HAS_STDIO_ONLY},
    {0            },
};

const struct protocol_version *version_find(struct str name)
{
    for (const struct protocol_version *v = versions; v->name; v++)
        if (str_is(name, v->name))
            return v;
    return NULL;
}

const struct protocol_version *version_newest(enum era era)
{
    const struct protocol_version *v = versions;

    while (v->era != era)
        v++;
    return v;
}

json_t *versions_list(void)
{
    json_t *list = json_array();

    for (const struct protocol_version *v = versions; v->name; v++)
        if (!(v->has & HAS_STDIO_ONLY))
            json_array_append_new(list, json_string(v->name));
    return list;
}

void client_done(struct client *c)
{
    json_decref(take_ptr(&c->capabilities));
}

void client_copy(struct client *ret, const struct client *c)
{
    *ret = *c;
    json_incref(ret->capabilities);
}

/* --- messages --- */

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

/* --- what a header says --- */

/* Whether a list such as that of Accept has the word, parameters aside. */
bool header_lists(struct str list, const char *word)
{
    struct str item, name;

    while (str_next(&list, ',', &item) && str_next(&item, ';', &name))
        if (name.n == strlen(word) && strncasecmp(name.p, word, name.n) == 0)
            return true;
    return false;
}

bool header_decode(struct str value, char *room, struct str *ret)
{
    static const struct str head = {"=?base64?", 9}, tail = {"?=", 2};
    size_t n;

    *ret = value = str_trim(value);
    if (value.n < head.n + tail.n || memcmp(value.p, head.p, head.n) != 0 ||
        memcmp(value.p + value.n - tail.n, tail.p, tail.n) != 0)
        return true;
    if (!base64_decode((struct str){value.p + head.n, value.n - head.n - tail.n}, room, &n))
        return false;
    *ret = (struct str){room, n};
    return true;
}

/* As people and programs write the same number: 7, 07, +7, 7.0. */
static bool is_number(struct str said, const json_t *v)
{
    char text[NUMBER_MAX], *end;
    long long whole;
    double number;

    if (said.n == 0 || !str_to_cstr(said, text, sizeof(text)) ||
        strspn(text, "0123456789+-.eE") != said.n)
        return false;
    errno = 0;
    whole = strtoll(text, &end, 10);
    if (!*end && json_is_integer(v))
        return errno == 0 && whole == json_integer_value(v);
    number = strtod(text, &end);
    return !*end && isfinite(number) && fabs(number) < 0x1p53 && number == json_number_value(v);
}

static bool says(struct str said, const json_t *v)
{
    if (json_is_string(v))
        return str_eq(said, json_view(v));
    if (json_is_boolean(v))
        return str_is(said, json_is_true(v) ? "true" : "false");
    return is_number(said, v);
}

bool header_says(struct str value, const json_t *v)
{
    AUTO_FREE char *room = mem_zalloc(value.n + 1);
    struct str said;

    return header_decode(value, room, &said) && says(said, v);
}

/* --- parameters of a tool that are marked --- */

static bool is_marked_type(const json_t *v)
{
    return json_is_string(v) || json_is_number(v) || json_is_boolean(v);
}

/* One parameter; null and none are the same, and have no header. */
static const char *param_differs(const char *mark, const json_t *v, header_fn *header, void *arg)
{
    static const char differs[] = "a header Mcp-Param-* and the argument it repeats differ";
    char name[sizeof("mcp-param-") + MARK_MAX];
    struct str value;

    if (snprintf(name, sizeof(name), "mcp-param-%s", mark) >= (int)sizeof(name))
        return NULL;
    value = header(arg, name);
    if (!v || json_is_null(v))
        return value.p ? differs : NULL;
    if (!is_marked_type(v))
        return NULL; /* the tool will say that it is of the wrong type */
    if (!value.p)
        return "a header Mcp-Param-* is missing: the schema of the tool says which";
    return header_says(value, v) ? NULL : differs;
}

/* Only through "properties": other ways through a schema lead to no one value. */
static const char *params_differ(const json_t *schema, const json_t *args, header_fn *header,
                                 void *arg)
{
    const char *key, *why;
    json_t *one;

    json_object_foreach(json_object_get(schema, "properties"), key, one) {
        const char *mark = json_string_value(json_object_get(one, MARK_KEY));
        const json_t *v = json_object_get(args, key);

        why = mark ? param_differs(mark, v, header, arg) : params_differ(one, v, header, arg);
        if (why)
            return why;
    }
    return NULL;
}

const char *headers_differ(const struct tool *t, const json_t *args, header_fn *header, void *arg)
{
    json_t *schema;
    const char *why;

    if (!t->schema || !strstr(t->schema, MARK_KEY))
        return NULL;
    schema = json_loads(t->schema, 0, NULL);
    assert(schema);
    why = params_differ(schema, args, header, arg);
    json_decref(schema);
    return why;
}
