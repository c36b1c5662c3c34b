/* What comes before a queue: lanes, people who must agree, sessions by name. */
#include "stage.h"

/* --- lanes --- */

#define CROWD 6

static struct exec_spec seated(struct exec_lane *lane, const char *code)
{
    return (struct exec_spec){.code = str_of(code), .lane = lane};
}

void scene_lane_holds(void)
{
    struct exec_lane lane = {.seats = 1, .waiting_max = (size_t)2 * CROWD};
    static struct run slow, greedy[CROWD], other;
    struct exec_spec spec = seated(&lane, "import time; time.sleep(0.3)");

    start(&slow, &alice, &spec);
    spec = seated(&lane, "1");
    for (size_t i = 0; i < CROWD; i++)
        start(&greedy[i], &alice, &spec);
    start(&other, &bob, &spec);
    CHECK(lane.taken == 1 && lane.waiting_count == CROWD + 1);
    execution_leave(greedy[2].job); /* gives up its place, and hears no more */
    CHECK(lane.waiting_count == CROWD);
    for (size_t i = 0; i < CROWD; i++)
        if (i != 2)
            finish(&greedy[i]);
    /* Bob has no seat while Alice has one, so the next is his, whoever came before him. */
    CHECK(slow.done && other.done && other.order == 2 && !greedy[2].done);
    for (size_t i = 1; i < CROWD; i++)
        CHECK(i == 2 || i == 3 || greedy[i].order > greedy[i - 1].order);
    CHECK(lane.taken == 0 && lane.waiting_count == 0 && !lane.seated && !lane.waiting);
}

void scene_lane_is_full(void)
{
    struct exec_lane lane = {.seats = 1, .waiting_max = 1};
    static struct run r[3];
    struct exec_spec spec = seated(&lane, "1");

    for (size_t i = 0; i < 3; i++)
        start(&r[i], &alice, &spec);
    finish(&r[0]);
    finish(&r[1]);
    finish(&r[2]);
    CHECK(r[0].err.kind == ERR_NONE && r[1].err.kind == ERR_NONE && r[2].err.kind == ERR_BUSY);
    CHECK(lane.taken == 0);
}

/* --- a person must agree --- */

static bool ask_waits = true;

static bool on_ask(struct run *r, const struct approval_info *info)
{
    CHECK(info->row && !r->queued);
    snprintf(r->approval, sizeof(r->approval), "%s", info->row->id);
    r->verdict = info->verdict;
    loop_stop(loop);
    return ask_waits;
}

static void ask(struct run *r, const char *code, bool can_ask)
{
    struct exec_spec spec = {
        .name = STR("asked"), .code = str_of(code), .ask = {.tool = STR("t"), .can_ask = can_ask}
    };

    *r = (struct run){.on_ask = on_ask};
    start(r, &alice, &spec);
    while (!r->done && !*r->approval)
        pause_ms(5);
}

static size_t session_count(void)
{
    const struct service_counts *c = service_counts(service);

    return c->sessions[SESSION_STARTING] + c->sessions[SESSION_IDLE] +
           c->sessions[SESSION_RUNNING] + c->sessions[SESSION_ASLEEP];
}

static void on_decided(void *arg, const struct approval_info *info, const struct err *failed)
{
    (void)arg;
    CHECK(info && !failed);
}

static void decide(const char *approval, bool yes)
{
    static const struct caller approver = {.tenant = "alice", .key = "boss", .approver = true};

    service_approval_decide(service, &approver, str_of(approval), yes, STR("because"), on_decided,
                            NULL);
}

void scene_user_agrees(void)
{
    static struct run r;
    size_t before = session_count();

    ask(&r, "6 * 7", true);
    CHECK(r.verdict == APPROVAL_ASK && session_count() == before);
    execution_answer(r.job, ANSWER_ONCE);
    finish(&r);
    CHECK(r.err.kind == ERR_NONE && strcmp(r.text, "42") == 0 && session_count() == before + 1);
    ask(&r, "6 * 7", true); /* once is once */
    CHECK(*r.approval);
    execution_answer(r.job, ANSWER_NO);
    finish(&r);
    CHECK(r.err.kind == ERR_DENIED && !r.queued && r.verdict == APPROVAL_NO);
}

void scene_user_cannot_be_asked_after_all(void)
{
    static struct run r;

    ask(&r, "1", true);
    execution_answer(r.job, ANSWER_NONE);
    finish(&r);
    CHECK(r.err.kind == ERR_DENIED && r.verdict == APPROVAL_WAIT);
}

void scene_approver_decides(void)
{
    static struct run r, again;

    ask(&r, "6 * 7", false);
    CHECK(r.verdict == APPROVAL_WAIT);
    decide(r.approval, true);
    finish(&r);
    CHECK(r.err.kind == ERR_NONE && strcmp(r.text, "42") == 0);
    ask(&r, "7 * 7", false);
    execution_leave(r.job); /* the approval stays */
    ask(&again, "7 * 7", false);
    CHECK(strcmp(again.approval, r.approval) == 0);
    decide(again.approval, false);
    finish(&again);
    CHECK(again.err.kind == ERR_DENIED && strstr(again.err.text, "because"));
}

void scene_nobody_waits(void)
{
    static struct run r;

    ask_waits = false;
    ask(&r, "1", false);
    finish(&r);
    CHECK(r.err.kind == ERR_DENIED && r.verdict == APPROVAL_WAIT && strstr(r.err.text, r.approval));
}

void scene_nobody_agrees_in_time(void)
{
    static struct run r;

    ask(&r, "1", false);
    finish(&r);
    CHECK(r.err.kind == ERR_DENIED && r.verdict == APPROVAL_NO && strstr(r.err.text, "in time"));
}

/* stage_down() ends what waits: each hears of it, and nothing is left. */
void scene_closed_while_asked(void)
{
    static struct run r, left;

    ask(&r, "1", true);
    ask(&left, "2", true);
    execution_leave(left.job);
    start(&left, &alice,
          &(struct exec_spec){
              .code = STR("3"), .ask = {.tool = STR("t"), .can_ask = true}
    });
    execution_leave(left.job);
}
