/*
 * A name for what was fetched, from bytes that a stranger's server chose. It
 * becomes the name of a file, so it is decoded first and cut to its last segment
 * afterwards: "..%2f..%2fetc%2fpasswd" is "passwd".
 */
#include "fetch/fetch_int.h"

#include <stdio.h>
#include <strings.h>

#define DECODED_MAX (8 * KiB)

/* What is not an escape stands for itself. Returns how many bytes ret got. */
static size_t decode(struct str s, char *ret, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n && n < max; i++) {
        int byte = percent_at(s, i);

        if (byte < 0) {
            ret[n++] = s.p[i];
        } else {
            ret[n++] = (char)byte;
            i += 2;
        }
    }
    return n;
}

/* Control characters, also those of Latin-1 that UTF-8 writes in two bytes. */
static bool is_control(struct str c)
{
    unsigned char first = (unsigned char)c.p[0];

    if (c.n == 2)
        return first == 0xc2 && (unsigned char)c.p[1] < 0xa0;
    return c.n == 1 && (first < ' ' || first == 0x7f);
}

/* The last segment of a decoded path as a file name; false when nothing is left of it. */
static bool clean(struct str path, char *ret, size_t size)
{
    size_t n = 0, max = size - 1 < FILE_NAME_MAX ? size - 1 : FILE_NAME_MAX;

    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == '/' || path.p[i - 1] == '\\') {
            path = (struct str){path.p + i, path.n - i};
            break;
        }
    while (path.n > 0) {
        size_t len = utf8_char(path);
        struct str one = len ? (struct str){path.p, len} : STR("_");
        size_t step = len ? len : 1;
        if (n + one.n > max)
            break;
        if (!is_control(one) && !(n == 0 && one.p[0] == ' ')) {
            memcpy(ret + n, one.p, one.n);
            n += one.n;
        }
        path = (struct str){path.p + step, path.n - step};
    }
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
    return n > 0 && strcmp(ret, ".") != 0 && strcmp(ret, "..") != 0;
}

static struct str skip_to(struct str s, const char *any)
{
    while (s.n > 0 && !strchr(any, s.p[0] ? s.p[0] : 'x'))
        s = (struct str){s.p + 1, s.n - 1};
    return s;
}

/* From the slash after the host to the query or the fragment. */
static struct str url_path(struct str url)
{
    const char *scheme = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
    struct str path, rest;

    if (!scheme)
        return (struct str){0};
    path = (struct str){scheme + 3, url.n - (size_t)(scheme + 3 - url.p)};
    path = skip_to(path, "/?#");
    rest = skip_to(path, "?#");
    path.n -= rest.n;
    return path;
}

/* --- parameters, as in a header: RFC 6266 --- */

/* Takes "; name=value" off the front. The value is as it stood, without its quotes but with its
 * backslashes. */
static bool next_param(struct str *s, struct str *name, struct str *value)
{
    struct str rest = skip_to(*s, ";");
    size_t end;

    if (rest.n == 0)
        return false;
    *name = (struct str){rest.p + 1, rest.n - 1};
    rest = skip_to(*name, "=;");
    name->n -= rest.n;
    *name = str_trim(*name);
    *value = (struct str){0};
    *s = rest;
    if (rest.n == 0 || rest.p[0] != '=')
        return true;
    rest = str_trim((struct str){rest.p + 1, rest.n - 1});
    if (rest.n > 0 && rest.p[0] == '"') {
        for (end = 1; end < rest.n && rest.p[end] != '"'; end++)
            end += rest.p[end] == '\\' && end + 1 < rest.n;
        *value = (struct str){rest.p + 1, end - 1};
    } else {
        end = rest.n - skip_to(rest, ";").n;
        *value = str_trim((struct str){rest.p, end});
    }
    *s = (struct str){rest.p + end, rest.n - end};
    return true;
}

static bool is_param(struct str name, const char *want)
{
    return name.p && name.n == strlen(want) && strncasecmp(name.p, want, name.n) == 0;
}

/* --- the name of a URL --- */

/* By which programs know what is in a file that has no name of its own. */
static const char *suffix_of(struct str mime)
{
    static const char *const known[][2] = {
        {"text/csv",                                                          ".csv" },
        {"text/tab-separated-values",                                         ".tsv" },
        {"text/plain",                                                        ".txt" },
        {"text/markdown",                                                     ".md"  },
        {"text/html",                                                         ".html"},
        {"application/json",                                                  ".json"},
        {"application/pdf",                                                   ".pdf" },
        {"application/zip",                                                   ".zip" },
        {"application/vnd.ms-excel",                                          ".xls" },
        {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"},
        {"image/png",                                                         ".png" },
        {"image/jpeg",                                                        ".jpg" },
        {"image/gif",                                                         ".gif" },
        {"image/svg+xml",                                                     ".svg" },
    };

    for (size_t i = 0; i < COUNT(known); i++)
        if (is_param(mime, known[i][0]))
            return known[i][1];
    return "";
}

/* data:text/csv;name=a.csv;base64,... has no name by the standard, but many writers give one. */
static void data_url_name(struct str url, char *ret, size_t size)
{
    struct str head = {url.p + 5, url.n - 5 - skip_to(str_from(url, 5), ",").n}, name, value;
    struct str mime = {head.p, head.n - skip_to(head, ";").n};
    char text[DECODED_MAX];

    while (next_param(&head, &name, &value))
        if ((is_param(name, "name") || is_param(name, "filename")) &&
            clean((struct str){text, decode(value, text, sizeof(text))}, ret, size))
            return;
    snprintf(ret, size, "download%s", suffix_of(str_trim(mime)));
}

void url_file_name(struct str url, char *ret, size_t size)
{
    char path[DECODED_MAX];
    struct str raw = url_path(url);
    size_t n;

    assert(size >= 16);
    if (url.n > 5 && strncasecmp(url.p, "data:", 5) == 0) {
        data_url_name(url, ret, size);
        return;
    }
    /* The end is what counts. An escape cut in two by this is not in the last segment, unless that
     * is longer than a name may be. */
    if (raw.n > sizeof(path))
        raw = (struct str){raw.p + raw.n - sizeof(path), sizeof(path)};
    n = decode(raw, path, sizeof(path));
    if (!clean((struct str){path, n}, ret, size))
        strcpy(ret, "download"); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy) */
}

/* --- Content-Disposition --- */

static size_t put_latin1(struct str s, char *ret, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n && n + 2 <= max; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 0x80)
            ret[n++] = (char)(0xc0 | c >> 6);
        ret[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    return n;
}

/* charset'language'escaped, RFC 8187. */
static size_t extended(struct str value, char *ret, size_t max)
{
    struct str lang = skip_to(value, "'"), text;
    struct str charset = {value.p, value.n - lang.n};
    char bytes[DECODED_MAX];
    size_t n;

    if (lang.n == 0)
        return 0;
    text = skip_to((struct str){lang.p + 1, lang.n - 1}, "'");
    if (text.n == 0)
        return 0;
    n = decode((struct str){text.p + 1, text.n - 1}, bytes, sizeof(bytes));
    if (is_param(charset, "ISO-8859-1"))
        return put_latin1((struct str){bytes, n}, ret, max);
    if (!is_param(charset, "UTF-8"))
        return 0;
    memcpy(ret, bytes, n);
    return n;
}

static size_t unquoted(struct str value, char *ret, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < value.n && n < max; i++) {
        i += value.p[i] == '\\' && i + 1 < value.n;
        ret[n++] = value.p[i];
    }
    return n;
}

bool disposition_file_name(struct str value, char *ret, size_t size)
{
    char plain[2 * DECODED_MAX], star[2 * DECODED_MAX];
    size_t plain_n = 0, star_n = 0;
    struct str name, text;

    while (next_param(&value, &name, &text)) {
        if (is_param(name, "filename*") && star_n == 0)
            star_n = extended(text, star, sizeof(star));
        else if (is_param(name, "filename") && plain_n == 0)
            plain_n = unquoted(text, plain, sizeof(plain));
    }
    return (star_n > 0 && clean((struct str){star, star_n}, ret, size)) ||
           (plain_n > 0 && clean((struct str){plain, plain_n}, ret, size));
}
