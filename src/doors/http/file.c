/* Files as answers: whole or a range, unless the client has it already. */
#include "doors/http/http_mhd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- ranges: RFC 9110, section 14 --- */

enum range { RANGE_WHOLE, RANGE_PART, RANGE_BEYOND };

static bool digits(struct str s, uint64_t *ret)
{
    *ret = 0;
    if (s.n == 0 || s.n > 18)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        *ret = *ret * 10 + (uint64_t)(s.p[i] - '0');
    }
    return true;
}

/* Several ranges and what cannot be read count as none, as a server may. */
static enum range range_of(struct str header, uint64_t size, uint64_t *ret_from, uint64_t *ret_n)
{
    struct str spec = {header.p + 6, header.n - 6}, first, last;
    uint64_t from, to;
    const char *dash;

    if (header.n < 7 || !str_same((struct str){header.p, 6}, "bytes=") ||
        memchr(spec.p, ',', spec.n) || !(dash = memchr(spec.p, '-', spec.n)))
        return RANGE_WHOLE;
    first = (struct str){spec.p, (size_t)(dash - spec.p)};
    last = (struct str){dash + 1, spec.n - first.n - 1};
    if (first.n == 0) { /* the last so many */
        if (!digits(last, &to))
            return RANGE_WHOLE;
        from = to < size ? size - to : 0;
        to = to ? UINT64_MAX : 0;
        if (!to)
            return RANGE_BEYOND;
    } else if (!digits(first, &from) || (last.n && (!digits(last, &to) || to < from))) {
        return RANGE_WHOLE;
    } else if (!last.n) {
        to = UINT64_MAX;
    }
    if (from >= size)
        return RANGE_BEYOND;
    *ret_from = from;
    *ret_n = (to < size ? to + 1 : size) - from;
    return RANGE_PART;
}

/* --- conditions --- */

static bool etag_listed(struct str list, const char *etag)
{
    struct str one;

    while (list_next(&list, ',', &one)) {
        if (one.n > 2 && one.p[0] == 'W' && one.p[1] == '/')
            one.p += 2, one.n -= 2;
        if (str_is(one, "*") || str_is(one, etag))
            return true;
    }
    return false;
}

/* Only a GET, and only of the file the client has a part of. */
static enum range wanted(struct request *r, uint64_t size, const char *etag, uint64_t *ret_from,
                         uint64_t *ret_n)
{
    struct str range = request_header(r, "range"), only = request_header(r, "if-range");

    if (!range.p || r->head_only || (only.p && !(*etag && str_is(only, etag))))
        return RANGE_WHOLE;
    return range_of(range, size, ret_from, ret_n);
}

/* --- the name to save it under: RFC 6266 --- */

static void add_name(struct request *r, struct str name)
{
    static const char hex[] = "0123456789ABCDEF";
    char plain[256], coded[3 * sizeof(plain)], value[sizeof(plain) + sizeof(coded) + 64];
    const char *slash = memrchr(name.p, '/', name.n);
    size_t n = 0;

    if (slash)
        name = (struct str){slash + 1, name.n - (size_t)(slash + 1 - name.p)};
    if (name.n > sizeof(plain) - 1)
        name.n = sizeof(plain) - 1;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool safe =
            (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || strchr("-._~", c);
        plain[i] = name.p[i];
        if (c < ' ' || c >= 0x7f || strchr("\"\\%", c))
            plain[i] = '_';
        if (safe && c) {
            coded[n++] = (char)c;
            continue;
        }
        coded[n++] = '%';
        coded[n++] = hex[c >> 4];
        coded[n++] = hex[c & 15];
    }
    plain[name.n] = coded[n] = '\0';
    snprintf(value, sizeof(value), "attachment; filename=\"%s\"; filename*=UTF-8''%s", plain,
             coded);
    answer_header(r, "content-disposition", value);
}

/* What a sandbox made may be a web page. It must not run as one of ours. */
static const char page_policy[] = "default-src 'none'; sandbox";

static void refuse_range(struct request *r, uint64_t size)
{
    char text[64];

    snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
    answer_header(r, "content-range", text);
    answer_fail(r, 416, "range_not_satisfiable", NULL, "the file has %" PRIu64 " bytes", size);
}

static void send_part(struct request *r, int fd, uint64_t from, uint64_t n, uint64_t size,
                      enum range range, const char *mime)
{
    struct MHD_Response *resp;
    char text[80];

    resp = MHD_create_response_from_fd_at_offset64(n, fd, from);
    if (!resp) {
        close(fd);
        answer_fail(r, 500, "internal", NULL, "the file could not be sent");
        return;
    }
    MHD_add_response_header(resp, "content-type", mime);
    MHD_add_response_header(resp, "accept-ranges", "bytes");
    MHD_add_response_header(resp, "cache-control", "private, no-cache");
    MHD_add_response_header(resp, "content-security-policy", page_policy);
    if (range == RANGE_PART) {
        snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, from + n - 1,
                 size);
        MHD_add_response_header(resp, "content-range", text);
    }
    answer_send(r, range == RANGE_PART ? 206 : 200, resp, n);
    answer_done(r);
}

void answer_file(struct request *r, int fd, uint64_t size, const char *mime, struct str name,
                 const char *hash)
{
    uint64_t from = 0, n = size;
    char etag[HASH_HEX + 2] = "";
    enum range range;

    if (hash) {
        snprintf(etag, sizeof(etag), "\"%s\"", hash);
        answer_header(r, "etag", etag);
    }
    if (hash && etag_listed(request_header(r, "if-none-match"), etag)) {
        close(fd);
        answer_empty(r, 304);
        return;
    }
    range = wanted(r, size, etag, &from, &n);
    if (range == RANGE_BEYOND) {
        close(fd);
        refuse_range(r, size);
        return;
    }
    if (name.n)
        add_name(r, name);
    send_part(r, fd, from, n, size, range, mime);
}
