/*
 * Reads the format and the size of an image from its bytes, and checks that the file is complete.
 *
 * Some clients end a whole conversation over one broken or large image, and the bytes come from the
 * guest. So an image is sent only after it was read from its first block to its last. Pixels are
 * never decoded.
 */
#include "doors/mcp/execution.h"

#include <zlib.h>

/* What is left to be read. Past the end it is bad, and gives zeros: no caller reads more than 16
 * bytes of what it takes without asking first. */
struct picture_cursor {
    const unsigned char *p;
    size_t n;
    bool bad;
};

static const unsigned char *take(struct picture_cursor *c, size_t n)
{
    static const unsigned char zeros[16];
    const unsigned char *p = c->p;

    if (c->bad || n > c->n) {
        c->bad = true;
        return zeros;
    }
    c->p += n;
    c->n -= n;
    return p;
}

static bool starts(struct str s, size_t at, const char *with, size_t n)
{
    return s.n >= at + n && memcmp(s.p + at, with, n) == 0;
}
#define STARTS(s, at, lit) starts(s, at, lit, sizeof(lit) - 1)

static uint32_t big16(const unsigned char *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t big32(const unsigned char *p)
{
    return big16(p) << 16 | big16(p + 2);
}

static uint32_t little16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t little24(const unsigned char *p)
{
    return little16(p) | (uint32_t)p[2] << 16;
}

static uint32_t little32(const unsigned char *p)
{
    return little24(p) | (uint32_t)p[3] << 24;
}

/* --- PNG: chunks of length, type, bytes, checksum --- */

static bool look_png(struct str s, struct picture *ret)
{
    struct picture_cursor c = {(const unsigned char *)s.p + 8, s.n - 8, false};
    bool has_pixels = false;

    for (bool first = true; !c.bad; first = false) {
        const unsigned char *head = take(&c, 8);
        uint32_t n = big32(head);
        const unsigned char *body = n <= c.n ? take(&c, n) : NULL;
        uint32_t sum = big32(take(&c, 4));
        if (!body || c.bad || crc32(0, head + 4, n + 4) != sum)
            return false;
        if (first && (n != 13 || memcmp(head + 4, "IHDR", 4) != 0))
            return false;
        if (first) {
            ret->width = big32(body);
            ret->height = big32(body + 4);
        }
        has_pixels |= memcmp(head + 4, "IDAT", 4) == 0;
        if (memcmp(head + 4, "IEND", 4) == 0)
            return has_pixels;
    }
    return false;
}

/* --- JPEG: segments up to the scan, then its bytes up to the end marker --- */

static bool has_size(unsigned char marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static bool look_jpeg(struct str s, struct picture *ret)
{
    struct picture_cursor c = {(const unsigned char *)s.p + 2, s.n - 2, false};

    while (!c.bad) {
        const unsigned char *head = take(&c, 2);
        unsigned char marker = head[1];
        uint32_t n;
        if (head[0] != 0xff)
            return false;
        if (marker == 0xff) { /* filling */
            c.p--;
            c.n++;
            continue;
        }
        if (marker == 0xda)
            return ret->width > 0 && memmem(c.p, c.n, "\xff\xd9", 2);
        n = big16(take(&c, 2));
        if (n < 2 || n - 2 > c.n || (has_size(marker) && n < 8))
            return false;
        if (has_size(marker)) {
            ret->height = big16(c.p + 1);
            ret->width = big16(c.p + 3);
        }
        take(&c, n - 2);
    }
    return false;
}

/* --- GIF: blocks of sub-blocks --- */

static void skip_subblocks(struct picture_cursor *c)
{
    for (size_t n = 1; n > 0 && !c->bad;) {
        n = take(c, 1)[0];
        take(c, n);
    }
}

static void skip_colours(struct picture_cursor *c, unsigned char flags)
{
    if (flags & 0x80)
        take(c, (size_t)3 << ((flags & 7) + 1));
}

static bool look_gif(struct str s, struct picture *ret)
{
    struct picture_cursor c = {(const unsigned char *)s.p + 6, s.n - 6, false};
    const unsigned char *screen = take(&c, 7);
    bool has_pixels = false;

    ret->width = little16(screen);
    ret->height = little16(screen + 2);
    skip_colours(&c, screen[4]);
    while (!c.bad) {
        unsigned char kind = take(&c, 1)[0];
        if (kind == 0x3b)
            return has_pixels && !c.bad;
        if (kind == 0x2c) {
            skip_colours(&c, take(&c, 9)[8]);
            has_pixels = true;
        } else if (kind != 0x21) {
            return false;
        }
        take(&c, 1); /* the smallest code, or the extension's label */
        skip_subblocks(&c);
    }
    return false;
}

/* --- WebP: RIFF, and one of three first chunks --- */

static bool look_webp(struct str s, struct picture *ret)
{
    const unsigned char *p = (const unsigned char *)s.p;
    uint32_t bits;

    if (s.n < 30 || little32(p + 4) > s.n - 8)
        return false;
    if (STARTS(s, 12, "VP8X")) {
        ret->width = little24(p + 24) + 1;
        ret->height = little24(p + 27) + 1;
        return true;
    }
    if (little32(p + 16) > s.n - 20)
        return false;
    if (STARTS(s, 12, "VP8L") && p[20] == 0x2f) {
        bits = little32(p + 21);
        ret->width = (bits & 0x3fff) + 1;
        ret->height = (bits >> 14 & 0x3fff) + 1;
        return true;
    }
    if (!STARTS(s, 12, "VP8 ") || !STARTS(s, 23, "\x9d\x01\x2a"))
        return false;
    ret->width = little16(p + 26) & 0x3fff;
    ret->height = little16(p + 28) & 0x3fff;
    return true;
}

/* --- any of them --- */

bool picture_look(struct str s, struct picture *ret)
{
    *ret = (struct picture){0};
    if (STARTS(s, 0, "\x89PNG\r\n\x1a\n")) {
        ret->mime = "image/png";
        ret->whole = look_png(s, ret);
    } else if (STARTS(s, 0, "\xff\xd8\xff")) {
        ret->mime = "image/jpeg";
        ret->whole = look_jpeg(s, ret);
    } else if (STARTS(s, 0, "GIF87a") || STARTS(s, 0, "GIF89a")) {
        ret->mime = "image/gif";
        ret->whole = look_gif(s, ret);
    } else if (STARTS(s, 0, "RIFF") && STARTS(s, 8, "WEBP")) {
        ret->mime = "image/webp";
        ret->whole = look_webp(s, ret);
    }
    ret->whole &= ret->width > 0 && ret->height > 0;
    return ret->mime;
}

const char *picture_why_not(const struct picture *p, size_t bytes)
{
    if (!p->whole)
        return "it is empty or damaged";
    if (p->width > PICTURE_SIDE || p->height > PICTURE_SIDE)
        return "a side of it has more than 1568 pixels";
    if ((bytes + 2) / 3 * 4 > PICTURE_BYTES)
        return "it has more than 500 kB";
    return NULL;
}
