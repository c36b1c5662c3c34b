/* JSON5 (json5.org) parser: one pass over the text, no state beyond a cursor. */
#include "base/json.h"
#include "lenient/lenient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_MAX 400 /* bytes of a number; every double is shorter */

struct json5_cursor {
    const char *p, *end;
    unsigned depth;
    size_t values; /* so far */
};

static json_t *read_value(struct json5_cursor *c);

/* --- between values --- */

static bool starts(const struct json5_cursor *c, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(c->end - c->p) >= n && memcmp(c->p, text, n) == 0;
}

/* Length of the blank at the cursor: ASCII, byte order mark, no-break space, line separators. */
static size_t blank(const struct json5_cursor *c)
{
    static const char *const wide[] = {"\xef\xbb\xbf", "\xc2\xa0", "\xe2\x80\xa8", "\xe2\x80\xa9"};

    if (c->p < c->end && strchr(" \t\n\r\v\f", *c->p) && *c->p)
        return 1;
    for (size_t i = 0; i < COUNT(wide); i++)
        if (starts(c, wide[i]))
            return strlen(wide[i]);
    return 0;
}

/* False: a comment does not end. */
static bool skip_comment(struct json5_cursor *c)
{
    const char *end;

    if (starts(c, "//")) {
        end = memchr(c->p, '\n', (size_t)(c->end - c->p));
        c->p = end ? end : c->end;
        return true;
    }
    end = memmem(c->p + 2, (size_t)(c->end - c->p - 2), "*/", 2);
    c->p = end ? end + 2 : c->end;
    return end != NULL;
}

static bool skip(struct json5_cursor *c)
{
    for (;;) {
        size_t n = blank(c);
        if (n > 0)
            c->p += n;
        else if (!starts(c, "//") && !starts(c, "/*"))
            return true;
        else if (!skip_comment(c))
            return false;
    }
}

/* --- strings --- */

static bool read_hex(struct json5_cursor *c, unsigned digits, uint32_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < digits; i++, c->p++) {
        int v = c->p < c->end ? hex_digit(*c->p) : -1;
        if (v < 0)
            return false;
        *ret = *ret * 16 + (uint32_t)v;
    }
    return true;
}

/* Called after "\u". Two surrogates are one character; utf8_print() replaces a lone one. */
static bool read_unicode(struct json5_cursor *c, uint32_t *ret)
{
    uint32_t low;

    if (!read_hex(c, 4, ret))
        return false;
    if (*ret >= 0xd800 && *ret < 0xdc00 && starts(c, "\\u")) {
        struct json5_cursor ahead = {c->p + 2, c->end, 0};
        if (read_hex(&ahead, 4, &low) && low >= 0xdc00 && low < 0xe000) {
            c->p = ahead.p;
            *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return true;
}

/* Called after a backslash; writes the character to *to. A line continuation writes none. */
static bool read_escape(struct json5_cursor *c, char **to)
{
    static const char from[] = "bfnrtv0", means[] = "\b\f\n\r\t\v";
    char letter;
    const char *known;
    uint32_t v;

    if (c->p == c->end)
        return false;
    letter = *c->p++;
    if (letter == 'u' || letter == 'x') {
        if (!(letter == 'u' ? read_unicode(c, &v) : read_hex(c, 2, &v)))
            return false;
        *to += utf8_print(*to, v);
        return true;
    }
    if (letter == '\r' && c->p < c->end && *c->p == '\n')
        c->p++;
    if (letter == '\n' || letter == '\r')
        return true;
    known = letter ? strchr(from, letter) : NULL;
    *(*to)++ = (char)(known ? means[known - from] : letter);
    return true;
}

/* Bytes up to the closing quote, so that a string is allocated at its own length. */
static size_t string_length(const struct json5_cursor *c, char quote)
{
    const char *p = c->p;

    while (p < c->end && *p != quote)
        p += *p == '\\' && p + 1 < c->end ? 2 : 1;
    return (size_t)(p - c->p);
}

/* Accepts raw newlines: JSON5 forbids them in strings, but models write them. */
static json_t *read_string(struct json5_cursor *c)
{
    char quote = *c->p++;
    AUTO_FREE char *text = mem_zalloc(string_length(c, quote) + 8); /* no escape makes it longer */
    char *to = text;
    size_t n;

    while (c->p < c->end && *c->p != quote) {
        if (*c->p != '\\')
            *to++ = *c->p++;
        else if (c->p++, !read_escape(c, &to))
            return NULL;
    }
    if (c->p == c->end)
        return NULL;
    c->p++;
    n = (size_t)(to - text);
    return str_utf8_len((struct str){text, n}) == n ? json_stringn_nocheck(text, n) : NULL;
}

/* --- numbers and words --- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static struct str take_word(struct json5_cursor *c)
{
    const char *from = c->p;

    while (c->p < c->end && is_word(*c->p))
        c->p++;
    return (struct str){from, (size_t)(c->p - from)};
}

/* Collects the characters that may stand in a number, then checks the spelling. */
static json_t *read_number(struct json5_cursor *c)
{
    char text[NUMBER_MAX];
    size_t n = 0, digits = 0;
    char *end;
    double v;

    while (c->p < c->end && n < sizeof(text) - 1 &&
           (is_word(*c->p) || strchr("+-.", *c->p ? *c->p : 'z'))) {
        digits += *c->p >= '0' && *c->p <= '9';
        text[n++] = *c->p++;
    }
    text[n] = '\0';
    if (strstr(text, "Infinity") || strstr(text, "NaN"))
        return json_null();
    if (digits == 0 || strpbrk(text, "pP"))
        return NULL;
    v = strtod(text, &end);
    if (*end != '\0')
        return NULL;
    if (strcspn(text, ".eE") == n && v >= -9e15 && v <= 9e15)
        return json_integer((json_int_t)v);
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *read_word(struct json5_cursor *c)
{
    struct str w = take_word(c);

    if (str_is(w, "true"))
        return json_true();
    if (str_is(w, "false"))
        return json_false();
    if (str_is(w, "null") || str_is(w, "NaN") || str_is(w, "Infinity"))
        return json_null();
    return NULL;
}

/* --- arrays and objects --- */

/* Called after an item. 1: a comma follows, 0: the list ends, -1: neither. */
static int after_item(struct json5_cursor *c, char closes)
{
    if (!skip(c) || c->p == c->end)
        return -1;
    if (*c->p == ',') {
        c->p++;
        if (!skip(c) || c->p == c->end)
            return -1;
        if (*c->p != closes)
            return 1;
    }
    return *c->p++ == closes ? 0 : -1;
}

static bool is_empty(struct json5_cursor *c, char closes)
{
    if (c->p == c->end || *c->p != closes)
        return false;
    c->p++;
    return true;
}

static json_t *read_array(struct json5_cursor *c)
{
    json_t *list = json_array(), *v;
    int more = 1;

    c->p++;
    if (skip(c) && is_empty(c, ']'))
        return list;
    while (more > 0) {
        v = read_value(c);
        more = v ? after_item(c, ']') : -1;
        if (v)
            json_array_append_new(list, v);
    }
    if (more == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *read_key(struct json5_cursor *c)
{
    struct str w;

    if (!skip(c) || c->p == c->end)
        return NULL;
    if (*c->p == '"' || *c->p == '\'')
        return read_string(c);
    w = take_word(c);
    if (w.n == 0 || str_utf8_len(w) != w.n)
        return NULL;
    return json_stringn_nocheck(w.p, w.n);
}

/* -1: no member stands here. Names with a NUL are refused. */
static int read_member(struct json5_cursor *c, json_t *object)
{
    json_t *key = read_key(c), *v = NULL;
    bool good = key && strlen(json_string_value(key)) == json_string_length(key) && skip(c) &&
                c->p < c->end && *c->p == ':';

    if (good) {
        c->p++;
        v = read_value(c);
    }
    if (v)
        json_object_set_new_nocheck(object, json_string_value(key), v);
    json_decref(key);
    return v ? after_item(c, '}') : -1;
}

static json_t *read_object(struct json5_cursor *c)
{
    json_t *object = json_object();
    int more = 1;

    c->p++;
    if (skip(c) && is_empty(c, '}'))
        return object;
    while (more > 0)
        more = read_member(c, object);
    if (more == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *read_value(struct json5_cursor *c)
{
    json_t *v;

    if (!skip(c) || c->p == c->end || c->depth == JSON5_DEPTH || ++c->values > JSON_VALUES_MAX)
        return NULL;
    c->depth++;
    if (*c->p == '{')
        v = read_object(c);
    else if (*c->p == '[')
        v = read_array(c);
    else if (*c->p == '"' || *c->p == '\'')
        v = read_string(c);
    else if (strchr("+-.0123456789", *c->p ? *c->p : 'z'))
        v = read_number(c);
    else
        v = read_word(c);
    c->depth--;
    return v;
}

json_t *json5_read_first(struct str text, size_t *ret_n)
{
    struct json5_cursor c = {text.p, text.p + text.n, 0, 0};
    json_t *v = text.n > 0 ? read_value(&c) : NULL;

    *ret_n = v ? (size_t)(c.p - text.p) : 0;
    return v;
}

json_t *json5_read(struct str text)
{
    size_t n;
    json_t *v = json5_read_first(text, &n);
    struct json5_cursor rest = {text.p + n, text.p + text.n, 0, 0};

    if (v && skip(&rest) && rest.p == rest.end)
        return v;
    json_decref(v);
    return NULL;
}
