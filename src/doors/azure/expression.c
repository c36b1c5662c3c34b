/*
 * Expressions of deployment templates: "[concat(parameters('memory'), 'Gi')]". What a
 * template of session pools needs, and no more; anything else is refused by its name.
 *
 * A value is JSON. Reading goes from left to right and never back, so it takes as long as
 * the text is; calls within calls are counted.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ARGS_MAX  16
#define WORD_MAX  64
#define TEXT_MAX_ (64 * KiB) /* of one value */

struct expression_reader {
    const struct scope *scope;
    struct str left;
    int depth;
    struct err *e;
};

static json_t *read_value(struct expression_reader *r);

static json_t *fail(struct expression_reader *r, const char *what)
{
    char shown[NAME_SHOWN];

    if (r->e->kind == ERR_NONE)
        err_set(r->e, ERR_CALLER, "an expression of the template %s, at %s", what,
                r->left.n ? name_show(shown, r->left) : "its end");
    return NULL;
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
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX_);
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
    return v ? v : fail(r, "has a text without an end");
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
    json_t *given = name ? json_at(json_nocase(r->scope->given, name), "value") : NULL;
    json_t *usual = name ? json_at(json_nocase(r->scope->parameters, name), "defaultValue") : NULL;

    return json_incref(given ? given : usual);
}

static json_t *fn_variables(struct expression_reader *r, json_t *args)
{
    const char *name = json_string_value(json_array_get(args, 0));

    return name ? json_incref(json_nocase(r->scope->variables, name)) : NULL;
}

static json_t *fn_concat(struct expression_reader *r, json_t *args)
{
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX_);
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

/* What is known of a resource by its id; of any other, that it is here. */
static json_t *fn_reference(struct expression_reader *r, json_t *args)
{
    const char *id = json_string_value(json_array_get(args, 0));
    json_t *made = id ? json_nocase(r->scope->made, id) : NULL;

    if (!id)
        return NULL;
    return made ? json_incref(made)
                : json_pack("{s:s, s:s, s:{}}", "id", id, "location", "local", "properties");
}

static json_t *fn_group(struct expression_reader *r, json_t *args)
{
    (void)args;
    return json_pack("{s:o, s:s}", "name", record_text(r->scope->group), "location", "local");
}

static const struct {
    const char *name;
    json_t *(*call)(struct expression_reader *r, json_t *args);
} functions[] = {
    {"parameters",    fn_parameters },
    {"variables",     fn_variables  },
    {"concat",        fn_concat     },
    {"resourceId",    fn_resource_id},
    {"reference",     fn_reference  },
    {"resource",      fn_reference  },
    {"resourceGroup", fn_group      },
};

/* --- reading --- */

/* Takes args. */
static json_t *call(struct expression_reader *r, const char *name, json_t *args)
{
    json_t *v = NULL;
    char what[WORD_MAX + 64];

    snprintf(what, sizeof(what), "calls %s, which is not known here", name);
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
        return fail(r, "cannot be read");
    args = json_array();
    while (!take(r, ')')) {
        json_t *one = NULL;
        if (json_array_size(args) < ARGS_MAX && (json_array_size(args) == 0 || take(r, ',')))
            one = read_value(r);
        if (!one) {
            json_decref(args);
            return fail(r, "cannot be read");
        }
        json_array_append_new(args, one);
    }
    return call(r, name, args);
}

static json_t *read_value(struct expression_reader *r)
{
    char name[WORD_MAX];
    json_t *v, *member;

    if (++r->depth > DEPLOYMENT_DEPTH || r->left.n == 0)
        return fail(r, "is too deep, or ends too early");
    if (r->left.p[0] == '\'')
        v = read_text(r);
    else if (r->left.p[0] == '-' || (r->left.p[0] >= '0' && r->left.p[0] <= '9'))
        v = read_number(r);
    else
        v = read_call(r);
    while (v && take(r, '.')) {
        member = take_word(r, name) ? json_incref(json_nocase(v, name)) : NULL;
        json_decref(v);
        v = member ? member : fail(r, "asks for a member that is not there");
    }
    r->depth--;
    return v;
}

json_t *expression_value(const struct scope *s, struct str text, struct err *e)
{
    struct expression_reader r = {.scope = s, .e = e};
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
        v = fail(&r, "goes on after its end");
    }
    return v;
}

json_t *expression_fill(const struct scope *s, const json_t *value, int depth, struct err *e)
{
    json_t *filled, *one, *member;
    const char *key;
    size_t i;

    if (depth > DEPLOYMENT_DEPTH) {
        err_set(e, ERR_CALLER, "the template is too deep");
        return NULL;
    }
    if (json_is_string(value))
        return expression_value(s, json_view(value), e);
    if (!json_is_object(value) && !json_is_array(value))
        return json_incref((json_t *)value);
    filled = json_is_object(value) ? json_object() : json_array();
    json_object_foreach((json_t *)value, key, member) {
        one = expression_fill(s, member, depth + 1, e);
        if (!one || json_object_set_new(filled, key, one) < 0)
            break;
    }
    json_array_foreach(value, i, member) {
        one = expression_fill(s, member, depth + 1, e);
        if (!one || json_array_append_new(filled, one) < 0)
            break;
    }
    if (!e->kind)
        return filled;
    json_decref(filled);
    return NULL;
}
