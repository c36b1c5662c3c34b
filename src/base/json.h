/*
 * JSON that a stranger wrote: a client, code in a sandbox, a model.
 *
 * Jansson limits neither levels (it recurses 2,048 deep) nor values, and an empty object takes two
 * bytes of text and about 250 of memory: 16 MB became 1.3 GB. Every text that is not our own is
 * read by json_load_limited(), which looks through it before anything is allocated.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

#define JSON_DEPTH_MAX  64     /* levels of nesting */
#define JSON_VALUES_MAX 250000 /* values and member names, of one text */

/* NULL: it is not JSON, or more than the limits allow. */
static inline json_t *json_load_limited(struct str text, size_t flags)
{
    if (json_measure(text, JSON_DEPTH_MAX, JSON_VALUES_MAX) != JSON_FITS)
        return NULL;
    return json_loadb(text.p ? text.p : "", text.n, flags, NULL);
}

/* Of a JSON string; p is NULL when v is none. */
static inline struct str json_view(const json_t *v)
{
    return (struct str){json_string_value(v), json_string_length(v)};
}
