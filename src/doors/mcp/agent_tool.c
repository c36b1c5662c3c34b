/* The tools that the agent works on, and their outputs as a model reads them. */
#include "doors/mcp/agent_call.h"

#define LOGS_SHOWN 8000 /* bytes */
#define TEXT_MAX   (256 * KiB)

/* --- the result --- */

static void put_files(struct tool_content *t, const json_t *outputs, const char *key)
{
    const json_t *file;
    size_t i;

    json_array_foreach(json_object_get(outputs, key), i, file) {
        struct str name = json_view(json_object_get(file, "asset_filename"));
        struct str url = json_view(json_object_get(file, "url"));
        content_printf(t, "%s: %.*s %.*s", key, (int)name.n, name.p, (int)url.n,
                       url.n ? url.p : "");
    }
}

static void put_list(struct buf *b, const char *before, const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) {
        struct str text = json_view(one);
        buf_printf(b, "%s%.*s", i ? ", " : before, (int)text.n, text.p);
    }
    if (json_array_size(list) > 0)
        buf_put(b, STR("."));
}

/* What a model that reads only the text would otherwise take for proven. */
static void put_doubts(struct tool_content *t, const json_t *outputs)
{
    const json_t *untraced = json_object_get(outputs, "untraced");
    AUTO(buf_done) struct buf b = BUF(16 * KiB);

    if (str_is(json_view(json_object_get(outputs, "status")), "incomplete"))
        buf_put(&b, STR("status: incomplete."));
    if (json_is_true(json_object_get(untraced, "no_run")))
        buf_put(&b, STR(" No run that went well stands behind the answer."));
    put_list(&b, " No run has printed ", json_object_get(untraced, "numbers"));
    put_list(&b, " There is no file ", json_object_get(untraced, "files"));
    if (b.n > 0)
        content_text(t, str_trim(buf_str(&b)));
}

json_t *agent_tool_result(const json_t *outputs, bool structured)
{
    json_t *result;
    const json_t *error = json_object_get(outputs, "error");
    struct str answer = json_view(json_object_get(outputs, "answer"));
    struct str sandbox = json_view(json_object_get(outputs, "sandbox_id"));
    struct str status = json_view(json_object_get(outputs, "status"));
    struct str code = json_view(json_object_get(error, "code"));
    struct str message = json_view(json_object_get(error, "message"));
    struct tool_content t;
    AUTO(buf_done) struct buf logs = BUF(64 * KiB);

    content_init(&t);
    if (error)
        content_printf(&t, "%.*s: %.*s", (int)code.n, code.n ? code.p : "", (int)message.n,
                       message.n ? message.p : "");
    if (answer.n)
        content_text(&t, answer);
    put_doubts(&t, outputs);
    (void)text_clip(&logs, json_view(json_object_get(outputs, "logs")), LOGS_SHOWN, NULL);
    if (logs.n)
        content_text(&t, buf_str(&logs));
    put_files(&t, outputs, "artifacts");
    put_files(&t, outputs, "generated_files");
    if (sandbox.n)
        content_printf(&t, "sandbox_id: %.*s", (int)sandbox.n, sandbox.p);
    result = content_result(&t, !str_is(status, "completed") && !str_is(status, "incomplete"));
    content_done(&t);
    if (structured)
        json_object_set(result, "structuredContent", (json_t *)outputs);
    return result;
}

/* --- the tools --- */

static void run_code_execution(struct call *c, json_t *args)
{
    if (!agent_call_resume(c))
        agent_call_start(c, "code_execution", true, args);
}

static void run_python_interpreter(struct call *c, json_t *args)
{
    if (!agent_call_resume(c))
        agent_call_start(c, "python_interpreter", false, args);
}

// clang-format off
static const struct field request_params[] = {
    {"request", FIELD_TEXT, REQUIRED, 1, TEXT_MAX, NULL,
     "What the code is to do, in plain words.", "\"Plot the sales trend from this CSV\""},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, 32, "string",
     "UUIDs of documents that the code needs; they are in /home/uploaded_files.", NULL},
    {"context", FIELD_TEXT, OPTIONAL, 0, TEXT_MAX, NULL,
     "Further context or constraints.", "\"Use a dark theme for the plot\""},
    {"sandbox_id", FIELD_TEXT, OPTIONAL, 0, 64, NULL,
     "The sandbox of an earlier answer, to go on with its variables and files.", NULL},
    {0},
};

static const struct field code_params[] = {
    {"code", FIELD_TEXT, REQUIRED, 1, TEXT_MAX, NULL, "Python to be run as it is.",
     "\"print(6 * 7)\""},
    {"sandbox_id", FIELD_TEXT, OPTIONAL, 0, 64, NULL,
     "The sandbox of an earlier answer, to go on with its variables and files.", NULL},
    {0},
};
// clang-format on

#define OUTPUTS                                                                                    \
    "{\"type\":\"object\",\"properties\":{\"sandbox_id\":{\"type\":[\"string\",\"null\"]},"        \
    "\"plan\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                               \
    "\"logs\":{\"type\":\"string\"},\"total_rounds\":{\"type\":\"integer\"},"                      \
    "\"generated_files\":{\"type\":\"array\"},\"artifacts\":{\"type\":\"array\"},"                 \
    "\"execution_id\":{\"type\":\"string\"},\"answer\":{\"type\":[\"string\",\"null\"]},"          \
    "\"status\":{\"type\":\"string\"},\"untraced\":{\"type\":\"object\"}},\"required\":["          \
    "\"sandbox_id\",\"plan\",\"logs\","                                                            \
    "\"total_rounds\",\"generated_files\",\"artifacts\",\"execution_id\"]}"

const struct tool tool_code_execution = {
    .name = "code_execution",
    .title = "Code execution",
    .text = "Solve a task with Python in a sealed sandbox. Say in plain words what is to be done: "
            "it makes a plan, writes code, runs it, reads what it printed, corrects it, and "
            "answers with the log of all rounds, files and plots. Use it to analyse CSV, Excel or "
            "JSON, to draw charts, to calculate, to convert files. Pass the sandbox_id of an "
            "answer to go on where it ended. Without a model it fails with NoModelConfigured: then "
            "run code of your own.",
    .params = request_params,
    .answer = OUTPUTS,
    .run = run_code_execution,
};

const struct tool tool_python_interpreter = {
    .name = "python_interpreter",
    .title = "Python interpreter",
    .text = "Run Python of yours in a sealed sandbox, without a model in between. The answer is "
            "that of code_execution with one round. Pass its sandbox_id to go on with the same "
            "variables.",
    .params = code_params,
    .answer = OUTPUTS,
    .run = run_python_interpreter,
};
