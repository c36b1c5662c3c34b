/*
 * zip, read by its directory: APPNOTE 6.3.9 has the layout.
 *
 * Every number in an archive is a stranger's. Offsets are held against the bytes that are there,
 * and sizes against the bytes that come out: an entry that says 9 bytes and unpacks to 9 GB ends
 * after its tenth. How much is too much is the caller's to say, by the sizes, before it reads any.
 */
#include "doors/anthropic/unzip.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#define END_BYTES     22
#define COMMENT_MAX   0xffff
#define ENTRY_BYTES   46
#define LOCAL_BYTES   30
#define NEEDS_64      0xffffffffu
#define PIECE         ((size_t)64 * KiB)
#define FLAG_LOCKED   1u
#define METHOD_STORED 0
#define METHOD_PACKED 8
#define MADE_ON_FAT   0
#define MADE_ON_UNIX  3
#define MADE_ON_MAC   19

static const char not_one[] = "this is no whole zip archive";

static uint32_t number(struct str bytes, size_t at, unsigned n)
{
    uint32_t v = 0;

    for (unsigned i = 0; i < n; i++)
        v |= (uint32_t)(unsigned char)bytes.p[at + i] << (8 * i);
    return v;
}

static bool is_mark(struct str bytes, size_t at, char third, char fourth)
{
    const char mark[] = {'P', 'K', third, fourth};

    return memcmp(bytes.p + at, mark, sizeof(mark)) == 0;
}

/* The last record: behind it is only its comment, which may look like one. */
static bool find_end(struct str bytes, size_t *ret)
{
    if (bytes.n < END_BYTES)
        return false;
    for (size_t at = bytes.n - END_BYTES, n = 0; n <= COMMENT_MAX; at--, n++) {
        if (is_mark(bytes, at, 5, 6) && number(bytes, at + 20, 2) == n) {
            *ret = at;
            return true;
        }
        if (at == 0)
            return false;
    }
    return false;
}

int zip_open(struct zip *z, struct str bytes, struct err *e)
{
    size_t end, size;

    if (!find_end(bytes, &end))
        return err_set(e, ERR_CALLER, "%s", not_one);
    size = number(bytes, end + 12, 4);
    *z = (struct zip){.bytes = bytes, .at = number(bytes, end + 16, 4), .end = end};
    z->data_end = z->at;
    if (z->at > end || size != end - z->at)
        return err_set(e, ERR_CALLER, "%s", not_one);
    return 0;
}

/* A file or a folder. What has no mode was made where there are no others. */
static bool is_plain(unsigned made_on, uint32_t attributes)
{
    mode_t mode = (mode_t)(attributes >> 16) & S_IFMT;

    if (made_on != MADE_ON_UNIX && made_on != MADE_ON_MAC)
        return true;
    return mode == 0 || mode == S_IFREG || mode == S_IFDIR;
}

static int check_entry(const struct zip_entry *n, unsigned flags, struct err *e)
{
    int shown = n->name.n < 100 ? (int)n->name.n : 100;

    if (n->name.n == 0 || memchr(n->name.p, '\0', n->name.n) || str_utf8_len(n->name) != n->name.n)
        return err_set(e, ERR_CALLER, "the zip archive has a file whose name is no UTF-8 text");
    if (flags & FLAG_LOCKED)
        return err_set(e, ERR_CALLER, "the zip archive is encrypted");
    if (n->packed == NEEDS_64 || n->size == NEEDS_64 || n->offset == NEEDS_64)
        return err_set(e, ERR_CALLER, "%.*s has 4 GiB or more", shown, n->name.p);
    if (n->method != METHOD_STORED && n->method != METHOD_PACKED)
        return err_set(e, ERR_CALLER, "%.*s is compressed in a way that is not known here (%u)",
                       shown, n->name.p, n->method);
    return 0;
}

int zip_next(struct zip *z, struct zip_entry *ret, struct err *e)
{
    struct str b = z->bytes;
    size_t at = z->at, name, rest;

    if (at == z->end)
        return 0;
    if (z->end - at < ENTRY_BYTES || !is_mark(b, at, 1, 2))
        return err_set(e, ERR_CALLER, "%s", not_one);
    name = number(b, at + 28, 2);
    rest = number(b, at + 30, 2) + number(b, at + 32, 2);
    if (z->end - at - ENTRY_BYTES < name + rest)
        return err_set(e, ERR_CALLER, "%s", not_one);
    unsigned made_on = number(b, at + 5, 1);
    *ret = (struct zip_entry){
        .name = {b.p + at + ENTRY_BYTES, name},
        .has_backslashes = made_on == MADE_ON_FAT,
        .method = number(b, at + 10, 2),
        .crc = number(b, at + 16, 4),
        .packed = number(b, at + 20, 4),
        .size = number(b, at + 24, 4),
        .offset = number(b, at + 42, 4)
    };
    if (check_entry(ret, number(b, at + 8, 2), e) < 0)
        return -1;
    if (!is_plain(made_on, number(b, at + 38, 4)))
        return err_set(e, ERR_CALLER, "%.*s is a link or a device: an archive has files alone",
                       ret->name.n < 100 ? (int)ret->name.n : 100, ret->name.p);
    char last = ret->name.p[name - 1];
    ret->is_folder = last == '/' || (ret->has_backslashes && last == '\\');
    z->at = at + ENTRY_BYTES + name + rest;
    return 1;
}

/* The packed bytes; the header before them has a name and fields of its own. */
static bool find_bytes(const struct zip *z, const struct zip_entry *entry, struct str *ret)
{
    size_t at = entry->offset, head;

    if (at > z->data_end || z->data_end - at < LOCAL_BYTES || !is_mark(z->bytes, at, 3, 4))
        return false;
    head = LOCAL_BYTES + number(z->bytes, at + 26, 2) + number(z->bytes, at + 28, 2);
    if (z->data_end - at < head || z->data_end - at - head < entry->packed)
        return false;
    *ret = (struct str){z->bytes.p + at + head, entry->packed};
    return true;
}

static int unpack(struct str packed, const struct zip_entry *entry, zip_bytes_fn *fn, void *arg,
                  uint32_t *ret_crc, struct err *e)
{
    AUTO_FREE char *piece = mem_zalloc(PIECE);
    z_stream s = {.next_in = (Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n};
    size_t out = 0;
    int rc = inflateInit2(&s, -MAX_WBITS), failed = 0;

    if (rc != Z_OK)
        return err_set(e, ERR_HOST, "zlib does not start: %d", rc);
    while (rc == Z_OK && !failed) {
        s.next_out = (Bytef *)piece;
        s.avail_out = (uInt)PIECE;
        rc = inflate(&s, Z_NO_FLUSH);
        size_t n = PIECE - s.avail_out;
        if ((rc != Z_OK && rc != Z_STREAM_END) || n > entry->size - out)
            break;
        out += n;
        *ret_crc = (uint32_t)crc32(*ret_crc, (const Bytef *)piece, (uInt)n);
        failed = fn(arg, (struct str){piece, n}, e);
    }
    (void)inflateEnd(&s);
    if (failed)
        return -1;
    return rc == Z_STREAM_END && out == entry->size && s.avail_in == 0 ? 1 : 0;
}

int zip_read(const struct zip *z, const struct zip_entry *entry, zip_bytes_fn *fn, void *arg,
             struct err *e)
{
    uint32_t crc = (uint32_t)crc32(0, NULL, 0);
    struct str packed;
    int good = 0;

    if (find_bytes(z, entry, &packed)) {
        if (entry->method == METHOD_PACKED) {
            good = unpack(packed, entry, fn, arg, &crc, e);
        } else if (entry->packed == entry->size) {
            crc = (uint32_t)crc32(crc, (const Bytef *)packed.p, (uInt)packed.n);
            good = crc == entry->crc && fn(arg, packed, e) < 0 ? -1 : 1;
        }
    }
    if (good < 0)
        return -1;
    if (good == 0 || crc != entry->crc)
        return err_set(e, ERR_CALLER, "%.*s is damaged in the zip archive",
                       entry->name.n < 100 ? (int)entry->name.n : 100, entry->name.p);
    return 0;
}
