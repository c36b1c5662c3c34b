/*
 * Finds the one action in a model's reply.
 *
 * A native tool call wins. Without one, the text is tried against a table of forms, in
 * order, and the first that fits counts; text that fits none is prose. What the model thinks
 * aloud is removed first. Arguments that are not JSON are repaired when their meaning is
 * clear; else the model is asked again, at no cost of a round.
 */
#include "agent/agent_int.h"
#include "base/json.h"
#include "lenient/lenient.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX MiB /* of a reply */

/* --- text --- */

static bool begins(struct str s, const char *with)
{
    size_t n = strlen(with);

    return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* Leaves out <think> blocks; one without an end runs to the end of the text. */
static void put_without_thoughts(struct buf *b, struct str s)
{
    static const char open[] = "<think>", close[] = "</think>";

    for (;;) {
        size_t at = str_find(s, open), end;

        if (buf_put(b, (struct str){s.p, at}) < 0 || at == s.n)
            return;
        s = str_from(s, at + sizeof(open) - 1);
        end = str_find(s, close);
        if (end == s.n)
            return;
        s = str_from(s, end + sizeof(close) - 1);
    }
}

json_t *reply_text(const json_t *parts)
{
    const json_t *part;
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);
    size_t i;

    json_array_foreach(parts, i, part) {
        if (!json_is(part, "type", "text"))
            continue;
        if (b.n > 0)
            buf_put(&b, STR("\n"));
        put_without_thoughts(&b, json_str(part, "text"));
    }
    return text_value(str_trim(buf_str(&b)));
}

/* --- actions --- */

static json_t *bad(const char *why)
{
    return json_pack("{s:s, s:s}", "act", "bad", "why", why);
}

/* The inside of a fence around all of the code, or the code as it is. */
static struct str unfence(struct str code)
{
    struct str s = str_trim(code);
    struct fence f;
    size_t at = 0;

    if (begins(s, "```") && fence_next(s, &at, &f) && str_trim(str_from(s, f.end)).n == 0)
        return f.body;
    return code;
}

static json_t *run_of(struct str code)
{
    code = unfence(code);
    if (str_trim(code).n == 0)
        return bad("the code is empty");
    if (code.n > CODE_MAX)
        return bad("the code is too long: write less of it at a time");
    if (str_utf8_len(code) != code.n || memchr(code.p, '\0', code.n))
        return bad("the code is not text");
    while (code.n > 0 && strchr("\r\n", code.p[code.n - 1]))
        code.n--;
    return json_pack("{s:s, s:o}", "act", "run", "code", text_value(code));
}

static json_t *finish_of(struct str answer, const json_t *files)
{
    json_t *v;

    answer = str_trim(answer);
    if (answer.n == 0)
        return bad("the answer is empty");
    if (answer.n > ANSWER_MAX)
        answer.n = ANSWER_MAX - utf8_torn((struct str){answer.p, ANSWER_MAX});
    v = json_pack("{s:s, s:o}", "act", "finish", "answer", text_value(answer));
    if (json_is_array(files))
        json_object_set(v, "files", (json_t *)files);
    return v;
}

/* The text of this name, or the only text there is. */
static struct str member(const json_t *args, const char *name)
{
    struct str s = json_str(args, name);
    const char *key;
    json_t *v;

    if (s.p || json_object_size(args) != 1)
        return s;
    json_object_foreach((json_t *)args, key, v)
        s = json_str(args, key);
    return s;
}

static json_t *read_run(const json_t *args)
{
    struct str code = member(args, "code");

    return code.p ? run_of(code) : bad("run_python wants {\"code\": \"...\"}");
}

/* An answer that is not text is taken as JSON. */
static json_t *read_finish(const json_t *args)
{
    const json_t *v = json_object_get(args, "answer");
    AUTO_FREE char *other = v && !json_is_string(v) ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    struct str answer = other ? str_of(other) : member(args, "answer");

    return answer.p ? finish_of(answer, json_object_get(args, "files"))
                    : bad("finish wants {\"answer\": \"...\"}");
}

static json_t *read_plan(const json_t *args)
{
    const json_t *steps = json_object_get(args, "steps");
    struct str reason = json_str(args, "reason");

    if (!json_is_array(steps) || json_array_size(steps) == 0)
        return bad("update_plan wants {\"steps\": [\"...\"]}");
    return json_pack("{s:s, s:O, s:o}", "act", "plan", "steps", steps, "reason",
                     text_value(reason));
}

static json_t *read_pages(const json_t *args)
{
    return json_pack(
        "{s:s, s:I, s:I, s:I}", "act", "read", "run", (json_int_t)json_num(args, "run"), "offset",
        (json_int_t)json_num(args, "offset"), "limit", (json_int_t)json_num(args, "limit"));
}

static json_t *read_ask(const json_t *args)
{
    struct str question = member(args, "question");

    if (!question.p || question.n > 4 * KiB)
        return bad("ask_user wants {\"question\": \"...\"}, and a short one");
    return json_pack("{s:s, s:o}", "act", "ask", "question", text_value(question));
}

/* Our tools, and other names that models have learned for them. raw: the argument that bare text
 * stands for. */
static const struct action {
    const char *name;
    json_t *(*read)(const json_t *args);
    const char *raw;
} actions[] = {
    {"run_python",         read_run,    "code"    },
    {"finish",             read_finish, "answer"  },
    {"update_plan",        read_plan,   NULL      },
    {"read_output",        read_pages,  NULL      },
    {"ask_user",           read_ask,    "question"},
    {"python",             read_run,    "code"    },
    {"run_code",           read_run,    "code"    },
    {"execute_python",     read_run,    "code"    },
    {"code_interpreter",   read_run,    "code"    },
    {"code_execution",     read_run,    "code"    },
    {"python_interpreter", read_run,    "code"    },
    {"execute",            read_run,    "code"    },
    {"final_answer",       read_finish, "answer"  },
};

static const struct action *action_find(struct str name)
{
    for (size_t i = 0; i < COUNT(actions); i++)
        if (str_is(name, actions[i].name))
            return &actions[i];
    return NULL;
}

/* Strict JSON, then JSON as people write it, then the first value of several. A text in a text is
 * opened once. Owned: an object; or NULL. */
static json_t *args_of(struct str raw, unsigned depth)
{
    struct str s = str_trim(raw);
    json_t *v = json_load_limited(s, JSON_DECODE_ANY), *inner = NULL;
    size_t n;

    if (!v)
        v = json5_read_first(s, &n);
    if (json_is_object(v))
        return v;
    if (json_is_string(v) && depth == 0)
        inner = args_of(json_text(v), depth + 1);
    json_decref(v);
    return inner;
}

static json_t *act_of(const struct action *a, const json_t *args, struct str raw)
{
    json_t *read, *repaired, *bare;

    if (json_is_object(args))
        return a->read(args);
    repaired = args_of(raw, 0);
    if (repaired) {
        read = a->read(repaired);
        json_decref(repaired);
        return read;
    }
    raw = str_trim(raw);
    if (!a->raw || raw.n == 0 || *raw.p == '{')
        return bad("the arguments are no JSON object");
    bare = json_pack("{s:o}", a->raw, text_value(raw));
    read = a->read(bare);
    json_decref(bare);
    return read;
}

static json_t *unknown(struct str name)
{
    char shown[NAME_SHOWN], why[NAME_SHOWN + 32];

    name_show(shown, name);
    snprintf(why, sizeof(why), "there is no tool %s", shown);
    return bad(why);
}

/* --- native calls --- */

static json_t *read_call(const json_t *part)
{
    const struct action *a = action_find(json_str(part, "name"));

    if (!a)
        return unknown(json_str(part, "name"));
    return act_of(a, json_object_get(part, "args"), json_str(part, "raw"));
}

static json_t *read_calls(const json_t *parts)
{
    json_t *act = NULL, *extra = NULL;
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part) {
        json_t *id = json_object_get(part, "id");

        if (!json_is(part, "type", "call") || !json_is_string(id))
            continue;
        if (!act) {
            act = read_call(part);
            json_object_set(act, "id", id);
            extra = json_array();
        } else {
            json_array_append(extra, id);
        }
    }
    if (act)
        json_object_set_new(act, "extra", extra);
    return act;
}

/* --- forms of text: each returns an action, or NULL when it does not fit --- */

/* Offset of the first line that begins with what, or s.n. */
static size_t find_line(struct str s, const char *what)
{
    for (size_t at = 0; at < s.n; at += str_line(str_from(s, at)) + 1)
        if (begins(str_from(s, at), what))
            return at;
    return s.n;
}

static bool tagged(struct str s, const char *open, const char *close, struct str *ret)
{
    size_t at = find_line(s, open);

    if (at == s.n)
        return false;
    *ret = str_from(s, at + strlen(open));
    ret->n = str_find(*ret, close);
    return true;
}

static struct str inside(struct str body)
{
    return begins(body, "\n") ? str_from(body, 1) : body;
}

static json_t *read_code_tag(struct str text)
{
    struct str body;

    return tagged(text, "<code>", "</code>", &body) ? run_of(inside(body)) : NULL;
}

/* {"name", "arguments" or "parameters"}, or the arguments of run_python or finish by themselves. */
static json_t *read_object(const json_t *v)
{
    struct str name = json_str(v, "name");
    const json_t *args = json_object_get(v, "arguments");
    const struct action *a = action_find(name);

    if (!args)
        args = json_object_get(v, "parameters");
    if (name.p && args)
        return a ? act_of(a, args, json_str(v, "arguments")) : unknown(name);
    if (json_is_string(json_object_get(v, "code")))
        return read_run(v);
    if (json_is_string(json_object_get(v, "answer")))
        return read_finish(v);
    return NULL;
}

static json_t *read_tool_call(struct str text)
{
    struct str body, code;
    json_t *v, *act;
    size_t n;

    if (!tagged(text, "<tool_call>", "</tool_call>", &body))
        return NULL;
    if (tagged(body, "<code>", "</code>", &code)) /* code beside the arguments */
        return run_of(inside(code));
    v = json5_read_first(str_trim(body), &n);
    act = json_is_object(v) ? read_object(v) : NULL;
    json_decref(v);
    return act ? act : bad("what stands in <tool_call> is no call");
}

static json_t *read_json(struct str text)
{
    struct str s = str_trim(text);
    json_t *v, *act;

    if (!begins(s, "{"))
        return NULL;
    v = json5_read(s);
    act = json_is_object(v) ? read_object(v) : NULL;
    json_decref(v);
    return act;
}

static bool is_python(struct str label)
{
    static const char *const labels[] = {"",        "py",     "python",   "python3",
                                         "ipython", "Python", "tool_code"};

    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_is(label, labels[i]))
            return true;
    return false;
}

/* Joins all Python blocks with a blank line between them. */
static json_t *read_fences(struct str text)
{
    struct fence f;
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);
    size_t at = 0, blocks = 0;

    while (fence_next(text, &at, &f)) {
        if (!is_python(f.label) || str_trim(f.body).n == 0)
            continue;
        while (f.body.n > 0 && strchr("\r\n", f.body.p[f.body.n - 1]))
            f.body.n--;
        if (blocks++ > 0)
            buf_put(&b, STR("\n\n"));
        buf_put(&b, f.body);
    }
    return blocks > 0 ? run_of(buf_str(&b)) : NULL;
}

static json_t *read_react(struct str text)
{
    size_t action = find_line(text, "Action:"), at;
    const struct action *a;
    struct str input, name;
    json_t *act;

    if (action == text.n)
        return NULL;
    input = str_from(text, action + 7);
    name = str_trim((struct str){input.p, str_line(input)});
    at = str_find(input, "\nAction Input:");
    if (at == input.n)
        return NULL;
    input = str_from(input, at + 14);
    input.n = str_find(input, "\nObservation:");
    a = action_find(name);
    if (!a)
        return unknown(name);
    act = read_fences(input);
    return act ? act : act_of(a, NULL, input);
}

/* FINAL: at the beginning of a line, unless code comes before it. */
static json_t *read_final(struct str text)
{
    static const char *const marks[] = {"FINAL:", "Final Answer:", "FINAL ANSWER:"};
    static const char *const codes[] = {"```", "<code>", "<tool_call>", "Action:"};

    for (size_t i = 0; i < COUNT(marks); i++) {
        size_t at = find_line(text, marks[i]);
        bool first = at < text.n;

        for (size_t k = 0; k < COUNT(codes) && first; k++)
            first = find_line(text, codes[k]) > at;
        if (first)
            return finish_of(str_from(text, at + strlen(marks[i])), NULL);
    }
    return NULL;
}

static json_t *read_bare(struct str text)
{
    return python_likely(text) ? run_of(text) : NULL;
}

/* In order of precedence. read_final() checks itself that no code comes first. */
static json_t *(*const forms[])(struct str text) = {
    read_final, read_tool_call, read_json, read_code_tag, read_fences, read_react, read_bare,
};

static json_t *read_forms(struct str text)
{
    json_t *act = NULL;

    for (size_t i = 0; i < COUNT(forms) && !act; i++)
        act = forms[i](text);
    if (act)
        json_put_on(act, "formed", true);
    return act;
}

json_t *reply_read(const json_t *parts, bool cut)
{
    json_t *text = reply_text(parts);
    struct str said = json_text(text);
    json_t *act = read_calls(parts);

    if (!act && !cut)
        act = read_forms(said);
    if (!act)
        act = json_pack("{s:s}", "act", said.n > 0 ? "prose" : "nothing");
    if (cut) {
        json_object_set_new(act, "act", json_string("bad"));
        json_object_set_new(act, "why",
                            json_string("the reply was cut at its limit, so nothing of it was "
                                        "done: send it again, shorter"));
    }
    json_object_set_new(act, "text", text);
    return act;
}

/* --- a plan --- */

static json_t *steps_of(const json_t *steps, size_t max)
{
    json_t *plan = json_array();
    const json_t *v;
    size_t i;

    json_array_foreach(steps, i, v) {
        struct str s = json_is_object(v) ? member(v, "step") : json_text(v);
        json_t *line = line_value(s, PLAN_TEXT_MAX);

        if (json_string_length(line) > 0 && json_array_size(plan) < max)
            json_array_append(plan, line);
        json_decref(line);
    }
    if (json_array_size(plan) == 0) {
        json_decref(plan);
        return NULL;
    }
    return plan;
}

/* Reads a plan from the object or list at the beginning of s. */
static json_t *plan_in(struct str s, size_t max)
{
    size_t n;
    json_t *v = json5_read_first(s, &n), *plan = NULL;

    if (json_is_object(v))
        plan = steps_of(json_object_get(v, "steps"), max);
    else if (json_is_array(v))
        plan = steps_of(v, max);
    json_decref(v);
    return plan;
}

json_t *reply_plan(const json_t *parts, size_t max)
{
    json_t *text = reply_text(parts), *plan = NULL;
    struct str s = json_text(text);
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part) {
        if (!plan && json_is(part, "type", "call") && json_is(part, "name", "update_plan"))
            plan = steps_of(json_object_get(json_object_get(part, "args"), "steps"), max);
    }
    /* Prose or a fence may surround the plan: try every bracket. */
    for (size_t at = 0, tries = 0; at < s.n && !plan && tries < 16; at++) {
        if (s.p[at] == '{' || s.p[at] == '[') {
            plan = plan_in(str_from(s, at), max);
            tries++;
        }
    }
    json_decref(text);
    return plan;
}
