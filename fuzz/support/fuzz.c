#include "support/fuzz.h"

#include <fcntl.h>
#include <stdio.h>

void fuzz_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

uint8_t feed_byte(struct feed *f)
{
    if (f->n == 0)
        return 0;
    f->n--;
    return *f->p++;
}

uint64_t feed_num(struct feed *f, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)feed_byte(f) << (8 * i);
    return v;
}

struct str feed_text(struct feed *f, size_t n)
{
    struct str s = {(const char *)f->p, n < f->n ? n : f->n};

    f->p += s.n;
    f->n -= s.n;
    return s;
}

unsigned fds_open(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

void touch(struct str s)
{
    static volatile unsigned char sink;

    for (size_t i = 0; i < s.n; i++)
        sink = (unsigned char)(sink + (unsigned char)s.p[i]);
}
