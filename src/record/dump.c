/*
 * JSON as text. What guests say may be nothing but characters to escape, for which
 * jansson's own writer takes a few hundred nanoseconds each: sixteen megabytes of them
 * would be seconds. This one copies runs and looks each byte up.
 */
#include "record/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE   (4 * KiB) /* of a string, for which there is room at a time */
#define ESC_MAX 12        /* of one character: two escapes, for a pair of surrogates */

struct writer {
    struct buf out;
    bool ascii;
    bool full;
};

static void put(struct writer *w, const char *p, size_t n)
{
    char *to = buf_room(&w->out, n);

    w->full |= !to;
    if (!to)
        return;
    memcpy(to, p, n);
    w->out.n += n;
}

static char *escape(char *to, unsigned code)
{
    static const char hex[] = "0123456789ABCDEF";

    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = hex[code >> shift & 15];
    return to;
}

/* Strings hold UTF-8 alone; how long a character is stands in its first byte. */
static char *escape_wide(char *to, const unsigned char *p, size_t n)
{
    uint32_t code = n == 2 ? p[0] & 0x1fu : n == 3 ? p[0] & 0xfu : p[0] & 7u;

    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3fu);
    if (code < 0x10000)
        return escape(to, code);
    to = escape(to, 0xd800 + ((code - 0x10000) >> 10));
    return escape(to, 0xdc00 + ((code - 0x10000) & 0x3ff));
}

/* As many whole characters as there is room for at a time. Returns how many bytes of s they are. */
static size_t put_piece(struct writer *w, struct str s)
{
    static const char shorts[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    const unsigned char *p = (const unsigned char *)s.p;
    char *room = buf_room(&w->out, PIECE + ESC_MAX), *to = room;
    size_t at = 0;

    w->full |= !room;
    while (room && at < s.n && to - room < (ptrdiff_t)PIECE) {
        unsigned char c = p[at];
        size_t n = c < 0x80 || !w->ascii ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        const char *brief = c < ' ' || c == '"' || c == '\\' ? strchr(shorts, c) : NULL;
        if (n > 1 && n <= s.n - at) {
            to = escape_wide(to, p + at, n);
        } else if (brief && c) {
            *to++ = '\\';
            *to++ = brief[1];
        } else if (c < ' ') {
            to = escape(to, c);
        } else {
            *to++ = (char)c;
        }
        at += n;
    }
    w->out.n += room ? (size_t)(to - room) : 0;
    return room ? at : s.n;
}

static void put_string(struct writer *w, const char *p, size_t n)
{
    put(w, "\"", 1);
    for (size_t at = 0; at < n;)
        at += put_piece(w, (struct str){p + at, n - at});
    put(w, "\"", 1);
}

/* With the fewest of 15 to 17 digits that are read back as the same number: 0.1, but
 * 0.3333333333333333. A number that happens to be whole says what it is, as 2.0 does. */
static int write_real(double v, char text[64])
{
    int n = 0;

    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, 62, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    return strpbrk(text, ".e") ? n : n + snprintf(text + n, 3, ".0");
}

static void put_number(struct writer *w, const json_t *v)
{
    char text[64];
    int n = json_is_integer(v)
                ? snprintf(text, sizeof(text), "%" PRId64, (int64_t)json_integer_value(v))
                : write_real(json_real_value(v), text);

    put(w, text, (size_t)n);
}

static void put_value(struct writer *w, const json_t *v);

static void put_object(struct writer *w, const json_t *v)
{
    const char *key, *before = "{";
    json_t *value;

    json_object_foreach((json_t *)v, key, value) {
        put(w, before, 1);
        put_string(w, key, strlen(key));
        put(w, ":", 1);
        put_value(w, value);
        before = ",";
    }
    put(w, *before == '{' ? "{}" : "}", *before == '{' ? 2 : 1);
}

static void put_array(struct writer *w, const json_t *v)
{
    size_t n = json_array_size(v);

    put(w, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            put(w, ",", 1);
        put_value(w, json_array_get(v, i));
    }
    put(w, "]", 1);
}

/* As deep as what we have made ourselves, or what came in within JSON_DEPTH. */
static void put_value(struct writer *w, const json_t *v)
{
    if (json_is_object(v))
        put_object(w, v);
    else if (json_is_array(v))
        put_array(w, v);
    else if (json_is_string(v))
        put_string(w, json_string_value(v), json_string_length(v));
    else if (json_is_number(v))
        put_number(w, v);
    else if (json_is_boolean(v))
        put(w, json_is_true(v) ? "true" : "false", json_is_true(v) ? 4 : 5);
    else
        put(w, "null", 4);
}

char *record_dump(const json_t *v, bool ascii, size_t *ret_n)
{
    struct writer w = {.ascii = ascii};

    buf_init(&w.out, DUMP_MAX);
    put_value(&w, v);
    put(&w, "", 1);
    if (w.full) {
        buf_done(&w.out);
        return NULL;
    }
    if (ret_n)
        *ret_n = w.out.n - 1;
    return w.out.p;
}
