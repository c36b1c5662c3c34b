/*
 * run_code, run_shell: from the arguments of a call to what the model reads.
 *
 * The call owns the execution: when the client cancels or disconnects, both end. Which comes first
 * decides the answer. The end of the execution is reported whole. A client that knows tasks gets
 * one after TASK_MS. A client that asked for progress gets progress and waits. Any other client is
 * answered after answer_ms with what there is, and the execution goes on in the background.
 */
#include "doors/mcp/execution.h"

#include <stdio.h>
#include <stdlib.h>

#define TASK_MS    2000
#define TICK_MS    500  /* progress is sent at most so often ... */
#define SILENT_MS  2000 /* ... and at least so often */
#define LINE_BYTES 200  /* of the output, as progress */

struct code_run {
    struct call *c;      /* borrowed: keeps this */
    struct service *sv;  /* borrowed */
    struct execution *x; /* borrowed; NULL when it has ended or was left */
    struct timer *clock; /* owned */
    char execution[ID_MAX];
    bool background;
    bool no_task; /* the client cannot have one */
    int64_t begun_us, told_us;
    bool news; /* the last line has not been sent */
    char line[LINE_BYTES + 1];
};

static void run_free(void *arg)
{
    struct code_run *u = arg;

    if (u->x)
        execution_leave(u->x);
    timer_free(u->clock);
    free(u);
}

static uint64_t elapsed_ms(const struct code_run *u)
{
    return (uint64_t)(time_mono_us() - u->begun_us) / 1000;
}

/* The last of the run: the report may be written by a worker, which a cancelled call waits for. */
static void answer(struct code_run *u, const struct exec_info *info)
{
    timer_clear(u->clock);
    call_on_cancel(u->c, NULL, NULL);
    report_answer(u->c, u->sv, info, &(struct report_of){0});
}

/* --- while it runs --- */

/* The last line that has something in it; output comes in whatever pieces the pipe gave. */
static void take_line(struct code_run *u, struct str text)
{
    size_t from, to = text.n;

    while (to > 0 && (unsigned char)text.p[to - 1] <= ' ')
        to--;
    if (to == 0)
        return;
    for (from = to; from > 0 && text.p[from - 1] != '\n' && text.p[from - 1] != '\r';)
        from--;
    text = (struct str){text.p + from, to - from};
    if (text.n > LINE_BYTES)
        text.n = LINE_BYTES - utf8_torn((struct str){text.p, LINE_BYTES});
    memcpy(u->line, text.p, text.n);
    u->line[text.n] = '\0';
    u->news = true;
}

static void tell(struct code_run *u)
{
    if (!u->news && time_mono_us() - u->told_us < (int64_t)SILENT_MS * 1000)
        return;
    u->news = false;
    u->told_us = time_mono_us();
    if (u->c->task)
        call_task_status(u->c, str_of(u->line));
    else
        call_progress(u->c, (double)elapsed_ms(u) / 1000, 0, str_of(u->line));
}

static void on_so_far(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct code_run *u = arg;

    if (failed)
        tool_refuse_session(u->c, failed);
    else
        answer(u, info);
}

static void go_on_alone(struct code_run *u)
{
    call_on_cancel(u->c, NULL, NULL);
    execution_detach(take_ptr(&u->x));
    service_exec_get(u->sv, &u->c->caller, str_of(u->execution), on_so_far, u);
}

/* True when the client waits for a task, or has one now. */
static bool becomes_task(struct code_run *u)
{
    if (u->c->task)
        return true;
    if (u->no_task || !call_can(u->c, "extensions/" EXT_TASKS))
        return false;
    if (elapsed_ms(u) < TASK_MS)
        return true;
    u->no_task = !call_to_task(u->c, u->line[0] ? u->line : "The code is running.");
    return !u->no_task;
}

static void on_tick(void *arg)
{
    struct code_run *u = arg;
    bool waits = becomes_task(u) || call_wants_progress(u->c);

    if (!waits && elapsed_ms(u) >= u->c->mcp->config.answer_ms) {
        go_on_alone(u);
        return;
    }
    if (waits)
        tell(u);
    timer_set(u->clock, TICK_MS);
}

/* --- what the service says --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct code_run *u = arg;

    snprintf(u->execution, sizeof(u->execution), "%s", info->row->id);
    call_session_take(u->c, info->row->session);
    u->begun_us = u->told_us = time_mono_us(); /* a person may have taken long to agree */
    timer_set(u->clock, TICK_MS);
    if (!u->background)
        return;
    execution_leave(take_ptr(&u->x));
    answer(u, info);
}

static void on_event(void *arg, const struct event *ev)
{
    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR)
        take_line(arg, ev->text);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct code_run *u = arg;

    if (call_on_end(u->c, take_ptr(&u->x), failed))
        return;
    if (failed)
        tool_refuse_session(u->c, failed);
    else
        answer(u, info);
}

static bool on_ask(void *arg, const struct approval_info *info)
{
    struct code_run *u = arg;

    return call_on_ask(u->c, u->x, info);
}

/* --- the tools --- */

/* asked: the part of the arguments that a person reads before the code runs. */
static void start(struct call *c, enum exec_kind kind, struct str code, struct str asked)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end, on_ask};
    const json_t *args = json_object_get(c->params, "arguments");
    struct service *sv = call_service(c);
    AUTO(exec_inputs_done) struct exec_inputs given = {0};
    char param[PARAM_MAX];
    struct code_run *u;
    struct err e;

    if (!sv)
        return;
    if (exec_inputs_env(&given, json_object_get(args, "env"), param, &e) < 0) {
        tool_fail(c, "%s: %s", param, e.text);
        return;
    }
    u = mem_zalloc(sizeof(*u));
    *u = (struct code_run){.c = c, .sv = sv};
    u->background = json_is_true(json_object_get(args, "background"));
    call_session_choose(c);
    u->clock = timer_new(c->mcp->config.loop, on_tick, u);
    call_keep(c, run_free, u);
    call_drop_on_cancel(c);
    const struct exec_spec spec = {
        .session = str_of(c->session),
        .name = str_of(c->how == RUN_NAMED ? NULL : call_conversation(c)),
        .kind = kind,
        .code = code,
        .wall_ms = (uint64_t)json_integer_value(json_object_get(args, "timeout_ms")),
        .wall_is_asked = true,
        .env = given.env,
        .env_count = given.env_count,
        .background = u->background,
        .stays = true,
        .ask = call_approval_ask(c, asked),
    };
    u->x = service_execute(sv, &c->caller, &spec, &watcher, u);
}

static void run_code(struct call *c, json_t *args)
{
    bool shell = str_is(json_view(json_object_get(args, "language")), "shell");
    struct str code = json_view(json_object_get(args, "code"));

    start(c, shell ? EXEC_COMMAND : EXEC_CELL, code, code);
}

/* In single quotes, where the shell changes nothing. */
static void put_quoted(struct buf *b, struct str s)
{
    buf_put(b, STR("'"));
    for (size_t i = 0; i < s.n; i++)
        buf_put(b, s.p[i] == '\'' ? STR("'\\''") : (struct str){s.p + i, 1});
    buf_put(b, STR("'"));
}

static void run_shell(struct call *c, json_t *args)
{
    struct str command = json_view(json_object_get(args, "command"));
    struct str cwd = json_view(json_object_get(args, "cwd"));
    AUTO(buf_done) struct buf b = BUF(32 * MiB);

    if (cwd.n > 0) {
        buf_put(&b, STR("cd -- "));
        put_quoted(&b, cwd);
        buf_put(&b, STR(" || exit\n"));
    }
    buf_put(&b, command);
    start(c, EXEC_COMMAND, buf_str(&b), command);
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
