/*
 * The gate: where a pool wants it, a person agrees before code runs. The service keeps
 * what was asked and decided; here is who waits for it. Whoever is first settles it: the
 * one who is asked, an approver, or the clock.
 */
#include "agent/quest.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define CODE_SHOWN 2000

void quest_unwait(struct quest *q)
{
    approval_unwatch(take_ptr(&q->watch));
    if (q->timer)
        timer_clear(q->timer);
    json_decref(take_ptr(&q->later));
}

/* --- verdicts --- */

static json_t *refused(struct quest *q, const struct approval_row *row)
{
    AUTO_FREE char *own = take_ptr(&q->reason);
    const char *reason = own                                     ? own
                         : row && row->reason                    ? row->reason
                         : row && row->state == APPROVAL_EXPIRED ? "nobody agreed in time"
                         : row                                   ? ""
                                                                 : "there is nobody to ask";
    json_t *ev = json_pack("{s:s}", "type", "refused");

    json_put_str(ev, "reason", str_of(reason));
    return ev;
}

static json_t *cleared(const struct approval_info *info)
{
    return json_pack("{s:s, s:{s:s, s:s}}", "type", "clear", "clearance", "pool",
                     info->clearance.pool, "approval", info->clearance.approval);
}

static json_t *asked(struct quest *q, const struct approval_info *info)
{
    struct str code = json_str(quest_inner(q), "code");
    json_t *ev =
        json_pack("{s:s, s:s, s:I, s:b}", "type", "asked", "approval", info->row->id, "expires_ms",
                  (json_int_t)info->row->expires_ms, "lasting", info->lasting);
    struct buf b;
    struct err e;

    buf_init(&b, 64 * KiB);
    (void)!buf_printf(&b, &e, "May this code run?\n\n");
    observe_cut(&b, code, CODE_SHOWN, NULL);
    json_put_str(ev, "prompt", buf_str(&b));
    buf_done(&b);
    return ev;
}

static json_t *unreachable(const struct err *failed)
{
    json_t *ev = json_pack("{s:s, s:b}", "type", "unreachable", "busy", failed->kind == ERR_BUSY);

    json_put_str(ev, "message", str_of(failed->text));
    return ev;
}

/* --- asking --- */

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct quest *q = arg;

    if (quest_back(q))
        return;
    json_decref(take_ptr(&q->args));
    if (failed)
        quest_event(q, unreachable(failed));
    else if (info->verdict == APPROVAL_CLEAR)
        quest_event(q, cleared(info));
    else if (info->verdict == APPROVAL_NO || !info->row)
        quest_event(q, refused(q, info->row));
    else
        quest_event(q, asked(q, info));
}

void quest_gate(struct quest *q)
{
    const json_t *inner = quest_inner(q);
    struct approval_spec spec = {
        .tool = json_str(q->record, "tool"),
        .language = STR("python"),
        .session = json_str(q->record, "sandbox_id"),
        .conversation = str_of(q->id),
        .can_ask = json_on(inner, "can_answer"),
        .external = json_on(inner, "external"),
    };

    json_decref(q->args);
    q->args = json_pack("{s:O}", "code", json_object_get(inner, "code"));
    spec.args = q->args;
    spec.code = json_str(q->args, "code");
    service_approval_request(q->agent->config.service, &q->caller, &spec, on_verdict,
                             quest_hold(q));
}

/* --- waiting --- */

static void settle(struct quest *q);

static void on_settled(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct quest *q = arg;

    if (quest_back(q))
        return;
    q->settling = false;
    if (!failed && info->verdict == APPROVAL_WAIT) {
        if (q->resettle)
            settle(q);
        return;
    }
    q->answer = ANSWER_NONE;
    quest_unwait(q);
    if (failed)
        log_warn("loop %s: its approval is lost: %s", q->id, failed->text);
    quest_event(q, !failed && info->verdict == APPROVAL_CLEAR
                       ? cleared(info)
                       : refused(q, failed ? NULL : info->row));
}

/* With what was answered, or to see what has come of it. One at a time: what happens meanwhile is
 * looked at afterwards. */
static void settle(struct quest *q)
{
    const json_t *question = json_object_get(q->record, "question");

    q->resettle = q->settling;
    if (q->settling)
        return;
    q->settling = true;
    service_approval_settle(q->agent->config.service, &q->caller, json_str(question, "approval"),
                            q->answer, on_settled, quest_hold(q));
}

static void on_decided(void *arg)
{
    settle(arg);
}

static bool is_told(const struct quest *q, const json_t *question)
{
    const json_t *ev;
    size_t i;

    json_array_foreach(q->events, i, ev)
    {
        if (json_is(ev, "type", "question") &&
            json_equal(json_object_get(ev, "prompt"), json_object_get(question, "prompt")) &&
            json_num(ev, "expires_ms") == json_num(question, "expires_ms"))
            return true;
    }
    return false;
}

/* The question is told once it is kept: whoever hears of it can answer it after a crash, too. A
 * decision may have come before we looked. */
void quest_await(struct quest *q)
{
    json_t *question = json_object_get(q->record, "question");
    struct str approval = json_str(question, "approval");
    int64_t left = json_num(question, "expires_ms") - now_ms();

    if (!is_told(q, question)) {
        json_t *ev = json_copy(question);
        json_object_set_new(ev, "type", json_string("question"));
        quest_tell(q, ev);
    }
    quest_wait(q, (uint64_t)(left > 0 ? left : 0), json_pack("{s:s}", "do", "late"));
    if (!approval.n)
        return;
    approval_unwatch(q->watch);
    q->watch = service_approval_watch(q->agent->config.service, approval.p, on_decided, q);
    settle(q);
}

/* --- answers --- */

static bool yes_or_no(struct str text, bool *ret)
{
    static const struct {
        const char *word;
        bool means;
    } words[] = {
        {"yes",      true },
        {"y",        true },
        {"true",     true },
        {"approve",  true },
        {"approved", true },
        {"no",       false},
        {"n",        false},
        {"false",    false},
        {"reject",   false},
        {"decline",  false},
        {"deny",     false},
    };
    char word[16];

    if (!str_to_cstr(text, word, sizeof(word)))
        return false;
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcasecmp(word, words[i].word) == 0) {
            *ret = words[i].means;
            return true;
        }
    return false;
}

static bool read_answer(struct str text, bool *ret_yes, char **ret_reason)
{
    json_t *v = json_loadb(text.n ? text.p : "", text.n, JSON_DECODE_ANY, NULL);
    const json_t *approve = json_object_get(v, "approve");
    struct str reason = json_str(v, "reason");
    bool known = json_is_boolean(approve);

    if (!approve)
        approve = json_object_get(v, "approved");
    known = json_is_boolean(approve);
    *ret_yes = json_is_true(approve);
    if (known && reason.n > 0 && reason.n <= APPROVAL_REASON_MAX)
        *ret_reason = mem_strndup(reason);
    if (json_is_boolean(v)) {
        known = true;
        *ret_yes = json_is_true(v);
    }
    json_decref(v);
    return known || yes_or_no(text, ret_yes);
}

bool quest_answer(struct quest *q, struct str text)
{
    const json_t *question = json_object_get(q->record, "question");
    json_t *ev;
    bool yes;

    if (json_str(question, "approval").n > 0) {
        AUTO_FREE char *reason = NULL;
        if (!read_answer(text, &yes, &reason))
            return false;
        free(q->reason);
        q->reason = take_ptr(&reason);
        q->answer = !yes                                 ? ANSWER_NO
                    : json_on(quest_inner(q), "lasting") ? ANSWER_LASTING
                                                         : ANSWER_ONCE;
        settle(q);
        return true;
    }
    quest_unwait(q);
    ev = json_pack("{s:s}", "type", "input");
    json_put_str(ev, "text", text);
    quest_event(q, ev);
    return true;
}
