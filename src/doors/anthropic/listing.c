/* Lists, with both kinds of paging: page and next_page, after_id and has_more. */
#include "doors/anthropic/anthropic_int.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE_PREFIX   "page_" /* and the id of the last one before the page */
#define LIMIT_DEFAULT 20
#define LIMIT_MAX     1000

static bool refuse(struct request *r, const char *name, const char *text)
{
    answer_fail(r, 400, CODE_INVALID, name, "%s: %s", name, text);
    return false;
}

static bool read_limit(struct request *r, size_t *ret)
{
    struct str text = request_query(r, "limit");
    char *end;

    *ret = LIMIT_DEFAULT;
    if (!text.n)
        return true;
    *ret = strtoul(text.p, &end, 10);
    if (*end || *text.p < '0' || *text.p > '9' || text.n > 9 || *ret < 1 || *ret > LIMIT_MAX)
        return refuse(r, "limit", "a number from 1 to 1000 is expected");
    return true;
}

bool list_query_read(struct request *r, const char *prefix, struct list_query *ret)
{
    struct str page = request_query(r, "page"), after = request_query(r, "after_id");
    struct str before = request_query(r, "before_id");
    size_t n = strlen(PAGE_PREFIX);

    *ret = (struct list_query){0};
    if (!read_limit(r, &ret->limit))
        return false;
    if ((page.n > 0) + (after.n > 0) + (before.n > 0) > 1)
        return refuse(r, page.n ? "page" : "before_id", "one place to go on from is enough");
    if (page.n > 0) {
        if (page.n <= n || memcmp(page.p, PAGE_PREFIX, n) != 0)
            return refuse(r, "page", "this is no page that an answer has named");
        after = (struct str){page.p + n, page.n - n};
    }
    ret->newer = before.n > 0;
    ret->from = ret->newer ? before : after;
    if (ret->from.n > 0 && !id_is(ret->from, prefix))
        return refuse(r,
                      page.n > 0   ? "page"
                      : ret->newer ? "before_id"
                                   : "after_id",
                      "this is no id of ours");
    return true;
}

static json_t *id_at(const json_t *data, size_t i)
{
    return json_object_get(json_array_get(data, i), "id");
}

json_t *list_value(json_t *data, bool more, bool newer)
{
    size_t count = json_array_size(data);
    json_t *first = count ? id_at(data, 0) : json_null();
    json_t *last = count ? id_at(data, count - 1) : json_null();
    json_t *next = json_null();
    char page[sizeof(PAGE_PREFIX) + ID_MAX];

    if (more && !newer && count) {
        snprintf(page, sizeof(page), PAGE_PREFIX "%s", json_string_value(last));
        next = json_string(page);
    }
    return json_pack("{s:o, s:o, s:b, s:O, s:O}", "data", data, "next_page", next, "has_more",
                     (int)more, "first_id", first, "last_id", last);
}
