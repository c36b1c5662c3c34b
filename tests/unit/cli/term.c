/* What reaches a terminal, and what only a pipe. */
#include "cli/cli_int.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct screen {
    struct term t;
    int pipe[2];
    char text[8192];
};

static int open_screen(void **state)
{
    static struct screen s;

    *state = &s;
    if (pipe2(s.pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    term_init(&s.t, s.pipe[1], true);
    return 0;
}

static int close_screen(void **state)
{
    struct screen *s = *state;

    fd_closep(&s->pipe[0]);
    fd_closep(&s->pipe[1]);
    return 0;
}

static struct str screen(struct screen *s)
{
    ssize_t n = read(s->pipe[0], s->text, sizeof(s->text));

    return (struct str){s->text, n < 0 ? 0 : (size_t)n};
}

#define RED "\x1b[31m"
#define OFF "\x1b[0m"

static const struct row {
    struct str printed, shown;
} rows[] = {
    {STR("text\twith\r\nlines\n"),                                 STR("text\twith\r\nlines\n")     },
    {STR(RED "red" OFF),                                           STR(RED "red" OFF)               },
    {STR("\x1b[38;5;1m\x1b[4:3mx" OFF),                            STR("\x1b[38;5;1m\x1b[4:3mx" OFF)},
    {STR("\x1b[2J\x1b[1;1Hgone"),                                  STR("gone")                      },
    {STR("\x1b[?25l\x1b[>4;2mx"),                                  STR("x")                         },
    {STR("\x1b]0;title\x07x"),                                     STR("x")                         },
    {STR("\x1b]8;;http://a\x1b\\link"),                            STR("link")                      },
    {STR("\x1b]52;c;ZXZpbA==\x07"),                                STR("")                          }, /* clipboard */
    {STR("\x1bP+q544e\x1b\\x"),                                    STR("x")                         },
    {STR("\x1b_a\x1b\\\x1b^b\x1b\\\x1bXc\x1b\\x"),                 STR("x")                         },
    {STR("\x1b]never closed\nnext"),                               STR("next")                      },
    {STR("\x1b[6n\x1b[c\x1b"
         "c"
         "x"),
     STR("x")                                                                                       }, /* asks for answers */
    {STR("\x1b\x1b[31m" OFF),                                      STR(RED OFF)                     },
    {STR("a\bb\ac\x0e"
         "d\x7f"
         "e\0f"),
     STR("abcdef")                                                                                  },
    {STR("\xc2\x9b"
         "2Jx"),
     STR("2Jx")                                                                                     }, /* C1 */
    {STR("\xc2\xa0\xe2\x82\xac"),                                  STR("\xc2\xa0\xe2\x82\xac")      },
    {STR("a\xff\x9bz"),                                            STR("a\xef\xbf\xbd\xef\xbf\xbdz")},
    {STR("\x1b[3"
         "\xc3\xa9"
         "1m"),
     STR("\xc3\xa9"
         "1m")                                                                                      },
    {STR("\x1b[1111111111111111111111111111111111111111111111mx"), STR("x")                         },
};

static void test_filter(void **state)
{
    struct screen *s = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str got;
        term_guest(&s->t, rows[i].printed);
        s->t.coloured = false;
        term_settle(&s->t);
        got = screen(s);
        if (!str_eq(got, rows[i].shown))
            fail_msg("row %zu shows '%.*s'", i, (int)got.n, got.p);
    }
}

/* It makes no difference where the pipe cut the output. */
static void test_filter_byte_by_byte(void **state)
{
    struct screen *s = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str got;
        for (size_t j = 0; j < rows[i].printed.n; j++)
            term_guest(&s->t, (struct str){rows[i].printed.p + j, 1});
        s->t.coloured = false;
        term_settle(&s->t);
        got = screen(s);
        if (!str_eq(got, rows[i].shown))
            fail_msg("row %zu shows '%.*s'", i, (int)got.n, got.p);
    }
}

static void test_pipe_gets_everything(void **state)
{
    struct screen *s = *state;

    s->t.tty = false;
    term_guest(&s->t, STR("\x1b[2J\xff\0"));
    assert_str(screen(s), "\x1b[2J\xff\0");
}

static void test_colours_end_with_the_code(void **state)
{
    struct screen *s = *state;

    term_guest(&s->t, STR(RED "red"));
    term_line(&s->t, "ours");
    assert_str(screen(s), RED "red" OFF "\nours\n");
    term_line(&s->t, "more");
    assert_str(screen(s), "more\n");
}

static void test_line_stays_one_line(void **state)
{
    struct screen *s = *state;

    term_guest(&s->t, STR("\x1b]half a title"));
    term_line(&s->t, "retort: %s", "a\nretort: forged\x1b[2J");
    assert_str(screen(s), "retort: a retort: forged\n");
}

static void test_long_output(void **state)
{
    struct screen *s = *state;
    char text[6000];

    memset(text, 'x', sizeof(text));
    term_guest(&s->t, (struct str){text, sizeof(text)});
    assert_int_equal(screen(s).n, sizeof(text));
}

static void test_reader_gone(void **state)
{
    struct screen *s = *state;

    signal(SIGPIPE, SIG_IGN);
    fd_closep(&s->pipe[0]);
    term_guest(&s->t, STR("x"));
    assert_true(s->t.failed);
    assert_int_equal(s->t.sys, EPIPE);
    term_line(&s->t, "nobody hears this");
}

#define ON_SCREEN(t) cmocka_unit_test_setup_teardown(t, open_screen, close_screen)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCREEN(test_filter),
        ON_SCREEN(test_filter_byte_by_byte),
        ON_SCREEN(test_pipe_gets_everything),
        ON_SCREEN(test_colours_end_with_the_code),
        ON_SCREEN(test_line_stays_one_line),
        ON_SCREEN(test_long_output),
        ON_SCREEN(test_reader_gone),
    };

    return RUN(tests);
}
