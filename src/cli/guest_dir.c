/* Finds the directory with the guest's Python: beside the program, or where it was installed. */
#include "cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int guest_dir_find(char *ret, size_t size, struct err *e)
{
    static const char *const places[] = {"guest", "../lib/retort/guest"};
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program));
    struct stat st;

    if (n < 0 || n >= (ssize_t)sizeof(program))
        return err_sys(e, "find our own program file");
    while (n > 0 && program[n - 1] != '/')
        n--;
    for (size_t i = 0; i < COUNT(places); i++) {
        int len = snprintf(ret, size, "%.*s%s", (int)n, program, places[i]);
        if (len > 0 && (size_t)len < size && stat(ret, &st) == 0 && S_ISDIR(st.st_mode))
            return 0;
    }
    return err_set(e, ERR_HOST, "the guest files are neither in %s nor in %s of %.*s", places[0],
                   places[1], (int)n, program);
}
