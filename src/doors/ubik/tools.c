/* The tools over MCP, and what a model reads of their outputs. */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

#define LOGS_SHOWN 8000 /* bytes */

/* --- the result --- */

static void put_files(struct content *t, const json_t *outputs, const char *key)
{
    const json_t *file;
    size_t i;

    json_array_foreach(json_object_get(outputs, key), i, file)
    {
        struct str name = json_view(json_object_get(file, "asset_filename"));
        struct str url = json_view(json_object_get(file, "url"));
        content_printf(t, "%s: %.*s %.*s", key, (int)name.n, name.p, (int)url.n,
                       url.n ? url.p : "");
    }
}

json_t *mission_result(const struct call *c, const struct execution *x, const char *base)
{
    json_t *outputs = outputs_of(x, base), *result;
    const json_t *error = json_object_get(outputs, "error");
    struct str answer = json_view(json_object_get(outputs, "answer"));
    struct str sandbox = json_view(json_object_get(outputs, "sandbox_id"));
    struct str code = json_view(json_object_get(error, "code"));
    struct str message = json_view(json_object_get(error, "message"));
    struct content t;
    struct buf logs;

    content_init(&t);
    if (error)
        content_printf(&t, "%.*s: %.*s", (int)code.n, code.n ? code.p : "", (int)message.n,
                       message.n ? message.p : "");
    if (answer.n)
        content_text(&t, answer);
    buf_init(&logs, 64 * KiB);
    (void)text_clip(&logs, json_view(json_object_get(outputs, "logs")), LOGS_SHOWN, NULL);
    if (logs.n)
        content_text(&t, buf_str(&logs));
    buf_done(&logs);
    put_files(&t, outputs, "artifacts");
    put_files(&t, outputs, "generated_files");
    if (sandbox.n)
        content_printf(&t, "sandbox_id: %.*s", (int)sandbox.n, sandbox.p);
    result = content_result(&t, strcmp(execution_status(x), "failed") == 0);
    content_done(&t);
    if (!c || (c->client.version->has & HAS_STRUCTURED))
        json_object_set(result, "structuredContent", outputs);
    json_decref(outputs);
    return result;
}

/* --- the tools --- */

static void run_code_execution(struct call *c, json_t *args)
{
    struct ubik *u = c->face->ctx;

    if (!mission_resume(c, u))
        mission_start(c, u, catalog_named("code_execution"), args);
}

static void run_python_interpreter(struct call *c, json_t *args)
{
    struct ubik *u = c->face->ctx;

    if (!mission_resume(c, u))
        mission_start(c, u, catalog_named("python_interpreter"), args);
}

// clang-format off
static const struct field request_params[] = {
    {"request", FIELD_TEXT, REQUIRED, 1, REQUEST_BYTES, NULL,
     "What the code is to do, in plain words.", "\"Plot the sales trend from this CSV\""},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, DOCUMENTS_MAX, "string",
     "UUIDs of documents that the code needs; they are in /home/uploaded_files.", NULL},
    {"context", FIELD_TEXT, OPTIONAL, 0, REQUEST_BYTES, NULL,
     "Further context or constraints.", "\"Use a dark theme for the plot\""},
    {"sandbox_id", FIELD_TEXT, OPTIONAL, 0, 64, NULL,
     "The sandbox of an earlier answer, to go on with its variables and files.", NULL},
    {0},
};

static const struct field code_params[] = {
    {"code", FIELD_TEXT, REQUIRED, 1, CODE_BYTES, NULL, "Python to be run as it is.",
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
    "\"status\":{\"type\":\"string\"}},\"required\":[\"sandbox_id\",\"plan\",\"logs\","            \
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
