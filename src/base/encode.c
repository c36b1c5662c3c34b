/* Bytes written as text, and read back: hexadecimal, base64, %-escapes, UTF-8. */
#include "base/base.h"

#include <stdio.h>

/* --- hexadecimal --- */

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *hex_print(char *to, const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i++) {
        *to++ = digits[b[i] >> 4];
        *to++ = digits[b[i] & 15];
    }
    *to = '\0';
    return to;
}

/* --- %-escapes --- */

int percent_at(struct str s, size_t at)
{
    int high = s.n - at > 2 ? hex_digit(s.p[at + 1]) : -1;
    int low = high >= 0 ? hex_digit(s.p[at + 2]) : -1;

    return low < 0 || s.p[at] != '%' ? -1 : high * 16 + low;
}

char *url_encode(char *to, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c && strchr("-._~/", c));
        if (plain)
            *to++ = (char)c;
        else
            to += snprintf(to, 4, "%%%02X", c);
    }
    *to = '\0';
    return to;
}

/* --- base64 --- */

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_group(const char *quad, char ret[3])
{
    int pad = quad[3] != '=' ? 0 : quad[2] != '=' ? 1 : 2;
    uint32_t bits = 0;

    for (int i = 0; i < 4; i++) {
        int digit = i < 4 - pad ? base64_digit(quad[i]) : 0;
        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
    }
    if (bits & ((1u << (8 * pad)) - 1))
        return -1;
    for (int i = 0; i < 3; i++)
        ret[i] = (char)(bits >> (16 - 8 * i));
    return 3 - pad;
}

bool base64_decode(struct str text, char *ret, size_t *ret_n)
{
    *ret_n = 0;
    if (text.n % 4 != 0)
        return false;
    for (size_t i = 0; i < text.n; i += 4) {
        char bytes[3];
        int n = base64_group(text.p + i, bytes);
        if (n < 0 || (n < 3 && i + 4 < text.n)) /* after padding comes nothing */
            return false;
        memcpy(ret + *ret_n, bytes, (size_t)n);
        *ret_n += (size_t)n;
    }
    return true;
}

/* --- UTF-8 --- */

size_t utf8_print(char *to, uint32_t c)
{
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    size_t more;

    if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        c = 0xfffd;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    to[0] = (char)(lead[more] | c >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}
