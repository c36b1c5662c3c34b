/* The messages of a request, as a model reads them. */
#include "doors/anthropic/messages_int.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static struct history h;
static struct err e;
static json_t *given;

static int read_it(const char *text)
{
    history_done(&h);
    json_decref(given);
    e = (struct err){0};
    given = json_loads(text, 0, NULL);
    assert_non_null(given);
    return history_read(&h, given, &e);
}

/* "a:text call(call_1) | u:result(call_1)=hi text ..." of all messages, once it is closed. */
static const char *shape(void)
{
    static char text[8192];
    size_t i, k, n = 0;
    json_t *message, *part;

    history_close(&h);
    text[0] = '\0';
    json_array_foreach(h.messages, i, message) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.1s:", i ? " | " : "",
                              json_string_value(json_object_get(message, "role")));
        json_array_foreach(json_object_get(message, "parts"), k, part) {
            const char *type = json_string_value(json_object_get(part, "type"));
            const char *id = json_string_value(json_object_get(part, "id"));
            const char *said = json_string_value(json_object_get(part, "text"));

            n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", id ? id : type);
            if (said)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "=%.20s", said);
        }
    }
    return text;
}

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAID(x)    "{\"role\":\"assistant\",\"content\":[" x "]}"
#define TEXT(x)    "{\"type\":\"text\",\"text\":\"" x "\"}"
#define BASH(id)                                                                                   \
    "{\"type\":\"server_tool_use\",\"id\":\"" id                                                   \
    "\",\"name\":\"bash_code_execution\",\"input\":{\"command\":\"x\"}}"
#define CODE(id)                                                                                   \
    "{\"type\":\"server_tool_use\",\"id\":\"" id                                                   \
    "\",\"name\":\"code_execution\",\"input\":{\"code\":\"x\"}}"
#define RAN(id, out)                                                                               \
    "{\"type\":\"bash_code_execution_tool_result\",\"tool_use_id\":\"" id                          \
    "\",\"content\":{\"type\":\"bash_code_execution_result\",\"stdout\":\"" out                    \
    "\",\"stderr\":\"\",\"return_code\":0,\"content\":[]}}"
#define LOCAL(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"local\",\"input\":{}}"
#define BY(id, of)                                                                                 \
    "{\"type\":\"tool_use\",\"id\":\"" id                                                          \
    "\",\"name\":\"f\",\"input\":{},\"caller\":{\"type\":\"code_execution_20260120\",\"tool_id\":" \
    "\"" of "\"}}"
#define ANSWER(id, text)                                                                           \
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"" id              \
    "\",\"content\":\"" text "\"}]}"

static void test_replies_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(read_it("[" USER("q") "," SAID(TEXT("a") "," BASH("s1") "," BASH("s2") "," RAN(
                         "s1", "1") "," RAN("s2", "2") "," TEXT("b")) "," USER("more") "]"),
                     0);
    assert_int_equal(h.pending_count, 0);
    assert_int_equal(h.replies, 2);
    assert_string_equal(shape(), "u: text=q | a: text=a call_1 call_2 | u: call_1=1 call_2=2 | "
                                 "a: text=b | u: text=more");
}

static void test_a_result_in_a_later_message(void **state)
{
    (void)state;
    assert_int_equal(read_it("[" USER("q") "," SAID(BASH("s1") "," LOCAL("t1")) "," ANSWER(
                         "t1", "r") "," SAID(RAN("s1", "1") "," TEXT("b")) "]"),
                     0);
    assert_int_equal(h.pending_count, 0);
    /* No model is asked to answer its own words. */
    assert_string_equal(shape(), "u: text=q | a: call_1 call_2 | u: call_2=r call_1=1 | a: text=b"
                                 " | u: text=[Your reply was cut ");
}

static void test_what_was_put_off_waits(void **state)
{
    (void)state;
    assert_int_equal(
        read_it("[" USER("q") "," SAID(BASH("s1") "," LOCAL("t1")) "," ANSWER("t1", "r") "]"), 0);
    assert_int_equal(h.pending_count, 1);
    assert_string_equal(h.pending[0].id, "s1");
    assert_string_equal(h.pending[0].model_call_id, "call_1");
    assert_int_equal(h.pending[0].tool, TOOL_BASH);
    assert_null(h.pending[0].answers);

    assert_int_equal(read_it("[" USER("q") "," SAID(BASH("s1")) "]"), 0);
    assert_int_equal(h.pending_count, 1);
}

static void test_what_was_given_up_does_not(void **state)
{
    (void)state;
    assert_int_equal(read_it("[" USER("q") "," SAID(BASH("s1")) "," USER("never mind") "]"), 0);
    assert_int_equal(h.pending_count, 0);
    assert_string_equal(shape(), "u: text=q | a: call_1 | u: call_1=Error: unavailable:  "
                                 "text=never mind");
    assert_int_equal(read_it("[" USER("q") "," SAID(BASH("s1")) "," USER("a") "," SAID(
                         TEXT("b") "," BASH("s2")) "]"),
                     0);
    assert_int_equal(h.pending_count, 1);
    assert_string_equal(h.pending[0].id, "s2");
}

static void test_code_that_waits(void **state)
{
    (void)state;
    assert_int_equal(read_it("[" USER("q") "," SAID(CODE("s1") "," BY("t1", "s1") "," BY(
                         "t2", "s1")) ",{\"role\":\"user\",\"content\":[{\"type\":"
                                      "\"tool_result\",\"tool_use_id\":\"t1\"},{\"type\":"
                                      "\"tool_result\",\"tool_use_id\":\"t2\"}]}]"),
                     0);
    assert_true(h.pending_code);
    assert_int_equal(h.pending_count, 1);
    assert_int_equal(json_object_size(h.pending[0].answers), 2);
    assert_string_equal(shape(), "u: text=q | a: call_1");
}

static void test_what_is_refused(void **state)
{
    (void)state;
    assert_int_equal(read_it("[" USER("q") "," SAID(LOCAL("t1")) "]"), -1);
    assert_non_null(strstr(e.text, "messages.1: `tool_use` ids were found without `tool_result`"));
    assert_int_equal(read_it("[" USER("q") "," SAID(LOCAL("t1")) "," USER("x") "]"), -1);
    assert_int_equal(read_it("[" USER("q") "," SAID(BY("t1", "s9")) "]"), -1);
    assert_non_null(strstr(e.text, "source tool `s9` not found for tool use block `t1`"));
    assert_int_equal(read_it("[" ANSWER("t1", "r") "]"), -1);
    assert_int_equal(read_it("[{\"role\":\"robot\",\"content\":\"x\"}]"), -1);
    assert_int_equal(read_it("[{\"role\":\"user\",\"content\":7}]"), -1);
    assert_int_equal(read_it("[{\"role\":\"user\",\"content\":[7]}]"), -1);
    assert_int_equal(read_it("[7]"), -1);
}

static void test_what_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(
        read_it("[" USER("q") "," SAID(
            "{\"type\":\"server_tool_use\",\"id\":\"w\",\"name\":\"web_search\",\"input\":{}},"
            "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"w\"},"
            "{\"type\":\"bash_code_execution_tool_result\",\"tool_use_id\":\"s9\"},"
            "{\"type\":\"tomorrow\"}," TEXT("a")) "]"),
        0);
    assert_string_equal(shape(), "u: text=q | a: text=a");
    /* What a user sent is not dropped without a word. */
    assert_int_equal(read_it("[{\"role\":\"user\",\"content\":[{\"type\":\"tomorrow\"}]}]"), -1);
    assert_non_null(strstr(e.text, "tomorrow"));
}

static void test_thinking_keeps_its_place(void **state)
{
    (void)state;
    assert_int_equal(
        read_it("[" USER("q") "," SAID(TEXT("a") ",{\"type\":\"thinking\",\"thinking\":\"hm\","
                                                 "\"signature\":\"s\"}") "]"),
        0);
    assert_string_equal(shape(), "u: text=q | a: text=a kept");
    /* Thinking that the model broke off in has no signature yet. */
    assert_int_equal(read_it("[" USER("q") "," SAID(
                         TEXT("a") ",{\"type\":\"thinking\",\"thinking\":\"hm\"}") "]"),
                     0);
    assert_string_equal(shape(), "u: text=q | a: text=a");
}

static void test_a_file_is_named_once(void **state)
{
    static const char up[] = "{\"type\":\"container_upload\",\"file_id\":\"file_1\"}";
    char text[512];

    (void)state;
    snprintf(text, sizeof(text),
             "[{\"role\":\"user\",\"content\":[%s,%s]},{\"role\":\"user\",\"content\":[%s]}]", up,
             up, up);
    assert_int_equal(read_it(text), 0);
    assert_int_equal(json_array_size(h.uploads), 1);
    json_object_set_new(json_object_get(json_array_get(h.uploads, 0), "part"), "text",
                        json_string("here"));
    assert_string_equal(shape(), "u: text=here");
}

static void test_the_session_is_in_the_id(void **state)
{
    char id[TOOL_ID_MAX], session[ID_MAX], found[ID_MAX] = "", text[1024];

    (void)state;
    id_make(session, "sess_");
    tool_id_make(id, "srvtoolu_", session);
    assert_int_equal(strspn(id + 9, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(id) - 9);
    assert_true(tool_id_session(id, found));
    assert_string_equal(found, session);
    assert_false(tool_id_session("srvtoolu_01ABC", found));
    assert_false(tool_id_session("srvtoolu_", found));
    assert_false(
        tool_id_session("srvtoolu_________________________________________________", found));
    assert_false(tool_id_session("x", found));
    tool_id_make(id, "toolu_", "");
    assert_false(tool_id_session(id, found));

    tool_id_make(id, "srvtoolu_", session);
    snprintf(text, sizeof(text),
             "[" USER("q") ",{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\","
                           "\"id\":\"%s\",\"name\":\"code_execution\",\"input\":{}}]}]",
             id);
    assert_int_equal(read_it(text), 0);
    assert_string_equal(h.session, session);
}

static void test_output_is_clipped_at_characters(void **state)
{
    char text[100];
    json_t *v;

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "\xc3\xbc"[i % 2];
    for (size_t max = 4; max < 40; max++) {
        v = output_clip((struct str){text, sizeof(text)}, max, 0);
        assert_non_null(strstr(json_string_value(v), "bytes of output left out"));
        assert_null(strstr(json_string_value(v), "\xef\xbf\xbd"));
        json_decref(v);
    }
    v = output_clip(STR("short"), 40, 7);
    assert_string_equal(json_string_value(v), "sh\n[... 7 bytes of output left out ...]\nort");
    json_decref(v);
}

static int done(void **state)
{
    (void)state;
    history_done(&h);
    json_decref(given);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies_are_told_apart),
        cmocka_unit_test(test_a_result_in_a_later_message),
        cmocka_unit_test(test_what_was_put_off_waits),
        cmocka_unit_test(test_what_was_given_up_does_not),
        cmocka_unit_test(test_code_that_waits),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_what_is_left_alone),
        cmocka_unit_test(test_thinking_keeps_its_place),
        cmocka_unit_test(test_a_file_is_named_once),
        cmocka_unit_test(test_the_session_is_in_the_id),
        cmocka_unit_test(test_output_is_clipped_at_characters),
    };

    return cmocka_run_group_tests(tests, NULL, done);
}
