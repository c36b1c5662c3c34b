/* execute_python over MCP. */
#include "doors/prisme/prisme_int.h"

#include <stdlib.h>

static void answer(struct call *c, json_t *value)
{
    AUTO_FREE char *text = record_dump(value, false, NULL);
    struct tool_content t;
    json_t *result;

    content_init(&t);
    content_text(&t, text ? str_of(text) : STR("{\"error\":{\"code\":\"ResultTooLarge\"}}"));
    result = content_result(&t, json_object_get(value, "error") || !text);
    if (call_has_structured(c))
        json_object_set(result, "structuredContent", value);
    call_result(c, result);
    content_done(&t);
}

void prisme_call_answer(struct call *c, json_t *value)
{
    answer(c, value);
    json_decref(value);
}

static void execute_python(struct call *c, json_t *args)
{
    const struct tool_set *set = c->tool_set;
    struct service *sv = call_service(c);

    if (sv)
        prisme_call_tool(
            (struct prisme *)((char *)(uintptr_t)set - offsetof(struct prisme, tool_set)), sv, c,
            args);
}

/* Nothing runs and nobody is asked; to the model that is no error. */
static void blocked(struct call *c, json_t *args)
{
    json_t *value = value_of_blocked();

    (void)args;
    answer(c, value);
    json_decref(value);
}

static void not_approved(struct call *c, bool waits, const char *id, const char *text)
{
    json_t *value = value_of_failure(waits ? "ApprovalRequired" : "ApprovalDenied", text);

    if (waits && id)
        json_object_set_new(value, "task_id", json_string(id));
    answer(c, value);
    json_decref(value);
}

// clang-format off
static const struct field params[] = {
    {"code", FIELD_TEXT, REQUIRED, 0, EXEC_CODE_MAX, NULL,
     "A complete Python script. Print or assign the result, or return it.",
     "\"import csv\\nrows = list(csv.DictReader(open('sales.csv')))\\nreturn len(rows)\""},
    {"files", FIELD_LIST, OPTIONAL, 0, FILES_MAX, "string",
     "URLs of files to be there before the run; open each by its file name.",
     "[\"https://example.com/sales.csv\"]"},
    {0},
};
// clang-format on

const struct tool tool_execute_python = {
    .name = "execute_python",
    .title = "Code Interpreter",
    .text = "Run a complete Python script in a sealed sandbox without network and get its result "
            "back. Nothing is kept from one call to the next. Print the answer, assign it to "
            "`result`, or return it. To read a file pass its URL in `files` and open it by its "
            "file name; CSV and Excel are supported, PDF is not. Imports are restricted to an "
            "allow-list; prefer the standard library (csv, json, statistics, math, datetime).\n"
            "The answer is {result, logs, duration} and, on failure, error {code, message, stack}.",
    .params = params,
    .hints = TOOL_RUNS,
    .run = execute_python,
    .not_approved = not_approved,
};

/* What a model sees of it while its user has not asked for it. */
const struct tool tool_execute_python_stub = {
    .name = "execute_python",
    .title = "Code Interpreter",
    .text = "Disabled: the user has to ask for this tool first. Do not call it.",
    .schema = "{\"type\": \"object\"}",
    .run = blocked,
    .not_approved = not_approved,
    .summoned = &tool_execute_python,
};
