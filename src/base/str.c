/* Views of bytes: compare them, cut them, walk through them, measure how much of them is UTF-8. */
#include "base/base.h"

#include <stdlib.h>

struct str str_of(const char *cstr)
{
    return (struct str){cstr, cstr ? strlen(cstr) : 0};
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_is(struct str a, const char *cstr)
{
    return str_eq(a, str_of(cstr));
}

struct str str_from(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

static bool is_one_of(char c, const char *chars)
{
    return c && strchr(chars, c);
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && is_one_of(s.p[0], " \t\r\n"))
        s = str_from(s, 1);
    while (s.n > 0 && is_one_of(s.p[s.n - 1], " \t\r\n"))
        s.n--;
    return s;
}

struct str str_base(struct str path, const char *separators)
{
    size_t at = path.n;

    while (at > 0 && !is_one_of(path.p[at - 1], separators))
        at--;
    return str_from(path, at);
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool str_next(struct str *list, char separator, struct str *ret)
{
    const char *end;

    if (!list->p)
        return false;
    end = list->n ? memchr(list->p, separator, list->n) : NULL;
    *ret = str_trim((struct str){list->p, end ? (size_t)(end - list->p) : list->n});
    *list = end ? str_from(*list, (size_t)(end + 1 - list->p)) : (struct str){NULL, 0};
    return true;
}

bool str_to_cstr(struct str s, char *ret, size_t size)
{
    if (s.n >= size || (s.n > 0 && memchr(s.p, '\0', s.n)))
        return false;
    if (s.n > 0)
        memcpy(ret, s.p, s.n);
    ret[s.n] = '\0';
    return true;
}

/* Bytes in the sequence that starts at p, or 0 when it is not valid UTF-8
 * (overlong forms, surrogates and values past U+10FFFF included). */
static size_t utf8_step(const unsigned char *p, size_t n)
{
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (len == 0 || len > n || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return len;
}

/* Eight bytes at a time where there is no other than ASCII: outputs are long. */
static size_t ascii_run(struct str s, size_t at)
{
    uint64_t eight;

    for (; s.n - at >= sizeof(eight); at += sizeof(eight)) {
        memcpy(&eight, s.p + at, sizeof(eight));
        if (eight & 0x8080808080808080u)
            break;
    }
    return at;
}

size_t str_utf8_len(struct str s)
{
    size_t at = 0;

    while ((at = ascii_run(s, at)) < s.n) {
        size_t step = utf8_step((const unsigned char *)s.p + at, s.n - at);
        if (step == 0)
            break;
        at += step;
    }
    return at;
}

uint64_t text_number_at(const char *text, unsigned n)
{
    static const char blanks[] = " \t\n";

    text += strspn(text, blanks);
    for (; n > 0; n--) {
        text += strcspn(text, blanks);
        text += strspn(text, blanks);
    }
    return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}
