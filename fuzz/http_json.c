/*
 * JSON bodies and queries against a table that has every type. What passes has the
 * types and ranges that were promised; what does not is named.
 *
 * links: src/doors/http/check.c src/doors/http/route.c
 */
#include "doors/http/http_int.h"

#include "support/fuzz.h"

static const struct field inner[] = {
    {"path", FIELD_TEXT, REQUIRED, 1, 4, NULL, ""},
    {"more",     FIELD_OBJECT,              OPTIONAL, 0, 0, "inner", ""},
    {NULL,    FIELD_END             },
};
static const struct field fields[] = {
    {"text",     FIELD_TEXT,       OPTIONAL, 0, 3, NULL, ""},
    {"count",         FIELD_INT,                        OPTIONAL, 1, 9, NULL, ""},
    {"wall",        FIELD_NUMBER,                        OPTIONAL, -0.5, 2, NULL, ""},
    {"flag",FIELD_BOOL,OPTIONAL, 0, 0, NULL, ""},
    {"kind",         FIELD_ENUM,                     OPTIONAL, 0, 0, "one|two", ""},
    {"env",          FIELD_MAP,                     OPTIONAL, 0, 2, NULL, ""},
    {"list",  FIELD_LIST,OPTIONAL, 0, 2, "inner", ""},
    {"names",      FIELD_LIST,                    OPTIONAL, 0, 2, "string", ""},
    {"any",     FIELD_ANY,                   OPTIONAL, 0, 0, NULL, ""},
    {NULL,         FIELD_END                       },
};
static const struct schema schemas[] = {
    {"inner", "", inner},
};
static const struct door door = {"d", NULL, 0, schemas, COUNT(schemas), NULL};
static const struct tables tables = {{&door}, 1};

static void promised(const json_t *v)
{
    const json_t *one = json_object_get(v, "count");
    size_t i;
    json_t *item;

    EXPECT(json_object_size(v) < COUNT(fields));
    EXPECT(!one || (json_integer_value(one) >= 1 && json_integer_value(one) <= 9));
    one = json_object_get(v, "text");
    EXPECT(!one || json_string_length(one) <= 3);
    one = json_object_get(v, "list");
    EXPECT(json_array_size(one) <= 2);
    json_array_foreach(one, i, item) {
        EXPECT(json_is_string(json_object_get(item, "path")));
    }
}

static void body(struct str text)
{
    char param[PARAM_TEXT];
    json_t *v = NULL;
    struct err e;

    if (json_read_any(text, &v, &e) < 0)
        return;
    if (json_is_object(v) && json_check(&tables, v, fields, false, param, &e) == 0)
        promised(v);
    EXPECT(memchr(param, '\0', sizeof(param)));
    json_decref(v);
}

static void query(struct str text)
{
    struct http_pair pairs[QUERY_MAX];
    const char *param = "";
    size_t count;
    struct err e;
    char *room = malloc(text.n + 2 * QUERY_MAX);

    if (query_split(text, room, pairs, &count, &e) == 0 &&
        query_check(pairs, count, fields, &param, &e) == 0)
        EXPECT(count < COUNT(fields));
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};

    body(text);
    query(text);
    return 0;
}
