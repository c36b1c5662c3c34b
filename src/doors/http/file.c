/* Answers with a file: the whole file, a range of it, or 304 when the client has it already. */
#include "doors/http/http_mhd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- conditions --- */

static bool etag_listed(struct str list, const char *etag)
{
    struct str one;

    while (str_next(&list, ',', &one)) {
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
        range = (struct str){0};
    return range_parse(range, size, ret_from, ret_n);
}

/* --- the name to save it under: RFC 6266 --- */

static void add_name(struct request *r, struct str name)
{
    char plain[256], coded[3 * sizeof(plain)], value[sizeof(plain) + sizeof(coded) + 64];

    name = str_base(name, "/");
    if (name.n > sizeof(plain) - 1)
        name.n = sizeof(plain) - 1;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];

        plain[i] = name.p[i];
        if (c < ' ' || c >= 0x7f || strchr("\"\\%", c))
            plain[i] = '_';
    }
    url_encode(coded, name);
    plain[name.n] = '\0';
    snprintf(value, sizeof(value), "attachment; filename=\"%s\"; filename*=UTF-8''%s", plain,
             coded);
    answer_header(r, "content-disposition", value);
}

/* What a sandbox made may be a web page. It must not run as one of ours. */
static const char page_policy[] = "default-src 'none'; sandbox";

static void send_part(struct request *r, int fd, uint64_t from, uint64_t n, uint64_t size,
                      enum range range, const char *mime)
{
    struct MHD_Response *resp = MHD_create_response_from_fd_at_offset64(n, fd, from);

    if (!resp) {
        close(fd);
        answer_fail(r, 500, "internal", NULL, "the file could not be sent");
        return;
    }
    MHD_add_response_header(resp, "content-type", mime);
    MHD_add_response_header(resp, "accept-ranges", "bytes");
    MHD_add_response_header(resp, "cache-control", "private, no-cache");
    MHD_add_response_header(resp, "content-security-policy", page_policy);
    if (range == RANGE_PART)
        answer_content_range(r, from, n, size);
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
        answer_beyond(r, size);
        return;
    }
    if (name.n)
        add_name(r, name);
    send_part(r, fd, from, n, size, range, mime);
}
