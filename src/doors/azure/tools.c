/*
 * launchShell and the two that run something. An environmentId is the name of a session:
 * launchShell makes up one that nobody has, and the session is made by its first use; one
 * that a model made up is as good.
 */
#include "doors/azure/tools.h"

#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* --- launchShell --- */

static void uuid_make(char ret[37])
{
    uint8_t b[16];
    ssize_t got = getrandom(b, sizeof(b), 0);

    assert(got == (ssize_t)sizeof(b)); /* so few bytes come whole */
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(ret, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

/* The same as text for older clients, and as an object. Takes structured and images (or NULL). */
static void answer(struct call *c, json_t *structured, json_t *images, bool is_error)
{
    AUTO_FREE char *text = json_dumps(structured, 0);
    struct content t;
    json_t *result, *image;
    size_t i;

    content_init(&t);
    content_text(&t, str_of(text));
    json_array_foreach(images, i, image)
    {
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
    char id[37];

    (void)args;
    uuid_make(id);
    answer(c, json_pack("{s:s}", "environmentId", id), NULL, false);
}

/* --- running something --- */

struct errand {
    struct call *c;     /* borrowed: held by us until it is answered */
    struct service *sv; /* borrowed */
    struct job *job;    /* borrowed; NULL before it is there, and when it has ended or was left */
    enum exec_kind kind;
    char *code; /* owned */
    char session[ID_MAX];
    bool gone;
    char note[256];
};

static void errand_free(void *p)
{
    struct errand *n = p;

    free(n->code);
    free(n);
}

static void on_cancel(void *arg)
{
    struct errand *n = arg;

    n->gone = true;
    if (n->job) {
        job_leave(take_ptr(&n->job));
        call_drop(n->c);
    }
}

static json_t *show(const struct errand *n, const struct exec_info *info)
{
    struct streams_text s;
    json_t *v, *value;

    streams_read(&s, info);
    v = json_pack("{s:o, s:o}", "stdout", record_text(buf_str(&s.out)), "stderr",
                  record_text(buf_str(&s.err)));
    streams_done(&s);
    if (n->kind == EXEC_COMMAND) {
        json_object_set(v, "exitCode", json_object_get(info->outcome, "exit_code"));
    } else {
        value = value_of(info->events, false);
        if (!json_is_object(value) && json_string_length(value) + !json_is_string(value) > 0)
            json_object_set(v, "result", value);
        json_decref(value);
    }
    if (*n->note)
        json_object_set_new(v, "note", json_string(n->note));
    return v;
}

static void on_queued(void *arg, const struct exec_info *info)
{
    (void)arg;
    (void)info;
}

static void on_event(void *arg, const struct event *ev)
{
    (void)arg;
    (void)ev;
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct errand *n = arg;
    struct call *c = n->c;

    n->job = NULL;
    call_on_cancel(c, NULL, NULL);
    if (failed)
        tool_refuse(c, failed);
    else
        answer(c, show(n, info), images_of(info->events),
               n->kind == EXEC_CELL && !(info->how && info->how->status == OUTCOME_OK));
}

static void start(void *arg, const struct clearance *clearance, const struct err *failed)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    struct errand *n = arg;
    struct call *c = n->c;

    if (n->gone) {
        call_drop(c);
        return;
    }
    if (failed) {
        call_on_cancel(c, NULL, NULL);
        tool_refuse(c, failed);
        return;
    }
    const struct exec_spec spec = {
        .session = str_of(n->session),
        .kind = n->kind,
        .code = str_of(n->code),
        .clearance = clearance,
    };
    n->job = service_execute(n->sv, &c->caller, &spec, &watcher, n);
}

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct errand *n = arg;

    if (failed || n->gone) {
        start(n, NULL, failed);
        return;
    }
    if (!info->existed)
        snprintf(n->note, sizeof(n->note), "a new environment: nothing has run in it before");
    else if (info->note)
        snprintf(n->note, sizeof(n->note), "%s", info->note);
    memcpy(n->session, info->row->id, sizeof(n->session));
    const struct clear_spec spec = {
        .pool = str_of(info->row->pool),
        .session = str_of(n->session),
        .code = str_of(n->code),
        .kind = n->kind,
    };
    clear_ask(n->sv, &n->c->caller, &spec, start, n);
}

/* Takes code. */
static void run(struct call *c, const json_t *args, enum exec_kind kind, char *code)
{
    struct str id = json_view(json_object_get(args, "environmentId"));
    const struct session_spec spec = {.pool = str_of(azure_pool_of(c)), .name = id};
    struct errand *n = mem_zalloc(sizeof(*n));

    *n = (struct errand){.c = c, .kind = kind, .code = code};
    call_keep(c, errand_free, n);
    if (id.n < IDENTIFIER_MIN || id.n > IDENTIFIER_MAX) {
        tool_fail(c,
                  "InvalidLengthOfSessionIdentifier: environmentId must have %d to %d characters. "
                  "Call launchShell and use the environmentId it gives.",
                  IDENTIFIER_MIN, IDENTIFIER_MAX);
        return;
    }
    n->sv = call_service(c);
    if (!n->sv)
        return;
    call_on_cancel(c, on_cancel, n);
    service_session_create(n->sv, &c->caller, &spec, on_session, n);
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

const struct face azure_tools = {
    .name = AZURE_SERVER_NAME,
    .title = "Azure dynamic sessions",
    .instructions = "Call launchShell first, then run Python or shell commands with the "
                    "environmentId it gives. State is kept between calls.",
    .tools = tools,
    .hidden = hidden,
};

const struct face *azure_face(void)
{
    return &azure_tools;
}
