/* A transcript as every client reads it: updates applied, images counted, previews found. */
#include "record/record.h"
#include "unit.h"

static json_t *events_of(const char *text)
{
    AUTO_FREE char *json = mem_strdup(text);
    json_t *events;

    for (char *p = json; *p; p++)
        if (*p == '\'')
            *p = '"';
    events = json_loads(json, 0, NULL);
    assert_non_null(events);
    return events;
}

/* Kinds and texts in one line, images with their numbers and types. */
static void told(const char *events_text, const char *want)
{
    json_t *events = events_of(events_text);
    struct event_reader r;
    struct buf b;

    buf_init(&b, 1000);
    event_reader_init(&r, events);
    while (event_reader_next(&r)) {
        buf_printf(&b, "%s:%.*s", event_kind_name(r.kind), (int)r.text.n, r.text.p);
        if (r.image)
            buf_printf(&b, "#%zu %s=%s", r.images, r.mime, json_string_value(r.image));
        if (r.preview)
            buf_printf(&b, "~%s=%s", r.preview_mime, json_string_value(r.preview));
        buf_put(&b, STR("|"));
    }
    event_reader_done(&r);
    buf_put(&b, (struct str){"", 1});
    assert_string_equal(b.p, want);
    buf_done(&b);
    json_decref(events);
}

static void test_kinds_in_their_order(void **state)
{
    (void)state;
    told("[]", "");
    told("[{'type':'stdout','text':'a'},{'type':'stderr','text':'b'},{'type':'status','text':'c'}]",
         "stdout:a|stderr:b|status:c|");
    told("[{'type':'clear'},{'type':'error','name':'E'},{'type':'file','path':'x'}]",
         "clear:|error:|file:|");
    told("[{'type':'result','data':{'text/plain':'42'}}]", "result:42|");
}

static void test_the_best_format_of_an_image(void **state)
{
    (void)state;
    told("[{'type':'display','data':{'image/svg+xml':'<svg>','image/png':'UE5H','text/plain':'f'}},"
         "{'type':'result','data':{'image/gif':'R0lG'}}]",
         "display:f#1 image/png=UE5H|result:#2 image/gif=R0lG|");
    told("[{'type':'display','data':{'image/png':'TA==','image/png;preview=1':'Uw=='}},"
         "{'type':'display','data':{'image/jpeg;preview=1':'Sg=='}}]",
         "display:#1 image/png=TA==~image/png=Uw==|display:#2 image/jpeg=Sg==~image/jpeg=Sg==|");
}

static void test_updates_take_the_first_place(void **state)
{
    (void)state;
    told("[{'type':'display','display_id':'a','data':{'text/plain':'one'}},"
         "{'type':'display','data':{'image/png':'Mg=='}},"
         "{'type':'display','display_id':'a','update':true,'data':{'text/plain':'two'}},"
         "{'type':'display','display_id':'a','update':true,'data':{'image/png':'MQ=='}}]",
         "display:#1 image/png=MQ==|display:#2 image/png=Mg==|");
    /* One that updates what an earlier execution has shown is shown here. */
    told("[{'type':'stdout','text':'x'},"
         "{'type':'display','display_id':'b','update':true,'data':{'text/plain':'1'}},"
         "{'type':'display','display_id':'b','update':true,'data':{'text/plain':'2'}}]",
         "stdout:x|display:2|");
    /* The same id twice: two displays, and the later one is updated. */
    told("[{'type':'display','display_id':'c','data':{'text/plain':'1'}},"
         "{'type':'display','display_id':'c','data':{'text/plain':'2'}},"
         "{'type':'display','display_id':'c','update':true,'data':{'text/plain':'3'}}]",
         "display:1|display:3|");
}

static void test_parts(void **state)
{
    json_t *events = events_of(
        "[{'type':'stdout','text':'a'},{'type':'error','name':'First'},{'type':'stderr','text':'b'}"
        ","
        "{'type':'display','data':{'image/png':'MQ=='}},{'type':'stdout','text':'c'},"
        "{'type':'result','data':{'image/svg+xml':'<svg/>'}},{'type':'error','name':'Last'}]");
    const char *mime;
    struct buf b;

    (void)state;
    buf_init(&b, 100);
    events_output(events, IN(EVENT_STDOUT), &b);
    assert_str(buf_str(&b), "ac");
    events_output(events, IN(EVENT_STDOUT) | IN(EVENT_STDERR), &b);
    assert_str(buf_str(&b), "acabc");
    buf_done(&b);
    assert_string_equal(json_string_value(events_image(events, 1, &mime)), "MQ==");
    assert_string_equal(mime, "image/png");
    assert_string_equal(json_string_value(events_image(events, 2, &mime)), "<svg/>");
    assert_string_equal(mime, "image/svg+xml");
    assert_null(events_image(events, 3, &mime));
    assert_null(events_image(events, 0, &mime));
    assert_str(event_text(events_error(events), "name"), "Last");
    assert_null(events_error(NULL));
    json_decref(events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_in_their_order),
        cmocka_unit_test(test_the_best_format_of_an_image),
        cmocka_unit_test(test_updates_take_the_first_place),
        cmocka_unit_test(test_parts),
    };

    return RUN(tests);
}
