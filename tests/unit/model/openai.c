/* Chat completions: what is sent, and what replies become. */
#include "adapters.h"

#define AD (&adapter_openai)
static const struct model_ask plain;

static void sends(const char *messages, bool sees, const char *expected)
{
    assert_json(member_of(AD, plain, messages, NULL, sees, "messages"), expected);
}

static void test_messages(void **state)
{
    (void)state;
    sends("[{'role':'user','parts':[{'type':'text','text':'hi'}]}]", false,
          "[{'role':'user','content':'hi'}]");
    sends("[{'role':'user','parts':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}]",
          false,
          "[{'role':'user','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}]");
    sends("[{'role':'user','parts':[{'type':'image','mime':'image/png','data':'QQ=='}]}]", true,
          "[{'role':'user','content':[{'type':'image_url','image_url':"
          "{'url':'data:image/png;base64,QQ=='}}]}]");
    sends("[{'role':'user','parts':[{'type':'image','mime':'image/png','data':'QUJD'}]}]", false,
          "[{'role':'user','content':'[an image, image/png, 3 B, which you cannot see]'}]");
    sends("[{'role':'assistant','parts':[{'type':'text','text':'a'},{'type':'text','text':'b'},"
          "{'type':'call','id':'c','name':'run','args':{'x':1}}]}]",
          false,
          "[{'role':'assistant','content':'ab','tool_calls':[{'id':'c','type':'function',"
          "'function':{'name':'run','arguments':'{\\'x\\':1}'}}]}]");
}

static void test_content_is_null_beside_calls(void **state)
{
    (void)state;
    sends("[{'role':'assistant','parts':[{'type':'call','id':'c','name':'run','args':{}}]}]", false,
          "[{'role':'assistant','content':null,'tool_calls':[{'id':'c','type':'function',"
          "'function':{'name':'run','arguments':'{}'}}]}]");
}

/* A server that reads the arguments of the past must find JSON in them. */
static void test_raw_arguments_go_back_as_json(void **state)
{
    (void)state;
    sends("[{'role':'assistant','parts':[{'type':'call','id':'c','name':'run','args':null,"
          "'raw':'print(1)'}]}]",
          false,
          "[{'role':'assistant','content':null,'tool_calls':[{'id':'c','type':'function',"
          "'function':{'name':'run','arguments':'{\\'raw\\':\\'print(1)\\'}'}}]}]");
}

static void test_what_is_kept_for_others_stays_here(void **state)
{
    (void)state;
    sends("[{'role':'assistant','parts':[{'type':'kept','api':'anthropic','block':{}}]},"
          "{'role':'assistant','parts':[{'type':'kept','api':'anthropic','block':{}},"
          "{'type':'text','text':'a'}]}]",
          false, "[{'role':'assistant','content':'a'}]");
}

static void test_results_are_messages_and_their_images_another(void **state)
{
    (void)state;
    sends("[{'role':'user','parts':[{'type':'text','text':'go on'},"
          "{'type':'result','id':'1','text':'one','attached':[{'type':'image','mime':'image/"
          "png','data':'QQ=='}]},"
          "{'type':'result','id':'2','text':'','error':true}]}]",
          true,
          "[{'role':'tool','tool_call_id':'1','content':'one'},"
          "{'role':'tool','tool_call_id':'2','content':''},"
          "{'role':'user','content':[{'type':'image_url','image_url':"
          "{'url':'data:image/png;base64,QQ=='}},{'type':'text','text':'go on'}]}]");
}

static void test_a_whole_request(void **state)
{
    const struct model_ask ask = {
        .system = STR("be brief"), .max_tokens = 7, .one_at_a_time = true};

    (void)state;
    assert_json(request_of(AD, ask, "[{'role':'user','parts':[{'type':'text','text':'hi'}]}]",
                           "[{'name':'run','description':'d','schema':{'type':'object'}}]", false),
                "{'model':'m','stream':true,'stream_options':{'include_usage':true},'max_tokens':7,"
                "'parallel_tool_calls':false,'messages':[{'role':'system','content':'be brief'},"
                "{'role':'user','content':'hi'}],'tools':[{'type':'function','function':"
                "{'name':'run','description':'d','parameters':{'type':'object'}}}]}");
    assert_json(
        request_of(AD, plain, "[]", NULL, false),
        "{'model':'m','stream':true,'stream_options':{'include_usage':true},'messages':[]}");
}

static void test_choice(void **state)
{
    static const char *const tool = "[{'name':'run','description':'d','schema':{}}]";
    struct model_ask ask = {.choice = MODEL_NO_CALL};

    (void)state;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"), "'none'");
    ask.choice = MODEL_MUST_CALL;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"), "'required'");
    ask.tool = STR("run");
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"),
                "{'type':'function','function':{'name':'run'}}");
    assert_json(member_of(AD, ask, "[]", "[]", false, "tool_choice"), "null");
    ask.choice = MODEL_AUTO;
    assert_json(member_of(AD, ask, "[]", tool, false, "tool_choice"), "null");
}

/* --- replies --- */

#define DELTA(x)  "{'choices':[{'index':0,'delta':" x ",'finish_reason':null}]}"
#define FINISH(x) "{'choices':[{'index':0,'delta':{},'finish_reason':'" x "'}]}"

static void becomes(const char *events, const char *parts, enum model_stop stop)
{
    json_t *reply = reply_of(AD, events, false);

    assert_int_equal(json_integer_value(json_object_get(reply, "stop")), stop);
    assert_json(json_incref(json_object_get(reply, "parts")), parts);
    json_decref(reply);
}

static void test_a_stream(void **state)
{
    (void)state;
    assert_json(
        reply_of(
            AD,
            "[" DELTA("{'role':'assistant','content':null}") "," DELTA("{'content':'a'}") "," //
            DELTA("{'content':'','reasoning_content':'hm'}") "," DELTA("{'content':'b'}") "," //
            DELTA("{'tool_calls':[{'index':0,'id':'c1','function':{'name':'run',"
                  "'arguments':''}}]}") ","                                                //
            DELTA("{'tool_calls':[{'index':0,'function':{'arguments':'{\\'x\\':'}}]}") "," //
            DELTA("{'tool_calls':[{'index':0,'function':{'arguments':'1}'}}]}") ","        //
            FINISH("tool_calls") ",{'choices':[],'usage':{'prompt_tokens':3,"
                                 "'completion_tokens':4}}]",
            false),
        "{'parts':[{'type':'text','text':'ab'},{'type':'call','id':'c1','name':'run',"
        "'args':{'x':1}}],'stop':1,'ended':true,'in':3,'out':4}");
}

static void test_stops(void **state)
{
    static const struct {
        const char *events;
        enum model_stop stop;
    } rows[] = {
        {"[" FINISH("stop") "]",           MODEL_DONE   },
        {"[" FINISH("tool_calls") "]",     MODEL_DONE   }, /* there is none */
        {"[" FINISH("length") "]",         MODEL_LENGTH },
        {"[" FINISH("content_filter") "]", MODEL_REFUSAL},
        {"[" FINISH("eos") "]",            MODEL_DONE   },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        becomes(rows[i].events, "[]", rows[i].stop);
    becomes("[" DELTA("{'refusal':'no'}") "," FINISH("stop") "]", "[{'type':'text','text':'no'}]",
            MODEL_REFUSAL);
    becomes("[" DELTA("{'tool_calls':[{'index':0,'id':'c','function':{'name':'f','arguments':"
                      "'{'}}]}") "," FINISH("length") "]",
            "[{'type':'call','id':'c','name':'f','args':null,'raw':'{'}]", MODEL_LENGTH);
    becomes("[" DELTA("{'tool_calls':[{'index':0,'id':'c','function':{'name':'f'}}]}") "," //
            FINISH("stop") "]",
            "[{'type':'call','id':'c','name':'f','args':{}}]", MODEL_CALLS);
}

#define CALL(more, function) DELTA("{'tool_calls':[{" more "'function':{" function "}}]}")
#define F(arguments)         "'name':'f','arguments':'" arguments "'"
#define G(arguments)         "'name':'g','arguments':'" arguments "'"
#define MORE(arguments)      "'arguments':'" arguments "'"

/* How endpoints number their calls, or do not. */
static void test_numbers_of_calls(void **state)
{
    static const struct {
        const char *how, *events;
    } rows[] = {
        {"each its own, in turns",
         "[" CALL("'index':0,'id':'a',",                        F("{\\'n\\'")) "," CALL("'index':1,'id':'b',",
         G("{\\'n\\'")) "," //
         CALL("'index':0,",                                                                   MORE(":1}")) "," CALL("'index':1,", MORE(":2}")) "]"},
        {"one for all",           "[" CALL("'index':0,'id':'a',",                                   F("{\\'n\\':1}")) "," //
         CALL("'index':0,'id':'b',",                                                                    G("{\\'n\\':2}")) "]"        },
        {"none, and the id each time",
         "[" CALL("'id':'a',",                              F("{\\'n\\'")) "," CALL("'id':'a',",MORE(":1}")) "," //
         CALL("'id':'b',",                                                                G("{\\'n\\':2}")) "]"},
        {"none, and the id once",
         "[" CALL("'id':'a',",      F("{\\'n\\'")) "," CALL("",                                                   MORE(":1}")) "," //
         CALL("'id':'b',",G("{\\'n\\':2}")) "]"},
        {"arguments that are no text",
         "[" CALL("'index':0,'id':'a',","'name':'f','arguments':{'n':1}") "," //
         CALL("'index':1,'id':'b',",                    "'name':'g','arguments':{'n':2}") "]"                                                      },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("# %s\n", rows[i].how);
        becomes(rows[i].events,
                "[{'type':'call','id':'a','name':'f','args':{'n':1}},"
                "{'type':'call','id':'b','name':'g','args':{'n':2}}]",
                MODEL_CALLS);
    }
}

static void test_calls_without_an_id_get_one(void **state)
{
    json_t *reply = reply_of(AD,
                             "{'choices':[{'message':{'tool_calls':[{'function':{'name':'f',"
                             "'arguments':'{}'}},{'function':{'name':'g','arguments':'{}'}}]},"
                             "'finish_reason':'tool_calls'}]}",
                             true);
    json_t *parts = json_object_get(reply, "parts");
    const char *a = text_of(json_array_get(parts, 0), "id");
    const char *b = text_of(json_array_get(parts, 1), "id");

    (void)state;
    assert_int_equal(json_array_size(parts), 2);
    assert_int_equal(strncmp(a, "call_", 5), 0);
    assert_string_not_equal(a, b);
    json_decref(reply);
}

static void test_an_answer_in_one_piece(void **state)
{
    (void)state;
    assert_json(reply_of(AD,
                         "{'model':'x','choices':[{'message':{'content':[{'type':'text',"
                         "'text':'hi'}]},'finish_reason':'stop'}],'usage':{'prompt_tokens':1}}",
                         true),
                "{'parts':[{'type':'text','text':'hi'}],'stop':0,'ended':true,'in':1,'out':0}");
}

static void test_what_is_no_reply(void **state)
{
    (void)state;
    assert_json(reply_of(AD, "[{}]", false), "null");
    assert_json(reply_of(AD, "[{'choices':{}}]", false), "null");
    assert_json(reply_of(AD, "{'choices':[]}", true), "null");
    assert_json(reply_of(AD, "{}", true), "null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_content_is_null_beside_calls),
        cmocka_unit_test(test_raw_arguments_go_back_as_json),
        cmocka_unit_test(test_what_is_kept_for_others_stays_here),
        cmocka_unit_test(test_results_are_messages_and_their_images_another),
        cmocka_unit_test(test_a_whole_request),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_numbers_of_calls),
        cmocka_unit_test(test_calls_without_an_id_get_one),
        cmocka_unit_test(test_an_answer_in_one_piece),
        cmocka_unit_test(test_what_is_no_reply),
    };

    return RUN(tests);
}
