/*
 * Joins the halves of characters: JSON writes a character past U+FFFF as two escapes, and an
 * endpoint that cuts its text between them sends one half in each of two events.
 */
#include "model/model_int.h"

#define ESCAPE 6 /* bytes of \uXXXX */

/* The number of an escape \uXXXX; -1: there is none. */
static int escape_at(struct str s, size_t i)
{
    int v = 0;

    if (s.n - i < ESCAPE || s.p[i] != '\\' || s.p[i + 1] != 'u')
        return -1;
    for (size_t k = i + 2; k < i + ESCAPE; k++) {
        int digit = hex_digit(s.p[k]);

        if (digit < 0)
            return -1;
        v = 16 * v + digit;
    }
    return v;
}

static bool is_first(int v)
{
    return v >= 0xd800 && v < 0xdc00;
}

static bool is_second(int v)
{
    return v >= 0xdc00 && v < 0xe000;
}

/* Whether there may be one: most texts have none, and are not copied. */
static bool has_half(struct str s)
{
    for (size_t i = 0; i + ESCAPE <= s.n; i++)
        if (s.p[i] == '\\' && s.p[i + 1] == 'u' && (s.p[i + 2] | 0x20) == 'd' &&
            strchr("89abcdefABCDEF", s.p[i + 3]))
            return true;
    return false;
}

/* An escape of a lone half at i. */
static void put_half(struct buf *b, struct str s, size_t i, int v, unsigned *half)
{
    bool begins = i > 0 && s.p[i - 1] == '"', ends = i + ESCAPE < s.n && s.p[i + ESCAPE] == '"';

    if (is_second(v) && begins && *half) {
        buf_printf(b, "\\u%04x\\u%04x", *half, (unsigned)v);
        *half = 0;
    } else if (is_first(v) && ends) {
        *half = (unsigned)v;
    } else {
        buf_put(b, STR("\\ufffd"));
    }
}

struct str surrogates_join(struct buf *b, struct str json, unsigned *half)
{
    size_t i = 0;

    if (!has_half(json))
        return json;
    buf_clear(b);
    while (i < json.n) {
        int v = escape_at(json, i);
        size_t n = v >= 0 ? ESCAPE : json.p[i] == '\\' && i + 1 < json.n ? 2 : 1;

        if (is_first(v) && is_second(escape_at(json, i + n)))
            n += ESCAPE;
        else if (is_first(v) || is_second(v))
            put_half(b, json, i, v, half);
        if (n != ESCAPE || !(is_first(v) || is_second(v)))
            buf_put(b, (struct str){json.p + i, n});
        i += n;
    }
    return b->full ? json : buf_str(b);
}
