/*
 * The root that a zygote and all its sandboxes share: the system and one Python,
 * read-only, a handful of /etc, five devices. Nothing else of the host is in it.
 *
 * Sources are taken as detached mounts (by fd) before anything is covered, made
 * read-only while still detached, and then attached: no path is walked twice, and
 * none is ever writable in the new tree, not even for an instant.
 */
#include "sandbox/box_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TREE_FLAGS (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)
#define STAGE      "/tmp" /* any directory every system has; covered only in this namespace */

struct mount_source {
    const char *path;
    const char *where; /* NULL: the same path */
    unsigned flags;
    int given; /* 0, or a detached mount of it */
};

enum { MUST_EXIST = 1, DEVICE = 2, WRITABLE = 4 };

/* The order is that of mounting: a row may lie below the one before it. */
static const struct mount_source base_sources[] = {
    {"/usr",                 NULL, MUST_EXIST         },
    {"/etc/alternatives",    NULL, 0                  },
    {"/etc/fonts",           NULL, 0                  },
    {"/etc/ld.so.cache",     NULL, 0                  },
    {"/etc/ld.so.conf",      NULL, 0                  },
    {"/etc/ld.so.conf.d",    NULL, 0                  },
    {"/etc/localtime",       NULL, 0                  },
    {"/etc/magic",           NULL, 0                  },
    {"/etc/matplotlibrc",    NULL, 0                  },
    {"/etc/mime.types",      NULL, 0                  },
    {"/etc/ssl/certs",       NULL, 0                  },
    {"/etc/ssl/openssl.cnf", NULL, 0                  },
    {"/dev/null",            NULL, DEVICE | MUST_EXIST},
    {"/dev/zero",            NULL, DEVICE | MUST_EXIST},
    {"/dev/full",            NULL, DEVICE             },
    {"/dev/random",          NULL, DEVICE | MUST_EXIST},
    {"/dev/urandom",         NULL, DEVICE | MUST_EXIST},
};

/* Links on a merged system, directories of their own on an older one. */
static const char *const top_links[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

struct text_file {
    const char *path, *text;
};

static const struct text_file text_files[] = {
    {"/etc/passwd",        "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
                    "user:x:1000:1000:user:/tmp:/bin/bash\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"/etc/group",         "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"                             },
    {"/etc/hosts",         "127.0.0.1 localhost retort\n::1 localhost\n"                             },
    {"/etc/hostname",      "retort\n"                                                                },
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n"            },
    {"/etc/resolv.conf",   "# there is no name server: this sandbox has no network\n"                },
};

/* /mnt/data is what the workspace is called in code written for Azure; where code written for Ubik
 * looks for its documents, and Anthropic's for its skills, is a folder of it. */
static const char *const box_links[][2] = {
    {"/proc/self/fd",   STAGE "/dev/fd"             },
    {"/proc/self/fd/0", STAGE "/dev/stdin"          },
    {"/proc/self/fd/1", STAGE "/dev/stdout"         },
    {"/proc/self/fd/2", STAGE "/dev/stderr"         },
    {BOX_WORKSPACE,     STAGE "/mnt/data"           },
    {BOX_UPLOADS,       STAGE "/home/uploaded_files"},
    {BOX_SKILLS,        STAGE "/skills"             },
};

#define SOURCES_MAX 64

struct root_tree {
    size_t count;
    struct {
        struct mount_source from;
        int fd; /* a detached mount */
        bool is_dir;
    } row[SOURCES_MAX];
};

int root_dir_take(int fd)
{
    return (int)syscall(SYS_open_tree, fd, "", TREE_FLAGS | AT_EMPTY_PATH);
}

static int take(struct root_tree *t, struct mount_source from, struct err *e)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY};
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (t->count == SOURCES_MAX)
        return err_set(e, ERR_LIMIT, "more than %d directories to show", SOURCES_MAX);
    fd = from.given > 0 ? from.given : (int)syscall(SYS_open_tree, AT_FDCWD, from.path, TREE_FLAGS);
    if (fd < 0 && errno == ENOENT && !(from.flags & MUST_EXIST))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "take '%s'", from.path);
    if (from.flags & WRITABLE)
        attr.attr_set &= ~(uint64_t)MOUNT_ATTR_RDONLY;
    if (from.flags & DEVICE) /* writing to the null device is what it is for */
        attr.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    else
        attr.attr_set |= MOUNT_ATTR_NODEV;
    if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return err_sys(e, "make '%s' read-only", from.path);
    t->row[t->count].from = from;
    t->row[t->count].is_dir = S_ISDIR(st.st_mode);
    t->row[t->count++].fd = take_fd(&fd);
    return 0;
}

/* /etc/python3, /etc/python3.11, ...: Debian's sitecustomize lives there. */
static int take_python_etc(struct root_tree *t, struct err *e)
{
    DIR *d = opendir("/etc");
    int rc = 0;

    for (struct dirent *entry; rc == 0 && d && (entry = readdir(d));) {
        char path[300];
        if (strncmp(entry->d_name, "python3", 7) != 0)
            continue;
        snprintf(path, sizeof(path), "/etc/%s", entry->d_name);
        rc = take(t, (struct mount_source){.path = mem_strdup(path)}, e);
    }
    if (d)
        closedir(d);
    return rc;
}

static int take_all(struct root_tree *t, const struct root_plan *plan, struct err *e)
{
    for (size_t i = 0; i < COUNT(base_sources); i++)
        if (take(t, base_sources[i], e) < 0)
            return -1;
    if (take_python_etc(t, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(top_links); i++) {
        struct stat st;
        if (lstat(top_links[i], &st) == 0 && S_ISDIR(st.st_mode) &&
            take(t, (struct mount_source){.path = top_links[i]}, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < plan->dir_count; i++) {
        const struct root_dir *dir = &plan->dirs[i];
        unsigned flags = MUST_EXIST | (dir->writable ? WRITABLE : 0);
        if (take(t, (struct mount_source){dir->path, dir->where, flags, dir->fd}, e) < 0)
            return -1;
    }
    return 0;
}

/* mkdir -p of everything above the last component of path; the last too when is_dir. */
static int make_place(const char *path, bool is_dir, struct err *e)
{
    char at[512];

    if ((size_t)snprintf(at, sizeof(at), "%s", path) >= sizeof(at))
        return err_set(e, ERR_LIMIT, "path too long: '%.200s...'", path);
    for (char *p = at + sizeof(STAGE); *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(at, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make '%s'", at);
        *p = '/';
    }
    if (is_dir) {
        if (mkdir(at, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make '%s'", at);
        return 0;
    }
    AUTO_CLOSE int fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 && errno != EEXIST)
        return err_sys(e, "make '%s'", at);
    return 0;
}

static int put(struct root_tree *t, size_t i, struct err *e)
{
    const char *where = t->row[i].from.where ? t->row[i].from.where : t->row[i].from.path;
    char at[512];

    if ((size_t)snprintf(at, sizeof(at), STAGE "%s", where) >= sizeof(at))
        return err_set(e, ERR_LIMIT, "path too long: '%.200s...'", where);
    /* What lies inside something already shown needs no place made (and could not have one). */
    if (access(at, F_OK) < 0 && make_place(at, t->row[i].is_dir, e) < 0)
        return -1;
    if (syscall(SYS_move_mount, t->row[i].fd, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "show '%s'", where);
    fd_closep(&t->row[i].fd);
    return 0;
}

static int put_text(const struct text_file *f, struct err *e)
{
    char at[128];

    snprintf(at, sizeof(at), STAGE "%s", f->path);
    if (make_place(at, false, e) < 0)
        return -1;
    if (fd_write_file_at(AT_FDCWD, at, str_of(f->text)) < 0)
        return err_sys(e, "write '%s'", f->path);
    return 0;
}

static int put_links(struct err *e)
{
    for (size_t i = 0; i < COUNT(top_links); i++) {
        char to[128], at[64];
        ssize_t n = readlink(top_links[i], to, sizeof(to) - 1);
        if (n < 0)
            continue;
        to[n] = '\0';
        snprintf(at, sizeof(at), STAGE "%s", top_links[i]);
        if (symlink(to, at) < 0)
            return err_sys(e, "link '%s'", top_links[i]);
    }
    for (size_t i = 0; i < COUNT(box_links); i++)
        if (symlink(box_links[i][0], box_links[i][1]) < 0)
            return err_sys(e, "link '%s'", box_links[i][1]);
    return 0;
}

static int build_tree(struct root_tree *t, struct err *e)
{
    static const char *const places[] = {STAGE "/proc",    STAGE "/tmp", STAGE "/workspace",
                                         STAGE "/dev/shm", STAGE "/run", STAGE "/var/lib/retort",
                                         STAGE "/mnt",     STAGE "/home"};

    if (mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m,nr_inodes=64k") < 0)
        return err_sys(e, "mount the new root");
    for (size_t i = 0; i < COUNT(places); i++)
        if (make_place(places[i], true, e) < 0)
            return -1;
    for (size_t i = 0; i < COUNT(text_files); i++)
        if (put_text(&text_files[i], e) < 0)
            return -1;
    for (size_t i = 0; i < t->count; i++)
        if (put(t, i, e) < 0)
            return -1;
    if (put_links(e) < 0)
        return -1;
    if (mount("proc", STAGE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "mount proc");
    return 0;
}

int root_build(const struct root_plan *plan, struct err *e)
{
    struct root_tree t = {0};

    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, "make mounts private");
    if (take_all(&t, plan, e) < 0 || build_tree(&t, e) < 0)
        return -1;
    /* pivot_root onto itself, then drop the old root from under the new: pivot_root(2), notes. */
    if (chdir(STAGE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return err_sys(e, "enter the new root");
    return 0;
}

int root_seal(struct err *e)
{
    static const char *const writable[] = {"/", BOX_CACHE_DIR};
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};

    if (view_open(e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(writable); i++)
        if (syscall(SYS_mount_setattr, AT_FDCWD, writable[i], 0, &ro, sizeof(ro)) < 0 &&
            errno != ENOENT && errno != EINVAL) /* EINVAL: no cache was mounted there */
            return err_sys(e, "seal '%s'", writable[i]);
    AUTO_CLOSE int probe = open("/.probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (probe >= 0 || errno != EROFS)
        return err_set(e, ERR_HOST, "the root is still writable");
    return 0;
}
