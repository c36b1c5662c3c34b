/* The range of user ids that boxes get theirs from. */
#include "sandbox/box.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_DIR "/run/retort"

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
        if (inside <= UID_BASE &&
            inside + count >= UID_BASE + (unsigned long long)UID_COUNT * UID_BLOCKS)
            return true;
    }
    return false;
}

/* A lock goes with its holder, however that one ends, so a block is never lost and never stale. */
struct uids uids_claim(int *ret_lock)
{
    *ret_lock = -1;
    if (!uids_are_mapped() || (mkdir(LOCK_DIR, 0700) < 0 && errno != EEXIST))
        return (struct uids){0};
    for (uint32_t block = 0; block < UID_BLOCKS; block++) {
        AUTO_CLOSE int fd = -1;
        char path[64];
        snprintf(path, sizeof(path), LOCK_DIR "/uids.%u", block);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            *ret_lock = take_fd(&fd);
            return (struct uids){UID_BASE + block * UID_COUNT, UID_COUNT, false};
        }
    }
    return (struct uids){0};
}
