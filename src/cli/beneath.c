/*
 * Writing files below a directory under names a stranger chose. The names are
 * walked one component at a time, no link is followed on the way, and the bytes
 * go to a new file that is then renamed: whatever stood under the name before,
 * a link to elsewhere included, is replaced and never written through.
 */
#include "cli/cli_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_dir(int parent, const char *name)
{
    struct open_how how = {
        .flags = O_DIRECTORY | O_RDONLY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));
}

static int open_or_make_dir(int parent, const char *name)
{
    int fd = open_dir(parent, name);

    if (fd < 0 && errno == ENOENT && (mkdirat(parent, name, 0777) == 0 || errno == EEXIST))
        fd = open_dir(parent, name);
    return fd;
}

/* Takes the first component off *path: false when it is none that may be written. */
static bool take_name(struct str *path, char ret[NAME_MAX + 1])
{
    const char *slash = path->n ? memchr(path->p, '/', path->n) : NULL;
    struct str name = {path->p, slash ? (size_t)(slash - path->p) : path->n};

    if (name.n == 0 || !str_to_cstr(name, ret, NAME_MAX + 1) || strcmp(ret, ".") == 0 ||
        strcmp(ret, "..") == 0)
        return false;
    path->p += name.n + (slash != NULL);
    path->n -= name.n + (slash != NULL);
    return slash == NULL || path->n > 0;
}

static int refuse(struct str path, struct err *e)
{
    char shown[NAME_SHOWN];

    return err_set(e, ERR_CALLER, "'%s' is no name to write to", name_show(shown, path));
}

/* Opens the folder that path lies in, made as needed; its last component in ret. */
static int open_parent(int dir, struct str path, char ret[NAME_MAX + 1], struct err *e)
{
    AUTO_CLOSE int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    struct str rest = path;
    char shown[NAME_SHOWN];

    if (at < 0)
        return err_sys(e, "dup");
    if (!take_name(&rest, ret))
        return refuse(path, e);
    while (rest.n > 0) {
        int next = open_or_make_dir(at, ret);
        if (next < 0)
            return err_sys(e, "cannot open the folder of %s", name_show(shown, path));
        fd_closep(&at);
        at = next;
        if (!take_name(&rest, ret))
            return refuse(path, e);
    }
    return take_fd(&at);
}

static int copy(int to, int from, uint64_t max, struct err *e)
{
    char chunk[64 * 1024];
    uint64_t done = 0;

    for (;;) {
        ssize_t n = read(from, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read");
        if (n == 0)
            return 0;
        done += (uint64_t)n;
        if (done > max)
            return err_set(e, ERR_LIMIT, "it grew past %" PRIu64 " bytes while it was copied", max);
        if (fd_write_all(to, (struct str){chunk, (size_t)n}, e) < 0)
            return -1;
    }
}

/* What fills the new file: an open file, or bytes. */
struct content {
    int src; /* borrowed; -1: bytes */
    uint64_t max;
    struct str bytes;
};

static int write_through(int parent, const char *name, const struct content *c, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    char temp[32];
    uint64_t salt;
    int written;

    random_bytes(&salt, sizeof(salt));
    snprintf(temp, sizeof(temp), ".retort-%016" PRIx64, salt);
    fd = openat(parent, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_sys(e, "create");
    written = c->src >= 0 ? copy(fd, c->src, c->max, e) : fd_write_all(fd, c->bytes, e);
    if (written == 0 && renameat(parent, temp, parent, name) < 0)
        written = err_sys(e, "rename");
    if (written < 0)
        unlinkat(parent, temp, 0);
    return written;
}

static int write_beneath(int dir, struct str path, const struct content *c, struct err *e)
{
    char name[NAME_MAX + 1], shown[NAME_SHOWN];
    AUTO_CLOSE int parent = open_parent(dir, path, name, e);

    if (parent < 0)
        return -1;
    if (write_through(parent, name, c, e) < 0)
        return err_wrap(e, "cannot write %s", name_show(shown, path));
    return 0;
}

int beneath_write(int dir, struct str path, int src, uint64_t max, struct err *e)
{
    return write_beneath(dir, path, &(struct content){.src = src, .max = max}, e);
}

int beneath_write_bytes(int dir, struct str path, struct str bytes, struct err *e)
{
    return write_beneath(dir, path, &(struct content){.src = -1, .bytes = bytes}, e);
}
