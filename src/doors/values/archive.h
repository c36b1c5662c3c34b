/* Archives written front to back: nothing is kept but the list of what was written. */
#pragma once

#include "base/base.h"

struct archive;

struct archive_format {
    const char *name; /* "tar" */
    const char *mime;
    const char *disposition; /* of the download */
    bool checked;            /* wants the CRC of the bytes */
    int (*begin)(struct archive *a, struct buf *out, struct err *e);
    int (*finish)(struct archive *a, struct buf *out, struct err *e);
    int (*end)(struct archive *a, struct buf *out, struct err *e);
};
extern const struct archive_format tar_format, zip_format;

struct archive_entry {
    struct str path; /* any bytes but NUL and backslash, relative */
    uint64_t size;
    int64_t mtime_ms;
    uint64_t offset; /* of its header */
    uint32_t crc;
};

struct archive {
    const struct archive_format *format;
    uint64_t at; /* bytes written */
    struct archive_entry now;
    char *name;           /* owned, or NULL: its path where that had to be written otherwise */
    uint64_t count;       /* of entries */
    struct buf directory; /* zip: what goes to the end */
};

void archive_init(struct archive *a, const struct archive_format *format);
void archive_done(struct archive *a);
/* Each appends to out. path: borrowed until archive_finish(); a backslash in it becomes "%5C". */
int archive_begin(struct archive *a, struct str path, uint64_t size, int64_t mtime_ms,
                  struct buf *out, struct err *e) MUST_CHECK;
/* Counts bytes that the caller writes after archive_begin(): `size` of them in all. */
void archive_bytes(struct archive *a, struct str bytes);
int archive_finish(struct archive *a, struct buf *out, struct err *e) MUST_CHECK;
int archive_end(struct archive *a, struct buf *out, struct err *e) MUST_CHECK;

#define ARCHIVE_DIRECTORY_MAX (64 * MiB)
