/* What a replacement has changed, as one hunk. */
#include "doors/anthropic/anthropic_int.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

/* "old_start,old_lines new_start,new_lines|line|line". */
static const char *hunk(const char *before, const char *after)
{
    static char text[4096];
    json_t *v = hunk_value(str_of(before), str_of(after)), *line, *lines;
    size_t i;
    json_int_t n[4];

    lines = json_object_get(v, "lines");
    n[0] = json_integer_value(json_object_get(v, "old_start"));
    n[1] = json_integer_value(json_object_get(v, "old_lines"));
    n[2] = json_integer_value(json_object_get(v, "new_start"));
    n[3] = json_integer_value(json_object_get(v, "new_lines"));
    snprintf(text, sizeof(text), "%d,%d %d,%d", (int)n[0], (int)n[1], (int)n[2], (int)n[3]);
    json_array_foreach(lines, i, line)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "|%s", json_string_value(line));
    json_decref(v);
    return text;
}

static void test_three_lines_around(void **state)
{
    (void)state;
    assert_string_equal(hunk("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n"),
                        "2,7 2,7| 2| 3| 4|-5|+V| 6| 7| 8");
}

static void test_at_the_ends(void **state)
{
    (void)state;
    assert_string_equal(hunk("1\n2\n", "V\n2\n"), "1,2 1,2|-1|+V| 2");
    assert_string_equal(hunk("1\n2\n", "1\nV\n"), "1,2 1,2| 1|-2|+V");
    assert_string_equal(hunk("1\n", "V\n"), "1,1 1,1|-1|+V");
}

static void test_lines_come_and_go(void **state)
{
    (void)state;
    assert_string_equal(hunk("1\n2\n3\n", "1\n3\n"), "1,3 1,2| 1|-2| 3");
    assert_string_equal(hunk("1\n3\n", "1\n2\n3\n"), "1,2 1,3| 1|+2| 3");
    assert_string_equal(hunk("1\n", ""), "1,1 0,0|-1");
    assert_string_equal(hunk("", "1\n"), "0,0 1,1|+1");
}

/* What stayed between two changes is said to have stayed. */
static void test_lines_that_stay_between(void **state)
{
    (void)state;
    assert_string_equal(hunk("a\nb\nc\nd\ne\n", "X\nb\nc\nd\nY\n"), "1,5 1,5|-a|+X| b| c| d|-e|+Y");
}

static void test_a_last_line_without_newline(void **state)
{
    (void)state;
    assert_string_equal(hunk("1\n2", "1\n2\n"), "1,2 1,2| 1|-2|\\ No newline at end of file|+2");
    assert_string_equal(hunk("1\n2\n", "1\n2"), "1,2 1,2| 1|-2|+2|\\ No newline at end of file");
    assert_string_equal(hunk("1\n2", "V\n2"), "1,2 1,2|-1|+V| 2|\\ No newline at end of file");
}

/* Applied to what was before, a hunk gives what came after, whatever was replaced. */
static char *apply(const char *before, const json_t *v)
{
    json_int_t from = json_integer_value(json_object_get(v, "old_start"));
    json_int_t old_lines = json_integer_value(json_object_get(v, "old_lines"));
    char *ret = mem_zalloc(4096), *at = ret;
    json_t *line;
    size_t i;

    from -= old_lines > 0;
    for (json_int_t k = 0; k < from; k++) {
        size_t n = strcspn(before, "\n") + 1;
        at = mempcpy(at, before, n);
        before += n;
    }
    json_array_foreach(json_object_get(v, "lines"), i, line) {
        const char *text = json_string_value(line);
        if (*text != '+') {
            size_t n = strcspn(before, "\n");
            assert_int_equal(strlen(text + 1), n);
            assert_memory_equal(before, text + 1, n);
            before += n + 1;
        }
        if (*text != '-')
            at += sprintf(at, "%s\n", text + 1);
    }
    memcpy(at, before, strlen(before) + 1);
    return ret;
}

static void random_text(char *ret, unsigned *seed, size_t lines)
{
    for (size_t i = 0; i < lines; i++)
        ret += sprintf(ret, "%c\n", 'a' + rand_r(seed) % 4);
    *ret = '\0';
}

static void test_it_can_be_applied(void **state)
{
    unsigned seed = 1;
    char before[256], after[256];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        random_text(before, &seed, (size_t)rand_r(&seed) % 20);
        random_text(after, &seed, (size_t)rand_r(&seed) % 20);
        if (strcmp(before, after) == 0)
            continue;
        json_t *v = hunk_value(str_of(before), str_of(after));
        AUTO_FREE char *got = apply(before, v);
        assert_string_equal(got, after);
        json_decref(v);
    }
}

/* Too much for a hunk line by line, and too much to be told at all. */
static void test_long_ones(void **state)
{
    size_t n = 2000;
    char *before = mem_zalloc(3 * n), *after = mem_zalloc(3 * n), *huge = mem_zalloc(400 * KiB);
    json_t *v;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        before[2 * i] = i % 2 ? 'a' : 'b';
        after[2 * i] = i % 3 ? 'a' : 'c';
        before[2 * i + 1] = after[2 * i + 1] = '\n';
    }
    v = hunk_value(str_of(before), str_of(after));
    assert_true(json_array_size(json_object_get(v, "lines")) > n);
    json_decref(v);
    memset(huge, 'x', 400 * KiB - 1);
    v = hunk_value(str_of(huge), str_of("y"));
    assert_true(json_is_null(json_object_get(v, "lines")));
    assert_int_equal(json_integer_value(json_object_get(v, "old_lines")), 1);
    json_decref(v);
    memset(huge, '\n', 400 * KiB - 1); /* as many lines as bytes */
    v = hunk_value(str_of(huge), (struct str){huge, 100});
    assert_true(json_is_null(json_object_get(v, "lines")));
    assert_int_equal(json_integer_value(json_object_get(v, "old_lines")), 400 * KiB - 1 - 97);
    assert_int_equal(json_integer_value(json_object_get(v, "new_lines")), 3);
    json_decref(v);
    free(before), free(after), free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_lines_around),
        cmocka_unit_test(test_at_the_ends),
        cmocka_unit_test(test_lines_come_and_go),
        cmocka_unit_test(test_lines_that_stay_between),
        cmocka_unit_test(test_a_last_line_without_newline),
        cmocka_unit_test(test_it_can_be_applied),
        cmocka_unit_test(test_long_ones),
    };

    return RUN(tests);
}
