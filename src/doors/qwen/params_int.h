/* Private to params.c and fences.c: pieces of a model's text. */
#pragma once

#include "doors/qwen/params.h"

static inline struct str trim(struct str s)
{
    while (s.n > 0 && strchr(" \t\r\n", *s.p ? *s.p : 'x'))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1] ? s.p[s.n - 1] : 'x'))
        s.n--;
    return s;
}

static inline struct str from(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

/* Where it is, or s.n. */
static inline size_t find(struct str s, const char *what)
{
    const char *at = s.p && s.n ? memmem(s.p, s.n, what, strlen(what)) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

static inline size_t line_end(struct str s)
{
    const char *at = s.n ? memchr(s.p, '\n', s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

/* --- fences.c: ``` label, lines, ``` --- */

struct fence {
    struct str label, body;
    size_t end; /* of all of it, in the text */
};

/* The next that opens at or after *at, which moves behind it; false: there is none. */
bool fence_next(struct str text, size_t *at, struct fence *ret);
