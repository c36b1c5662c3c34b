/* The picture in a MIME bundle: which part has it, a name for its file, its width and height. */
#include "cli/cli_int.h"

#include <endian.h>

/* Best first: pixels that every viewer shows before those that only some do. */
static const struct {
    const char *mime;
    const char *suffix;
} kinds[] = {
    {"image/png",     ".png" },
    {"image/jpeg",    ".jpg" },
    {"image/svg+xml", ".svg" },
    {"image/gif",     ".gif" },
    {"image/webp",    ".webp"},
};

const char *image_suffix(struct str mime)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_is(mime, kinds[i].mime))
            return kinds[i].suffix;
    return NULL;
}

const struct mime_part *image_part(const struct event *ev)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t j = 0; j < ev->bundle.count; j++)
            if (str_is(ev->bundle.part[j].mime, kinds[i].mime))
                return &ev->bundle.part[j];
    return NULL;
}

bool png_size(struct str data, uint32_t *ret_width, uint32_t *ret_height)
{
    /* The signature, then a first chunk of 13 bytes that begins with both numbers. */
    static const char start[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    size_t n = sizeof(start) - 1;

    if (data.n < n + 8 || memcmp(data.p, start, n) != 0)
        return false;
    memcpy(ret_width, data.p + n, 4);
    memcpy(ret_height, data.p + n + 4, 4);
    *ret_width = be32toh(*ret_width);
    *ret_height = be32toh(*ret_height);
    return true;
}
