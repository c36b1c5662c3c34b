/* Log lines: one each, whatever is quoted, in both formats. */
#include "unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

/* What one line comes out as. */
static const char *logged(enum log_format format, const char *text)
{
    static char ret[8192];
    int pipe_fds[2], was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    ssize_t n;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
    log_set_format(format);
    log_set_level(LOG_INFO);
    log_debug("never");
    log_info("%s", text);
    dup2(was, STDERR_FILENO);
    close(was);
    close(pipe_fds[1]);
    n = read(pipe_fds[0], ret, sizeof(ret) - 1);
    close(pipe_fds[0]);
    assert_true(n > 0);
    ret[n] = '\0';
    assert_ptr_equal(strchr(ret, '\n'), ret + n - 1); /* one line, ended */
    return ret;
}

static void test_text(void **state)
{
    (void)state;
    assert_has(logged(LOG_TEXT, "caf\xc3\xa9 \"x\""), " info: caf\xc3\xa9 \"x\"\n");
    assert_has(logged(LOG_TEXT, "a\nb\x1b[2J\x7f\xff"), " info: a\\x0ab\\x1b[2J\\x7f\\xff\n");
}

static void test_json(void **state)
{
    static const struct {
        const char *said, *msg;
    } rows[] = {
        {"plain",        "plain"                   },
        {"a \"b\" \\ c", "a \"b\" \\ c"            },
        {"a\nb\x1b\x01", "a\nb\x1b\x01"            },
        {"caf\xc3\xa9",  "caf\xc3\xa9"             },
        {"\xff\xc3",     "\xef\xbf\xbd\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *line = json_loads(logged(LOG_JSON, rows[i].said), 0, NULL);
        assert_non_null(line);
        assert_string_equal(json_string_value(json_object_get(line, "msg")), rows[i].msg);
        assert_string_equal(json_string_value(json_object_get(line, "level")), "info");
        assert_int_equal(strlen(json_string_value(json_object_get(line, "ts"))),
                         strlen("2024-05-01T12:00:00.000Z"));
        assert_int_equal(json_integer_value(json_object_get(line, "pid")), getpid());
        json_decref(line);
    }
}

/* A flood is cut, and what is left is still a line of its kind. */
static void test_long(void **state)
{
    char text[6000];
    json_t *line;

    (void)state;
    memset(text, '\x01', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    line = json_loads(logged(LOG_JSON, text), 0, NULL);
    assert_non_null(line);
    assert_true(json_string_length(json_object_get(line, "msg")) > 500);
    json_decref(line);
    assert_true(strlen(logged(LOG_TEXT, text)) <= 4096);
}

/* What log_warn() said of each text comes out as, as text. */
static const char *warned(const char *const *texts, size_t count)
{
    static char ret[8192];
    int pipe_fds[2], was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    ssize_t n;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
    log_set_format(LOG_TEXT);
    for (size_t i = 0; i < count; i++)
        log_warn("%s", texts[i]);
    dup2(was, STDERR_FILENO);
    close(was);
    close(pipe_fds[1]);
    n = read(pipe_fds[0], ret, sizeof(ret) - 1);
    close(pipe_fds[0]);
    ret[n > 0 ? n : 0] = '\0';
    return ret;
}

static size_t lines_of(const char *text)
{
    size_t n = 0;

    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* A warning that comes again is one line; the next one tells how often it came. */
static void test_repeated(void **state)
{
    static const char *const texts[] = {"full", "full", "full", "full", "other", "full"};
    const char *said = warned(texts, COUNT(texts));

    (void)state;
    assert_int_equal(lines_of(said), 4);
    assert_has(said, " warn: full\n");
    assert_has(said, " warn: the last warning came 3 more times\n");
    assert_has(said, " warn: other\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_repeated),
    };

    return RUN(tests);
}
