/*
 * Guest output on a terminal: in whatever pieces it comes, what goes through is
 * text, newlines, tabs, carriage returns and colours, and nothing else.
 *
 * links: src/cli/term.c
 */
#include "cli/cli_int.h"

#include "support/fuzz.h"

static struct buf shown;

void outbox_put(struct outbox *o, struct term *to, struct str s)
{
    struct err e;

    (void)o;
    (void)to;
    EXPECT(buf_put(&shown, s) == 0);
}

/* Length of what stands at the start of s, or 0 for what must not be there. */
static size_t harmless(struct str s)
{
    size_t n = utf8_char(s);
    unsigned char c = (unsigned char)s.p[0];

    if (n > 1)
        return n == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0 ? 0 : n;
    if (n == 0)
        return 0;
    if (c != '\033')
        return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\t' || c == '\r';
    if (s.n < 3 || s.p[1] != '[')
        return 0;
    for (n = 2; n < s.n && strchr("0123456789;:", s.p[n]) && s.p[n]; n++)
        ;
    return n < s.n && s.p[n] == 'm' ? n + 1 : 0;
}

static void check(struct str s)
{
    while (s.n > 0) {
        size_t n = harmless(s);
        EXPECT(n > 0);
        s.p += n;
        s.n -= n;
    }
}

/* Shows text in pieces of at most `piece` bytes. */
static void show(struct str text, size_t piece)
{
    struct outbox box;
    struct term t;

    shown.n = 0;
    term_init(&t, &box, -1, true);
    while (text.n > 0) {
        size_t n = text.n < piece ? text.n : piece;
        term_guest(&t, (struct str){text.p, n});
        text.p += n;
        text.n -= n;
    }
    term_settle(&t);
    term_line(&t, "retort: %s", "a line of ours");
    check(buf_str(&shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data + 1, size - 1};
    AUTO_FREE char *whole = NULL;
    size_t n;

    if (size < 2)
        return 0;
    shown.max = 64 * MiB;
    show(text, SIZE_MAX);
    n = shown.n;
    whole = mem_strndup(buf_str(&shown));
    show(text, 1u + data[0] % 16);
    EXPECT(shown.n == n && memcmp(shown.p, whole, n) == 0);
    buf_done(&shown);
    return 0;
}
