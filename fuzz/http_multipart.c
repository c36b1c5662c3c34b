/*
 * Forms as strangers send them. However a form is cut into pieces, the same parts with
 * the same bytes come out; and no name holds what no name may hold.
 *
 * The first byte says how long the boundary is, the second how the rest is cut.
 *
 * links: src/doors/http/multipart.c src/doors/http/route.c
 */
#include "doors/http/http_int.h"

#include "support/fuzz.h"

static void put(struct buf *b, struct str s)
{
    struct err e;

    touch(s);
    EXPECT(buf_put(b, s) == 0);
}

static int on_part(void *arg, const struct part *p, struct err *e)
{
    (void)e;
    EXPECT(p->name.n > 0 && str_utf8_len(p->name) == p->name.n);
    EXPECT(!p->file.p || !memchr(p->file.p, '\0', p->file.n));
    put(arg, STR("\1"));
    put(arg, p->name);
    put(arg, STR("\2"));
    put(arg, p->file);
    put(arg, STR("\3"));
    put(arg, p->mime);
    put(arg, STR("\4"));
    return 0;
}

static int on_data(void *arg, struct str bytes, struct err *e)
{
    (void)e;
    EXPECT(bytes.n > 0);
    put(arg, bytes);
    return 0;
}

static const struct multipart_fns fns = {on_part, on_data};

/* piece 0: all at once. Returns whether it is a whole form. */
static bool read_form(struct str type, struct str body, size_t piece, struct buf *seen)
{
    struct err e;
    struct multipart *m = multipart_new(type, &fns, seen, &e);
    int rc = m ? 0 : -1;

    while (rc == 0 && body.n > 0) {
        size_t n = piece && piece < body.n ? piece : body.n;
        rc = multipart_feed(m, (struct str){body.p, n}, &e);
        body.p += n;
        body.n -= n;
    }
    if (rc == 0)
        rc = multipart_end(m, &e);
    multipart_free(m);
    return rc == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    size_t type_n = feed_byte(&f), piece = feed_byte(&f) + (size_t)1;
    struct str type = feed_text(&f, type_n), body = {(const char *)f.p, f.n};
    struct buf whole, pieces;

    buf_init(&whole, 4 * size + 64 * KiB);
    buf_init(&pieces, 4 * size + 64 * KiB);
    bool ok = read_form(type, body, 0, &whole);
    EXPECT(read_form(type, body, piece, &pieces) == ok);
    /* A form that is refused may have been read further in one piece than in several. */
    if (ok)
        EXPECT(whole.n == pieces.n && (whole.n == 0 || !memcmp(whole.p, pieces.p, whole.n)));
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}
