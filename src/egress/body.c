/*
 * Finds the end of a request. Bytes after it are not passed on: a second request on the
 * same connection would reach the host without a check. Chunks are passed on as they
 * are, so they are read strictly: no extensions, no trailers.
 */
#include "egress/egress_int.h"

enum { CHUNK_SIZE, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_CR, CHUNK_LF, CHUNK_LAST_CR, CHUNK_LAST_LF };

#define SIZE_DIGITS 12

void body_init(struct body *b, const struct egress_request *r)
{
    *b = (struct body){.kind = r->body, .left = r->length};
    b->done = r->body == BODY_NONE || (r->body == BODY_LENGTH && r->length == 0);
}

static bool add_digit(struct body *b, char c)
{
    char low = (char)(c | 0x20);
    unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)(low - 'a' + 10);

    if (!((c >= '0' && c <= '9') || (low >= 'a' && low <= 'f')) || b->digits == SIZE_DIGITS)
        return false;
    b->left = b->left * 16 + digit;
    b->digits++;
    return true;
}

static bool expect(struct body *b, char c, char want, unsigned next)
{
    b->state = next;
    return c == want;
}

/* One byte that is not data; false when it may not stand here. */
static bool chunk_byte(struct body *b, char c)
{
    switch (b->state) {
    case CHUNK_SIZE:
        if (c != '\r')
            return add_digit(b, c);
        return expect(b, c, '\r', CHUNK_SIZE_LF) && b->digits > 0;
    case CHUNK_SIZE_LF:
        b->digits = 0;
        return expect(b, c, '\n', b->left ? CHUNK_DATA : CHUNK_LAST_CR);
    case CHUNK_CR:
        return expect(b, c, '\r', CHUNK_LF);
    case CHUNK_LF:
        return expect(b, c, '\n', CHUNK_SIZE);
    case CHUNK_LAST_CR:
        return expect(b, c, '\r', CHUNK_LAST_LF);
    case CHUNK_LAST_LF:
        b->done = true;
        return c == '\n';
    }
    return false;
}

static size_t take_data(struct body *b, size_t n)
{
    n = n < b->left ? n : (size_t)b->left;
    b->left -= n;
    return n;
}

static size_t take_chunks(struct body *b, struct str s)
{
    size_t at = 0;

    while (at < s.n && !b->done && !b->bad) {
        if (b->state == CHUNK_DATA) {
            at += take_data(b, s.n - at);
            if (b->left == 0)
                b->state = CHUNK_CR;
            continue;
        }
        b->bad = !chunk_byte(b, s.p[at]);
        at += !b->bad;
    }
    return at;
}

size_t body_take(struct body *b, struct str s)
{
    size_t n;

    if (b->done || b->bad)
        return 0;
    if (b->kind == BODY_CHUNKED)
        return take_chunks(b, s);
    n = take_data(b, s.n);
    b->done = b->left == 0;
    return n;
}
