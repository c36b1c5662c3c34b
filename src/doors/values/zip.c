/*
 * zip, written front to back: files are stored as they are, and their checksum
 * follows them in a data descriptor. Sizes and offsets of 4 GiB and more, and more
 * than 65,534 files, are in the zip64 fields. APPNOTE 6.3.9 has the layout.
 */
#include "doors/values/archive.h"

#include <time.h>
#include <zlib.h>

#define MAX32 0xffffffffull
#define MAX16 0xffffull

enum { FLAG_DESCRIPTOR = 1 << 3, FLAG_UTF8 = 1 << 11 };
enum { VERSION = 20, VERSION_64 = 45, MADE_ON_UNIX = 3 << 8 };

/* Little-endian numbers, as many bytes each as it says. */
struct record {
    unsigned char p[128];
    size_t n;
};

static void put(struct record *w, unsigned bytes, uint64_t v)
{
    assert(w->n + bytes <= sizeof(w->p));
    for (unsigned i = 0; i < bytes; i++)
        w->p[w->n++] = (unsigned char)(v >> (8 * i));
}

static struct str record_str(const struct record *w)
{
    return (struct str){(const char *)w->p, w->n};
}

static uint64_t at_most(uint64_t v, uint64_t max)
{
    return v < max ? v : max;
}

static bool is_large(const struct archive_entry *entry)
{
    return entry->size >= MAX32;
}

/* --- what local header and directory have in common --- */

/* MS-DOS has no year before 1980 and two seconds at a time; the UT field has the rest. */
static uint32_t dos_time(int64_t mtime_ms)
{
    time_t s = (time_t)(mtime_ms / 1000);
    struct tm tm = {0};

    if (!gmtime_r(&s, &tm) || tm.tm_year < 80 || tm.tm_year > 207)
        return 1u << 21 | 1u << 16;
    return (uint32_t)(tm.tm_year - 80) << 25 | (uint32_t)(tm.tm_mon + 1) << 21 |
           (uint32_t)tm.tm_mday << 16 | (uint32_t)tm.tm_hour << 11 | (uint32_t)tm.tm_min << 5 |
           (uint32_t)tm.tm_sec / 2;
}

/* Version needed, flags, method, time. */
static void put_common(struct record *w, const struct archive_entry *entry, bool zip64)
{
    bool utf8 = str_utf8_len(entry->path) == entry->path.n;

    put(w, 2, zip64 ? VERSION_64 : VERSION);
    put(w, 2, FLAG_DESCRIPTOR | (utf8 ? FLAG_UTF8 : 0));
    put(w, 2, 0); /* stored */
    put(w, 4, dos_time(entry->mtime_ms));
}

static void put_extra_time(struct record *x, const struct archive_entry *entry)
{
    int64_t s = entry->mtime_ms / 1000;

    put(x, 2, 0x5455);
    put(x, 2, 5);
    put(x, 1, 1); /* the modification time alone */
    put(x, 4, s < 0 ? 0 : at_most((uint64_t)s, INT32_MAX));
}

static int put_all(struct buf *out, const struct record *w, struct str name, const struct record *x,
                   struct err *e)
{
    buf_put(out, record_str(w));
    buf_put(out, name);
    buf_put(out, record_str(x));
    return buf_check(out, e);
}

/* --- before and after a file --- */

static int begin(struct archive *a, struct buf *out, struct err *e)
{
    const struct archive_entry *entry = &a->now;
    bool large = is_large(entry);
    struct record w = {0}, x = {0};

    a->now.crc = (uint32_t)crc32(0, NULL, 0);
    if (large) { /* its presence also makes the descriptor's sizes 8 bytes long */
        put(&x, 2, 1);
        put(&x, 2, 16);
        put(&x, 8, entry->size);
        put(&x, 8, entry->size);
    }
    put_extra_time(&x, entry);
    put(&w, 4, 0x04034b50);
    put_common(&w, entry, large);
    put(&w, 4, 0); /* CRC and sizes: see the descriptor */
    put(&w, 4, large ? MAX32 : 0);
    put(&w, 4, large ? MAX32 : 0);
    put(&w, 2, entry->path.n);
    put(&w, 2, x.n);
    return put_all(out, &w, entry->path, &x, e);
}

static int put_directory(struct archive *a, struct err *e)
{
    const struct archive_entry *entry = &a->now;
    bool large = is_large(entry), far = entry->offset >= MAX32;
    struct record w = {0}, x = {0};

    if (large || far) {
        put(&x, 2, 1);
        put(&x, 2, (large ? 16 : 0) + (far ? 8 : 0));
        if (large) {
            put(&x, 8, entry->size);
            put(&x, 8, entry->size);
        }
        if (far)
            put(&x, 8, entry->offset);
    }
    put_extra_time(&x, entry);
    put(&w, 4, 0x02014b50);
    put(&w, 2, MADE_ON_UNIX | VERSION_64);
    put_common(&w, entry, large || far);
    put(&w, 4, entry->crc);
    put(&w, 4, at_most(entry->size, MAX32));
    put(&w, 4, at_most(entry->size, MAX32));
    put(&w, 2, entry->path.n);
    put(&w, 2, x.n);
    put(&w, 2, 0);              /* comment */
    put(&w, 2, 0);              /* disk */
    put(&w, 2, 0);              /* no more is known of the content */
    put(&w, 4, 0100644u << 16); /* a regular file, as Unix says it */
    put(&w, 4, at_most(entry->offset, MAX32));
    return put_all(&a->directory, &w, entry->path, &x, e);
}

static int finish(struct archive *a, struct buf *out, struct err *e)
{
    unsigned width = is_large(&a->now) ? 8 : 4;
    struct record w = {0};

    put(&w, 4, 0x08074b50);
    put(&w, 4, a->now.crc);
    put(&w, width, a->now.size);
    put(&w, width, a->now.size);
    buf_put(out, record_str(&w));
    return put_directory(a, e) < 0 ? -1 : buf_check(out, e);
}

/* --- the end --- */

static void put_end64(struct record *w, const struct archive *a)
{
    put(w, 4, 0x06064b50);
    put(w, 8, 44); /* bytes of this record that follow */
    put(w, 2, MADE_ON_UNIX | VERSION_64);
    put(w, 2, VERSION_64);
    put(w, 4, 0); /* disks */
    put(w, 4, 0);
    put(w, 8, a->count);
    put(w, 8, a->count);
    put(w, 8, a->directory.n);
    put(w, 8, a->at);
    put(w, 4, 0x07064b50); /* where the record above begins */
    put(w, 4, 0);
    put(w, 8, a->at + a->directory.n);
    put(w, 4, 1);
}

static int end(struct archive *a, struct buf *out, struct err *e)
{
    struct record w = {0};

    if (a->count >= MAX16 || a->at >= MAX32 || a->directory.n >= MAX32)
        put_end64(&w, a);
    put(&w, 4, 0x06054b50);
    put(&w, 2, 0); /* disks */
    put(&w, 2, 0);
    put(&w, 2, at_most(a->count, MAX16));
    put(&w, 2, at_most(a->count, MAX16));
    put(&w, 4, at_most(a->directory.n, MAX32));
    put(&w, 4, at_most(a->at, MAX32));
    put(&w, 2, 0); /* comment */
    buf_put(out, buf_str(&a->directory));
    buf_put(out, record_str(&w));
    return buf_check(out, e);
}

const struct archive_format zip_format = {
    .name = "zip",
    .mime = "application/zip",
    .disposition = "attachment; filename=\"workspace.zip\"",
    .checked = true,
    .begin = begin,
    .finish = finish,
    .end = end,
};
