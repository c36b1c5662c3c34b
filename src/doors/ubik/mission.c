/*
 * An order of an MCP client, from its call to the result.
 *
 * Theory of operation: the execution may have a question meanwhile, for the client's
 * model or for its user. In the legacy era it goes out on the call's stream, and the call
 * waits. In the modern one the call ends with the question, and the mission stays without
 * a call until the client comes again with the answer; the signed requestState says
 * which mission it is, and which of its questions. An answer to the last question may
 * come twice, as a client may not have heard what came of it: it hears the same again.
 * Anything older is refused. An mission nobody comes back to ends with its clock.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 200
#define ENDED_MAX  64 /* kept, in case the last answer comes again */

struct mission {
    struct mission *next, **link;
    struct ubik *u;     /* borrowed */
    struct service *sv; /* borrowed */
    struct caller caller;
    struct call *c;            /* held; NULL: nobody waits at the moment */
    char key[ID_MAX];          /* how a requestState names it */
    char id[ID_MAX];           /* of the execution; "" until it has one */
    struct sampler *sampler;   /* owned, or NULL */
    struct agent_watch *watch; /* owned, or NULL */
    struct timer *clock;       /* owned */
    const char *method;        /* static: of the question, or NULL: there is none */
    json_t *params;            /* owned: of the question */
    uint64_t asked, answered; /* numbers of the last question, and of the last that has an answer */
    struct pictures *pictures; /* borrowed: on their way, or NULL */
    json_t *draft, *result;    /* owned: without its pictures; once it is over */
    double progress;
    bool stays;   /* modern: what came of it can be asked for again */
    bool can_ask; /* the client's user */
    bool unwanted;
};

static void mission_free(struct mission *e)
{
    agent_watch_free(e->watch);
    sampler_free(e->sampler);
    timer_free(e->clock);
    json_decref(e->params);
    json_decref(e->draft);
    json_decref(e->result);
    pictures_leave(e->pictures);
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    free(e);
}

/* --- whoever waits --- */

static void on_nothing(void *arg, const json_t *record, const struct err *failed)
{
    (void)arg, (void)record, (void)failed;
}

/* Nobody wants it any more: it ends, and then goes. */
static void abandon(struct mission *e)
{
    struct err err;
    struct agent *a;

    e->unwanted = true;
    if (e->result) {
        mission_free(e);
        return;
    }
    if (*e->id && (a = ubik_agent(e->u, &err)))
        agent_cancel(a, &e->caller, str_of(e->id), true, on_nothing, NULL);
}

static void on_clock(void *arg)
{
    struct mission *e = arg;

    if (!e->c)
        abandon(e);
}

static void on_cancel(void *arg)
{
    struct mission *e = arg;
    struct call *c = take_ptr(&e->c);

    abandon(e);
    call_drop(c);
}

static void attach(struct mission *e, struct call *c)
{
    e->c = c;
    timer_clear(e->clock);
    call_on_cancel(c, on_cancel, e);
}

/* The call is the caller's to end now. */
static struct call *detach(struct mission *e)
{
    struct call *c = take_ptr(&e->c);

    call_on_cancel(c, NULL, NULL);
    timer_set(e->clock, STATE_MS);
    return c;
}

/* The one that ended longest ago makes room: its client has most likely heard of it. */
static void trim(struct ubik *u)
{
    struct mission *oldest = NULL;
    size_t count = 0;

    for (struct mission *e = u->missions; e; e = e->next)
        if (e->result && !e->c) {
            oldest = e;
            count++;
        }
    if (count > ENDED_MAX)
        mission_free(oldest);
}

static void tell_result(struct mission *e)
{
    struct ubik *u = e->u;
    struct call *c;
    json_t *result = json_incref(e->result);

    if (!e->c) {
        json_decref(result);
        if (e->unwanted || !e->stays)
            mission_free(e);
        return;
    }
    c = detach(e);
    if (!e->stays)
        mission_free(e);
    trim(u);
    call_result(c, result);
}

/* --- questions --- */

static const char *question_key(const struct mission *e)
{
    return strcmp(e->method, "sampling/createMessage") == 0 ? "llm" : "user";
}

static void on_answer(void *arg, json_t *result, const struct err *failed);

static void tell_question(struct mission *e)
{
    json_t *requests;

    if (!e->c)
        return;
    if (!call_is_modern(e->c)) {
        asks_forget(
            e->c); /* one that nobody waits for any more must not be answered for this one */
        call_ask(e->c, question_key(e), e->method, json_incref(e->params), on_answer, e);
        return;
    }
    requests =
        json_pack("{s:{s:s, s:O}}", question_key(e), "method", e->method, "params", e->params);
    call_ask_again(detach(e), requests,
                   json_pack("{s:s, s:I}", "mission", e->key, "question", (json_int_t)e->asked));
}

/* Takes params. */
static void ask(struct mission *e, const char *method, json_t *params)
{
    json_decref(e->params);
    e->params = params;
    e->method = method;
    e->asked++;
    tell_question(e);
}

static void on_model_asks(void *arg)
{
    struct mission *e = arg;

    ask(e, "sampling/createMessage", json_incref(sampler_question(e->sampler)));
}

/* What the user said, as the agent reads it. */
static void provide(struct mission *e, const json_t *result)
{
    const json_t *content = json_object_get(result, "content");
    bool accepts = str_is(json_view(json_object_get(result, "action")), "accept");
    struct str text = json_view(json_object_get(content, "answer"));
    struct err err;
    struct agent *a = ubik_agent(e->u, &err);

    if (!accepts || json_is_false(json_object_get(content, "approve")))
        text = STR("no");
    else if (json_is_true(json_object_get(content, "approve")))
        text = STR("yes");
    if (a)
        agent_provide(a, &e->caller, str_of(e->id), text, on_nothing, NULL);
}

static void on_answer(void *arg, json_t *result, const struct err *failed)
{
    struct mission *e = arg;
    bool of_model = e->method && strcmp(e->method, "sampling/createMessage") == 0;

    if (!e->method)
        return;
    e->answered = e->asked;
    e->method = NULL;
    json_decref(take_ptr(&e->params));
    if (of_model)
        sampler_answer(e->sampler, result, failed);
    else
        provide(e, result);
}

/* An approval is yes or no; anything else is a text. */
static json_t *form_of(const json_t *question)
{
    bool approval = json_object_get(question, "approval") != NULL;
    const char *key = approval ? "approve" : "answer";
    json_t *field = json_pack("{s:s, s:s}", "type", approval ? "boolean" : "string", "title",
                              approval ? "Allow this to run?" : "Your answer");

    return json_pack("{s:O, s:{s:s, s:{s:o}, s:[s]}}", "message",
                     json_object_get(question, "prompt"), "requestedSchema", "type", "object",
                     "properties", key, field, "required", key);
}

/* --- what happens --- */

static void say(struct mission *e, struct str text)
{
    while (text.n > 0 && (unsigned char)text.p[text.n - 1] <= ' ')
        text.n--;
    for (size_t i = text.n; i > 0; i--)
        if (text.p[i - 1] == '\n') {
            text = (struct str){text.p + i, text.n - i};
            break;
        }
    text.n = text_head(text, LINE_BYTES);
    if (e->c && text.n > 0)
        call_progress(e->c, ++e->progress, 0, text);
}

static void on_event(void *arg, const json_t *ev)
{
    struct mission *e = arg;

    if (event_is(ev, "phase"))
        say(e, event_text(ev, "message"));
    else if (event_is(ev, "console"))
        say(e, event_text(ev, "text"));
    else if (event_is(ev, "question") && e->can_ask && json_object_get(ev, "prompt"))
        ask(e, "elicitation/create", form_of(ev));
}

static void on_pictures(void *arg, json_t *items)
{
    struct mission *e = arg;

    e->pictures = NULL;
    json_array_extend(json_object_get(e->draft, "content"), items);
    e->result = take_ptr(&e->draft);
    tell_result(e);
}

static void on_over(void *arg, const struct execution *x, const struct err *failed)
{
    struct mission *e = arg;
    AUTO_FREE char *base = base_url(e->u, NULL);
    struct content t;

    if (!failed) {
        e->draft = mission_result(e->c, x, base);
        e->pictures = pictures_start(e->u->config.loop, e->sv, &e->caller, x, on_pictures, e);
        return;
    }
    content_init(&t);
    content_printf(&t, "What came of it cannot be told: %s",
                   failed->kind == ERR_HOST ? "an error of the server" : failed->text);
    e->result = content_result(&t, true);
    content_done(&t);
    tell_result(e);
}

static void look(struct mission *e)
{
    static const struct who account;

    execution_find(e->u, e->sv, &e->caller, &account, str_of(e->id), on_over, e);
}

static void on_end(void *arg, const json_t *record, const struct err *failed)
{
    struct mission *e = arg;

    (void)record;
    agent_watch_free(take_ptr(&e->watch));
    if (!failed || failed->kind == ERR_MISSING) { /* or it has never come to the agent */
        look(e);
        return;
    }
    /* The server goes. Its model may still be asked, so it stays until the agent is gone. */
    e->unwanted = true;
    if (e->c)
        tool_refuse(detach(e), failed);
    timer_clear(e->clock);
}

static void on_ordered(void *arg, const char *id, const struct err *failed)
{
    static const struct agent_watcher watcher = {on_event, on_end};
    struct mission *e = arg;
    struct err err;
    struct agent *a;
    struct call *c;

    if (failed) {
        c = e->c ? detach(e) : NULL;
        mission_free(e);
        if (c)
            tool_refuse(c, failed);
        return;
    }
    snprintf(e->id, sizeof(e->id), "%s", id);
    a = ubik_agent(e->u, &err);
    assert(a); /* it has just taken the order */
    e->watch = agent_watch(a, &e->caller, str_of(id), 0, &watcher, e);
    if (e->unwanted)
        abandon(e);
}

/* --- coming, and coming again --- */

void mission_start(struct call *c, struct ubik *u, const struct catalog_entry *tool, json_t *args)
{
    struct service *sv = call_service(c);
    struct mission *e;

    if (!sv)
        return;
    e = mem_zalloc(sizeof(*e));
    *e = (struct mission){.u = u,
                          .sv = sv,
                          .caller = c->caller,
                          .stays = call_is_modern(c),
                          .can_ask = call_can_ask(c, "elicitation/create", NULL),
                          .next = u->missions,
                          .link = &u->missions};
    if (e->next)
        e->next->link = &e->next;
    u->missions = e;
    id_make(e->key, "mission_");
    e->clock = timer_new(u->config.loop, on_clock, e);
    attach(e, c);
    if (tool->kind == WORK_REQUEST && call_can(c, "sampling"))
        e->sampler = sampler_new(c, on_model_asks, e);
    const struct order_spec spec = {.ubik = u,
                                    .service = sv,
                                    .caller = &e->caller,
                                    .tool = tool,
                                    .inputs = args,
                                    .own = e->sampler ? sampler_model(e->sampler) : NULL,
                                    .can_answer = e->can_ask};
    order_start(&spec, on_ordered, e);
}

static struct mission *find(struct ubik *u, struct str key, const struct caller *who)
{
    for (struct mission *e = u->missions; e; e = e->next)
        if (str_is(key, e->key) && strcmp(e->caller.tenant, who->tenant) == 0 && !e->unwanted)
            return e;
    return NULL;
}

/* The call that waited is answered for by this one. */
static void take_over(struct mission *e, struct call *c)
{
    if (e->c)
        call_error(detach(e), RPC_PARAMS, NULL, "the same call has come again, and is answered");
    attach(e, c);
}

bool mission_resume(struct call *c, struct ubik *u)
{
    const json_t *state = call_state(c);
    struct mission *e =
        state ? find(u, json_view(json_object_get(state, "mission")), &c->caller) : NULL;
    uint64_t number = (uint64_t)json_integer_value(json_object_get(state, "question"));
    json_t *answer;

    if (!state)
        return false;
    if (!e || (number != e->asked && number != e->answered)) {
        call_error(c, RPC_PARAMS, NULL,
                   "requestState was used before, or is of a call that is over: make the call "
                   "again without it and without inputResponses");
        return true;
    }
    take_over(e, c);
    if (e->result) {
        tell_result(e);
        return true;
    }
    if (number != e->asked ||
        !e->method) { /* it came before: what came of it is under way, or asked */
        if (e->method)
            tell_question(e);
        return true;
    }
    answer = json_object_get(c->answers, question_key(e));
    if (answer)
        on_answer(e, answer, NULL);
    else
        tell_question(e);
    return true;
}

void missions_stop(struct ubik *u)
{
    for (struct mission *e = u->missions; e; e = e->next)
        agent_watch_free(take_ptr(&e->watch));
}

void missions_free(struct ubik *u)
{
    for (struct mission *e = u->missions, *next; e; e = next) {
        next = e->next;
        mission_free(e);
    }
}
