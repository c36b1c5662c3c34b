/*
 * Whether an answer may be one. A run stands behind it, and the last one went well or the
 * answer says that it did not; every file it names is there; its numbers are among what
 * was printed. Each objection is made once: a model that insists has its way, and the
 * record says that the answer is incomplete where that is so.
 */
#include "agent/agent_int.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#define NAMES_MAX   50
#define NUMBERS_MAX 200
#define WHY_MAX     KiB

/* --- files --- */

static struct str base_of(struct str path)
{
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;

    return slash ? (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)} : path;
}

static bool has_name(const json_t *list, const char *key, struct str name)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        struct str path =
            key ? json_str(v, key) : (struct str){json_string_value(v), json_string_length(v)};
        if (str_eq(base_of(path), base_of(name)))
            return true;
    }
    return false;
}

/* Made by this loop, given to it, or there before. */
static bool is_there(const json_t *record, struct str name)
{
    const json_t *inner = json_object_get(record, "inner");

    return has_name(json_object_get(record, "files"), "path", name) ||
           has_name(json_object_get(inner, "inputs"), "name", name) ||
           has_name(json_object_get(inner, "known"), NULL, name);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 || (c && strchr("_-./", c));
}

/* The next word of text that is a file's name by its suffix; false: there is none. */
static bool next_name(struct str *text, struct str *ret)
{
    static const char *const suffixes[] = {".png", ".jpg", ".jpeg",    ".svg",  ".gif", ".pdf",
                                           ".csv", ".tsv", ".xlsx",    ".json", ".txt", ".html",
                                           ".md",  ".zip", ".parquet", ".docx", ".pptx"};

    while (text->n > 0) {
        struct str word = {text->p, 0};

        while (word.n < text->n && is_name_char(word.p[word.n]))
            word.n++;
        *text = (struct str){text->p + (word.n ? word.n : 1), text->n - (word.n ? word.n : 1)};
        while (word.n > 0 && strchr("./", word.p[word.n - 1]))
            word.n--;
        for (size_t i = 0; i < COUNT(suffixes); i++) {
            size_t n = strlen(suffixes[i]);
            if (word.n > n && word.n < 200 &&
                strncasecmp(word.p + word.n - n, suffixes[i], n) == 0 &&
                !(word.n > 2 && word.p[0] == '/' && word.p[1] == '/')) { /* of a URL */
                *ret = word;
                return true;
            }
        }
    }
    return false;
}

static bool missing_file(const json_t *record, const json_t *act, struct str *ret)
{
    struct str text = json_str(act, "answer");
    const json_t *v;
    size_t i;

    json_array_foreach(json_object_get(act, "files"), i, v)
    {
        *ret = (struct str){json_string_value(v), json_string_length(v)};
        if (ret->n > 0 && i < NAMES_MAX && !is_there(record, *ret))
            return true;
    }
    for (i = 0; i < NAMES_MAX && next_name(&text, ret); i++)
        if (!is_there(record, *ret))
            return true;
    return false;
}

/* --- numbers --- */

/* 1,234.50 as 1234.50: digits, a point between them. At least two digits. */
static bool next_number(struct str *text, char *ret, size_t size)
{
    while (text->n > 0) {
        size_t i = 0, n = 0, digits = 0;
        bool in_word = false;

        while (i < text->n && isdigit((unsigned char)text->p[i])) {
            bool joins = i + 2 < text->n && isdigit((unsigned char)text->p[i + 2]) &&
                         (text->p[i + 1] == '.' || text->p[i + 1] == ',');
            if (n + 2 < size)
                ret[n++] = text->p[i], digits++;
            i++;
            if (joins) {
                if (text->p[i] == '.' && n + 2 < size)
                    ret[n++] = '.';
                i++;
            }
        }
        ret[n] = '\0';
        in_word = i > 0 && i < text->n && (isalpha((unsigned char)text->p[i]) || text->p[i] == '_');
        if (i == 0) /* a word and its digits are a name */
            while (i < text->n && (isalpha((unsigned char)text->p[i]) || text->p[i] == '_'))
                for (i++; i < text->n && isdigit((unsigned char)text->p[i]);)
                    i++;
        *text = (struct str){text->p + (i ? i : 1), text->n - (i ? i : 1)};
        if (digits >= 2 && !in_word)
            return true;
    }
    return false;
}

static bool is_seen(const json_t *record, const char *number)
{
    const json_t *inner = json_object_get(record, "inner");
    struct str seen[] = {json_str(inner, "seen_digits"), json_str(record, "request"),
                         json_str(record, "context")};

    for (size_t i = 0; i < COUNT(seen); i++)
        if (seen[i].n && memmem(seen[i].p, seen[i].n, number, strlen(number)))
            return true;
    return false;
}

static bool unseen_number(const json_t *record, const json_t *act, char *ret, size_t size)
{
    struct str text = json_str(act, "answer");

    for (size_t i = 0; i < NUMBERS_MAX && next_number(&text, ret, size); i++)
        if (!is_seen(record, ret))
            return true;
    return false;
}

/* --- failures --- */

static bool owns_up(struct str answer)
{
    static const char *const words[] = {
        "fail",       "error",    "could not", "couldn't",  "unable",     "cannot", "can't",
        "incomplete", "not able", "did not",   "no answer", "impossible", "missing"};
    AUTO_FREE char *text = mem_strndup(answer);

    for (size_t i = 0; i < COUNT(words); i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

/* --- all of it --- */

static bool first_time(json_t *inner, const char *what)
{
    bool before = json_on(inner, what);

    json_put_on(inner, what, true);
    return !before;
}

json_t *finish_objection(json_t *record, const json_t *act)
{
    json_t *inner = json_object_get(record, "inner");
    struct str answer = json_str(act, "answer"), file;
    char number[64], shown[NAME_SHOWN], why[WHY_MAX];

    if (json_num(inner, "good_runs") == 0 && !owns_up(answer)) {
        if (first_time(inner, "said_no_run"))
            return json_string("Nothing has run well yet, so nothing stands behind this answer. "
                               "Compute it with code first, or say in the answer that it failed.");
        json_put_on(inner, "unproven", true);
    } else if (json_on(inner, "last_failed") && !owns_up(answer)) {
        if (first_time(inner, "said_failed"))
            return json_string(
                "The last run failed. Correct it, or say in the answer what failed.");
        json_put_on(inner, "unproven", true);
    }
    if (missing_file(record, act, &file)) {
        name_show(shown, file);
        snprintf(why, sizeof(why),
                 "There is no file %s. Make it, or correct the name, or leave it out.", shown);
        if (first_time(inner, "said_no_file"))
            return json_string(why);
        json_put_on(inner, "unproven", true);
    }
    if (unseen_number(record, act, number, sizeof(number)) && first_time(inner, "said_number")) {
        snprintf(why, sizeof(why),
                 "No run has printed %s. Check the numbers of the answer against what was printed; "
                 "if they are right, finish again.",
                 number);
        return json_string(why);
    }
    return NULL;
}
