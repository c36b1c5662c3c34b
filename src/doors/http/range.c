/* Parts of an answer, as a Range header asks for them: RFC 9110, section 14. */
#include "doors/http/http_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* False when there is no digit or it does not fit. */
static bool take_number(struct str *s, uint64_t *ret)
{
    size_t n = 0;

    *ret = 0;
    for (; n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++)
        if (__builtin_mul_overflow(*ret, 10, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(s->p[n] - '0'), ret))
            *ret = UINT64_MAX / 16; /* past any end, and stays so with a few digits more */
    *s = str_from(*s, n);
    return n > 0;
}

enum range range_parse(struct str header, uint64_t size, uint64_t *ret_from, uint64_t *ret_count)
{
    static const char unit[] = "bytes=";
    struct str s = header;
    uint64_t first = 0, last = 0;
    bool has_first, has_last;

    *ret_from = 0;
    *ret_count = size;
    if (s.n < sizeof(unit) - 1 || strncasecmp(s.p, unit, sizeof(unit) - 1) != 0)
        return RANGE_ALL;
    s = str_from(s, sizeof(unit) - 1);
    has_first = take_number(&s, &first);
    if (s.n == 0 || *s.p != '-')
        return RANGE_ALL;
    s = str_from(s, 1);
    has_last = take_number(&s, &last);
    if (s.n > 0 || (!has_first && !has_last) || (has_first && has_last && last < first))
        return RANGE_ALL;
    if (!has_first) { /* the last so many */
        if (last == 0 || size == 0)
            return RANGE_BEYOND;
        *ret_from = last < size ? size - last : 0;
        *ret_count = size - *ret_from;
        return RANGE_PART;
    }
    if (first >= size)
        return RANGE_BEYOND;
    *ret_from = first;
    *ret_count = (has_last && last < size ? last + 1 : size) - first;
    return RANGE_PART;
}

void answer_content_range(struct request *r, uint64_t from, uint64_t count, uint64_t size)
{
    char text[80];

    snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, from + count - 1,
             size);
    answer_header(r, "content-range", text);
}

void answer_beyond(struct request *r, uint64_t size)
{
    char text[64];

    snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
    answer_header(r, "content-range", text);
    answer_fail(r, 416, "range_not_satisfiable", "Range", "there are %" PRIu64 " bytes", size);
}

void answer_range(struct request *r, const char *mime, struct str text)
{
    uint64_t from, count;
    enum range range = range_parse(request_header(r, "range"), text.n, &from, &count);

    if (range == RANGE_BEYOND)
        return answer_beyond(r, text.n);
    answer_header(r, "accept-ranges", "bytes");
    if (range == RANGE_PART)
        answer_content_range(r, from, count, text.n);
    answer_text(r, range == RANGE_PART ? 206 : 200, mime,
                (struct str){text.p + from, (size_t)count});
}
