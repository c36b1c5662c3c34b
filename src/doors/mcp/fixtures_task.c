/* Fixtures of the conformance suite: tools that become tasks. */
#include "doors/mcp/fixtures.h"

#include <stdlib.h>

#define SECONDS_AT_MOST 60

/* --- work --- */

static void on_computed(struct call *c)
{
    const json_t *args = json_object_get(c->params, "arguments");
    const char *label = json_string_value(json_object_get(args, "label"));

    fixture_say(c, "Computed %.200s.", label ? label : "it");
}

static void run_slow(struct call *c, json_t *args)
{
    const json_t *given = json_object_get(args, "seconds");
    double seconds = json_is_number(given) ? json_number_value(given) : 1;

    if (seconds < 0 || seconds > SECONDS_AT_MOST) {
        tool_fail(c, "seconds must be 0 to %d", SECONDS_AT_MOST);
        return;
    }
    call_to_task(c, "computing");
    fixture_later(c, (uint64_t)(seconds * 1000), on_computed);
}

static void run_failing(struct call *c, json_t *args)
{
    (void)args;
    if (call_needs(c, "extensions/" EXT_TASKS) && call_to_task(c, "about to fail"))
        tool_fail(c, "The job failed, as it always does.");
}

static void run_broken(struct call *c, json_t *args)
{
    (void)args;
    if (call_needs(c, "extensions/" EXT_TASKS) && call_to_task(c, "about to break"))
        call_error(c, RPC_INTERNAL, NULL, "The job broke, as it always does.");
}

/* --- work with questions --- */

#define CONFIRM "{\"confirm\":{\"type\":\"boolean\"}}"

static void on_confirmed(void *arg, json_t *result, const struct err *failed)
{
    struct call *c = arg;
    const json_t *args = json_object_get(c->params, "arguments");
    const char *name = json_string_value(json_object_get(args, "filename"));

    (void)result;
    if (failed)
        tool_refuse(c, failed);
    else
        fixture_say(c, "Deleted %.200s.", name ? name : "nothing");
}

static void run_confirm_delete(struct call *c, json_t *args)
{
    (void)args;
    if (call_needs(c, "extensions/" EXT_TASKS) && call_to_task(c, "waiting for a word"))
        call_ask(c, "confirm", "elicitation/create", fixture_form("Really?", CONFIRM), on_confirmed,
                 c);
}

struct pair {
    struct call *call; /* borrowed: keeps us */
    int open;
};

static void on_one_of_two(void *arg, json_t *result, const struct err *failed)
{
    struct pair *p = arg;

    (void)result;
    if (failed)
        tool_refuse(p->call, failed);
    else if (--p->open == 0)
        fixture_say(p->call, "Both were answered.");
}

static void run_multi_input(struct call *c, json_t *args)
{
    struct pair *p;

    (void)args;
    if (!call_needs(c, "extensions/" EXT_TASKS) || !call_to_task(c, "waiting for two words"))
        return;
    p = mem_zalloc(sizeof(*p));
    *p = (struct pair){c, 2};
    call_keep(c, free, p);
    call_ask(c, "first", "elicitation/create", fixture_form("One?", CONFIRM), on_one_of_two, p);
    call_ask(c, "second", "elicitation/create", fixture_form("Two?", CONFIRM), on_one_of_two, p);
}

/* --- a question first, then a task --- */

static void on_greeted(struct call *c)
{
    const json_t *answer = json_object_get(c->answers, "user_name");
    const char *name =
        json_string_value(json_object_get(json_object_get(answer, "content"), "name"));

    fixture_say(c, "Hello, %.200s!", name ? name : "");
}

static void on_name(void *arg, json_t *result, const struct err *failed)
{
    struct call *c = arg;

    (void)result;
    if (failed) {
        tool_refuse(c, failed);
        return;
    }
    if (!call_needs(c, "extensions/" EXT_TASKS))
        return;
    call_to_task(c, "greeting");
    fixture_later(c, 100, on_greeted);
}

static void run_ask_then_task(struct call *c, json_t *args)
{
    (void)args;
    call_ask(c, "user_name", "elicitation/create",
             fixture_form("What is your name?", "{\"name\":{\"type\":\"string\"}}"), on_name, c);
}

#define SCHEMA_SLOW                                                                                \
    "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},"                      \
    "\"label\":{\"type\":\"string\"}}}"
#define SCHEMA_FILE "{\"type\":\"object\",\"properties\":{\"filename\":{\"type\":\"string\"}}}"

const struct tool fixtures_tasks[] = {
    FIXTURE("slow_compute", SCHEMA_SLOW, run_slow),
    FIXTURE("failing_job", NULL, run_failing),
    FIXTURE("protocol_error_job", NULL, run_broken),
    FIXTURE("confirm_delete", SCHEMA_FILE, run_confirm_delete),
    FIXTURE("multi_input", NULL, run_multi_input),
    FIXTURE("test_tool_with_task", NULL, run_ask_then_task),
    {0},
};
