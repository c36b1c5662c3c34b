/* What a kernel may say, field by field, and what ends it. */
#include "engine/engine_int.h"
#include "unit.h"

static struct event ev;
static int number;

struct message {
    struct buf body;
};

static int open_message(void **state)
{
    static struct message m;

    buf_init(&m.body, 4 * MiB);
    *state = &m;
    return 0;
}

static int close_message(void **state)
{
    struct message *m = *state;

    buf_done(&m->body);
    return 0;
}

static void put(struct message *m, uint16_t tag, const char *text)
{
    wire_put(&m->body, tag, str_of(text));
}

static int parse(struct message *m, uint16_t type)
{
    return event_parse(type, buf_str(&m->body), &ev, &number);
}

static void test_display(void **state)
{
    struct message *m = *state;

    put(m, TAG_MIME, "text/plain");
    put(m, TAG_DATA, "<Figure>");
    put(m, TAG_MIME, "image/png");
    wire_put(&m->body, TAG_DATA, STR("\x89PNG\0raw"));
    put(m, TAG_DISPLAY_ID, "fig");
    wire_put_num(&m->body, TAG_FLAGS, 1);
    assert_int_equal(parse(m, MSG_DISPLAY), 0);
    assert_int_equal(ev.kind, EVENT_DISPLAY);
    assert_int_equal(ev.bundle.count, 2);
    assert_str(ev.bundle.part[0].mime, "text/plain");
    assert_str(ev.bundle.part[1].data, "\x89PNG\0raw");
    assert_str(ev.bundle.display_id, "fig");
    assert_true(ev.bundle.update);
}

static void test_result_and_clear(void **state)
{
    struct message *m = *state;

    assert_int_equal(parse(m, MSG_CLEAR), 0);
    assert_int_equal(ev.kind, EVENT_CLEAR);
    put(m, TAG_MIME, "text/plain");
    put(m, TAG_DATA, "42");
    assert_int_equal(parse(m, MSG_RESULT), 0);
    assert_int_equal(ev.kind, EVENT_RESULT);
    assert_str(ev.bundle.part[0].data, "42");
}

static void test_error(void **state)
{
    struct message *m = *state;

    put(m, TAG_NAME, "OSError");
    put(m, TAG_TEXT, "no space");
    put(m, TAG_TRACE, "Traceback");
    wire_put_num(&m->body, TAG_ERRNO, ENOSPC);
    put(m, TAG_FRAME_FILE, "<cell 1>");
    wire_put_num(&m->body, TAG_FRAME_LINE, 3);
    put(m, TAG_FRAME_NAME, "<module>");
    put(m, TAG_FRAME_TEXT, "f()");
    put(m, TAG_FRAME_FILE, "lib.py");
    assert_int_equal(parse(m, MSG_ERROR), 0);
    assert_int_equal(ev.kind, EVENT_ERROR);
    assert_int_equal(number, ENOSPC);
    assert_str(ev.error.type, "OSError");
    assert_str(ev.error.message, "no space");
    assert_str(ev.error.traceback, "Traceback");
    assert_int_equal(ev.error.count, 2);
    assert_str(ev.error.frame[0].file, "<cell 1>");
    assert_int_equal(ev.error.frame[0].line, 3);
    assert_str(ev.error.frame[0].function, "<module>");
    assert_str(ev.error.frame[0].text, "f()");
    assert_str(ev.error.frame[1].file, "lib.py");
    assert_int_equal(ev.error.frame[1].line, 0);
}

/* Too long is cut, too strange is nothing. */
static void test_clipped(void **state)
{
    static char text[128 * 1024];
    struct message *m = *state;

    memset(text, 'x', sizeof(text) - 1);
    put(m, TAG_NAME, text);
    put(m, TAG_TEXT, text);
    put(m, TAG_TRACE, text);
    wire_put_num(&m->body, TAG_ERRNO, 1u << 31);
    put(m, TAG_FRAME_FILE, text);
    assert_int_equal(parse(m, MSG_ERROR), 0);
    assert_int_equal(ev.error.type.n, 512);
    assert_int_equal(ev.error.message.n, 64 * KiB);
    assert_int_equal(ev.error.traceback.n, 64 * KiB);
    assert_int_equal(ev.error.frame[0].file.n, 4096);
    assert_int_equal(number, 0);
}

/* Each row is a body of its own that must be refused. */
static void test_refused(void **state)
{
    struct message *m = *state;
    static const struct {
        uint16_t type;
        struct {
            uint16_t tag;
            const char *text; /* NULL: a number */
        } field[3];
    } rows[] = {
        {MSG_DISPLAY, {{TAG_DATA, "data alone"}}                               },
        {MSG_DISPLAY, {{TAG_MIME, "text/plain"}}                               },
        {MSG_DISPLAY, {{TAG_MIME, "text/plain"}, {TAG_MIME, "text/plain"}}     },
        {MSG_DISPLAY, {{TAG_MIME, "plain"}, {TAG_DATA, "x"}}                   },
        {MSG_DISPLAY, {{TAG_MIME, "text/plain\n"}, {TAG_DATA, "x"}}            },
        {MSG_DISPLAY, {{TAG_MIME, "text/plain "}, {TAG_DATA, "x"}}             },
        {MSG_DISPLAY, {{TAG_MIME, " text/plain"}, {TAG_DATA, "x"}}             },
        {MSG_DISPLAY, {{TAG_MIME, "text/\"plain\""}, {TAG_DATA, "x"}}          },
        {MSG_DISPLAY, {{TAG_MIME, "text/pl\xc3\xa4in"}, {TAG_DATA, "x"}}       },
        {MSG_DISPLAY, {{TAG_MIME, ""}, {TAG_DATA, "x"}}                        },
        {MSG_DISPLAY, {{TAG_FLAGS, "not eight bytes"}}                         },
        {MSG_DISPLAY, {{TAG_CODE, "of another kind"}}                          },
        {MSG_RESULT,  {{TAG_STATUS, NULL}}                                     },
        {MSG_ERROR,   {{TAG_FRAME_LINE, NULL}}                                 },
        {MSG_ERROR,   {{TAG_FRAME_NAME, "no frame yet"}}                       },
        {MSG_ERROR,   {{TAG_FRAME_FILE, "f"}, {TAG_FRAME_LINE, "not a number"}}},
        {MSG_ERROR,   {{TAG_ERRNO, "28"}}                                      },
        {MSG_ERROR,   {{TAG_MIME, "text/plain"}}                               },
        {MSG_DONE,    {{TAG_STATUS, NULL}}                                     },
        {MSG_CELL,    {{TAG_CODE, "1"}}                                        },
        {0,           {{TAG_TEXT, "x"}}                                        },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        m->body.n = 0;
        for (size_t j = 0; j < COUNT(rows[i].field) && rows[i].field[j].tag; j++) {
            if (rows[i].field[j].text)
                put(m, rows[i].field[j].tag, rows[i].field[j].text);
            else
                wire_put_num(&m->body, rows[i].field[j].tag, 1);
        }
        if (parse(m, rows[i].type) == 0)
            fail_msg("row %zu was accepted", i);
    }
}

static void test_too_many(void **state)
{
    struct message *m = *state;

    for (size_t i = 0; i < EVENT_PARTS_MAX; i++) {
        put(m, TAG_MIME, "text/plain");
        put(m, TAG_DATA, "x");
    }
    assert_int_equal(parse(m, MSG_DISPLAY), 0);
    assert_int_equal(ev.bundle.count, EVENT_PARTS_MAX);
    put(m, TAG_MIME, "text/plain");
    assert_int_equal(parse(m, MSG_DISPLAY), -1);

    m->body.n = 0;
    for (size_t i = 0; i < EVENT_FRAMES_MAX; i++)
        put(m, TAG_FRAME_FILE, "f");
    assert_int_equal(parse(m, MSG_ERROR), 0);
    put(m, TAG_FRAME_FILE, "f");
    assert_int_equal(parse(m, MSG_ERROR), -1);
}

static void test_torn(void **state)
{
    struct message *m = *state;

    put(m, TAG_MIME, "text/plain");
    put(m, TAG_DATA, "some data");
    for (size_t n = m->body.n - 1; n > 0; n--) {
        m->body.n = n;
        assert_int_equal(parse(m, MSG_DISPLAY), -1);
    }
}

#define WITH_MESSAGE(f) cmocka_unit_test_setup_teardown(f, open_message, close_message)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MESSAGE(test_display), WITH_MESSAGE(test_result_and_clear),
        WITH_MESSAGE(test_error),   WITH_MESSAGE(test_clipped),
        WITH_MESSAGE(test_refused), WITH_MESSAGE(test_too_many),
        WITH_MESSAGE(test_torn),
    };

    return RUN(tests);
}
