/* run_code, run_shell: what all the others are for. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>

static void run_code(struct call *c, json_t *args)
{
    bool shell = str_is(json_view(json_object_get(args, "language")), "shell");

    run_start(c, args, shell ? EXEC_COMMAND : EXEC_CELL,
              mem_strndup(json_view(json_object_get(args, "code"))));
}

/* In single quotes, where the shell changes nothing. */
static void put_quoted(struct buf *b, struct str s)
{
    struct err e;

    (void)!buf_put(b, STR("'"), &e);
    for (size_t i = 0; i < s.n; i++)
        (void)!buf_put(b, s.p[i] == '\'' ? STR("'\\''") : (struct str){s.p + i, 1}, &e);
    (void)!buf_put(b, STR("'"), &e);
}

static void run_shell(struct call *c, json_t *args)
{
    struct str command = json_view(json_object_get(args, "command"));
    struct str cwd = json_view(json_object_get(args, "cwd"));
    struct buf b;
    struct err e;
    char *code;

    buf_init(&b, 32 * MiB);
    if (cwd.n > 0) {
        (void)!buf_put(&b, STR("cd -- "), &e);
        put_quoted(&b, cwd);
        (void)!buf_put(&b, STR(" || exit\n"), &e);
    }
    (void)!buf_put(&b, command, &e);
    code = mem_strndup(buf_str(&b));
    buf_done(&b);
    run_start(c, args, EXEC_COMMAND, code);
}

#define SESSION                                                                                    \
    {                                                                                              \
        "session_id", FIELD_TEXT, OPTIONAL, 1, 64, NULL,                                           \
            "The session to run in, as an earlier answer named it. Left out: the conversation's "  \
            "own, or a new one; the answer names it.",                                             \
            NULL                                                                                   \
    }
#define TIMEOUT                                                                                    \
    {                                                                                              \
        "timeout_ms", FIELD_INT, OPTIONAL, 1, 86400000, NULL,                                      \
            "Stop it after so many milliseconds. Left out: the pool's limit, usually 60000, "      \
            "which "                                                                               \
            "is also the most.",                                                                   \
            "30000"                                                                                \
    }
#define BACKGROUND                                                                                 \
    {                                                                                              \
        "background", FIELD_BOOL, OPTIONAL, 0, 0, NULL,                                            \
            "true: answer at once with an execution_id, and let it run; get_execution shows how "  \
            "it goes on.",                                                                         \
            NULL                                                                                   \
    }
#define ENV                                                                                        \
    {                                                                                              \
        "env", FIELD_MAP, OPTIONAL, 0, ENV_COUNT_MAX, NULL,                                        \
            "Environment variables for this run only; they are not kept on record.",               \
            "{\"API_BASE\": \"https://example.com\"}"                                              \
    }

static const struct field code_params[] = {
    {"code",         FIELD_TEXT, REQUIRED, 1, EXEC_CODE_MAX, NULL,
     "What to run. The value of the last expression is shown, as in a notebook.", "\"import pandas as pd\\npd.read_csv('data.csv').describe()\""},
    {"language",      FIELD_ENUM, OPTIONAL, 0, 0, "python|shell",
     "python (the default) or shell (bash).", NULL},
    SESSION,
    TIMEOUT,
    ENV,
    BACKGROUND,
    {0},
};

static const struct field shell_params[] = {
    {"command",      FIELD_TEXT, REQUIRED, 1, EXEC_CODE_MAX, NULL, "A line or a script for bash.",
     "\"ls -la && head -3 data.csv\""},
    SESSION,
    {"cwd",      FIELD_TEXT, OPTIONAL, 1, SPACE_PATH_MAX, NULL,
     "The directory to run in; relative to /workspace, which is the default.", NULL},
    TIMEOUT,
    ENV,
    BACKGROUND,
    {0},
};

const struct tool tool_run_code = {
    .name = "run_code",
    .title = "Run code",
    .text =
        "Run Python (or bash) in a sealed sandbox and get what it prints, the value of the last "
        "expression, plots as images, and the files it made. Variables, imports and files stay in "
        "the session between calls: pass the session_id from the first line of the answer to go "
        "on. Only /workspace, the working directory, is kept; a session that was idle for long "
        "loses its variables and keeps its files. numpy, pandas, matplotlib and others are "
        "installed (list_packages); usually there is no network, so bring data in with "
        "write_file.\n"
        "Print compactly: about 10,000 characters of output are shown, head and tail, and "
        "get_execution has the rest. Use plt.show() for plots. Code that runs longer than 50 s is "
        "answered for with an execution_id and goes on; get_execution follows it. On an error read "
        "the traceback, fix the code and run it again; what ran before the error has taken "
        "effect.\n"
        "Example: {\"code\": \"import pandas as pd\\ndf = pd.read_csv('sales.csv')\\n"
        "df.groupby('region').revenue.sum()\"}",
    .params = code_params,
    .meta = META_PAGE,
    .hints = TOOL_RUNS,
    .run = run_code,
};

const struct tool tool_run_shell = {
    .name = "run_shell",
    .title = "Run a shell command",
    .text =
        "Run a bash command in a session's sandbox: look at files, unpack archives, run scripts "
        "and programs. It starts in /workspace, beside the session's Python, and shares its "
        "files but not its variables; cd and export do not last beyond the call. The answer "
        "has the exit status, stdout and stderr (about 10,000 characters, head and tail), and "
        "the files made. Nothing outside the sandbox can be reached or harmed.\n"
        "Example: {\"command\": \"unzip -o data.zip && wc -l *.csv\", \"session_id\": "
        "\"sess_...\"}",
    .params = shell_params,
    .meta = META_PAGE,
    .hints = TOOL_RUNS | TOOL_DESTROYS,
    .run = run_shell,
};
