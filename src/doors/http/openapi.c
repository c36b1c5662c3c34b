/*
 * The OpenAPI 3.1 document, printed from the tables that route and check: what it says
 * is what is served.
 *
 * In what clients send, a member that is optional may be left out. In what they get,
 * it may be null, too.
 */
#include "doors/http/http_int.h"

#include <stdio.h>

#define PATH_TEXT 256

/* Takes v. */
static void put(json_t *object, const char *name, json_t *v)
{
    int rc = json_object_set_new(object, name, v);

    assert(rc == 0);
    (void)rc;
}

static json_t *ref(const char *schema)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", schema));
}

/* --- fields --- */

static const char *const type_names[] = {
    [FIELD_TEXT] = "string",  [FIELD_INT] = "integer",   [FIELD_NUMBER] = "number",
    [FIELD_BOOL] = "boolean", [FIELD_OBJECT] = "object", [FIELD_LIST] = "array",
    [FIELD_MAP] = "object",   [FIELD_ENUM] = "string",   [FIELD_ANY] = NULL,
};

static json_t *number(double v)
{
    return v == (double)(json_int_t)v ? json_integer((json_int_t)v) : json_real(v);
}

static json_t *enum_values(const char *of, bool null)
{
    struct str rest = str_of(of), one;
    json_t *list = json_array();

    while (str_next(&rest, '|', &one))
        json_array_append_new(list, json_stringn(one.p, one.n));
    if (null)
        json_array_append_new(list, json_null());
    return list;
}

static json_t *items(const struct tables *t, const char *of)
{
    if (!of)
        return json_object();
    return tables_schema(t, of) ? ref(of) : json_pack("{s:s}", "type", of);
}

/* Which word of JSON Schema a bound is, by type. */
static void put_bounds(json_t *v, const struct field *f)
{
    static const char *const words[][2] = {
        [FIELD_TEXT] = {"minLength", "maxLength"    },
          [FIELD_INT] = {"minimum",   "maximum"      },
        [FIELD_NUMBER] = {"minimum",   "maximum"      },
          [FIELD_LIST] = {NULL,        "maxItems"     },
        [FIELD_MAP] = {NULL,        "maxProperties"},
          [FIELD_ANY] = {NULL,        NULL           },
    };
    const char *const *w = words[f->type];
    bool numeric = f->type == FIELD_INT || f->type == FIELD_NUMBER;

    if (f->min == 0 && f->max == 0)
        return;
    if (w[0] && (numeric || f->min > 0))
        put(v, w[0], number(f->min));
    if (w[1] && (numeric || f->max > 0))
        put(v, w[1], number(f->max));
}

static json_t *field_schema(const struct tables *t, const struct field *f, bool null)
{
    json_t *v = json_object();

    if (f->type == FIELD_OBJECT && tables_schema(t, f->of)) {
        json_decref(v);
        v = null ? json_pack("{s:[o,{s:s}]}", "anyOf", ref(f->of), "type", "null") : ref(f->of);
    } else if (type_names[f->type]) {
        json_t *type = json_string(type_names[f->type]);
        put(v, "type", null ? json_pack("[o,s]", type, "null") : type);
        put_bounds(v, f);
    }
    if (f->type == FIELD_ENUM)
        put(v, "enum", enum_values(f->of, null));
    if (f->type == FIELD_LIST)
        put(v, "items", items(t, f->of));
    if (f->type == FIELD_MAP)
        put(v, "additionalProperties", json_pack("{s:s}", "type", "string"));
    if (f->type == FIELD_MAP && f->of)
        put(v, "propertyNames", json_pack("{s:s}", "pattern", f->of));
    if (f->type == FIELD_ANY && f->of)
        put(v, "enum", json_loads(f->of, 0, NULL));
    if (f->text)
        put(v, "description", json_string(f->text));
    json_t *example = f->example ? json_loads(f->example, JSON_DECODE_ANY, NULL) : NULL;
    if (example)
        put(v, "examples", json_pack("[o]", example));
    return v;
}

static json_t *object_schema(const struct tables *t, const struct field *fields, bool open,
                             bool null)
{
    json_t *v = json_pack("{s:s}", "type", "object");
    json_t *properties = json_object(), *required = json_array();

    for (const struct field *f = fields; f && f->type != FIELD_END; f++) {
        put(properties, f->name, field_schema(t, f, null && !f->required));
        if (f->required)
            json_array_append_new(required, json_string(f->name));
    }
    put(v, "properties", properties);
    if (json_array_size(required))
        put(v, "required", json_incref(required));
    json_decref(required);
    if (!open)
        put(v, "additionalProperties", json_false());
    return v;
}

/* --- schemas --- */

/* Adds the schemas that fields name, and what those name. */
static void reach(const struct tables *t, const struct field *f, json_t *set)
{
    for (; f && f->type != FIELD_END; f++) {
        const struct schema *s =
            f->type == FIELD_OBJECT || f->type == FIELD_LIST ? tables_schema(t, f->of) : NULL;
        if (!s || json_object_get(set, s->name))
            continue;
        put(set, s->name, json_true());
        reach(t, s->fields, set);
    }
}

/* The names of schemas that clients send. */
static json_t *sent(const struct tables *t)
{
    json_t *set = json_object();

    for (size_t d = 0; d < t->count; d++)
        for (size_t i = 0; i < t->doors[d]->route_count; i++)
            reach(t, t->doors[d]->routes[i].body, set);
    return set;
}

/* The shape of every error, as answer_fail() makes it. */
static const struct field error_fields[] = {
    {"type",                FIELD_TEXT,        REQUIRED, 0, 0, NULL, "The kind of error.", "\"not_found\""},
    {"message",                    FIELD_TEXT,                                    REQUIRED, 0, 0, NULL, "A sentence for people."},
    {"param", FIELD_TEXT,   OPTIONAL, 0, 0, NULL, "The member at fault.", "\"timeout\""},
    {"request_id",             FIELD_TEXT, REQUIRED, 0, 0, NULL, "Its name in the log."},
    {NULL,                    FIELD_END                                   },
};

static json_t *error_schema(const struct tables *t)
{
    return json_pack("{s:s,s:{s:o},s:[s]}", "type", "object", "properties", "error",
                     object_schema(t, error_fields, false, true), "required", "error");
}

/* "id|content path": [{"required": ["id"]}, {"required": ["content", "path"]}] */
static json_t *alternatives(const char *one_of)
{
    struct str rest = str_of(one_of), members, one;
    json_t *list = json_array();

    while (str_next(&rest, '|', &members)) {
        json_t *required = json_array();
        while (str_next(&members, ' ', &one))
            json_array_append_new(required, json_stringn(one.p, one.n));
        json_array_append_new(list, json_pack("{s:o}", "required", required));
    }
    return list;
}

static json_t *schemas(const struct tables *t)
{
    json_t *all = json_pack("{s:o}", "error", error_schema(t)), *requests = sent(t);

    for (size_t d = 0; d < t->count; d++)
        for (size_t i = 0; i < t->doors[d]->schema_count; i++) {
            const struct schema *s = &t->doors[d]->schemas[i];
            json_t *v = object_schema(t, s->fields, s->open, !json_object_get(requests, s->name));
            if (s->text)
                put(v, "description", json_string(s->text));
            if (s->one_of)
                put(v, "oneOf", alternatives(s->one_of));
            put(all, s->name, v);
        }
    json_decref(requests);
    return all;
}

/* --- routes --- */

static json_t *content(const char *mime, json_t *schema)
{
    return json_pack("{s:{s:o}}", mime, "schema", schema);
}

static json_t *body_shown(const struct tables *t, const struct route *r)
{
    bool json = r->body_kind == BODY_JSON || r->body_kind == BODY_EITHER;
    bool form = r->body_kind == BODY_FORM || r->body_kind == BODY_EITHER;
    json_t *media = json_object();

    if (json)
        put(media, "application/json",
            json_pack("{s:o}", "schema", object_schema(t, r->body, false, false)));
    if (form)
        put(media, "multipart/form-data",
            json_pack("{s:{s:s,s:b}}", "schema", "type", "object", "additionalProperties", 1));
    if (r->body_kind == BODY_RAW)
        put(media, "application/octet-stream", json_object());
    /* Without a body, an upload is an empty file. */
    return json_pack("{s:o,s:b}", "content", media, "required",
                     json ? fields_require(r->body) : r->body_kind != BODY_RAW);
}

/* "{path...}" is "{path}" here. Adds the parameters on the way. */
static void path_and_params(const char *path, char ret[PATH_TEXT], json_t *params)
{
    size_t n = 0;

    assert(strlen(path) < PATH_TEXT);
    while (*path) {
        const char *name = path + 1, *end = strchr(path, '}');
        if (*path != '{' || !end) {
            ret[n++] = *path++;
            continue;
        }
        size_t length = (size_t)(end - name);
        bool rest = length > 3 && memcmp(end - 3, "...", 3) == 0;
        length -= rest ? 3 : 0;
        n += (size_t)snprintf(ret + n, PATH_TEXT - n, "{%.*s}", (int)length, name);
        json_array_append_new(params,
                              json_pack("{s:s%,s:s,s:b,s:{s:s}}", "name", name, length, "in",
                                        "path", "required", 1, "schema", "type", "string"));
        path = end + 1;
    }
    ret[n] = '\0';
}

static void query_params(const struct tables *t, const struct route *r, json_t *params)
{
    for (const struct field *f = r->query; f && f->type != FIELD_END; f++) {
        json_t *p = json_pack("{s:s,s:s,s:b,s:o}", "name", f->name, "in", "query", "required",
                              f->required, "schema", field_schema(t, f, false));
        if (f->text)
            put(p, "description", json_string(f->text));
        json_array_append_new(params, p);
    }
}

/* A status once, with every shape its answer may have. */
static void put_answer(const struct tables *t, json_t *all, const struct also *a)
{
    const char *mime = a->answer && strchr(a->answer, '/') ? a->answer : "application/json";
    bool named = a->answer && tables_schema(t, a->answer);
    char status[16];
    json_t *one, *body;

    snprintf(status, sizeof(status), "%d", a->status ? a->status : 200);
    one = json_object_get(all, status);
    if (!one) {
        one = json_pack("{s:s}", "description", a->text ? a->text : "Done.");
        put(all, status, one);
    }
    if (!a->answer)
        return;
    body = content(mime, named ? ref(a->answer) : json_object());
    if (!json_object_get(one, "content"))
        put(one, "content", json_object());
    json_object_update(json_object_get(one, "content"), body);
    json_decref(body);
}

static json_t *answers(const struct tables *t, const struct route *r)
{
    const struct also done = {r->status, r->answer, r->answer_text};
    json_t *all = json_object();

    put_answer(t, all, &done);
    for (const struct also *a = r->also; a && a->status; a++)
        put_answer(t, all, a);
    put(all, "default",
        json_pack("{s:s,s:o}", "description", "It did not work, and why.", "content",
                  content("application/json", ref("error"))));
    return all;
}

static json_t *operation(const struct tables *t, const struct route *r, json_t *params)
{
    const char *text = r->text ? r->text : "", *stop = strstr(text, ". ");
    size_t summary = stop ? (size_t)(stop - text) : strlen(text);
    json_t *o = json_pack("{s:s,s:s%,s:o}", "operationId", r->id, "summary", text, summary,
                          "responses", answers(t, r));

    if (r->tag)
        put(o, "tags", json_pack("[s]", r->tag));
    if (stop)
        put(o, "description", json_string(text));
    query_params(t, r, params);
    if (json_array_size(params))
        put(o, "parameters", json_incref(params));
    if (r->body_kind != BODY_NONE)
        put(o, "requestBody", body_shown(t, r));
    if (r->flags & ROUTE_OPEN)
        put(o, "security", json_array());
    return o;
}

static void put_route(const struct tables *t, const struct route *r, json_t *paths)
{
    static const char *const names[] = {
        [HTTP_GET] = "get",       [HTTP_PUT] = "put",     [HTTP_POST] = "post",
        [HTTP_DELETE] = "delete", [HTTP_PATCH] = "patch",
    };
    json_t *params = json_array(), *at;
    char path[PATH_TEXT];

    path_and_params(r->path, path, params);
    at = json_object_get(paths, path);
    if (!at) {
        at = json_object();
        put(paths, path, at);
    }
    put(at, names[r->method], operation(t, r, params));
    json_decref(params);
}

static void put_tag(json_t *tags, const char *name)
{
    size_t i;
    json_t *one;

    json_array_foreach(tags, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
            return;
    }
    json_array_append_new(tags, json_pack("{s:s}", "name", name));
}

json_t *fields_schema(const struct field *fields)
{
    static const struct tables none;

    return object_schema(&none, fields, false, false);
}

/* A key is needed as soon as there is one; the empty row says that none may be. */
static json_t *security(void)
{
    return json_pack("[{s:[]},{s:[]},{}]", "bearer", "key");
}

json_t *http_openapi(struct http *h)
{
    const struct tables *t = &h->tables;
    json_t *tags = json_array(), *paths = json_object();
    json_t *schemes =
        json_pack("{s:{s:s,s:s},s:{s:s,s:s,s:s}}", "bearer", "type", "http", "scheme", "bearer",
                  "key", "type", "apiKey", "in", "header", "name", "x-api-key");

    for (size_t d = 0; d < t->count; d++)
        for (size_t i = 0; i < t->doors[d]->route_count; i++) {
            const struct route *r = &t->doors[d]->routes[i];
            if (r->flags & ROUTE_HIDDEN)
                continue;
            if (r->tag)
                put_tag(tags, r->tag);
            put_route(t, r, paths);
        }
    return json_pack("{s:s,s:{s:s,s:s,s:s},s:[{s:s}],s:o,s:o,s:o,s:{s:o,s:o}}", "openapi", "3.1.0",
                     "info", "title", "retort", "version", RETORT_VERSION, "description",
                     "A sealed, warm Python for every conversation.", "servers", "url", "/", "tags",
                     tags, "paths", paths, "security", security(), "components", "schemas",
                     schemas(t), "securitySchemes", schemes);
}
