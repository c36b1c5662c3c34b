/*
 * Finds strings of several lines in Python's source, in text that may be prose in part. What looks
 * like a tag or a fence inside of such a string is the program's own text.
 */
#include "lenient/lenient.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether a value may stand behind the word. In prose three quotes follow any other word. */
static bool takes_value(struct str word)
{
    static const char *const words[] = {"return", "in", "not",   "and",    "or",    "if",
                                        "else",   "is", "yield", "assert", "await", "raise"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (str_is(word, words[i]))
            return true;
    return false;
}

/* Whether a string can begin at this quote: a value is expected there, with r, b, f or u before it.
 */
static bool begins_string(struct str s, size_t at)
{
    size_t n = at, end;

    while (n > 0 && at - n < 2 && s.p[n - 1] && strchr("rbfuRBFU", s.p[n - 1]))
        n--;
    if (n > 0 && is_word(s.p[n - 1]))
        return false;
    while (n > 0 && (s.p[n - 1] == ' ' || s.p[n - 1] == '\t'))
        n--;
    if (n == 0 || s.p[n - 1] == '\n')
        return true;
    if (!is_word(s.p[n - 1]))
        return s.p[n - 1] && strchr("=([{,:+-*/%|&^~<>!@;", s.p[n - 1]);
    for (end = n; n > 0 && is_word(s.p[n - 1]);)
        n--;
    return takes_value((struct str){s.p + n, end - n});
}

/* Where the quotes end that a string began with; s.n: nowhere. A string in one quote ends at the
 * end of its line, unless a backslash stands there. */
static size_t find_end(struct str s, size_t at, const char *quotes, size_t n)
{
    for (; at + n <= s.n; at++) {
        if (memcmp(s.p + at, quotes, n) == 0)
            return at;
        if (s.p[at] == '\\')
            at++;
        else if (n == 1 && s.p[at] == '\n')
            return s.n;
    }
    return s.n;
}

bool python_string_next(struct str s, size_t *at, size_t before, struct str *ret)
{
    while (*at < before && *at < s.n) {
        char c = s.p[*at];
        const char quotes[] = {c, c, c};
        size_t n = s.n - *at > 2 && memcmp(s.p + *at, quotes, 3) == 0 ? 3 : 1, end;

        if (c == '#')
            *at += str_line(str_from(s, *at));
        if (c != '"' && c != '\'') {
            ++*at;
            continue;
        }
        end = n == 1 || begins_string(s, *at) ? find_end(s, *at + n, quotes, n) : s.n;
        if (end == s.n) { /* an apostrophe, or quotes in prose */
            *at += n;
            continue;
        }
        *ret = (struct str){s.p + *at + n, end - *at - n};
        *at = end + n;
        if (str_line(*ret) < ret->n)
            return true;
    }
    return false;
}
