/* python_executor: code without a past, and a pair of short texts that tell what came of it. */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>

static struct str strip(struct str s)
{
    while (s.n > 0 && (unsigned char)*s.p <= ' ')
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && (unsigned char)s.p[s.n - 1] <= ' ')
        s.n--;
    return s;
}

/* Where character n (from 0) begins, or s.n; s is UTF-8. */
static size_t char_at(struct str s, size_t n)
{
    size_t i = 0;

    for (; i < s.n; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80 && n-- == 0)
            break;
    return i;
}

static size_t chars(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* The first half of `most` characters, "..." and the last half. */
static json_t *shortened(struct str s, size_t most)
{
    size_t count = chars(s = strip(s));
    struct buf b;
    struct err e;
    json_t *v;

    if (most == 0 || count <= most)
        return record_text(s);
    size_t head = char_at(s, most / 2), tail = char_at(s, count - most / 2);
    buf_init(&b, s.n + 8);
    (void)!buf_put(&b, (struct str){s.p, head}, &e);
    (void)!buf_put(&b, STR("..."), &e);
    (void)!buf_put(&b, (struct str){s.p + tail, s.n - tail}, &e);
    v = record_text(buf_str(&b));
    buf_done(&b);
    return v;
}

static void put_output(struct buf *b, const json_t *events, const char *type)
{
    const json_t *ev;
    struct err e;
    size_t i;

    json_array_foreach(events, i, ev)
    {
        if (!str_is(json_view(json_object_get(ev, "type")), type))
            continue;
        (void)!buf_put(b,
                       strcmp(type, "stdout") == 0
                           ? json_view(json_object_get(ev, "text"))
                           : json_view(json_object_get(json_object_get(ev, "data"), "text/plain")),
                       &e);
    }
}

static struct str last_line(struct str s)
{
    const char *at = (s = strip(s)).n ? memrchr(s.p, '\n', s.n) : NULL;

    return at ? (struct str){at + 1, s.n - (size_t)(at + 1 - s.p)} : s;
}

static void put_report(struct buf *b, const struct exec_info *info)
{
    struct str status = json_view(json_object_get(info->outcome, "status"));
    struct str report = STR("Done");
    struct buf brief;
    struct err e;
    const json_t *ev;
    size_t i;

    buf_init(&brief, TEXT_MAX);
    json_array_foreach(info->events, i,
                       ev) if (str_is(json_view(json_object_get(ev, "type")), "error"))
    {
        error_put_brief(&brief, ev);
        report = last_line(buf_str(&brief));
    }
    if (str_is(status, "timeout"))
        report = STR("Timeout Error");
    else if (!str_is(status, "ok") && !str_is(status, "raised"))
        report = json_view(json_object_get(info->outcome, "message"));
    (void)!buf_put(b, report, &e);
    buf_done(&brief);
}

json_t *pair_of(const struct qwen *q, const struct order *o, const struct exec_info *info)
{
    bool value = o->last_value || o->answer_symbol || o->answer_expr;
    struct buf out, report;
    json_t *pair = json_array();

    buf_init(&out, TEXT_MAX);
    buf_init(&report, TEXT_MAX);
    put_report(&report, info);
    if (str_is(buf_str(&report), "Done"))
        put_output(&out, info->events, value ? "result" : "stdout");
    json_array_append_new(pair, shortened(buf_str(&out), q->config.executor_chars));
    json_array_append_new(pair, shortened(buf_str(&report), q->config.executor_chars));
    buf_done(&out);
    buf_done(&report);
    return pair;
}

void executor_code(const struct order *o, struct buf *ret)
{
    const char *answer = o->answer_symbol ? o->answer_symbol : o->answer_expr;
    struct err e;

    buf_init(ret, o->code_n + SOURCE_MAX + 2);
    (void)!buf_put(ret, (struct str){o->code, o->code_n}, &e);
    if (answer)
        (void)!buf_printf(ret, &e, "\n%s", answer);
}
