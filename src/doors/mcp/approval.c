/*
 * Approval: where a pool wants it, a person agrees before a tool runs anything.
 *
 * Theory of operation: the service knows whether somebody must be asked, and keeps what
 * was asked and decided. Here the client's user is asked, in the way of the client's era.
 * The approval's id is the name of the question; in the modern era it travels in the
 * signed requestState, so that an answer finds the approval it belongs to, also in another
 * process than the one that asked. In the legacy era the call waits, and whoever is first
 * settles it: the user, an approver, or the clock.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct asking {
    struct call *c;               /* borrowed: held by us until it runs or is answered */
    const struct tool *t;         /* static */
    json_t *args;                 /* borrowed from the call */
    struct service *sv;           /* borrowed */
    char id[ID_MAX];              /* of the approval */
    bool lasting;                 /* it may be for the whole conversation */
    char why[NAME_SHOWN];         /* the user could not be asked; or "" */
    struct approval_watch *watch; /* owned, or NULL */
    struct timer *late;           /* owned, or NULL */
};

static void stop_waiting(struct asking *a)
{
    approval_unwatch(take_ptr(&a->watch));
    timer_free(take_ptr(&a->late));
    call_on_cancel(a->c, NULL, NULL);
}

static void asking_free(void *arg)
{
    struct asking *a = arg;

    approval_unwatch(a->watch);
    timer_free(a->late);
    free(a);
}

/* --- what the model is told --- */

static void say_waits(struct asking *a, const struct approval_row *r)
{
    char until[TIME_TEXT];

    time_print(r->expires_ms, until);
    tool_fail(a->c,
              "Nothing has been run yet%s%s: a person must agree first. The approval is pending as "
              "%s, until %s. An approver allows it with POST /v1/approvals/%s and "
              "{\"decision\": \"approve\"}. Then call %s again with the same arguments.",
              *a->why ? ", as " : "", a->why, r->id, until, r->id, a->t->name);
}

static void say_no(struct asking *a, const struct approval_row *r)
{
    char reason[NAME_SHOWN];
    bool approver = r && r->decided_how && strcmp(r->decided_how, "approver") == 0;

    if (!r)
        tool_fail(a->c,
                  "Nothing was run. A person must agree before code runs here, and this client "
                  "cannot ask its user: it has no elicitation. Use one that can, or have the "
                  "operator set approval-by = either, so that an approver can decide.");
    else if (r->state == APPROVAL_EXPIRED)
        tool_fail(a->c, "Nothing was run: nobody agreed to it in time.");
    else
        tool_fail(a->c, "Nothing was run: it was declined by %s%s%s. Do not try the same again.",
                  approver ? "an approver" : "the user", r->reason ? ", who says: " : "",
                  r->reason ? name_show(reason, str_of(r->reason)) : "");
}

/* --- the verdict --- */

static void ask(struct asking *a, const struct approval_info *info);

static void follow(struct asking *a, const struct approval_info *info)
{
    struct call *c = a->c;

    if (c->cancelled) {
        call_drop(c);
        return;
    }
    switch (info->verdict) {
    case APPROVAL_CLEAR:
        c->clearance = info->clearance;
        a->t->run(c, a->args);
        break;
    case APPROVAL_ASK:
        ask(a, info);
        break;
    case APPROVAL_WAIT:
        say_waits(a, info->row);
        break;
    case APPROVAL_NO:
        say_no(a, info->row);
        break;
    }
}

/* An answer that does not fit is the client's mistake, not the model's. */
static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct asking *a = arg;

    if (!failed)
        follow(a, info);
    else if (failed->kind == ERR_CONFLICT || failed->kind == ERR_MISSING)
        call_error(a->c, RPC_PARAMS, NULL,
                   "%s: make the call again without requestState and inputResponses", failed->text);
    else
        tool_refuse(a->c, failed);
}

static void settle(struct asking *a, enum approval_answer answer)
{
    stop_waiting(a);
    asks_forget(a->c);
    service_approval_settle(a->sv, &a->c->caller, str_of(a->id), answer, on_verdict, a);
}

/* --- the question --- */

/* An approver has decided, or time is over. */
static void on_elsewhere(void *arg)
{
    settle(arg, ANSWER_NONE);
}

static void on_cancel(void *arg)
{
    struct asking *a = arg;

    stop_waiting(a);
    call_drop(a->c);
}

static void on_answer(void *arg, json_t *result, const struct err *failed)
{
    struct asking *a = arg;
    const json_t *content = json_object_get(result, "content");
    struct str action = json_view(json_object_get(result, "action"));
    bool accepts = str_is(action, "accept");
    bool once = str_is(json_view(json_object_get(content, "remember")), "once");

    if (a->c->cancelled) {
        stop_waiting(a);
        call_drop(a->c);
    } else if (failed) {
        snprintf(a->why, sizeof(a->why), "%.*s", (int)sizeof(a->why) - 1, failed->text);
        settle(a, ANSWER_NONE);
    } else if (!accepts && !str_is(action, "decline") && !str_is(action, "cancel")) {
        stop_waiting(a);
        call_error(a->c, RPC_PARAMS, NULL, "an answer has an action: accept, decline or cancel");
    } else if (!accepts || !json_is_true(json_object_get(content, "approve"))) {
        settle(a, ANSWER_NO);
    } else {
        settle(a, once || !a->lasting ? ANSWER_ONCE : ANSWER_LASTING);
    }
}

static json_t *form(bool lasting)
{
    json_t *members = json_pack("{s:{s:s, s:s, s:b}}", "approve", "type", "boolean", "title",
                                "Allow this to run?", "default", 0);

    if (lasting)
        json_object_set_new(members, "remember",
                            json_pack("{s:s, s:s, s:[s, s], s:s}", "type", "string", "title",
                                      "For this call, or for the whole conversation?", "enum",
                                      "once", "conversation", "default", "conversation"));
    return json_pack("{s:s, s:o, s:[s]}", "type", "object", "properties", members, "required",
                     "approve");
}

static json_t *question(const struct asking *a, const struct approval_row *r)
{
    AUTO_FREE char *message = NULL;
    json_t *params;
    int n =
        asprintf(&message, "%s wants to run this%s%s in a sandbox of the pool %s:\n\n%s",
                 a->t->title, *r->session ? " in the session " : "", r->session, r->pool, r->text);

    assert(n > 0);
    params = json_pack("{s:s, s:o}", "message", message, "requestedSchema", form(a->lasting));
    if (a->c->client.version->has & HAS_ICONS)
        json_object_set_new(params, "mode", json_string("form"));
    return params;
}

static int64_t left_ms(const struct approval_row *r)
{
    struct timespec now;
    int64_t ms;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = r->expires_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000) + 1;
    return ms > 0 ? ms : 0;
}

/* Modern: the call may be over when it has asked. */
static void ask(struct asking *a, const struct approval_info *info)
{
    struct call *c = a->c;

    snprintf(a->id, sizeof(a->id), "%s", info->row->id);
    a->lasting = info->lasting;
    if (!call_is_modern(c)) {
        a->watch = service_approval_watch(a->sv, a->id, on_elsewhere, a);
        a->late = timer_new(c->mcp->config.loop, on_elsewhere, a);
        timer_set(a->late, (uint64_t)left_ms(info->row));
        call_on_cancel(c, on_cancel, a);
    }
    call_ask(c, a->id, "elicitation/create", question(a, info->row), on_answer, a);
}

/* --- the call --- */

/* The question that this call answers, when it comes again. */
static struct str answered(const struct call *c)
{
    const char *key;
    json_t *v;

    json_object_foreach(c->answers, key, v) if (id_is(str_of(key), "apr_")) return str_of(key);
    return (struct str){0};
}

static struct str language_of(const struct tool *t, const json_t *args)
{
    struct str named = json_view(json_object_get(args, "language"));

    if (t == &tool_run_shell)
        return STR("shell");
    return named.p ? named : STR("python");
}

void approval_check(struct call *c, const struct tool *t, json_t *args)
{
    struct service *sv = call_service(c);
    struct str code = json_view(json_object_get(args, "code"));
    struct str session = json_view(json_object_get(args, "session_id"));
    struct str pool = json_view(json_object_get(args, "pool"));
    struct conversation *v = c->conversation;
    struct asking *a;

    if (!sv)
        return;
    if (!service_asks(sv)) {
        t->run(c, args);
        return;
    }
    a = mem_zalloc(sizeof(*a));
    *a = (struct asking){.c = c, .t = t, .args = args, .sv = sv};
    call_keep(c, asking_free, a);
    const struct approval_spec spec = {
        .tool = str_of(t->name),
        .language = language_of(t, args),
        .code = code.p ? code : json_view(json_object_get(args, "command")),
        .args = args,
        .session = session.n || !v ? session : str_of(v->session),
        .implied = session.n == 0,
        .pool = pool.p ? pool : str_of(c->face->pool),
        .conversation = str_of(v ? v->id : NULL),
        .answers = answered(c),
        .can_ask = call_can_ask(c, "elicitation/create", NULL),
        .external = true,
    };
    service_approval_request(sv, &c->caller, &spec, on_verdict, a);
}
