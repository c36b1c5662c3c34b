/*
 * Names that a guest chose, written below a folder of the host's that somebody
 * has filled with links: every byte lands inside of it or nowhere.
 *
 * links: src/cli/beneath.c
 */
#include "cli/cli_int.h"

#include "support/tree.h"

#include <fcntl.h>
#include <unistd.h>

static struct trees trees;

static void clean_up(void)
{
    trees_close(&trees);
}

/* Where a name was accepted, a walk that follows no link finds what was written. */
static void check(struct str path, struct str bytes)
{
    char name[4096], got[512];
    int fd = -1;

    EXPECT(str_to_cstr(path, name, sizeof(name)));
    fd = openat(trees.inside, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    EXPECT(fd >= 0 && trees_holds(&trees, fd));
    EXPECT(read(fd, got, sizeof(got)) == (ssize_t)bytes.n && memcmp(got, bytes.p, bytes.n) == 0);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    unsigned open_before;

    if (!trees.path[0]) {
        trees_open(&trees);
        atexit(clean_up);
    }
    open_before = fds_open();
    trees_reset(&trees);
    while (feed.n > 0) {
        struct str path = feed_text(&feed, feed_num(&feed, 2) % 1024);
        struct str bytes = STR("what a guest made");
        struct err e;
        if (beneath_write_bytes(trees.inside, path, bytes, &e) == 0)
            check(path, bytes);
        else
            EXPECT(*e.text);
    }
    trees_check(&trees);
    EXPECT(fds_open() == open_before);
    return 0;
}
