/*
 * Questions to a person: whether code may run, asked by the service, and questions of the
 * model. The user, an approver or the service's clock settles an approval, whichever is first.
 */
#include "agent/agent_run.h"
#include "base/json.h"
#include "lenient/lenient.h"

#include <stdlib.h>
#include <strings.h>

/* --- may the code run? --- */

bool run_on_ask(void *arg, const struct approval_info *info)
{
    struct agent_run *run = arg;
    AUTO(buf_done) struct buf b = BUF(APPROVAL_TEXT_MAX + 64);

    /* Whole, as an approver sees it: nobody agrees to what was cut. */
    buf_printf(&b, "May this code run?\n\n%s", info->row->text);
    run_event(run, json_pack("{s:s, s:s, s:I, s:b, s:o}", "type", "asked", "approval",
                             info->row->id, "expires_ms", (json_int_t)info->row->expires_ms,
                             "lasting", info->lasting, "prompt", text_value(buf_str(&b))));
    return true;
}

void run_refused(struct agent_run *run, const struct approval_row *row)
{
    AUTO_FREE char *own = take_ptr(&run->reason);
    const char *reason = own                              ? own
                         : !row                           ? "there is nobody to ask"
                         : row->reason                    ? row->reason
                         : row->state == APPROVAL_EXPIRED ? "nobody agreed in time"
                                                          : "";

    run_event(run,
              json_pack("{s:s, s:o}", "type", "refused", "reason", text_value(str_of(reason))));
}

/* --- waiting --- */

static bool is_told(const struct agent_run *run, const json_t *question)
{
    const json_t *ev;
    size_t i;

    json_array_foreach(run->events, i, ev) {
        if (json_is(ev, "type", "question") &&
            json_equal(json_object_get(ev, "prompt"), json_object_get(question, "prompt")) &&
            json_num(ev, "expires_ms") == json_num(question, "expires_ms"))
            return true;
    }
    return false;
}

/* Tells a question once it is stored, so that it can be answered after a crash, too. A restart has
 * lost the execution that waits for an approval: executing the same code finds the approval. */
void run_await_answer(struct agent_run *run)
{
    json_t *question = run->record.question;
    int64_t left = json_num(question, "expires_ms") - time_now_ms();

    if (!is_told(run, question)) {
        json_t *ev = json_copy(question);
        json_object_set_new(ev, "type", json_string("question"));
        run_tell(run, ev);
    }
    run_wait(run, (uint64_t)(left > 0 ? left : 0), json_pack("{s:s}", "do", "late"));
    if (json_str(question, "approval").n > 0 && !run->x)
        run_exec(run);
}

/* --- answers --- */

static bool yes_or_no(struct str text, bool *ret_yes)
{
    static const char *const words[][6] = {
        {"no",  "n", "false", "reject",  "decline",  "deny"},
        {"yes", "y", "true",  "approve", "approved", "yes" },
    };
    char word[16];

    if (!str_to_cstr(str_trim(text), word, sizeof(word)))
        return false;
    for (size_t i = 0; i < 2 * COUNT(words[0]); i++)
        if (strcasecmp(word, words[i % 2][i / 2]) == 0) {
            *ret_yes = i % 2;
            return true;
        }
    return false;
}

/* Reads {"approve": bool, "reason"} or a word such as yes. False: neither. */
static bool read_answer(struct str text, bool *ret_yes, char **ret_reason)
{
    json_t *v = json_load_limited(text, 0);
    const json_t *approve = json_object_get(v, "approve");
    struct str reason = json_str(v, "reason");
    bool known;

    if (!approve)
        approve = json_object_get(v, "approved");
    known = json_is_boolean(approve);
    *ret_yes = json_is_true(approve);
    if (known && reason.n > 0 && reason.n <= APPROVAL_REASON_MAX)
        *ret_reason = mem_strndup(reason);
    json_decref(v);
    return known || yes_or_no(text, ret_yes);
}

bool run_answer(struct agent_run *run, struct str text)
{
    AUTO_FREE char *reason = NULL;
    bool yes;

    if (json_str(run->record.question, "approval").n == 0) {
        run_stop_waiting(run);
        run_event(run, json_pack("{s:s, s:o}", "type", "input", "text", text_value(text)));
        return true;
    }
    if (!read_answer(text, &yes, &reason))
        return false;
    free(run->reason);
    run->reason = take_ptr(&reason);
    run->answer = !yes ? ANSWER_NO : run->record.lasting ? ANSWER_LASTING : ANSWER_ONCE;
    if (run->x)
        execution_answer(run->x, run->answer);
    return true;
}
