/*
 * The Markdown text of an execution: a labelled block for each output, in the order of the output,
 * and a line for each image. An error is one line, or the whole traceback if the call wants that.
 */
#include "doors/qwen/qwen_int.h"
#include "lenient/lenient.h"

#include <stdio.h>
#include <stdlib.h>

#define FENCE_MIN 3
#define FENCE_MAX 64

/* --- blocks --- */

/* One backtick more than the longest row of backticks in the text, so that the text cannot end the
 * block. */
static size_t fence_for(struct str s)
{
    size_t run = 0, longest = 0;

    for (size_t i = 0; i < s.n; i++) {
        run = s.p[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest < FENCE_MIN ? FENCE_MIN : longest < FENCE_MAX ? longest + 1 : FENCE_MAX;
}

static void separate(struct buf *b)
{
    if (b->n > 0)
        buf_put(b, STR("\n\n"));
}

static void put_block(struct buf *b, const char *label, struct str text)
{
    char fence[FENCE_MAX + 1] = "";

    memset(fence, '`', fence_for(text));
    separate(b);
    buf_printf(b, "%s:\n\n%s\n", label, fence);
    buf_put(b, text);
    buf_printf(b, "\n%s", fence);
}

static void put_note(struct buf *b, struct str text)
{
    if (text.n == 0)
        return;
    separate(b);
    buf_put(b, STR("Note: "));
    buf_put(b, text);
}

/* --- displays and results --- */

const char *suffix_of(const char *mime)
{
    const char *slash = strchr(mime, '/');

    return strcmp(mime, "image/svg+xml") == 0 ? "svg" : slash ? slash + 1 : "bin";
}

/* "<IPython.core.display.HTML object>" says nothing. */
static bool is_placeholder(struct str s)
{
    return s.n > 9 && s.p[0] == '<' && memcmp(s.p + s.n - 8, " object>", 8) == 0 &&
           !memchr(s.p, '\n', s.n);
}

/* The plain text, or the best other text if the plain text is a placeholder. */
static struct str best_text(const json_t *ev)
{
    static const char *const mimes[] = {"text/markdown", "text/latex", "application/json",
                                        "text/html", "application/javascript"};
    const json_t *data = json_object_get(ev, "data");
    struct str plain = json_view(json_object_get(data, "text/plain"));

    for (size_t i = 0; i < COUNT(mimes) && (!plain.p || is_placeholder(plain)); i++) {
        struct str other = json_view(json_object_get(data, mimes[i]));
        plain = other.p ? other : plain;
    }
    return plain;
}

/* --- errors --- */

static struct str take_line(struct str *rest)
{
    size_t n = str_line(*rest);
    struct str line = {rest->p, n < rest->n ? n + 1 : n};

    *rest = str_from(*rest, line.n);
    return line;
}

static bool begins(struct str s, const char *with)
{
    return s.n >= strlen(with) && memcmp(s.p, with, strlen(with)) == 0;
}

/* Code that does not compile: puts File "<cell 3>", line 1 as IPython writes it. */
static bool put_place(struct buf *b, struct str line)
{
    static const char head[] = "  File \"<cell ";
    unsigned cell, at;
    char text[128];

    if (!begins(line, head) || !str_to_cstr(line, text, sizeof(text)) ||
        /* NOLINTNEXTLINE(cert-err34-c): nine digits always fit */
        sscanf(text + sizeof(head) - 1, "%9u>\", line %9u", &cell, &at) != 2)
        return false;
    buf_printf(b, "  Cell In [%u], line %u\n", cell, at);
    return true;
}

/* Frames are indented and stand between the headline and the exception, so no line of a message is
 * left out. */
static void put_without_frames(struct buf *b, struct str trace)
{
    bool in_stack = false;

    while (trace.n > 0) {
        struct str line = take_line(&trace);
        if (begins(line, "Traceback (most recent call last):")) {
            in_stack = true;
        } else if (!in_stack || *line.p != ' ') {
            in_stack = false;
            if (!put_place(b, line))
                buf_put(b, line);
        }
    }
}

void error_put_brief(struct buf *b, const json_t *ev)
{
    size_t before = b->n;

    put_without_frames(b, event_text(ev, "traceback"));
    if (b->n > before)
        return;
    buf_put(b, event_text(ev, "name")); /* a group: all of the traceback was indented */
    buf_put(b, STR(": "));
    buf_put(b, event_text(ev, "message"));
    buf_put(b, STR("\n"));
}

static void put_error(struct buf *b, const struct markdown *m, const json_t *ev)
{
    AUTO(buf_done) struct buf text = BUF(TEXT_MAX);

    if (m->traceback)
        buf_put(&text, event_text(ev, "traceback"));
    else
        error_put_brief(&text, ev);
    put_block(b, "error", buf_str(&text));
}

/* --- the whole text --- */

static void put_bundle(struct buf *b, const struct markdown *m, const struct event_reader *r)
{
    bool is_result = r->kind == EVENT_RESULT;
    struct str text = r->image ? r->text : best_text(r->event);

    if (r->image ? is_result && text.n > 0 : text.p != NULL)
        put_block(b, is_result ? "execute_result" : "display_data", text);
    if (!r->image)
        return;
    separate(b);
    buf_printf(b, "![fig-%03zu](", r->images);
    m->link(m->arg, b, r->images, r->mime);
    buf_put(b, STR(")"));
}

static void put_event(struct buf *b, const struct markdown *m, const struct event_reader *r,
                      bool timeout)
{
    switch (r->kind) {
    case EVENT_STDOUT:
    case EVENT_STDERR:
        return put_block(b, event_kind_name(r->kind), r->text);
    case EVENT_DISPLAY:
    case EVENT_RESULT:
        return put_bundle(b, m, r);
    case EVENT_STATUS:
        return put_note(b, r->text);
    case EVENT_ERROR:
        /* The server interrupts code at its time limit: put_outcome() says so. */
        if (!timeout || !str_is(event_text(r->event, "name"), "KeyboardInterrupt"))
            put_error(b, m, r->event);
        return;
    default:
        return;
    }
}

static void put_outcome(struct buf *b, const json_t *outcome, bool timeout)
{
    struct str status = event_text(outcome, "status"), line = event_text(outcome, "message");

    if (timeout)
        put_block(b, "error", STR("Timeout: Code execution exceeded the time limit."));
    else if (!str_is(status, "ok") && !str_is(status, "raised") && line.n > 0)
        put_block(b, "error", line);
    if (timeout && json_is_true(json_object_get(outcome, "state_lost")))
        put_note(b, STR("the code did not stop when it was told to, so the interpreter was "
                        "replaced: variables are gone, files are kept."));
}

void markdown_put(struct buf *b, const struct markdown *m)
{
    bool timeout = str_is(event_text(m->outcome, "status"), "timeout");
    struct event_reader r;

    put_note(b, m->note);
    event_reader_init(&r, m->events);
    r.settles = true;
    while (event_reader_next(&r))
        put_event(b, m, &r, timeout);
    event_reader_done(&r);
    put_outcome(b, m->outcome, timeout);
    if (str_trim(buf_str(b)).n == 0) {
        buf_clear(b);
        buf_put(b, STR("Finished execution."));
    }
}
