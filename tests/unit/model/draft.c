/* A reply that is still coming; and the same conversation by both adapters. */
#include "adapters.h"

struct heard {
    char text[256];
};

static void on_piece(void *arg, const struct model_piece *p)
{
    struct heard *h = arg;
    size_t n = strlen(h->text);

    snprintf(h->text + n, sizeof(h->text) - n, "%zu:%s%s%.*s ", p->part, p->name ? p->name : "",
             p->key ? p->key : "", (int)p->text.n, p->text.p);
}

static int put(struct draft *d, size_t at, const char *text)
{
    json_t *v = json_stringn(text, strlen(text));
    int rc = draft_text(d, at, v);

    json_decref(v);
    return rc;
}

static void test_pieces_keep_their_places(void **state)
{
    struct heard h = {""};
    struct draft d;
    enum model_stop stop;

    (void)state;
    draft_init(&d);
    d.on_piece = on_piece;
    d.arg = &h;
    assert_int_equal(put(&d, 5, ""), 0); /* nothing is no piece */
    assert_int_equal(draft_call(&d, 9, "c", "run"), 0);
    assert_int_equal(put(&d, 5, "a"), 0); /* waits: the call has no arguments yet */
    assert_int_equal(draft_args(&d, 9, STR("{")), 0);
    assert_int_equal(put(&d, 5, "b"), 0);
    assert_string_equal(h.text, "0:run 0:run{ ");
    assert_int_equal(draft_args(&d, 9, STR("}")), 0);
    assert_int_equal(put(&d, 2, "c"), 0);
    assert_int_equal(put(&d, 5, "d"), 0); /* behind another piece: a new one */
    assert_string_equal(h.text, "0:run 0:run{ 0:run} 1:ab 2:c 3:d ");
    assert_int_equal(draft_args(&d, 9, STR(" ")), -1); /* it was told as a whole */
    assert_json(draft_parts(&d, &stop),
                "[{'type':'call','id':'c','name':'run','args':{}},{'type':'text','text':'ab'},"
                "{'type':'text','text':'c'},{'type':'text','text':'d'}]");
    assert_int_equal(stop, MODEL_CALLS);
    draft_done(&d);
}

static void test_calls_at_a_time_wait_for_each_other(void **state)
{
    struct heard h = {""};
    struct draft d;

    (void)state;
    draft_init(&d);
    d.on_piece = on_piece;
    d.arg = &h;
    assert_int_equal(draft_call(&d, 1, "a", "one"), 0);
    assert_int_equal(draft_call(&d, 2, "b", NULL), 0);
    assert_int_equal(draft_args(&d, 2, STR("{}")), 0);
    assert_int_equal(draft_args(&d, 1, STR("{}")), 0);
    assert_string_equal(h.text, "0:one 0:one{} ");
    draft_tell_rest(&d);
    assert_string_equal(h.text, "0:one 0:one{} 1:{} ");
    draft_done(&d);
}

static void test_thinking_is_told(void **state)
{
    json_t *block = json_pack("{s:s, s:s}", "type", "thinking", "thinking", "");
    json_t *text = json_string("x");
    struct heard h = {""};
    struct draft d;

    (void)state;
    draft_init(&d);
    d.on_piece = on_piece;
    d.arg = &h;
    assert_int_equal(draft_kept(&d, 0, "anthropic", block), 0);
    assert_int_equal(draft_kept_more(&d, 0, "thinking", text), 0);
    assert_int_equal(draft_kept_more(&d, 0, "signature", text), 0);
    assert_int_equal(put(&d, 1, "a"), 0);
    assert_string_equal(h.text, "0: 0:thinkingx 0:signaturex 1:a ");
    assert_int_equal(draft_kept_more(&d, 0, "thinking", text), -1);
    draft_done(&d);
    json_decref(block);
    json_decref(text);
}

static void test_what_does_not_fit_a_piece(void **state)
{
    json_t *text = json_string("x");
    struct draft d;

    (void)state;
    draft_init(&d);
    assert_int_equal(draft_args(&d, 0, STR("x")), -1);
    assert_int_equal(put(&d, 0, "a"), 0);
    assert_int_equal(draft_call(&d, 0, NULL, NULL), -1);
    assert_int_equal(draft_args(&d, 0, STR("x")), -1);
    assert_int_equal(draft_kept(&d, 0, "anthropic", text), -1);
    assert_int_equal(draft_kept_more(&d, 0, "thinking", text), -1);
    draft_done(&d);
    json_decref(text);
}

static void test_a_nul_is_not_passed_on(void **state)
{
    json_t *text = json_stringn("a\0b\0", 4);
    struct draft d;
    enum model_stop stop;

    (void)state;
    draft_init(&d);
    assert_int_equal(draft_text(&d, 0, text), 0);
    assert_json(draft_parts(&d, &stop), "[{'type':'text','text':'a\xef\xbf\xbd"
                                        "b\xef\xbf\xbd'}]");
    draft_done(&d);
    json_decref(text);
}

static void test_there_is_an_end_to_pieces(void **state)
{
    struct draft d;
    size_t i = 0;

    (void)state;
    draft_init(&d);
    while (i < 10000 && put(&d, i, "x") == 0)
        i++;
    assert_int_equal(i, 256);
    draft_done(&d);
}

/* L19: whatever the wire, what is on record afterwards is the same, and so is what is sent back. */
static void test_the_same_transcript_by_both(void **state)
{
    json_t *a = reply_of(&adapter_openai,
                         "[{'choices':[{'delta':{'content':'See: '}}]},"
                         "{'choices':[{'delta':{'tool_calls':[{'index':0,'id':'c1','function':"
                         "{'name':'run_python','arguments':'{\\'code\\':'}}]}}]},"
                         "{'choices':[{'delta':{'tool_calls':[{'index':0,'function':{'arguments':"
                         "'\\'1/0\\'}'}}]}}]},{'choices':[{'delta':{},'finish_reason':"
                         "'tool_calls'}]},{'choices':[],'usage':{'prompt_tokens':9,"
                         "'completion_tokens':5}}]",
                         false);
    json_t *b = reply_of(&adapter_anthropic,
                         "[{'type':'message_start','message':{'usage':{'input_tokens':9}}},"
                         "{'type':'content_block_start','index':0,'content_block':{'type':'text',"
                         "'text':''}},{'type':'content_block_delta','index':0,'delta':"
                         "{'type':'text_delta','text':'See: '}},"
                         "{'type':'content_block_start','index':1,'content_block':"
                         "{'type':'tool_use','id':'c1','name':'run_python','input':{}}},"
                         "{'type':'content_block_delta','index':1,'delta':{'type':"
                         "'input_json_delta','partial_json':'{\\'code\\':\\'1/0\\'}'}},"
                         "{'type':'message_delta','delta':{'stop_reason':'tool_use'},'usage':"
                         "{'output_tokens':5}},{'type':'message_stop'}]",
                         false);

    (void)state;
    assert_json(json_deep_copy(a),
                "{'parts':[{'type':'text','text':'See: '},{'type':'call','id':'c1','name':"
                "'run_python','args':{'code':'1/0'}}],'stop':1,'ended':true,'in':9,'out':5}");
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_keep_their_places),
        cmocka_unit_test(test_calls_at_a_time_wait_for_each_other),
        cmocka_unit_test(test_thinking_is_told),
        cmocka_unit_test(test_what_does_not_fit_a_piece),
        cmocka_unit_test(test_a_nul_is_not_passed_on),
        cmocka_unit_test(test_there_is_an_end_to_pieces),
        cmocka_unit_test(test_the_same_transcript_by_both),
    };

    return RUN(tests);
}
