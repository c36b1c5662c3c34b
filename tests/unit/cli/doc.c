/* Events and outcomes as JSON. */
#include "cli/cli_int.h"
#include "unit.h"

struct paper {
    struct doc d;
};

static const struct source cell = {.kind = EXEC_CELL, .label = "-c"};

static int open_paper(void **state)
{
    static struct paper p;

    *state = &p;
    doc_init(&p.d);
    doc_begin(&p.d, &cell);
    return 0;
}

static int close_paper(void **state)
{
    struct paper *p = *state;

    doc_done(&p->d);
    return 0;
}

static void print(struct paper *p, enum event_kind kind, struct str text)
{
    doc_event(&p->d, &(struct event){.kind = kind, .text = text});
}

static void end(struct paper *p)
{
    doc_outcome(&p->d, &(struct outcome){0});
}

/* The events so far, on one line. */
static void expect(struct paper *p, const char *want)
{
    AUTO_FREE char *got = json_dumps(p->d.transcript.events, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(got, want);
}

static void test_pieces_become_one(void **state)
{
    struct paper *p = *state;

    print(p, EVENT_STDOUT, STR("a"));
    print(p, EVENT_STDOUT, STR("b\n"));
    print(p, EVENT_STDERR, STR("c"));
    print(p, EVENT_STDOUT, STR("d"));
    end(p);
    expect(p, "[{\"text\":\"ab\\n\",\"type\":\"stdout\"},{\"text\":\"c\",\"type\":\"stderr\"},"
              "{\"text\":\"d\",\"type\":\"stdout\"}]");
}

static void test_torn_characters_heal(void **state)
{
    struct paper *p = *state;

    print(p, EVENT_STDOUT, STR("\xe2\x82"));
    print(p, EVENT_STDOUT, STR("\xac \xe2"));
    print(p, EVENT_STDERR, STR("x"));
    print(p, EVENT_STDOUT, STR("\x82\xac\xc3"));
    end(p);
    expect(p,
           "[{\"text\":\"\xe2\x82\xac \",\"type\":\"stdout\"},{\"text\":\"x\",\"type\":\"stderr\"},"
           "{\"text\":\"\xe2\x82\xac\xef\xbf\xbd\",\"type\":\"stdout\"}]");
}

static void test_any_bytes(void **state)
{
    struct paper *p = *state;

    print(p, EVENT_STDOUT, STR("a\0\x1b\xff\"\\"));
    end(p);
    expect(p, "[{\"text\":\"a\\u0000\\u001B\xef\xbf\xbd\\\"\\\\\",\"type\":\"stdout\"}]");
}

static void test_late_output_is_told_apart(void **state)
{
    struct paper *p = *state;

    doc_event(&p->d, &(struct event){.kind = EVENT_STDOUT, .late = true, .text = STR("old")});
    print(p, EVENT_STDOUT, STR("new"));
    end(p);
    expect(p, "[{\"late\":true,\"text\":\"old\",\"type\":\"stdout\"},"
              "{\"text\":\"new\",\"type\":\"stdout\"}]");
}

static void test_bundles(void **state)
{
    struct event ev = {.kind = EVENT_DISPLAY};
    struct paper *p = *state;

    ev.bundle.part[ev.bundle.count++] = (struct mime_part){STR("text/plain"), STR("\xff")};
    ev.bundle.part[ev.bundle.count++] = (struct mime_part){STR("image/png"), STR("\x89PNG")};
    ev.bundle.part[ev.bundle.count++] = (struct mime_part){STR("image/svg+xml"), STR("<svg/>")};
    ev.bundle.part[ev.bundle.count++] = (struct mime_part){STR("application/json"), STR("{}")};
    ev.bundle.part[ev.bundle.count++] = (struct mime_part){STR("application/pdf"), STR("")};
    ev.bundle.part[ev.bundle.count++] = (struct mime_part){STR("x/\xff"), STR("\0\0")};
    ev.bundle.display_id = STR("d1");
    ev.bundle.update = true;
    doc_event(&p->d, &ev);
    doc_event(&p->d, &(struct event){.kind = EVENT_CLEAR});
    expect(
        p,
        "[{\"data\":{\"application/json\":\"{}\",\"application/pdf\":\"\","
        "\"image/png\":\"iVBORw==\",\"image/svg+xml\":\"<svg/>\",\"text/plain\":\"\xef\xbf\xbd\","
        "\"x/\xef\xbf\xbd\":\"AAA=\"},\"display_id\":\"d1\",\"type\":\"display\",\"update\":true},"
        "{\"type\":\"clear\"}]");
}

static void test_base64(void **state)
{
    static const struct {
        struct str bytes;
        const char *text;
    } rows[] = {
        {STR("f"),            "Zg=="    },
        {STR("fo"),           "Zm8="    },
        {STR("foo"),          "Zm9v"    },
        {STR("foob"),         "Zm9vYg=="},
        {STR("\xff\xff\xff"), "////"    },
        {STR("\xfb\xef\xbe"), "++++"    },
    };
    struct paper *p = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct event ev = {.kind = EVENT_RESULT, .bundle.count = 1};
        json_t *data;
        ev.bundle.part[0] = (struct mime_part){STR("image/png"), rows[i].bytes};
        doc_event(&p->d, &ev);
        data = json_object_get(json_array_get(p->d.transcript.events, i), "data");
        assert_string_equal(json_string_value(json_object_get(data, "image/png")), rows[i].text);
    }
}

static void test_error_and_file(void **state)
{
    struct event ev = {.kind = EVENT_ERROR};
    struct paper *p = *state;

    ev.error.type = STR("ValueError");
    ev.error.message = STR("bad");
    ev.error.traceback = STR("Traceback");
    ev.error.count = 1;
    ev.error.frame[0] = (struct frame){STR("<cell 1>"), 3, STR("<module>"), STR("f()")};
    doc_event(&p->d, &ev);
    ev = (struct event){.kind = EVENT_FILE};
    ev.file.path = STR("a\n\xff");
    ev.file.size = 1ull << 40;
    ev.file.mime = "text/csv";
    ev.file.change = FILE_CHANGED;
    ev.file.too_large = true;
    doc_event(&p->d, &ev);
    expect(p, "[{\"frames\":[{\"file\":\"<cell 1>\",\"function\":\"<module>\",\"line\":3,"
              "\"text\":\"f()\"}],\"message\":\"bad\",\"name\":\"ValueError\","
              "\"traceback\":\"Traceback\",\"type\":\"error\"},"
              "{\"change\":\"changed\",\"mime\":\"text/csv\",\"path\":\"a\\n\xef\xbf\xbd\","
              "\"size\":1099511627776,\"too_large\":true,\"type\":\"file\"}]");
}

static void test_whole_document(void **state)
{
    static const char want[] =
        "{\"version\":1,\"executions\":[{\"kind\":\"cell\",\"source\":\"-c\",\"events\":[],"
        "\"outcome\":{\"status\":\"timeout\",\"limits_hit\":[\"wall_time\",\"output\"],"
        "\"state_lost\":true,\"exit_code\":0,\"message\":\"Too slow.\",\"wall_ms\":1.234,"
        "\"cpu_ms\":null,\"memory_peak_bytes\":5,\"output_bytes\":0,\"output_dropped\":0}}],"
        "\"exit\":124}";
    struct paper *p = *state;
    struct outcome o = {
        .status = OUTCOME_TIMEOUT,
        .limits_hit = IN(LIMIT_WALL) | IN(LIMIT_OUTPUT),
        .state_lost = true,
        .line = "Too slow.",
        .wall_us = 1234,
        .has_memory = true,
        .memory_peak_bytes = 5,
    };
    AUTO_FREE char *got = NULL;

    doc_outcome(&p->d, &o);
    got = doc_print(&p->d, 124, NULL);
    assert_string_equal(got, want);
}

static void test_failure_is_told(void **state)
{
    static const struct err failed = {.kind = ERR_HOST, .text = "no room"};
    struct paper *p = *state;
    AUTO_FREE char *got = NULL;

    end(p);
    got = doc_print(&p->d, 3, &failed);
    assert_has(got, "\"error\":\"no room\",\"exit\":3}");
}

#define ON_PAPER(t) cmocka_unit_test_setup_teardown(t, open_paper, close_paper)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PAPER(test_pieces_become_one), ON_PAPER(test_torn_characters_heal),
        ON_PAPER(test_any_bytes),         ON_PAPER(test_late_output_is_told_apart),
        ON_PAPER(test_bundles),           ON_PAPER(test_base64),
        ON_PAPER(test_error_and_file),    ON_PAPER(test_whole_document),
        ON_PAPER(test_failure_is_told),
    };

    return RUN(tests);
}
