/*
 * The server tools behind code_execution: which version has which, their definitions for the model
 * (a client declares only a version), and the blocks of their calls and results.
 */
#include "doors/anthropic/messages_int.h"

#include <stdio.h>

#define DESCRIPTION_MAX (256 * KiB)

#define NAMES(name_)                                                                               \
    {                                                                                              \
        name_, name_ "_tool_result", name_ "_tool_result_error", name_ "_result", name_ "_output"  \
    }

const struct server_tool_names server_tools[TOOL__COUNT] = {
    [TOOL_BASH] = NAMES("bash_code_execution"),
    [TOOL_EDITOR] = NAMES("text_editor_code_execution"),
    [TOOL_PYTHON] = NAMES("code_execution"),
};

int server_tool_find(const char *name)
{
    for (int i = 0; name && i < TOOL__COUNT; i++)
        if (strcmp(server_tools[i].name, name) == 0)
            return i;
    return -1;
}

int server_tool_of_result(const char *type)
{
    for (int i = 0; type && i < TOOL__COUNT; i++)
        if (strcmp(server_tools[i].result, type) == 0)
            return i;
    return -1;
}

/* --- versions --- */

#define CALLER_OLD "code_execution_20250825"
#define CALLER_NOW "code_execution_20260120"
#define SHELL      (IN(TOOL_BASH) | IN(TOOL_EDITOR))

static const struct tool_version versions[] = {
    {"code_execution_20250522", NULL,       IN(TOOL_PYTHON),         false},
    {"code_execution_20250825", CALLER_OLD, SHELL,                   true },
    {"code_execution_20260120", CALLER_NOW, SHELL | IN(TOOL_PYTHON), true },
    {"code_execution_20260521", CALLER_NOW, SHELL | IN(TOOL_PYTHON), true },
};

const struct tool_version *tool_version_find(const char *type)
{
    for (size_t i = 0; i < COUNT(versions); i++)
        if (strcmp(versions[i].type, type) == 0)
            return &versions[i];
    return NULL;
}

bool list_has(const json_t *list, const char *member, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach((json_t *)list, i, one) {
        if (str_is(view_of(one, member), text))
            return true;
    }
    return false;
}

bool caller_is_code(const json_t *caller)
{
    const char *type = text_of(caller, "type");

    return type && strncmp(type, "code_execution_", 15) == 0;
}

/* --- what a model is offered --- */

static void put(struct buf *b, const char *text)
{
    buf_put(b, str_of(text));
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
    put(b, "Runs a command with bash in a Linux container and gives its standard output, standard "
           "error and return code. Its working directory is the same each time; variables of the "
           "shell do not stay.");
    put_place(b, l);
    buf_printf(b, " A command has at most %llu seconds.", (unsigned long long)l->call_s);
}

static void describe_editor(struct buf *b, const struct tool_limits *l)
{
    (void)l;
    put(b, "Views, creates and edits text files in the container in which commands run. Paths are "
           "absolute, or relative to the working directory of commands, and may begin with "
           "$INPUT_DIR/ or $OUTPUT_DIR/. view shows a file, or the lines of view_range, or the "
           "names in a folder, or an image; create writes a file; str_replace replaces old_str, "
           "which must be there exactly once.");
}

static void describe_python(struct buf *b, const struct tool_limits *l)
{
    put(b, "Runs Python in a container and gives what it prints. Variables, functions and imports "
           "stay from one call to the next, and await can be used at the top level.");
    put_place(b, l);
    buf_printf(b, " A call has at most %llu seconds.", (unsigned long long)l->cell_s);
}

/* The model cannot call these tools, but the code that it writes can, as functions. */
static void describe_callable(struct buf *b, const json_t *callable)
{
    const json_t *tool;
    size_t i;

    if (json_array_size(callable) == 0)
        return;
    put(b, "\n\nThese async functions are there. Each takes one dict, must be awaited, and gives "
           "text. Calls that do not depend on each other go together with asyncio.gather(). Their "
           "results are seen by the code alone: print what you need to know.\n");
    json_array_foreach((json_t *)callable, i, tool) {
        AUTO_FREE char *schema = json_dumps(json_object_get(tool, "schema"), JSON_COMPACT);
        const char *text = text_of(tool, "description");

        buf_printf(b, "\nasync def %s(arguments: dict) -> str\n%s\narguments: %s\n",
                   text_of(tool, "function"), text ? text : "", schema ? schema : "{}");
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
} offers[TOOL__COUNT] = {
    [TOOL_BASH] = {describe_bash,   bash_schema  },
    [TOOL_EDITOR] = {describe_editor, editor_schema},
    [TOOL_PYTHON] = {describe_python, python_schema},
};

void tools_offer(json_t *tools, unsigned which, const json_t *callable,
                 const struct tool_limits *limits)
{
    for (int i = 0; i < TOOL__COUNT; i++) {
        struct buf b;

        if (!(which & IN(i)))
            continue;
        buf_init(&b, DESCRIPTION_MAX);
        offers[i].describe(&b, limits);
        if (i == TOOL_PYTHON)
            describe_callable(&b, callable);
        json_array_append_new(tools, json_pack("{s:s, s:o, s:o}", "name", server_tools[i].name,
                                               "description", record_text(buf_str(&b)), "schema",
                                               offers[i].schema()));
        buf_done(&b);
    }
}

/* --- ids --- */

/* The id holds the session's, so that a client that sends the history without the container gets
 * the same one. That is no secret: a session is found only for its own tenant. */
void tool_id_make(char ret[TOOL_ID_MAX], const char *prefix, const char *session)
{
    char own[ID_MAX];

    id_make(own, "u_");
    snprintf(ret, TOOL_ID_MAX, "%s%s%s", prefix, *session ? session + strlen(SESSION_PREFIX) : "",
             *session ? own + 1 : own + 2);
}

bool tool_id_session(const char *id, char ret[ID_MAX])
{
    const char *at = strchr(id, '_'), *end = at ? strchr(at + 1, '_') : NULL;
    char session[ID_MAX];

    if (!end)
        return false;
    snprintf(session, sizeof(session), SESSION_PREFIX "%.*s", (int)(end - at - 1), at + 1);
    if (end - at > ID_MAX || !id_is(str_of(session), SESSION_PREFIX))
        return false;
    memcpy(ret, session, sizeof(session));
    return true;
}

/* --- blocks --- */

json_t *block_use(enum server_tool tool, const char *id, json_t *input)
{
    return json_pack("{s:s, s:s, s:s, s:O, s:{s:s}}", "type", "server_tool_use", "id", id, "name",
                     server_tools[tool].name, "input", input, "caller", "type", "direct");
}

json_t *block_client_use(const char *id, const char *name, json_t *input, json_t *caller)
{
    return json_pack("{s:s, s:s, s:s, s:O, s:o}", "type", "tool_use", "id", id, "name", name,
                     "input", input, "caller",
                     caller ? json_incref(caller) : json_pack("{s:s}", "type", "direct"));
}

json_t *block_result(enum server_tool tool, const char *id, json_t *content)
{
    return json_pack("{s:s, s:s, s:o}", "type", server_tools[tool].result, "tool_use_id", id,
                     "content", content);
}

json_t *content_error(enum server_tool tool, const char *code)
{
    json_t *v = json_pack("{s:s, s:s}", "type", server_tools[tool].error, "error_code", code);

    if (tool == TOOL_EDITOR)
        json_object_set_new(v, "error_message", json_null());
    return v;
}

/* How many bytes of s are whole characters. */
static size_t whole(struct str s)
{
    return s.n - utf8_torn(s);
}

json_t *output_clip(struct str text, size_t max, uint64_t dropped)
{
    char marker[96];
    struct str head = {text.p, max / 2}, tail;
    AUTO(buf_done) struct buf b = BUF(max + sizeof(marker));

    if (text.n <= max && dropped == 0)
        return record_text(text);
    if (text.n < max)
        head.n = text.n / 2;
    head.n = whole(head);
    tail = (struct str){text.p + text.n - (text.n < max ? text.n - head.n : max / 2), 0};
    while (tail.p < text.p + text.n && ((unsigned char)*tail.p & 0xc0) == 0x80)
        tail.p++;
    tail.n = (size_t)(text.p + text.n - tail.p);
    snprintf(marker, sizeof(marker), "\n[... %llu bytes of output left out ...]\n",
             (unsigned long long)(text.n - head.n - tail.n + dropped));
    buf_put(&b, head);
    buf_put(&b, str_of(marker));
    buf_put(&b, tail);
    return record_text(buf_str(&b));
}

json_t *content_ran(enum server_tool tool, struct str out, struct str err, int code,
                    json_t *outputs, uint64_t dropped)
{
    return json_pack("{s:s, s:o, s:o, s:i, s:o}", "type", server_tools[tool].content, "stdout",
                     output_clip(out, OUTPUT_SHOWN, dropped), "stderr",
                     output_clip(err, OUTPUT_SHOWN, 0), "return_code", code, "content", outputs);
}

/* --- results, as a model reads them --- */

static void put_clipped(struct buf *b, const json_t *text)
{
    json_t *v = output_clip(json_view(text), MODEL_SHOWN, 0);

    buf_put(b, json_view(v));
    json_decref(v);
}

/* What the error codes mean, for the model. */
static const struct {
    const char *code, *text;
} meanings[] = {
    {"invalid_tool_input",      "the input of this call is not what the tool takes"                   },
    {"unavailable",             "it was not run, or its result is lost: the sandbox was not available"},
    {"too_many_requests",       "it was not run: too much runs at the moment; try again later"        },
    {"execution_time_exceeded", "it took longer than a call may take, and was ended"                  },
    {"output_file_too_large",   "it left a file in $OUTPUT_DIR that is larger than may be shared"     },
    {"file_not_found",          "there is no such file"                                               },
};

static void put_error(struct buf *b, const json_t *content, const char *code)
{
    const char *message = text_of(content, "error_message");

    for (size_t i = 0; !message && i < COUNT(meanings); i++)
        if (strcmp(meanings[i].code, code) == 0)
            message = meanings[i].text;
    buf_printf(b, "Error: %s%s%s", code, message ? ": " : "", message ? message : "");
}

static void put_outputs(struct buf *b, const json_t *outputs)
{
    const json_t *one;
    size_t i;

    json_array_foreach((json_t *)outputs, i, one) {
        const char *name = text_of(one, "filename");
        if (name)
            buf_printf(b, "\n[given to the user: %s]", name);
    }
}

static void put_run(struct buf *b, const json_t *content)
{
    struct str out = view_of(content, "stdout");
    struct str err = view_of(content, "stderr");
    json_int_t code = json_integer_value(json_object_get(content, "return_code"));

    put_clipped(b, json_object_get(content, "stdout"));
    if (err.n > 0) {
        put(b, out.n > 0 && out.p[out.n - 1] != '\n' ? "\n[stderr]\n" : "[stderr]\n");
        put_clipped(b, json_object_get(content, "stderr"));
    }
    if (code != 0)
        buf_printf(b, "\n[return code %lld]", (long long)code);
    put_outputs(b, json_object_get(content, "content"));
    if (b->n == 0)
        put(b, "[it printed nothing]");
}

static void put_edit(struct buf *b, const json_t *content)
{
    const json_t *lines = json_object_get(content, "lines"), *line;
    const json_t *text = json_object_get(content, "content");
    size_t i;

    if (json_is_string(text) && str_is(view_of(content, "file_type"), "image")) {
        json_t *image = edit_image(content);
        put(b, image ? "[the image]"
                     : "[an image that cannot be shown: it is damaged, or has a side of more than "
                       "8000 pixels]");
        json_decref(image);
    } else if (json_is_string(text) && str_is(view_of(content, "file_type"), "pdf"))
        buf_printf(b, "[a PDF of %zu bytes: its text is to be had with code]",
                   json_string_length(text) / 4 * 3);
    else if (json_is_string(text))
        put_clipped(b, text);
    else if (json_is_array(lines))
        json_array_foreach((json_t *)lines, i, line) {
            put_clipped(b, line);
            put(b, "\n");
        }
    else
        put(b, json_is_true(json_object_get(content, "is_file_update")) ? "The file was replaced."
                                                                        : "The file was created.");
    put_outputs(b, text);
}

json_t *content_said(const json_t *content)
{
    const char *code = text_of(content, "error_code");
    AUTO(buf_done) struct buf b = BUF(4 * MODEL_SHOWN);

    if (code)
        put_error(&b, content, code);
    else if (json_object_get(content, "return_code"))
        put_run(&b, content);
    else
        put_edit(&b, content);
    return record_text(buf_str(&b));
}
