/*
 * A zip archive from a stranger: names stay inside the archive's bytes, an entry unpacks to as many
 * bytes as it says or is refused, and a refusal is the caller's.
 *
 * links: src/doors/anthropic/unzip.c
 */
#include "doors/anthropic/unzip.h"

#include "support/fuzz.h"

#define LARGE ((size_t)1 * MiB) /* what says to be larger is not read: only that takes time */

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    size_t *n = arg;

    (void)e;
    touch(bytes);
    *n += bytes.n;
    return 0;
}

static void read_entry(const struct zip *z, const struct zip_entry *entry, struct err *e)
{
    size_t n = 0;
    int rc = zip_read(z, entry, on_bytes, &n, e);

    EXPECT(rc < 0 ? e->kind == ERR_CALLER && strlen(e->text) > 0 : n == entry->size);
    EXPECT(n <= entry->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct zip z;
    struct zip_entry entry;
    struct err e = {0};
    int rc = 0;

    if (zip_open(&z, bytes, &e) == 0) {
        while ((rc = zip_next(&z, &entry, &e)) > 0) {
            struct err damaged = {0};
            EXPECT(entry.name.n > 0 && entry.name.p >= bytes.p &&
                   entry.name.p + entry.name.n <= bytes.p + bytes.n);
            if (entry.size <= LARGE)
                read_entry(&z, &entry, &damaged);
        }
        EXPECT(rc == 0 || e.kind == ERR_CALLER);
    } else {
        EXPECT(e.kind == ERR_CALLER);
    }
    return 0;
}
