/*
 * A name for a file from a URL and from Content-Disposition: whatever they hold, it
 * is a name that may stand in a folder.
 *
 * links: src/fetch/name.c
 */
#include "fetch/fetch.h"

#include "support/fuzz.h"

static void check(const char *name, size_t size)
{
    size_t n = strnlen(name, size);

    EXPECT(n > 0 && n < size && n <= FILE_NAME_MAX);
    EXPECT(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    EXPECT(str_utf8_len(str_of(name)) == n);
    for (size_t i = 0; i < n; i++)
        EXPECT((unsigned char)name[i] >= ' ' && name[i] != 0x7f && name[i] != '/' &&
               name[i] != '\\');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = {(const char *)data, size};
    char name[300], small[16];

    url_file_name(s, name, sizeof(name));
    check(name, sizeof(name));
    url_file_name(s, small, sizeof(small));
    check(small, sizeof(small));
    if (disposition_file_name(s, name, sizeof(name)))
        check(name, sizeof(name));
    return 0;
}
