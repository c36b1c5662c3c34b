/*
 * Tells bare Python code from prose. Two words side by side, outside of strings and
 * brackets, are never Python unless one is a keyword: that catches nearly all prose.
 */
#include "agent/agent_int.h"

#include <ctype.h>

#define DEPTH_MAX 64

struct python_scan {
    const char *p, *end;
    char open[DEPTH_MAX]; /* brackets */
    size_t depth;
    bool does;   /* calls, assigns or imports */
    bool word;   /* the last token was a name, not a keyword ... */
    bool string; /* ... or a string */
};

static bool is_word(char c)
{
    return c == '_' || isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool is_keyword(struct str s)
{
    static const char *const words[] = {
        "and",    "as",   "assert", "async",  "await",    "break", "class", "continue", "def",
        "del",    "elif", "else",   "except", "finally",  "for",   "from",  "global",   "if",
        "import", "in",   "is",     "lambda", "nonlocal", "not",   "or",    "pass",     "raise",
        "return", "try",  "while",  "with",   "yield",    "match", "case",
    };

    for (size_t i = 0; i < COUNT(words); i++)
        if (str_is(s, words[i]))
            return true;
    return false;
}

/* Skips a string behind its prefix. False: the string does not end. */
static bool skip_string(struct python_scan *s)
{
    char quote = *s->p;
    bool triple = s->end - s->p >= 3 && s->p[1] == quote && s->p[2] == quote;

    s->p += triple ? 3 : 1;
    for (; s->p < s->end; s->p++) {
        if (*s->p == '\\' && s->p + 1 < s->end)
            s->p++;
        else if (*s->p == '\n' && !triple)
            return false;
        else if (triple && s->end - s->p >= 3 &&
                 memcmp(s->p, (char[]){quote, quote, quote}, 3) == 0)
            return s->p += 3, true;
        else if (!triple && *s->p == quote)
            return s->p++, true;
    }
    return false;
}

/* False: two names in a row, or a name after a string: prose. */
static bool take_word(struct python_scan *s)
{
    struct str word = {s->p, 0};
    bool keyword, string = s->string;

    s->string = false;
    while (s->p < s->end && is_word(*s->p))
        s->p++, word.n++;
    if (word.n <= 2 && s->p < s->end && (*s->p == '\'' || *s->p == '"'))
        return s->string = string, !s->word; /* a prefix of a string */
    keyword = is_keyword(word);
    s->does |= str_is(word, "import");
    if ((s->word || string) && !keyword)
        return false;
    s->word = !keyword;
    return true;
}

static bool take_bracket(struct python_scan *s)
{
    static const char open[] = "([{", close[] = ")]}";
    const char *at = strchr(open, *s->p);

    if (at) {
        s->does |= *s->p == '(' && s->word;
        if (s->depth == DEPTH_MAX)
            return false;
        s->open[s->depth++] = close[at - open];
        s->word = s->string = false;
    } else {
        if (s->depth == 0 || s->open[--s->depth] != *s->p)
            return false;
        s->word = true;
    }
    s->p++;
    return true;
}

static bool take_sign(struct python_scan *s)
{
    static const char signs[] = "+-*/%@&|^~<>=!.,:;\\";
    char before = s->p[-1], after = (char)(s->p + 1 < s->end ? s->p[1] : '\0');

    if (!strchr(signs, *s->p))
        return false;
    if (*s->p == '=' && after != '=' && !strchr("=!<>", before))
        s->does |= s->depth == 0;
    /* A full stop after a word, at the end of a line or before a blank, ends a sentence. */
    if (*s->p == '.' && (after == '\0' || isspace((unsigned char)after)) &&
        (before == ')' || (is_word(before) && !isdigit((unsigned char)before))))
        return false;
    s->word = s->string = false;
    s->p++;
    return true;
}

static bool take(struct python_scan *s)
{
    char c = *s->p;

    if (c == '\n') {
        s->word = s->word && s->depth > 0;
        s->string = s->string && s->depth > 0;
        return s->p++, true;
    }
    if (isspace((unsigned char)c))
        return s->p++, true;
    if (c == '#') {
        while (s->p < s->end && *s->p != '\n')
            s->p++;
        return true;
    }
    if (is_word(c))
        return take_word(s);
    if (c == '\'' || c == '"') {
        bool joins = s->word;
        s->word = false;
        s->string = true;
        return !joins && skip_string(s);
    }
    if (strchr("()[]{}", c))
        return take_bracket(s);
    return take_sign(s);
}

bool python_likely(struct str text)
{
    AUTO_FREE char *copy = mem_zalloc(text.n + 2); /* a byte before the first, for p[-1] */
    struct python_scan s = {.p = copy + 1, .end = copy + 1 + text.n};

    if (text.n == 0 || memchr(text.p, '\0', text.n))
        return false;
    *copy = '\n';
    memcpy(copy + 1, text.p, text.n);
    while (s.p < s.end)
        if (!take(&s))
            return false;
    return s.depth == 0 && s.does;
}
