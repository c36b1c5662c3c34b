/*
 * Expressions of deployment templates: "[concat(parameters('memory'), 'Gi')]". What a
 * template of session pools needs, and no more; anything else is refused by its name. Functions
 * that need nothing of the template are in functions.c.
 *
 * A value is JSON. Reading goes from left to right and never back, so it takes as long as
 * the text is; calls within calls are counted, and so are all of a template.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ARGS_MAX  16
#define WORD_MAX  64
#define CALLS_MAX 10000 /* of one template: a variable may call others, which do so too */

struct expression_reader {
    const struct scope *scope;
    struct str left;
    int depth;
    struct err *e;
};

static json_t *read_value(struct expression_reader *r);

static json_t *fail(struct expression_reader *r, const char *what)
{
    if (r->e->kind == ERR_NONE)
        err_set(r->e, ERR_CALLER, "an expression of the template %s", what);
    return NULL;
}

static json_t *fail_here(struct expression_reader *r, const char *what)
{
    char shown[NAME_SHOWN], text[NAME_SHOWN + 64];

    snprintf(text, sizeof(text), "%s, at %s", what,
             r->left.n ? name_show(shown, r->left) : "its end");
    return fail(r, text);
}

/* --- words --- */

static void skip(struct expression_reader *r, size_t n)
{
    r->left = (struct str){r->left.p + n, r->left.n - n};
    while (r->left.n && r->left.p[0] == ' ')
        r->left.p++, r->left.n--;
}

static bool take(struct expression_reader *r, char c)
{
    if (r->left.n == 0 || r->left.p[0] != c)
        return false;
    skip(r, 1);
    return true;
}

static bool take_word(struct expression_reader *r, char ret[WORD_MAX])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t n = 0;

    while (n < r->left.n && memchr(letters, r->left.p[n], sizeof(letters) - 1))
        n++;
    if (n == 0 || !str_to_cstr((struct str){r->left.p, n}, ret, WORD_MAX))
        return false;
    skip(r, n);
    return true;
}

/* Between single quotes; two of them stand for one. */
static json_t *read_text(struct expression_reader *r)
{
    AUTO(buf_done) struct buf b = BUF(TEMPLATE_TEXT);
    json_t *v = NULL;
    size_t i = 1;

    for (; i < r->left.n; i++) {
        if (r->left.p[i] == '\'' && (i + 1 == r->left.n || r->left.p[i + 1] != '\''))
            break;
        if (r->left.p[i] == '\'')
            i++;
        if (buf_put(&b, (struct str){r->left.p + i, 1}) < 0)
            break;
    }
    if (i < r->left.n && r->left.p[i] == '\'') {
        v = record_text(buf_str(&b));
        skip(r, i + 1);
    }
    return v ? v : fail_here(r, "has a text without an end");
}

static json_t *read_number(struct expression_reader *r)
{
    char text[24] = "";
    size_t n = r->left.p[0] == '-';

    while (n < r->left.n && n < sizeof(text) - 1 && r->left.p[n] >= '0' && r->left.p[n] <= '9')
        n++;
    memcpy(text, r->left.p, n);
    skip(r, n);
    return json_integer(strtoll(text, NULL, 10));
}

/* --- functions: each gives an owned value, or NULL when it cannot --- */

static json_t *fn_parameters(struct expression_reader *r, json_t *args)
{
    const char *name = json_string_value(json_array_get(args, 0));

    return name ? parameter_value(r->scope, name, r->depth, r->e) : NULL;
}

static json_t *fn_variables(struct expression_reader *r, json_t *args)
{
    const char *name = json_string_value(json_array_get(args, 0));
    const json_t *value = name ? json_nocase(r->scope->variables, name) : NULL;

    return value ? expression_value(r->scope, value, r->depth, r->e) : NULL;
}

static json_t *fn_concat(struct expression_reader *r, json_t *args)
{
    AUTO(buf_done) struct buf b = BUF(TEMPLATE_TEXT);
    json_t *v;
    bool good = true;

    (void)r;
    for (size_t i = 0; i < json_array_size(args); i++) {
        json_t *one = json_array_get(args, i);
        if (json_is_string(one))
            good &= buf_put(&b, json_view(one)) == 0;
        else if (json_is_integer(one))
            good &= buf_printf(&b, "%" JSON_INTEGER_FORMAT, json_integer_value(one)) == 0;
        else
            good = false;
    }
    v = good ? record_text(buf_str(&b)) : NULL;
    return v;
}

/* The type, then a name. */
static json_t *fn_resource_id(struct expression_reader *r, json_t *args)
{
    const char *type = json_string_value(json_array_get(args, 0));
    const char *name = json_string_value(json_array_get(args, 1));

    if (json_array_size(args) != 2 || !type || !name)
        return NULL;
    return json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s/providers/%s/%s",
                        (int)r->scope->subscription.n, r->scope->subscription.p,
                        (int)r->scope->group.n, r->scope->group.p, type, name);
}

/* By its id, or by its name alone. */
static json_t *find_made(const struct scope *s, const char *id)
{
    json_t *made = json_nocase(s->made, id), *one;
    const char *key;

    json_object_foreach((json_t *)s->made, key, one)
        if (!made && str_nocase(json_view(json_object_get(one, "name")), str_of(id)))
            made = one;
    return made;
}

/* What is known of a resource; of any that the template did not make, that it is here. Its
 * properties are members of it, as Resource Manager has them, and the whole resource is there too,
 * as published templates read it. */
static json_t *fn_reference(struct expression_reader *r, json_t *args)
{
    const char *id = json_string_value(json_array_get(args, 0));
    json_t *made = id ? find_made(r->scope, id) : NULL, *v;

    if (!id)
        return NULL;
    if (!made)
        return json_pack("{s:s, s:s, s:{}}", "id", id, "location", "local", "properties");
    v = json_copy(made);
    json_object_update_missing(v, json_object_get(made, "properties"));
    return v;
}

static json_t *fn_group(struct expression_reader *r, json_t *args)
{
    (void)args;
    return json_pack("{s:o, s:o, s:s}", "id",
                     json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s",
                                  (int)r->scope->subscription.n, r->scope->subscription.p,
                                  (int)r->scope->group.n, r->scope->group.p),
                     "name", record_text(r->scope->group), "location", "local");
}

static json_t *fn_subscription(struct expression_reader *r, json_t *args)
{
    struct str s = r->scope->subscription;

    (void)args;
    return json_pack("{s:o, s:o}", "id", json_sprintf("/subscriptions/%.*s", (int)s.n, s.p),
                     "subscriptionId", record_text(s));
}

static const struct {
    const char *name;
    json_t *(*call)(struct expression_reader *r, json_t *args);
} functions[] = {
    {"parameters",    fn_parameters  },
    {"variables",     fn_variables   },
    {"concat",        fn_concat      },
    {"resourceId",    fn_resource_id },
    {"reference",     fn_reference   },
    {"resource",      fn_reference   },
    {"resourceGroup", fn_group       },
    {"subscription",  fn_subscription},
};

/* --- reading --- */

/* Takes args. */
static json_t *call(struct expression_reader *r, const char *name, json_t *args)
{
    json_t *v = NULL;
    char what[WORD_MAX + 64];

    if (++*r->scope->calls > CALLS_MAX) {
        json_decref(args);
        return fail(r, "is one call too many of this template");
    }
    snprintf(what, sizeof(what), "calls %s, which is not known here", name);
    if (template_function(name, args, &v))
        snprintf(what, sizeof(what), "calls %s with what it cannot take", name);
    for (size_t i = 0; i < COUNT(functions); i++) {
        if (!str_nocase(str_of(name), str_of(functions[i].name)))
            continue;
        snprintf(what, sizeof(what), "calls %s with what it cannot take", name);
        v = functions[i].call(r, args);
    }
    json_decref(args);
    return v ? v : fail(r, what);
}

static json_t *read_call(struct expression_reader *r)
{
    char name[WORD_MAX];
    json_t *args;

    if (!take_word(r, name) || !take(r, '('))
        return fail_here(r, "cannot be read");
    args = json_array();
    while (!take(r, ')')) {
        json_t *one = NULL;
        if (json_array_size(args) < ARGS_MAX && (json_array_size(args) == 0 || take(r, ',')))
            one = read_value(r);
        if (!one) {
            json_decref(args);
            return fail_here(r, "cannot be read");
        }
        json_array_append_new(args, one);
    }
    return call(r, name, args);
}

static json_t *read_value(struct expression_reader *r)
{
    char name[WORD_MAX] = "", what[WORD_MAX + 64];
    json_t *v, *member;

    if (++r->depth > DEPLOYMENT_DEPTH || r->left.n == 0)
        return fail_here(r, "is too deep, or ends too early");
    if (r->left.p[0] == '\'')
        v = read_text(r);
    else if (r->left.p[0] == '-' || (r->left.p[0] >= '0' && r->left.p[0] <= '9'))
        v = read_number(r);
    else
        v = read_call(r);
    while (v && take(r, '.')) {
        member = take_word(r, name) ? json_incref(json_nocase(v, name)) : NULL;
        json_decref(v);
        snprintf(what, sizeof(what), "asks for the member '%s', which is not there", name);
        v = member ? member : fail(r, what);
    }
    r->depth--;
    return v;
}

/* A text that is no expression is its own value. */
static json_t *fill_text(const struct scope *s, struct str text, int depth, struct err *e)
{
    struct expression_reader r = {.scope = s, .depth = depth, .e = e};
    json_t *v;

    if (text.n < 2 || text.p[0] != '[' || text.p[text.n - 1] != ']')
        return record_text(text);
    if (text.p[1] == '[') /* a text that begins with a bracket */
        return record_text((struct str){text.p + 1, text.n - 1});
    r.left = (struct str){text.p + 1, text.n - 2};
    skip(&r, 0);
    v = read_value(&r);
    if (v && r.left.n > 0) {
        json_decref(v);
        v = fail_here(&r, "goes on after its end");
    }
    return v;
}

json_t *expression_value(const struct scope *s, const json_t *value, int depth, struct err *e)
{
    json_t *filled, *one, *member;
    const char *key;
    size_t i;

    if (depth > DEPLOYMENT_DEPTH) {
        err_set(e, ERR_CALLER, "the template is too deep");
        return NULL;
    }
    if (json_is_string(value))
        return fill_text(s, json_view(value), depth, e);
    if (!json_is_object(value) && !json_is_array(value))
        return json_incref((json_t *)value);
    filled = json_is_object(value) ? json_object() : json_array();
    json_object_foreach((json_t *)value, key, member) {
        one = expression_value(s, member, depth + 1, e);
        if (!one || json_object_set_new(filled, key, one) < 0)
            break;
    }
    json_array_foreach(value, i, member) {
        one = expression_value(s, member, depth + 1, e);
        if (!one || json_array_append_new(filled, one) < 0)
            break;
    }
    if (!e->kind)
        return filled;
    json_decref(filled);
    return NULL;
}

json_t *expression_fill(const struct scope *s, const json_t *value, struct err *e)
{
    return expression_value(s, value, 0, e);
}
