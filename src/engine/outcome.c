/* How an execution ended, in one plain sentence. */
#include "engine/engine_int.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static void put_size(char *ret, size_t size, uint64_t bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;

    while (u + 1 < COUNT(unit) && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(ret, size, "%llu %s", (unsigned long long)bytes, unit[u]);
}

static void put_time(char *ret, size_t size, uint64_t ms)
{
    if (ms % 1000 == 0)
        snprintf(ret, size, "%llu s", (unsigned long long)(ms / 1000));
    else
        snprintf(ret, size, "%llu.%03llu s", (unsigned long long)(ms / 1000),
                 (unsigned long long)(ms % 1000));
}

/* "the memory limit of 2 GiB": what was hit, with its value. */
static void put_limit(enum limit which, const struct limits *l, char *ret, size_t size)
{
    char value[48];

    switch (which) {
    case LIMIT_WALL:
        put_time(value, sizeof(value), l->wall_ms);
        snprintf(ret, size, "the time limit of %s", value);
        break;
    case LIMIT_CPU:
        put_time(value, sizeof(value), l->cpu_ms);
        snprintf(ret, size, "the CPU time limit of %s", value);
        break;
    case LIMIT_MEMORY:
        put_size(value, sizeof(value), l->memory_bytes);
        snprintf(ret, size, "the memory limit of %s", value);
        break;
    case LIMIT_PIDS:
        snprintf(ret, size, "the limit of %llu processes and threads", (unsigned long long)l->pids);
        break;
    case LIMIT_DISK:
        put_size(value, sizeof(value), l->disk_bytes);
        snprintf(ret, size, "the disk limit of %s for /workspace", value);
        break;
    case LIMIT_TMP:
        put_size(value, sizeof(value), l->tmp_bytes);
        snprintf(ret, size, "the disk limit of %s for /tmp and for /dev/shm", value);
        break;
    case LIMIT_OPEN_FILES:
        snprintf(ret, size, "the limit of %llu open files", (unsigned long long)l->open_files);
        break;
    case LIMIT_OUTPUT:
        put_size(value, sizeof(value), l->output_bytes);
        snprintf(ret, size, "the output limit of %s", value);
        break;
    case LIMIT_ARTIFACT_COUNT:
        snprintf(ret, size, "the limit of %llu reported files",
                 (unsigned long long)l->artifact_count);
        break;
    case LIMIT_ARTIFACT_SIZE:
        put_size(value, sizeof(value), l->artifact_bytes);
        snprintf(ret, size, "the size limit of %s for one file", value);
        break;
    default:
        snprintf(ret, size, "a limit");
    }
}

/* "hit A, B and C" of whatever is in the set. */
static void put_limits(uint32_t set, const struct limits *l, char *ret, size_t size)
{
    size_t at = 0;
    bool first = true;

    ret[0] = '\0';
    for (enum limit i = LIMIT_NONE + 1; i < LIMIT__COUNT; i++) {
        char one[96];
        if (!(set & IN(i)))
            continue;
        set &= ~IN(i);
        put_limit(i, l, one, sizeof(one));
        size_t n = (size_t)snprintf(ret + at, size - at, "%s%s",
                                    first ? ""
                                    : set ? ", "
                                          : " and ",
                                    one);
        if (n >= size - at) { /* whole ones only */
            ret[at] = '\0';
            return;
        }
        at += n;
        first = false;
    }
}

static void put_death(int status, char *ret, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(ret, size, "was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(ret, size, "ended by itself with status %d", WEXITSTATUS(status));
}

/* What is left of the session, for those who come back to it. */
static const char *state_text(const struct outcome *o)
{
    switch (o->status) {
    case OUTCOME_TIMEOUT:
    case OUTCOME_MEMORY:
    case OUTCOME_INTERRUPTED:
    case OUTCOME_DIED:
        if (o->state_lost)
            return "; variables are lost, files are kept";
        return o->status == OUTCOME_TIMEOUT ? "; variables and files are kept" : "";
    case OUTCOME_SESSION_LOST:
    case OUTCOME_OK:
    case OUTCOME_RAISED:
        break;
    }
    return "";
}

void outcome_say(struct outcome *o, const struct limits *l, int status, const char *detail)
{
    const char *state = state_text(o);
    char what[160], how[96];
    size_t n;

    put_limits(o->limits_hit, l, what, sizeof(what));
    put_death(status, how, sizeof(how));
    switch (o->status) {
    case OUTCOME_TIMEOUT:
        snprintf(o->line, sizeof(o->line), "stopped at %s", what);
        break;
    case OUTCOME_MEMORY:
        snprintf(o->line, sizeof(o->line), "ended at %s", what);
        break;
    case OUTCOME_INTERRUPTED:
        snprintf(o->line, sizeof(o->line), "interrupted on request");
        break;
    case OUTCOME_DIED:
        snprintf(o->line, sizeof(o->line), "the %s %s%s%s",
                 o->state_lost ? "interpreter" : "command", how, o->limits_hit ? " at " : "", what);
        break;
    case OUTCOME_SESSION_LOST:
        snprintf(o->line, sizeof(o->line), "the sandbox is gone: %s", detail);
        break;
    case OUTCOME_OK:
    case OUTCOME_RAISED:
        if (o->limits_hit)
            snprintf(o->line, sizeof(o->line), "reached %s", what);
        break;
    }
    n = strlen(o->line);
    o->state_at = *state ? n : 0;
    snprintf(o->line + n, sizeof(o->line) - n, "%s", state);
}
