/* The one sentence of each outcome. */
#include "engine/engine_int.h"
#include "unit.h"

#include <signal.h>

static const struct limits limits = {
    .wall_ms = 1500,
    .cpu_ms = 2000,
    .memory_bytes = 512 * MiB,
    .pids = 64,
    .disk_bytes = 3 * KiB / 2,
    .tmp_bytes = GiB,
    .open_files = 32,
    .output_bytes = 16 * MiB,
    .artifact_count = 7,
    .artifact_bytes = 1000,
};

static void test_each_limit(void **state)
{
    static const struct {
        enum limit limit;
        const char *line;
    } rows[] = {
        {LIMIT_WALL,           "reached the time limit of 1.500 s"                        },
        {LIMIT_CPU,            "reached the CPU time limit of 2 s"                        },
        {LIMIT_MEMORY,         "reached the memory limit of 512 MiB"                      },
        {LIMIT_PIDS,           "reached the limit of 64 processes and threads"            },
        {LIMIT_DISK,           "reached the disk limit of 1536 bytes for /workspace"      },
        {LIMIT_TMP,            "reached the disk limit of 1 GiB for /tmp and for /dev/shm"},
        {LIMIT_OPEN_FILES,     "reached the limit of 32 open files"                       },
        {LIMIT_OUTPUT,         "reached the output limit of 16 MiB"                       },
        {LIMIT_ARTIFACT_COUNT, "reached the limit of 7 reported files"                    },
        {LIMIT_ARTIFACT_SIZE,  "reached the size limit of 1000 bytes for one file"        },
    };

    (void)state;
    assert_int_equal(COUNT(rows), LIMIT__COUNT - 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outcome o = {.status = OUTCOME_RAISED, .limits_hit = IN(rows[i].limit)};
        outcome_say(&o, &limits, 0, "");
        assert_string_equal(o.line, rows[i].line);
    }
}

static void test_several_limits(void **state)
{
    struct outcome o = {.status = OUTCOME_OK,
                        .limits_hit = IN(LIMIT_OUTPUT) | IN(LIMIT_PIDS) | IN(LIMIT_OPEN_FILES)};

    (void)state;
    outcome_say(&o, &limits, 0, "");
    assert_string_equal(o.line, "reached the limit of 64 processes and threads, the limit of 32 "
                                "open files and the output limit of 16 MiB");
}

/* Too many to name: a shorter sentence, not half a one. */
static void test_all_limits(void **state)
{
    struct outcome o = {.status = OUTCOME_RAISED, .limits_hit = ~0u};

    (void)state;
    outcome_say(&o, &limits, 0, "");
    assert_true(strlen(o.line) < sizeof(o.line) - 1);
    assert_has(o.line, "reached the time limit of 1.500 s, the CPU time limit of 2 s, ");
    assert_string_equal(o.line + strlen(o.line) - strlen("processes and threads"),
                        "processes and threads");
}

static void test_status(void **state)
{
    // clang-format off
    static const struct {
        enum outcome_status status;
        uint32_t hit;
        bool lost;
        int wait; /* status as of wait(2) */
        const char *line;
    } rows[] = {
        {OUTCOME_OK, 0, false, 0, ""},
        {OUTCOME_RAISED, 0, false, 0, ""},
        {OUTCOME_TIMEOUT, IN(LIMIT_WALL), false, 0,
         "stopped at the time limit of 1.500 s; variables and files are kept"},
        {OUTCOME_TIMEOUT, IN(LIMIT_CPU), true, 0,
         "stopped at the CPU time limit of 2 s; variables are lost, files are kept"},
        {OUTCOME_MEMORY, IN(LIMIT_MEMORY), true, SIGKILL,
         "ended at the memory limit of 512 MiB; variables are lost, files are kept"},
        {OUTCOME_MEMORY, IN(LIMIT_MEMORY), false, SIGKILL,
         "ended at the memory limit of 512 MiB"},
        {OUTCOME_INTERRUPTED, 0, false, 0, "interrupted on request"},
        {OUTCOME_INTERRUPTED, 0, true, 0,
         "interrupted on request; variables are lost, files are kept"},
        {OUTCOME_DIED, 0, true, 3 << 8,
         "the interpreter ended by itself with status 3; variables are lost, files are kept"},
        {OUTCOME_DIED, 0, false, SIGSEGV,
         "the command was ended by signal 11 (Segmentation fault)"},
        {OUTCOME_DIED, IN(LIMIT_PIDS), false, SIGABRT,
         "the command was ended by signal 6 (Aborted) at the limit of 64 processes and threads"},
        {OUTCOME_SESSION_LOST, 0, true, 0, "the sandbox is gone: reasons"},
    };
    // clang-format on

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outcome o = {
            .status = rows[i].status, .limits_hit = rows[i].hit, .state_lost = rows[i].lost};
        outcome_say(&o, &limits, rows[i].wait, "reasons");
        assert_string_equal(o.line, rows[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_limit),
        cmocka_unit_test(test_several_limits),
        cmocka_unit_test(test_all_limits),
        cmocka_unit_test(test_status),
    };

    return RUN(tests);
}
