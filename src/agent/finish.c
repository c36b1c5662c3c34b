/*
 * Checks a model's answer against what the executions did: code has run, the last execution
 * went well, the files that the answer names exist, its numbers were printed. The words of the
 * answer prove nothing. Each objection is made once. A model that insists has its way: what
 * cannot be traced to an execution is named in the record, and an answer with no execution or
 * no file behind it is incomplete.
 */
#include "agent/agent_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define NAMES_MAX    50
#define NAME_BYTES   200
#define NUMBERS_MAX  200
#define UNTRACED_MAX 20
#define WHY_MAX      KiB

/* --- files --- */

/* Whether text ends with the base name of path. The name may hold blanks. */
static bool ends_with_base(struct str text, struct str path)
{
    struct str base = str_base(path, "/");

    return base.n > 0 && base.n <= text.n &&
           memcmp(text.p + text.n - base.n, base.p, base.n) == 0 &&
           (base.n == text.n || !isalnum((unsigned char)text.p[text.n - base.n - 1]));
}

/* Whether text ends with the name of a file that this run made, was given, or found. */
static bool is_there(const struct run_record *r, struct str text)
{
    const struct {
        const json_t *list;
        const char *key;
    } places[] = {
        {r->files,  "path"},
        {r->inputs, "name"},
        {r->known,  NULL  },
    };
    const json_t *v;
    size_t i;

    for (size_t p = 0; p < COUNT(places); p++)
        json_array_foreach(places[p].list, i, v) {
            if (ends_with_base(text, places[p].key ? json_str(v, places[p].key) : json_text(v)))
                return true;
        }
    return false;
}

static const char *const suffixes[] = {
    ".7z",     ".arrow", ".avro",   ".bmp",    ".bz2",     ".csv",     ".dat",     ".db",
    ".doc",    ".docx",  ".dta",    ".eps",    ".feather", ".geojson", ".gif",     ".gz",
    ".h5",     ".hdf5",  ".htm",    ".html",   ".ini",     ".ipynb",   ".jpeg",    ".jpg",
    ".json",   ".jsonl", ".joblib", ".mat",    ".md",      ".mp3",     ".mp4",     ".ndjson",
    ".npy",    ".npz",   ".ods",    ".odt",    ".onnx",    ".orc",     ".parquet", ".pdf",
    ".pickle", ".pkl",   ".png",    ".ppt",    ".pptx",    ".pth",     ".py",      ".rds",
    ".rtf",    ".sav",   ".sql",    ".sqlite", ".sqlite3", ".svg",     ".tar",     ".tex",
    ".tgz",    ".tif",   ".tiff",   ".toml",   ".tsv",     ".txt",     ".wav",     ".webp",
    ".xls",    ".xlsb",  ".xlsm",   ".xlsx",   ".xml",     ".xz",      ".yaml",    ".yml",
    ".zip",
};

static bool has_suffix(struct str word)
{
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (word.n > n && strncasecmp(word.p + word.n - n, suffixes[i], n) == 0)
            return true;
    }
    return false;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 || (c && strchr("_-./", c));
}

/* Finds the next word of text with the suffix of a file; false: no more. */
static bool next_name(struct str *text, struct str *ret)
{
    while (text->n > 0) {
        struct str word = {text->p, 0};

        while (word.n < text->n && is_name_char(word.p[word.n]))
            word.n++;
        *text = (struct str){text->p + (word.n ? word.n : 1), text->n - (word.n ? word.n : 1)};
        while (word.n > 0 && strchr("./", word.p[word.n - 1]))
            word.n--;
        if (word.n < NAME_BYTES && has_suffix(word) &&
            !(word.n > 2 && word.p[0] == '/' && word.p[1] == '/')) { /* part of a URL */
            *ret = word;
            return true;
        }
    }
    return false;
}

/* A name between quotes may have blanks: the whole of it, where a quote stands on either side. */
static struct str whole_name(struct str answer, struct str name)
{
    const char *end = name.p + name.n, *p = name.p;
    char quote = '\0';

    if (end < answer.p + answer.n && strchr("'\"`*", *end))
        quote = *end;
    while (quote && p > answer.p && end - p < NAME_BYTES && p[-1] != quote && p[-1] != '\n')
        p--;
    if (!quote || p == answer.p || p[-1] != quote ||
        (p - 1 > answer.p && isalnum((unsigned char)p[-2]))) /* an apostrophe */
        return name;
    return (struct str){p, (size_t)(end - p)};
}

/* What an answer names, and whether it can be traced. */
struct traces {
    size_t found;    /* files and numbers that an execution made, printed or was given */
    json_t *files;   /* owned: names that are not there */
    json_t *numbers; /* owned: numbers that no execution printed */
};

static void add_once(json_t *list, json_t *text)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v) {
        if (json_equal(v, text)) {
            json_decref(text);
            return;
        }
    }
    if (json_array_size(list) < UNTRACED_MAX)
        json_array_append_new(list, text);
    else
        json_decref(text);
}

/* Whether text ends with one of the names. */
static bool is_told(const json_t *names, struct str text)
{
    const json_t *v;
    size_t i;

    json_array_foreach(names, i, v) {
        if (ends_with_base(text, json_text(v)))
            return true;
    }
    return false;
}

static void trace_files(struct traces *t, const struct run_record *r, const json_t *act)
{
    struct str answer = json_str(act, "answer"), rest = answer, name;
    const json_t *v;
    size_t i;

    json_array_foreach(json_object_get(act, "files"), i, v) {
        name = json_text(v);
        if (name.n == 0 || i >= NAMES_MAX)
            continue;
        if (is_there(r, name))
            t->found++;
        else
            add_once(t->files, text_value(name));
    }
    for (i = 0; i < NAMES_MAX && next_name(&rest, &name); i++) {
        struct str until = {answer.p, (size_t)(name.p - answer.p) + name.n};
        if (is_there(r, until))
            t->found++;
        else if (!is_told(t->files, until))
            add_once(t->files, text_value(whole_name(answer, name)));
    }
}

/* --- numbers --- */

static void trace_numbers(struct traces *t, const struct run_record *r, const json_t *act)
{
    struct str text = json_str(act, "answer");
    const struct str sources[] = {json_text(r->seen_digits), json_text(r->request),
                                  json_text(r->context)};
    struct numbers_seen seen;
    struct number one, wide;
    struct str rest;

    numbers_see(&seen, sources, COUNT(sources));
    for (size_t i = 0; i < NUMBERS_MAX && number_next(&text, &one);) {
        if (number_widen(&one, &wide, &rest) && number_is_seen(&seen, &wide)) {
            text = rest; /* 1 234 567 is one number, where it was printed as one */
            t->found++;
        } else if (one.digits > 1 && number_is_seen(&seen, &one)) {
            t->found++;
        } else if (one.digits > 1) {
            add_once(t->numbers, text_value(one.shown));
        }
        i += one.digits > 1;
    }
    numbers_seen_done(&seen);
}

/* --- all of it --- */

static bool first_time(bool *said)
{
    bool before = *said;

    *said = true;
    return !before;
}

static struct traces trace(const struct run_record *r, const json_t *act)
{
    struct traces t = {.files = json_array(), .numbers = json_array()};

    trace_files(&t, r, act);
    trace_numbers(&t, r, act);
    return t;
}

static void traces_done(struct traces *t)
{
    json_decref(t->files);
    json_decref(t->numbers);
}

json_t *finish_objection(struct run_record *r, const json_t *act)
{
    AUTO(traces_done) struct traces t = trace(r, act);
    struct str file = json_text(json_array_get(t.files, 0));
    char shown[NAME_SHOWN], why[WHY_MAX];

    if (r->good_runs == 0 && first_time(&r->said_no_run))
        return json_string("Nothing has run well yet, so nothing stands behind this answer. "
                           "Compute it with code first. If that is impossible, finish again and "
                           "say why.");
    if (r->good_runs > 0 && r->last_failed && first_time(&r->said_failed))
        return json_string("The last run failed. Correct it; or finish again with what earlier "
                           "runs printed, and say what failed.");
    if (file.n > 0 && first_time(&r->said_no_file)) {
        name_show(shown, file);
        snprintf(why, sizeof(why),
                 "There is no file %s. Make it, or correct the name, or leave it out.", shown);
        return json_string(why);
    }
    if (json_array_size(t.numbers) > 0 && first_time(&r->said_number)) {
        snprintf(why, sizeof(why),
                 "No run has printed %s. Check the numbers of the answer against what was printed; "
                 "if they are right, finish again.",
                 json_string_value(json_array_get(t.numbers, 0)));
        return json_string(why);
    }
    return NULL;
}

bool finish_is_proven(struct run_record *r, const json_t *act)
{
    AUTO(traces_done) struct traces t = trace(r, act);
    bool proven = r->good_runs > 0 && json_array_size(t.files) == 0 &&
                  (!r->last_failed || (t.found > 0 && json_array_size(t.numbers) == 0));

    json_put(&r->untraced, json_pack("{s:b, s:O, s:O}", "no_run", r->good_runs == 0, "files",
                                     t.files, "numbers", t.numbers));
    return proven;
}
