/* Carries out the action in a model's reply. */
#include "agent/step_int.h"

#include <stdio.h>

#define MALFORMED_MAX 2
#define NUDGES_MAX    2
#define REPLANS_MAX   5 /* by the model itself */
#define ROUNDS_KEPT   3 /* in full: history.c sends no more */

/* --- an exchange --- */

/* Keeps what the model said until there is a result. */
static void hold(struct stepping *s, const json_t *act)
{
    static const char *const members[] = {"text", "id", "extra", "code"};
    json_t *parts = json_object_get(s->ev, "parts");

    json_put(&s->r->pending, json_pack("{s:[]}", "parts"));
    if (history_chars(parts) > REPLY_MAX)
        return;
    json_object_set(s->r->pending, "parts", parts);
    for (size_t i = 0; i < COUNT(members); i++)
        (void)json_object_set(s->r->pending, members[i], json_object_get(act, members[i]));
}

/* Older exchanges are kept as the one line that is sent of them. */
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
    json_t *item = s->r->pending;

    json_object_set_new(item, "result", result);
    json_put_on(item, "error", error);
    if (line)
        json_object_set_new(item, "line", line);
    json_array_append(s->r->talk, item);
    json_put(&s->r->pending, NULL);
    shorten(s->r->talk);
}

/* Answers, and asks for the next action. Takes result. */
static void answer(struct stepping *s, json_t *result, bool error)
{
    step_answer(s, result, error, NULL);
    step_ask(s);
}

/* --- actions --- */

static void nudge(struct stepping *s, const json_t *act)
{
    int64_t n = ++s->r->nudges;

    (void)act;
    if (n >= 2)
        s->r->text_mode = true; /* perhaps it cannot call tools */
    step_answer(
        s,
        json_string(s->r->text_mode
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
    AUTO(buf_done) struct buf b = BUF(4 * KiB);

    buf_printf(&b, "Nothing was run: %.*s.", (int)why.n, why.p ? why.p : "");
    step_answer(s, text_value(buf_str(&b)), true, NULL);
    if (++s->r->malformed > MALFORMED_MAX)
        step_final(s, "what the model sends cannot be read");
    else
        step_ask(s);
}

static void finish(struct stepping *s, const json_t *act)
{
    json_t *objection = finish_objection(s->r, act);

    if (objection)
        return answer(s, objection, true);
    json_put(&s->r->answer, json_incref(json_object_get(act, "answer")));
    step_phase(s, "final", STR("the answer"), NULL);
    step_end(s, finish_is_proven(s->r, act) ? RUN_COMPLETED : RUN_INCOMPLETE);
}

static void change_plan(struct stepping *s, const json_t *act)
{
    json_t *part = json_pack("[{s:s, s:s, s:{s:O}}]", "type", "call", "name", "update_plan", "args",
                             "steps", json_object_get(act, "steps"));
    json_t *steps = reply_plan(part, s->r->budget.plan_steps);

    json_decref(part);
    if (!steps)
        return answer(s, json_string("Those are no steps."), true);
    if (++s->r->replans > REPLANS_MAX) {
        json_decref(steps);
        return answer(s, json_string("The plan has changed often enough. Follow it."), true);
    }
    step_take_plan(s, steps);
    answer(s, json_string("The plan is changed."), false);
}

/* The model names an execution by its number. */
static void read_pages(struct stepping *s, const json_t *act)
{
    const json_t *runs = s->r->runs;
    int64_t run = json_num(act, "run"), offset = json_num(act, "offset");
    json_t *id = run > 0 ? json_array_get(runs, (size_t)run - 1) : NULL;
    char why[96];

    if (!id || offset < 0) {
        snprintf(why, sizeof(why), "There is no such run: they are counted from 1 to %zu.",
                 json_array_size(runs));
        return answer(s, json_string(why), true);
    }
    json_put(&s->r->page,
             json_pack("{s:O, s:I, s:I}", "execution", id, "offset", (json_int_t)offset, "limit",
                       (json_int_t)json_num(act, "limit")));
    s->r->state = RUN_READ;
    step_do(s, "read");
}

void on_page(struct stepping *s)
{
    answer(s, json_incref(json_object_get(s->ev, "text")), json_on(s->ev, "error"));
}

static void ask_user(struct stepping *s, const json_t *act)
{
    if (!s->r->can_answer)
        return answer(
            s, json_string("There is nobody to ask. Decide yourself, and say so in the answer."),
            true);
    int64_t expires_ms = s->now_ms + (int64_t)s->r->budget.wait_ms;
    json_put(&s->r->question, json_pack("{s:O, s:I}", "prompt", json_object_get(act, "question"),
                                        "expires_ms", (json_int_t)expires_ms));
    step_question(s);
}

/* The user's answer to a question of the model. */
void on_input(struct stepping *s)
{
    step_waited(s);
    answer(s, json_incref(json_object_get(s->ev, "text")), false);
}

/* --- a reply --- */

void on_code_reply(struct stepping *s)
{
    static const struct {
        const char *act;
        void (*fn)(struct stepping *s, const json_t *act);
        bool idle; /* the reply holds no action */
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
        s->r->text_mode = true;
    hold(s, act);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (json_is(act, "act", rows[i].act)) {
            if (!rows[i].idle)
                s->r->nudges = 0;
            rows[i].fn(s, act);
            break;
        }
    json_decref(act);
}

/* Any text is taken as the answer: no other will come. It is checked like any other. */
void on_final_reply(struct stepping *s)
{
    json_t *act = reply_read(json_object_get(s->ev, "parts"), false), *text;
    bool done = s->r->all_done && !s->r->last_failed && s->r->nudges > NUDGES_MAX;

    text = json_is(act, "act", "finish") ? json_object_get(act, "answer")
                                         : json_object_get(act, "text");
    if (json_string_length(text) > 0 && json_string_length(text) <= ANSWER_MAX) {
        json_object_set(act, "answer", text);
        json_put(&s->r->answer, json_incref(text));
        done = finish_is_proven(s->r, act) && done;
    } else {
        done = false;
        json_put(&s->r->answer,
                 prompt_summary(s->r, "the model has given no answer that can be used"));
    }
    json_decref(act);
    step_end(s, done ? RUN_COMPLETED : RUN_INCOMPLETE);
}
