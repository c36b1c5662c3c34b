/* Anthropic's Messages: what is sent, and what replies become. */
#include "adapters.h"

#define AD (&adapter_anthropic)
static const struct model_ask plain;

static void sends(const char *messages, bool sees, const char *expected)
{
    assert_json(member_of(AD, plain, messages, NULL, sees, "messages"), expected);
}

static void test_messages(void **state)
{
    (void)state;
    sends("[{'role':'user','parts':[{'type':'text','text':'hi'}]}]", false,
          "[{'role':'user','content':[{'type':'text','text':'hi'}]}]");
    sends("[{'role':'user','parts':[{'type':'image','mime':'image/png','data':'QQ=='}]}]", true,
          "[{'role':'user','content':[{'type':'image','source':{'type':'base64',"
          "'media_type':'image/png','data':'QQ=='}}]}]");
    sends("[{'role':'assistant','parts':[{'type':'text','text':'a'},"
          "{'type':'call','id':'c','name':'run','args':{'x':1}},"
          "{'type':'call','id':'d','name':'run','args':null,'raw':'print(1)'}]}]",
          false,
          "[{'role':'assistant','content':[{'type':'text','text':'a'},"
          "{'type':'tool_use','id':'c','name':'run','input':{'x':1}},"
          "{'type':'tool_use','id':'d','name':'run','input':{'raw':'print(1)'}}]}]");
}

static void test_roles_alternate_and_results_come_first(void **state)
{
    (void)state;
    sends(
        "[{'role':'user','parts':[{'type':'text','text':'a'}]},"
        "{'role':'user','parts':[{'type':'text','text':'b'},"
        "{'type':'result','id':'1','text':'r'}]},"
        "{'role':'assistant','parts':[{'type':'text','text':'c'}]},"
        "{'role':'assistant','parts':[{'type':'text','text':'d'}]}]",
        false,
        "[{'role':'user','content':[{'type':'tool_result','tool_use_id':'1','content':'r'},"
        "{'type':'text','text':'a'},{'type':'text','text':'b'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'c'},{'type':'text','text':'d'}]}]");
}

static void test_no_text_is_blank(void **state)
{
    (void)state;
    sends("[{'role':'user','parts':[{'type':'text','text':'a'},{'type':'text','text':''}]},"
          "{'role':'assistant','parts':[{'type':'text','text':' \\n'}]}]",
          false, "[{'role':'user','content':[{'type':'text','text':'a'}]}]");
}

static void test_results(void **state)
{
    (void)state;
    sends("[{'role':'user','parts':[{'type':'result','id':'1','text':'','error':true},"
          "{'type':'result','id':'2','text':'r','attached':[{'type':'image','mime':'image/"
          "png','data':'QQ=='}]}]}]",
          true,
          "[{'role':'user','content':[{'type':'tool_result','tool_use_id':'1','content':'',"
          "'is_error':true},{'type':'tool_result','tool_use_id':'2','content':["
          "{'type':'text','text':'r'},{'type':'image','source':{'type':'base64',"
          "'media_type':'image/png','data':'QQ=='}}]}]}]");
    sends("[{'role':'user','parts':[{'type':'result','id':'2','text':'',"
          "'attached':[{'type':'image','mime':'image/png','data':'QUJD'}]}]}]",
          false,
          "[{'role':'user','content':[{'type':'tool_result','tool_use_id':'2','content':["
          "{'type':'text','text':'[an image, image/png, 3 B, which you cannot see]'}]}]}]");
}

/* As it came, to the letter. */
static void test_thoughts_go_back(void **state)
{
    (void)state;
    sends("[{'role':'assistant','parts':[{'type':'kept','api':'anthropic','block':"
          "{'type':'thinking','thinking':'hm','signature':'s','new':[1]}},"
          "{'type':'kept','api':'openai','block':{}},{'type':'text','text':'a'}]}]",
          false,
          "[{'role':'assistant','content':[{'type':'thinking','thinking':'hm','signature':'s',"
          "'new':[1]},{'type':'text','text':'a'}]}]");
}

static void test_a_whole_request(void **state)
{
    const struct model_ask ask = {
        .system = STR("be brief"), .max_tokens = 7, .one_at_a_time = true};

    (void)state;
    assert_json(request_of(AD, ask, "[{'role':'user','parts':[{'type':'text','text':'hi'}]}]",
                           "[{'name':'run','description':'d','schema':{'type':'object'}}]", false),
                "{'model':'m','stream':true,'max_tokens':7,'system':'be brief','messages':["
                "{'role':'user','content':[{'type':'text','text':'hi'}]}],'tools':[{'name':'run',"
                "'description':'d','input_schema':{'type':'object'}}],'tool_choice':"
                "{'type':'auto','disable_parallel_tool_use':true}}");
}

static void test_choice(void **state)
{
    static const char *const tool = "[{'name':'run','description':'d','schema':{}}]";
    struct model_ask ask = {.choice = MODEL_NO_CALL, .one_at_a_time = true};

    (void)state;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"), "{'type':'none'}");
    ask.choice = MODEL_MUST_CALL;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"),
                "{'type':'any','disable_parallel_tool_use':true}");
    ask.tool = STR("run");
    ask.one_at_a_time = false;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"),
                "{'type':'tool','name':'run'}");
    assert_json(member_of(AD, ask, "[]", NULL, false, "tool_choice"), "null");
    ask.choice = MODEL_AUTO;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"), "null");
}

/* --- replies --- */

#define START                                                                                      \
    "{'type':'message_start','message':{'model':'x','usage':{'input_tokens':3,"                    \
    "'cache_read_input_tokens':10,'output_tokens':1}}}"
#define BLOCK(i, block) "{'type':'content_block_start','index':" i ",'content_block':" block "}"
#define DELTA(i, delta) "{'type':'content_block_delta','index':" i ",'delta':" delta "}"
#define END(reason)                                                                                \
    "{'type':'message_delta','delta':{'stop_reason':'" reason "'},'usage':{'output_tokens':4}},"   \
    "{'type':'message_stop'}"

static void test_a_stream(void **state)
{
    (void)state;
    assert_json(
        reply_of(
            AD,
            "[" START ",{'type':'ping'}," BLOCK("0", "{'type':'thinking','thinking':'',"
                                                     "'signature':''}") ","        //
            DELTA("0", "{'type':'thinking_delta','thinking':'h'}") ","             //
            DELTA("0", "{'type':'thinking_delta','thinking':'m'}") ","             //
            DELTA("0", "{'type':'signature_delta','signature':'s'}") ","           //
            BLOCK("1", "{'type':'redacted_thinking','data':'zz'}") ","             //
            BLOCK("2", "{'type':'text','text':''}") ","                            //
            DELTA("2", "{'type':'text_delta','text':'a'}") ","                     //
            DELTA("2", "{'type':'citations_delta','citation':{}}") ","             //
            BLOCK("3", "{'type':'tool_use','id':'t','name':'run','input':{}}") "," //
            DELTA("3", "{'type':'input_json_delta','partial_json':''}") ","        //
            DELTA("3",
                  "{'type':'input_json_delta','partial_json':'{\\'x\\':1}'}") "," //
                                                                              "{'type':'content_"
                                                                              "block_stop','index':"
                                                                              "3},{'type':'some_"
                                                                              "news'}," END(
                                                                                  "tool_use") "]",
            false),
        "{'parts':[{'type':'kept','api':'anthropic','block':{'type':'thinking','thinking':'hm',"
        "'signature':'s'}},{'type':'kept','api':'anthropic','block':{'type':'redacted_thinking',"
        "'data':'zz'}},{'type':'text','text':'a'},{'type':'call','id':'t','name':'run',"
        "'args':{'x':1}}],'stop':1,'ended':true,'in':13,'out':4}");
}

static void test_stops(void **state)
{
    static const struct {
        const char *events;
        enum model_stop stop;
    } rows[] = {
        {"[" END("end_turn") "]",                      MODEL_DONE   },
        {"[" END("stop_sequence") "]",                 MODEL_DONE   },
        {"[" END("max_tokens") "]",                    MODEL_LENGTH },
        {"[" END("model_context_window_exceeded") "]", MODEL_WINDOW },
        {"[" END("pause_turn") "]",                    MODEL_PAUSE  },
        {"[" END("refusal") "]",                       MODEL_REFUSAL},
        {"[" END("something_new") "]",                 MODEL_DONE   },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *reply = reply_of(AD, rows[i].events, false);

        assert_int_equal(json_integer_value(json_object_get(reply, "stop")), rows[i].stop);
        json_decref(reply);
    }
}

static void test_an_answer_in_one_piece(void **state)
{
    (void)state;
    assert_json(
        reply_of(AD,
                 "{'type':'message','content':[{'type':'thinking','thinking':'hm','signature':'s'},"
                 "{'type':'text','text':'a'},{'type':'tool_use','id':'t','name':'run',"
                 "'input':{'x':1}}],'stop_reason':'tool_use','usage':{'input_tokens':1,"
                 "'output_tokens':2}}",
                 true),
        "{'parts':[{'type':'kept','api':'anthropic','block':{'type':'thinking','thinking':'hm',"
        "'signature':'s'}},{'type':'text','text':'a'},{'type':'call','id':'t','name':'run',"
        "'args':{'x':1}}],'stop':1,'ended':true,'in':1,'out':2}");
}

static void test_what_is_no_reply(void **state)
{
    (void)state;
    assert_json(reply_of(AD, "[{}]", false), "null");
    assert_json(reply_of(AD, "[" BLOCK("0", "{}") "]", false), "null");
    assert_json(
        reply_of(AD, "[" DELTA("0", "{'type':'input_json_delta','partial_json':'x'}") "]", false),
        "null");
    assert_json(reply_of(AD, "[" DELTA("7", "{'type':'thinking_delta','thinking':'x'}") "]", false),
                "null");
    assert_json(reply_of(AD, "{}", true), "null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_roles_alternate_and_results_come_first),
        cmocka_unit_test(test_no_text_is_blank),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_thoughts_go_back),
        cmocka_unit_test(test_a_whole_request),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_an_answer_in_one_piece),
        cmocka_unit_test(test_what_is_no_reply),
    };

    return RUN(tests);
}
