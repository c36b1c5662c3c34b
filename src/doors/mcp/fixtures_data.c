/* Fixtures of the conformance suite: resources, prompts and their completion. */
#include "doors/mcp/fixtures.h"

#include <stdio.h>

/* --- resources --- */

static const struct {
    const char *uri, *name, *mime, *text, *blob;
} resources[] = {
    {"test://static-text",      "static-text",      "text/plain", "A text.",         NULL       },
    {"test://static-binary",    "static-binary",    "image/png",  NULL,              FIXTURE_PNG},
    {"test://watched-resource", "watched-resource", "text/plain", "A watched text.", NULL       },
};

void fixtures_list_resources(json_t *list)
{
    for (size_t i = 0; i < COUNT(resources); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "uri", resources[i].uri,
                                              "name", resources[i].name, "description",
                                              "A fixture of the conformance suite.", "mimeType",
                                              resources[i].mime));
}

void fixtures_list_templates(json_t *list)
{
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "uriTemplate",
                                          "test://template/{id}/data", "name", "template",
                                          "description", "A fixture of the conformance suite.",
                                          "mimeType", "application/json"));
}

/* Takes contents. */
static void answer(struct call *c, json_t *contents)
{
    json_t *result = json_pack("{s:[o]}", "contents", contents);

    if (call_is_modern(c)) {
        json_object_set_new(result, "ttlMs", json_integer(0));
        json_object_set_new(result, "cacheScope", json_string("private"));
    }
    call_result(c, result);
}

/* "test://template/ID/data", the ID without a slash. */
static bool read_template(struct call *c, struct str uri)
{
    static const char head[] = "test://template/", tail[] = "/data";
    const size_t around = sizeof(head) + sizeof(tail) - 2;
    char text[256];
    struct str id;

    if (uri.n <= around || uri.n - around > 100 || memcmp(uri.p, head, sizeof(head) - 1) != 0 ||
        memcmp(uri.p + uri.n - sizeof(tail) + 1, tail, sizeof(tail) - 1) != 0)
        return false;
    id = (struct str){uri.p + sizeof(head) - 1, uri.n - around};
    if (memchr(id.p, '/', id.n) || memchr(id.p, '"', id.n) || memchr(id.p, '\\', id.n))
        return false;
    snprintf(text, sizeof(text), "{\"id\":\"%.*s\"}", (int)id.n, id.p);
    answer(c, json_pack("{s:o, s:s, s:o}", "uri", record_text(uri), "mimeType", "application/json",
                        "text", record_text(str_of(text))));
    return true;
}

bool fixtures_read_resource(struct call *c, struct str uri)
{
    for (size_t i = 0; i < COUNT(resources); i++)
        if (str_is(uri, resources[i].uri)) {
            const char *text = resources[i].text;
            answer(c, json_pack("{s:s, s:s, s:s}", "uri", resources[i].uri, "mimeType",
                                resources[i].mime, text ? "text" : "blob",
                                text ? text : resources[i].blob));
            return true;
        }
    return read_template(c, uri);
}

/* --- prompts --- */

static const struct {
    const char *name, *arguments;
} prompts[] = {
    {"test_simple_prompt",                 "[]"                                            },
    {"test_prompt_with_arguments",
     "[{\"name\":\"arg1\",\"required\":true},{\"name\":\"arg2\",\"required\":true}]"       },
    {"test_prompt_with_embedded_resource", "[{\"name\":\"resourceUri\",\"required\":true}]"},
    {"test_prompt_with_image",             "[]"                                            },
    {"test_input_required_result_prompt",  "[]"                                            },
};

void fixtures_list_prompts(json_t *list)
{
    for (size_t i = 0; i < COUNT(prompts); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", prompts[i].name,
                                              "description", "A fixture of the conformance suite.",
                                              "arguments", fixture_literal(prompts[i].arguments)));
}

/* Takes content. */
static json_t *message(json_t *content)
{
    return json_pack("{s:s, s:o}", "role", "user", "content", content);
}

static json_t *text(const char *s)
{
    return message(json_pack("{s:s, s:o}", "type", "text", "text", record_text(str_of(s))));
}

/* Takes a, and b or NULL. */
static void say(struct call *c, json_t *a, json_t *b)
{
    call_result(c, json_pack("{s:[o, o*]}", "messages", a, b));
}

static const char *argument(const json_t *args, const char *name)
{
    const char *v = json_string_value(json_object_get(args, name));

    return v ? v : "";
}

static void get_simple(struct call *c, const json_t *args)
{
    (void)args;
    say(c, text("A simple prompt."), NULL);
}

static void get_with_arguments(struct call *c, const json_t *args)
{
    char s[512];

    snprintf(s, sizeof(s), "arg1 is '%.200s', arg2 is '%.200s'", argument(args, "arg1"),
             argument(args, "arg2"));
    say(c, text(s), NULL);
}

static void get_with_resource(struct call *c, const json_t *args)
{
    json_t *resource = json_pack("{s:s, s:s, s:s}", "uri", argument(args, "resourceUri"),
                                 "mimeType", "text/plain", "text", "part of a prompt");

    say(c, message(json_pack("{s:s, s:o}", "type", "resource", "resource", resource)),
        text("See above."));
}

static void get_with_image(struct call *c, const json_t *args)
{
    (void)args;
    say(c,
        message(json_pack("{s:s, s:s, s:s}", "type", "image", "mimeType", "image/png", "data",
                          FIXTURE_PNG)),
        text("See above."));
}

static void on_context(void *arg, json_t *result, const struct err *failed)
{
    const json_t *content = json_object_get(result, "content");

    if (failed)
        call_fail(arg, failed);
    else
        say(arg, text(argument(content, "context")), NULL);
}

static void get_by_asking(struct call *c, const json_t *args)
{
    (void)args;
    call_ask(c, "user_context", "elicitation/create",
             fixture_form("What is it about?", "{\"context\":{\"type\":\"string\"}}"), on_context,
             c);
}

bool fixtures_get_prompt(struct call *c, struct str name, const json_t *args)
{
    static void (*const get[])(struct call * c, const json_t *args) = {
        get_simple, get_with_arguments, get_with_resource, get_with_image, get_by_asking,
    };

    for (size_t i = 0; i < COUNT(prompts); i++)
        if (str_is(name, prompts[i].name)) {
            get[i](c, args);
            return true;
        }
    return false;
}

bool fixtures_complete(struct call *c, const json_t *ref)
{
    struct str name = json_view(json_object_get(ref, "name"));

    if (!str_is(name, "test_prompt_with_arguments"))
        return false;
    call_result(c, json_pack("{s:{s:[s, s], s:i, s:b}}", "completion", "values", "one", "other",
                             "total", 2, "hasMore", false));
    return true;
}
