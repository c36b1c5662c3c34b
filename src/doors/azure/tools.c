/*
 * The tools of a pool's MCP server: launchShell, and the tools that run Python and a shell line.
 * An environmentId is the name of a session. launchShell makes up a name that nobody has. The
 * session is made when a tool uses the name first, so a name that a model made up works as well.
 */
#include "doors/azure/tools.h"

#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

/* The same as text for older clients, and as an object. Takes structured and images (or NULL). */
static void answer(struct call *c, json_t *structured, json_t *images, bool is_error)
{
    AUTO_FREE char *text = record_dump(structured, false, NULL);
    struct tool_content t;
    json_t *result, *image;
    size_t i;

    content_init(&t);
    content_text(&t, str_of(text));
    json_array_foreach(images, i, image) {
        char mime[64];
        const char *format = json_string_value(json_object_get(image, "format"));
        if (strcmp(format, "svg") == 0)
            continue; /* no client shows it */
        snprintf(mime, sizeof(mime), "image/%s", format);
        content_image(&t, mime, json_incref(json_object_get(image, "base64_data")));
    }
    json_decref(images);
    result = content_result(&t, is_error);
    json_object_set_new(result, "structuredContent", structured);
    call_result(c, result);
}

static void launch(struct call *c, json_t *args)
{
    char id[UUID_MAX];

    (void)args;
    uuid_make(id);
    answer(c, json_pack("{s:s}", "environmentId", id), NULL, false);
}

/* --- running something --- */

struct azure_tool_exec {
    struct call *c;      /* borrowed: keeps this */
    struct execution *x; /* borrowed; NULL before it is there, and when it has ended or was left */
    enum exec_kind kind;
    char *code;   /* owned */
    json_t *args; /* owned: what a person is asked about */
    bool gone;
    bool is_new; /* its session is not there yet */
};

static void azure_tool_exec_free(void *p)
{
    struct azure_tool_exec *n = p;

    if (n->x)
        execution_leave(n->x);
    json_decref(n->args);
    free(n->code);
    free(n);
}

static void on_cancel(void *arg)
{
    struct azure_tool_exec *n = arg;

    n->gone = true;
    if (!n->x) /* on_named() finds out */
        return;
    execution_leave(take_ptr(&n->x));
    call_drop(n->c);
}

static json_t *show(const struct azure_tool_exec *n, const struct exec_info *info)
{
    struct streams_text s;
    json_t *v, *value;

    streams_read(&s, info);
    v = json_pack("{s:o, s:o}", "stdout", record_text(buf_str(&s.out)), "stderr",
                  record_text(buf_str(&s.err)));
    if (s.note.n > 0)
        json_object_set_new(v, "note", record_text(buf_str(&s.note)));
    else if (n->is_new)
        json_object_set_new(v, "note",
                            json_string("a new environment: nothing has run in it before"));
    streams_done(&s);
    if (n->kind == EXEC_COMMAND) {
        json_object_set(v, "exitCode", json_object_get(info->outcome, "exit_code"));
    } else {
        value = value_of(info->events, false);
        if (!json_is_object(value) && json_string_length(value) + !json_is_string(value) > 0)
            json_object_set(v, "result", value);
        json_decref(value);
    }
    return v;
}

static bool on_ask(void *arg, const struct approval_info *info)
{
    struct azure_tool_exec *n = arg;

    return call_on_ask(n->c, n->x, info);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct azure_tool_exec *n = arg;

    if (call_on_end(n->c, take_ptr(&n->x), failed))
        return;
    if (failed)
        tool_refuse(n->c, failed);
    else
        answer(n->c, show(n, info), images_of(info->events),
               n->kind == EXEC_CELL && !(info->how && info->how->status == OUTCOME_OK));
}

/* The words of a command are shown as the line that runs. */
static struct str asked_code(const struct azure_tool_exec *n)
{
    const char *line = json_string_value(json_object_get(n->args, "shellCommand"));

    return n->kind == EXEC_CELL ? json_view(json_object_get(n->args, "pythonCode")) : str_of(line);
}

/* The session is not made here: nothing is, before a person has agreed. */
static void on_named(void *arg, const struct session_info *info, const struct err *failed)
{
    static const struct exec_watcher watcher = {.on_end = on_end, .on_ask = on_ask};
    struct azure_tool_exec *n = arg;

    (void)info;
    if (n->gone) {
        call_drop(n->c);
        return;
    }
    if (failed && failed->kind != ERR_MISSING) {
        call_on_cancel(n->c, NULL, NULL);
        tool_refuse(n->c, failed);
        return;
    }
    n->is_new = failed;
    struct exec_spec spec = {
        .pool = str_of(azure_pool_of(n->c)),
        .name = json_view(json_object_get(n->args, "environmentId")),
        .kind = n->kind,
        .code = str_of(n->code),
        .ask = call_approval_ask(n->c, asked_code(n)),
    };
    spec.ask.args = n->args;
    spec.ask.implied = false;
    n->x = service_execute(call_service(n->c), &n->c->caller, &spec, &watcher, n);
}

/* Takes code. */
static void run(struct call *c, json_t *args, enum exec_kind kind, char *code)
{
    struct str id = json_view(json_object_get(args, "environmentId"));
    struct azure_tool_exec *n = mem_zalloc(sizeof(*n));
    const char *problem;
    struct err e;

    *n = (struct azure_tool_exec){.c = c, .kind = kind, .code = code, .args = json_copy(args)};
    call_keep(c, azure_tool_exec_free, n);
    if (json_object_del(n->args, "execCommandAndArgs") == 0)
        json_object_set_new(n->args, "shellCommand", json_string(code));
    problem = identifier_problem(id, &e);
    if (problem) {
        tool_fail(c, "%s: %s. Call launchShell and use the environmentId it gives.", problem,
                  e.text);
        return;
    }
    if (!call_service(c))
        return;
    call_on_cancel(c, on_cancel, n);
    service_session_named(call_service(c), &c->caller, str_of(azure_pool_of(c)), id, on_named, n);
}

static void run_python(struct call *c, json_t *args)
{
    run(c, args, EXEC_CELL, mem_strndup(json_view(json_object_get(args, "pythonCode"))));
}

static void run_shell(struct call *c, json_t *args)
{
    const json_t *words = json_object_get(args, "execCommandAndArgs");
    struct str line = json_view(json_object_get(args, "shellCommand"));
    char *code;

    if (!words == !line.p) {
        tool_fail(c, "give one of shellCommand (a string) and execCommandAndArgs (a list)");
        return;
    }
    code = words ? words_quote(words) : mem_strndup(line);
    if (code)
        run(c, args, EXEC_COMMAND, code);
    else
        tool_fail(c, "execCommandAndArgs must be a list of strings, and not empty");
}

/* --- the table --- */

#define ENVIRONMENT                                                                                \
    {                                                                                              \
        "environmentId", FIELD_TEXT, REQUIRED, 0, 0, NULL,                                         \
            "The environment to run in, as launchShell gave it. Variables and files stay in it.",  \
            NULL                                                                                   \
    }

static const struct field nothing[] = {{0}};

static const struct field python_params[] = {
    ENVIRONMENT,
    {"pythonCode", FIELD_TEXT, REQUIRED, 1, EXEC_CODE_MAX, NULL, "The Python code to run.", NULL},
    {0   },
};

static const struct field shell_params[] = {
    ENVIRONMENT,
    {"shellCommand", FIELD_TEXT, OPTIONAL, 1, EXEC_CODE_MAX, NULL,
      "A line for the shell. Give this or execCommandAndArgs.", NULL},
    {"execCommandAndArgs",      FIELD_LIST, OPTIONAL, 0, ARGUMENTS_MAX, "string",
      "A program and its arguments, as they are, without a shell.", NULL},
    {0},
};

#define LAUNCHED                                                                                   \
    "{\"type\":\"object\",\"properties\":{\"environmentId\":{\"type\":\"string\"}},"               \
    "\"required\":[\"environmentId\"]}"
#define SAID                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"stdout\":{\"type\":\"string\"},"                       \
    "\"stderr\":{\"type\":\"string\"},\"exitCode\":{\"type\":\"integer\"},\"result\":{},"          \
    "\"note\":{\"type\":\"string\"}},\"required\":[\"stdout\",\"stderr\"]}"

static const struct tool launch_shell = {
    .name = "launchShell",
    .title = "Launch an environment",
    .text = "Get the id of a new environment for Python and the shell. Call this first and pass "
            "environmentId to the other tools. Nothing is started until something runs in it.",
    .params = nothing,
    .answer = LAUNCHED,
    .run = launch,
};

static const struct tool run_python_code = {
    .name = "runPythonCodeInRemoteEnvironment",
    .title = "Run Python",
    .text = "Run Python code in an environment and get what it prints. Variables, imports and "
            "files in /mnt/data stay between calls with the same environmentId. The value of the "
            "last expression is in result; plots come back as images.",
    .params = python_params,
    .answer = SAID,
    .run = run_python,
};

static const struct tool run_shell_command = {
    .name = "runShellCommandInRemoteEnvironment",
    .title = "Run a shell command",
    .text = "Run a command in an environment and get its output and exit code: shellCommand for "
            "the shell, or execCommandAndArgs for a program with its arguments. It shares files "
            "in /mnt/data with the Python of the same environmentId.",
    .params = shell_params,
    .answer = SAID,
    .hints = TOOL_DESTROYS,
    .run = run_shell,
};

static const struct tool *const tools[] = {&launch_shell, &run_python_code, &run_shell_command,
                                           NULL};

/* Names that launchShell had before: called, and not listed. */
static const struct tool *const hidden[] = {
    &(const struct tool){.name = "launchPythonEnvironment", .params = nothing, .run = launch},
    &(const struct tool){.name = "launchShellEnvironment",  .params = nothing, .run = launch},
    NULL,
};

const struct tool_set azure_tools = {
    .name = AZURE_SERVER_NAME,
    .title = "Azure dynamic sessions",
    .instructions = "Call launchShell first, then run Python or shell commands with the "
                    "environmentId it gives. State is kept between calls.",
    .tools = tools,
    .hidden = hidden,
};

const struct tool_set *azure_tool_set(void *room)
{
    (void)room;
    return &azure_tools;
}
