/* The part of an archive's writer that tar and zip share: counting. */
#include "doors/values/archive.h"

#include <stdlib.h>
#include <zlib.h>

void archive_init(struct archive *a, const struct archive_format *format)
{
    *a = (struct archive){.format = format};
    buf_init(&a->directory, ARCHIVE_DIRECTORY_MAX);
}

void archive_done(struct archive *a)
{
    buf_done(&a->directory);
    free(a->name);
}

/* On Windows a backslash parts folders: "..\\..\\x", a plain name here, would leave the folder that
 * an archive is unpacked to. */
static struct str name_of(struct archive *a, struct str path)
{
    size_t n = 0;

    free(take_ptr(&a->name));
    if (!path.n || !memchr(path.p, '\\', path.n))
        return path;
    a->name = mem_zalloc(3 * path.n + 1);
    for (size_t i = 0; i < path.n; i++) {
        bool back = path.p[i] == '\\';
        memcpy(a->name + n, back ? "%5C" : path.p + i, back ? 3 : 1);
        n += back ? 3 : 1;
    }
    return (struct str){a->name, n};
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
    a->now = (struct archive_entry){name_of(a, path), size, mtime_ms, .offset = a->at};
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
