/* A directory for one test, removed with everything in it. */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

struct scratch {
    char path[32];
    int fd;
};

static inline int scratch_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline int scratch_open(struct scratch *d)
{
    snprintf(d->path, sizeof(d->path), "/tmp/retort-unit.XXXXXX");
    if (!mkdtemp(d->path))
        return -1;
    d->fd = open(d->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    return d->fd < 0 ? -1 : 0;
}

static inline int scratch_close(struct scratch *d)
{
    static const char ours[] = "/tmp/retort-unit.";

    fd_closep(&d->fd);
    /* A test that went wrong may have written over the path; what it then names is not ours. */
    if (strncmp(d->path, ours, sizeof(ours) - 1) != 0 || strchr(d->path + sizeof(ours) - 1, '/'))
        return -1;
    return nftw(d->path, scratch_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file and returns its full path, valid until the next call. */
static inline const char *scratch_put(const struct scratch *d, const char *name, struct str bytes)
{
    static char path[256];
    struct err e;
    AUTO_CLOSE int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, &e), 0);
    snprintf(path, sizeof(path), "%s/%s", d->path, name);
    return path;
}

static inline void scratch_expect(const struct scratch *d, const char *name, struct str bytes)
{
    char got[4096];
    ssize_t n = fd_read_file_at(d->fd, name, got, sizeof(got));

    assert_int_equal(n, bytes.n);
    assert_memory_equal(got, bytes.p, bytes.n);
}

static size_t scratch_seen;

static inline int scratch_see(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path;
    (void)st;
    (void)type;
    (void)ftw;
    scratch_seen++;
    return 0;
}

/* Everything in it, at any depth. */
static inline size_t scratch_count(const struct scratch *d)
{
    scratch_seen = 0;
    assert_int_equal(nftw(d->path, scratch_see, 8, FTW_PHYS), 0);
    return scratch_seen - 1;
}
