/*
 * lenient: reads JSON5 and fenced code blocks as models and people write them.
 *
 * Touches: memory only. Input and output are untrusted bytes.
 *
 * json5_read() parses one value; fence_next() walks the fenced blocks of a text, and
 * python_string_next() the long strings of a program. The views they return point into the text
 * that was passed in.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

/* --- views of text --- */

/* Offset of the first `what` in s, or s.n. */
static inline size_t str_find(struct str s, const char *what)
{
    const char *at = s.p && s.n ? memmem(s.p, s.n, what, strlen(what)) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

/* Length of the first line of s, without its newline. */
static inline size_t str_line(struct str s)
{
    const char *at = s.n ? memchr(s.p, '\n', s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

/* --- json5.c --- */

#define JSON5_DEPTH 32 /* levels of nesting */

/* Parses text that holds one value, with blanks and comments around it. Owned by the caller; NULL
 * when text is not JSON5, nests deeper than JSON5_DEPTH or holds more than JSON_VALUES_MAX values.
 * The last of two equal keys wins; Infinity and NaN become null. */
json_t *json5_read(struct str text);
/* Parses the value at the beginning of text; *ret_n is the number of bytes it takes. */
json_t *json5_read_first(struct str text, size_t *ret_n);

/* --- fences.c: ``` label, lines, ``` --- */

struct fence {
    struct str label, body;
    size_t end;  /* offset behind the closing fence */
    bool closed; /* false: the block runs to the end of the text */
};

/* Finds the next block at or after *at and moves *at behind it; false: no more blocks. */
bool fence_next(struct str text, size_t *at, struct fence *ret);

/* --- python_strings.c --- */

/* Finds the next string of several lines that begins at or after *at and before `before`; *ret is
 * what stands between its quotes. Moves *at behind it; false: there is none. */
bool python_string_next(struct str s, size_t *at, size_t before, struct str *ret);
