/*
 * A data URL from a stranger: what is accepted fits its limit and has a MIME type,
 * and what is base64 has one spelling only.
 *
 * links: src/fetch/data_url.c src/fetch/name.c
 */
#include "fetch/fetch.h"

#include "support/fuzz.h"

#define LIMIT 256

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Base64 of b as it should have been written. */
static size_t encode(const struct buf *b, char *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < b->n ? (unsigned char)b->p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            ret[n++] = i + k <= b->n ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str url = {(const char *)data, size};
    const char *marker = memmem(data, size, ";base64,", 8);
    char mime[32], again[2 * LIMIT];
    struct buf b;
    struct err e = {0};

    buf_init(&b, LIMIT);
    if (data_url_parse(url, &b, mime, sizeof(mime), &e) < 0) {
        EXPECT(e.kind == ERR_CALLER || e.kind == ERR_LIMIT);
        EXPECT(strlen(e.text) > 0);
    } else {
        EXPECT(b.n <= LIMIT && strchr(mime, '/') && strlen(mime) < sizeof(mime));
        touch(buf_str(&b));
        /* The first comma of the URL is the marker's, and nothing in it is escaped. */
        if (marker && memchr(data, ',', size) == marker + 7 && !memchr(data, '%', size) &&
            !memchr(data, '#', size)) {
            size_t n = encode(&b, again);
            EXPECT(n == size - (size_t)(marker + 8 - url.p));
            EXPECT(n == 0 || memcmp(again, marker + 8, n) == 0);
        }
    }
    buf_done(&b);
    return 0;
}
