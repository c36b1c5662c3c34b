/*
 * Cells from a person at a terminal, or line by line from a pipe: `retort repl`.
 *
 * One line is one cell, unless the line leaves a block, a bracket or a triple quote open, or
 * ends in a backslash. Then an empty line ends the cell. Python itself reports any other
 * mistake.
 */
#include "cli/remote.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_interrupt(int signum)
{
    (void)signum; /* ends read(), and with it the cell that was being typed */
}

/* Brackets and triple quotes that are open at the end of the text. */
static bool is_open(struct str s)
{
    int depth = 0;
    char quote = 0;
    bool triple = false;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool three = i + 2 < s.n && s.p[i + 1] == c && s.p[i + 2] == c;
        if (quote && c == '\\') {
            i++;
        } else if (quote) {
            if ((c == quote && (!triple || three)) || (c == '\n' && !triple)) {
                i += triple ? 2 : 0;
                quote = 0;
            }
        } else if (c == '\'' || c == '"') {
            quote = c;
            triple = three;
            i += three ? 2 : 0;
        } else if (c == '#') {
            while (i + 1 < s.n && s.p[i + 1] != '\n')
                i++;
        } else {
            depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        }
    }
    return depth > 0 || (quote && triple);
}

/* Its last character that is no space, before a comment is looked for: 0 when it is blank. */
static char last_char(struct str line)
{
    while (line.n > 0 && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t'))
        line.n--;
    if (line.n == 0)
        return 0;
    return line.p[line.n - 1];
}

/* Whether its first line begins something that an empty line has to end. */
static bool is_block(struct str cell)
{
    const char *end = cell.n > 0 ? memchr(cell.p, '\n', cell.n) : NULL;
    struct str line = {cell.p, end ? (size_t)(end - cell.p) : cell.n};

    return last_char(line) == ':' || (cell.n > 0 && cell.p[0] == '@') ||
           (cell.n > 1 && cell.p[0] == '%' && cell.p[1] == '%');
}

bool repl_is_whole(struct str cell)
{
    size_t begin = cell.n, first = 0;
    struct str line;

    while (begin > 0 && cell.p[begin - 1] != '\n')
        begin--;
    line = str_from(cell, begin);
    while (first < cell.n && (cell.p[first] == ' ' || cell.p[first] == '\n'))
        first++;
    if (first < cell.n && (cell.p[first] == '!' || (cell.p[first] == '%' && first + 1 < cell.n &&
                                                    cell.p[first + 1] != '%')))
        return last_char(line) != '\\'; /* !command and %magic are lines */
    if (is_open(cell) || last_char(line) == '\\')
        return false;
    if (last_char(line) == 0)
        return true; /* an empty line ends whatever was begun */
    return !is_block(str_from(cell, first));
}

/* Reads up to a newline into ret: 1, 0 at the end of input, -1 interrupted. */
static int read_line(struct repl *in, struct buf *ret)
{
    for (;;) {
        const char *newline = in->rest.n ? memchr(in->rest.p, '\n', in->rest.n) : NULL;
        char *room;
        ssize_t n;

        if (newline || (in->over && in->rest.n > 0)) {
            size_t len = newline ? (size_t)(newline - in->rest.p) : in->rest.n;
            size_t used = len + (newline != NULL);
            buf_put(ret, (struct str){in->rest.p, len});
            memmove(in->rest.p, in->rest.p + used, in->rest.n - used);
            in->rest.n -= used;
            return 1;
        }
        if (in->over)
            return 0;
        room = buf_room(&in->rest, 64 * KiB);
        if (!room)
            return 0;
        n = read(STDIN_FILENO, room, 64 * KiB);
        if (n < 0 && errno == EINTR)
            return -1;
        in->over = n <= 0;
        in->rest.n += n > 0 ? (size_t)n : 0;
    }
}

static void prompt(const char *text)
{
    if (isatty(STDIN_FILENO)) {
        fputs(text, stdout);
        fflush(stdout);
    }
}

void repl_init(struct repl *in)
{
    *in = (struct repl){0};
    buf_init(&in->rest, EXEC_CODE_MAX);
}

void repl_done(struct repl *in)
{
    buf_done(&in->rest);
}

bool repl_read(struct repl *in, struct source *ret)
{
    AUTO(buf_done) struct buf cell = BUF(EXEC_CODE_MAX);
    struct sigaction mine = {.sa_handler = on_interrupt}, before;
    int rc;

    sigaction(SIGINT, &mine, &before);
    prompt(">>> ");
    while ((rc = read_line(in, &cell)) != 0) {
        if (rc < 0) {
            buf_clear(&cell);
            in->rest.n = 0;
            prompt("\n>>> ");
            continue;
        }
        if (cell.n == 0) {
            prompt(">>> ");
            continue;
        }
        if (repl_is_whole(buf_str(&cell)))
            break;
        buf_put(&cell, STR("\n"));
        prompt("... ");
    }
    sigaction(SIGINT, &before, NULL);
    if (cell.n == 0) {
        prompt("\n");
        return false;
    }
    *ret = (struct source){
        .kind = EXEC_CELL, .label = "-", .code = mem_strndup(buf_str(&cell)), .n = cell.n};
    return true;
}

/* In a named session of a server; without a name run.c asks for the cells. */
static int repl_remote(const struct settings *s)
{
    struct inputs inputs = {0};
    struct remote *r = NULL;
    struct source src;
    struct repl in;
    struct err e;
    int status = EXIT_OK, rc = 0;

    repl_init(&in);
    if (inputs_open(&inputs, s, &e) == 0)
        r = remote_open(s, &inputs, &e);
    while (r && rc == 0 && repl_read(&in, &src)) {
        rc = remote_run(r, &src, &status, &e);
        free(src.code);
    }
    if (!r || rc < 0)
        status = command_failed(&e);
    remote_close(r);
    inputs_done(&inputs);
    repl_done(&in);
    return status;
}

int repl_main(const struct settings *s)
{
    if (isatty(STDIN_FILENO))
        printf("retort %s. An empty line ends a block, Ctrl-C interrupts, Ctrl-D ends%s.\n",
               RETORT_VERSION, s->session ? "; the session stays" : "");
    fflush(stdout);
    return s->session ? repl_remote(s) : run_cells(s, true);
}
