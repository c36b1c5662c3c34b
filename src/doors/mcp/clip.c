/* Cuts text to a length that a model can read: head and tail, never within a character. */
#include "doors/mcp/execution.h"

#include <stdio.h>

size_t text_head(struct str s, size_t most)
{
    return most >= s.n ? s.n : most - utf8_torn((struct str){s.p, most});
}

size_t text_tail(struct str s, size_t most)
{
    size_t from = most >= s.n ? 0 : s.n - most;

    while (from < s.n && ((unsigned char)s.p[from] & 0xc0) == 0x80)
        from++;
    return from;
}

struct str text_whole(struct str s, bool is_begin, bool is_end)
{
    size_t torn = 0;

    while (!is_begin && torn < 3 && torn < s.n && ((unsigned char)s.p[torn] & 0xc0) == 0x80)
        torn++;
    s = str_from(s, torn);
    s.n -= is_end ? 0 : utf8_torn(s);
    return s;
}

size_t text_lines(struct str s)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t n = 0;

    for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    return n;
}

/* The smallest wants are met whole, one after the other; what is left is shared by the others. */
void text_share(const size_t *wants, size_t *ret, size_t count, size_t sum)
{
    size_t left = count;

    for (size_t i = 0; i < count; i++)
        ret[i] = SIZE_MAX;
    for (bool met = true; met && left > 0;) {
        size_t share = sum / left;
        met = false;
        for (size_t i = 0; i < count; i++)
            if (ret[i] == SIZE_MAX && wants[i] <= share) {
                ret[i] = wants[i];
                sum -= wants[i];
                left--;
                met = true;
            }
    }
    for (size_t i = 0; i < count; i++)
        if (ret[i] == SIZE_MAX && left > 0)
            ret[i] = sum / left;
}

/* Whole lines read better, where one ends not far from there. */
#define LINE_NEAR 200

size_t text_head_lines(struct str s, size_t most)
{
    size_t head = text_head(s, most);
    const char *from = s.p + (head > LINE_NEAR ? head - LINE_NEAR : 0);
    const char *end = memrchr(from, '\n', (size_t)(s.p + head - from));

    return end && head < s.n ? (size_t)(end - s.p) + 1 : head;
}

/* The marker is part of what it may take. */
#define MARKER_MAX 300

static size_t line_start(struct str s, size_t tail)
{
    size_t left = s.n - tail;
    const char *end = memchr(s.p + tail, '\n', left < LINE_NEAR ? left : LINE_NEAR);

    return end && (size_t)(end - s.p) + 1 < s.n ? (size_t)(end - s.p) + 1 : tail;
}

bool text_clip(struct buf *b, struct str s, size_t most, const char *execution)
{
    size_t keep = most > MARKER_MAX ? most - MARKER_MAX : 0;
    size_t head, tail;
    struct str between;

    if (s.n <= most) {
        buf_put(b, s);
        return false;
    }
    head = text_head_lines(s, keep / 2);
    tail = line_start(s, text_tail(s, keep - keep / 2));
    between = (struct str){s.p + head, tail - head};
    buf_put(b, (struct str){s.p, head});
    if (head > 0 && s.p[head - 1] != '\n')
        buf_put(b, STR("\n"));
    buf_printf(b, "[... %zu bytes in %zu lines left out here", between.n,
               text_lines(between) + (tail > 0 && s.p[tail - 1] != '\n'));
    if (execution)
        buf_printf(b, ": get_execution with execution_id=%s and offset=%zu shows them", execution,
                   head);
    buf_put(b, STR(" ...]\n"));
    buf_put(b, (struct str){s.p + tail, s.n - tail});
    return true;
}
