/* What a model sees of a run. */
#include "agent/agent_int.h"
#include "unit.h"

static json_t *seen(const char *events, const char *outcome)
{
    json_t *ev = json_loads(events, 0, NULL), *o = json_loads(outcome, 0, NULL);
    json_t *v = observe(ev, o, 3, 60000);

    assert_non_null(ev);
    assert_non_null(o);
    json_decref(ev);
    json_decref(o);
    return v;
}

static const char *text_of(const json_t *v)
{
    return json_str(v, "text").p;
}

static void test_all_of_a_good_run(void **state)
{
    json_t *v =
        seen("[{\"type\":\"stdout\",\"text\":\"one\\n\"},"
             "{\"type\":\"stderr\",\"text\":\"careful\\n\"},"
             "{\"type\":\"result\",\"data\":{\"text/plain\":\"42\"}},"
             "{\"type\":\"file\",\"path\":\"out/a.png\",\"change\":\"created\",\"size\":2000,"
             "\"mime\":\"image/png\"},"
             "{\"type\":\"file\",\"path\":\"b.csv\",\"change\":\"changed\",\"size\":10,"
             "\"mime\":\"text/csv\"}]",
             "{\"status\":\"ok\"}");

    (void)state;
    assert_string_equal(text_of(v),
                        "STATUS: ok\nSTDOUT (4 chars):\none\nSTDERR (8 chars):\ncareful\n"
                        "RESULT: 42\nFILES: + out/a.png (image, 2.0 kB) ~ b.csv (10 B) "
                        "changed\n");
    assert_string_equal(json_str(v, "log").p,
                        "STDOUT:\none\n42\n\nSTDERR:\ncareful\n\nSTATUS: Execution successful\n");
    assert_true(json_is(v, "status", "ok") && !json_on(v, "empty") && !json_on(v, "lost"));
    assert_true(json_is(v, "last", "one"));
    assert_true(json_is(json_array_get(json_object_get(v, "files"), 0), "name", "a.png"));
    json_decref(v);
}

/* A display that was updated stands once, as its last state; a preview stands for its image. */
static void test_displays_are_those_that_clients_see(void **state)
{
    json_t *v = seen(
        "[{\"type\":\"display\",\"data\":{\"text/plain\":\"1 of 2\"},\"display_id\":\"d\"},"
        "{\"type\":\"display\",\"data\":{\"text/plain\":\"<Figure>\",\"image/png\":\"AA==\"}},"
        "{\"type\":\"display\",\"data\":{\"text/plain\":\"2 of 2\",\"text/html\":\"<b>2</b>\"},"
        "\"display_id\":\"d\",\"update\":true},"
        "{\"type\":\"display\",\"data\":{\"image/jpeg;preview=1\":\"AA==\"}}]",
        "{\"status\":\"ok\"}");

    (void)state;
    assert_has(text_of(v), "2 of 2\n\n[shown: image/png]\n\n[shown: image/jpeg]\n");
    assert_null(strstr(text_of(v), "1 of 2"));
    json_decref(v);
}

static void test_an_error_has_the_users_lines(void **state)
{
    json_t *v =
        seen("[{\"type\":\"error\",\"name\":\"ModuleNotFoundError\",\"message\":\"No module named "
             "'a.b'\",\"traceback\":\"\",\"frames\":[{\"file\":\"<cell 1>\",\"line\":3,"
             "\"function\":\"f\",\"text\":\"import a.b\"}]}]",
             "{\"status\":\"raised\"}");

    (void)state;
    assert_string_equal(text_of(v),
                        "STATUS: error ModuleNotFoundError\nERROR: ModuleNotFoundError: "
                        "No module named 'a.b'\n  <cell 1> line 3 in f\n  >   import a.b\n");
    assert_true(json_is(v, "module", "a") && json_is(v, "kind", "ModuleNotFoundError"));
    json_decref(v);
}

static void test_every_end_has_its_status(void **state)
{
    static const struct {
        const char *outcome, *line;
        bool lost;
    } rows[] = {
        {"{\"status\":\"timeout\",\"message\":\"over\"}",      "STATUS: timeout 60s\nover\n",              false},
        {"{\"status\":\"memory\",\"state_lost\":true}",        "STATUS: killed (memory)\n",                true },
        {"{\"status\":\"died\",\"state_lost\":true}",          "STATUS: killed (the interpreter ended)\n",
         true                                                                                                   },
        {"{\"status\":\"session_lost\",\"message\":\"gone\"}", "STATUS: session lost\ngone\n",
         true                                                                                                   },
        {"{\"status\":\"interrupted\"}",                       "STATUS: interrupted\n",                    false},
        {"{\"status\":\"something new\"}",                     "STATUS: session lost\n",                   true },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *v = seen("[]", rows[i].outcome);
        assert_string_equal(text_of(v), rows[i].line);
        assert_true(json_on(v, "lost") == rows[i].lost && json_on(v, "empty"));
        json_decref(v);
    }
}

static json_t *long_output(size_t lines)
{
    json_t *events = json_array(), *v;
    json_t *outcome = json_pack("{s:s}", "status", "ok");
    struct buf b;

    buf_init(&b, 64 * MiB);
    for (size_t i = 0; i < lines; i++)
        assert_int_equal(buf_printf(&b, "line %zu \xc3\xa4\n", i), 0);
    json_array_append_new(events,
                          json_pack("{s:s, s:s#}", "type", "stdout", "text", b.p, (int)b.n));
    v = observe(events, outcome, 3, 60000);
    buf_done(&b);
    json_decref(events);
    json_decref(outcome);
    return v;
}

static void test_the_middle_is_left_out_at_ends_of_lines(void **state)
{
    json_t *v = long_output(100000);
    struct str text = json_str(v, "text");
    const char *cut = strstr(text.p, "[... ");

    (void)state;
    assert_true(text.n <= OBSERVATION_MAX && text.n > OBSERVATION_MAX - 600);
    assert_non_null(cut);
    assert_int_equal(cut[-1], '\n');
    assert_has(text.p, "read_output run=3]\nline ");
    assert_has(text.p, "line 99999 \xc3\xa4\n");
    assert_int_equal(str_utf8_len(text), text.n);
    json_decref(v);
}

static void clean_is(const char *text, const char *want)
{
    struct buf b;

    buf_init(&b, MiB);
    observe_clean(&b, str_of(text));
    assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
    assert_string_equal(b.p, want);
    buf_done(&b);
}

static void test_cleaning(void **state)
{
    char blob[1001], line[5001], drawn[401];

    (void)state;
    clean_is("10%\r50%\r100%\ndone\r\n", "100%\ndone\n");
    clean_is("\033[31mred\033[0m", "red");
    clean_is("a\xff"
             "b",
             "a\xef\xbf\xbd"
             "b");
    clean_is("\x01\x02\x03\x04\x05\x06\x07\x08\x0b", "[9 bytes of binary left out]");
    for (size_t i = 0; i < 1000; i++)
        blob[i] = "aB3/"[i % 4];
    blob[1000] = '\0';
    clean_is(blob, "[1000 characters that look like base64 left out]");
    memset(drawn, '=', 400);
    drawn[400] = '\0';
    clean_is(drawn, drawn);
    for (size_t i = 0; i < 5000; i++)
        line[i] = "ab "[i % 3];
    line[5000] = '\0';
    struct buf b;
    buf_init(&b, MiB);
    observe_clean(&b, str_of(line));
    assert_true(b.n < 2000);
    assert_non_null(memmem(b.p, b.n, "[... 3100 chars omitted ...]", 28));
    buf_done(&b);
}

static void test_pages(void **state)
{
    json_t *events =
        json_loads("[{\"type\":\"stdout\",\"text\":\"0123456789\"},{\"type\":\"stderr\","
                   "\"text\":\"\xc3\xa4\xc3\xa4\"}]",
                   0, NULL);
    json_t *page = observe_page(events, 3, 4);

    (void)state;
    assert_string_equal(json_string_value(page), "chars 3 to 7 of 14:\n3456");
    json_decref(page);
    page = observe_page(events, 11, 1); /* within a character: from the next, and whole */
    assert_string_equal(json_string_value(page), "chars 12 to 12 of 14:\n");
    json_decref(page);
    page = observe_page(events, 999, 0);
    assert_string_equal(json_string_value(page), "chars 14 to 14 of 14:\n");
    json_decref(page);
    json_decref(events);
    events = json_array();
    page = observe_page(events, 0, 0);
    assert_string_equal(json_string_value(page), "chars 0 to 0 of 0:\n");
    json_decref(page);
    json_decref(events);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_good_run),
        cmocka_unit_test(test_displays_are_those_that_clients_see),
        cmocka_unit_test(test_an_error_has_the_users_lines),
        cmocka_unit_test(test_every_end_has_its_status),
        cmocka_unit_test(test_the_middle_is_left_out_at_ends_of_lines),
        cmocka_unit_test(test_cleaning),
        cmocka_unit_test(test_pages),
    };

    return RUN(tests);
}
