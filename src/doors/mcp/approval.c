/*
 * Approvals: where the pool wants it, the client's user agrees before a tool runs code.
 *
 * The service decides whether somebody must agree, keeps the approval, and calls on_ask() of the
 * execution. The user is asked by elicitation; the id of the approval is the key of the question.
 * Legacy: the call waits for the user, an approver or the approval's last moment. Modern: the call
 * ends with the question; the client's next call carries the answer in its signed requestState,
 * also to another process.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

/* A question to the user, as long as its call. */
struct call_approval {
    struct call *c;       /* borrowed: keeps this */
    struct execution *x;  /* borrowed: has not ended while the question is open */
    bool lasting;         /* the user may agree for the whole conversation */
    char why[NAME_SHOWN]; /* the user could not be asked; or "" */
};

/* --- the question --- */

/* The question that this call answers, when the client repeats it; or empty. */
static struct str answered(const struct call *c)
{
    const char *key;
    json_t *v;

    json_object_foreach(c->answers, key, v)
        if (id_is(str_of(key), "apr_"))
            return str_of(key);
    return (struct str){0};
}

struct approval_ask call_approval_ask(const struct call *c, struct str code)
{
    json_t *args = json_object_get(c->params, "arguments");

    return (struct approval_ask){
        .tool = json_view(json_object_get(c->params, "name")),
        .args = args,
        .code = code,
        .conversation = str_of(call_conversation(c)),
        .answers = answered(c),
        .implied = !json_object_get(args, "session_id"),
        .can_ask = call_can_ask(c, "elicitation/create", NULL),
        .external = true,
    };
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

static json_t *question(const struct call *c, const struct approval_info *info)
{
    const struct tool *t = tool_find(c->tool_set, json_view(json_object_get(c->params, "name")));
    const struct approval_row *r = info->row;
    AUTO_FREE char *message = NULL;
    json_t *params;
    int n = asprintf(&message, "%s wants to run this%s%s in a sandbox of the pool %s:\n\n%s",
                     t->title, *r->session ? " in the session " : "", r->session, r->pool, r->text);

    assert(n > 0);
    params = json_pack("{s:s, s:o}", "message", message, "requestedSchema", form(info->lasting));
    if (c->client.version->has & HAS_ICONS)
        json_object_set_new(params, "mode", json_string("form"));
    return params;
}

static void on_answer(void *arg, json_t *result, const struct err *failed)
{
    struct call_approval *a = arg;
    const json_t *content = json_object_get(result, "content");
    struct str action = json_view(json_object_get(result, "action"));
    bool accepts = str_is(action, "accept");
    bool once = str_is(json_view(json_object_get(content, "remember")), "once");

    if (failed) {
        snprintf(a->why, sizeof(a->why), "%.*s", (int)sizeof(a->why) - 1, failed->text);
        execution_answer(a->x, ANSWER_NONE);
    } else if (!accepts && !str_is(action, "decline") && !str_is(action, "cancel")) {
        call_error(a->c, RPC_PARAMS, NULL, "an answer has an action: accept, decline or cancel");
    } else if (!accepts || !json_is_true(json_object_get(content, "approve"))) {
        execution_answer(a->x, ANSWER_NO);
    } else {
        execution_answer(a->x, once || !a->lasting ? ANSWER_ONCE : ANSWER_LASTING);
    }
}

/* An answer that is there already is told at once: the service would take an approver's yes before
 * the user's no. */
bool call_on_ask(struct call *c, struct execution *x, const struct approval_info *info)
{
    json_t *answer = json_object_get(c->answers, info->row->id);
    struct call_approval *a;

    if (info->verdict != APPROVAL_ASK)
        return false;
    a = c->approval = mem_zalloc(sizeof(*a));
    *a = (struct call_approval){.c = c, .x = x, .lasting = info->lasting};
    call_keep(c, free, a);
    if (answer)
        on_answer(a, answer, NULL);
    else
        call_ask(c, info->row->id, "elicitation/create", question(c, info), on_answer, a);
    return true;
}

/* --- what the model is told --- */

static void say(struct call *c, bool waits, const struct approval_row *r, const char *fmt, ...)
    PRINTF(4, 5);
static void say(struct call *c, bool waits, const struct approval_row *r, const char *fmt, ...)
{
    const struct tool *t = tool_find(c->tool_set, json_view(json_object_get(c->params, "name")));
    char text[2 * KiB];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (t->not_approved)
        t->not_approved(c, waits, r ? r->id : NULL, text);
    else
        tool_fail(c, "%s", text);
}

static void say_waits(struct call *c, const struct approval_row *r)
{
    const char *why = c->approval ? c->approval->why : "";
    const char *tool = json_string_value(json_object_get(c->params, "name"));
    char until[TIME_TEXT];

    time_print(r->expires_ms, until);
    say(c, true, r,
        "Nothing has been run yet%s%s: a person must agree first. The approval is pending as "
        "%s, until %s. An approver allows it with POST /v1/approvals/%s and "
        "{\"decision\": \"approve\"}. Then call %s again with the same arguments.",
        *why ? ", as " : "", why, r->id, until, r->id, tool);
}

static void say_no(struct call *c, const struct approval_row *r)
{
    char reason[NAME_SHOWN];
    bool approver = r && r->decided_how && strcmp(r->decided_how, "approver") == 0;

    if (!r)
        say(c, false, r,
            "Nothing was run. A person must agree before code runs here, and this client "
            "cannot ask its user: it has no elicitation. Use one that can, or have the "
            "operator set approval-by = either, so that an approver can decide.");
    else if (r->state == APPROVAL_EXPIRED)
        say(c, false, r, "Nothing was run: nobody agreed to it in time.");
    else
        say(c, false, r, "Nothing was run: it was declined by %s%s%s. Do not try the same again.",
            approver ? "an approver" : "the user", r->reason ? ", who says: " : "",
            r->reason ? name_show(reason, str_of(r->reason)) : "");
}

/* An answer that fits no approval is the client's mistake, not the model's. */
bool call_on_end(struct call *c, const struct execution *x, const struct err *failed)
{
    const struct approval_info *info = failed ? execution_approval(x) : NULL;

    call_on_cancel(c, NULL, NULL);
    asks_forget(c);
    if (info && info->verdict == APPROVAL_NO)
        say_no(c, info->row);
    else if (info)
        say_waits(c, info->row);
    else if (failed && answered(c).p &&
             (failed->kind == ERR_CONFLICT || failed->kind == ERR_MISSING))
        call_error(c, RPC_PARAMS, NULL,
                   "%s: make the call again without requestState and inputResponses", failed->text);
    else
        return false;
    return true;
}
