/*
 * Files of a workspace, opened by the host. Every path is opened below the workspace's own fd,
 * across no link and no mount, and as the session's own user. So the host can do nothing for the
 * code that the code may not do itself.
 */
#include "engine/engine_int.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COPY_SIZE (256 * KiB)

/* --- as whom --- */

/* setfsuid(2) is per thread and takes the file capabilities away while it lasts. */
void space_act_as(uid_t uid)
{
    if (geteuid() == uid)
        return;
    setfsgid(uid);
    setfsuid(uid);
}

void space_act_as_self(void)
{
    if ((uid_t)setfsuid((uid_t)-1) == geteuid())
        return;
    setfsuid(geteuid());
    setfsgid(getegid());
}

int space_open_beneath(int dir, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* --- put and get --- */

static int make_parents(int space, char *path, struct err *e)
{
    for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        AUTO_CLOSE int above = -1;
        char *name;
        *p = '\0';
        name = strrchr(path, '/');
        if (name)
            *name = '\0';
        above = space_open_beneath(space, name ? path : ".", O_RDONLY | O_DIRECTORY, 0);
        int rc = above < 0 ? -1 : mkdirat(above, name ? name + 1 : path, 0755);
        int failed = rc < 0 && errno != EEXIST;
        if (name)
            *name = '/';
        *p = '/';
        if (failed)
            return err_sys(e, "make the folders of '%s'", path);
    }
    return 0;
}

static int copy_run(int from, int to, off_t at, off_t end, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(COPY_SIZE);

    if (lseek(to, at, SEEK_SET) < 0)
        return err_sys(e, "write");
    while (at < end) {
        size_t most = end - at < (off_t)COPY_SIZE ? (size_t)(end - at) : COPY_SIZE;
        work_yield();
        ssize_t n = pread(from, bytes, most, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read");
        if (n == 0)
            return 0;
        if (fd_write_all(to, (struct str){bytes, (size_t)n}, e) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* Holes stay holes: what took no room in a workspace takes none when it comes back. */
static int copy_bytes(int from, int to, struct err *e)
{
    off_t at = 0, start, end;

    for (; fd_data_run(from, at, &start, &end); at = end)
        if (copy_run(from, to, start, end, e) < 0)
            return -1;
    if (ftruncate(to, lseek(from, 0, SEEK_END)) < 0)
        return err_sys(e, "write");
    return 0;
}

int space_open_folder(int space, char *path, char **ret_name, struct err *e)
{
    char *slash = strrchr(path, '/');
    int dir;

    *ret_name = slash ? slash + 1 : path;
    if (slash)
        *slash = '\0';
    dir = space_open_beneath(space, slash ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (slash)
        *slash = '/';
    return dir < 0 ? err_sys(e, "open the folder of '%s'", path) : dir;
}

static void date(int fd, int64_t mtime_ms)
{
    const struct timespec times[] = {
        {.tv_nsec = UTIME_NOW      },
        { mtime_ms / 1000, mtime_ms % 1000 * 1000000},
    };

    if (mtime_ms > 0)
        (void)!futimens(fd, times);
}

/* Whole or not at all: written under a name of ours, then renamed. */
static int put(int space, char *path, int src, uint32_t mode, int64_t mtime_ms, struct err *e)
{
    static atomic_uint counter;
    AUTO_CLOSE int dir = -1;
    AUTO_CLOSE int to = -1;
    char temporary[sizeof(UPLOAD_PREFIX) + 16];
    char *name;

    if (make_parents(space, path, e) < 0)
        return -1;
    dir = space_open_folder(space, path, &name, e);
    if (dir < 0)
        return -1;
    snprintf(temporary, sizeof(temporary), UPLOAD_PREFIX "%u", atomic_fetch_add(&counter, 1));
    (void)!unlinkat(dir, temporary, 0);
    to = space_open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (to < 0)
        return err_sys(e, "create '%s'", path);
    if (copy_bytes(src, to, e) < 0 || (mode && fchmod(to, mode & 0777) < 0) ||
        (date(to, mtime_ms), renameat(dir, temporary, dir, name)) < 0) {
        if (e->kind == ERR_NONE)
            err_sys(e, "name '%s'", path);
        (void)!unlinkat(dir, temporary, 0);
        return err_wrap(e, "put '%s' into the workspace", path);
    }
    return 0;
}

int space_check_path(struct str path, char ret[SPACE_NAME_MAX], struct err *e)
{
    if (path.n == 0 || path.p[0] == '/' || !str_to_cstr(path, ret, SPACE_NAME_MAX))
        return err_set(e, ERR_CALLER, "not a path below the workspace");
    return 0;
}

int space_put(const struct space *sp, struct str path, int src, uint32_t mode, int64_t mtime_ms,
              struct err *e)
{
    char name[SPACE_NAME_MAX];
    int rc;

    if (sp->far)
        return sp->far->ops->put(sp->far, path, src, mode, mtime_ms, e);
    *e = (struct err){0};
    if (space_check_path(path, name, e) < 0)
        return -1;
    space_act_as(sp->uid);
    rc = put(sp->dir, name, src, mode, mtime_ms, e);
    space_act_as_self();
    /* What the code in the box has put in the way is not our failure, nor is its full disk. */
    if (rc < 0 && (e->sys == ENOSPC || e->sys == EDQUOT))
        e->kind = ERR_LIMIT;
    else if (rc < 0 && e->sys != EIO && e->sys != ENOMEM && e->sys != EMFILE)
        e->kind = ERR_CALLER;
    return rc;
}

int space_mkdir(const struct space *sp, struct str path, struct err *e)
{
    char name[SPACE_NAME_MAX];
    size_t n = path.n;
    int rc;

    if (sp->far)
        return sp->far->ops->make_dir(sp->far, path, e);
    *e = (struct err){0};
    if (space_check_path(path, name, e) < 0)
        return -1;
    if (n + 2 > sizeof(name))
        return err_set(e, ERR_CALLER, "not a path below the workspace");
    memcpy(name + n, "/", 2); /* then it is a parent of nothing */
    space_act_as(sp->uid);
    rc = make_parents(sp->dir, name, e);
    space_act_as_self();
    if (rc < 0)
        e->kind = e->sys == ENOSPC || e->sys == EDQUOT ? ERR_LIMIT : ERR_CALLER;
    return rc;
}

/* The host lists and hands out regular files; what else the code has made is its own affair. */
static bool is_file(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    errno = ENOENT;
    return S_ISREG(st.st_mode);
}

int space_delete(const struct space *sp, struct str path, struct err *e)
{
    AUTO_CLOSE int dir = -1;
    char name[SPACE_NAME_MAX], *last;
    int rc = -1;

    if (sp->far)
        return sp->far->ops->remove(sp->far, path, e);
    *e = (struct err){0};
    if (space_check_path(path, name, e) < 0)
        return -1;
    space_act_as(sp->uid);
    dir = space_open_folder(sp->dir, name, &last, e);
    if (dir >= 0 && is_file(dir, last))
        rc = unlinkat(dir, last, 0);
    int sys = errno;
    space_act_as_self();
    if (rc == 0)
        return 1;
    *e = (struct err){0};
    if (sys == ENOENT || sys == ENOTDIR || sys == ELOOP)
        return 0;
    errno = sys;
    err_sys(e, "delete '%s'", name);
    e->kind = ERR_CALLER;
    return -1;
}

bool space_is_open(const struct space *sp)
{
    return sp->dir >= 0 || sp->far;
}

void space_close(struct space *sp)
{
    struct far_files *far = take_ptr(&sp->far);

    if (far)
        far->ops->unref(far);
    fd_closep(&sp->dir);
}

/* The host lacks something: this says nothing about the file. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

int space_get(const struct space *sp, struct str path, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    char name[SPACE_NAME_MAX];
    struct stat st;

    if (sp->far)
        return sp->far->ops->get(sp->far, path, e);
    if (space_check_path(path, name, e) < 0)
        return -1;
    space_act_as(sp->uid);
    /* O_NONBLOCK: a FIFO planted under the name must not hold the server. */
    fd = space_open_beneath(sp->dir, name, O_RDONLY | O_NONBLOCK, 0);
    space_act_as_self();
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(e, "open '%s' in the workspace", name);
        if (e->sys == ENOENT)
            e->kind = ERR_MISSING;
        else if (!is_shortage(e->sys))
            e->kind = ERR_CALLER;
        return -1;
    }
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CALLER, "'%s' is not a regular file", name);
    return take_fd(&fd);
}
