/* The log: one line per call on stderr. Each line is one write(), so that those of several threads
 * and processes do not mix. */
#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 1024
#define LINE_MAX 4096 /* of a pipe: written whole, so that lines do not mix */

static _Atomic enum log_level threshold = LOG_WARN;
static _Atomic enum log_format shape = LOG_TEXT;
static const char *const names[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_set_format(enum log_format format)
{
    shape = format;
}

/* One character of a stranger's as it may stand in a line: control characters escaped, so that a
 * name cannot forge a second line or speak to a terminal; bytes that are no UTF-8 likewise. Returns
 * how many bytes of s it took. */
static size_t escape(struct str s, bool json, char *ret, size_t size)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c < 0x80 ? 1 : utf8_char(s);

    if (n == 0)
        snprintf(ret, size, json ? "\\ufffd" : "\\x%02x", c);
    else if (c < ' ' || c == 0x7f)
        snprintf(ret, size, json ? "\\u%04x" : "\\x%02x", c);
    else if (json && (c == '"' || c == '\\'))
        snprintf(ret, size, "\\%c", c);
    else
        snprintf(ret, size, "%.*s", (int)n, s.p);
    return n > 0 ? n : 1;
}

static size_t put_text(char *line, size_t at, size_t end, const char *text, bool json)
{
    struct str left = str_of(text);

    while (left.n > 0) {
        char piece[8];
        size_t n = escape(left, json, piece, sizeof(piece));
        size_t len = strlen(piece);
        if (at + len > end)
            break;
        for (size_t i = 0; i < len; i++)
            line[at++] = piece[i];
        left.p += n;
        left.n -= n;
    }
    return at;
}

static int put_head(char *ret, size_t size, enum log_level level, bool json)
{
    struct timespec now;
    struct tm t;

    if (!json)
        return snprintf(ret, size, "retort[%d] %s: ", (int)getpid(), names[level]);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &t);
    return snprintf(
        ret, size,
        "{\"ts\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ\",\"level\":\"%s\",\"pid\":%d,\"msg\":\"",
        t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
        now.tv_nsec / 1000000, names[level], (int)getpid());
}

void log_line(enum log_level level, const char *fmt, ...)
{
    bool json = shape == LOG_JSON;
    char text[TEXT_MAX], line[LINE_MAX];
    size_t at;
    va_list ap;

    if (level > threshold)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    at = (size_t)put_head(line, sizeof(line), level, json);
    at = put_text(line, at, sizeof(line) - sizeof("\"}\n"), text, json);
    at += (size_t)snprintf(line + at, sizeof(line) - at, json ? "\"}\n" : "\n");
    if (write(STDERR_FILENO, line, at) < 0)
        return; /* nowhere left to say it */
}
