/* Tools: listed from their rows, and called once their arguments fit them. */
#include "doors/mcp/mcp_int.h"

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
    const struct version *v = c->client.version;
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
    json_array_foreach(choice, i, one) if (str_is(json_view(one), t->name)) return true;
    return false;
}

/* _meta is the client's own, and nothing that a model can write. */
static const struct tool *tool_meant(const struct call *c, const struct tool *t)
{
    return t->summoned && tool_is_chosen(t, json_object_get(c->meta, "tool_choice")) ? t->summoned
                                                                                     : t;
}

static bool has_stubs(const struct face *f)
{
    for (size_t i = 0; f->tools[i]; i++)
        if (f->tools[i]->summoned)
            return true;
    return false;
}

/* --- the list --- */

static bool can_think(const struct call *c)
{
    return c->face->thinks && (c->face->has_model || call_can(c, "sampling"));
}

/* Not everybody is shown the same. */
static bool differs(const struct face *f)
{
    return (f->thinks && !f->has_model) || has_stubs(f);
}

static json_t *tools_show(const struct call *c)
{
    bool stubs = has_stubs(c->face);
    json_t *list = json_array(), *result;

    for (size_t i = 0; c->face->tools[i]; i++)
        json_array_append_new(list, tool_show(c, tool_meant(c, c->face->tools[i])));
    if (can_think(c))
        json_array_append_new(list, tool_show(c, c->face->thinks));
    for (size_t i = 0; c->face->more && c->face->more->tools[i]; i++)
        for (const struct tool *t = c->face->more->tools[i]; t->name; t++)
            json_array_append_new(list, tool_show(c, t));
    result = json_pack("{s:o}", "tools", list);
    if (call_is_modern(c)) {
        json_object_set_new(result, "ttlMs", json_integer(stubs ? 0 : 3600000));
        json_object_set_new(result, "cacheScope",
                            json_string(differs(c->face) ? "private" : "public"));
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
    char **text = &c->mcp->tools_text[c->client.version - versions][can_think(c)];
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
    if (json_object_get(c->params, "cursor"))
        call_error(c, RPC_PARAMS, NULL, "there is one page only: leave the cursor out");
    else if (has_stubs(c->face))
        call_result(c, tools_show(c));
    else
        call_result_text(c, str_of(tools_text(c)));
}

const struct tool *tool_find(const struct face *f, struct str name)
{
    for (size_t i = 0; f->tools[i]; i++)
        if (str_is(name, f->tools[i]->name))
            return f->tools[i];
    if (f->thinks && str_is(name, f->thinks->name))
        return f->thinks;
    for (size_t i = 0; f->hidden && f->hidden[i]; i++)
        if (str_is(name, f->hidden[i]->name))
            return f->hidden[i];
    for (size_t i = 0; f->more && f->more->tools[i]; i++)
        for (const struct tool *t = f->more->tools[i]; t->name; t++)
            if (str_is(name, t->name))
                return t;
    return NULL;
}

void handle_tools_call(struct call *c)
{
    struct str name = json_view(json_object_get(c->params, "name"));
    json_t *args = json_object_get(c->params, "arguments");
    const struct tool *t = tool_find(c->face, name);
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
    if (!t->schema && fields_check(t->params, args, param, &e) < 0)
        tool_fail(c, "%s %s", param, e.text);
    else if (t->hints & TOOL_RUNS)
        approval_check(c, t, args);
    else
        t->run(c, args);
}
