/* Fixtures of the conformance suite: tools that ask the client, in both eras. */
#include "doors/mcp/fixtures.h"

#define S "{\"type\":\"string\"}"

/* What came of a question, as text. */
static void on_answer(void *arg, json_t *result, const struct err *failed)
{
    struct call *c = arg;
    AUTO_FREE char *text = result ? record_dump(result, false, NULL) : NULL;

    if (failed)
        tool_refuse(c, failed);
    else
        fixture_say(c, "The client answered: %s", text ? text : "");
}

static void elicit(struct call *c, const char *key, const char *message, const char *properties)
{
    call_ask(c, key, "elicitation/create", fixture_form(message, properties), on_answer, c);
}

static const char *text_of(const json_t *args, const char *name)
{
    const char *text = json_string_value(json_object_get(args, name));

    return text ? text : "";
}

static void run_sampling(struct call *c, json_t *args)
{
    call_ask(c, "sample", "sampling/createMessage", fixture_sampling(text_of(args, "prompt")),
             on_answer, c);
}

static void run_elicitation(struct call *c, json_t *args)
{
    elicit(c, "user", text_of(args, "message"), "{\"username\":" S ",\"email\":" S "}");
}

static void run_defaults(struct call *c, json_t *args)
{
    (void)args;
    elicit(c, "user", "Everything has a default.",
           "{\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
           "\"age\":{\"type\":\"integer\",\"default\":30},"
           "\"score\":{\"type\":\"number\",\"default\":95.5},"
           "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
           "\"default\":\"active\"},"
           "\"verified\":{\"type\":\"boolean\",\"default\":true}}");
}

#define CHOICES                                                                                    \
    "[{\"const\":\"a\",\"title\":\"The first\"},{\"const\":\"b\",\"title\":\"The second\"},"       \
    "{\"const\":\"c\",\"title\":\"The third\"}]"
#define NAMES "[\"a\",\"b\",\"c\"]"

static void run_enums(struct call *c, json_t *args)
{
    (void)args;
    elicit(c, "choice", "One of each kind.",
           "{\"untitledSingle\":{\"type\":\"string\",\"enum\":" NAMES "},"
           "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" CHOICES "},"
           "\"legacyEnum\":{\"type\":\"string\",\"enum\":" NAMES
           ",\"enumNames\":[\"The first\",\"The second\",\"The third\"]},"
           "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":" NAMES
           "}},"
           "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" CHOICES "}}}");
}

static void run_missing(struct call *c, json_t *args)
{
    (void)args;
    if (call_needs(c, "sampling"))
        fixture_say(c, "The client has what it needs.");
}

static void run_streaming(struct call *c, json_t *args)
{
    (void)args;
    if (!call_needs(c, "elicitation"))
        return;
    call_progress(c, 1, 2, STR("about to ask"));
    elicit(c, "answer", "A question after a message.", "{\"answer\":" S "}");
}

#define SCHEMA_PROMPT                                                                              \
    "{\"type\":\"object\",\"properties\":{\"prompt\":" S "},\"required\":[\"prompt\"]}"
#define SCHEMA_MESSAGE                                                                             \
    "{\"type\":\"object\",\"properties\":{\"message\":" S "},\"required\":[\"message\"]}"

const struct tool fixtures_asking[] = {
    FIXTURE("test_sampling", SCHEMA_PROMPT, run_sampling),
    FIXTURE("test_elicitation", SCHEMA_MESSAGE, run_elicitation),
    FIXTURE("test_elicitation_sep1034_defaults", NULL, run_defaults),
    FIXTURE("test_elicitation_sep1330_enums", NULL, run_enums),
    FIXTURE("test_missing_capability", NULL, run_missing),
    FIXTURE("test_streaming_elicitation", NULL, run_streaming),
    {0},
};

/* --- the modern way, by name --- */

static const char user_name[] = "{\"name\":" S "}";

/* Without requestState, as a server may do it that keeps nothing of the first call. */
static void run_by_hand(struct call *c, json_t *args)
{
    const json_t *answer = call_input(c, "user_name");
    json_t *form;

    (void)args;
    if (json_is_string(json_object_get(answer, "action"))) {
        fixture_say(c, "Hello, %.200s!", text_of(json_object_get(answer, "content"), "name"));
        return;
    }
    form = fixture_form("What is your name?", user_name);
    call_ask_all(
        c, json_pack("{s:{s:s, s:o}}", "user_name", "method", "elicitation/create", "params", form),
        NULL);
}

static void run_sample(struct call *c, json_t *args)
{
    (void)args;
    call_ask(c, "capital", "sampling/createMessage",
             fixture_sampling("What is the capital of France?"), on_answer, c);
}

static void run_roots(struct call *c, json_t *args)
{
    (void)args;
    call_ask(c, "roots", "roots/list", json_object(), on_answer, c);
}

static void run_confirm(struct call *c, json_t *args)
{
    (void)args;
    elicit(c, "confirm", "Is that so?", "{\"ok\":{\"type\":\"boolean\"}}");
}

static void on_first_round(void *arg, json_t *result, const struct err *failed)
{
    if (failed)
        tool_refuse(arg, failed);
    else if (result)
        elicit(arg, "color", "And your colour?", "{\"color\":" S "}");
}

static void run_rounds(struct call *c, json_t *args)
{
    (void)args;
    call_ask(c, "name", "elicitation/create", fixture_form("Your name?", user_name), on_first_round,
             c);
}

static void add_request(json_t *requests, const struct call *c, const char *key, const char *method,
                        json_t *params)
{
    if (call_can_ask(c, method, params))
        json_object_set_new(requests, key,
                            json_pack("{s:s, s:O}", "method", method, "params", params));
    json_decref(params);
}

/* All that this client can be asked, at once. */
static void run_several(struct call *c, json_t *args)
{
    json_t *requests = json_object();

    (void)args;
    add_request(requests, c, "user_name", "elicitation/create",
                fixture_form("What is your name?", user_name));
    add_request(requests, c, "greeting", "sampling/createMessage", fixture_sampling("A greeting."));
    add_request(requests, c, "client_roots", "roots/list", json_object());
    if (call_state(c) && call_input(c, "user_name") && call_input(c, "greeting") &&
        call_input(c, "client_roots")) {
        json_decref(requests);
        fixture_say(c, "Three answers, and the state came back.");
        return;
    }
    call_ask_all(c, requests, json_pack("{s:b}", "several", true));
}

const struct tool fixtures_input[] = {
    FIXTURE("test_input_required_result_elicitation", NULL, run_by_hand),
    FIXTURE("test_input_required_result_sampling", NULL, run_sample),
    FIXTURE("test_input_required_result_list_roots", NULL, run_roots),
    FIXTURE("test_input_required_result_request_state", NULL, run_confirm),
    FIXTURE("test_input_required_result_tampered_state", NULL, run_confirm),
    FIXTURE("test_input_required_result_multi_round", NULL, run_rounds),
    FIXTURE("test_input_required_result_multiple_inputs", NULL, run_several),
    FIXTURE("test_input_required_result_capabilities", NULL, run_several),
    {0},
};
