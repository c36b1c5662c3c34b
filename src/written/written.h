/*
 * written: text as models and people write it. JSON5 and fenced blocks, and pieces of
 * text to find them in.
 *
 * Touches: memory. Never touches: anything else; its input is a stranger's, and so is
 * every byte that comes out.
 *
 * json5_read() for a value, fence_next() for one block after the other. Views are of the
 * text that was given.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

/* --- pieces --- */

static inline struct str str_trim(struct str s)
{
    while (s.n > 0 && strchr(" \t\r\n", *s.p ? *s.p : 'x'))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1] ? s.p[s.n - 1] : 'x'))
        s.n--;
    return s;
}

static inline struct str str_from(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

/* Where it is, or s.n. */
static inline size_t str_find(struct str s, const char *what)
{
    const char *at = s.p && s.n ? memmem(s.p, s.n, what, strlen(what)) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

/* Where its first line ends, or s.n. */
static inline size_t str_line(struct str s)
{
    const char *at = s.n ? memchr(s.p, '\n', s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

/* --- json5.c --- */

#define JSON5_DEPTH 32 /* levels of nesting */

/* One value and nothing after it but blanks and comments. Owned by the caller; NULL when it is no
 * JSON5, or nested deeper than JSON5_DEPTH. Of two members with one name the last counts. Infinity
 * and NaN, which JSON has not, are null. */
json_t *json5_read(struct str text);
/* The same for a value at the beginning of text; *ret_n bytes of it. */
json_t *json5_read_first(struct str text, size_t *ret_n);

/* --- fences.c: ``` label, lines, ``` --- */

struct fence {
    struct str label, body;
    size_t end;  /* of all of it, in the text */
    bool closed; /* else it went on to the end of the text */
};

/* The next that opens at or after *at, which moves behind it; false: there is none. */
bool fence_next(struct str text, size_t *at, struct fence *ret);
