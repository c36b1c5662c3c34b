/* Fixtures of the conformance suite: tools that say one thing, and tools that take their time. */
#include "doors/mcp/fixtures.h"

#include <stdio.h>
#include <stdlib.h>

#define STEP_MS 50
#define AWAY_MS 500

/* --- what all fixtures use --- */

json_t *fixture_literal(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert(v);
    return v;
}

void fixture_say(struct call *c, const char *fmt, ...)
{
    struct content t;
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    content_init(&t);
    content_text(&t, str_of(text));
    content_answer(&t, c, false);
}

json_t *fixture_form(const char *message, const char *properties)
{
    return json_pack("{s:s, s:{s:s, s:o}}", "message", message, "requestedSchema", "type", "object",
                     "properties", fixture_literal(properties));
}

json_t *fixture_sampling(const char *prompt)
{
    return json_pack("{s:[{s:s, s:{s:s, s:s}}], s:i}", "messages", "role", "user", "content",
                     "type", "text", "text", prompt, "maxTokens", 100);
}

struct later {
    struct call *call; /* borrowed: keeps us */
    struct timer *timer;
    void (*fn)(struct call *c);
};

static void later_free(void *arg)
{
    struct later *l = arg;

    timer_free(l->timer);
    free(l);
}

static void on_time(void *arg)
{
    struct later *l = arg;

    l->fn(l->call);
}

static void on_cancel(void *arg)
{
    call_drop(arg);
}

void fixture_later(struct call *c, uint64_t ms, void (*fn)(struct call *c))
{
    struct later *l = mem_zalloc(sizeof(*l));

    *l = (struct later){.call = c, .fn = fn};
    l->timer = timer_new(c->mcp->config.loop, on_time, l);
    call_keep(c, later_free, l);
    call_on_cancel(c, on_cancel, c);
    timer_set(l->timer, ms);
}

/* --- tools that say one thing --- */

#define IMAGE "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" FIXTURE_PNG "\"}"
#define RESOURCE(uri)                                                                              \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"" uri                                          \
    "\",\"mimeType\":\"text/plain\",\"text\":\"part of a result\"}}"
#define WAV "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="

static const struct {
    const char *name, *content;
} sayings[] = {
    {"test_simple_text",            "[{\"type\":\"text\",\"text\":\"a simple text\"}]"             },
    {"test_image_content",          "[" IMAGE "]"                                                  },
    {"test_audio_content",
     "[{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"" WAV "\"}]"                      },
    {"test_embedded_resource",      "[" RESOURCE("test://embedded") "]"                            },
    {"test_multiple_content_types",
     "[{\"type\":\"text\",\"text\":\"several things\"}," IMAGE "," RESOURCE("test://mixed") "]"    },
    {"json_schema_2020_12_tool",    "[{\"type\":\"text\",\"text\":\"the schema is what matters\"}]"},
    {"test_x_mcp_header",           "[{\"type\":\"text\",\"text\":\"the header is what matters\"}]"},
};

static void run_saying(struct call *c, json_t *args)
{
    struct str name = json_view(json_object_get(c->params, "name"));
    size_t i = 0;

    (void)args;
    while (!str_is(name, sayings[i].name))
        i++;
    call_result(c, json_pack("{s:o}", "content", fixture_literal(sayings[i].content)));
}

static void run_error(struct call *c, json_t *args)
{
    (void)args;
    tool_fail(c, "This tool fails, and that is all it does.");
}

static void run_greet(struct call *c, json_t *args)
{
    const char *name = json_string_value(json_object_get(args, "name"));

    fixture_say(c, "Hello, %.200s!", name ? name : "");
}

/* --- tools that take their time --- */

static void log_third(struct call *c)
{
    call_log(c, 1, "fixture", json_string("the third line"));
    fixture_say(c, "Three lines were logged.");
}

static void log_second(struct call *c)
{
    call_log(c, 1, "fixture", json_string("the second line"));
    fixture_later(c, STEP_MS, log_third);
}

/* A client of the legacy era that has set no level hears of it, too: the level is the server's to
 * choose then. */
static void run_logging(struct call *c, json_t *args)
{
    (void)args;
    if (!call_is_modern(c) && c->conversation && c->conversation->client.log_level < 0)
        c->conversation->client.log_level = 1;
    call_log(c, 1, "fixture", json_string("the first line"));
    fixture_later(c, STEP_MS, log_second);
}

static void run_log_once(struct call *c, json_t *args)
{
    (void)args;
    call_log(c, 1, "fixture", json_string("one line"));
    fixture_say(c, "One line was logged, for those who want it.");
}

static void progress_third(struct call *c)
{
    call_progress(c, 100, 100, STR("done"));
    fixture_say(c, "Progress was told three times.");
}

static void progress_second(struct call *c)
{
    call_progress(c, 50, 100, STR("half"));
    fixture_later(c, STEP_MS, progress_third);
}

static void run_progress(struct call *c, json_t *args)
{
    (void)args;
    call_progress(c, 0, 100, STR("begun"));
    fixture_later(c, STEP_MS, progress_second);
}

static void on_back(struct call *c)
{
    fixture_say(c, "The client came back for this.");
}

static void run_reconnection(struct call *c, json_t *args)
{
    (void)args;
    call_hang_up(c);
    fixture_later(c, AWAY_MS, on_back);
}

/* --- changes --- */

static void run_tools_change(struct call *c, json_t *args)
{
    (void)args;
    mcp_publish(c->mcp, CHANGE_TOOLS, NULL, NULL);
    fixture_say(c, "The tools are said to have changed.");
}

static void run_prompts_change(struct call *c, json_t *args)
{
    (void)args;
    mcp_publish(c->mcp, CHANGE_PROMPTS, NULL, NULL);
    fixture_say(c, "The prompts are said to have changed.");
}

/* --- the tables --- */

#define SCHEMA_2020                                                                                \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","           \
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"      \
    "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"                          \
    "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"   \
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                      \
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                            \
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"             \
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                            \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"                       \
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"
#define SCHEMA_HEADER                                                                              \
    "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","                        \
    "\"x-mcp-header\":\"Region\"}}}"
#define SCHEMA_NAME "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"

const struct tool fixtures_plain[] = {
    FIXTURE("test_simple_text", NULL, run_saying),
    FIXTURE("test_image_content", NULL, run_saying),
    FIXTURE("test_audio_content", NULL, run_saying),
    FIXTURE("test_embedded_resource", NULL, run_saying),
    FIXTURE("test_multiple_content_types", NULL, run_saying),
    FIXTURE("test_error_handling", NULL, run_error),
    FIXTURE("test_tool_with_logging", NULL, run_logging),
    FIXTURE("test_logging_tool", NULL, run_log_once),
    FIXTURE("test_tool_with_progress", NULL, run_progress),
    FIXTURE("test_reconnection", NULL, run_reconnection),
    FIXTURE("json_schema_2020_12_tool", SCHEMA_2020, run_saying),
    FIXTURE("test_x_mcp_header", SCHEMA_HEADER, run_saying),
    FIXTURE("test_trigger_tool_change", NULL, run_tools_change),
    FIXTURE("test_trigger_prompt_change", NULL, run_prompts_change),
    FIXTURE("greet", SCHEMA_NAME, run_greet),
    {0},
};

static const struct tool *const groups[] = {
    fixtures_plain, fixtures_asking, fixtures_input, fixtures_tasks, NULL,
};

const struct face_more fixtures = {
    .tools = groups,
    .list_resources = fixtures_list_resources,
    .list_templates = fixtures_list_templates,
    .read_resource = fixtures_read_resource,
    .list_prompts = fixtures_list_prompts,
    .get_prompt = fixtures_get_prompt,
    .complete = fixtures_complete,
};
