/*
 * What a replacement has changed, as one hunk of a unified diff: three lines before, what
 * went and what came, three lines after. Bytes in, JSON out.
 *
 * Lines that both texts begin and end with are cut off first, so what is left is about as
 * long as what was replaced. That is compared line by line where it is not too long; else
 * all of it goes and all of it comes, which is a hunk as well. A client has room for one,
 * so lines that stayed between two changes are in it, however many they are.
 */
#include "doors/anthropic/anthropic_int.h"

#include "record/record.h"

#include <stdlib.h>

#define CONTEXT   3
#define CELLS_MAX ((size_t)1000 * 1000) /* lines that went times lines that came */
#define HUNK_MAX  (256 * KiB)           /* bytes: past it there are only the numbers */

/* --- lines: each with its newline, so that the last one may be without --- */

struct lines {
    struct str *at; /* owned */
    size_t n;
};

static struct lines lines_of(struct str text)
{
    struct lines l = {0};
    size_t count = 1;

    for (size_t i = 0; i < text.n; i++)
        count += text.p[i] == '\n';
    l.at = mem_zalloc(count * sizeof(*l.at));
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end + 1 - text.p) : text.n;
        l.at[l.n++] = (struct str){text.p, n};
        text = (struct str){text.p + n, text.n - n};
    }
    return l;
}

/* --- what stays of two short runs of lines --- */

/* longest[i * (b.n + 1) + j]: how many lines a[i...] and b[j...] can have in common. */
static uint16_t *common_lines(struct lines a, struct lines b)
{
    size_t wide = b.n + 1;
    uint16_t *longest;

    if (a.n > UINT16_MAX || b.n > UINT16_MAX || (a.n + 1) * wide > CELLS_MAX)
        return NULL;
    longest = mem_zalloc((a.n + 1) * wide * sizeof(*longest));
    for (size_t i = a.n; i-- > 0;)
        for (size_t j = b.n; j-- > 0;) {
            uint16_t down = longest[(i + 1) * wide + j], right = longest[i * wide + j + 1];
            longest[i * wide + j] = str_eq(a.at[i], b.at[j])
                                        ? (uint16_t)(longest[(i + 1) * wide + j + 1] + 1)
                                    : down > right ? down
                                                   : right;
        }
    return longest;
}

/* --- the hunk --- */

struct hunk {
    json_t *lines; /* owned; NULL: too long to be told */
    size_t bytes, old_lines, new_lines;
};

static void put(struct hunk *h, char mark, struct str line)
{
    bool whole = line.n > 0 && line.p[line.n - 1] == '\n';
    struct buf b;
    struct err e;

    h->old_lines += mark != '+';
    h->new_lines += mark != '-';
    h->bytes += line.n + 1;
    if (!h->lines || h->bytes > HUNK_MAX) {
        json_decref(take_ptr(&h->lines));
        return;
    }
    buf_init(&b, HUNK_MAX + 1);
    (void)!buf_put(&b, (struct str){&mark, 1}, &e);
    (void)!buf_put(&b, (struct str){line.p, line.n - whole}, &e);
    json_array_append_new(h->lines, record_text(buf_str(&b)));
    buf_done(&b);
    if (!whole)
        json_array_append_new(h->lines, json_string("\\ No newline at end of file"));
}

static void put_changes(struct hunk *h, struct lines a, struct lines b)
{
    AUTO_FREE uint16_t *longest = common_lines(a, b);
    size_t i = 0, j = 0, wide = b.n + 1;

    while (i < a.n || j < b.n) {
        if (longest && i < a.n && j < b.n && str_eq(a.at[i], b.at[j])) {
            put(h, ' ', a.at[i]);
            i++, j++;
        } else if (i < a.n && (j == b.n || !longest ||
                               longest[(i + 1) * wide + j] >= longest[i * wide + j + 1])) {
            put(h, '-', a.at[i++]);
        } else {
            put(h, '+', b.at[j++]);
        }
    }
}

/* Where a run of no lines is: after the line before it. */
static json_int_t start_of(size_t from, size_t count)
{
    return (json_int_t)(count ? from + 1 : from);
}

json_t *hunk_value(struct str before, struct str after)
{
    struct lines a = lines_of(before), b = lines_of(after);
    struct hunk h = {.lines = json_array()};
    size_t same = 0, end = 0, from;
    json_t *v;

    while (same < a.n && same < b.n && str_eq(a.at[same], b.at[same]))
        same++;
    while (end < a.n - same && end < b.n - same && str_eq(a.at[a.n - 1 - end], b.at[b.n - 1 - end]))
        end++;
    from = same > CONTEXT ? same - CONTEXT : 0;
    for (size_t i = from; i < same; i++)
        put(&h, ' ', a.at[i]);
    put_changes(&h, (struct lines){a.at + same, a.n - same - end},
                (struct lines){b.at + same, b.n - same - end});
    for (size_t i = a.n - end; i < a.n && i < a.n - end + CONTEXT; i++)
        put(&h, ' ', a.at[i]);
    v = json_pack("{s:I, s:I, s:I, s:I, s:o}", "old_start", start_of(from, h.old_lines),
                  "old_lines", (json_int_t)h.old_lines, "new_start", start_of(from, h.new_lines),
                  "new_lines", (json_int_t)h.new_lines, "lines", h.lines ? h.lines : json_null());
    free(a.at);
    free(b.at);
    return v;
}
