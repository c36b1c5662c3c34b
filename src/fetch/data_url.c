/* data:[<mime>][;base64],<data>, RFC 2397: a file that is its own URL. */
#include "fetch/fetch_int.h"

#include <strings.h>

/* The next byte with its escape undone, -1 at the end, -2 for a broken escape. */
static int next_byte(struct str *s)
{
    int c;

    if (s->n == 0)
        return -1;
    c = (unsigned char)s->p[0];
    if (c != '%') {
        *s = str_from(*s, 1);
        return c;
    }
    c = percent_at(*s, 0);
    if (c < 0)
        return -2;
    *s = str_from(*s, 3);
    return c;
}

static int too_large(const struct buf *b, struct err *e)
{
    return err_set(e, ERR_LIMIT, "the data URL holds more than %zu bytes", b->max);
}

static int put_plain(struct str data, struct buf *ret, struct err *e)
{
    int c;

    while ((c = next_byte(&data)) >= 0) {
        char *at = buf_room(ret, 1);
        if (!at)
            return too_large(ret, e);
        *at = (char)c;
        ret->n++;
    }
    return c == -1 ? 0 : err_set(e, ERR_CALLER, "the data URL has a broken %% escape");
}

static int put_base64(struct str data, struct buf *ret, struct err *e)
{
    int c, n = 3;

    while ((c = next_byte(&data)) >= 0) {
        char quad[4] = {(char)c}, bytes[3];
        char *at;
        for (int i = 1; i < 4; i++)
            quad[i] = (char)next_byte(&data);        /* no digit, if there is none */
        n = n == 3 ? base64_group(quad, bytes) : -1; /* after padding comes nothing */
        if (n < 0)
            break;
        at = buf_room(ret, (size_t)n);
        if (!at)
            return too_large(ret, e);
        memcpy(at, bytes, (size_t)n);
        ret->n += (size_t)n;
    }
    return c == -1 && n > 0 ? 0 : err_set(e, ERR_CALLER, "the data URL is not valid base64");
}

/* "text/csv;charset=utf-8" -> "text/csv". */
bool mime_take(struct str type, char *ret, size_t size)
{
    size_t n = 0, slash = 0;

    for (; n < type.n && type.p[n] != ';' && type.p[n] != ' ' && type.p[n] != '\t'; n++) {
        char c = type.p[n];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c == '/' && (slash || n == 0))
            return false;
        if (n + 1 >= size || (!word && (!c || !strchr("!#$&-^_.+/", c))))
            return false;
        slash = c == '/' ? n : slash;
        ret[n] = c;
        if (c >= 'A' && c <= 'Z')
            ret[n] = (char)(c | 0x20);
    }
    ret[n] = '\0';
    return slash && n > slash + 1;
}

int data_url_parse(struct str url, struct buf *ret, char *ret_mime, size_t mime_size, struct err *e)
{
    static const char scheme[] = "data:", base64[] = ";base64";
    const char *comma = url.n ? memchr(url.p, ',', url.n) : NULL;
    const char *hash = url.n ? memchr(url.p, '#', url.n) : NULL;
    size_t at = sizeof(scheme) - 1, tail = sizeof(base64) - 1;
    struct str head, data;

    if (hash)
        url.n = (size_t)(hash - url.p);
    if (url.n < at || strncasecmp(url.p, scheme, at) != 0)
        return err_set(e, ERR_CALLER, "this is not a data URL");
    if (!comma || comma >= url.p + url.n)
        return err_set(e, ERR_CALLER, "the data URL has no comma before its data");
    head = (struct str){url.p + at, (size_t)(comma - url.p) - at};
    data = (struct str){comma + 1, url.n - (size_t)(comma + 1 - url.p)};
    bool is_base64 = head.n >= tail && strncasecmp(head.p + head.n - tail, base64, tail) == 0;
    if (is_base64)
        head.n -= tail;
    /* Without a type it is text; with parameters alone too. */
    if (head.n == 0 || head.p[0] == ';')
        head = STR("text/plain");
    if (!mime_take(head, ret_mime, mime_size))
        return err_set(e, ERR_CALLER, "the type of the data URL is not a MIME type");
    return is_base64 ? put_base64(data, ret, e) : put_plain(data, ret, e);
}
