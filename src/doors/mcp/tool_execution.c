/* get_execution, interrupt_execution: code that outlasts the call that began it. */
#include "doors/mcp/execution.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_MAX  40000 /* ms: clients give up after a minute */
#define GATHER_MS 200   /* what follows the first news is told with it */

static void refuse(struct call *c, const struct err *failed)
{
    char shown[NAME_SHOWN];

    if (failed->kind == ERR_MISSING)
        tool_fail(c,
                  "There is no execution %s. Its id is in the answer of the run_code or run_shell "
                  "that began it; records are not kept for ever.",
                  name_show(shown, call_arg(c, "execution_id")));
    else
        tool_refuse(c, failed);
}

/* --- get_execution --- */

struct exec_poll {
    struct call *c;           /* borrowed: held by us until it is answered */
    struct service *sv;       /* borrowed */
    struct str id;            /* the call's */
    struct exec_watch *watch; /* owned, or NULL */
    struct timer *clock;      /* owned */
    struct report_of of;
    int64_t until_us; /* not to be waited longer */
    bool asked;       /* the service is about to answer */
    bool gone;        /* the client */
};

static void exec_poll_free(struct exec_poll *k)
{
    exec_watch_free(k->watch);
    timer_free(k->clock);
    free(k);
}

static uint64_t output_bytes(const json_t *events)
{
    uint64_t n = 0;
    const json_t *ev;
    size_t i;

    json_array_foreach(events, i, ev)
        if (event_is(ev, "stdout") || event_is(ev, "stderr"))
            n += event_text(ev, "text").n;
    return n;
}

static bool is_worth_telling(const struct exec_poll *k, const struct exec_info *info)
{
    return info->outcome || time_mono_us() >= k->until_us ||
           (k->of.has_offset && output_bytes(info->events) > k->of.offset);
}

static void ask(void *arg);

static void on_news(void *arg)
{
    struct exec_poll *k = arg;

    timer_set(k->clock, GATHER_MS);
}

static void wait(struct exec_poll *k)
{
    int64_t left_ms = (k->until_us - time_mono_us()) / 1000 + 1;

    exec_watch_free(k->watch);
    k->watch = service_exec_watch(k->sv, &k->c->caller, k->id, k->of.has_offset, on_news, k);
    timer_set(k->clock, k->watch ? (uint64_t)left_ms : 0);
}

static void on_got(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct exec_poll *k = arg;
    struct call *c = k->c;
    struct report_of of = k->of;

    k->asked = false;
    if (!failed && !k->gone && !is_worth_telling(k, info)) {
        wait(k);
        return;
    }
    call_on_cancel(c, NULL, NULL);
    if (k->gone)
        call_drop(c);
    else if (failed)
        refuse(c, failed);
    else
        report_answer(c, k->sv, info, &of);
    exec_poll_free(k);
}

static void ask(void *arg)
{
    struct exec_poll *k = arg;

    k->asked = true;
    service_exec_get(k->sv, &k->c->caller, k->id, on_got, k);
}

static void on_cancel(void *arg)
{
    struct exec_poll *k = arg;
    struct call *c = k->c;

    k->gone = true;
    if (k->asked)
        return;
    exec_poll_free(k);
    call_drop(c);
}

static void get_execution(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    const json_t *offset = json_object_get(args, "offset");
    struct exec_poll *k;

    if (!sv)
        return;
    k = mem_zalloc(sizeof(*k));
    *k = (struct exec_poll){
        .c = c, .sv = sv, .id = json_view(json_object_get(args, "execution_id"))};
    k->of = (struct report_of){
        .looks = true,
        .has_offset = offset,
        .offset = (uint64_t)json_integer_value(offset),
        .image = (size_t)json_integer_value(json_object_get(args, "image")),
    };
    k->until_us =
        time_mono_us() + 1000 * (int64_t)json_integer_value(json_object_get(args, "wait_ms"));
    k->clock = timer_new(c->mcp->config.loop, ask, k);
    call_on_cancel(c, on_cancel, k);
    ask(k);
}

/* --- interrupt_execution --- */

static void on_interrupted(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct call *c = arg;

    if (failed)
        refuse(c, failed);
    else if (info->outcome)
        tool_printf(c, "%s had ended already: %s. get_execution shows what it said.", info->row->id,
                    info->row->status);
    else
        tool_printf(c,
                    "%s is being interrupted, as by Ctrl-C. Variables and files are kept, unless "
                    "the code does not stop and its interpreter has to be ended. get_execution "
                    "with execution_id=%s and wait_ms=5000 shows how it ended.",
                    info->row->id, info->row->id);
}

static void interrupt_execution(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);

    if (sv)
        service_exec_interrupt(sv, &c->caller, json_view(json_object_get(args, "execution_id")),
                               on_interrupted, c);
}

/* --- rows --- */

#define EXECUTION                                                                                  \
    {                                                                                              \
        "execution_id", FIELD_TEXT, REQUIRED, 1, 64, NULL,                                         \
            "As the answer that began it named it: exec_...", NULL                                 \
    }

static const struct field get_params[] = {
    EXECUTION,
    {"offset",                                                                     FIELD_INT, OPTIONAL, 0, 1e15, NULL,
      "Show the output from this byte on, in order, instead of its head and tail.", "0"},
    {"wait_ms",                                                                    FIELD_INT, OPTIONAL, 0, WAIT_MAX, NULL,
      "Wait so long for it to end; with offset, also until there is output after it.", "30000"},
    {"image",                                                                        FIELD_INT, OPTIONAL, 1, 1e6, NULL, "Show this image of it, counted from 1.", NULL},
    {0},
};

static const struct field interrupt_params[] = {EXECUTION, {0}};

const struct tool tool_get_execution = {
    .name = "get_execution",
    .title = "Get an execution",
    .text = "Look at code that was run before or still runs in the background: its status, output, "
            "result, error, images and files. Use it to follow an execution_id that run_code or "
            "run_shell gave (wait_ms up to 40000 waits for the end), and to read output that was "
            "left out of an answer, page by page with offset; each page names the next offset.\n"
            "Example: {\"execution_id\": \"exec_...\", \"wait_ms\": 30000}",
    .params = get_params,
    .meta = META_PAGE,
    .hints = TOOL_READS | TOOL_REPEATABLE,
    .run = get_execution,
};

const struct tool tool_interrupt_execution = {
    .name = "interrupt_execution",
    .title = "Interrupt an execution",
    .text = "Stop code that runs or waits, as Ctrl-C does (KeyboardInterrupt in Python). The "
            "session goes on with its variables and files. Nothing happens when it has ended "
            "already.\n"
            "Example: {\"execution_id\": \"exec_...\"}",
    .params = interrupt_params,
    .hints = TOOL_REPEATABLE,
    .run = interrupt_execution,
};
