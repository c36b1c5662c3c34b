/*
 * From one state to the next, and nothing else: no clock, no model, no sandbox. What may
 * happen in which state is one table; what is in no row of it has come too late and
 * changes nothing.
 *
 *   begin -> plan -> code -> (gate -> (wait ->)) run -> code ... -> final -> over
 */
#include "agent/step_int.h"

#include <stdio.h>

#define RETRIES_MAX  4
#define NONSENSE_MAX 2
#define RETRY_MS_MAX 120000 /* who wants us to come again later than this is not there */
#define ROUNDS_LEAST 4
#define LOGS_CUT     "\n[the logs end here: they are as long as they may be]\n"

static const struct {
    const char *name;
    uint64_t standard, at;
} budgets[] = {
#define BUDGET(field, value)                                                                       \
    {                                                                                              \
#field, value, offsetof(struct agent_budget, field)                                        \
    }
    BUDGET(plan_steps, 6),       BUDGET(rounds, 20),      BUDGET(attempts, 3),
    BUDGET(run_ms, 60000),       BUDGET(wall_ms, 600000), BUDGET(model_ms, 120000),
    BUDGET(input_chars, 400000), BUDGET(tokens, 2000000), BUDGET(wait_ms, 300000),
#undef BUDGET
};

/* --- the pieces of a step --- */

static json_t *action(struct stepping *s, const char *what)
{
    json_t *a = json_pack("{s:s}", "do", what);

    json_array_append_new(s->actions, a);
    return a;
}

void step_do(struct stepping *s, const char *what)
{
    (void)action(s, what);
}

void step_go(struct stepping *s, const char *state)
{
    json_object_set_new(s->in, "state", json_string(state));
}

void step_status(struct stepping *s, const char *status)
{
    json_object_set_new(s->r, "status", json_string(status));
}

static void tell(struct stepping *s, json_t *event)
{
    json_object_set_new(action(s, "tell"), "event", event);
}

void step_phase(struct stepping *s, const char *phase, struct str message, const char *code)
{
    json_t *ev = json_pack("{s:s, s:s}", "type", "phase", "phase", phase);

    json_put_str(ev, "message", message);
    if (json_array_size(json_object_get(s->r, "plan")) > 0) {
        json_put_num(ev, "step", json_num(s->in, "step") + 1);
        json_put_num(ev, "round", json_num(s->r, "total_rounds"));
    }
    if (code)
        json_object_set_new(ev, "code", json_string(code));
    tell(s, ev);
}

void step_question(struct stepping *s)
{
    json_put_num(s->in, "asked_ms", s->now_ms);
    step_go(s, "wait");
    step_status(s, "waiting_for_input");
    step_do(s, "wait");
}

void step_log(struct stepping *s, struct str text)
{
    struct str logs = json_str(s->r, "logs");
    struct buf b;
    struct err e;

    if (json_on(s->in, "logs_full"))
        return;
    buf_init(&b, LOGS_MAX + KiB);
    (void)!buf_put(&b, logs, &e);
    if (logs.n + text.n > LOGS_MAX) {
        json_put_on(s->in, "logs_full", true);
        text = STR(LOGS_CUT);
    }
    (void)!buf_put(&b, text, &e);
    json_put_str(s->r, "logs", buf_str(&b));
    buf_done(&b);
}

int64_t step_budget(const struct stepping *s, const char *name)
{
    return json_num(json_object_get(s->in, "budget"), name);
}

/* --- ends --- */

void step_end(struct stepping *s, const char *status)
{
    if (!json_is_string(json_object_get(s->r, "answer")) && strcmp(status, "completed") != 0)
        json_object_set_new(s->r, "answer", prompt_summary(s->r, status));
    step_go(s, "over");
    step_status(s, status);
    json_object_set_new(s->r, "question", json_null());
    json_put_num(s->r, "ended_ms", s->now_ms);
    tell(s, json_pack("{s:s, s:s}", "type", "end", "status", status));
    step_do(s, "end");
}

void step_fail(struct stepping *s, const char *code, struct str message)
{
    json_t *error = json_pack("{s:s}", "code", code);
    json_t *ev = json_pack("{s:s, s:s}", "type", "error", "code", code);

    json_put_str(error, "message", message);
    json_put_str(ev, "message", message);
    json_object_set_new(s->r, "error", error);
    tell(s, ev);
    step_close_round(s, "failed");
    step_end(s, "failed");
}

/* The budget is spent: one call more, which can do nothing but answer. */
void step_final(struct stepping *s, const char *why)
{
    json_object_set_new(s->in, "final_why", json_string(why));
    json_put_num(s->in, "retries", 0);
    step_go(s, "final");
    step_phase(s, "final", str_of(why), NULL);
    json_object_set_new(action(s, "ask"), "kind", json_string("final"));
}

static void summarise(struct stepping *s, const char *why)
{
    json_object_set_new(s->r, "answer", prompt_summary(s->r, why));
    step_end(s, "incomplete");
}

/* --- asking --- */

static const char *spent(const struct stepping *s)
{
    const json_t *usage = json_object_get(s->r, "usage");
    int64_t tokens = json_num(usage, "input_tokens") + json_num(usage, "output_tokens");
    int64_t rounds = json_num(s->in, "rounds");

    if (s->now_ms >= json_num(s->in, "deadline_ms"))
        return "the time for all of it is over";
    if (tokens >= step_budget(s, "tokens"))
        return "as many tokens are used as may be";
    if (json_num(s->r, "total_rounds") >= rounds && json_array_size(json_object_get(s->r, "plan")))
        return "as many rounds were run as may be";
    if (json_num(s->in, "turns") >= 3 * rounds + 10)
        return "it has come to no end";
    return NULL;
}

/* Long before a model says so itself. */
static bool is_too_long(const struct stepping *s, const char *kind)
{
    size_t chars;

    json_decref(history_messages(s->r, kind, &chars));
    return chars > (size_t)step_budget(s, "input_chars");
}

static void ask_model(struct stepping *s, const char *kind, int64_t after_ms)
{
    json_t *a = action(s, "ask");

    json_object_set_new(a, "kind", json_string(kind));
    json_put_num(a, "after_ms", after_ms);
}

void step_ask(struct stepping *s)
{
    const char *why = spent(s);

    if (!why && is_too_long(s, "code")) {
        json_put_on(s->in, "compacted", true);
        if (is_too_long(s, "code"))
            why = "the conversation is as long as it may be";
    }
    if (why) {
        step_final(s, why);
        return;
    }
    step_go(s, "code");
    step_phase(s, "code", STR("the next action"), NULL);
    ask_model(s, "code", 0);
}

/* --- the plan --- */

static void ask_plan(struct stepping *s)
{
    const char *why = spent(s);

    if (why) {
        step_final(s, why);
        return;
    }
    step_go(s, "plan");
    step_phase(s, "plan", STR("a plan"), NULL);
    ask_model(s, "plan", 0);
}

static void log_plan(struct stepping *s)
{
    AUTO_FREE char *plan = json_dumps(json_object_get(s->r, "plan"), 0);
    bool first = !json_on(s->in, "planned");
    struct buf b;
    struct err e;

    json_put_on(s->in, "planned", true);
    buf_init(&b, 64 * KiB);
    (void)!buf_printf(&b, &e, "INFO: %s plan: %s\n\n", first ? "Development" : "Revised",
                      plan ? plan : "[]");
    step_log(s, buf_str(&b));
    buf_done(&b);
}

void step_take_plan(struct stepping *s, json_t *steps)
{
    json_t *plan = json_array(), *old = json_object_get(s->r, "plan");
    int64_t done =
        json_on(s->in, "all_done") ? (int64_t)json_array_size(old) : json_num(s->in, "step");
    int64_t most = step_budget(s, "rounds"), rounds = 2 * (int64_t)json_array_size(steps);

    for (int64_t i = 0; i < done; i++)
        json_array_append(plan, json_array_get(old, (size_t)i));
    json_array_extend(plan, steps);
    json_decref(steps);
    json_object_set_new(s->r, "plan", plan);
    json_put_num(s->in, "step", done);
    json_put_on(s->in, "all_done", false);
    rounds = json_num(s->r, "total_rounds") + (rounds < ROUNDS_LEAST ? ROUNDS_LEAST : rounds);
    rounds = rounds > json_num(s->in, "rounds") ? rounds : json_num(s->in, "rounds");
    json_put_num(s->in, "rounds", rounds < most ? rounds : most);
    log_plan(s);
}

void step_replan(struct stepping *s)
{
    json_put_on(s->in, "replanned", true);
    json_put_num(s->in, "plan_tries", 0);
    json_object_set_new(s->in, "plan_why",
                        json_string("What was tried has failed again and again. Say to yourself "
                                    "what the failures have in common, then plan what is left in "
                                    "a different way."));
    ask_plan(s);
}

static void on_plan_reply(struct stepping *s)
{
    json_t *plan =
        json_is(s->ev, "stop", "length")
            ? NULL
            : reply_plan(json_object_get(s->ev, "parts"), (size_t)step_budget(s, "plan_steps"));

    if (!plan && json_count(s->in, "plan_tries") == 1) {
        json_object_set_new(s->in, "plan_why",
                            json_string("What you sent before was no plan. Reply with nothing but "
                                        "the JSON object."));
        ask_plan(s);
        return;
    }
    if (!plan)
        plan = json_pack("[o]", line_value(json_str(s->r, "request"), PLAN_TEXT_MAX));
    json_object_del(s->in, "plan_why");
    json_put_num(s->in, "attempts", 0);
    step_take_plan(s, plan);
    step_ask(s);
}

/* --- what happens --- */

static void on_begun(struct stepping *s)
{
    static const char *const members[] = {"facts", "packages", "inputs",    "known",
                                          "gated", "network",  "text_mode", "door"};
    struct str id = json_str(s->ev, "sandbox");
    char line[128];

    for (size_t i = 0; i < COUNT(members); i++) {
        json_t *v = json_object_get(s->ev, members[i]);
        if (v)
            json_object_set(s->in, members[i], v);
    }
    json_put_str(s->r, "sandbox_id", id);
    json_put_num(s->r, "started_ms", s->now_ms);
    json_put_num(s->in, "deadline_ms", s->now_ms + step_budget(s, "wall_ms"));
    step_status(s, "running");
    snprintf(line, sizeof(line), "INFO: Started sandbox session: %.*s\n", (int)id.n, id.p);
    step_log(s, str_of(line));
    ask_plan(s);
}

static void count_usage(struct stepping *s)
{
    json_t *usage = json_object_get(s->r, "usage");
    static const char *const kinds[] = {"input_tokens", "output_tokens"};

    for (size_t i = 0; i < COUNT(kinds); i++)
        json_put_num(usage, kinds[i], json_num(usage, kinds[i]) + json_num(s->ev, kinds[i]));
    json_count(usage, "calls");
    json_count(s->in, "turns");
    json_put_num(s->in, "retries", 0);
}

static void on_reply(struct stepping *s)
{
    count_usage(s);
    if (json_is(s->ev, "stop", "refusal")) {
        json_object_set_new(s->r, "answer", reply_text(json_object_get(s->ev, "parts")));
        step_fail(s, "ModelRefused", STR("the model refuses to do this"));
    } else if (json_is(s->in, "state", "plan")) {
        on_plan_reply(s);
    } else if (json_is(s->in, "state", "final")) {
        on_final_reply(s);
    } else {
        on_code_reply(s);
    }
}

/* --- no reply --- */

static void ask_again(struct stepping *s, int64_t after_ms)
{
    struct str state = json_str(s->in, "state");

    ask_model(s, state.p, after_ms);
}

static void give_up(struct stepping *s)
{
    if (json_is(s->in, "state", "final"))
        summarise(s, "the model could not be asked for an answer");
    else
        step_fail(s, "ModelUnavailable", json_str(s->ev, "message"));
}

static void on_busy(struct stepping *s)
{
    int64_t tries = json_count(s->in, "retries"), retry = json_num(s->ev, "retry_ms");
    int64_t after = 1000 * ((int64_t)1 << (tries - 1 < 3 ? tries - 1 : 3));

    after = retry > after ? retry : after;
    if (tries > RETRIES_MAX || after > RETRY_MS_MAX ||
        s->now_ms + after > json_num(s->in, "deadline_ms") + step_budget(s, "model_ms"))
        give_up(s);
    else
        ask_again(s, after);
}

static void on_too_long(struct stepping *s)
{
    bool tried = json_on(s->in, "compacted");

    json_put_on(s->in, "compacted", true);
    if (!tried)
        ask_again(s, 0);
    else if (json_is(s->in, "state", "final"))
        give_up(s);
    else
        step_final(s, "the conversation is longer than the model takes");
}

static void on_no_tools(struct stepping *s)
{
    bool tried = json_on(s->in, "text_mode");

    json_put_on(s->in, "text_mode", true);
    if (tried)
        give_up(s);
    else
        ask_again(s, 0);
}

static void on_nonsense(struct stepping *s)
{
    if (json_count(s->in, "nonsense") > NONSENSE_MAX)
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

/* --- from outside --- */

static void on_cancel(struct stepping *s)
{
    bool runs = json_is(s->in, "state", "run") && !json_on(s->in, "held");

    json_put_on(s->in, "stop", true);
    if (!runs) {
        step_close_round(s, "cancelled");
        step_do(s, "drop");
        step_end(s, "cancelled");
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

/* Time in which nothing could be done is not the loop's. A run is not done again. */
static void on_resume(struct stepping *s)
{
    static const struct {
        const char *state, *what;
    } rows[] = {
        {"begin", "begin"  },
        {"gate",  "gate"   },
        {"wait",  "wait"   },
        {"run",   "recover"},
        {"read",  "read"   },
    };
    int64_t away = s->now_ms - json_num(s->in, "at_ms");

    if (away > 0)
        json_put_num(s->in, "deadline_ms", json_num(s->in, "deadline_ms") + away);
    if (json_on(s->in, "unbegun")) {
        json_object_del(s->in, "unbegun");
        step_do(s, "run");
        return;
    }
    for (size_t i = 0; i < COUNT(rows); i++)
        if (json_is(s->in, "state", rows[i].state)) {
            step_do(s, rows[i].what);
            return;
        }
    ask_again(s, 0);
}

/* --- the table --- */

enum {
    BEGIN = 1,
    PLAN = 2,
    CODE = 4,
    GATE = 8,
    WAIT = 16,
    RUNS = 32,
    READ = 64,
    FINAL = 128,
    OVER = 256,
    ASKS = PLAN | CODE | FINAL,
    LIVE = OVER - 1,
};

static const struct {
    const char *name;
    unsigned bit;
} states[] = {
    {"begin", BEGIN},
    {"plan",  PLAN },
    {"code",  CODE },
    {"gate",  GATE },
    {"wait",  WAIT },
    {"run",   RUNS },
    {"read",  READ },
    {"final", FINAL},
    {"over",  OVER },
};

static const struct {
    const char *event;
    unsigned in;
    void (*fn)(struct stepping *s);
} rules[] = {
    {"begun",       BEGIN,       on_begun      },
    {"reply",       ASKS,        on_reply      },
    {"trouble",     ASKS,        on_trouble    },
    {"clear",       GATE | WAIT, on_clear      },
    {"asked",       GATE,        on_asked      },
    {"refused",     GATE | WAIT, on_refused    },
    {"input",       WAIT,        on_input      },
    {"late",        WAIT,        on_late       },
    {"ran",         RUNS,        on_ran        },
    {"unreachable", GATE | RUNS, on_unreachable},
    {"page",        READ,        on_page       },
    {"cancel",      LIVE,        on_cancel     },
    {"failed",      LIVE,        on_failed     },
    {"resume",      LIVE,        on_resume     },
};

static unsigned state_of(const json_t *record)
{
    const json_t *inner = json_object_get(record, "inner");

    for (size_t i = 0; i < COUNT(states); i++)
        if (json_is(inner, "state", states[i].name))
            return states[i].bit;
    return OVER;
}

bool step_is_over(const json_t *record)
{
    return state_of(record) == OVER;
}

json_t *step(json_t *record, const json_t *event, int64_t now_ms)
{
    struct stepping s = {.r = record,
                         .in = json_object_get(record, "inner"),
                         .ev = event,
                         .now_ms = now_ms,
                         .actions = json_array()};
    unsigned state = state_of(record);

    for (size_t i = 0; i < COUNT(rules); i++)
        if (json_is(event, "type", rules[i].event) && (rules[i].in & state)) {
            rules[i].fn(&s);
            json_put_num(s.in, "at_ms", now_ms);
            break;
        }
    return s.actions;
}

void step_budget_fill(struct agent_budget *b)
{
    for (size_t i = 0; i < COUNT(budgets); i++) {
        uint64_t *n = (uint64_t *)((char *)b + budgets[i].at);
        if (*n == 0 || *n > INT64_MAX / 2)
            *n = budgets[i].standard;
    }
}

json_t *step_begin(const char *id, const struct agent_spec *spec, const struct agent_budget *b,
                   int64_t now_ms)
{
    json_t *budget = json_object();
    json_t *inner =
        json_pack("{s:s, s:o, s:[], s:[], s:{}, s:[], s:b, s:b, s:I}", "state", "begin", "budget",
                  budget, "talk", "runs", "seen", "known", "can_answer", spec->can_answer,
                  "external", spec->external, "at_ms", (json_int_t)now_ms);
    json_t *r = json_pack(
        "{s:s, s:s, s:n, s:[], s:s, s:i, s:[], s:n, s:{s:i, s:i, s:i}, s:n, s:n, s:I, s:i, s:i, "
        "s:o}",
        "id", id, "status", "pending", "sandbox_id", "plan", "logs", "", "total_rounds", 0, "files",
        "answer", "usage", "input_tokens", 0, "output_tokens", 0, "calls", 0, "error", "question",
        "created_ms", (json_int_t)now_ms, "started_ms", 0, "ended_ms", 0, "inner", inner);

    for (size_t i = 0; i < COUNT(budgets); i++) {
        uint64_t n = *(const uint64_t *)((const char *)b + budgets[i].at);
        json_put_num(budget, budgets[i].name, (int64_t)n);
    }
    json_put_str(r, "tool", spec->tool);
    json_put_str(r, "owner", spec->owner);
    json_put_str(r, "request", spec->request);
    json_put_str(r, "context", spec->context);
    json_put_str(inner, "pool", spec->pool);
    json_put_str(inner, "input_dir", spec->input_dir);
    json_put_str(inner, "model", spec->model);
    json_put_on(inner, "own_only", spec->own_only);
    json_put_on(inner, "no_replan", spec->no_replan);
    return r;
}
