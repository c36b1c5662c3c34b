/* Mounts of one sandbox, on top of the root that it shares with its zygote. */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOUNT_TIGHT (MS_NOSUID | MS_NODEV)

static int mount_tmpfs(const char *where, uint64_t bytes, uint64_t inodes, const char *mode,
                       struct err *e)
{
    char options[160];

    snprintf(options, sizeof(options), "size=%llu,nr_inodes=%llu,mode=%s,uid=%d,gid=%d",
             (unsigned long long)bytes, (unsigned long long)inodes, mode, BOX_USER, BOX_USER);
    if (mount("tmpfs", where, "tmpfs", MOUNT_TIGHT, options) < 0)
        return err_sys(e, "mount tmpfs on %s", where);
    return 0;
}

static int place_fd(int *fd, int at, const char *what, struct err *e)
{
    if (*fd < 0 || (*fd != at && dup3(*fd, at, O_CLOEXEC) < 0))
        return err_sys(e, "keep %s", what);
    if (*fd == at)
        take_fd(fd);
    return 0;
}

/* /proc is read-only for the box. Before it is, init opens one file through a detached clone of the
 * mount, which stays writable for as long as the file is open. */
static int mount_proc(const struct box_plan *p, struct err *e)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
    AUTO_CLOSE int view = -1;
    AUTO_CLOSE int oom = -1;

    if (mount("proc", "/proc", "proc", MOUNT_TIGHT | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "mount proc");
    view = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    oom = openat(view, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    fd_closep(&view); /* its number may be the one wanted next */
    if (place_fd(&oom, BOX_OOM_FD, "oom_score_adj", e) < 0 || view_show(p, e) < 0)
        return -1;
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &ro, sizeof(ro)) < 0)
        return err_sys(e, "make proc read-only");
    return 0;
}

static int keep_dir(const char *path, int fd, struct err *e)
{
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return place_fd(&dir, fd, path, e);
}

int mounts_enter(struct box *b, struct err *e)
{
    const struct box_plan *p = b->plan;

    if (mount_proc(p, e) < 0 || mount_tmpfs("/tmp", p->tmp_bytes, p->inodes, "1777", e) < 0 ||
        mount_tmpfs("/dev/shm", p->tmp_bytes, p->inodes, "1777", e) < 0 ||
        mount_tmpfs(BOX_WORKSPACE, p->disk_bytes, p->inodes, "0755", e) < 0)
        return -1;
    if (keep_dir(BOX_WORKSPACE, BOX_SPACE_FD, e) < 0 || keep_dir("/tmp", BOX_TMP_FD, e) < 0 ||
        keep_dir("/dev/shm", BOX_SHM_FD, e) < 0)
        return -1;
    if (chdir(BOX_WORKSPACE) < 0)
        return err_sys(e, "enter the workspace");
    return 0;
}

int mounts_verify(struct box *b, struct err *e)
{
    static const char *const sealed[] = {"/.probe",     "/usr/.probe", "/etc/.probe",
                                         "/dev/.probe", "/opt/.probe", "/proc/.probe"};
    struct statfs fs;
    char self[16] = "";

    (void)b;
    for (size_t i = 0; i < COUNT(sealed); i++) {
        AUTO_CLOSE int fd = open(sealed[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0 || (errno != EROFS && errno != ENOENT && errno != EACCES))
            return err_sys(e, "%s could be made, or not refused as read-only", sealed[i]);
    }
    if (probe_refused(access("/sys/kernel", F_OK), ENOENT, "reaching /sys", e) < 0)
        return -1;
    if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || strcmp(self, "1") != 0)
        return err_set(e, ERR_HOST, "/proc is not that of the new pid namespace");
    if (view_verify(b->plan, e) < 0)
        return -1;
    if (statfs(BOX_WORKSPACE, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
        (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize > b->plan->disk_bytes + (uint64_t)fs.f_bsize)
        return err_set(e, ERR_HOST, "the workspace is not held to its size");
    return 0;
}
