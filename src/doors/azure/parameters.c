/*
 * Parameters of a deployment template. What a template declares of a parameter holds for its
 * default value, too, and a value for a parameter that is not declared is a mistake.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <strings.h>

enum parameter_kind { KIND_TEXT, KIND_INT, KIND_BOOL, KIND_ARRAY, KIND_OBJECT };

static const struct parameter_type {
    const char *name;
    enum parameter_kind kind;
    bool secret;
} types[] = {
    {"string",       KIND_TEXT,   false},
    {"securestring", KIND_TEXT,   true },
    {"int",          KIND_INT,    false},
    {"bool",         KIND_BOOL,   false},
    {"array",        KIND_ARRAY,  false},
    {"object",       KIND_OBJECT, false},
    {"secureObject", KIND_OBJECT, true },
};

static const struct parameter_type *type_of(const json_t *declared)
{
    struct str name = json_view(json_nocase(declared, "type"));

    for (size_t i = 0; i < COUNT(types); i++)
        if (str_nocase(name, str_of(types[i].name)))
            return &types[i];
    return NULL;
}

static bool is_of(const struct parameter_type *t, const json_t *value)
{
    switch (t->kind) {
    case KIND_TEXT:
        return json_is_string(value);
    case KIND_INT:
        return json_is_integer(value);
    case KIND_BOOL:
        return json_is_boolean(value);
    case KIND_ARRAY:
        return json_is_array(value);
    case KIND_OBJECT:
        return json_is_object(value);
    }
    return false;
}

/* Texts in any case. */
static bool is_same(const json_t *a, const json_t *b)
{
    return json_is_string(a) && json_is_string(b) ? str_nocase(json_view(a), json_view(b))
                                                  : json_equal(a, b);
}

static bool is_allowed(const json_t *allowed, const json_t *value)
{
    json_t *one;
    size_t i;

    json_array_foreach(allowed, i, one)
        if (is_same(one, value))
            return true;
    return false;
}

/* Of an array each member must be one of them. */
static bool all_allowed(const json_t *allowed, const json_t *value)
{
    json_t *one;
    size_t i;

    if (!json_is_array(value) || is_allowed(allowed, value))
        return is_allowed(allowed, value);
    json_array_foreach(value, i, one)
        if (!is_allowed(allowed, one))
            return false;
    return true;
}

size_t template_length(struct str s)
{
    size_t n = utf8_count(s);

    for (size_t i = 0; i < s.n; i++)
        n += (unsigned char)s.p[i] >= 0xf0;
    return n;
}

static json_int_t measure_of(const struct parameter_type *t, const json_t *value)
{
    if (t->kind == KIND_INT)
        return json_integer_value(value);
    return t->kind == KIND_ARRAY ? (json_int_t)json_array_size(value)
                                 : (json_int_t)template_length(json_view(value));
}

static int check_bounds(const char *name, const struct parameter_type *t, const json_t *declared,
                        const json_t *value, struct err *e)
{
    bool number = t->kind == KIND_INT;
    const json_t *least = json_nocase(declared, number ? "minValue" : "minLength");
    const json_t *most = json_nocase(declared, number ? "maxValue" : "maxLength");
    json_int_t n = measure_of(t, value);

    if (t->kind == KIND_BOOL || t->kind == KIND_OBJECT)
        return 0;
    if (json_is_integer(least) && n < json_integer_value(least))
        return err_set(e, ERR_CALLER,
                       "the value of the parameter '%.64s' is too %s: the least is %lld", name,
                       number ? "small" : "short", (long long)json_integer_value(least));
    if (json_is_integer(most) && n > json_integer_value(most))
        return err_set(e, ERR_CALLER,
                       "the value of the parameter '%.64s' is too %s: the most is %lld", name,
                       number ? "large" : "long", (long long)json_integer_value(most));
    return 0;
}

static int check_value(const char *name, const json_t *declared, const json_t *value, struct err *e)
{
    const struct parameter_type *t = type_of(declared);
    const json_t *allowed = json_nocase(declared, "allowedValues");

    if (!is_of(t, value))
        return err_set(e, ERR_CALLER, "the value of the parameter '%.64s' is not of the type %s",
                       name, t->name);
    if (json_is_array(allowed) && !all_allowed(allowed, value))
        return err_set(e, ERR_CALLER,
                       "the value of the parameter '%.64s' is not one of its allowed values", name);
    return check_bounds(name, t, declared, value, e);
}

/* An expression is no value yet. */
static bool is_expression(const json_t *v)
{
    struct str text = json_view(v);

    return text.n > 1 && text.p[0] == '[' && text.p[1] != '[' && text.p[text.n - 1] == ']';
}

static int check_one(const char *name, const json_t *declared, const json_t *given, struct err *e)
{
    const json_t *value = json_nocase(given, "value"), *usual;

    if (!type_of(declared))
        return err_set(e, ERR_CALLER, "the parameter '%.64s' has no type that is known", name);
    usual = json_nocase(declared, "defaultValue");
    if (json_nocase(given, "reference"))
        return err_set(e, ERR_CALLER, "the parameter '%.64s' refers to a vault: there is none here",
                       name);
    if (usual && !is_expression(usual) && check_value(name, declared, usual, e) < 0)
        return err_wrap(e, "the default");
    if (value && !json_is_null(value))
        return check_value(name, declared, value, e);
    return usual ? 0 : err_set(e, ERR_CALLER, "the parameter '%.64s' has no value", name);
}

/* Null counts as not given. */
static const json_t *given_of(const json_t *given, const char *name)
{
    const json_t *value = json_nocase(json_nocase(given, name), "value");

    return json_is_null(value) ? NULL : value;
}

json_t *parameter_value(const struct scope *s, const char *name, int depth, struct err *e)
{
    const json_t *value = given_of(s->given, name);
    const json_t *declared = json_nocase(s->parameters, name);
    const json_t *usual = json_nocase(declared, "defaultValue");

    return value   ? json_incref((json_t *)value)
           : usual ? expression_value(s, usual, depth, e)
                   : NULL;
}

int parameters_check_computed(const struct scope *s, struct err *e)
{
    const char *name;
    json_t *one;

    json_object_foreach((json_t *)s->parameters, name, one) {
        const json_t *usual = json_nocase(one, "defaultValue");
        json_t *value;
        int rc;
        if (given_of(s->given, name) || !is_expression(usual))
            continue;
        value = parameter_value(s, name, 0, e);
        rc = value ? check_value(name, one, value, e) : -1;
        json_decref(value);
        if (rc < 0)
            return err_wrap(e, "the default");
    }
    return 0;
}

int parameters_check(const json_t *declared, const json_t *given, struct err *e)
{
    const char *name;
    json_t *one;

    if ((declared && !json_is_object(declared)) || (given && !json_is_object(given)))
        return err_set(e, ERR_CALLER, "parameters are an object");
    json_object_foreach((json_t *)given, name, one)
        if (!json_nocase(declared, name))
            return err_set(e, ERR_CALLER,
                           "the parameter '%.64s' is given, and the template declares no such one",
                           name);
    json_object_foreach((json_t *)declared, name, one)
        if (check_one(name, one, json_nocase(given, name), e) < 0)
            return -1;
    return 0;
}

bool output_fits(const json_t *declared, const json_t *value, bool *ret_secret)
{
    const struct parameter_type *t = type_of(declared);

    *ret_secret = t && t->secret;
    return t && is_of(t, value);
}

json_t *parameters_show(const json_t *declared, const json_t *given)
{
    json_t *shown = json_object(), *one;
    const char *name;

    json_object_foreach((json_t *)declared, name, one) {
        const struct parameter_type *t = type_of(one);
        const json_t *value = given_of(given, name);
        json_t *row = json_pack("{s:s}", "type", t->name);
        if (!value)
            value = json_nocase(one, "defaultValue");
        if (!t->secret)
            json_object_set(row, "value", (json_t *)value);
        json_object_set_new(shown, name, row);
    }
    return shown;
}
