/*
 * Reads a proxy request strictly. The host parses the same bytes after us; a request
 * that it could read in another way than we do is refused. Only CRLF ends a line, no
 * line is folded, no name has a blank before its colon, and the length of the body is
 * said once or not at all.
 */
#include "egress/egress_int.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#define HEADERS_MAX   100
#define NOMINATED_MAX 16 /* headers that Connection may name */

struct header {
    struct str name, value;
};

struct headers {
    struct header row[HEADERS_MAX];
    size_t count;
    struct str nominated[NOMINATED_MAX];
    size_t nominated_count;
};

/* --- small pieces --- */

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.n > 0;
}

static bool is_word(struct str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* Takes what stands before the next separator, and the separator; false when there is none. */
static bool take_until(struct str *s, const char *separator, struct str *ret)
{
    size_t n = strlen(separator);
    const char *at = s->n ? memmem(s->p, s->n, separator, n) : NULL;

    if (!at)
        return false;
    *ret = (struct str){s->p, (size_t)(at - s->p)};
    *s = (struct str){at + n, s->n - ret->n - n};
    return true;
}

size_t request_head_len(struct str s)
{
    const char *end = s.n ? memmem(s.p, s.n, "\r\n\r\n", 4) : NULL;

    return end ? (size_t)(end - s.p) + 4 : 0;
}

/* --- the request line --- */

static int set_host(struct str authority, uint16_t default_port, struct egress_request *r,
                    struct err *e)
{
    struct str host;
    char text[INET6_ADDRSTRLEN];

    if (!host_port_split(authority, &host, &r->port) || !host_parse(host, &r->host))
        return err_set(e, ERR_CALLER, "the host that is asked for is not a name or an address");
    if (r->host.is_address && host.p[0] != '[' && memchr(host.p, ':', host.n))
        return err_set(e, ERR_CALLER, "an IPv6 address needs brackets");
    r->port = r->port ? r->port : default_port;
    if (r->port == 0)
        return err_set(e, ERR_CALLER, "CONNECT needs a port");
    if (!r->host.is_address)
        snprintf(r->host_text, sizeof(r->host_text), "%s", r->host.name);
    else if (IN6_IS_ADDR_V4MAPPED(&r->host.address))
        inet_ntop(AF_INET, r->host.address.s6_addr + 12, r->host_text, sizeof(r->host_text));
    else if (inet_ntop(AF_INET6, &r->host.address, text, sizeof(text)))
        snprintf(r->host_text, sizeof(r->host_text), "[%s]", text);
    return 0;
}

/* http://host[:port][/path][?query] */
static int set_url(struct str url, struct egress_request *r, struct str *ret_path, struct err *e)
{
    static const char scheme[] = "http://";
    size_t n = sizeof(scheme) - 1;
    struct str authority = {url.p + n, url.n - n};

    if (url.n <= n || strncasecmp(url.p, scheme, n) != 0)
        return err_set(e, ERR_CALLER,
                       "this is a proxy: ask for http://host/path, or CONNECT host:port");
    for (n = 0; n < authority.n && !strchr("/?#", authority.p[n]); n++)
        ;
    *ret_path = (struct str){authority.p + n, authority.n - n};
    authority.n = n;
    if (memchr(authority.p, '@', authority.n))
        return err_set(e, ERR_CALLER, "a URL with a user name or password in it is not fetched");
    if (ret_path->n > 0 && memchr(ret_path->p, '#', ret_path->n))
        return err_set(e, ERR_CALLER, "a request has no fragment");
    return set_host(authority, 80, r, e);
}

static int set_line(struct str line, struct egress_request *r, struct str *ret_path, bool *ret_old,
                    struct err *e)
{
    struct str method, target;

    if (!take_until(&line, " ", &method) || !take_until(&line, " ", &target) || !is_token(method) ||
        !str_to_cstr(method, r->method, sizeof(r->method)))
        return err_set(e, ERR_CALLER, "the request line is not 'METHOD target HTTP/1.1'");
    *ret_old = str_is(line, "HTTP/1.0");
    if (!*ret_old && !str_is(line, "HTTP/1.1"))
        return err_set(e, ERR_CALLER, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    for (size_t i = 0; i < target.n; i++)
        if (target.p[i] <= ' ' || target.p[i] > '~')
            return err_set(e, ERR_CALLER, "the target has bytes that a URL does not have");
    r->connect = str_is(method, "CONNECT");
    return r->connect ? set_host(target, 0, r, e) : set_url(target, r, ret_path, e);
}

/* --- the headers --- */

static int add_header(struct headers *h, struct str line, struct err *e)
{
    struct header *row = &h->row[h->count];

    if (h->count == HEADERS_MAX)
        return err_set(e, ERR_CALLER, "there are more than %d headers", HEADERS_MAX);
    row->value = line;
    /* A folded line begins with a blank, and no token does. */
    if (!take_until(&row->value, ":", &row->name) || !is_token(row->name))
        return err_set(e, ERR_CALLER, "a header is not 'Name: value'");
    row->value = str_trim(row->value);
    for (size_t i = 0; i < row->value.n; i++) {
        unsigned char c = (unsigned char)row->value.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return err_set(e, ERR_CALLER, "a header has a control character in it");
    }
    h->count++;
    return 0;
}

static int set_length(struct str value, struct egress_request *r, struct err *e)
{
    if (r->body != BODY_NONE)
        return err_set(e, ERR_CALLER, "the length of the body is said twice");
    if (value.n == 0 || value.n > 18)
        return err_set(e, ERR_CALLER, "Content-Length is not a number of bytes");
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return err_set(e, ERR_CALLER, "Content-Length is not a number of bytes");
        r->length = r->length * 10 + (uint64_t)(value.p[i] - '0');
    }
    r->body = BODY_LENGTH;
    return 0;
}

static int set_coding(struct str value, struct egress_request *r, struct err *e)
{
    if (r->body != BODY_NONE)
        return err_set(e, ERR_CALLER, "the length of the body is said twice");
    if (!is_word(value, "chunked"))
        return err_set(e, ERR_CALLER, "the only Transfer-Encoding spoken here is chunked");
    r->body = BODY_CHUNKED;
    return 0;
}

/* Connection names headers that go no further. Were one of these among them, the host would see
 * another request than we did. */
static int set_nominated(struct headers *h, struct str value, struct err *e)
{
    static const char *const never[] = {"Content-Length", "Transfer-Encoding", "Host"};
    struct str word;

    for (bool more = true; more;) {
        more = take_until(&value, ",", &word);
        word = str_trim(more ? word : value);
        if (word.n == 0)
            continue;
        if (!is_token(word) || h->nominated_count == NOMINATED_MAX)
            return err_set(e, ERR_CALLER, "Connection is not a short list of names");
        for (size_t i = 0; i < COUNT(never); i++)
            if (is_word(word, never[i]))
                return err_set(e, ERR_CALLER, "Connection names %s", never[i]);
        h->nominated[h->nominated_count++] = word;
    }
    return 0;
}

static int read_headers(struct headers *h, bool old, struct egress_request *r, struct err *e)
{
    unsigned hosts = 0;

    for (size_t i = 0; i < h->count; i++) {
        struct header *row = &h->row[i];
        if (is_word(row->name, "Content-Length") && set_length(row->value, r, e) < 0)
            return -1;
        if (is_word(row->name, "Transfer-Encoding") && set_coding(row->value, r, e) < 0)
            return -1;
        if (is_word(row->name, "Connection") && set_nominated(h, row->value, e) < 0)
            return -1;
        hosts += is_word(row->name, "Host");
    }
    if (hosts > 1)
        return err_set(e, ERR_CALLER, "there is more than one Host header");
    if (r->body == BODY_CHUNKED && old)
        return err_set(e, ERR_CALLER, "HTTP/1.0 has no Transfer-Encoding");
    if (r->body != BODY_NONE && r->connect)
        return err_set(e, ERR_CALLER, "CONNECT has no body");
    return 0;
}

static bool goes_on(const struct headers *h, struct str name)
{
    /* Host and Connection are written anew, and "Connection: close" names a header; what the guest
     * tells the proxy is not for the host to see. */
    static const char *const dropped[] = {"Host", "Connection", "Close",  "Keep-Alive",
                                          "TE",   "Trailer",    "Upgrade"};

    if (name.n >= 6 && strncasecmp(name.p, "Proxy-", 6) == 0)
        return false;
    for (size_t i = 0; i < COUNT(dropped); i++)
        if (is_word(name, dropped[i]))
            return false;
    for (size_t i = 0; i < h->nominated_count; i++)
        if (h->nominated[i].n == name.n && strncasecmp(h->nominated[i].p, name.p, name.n) == 0)
            return false;
    return true;
}

/* --- the whole --- */

static int write_head(const struct headers *h, const struct egress_request *r, struct str path,
                      bool old, struct buf *out, struct err *e)
{
    bool bare = path.n == 0 || path.p[0] != '/'; /* http://host, http://host?query */
    char port[8] = "";

    if (r->port != 80)
        snprintf(port, sizeof(port), ":%u", r->port);
    buf_printf(out, "%s %s%.*s HTTP/1.%d\r\nHost: %s%s\r\nConnection: close\r\n", r->method,
               bare ? "/" : "", (int)path.n, path.n ? path.p : "", old ? 0 : 1, r->host_text, port);
    for (size_t i = 0; i < h->count; i++) {
        const struct header *row = &h->row[i];
        if (!goes_on(h, row->name))
            continue;
        buf_put(out, row->name);
        buf_put(out, STR(": "));
        buf_put(out, row->value);
        buf_put(out, STR("\r\n"));
    }
    buf_put(out, STR("\r\n"));
    return buf_check(out, e);
}

int request_parse(struct str head, struct egress_request *ret, struct buf *out, struct err *e)
{
    struct headers h;
    struct str line, path = {0};
    bool old = false;

    *ret = (struct egress_request){0};
    h.count = h.nominated_count = 0;
    if (!take_until(&head, "\r\n", &line) || set_line(line, ret, &path, &old, e) < 0)
        return -1;
    while (take_until(&head, "\r\n", &line) && line.n > 0)
        if (add_header(&h, line, e) < 0)
            return -1;
    if (read_headers(&h, old, ret, e) < 0)
        return -1;
    return ret->connect ? 0 : write_head(&h, ret, path, old, out, e);
}
