/*
 * How an execution ends: once, by the message of the kernel, the death of the kernel, the exit of
 * the command, or the end of the sandbox. A time limit, a CPU limit and an interrupt by the caller
 * all work in the same way: SIGINT first, SIGKILL after the grace. The outcome says which of them
 * it was.
 */
#include "engine/lend_int.h"

#include <signal.h>
#include <stdlib.h>

#define BLAME_FROM_US 100000 /* shorter executions are not worth a question to the warden */
#define ANSWER_MS     2000   /* a warden that does not answer by then is stopped or stuck */
#define KILL_MS       5000   /* what SIGKILL has not ended by then is beyond init's reach */

void exec_free(struct exec *x)
{
    if (x->timer)
        timer_free(x->timer);
    exec_unscan(x);
    stream_free(x->out);
    stream_free(x->err);
    engine_let_go(pool_engine(x->session->pool), x->held_bytes);
    free(x->tail[0].p);
    free(x->tail[1].p);
    free(x->code);
    buf_done(&x->env);
    free(x);
}

void exec_unlink(struct exec *x)
{
    struct session *s = x->session;
    struct exec **at = x->kind == EXEC_CELL ? &s->cells : &s->commands;

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
}

static uint64_t ran_us(const struct exec *x)
{
    return x->started_us ? (uint64_t)(time_mono_us() - x->started_us) : 0;
}

/* As late as possible: what a process has used is counted when it gives up its processor, and the
 * one that ran the code has only just said that it is through. */
static void read_meters(struct exec *x)
{
    struct outcome *o = &x->outcome;
    const struct guest *g = x->session->guest;
    uint64_t now_us = 0;

    if (!g) /* another node has it */
        return;
    o->has_cpu = x->counts_cpu && guest_cpu_us(g, &now_us);
    o->cpu_us = o->has_cpu && now_us > x->cpu_before_us ? now_us - x->cpu_before_us : 0;
    o->has_memory = guest_memory_peak(g, &o->memory_peak_bytes);
}

void exec_conclude(struct exec *x)
{
    struct session *s = x->session;

    read_meters(x);
    outcome_say(&x->outcome, &x->limits, x->status, "");
    x->outcome.state_lost |= x->fresh;
    exec_unlink(x);
    exec_tell_outcome(x);
    exec_free(x);
    session_next_cell(s);
}

void exec_finish(struct exec *x, const struct box_usage *now)
{
    exec_tell_tails(x);
    exec_judge(x, now);
    x->outcome.wall_us = ran_us(x);
    exec_scan(x);
}

/* Asks the warden which limits the box ran into, where the answer matters; the rest is
 * exec_finish(). */
void exec_end(struct exec *x)
{
    bool plain =
        !x->raised && !x->interrupted && !x->kernel_died && x->status == 0 && x->stop == STOP_NONE;
    struct session *s = x->session;

    if (x->ending)
        return;
    x->ending = true;
    timer_clear(x->timer);
    if (plain && time_mono_us() - x->started_us < BLAME_FROM_US)
        return exec_finish(x, &x->before);
    guest_ask_usage(s->guest);
    timer_set(x->timer, ANSWER_MS);
}

void exec_tell_lost(struct exec *x, const char *why)
{
    if (x->over)
        return;
    x->ending = true;
    exec_tell_tails(x);
    x->outcome.status = OUTCOME_SESSION_LOST;
    x->outcome.state_lost = true;
    x->outcome.untaken = !x->taken;
    x->outcome.wall_us = ran_us(x);
    read_meters(x);
    outcome_say(&x->outcome, &x->limits, 0, why);
    exec_tell_outcome(x);
}

/* An execution stays in its list until its outcome is told, so that a session_close() from the
 * callback finds it there. */
void execs_lose(struct exec **list, const char *why)
{
    for (struct exec *x; (x = *list);) {
        exec_tell_lost(x, why);
        assert(*list == x);
        *list = x->next;
        exec_free(x);
    }
}

/* A cell that was given up while it still waited for its turn. */
static void cancel(struct exec *x)
{
    struct session *s = x->session;

    x->outcome.status = OUTCOME_INTERRUPTED;
    outcome_say(&x->outcome, &x->limits, 0, "");
    exec_unlink(x);
    exec_tell_outcome(x);
    exec_free(x);
    session_next_cell(s);
}

/* --- stopping --- */

static uint64_t target(const struct exec *x)
{
    return x->kind == EXEC_CELL ? 0 : x->id;
}

static void kill_now(struct exec *x)
{
    x->killed = true;
    guest_signal(x->session->guest, target(x), SIGKILL);
    timer_set(x->timer, KILL_MS);
}

void exec_stop(struct exec *x, enum stop why)
{
    if (x->stop != STOP_NONE || x->ending)
        return;
    x->stop = why;
    exec_hold(x, false);
    if (why == STOP_MEMORY)
        return kill_now(x);
    guest_signal(x->session->guest, target(x), SIGINT);
    timer_set(x->timer, x->limits.grace_ms / 2);
}

/* The first SIGINT may have come an instant before the code began, and then it was nobody's. */
static void ask_again(struct exec *x)
{
    x->asked_again = true;
    guest_signal(x->session->guest, target(x), SIGINT);
    timer_set(x->timer, x->limits.grace_ms - x->limits.grace_ms / 2);
}

void exec_on_timer(void *arg)
{
    struct exec *x = arg;

    if (x->over || x->scan)
        return;
    if (x->ending)
        exec_finish(x, &x->before);
    else if (!x->started_us)
        cancel(x);
    else if (x->stop == STOP_NONE)
        exec_stop(x, STOP_WALL);
    else if (!x->asked_again)
        ask_again(x);
    else if (!x->killed)
        kill_now(x);
    else
        guest_end(x->session->guest, "it does not end when it is killed");
}

void exec_interrupt(struct exec *x)
{
    if (x->session->far && !x->over)
        return borrowed_order(x->session->far, LEND_INTERRUPT, x->id, true);
    if (x->started_us)
        return exec_stop(x, STOP_ASKED);
    if (x->over)
        return;
    x->stop = STOP_ASKED; /* nothing to stop yet, and another cell may be running */
    timer_set(x->timer, 0);
}

void exec_hold(struct exec *x, bool hold)
{
    struct session *s = x->session;

    if (x->held == hold || x->over || x->ending || (hold && x->stop != STOP_NONE))
        return;
    x->held = hold;
    if (s->far)
        return borrowed_order(s->far, LEND_HOLD, x->id, hold);
    stream_hold(x->out, hold);
    stream_hold(x->err, hold);
    if (x->kind == EXEC_CELL && x->started_us && s->cells == x)
        guest_hold(s->guest, hold);
}
