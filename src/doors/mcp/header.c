/*
 * Headers that repeat what the body says, so that whoever stands between can route by
 * them: they must be there, and they must say the same.
 *
 * A value that does not fit into a header comes as =?base64?...?=. What lacks either mark
 * is meant literally.
 */
#include "doors/mcp/mcp_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define NUMBER_MAX 64 /* characters of a number */
#define MARK_KEY   "x-mcp-header"
#define MARK_MAX   64 /* bytes of a header's name after Mcp-Param- */

struct str header_trim(struct str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Whether a list such as that of Accept has the word, parameters aside. */
bool header_lists(struct str list, const char *word)
{
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        struct str one = {list.p, comma ? (size_t)(comma - list.p) : list.n};
        const char *mark = memchr(one.p, ';', one.n);
        size_t taken = one.n + (comma ? 1 : 0);

        one = header_trim((struct str){one.p, mark ? (size_t)(mark - one.p) : one.n});
        if (one.n == strlen(word) && strncasecmp(one.p, word, one.n) == 0)
            return true;
        list.p += taken, list.n -= taken;
    }
    return false;
}

/* --- what a value says --- */

bool header_decode(struct str value, char *room, struct str *ret)
{
    static const struct str head = {"=?base64?", 9}, tail = {"?=", 2};
    size_t n;

    *ret = value = header_trim(value);
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

    json_object_foreach(json_object_get(schema, "properties"), key, one)
    {
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
