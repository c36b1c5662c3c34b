#include "support/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "nobody may touch this"

static int open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    EXPECT(fd >= 0);
    return fd;
}

static void empty(int dir)
{
    DIR *d = fdopendir(open_dir(dir, "."));

    EXPECT(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dir, entry->d_name, 0) == 0)
            continue;
        int below = open_dir(dir, entry->d_name);
        empty(below);
        close(below);
        EXPECT(unlinkat(dir, entry->d_name, AT_REMOVEDIR) == 0);
    }
    closedir(d);
}

static void put(int dir, const char *name, struct str text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct err e;

    EXPECT(fd >= 0 && fd_write_all(fd, text, &e) == 0);
    close(fd);
}

void trees_open(struct trees *t)
{
    snprintf(t->path, sizeof(t->path), "/dev/shm/retort-fuzz-XXXXXX");
    EXPECT(mkdtemp(t->path));
    t->top = open_dir(AT_FDCWD, t->path);
    EXPECT(mkdirat(t->top, "i", 0700) == 0 && mkdirat(t->top, "o", 0700) == 0);
    t->inside = open_dir(t->top, "i");
    t->outside = open_dir(t->top, "o");
    EXPECT(mkdirat(t->outside, "d", 0700) == 0);
    put(t->outside, "f", STR(SECRET));
}

void trees_reset(struct trees *t)
{
    char absolute[64];

    empty(t->inside);
    snprintf(absolute, sizeof(absolute), "%s/o", t->path);
    EXPECT(mkdirat(t->inside, "d", 0700) == 0 && mkdirat(t->inside, "d/e", 0700) == 0);
    put(t->inside, "f", STR("ours"));
    put(t->inside, "d/f", STR("ours, too"));
    EXPECT(mkfifoat(t->inside, "p", 0600) == 0);
    EXPECT(symlinkat("../o", t->inside, "l") == 0);        /* a folder outside */
    EXPECT(symlinkat("../o/f", t->inside, "s") == 0);      /* a file outside */
    EXPECT(symlinkat(absolute, t->inside, "a") == 0);      /* the same, absolute */
    EXPECT(symlinkat("..", t->inside, "d/u") == 0);        /* up, but not out */
    EXPECT(symlinkat("../../o/n", t->inside, "d/n") == 0); /* a file outside, yet to be made */
    EXPECT(symlinkat("/proc/self/cwd", t->inside, "m") == 0);
}

void trees_check(struct trees *t)
{
    char text[64];
    DIR *d = fdopendir(open_dir(t->outside, "."));
    unsigned count = 0;

    EXPECT(d);
    while (readdir(d))
        count++;
    closedir(d);
    EXPECT(count == 4); /* ., .., d, f */
    EXPECT(fd_read_file_at(t->outside, "f", text, sizeof(text)) == sizeof(SECRET) - 1);
    EXPECT(strcmp(text, SECRET) == 0);
    EXPECT(unlinkat(t->outside, "d", AT_REMOVEDIR) == 0 && mkdirat(t->outside, "d", 0700) == 0);
    d = fdopendir(open_dir(t->top, "."));
    for (count = 0; readdir(d); count++)
        ;
    closedir(d);
    EXPECT(count == 4); /* ., .., i, o */
}

bool trees_holds(const struct trees *t, int fd)
{
    char link[48], path[PATH_MAX], want[64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    EXPECT(n > 0);
    path[n] = '\0';
    snprintf(want, sizeof(want), "%s/i/", t->path);
    return strncmp(path, want, strlen(want)) == 0;
}

void trees_close(struct trees *t)
{
    empty(t->top);
    fd_closep(&t->inside);
    fd_closep(&t->outside);
    fd_closep(&t->top);
    rmdir(t->path);
}
