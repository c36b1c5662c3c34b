/*
 * Conditions on a call: they decide whether a person must approve it.
 *
 *     when  = rule { "," rule }            any of them
 *     rule  = test { "&" test }            all of them
 *     test  = name op word { "|" word }    any of them
 *     op    = "=" | "!=" | "~" | "!~"      the whole value; or a part of it
 *
 * A word of "=" may have * for anything and ? for one byte. A word with a blank or one
 * of , & | " in it stands in double quotes, where \ keeps the next character as it is.
 * There are no regular expressions: matching takes time that the text alone decides.
 */
#include "service/service_int.h"

#include <stdlib.h>

#define RULES_MAX 64 /* tests in all */
#define WORDS_MAX 64 /* of one test */

struct test {
    char *name; /* owned */
    bool part;  /* ~ */
    bool not ;
    bool last;    /* of its rule */
    char **words; /* owned, and each */
    size_t count;
};

struct when {
    unsigned refs;      /* counted on the loop */
    struct test *tests; /* owned */
    size_t count;
};

struct when *when_hold(struct when *w)
{
    if (w)
        w->refs++;
    return w;
}

void when_free(struct when *w)
{
    if (!w || --w->refs > 0)
        return;
    for (size_t i = 0; i < w->count; i++) {
        for (size_t k = 0; k < w->tests[i].count; k++)
            free(w->tests[i].words[k]);
        free(w->tests[i].words);
        free(w->tests[i].name);
    }
    free(w->tests);
    free(w);
}

/* --- reading --- */

static const char *skip(const char *p)
{
    return p + strspn(p, " \t");
}

static int blame(const char *p, const char *what, struct err *e)
{
    char shown[NAME_SHOWN];

    if (!*p)
        return err_set(e, ERR_CALLER, "%s at its end", what);
    return err_set(e, ERR_CALLER, "%s before '%s'", what, name_show(shown, str_of(p)));
}

static const char *read_name(const char *p, struct test *t, struct err *e)
{
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    if (n == 0)
        return blame(p, "the name of an argument is missing", e), NULL;
    t->name = mem_strndup((struct str){p, n});
    p = skip(p + n);
    t->not = *p == '!';
    p += t->not ;
    t->part = *p == '~';
    if (*p != '=' && *p != '~')
        return blame(p, "=, !=, ~ or !~ is missing", e), NULL;
    return skip(p + 1);
}

/* Within quotes. ret has room for all of it. */
static const char *read_quoted(const char *p, char *ret, struct err *e)
{
    for (p++; *p && *p != '"'; p++) {
        p += *p == '\\' && p[1];
        *ret++ = *p;
    }
    *ret = '\0';
    if (!*p)
        return blame(p, "a quotation mark is missing", e), NULL;
    return skip(p + 1);
}

static const char *read_bare(const char *p, char *ret)
{
    size_t n = strcspn(p, ",&|\"");
    const char *end = p + n;

    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    memcpy(ret, p, n);
    ret[n] = '\0';
    return end;
}

static const char *read_word(const char *p, struct test *t, struct err *e)
{
    AUTO_FREE char *word = mem_zalloc(strlen(p) + 1);
    const char *end = *p == '"' ? read_quoted(p, word, e) : read_bare(p, word);

    if (!end)
        return NULL;
    if (!*word)
        return blame(end, "a value is missing", e), NULL;
    if (*end && !strchr(",&|", *end))
        return blame(end, "a comma, & or | is missing", e), NULL;
    if (t->count == WORDS_MAX)
        return blame(p, "there are more values than one argument may have", e), NULL;
    t->words = mem_realloc(t->words, (t->count + 1) * sizeof(*t->words));
    t->words[t->count++] = take_ptr(&word);
    return end;
}

/* Returns what follows, or NULL. */
static const char *read_test(const char *p, struct test *t, struct err *e)
{
    p = read_name(p, t, e);
    while (p) {
        p = read_word(p, t, e);
        if (!p || *p != '|')
            break;
        p = skip(p + 1);
    }
    if (p)
        t->last = *p != '&';
    return p;
}

struct when *when_new(const char *text, struct err *e)
{
    struct when *w = mem_zalloc(sizeof(*w));
    const char *p = skip(text);

    w->refs = 1;
    w->tests = mem_zalloc(RULES_MAX * sizeof(*w->tests));
    while (p && w->count < RULES_MAX) {
        p = read_test(p, &w->tests[w->count++], e);
        if (p && !*p)
            return w;
        p = p ? skip(p + 1) : NULL;
    }
    if (p)
        err_set(e, ERR_CALLER, "there are more than %d conditions", RULES_MAX);
    when_free(w);
    return NULL;
}

/* --- matching --- */

/* In time of the length of s times that of the pattern at worst: only the last * is gone back to.
 */
static bool is_like(struct str s, const char *pattern)
{
    const char *star = NULL;
    size_t i = 0, kept = 0;

    while (i < s.n) {
        if (*pattern == '*') {
            star = pattern++;
            kept = i;
        } else if (*pattern == '?' || (*pattern && *pattern == s.p[i])) {
            pattern++;
            i++;
        } else if (star) {
            pattern = star + 1;
            i = ++kept;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool has_word(const struct test *t, struct str value)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->part ? value.n && memmem(value.p, value.n, t->words[i], strlen(t->words[i])) != NULL
                    : is_like(value, t->words[i]))
            return true;
    return false;
}

/* A string is itself; anything else is its JSON, owned by *ret_text. p NULL: it is not there. */
static struct str value_of(const char *name, const struct approval_spec *spec, char **ret_text)
{
    const json_t *v = json_object_get(spec->args, name);

    *ret_text = NULL;
    if (strcmp(name, "tool") == 0)
        return spec->tool;
    if (strcmp(name, "language") == 0)
        return spec->language;
    if (strcmp(name, "code") == 0)
        return spec->code;
    if (json_is_string(v))
        return (struct str){json_string_value(v), json_string_length(v)};
    if (!v)
        return (struct str){0};
    *ret_text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    return str_of(*ret_text);
}

/* A rule about run_code or run_shell is about the tools of every door that do the same. */
static bool is_kind(const struct test *t, const struct approval_spec *spec)
{
    return strcmp(t->name, "tool") == 0 &&
           has_word(t, str_is(spec->language, "shell") ? STR("run_shell") : STR("run_code"));
}

static bool holds(const struct test *t, const struct approval_spec *spec)
{
    AUTO_FREE char *text = NULL;
    struct str value = value_of(t->name, spec, &text);

    return ((value.p && has_word(t, value)) || is_kind(t, spec)) != t->not ;
}

bool when_holds(const struct when *w, const struct approval_spec *spec)
{
    bool all = true;

    if (!w)
        return true;
    for (size_t i = 0; i < w->count; i++) {
        all = all && holds(&w->tests[i], spec);
        if (w->tests[i].last && all)
            return true;
        all |= w->tests[i].last;
    }
    return false;
}
