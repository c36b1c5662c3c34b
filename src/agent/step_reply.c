/* What a model's reply leads to. */
#include "agent/step_int.h"

#include <stdio.h>

#define MALFORMED_MAX 2
#define NUDGES_MAX    2
#define REPLANS_MAX   5 /* of its own accord */
#define ROUNDS_KEPT   3 /* whole: history.c sends no more */

static json_t *text(const char *s)
{
    return json_string(s);
}

/* --- an exchange --- */

/* What the model said, until there is an answer to it. */
static void hold(struct stepping *s, const json_t *act)
{
    static const char *const members[] = {"text", "id", "extra", "code"};
    json_t *parts = json_object_get(s->ev, "parts"), *item;

    if (history_chars(parts) > REPLY_MAX) {
        json_object_set_new(s->in, "pending", json_pack("{s:[]}", "parts"));
        return;
    }
    item = json_pack("{s:O}", "parts", parts);
    for (size_t i = 0; i < COUNT(members); i++) {
        json_t *v = json_object_get(act, members[i]);
        if (v)
            json_object_set(item, members[i], v);
    }
    json_object_set_new(s->in, "pending", item);
}

/* What is sent no more is kept as the line it is sent as. */
static void shorten(json_t *talk)
{
    size_t rounds = 0;

    for (size_t i = json_array_size(talk); i > 0; i--) {
        json_t *item = json_array_get(talk, i - 1), *line = json_object_get(item, "line");

        if (rounds > ROUNDS_KEPT && !line)
            json_array_remove(talk, i - 1);
        else if (rounds > ROUNDS_KEPT)
            json_array_set_new(talk, i - 1, json_pack("{s:O}", "line", line));
        rounds += line != NULL;
    }
}

void step_answer(struct stepping *s, json_t *result, bool error, json_t *line)
{
    json_t *item = json_object_get(s->in, "pending");

    json_object_set_new(item, "result", result);
    json_put_on(item, "error", error);
    if (line)
        json_object_set_new(item, "line", line);
    json_array_append(json_object_get(s->in, "talk"), item);
    json_object_del(s->in, "pending");
    shorten(json_object_get(s->in, "talk"));
}

/* --- actions --- */

static void nudge(struct stepping *s, const json_t *act)
{
    int64_t n = json_count(s->in, "nudges");

    (void)act;
    if (n >= 2)
        json_put_on(s->in, "text_mode", true); /* it may not know how to call tools */
    step_answer(s,
                text(json_on(s->in, "text_mode")
                         ? "There was no action in that. Reply with one ```python block to run, or "
                           "with a line that begins with FINAL: and the answer."
                         : "There was no action in that. Call run_python to run code; if you have "
                           "the answer, call finish with it."),
                true, NULL);
    if (n > NUDGES_MAX)
        step_final(s, "the model does nothing but talk");
    else
        step_ask(s);
}

static void malformed(struct stepping *s, const json_t *act)
{
    struct str why = json_str(act, "why");
    struct buf b;
    struct err e;

    buf_init(&b, 4 * KiB);
    (void)!buf_printf(&b, &e, "Nothing was run: %.*s.", (int)why.n, why.p ? why.p : "");
    step_answer(s, json_stringn_nocheck(b.p, str_utf8_len(buf_str(&b))), true, NULL);
    buf_done(&b);
    if (json_count(s->in, "malformed") > MALFORMED_MAX)
        step_final(s, "what the model sends cannot be read");
    else
        step_ask(s);
}

static void finish(struct stepping *s, const json_t *act)
{
    json_t *objection = finish_objection(s->r, act);

    if (objection) {
        step_answer(s, objection, true, NULL);
        step_ask(s);
        return;
    }
    json_object_set(s->r, "answer", json_object_get(act, "answer"));
    step_phase(s, "final", STR("the answer"), NULL);
    step_end(s, json_on(s->in, "unproven") ? "incomplete" : "completed");
}

static void change_plan(struct stepping *s, const json_t *act)
{
    json_t *part = json_pack("[{s:s, s:s, s:{s:O}}]", "type", "call", "name", "update_plan", "args",
                             "steps", json_object_get(act, "steps"));
    json_t *steps = reply_plan(part, (size_t)step_budget(s, "plan_steps"));

    json_decref(part);
    if (!steps) {
        step_answer(s, text("Those are no steps."), true, NULL);
    } else if (json_count(s->in, "replans") > REPLANS_MAX) {
        json_decref(steps);
        step_answer(s, text("The plan has changed often enough. Follow it."), true, NULL);
    } else {
        step_answer(s, text("The plan is changed."), false, NULL);
        step_take_plan(s, steps);
    }
    step_ask(s);
}

/* The run it names, by its execution. */
static void read_pages(struct stepping *s, const json_t *act)
{
    const json_t *runs = json_object_get(s->in, "runs");
    int64_t run = json_num(act, "run"), offset = json_num(act, "offset");
    json_t *id = run > 0 ? json_array_get(runs, (size_t)run - 1) : NULL;
    char why[96];

    if (!id || offset < 0) {
        snprintf(why, sizeof(why), "There is no such run: they are counted from 1 to %zu.",
                 json_array_size(runs));
        step_answer(s, text(why), true, NULL);
        step_ask(s);
        return;
    }
    json_object_set_new(s->in, "page",
                        json_pack("{s:O, s:I, s:I}", "execution", id, "offset", (json_int_t)offset,
                                  "limit", (json_int_t)json_num(act, "limit")));
    step_go(s, "read");
    step_do(s, "read");
}

void on_page(struct stepping *s)
{
    step_answer(s, json_incref(json_object_get(s->ev, "text")), json_on(s->ev, "error"), NULL);
    step_ask(s);
}

static void ask_user(struct stepping *s, const json_t *act)
{
    json_t *question;

    if (!json_on(s->in, "can_answer")) {
        step_answer(s, text("There is nobody to ask. Decide yourself, and say so in the answer."),
                    true, NULL);
        step_ask(s);
        return;
    }
    question = json_pack("{s:O}", "prompt", json_object_get(act, "question"));
    json_put_num(question, "expires_ms", s->now_ms + step_budget(s, "wait_ms"));
    json_object_set_new(s->r, "question", question);
    step_question(s);
}

/* An answer to what was asked; approvals are settled elsewhere, and come as clear or refused. */
void on_input(struct stepping *s)
{
    json_put_num(s->in, "deadline_ms",
                 json_num(s->in, "deadline_ms") + s->now_ms - json_num(s->in, "asked_ms"));
    json_object_set_new(s->r, "question", json_null());
    step_status(s, "running");
    step_answer(s, json_incref(json_object_get(s->ev, "text")), false, NULL);
    step_ask(s);
}

/* --- a reply --- */

void on_code_reply(struct stepping *s)
{
    static const struct {
        const char *act;
        void (*fn)(struct stepping *s, const json_t *act);
        bool idle; /* nothing is done by it */
    } rows[] = {
        {"run",     step_run,    false},
        {"finish",  finish,      false},
        {"plan",    change_plan, false},
        {"read",    read_pages,  false},
        {"ask",     ask_user,    false},
        {"bad",     malformed,   false},
        {"prose",   nudge,       true },
        {"nothing", nudge,       true },
    };
    const json_t *parts = json_object_get(s->ev, "parts");
    bool too_long = history_chars(parts) > REPLY_MAX;
    json_t *act = reply_read(parts, too_long || json_is(s->ev, "stop", "length"));

    if (json_on(act, "formed"))
        json_put_on(s->in, "text_mode", true);
    hold(s, act);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (json_is(act, "act", rows[i].act)) {
            if (!rows[i].idle)
                json_put_num(s->in, "nudges", 0);
            rows[i].fn(s, act);
            break;
        }
    json_decref(act);
}

/* Whatever it says is the answer: there is no other. */
void on_final_reply(struct stepping *s)
{
    json_t *act = reply_read(json_object_get(s->ev, "parts"), false), *answer;
    bool done = json_on(s->in, "all_done") && !json_on(s->in, "last_failed") &&
                json_num(s->in, "nudges") > NUDGES_MAX;

    answer = json_is(act, "act", "finish") ? json_object_get(act, "answer")
                                           : json_object_get(act, "text");
    if (json_string_length(answer) > ANSWER_MAX || json_string_length(answer) == 0)
        json_object_set_new(s->r, "answer",
                            prompt_summary(s->r, "the model has given no answer that can be used"));
    else
        json_object_set(s->r, "answer", answer);
    json_decref(act);
    step_end(s, done ? "completed" : "incomplete");
}
