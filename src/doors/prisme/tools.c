/* execute_python over MCP. */
#include "doors/prisme/prisme_int.h"

#include <stdlib.h>

struct work {
    struct call *c;
    struct script *script; /* borrowed */
};

static void on_cancel(void *arg)
{
    struct work *w = arg;
    struct call *c = w->c;

    script_leave(w->script);
    free(w);
    call_drop(c);
}

static void on_value(void *arg, json_t *value, const char *task)
{
    struct work *w = arg;
    struct call *c = w->c;
    AUTO_FREE char *text = record_dump(value, false, NULL);
    struct content t;
    json_t *result;

    (void)task;
    free(w);
    call_on_cancel(c, NULL, NULL);
    content_init(&t);
    content_text(&t, text ? str_of(text) : STR("{\"error\":{\"code\":\"ResultTooLarge\"}}"));
    result = content_result(&t, value_is_error(value) || !text);
    if (c->client.version->has & HAS_STRUCTURED)
        json_object_set(result, "structuredContent", value);
    call_result(c, result);
    content_done(&t);
}

static void execute_python(struct call *c, json_t *args)
{
    struct prisme *p =
        (struct prisme *)((char *)(uintptr_t)c->face - offsetof(struct prisme, face));
    struct service *sv = call_service(c);
    const struct script_spec spec = {
        .prisme = p,
        .service = sv,
        .caller = &c->caller,
        .clearance = &c->clearance,
        .code = json_view(json_object_get(args, "code")),
        .files = json_object_get(args, "files"),
    };
    struct work *w;

    if (!sv)
        return;
    w = mem_zalloc(sizeof(*w));
    *w = (struct work){.c = c};
    call_on_cancel(c, on_cancel, w);
    w->script = script_start(&spec, on_value, w);
}

/* Silently: nothing runs, nobody is asked, and it is no error. */
static void blocked(struct call *c, json_t *args)
{
    json_t *value = value_of_blocked();
    AUTO_FREE char *text = record_dump(value, false, NULL);
    struct content t;
    json_t *result;

    (void)args;
    assert(text);
    content_init(&t);
    content_text(&t, str_of(text));
    result = content_result(&t, false);
    if (c->client.version->has & HAS_STRUCTURED)
        json_object_set(result, "structuredContent", value);
    call_result(c, result);
    content_done(&t);
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
};

/* What a model sees of it while its user has not asked for it. */
const struct tool tool_execute_python_stub = {
    .name = "execute_python",
    .title = "Code Interpreter",
    .text = "Disabled: the user has to ask for this tool first. Do not call it.",
    .schema = "{\"type\": \"object\"}",
    .run = blocked,
    .summoned = &tool_execute_python,
};
