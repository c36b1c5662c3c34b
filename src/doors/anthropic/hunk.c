/*
 * What a replacement changed, as one hunk of a unified diff: three lines before, removed and added
 * lines, three lines after.
 *
 * Lines that both texts begin and end with are cut off first, so the rest is about as long as what
 * was replaced. The rest is compared line by line; when it is too long for that, all old lines are
 * removed and all new ones added. A result has room for one hunk, so unchanged lines between two
 * changes are part of it. The whole text is never split into lines: 16 MiB of newlines would take
 * 256 MiB.
 */
#include "doors/anthropic/anthropic_int.h"

#include "record/record.h"

#include <stdlib.h>

#define CONTEXT   3
#define LINES_MAX 20000 /* removed, or added: past that only their numbers are given */
#define CELLS_MAX ((size_t)1000 * 1000) /* removed lines times added lines */
#define HUNK_MAX  (256 * KiB)           /* past that only numbers of lines are given, too */

/* --- lines, each with its newline; the last one may have none --- */

struct lines {
    struct str *at; /* owned */
    size_t n;
};

static struct lines lines_of(struct str text)
{
    struct lines l = {.at = mem_zalloc((text_count_lines(text) + 1) * sizeof(*l.at))};

    while (text.n > 0)
        l.at[l.n++] = text_cut_line(&text);
    return l;
}

/* The last lines of a text that ends with a newline. */
static struct str last_lines(struct str text, size_t count)
{
    size_t at = text.n;

    while (at > 0 && (text.p[at - 1] != '\n' || count-- > 0))
        at--;
    return (struct str){text.p + at, text.n - at};
}

/* --- whole lines that both texts begin and end with --- */

static bool is_line_start(struct str text, size_t at)
{
    return at == 0 || text.p[at - 1] == '\n';
}

static size_t same_start(struct str a, struct str b)
{
    size_t n = 0;

    while (n < a.n && n < b.n && a.p[n] == b.p[n])
        n++;
    while (!is_line_start(a, n))
        n--;
    return n;
}

static size_t same_end(struct str a, struct str b)
{
    size_t n = 0;

    while (n < a.n && n < b.n && a.p[a.n - 1 - n] == b.p[b.n - 1 - n])
        n++;
    while (n > 0 && !(is_line_start(a, a.n - n) && is_line_start(b, b.n - n)))
        n--;
    return n;
}

/* --- unchanged lines of two short texts --- */

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
    json_t *lines; /* owned; NULL: too long */
    size_t bytes, old_lines, new_lines;
};

static void put(struct hunk *h, char mark, struct str line)
{
    bool whole = line.n > 0 && line.p[line.n - 1] == '\n';
    AUTO(buf_done) struct buf b = BUF(HUNK_MAX + 1);

    h->old_lines += mark != '+';
    h->new_lines += mark != '-';
    h->bytes += line.n + 1;
    if (!h->lines || h->bytes > HUNK_MAX) {
        json_decref(take_ptr(&h->lines));
        return;
    }
    buf_put(&b, (struct str){&mark, 1});
    buf_put(&b, (struct str){line.p, line.n - whole});
    json_array_append_new(h->lines, record_text(buf_str(&b)));
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

static void put_all(struct hunk *h, struct str lines, size_t most)
{
    while (lines.n > 0 && most-- > 0)
        put(h, ' ', text_cut_line(&lines));
}

/* For texts with too many lines to compare. */
static void put_numbers(struct hunk *h, size_t went, size_t came)
{
    json_decref(take_ptr(&h->lines));
    h->old_lines += went;
    h->new_lines += came;
}

static void put_middle(struct hunk *h, struct str a, struct str b)
{
    size_t went = text_count_lines(a), came = text_count_lines(b);
    struct lines old, new;

    if (went > LINES_MAX || came > LINES_MAX)
        return put_numbers(h, went, came);
    old = lines_of(a);
    new = lines_of(b);
    put_changes(h, old, new);
    free(old.at);
    free(new.at);
}

/* An empty range is given by the line before it. */
static json_int_t start_of(size_t from, size_t count)
{
    return (json_int_t)(count ? from + 1 : from);
}

json_t *hunk_value(struct str before, struct str after)
{
    size_t start = same_start(before, after);
    struct str a = {before.p + start, before.n - start}, b = {after.p + start, after.n - start};
    size_t end = same_end(a, b);
    struct str context = last_lines((struct str){before.p, start}, CONTEXT);
    size_t from = text_count_lines((struct str){before.p, start - context.n});
    struct hunk h = {.lines = json_array()};

    put_all(&h, context, CONTEXT);
    put_middle(&h, (struct str){a.p, a.n - end}, (struct str){b.p, b.n - end});
    put_all(&h, (struct str){a.p + a.n - end, end}, CONTEXT);
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "old_start", start_of(from, h.old_lines),
                     "old_lines", (json_int_t)h.old_lines, "new_start", start_of(from, h.new_lines),
                     "new_lines", (json_int_t)h.new_lines, "lines",
                     h.lines ? h.lines : json_null());
}
