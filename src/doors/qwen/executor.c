/* python_executor: code in an interpreter of its own; the answer is a pair of short texts. */
#include "doors/qwen/qwen_int.h"
#include "lenient/lenient.h"

#include <stdio.h>
#include <stdlib.h>

/* Where character n (from 0) of UTF-8 text begins, or s.n. *ret_count: all characters. */
static size_t char_at(struct str s, size_t n, size_t *ret_count)
{
    size_t at = s.n, count = 0;

    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80 && count++ == n)
            at = i;
    *ret_count = count;
    return at;
}

/* The first half of `most` characters, "..." and the last half. */
static json_t *shortened(struct str s, size_t most)
{
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);
    size_t head, count;

    s = str_trim(s);
    head = char_at(s, most / 2, &count);
    if (most == 0 || count <= most)
        return record_text(s);
    buf_put(&b, (struct str){s.p, head});
    buf_put(&b, STR("..."));
    buf_put(&b, str_from(s, char_at(s, count - most / 2, &count)));
    return record_text(buf_str(&b));
}

static void put_results(struct buf *b, const json_t *events)
{
    struct event_reader r;

    event_reader_init(&r, events);
    while (event_reader_next(&r))
        if (r.kind == EVENT_RESULT)
            buf_put(b, r.text);
    event_reader_done(&r);
}

/* "Done", or why there is no answer: the last line of an error. */
static struct str report_of(const struct exec_info *info, struct buf *room)
{
    struct str status = event_text(info->outcome, "status"), line;
    const json_t *error = events_error(info->events);
    const char *at;

    if (str_is(status, "timeout"))
        return STR("Timeout Error");
    if (!str_is(status, "ok") && !str_is(status, "raised"))
        return event_text(info->outcome, "message");
    if (!error)
        return STR("Done");
    error_put_brief(room, error);
    line = str_trim(buf_str(room));
    at = line.n ? memrchr(line.p, '\n', line.n) : NULL;
    return at ? str_from(line, (size_t)(at + 1 - line.p)) : line;
}

json_t *pair_of(const struct qwen *q, const struct call_params *p, const struct exec_info *info)
{
    AUTO(buf_done) struct buf out = BUF(TEXT_MAX);
    AUTO(buf_done) struct buf room = BUF(TEXT_MAX);
    struct str report = report_of(info, &room);
    bool is_done = str_is(report, "Done");

    if (is_done && (p->last_value || p->answer_symbol || p->answer_expr))
        put_results(&out, info->events);
    else if (is_done)
        events_output(info->events, IN(EVENT_STDOUT), &out);
    return json_pack("[o, o]", shortened(buf_str(&out), q->config.executor_chars),
                     shortened(report, q->config.executor_chars));
}
