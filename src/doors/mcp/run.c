/*
 * Code on its way: from the arguments of a run tool to what the model reads.
 *
 * A run belongs to its call and watches one job. Which comes first decides the answer:
 * the end of the job is told whole; a client that wants tasks gets one after TASK_MS; one
 * that asked for progress hears of it and waits; any other is answered after answer_ms
 * with what there is, and the job goes on in the background. A client that turns away
 * takes its job with it.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define TASK_MS    2000
#define TICK_MS    500  /* progress is told at most so often ... */
#define SILENT_MS  2000 /* ... and at least so often */
#define LINE_BYTES 200  /* of the output, as progress */

struct run {
    struct call *c;      /* borrowed: held by us until it is answered */
    struct service *sv;  /* borrowed */
    struct job *job;     /* borrowed; NULL before it is there, and when it has ended or was left */
    struct timer *clock; /* owned */
    enum exec_kind kind;
    char *code;         /* owned */
    struct given given; /* views into the call's arguments */
    char session[ID_MAX], execution[ID_MAX];
    enum run_session how; /* it came to its session */
    bool background;
    bool no_task;  /* it may not become one */
    bool replaces; /* the session it was to run in is gone */
    bool gone;     /* the client: nothing is to be answered */
    int64_t begun_us, told_us;
    bool news; /* the last line has not been told */
    char line[LINE_BYTES + 1];
};

static void run_free(struct run *u)
{
    timer_free(u->clock);
    given_done(&u->given);
    free(u->code);
    free(u);
}

static uint64_t elapsed_ms(const struct run *u)
{
    return (uint64_t)(time_mono_us() - u->begun_us) / 1000;
}

/* --- answers: each is the last of the run --- */

static void answer(struct run *u, const struct exec_info *info)
{
    struct call *c = u->c;
    struct report_of of = {.how = u->how};

    call_on_cancel(c, NULL, NULL);
    run_free(u);
    report_answer(c, info, &of);
}

static void refuse(struct run *u, const struct err *failed)
{
    struct call *c = u->c;
    char session[ID_MAX];

    snprintf(session, sizeof(session), "%s", u->session);
    call_on_cancel(c, NULL, NULL);
    run_free(u);
    place_refuse(c, session, failed);
}

/* --- while it runs --- */

/* The last line that has something in it; output comes in whatever pieces the pipe gave. */
static void take_line(struct run *u, struct str text)
{
    size_t from, to = text.n;

    while (to > 0 && (unsigned char)text.p[to - 1] <= ' ')
        to--;
    if (to == 0)
        return;
    for (from = to; from > 0 && text.p[from - 1] != '\n' && text.p[from - 1] != '\r';)
        from--;
    text = (struct str){text.p + from, to - from};
    if (text.n > LINE_BYTES)
        text.n = LINE_BYTES - utf8_torn((struct str){text.p, LINE_BYTES});
    memcpy(u->line, text.p, text.n);
    u->line[text.n] = '\0';
    u->news = true;
}

static void tell(struct run *u)
{
    if (!u->news && time_mono_us() - u->told_us < (int64_t)SILENT_MS * 1000)
        return;
    u->news = false;
    u->told_us = time_mono_us();
    if (u->c->task)
        call_task_status(u->c, str_of(u->line));
    else
        call_progress(u->c, (double)elapsed_ms(u) / 1000, 0, str_of(u->line));
}

static void on_so_far(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct run *u = arg;

    if (failed)
        refuse(u, failed);
    else
        answer(u, info);
}

static void go_on_alone(struct run *u)
{
    call_on_cancel(u->c, NULL, NULL);
    job_detach(take_ptr(&u->job));
    service_exec_get(u->sv, &u->c->caller, str_of(u->execution), on_so_far, u);
}

/* True when the client waits for a task, or has one now. */
static bool becomes_task(struct run *u)
{
    if (u->c->task)
        return true;
    if (u->no_task || !call_can(u->c, "extensions/" EXT_TASKS))
        return false;
    if (elapsed_ms(u) < TASK_MS)
        return true;
    u->no_task = !call_to_task(u->c, u->line[0] ? u->line : "The code is running.");
    return !u->no_task;
}

static void on_tick(void *arg)
{
    struct run *u = arg;
    bool waits = becomes_task(u) || call_wants_progress(u->c);

    if (!waits && u->execution[0] && elapsed_ms(u) >= u->c->mcp->config.answer_ms) {
        go_on_alone(u);
        return;
    }
    if (waits)
        tell(u);
    timer_set(u->clock, TICK_MS);
}

/* --- what the service says --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct run *u = arg;

    snprintf(u->execution, sizeof(u->execution), "%s", info->row->id);
    snprintf(u->session, sizeof(u->session), "%s", info->row->session);
    if (!u->background)
        return;
    job_leave(take_ptr(&u->job));
    answer(u, info);
}

static void on_event(void *arg, const struct event *ev)
{
    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR)
        take_line(arg, ev->text);
}

static void find_session(struct run *u);

/* That of the conversation has gone, by time or by another's hand: a new one takes its place. */
static bool can_replace(const struct run *u, const struct err *failed)
{
    return failed->kind == ERR_MISSING && u->how == RUN_USUAL && u->c->conversation;
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct run *u = arg;

    u->job = NULL;
    if (!failed) {
        answer(u, info);
    } else if (can_replace(u, failed)) {
        if (strcmp(u->c->conversation->session, u->session) == 0)
            u->c->conversation->session[0] = '\0';
        u->replaces = true;
        find_session(u);
    } else {
        refuse(u, failed);
    }
}

static void start(struct run *u)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    const json_t *args = json_object_get(u->c->params, "arguments");
    const struct exec_spec spec = {
        .session = str_of(u->session),
        .kind = u->kind,
        .code = str_of(u->code),
        .wall_ms = (uint64_t)json_integer_value(json_object_get(args, "timeout_ms")),
        .env = u->given.env,
        .env_count = u->given.env_count,
        .background = u->background,
        .clearance = &u->c->clearance,
        .stays = true,
    };

    u->job = service_execute(u->sv, &u->c->caller, &spec, &watcher, u);
}

/* --- its session --- */

static void on_session(void *arg, const char *session, enum run_session how,
                       const struct err *failed)
{
    struct run *u = arg;

    if (u->gone) {
        struct call *c = u->c;
        run_free(u);
        call_drop(c);
    } else if (failed) {
        refuse(u, failed);
    } else {
        u->how = u->replaces ? RUN_REPLACED : how;
        snprintf(u->session, sizeof(u->session), "%s", session);
        start(u);
    }
}

/* One that nobody remembers is made with its first execution, in one step. */
static void find_session(struct run *u)
{
    const json_t *args = json_object_get(u->c->params, "arguments");
    struct str given = json_view(json_object_get(args, "session_id"));

    if (given.n == 0 && !u->c->conversation) {
        u->how = RUN_NEW;
        start(u);
        return;
    }
    place_find(u->c, u->sv, given, on_session, u);
}

static void on_cancel(void *arg)
{
    struct run *u = arg;
    struct call *c = u->c;

    if (!u->job) { /* its session is being made */
        u->gone = true;
        return;
    }
    job_leave(u->job);
    run_free(u);
    call_drop(c);
}

void run_start(struct call *c, const json_t *args, enum exec_kind kind, char *code)
{
    struct service *sv = call_service(c);
    char param[PARAM_MAX];
    struct run *u;
    struct err e;

    if (!sv) {
        free(code);
        return;
    }
    u = mem_zalloc(sizeof(*u));
    *u = (struct run){.c = c, .sv = sv, .kind = kind, .code = code, .begun_us = time_mono_us()};
    u->told_us = u->begun_us;
    u->background = json_is_true(json_object_get(args, "background"));
    if (given_env(&u->given, json_object_get(args, "env"), param, &e) < 0) {
        run_free(u);
        tool_fail(c, "%s: %s", param, e.text);
        return;
    }
    u->clock = timer_new(c->mcp->config.loop, on_tick, u);
    timer_set(u->clock, TICK_MS);
    call_on_cancel(c, on_cancel, u);
    find_session(u);
}
