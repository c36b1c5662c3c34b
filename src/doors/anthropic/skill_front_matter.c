/*
 * The front matter of a SKILL.md: its name and description. A small part of YAML, as such files
 * have it: keys at the beginning of a line, with a plain, a quoted or a block value. Other keys are
 * skipped.
 */
#include "doors/anthropic/skills_int.h"

#include <ctype.h>

/* --- lines --- */

/* Cuts the next line off, without its end; false at the end of the text. */
static bool next_line(struct str *text, struct str *ret)
{
    const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;
    size_t n = end ? (size_t)(end - text->p) : text->n;

    if (text->n == 0)
        return false;
    *ret = (struct str){text->p, n};
    *text = str_from(*text, n + (end != NULL));
    if (ret->n && ret->p[ret->n - 1] == '\r')
        ret->n--;
    return true;
}

static bool is_indented(struct str line)
{
    return line.n == 0 || line.p[0] == ' ' || line.p[0] == '\t';
}

/* Lines of a value that follow its key: indented ones. */
static bool next_more(struct str *text, struct str *ret)
{
    struct str rest = *text;

    if (!next_line(&rest, ret) || !is_indented(*ret))
        return false;
    *text = rest;
    *ret = str_trim(*ret);
    return true;
}

/* --- values --- */

static void put_double_quoted(struct buf *b, struct str s)
{
    for (size_t i = 1; i < s.n && s.p[i] != '"'; i++) {
        char c = s.p[i];

        if (c == '\\' && i + 1 < s.n) {
            c = s.p[++i];
            if (c == 'n')
                c = '\n';
            if (c == 't')
                c = '\t';
        }
        buf_put(b, (struct str){&c, 1});
    }
}

static void put_single_quoted(struct buf *b, struct str s)
{
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == '\'' && (i + 1 == s.n || s.p[i + 1] != '\''))
            return;
        i += s.p[i] == '\'';
        buf_put(b, (struct str){&s.p[i], 1});
    }
}

/* Up to a comment. */
static struct str plain(struct str s)
{
    for (size_t i = 1; i < s.n; i++)
        if (s.p[i] == '#' && isspace((unsigned char)s.p[i - 1]))
            s.n = i - 1;
    return str_trim(s);
}

/* The value behind a key, with the lines that continue it, in b. */
static void read_value(struct str first, struct str *text, struct buf *b)
{
    bool block = first.n && (first.p[0] == '|' || first.p[0] == '>');
    bool lines = block && first.p[0] == '|';
    struct str more;

    buf_clear(b);
    if (first.n && first.p[0] == '"')
        put_double_quoted(b, first);
    else if (first.n && first.p[0] == '\'')
        put_single_quoted(b, first);
    else if (!block)
        buf_put(b, plain(first));
    while (next_more(text, &more)) {
        if (b->n > 0 && more.n > 0)
            buf_put(b, lines ? STR("\n") : STR(" "));
        buf_put(b, more);
    }
}

/* --- all of it --- */

static bool is_fence(struct str line)
{
    return str_is(str_trim(line), "---");
}

static int take_name(struct str value, struct skill_front_matter *ret, struct err *e)
{
    bool good = value.n > 0 && value.n < sizeof(ret->name);

    for (size_t i = 0; good && i < value.n; i++)
        good = islower((unsigned char)value.p[i]) || isdigit((unsigned char)value.p[i]) ||
               value.p[i] == '-';
    if (good && str_to_cstr(value, ret->name, sizeof(ret->name)))
        return 0;
    return err_set(e, ERR_CALLER,
                   "SKILL.md: name: 1 to %zu small letters, digits and hyphens are expected",
                   sizeof(ret->name) - 1);
}

static int take_description(struct str value, struct skill_front_matter *ret, struct err *e)
{
    if (value.n > 0 && str_utf8_len(value) == value.n &&
        str_to_cstr(value, ret->description, sizeof(ret->description)))
        return 0;
    return err_set(e, ERR_CALLER, "SKILL.md: description: 1 to %zu bytes of text are expected",
                   sizeof(ret->description) - 1);
}

int skill_front_matter_read(struct str text, struct skill_front_matter *ret, struct err *e)
{
    AUTO(buf_done) struct buf value = BUF(SKILL_MATTER_MAX);
    struct str line;

    *ret = (struct skill_front_matter){0};
    if (text.n >= 3 && memcmp(text.p, "\xef\xbb\xbf", 3) == 0)
        text = str_from(text, 3);
    if (!next_line(&text, &line) || !is_fence(line))
        return err_set(e, ERR_CALLER,
                       "SKILL.md: it begins with a line ---, then name: and description:, then a "
                       "line ---");
    while (next_line(&text, &line) && !is_fence(line)) {
        const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
        struct str key = {line.p, colon ? (size_t)(colon - line.p) : 0};

        if (is_indented(line) || !colon)
            continue;
        read_value(str_trim(str_from(line, key.n + 1)), &text, &value);
        if (str_is(key, "name") && take_name(buf_str(&value), ret, e) < 0)
            return -1;
        if (str_is(key, "description") && take_description(buf_str(&value), ret, e) < 0)
            return -1;
    }
    if (!*ret->name || !*ret->description)
        return err_set(e, ERR_CALLER, "SKILL.md: its front matter has no %s",
                       *ret->name ? "description" : "name");
    return 0;
}
