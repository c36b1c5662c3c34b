/*
 * What came of an execution, as one Markdown text: a labelled block for each thing it
 * said, in the order in which it did, and a line for each image.
 *
 * An error is one line, or the whole traceback when that is wanted. What has more than a
 * plain text to show and a plain text that only names its type is shown by the best of
 * the rest, so that nothing is lost.
 */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>

#define FENCE_MIN 3
#define FENCE_MAX 64

/* What does not fit below TEXT_MAX is left out: the engine keeps less output than that. */
static void put(struct buf *b, struct str s)
{
    struct err e;

    (void)!buf_put(b, s, &e);
}

/* --- blocks --- */

/* One backtick more than there are in a row in the text, so that nothing in it ends the block. */
static size_t fence_for(struct str s)
{
    size_t run = 0, longest = 0;

    for (size_t i = 0; i < s.n; i++) {
        run = s.p[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest < FENCE_MIN ? FENCE_MIN : longest < FENCE_MAX ? longest + 1 : FENCE_MAX;
}

static void put_fence(struct buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(b, STR("`"));
}

static void separate(struct buf *b)
{
    if (b->n > 0)
        put(b, STR("\n\n"));
}

static void put_block(struct buf *b, const char *label, struct str text)
{
    size_t fence = fence_for(text);

    separate(b);
    put(b, str_of(label));
    put(b, STR(":\n\n"));
    put_fence(b, fence);
    put(b, STR("\n"));
    put(b, text);
    put(b, STR("\n"));
    put_fence(b, fence);
}

static void put_note(struct buf *b, struct str text)
{
    if (text.n == 0)
        return;
    separate(b);
    put(b, STR("Note: "));
    put(b, text);
}

/* --- bundles --- */

static const json_t *part(const json_t *ev, const char *mime)
{
    return json_object_get(json_object_get(ev, "data"), mime);
}

static const json_t *image_in(const json_t *ev, const char **ret_mime)
{
    static const char *const mimes[] = {"image/png", "image/jpeg", "image/gif", "image/webp",
                                        "image/svg+xml"};

    for (size_t i = 0; i < COUNT(mimes); i++)
        if (json_is_string(part(ev, mimes[i]))) {
            *ret_mime = mimes[i];
            return part(ev, mimes[i]);
        }
    return NULL;
}

const char *suffix_of(const char *mime)
{
    const char *slash = strchr(mime, '/');

    return strcmp(mime, "image/svg+xml") == 0 ? "svg" : slash ? slash + 1 : "bin";
}

static bool is_bundle(const json_t *ev)
{
    struct str type = json_view(json_object_get(ev, "type"));

    return str_is(type, "display") || str_is(type, "result");
}

const json_t *image_of(const json_t *events, size_t n, const char **ret_mime)
{
    const json_t *ev, *image;
    size_t i;

    json_array_foreach(events, i, ev)
    {
        image = is_bundle(ev) ? image_in(ev, ret_mime) : NULL;
        if (image && --n == 0)
            return image;
    }
    return NULL;
}

/* "<IPython.core.display.HTML object>": it says nothing. */
static bool is_placeholder(struct str s)
{
    return s.n > 9 && s.p[0] == '<' && memcmp(s.p + s.n - 8, " object>", 8) == 0 &&
           !memchr(s.p, '\n', s.n);
}

static struct str best_text(const json_t *ev)
{
    static const char *const mimes[] = {"text/markdown", "text/latex",    "application/json",
                                        "text/html",     "image/svg+xml", "application/javascript"};
    struct str plain = json_view(part(ev, "text/plain"));

    if (plain.p && !is_placeholder(plain))
        return plain;
    for (size_t i = 0; i < COUNT(mimes); i++)
        if (json_view(part(ev, mimes[i])).p)
            return json_view(part(ev, mimes[i]));
    return plain;
}

/* --- errors --- */

static struct str take_line(struct str *rest)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    struct str line = {rest->p, end ? (size_t)(end - rest->p) + 1 : rest->n};

    rest->p += line.n;
    rest->n -= line.n;
    return line;
}

static bool begins(struct str s, const char *with)
{
    return s.n >= strlen(with) && memcmp(s.p, with, strlen(with)) == 0;
}

/* A cell that does not compile: "File "<cell 3>", line 1" is told as IPython tells it. */
static bool put_place(struct buf *b, struct str line)
{
    static const char head[] = "  File \"<cell ";
    struct err e;
    unsigned cell, at;
    char text[128];

    if (!begins(line, head) || !str_to_cstr(line, text, sizeof(text)) ||
        /* NOLINTNEXTLINE(cert-err34-c): nine digits always fit */
        sscanf(text + sizeof(head) - 1, "%9u>\", line %9u", &cell, &at) != 2)
        return false;
    (void)!buf_printf(b, &e, "  Cell In [%u], line %u\n", cell, at);
    return true;
}

/* Frames are indented and stand between the headline and the exception; so nothing is left out of
 * a message, whatever is in it. */
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
                put(b, line);
        }
    }
}

void error_put_brief(struct buf *b, const json_t *ev)
{
    struct str name = json_view(json_object_get(ev, "name"));
    struct str message = json_view(json_object_get(ev, "message"));
    size_t before = b->n;

    put_without_frames(b, json_view(json_object_get(ev, "traceback")));
    if (b->n > before)
        return;
    put(b, name); /* a group: all of it was indented */
    put(b, STR(": "));
    put(b, message);
    put(b, STR("\n"));
}

static void put_error(struct buf *b, const struct markdown *m, const json_t *ev)
{
    struct buf text;

    buf_init(&text, TEXT_MAX);
    if (m->traceback)
        put(&text, json_view(json_object_get(ev, "traceback")));
    else
        error_put_brief(&text, ev);
    put_block(b, "error", buf_str(&text));
    buf_done(&text);
}

/* --- the whole --- */

struct telling {
    const struct markdown *m;
    struct buf *b;
    size_t images;    /* so far */
    struct str ended; /* the outcome's name */
};

static void put_image(struct telling *t, const char *mime)
{
    struct err e;

    t->images++;
    separate(t->b);
    (void)!buf_printf(t->b, &e, "![fig-%03zu](", t->images);
    t->m->link(t->m->arg, t->b, t->images, mime);
    put(t->b, STR(")"));
}

static void put_bundle(struct telling *t, const json_t *ev, bool is_result)
{
    const char *mime;
    const json_t *image = image_in(ev, &mime);
    struct str text = image ? json_view(part(ev, "text/plain")) : best_text(ev);

    if (text.p && (is_result || !image))
        put_block(t->b, is_result ? "execute_result" : "display_data", text);
    if (image)
        put_image(t, mime);
}

static void put_event(struct telling *t, const json_t *ev)
{
    struct str type = json_view(json_object_get(ev, "type"));
    struct str text = json_view(json_object_get(ev, "text"));

    if (str_is(type, "stdout") || str_is(type, "stderr"))
        put_block(t->b, str_is(type, "stdout") ? "stdout" : "stderr", text);
    else if (is_bundle(ev))
        put_bundle(t, ev, str_is(type, "result"));
    else if (str_is(type, "status"))
        put_note(t->b, text);
    /* The interrupt that ends a cell without time is ours, and told as what it means. */
    else if (str_is(type, "error") &&
             !(str_is(t->ended, "timeout") &&
               str_is(json_view(json_object_get(ev, "name")), "KeyboardInterrupt")))
        put_error(t->b, t->m, ev);
}

static void put_outcome(struct telling *t)
{
    struct str line = json_view(json_object_get(t->m->outcome, "message"));

    if (str_is(t->ended, "timeout"))
        put_block(t->b, "error", STR("Timeout: Code execution exceeded the time limit."));
    else if (!str_is(t->ended, "ok") && !str_is(t->ended, "raised") && line.n > 0)
        put_block(t->b, "error", line);
    if (str_is(t->ended, "timeout") && json_is_true(json_object_get(t->m->outcome, "state_lost")))
        put_note(t->b, STR("the code did not stop when it was told to, so the interpreter was "
                           "replaced: variables are gone, files are kept."));
}

static bool is_blank(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] > ' ')
            return false;
    return true;
}

void markdown_put(struct buf *b, const struct markdown *m)
{
    struct telling t = {m, b, 0, json_view(json_object_get(m->outcome, "status"))};
    const json_t *ev;
    size_t i;

    put_note(b, m->note);
    json_array_foreach(m->events, i, ev) put_event(&t, ev);
    put_outcome(&t);
    if (is_blank(buf_str(b))) {
        b->n = 0;
        put(b, STR("Finished execution."));
    }
}
