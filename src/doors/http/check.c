/*
 * Validates JSON bodies and queries against a route's table. A handler can rely on the types, the
 * ranges and the members that the table names.
 */
#include "base/json.h"
#include "doors/http/http_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const struct schema *tables_schema(const struct tables *t, const char *name)
{
    for (size_t d = 0; name && d < t->count; d++)
        for (size_t i = 0; i < t->doors[d]->schema_count; i++)
            if (strcmp(t->doors[d]->schemas[i].name, name) == 0)
                return &t->doors[d]->schemas[i];
    return NULL;
}

static bool enum_has(const char *of, struct str value)
{
    struct str rest = str_of(of), one;

    while (str_next(&rest, '|', &one))
        if (str_eq(one, value))
            return true;
    return false;
}

bool fields_require(const struct field *f)
{
    for (; f && f->type != FIELD_END; f++)
        if (f->required)
            return true;
    return false;
}

/* --- reading --- */

int json_read_any(struct str text, json_t **ret, struct err *e)
{
    enum json_size size = json_measure(text, JSON_DEPTH_MAX, JSON_VALUES_MAX);
    json_error_t why;

    if (size == JSON_TOO_DEEP)
        return err_set(e, ERR_CALLER, "the JSON is nested more than %d levels deep",
                       JSON_DEPTH_MAX);
    if (size == JSON_TOO_MANY)
        return err_set(e, ERR_LIMIT, "the JSON holds more than %d values", JSON_VALUES_MAX);
    *ret = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!*ret && json_error_code(&why) == json_error_null_character)
        return err_set(e, ERR_CALLER, "the JSON has the character U+0000 (line %d, column %d)",
                       why.line, why.column);
    if (!*ret) {
        char *near = strstr(why.text, " near "); /* it quotes the client */
        if (near)
            *near = '\0';
        return err_set(e, ERR_CALLER, "the body is not valid JSON: %s (line %d, column %d)",
                       why.text, why.line, why.column);
    }
    return 0;
}

/* --- checking --- */

struct check {
    const struct tables *tables;
    char *param; /* PARAM_TEXT bytes: where we are */
    struct err *e;
};

static int check_members(struct check *c, const json_t *object, const struct field *fields,
                         bool open);

static bool bounded(const struct field *f)
{
    return f->min != 0 || f->max != 0;
}

static int check_number(struct check *c, double v, const struct field *f)
{
    if (bounded(f) && (v < f->min || v > f->max))
        return err_set(c->e, ERR_CALLER, "must be between %.15g and %.15g", f->min, f->max);
    return 0;
}

static int check_text(struct check *c, size_t n, const struct field *f)
{
    if (f->min > 0 && (double)n < f->min)
        return n == 0 ? err_set(c->e, ERR_CALLER, "must not be empty")
                      : err_set(c->e, ERR_CALLER, "must have at least %.0f bytes", f->min);
    if (f->max > 0 && (double)n > f->max)
        return err_set(c->e, ERR_CALLER, "must have at most %.0f bytes", f->max);
    return 0;
}

static int check_one_of(struct check *c, struct str v, const struct field *f)
{
    return enum_has(f->of, v) ? 0 : err_set(c->e, ERR_CALLER, "must be one of %s", f->of);
}

static int check_map(struct check *c, const json_t *v, const struct field *f)
{
    size_t at = strlen(c->param);
    const char *name;
    json_t *value;

    if (f->max > 0 && (double)json_object_size(v) > f->max)
        return err_set(c->e, ERR_CALLER, "must have at most %.0f members", f->max);
    json_object_foreach((json_t *)v, name, value) {
        if (json_is_string(value))
            continue;
        snprintf(c->param + at, PARAM_TEXT - at, ".%s", name);
        return err_set(c->e, ERR_CALLER, "must be a string");
    }
    return 0;
}

/* What a list may hold besides objects of a schema. */
static const struct {
    const char *name;
    enum field_type type;
} plain[] = {
    {"string",  FIELD_TEXT  },
    {"integer", FIELD_INT   },
    {"number",  FIELD_NUMBER},
    {"boolean", FIELD_BOOL  },
};

static int check_value(struct check *c, const json_t *v, const struct field *f);

static int check_list(struct check *c, const json_t *v, const struct field *f)
{
    struct field item = {.type = f->of ? FIELD_OBJECT : FIELD_ANY, .of = f->of};
    size_t at = strlen(c->param), i;
    json_t *one;

    if (f->max > 0 && (double)json_array_size(v) > f->max)
        return err_set(c->e, ERR_CALLER, "must have at most %.0f items", f->max);
    for (i = 0; f->of && i < COUNT(plain); i++)
        if (strcmp(plain[i].name, f->of) == 0)
            item.type = plain[i].type;
    json_array_foreach(v, i, one) {
        snprintf(c->param + at, PARAM_TEXT - at, "[%zu]", i);
        if (check_value(c, one, &item) < 0)
            return -1;
        c->param[at] = '\0';
    }
    return 0;
}

static int check_object(struct check *c, const json_t *v, const struct field *f)
{
    const struct schema *s = tables_schema(c->tables, f->of);

    return s ? check_members(c, v, s->fields, s->open) : 0;
}

static int check_string(struct check *c, const json_t *v, const struct field *f)
{
    struct str s = {json_string_value(v), json_string_length(v)};

    return f->type == FIELD_ENUM ? check_one_of(c, s, f) : check_text(c, s.n, f);
}

static int check_numeric(struct check *c, const json_t *v, const struct field *f)
{
    return check_number(c, json_number_value(v), f);
}

/* What a type asks for: the JSON types it takes, in words, and the rest of the check. */
static const struct {
    unsigned takes;
    const char *words;
    int (*more)(struct check *c, const json_t *v, const struct field *f);
} types[] = {
    [FIELD_TEXT] = {IN(JSON_STRING),                  "a string",             check_string },
    [FIELD_INT] = {IN(JSON_INTEGER),                 "an integer",           check_numeric},
    [FIELD_NUMBER] = {IN(JSON_INTEGER) | IN(JSON_REAL), "a number",             check_numeric},
    [FIELD_BOOL] = {IN(JSON_TRUE) | IN(JSON_FALSE),   "true or false",        NULL         },
    [FIELD_OBJECT] = {IN(JSON_OBJECT),                  "an object",            check_object },
    [FIELD_LIST] = {IN(JSON_ARRAY),                   "a list",               check_list   },
    [FIELD_MAP] = {IN(JSON_OBJECT),                  "an object of strings", check_map    },
    [FIELD_ENUM] = {IN(JSON_STRING),                  "a string",             check_string },
    [FIELD_ANY] = {~0u,                              "a value",              NULL         },
};

static int check_value(struct check *c, const json_t *v, const struct field *f)
{
    assert(f->type > FIELD_END && f->type < COUNT(types));
    if (!(types[f->type].takes & IN(json_typeof(v))))
        return err_set(c->e, ERR_CALLER, "must be %s", types[f->type].words);
    return types[f->type].more ? types[f->type].more(c, v, f) : 0;
}

static const struct field *field_find(const struct field *f, const char *name)
{
    for (; f && f->type != FIELD_END; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static int check_members(struct check *c, const json_t *object, const struct field *fields,
                         bool open)
{
    size_t at = strlen(c->param);
    const char *dot = at ? "." : "";
    const char *name;
    json_t *value;

    for (const struct field *f = fields; f && f->type != FIELD_END; f++) {
        if (!f->required || json_object_get(object, f->name))
            continue;
        snprintf(c->param + at, PARAM_TEXT - at, "%s%s", dot, f->name);
        return err_set(c->e, ERR_CALLER, "is missing");
    }
    json_object_foreach((json_t *)object, name, value) {
        const struct field *f = field_find(fields, name);
        snprintf(c->param + at, PARAM_TEXT - at, "%s%s", dot, name);
        if (!f && !open)
            return err_set(c->e, ERR_CALLER, "is not known here");
        if (f && check_value(c, value, f) < 0)
            return -1;
        c->param[at] = '\0';
    }
    return 0;
}

int json_check(const struct tables *t, const json_t *object, const struct field *fields, bool open,
               char param[PARAM_TEXT], struct err *e)
{
    struct check c = {t, param, e};

    param[0] = '\0';
    return check_members(&c, object, fields, open);
}

int fields_check(const struct field *fields, const json_t *object, char param[FIELD_PATH_MAX],
                 struct err *e)
{
    static const struct tables none;

    return json_check(&none, object, fields, false, param, e);
}

void fields_drop_nulls(const struct field *fields, json_t *object)
{
    for (const struct field *f = fields; f && f->type != FIELD_END; f++)
        if (!f->required && f->type != FIELD_ANY && json_is_null(json_object_get(object, f->name)))
            json_object_del(object, f->name);
}

/* --- queries: the same tables, but everything is text --- */

static int check_query_value(struct check *c, struct str v, const struct field *f)
{
    char *end;

    switch (f->type) {
    case FIELD_INT:
    case FIELD_NUMBER: {
        /* strtod() would take blanks, "inf" and hexadecimal */
        bool digits = v.n > 0 && v.n < 32;
        for (size_t i = 0; i < v.n; i++)
            digits &= (v.p[i] >= '0' && v.p[i] <= '9') || (i == 0 && v.p[i] == '-') ||
                      (f->type == FIELD_NUMBER && v.p[i] == '.');
        double d = digits ? strtod(v.p, &end) : 0;
        if (!digits || end != v.p + v.n)
            return err_set(c->e, ERR_CALLER, "must be %s", types[f->type].words);
        return check_number(c, d, f);
    }
    case FIELD_BOOL:
        return str_is(v, "true") || str_is(v, "false")
                   ? 0
                   : err_set(c->e, ERR_CALLER, "must be true or false");
    case FIELD_ENUM:
        return check_one_of(c, v, f);
    default:
        return check_text(c, v.n, f);
    }
}

int query_check(const struct http_pair *pairs, size_t count, const struct field *fields,
                const char **ret_param, struct err *e)
{
    struct check c = {.e = e};

    for (size_t i = 0; i < count; i++) {
        const struct field *f = field_find(fields, pairs[i].name.p);
        *ret_param = pairs[i].name.p;
        if (!f)
            return err_set(e, ERR_CALLER, "is not known here");
        for (size_t j = 0; j < i; j++)
            if (str_eq(pairs[j].name, pairs[i].name))
                return err_set(e, ERR_CALLER, "is given twice");
        if (check_query_value(&c, pairs[i].value, f) < 0)
            return -1;
    }
    for (const struct field *f = fields; f && f->type != FIELD_END; f++) {
        bool there = false;
        for (size_t i = 0; i < count; i++)
            there |= str_is(pairs[i].name, f->name);
        *ret_param = f->name;
        if (f->required && !there)
            return err_set(e, ERR_CALLER, "is missing");
    }
    return 0;
}
