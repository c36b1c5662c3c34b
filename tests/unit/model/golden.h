/* JSON as tests write it, compared as JSON. */
#pragma once

#include "unit.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Single quotes stand for double ones. */
static inline json_t *json_of(const char *text)
{
    char *copy = strdup(text);
    json_error_t e;
    json_t *v;

    for (char *c = strchr(copy, '\''); c; c = strchr(c, '\''))
        *c = '"';
    v = json_loads(copy, JSON_DECODE_ANY, &e);
    if (!v)
        fail_msg("%s: %s", e.text, copy);
    free(copy);
    return v;
}

/* Takes got. */
static inline void assert_json(json_t *got, const char *expected)
{
    json_t *want = json_of(expected);

    if (!json_equal(got, want)) {
        char *a = json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        char *b = json_dumps(want, JSON_ENCODE_ANY | JSON_SORT_KEYS);

        print_error("got:  %s\nwant: %s\n", a ? a : "(none)", b);
        free(a);
        free(b);
        json_decref(want);
        fail();
    }
    json_decref(want);
    json_decref(got);
}
