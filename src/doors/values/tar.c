/* tar, as POSIX has it: ustar, with a pax header before what does not fit into one. */
#include "doors/values/archive.h"

#include <stdio.h>

#define BLOCK      512
#define NAME_ROOM  100
#define FRONT_ROOM 155
#define OCTAL_MAX  077777777777ull /* eleven digits */

struct tar_header {
    char name[NAME_ROOM], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], front[FRONT_ROOM], rest[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "a header is one block");

static void octal(char *field, size_t width, uint64_t v)
{
    for (field[--width] = '\0'; width > 0; v >>= 3)
        field[--width] = (char)('0' + (v & 7));
}

static int put_pad(struct buf *out, uint64_t size, struct err *e)
{
    static const char zeros[BLOCK];

    buf_put(out, (struct str){zeros, (size_t)(-size % BLOCK)});
    return buf_check(out, e);
}

static int put_header(struct buf *out, struct tar_header *h, char type, uint64_t size,
                      int64_t mtime_ms, struct err *e)
{
    uint64_t mtime = mtime_ms < 0 ? 0 : (uint64_t)mtime_ms / 1000;
    uint64_t sum = 0;

    h->type = type;
    octal(h->mode, sizeof(h->mode), 0644);
    octal(h->uid, sizeof(h->uid), 0);
    octal(h->gid, sizeof(h->gid), 0);
    octal(h->size, sizeof(h->size), size > OCTAL_MAX ? 0 : size);
    octal(h->mtime, sizeof(h->mtime), mtime > OCTAL_MAX ? OCTAL_MAX : mtime);
    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    memset(h->sum, ' ', sizeof(h->sum)); /* counted as blanks */
    for (size_t i = 0; i < sizeof(*h); i++)
        sum += ((unsigned char *)h)[i];
    octal(h->sum, sizeof(h->sum) - 1, sum);
    buf_put(out, (struct str){(char *)h, sizeof(*h)});
    return buf_check(out, e);
}

/* Whether the path fits, cut at a slash where it is long. */
static bool set_name(struct tar_header *h, struct str path)
{
    size_t cut = 0;

    if (path.n > NAME_ROOM) {
        const char *slash = memchr(path.p + path.n - NAME_ROOM - 1, '/', NAME_ROOM);
        if (!slash || slash == path.p || slash - path.p > FRONT_ROOM) {
            memcpy(h->name, path.p + path.n - NAME_ROOM, NAME_ROOM); /* for readers without pax */
            return false;
        }
        cut = (size_t)(slash - path.p);
        memcpy(h->front, path.p, cut++);
    }
    memcpy(h->name, path.p + cut, path.n - cut);
    return true;
}

/* "27 path=...\n": the number counts itself. */
static int put_record(struct buf *out, const char *key, struct str value, struct err *e)
{
    size_t bare = strlen(key) + value.n + 3, n = bare;

    while (n != bare + (size_t)snprintf(NULL, 0, "%zu", n))
        n = bare + (size_t)snprintf(NULL, 0, "%zu", n);
    buf_printf(out, "%zu %s=", n, key);
    buf_put(out, value);
    buf_put(out, STR("\n"));
    return buf_check(out, e);
}

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

static int put_records(struct buf *out, const struct archive_entry *entry, bool named,
                       struct err *e)
{
    char size[24];
    int n = snprintf(size, sizeof(size), "%llu", (unsigned long long)entry->size);

    /* It should be UTF-8, or hdrcharset say that it is not. GNU tar complains about hdrcharset, and
     * all readers take the bytes as they are without. */
    if (!named && put_record(out, "path", entry->path, e) < 0)
        return -1;
    if (entry->size > OCTAL_MAX && put_record(out, "size", (struct str){size, (size_t)n}, e) < 0)
        return -1;
    return 0;
}

static int put_pax(struct buf *out, const struct archive_entry *entry, bool named, struct err *e)
{
    struct tar_header h = {.name = "PaxHeaders/file"};
    AUTO(buf_done) struct buf records = BUF(8 * KiB);
    int done = -1;

    if (put_records(&records, entry, named, e) == 0 &&
        put_header(out, &h, 'x', records.n, entry->mtime_ms, e) == 0 &&
        buf_put(out, buf_str(&records)) == 0)
        done = put_pad(out, records.n, e);
    return done;
}

static int begin(struct archive *a, struct buf *out, struct err *e)
{
    struct tar_header h = {0};
    struct str path = a->now.path;
    bool named = set_name(&h, path);

    /* A header's name has no charset. What is UTF-8 says so in a record, other bytes stay here. */
    if (!is_ascii(path) && str_utf8_len(path) == path.n)
        named = false;
    if ((!named || a->now.size > OCTAL_MAX) && put_pax(out, &a->now, named, e) < 0)
        return -1;
    return put_header(out, &h, '0', a->now.size, a->now.mtime_ms, e);
}

static int finish(struct archive *a, struct buf *out, struct err *e)
{
    return put_pad(out, a->now.size, e);
}

static int end(struct archive *a, struct buf *out, struct err *e)
{
    static const char zeros[2 * BLOCK];

    (void)a;
    buf_put(out, (struct str){zeros, sizeof(zeros)});
    return buf_check(out, e);
}

const struct archive_format tar_format = {
    .name = "tar",
    .mime = "application/x-tar",
    .disposition = "attachment; filename=\"workspace.tar\"",
    .begin = begin,
    .finish = finish,
    .end = end,
};
