/*
 * Strangers' names and texts made fit to be shown: valid UTF-8, one line, no
 * control characters, not longer than promised; and pictures, of which only the
 * head is read.
 *
 * links: src/cli/image.c
 */
#include "cli/cli_int.h"

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = {(const char *)data, size};
    char name[NAME_SHOWN];
    uint32_t width, height;
    struct buf clean;
    struct err e;

    name_show(name, s);
    EXPECT(memchr(name, '\0', sizeof(name)));
    EXPECT(str_utf8_len(str_of(name)) == strlen(name));
    for (const char *p = name; *p; p++)
        EXPECT((unsigned char)*p >= ' ' && *p != 0x7f);

    buf_init(&clean, 3 * size + 1);
    EXPECT(utf8_put(&clean, s) == 0 && str_utf8_len(buf_str(&clean)) == clean.n);
    EXPECT(str_utf8_len(s) != size || (clean.n == size && (!size || !memcmp(clean.p, data, size))));
    buf_done(&clean);

    EXPECT(utf8_torn(s) <= 3 && utf8_torn(s) <= size);
    EXPECT(size == 0 || utf8_char(s) <= 4);
    if (png_size(s, &width, &height))
        EXPECT(size >= 24);
    image_suffix(s);
    return 0;
}
