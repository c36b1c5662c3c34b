#include "base/base.h"

#include <stdio.h>
#include <unistd.h>

static enum log_level threshold = LOG_WARN;

void log_set_level(enum log_level level)
{
    threshold = level;
}

/* One write per line, so that lines of several processes do not mix. Control
 * bytes become '?': a name chosen by a stranger must not forge a second line. */
void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char line[1024];
    va_list ap;
    int at, n;

    if (level > threshold)
        return;
    at = snprintf(line, sizeof(line), "retort[%d] %s: ", (int)getpid(), names[level]);
    va_start(ap, fmt);
    n = vsnprintf(line + at, sizeof(line) - (size_t)at - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    n = (int)strlen(line);
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nowhere left to say it */
}
