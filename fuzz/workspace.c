/*
 * Paths into a workspace full of links that lead out of it: what is opened lies
 * inside, what is put lands inside, nothing waits for anybody, and a comparison
 * of the tree tells each change once.
 *
 * links: src/engine/tree.c src/engine/workspace.c src/engine/mime.c
 */
#include "engine/engine_int.h"

#include "support/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct trees trees;

static void put(struct str path)
{
    static const char text[] = "uploaded";
    struct err e;
    char got[32];
    int src = open("/dev/shm", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    EXPECT(src >= 0 && fd_write_all(src, STR(text), &e) == 0);
    if (space_put(&(struct space){trees.inside, geteuid()}, path, src, 0, 0, &e) == 0) {
        int fd = space_get(&(struct space){trees.inside, geteuid()}, path, &e);
        EXPECT(fd >= 0 && trees_holds(&trees, fd));
        EXPECT(read(fd, got, sizeof(got)) == sizeof(text) - 1);
        close(fd);
    } else {
        EXPECT(e.kind != ERR_NONE && *e.text);
    }
    close(src);
}

static void get(struct str path)
{
    struct err e;
    struct stat st;
    int fd = space_get(&(struct space){trees.inside, geteuid()}, path, &e);

    if (fd < 0)
        return;
    EXPECT(trees_holds(&trees, fd));
    EXPECT(fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
    close(fd);
}

/* What code in the box may do between two looks. */
static void change(struct feed *feed, uint8_t op)
{
    static const char *const names[] = {"f", "d/f", "g", "d/g",           "d",
                                        "h", "p",   "l", ".retort-upload"};
    const char *a = names[feed_byte(feed) % COUNT(names)];
    const char *b = names[feed_byte(feed) % COUNT(names)];

    switch (op % 6) {
    case 0:
        (void)!unlinkat(trees.inside, a, 0);
        break;
    case 1:
        (void)!renameat(trees.inside, a, trees.inside, b);
        break;
    case 2:
        (void)!linkat(trees.inside, a, trees.inside, b, 0);
        break;
    case 3:
        (void)!mkdirat(trees.inside, a, 0700);
        break;
    case 4:
        (void)!symlinkat("../o/f", trees.inside, a);
        break;
    case 5:
        close(openat(trees.inside, a, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                     0600));
        break;
    }
}

struct told {
    char last[1024];
    size_t count;
};

static void on_file(void *arg, const struct event *ev)
{
    struct told *t = arg;
    char path[sizeof(t->last)];

    if (ev->kind != EVENT_FILE)
        return;
    EXPECT(str_to_cstr(ev->file.path, path, sizeof(path)) && path[0] != '/' && path[0]);
    EXPECT(ev->file.mime);
    EXPECT(t->count == 0 || strcmp(t->last, path) < 0); /* in order, each once */
    memcpy(t->last, path, sizeof(path));
    t->count++;
    if (ev->file.change != FILE_DELETED)
        get(ev->file.path);
}

static void look(struct tree *tree, struct told *told)
{
    struct limits limits = {.artifact_count = 1000, .artifact_bytes = 4};
    struct look *k = look_new(tree);

    look_walk(k, &(struct space){trees.inside, geteuid()});
    tree_tell(tree, k, &limits, on_file, told);
}

static void scan(struct tree *tree)
{
    struct told told = {0}, again = {0};

    look(tree, &told);
    look(tree, &again);
    EXPECT(again.count == 0);
}

static void clean_up(void)
{
    trees_close(&trees);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    unsigned open_before;
    struct tree *tree;

    if (!trees.path[0]) {
        trees_open(&trees);
        atexit(clean_up);
    }
    open_before = fds_open();
    trees_reset(&trees);
    tree = tree_new();
    while (feed.n > 0) {
        uint8_t op = feed_byte(&feed);
        struct str path = op & 0x40 ? feed_text(&feed, feed_byte(&feed)) : (struct str){0};
        if (op & 0x80)
            scan(tree);
        else if (!(op & 0x40))
            change(&feed, op);
        else if (op & 1)
            put(path);
        else
            get(path);
    }
    scan(tree);
    tree_free(tree);
    trees_check(&trees);
    EXPECT(fds_open() == open_before);
    return 0;
}
