/* Defaults of the limits, and the names of limits, events and statuses. */
#include "engine/engine_int.h"

static const char *const limit_names[LIMIT__COUNT] = {
    [LIMIT_NONE] = "none",
    [LIMIT_WALL] = "wall_time",
    [LIMIT_CPU] = "cpu_time",
    [LIMIT_MEMORY] = "memory",
    [LIMIT_PIDS] = "processes",
    [LIMIT_DISK] = "disk",
    [LIMIT_TMP] = "tmp",
    [LIMIT_OPEN_FILES] = "open_files",
    [LIMIT_OUTPUT] = "output",
    [LIMIT_ARTIFACT_COUNT] = "artifact_count",
    [LIMIT_ARTIFACT_SIZE] = "artifact_size",
};

const char *limit_name(enum limit l)
{
    return limit_names[l];
}

void limits_default(struct limits *ret)
{
    *ret = (struct limits){
        .wall_ms = 60000,
        .cpu_ms = 0,
        .cpu_percent = 100,
        .memory_bytes = 2 * GiB,
        .pids = 128,
        .disk_bytes = GiB,
        .tmp_bytes = 256 * MiB,
        .open_files = 1024,
        .output_bytes = 16 * MiB,
        .artifact_count = 200,
        .artifact_bytes = 256 * MiB,
        .grace_ms = 1000,
    };
}

const char *event_kind_name(enum event_kind k)
{
    static const char *const names[] = {"stdout", "stderr", "display", "result",
                                        "clear",  "error",  "file",    "status"};
    return names[k];
}

const char *file_change_name(enum file_change c)
{
    static const char *const names[] = {"created", "changed", "deleted"};
    return names[c];
}

const char *outcome_status_name(enum outcome_status s)
{
    static const char *const names[] = {"ok",          "raised", "timeout",     "memory",
                                        "interrupted", "died",   "session_lost"};
    return names[s];
}
