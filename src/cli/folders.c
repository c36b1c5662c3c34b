/*
 * --folder PATH[:ro], and the roots of an MCP client: folders of the user's own disk that sessions
 * see. Each is at FOLDERS_PLACE/NAME, where NAME is the last part of its path. Code writes to the
 * disk directly, so there is nothing to copy back: as the user who started retort, or where that is
 * root, as a user that has only the rights of others.
 */
#include "cli/cli_int.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FOLDERS_PLACE "/mnt/"

/* "PATH" or "PATH:ro"; a path that ends in :ro is written PATH:ro:rw. Owned: the path alone. */
static char *split(const char *word, bool *ret_writable)
{
    static const struct {
        const char *end;
        bool writable;
    } ends[] = {
        {":ro", false},
        {":rw", true }
    };
    size_t n = strlen(word);

    *ret_writable = true;
    for (size_t i = 0; i < COUNT(ends); i++)
        if (n > 3 && strcmp(word + n - 3, ends[i].end) == 0) {
            *ret_writable = ends[i].writable;
            return mem_strndup((struct str){word, n - 3});
        }
    return mem_strdup(word);
}

/* What is at a place already: the path of another folder, or the workspace, whose other name is
 * /mnt/data. NULL when the place is free. */
static const char *who_is_at(const struct folders *f, const char *where)
{
    if (strcmp(where, FOLDERS_PLACE "data") == 0)
        return "the workspace";
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->item[i].where, where) == 0)
            return f->item[i].path;
    return NULL;
}

/* Says where a folder is whose place is not the one that its name promises. */
static void say_moved(const char *path, const char *where, const char *wanted, const char *other)
{
    char shown[NAME_SHOWN], at[NAME_SHOWN], taken[NAME_SHOWN], by[NAME_SHOWN];

    log_warn("%s is at %s in the session: %s is %s", name_show(shown, str_of(path)),
             name_show(at, str_of(where)), name_show(taken, str_of(wanted)),
             name_show(by, str_of(other)));
}

static char *choose_place(const struct folders *f, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : "disk";
    char wanted[PATH_MAX], where[PATH_MAX];

    snprintf(wanted, sizeof(wanted), FOLDERS_PLACE "%s", name);
    const char *other = who_is_at(f, wanted);
    if (!other)
        return mem_strdup(wanted);
    int n = 2;
    do
        snprintf(where, sizeof(where), FOLDERS_PLACE "%s-%d", name, n++);
    while (who_is_at(f, where));
    say_moved(path, where, wanted, other);
    return mem_strdup(where);
}

/* Whether a folder shows the machine instead of files: processes, devices, settings of the kernel.
 * A session would see in it what its own /proc and /dev hide. */
static bool is_of_the_kernel(const char *path)
{
    static const long kinds[] = {
        PROC_SUPER_MAGIC,   SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
        DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,      SECURITYFS_MAGIC,
        BPF_FS_MAGIC,       NSFS_MAGIC,
    };
    struct statfs fs;

    if (strcmp(path, "/dev") == 0)
        return true; /* an ordinary tmpfs in many containers */
    if (statfs(path, &fs) < 0)
        return false;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (fs.f_type == kinds[i])
            return true;
    return false;
}

/* The folder's path without links, owned; NULL when there is none that may be shown. */
static char *resolve(const char *given, struct err *e)
{
    AUTO_FREE char *path = realpath(given, NULL);
    char shown[NAME_SHOWN];
    struct stat st;

    name_show(shown, str_of(given));
    if (!path || stat(path, &st) < 0) {
        err_sys(e, "cannot open %s", shown);
        e->kind = ERR_CALLER;
        return NULL;
    }
    if (!S_ISDIR(st.st_mode)) {
        err_set(e, ERR_CALLER, "%s is not a folder", shown);
        return NULL;
    }
    if (strcmp(path, "/") == 0) {
        err_set(e, ERR_CALLER, "/ is everything; name the folder that is needed");
        return NULL;
    }
    if (is_of_the_kernel(path)) {
        err_set(e, ERR_CALLER, "%s belongs to the kernel and shows this machine, not files", shown);
        return NULL;
    }
    return take_ptr(&path);
}

/* Warns of permissions that code will run into. Sandboxes that root starts have user ids of their
 * own, so code can do in a folder of root's what others can. */
static void say_closed(const char *path, bool writable)
{
    char shown[NAME_SHOWN];
    struct stat st;

    if (geteuid() != 0 || stat(path, &st) < 0)
        return;
    bool reads = (st.st_mode & S_IROTH) && (st.st_mode & S_IXOTH);
    if (reads && (!writable || (st.st_mode & S_IWOTH)))
        return;
    log_warn(
        "code cannot %s %s: root started retort, so code runs as another user, and the "
        "permissions of the folder (%04o) do not allow that. Start retort as an ordinary user, "
        "or allow it with: chmod o+%s",
        reads ? "write to" : "read", name_show(shown, str_of(path)), (unsigned)st.st_mode & 07777,
        writable ? "rwx" : "rx");
}

/* Takes path. */
static int put(struct folders *f, char *path, bool writable, struct err *e)
{
    AUTO_FREE char *owned = path;

    if (f->count == FOLDERS_MAX)
        return err_set(e, ERR_CALLER, "more than %d folders", FOLDERS_MAX);
    char *where = choose_place(f, path);
    say_closed(path, writable);
    f->item[f->count++] = (struct engine_folder){take_ptr(&owned), where, writable};
    return 0;
}

static int add(struct folders *f, const char *word, struct err *e)
{
    bool writable;
    AUTO_FREE char *given = split(word, &writable);
    char *path = resolve(given, e);

    return path && put(f, path, writable, e) == 0 ? 0 : err_wrap(e, "--folder");
}

/* Whether a folder is the user's home, or holds it. */
static bool holds_home(const char *path)
{
    AUTO_FREE char *home = getenv("HOME") ? realpath(getenv("HOME"), NULL) : NULL;
    size_t n = strlen(path);

    return home && strncmp(home, path, n) == 0 && (home[n] == '\0' || home[n] == '/');
}

int folders_add_root(struct folders *f, const char *path, bool writable, struct err *e)
{
    AUTO_FREE char *real = resolve(path, e);

    if (!real)
        return -1;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->item[i].path, real) == 0)
            return 0; /* --folder has it, as the user wants it */
    if (holds_home(real))
        return err_set(e, ERR_CALLER,
                       "it has your whole home directory; name the folder that is needed with "
                       "--folder");
    return put(f, take_ptr(&real), writable, e);
}

int folders_open(struct folders *ret, const struct settings *s, struct err *e)
{
    *ret = (struct folders){0};
    for (size_t i = 0; i < s->folders.count; i++)
        if (add(ret, s->folders.item[i], e) < 0)
            return -1;
    return 0;
}

void folders_done(struct folders *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free((char *)f->item[i].path);
        free((char *)f->item[i].where);
    }
    *f = (struct folders){0};
}

char *folders_tell(const struct folders *f, const char *lead, size_t from)
{
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    for (size_t i = from; i < f->count; i++) {
        char shown[NAME_SHOWN];
        buf_printf(&b, "%s%s (%s)", i > from ? ", " : lead,
                   name_show(shown, str_of(f->item[i].where)),
                   f->item[i].writable ? "what you write there stays on the disk" : "read only");
    }
    if (f->count <= from)
        return NULL;
    buf_put(&b, STR("."));
    return mem_strndup(buf_str(&b));
}
