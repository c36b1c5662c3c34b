/* What happened in a workspace, looked at more than once. */
#include "service/service_int.h"
#include "unit.h"

#include <stdio.h>

static void tell(struct changes *c, enum file_change change, const char *path, uint64_t size)
{
    struct event ev = {.kind = EVENT_FILE};

    ev.file.change = change;
    ev.file.path = str_of(path);
    ev.file.size = size;
    ev.file.mime = "text/plain";
    changes_put(c, &ev);
}

static void test_a_path_comes_once(void **state)
{
    static const struct {
        enum file_change first, second, both;
    } rows[] = {
        {FILE_CREATED, FILE_CHANGED, FILE_CREATED},
        {FILE_CREATED, FILE_DELETED, FILE_DELETED},
        {FILE_CHANGED, FILE_CHANGED, FILE_CHANGED},
        {FILE_DELETED, FILE_CREATED, FILE_CREATED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct changes c = {0};
        tell(&c, rows[i].first, "f", 1);
        tell(&c, FILE_CREATED, "other", 1);
        changes_seal(&c); /* the look is over */
        tell(&c, rows[i].second, "f", 2);
        assert_int_equal(c.n, 2);
        assert_int_equal(c.at[0].change, rows[i].both);
        assert_int_equal(c.at[0].size, 2);
        assert_string_equal(c.at[0].path, "f");
        changes_done(&c);
    }
}

static void test_notes_stay_in_place(void **state)
{
    struct changes c = {0}, copy;
    struct event note = {.kind = EVENT_STATUS, .text = STR("3 more files")}, ev, problem;

    (void)state;
    changes_put(&c, &note);
    assert_false(changes_has_files(&c));
    c.old = c.n;
    tell(&c, FILE_CREATED, "3 more files", 9); /* a file may be called anything */
    assert_int_equal(c.n, 2);
    assert_true(changes_has_files(&c));
    copy = changes_copy(&c);
    changes_done(&c);
    ev = change_event(&copy.at[0]);
    assert_int_equal(ev.kind, EVENT_STATUS);
    assert_str(ev.text, "3 more files");
    ev = change_event(&copy.at[1]);
    assert_int_equal(ev.kind, EVENT_FILE);
    assert_str(ev.file.path, "3 more files");
    assert_false(change_problem(&copy.at[1], &problem));
    changes_done(&copy);
}

/* Two looks at as many files as there may be: each finds its own again, and soon. */
static void test_many_files_twice(void **state)
{
    struct changes c = {0};
    struct event note = {.kind = EVENT_STATUS, .text = STR("a note")};
    char path[32];

    (void)state;
    changes_put(&c, &note);
    for (int look = 0; look < 3; look++) {
        for (int i = 0; i < 20000; i++) {
            snprintf(path, sizeof(path), "%d", look % 2 ? i : 19999 - i);
            tell(&c, FILE_CHANGED, path, (uint64_t)look);
        }
        changes_seal(&c);
        assert_int_equal(c.n, 20001);
    }
    for (size_t i = 0; i < c.n; i++)
        assert_true(c.at[i].is_note ? i == 20000 : c.at[i].size == 2);
    changes_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_comes_once),
        cmocka_unit_test(test_notes_stay_in_place),
        cmocka_unit_test(test_many_files_twice),
    };

    return RUN(tests);
}
