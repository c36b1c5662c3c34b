/* Reads zip archives that strangers have made: from memory, and trusts no number in them. */
#pragma once

#include "base/base.h"

struct zip {
    struct str bytes; /* borrowed */
    size_t at, end;   /* of the directory: its next entry, and where it ends */
    size_t data_end;  /* the bytes of files end here, where the directory begins */
};

struct zip_entry {
    struct str name; /* borrowed from the archive */
    bool is_folder;
    bool has_backslashes; /* which are slashes there: made on a system of that kind */
    unsigned method;
    uint32_t crc;
    size_t packed, size, offset;
};

typedef int zip_bytes_fn(void *arg, struct str bytes, struct err *e);

/* What an archive lacks, or has that is not taken, is an ERR_CALLER: links, devices, encryption,
 * methods other than deflate, parts of 4 GiB. */
int zip_open(struct zip *z, struct str bytes, struct err *e) MUST_CHECK;
/* 1: an entry, 0: there is no more, -1. Its name is as it stands there. */
int zip_next(struct zip *z, struct zip_entry *ret, struct err *e) MUST_CHECK;
/* Its bytes, piece by piece: as many as the entry's size says, or it is an error. */
int zip_read(const struct zip *z, const struct zip_entry *entry, zip_bytes_fn *fn, void *arg,
             struct err *e) MUST_CHECK;
