/* Finds ``` blocks as models write them: unclosed, unlabelled, or on a single line. */
#include "lenient/lenient.h"

static size_t ticks_at(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] == '`')
        n++;
    return n;
}

static size_t indent_at(struct str s)
{
    size_t n = 0;

    while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t'))
        n++;
    return n;
}

/* Whether line is a closing fence: at least as many backticks as opened the block. */
static bool closes(struct str line, size_t ticks)
{
    struct str s = str_trim(line);

    return s.n >= ticks && ticks_at(s) == s.n;
}

/* Whether the line at this offset is inside of a string that begins in the block. *at and *end: the
 * strings that have been seen, and the end of the last one. */
static bool is_in_string(struct str text, size_t line, size_t *at, size_t *end)
{
    struct str string;

    while (*at < line && python_string_next(text, at, line, &string))
        *end = (size_t)(string.p - text.p) + string.n;
    return line < *end;
}

/* The lines up to the closing fence or the end. Backticks inside a line belong to the code, and so
 * does a fence in a string of the code. */
static void take_body(struct str text, size_t at, size_t ticks, struct fence *ret)
{
    size_t begin = at, strings = at, string_end = 0;

    while (at < text.n) {
        size_t n = str_line(str_from(text, at));
        if (closes((struct str){text.p + at, n}, ticks) &&
            !is_in_string(text, at, &strings, &string_end)) {
            ret->body = (struct str){text.p + begin, at - begin};
            ret->end = at + n;
            ret->closed = true;
            return;
        }
        at += n < text.n - at ? n + 1 : n;
    }
    ret->body = str_from(text, begin < text.n ? begin : text.n);
    ret->end = text.n;
    /* The closing fence may stand at the end of the last line of code. */
    struct str tail = str_trim(ret->body);
    if (tail.n >= ticks && memcmp(tail.p + tail.n - ticks, "``````````", ticks) == 0)
        *ret = (struct fence){
            .label = ret->label,
            .body = {ret->body.p, (size_t)(tail.p - ret->body.p) + tail.n - ticks},
            .end = text.n,
            .closed = true
        };
}

static bool is_label(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') &&
            !strchr("0123456789+-._{}", s.p[i]))
            return false;
    return s.n <= 20;
}

/* ```code``` and ```python code``` on one line. */
static void take_inline(struct str rest, struct fence *ret)
{
    static const char *const labels[] = {"python3 ", "python ", "py ", "ipython "};

    for (size_t i = 0; i < COUNT(labels); i++) {
        size_t n = strlen(labels[i]);
        if (rest.n > n && memcmp(rest.p, labels[i], n) == 0) {
            ret->label = (struct str){rest.p, n - 1};
            rest = str_from(rest, n);
        }
    }
    ret->body = rest;
    ret->closed = true;
}

/* Reads the block that opens at this line; false when no fence opens here. */
static bool fence_at(struct str text, size_t at, struct fence *ret)
{
    struct str line = {text.p + at, str_line(str_from(text, at))};
    size_t indent = indent_at(line), ticks = ticks_at(str_from(line, indent)), end;
    struct str info;

    if (ticks < 3 || ticks > 10)
        return false;
    info = str_trim(str_from(line, indent + ticks));
    end = str_find(info, "```");
    *ret = (struct fence){.end = at + line.n};
    if (end < info.n) {
        take_inline((struct str){info.p, end}, ret);
    } else if (is_label(info)) {
        ret->label = info;
        take_body(text, at + line.n + (at + line.n < text.n), ticks, ret);
    } else { /* code begins on the line of the fence */
        take_body(text, at + indent + ticks, ticks, ret);
    }
    return true;
}

bool fence_next(struct str text, size_t *at, struct fence *ret)
{
    while (*at < text.n) {
        if (fence_at(text, *at, ret)) {
            *at = ret->end + (ret->end < text.n);
            return true;
        }
        *at += str_line(str_from(text, *at)) + 1;
    }
    return false;
}
