/* What makes a forked interpreter cheap: see heap_plug() and heap_freeze() in guest.h. */
#include "guest/guest.h"

#include <malloc.h>
#include <stdlib.h>

void heap_plug(void)
{
    char *high = NULL;

    malloc_trim(0);
    for (int i = 0; i < 64; i++) {
        char *p = malloc(120000);
        if (p > high)
            high = p;
    }
    /* Never freed, by intent: each allocation below the high mark fills a hole for good. */
    for (size_t size = 120000; size >= 24; size -= size > 4096 ? 512 : 16) {
        for (;;) {
            char *p = malloc(size);
            if (!p || p > high)
                break;
        }
    }
}

int heap_freeze(struct err *e)
{
    return err_set(e, ERR_HOST, "not supported");
}
