/*
 * One output stream of ours. Into a pipe or a file the guest's bytes go as they
 * are. A terminal obeys escape sequences (it can be made to retitle itself, to
 * answer on stdin, to repaint what was said before), so to a terminal go only
 * text, newline, tab, carriage return, and the sequences that set colours.
 */
#include "cli/cli_int.h"

#include <stdio.h>

#define ESC '\033'
#define BEL '\007'

void term_init(struct term *t, struct outbox *box, int fd, bool tty)
{
    *t = (struct term){.box = box, .fd = fd, .tty = tty};
}

void term_put(struct term *t, struct str s)
{
    if (s.n == 0)
        return;
    outbox_put(t->box, t, s);
    t->mid_line = s.p[s.n - 1] != '\n';
}

/* --- the filter --- */

/* What has been let through and not been written. */
struct passed {
    struct term *t;
    size_t n;
    char bytes[4096];
};

static void pass(struct passed *out, struct str s)
{
    if (out->n + s.n > sizeof(out->bytes)) {
        term_put(out->t, (struct str){out->bytes, out->n});
        out->n = 0;
    }
    memcpy(out->bytes + out->n, s.p, s.n);
    out->n += s.n;
}

/* Keeps a byte of an unfinished sequence; one too long to keep is no colour anyway. */
static void hold(struct term *t, char c)
{
    if (t->held_n < sizeof(t->held))
        t->held[t->held_n++] = c;
}

static bool is_colour(struct str sequence)
{
    static const char parameters[] = "0123456789;:";

    if (sequence.p[sequence.n - 1] != 'm')
        return false;
    for (size_t i = 2; i < sequence.n - 1; i++)
        if (!memchr(parameters, sequence.p[i], sizeof(parameters) - 1))
            return false;
    return true;
}

static void on_csi(struct term *t, struct passed *out, char c)
{
    hold(t, c);
    if (c < '@' && c >= ' ')
        return; /* parameters */
    t->state = TERM_TEXT;
    if (t->held_n < sizeof(t->held) && is_colour((struct str){t->held, t->held_n})) {
        pass(out, (struct str){t->held, t->held_n});
        t->coloured = true;
    }
    t->held_n = 0;
}

/* Operating system commands and their like last until BEL or ESC \. A newline ends them too, so
 * that one left open cannot swallow what comes after. */
static void on_string(struct term *t, char c)
{
    if (c == BEL || c == '\n')
        t->state = TERM_TEXT;
    else if (c == ESC)
        t->state = TERM_ESC;
}

static void on_esc(struct term *t, char c)
{
    t->held_n = 0;
    t->state = TERM_TEXT;
    if (c == '[') {
        t->state = TERM_CSI;
        hold(t, ESC);
        hold(t, '[');
    } else if (c == ESC) {
        t->state = TERM_ESC;
    } else if (c != '\0' && strchr("]PX^_", c)) {
        t->state = TERM_STRING;
    }
}

static void on_ascii(struct term *t, struct passed *out, char c)
{
    switch (t->state) {
    case TERM_TEXT:
        if (c == ESC)
            t->state = TERM_ESC;
        else if ((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t' || c == '\r')
            pass(out, (struct str){&c, 1});
        return;
    case TERM_ESC:
        on_esc(t, c);
        return;
    case TERM_CSI:
        on_csi(t, out, c);
        return;
    case TERM_STRING:
        on_string(t, c);
        return;
    }
}

static void on_wide(struct term *t, struct passed *out, struct str ch)
{
    bool c1 = ch.n == 2 && ch.p[0] == '\xc2' && (unsigned char)ch.p[1] < 0xa0;

    if (t->state == TERM_STRING)
        return;
    t->state = TERM_TEXT;
    t->held_n = 0;
    if (!c1)
        pass(out, ch.n ? ch : STR("\xef\xbf\xbd"));
}

static void filter(struct term *t, struct str s)
{
    struct passed out = {.t = t};

    while (s.n > 0) {
        size_t n = utf8_char(s);

        if (n == 1)
            on_ascii(t, &out, s.p[0]);
        else
            on_wide(t, &out, (struct str){s.p, n});
        s.p += n ? n : 1;
        s.n -= n ? n : 1;
    }
    term_put(t, (struct str){out.bytes, out.n});
}

void term_guest(struct term *t, struct str s)
{
    if (!t->tty || s.n == 0) {
        term_put(t, s);
        return;
    }
    /* A character cut in two by the end of a read is completed by the next one. */
    AUTO_FREE char *whole = mem_zalloc(t->torn_n + s.n);
    memcpy(whole, t->torn, t->torn_n);
    memcpy(whole + t->torn_n, s.p, s.n);
    s = (struct str){whole, t->torn_n + s.n};
    t->torn_n = utf8_torn(s);
    s.n -= t->torn_n;
    memcpy(t->torn, s.p + s.n, t->torn_n);
    filter(t, s);
}

void term_settle(struct term *t)
{
    if (t->torn_n > 0)
        filter(t, (struct str){t->torn, t->torn_n});
    if (t->coloured) {
        bool mid_line = t->mid_line;
        term_put(t, STR("\033[0m"));
        t->mid_line = mid_line;
    }
    t->state = TERM_TEXT;
    t->coloured = false;
    t->held_n = t->torn_n = 0;
}

void term_line(struct term *t, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    n = (int)strlen(line);
    for (int i = 0; i < n; i++)
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
    line[n++] = '\n';
    term_settle(t);
    if (t->mid_line)
        term_put(t, STR("\n"));
    term_guest(t, (struct str){line, (size_t)n});
}
