/* Parser of server-sent events (html.spec.whatwg.org). Only their data matters here. */
#include "model/model_int.h"

void sse_init(struct sse_reader *s, size_t max)
{
    *s = (struct sse_reader){0};
    buf_init(&s->line, max);
    buf_init(&s->data, max);
}

void sse_done(struct sse_reader *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
}

/* Hands over the event that has ended. */
static int dispatch(struct sse_reader *s, sse_fn *fn, void *arg)
{
    struct str data = buf_str(&s->data);
    int rc;

    if (data.n == 0)
        return 0;
    data.n--; /* the last line feed */
    rc = data.n > 0 ? fn(arg, data) : 0;
    buf_clear(&s->data);
    return rc;
}

static bool is_known(struct str line)
{
    static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};

    for (size_t i = 0; i < COUNT(fields); i++)
        if (line.n >= strlen(fields[i]) && memcmp(line.p, fields[i], strlen(fields[i])) == 0)
            return true;
    return false;
}

bool sse_is_one(const struct sse_reader *s)
{
    return s->known || is_known(buf_str(&s->line));
}

static int take_line(struct sse_reader *s, sse_fn *fn, void *arg, struct err *e)
{
    struct str line = buf_str(&s->line);

    if (!s->begun && line.n >= 3 && memcmp(line.p, "\xef\xbb\xbf", 3) == 0)
        line = (struct str){line.p + 3, line.n - 3};
    s->begun = true;
    s->known = s->known || is_known(line);
    buf_clear(&s->line);
    if (line.n == 0)
        return dispatch(s, fn, arg);
    if (line.n < 5 || memcmp(line.p, "data:", 5) != 0)
        return 0;
    line = (struct str){line.p + 5, line.n - 5};
    if (line.n > 0 && line.p[0] == ' ')
        line = (struct str){line.p + 1, line.n - 1};
    buf_put(&s->data, line);
    buf_put(&s->data, STR("\n"));
    return buf_check(&s->data, e);
}

/* Length of s up to the end of its first line. */
static size_t line_length(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != '\n' && s.p[n] != '\r')
        n++;
    return n;
}

int sse_feed(struct sse_reader *s, struct str bytes, sse_fn *fn, void *arg, struct err *e)
{
    *e = (struct err){0};
    while (bytes.n > 0) {
        bool feed = s->after_cr && bytes.p[0] == '\n';
        size_t n = feed ? 0 : line_length(bytes);

        s->after_cr = false;
        if (!feed && buf_put(&s->line, (struct str){bytes.p, n}) < 0)
            return buf_check(&s->line, e);
        bytes = (struct str){bytes.p + n, bytes.n - n};
        if (bytes.n == 0)
            break;
        s->after_cr = bytes.p[0] == '\r';
        bytes = (struct str){bytes.p + 1, bytes.n - 1};
        if (!feed && take_line(s, fn, arg, e) < 0)
            return -1;
    }
    return 0;
}

void sse_finish(struct sse_reader *s, sse_fn *fn, void *arg)
{
    (void)dispatch(s, fn, arg);
}
