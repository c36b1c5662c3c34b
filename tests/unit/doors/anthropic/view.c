/* What the text editor shows. */
#include "doors/anthropic/anthropic_int.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

/* "num_lines start_line total_lines content"; "!" and what is wrong. Takes v. */
static const char *told(json_t *v, const struct err *e)
{
    static char text[1024];

    if (!v)
        snprintf(text, sizeof(text), "!%s", e->text);
    else
        snprintf(text, sizeof(text), "%d %d %d %s",
                 (int)json_integer_value(json_object_get(v, "num_lines")),
                 (int)json_integer_value(json_object_get(v, "start_line")),
                 (int)json_integer_value(json_object_get(v, "total_lines")),
                 json_string_value(json_object_get(v, "content")));
    json_decref(v);
    return text;
}

static const char *view(struct str bytes, const char *range)
{
    json_t *r = range ? json_loads(range, JSON_DECODE_ANY, NULL) : NULL;
    struct err e = {0};
    json_t *v = view_bytes(bytes, r, &e);

    json_decref(r);
    assert_true((v == NULL) == (e.kind == ERR_CALLER));
    return told(v, &e);
}

static void test_all_of_it(void **state)
{
    (void)state;
    assert_string_equal(view(STR("a\nb\n"), NULL), "2 1 2 a\nb");
    assert_string_equal(view(STR("a\nb"), NULL), "2 1 2 a\nb");
    assert_string_equal(view(STR("a\n\n"), NULL), "2 1 2 a\n");
    assert_string_equal(view(STR(""), NULL), "0 1 0 ");
    assert_string_equal(view((struct str){0}, "null"), "0 1 0 ");
    assert_string_equal(view(STR("a\r\nb\r\n"), NULL), "2 1 2 a\r\nb\r");
    assert_string_equal(view(STR("\xff\n"), NULL), "1 1 1 \xef\xbf\xbd");
}

static void test_some_lines(void **state)
{
    struct str text = STR("1\n2\n3\n4\n");

    (void)state;
    assert_string_equal(view(text, "[2, 3]"), "2 2 4 2\n3");
    assert_string_equal(view(text, "[3, -1]"), "2 3 4 3\n4");
    assert_string_equal(view(text, "[4, 99]"), "1 4 4 4");
    assert_string_equal(view(text, "[1, 1]"), "1 1 4 1");
    assert_has(view(text, "[5, 9]"), "!view_range begins at line 5");
}

static void test_ranges_that_are_none(void **state)
{
    static const char *const rows[] = {"[0, 1]",   "[3, 2]",   "[1]", "[1, 2, 3]", "[1, \"2\"]",
                                       "[1.5, 2]", "[-1, -1]", "{}",  "\"1-2\"",   "[1, -2]"};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_has(view(STR("1\n2\n3\n"), rows[i]), "!view_range is");
}

static void test_pictures(void **state)
{
    static const struct {
        struct str bytes;
        const char *type;
    } rows[] = {
        {STR("\x89PNG\r\n\x1a\n...."), "image"},
        {STR("\xff\xd8\xff\xe0"),      "image"},
        {STR("GIF89a."),               "image"},
        {STR("RIFF\1\2\3\4WEBP"),      "image"},
        {STR("%PDF-1.7\n"),            "pdf"  },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err e;
        json_t *v = view_bytes(rows[i].bytes, NULL, &e);
        assert_string_equal(json_string_value(json_object_get(v, "file_type")), rows[i].type);
        assert_true(json_is_null(json_object_get(v, "num_lines")));
        assert_true(json_is_null(json_object_get(v, "start_line")));
        assert_true(json_is_null(json_object_get(v, "total_lines")));
        assert_true(json_string_length(json_object_get(v, "content")) > 0);
        json_decref(v);
    }
}

static void test_what_is_too_much(void **state)
{
    size_t n = 6 * MiB;
    char *big = mem_zalloc(n);
    struct err e;
    json_t *v;

    (void)state;
    assert_has(view(STR("a\0b"), NULL), "!the file is no text");
    memset(big, 'x', n);
    big[snprintf(big, n, "GIF89a")] = 'x';
    assert_null(view_bytes((struct str){big, n}, NULL, &e));
    assert_has(e.text, "at most");
    memset(big, 'x', 6);
    for (size_t i = 99; i < n; i += 100) /* lines of a hundred bytes: as many as fit */
        big[i] = '\n';
    v = view_bytes((struct str){big, n}, NULL, &e);
    assert_int_equal(json_integer_value(json_object_get(v, "num_lines")), 256 * KiB / 100);
    assert_int_equal(json_integer_value(json_object_get(v, "total_lines")), (n + 99) / 100);
    json_decref(v);
    memset(big, 'x', n); /* one line */
    v = view_bytes((struct str){big, n}, NULL, &e);
    assert_int_equal(json_string_length(json_object_get(v, "content")), 256 * KiB);
    assert_int_equal(json_integer_value(json_object_get(v, "num_lines")), 1);
    json_decref(v);
    free(big);
}

static void test_folders(void **state)
{
    static const struct space_file files[] = {
        {.path = STR("a.txt")},      {.path = STR("sub/b.txt")},     {.path = STR("sub/deep/c")},
        {.path = STR("sub/deep/d")}, {.path = STR("sub/deep/er/e")}, {.path = STR("subx")},
    };
    struct err e = {0};

    (void)state;
    assert_string_equal(told(view_folder("", files, COUNT(files)), &e),
                        "4 1 4 a.txt\nsub/b.txt\nsub/deep/\nsubx");
    assert_string_equal(told(view_folder("sub", files, COUNT(files)), &e),
                        "4 1 4 b.txt\ndeep/c\ndeep/d\ndeep/er/");
    assert_null(view_folder("su", files, COUNT(files)));
    assert_null(view_folder("a.txt", files, COUNT(files)));
    assert_string_equal(told(view_folder("", NULL, 0), &e), "0 1 0 ");
}

static void test_a_folder_with_many(void **state)
{
    static char names[2000][8];
    static struct space_file files[2000];
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(names[i], sizeof(names[i]), "%04zu", i);
        files[i].path = str_of(names[i]);
    }
    json_t *v = view_folder("", files, COUNT(files));
    assert_int_equal(json_integer_value(json_object_get(v, "num_lines")), 1000);
    assert_has(told(v, &e), "1000 1 2000 0000\n0001\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it),
        cmocka_unit_test(test_some_lines),
        cmocka_unit_test(test_ranges_that_are_none),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_what_is_too_much),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_a_folder_with_many),
    };

    return RUN(tests);
}
