/* Makes strangers' bytes fit to be shown on a line or put into JSON. */
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>

size_t utf8_char(struct str s)
{
    for (size_t n = 1; n <= 4 && n <= s.n; n++)
        if (str_utf8_len((struct str){s.p, n}) == n)
            return n;
    return 0;
}

size_t utf8_torn(struct str s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];
        size_t whole = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

        if ((c & 0xc0) == 0x80)
            continue;
        return c <= 0xf4 && whole > back ? back : 0;
    }
    return 0;
}

int utf8_put(struct buf *b, struct str s)
{
    while (s.n > 0) {
        size_t good = str_utf8_len(s);

        buf_put(b, (struct str){s.p, good});
        s.p += good;
        s.n -= good;
        if (s.n == 0)
            break;
        buf_put(b, STR("\xef\xbf\xbd"));
        s.p++;
        s.n--;
    }
    return b->full ? -1 : 0;
}

/* --- what a terminal shows in the end --- */

size_t utf8_count(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Without its first n characters. */
static struct str skip_chars(struct str s, size_t n)
{
    size_t i = 0;

    while (i < s.n && (n > 0 || ((unsigned char)s.p[i] & 0xc0) == 0x80)) {
        n -= n > 0 && ((unsigned char)s.p[i] & 0xc0) != 0x80;
        i++;
    }
    return str_from(s, i);
}

/* A line without its end. Each piece between two carriage returns covers as many characters of
 * those before it as it has itself. From the last to the first, so that every byte is looked at
 * once. */
static void put_settled_line(struct buf *b, struct str line)
{
    size_t shown = 0;

    while (line.n > 0) {
        const char *cr = memrchr(line.p, '\r', line.n);
        struct str piece = cr ? str_from(line, (size_t)(cr - line.p) + 1) : line;
        size_t n = utf8_count(piece);
        if (n > shown) {
            buf_put(b, skip_chars(piece, shown));
            shown = n;
        }
        line.n = cr ? (size_t)(cr - line.p) : 0;
    }
}

void text_settle(struct buf *b, struct str s)
{
    while (s.n > 0) {
        const char *end = memchr(s.p, '\n', s.n);
        struct str line = {s.p, end ? (size_t)(end - s.p) : s.n};
        if (memchr(line.p, '\r', line.n))
            put_settled_line(b, line);
        else
            buf_put(b, line);
        if (end)
            buf_put(b, STR("\n"));
        s = str_from(s, line.n + (end != NULL));
    }
}

/* Controls of both kinds, and what reorders or breaks the line it stands in. */
static bool is_plain(struct str ch)
{
    const unsigned char *p = (const unsigned char *)ch.p;

    if (ch.n == 1)
        return p[0] >= ' ' && p[0] != 0x7f && p[0] != '\\';
    if (ch.n == 2)
        return p[0] != 0xc2 || p[1] >= 0xa0;
    if (ch.n == 3 && p[0] == 0xe2) {
        unsigned low = (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu); /* of U+2000 */
        return !(low >= 0x0e && low <= 0x0f) && !(low >= 0x28 && low <= 0x2e) &&
               !(low >= 0x66 && low <= 0x69);
    }
    return ch.n > 0;
}

/* One character of a name as it is shown; returns how many bytes of the name it took. */
static size_t show_char(struct str s, char ret[24])
{
    size_t n = utf8_char(s);
    char *at = ret;

    if (is_plain((struct str){s.p, n})) {
        memcpy(ret, s.p, n);
        ret[n] = '\0';
        return n;
    }
    if (s.p[0] == '\\') {
        memcpy(ret, "\\\\", 3);
        return 1;
    }
    n = n ? n : 1;
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "\\x%02x", (unsigned char)s.p[i]);
    return n;
}

const char *name_show(char ret[NAME_SHOWN], struct str name)
{
    static const char dots[] = "...";
    size_t n = 0;

    while (name.n > 0) {
        char one[24];
        size_t took = show_char(name, one);

        if (n + strlen(one) + sizeof(dots) > NAME_SHOWN) {
            memcpy(ret + n, dots, sizeof(dots));
            return ret;
        }
        memcpy(ret + n, one, strlen(one));
        n += strlen(one);
        name.p += took;
        name.n -= took;
    }
    ret[n] = '\0';
    return ret;
}

const char *size_show(char ret[SIZE_SHOWN], uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    size_t i = 0;

    if (bytes < 1000) {
        snprintf(ret, SIZE_SHOWN, "%" PRIu64 " B", bytes);
        return ret;
    }
    for (v /= 1000; v >= 999.95 && i + 1 < COUNT(units); i++)
        v /= 1000;
    snprintf(ret, SIZE_SHOWN, "%.1f %s", v, units[i]);
    return ret;
}

/* Brackets, commas and colons are counted outside of strings: none of them is without a value, so a
 * text has at most one more than that. What a parser would refuse anyway may be refused here
 * first. */
enum json_size json_measure(struct str s, unsigned depth_max, size_t values_max)
{
    bool quoted = false;
    unsigned depth = 0;
    size_t values = 1;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && (c == '{' || c == '[')) {
            values++;
            if (++depth > depth_max)
                return JSON_TOO_DEEP;
        } else if (!quoted && (c == '}' || c == ']')) {
            depth -= depth > 0;
        } else if (!quoted && (c == ',' || c == ':')) {
            values++;
        }
        if (values > values_max)
            return JSON_TOO_MANY;
    }
    return JSON_FITS;
}
