/* Results of the editor's view: lines of a text, an image or PDF, the names in a folder. */
#include "doors/anthropic/anthropic_int.h"

#include "record/record.h"

#include <stdlib.h>

#define PICTURE_MAX (5 * MiB)
#define VIEW_MAX    (256 * KiB) /* of text; total_lines shows that there is more */
#define FOLDER_MAX  1000        /* names */
#define FOLDER_DEEP 2           /* levels */

/* --- file types --- */

static bool begins(struct str bytes, size_t at, const char *with)
{
    size_t n = strlen(with);

    return bytes.n >= at + n && memcmp(bytes.p + at, with, n) == 0;
}

/* By the first bytes, as a name can be wrong. */
static const char *kind_of(struct str bytes)
{
    if (begins(bytes, 0, "\x89PNG\r\n\x1a\n") || begins(bytes, 0, "\xff\xd8\xff") ||
        begins(bytes, 0, "GIF87a") || begins(bytes, 0, "GIF89a") ||
        (begins(bytes, 0, "RIFF") && begins(bytes, 8, "WEBP")))
        return "image";
    return begins(bytes, 0, "%PDF-") ? "pdf" : "text";
}

bool text_is_binary(struct str bytes)
{
    return bytes.n > 0 && memchr(bytes.p, '\0', bytes.n);
}

/* --- lines --- */

struct line_range {
    size_t first, last; /* from 1; last SIZE_MAX: to the end */
};

static int read_range(const json_t *v, struct line_range *ret, struct err *e)
{
    const json_t *a = json_array_get(v, 0), *b = json_array_get(v, 1);

    *ret = (struct line_range){1, SIZE_MAX};
    if (!v || json_is_null(v))
        return 0;
    if (json_array_size(v) != 2 || !json_is_integer(a) || !json_is_integer(b) ||
        json_integer_value(a) < 1 ||
        (json_integer_value(b) != -1 && json_integer_value(b) < json_integer_value(a)))
        return err_set(e, ERR_CALLER,
                       "view_range is [first, last] with 1 <= first <= last, or last = -1");
    ret->first = (size_t)json_integer_value(a);
    if (json_integer_value(b) != -1)
        ret->last = (size_t)json_integer_value(b);
    return 0;
}

size_t text_count_lines(struct str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.n; i++)
        count += text.p[i] == '\n';
    return count + (text.n > 0 && text.p[text.n - 1] != '\n');
}

struct str text_cut_line(struct str *text)
{
    const char *end = memchr(text->p, '\n', text->n);
    struct str line = {text->p, end ? (size_t)(end + 1 - text->p) : text->n};

    *text = (struct str){text->p + line.n, text->n - line.n};
    return line;
}

/* As many lines of the range as fit; a part of the first one when it alone is too long. */
static struct str cut(struct str text, struct line_range range, size_t *ret_lines)
{
    struct str shown;

    for (size_t i = 1; i < range.first && text.n > 0; i++)
        (void)text_cut_line(&text);
    shown = (struct str){text.p, 0};
    *ret_lines = 0;
    while (text.n > 0 && *ret_lines <= range.last - range.first) {
        struct str line = text_cut_line(&text);
        if (shown.n + line.n > VIEW_MAX && *ret_lines > 0)
            break;
        shown.n += line.n;
        ++*ret_lines;
    }
    if (shown.n > VIEW_MAX) {
        shown.n = VIEW_MAX;
        shown.n -= utf8_torn(shown);
    } else if (shown.n > 0 && shown.p[shown.n - 1] == '\n') {
        shown.n--;
    }
    return shown;
}

static json_t *result(const char *type, json_t *content, size_t lines, size_t first, size_t total)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:I, s:I}", "type",
                     "text_editor_code_execution_view_result", "file_type", type, "content",
                     content, "num_lines", (json_int_t)lines, "start_line", (json_int_t)first,
                     "total_lines", (json_int_t)total);
}

static json_t *view_whole(const char *type, struct str bytes, struct err *e)
{
    if (bytes.n > PICTURE_MAX) {
        err_set(e, ERR_CALLER, "the file has %zu bytes; at most %zu of a picture or PDF are shown",
                bytes.n, PICTURE_MAX);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:o, s:n, s:n, s:n}", "type",
                     "text_editor_code_execution_view_result", "file_type", type, "content",
                     record_base64(bytes), "num_lines", "start_line", "total_lines");
}

json_t *view_bytes(struct str bytes, const json_t *view_range, struct err *e)
{
    const char *type = kind_of(bytes);
    size_t total, lines;
    struct line_range range;
    struct str shown;

    if (strcmp(type, "text") != 0)
        return view_whole(type, bytes, e);
    if (read_range(view_range, &range, e) < 0)
        return NULL;
    if (text_is_binary(bytes)) {
        err_set(e, ERR_CALLER, "the file is no text; look at it with a command");
        return NULL;
    }
    total = text_count_lines(bytes);
    if (range.first > total && range.first > 1) {
        err_set(e, ERR_CALLER, "view_range begins at line %zu, and the file has %zu", range.first,
                total);
        return NULL;
    }
    shown = cut(bytes, range, &lines);
    return result("text", record_text(shown), lines, range.first, total);
}

/* --- folders --- */

/* The part of a path that is shown: FOLDER_DEEP levels at most. A folder ends with a slash. */
static struct str name_in(struct str path)
{
    size_t deep = 0;

    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '/' && ++deep == FOLDER_DEEP)
            return (struct str){path.p, i + 1};
    return path;
}

/* Files are sorted by path, so those of one folder follow each other. */
json_t *view_folder(const char *folder, const struct space_file *files, size_t count)
{
    size_t n = strlen(folder), lines = 0, total = 0;
    struct str last = {0};
    AUTO(buf_done) struct buf b = BUF(VIEW_MAX);

    for (size_t i = 0; i < count; i++) {
        struct str path = files[i].path, name;
        if (n > 0 && (path.n <= n || memcmp(path.p, folder, n) != 0 || path.p[n] != '/'))
            continue;
        name = name_in((struct str){path.p + (n ? n + 1 : 0), path.n - (n ? n + 1 : 0)});
        if (last.p && str_eq(name, last))
            continue;
        last = name;
        total++;
        if (lines < total - 1 || lines == FOLDER_MAX || b.n + name.n + 1 > VIEW_MAX)
            continue; /* all that follow are left out, too */
        buf_put(&b, lines++ > 0 ? STR("\n") : STR(""));
        buf_put(&b, name);
    }
    return total > 0 || n == 0 ? result("text", record_text(buf_str(&b)), lines, 1, total) : NULL;
}
