/* Prompts: tasks that people start by name. Each is one message, with rules for the model. */
#include "doors/mcp/resource.h"

#define MESSAGE_TEXT_MAX (16 * KiB)
#define TTL_MS           3600000

/* --- ours --- */

#define BRING                                                                                      \
    "If the file is not in the workspace yet, bring it there first (write_file, or by its URL). "

static const char rules[] =
    "\n\nRules of the work:\n"
    "- Use run_code of retort, and one session for all of it: pass the session_id of the first "
    "answer on.\n"
    "- Look before you compute: shape, column types and three rows. Print compactly, never a "
    "whole table.\n"
    "- Never invent a result: every number you give comes from output you have seen.\n"
    "- When code fails, read the traceback, fix the cause and run again, at most twice. Then stop "
    "and show the error.\n";

static const char file_text[] =
    "The file: its path in the workspace, its URL, or how the user calls it.";

static const struct prompt prompts[] = {
    {
     .name = "analyze_data",
     .title = "Analyse data",
     .text = "Analyses a file: what is in it, or the answer to a question, computed and not "
                "guessed.", .args = {{"file", file_text, REQUIRED, "files"},
                 {"question", "What to find out; without it, what matters most in the data.",
                  OPTIONAL, NULL}},
     .message = "Analyse the file {file} and answer this question: {question}\n\n" BRING
                   "Say how you read the data, answer in two or three sentences with the numbers "
                   "that carry the answer, and name what the data cannot tell.", .without = "Analyse the file {file}.\n\n" BRING
                   "Say what the data is, how complete it is, and the three findings that matter "
                   "most, each with its number. Then propose one chart.", },
    {
     .name = "fix_error",
     .title = "Fix an error",
     .text = "Looks at an execution that failed, finds the cause, and runs the corrected code.",
     .args = {{"execution_id", "The execution that failed: exec_...", REQUIRED, "failures"}},
     .message = "The execution {execution_id} has failed. Find out why, and fix it.\n\n"
                   "Read it first: get_execution with this execution_id shows its output and the "
                   "error; the whole output is the resource "
                   "retort://executions/{execution_id}/output. Say the cause in one sentence. Then "
                   "run the corrected code in the same session, show that it works, and say what "
                   "you have changed.", },
    {
     .name = "make_chart",
     .title = "Make a chart",
     .text = "Draws a chart of a file and saves it as an image.",
     .args = {{"file", file_text, REQUIRED, "files"},
                 {"kind", "The kind of chart; without it, the one that says most.", OPTIONAL,
                  "line|bar|scatter|histogram|box|heatmap|pie|area"}},
     .message = "Draw a {kind} chart of the file {file}.\n\n" BRING
                   "Choose the columns that suit such a chart and say which; if none do, say so "
                   "and propose another kind. Name axes and units, keep it readable, save it as "
                   "chart.png with dpi=150 and show it.", .without = "Draw the chart that says most about the file {file}.\n\n" BRING
                   "Say in one sentence why this kind of chart. Name axes and units, keep it "
                   "readable, save it as chart.png with dpi=150 and show it.", },
    {0                                                                        },
};

const struct prompt *prompt_find(struct str name)
{
    for (const struct prompt *p = prompts; p->name; p++)
        if (str_is(name, p->name))
            return p;
    return NULL;
}

/* --- list --- */

static json_t *args_show(const struct prompt *p)
{
    json_t *list = json_array();

    for (size_t i = 0; i < PROMPT_ARGS && p->args[i].name; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b}", "name", p->args[i].name, "description",
                                        p->args[i].text, "required", p->args[i].required));
    return list;
}

void handle_prompts_list(struct call *c)
{
    json_t *list;

    if (!call_has_one_page(c))
        return;
    list = json_array();
    for (const struct prompt *p = prompts; p->name; p++) {
        json_t *v = json_pack("{s:s, s:s, s:o}", "name", p->name, "description", p->text,
                              "arguments", args_show(p));
        if (c->client.version->has & HAS_STRUCTURED)
            json_object_set_new(v, "title", json_string(p->title));
        json_array_append_new(list, v);
    }
    if (c->tool_set->more)
        c->tool_set->more->list_prompts(list);
    call_result_cached(c, json_pack("{s:o}", "prompts", list), TTL_MS, "public");
}

/* --- get --- */

/* False: answered. */
static bool check_args(struct call *c, const struct prompt *p, const json_t *args)
{
    for (size_t i = 0; i < PROMPT_ARGS && p->args[i].name; i++) {
        const struct prompt_arg *a = &p->args[i];
        const json_t *v = json_object_get(args, a->name);
        if (!v && !a->required)
            continue;
        if (!v || (a->required && json_string_length(v) == 0)) {
            call_error(c, RPC_PARAMS, NULL, "%s is missing: %s", a->name, a->text);
            return false;
        }
        if (!json_is_string(v) || json_string_length(v) > PROMPT_ARG_MAX) {
            call_error(c, RPC_PARAMS, NULL, "%s must be a string of at most %d bytes", a->name,
                       PROMPT_ARG_MAX);
            return false;
        }
    }
    return true;
}

/* Puts the value of the argument whose "{name}" text begins with; returns what follows it. */
static const char *put_arg(struct buf *b, const struct prompt *p, const json_t *args,
                           const char *text)
{
    size_t n = strcspn(text + 1, "}");

    for (size_t i = 0; i < PROMPT_ARGS && p->args[i].name; i++)
        if (str_is((struct str){text + 1, n}, p->args[i].name))
            buf_put(b, json_view(json_object_get(args, p->args[i].name)));
    return text + n + 2;
}

static void fill(struct buf *b, const struct prompt *p, const json_t *args, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "{");
        buf_put(b, (struct str){text, plain});
        text += plain;
        if (*text)
            text = put_arg(b, p, args, text);
    }
    buf_put(b, STR(rules));
}

static void answer(struct call *c, const struct prompt *p, const json_t *args)
{
    AUTO(buf_done) struct buf b = BUF(MESSAGE_TEXT_MAX);
    bool brief = p->without && json_string_length(json_object_get(args, p->args[1].name)) == 0;

    fill(&b, p, args, brief ? p->without : p->message);
    call_result(c, json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description", p->text, "messages",
                             "role", "user", "content", "type", "text", "text",
                             record_text(buf_str(&b))));
}

void handle_prompts_get(struct call *c)
{
    struct str name = json_view(json_object_get(c->params, "name"));
    const json_t *args = json_object_get(c->params, "arguments");
    const struct tool_set_more *more = c->tool_set->more;
    const struct prompt *p = prompt_find(name);
    char shown[NAME_SHOWN];

    if (args && !json_is_object(args))
        call_error(c, RPC_PARAMS, NULL, "arguments must be an object");
    else if (p && check_args(c, p, args))
        answer(c, p, args);
    else if (!p && (!more || !more->get_prompt(c, name, args)))
        call_error(c, RPC_PARAMS, NULL, "there is no prompt %s: prompts/list shows what there is",
                   name_show(shown, name));
}
