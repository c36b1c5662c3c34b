/* Descriptors and small files. */
#include "base/base.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void fd_closep(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

int fd_write_all(int fd, struct str s, struct err *e)
{
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "write");
        s.p += n;
        s.n -= (size_t)n;
    }
    return 0;
}

ssize_t fd_read_file_at(int dir, const char *path, char *ret, size_t size)
{
    AUTO_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0)
        return -1;
    while (n < size - 1) {
        ssize_t got = read(fd, ret + n, size - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    ret[n] = '\0';
    return (ssize_t)n;
}

/* One write(2): the files under /proc and cgroup take a value whole or not at all. */
int fd_write_file_at(int dir, const char *path, struct str s)
{
    AUTO_CLOSE int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    do
        n = write(fd, s.p, s.n);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)s.n ? 0 : -1;
}

int fd_set_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

bool fd_data_run(int fd, off_t at, off_t *ret_from, off_t *ret_to)
{
    *ret_from = lseek(fd, at, SEEK_DATA);
    if (*ret_from < 0 && errno == ENXIO)
        return false;
    *ret_to = *ret_from < 0 ? lseek(fd, 0, SEEK_END) : lseek(fd, *ret_from, SEEK_HOLE);
    if (*ret_from < 0)
        *ret_from = at;
    return *ret_to > *ret_from;
}
