/*
 * Functions of templates that know nothing but their arguments: texts, numbers, lists, and what
 * conditions are made of. Those that ask for parameters and resources are in expression.c.
 *
 * Each gives an owned value, or NULL when it cannot take its arguments.
 */
#include "doors/azure/azure_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *at(const json_t *args, size_t i)
{
    return json_array_get(args, i);
}

/* --- what is true --- */

static json_t *fn_equals(const json_t *args)
{
    return json_boolean(json_equal(at(args, 0), at(args, 1)));
}

static json_t *fn_not(const json_t *args)
{
    return json_is_boolean(at(args, 0)) ? json_boolean(json_is_false(at(args, 0))) : NULL;
}

/* Whether all are true, or any; with one that is no truth value NULL. */
static json_t *fold(const json_t *args, bool all)
{
    bool found = all;
    json_t *one;
    size_t i;

    json_array_foreach(args, i, one) {
        if (!json_is_boolean(one))
            return NULL;
        found = all ? found && json_is_true(one) : found || json_is_true(one);
    }
    return json_boolean(found);
}

static json_t *fn_and(const json_t *args)
{
    return fold(args, true);
}

static json_t *fn_or(const json_t *args)
{
    return fold(args, false);
}

static json_t *fn_if(const json_t *args)
{
    if (!json_is_boolean(at(args, 0)))
        return NULL;
    return json_incref(at(args, json_is_true(at(args, 0)) ? 1 : 2));
}

static json_t *fn_true(const json_t *args)
{
    (void)args;
    return json_true();
}

static json_t *fn_false(const json_t *args)
{
    (void)args;
    return json_false();
}

static json_t *fn_null(const json_t *args)
{
    (void)args;
    return json_null();
}

static json_t *fn_coalesce(const json_t *args)
{
    json_t *one;
    size_t i;

    json_array_foreach(args, i, one) {
        if (!json_is_null(one))
            return json_incref(one);
    }
    return json_null();
}

/* --- numbers --- */

/* -1, 0 or 1; false when they cannot be compared. */
static bool compare(const json_t *args, int *ret)
{
    const json_t *a = at(args, 0), *b = at(args, 1);
    int order;

    if (json_is_integer(a) && json_is_integer(b)) {
        *ret = json_integer_value(a) < json_integer_value(b)
                   ? -1
                   : json_integer_value(a) > json_integer_value(b);
        return true;
    }
    if (!json_is_string(a) || !json_is_string(b))
        return false;
    order = strcmp(json_string_value(a), json_string_value(b));
    *ret = order < 0 ? -1 : order > 0;
    return true;
}

static json_t *fn_less(const json_t *args)
{
    int order;

    return compare(args, &order) ? json_boolean(order < 0) : NULL;
}

static json_t *fn_less_or_equals(const json_t *args)
{
    int order;

    return compare(args, &order) ? json_boolean(order <= 0) : NULL;
}

static json_t *fn_greater(const json_t *args)
{
    int order;

    return compare(args, &order) ? json_boolean(order > 0) : NULL;
}

static json_t *fn_greater_or_equals(const json_t *args)
{
    int order;

    return compare(args, &order) ? json_boolean(order >= 0) : NULL;
}

static json_t *calculate(const json_t *args, char op)
{
    json_int_t a, b, n;
    bool over;

    if (!json_is_integer(at(args, 0)) || !json_is_integer(at(args, 1)))
        return NULL;
    a = json_integer_value(at(args, 0));
    b = json_integer_value(at(args, 1));
    over = op == '+'   ? __builtin_add_overflow(a, b, &n)
           : op == '-' ? __builtin_sub_overflow(a, b, &n)
                       : __builtin_mul_overflow(a, b, &n);
    return over ? NULL : json_integer(n);
}

static json_t *fn_add(const json_t *args)
{
    return calculate(args, '+');
}

static json_t *fn_sub(const json_t *args)
{
    return calculate(args, '-');
}

static json_t *fn_mul(const json_t *args)
{
    return calculate(args, '*');
}

static json_t *fn_int(const json_t *args)
{
    const char *text = json_string_value(at(args, 0));
    char *end = NULL;
    long long n;

    if (json_is_integer(at(args, 0)))
        return json_incref(at(args, 0));
    n = text ? strtoll(text, &end, 10) : 0;
    return text && end != text && !*end ? json_integer(n) : NULL;
}

static json_t *fn_bool(const json_t *args)
{
    struct str s = json_view(at(args, 0));

    if (json_is_boolean(at(args, 0)))
        return json_incref(at(args, 0));
    if (json_is_integer(at(args, 0)))
        return json_boolean(json_integer_value(at(args, 0)) != 0);
    return str_nocase(s, STR("true"))    ? json_true()
           : str_nocase(s, STR("false")) ? json_false()
                                         : NULL;
}

/* --- texts --- */

static json_t *fn_string(const json_t *args)
{
    AUTO_FREE char *text = NULL;

    if (json_is_string(at(args, 0)))
        return json_incref(at(args, 0));
    text = json_dumps(at(args, 0), JSON_ENCODE_ANY | JSON_COMPACT);
    return text && strlen(text) <= TEMPLATE_TEXT ? json_string(text) : NULL;
}

static json_t *cased(const json_t *args, int (*change)(int))
{
    struct str s = json_view(at(args, 0));
    AUTO_FREE char *text = s.p ? mem_strndup(s) : NULL;

    for (size_t i = 0; text && i < s.n; i++)
        if ((unsigned char)text[i] < 0x80)
            text[i] = (char)change((unsigned char)text[i]);
    return text ? record_text((struct str){text, s.n}) : NULL;
}

static json_t *fn_to_lower(const json_t *args)
{
    return cased(args, tolower);
}

static json_t *fn_to_upper(const json_t *args)
{
    return cased(args, toupper);
}

static bool put_value(struct buf *b, const json_t *value)
{
    json_t *args = json_pack("[O]", (json_t *)value), *text = value ? fn_string(args) : NULL;
    bool good = text && buf_put(b, json_view(text)) == 0;

    json_decref(args);
    json_decref(text);
    return good;
}

/* {0} is the first argument behind the text; {{ and }} are braces. Bicep writes '${a}-b' so. */
static json_t *fn_format(const json_t *args)
{
    struct str s = json_view(at(args, 0));
    AUTO(buf_done) struct buf b = BUF(TEMPLATE_TEXT);

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        size_t n = 0, end = i + 1;
        if (c != '{' && c != '}') {
            buf_put(&b, (struct str){s.p + i, 1});
            continue;
        }
        if (end < s.n && s.p[end] == c) {
            buf_put(&b, (struct str){s.p + i++, 1});
            continue;
        }
        for (; end < s.n && isdigit((unsigned char)s.p[end]) && n < 100; end++)
            n = n * 10 + (size_t)(s.p[end] - '0');
        if (c == '}' || end == i + 1 || end == s.n || s.p[end] != '}' ||
            n + 1 >= json_array_size(args) || !put_value(&b, at(args, n + 1)))
            return NULL;
        i = end;
    }
    return s.p && !b.full ? record_text(buf_str(&b)) : NULL;
}

/* The same 13 letters for the same texts; not those of Azure, whose way is not published. */
static json_t *fn_unique_string(const json_t *args)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    char text[14] = "";
    json_t *one;
    size_t i;

    json_array_foreach(args, i, one) {
        struct str s = json_view(one);
        if (!s.p)
            return NULL;
        for (size_t k = 0; k <= s.n; k++) /* with its NUL: texts are apart */
            hash = (hash ^ (unsigned char)s.p[k]) * 0x100000001b3;
    }
    for (i = 0; i < 13; i++, hash >>= 5)
        text[i] = letters[hash & 31];
    return json_string(text);
}

/* --- texts and lists --- */

static json_t *fn_length(const json_t *args)
{
    const json_t *v = at(args, 0);

    if (json_is_array(v))
        return json_integer((json_int_t)json_array_size(v));
    if (json_is_object(v))
        return json_integer((json_int_t)json_object_size(v));
    return json_is_string(v) ? json_integer((json_int_t)template_length(json_view(v))) : NULL;
}

static json_t *fn_empty(const json_t *args)
{
    const json_t *v = at(args, 0);

    if (!json_is_string(v) && !json_is_array(v) && !json_is_object(v) && !json_is_null(v))
        return NULL;
    return json_boolean(json_is_null(v) || (json_is_string(v)  ? json_string_length(v)
                                            : json_is_array(v) ? json_array_size(v)
                                                               : json_object_size(v)) == 0);
}

static json_t *fn_contains(const json_t *args)
{
    const json_t *in = at(args, 0), *what = at(args, 1);
    json_t *one;
    size_t i;

    if (json_is_string(in) && json_is_string(what))
        return json_boolean(strstr(json_string_value(in), json_string_value(what)) != NULL);
    if (json_is_object(in) && json_is_string(what))
        return json_boolean(json_nocase(in, json_string_value(what)) != NULL);
    if (!json_is_array(in))
        return NULL;
    json_array_foreach(in, i, one) {
        if (json_equal(one, what))
            return json_true();
    }
    return json_false();
}

static json_t *fn_create_array(const json_t *args)
{
    return json_copy((json_t *)args);
}

/* --- all of them --- */

#define ANY 16 /* as many arguments as there may be */

static const struct {
    const char *name;
    json_t *(*call)(const json_t *args);
    size_t least, most; /* arguments */
} functions[] = {
    {"equals",          fn_equals,            2, 2  },
    {"not",             fn_not,               1, 1  },
    {"and",             fn_and,               2, ANY},
    {"or",              fn_or,                2, ANY},
    {"if",              fn_if,                3, 3  },
    {"true",            fn_true,              0, 0  },
    {"false",           fn_false,             0, 0  },
    {"null",            fn_null,              0, 0  },
    {"coalesce",        fn_coalesce,          1, ANY},
    {"less",            fn_less,              2, 2  },
    {"lessOrEquals",    fn_less_or_equals,    2, 2  },
    {"greater",         fn_greater,           2, 2  },
    {"greaterOrEquals", fn_greater_or_equals, 2, 2  },
    {"add",             fn_add,               2, 2  },
    {"sub",             fn_sub,               2, 2  },
    {"mul",             fn_mul,               2, 2  },
    {"int",             fn_int,               1, 1  },
    {"bool",            fn_bool,              1, 1  },
    {"string",          fn_string,            1, 1  },
    {"toLower",         fn_to_lower,          1, 1  },
    {"toUpper",         fn_to_upper,          1, 1  },
    {"format",          fn_format,            1, ANY},
    {"uniqueString",    fn_unique_string,     1, ANY},
    {"length",          fn_length,            1, 1  },
    {"empty",           fn_empty,             1, 1  },
    {"contains",        fn_contains,          2, 2  },
    {"createArray",     fn_create_array,      0, ANY},
};

bool template_function(const char *name, const json_t *args, json_t **ret)
{
    size_t n = json_array_size(args);

    for (size_t i = 0; i < COUNT(functions); i++)
        if (str_nocase(str_of(name), str_of(functions[i].name))) {
            bool fits = n >= functions[i].least && n <= functions[i].most;
            *ret = fits ? functions[i].call(args) : NULL;
            return true;
        }
    return false;
}
