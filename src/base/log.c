/* The log: one line per call on stderr. Each line is one write(), so that lines of several
 * threads and processes do not mix. A warning or an error that repeats is logged once, and the
 * next different line says how often it came: ten thousand files that a full disk refuses are
 * one event for an operator. */
#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 1024
#define LINE_MAX 4096     /* of a pipe: written whole, so that lines do not mix */
#define SAME_US  60000000 /* so long a line is not repeated */

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

static void put_line(enum log_level level, const char *text)
{
    bool json = shape == LOG_JSON;
    char line[LINE_MAX];
    size_t at;

    at = (size_t)put_head(line, sizeof(line), level, json);
    at = put_text(line, at, sizeof(line) - sizeof("\"}\n"), text, json);
    at += (size_t)snprintf(line + at, sizeof(line) - at, json ? "\"}\n" : "\n");
    if (write(STDERR_FILENO, line, at) < 0)
        return; /* nowhere left to say it */
}

/* FNV-1a. Two lines with one hash would cost one of them: a log may have that. */
static uint64_t hash_of(enum log_level level, const char *text)
{
    uint64_t h = 14695981039346656037u + level;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Whether the last warning or error said the same a moment ago. Threads that log at the same time
 * may miss one of each other's: it is written then. */
static bool is_repeated(enum log_level level, const char *text)
{
    static _Atomic uint64_t last;
    static _Atomic int64_t since_us;
    static _Atomic unsigned times;
    uint64_t hash = hash_of(level, text);
    int64_t now_us = time_mono_us();
    char more[64];
    unsigned n;

    if (hash == last && now_us - since_us < SAME_US) {
        times++;
        return true;
    }
    n = atomic_exchange(&times, 0);
    last = hash;
    since_us = now_us;
    if (n > 0) {
        snprintf(more, sizeof(more), "the last warning came %u more times", n);
        put_line(LOG_WARN, more);
    }
    return false;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    if (level > threshold)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (level > LOG_WARN || !is_repeated(level, text))
        put_line(level, text);
}
