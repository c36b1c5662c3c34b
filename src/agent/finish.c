/*
 * Checks a model's answer: code has run; the last execution went well, or the answer admits
 * that it failed; the files it names exist; its numbers were printed. Each objection is made
 * once. A model that insists has its way, and the record calls the answer incomplete.
 */
#include "agent/agent_int.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#define NAMES_MAX   50
#define NUMBERS_MAX 200
#define WHY_MAX     KiB

/* --- files --- */

static bool has_name(const json_t *list, const char *key, struct str name)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v) {
        struct str path = key ? json_str(v, key) : json_text(v);
        if (str_eq(str_base(path, "/"), str_base(name, "/")))
            return true;
    }
    return false;
}

/* Whether the file was made by this run, given to it, or there before. */
static bool is_there(const struct run_record *r, struct str name)
{
    return has_name(r->files, "path", name) || has_name(r->inputs, "name", name) ||
           has_name(r->known, NULL, name);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 || (c && strchr("_-./", c));
}

/* Finds the next word of text with the suffix of a file; false: no more. */
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
                !(word.n > 2 && word.p[0] == '/' && word.p[1] == '/')) { /* part of a URL */
                *ret = word;
                return true;
            }
        }
    }
    return false;
}

static bool missing_file(const struct run_record *r, const json_t *act, struct str *ret)
{
    struct str text = json_str(act, "answer");
    const json_t *v;
    size_t i;

    json_array_foreach(json_object_get(act, "files"), i, v) {
        *ret = json_text(v);
        if (ret->n > 0 && i < NAMES_MAX && !is_there(r, *ret))
            return true;
    }
    for (i = 0; i < NAMES_MAX && next_name(&text, ret); i++)
        if (!is_there(r, *ret))
            return true;
    return false;
}

/* --- numbers --- */

/* Finds the next number of at least two digits, without commas: 1,234.50 as 1234.50. */
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
        if (i == 0) /* a word with digits in it is a name */
            while (i < text->n && (isalpha((unsigned char)text->p[i]) || text->p[i] == '_'))
                for (i++; i < text->n && isdigit((unsigned char)text->p[i]);)
                    i++;
        *text = (struct str){text->p + (i ? i : 1), text->n - (i ? i : 1)};
        if (digits >= 2 && !in_word)
            return true;
    }
    return false;
}

static bool is_seen(const struct run_record *r, const char *number)
{
    struct str seen[] = {json_text(r->seen_digits), json_text(r->request), json_text(r->context)};

    for (size_t i = 0; i < COUNT(seen); i++)
        if (seen[i].n && memmem(seen[i].p, seen[i].n, number, strlen(number)))
            return true;
    return false;
}

static bool unseen_number(const struct run_record *r, const json_t *act, char *ret, size_t size)
{
    struct str text = json_str(act, "answer");

    for (size_t i = 0; i < NUMBERS_MAX && next_number(&text, ret, size); i++)
        if (!is_seen(r, ret))
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

static bool first_time(bool *said)
{
    bool before = *said;

    *said = true;
    return !before;
}

json_t *finish_objection(struct run_record *r, const json_t *act)
{
    struct str answer = json_str(act, "answer"), file;
    char number[64], shown[NAME_SHOWN], why[WHY_MAX];

    if (r->good_runs == 0 && !owns_up(answer)) {
        if (first_time(&r->said_no_run))
            return json_string("Nothing has run well yet, so nothing stands behind this answer. "
                               "Compute it with code first, or say in the answer that it failed.");
        r->unproven = true;
    } else if (r->last_failed && !owns_up(answer)) {
        if (first_time(&r->said_failed))
            return json_string(
                "The last run failed. Correct it, or say in the answer what failed.");
        r->unproven = true;
    }
    if (missing_file(r, act, &file)) {
        name_show(shown, file);
        snprintf(why, sizeof(why),
                 "There is no file %s. Make it, or correct the name, or leave it out.", shown);
        if (first_time(&r->said_no_file))
            return json_string(why);
        r->unproven = true;
    }
    if (unseen_number(r, act, number, sizeof(number)) && first_time(&r->said_number)) {
        snprintf(why, sizeof(why),
                 "No run has printed %s. Check the numbers of the answer against what was printed; "
                 "if they are right, finish again.",
                 number);
        return json_string(why);
    }
    return NULL;
}
