/* The one table of options. Parsing, --help and the error sentences are made from it. */
#include "cli/cli_int.h"

#include <stdlib.h>

#define AT(field) offsetof(struct settings, field)
#define RUN       IN(COMMAND_RUN)
#define BOTH      (IN(COMMAND_RUN) | IN(COMMAND_DOCTOR))
#define DAY_MS    (24ull * 60 * 60 * 1000)
#define TiB       (1024 * GiB)

/* The least values are those with which a bare interpreter still comes up. */
// clang-format off
const struct option options[] = {
    {"code",  'c', OPTION_WORK, GROUP_WORK, RUN, .work = WORK_CODE, .metavar = "CODE",
     .text = "Run CODE as one cell."},
    {"shell", 0,   OPTION_WORK, GROUP_WORK, RUN, .work = WORK_SHELL, .metavar = "CMD",
     .text = "Run CMD with bash in the same session."},
    {"keep-going", 0, OPTION_BOOL, GROUP_WORK, RUN, AT(keep_going),
     .text = "Go on after an execution that failed."},

    {"file", 'f', OPTION_LIST, GROUP_FILES, RUN, AT(files), .metavar = "FILE",
     .text = "Put a copy of FILE into the workspace first; may be given again."},
    {"out",  'o', OPTION_PATH, GROUP_FILES, RUN, AT(out), .metavar = "DIR",
     .text = "Keep the files and figures that the code makes in DIR."},

    {"timeout",       0, OPTION_SECONDS, GROUP_LIMITS, RUN, AT(limits.wall_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of one execution."},
    {"cpu-time",      0, OPTION_SECONDS, GROUP_LIMITS, RUN, AT(limits.cpu_ms),
     0, DAY_MS, .metavar = "S", .text = "CPU time of one execution; 0 for no limit."},
    {"cpus",          0, OPTION_CORES,   GROUP_LIMITS, RUN, AT(limits.cpu_percent),
     1, 102400, .metavar = "N", .text = "Cores the session may keep busy, such as 0.5 or 2."},
    {"memory",        0, OPTION_SIZE,    GROUP_LIMITS, RUN, AT(limits.memory_bytes),
     32 * MiB, 64 * TiB, .metavar = "SIZE", .text = "Memory of the session, its files included."},
    {"pids",          0, OPTION_COUNT,   GROUP_LIMITS, RUN, AT(limits.pids),
     8, 32768, .metavar = "N", .text = "Processes and threads of the session."},
    {"disk",          0, OPTION_SIZE,    GROUP_LIMITS, RUN, AT(limits.disk_bytes),
     64 * KiB, 64 * TiB, .metavar = "SIZE", .text = "Size of /workspace."},
    {"tmp",           0, OPTION_SIZE,    GROUP_LIMITS, RUN, AT(limits.tmp_bytes),
     64 * KiB, 64 * TiB, .metavar = "SIZE", .text = "Size of /tmp, and of /dev/shm."},
    {"open-files",    0, OPTION_COUNT,   GROUP_LIMITS, RUN, AT(limits.open_files),
     32, 1048576, .metavar = "N", .text = "Open files of one process."},
    {"output",        0, OPTION_SIZE,    GROUP_LIMITS, RUN, AT(limits.output_bytes),
     1 * KiB, 1 * GiB, .metavar = "SIZE",
     .text = "Output kept of one execution: its beginning and its end."},
    {"artifacts",     0, OPTION_COUNT,   GROUP_LIMITS, RUN, AT(limits.artifact_count),
     0, 100000, .metavar = "N", .text = "Files reported of one execution."},
    {"artifact-size", 0, OPTION_SIZE,    GROUP_LIMITS, RUN, AT(limits.artifact_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Size of one file that is handed out."},
    {"grace",         0, OPTION_SECONDS, GROUP_LIMITS, RUN, AT(limits.grace_ms),
     0, DAY_MS, .metavar = "S", .text = "Time between the interrupt and the kill."},

    {"python",  0,   OPTION_PATH, GROUP_OTHER, BOTH, AT(python), .metavar = "PATH",
     .unset = "/usr/bin/python3, else from PATH",
     .text = "The Python to run, such as that of a virtual environment."},
    {"preload", 0,   OPTION_TEXT, GROUP_OTHER, RUN, AT(preload), .metavar = "NAMES",
     .unset = "none", .text = "Modules to import beforehand, separated by commas."},
    {"json",    0,   OPTION_BOOL, GROUP_OTHER, BOTH, AT(json),
     .text = "Print one JSON document in place of text."},
    {"verbose", 'v', OPTION_BOOL, GROUP_OTHER, BOTH, AT(verbose),
     .text = "Tell on stderr what goes on behind the scenes."},
    {"help",    'h', OPTION_BOOL, GROUP_OTHER, BOTH, AT(help),
     .text = "Print this text."},
};
// clang-format on

const size_t options_count = COUNT(options);

const struct option *option_by_name(struct str name, unsigned commands)
{
    for (size_t i = 0; i < options_count; i++)
        if ((options[i].commands & commands) && str_is(name, options[i].name))
            return &options[i];
    return NULL;
}

const struct option *option_by_letter(char letter, unsigned commands)
{
    for (size_t i = 0; i < options_count; i++)
        if ((options[i].commands & commands) && letter != 0 && options[i].letter == letter)
            return &options[i];
    return NULL;
}

const char *option_nearest(struct str name, unsigned commands)
{
    const char *best = NULL;
    unsigned least = name.n < 5 ? 2 : 3; /* farther away it is a guess, not a slip */

    for (size_t i = 0; i < options_count; i++) {
        if (!(options[i].commands & commands))
            continue;
        unsigned d = edit_distance(name, str_of(options[i].name));
        if (d < least) {
            least = d;
            best = options[i].name;
        }
    }
    return best;
}

unsigned edit_distance(struct str a, struct str b)
{
    enum { LONGEST = 32 };
    unsigned row[LONGEST + 1];

    if (a.n > LONGEST || b.n > LONGEST)
        return LONGEST;
    for (unsigned j = 0; j <= b.n; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.n; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.n; j++) {
            unsigned change = diagonal + (a.p[i - 1] != b.p[j - 1]);
            unsigned skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < skip ? change : skip;
        }
    }
    return row[b.n];
}

/* --- settings --- */

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    limits_default(&s->limits);
}

void settings_done(struct settings *s)
{
    for (size_t i = 0; i < s->files.count; i++)
        free(s->files.item[i]);
    for (size_t i = 0; i < s->work.count; i++)
        free(s->work.item[i].arg);
    free(s->files.item);
    free(s->work.item);
    free(s->python);
    free(s->preload);
    free(s->out);
    *s = (struct settings){0};
}
