/* Text cut to fit: between characters and, where one is near, between lines. */
#include "doors/mcp/execution.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static void test_head_and_tail_keep_characters(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1, 2, 3, 4, 1 bytes */
    static const size_t heads[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
    static const size_t tails[] = {11, 10, 10, 10, 10, 6, 6, 6, 3, 3, 1, 0};
    struct str s = STR(text);

    (void)state;
    for (size_t i = 0; i <= s.n; i++) {
        assert_int_equal(text_head(s, i), heads[i]);
        assert_int_equal(text_tail(s, i), tails[i]);
    }
    assert_int_equal(text_head(s, 1000), s.n);
    assert_int_equal(text_tail(s, 1000), 0);
}

static void test_lines(void **state)
{
    (void)state;
    assert_int_equal(text_lines(STR("")), 0);
    assert_int_equal(text_lines(STR("a")), 0);
    assert_int_equal(text_lines(STR("a\nb\n\n")), 3);
}

static void test_shares(void **state)
{
    static const struct {
        size_t wants[4], sum, gets[4];
    } rows[] = {
        {{1, 2, 3, 4},       100, {1, 2, 3, 4}    }, /* all are met */
        {{50, 2, 50, 0},     62,  {30, 2, 30, 0}  }, /* the small one whole, the others alike */
        {{1000, 0, 0, 0},    10,  {10, 0, 0, 0}   },
        {{100, 30, 20, 100}, 100, {25, 25, 20, 25}},
        {{5, 5, 5, 5},       0,   {0, 0, 0, 0}    },
    };
    size_t gets[4];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        text_share(rows[i].wants, gets, 4, rows[i].sum);
        for (size_t k = 0; k < 4; k++)
            assert_true(gets[k] >= rows[i].gets[k] && gets[k] <= rows[i].gets[k] + 2);
        assert_true(gets[0] + gets[1] + gets[2] + gets[3] <= rows[i].sum);
    }
}

static void test_short_is_whole(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    assert_false(text_clip(&b, STR("short"), 5, NULL));
    assert_str(buf_str(&b), "short");
    buf_done(&b);
}

/* So many numbered lines, and where the shown head ends is where the told offset is. */
static size_t number_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    char *end;
    size_t n;

    assert_non_null(at);
    n = strtoul(at + strlen(words), &end, 10);
    assert_true(end > at + strlen(words));
    return n;
}

static void test_long_has_head_tail_and_marker(void **state)
{
    struct buf b, text;
    size_t offset, left, lines;
    const char *marker;

    (void)state;
    buf_init(&text, 1 * MiB);
    buf_init(&b, 1 * MiB);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(buf_printf(&text, "line %d\n", i), 0);
    assert_true(text_clip(&b, buf_str(&text), 4000, "exec_1"));
    assert_true(b.n <= 4000 && b.n > 3000);
    assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
    marker = strstr(b.p, "[... ");
    assert_non_null(marker);
    left = number_after(marker, "[... ");
    lines = number_after(marker, " bytes in ");
    assert_has(marker, " lines left out here");
    offset = number_after(marker, "offset=");
    assert_has(b.p, "execution_id=exec_1");
    assert_int_equal(offset, (size_t)(marker - b.p));
    assert_memory_equal(b.p, text.p, offset);
    assert_int_equal(text.p[offset - 1], '\n');
    assert_int_equal(text.p[offset + left - 1], '\n');
    assert_int_equal(text_lines((struct str){text.p + offset, left}), lines);
    assert_has(b.p, "line 4999\n");
    buf_done(&b);
    buf_done(&text);
}

static void test_no_line_to_cut_at(void **state)
{
    static const char euro[] = {'\xe2', '\x82', '\xac'};
    AUTO_FREE char *text = mem_zalloc(9000);
    struct buf b;

    (void)state;
    for (size_t i = 0; i < 9000; i += sizeof(euro))
        memcpy(text + i, euro, sizeof(euro));
    buf_init(&b, 1 * MiB);
    assert_true(text_clip(&b, (struct str){text, 9000}, 2000, NULL));
    assert_true(b.n <= 2000);
    assert_int_equal(str_utf8_len(buf_str(&b)), b.n);
    buf_done(&b);
}

/* Less room than the marker takes. */
static void test_no_room_at_all(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1 * MiB);
    assert_true(text_clip(&b, STR("some text"), 3, NULL));
    assert_true(b.n < 100);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_and_tail_keep_characters),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_short_is_whole),
        cmocka_unit_test(test_long_has_head_tail_and_marker),
        cmocka_unit_test(test_no_line_to_cut_at),
        cmocka_unit_test(test_no_room_at_all),
    };

    return RUN(tests);
}
