/*
 * What an interpreter answers when it is asked where it lives: it may be anything
 * that prints. Whatever is accepted are absolute paths that show no more of the
 * host than an installation.
 *
 * links: src/engine/python.c
 */
#include "engine/engine_int.h"

#include "support/fuzz.h"

#include <limits.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = mem_strndup((struct str){(const char *)data, size});
    struct python_info info = {0};
    struct err e = {0};

    if (python_parse(text, "python3", &info, &e) < 0) {
        EXPECT(e.kind == ERR_CALLER || e.kind == ERR_LIMIT);
        EXPECT(memchr(e.text, '\0', sizeof(e.text)) && *e.text);
        return 0;
    }
    EXPECT(info.executable[0] == '/' && memchr(info.executable, '\0', sizeof(info.executable)));
    EXPECT(memchr(info.version, '\0', sizeof(info.version)));
    EXPECT(info.dir_count <= PYTHON_DIRS_MAX);
    for (size_t i = 0; i < info.dir_count; i++) {
        const char *dir = info.dirs[i];
        EXPECT(dir[0] == '/' && dir[1] != '\0' && memchr(dir, '\0', sizeof(info.dirs[i])));
        char real[PATH_MAX];
        if (realpath(dir, real))
            EXPECT(real[1] && strcmp(real, "/etc") != 0 && strcmp(real, "/home") != 0);
    }
    return 0;
}
