/* Allocation that never returns NULL (the process ends instead), and buffers that grow up to a
 * ceiling. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

void mem_freep(void *pp)
{
    void **p = pp;
    int saved = errno;

    free(*p);
    *p = NULL;
    errno = saved;
}

void *mem_realloc(void *p, size_t n)
{
    void *grown = realloc(p, n ? n : 1);

    if (!grown)
        abort();
    return grown;
}

void *mem_zalloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        abort();
    return p;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(str_of(s));
}

char *mem_strndup(struct str s)
{
    char *copy = mem_zalloc(s.n + 1);

    if (s.n > 0)
        memcpy(copy, s.p, s.n);
    return copy;
}

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    mem_freep(&b->p);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->full = false;
}

char *buf_room(struct buf *b, size_t n)
{
    if (n > b->max || b->n > b->max - n)
        return NULL;
    if (b->n + n > b->cap || !b->p) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap < b->n + n)
            cap *= 2;
        b->p = mem_realloc(b->p, cap);
        b->cap = cap;
    }
    return b->p + b->n;
}

int buf_put(struct buf *b, struct str s)
{
    char *at = b->full ? NULL : buf_room(b, s.n);

    b->full = !at;
    if (!at)
        return -1;
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    b->n += s.n;
    return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    char *at;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    at = n < 0 || b->full ? NULL : buf_room(b, (size_t)n + 1);
    b->full = !at;
    if (at) {
        vsnprintf(at, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    return at ? 0 : -1;
}

int buf_check(const struct buf *b, struct err *e)
{
    return b->full ? err_set(e, ERR_LIMIT, "more than %zu bytes", b->max) : 0;
}

struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->n};
}
