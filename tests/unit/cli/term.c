/* What reaches a terminal, and what only a pipe. */
#include "cli/cli_int.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct screen {
    struct outbox box;
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
    outbox_init(&s.box);
    term_init(&s.t, &s.box, s.pipe[1], true);
    return 0;
}

static int close_screen(void **state)
{
    struct screen *s = *state;

    outbox_done(&s->box);
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

/* Octal escapes: they end after three digits, whatever follows. */
static const struct row {
    struct str printed, shown;
} rows[] = {
    {STR("text\twith\r\nlines\n"),                           STR("text\twith\r\nlines\n")     },
    {STR(RED "red" OFF),                                     STR(RED "red" OFF)               },
    {STR("\033[38;5;1m\033[4:3mx" OFF),                      STR("\033[38;5;1m\033[4:3mx" OFF)},
    {STR("\033[2J\033[1;1Hgone"),                            STR("gone")                      },
    {STR("\033[?25l\033[>4;2mx"),                            STR("x")                         },
    {STR("\033]0;title\007x"),                               STR("x")                         },
    {STR("\033]8;;http://a\033\\link"),                      STR("link")                      },
    {STR("\033]52;c;ZXZpbA==\007"),                          STR("")                          }, /* the clipboard */
    {STR("\033P+q544e\033\\x"),                              STR("x")                         },
    {STR("\033_a\033\\\033^b\033\\\033Xc\033\\x"),           STR("x")                         },
    {STR("\033]never closed\nnext"),                         STR("next")                      },
    {STR("\033[6n\033[c\033cx"),                             STR("x")                         }, /* these make it answer */
    {STR("\033\033[31m" OFF),                                STR(RED OFF)                     },
    {STR("a\bb\ac\016d\177e\0f"),                            STR("abcdef")                    },
    {STR("\302\2332Jx"),                                     STR("2Jx")                       }, /* CSI in one character */
    {STR("\302\240\342\202\254"),                            STR("\302\240\342\202\254")      },
    {STR("a\377\233z"),                                      STR("a\357\277\275\357\277\275z")},
    {STR("\033[3\303\2511m"),                                STR("\303\2511m")                },
    {STR("\033[1111111111111111111111111111111111111111mx"), STR("x")                         },
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
