/*
 * A model's reply, made into the one thing it wants done.
 *
 * Theory of operation: a native call has the say. Without one the text is tried against
 * the forms of the table, in its order, and the first that fits counts; what fits none is
 * prose. Whatever a model only thinks aloud is taken out first. Arguments that are no JSON
 * are repaired where there is no doubt what was meant; else the model is asked again, which
 * costs it no round.
 */
#include "agent/agent_int.h"
#include "written/written.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX MiB /* of a reply */

/* --- text --- */

static json_t *text_value(struct str s)
{
    return json_stringn_nocheck(s.n ? s.p : "", str_utf8_len(s));
}

static bool begins(struct str s, const char *with)
{
    size_t n = strlen(with);

    return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* Thoughts are left out wherever they are; one that does not end goes on to the end. */
static void put_without_thoughts(struct buf *b, struct str s)
{
    static const char open[] = "<think>", close[] = "</think>";
    struct err e;

    for (;;) {
        size_t at = str_find(s, open), end;

        if (buf_put(b, (struct str){s.p, at}, &e) < 0 || at == s.n)
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
    struct buf b;
    struct err e;
    json_t *v;
    size_t i;

    buf_init(&b, TEXT_MAX);
    json_array_foreach(parts, i, part)
    {
        if (!json_is(part, "type", "text"))
            continue;
        if (b.n > 0)
            (void)!buf_put(&b, STR("\n"), &e);
        put_without_thoughts(&b, json_str(part, "text"));
    }
    v = text_value(str_trim(buf_str(&b)));
    buf_done(&b);
    return v;
}

/* --- actions --- */

static json_t *bad(const char *why)
{
    return json_pack("{s:s, s:s}", "act", "bad", "why", why);
}

/* What a fence wraps, or the text as it is. */
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

/* A text under the name it should have, or the only text there is. */
static struct str member(const json_t *args, const char *name)
{
    struct str s = json_str(args, name);
    const char *key;
    json_t *v;

    if (s.p || json_object_size(args) != 1)
        return s;
    json_object_foreach((json_t *)args, key, v) s = json_str(args, key);
    return s;
}

static json_t *read_run(const json_t *args)
{
    struct str code = member(args, "code");

    return code.p ? run_of(code) : bad("run_python wants {\"code\": \"...\"}");
}

/* An answer need not be text. */
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

/* Ours, and what models call them who have learned other names. raw: what arguments mean that are
 * a bare text. */
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
    json_t *v = json_loadb(s.n ? s.p : "", s.n, JSON_DECODE_ANY, NULL), *inner = NULL;
    size_t n;

    if (!v)
        v = json5_read_first(s, &n);
    if (json_is_object(v))
        return v;
    if (json_is_string(v) && depth == 0)
        inner = args_of((struct str){json_string_value(v), json_string_length(v)}, depth + 1);
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

    json_array_foreach(parts, i, part)
    {
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

/* Where a line begins with it, or s.n. */
static size_t find_line(struct str s, const char *what)
{
    for (size_t at = 0; at < s.n; at += str_line(str_from(s, at)) + 1)
        if (begins(str_from(s, at), what))
            return at;
    return s.n;
}

static bool tagged(struct str s, const char *open, const char *close, struct str *ret)
{
    size_t at = find_line(s, open), n;

    if (at == s.n)
        return false;
    *ret = str_from(s, at + strlen(open));
    n = str_find(*ret, close);
    ret->n = n;
    return true;
}

static struct str inside(struct str body)
{
    if (begins(body, "\n"))
        body = str_from(body, 1);
    return body;
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
    if (tagged(body, "<code>", "</code>", &code)) /* the code stands beside its arguments */
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

/* All blocks of Python, with a blank line between them. Other labels are text. */
static json_t *read_fences(struct str text)
{
    struct fence f;
    struct buf b;
    struct err e;
    json_t *act = NULL;
    size_t at = 0, blocks = 0;

    buf_init(&b, TEXT_MAX);
    while (fence_next(text, &at, &f)) {
        if (!is_python(f.label) || str_trim(f.body).n == 0)
            continue;
        while (f.body.n > 0 && strchr("\r\n", f.body.p[f.body.n - 1]))
            f.body.n--;
        if (blocks++ > 0)
            (void)!buf_put(&b, STR("\n\n"), &e);
        (void)!buf_put(&b, f.body, &e);
    }
    if (blocks > 0)
        act = run_of(buf_str(&b));
    buf_done(&b);
    return act;
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

/* A line FINAL: and what follows, unless code comes before it. */
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

/* The order is the rule: FINAL is first, as it looks itself whether code comes before it. */
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
    struct str said = {json_string_value(text), json_string_length(text)};
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

    json_array_foreach(steps, i, v)
    {
        struct str s = json_is_object(v)
                           ? member(v, "step")
                           : (struct str){json_string_value(v), json_string_length(v)};
        json_t *line = s.p ? line_value(s, PLAN_TEXT_MAX) : NULL;

        if (line && json_string_length(line) > 0 && json_array_size(plan) < max)
            json_array_append(plan, line);
        json_decref(line);
    }
    if (json_array_size(plan) == 0) {
        json_decref(plan);
        return NULL;
    }
    return plan;
}

/* An object or a list at the beginning of s. */
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
    struct str s = {json_string_value(text), json_string_length(text)};
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part)
    {
        if (!plan && json_is(part, "type", "call") && json_is(part, "name", "update_plan"))
            plan = steps_of(json_object_get(json_object_get(part, "args"), "steps"), max);
    }
    /* Prose and a fence may stand around it: the first bracket that opens a plan counts. */
    for (size_t at = 0, tries = 0; at < s.n && !plan && tries < 16; at++) {
        if (s.p[at] == '{' || s.p[at] == '[') {
            plan = plan_in(str_from(s, at), max);
            tries++;
        }
    }
    json_decref(text);
    return plan;
}
