/* Reads and classifies the errors of endpoints. */
#include "base/json.h"
#include "model/model_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define TEXT_SHOWN  300
#define WORDS_MAX   (64 * KiB)
#define ERROR_DEPTH 3 /* levels at which a message is looked for */

/* --- reading --- */

static bool has(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

/* {"loc": ["body", "tools"], "msg": "..."}, as FastAPI has it. */
static char *text_of_detail(const json_t *detail)
{
    const json_t *first = json_array_get(detail, 0), *place;
    char text[512] = "";
    size_t i, n = 0;

    json_array_foreach(json_object_get(first, "loc"), i, place) {
        if (json_is_string(place) && n < sizeof(text))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "." : "",
                                  json_string_value(place));
    }
    if (n < sizeof(text))
        snprintf(text + n, sizeof(text) - n, "%s%s", n ? ": " : "", text_of(first, "msg"));
    return mem_strdup(text);
}

/* Finds the most specific message. */
static char *text_of_error(const json_t *error)
{
    static const char *const keys[] = {"message", "error", "detail", "msg"};

    for (int depth = 0; depth < ERROR_DEPTH && error; depth++) {
        const json_t *inner = NULL;

        if (json_is_string(error))
            return mem_strdup(json_string_value(error));
        if (json_is_array(error))
            return text_of_detail(error);
        for (size_t i = 0; i < COUNT(keys) && !inner; i++) {
            inner = json_object_get(error, keys[i]);
            inner = json_is_null(inner) ? NULL : inner;
        }
        error = inner;
    }
    return mem_strdup(json_string_value(error) ? json_string_value(error) : "");
}

/* The HTTP status that stands for an error in a stream: as a number or as a word. */
static int status_of(const json_t *error)
{
    static const struct {
        const char *word;
        int status;
    } rows[] = {
        {"overloaded",          529},
        {"rate_limit",          429},
        {"timeout",             504},
        {"authentication",      401},
        {"permission",          403},
        {"not_found",           404},
        {"too_large",           413},
        {"invalid_request",     400},
        {"context_length",      400},
        {"exceed_context_size", 400},
    };
    const json_t *code = json_object_get(error, "code");
    json_int_t n = json_integer_value(code);

    if (n >= 400 && n < 600)
        return (int)n;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (has(text_of(error, "type"), rows[i].word) || has(text_of(error, "code"), rows[i].word))
            return rows[i].status;
    return 500;
}

void endpoint_error_of_json(struct endpoint_error *p, const json_t *error)
{
    const json_t *inner = json_object_get(error, "error");
    const json_t *most = json_is_object(inner) ? inner : error;
    AUTO(buf_done) struct buf words = BUF(WORDS_MAX);

    *p = (struct endpoint_error){.text = text_of_error(error), .status = status_of(most)};
    if (buf_printf(&words, "%s %s %s %s", text_of(most, "type"), text_of(most, "code"),
                   text_of(most, "param"), p->text) < 0)
        words.n = 0;
    p->words = mem_strndup(buf_str(&words));
}

void endpoint_error_of_body(struct endpoint_error *p, struct str body)
{
    json_t *error = json_load_limited(body, JSON_ALLOW_NUL);

    if (json_is_object(error)) {
        endpoint_error_of_json(p, error);
    } else {
        *p = (struct endpoint_error){.text = mem_strndup(body), .words = mem_strndup(body)};
    }
    json_decref(error);
}

void endpoint_error_done(struct endpoint_error *p)
{
    free(p->text);
    free(p->words);
    *p = (struct endpoint_error){0};
}

bool endpoint_error_mentions(const struct endpoint_error *p, const char *word)
{
    return has(p->words, word);
}

static bool mentions_any(const struct endpoint_error *p, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (endpoint_error_mentions(p, words[i]))
            return true;
    return false;
}

/* --- classifying --- */

static bool is_too_long(const struct endpoint_error *p)
{
    static const char *const words[] = {
        "context_length_exceeded", "maximum context length",
        "exceed_context_size",     "context size",
        "context window",          "context limit",
        "prompt is too long",      "input is too long",
        "reduce the length",       "request_too_large",
        "too many tokens",
    };

    return mentions_any(p, words, COUNT(words));
}

/* Whether tools are refused altogether, not one tool that is wrong. */
static bool is_about_tools(const struct endpoint_error *p)
{
    static const char *const what[] = {"tool", "function call", "functions"};
    static const char *const how[] = {
        "support",    "unknown",       "unrecognized", "unrecognised",
        "unexpected", "not permitted", "not allowed",  "not enabled",
        "--enable",   "extra inputs",  "extra fields", "unsupported",
    };
    static const char *const one[] = {"tools[", "tools.", "schema", "function_parameters"};

    return mentions_any(p, what, COUNT(what)) && mentions_any(p, how, COUNT(how)) &&
           !mentions_any(p, one, COUNT(one));
}

enum model_trouble trouble_of(int status, const struct endpoint_error *p, bool with_tools)
{
    bool theirs = status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
    bool keys = status == 401 || status == 402 || status == 403;

    if (status == 429 && endpoint_error_mentions(p, "insufficient_quota"))
        return MODEL_DENIED; /* waiting does not help */
    if (status == 413 || (status != 429 && !keys && is_too_long(p)))
        return MODEL_TOO_LONG;
    if (with_tools && !theirs && !keys && is_about_tools(p))
        return MODEL_NO_TOOLS;
    return theirs ? MODEL_BUSY : MODEL_DENIED;
}

/* --- the message --- */

/* Replaces the key by stars, in upper and lower case. */
static void scrub(char *text, const char *key)
{
    size_t n = key ? strlen(key) : 0;

    for (char *at = text; n > 0 && (at = strcasestr(at, key)); at++) {
        memset(at, '*', n < 3 ? n : 3);
        if (n > 3)
            memmove(at + 3, at + n, strlen(at + n) + 1);
    }
}

/* Whether a character leaves a line of text as it is. */
static bool is_plain(struct str ch)
{
    char shown[NAME_SHOWN];

    return str_is(ch, "\\") || (ch.n > 0 && !str_is(ch, " ") && str_is(ch, name_show(shown, ch)));
}

/* On one line, of bounded length. */
static void show(char ret[TEXT_SHOWN], const char *text)
{
    struct str s = str_of(text);
    size_t n = 0;

    while (s.n > 0 && n + 8 < TEXT_SHOWN) {
        size_t took = utf8_char(s);

        if (is_plain((struct str){s.p, took})) {
            memcpy(ret + n, s.p, took);
            n += took;
        } else if (n > 0 && ret[n - 1] != ' ') {
            ret[n++] = ' ';
        }
        s = (struct str){s.p + (took ? took : 1), s.n - (took ? took : 1)};
    }
    if (s.n > 0) {
        memcpy(ret + n, "...", 3);
        n += 3;
    }
    ret[n] = '\0';
}

void failure_say(struct model_failure *f, const char *label, const char *key, const char *what)
{
    static const enum err_kind kinds[] = {
        [MODEL_BUSY] = ERR_BUSY,     [MODEL_TOO_LONG] = ERR_LIMIT, [MODEL_NO_TOOLS] = ERR_CALLER,
        [MODEL_DENIED] = ERR_DENIED, [MODEL_NONSENSE] = ERR_HOST,
    };
    AUTO_FREE char *clean = mem_strdup(what);
    char shown[TEXT_SHOWN];

    scrub(clean, key);
    show(shown, clean);
    if (f->status >= 300)
        err_set(&f->err, kinds[f->trouble], "the model %s answered %d%s%s", label, f->status,
                *shown ? ": " : "", shown);
    else
        err_set(&f->err, kinds[f->trouble], "the model %s %s", label, shown);
    f->err.retry_s = (int)((f->retry_ms + 999) / 1000);
}
