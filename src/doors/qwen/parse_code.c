/*
 * Finds the code in a model's text.
 *
 * Theory of operation: the forms are tried in the order of the table in parse_code(), and the first
 * that fits wins. Text in <think> is skipped. The code of one form may be wrapped in another (a
 * fenced block in a call's arguments), so it is unwrapped again, at most WRAPS_MAX levels deep.
 *
 * A program may hold all of these forms in its own strings. They are looked for in a copy of the
 * text, the mask, in which the long strings are blank; what is found is read from the text.
 */
#include "doors/qwen/parse_code.h"
#include "lenient/lenient.h"

#include <stdlib.h>

#define WRAPS_MAX 4 /* levels of wrapping that are taken off */

static bool unwrap(struct str text, struct parsed_code *ret, unsigned depth);

/* --- the mask --- */

struct masked_text {
    struct str text;
    const char *mask; /* text.n bytes; borrowed */
};

/* Owned. */
static char *mask_new(struct str text)
{
    char *mask = mem_zalloc(text.n + 1);
    struct str string;
    size_t at = 0;

    if (text.n > 0)
        memcpy(mask, text.p, text.n);
    while (python_string_next(text, &at, text.n, &string))
        memset(mask + (string.p - text.p), ' ', string.n);
    return mask;
}

static struct str mask_of(struct masked_text s)
{
    return (struct str){s.mask, s.text.n};
}

/* The text that a piece of the mask stands for. */
static struct str unmask(struct masked_text s, struct str piece)
{
    return (struct str){s.text.p + (piece.p - s.mask), piece.n};
}

/* Reads one form, in code or arguments that have no mask yet. */
typedef bool form_fn(struct masked_text s, struct parsed_code *ret, unsigned depth);
static bool read_whole(form_fn *form, struct str text, struct parsed_code *ret, unsigned depth)
{
    AUTO_FREE char *mask = mask_new(text);

    return form((struct masked_text){text, mask}, ret, depth);
}

static struct masked_text masked_from(struct masked_text s, size_t at)
{
    return (struct masked_text){str_from(s.text, at), s.mask + at};
}

/* --- pieces of text --- */

/* Where a line begins with it, or s.n. In the middle of one it is part of a string of Python's. */
static size_t find_line(struct str s, const char *what)
{
    size_t n = strlen(what);

    for (size_t at = 0; at < s.n; at += str_line(str_from(s, at)) + 1)
        if (s.n - at >= n && memcmp(s.p + at, what, n) == 0)
            return at;
    return s.n;
}

/* Where a tag stands outside the strings of one line, or s.n. A quote without its other half on the
 * line is an apostrophe, and so are those of its kind that follow: a line is read twice at most. */
static size_t find_outside_strings(struct str s, const char *tag)
{
    size_t n = strlen(tag);
    bool lone[2] = {false, false}; /* ' and " */

    for (size_t at = 0; at < s.n; at++) {
        bool is_double = s.p[at] == '"';
        if (s.p[at] == '\n')
            lone[0] = lone[1] = false;
        if (s.n - at >= n && memcmp(s.p + at, tag, n) == 0)
            return at;
        if ((is_double || s.p[at] == '\'') && !lone[is_double]) {
            size_t end = at + 1;
            while (end < s.n && s.p[end] != '\n' && s.p[end] != s.p[at])
                end += 1 + (s.p[end] == '\\' && end + 1 < s.n && s.p[end + 1] != '\n');
            lone[is_double] = end >= s.n || s.p[end] != s.p[at];
            at = lone[is_double] ? at : end;
        }
    }
    return s.n;
}

/* What stands between two tags; false when the first is not there. One that is not closed goes on
 * to the end. *ret_after: where to look for the next. */
static bool between(struct masked_text s, const char *open, const char *close, struct str *ret,
                    size_t *ret_after)
{
    size_t at = find_line(mask_of(s), open);
    struct str rest;
    size_t n;

    if (at == s.text.n)
        return false;
    rest = str_from(mask_of(s), at + strlen(open));
    n = find_outside_strings(rest, close);
    *ret_after = at + strlen(open) + n + (n < rest.n ? strlen(close) : 0);
    *ret = unmask(s, (struct str){rest.p, n});
    return true;
}

/* What follows the thoughts. Calls that a model only thinks of are none. */
static struct str without_thoughts(struct str s)
{
    struct str begin = str_trim(s);
    size_t end;

    while (begin.n >= 7 && memcmp(begin.p, "<think>", 7) == 0) {
        end = str_find(begin, "</think>");
        if (begin.n - end <= 8)
            break;
        begin = str_trim(str_from(begin, end + 8));
        s = begin;
    }
    return s;
}

/* Grows by doubling: a text may have a million blocks. */
static void append(struct parsed_code *p, struct str s)
{
    if (p->code_n + s.n + 1 > p->room) {
        p->room = 2 * (p->code_n + s.n + 1);
        p->code = mem_realloc(p->code, p->room);
    }
    assert(p->code);
    if (s.n > 0)
        memcpy(p->code + p->code_n, s.p, s.n);
    p->code_n += s.n;
    p->code[p->code_n] = '\0';
}

static void set_code(struct parsed_code *p, struct str code)
{
    p->code_n = 0;
    append(p, code);
}

/* With a blank line between it and what is there. */
static void add_code(struct parsed_code *p, struct str code)
{
    if (p->code_n > 0)
        append(p, STR("\n\n"));
    append(p, code);
}

/* --- fences --- */

static bool is_python(struct str label)
{
    static const char *const labels[] = {"",        "py",     "python", "python3",
                                         "ipython", "Python", "PYTHON", "tool_code"};

    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_is(label, labels[i]))
            return true;
    return false;
}

static void add_block(struct parsed_code *ret, struct str body)
{
    while (body.n > 0 && (body.p[body.n - 1] == '\n' || body.p[body.n - 1] == '\r'))
        body.n--;
    add_code(ret, body);
    ret->blocks++;
}

/* All blocks of Python, joined. Where there is none the first of any other label: the model may
 * have called it what it likes. */
static bool read_fences(struct masked_text s, struct parsed_code *ret, unsigned depth)
{
    struct fence f, first = {0};
    size_t at = 0;

    (void)depth;
    while (fence_next(mask_of(s), &at, &f)) {
        if (is_python(f.label))
            add_block(ret, unmask(s, f.body));
        else if (!first.body.p)
            first = f;
    }
    if (ret->blocks == 0 && first.body.p)
        add_block(ret, unmask(s, first.body));
    return ret->blocks > 0;
}

/* --- tags --- */

static bool read_code_tag(struct masked_text s, struct parsed_code *ret, unsigned depth)
{
    struct str body;
    size_t after;

    (void)depth;
    if (!between(s, "<code>", "</code>", &body, &after))
        return false;
    if (body.n > 0 && body.p[0] == '\n')
        body = str_from(body, 1);
    if (body.n > 0 && body.p[body.n - 1] == '\n')
        body.n--;
    set_code(ret, body);
    return true;
}

/* --- objects --- */

static const char *our_tool(const json_t *name)
{
    static const char *const tools[] = {"code_interpreter", "python_executor"};

    for (size_t i = 0; i < COUNT(tools) && json_is_string(name); i++)
        if (strcmp(json_string_value(name), tools[i]) == 0)
            return tools[i];
    return NULL;
}

static void keep_more(struct parsed_code *ret, json_t *object)
{
    json_decref(ret->more);
    ret->more = json_incref(object);
}

/* {"code": ...}, {"name": ..., "arguments": ...}. What has neither is a value of Python's, too. */
static bool read_object(json_t *v, struct parsed_code *ret, unsigned depth)
{
    json_t *code = json_object_get(v, "code"), *args = json_object_get(v, "arguments");

    if (json_is_string(code)) {
        keep_more(ret, v);
        if (!unwrap(json_view(code), ret, depth + 1))
            set_code(ret, json_view(code));
        return true;
    }
    if (!json_is_string(json_object_get(v, "name")) || !args)
        return false;
    ret->tool = our_tool(json_object_get(v, "name"));
    if (json_is_object(args))
        return depth < WRAPS_MAX && read_object(args, ret, depth + 1);
    if (!json_is_string(args))
        return false;
    if (depth < WRAPS_MAX && !unwrap(json_view(args), ret, depth + 1))
        set_code(ret, json_view(args));
    return true;
}

/* A string is what it says when that looks like code, else it is a value of Python's. */
static bool is_code(struct str s)
{
    return str_find(s, "(") < s.n || str_find(s, "=") < s.n || str_find(s, "\n") < s.n ||
           str_find(s, "```") < s.n || (s.n > 7 && memcmp(s.p, "import ", 7) == 0);
}

static bool read_json(struct masked_text source, struct parsed_code *ret, unsigned depth)
{
    struct str s = str_trim(source.text);
    json_t *v;
    bool found = false;

    if (s.n == 0 || !*s.p || !strchr("{\"'/", *s.p)) /* a comment may come first */
        return false;
    v = json5_read(s);
    if (json_is_object(v)) {
        found = read_object(v, ret, depth);
    } else if (depth == 0 && json_is_string(v) && is_code(json_view(v))) {
        if (!unwrap(json_view(v), ret, depth + 1))
            set_code(ret, json_view(v));
        found = true;
    }
    json_decref(v);
    return found;
}

/* --- <tool_call>{"name": ..., "arguments": ...}</tool_call> --- */

/* Escapes of JSON, in text that is no JSON otherwise. */
static void set_unescaped(struct parsed_code *ret, struct str s)
{
    static const char letters[] = "nt\"\\/", means[] = "\n\t\"\\/";
    AUTO_FREE char *text = mem_zalloc(s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        const char *known =
            s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] ? strchr(letters, s.p[i + 1]) : NULL;
        text[n++] = (char)(known ? means[known - letters] : s.p[i]);
        i += known != NULL;
    }
    set_code(ret, (struct str){text, n});
}

/* Arguments that are no JSON: what stands between the quotes of "code". */
static bool salvage(struct str body, struct parsed_code *ret)
{
    size_t at = str_find(body, "\"code\"");
    struct str rest;
    size_t end;

    if (at == body.n)
        return false;
    rest = str_trim(str_from(body, at + 6));
    if (rest.n == 0 || *rest.p != ':')
        return false;
    rest = str_trim(str_from(rest, 1));
    if (rest.n == 0 || *rest.p != '"')
        return false;
    for (end = rest.n; end > 1 && rest.p[end - 1] != '"'; end--)
        ;
    if (end <= 1)
        return false;
    set_unescaped(ret, (struct str){rest.p + 1, end - 2});
    return true;
}

static bool read_one_call(struct str body, struct parsed_code *one)
{
    size_t n;
    json_t *v = json5_read_first(body, &n);
    bool found = json_is_object(v) && read_object(v, one, 1);

    json_decref(v);
    if (!found)
        found = salvage(body, one);
    if (str_trim((struct str){one->code, one->code_n}).n == 0)
        found = read_whole(read_code_tag, body, one, 0) || found; /* beside the arguments */
    return found;
}

/* Those of one reply run in their order. */
static bool read_calls(struct masked_text s, struct parsed_code *ret, unsigned depth)
{
    struct str body;
    size_t after;
    bool found = false;

    (void)depth;
    while (between(s, "<tool_call>", "</tool_call>", &body, &after)) {
        struct parsed_code one = {0};
        if (read_one_call(body, &one)) {
            add_code(ret, (struct str){one.code, one.code_n});
            if (one.more && !ret->more)
                keep_more(ret, one.more);
            ret->tool = one.tool ? one.tool : ret->tool;
            found = true;
        }
        parsed_code_done(&one);
        s = masked_from(s, after);
    }
    return found;
}

/* --- Thought, Action, Action Input, Observation --- */

static size_t last_line_with(struct str text, const char *word)
{
    size_t found = text.n, n = strlen(word);

    for (size_t at = 0; at < text.n; at += str_line(str_from(text, at)) + 1)
        if (text.n - at >= n && memcmp(text.p + at, word, n) == 0)
            found = at;
    return found;
}

static bool read_react(struct masked_text s, struct parsed_code *ret, unsigned depth)
{
    struct str mask = mask_of(s), input, name;
    size_t action = last_line_with(mask, "Action:"), at;

    if (action == mask.n)
        return false;
    name = str_trim((struct str){mask.p + action + 7, str_line(str_from(mask, action + 7))});
    input = str_from(mask, action);
    at = str_find(input, "\nAction Input:");
    if (at == input.n)
        return false;
    input = str_from(input, at + 14);
    input.n = str_find(input, "\nObservation:");
    if (input.n > 0 && *input.p == ' ')
        input = str_from(input, 1);
    input = unmask(s, input);
    if (!unwrap(input, ret, depth + 1) && !read_whole(read_fences, input, ret, depth))
        set_code(ret, str_trim(input));
    if (str_is(name, "code_interpreter"))
        ret->tool = "code_interpreter";
    else if (str_is(name, "python_executor"))
        ret->tool = "python_executor";
    return true;
}

/* --- all of them --- */

/* What wraps the whole of a text. False: nothing does, and ret is as it was. */
static bool unwrap(struct str text, struct parsed_code *ret, unsigned depth)
{
    struct str s = str_trim(text);

    if (depth > WRAPS_MAX)
        return false;
    if (s.n >= 3 && memcmp(s.p, "```", 3) == 0)
        return read_whole(read_fences, s, ret, depth);
    if (s.n >= 6 && memcmp(s.p, "<code>", 6) == 0)
        return read_whole(read_code_tag, s, ret, depth);
    return read_json((struct masked_text){.text = s}, ret, depth);
}

void parse_code(struct str text, struct parsed_code *ret)
{
    static form_fn *const forms[] = {read_json, read_calls, read_react, read_fences, read_code_tag};
    struct str said = without_thoughts(text);
    AUTO_FREE char *mask = mask_new(said);

    *ret = (struct parsed_code){0};
    for (size_t i = 0; i < COUNT(forms); i++)
        if (forms[i]((struct masked_text){said, mask}, ret, 0) && ret->code)
            return;
    set_code(ret, said);
}

void parse_code_value(struct str text, struct parsed_code *ret)
{
    *ret = (struct parsed_code){0};
    if (!unwrap(text, ret, 1) || !ret->code)
        set_code(ret, text);
}

void parsed_code_done(struct parsed_code *p)
{
    free(p->code);
    json_decref(p->more);
    *p = (struct parsed_code){0};
}
