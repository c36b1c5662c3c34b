/*
 * The text editor tool on any path and any two texts: a path stays in the workspace, what
 * is shown is text and no more than there is, and a hunk applied to the one text gives the
 * other.
 *
 * links: src/doors/anthropic/hunk.c src/doors/anthropic/names.c src/doors/anthropic/paths.c
 * links: src/doors/anthropic/view.c src/engine/limits.c src/engine/outcome.c
 * links: src/engine/workspace.c src/engine/event.c src/engine/tree.c
 * links: src/record/record.c src/service/path.c
 */
#include "doors/anthropic/anthropic_int.h"

#include "support/fuzz.h"

static json_int_t number(const json_t *v, const char *name)
{
    return json_integer_value(json_object_get(v, name));
}

static void look_at_names(struct str text)
{
    static const struct editor_dirs dirs = {"input", NULL};
    char path[SPACE_PATH_MAX], name[FILE_NAME_MAX + 1], header[DISPOSITION_MAX];
    struct err e;

    if (editor_path(text, &dirs, path, &e) == 0) {
        EXPECT(path[0] != '/' && strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
        EXPECT(strcmp(path, "..") != 0);
    }
    if (file_name_take(text, file_mime_take(text), name, &e) == 0) {
        EXPECT(*name && !strchr(name, '/') && strcmp(name, "..") != 0);
        disposition_print(str_of(name), header);
        EXPECT(!strpbrk(header, "\r\n\""));
    }
}

static void look_at_view(struct str text, json_int_t first, json_int_t last)
{
    json_t *range = json_pack("[I, I]", first, last), *v;
    struct err e = {0};

    v = view_bytes(text, first ? range : NULL, &e);
    EXPECT((v == NULL) == (e.kind == ERR_CALLER));
    EXPECT(!v || number(v, "num_lines") <= number(v, "total_lines"));
    EXPECT(!v || json_is_string(json_object_get(v, "content")));
    json_decref(range);
    json_decref(v);
}

/* A line as a hunk has it, at the place where the text is read. */
static void expect_line(struct str *text, struct str line)
{
    EXPECT(text->n > 0);
    struct str have = text_cut_line(text);
    EXPECT(have.n >= line.n && memcmp(have.p, line.p, line.n) == 0);
}

static void look_at_hunk(struct str before, struct str after)
{
    json_t *v = hunk_value(before, after), *line;
    struct str a = before, b = after;
    json_int_t from = number(v, "old_start") - (number(v, "old_lines") > 0), went = 0, came = 0;
    size_t i;

    EXPECT(json_is_array(json_object_get(v, "lines"))); /* inputs are short */
    while (from-- > 0)
        EXPECT(str_eq(text_cut_line(&a), text_cut_line(&b)));
    json_array_foreach(json_object_get(v, "lines"), i, line) {
        struct str text = {json_string_value(line) + 1, json_string_length(line) - 1};
        char mark = text.p[-1];
        if (mark == '\\')
            continue;
        if (mark != '+')
            expect_line(&a, text), went++;
        if (mark != '-')
            expect_line(&b, text), came++;
    }
    EXPECT(str_eq(a, b)); /* what follows is the same */
    EXPECT(went == number(v, "old_lines") && came == number(v, "new_lines"));
    json_decref(v);
}

/* So that a read past its end is seen. */
static struct str copy_of(struct str s)
{
    char *copy = malloc(s.n + 1);

    memcpy(copy, s.p, s.n);
    return (struct str){copy, s.n};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    uint8_t first = feed_byte(&f), last = feed_byte(&f);
    size_t n = (size_t)feed_num(&f, 2);
    struct str before = copy_of(feed_text(&f, n)), after = copy_of(feed_text(&f, size));

    look_at_names(before);
    look_at_view(before, (json_int_t)first - 1, (json_int_t)last - 1);
    if (str_utf8_len(before) == before.n && str_utf8_len(after) == after.n &&
        !str_eq(before, after))
        look_at_hunk(before, after);
    free((char *)before.p);
    free((char *)after.p);
    return 0;
}
