/* Random bytes from the kernel: for ids, names of temporary files, and keys. */
#include "base/base.h"

#include <sys/random.h>

void random_bytes(void *ret, size_t n)
{
    ssize_t got;

    assert(n <= 256);
    do /* so few bytes come whole; only early in a boot is there a wait, and a signal may end it */
        got = getrandom(ret, n, 0);
    while (got < 0 && errno == EINTR);
    assert(got == (ssize_t)n);
}
