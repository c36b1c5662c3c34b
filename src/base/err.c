/* Errors: a kind, and a sentence that grows on its way up. */
#include "base/base.h"

#include <stdio.h>

bool err_will_pass(const struct err *e)
{
    return e->kind == ERR_BUSY || e->kind == ERR_AWAY;
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    e->kind = kind;
    e->sys = 0;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;
    int n;

    e->kind = ERR_HOST;
    e->sys = saved;
    va_start(ap, fmt);
    n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", strerror(saved));
    errno = saved;
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof(e->text)];
    va_list ap;
    int n;

    memcpy(inner, e->text, sizeof(inner));
    va_start(ap, fmt);
    n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", inner);
    return -1;
}
