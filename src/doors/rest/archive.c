/* The part of an archive's writer that tar and zip share: counting. */
#include "doors/rest/archive.h"

#include <zlib.h>

void archive_init(struct archive *a, const struct archive_format *format)
{
    *a = (struct archive){.format = format};
    buf_init(&a->directory, ARCHIVE_DIRECTORY_MAX);
}

void archive_done(struct archive *a)
{
    buf_done(&a->directory);
}

/* Runs a format's step and counts what it wrote. */
static int step(struct archive *a, int (*fn)(struct archive *, struct buf *, struct err *),
                struct buf *out, struct err *e)
{
    size_t before = out->n;

    if (fn(a, out, e) < 0)
        return -1;
    a->at += out->n - before;
    return 0;
}

int archive_begin(struct archive *a, struct str path, uint64_t size, int64_t mtime_ms,
                  struct buf *out, struct err *e)
{
    a->now = (struct archive_entry){path, size, mtime_ms, .offset = a->at};
    return step(a, a->format->begin, out, e);
}

int archive_finish(struct archive *a, struct buf *out, struct err *e)
{
    a->count++;
    return step(a, a->format->finish, out, e);
}

int archive_end(struct archive *a, struct buf *out, struct err *e)
{
    return step(a, a->format->end, out, e);
}

void archive_bytes(struct archive *a, struct str bytes)
{
    a->at += bytes.n;
    if (a->format->checked)
        a->now.crc = (uint32_t)crc32_z(a->now.crc, (const unsigned char *)bytes.p, bytes.n);
}
