/*
 * Takes a record from one state to the next: no clock, no model, no sandbox. One table says
 * which event may come in which state; any other event came too late and changes nothing.
 *
 *   begin -> plan -> code -> run (-> wait -> run) -> code ... -> final -> over
 */
#include "agent/step_int.h"

#include <stdio.h>

#define RETRIES_MAX  4
#define NONSENSE_MAX 2
#define RETRY_MS_MAX 120000 /* an endpoint that wants a longer pause counts as down */
#define ROUNDS_LEAST 4
#define LOGS_CUT     "\n[the logs end here: they are as long as they may be]\n"

/* --- parts of a step --- */

void step_do(struct stepping *s, const char *what)
{
    json_array_append_new(s->actions, json_pack("{s:s}", "do", what));
}

static void tell(struct stepping *s, json_t *event)
{
    json_array_append_new(s->actions, json_pack("{s:s, s:o}", "do", "tell", "event", event));
}

void step_phase(struct stepping *s, const char *phase, struct str message, const char *code)
{
    json_t *ev = json_pack("{s:s, s:s, s:o}", "type", "phase", "phase", phase, "message",
                           text_value(message));

    if (json_array_size(s->r->plan) > 0) {
        json_put_num(ev, "step", s->r->step + 1);
        json_put_num(ev, "round", s->r->total_rounds);
    }
    if (code)
        json_object_set_new(ev, "code", json_string(code));
    tell(s, ev);
}

void step_question(struct stepping *s)
{
    s->r->asked_ms = s->now_ms;
    s->r->state = RUN_WAIT;
    s->r->status = RUN_WAITING;
    step_do(s, "wait");
}

void step_log(struct stepping *s, struct str text)
{
    struct str logs = json_text(s->r->logs);
    AUTO(buf_done) struct buf b = BUF(LOGS_MAX + KiB);

    if (s->r->logs_full)
        return;
    buf_put(&b, logs);
    if (logs.n + text.n > LOGS_MAX) {
        s->r->logs_full = true;
        text = STR(LOGS_CUT);
    }
    buf_put(&b, text);
    json_put(&s->r->logs, text_value(buf_str(&b)));
}

/* --- ends --- */

void step_end(struct stepping *s, enum run_status status)
{
    const char *word = run_status_names[status];

    if (!s->r->answer && status != RUN_COMPLETED)
        json_put(&s->r->answer, prompt_summary(s->r, word));
    s->r->state = RUN_OVER;
    s->r->status = status;
    json_put(&s->r->question, NULL);
    s->r->ended_ms = s->now_ms;
    tell(s, json_pack("{s:s, s:s}", "type", "end", "status", word));
    step_do(s, "end");
}

void step_fail(struct stepping *s, const char *code, struct str message)
{
    json_put(&s->r->error, json_pack("{s:s, s:o}", "code", code, "message", text_value(message)));
    tell(s, json_pack("{s:s, s:s, s:o}", "type", "error", "code", code, "message",
                      text_value(message)));
    step_close_round(s, "failed");
    step_end(s, RUN_FAILED);
}

/* Asks for what the state says: a plan, code, or last words. */
static void ask_again(struct stepping *s, int64_t after_ms)
{
    json_array_append_new(s->actions, json_pack("{s:s, s:s, s:I}", "do", "ask", "kind",
                                                run_state_names[s->r->state], "after_ms",
                                                (json_int_t)after_ms));
}

static void ask_model(struct stepping *s, enum run_state state, const char *message)
{
    s->r->state = state;
    step_phase(s, run_state_names[state], str_of(message), NULL);
    ask_again(s, 0);
}

/* The budget is spent: one last call, for an answer only. */
void step_final(struct stepping *s, const char *why)
{
    json_put(&s->r->final_why, json_string(why));
    s->r->retries = 0;
    ask_model(s, RUN_FINAL, why);
}

/* --- asking --- */

static const char *spent(const struct stepping *s)
{
    int64_t tokens = s->r->usage.input_tokens + s->r->usage.output_tokens;
    int64_t rounds = s->r->rounds;

    if (s->now_ms >= s->r->deadline_ms)
        return "the time for all of it is over";
    if (tokens >= (int64_t)s->r->budget.tokens)
        return "as many tokens are used as may be";
    if (s->r->total_rounds >= rounds && json_array_size(s->r->plan))
        return "as many rounds were run as may be";
    if (s->r->turns >= 3 * rounds + 10)
        return "it has come to no end";
    return NULL;
}

/* Checked here, long before an endpoint would refuse. */
static bool is_too_long(const struct stepping *s)
{
    size_t chars;

    json_decref(history_messages(s->r, "code", &chars));
    return chars > s->r->budget.input_chars;
}

void step_ask(struct stepping *s)
{
    const char *why = spent(s);

    if (!why && is_too_long(s)) {
        s->r->compacted = true;
        if (is_too_long(s))
            why = "the conversation is as long as it may be";
    }
    if (why)
        step_final(s, why);
    else
        ask_model(s, RUN_CODE, "the next action");
}

/* --- the plan --- */

/* why: what is wrong with an earlier plan; or NULL. */
static void ask_plan(struct stepping *s, const char *why)
{
    const char *over = spent(s);

    json_put(&s->r->plan_why, why ? json_string(why) : NULL);
    if (over)
        step_final(s, over);
    else
        ask_model(s, RUN_PLAN, "a plan");
}

static void log_plan(struct stepping *s)
{
    AUTO_FREE char *plan = json_dumps(s->r->plan, 0);
    bool first = !s->r->planned;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    s->r->planned = true;
    buf_printf(&b, "INFO: %s plan: %s\n\n", first ? "Development" : "Revised", plan ? plan : "[]");
    step_log(s, buf_str(&b));
}

void step_take_plan(struct stepping *s, json_t *steps)
{
    json_t *plan = json_array(), *old = s->r->plan;
    int64_t done = s->r->all_done ? (int64_t)json_array_size(old) : s->r->step;
    int64_t most = (int64_t)s->r->budget.rounds, rounds = 2 * (int64_t)json_array_size(steps);

    for (int64_t i = 0; i < done; i++)
        json_array_append(plan, json_array_get(old, (size_t)i));
    json_array_extend(plan, steps);
    json_decref(steps);
    json_put(&s->r->plan, plan);
    s->r->step = done;
    s->r->all_done = false;
    rounds = s->r->total_rounds + (rounds < ROUNDS_LEAST ? ROUNDS_LEAST : rounds);
    rounds = rounds > s->r->rounds ? rounds : s->r->rounds;
    s->r->rounds = rounds < most ? rounds : most;
    log_plan(s);
}

void step_replan(struct stepping *s)
{
    s->r->replanned = true;
    s->r->plan_tries = 0;
    ask_plan(s, "What was tried has failed again and again. Say to yourself what the failures have "
                "in common, then plan what is left in a different way.");
}

static void on_plan_reply(struct stepping *s)
{
    json_t *plan = json_is(s->ev, "stop", "length")
                       ? NULL
                       : reply_plan(json_object_get(s->ev, "parts"), s->r->budget.plan_steps);

    if (!plan && ++s->r->plan_tries == 1)
        return ask_plan(s, "What you sent before was no plan. Reply with nothing but the JSON "
                           "object.");
    if (!plan)
        plan = json_pack("[o]", line_value(json_text(s->r->request), PLAN_TEXT_MAX));
    json_put(&s->r->plan_why, NULL);
    s->r->attempts = 0;
    step_take_plan(s, plan);
    step_ask(s);
}

/* --- events --- */

static void on_begun(struct stepping *s)
{
    struct str id = json_str(s->ev, "sandbox");
    char line[128];

    json_put(&s->r->sandbox_id, text_value(id));
    s->r->started_ms = s->now_ms;
    s->r->deadline_ms = s->now_ms + (int64_t)s->r->budget.wall_ms;
    s->r->status = RUN_RUNNING;
    snprintf(line, sizeof(line), "INFO: Started sandbox session: %.*s\n", (int)id.n, id.p);
    step_log(s, str_of(line));
    ask_plan(s, NULL);
}

static void on_reply(struct stepping *s)
{
    s->r->usage.input_tokens += json_num(s->ev, "input_tokens");
    s->r->usage.output_tokens += json_num(s->ev, "output_tokens");
    s->r->usage.calls++;
    s->r->turns++;
    s->r->retries = 0;
    if (json_is(s->ev, "stop", "refusal")) {
        json_put(&s->r->answer, reply_text(json_object_get(s->ev, "parts")));
        step_fail(s, "ModelRefused", STR("the model refuses to do this"));
    } else if (s->r->state == RUN_PLAN) {
        on_plan_reply(s);
    } else if (s->r->state == RUN_FINAL) {
        on_final_reply(s);
    } else {
        on_code_reply(s);
    }
}

/* --- no reply --- */

static void give_up(struct stepping *s)
{
    if (s->r->state != RUN_FINAL)
        return step_fail(s, "ModelUnavailable", json_str(s->ev, "message"));
    json_put(&s->r->answer, prompt_summary(s->r, "the model could not be asked for an answer"));
    step_end(s, RUN_INCOMPLETE);
}

static void on_busy(struct stepping *s)
{
    int64_t tries = ++s->r->retries, retry = json_num(s->ev, "retry_ms");
    int64_t after = 1000 * ((int64_t)1 << (tries - 1 < 3 ? tries - 1 : 3));

    after = retry > after ? retry : after;
    if (tries > RETRIES_MAX || after > RETRY_MS_MAX ||
        s->now_ms + after > s->r->deadline_ms + (int64_t)s->r->budget.model_ms)
        give_up(s);
    else
        ask_again(s, after);
}

static void on_too_long(struct stepping *s)
{
    bool tried = s->r->compacted;

    s->r->compacted = true;
    if (!tried)
        ask_again(s, 0);
    else if (s->r->state == RUN_FINAL)
        give_up(s);
    else
        step_final(s, "the conversation is longer than the model takes");
}

static void on_no_tools(struct stepping *s)
{
    bool tried = s->r->text_mode;

    s->r->text_mode = true;
    if (tried)
        give_up(s);
    else
        ask_again(s, 0);
}

static void on_nonsense(struct stepping *s)
{
    if (++s->r->nonsense > NONSENSE_MAX)
        give_up(s);
    else
        ask_again(s, 0);
}

static void on_trouble(struct stepping *s)
{
    static const struct {
        const char *trouble;
        void (*fn)(struct stepping *s);
    } rows[] = {
        {"busy",     on_busy    },
        {"too_long", on_too_long},
        {"no_tools", on_no_tools},
        {"denied",   give_up    },
        {"nonsense", on_nonsense},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (json_is(s->ev, "trouble", rows[i].trouble))
            rows[i].fn(s);
}

/* --- cancel, timeout, failure, resume --- */

static void on_cancel(struct stepping *s)
{
    bool runs = s->r->state == RUN_EXEC && s->r->execution;

    s->r->stop = true;
    if (!runs) {
        step_close_round(s, "cancelled");
        step_do(s, "drop");
        step_end(s, RUN_CANCELLED);
    } else if (json_on(s->ev, "hard")) {
        step_do(s, "interrupt");
    }
}

static void on_late(struct stepping *s)
{
    step_fail(s, "InputTimeout", STR("nobody has answered in time"));
}

static void on_failed(struct stepping *s)
{
    struct str code = json_str(s->ev, "code");

    step_fail(s, code.p ? code.p : "InternalError", json_str(s->ev, "message"));
}

/* The time without a server does not count. Code that may have run is not run again. */
static void on_resume(struct stepping *s)
{
    static const struct {
        enum run_state state;
        const char *what;
    } rows[] = {
        {RUN_BEGIN, "begin"  },
        {RUN_WAIT,  "wait"   },
        {RUN_EXEC,  "recover"},
        {RUN_READ,  "read"   },
    };
    int64_t away = s->now_ms - s->r->at_ms;

    if (away > 0)
        s->r->deadline_ms += away;
    if (s->r->unbegun || s->r->state == RUN_GATE) {
        s->r->unbegun = false;
        s->r->state = RUN_EXEC;
        step_do(s, "run");
        return;
    }
    for (size_t i = 0; i < COUNT(rows); i++)
        if (s->r->state == rows[i].state)
            return step_do(s, rows[i].what);
    ask_again(s, 0);
}

/* --- the table --- */

#define ASKS (IN(RUN_PLAN) | IN(RUN_CODE) | IN(RUN_FINAL))
#define LIVE (IN(RUN_OVER) - 1)

static const struct {
    const char *event;
    unsigned in;
    void (*fn)(struct stepping *s);
} rules[] = {
    {"begun",       IN(RUN_BEGIN),               on_begun      },
    {"reply",       ASKS,                        on_reply      },
    {"trouble",     ASKS,                        on_trouble    },
    {"queued",      IN(RUN_EXEC) | IN(RUN_WAIT), on_queued     },
    {"asked",       IN(RUN_EXEC),                on_asked      },
    {"refused",     IN(RUN_EXEC) | IN(RUN_WAIT), on_refused    },
    {"input",       IN(RUN_WAIT),                on_input      },
    {"late",        IN(RUN_WAIT),                on_late       },
    {"ran",         IN(RUN_EXEC),                on_ran        },
    {"unreachable", IN(RUN_EXEC) | IN(RUN_WAIT), on_unreachable},
    {"page",        IN(RUN_READ),                on_page       },
    {"cancel",      LIVE,                        on_cancel     },
    {"failed",      LIVE,                        on_failed     },
    {"resume",      LIVE,                        on_resume     },
};

json_t *step(struct run_record *r, const json_t *event, int64_t now_ms)
{
    struct stepping s = {.r = r, .ev = event, .now_ms = now_ms, .actions = json_array()};

    for (size_t i = 0; i < COUNT(rules); i++)
        if (json_is(event, "type", rules[i].event) && (rules[i].in & IN(r->state))) {
            rules[i].fn(&s);
            r->at_ms = now_ms;
            break;
        }
    return s.actions;
}

void step_budget_fill(struct agent_budget *b)
{
    static const struct agent_budget standard = {
        .plan_steps = 6,
        .rounds = 20,
        .attempts = 3,
        .run_ms = 60000,
        .wall_ms = 600000,
        .model_ms = 120000,
        .input_chars = 400000,
        .tokens = 2000000,
        .wait_ms = 300000,
    };
    uint64_t *to = (uint64_t *)b;

    for (size_t i = 0; i < sizeof(*b) / sizeof(*to); i++)
        if (to[i] == 0 || to[i] > INT64_MAX / 2)
            to[i] = ((const uint64_t *)&standard)[i];
}

void step_begin(struct run_record *r, const char *id, const struct agent_spec *spec,
                const struct agent_budget *b, int64_t now_ms)
{
    *r = (struct run_record){
        .id = json_string(id),
        .tool = text_value(spec->tool),
        .owner = text_value(spec->owner),
        .request = text_value(spec->request),
        .context = text_value(spec->context),
        .plan = json_array(),
        .logs = json_string(""),
        .files = json_array(),
        .created_ms = now_ms,
        .budget = *b,
        .pool = text_value(spec->pool),
        .input_dir = text_value(spec->input_dir),
        .model = text_value(spec->model),
        .can_answer = spec->can_answer,
        .external = spec->external,
        .own_only = spec->own_only,
        .no_replan = spec->no_replan,
        .at_ms = now_ms,
        .talk = json_array(),
        .runs = json_array(),
        .seen = json_object(),
    };
}
