/* Tools: listed, called once their arguments fit, and their results; the tool set of /mcp. */
#include "doors/mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *literal(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);

    assert(v);
    return v;
}

/* outside: code may reach what is not ours. */
static json_t *hints_show(const struct tool *t, bool outside)
{
    return json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", t->title, "readOnlyHint",
                     t->hints & TOOL_READS, "destructiveHint", t->hints & TOOL_DESTROYS,
                     "idempotentHint", t->hints & TOOL_REPEATABLE, "openWorldHint",
                     (t->hints & TOOL_OUTSIDE) || (outside && (t->hints & TOOL_RUNS)));
}

static json_t *tool_show(const struct call *c, const struct tool *t)
{
    const struct protocol_version *v = c->client.version;
    json_t *schema = t->schema ? literal(t->schema) : fields_schema(t->params);
    json_t *shown = json_pack("{s:s, s:s, s:o}", "name", t->name, "description", t->text,
                              "inputSchema", schema);

    if (v->has & HAS_ANNOTATIONS)
        json_object_set_new(shown, "annotations", hints_show(t, c->mcp->config.outside));
    if (v->has & HAS_STRUCTURED) {
        json_object_set_new(shown, "title", json_string(t->title));
        if (t->answer)
            json_object_set_new(shown, "outputSchema", literal(t->answer));
        if (t->meta)
            json_object_set_new(shown, "_meta", literal(t->meta));
    }
    return shown;
}

/* --- stubs: tools that are there once the user has asked for them --- */

bool tool_is_chosen(const struct tool *t, const json_t *choice)
{
    const json_t *one;
    size_t i;

    if (json_is_object(choice))
        choice = json_object_get(choice, "name");
    if (str_is(json_view(choice), t->name))
        return true;
    json_array_foreach(choice, i, one)
        if (str_is(json_view(one), t->name))
            return true;
    return false;
}

/* _meta is the client's own, and nothing that a model can write. */
static const struct tool *tool_meant(const struct call *c, const struct tool *t)
{
    return t->summoned && tool_is_chosen(t, json_object_get(c->meta, "tool_choice")) ? t->summoned
                                                                                     : t;
}

static bool has_stubs(const struct tool_set *f)
{
    for (size_t i = 0; f->tools[i]; i++)
        if (f->tools[i]->summoned)
            return true;
    return false;
}

/* --- the list --- */

static bool can_use_agent(const struct call *c)
{
    return c->tool_set->agent_tool && (c->tool_set->has_model || call_can(c, "sampling"));
}

/* Not everybody is shown the same. */
static bool differs(const struct tool_set *f)
{
    return (f->agent_tool && !f->has_model) || has_stubs(f);
}

static json_t *tools_show(const struct call *c)
{
    bool stubs = has_stubs(c->tool_set);
    json_t *list = json_array(), *result;

    for (size_t i = 0; c->tool_set->tools[i]; i++)
        json_array_append_new(list, tool_show(c, tool_meant(c, c->tool_set->tools[i])));
    if (can_use_agent(c))
        json_array_append_new(list, tool_show(c, c->tool_set->agent_tool));
    result = json_pack("{s:o}", "tools", list);
    if (call_is_modern(c)) {
        json_object_set_new(result, "ttlMs", json_integer(stubs ? 0 : 3600000));
        json_object_set_new(result, "cacheScope",
                            json_string(differs(c->tool_set) ? "private" : "public"));
    }
    return result;
}

void tools_forget(struct mcp *m)
{
    for (size_t i = 0; i < VERSION_COUNT; i++)
        for (size_t k = 0; k < COUNT(m->tools_text[i]); k++)
            free(take_ptr(&m->tools_text[i][k]));
}

/* The same for everybody who speaks a version, with a model or without, so it is made once. */
static const char *tools_text(const struct call *c)
{
    char **text = &c->mcp->tools_text[c->client.version - versions][can_use_agent(c)];
    json_t *result;

    if (*text)
        return *text;
    result = tools_show(c);
    result_dress(c, result);
    *text = json_dumps(result, JSON_COMPACT);
    json_decref(result);
    assert(*text);
    return *text;
}

void handle_tools_list(struct call *c)
{
    if (!call_has_one_page(c))
        return;
    if (has_stubs(c->tool_set))
        call_result(c, tools_show(c));
    else
        call_result_text(c, str_of(tools_text(c)));
}

const struct tool *tool_find(const struct tool_set *f, struct str name)
{
    for (size_t i = 0; f->tools[i]; i++)
        if (str_is(name, f->tools[i]->name))
            return f->tools[i];
    if (f->agent_tool && str_is(name, f->agent_tool->name))
        return f->agent_tool;
    for (size_t i = 0; f->hidden && f->hidden[i]; i++)
        if (str_is(name, f->hidden[i]->name))
            return f->hidden[i];
    return NULL;
}

/* A service that has not been started yet has no keys, either. */
static bool only_reads(const struct call *c)
{
    struct service *sv = *c->caller.key ? call_service((struct call *)c) : NULL;

    return sv && service_only_reads(sv, &c->caller);
}

void handle_tools_call(struct call *c)
{
    struct str name = json_view(json_object_get(c->params, "name"));
    json_t *args = json_object_get(c->params, "arguments");
    const struct tool *t = tool_find(c->tool_set, name);
    char shown[NAME_SHOWN], param[FIELD_PATH_MAX];
    struct err e;

    if (!t) {
        call_error(c, RPC_PARAMS, NULL, "there is no tool %s", name_show(shown, name));
        return;
    }
    if (args && !json_is_object(args)) {
        call_error(c, RPC_PARAMS, NULL, "arguments must be an object");
        return;
    }
    if (!args) {
        args = json_object();
        json_object_set_new(c->params, "arguments", args);
    }
    t = tool_meant(c, t);
    if (!(t->hints & TOOL_READS) && only_reads(c)) {
        tool_fail(c, "this key may only read, and %s does more", t->name);
        return;
    }
    if (!t->schema)
        fields_drop_nulls(t->params, args);
    if (!t->schema && fields_check(t->params, args, param, &e) < 0)
        tool_fail(c, "%s %s", param, e.text);
    else
        t->run(c, args);
}

/* --- results --- */

void content_init(struct tool_content *t)
{
    t->items = json_array();
}

void content_done(struct tool_content *t)
{
    json_decref(take_ptr(&t->items));
}

void content_text(struct tool_content *t, struct str text)
{
    json_array_append_new(t->items,
                          json_pack("{s:s, s:o}", "type", "text", "text", record_text(text)));
}

void content_printf(struct tool_content *t, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    content_text(t, str_of(text));
}

void content_image(struct tool_content *t, const char *mime, json_t *base64)
{
    json_array_append_new(
        t->items, json_pack("{s:s, s:o, s:s}", "type", "image", "data", base64, "mimeType", mime));
}

void content_link(struct tool_content *t, const struct call *c, const char *uri, struct str name,
                  const char *mime, uint64_t size)
{
    if (!(c->client.version->has & HAS_STRUCTURED))
        return;
    json_array_append_new(t->items, json_pack("{s:s, s:s, s:o, s:s, s:I}", "type", "resource_link",
                                              "uri", uri, "name", record_text(name), "mimeType",
                                              mime, "size", (json_int_t)size));
}

json_t *content_result(struct tool_content *t, bool is_error)
{
    return json_pack("{s:o, s:b}", "content", take_ptr(&t->items), "isError", is_error);
}

void content_answer(struct tool_content *t, struct call *c, bool is_error)
{
    call_result(c, content_result(t, is_error));
}

void tool_say(struct call *c, struct str text)
{
    struct tool_content t;

    content_init(&t);
    content_text(&t, text);
    content_answer(&t, c, false);
}

static PRINTF(3, 0) void say(struct call *c, bool is_error, const char *fmt, va_list args)
{
    struct tool_content t;
    char text[2048];

    vsnprintf(text, sizeof(text), fmt, args);
    content_init(&t);
    content_text(&t, str_of(text));
    content_answer(&t, c, is_error);
}

void tool_printf(struct call *c, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(c, false, fmt, args);
    va_end(args);
}

void tool_fail(struct call *c, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(c, true, fmt, args);
    va_end(args);
}

void tool_refuse(struct call *c, const struct err *e)
{
    if (e->kind == ERR_HOST)
        call_fail(c, e);
    else
        tool_fail(c, "%s", e->text);
}

/* --- the tools at /mcp --- */

static const struct tool *const native_tools[] = {
    &tool_run_code,
    &tool_run_shell,
    &tool_get_execution,
    &tool_interrupt_execution,
    &tool_create_session,
    &tool_list_sessions,
    &tool_restart_session,
    &tool_close_session,
    &tool_list_files,
    &tool_read_file,
    &tool_write_file,
    &tool_list_packages,
    NULL,
};

const struct tool_set tool_set_native = {
    .name = "retort",
    .title = "retort code interpreter",
    .instructions =
        "A sealed Python and bash for computing, data analysis, plots and files. Use it whenever "
        "a number, a table or a chart has to be right: run code instead of guessing, and never "
        "invent a result.\n"
        "1. Bring data in with write_file (text, base64 or, best, a url); it lands in /workspace.\n"
        "2. run_code runs Python in a session: variables, imports and files stay for the next "
        "call. Pass the session_id from the first line of an answer to go on in the same "
        "session.\n"
        "3. Print compactly: about 10,000 characters of output are shown. plt.show() gives the "
        "plot as an image; files saved in /workspace are listed, and read_file shows them.\n"
        "4. On an error read the traceback, fix the code, and try again at most twice; then say "
        "what is wrong.\n"
        "5. Long work: background=true, then get_execution with wait_ms.\n"
        "There is usually no network in the sandbox; list_packages tells what is installed. More "
        "in skill://code-interpreter/SKILL.md.",
    .tools = native_tools,
    .skill = "code-interpreter",
    .offers = OFFERS_PROMPTS | OFFERS_RESOURCES | OFFERS_COMPLETIONS | OFFERS_SKILLS |
              OFFERS_TASKS | OFFERS_UI,
    .changes = IN(CHANGE_RESOURCES) | IN(CHANGE_RESOURCE),
};
