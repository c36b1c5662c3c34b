/*
 * What a guest sends to the proxy. Whatever is accepted is passed on as one
 * request that reads the same to the strictest of hosts: parsing what comes out,
 * with its host put back, must give the same again. The body ends at the same byte
 * however it is cut into pieces.
 *
 * links: src/egress/request.c src/egress/body.c src/fetch/hosts.c
 */
#include "egress/egress_int.h"

#include "support/fuzz.h"

#include <stdio.h>

/* The head for the host has no control character but the CRLF of its lines. */
static void check_lines(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        EXPECT(c >= ' ' || c == '\t' || (c == '\r' && i + 1 < s.n && s.p[i + 1] == '\n') ||
               (c == '\n' && i > 0 && s.p[i - 1] == '\r'));
    }
    EXPECT(request_head_len(s) == s.n);
}

static void check_again(const struct egress_request *r, const struct buf *out)
{
    const char *path = memchr(out->p, ' ', out->n);
    struct egress_request second;
    struct buf full, twice;
    struct err e;

    buf_init(&full, 128 * KiB);
    buf_init(&twice, 128 * KiB);
    EXPECT(buf_printf(&full, "%s http://%s:%u", r->method, r->host_text, r->port) == 0);
    EXPECT(buf_put(&full, (struct str){path + 1, out->n - (size_t)(path + 1 - out->p)}) == 0);
    if (request_parse(buf_str(&full), &second, &twice, &e) == 0) {
        EXPECT(second.body == r->body && second.length == r->length && second.port == r->port);
        EXPECT(strcmp(second.host_text, r->host_text) == 0);
        EXPECT(str_eq(buf_str(&twice), buf_str(out)));
    } else {
        EXPECT(strstr(e.text, "headers")); /* Host and Connection were two too many */
    }
    buf_done(&full);
    buf_done(&twice);
}

static void check_body(const struct egress_request *r, struct str rest)
{
    struct body whole, pieces;
    size_t n, sum = 0;

    body_init(&whole, r);
    body_init(&pieces, r);
    n = body_take(&whole, rest);
    EXPECT(n <= rest.n && (n == rest.n || whole.done || whole.bad));
    for (size_t i = 0; i < rest.n; i++)
        sum += body_take(&pieces, (struct str){rest.p + i, 1});
    EXPECT(sum == n && pieces.done == whole.done && pieces.bad == whole.bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = {(const char *)data, size};
    size_t head = request_head_len(s);
    struct egress_request r;
    struct buf out;
    struct err e;

    if (head == 0)
        return 0;
    buf_init(&out, 128 * KiB);
    if (request_parse((struct str){s.p, head}, &r, &out, &e) == 0) {
        EXPECT(r.port > 0 && strlen(r.host_text) > 0 && strlen(r.method) > 0);
        EXPECT(r.connect == (out.n == 0));
        EXPECT(!r.connect || r.body == BODY_NONE);
        if (!r.connect) {
            check_lines(buf_str(&out));
            check_again(&r, &out);
        }
        check_body(&r, (struct str){s.p + head, s.n - head});
    } else {
        EXPECT(e.kind == ERR_CALLER && strlen(e.text) > 0);
    }
    buf_done(&out);
    return 0;
}
