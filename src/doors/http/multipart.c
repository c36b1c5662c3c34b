/*
 * multipart/form-data as it arrives, in whatever pieces (RFC 7578, RFC 2046).
 *
 * Between parts stands CR LF "--" boundary. A boundary holds no CR, so a match that
 * breaks off can only begin anew at the byte that broke it: how many bytes of the
 * delimiter have been seen is all there is to remember between pieces. The body is
 * read as if a CR LF stood before it, so its first delimiter is like any other.
 */
#include "doors/http/http_int.h"

#include <stdlib.h>

#define BOUNDARY_MAX 70 /* RFC 2046, section 5.1.1 */

enum where {
    AT_PREAMBLE,  /* before the first delimiter: ignored */
    AT_DELIMITER, /* right after one: "--", or blanks and CR LF */
    AT_LAST,      /* its second dash */
    AT_BLANKS,    /* after it, up to the CR */
    AT_LF,        /* after the CR */
    AT_HEAD,      /* header lines of a part */
    AT_DATA,
    AT_END, /* after the last delimiter: ignored */
};

struct multipart {
    const struct multipart_fns *fns; /* borrowed: static */
    void *arg;
    char delimiter[4 + BOUNDARY_MAX];
    size_t delimiter_n, seen; /* how much of it has matched */
    enum where at;
    size_t outside; /* bytes before the first part and after the last */
    struct buf head;
};

/* --- parameters of a header value: form-data; name="a"; filename="b" --- */

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* Only \" and \\ are escapes: browsers send a backslash as it is. Cuts the text off s; ret needs
 * s->n + 1 bytes. False when the closing quote is missing. */
static bool quoted(struct str *s, char *ret)
{
    size_t i = 1, n = 0;

    for (; i < s->n && s->p[i] != '"'; i++) {
        if (s->p[i] == '\\' && i + 1 < s->n && (s->p[i + 1] == '"' || s->p[i + 1] == '\\'))
            i++;
        ret[n++] = s->p[i];
    }
    ret[n] = '\0';
    if (i >= s->n)
        return false;
    s->p += i + 1;
    s->n -= i + 1;
    return true;
}

static struct str token(struct str *s)
{
    struct str t = {s->p, 0};

    while (t.n < s->n && is_token(s->p[t.n]))
        t.n++;
    s->p += t.n;
    s->n -= t.n;
    return t;
}

static void blanks(struct str *s)
{
    while (s->n && (*s->p == ' ' || *s->p == '\t'))
        s->p++, s->n--;
}

/* The next "; name=value" of s: 1, 0 at the end, -1 when it is malformed. room: s->n + 1. */
static int next_param(struct str *s, struct str *ret_name, struct str *ret_value, char *room)
{
    blanks(s);
    if (s->n == 0)
        return 0;
    if (*s->p != ';')
        return -1;
    s->p++, s->n--;
    blanks(s);
    *ret_name = token(s);
    if (ret_name->n == 0)
        return s->n == 0 ? 0 : -1;
    if (s->n == 0 || *s->p != '=')
        return -1;
    s->p++, s->n--;
    if (s->n && *s->p == '"') {
        if (!quoted(s, room))
            return -1;
        *ret_value = str_of(room);
    } else {
        *ret_value = token(s);
    }
    return 1;
}

/* --- the delimiter --- */

static bool boundary_is_valid(struct str b)
{
    if (b.n == 0 || b.n > BOUNDARY_MAX || b.p[b.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < b.n; i++)
        if (!is_token(b.p[i]) && !strchr("(),/:=? ", b.p[i]))
            return false;
    return true;
}

struct multipart *multipart_new(struct str type, const struct multipart_fns *fns, void *arg,
                                struct err *e)
{
    const char *semicolon = type.n ? memchr(type.p, ';', type.n) : NULL;
    struct str rest = {semicolon, semicolon ? type.n - (size_t)(semicolon - type.p) : 0};
    struct str name, value, boundary = {0};
    AUTO_FREE char *room = mem_zalloc(type.n + 1), *kept = NULL;
    int more;

    while ((more = next_param(&rest, &name, &value, room)) > 0)
        if (str_same(name, "boundary") && !kept) {
            kept = mem_strndup(value);
            boundary = str_of(kept);
        }
    if (more < 0 || !kept || !boundary_is_valid(boundary)) {
        err_set(e, ERR_CALLER, "multipart/form-data needs a boundary of 1 to %d characters",
                BOUNDARY_MAX);
        return NULL;
    }
    struct multipart *m = mem_zalloc(sizeof(*m));
    *m = (struct multipart){.fns = fns, .arg = arg, .delimiter_n = 4 + boundary.n, .seen = 2};
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.n);
    buf_init(&m->head, FORM_HEAD_MAX);
    return m;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_done(&m->head);
    free(m);
}

/* --- the head of a part --- */

/* filename*=UTF-8''na%20me (RFC 5987) */
static int decode_extended(struct str v, char *ret, struct err *e)
{
    size_t n;

    if (v.n < 7 || !str_same((struct str){v.p, 7}, "UTF-8''"))
        return err_set(e, ERR_CALLER, "filename* must begin with UTF-8''");
    v.p += 7, v.n -= 7;
    if (percent_decode(v, false, ret, &n, e) < 0)
        return err_wrap(e, "filename*");
    return 0;
}

static int disposition(struct str v, char *name, char *file, struct part *p, struct err *e)
{
    AUTO_FREE char *room = mem_zalloc(v.n + 1);
    struct str key, value;
    bool extended = false;
    int more;

    if (!str_same(token(&v), "form-data"))
        return err_set(e, ERR_CALLER, "a part is not form-data");
    while ((more = next_param(&v, &key, &value, room)) > 0) {
        if (str_same(key, "name") && !p->name.p) {
            memcpy(name, value.p, value.n);
            p->name = (struct str){name, value.n};
        } else if (str_same(key, "filename") && !extended) {
            memcpy(file, value.p, value.n);
            p->file = (struct str){file, value.n};
        } else if (str_same(key, "filename*")) {
            extended = true;
            if (decode_extended(value, file, e) < 0)
                return -1;
            p->file = str_of(file);
        }
    }
    return more < 0 ? err_set(e, ERR_CALLER, "a part's Content-Disposition is malformed") : 0;
}

static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
    return true;
}

static int header(struct str line, char *name, char *file, struct part *p, struct err *e)
{
    const char *colon = memchr(line.p, ':', line.n);
    struct str key, value;

    if (!colon || colon == line.p)
        return err_set(e, ERR_CALLER, "a part has a line in its head that is no header");
    key = (struct str){line.p, (size_t)(colon - line.p)};
    value = str_trim(str_from(line, key.n + 1));
    if (!is_plain(value))
        return err_set(e, ERR_CALLER, "a part has control characters in its head");
    if (str_same(key, "content-disposition"))
        return disposition(value, name, file, p, e);
    if (str_same(key, "content-type"))
        p->mime = value;
    if (str_same(key, "content-transfer-encoding") && !str_same(value, "binary") &&
        !str_same(value, "8bit") && !str_same(value, "7bit"))
        return err_set(e, ERR_CALLER, "a part has a Content-Transfer-Encoding: send it as it is");
    return 0;
}

/* m->head has all lines, each with its CR LF, and the empty one. */
static int head_done(struct multipart *m, struct err *e)
{
    AUTO_FREE char *name = mem_zalloc(m->head.n + 1), *file = mem_zalloc(m->head.n + 1);
    struct str rest = {m->head.p, m->head.n - 2};
    struct part p = {0};

    while (rest.n) {
        struct str line = {rest.p, 0};
        while (memcmp(line.p + line.n, "\r\n", 2) != 0)
            line.n++;
        rest.p += line.n + 2;
        rest.n -= line.n + 2;
        if (header(line, name, file, &p, e) < 0)
            return -1;
    }
    if (p.name.n == 0 || str_utf8_len(p.name) != p.name.n)
        return err_set(e, ERR_CALLER, "a part has no name, or one that is not UTF-8");
    if (m->fns->on_part(m->arg, &p, e) < 0)
        return -1;
    buf_clear(&m->head);
    m->at = AT_DATA;
    return 0;
}

static int head_feed(struct multipart *m, struct str *s, struct err *e)
{
    while (s->n && m->at == AT_HEAD) {
        char c = *s->p;
        s->p++, s->n--;
        if (buf_put(&m->head, (struct str){&c, 1}) < 0)
            return err_set(e, ERR_CALLER, "the head of a part has more than %zu bytes",
                           FORM_HEAD_MAX);
        struct str h = buf_str(&m->head);
        bool empty = h.n == 2 && memcmp(h.p, "\r\n", 2) == 0;
        if (empty || (h.n >= 4 && memcmp(h.p + h.n - 4, "\r\n\r\n", 4) == 0))
            return head_done(m, e);
    }
    return 0;
}

/* --- data --- */

static int emit(struct multipart *m, struct str bytes, struct err *e)
{
    if (m->at != AT_DATA || bytes.n == 0)
        return 0;
    return m->fns->on_data(m->arg, bytes, e);
}

/* Up to the next delimiter, or to the end of s. */
static int data_feed(struct multipart *m, struct str *s, struct err *e)
{
    while (s->n) {
        size_t i = 0;
        while (i < s->n && m->seen + i < m->delimiter_n && s->p[i] == m->delimiter[m->seen + i])
            i++;
        if (m->seen + i == m->delimiter_n) {
            s->p += i, s->n -= i;
            m->seen = 0;
            m->at = AT_DELIMITER;
            return 0;
        }
        if (i == s->n) {
            m->seen += i;
            s->n = 0;
            return 0;
        }
        /* Not the delimiter: what looked like it is data. The bytes themselves are gone when they
         * came in an earlier piece, but they are the delimiter's own. */
        size_t seen = m->seen;
        m->seen = 0;
        if (emit(m, (struct str){m->delimiter, seen}, e) < 0)
            return -1;
        size_t skip = i ? i : (seen ? 0 : 1);
        const char *cr = skip < s->n ? memchr(s->p + skip, '\r', s->n - skip) : NULL;
        struct str data = {s->p, cr ? (size_t)(cr - s->p) : s->n};
        s->p += data.n, s->n -= data.n;
        if (emit(m, data, e) < 0)
            return -1;
    }
    return 0;
}

/* What may follow a delimiter, one byte at a time. */
static int step(struct multipart *m, char c, struct err *e)
{
    bool blank = c == ' ' || c == '\t';

    if (m->at == AT_DELIMITER && c == '-')
        m->at = AT_LAST;
    else if (m->at == AT_LAST && c == '-')
        m->at = AT_END;
    else if ((m->at == AT_DELIMITER || m->at == AT_BLANKS) && blank)
        m->at = AT_BLANKS;
    else if ((m->at == AT_DELIMITER || m->at == AT_BLANKS) && c == '\r')
        m->at = AT_LF;
    else if (m->at == AT_LF && c == '\n')
        m->at = AT_HEAD;
    else
        return err_set(e, ERR_CALLER, "a boundary of the form is followed by something else");
    return 0;
}

int multipart_feed(struct multipart *m, struct str s, struct err *e)
{
    while (s.n && m->at != AT_END) {
        size_t *outside = m->at == AT_PREAMBLE ? &m->outside : NULL, before = s.n;
        int rc = 0;
        if (m->at == AT_HEAD) {
            rc = head_feed(m, &s, e);
        } else if (m->at == AT_DATA || m->at == AT_PREAMBLE) {
            rc = data_feed(m, &s, e);
        } else {
            rc = step(m, *s.p, e);
            s.p++, s.n--;
        }
        if (rc < 0)
            return -1;
        if (outside)
            *outside += before - s.n;
    }
    m->outside += s.n;
    if (m->outside > FORM_OUTSIDE_MAX)
        return err_set(e, ERR_CALLER, "the form has more than %zu bytes outside of its parts",
                       FORM_OUTSIDE_MAX);
    return 0;
}

int multipart_end(struct multipart *m, struct err *e)
{
    return m->at == AT_END ? 0 : err_set(e, ERR_CALLER, "the form ends before its last boundary");
}
