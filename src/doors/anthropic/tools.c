/*
 * The versions of the code execution tool, and what a model is offered for each: real
 * tools, with what their descriptions must tell it, as a client declares but a name.
 */
#include "doors/anthropic/messages_int.h"

#define DESCRIPTION_MAX (256 * KiB)

#define SUB(name_)                                                                                 \
    {                                                                                              \
        name_, name_ "_tool_result", name_ "_tool_result_error", name_ "_result", name_ "_output"  \
    }

const struct sub_tool sub_tools[SUB__COUNT] = {
    [SUB_BASH] = SUB("bash_code_execution"),
    [SUB_EDITOR] = SUB("text_editor_code_execution"),
    [SUB_PYTHON] = SUB("code_execution"),
};

int sub_find(const char *name)
{
    for (int i = 0; name && i < SUB__COUNT; i++)
        if (strcmp(sub_tools[i].name, name) == 0)
            return i;
    return -1;
}

int sub_find_result(const char *type)
{
    for (int i = 0; type && i < SUB__COUNT; i++)
        if (strcmp(sub_tools[i].result, type) == 0)
            return i;
    return -1;
}

/* --- versions --- */

#define CALLER_OLD "code_execution_20250825"
#define CALLER_NOW "code_execution_20260120"
#define SHELL      (IN(SUB_BASH) | IN(SUB_EDITOR))

static const struct version versions[] = {
    {"code_execution_20250522", NULL,       IN(SUB_PYTHON),         false},
    {"code_execution_20250825", CALLER_OLD, SHELL,                  true },
    {"code_execution_20260120", CALLER_NOW, SHELL | IN(SUB_PYTHON), true },
    {"code_execution_20260521", CALLER_NOW, SHELL | IN(SUB_PYTHON), true },
};

const struct version *version_named(const char *type)
{
    for (size_t i = 0; i < COUNT(versions); i++)
        if (strcmp(versions[i].type, type) == 0)
            return &versions[i];
    return NULL;
}

bool caller_is_code(const json_t *caller)
{
    const char *type = json_string_value(json_object_get(caller, "type"));

    return type && strncmp(type, "code_execution_", 15) == 0;
}

/* --- descriptions --- */

static void put(struct buf *b, const char *text)
{
    struct err e;

    (void)!buf_put(b, str_of(text), &e);
}

static void put_place(struct buf *b, const struct tool_limits *l)
{
    put(b,
        " Files that the user has uploaded are in the directory $INPUT_DIR. $OUTPUT_DIR is a new, "
        "empty directory for each call: regular files at its top level are given to the user "
        "when the call ends; what is elsewhere stays in the container. Files stay from one "
        "call to the next. ");
    put(b, l->outside ? "A few hosts can be reached through the proxy that the environment names."
                      : "There is no network.");
}

static void describe_bash(struct buf *b, const struct tool_limits *l)
{
    struct err e;

    put(b, "Runs a command with bash in a Linux container and gives its standard output, standard "
           "error and return code. Its working directory is the same each time; variables of the "
           "shell do not stay.");
    put_place(b, l);
    (void)!buf_printf(b, &e, " A command has at most %llu seconds.", (unsigned long long)l->call_s);
}

static void describe_editor(struct buf *b, const struct tool_limits *l)
{
    (void)l;
    put(b, "Views, creates and edits text files in the container in which commands run. Paths are "
           "relative to the working directory of commands, and may begin with $INPUT_DIR/. view "
           "shows a file, or the lines of view_range; create writes a file; str_replace replaces "
           "old_str, which must be there exactly once.");
}

static void describe_python(struct buf *b, const struct tool_limits *l)
{
    struct err e;

    put(b, "Runs Python in a container and gives what it prints. Variables, functions and imports "
           "stay from one call to the next, and await can be used at the top level.");
    put_place(b, l);
    (void)!buf_printf(b, &e, " A call has at most %llu seconds.", (unsigned long long)l->cell_s);
}

/* Code knows them as functions; so the model must be told of them here, as it cannot call them. */
static void describe_callable(struct buf *b, const json_t *callable)
{
    const json_t *tool;
    struct err e;
    size_t i;

    if (json_array_size(callable) == 0)
        return;
    put(b, "\n\nThese async functions are there. Each takes one dict, must be awaited, and gives "
           "text. Calls that do not depend on each other go together with asyncio.gather(). Their "
           "results are seen by the code alone: print what you need to know.\n");
    json_array_foreach((json_t *)callable, i, tool)
    {
        AUTO_FREE char *schema = json_dumps(json_object_get(tool, "schema"), JSON_COMPACT);
        const char *text = json_string_value(json_object_get(tool, "description"));

        (void)!buf_printf(b, &e, "\nasync def %s(arguments: dict) -> str\n%s\narguments: %s\n",
                          json_string_value(json_object_get(tool, "function")), text ? text : "",
                          schema ? schema : "{}");
    }
}

static json_t *text_schema(const char *name, const char *text)
{
    return json_pack("{s:s, s:{s:{s:s, s:s}}, s:[s]}", "type", "object", "properties", name, "type",
                     "string", "description", text, "required", name);
}

static json_t *bash_schema(void)
{
    return text_schema("command", "The command, as bash reads it.");
}

static json_t *python_schema(void)
{
    return text_schema("code", "Python code.");
}

static json_t *editor_schema(void)
{
    return json_pack(
        "{s:s, s:{s:{s:s, s:[s,s,s]}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s, s:{s:s}}}, "
        "s:[s,s]}",
        "type", "object", "properties", "command", "type", "string", "enum", "view", "create",
        "str_replace", "path", "type", "string", "file_text", "type", "string", "old_str", "type",
        "string", "new_str", "type", "string", "view_range", "type", "array", "items", "type",
        "integer", "required", "command", "path");
}

static const struct {
    void (*describe)(struct buf *b, const struct tool_limits *l);
    json_t *(*schema)(void);
} offers[SUB__COUNT] = {
    [SUB_BASH] = {describe_bash,   bash_schema  },
    [SUB_EDITOR] = {describe_editor, editor_schema},
    [SUB_PYTHON] = {describe_python, python_schema},
};

void tools_offer(json_t *tools, unsigned subs, const json_t *callable,
                 const struct tool_limits *limits)
{
    for (int i = 0; i < SUB__COUNT; i++) {
        struct buf b;

        if (!(subs & IN(i)))
            continue;
        buf_init(&b, DESCRIPTION_MAX);
        offers[i].describe(&b, limits);
        if (i == SUB_PYTHON)
            describe_callable(&b, callable);
        json_array_append_new(tools,
                              json_pack("{s:s, s:o, s:o}", "name", sub_tools[i].name, "description",
                                        record_text(buf_str(&b)), "schema", offers[i].schema()));
        buf_done(&b);
    }
}
