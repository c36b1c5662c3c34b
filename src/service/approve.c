/*
 * A person agrees to one execution before it begins. approvals.c keeps the rows, which decide;
 * this file has the execution that waits. The first of these decides: the client's user, by
 * execution_answer(); an approver; the approval's last moment.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

static void settle(struct execution *j);

void approve_done(struct approve *a)
{
    approval_unwatch(take_ptr(&a->watch));
    timer_free(take_ptr(&a->late));
}

/* --- no --- */

static void deny(struct execution *j, const struct approval_info *info)
{
    const struct approval_row *r = info->row;
    bool approver = r && r->decided_how && strcmp(r->decided_how, "approver") == 0;
    char reason[NAME_SHOWN];

    if (!r)
        err_set(&j->failed, ERR_DENIED,
                "nothing has run: a person must agree before code runs in this pool, and nobody "
                "can be asked: approval-by = client");
    else if (info->verdict != APPROVAL_NO)
        err_set(&j->failed, ERR_DENIED,
                "nothing has run yet: a person must agree first. %s is pending: when an approver "
                "has decided it with POST /v1/approvals/%s, send the same request again",
                r->id, r->id);
    else if (r->state == APPROVAL_EXPIRED)
        err_set(&j->failed, ERR_DENIED, "nothing has run: nobody agreed to it in time");
    else
        err_set(&j->failed, ERR_DENIED, "nothing has run: it was declined by %s%s%s",
                approver ? "an approver" : "the user", r->reason ? ": " : "",
                r->reason ? name_show(reason, str_of(r->reason)) : "");
    j->approve.info = info;
    if (j->watched)
        j->watcher.on_end(j->arg, NULL, &j->failed);
    job_free(j);
}

/* --- the verdict --- */

static void on_elsewhere(void *arg)
{
    settle(arg);
}

/* The watcher has said that it waits. */
static void await(struct execution *j, const struct approval_row *r)
{
    struct approve *a = &j->approve;
    int64_t left = r->expires_ms - time_now_ms() + 1;

    snprintf(a->id, sizeof(a->id), "%s", r->id);
    a->watch = approval_watch_new(j->sv, a->id, on_elsewhere, j);
    a->late = timer_new(j->sv->loop, on_elsewhere, j);
    timer_set(a->late, (uint64_t)(left > 0 ? left : 0));
    j->state = JOB_ASKED;
    settle(j); /* it may have been decided, or answered, before we looked */
}

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct execution *j = arg;
    struct approve *a = &j->approve;

    a->under_way = false;
    if (!j->watched)
        return job_free(j);
    if (failed)
        return job_refuse(j, failed);
    if (info->scene && j->state != JOB_ASKED)
        a->scene = *info->scene;
    if (info->verdict == APPROVAL_CLEAR) {
        approve_done(a);
        a->bound = info->scene && !info->lasting;
        memcpy(j->cleared, info->pool, sizeof(j->cleared));
        j->row.approval = info->row ? mem_strdup(info->row->id) : NULL;
        return job_cleared(j);
    }
    if (j->state == JOB_ASKED && info->verdict == APPROVAL_WAIT && a->again)
        return settle(j);
    if (j->state == JOB_ASKED && info->verdict == APPROVAL_WAIT && !a->answered && !j->sv->closing)
        return;
    if (j->state == JOB_ASKED || info->verdict == APPROVAL_NO || !info->row || !j->watcher.on_ask)
        return deny(j, info);
    a->under_way = true; /* it may leave from inside */
    if (!j->watcher.on_ask(j->arg, info) && j->watched)
        return deny(j, info);
    a->under_way = false;
    if (j->watched)
        await(j, info->row);
    else
        job_free(j);
}

/* With what was answered, or to see what has come of it. One at a time. */
static void settle(struct execution *j)
{
    struct approve *a = &j->approve;

    a->again = a->under_way;
    if (a->under_way)
        return;
    a->under_way = true;
    a->write_clock = j->sv->write_clock;
    approval_settle(j->sv, &j->caller, str_of(a->id), a->answer, &a->scene, on_verdict, j);
}

void execution_answer(struct execution *j, enum approval_answer answer)
{
    j->approve.answer = answer;
    j->approve.answered = true;
    if (j->state == JOB_ASKED)
        settle(j);
}

const struct approval_info *execution_approval(const struct execution *j)
{
    return j->approve.info;
}

/* --- asking --- */

void job_ask(struct execution *j, const struct exec_spec *spec)
{
    const struct approval_ask *k = &spec->ask;
    bool shell = spec->kind == EXEC_COMMAND;
    json_t *args =
        k->args ? json_copy(k->args) : json_pack("{s:o}", "code", record_text(spec->code));
    json_t *files = inputs_show(j);
    const struct approval_spec asked = {
        .tool = k->tool,
        .language = shell ? STR("shell") : STR("python"),
        .code = k->args ? k->code : json_view(json_object_get(args, "code")),
        .args = args,
        .session = spec->session.n || k->implied ? spec->session : spec->name,
        .name = spec->name,
        .implied = k->implied,
        .pool = spec->pool,
        .conversation = k->conversation,
        .answers = k->answers,
        .can_ask = k->can_ask,
        .external = k->external,
    };

    if (json_array_size(files) > 0)
        json_object_set(args, "files", files);
    json_decref(files);
    j->state = JOB_ASKING;
    j->approve.under_way = true;
    j->approve.write_clock = j->sv->write_clock;
    approval_request(j->sv, &j->caller, &asked, on_verdict, j);
    json_decref(args);
}

/* Nobody is asked any more: the server ends. */
void approvals_close(struct service *sv)
{
    for (struct approval_watch *w = sv->watches, *next; w; w = next) {
        next = w->next;
        w->fn(w->arg);
    }
}
