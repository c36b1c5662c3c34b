/* Names that others print and parse, and defaults that make sense together. */
#include "engine/engine_int.h"
#include "unit.h"

static void test_limit_names(void **state)
{
    static const struct {
        enum limit limit;
        const char *name;
    } rows[] = {
        {LIMIT_WALL,           "wall_time"     },
        {LIMIT_CPU,            "cpu_time"      },
        {LIMIT_MEMORY,         "memory"        },
        {LIMIT_PIDS,           "processes"     },
        {LIMIT_DISK,           "disk"          },
        {LIMIT_TMP,            "tmp"           },
        {LIMIT_OPEN_FILES,     "open_files"    },
        {LIMIT_OUTPUT,         "output"        },
        {LIMIT_ARTIFACT_COUNT, "artifact_count"},
        {LIMIT_ARTIFACT_SIZE,  "artifact_size" },
    };

    (void)state;
    assert_int_equal(COUNT(rows), LIMIT__COUNT - 1);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(limit_name(rows[i].limit), rows[i].name);
}

static void test_every_kind_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(event_kind_name(EVENT_STDOUT), "stdout");
    assert_string_equal(event_kind_name(EVENT_STATUS), "status");
    assert_string_equal(file_change_name(FILE_CREATED), "created");
    assert_string_equal(file_change_name(FILE_DELETED), "deleted");
    assert_string_equal(outcome_status_name(OUTCOME_OK), "ok");
    assert_string_equal(outcome_status_name(OUTCOME_SESSION_LOST), "session_lost");
}

static void test_defaults(void **state)
{
    struct limits l;

    (void)state;
    limits_default(&l);
    assert_true(l.wall_ms > 0 && l.grace_ms < l.wall_ms);
    assert_true(l.memory_bytes > l.disk_bytes); /* files of the box live in its memory */
    assert_true(l.output_bytes > 0 && l.pids > 0 && l.open_files > 0 && l.cpu_percent > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_names),
        cmocka_unit_test(test_every_kind_has_a_name),
        cmocka_unit_test(test_defaults),
    };

    return RUN(tests);
}
