/* The model that plays scripts. */
#include "golden.h"
#include "loop/loop.h"
#include "model/model_int.h"
#include "scratch.h"

struct stage {
    struct loop *loop;
    struct model *model;
    struct model_call *call;
    bool cancels;
    char texts[128];
    json_t *parts; /* owned, or NULL */
    struct model_reply reply;
    struct model_failure failed;
    int ends;
};

static void on_piece(void *arg, const struct model_piece *p)
{
    struct stage *s = arg;
    size_t n = strlen(s->texts);

    snprintf(s->texts + n, sizeof(s->texts) - n, "%zu:%.*s ", p->part, (int)p->text.n, p->text.p);
    if (!s->cancels)
        return;
    model_call_cancel(s->call);
    loop_stop(s->loop);
}

static void on_end(void *arg, const struct model_reply *r, const struct model_failure *failed)
{
    struct stage *s = arg;

    s->ends++;
    if (failed) {
        s->failed = *failed;
    } else {
        s->reply = *r;
        s->parts = json_incref(r->parts);
    }
    loop_stop(s->loop);
}

static int open_stage(void **state)
{
    static struct stage s;
    struct err e;

    s = (struct stage){.loop = loop_new(&(struct err){0})};
    s.model = scripted_new(s.loop, NULL, &e);
    *state = &s;
    return s.model ? 0 : -1;
}

static int close_stage(void **state)
{
    struct stage *s = *state;

    json_decref(s->parts);
    if (s->model)
        s->model->ops->free(s->model);
    loop_free(s->loop);
    return 0;
}

/* Turn number n of a conversation in which the user said this. */
static void play(struct stage *s, const char *script, size_t turn)
{
    static const struct model_watcher watcher = {on_piece, on_end};
    json_t *parsed = json_of(script);
    char *text = json_is_string(parsed) ? strdup(json_string_value(parsed))
                                        : json_dumps(parsed, JSON_COMPACT);
    json_t *messages =
        json_pack("[{s:s, s:[{s:s, s:s}]}]", "role", "user", "parts", "type", "text", "text", text);
    json_t *tools = json_of("[{'name':'run_python','description':'','schema':{}}]");
    const struct model_ask ask = {.messages = messages, .tools = tools, .turn = turn};

    json_decref(s->parts);
    s->parts = NULL;
    s->ends = 0;
    s->failed = (struct model_failure){0};
    s->call = model_ask(s->model, &ask, &watcher, s);
    assert_int_equal(s->ends, 0);
    json_decref(messages);
    json_decref(tools);
    json_decref(parsed);
    free(text);
    loop_run(s->loop);
}

static void test_steps(void **state)
{
    struct stage *s = *state;

    play(s,
         "{'turns':[[{'text':'a'},{'python':'1'},{'bash':'ls'},{'edit':{'command':'view'}},"
         "{'tool':{'name':'t','input':{'n':1}}},{'tool':{'name':'u'}},"
         "{'raw_call':{'name':'r','raw':'{oops'}}]]}",
         0);
    assert_json(json_incref(s->parts),
                "[{'type':'text','text':'a'},"
                "{'type':'call','id':'call_0_1','name':'run_python','args':{'code':'1'}},"
                "{'type':'call','id':'call_0_2','name':'bash_code_execution','args':"
                "{'command':'ls'}},"
                "{'type':'call','id':'call_0_3','name':'text_editor_code_execution','args':"
                "{'command':'view'}},"
                "{'type':'call','id':'call_0_4','name':'t','args':{'n':1}},"
                "{'type':'call','id':'call_0_5','name':'u','args':{}},"
                "{'type':'call','id':'call_0_6','name':'r','args':null,'raw':'{oops'}]");
    assert_int_equal(s->reply.stop, MODEL_CALLS);
    assert_string_equal(s->texts, "0:a 1:{\"code\":\"1\"} 2:{\"command\":\"ls\"} "
                                  "3:{\"command\":\"view\"} 4:{\"n\":1} 5:{} 6:{oops ");
}

static void test_manners(void **state)
{
    struct stage *s = *state;
    int64_t begun = time_mono_us();

    play(
        s,
        "{'turns':[[{'text':'a'},{'stop':'length'},{'sleep_ms':30},"
        "{'usage':{'input_tokens':5,'output_tokens':6}}],[{'stop':'refusal'}],[{'stop':'pause'}]]}",
        0);
    assert_true(time_mono_us() - begun >= 25000);
    assert_int_equal(s->reply.stop, MODEL_LENGTH);
    assert_int_equal(s->reply.input_tokens, 5);
    assert_int_equal(s->reply.output_tokens, 6);
    play(s, "{'turns':[[],[{'stop':'refusal'}]]}", 1);
    assert_int_equal(s->reply.stop, MODEL_REFUSAL);
    play(s, "{'turns':[[{'stop':'pause'}]]}", 0);
    assert_int_equal(s->reply.stop, MODEL_PAUSE);
}

static void test_after_the_last_turn(void **state)
{
    struct stage *s = *state;

    play(s, "{'turns':[[{'text':'a'}]]}", 1);
    assert_int_equal(s->reply.stop, MODEL_DONE);
    assert_json(json_incref(s->parts), "[]");
}

static void test_failures(void **state)
{
    static const struct {
        const char *script;
        enum model_trouble trouble;
    } rows[] = {
        {"{'turns':[[{'fail':{'status':429,'retry_ms':50}}]]}",                        MODEL_BUSY    },
        {"{'turns':[[{'fail':{'status':500}}]]}",                                      MODEL_BUSY    },
        {"{'turns':[[{'fail':{}}]]}",                                                  MODEL_BUSY    },
        {"{'turns':[[{'fail':{'status':401}}]]}",                                      MODEL_DENIED  },
        {"{'turns':[[{'fail':{'status':400,'message':'prompt is too long'}}]]}",       MODEL_TOO_LONG},
        {"{'turns':[[{'fail':{'status':400,'message':'x does not support tools'}}]]}",
         MODEL_NO_TOOLS                                                                              },
        {"{'turns':[[{'dance':1}]]}",                                                  MODEL_DENIED  },
        {"{'turns':[[{'stop':'later'}]]}",                                             MODEL_DENIED  },
        {"{'turns':[[{'sleep_ms':'long'}]]}",                                          MODEL_DENIED  },
        {"'hello'",                                                                    MODEL_DENIED  },
    };
    struct stage *s = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        play(s, rows[i].script, 0);
        assert_int_equal(s->ends, 1);
        assert_null(s->parts);
        assert_int_equal(s->failed.trouble, rows[i].trouble);
        assert_int_not_equal(s->failed.err.kind, ERR_NONE);
        assert_int_equal(s->failed.retry_ms, i == 0 ? 50 : 0);
    }
}

static void test_cancelled_from_within(void **state)
{
    struct stage *s = *state;

    s->cancels = true;
    play(s, "{'turns':[[{'text':'a'},{'text':'b'}]]}", 0);
    assert_int_equal(s->ends, 0);
    assert_string_equal(s->texts, "0:a ");
}

static void stop(void *arg)
{
    loop_stop(arg);
}

static void test_cancelled_while_it_sleeps(void **state)
{
    static const struct model_watcher watcher = {on_piece, on_end};
    struct stage *s = *state;
    json_t *messages = json_of("[{'role':'user','parts':[{'type':'text','text':"
                               "'{\\'turns\\':[[{\\'sleep_ms\\':500000}]]}'}]}]");

    s->call = model_ask(s->model, &(struct model_ask){.messages = messages}, &watcher, s);
    model_call_cancel(s->call);
    json_decref(messages);
    loop_later(s->loop, stop, s->loop);
    loop_run(s->loop);
    assert_int_equal(s->ends, 0);
}

static void test_a_file(void **state)
{
    struct stage *s = *state;
    struct scratch dir;
    struct err e;

    assert_int_equal(scratch_open(&dir), 0);
    s->model->ops->free(s->model);
    s->model =
        scripted_new(s->loop, scratch_put(&dir, "s", STR("{\"turns\":[[{\"text\":\"f\"}]]}")), &e);
    assert_non_null(s->model);
    play(s, "'hello'", 0);
    assert_json(json_incref(s->parts), "[{'type':'text','text':'f'}]");
    assert_null(scripted_new(s->loop, scratch_put(&dir, "t", STR("[]")), &e));
    assert_has(e.text, "does not begin with");
    assert_int_equal(scratch_close(&dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, open_stage, close_stage),
        cmocka_unit_test_setup_teardown(test_manners, open_stage, close_stage),
        cmocka_unit_test_setup_teardown(test_after_the_last_turn, open_stage, close_stage),
        cmocka_unit_test_setup_teardown(test_failures, open_stage, close_stage),
        cmocka_unit_test_setup_teardown(test_cancelled_from_within, open_stage, close_stage),
        cmocka_unit_test_setup_teardown(test_cancelled_while_it_sleeps, open_stage, close_stage),
        cmocka_unit_test_setup_teardown(test_a_file, open_stage, close_stage),
    };

    return RUN(tests);
}
