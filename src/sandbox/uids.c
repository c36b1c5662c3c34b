/* The range of user ids that boxes get theirs from. */
#include "sandbox/box.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

bool uids_are_mapped(void)
{
    char text[4096];

    if (geteuid() != 0 || fd_read_file_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) < 0)
        return false;
    for (char *save = NULL, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        char *at = l; /* first id inside, first id outside, how many */
        unsigned long long inside = strtoull(at, &at, 10);
        strtoull(at, &at, 10);
        unsigned long long count = strtoull(at, &at, 10);
        if (inside <= UID_BASE && inside + count >= (unsigned long long)UID_BASE + UID_COUNT)
            return true;
    }
    return false;
}
