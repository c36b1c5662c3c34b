/*
 * The host's hand in a workspace. Every path is opened below the workspace's own
 * fd, across no link and no mount, and as the session's own user: what the code in
 * the box may not do, this may not do on its behalf.
 */
#include "engine/engine_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_MAX_ 1024
#define DEPTH_MAX 32
#define FILES_MAX 20000
#define NAMES_MAX                                                                                  \
    (2 * MiB) /* of their paths: they are in the server's memory, not in the box's                 \
               */
/* How long a scan takes is bounded by what it looks at, files or not; a folder takes about as long
 * as eight files. */
#define EFFORT_MAX    20000
#define EFFORT_SMALL  1000
#define FOLDER_EFFORT 8
#define COPY_SIZE     (256 * KiB)
#define UPLOAD_PREFIX ".retort-upload-" /* of a file that is on its way in */

/* --- as whom --- */

/* setfsuid(2) is per thread and takes the file capabilities away while it lasts. */
static uid_t act_as(uid_t uid)
{
    if (geteuid() == uid)
        return uid;
    setfsgid(uid);
    return (uid_t)setfsuid(uid);
}

static void act_as_self(void)
{
    if ((uid_t)setfsuid((uid_t)-1) == geteuid())
        return;
    setfsuid(geteuid());
    setfsgid(getegid());
}

static int open_beneath(int dir, const char *path, uint64_t flags, uint64_t mode)
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
        above = open_beneath(space, name ? path : ".", O_RDONLY | O_DIRECTORY, 0);
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

static int copy_bytes(int from, int to, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(COPY_SIZE);

    for (off_t at = 0;;) {
        ssize_t n = pread(from, bytes, COPY_SIZE, at);
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
}

/* The folder of path, and its last name. */
static int open_folder(int space, char *path, char **ret_name, struct err *e)
{
    char *slash = strrchr(path, '/');
    int dir;

    *ret_name = slash ? slash + 1 : path;
    if (slash)
        *slash = '\0';
    dir = open_beneath(space, slash ? path : ".", O_RDONLY | O_DIRECTORY, 0);
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
    dir = open_folder(space, path, &name, e);
    if (dir < 0)
        return -1;
    snprintf(temporary, sizeof(temporary), UPLOAD_PREFIX "%u", atomic_fetch_add(&counter, 1));
    (void)!unlinkat(dir, temporary, 0);
    to = open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_EXCL, 0644);
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

static int check_path(struct str path, char ret[PATH_MAX_], struct err *e)
{
    if (path.n == 0 || path.p[0] == '/' || !str_to_cstr(path, ret, PATH_MAX_))
        return err_set(e, ERR_CALLER, "not a path below the workspace");
    return 0;
}

int space_put(const struct space *sp, struct str path, int src, uint32_t mode, int64_t mtime_ms,
              struct err *e)
{
    char name[PATH_MAX_];
    int rc;

    *e = (struct err){0};
    if (check_path(path, name, e) < 0)
        return -1;
    act_as(sp->uid);
    rc = put(sp->dir, name, src, mode, mtime_ms, e);
    act_as_self();
    /* What the code in the box has put in the way is not our failure, nor is its full disk. */
    if (rc < 0 && (e->sys == ENOSPC || e->sys == EDQUOT))
        e->kind = ERR_LIMIT;
    else if (rc < 0 && e->sys != EIO && e->sys != ENOMEM && e->sys != EMFILE)
        e->kind = ERR_CALLER;
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
    char name[PATH_MAX_], *last;
    int rc = -1;

    *e = (struct err){0};
    if (check_path(path, name, e) < 0)
        return -1;
    act_as(sp->uid);
    dir = open_folder(sp->dir, name, &last, e);
    if (dir >= 0 && is_file(dir, last))
        rc = unlinkat(dir, last, 0);
    int sys = errno;
    act_as_self();
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

void space_close(struct space *sp)
{
    fd_closep(&sp->dir);
}

/* O_NONBLOCK: a FIFO planted under the name must not hold the server. */
int space_get(const struct space *sp, struct str path, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    char name[PATH_MAX_];
    struct stat st;

    if (check_path(path, name, e) < 0)
        return -1;
    act_as(sp->uid);
    fd = open_beneath(sp->dir, name, O_RDONLY | O_NONBLOCK, 0);
    act_as_self();
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(e, "open '%s' in the workspace", name);
        e->kind = e->sys == ENOENT ? ERR_MISSING : ERR_CALLER;
        return -1;
    }
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CALLER, "'%s' is not a regular file", name);
    return take_fd(&fd);
}

/* --- what changed --- */

struct entry {
    char *path; /* owned */
    uint64_t ino, size;
    struct timespec ctime; /* unlike mtime, not for the guest to choose */
};

struct list {
    struct entry *at; /* owned */
    size_t n, cap;
    size_t names;     /* bytes of the paths */
    size_t looked_at; /* of the effort */
    bool blind;       /* descriptors or memory were wanting: what is not here may be there */
};

/* Looks are numbered as they begin. What one has seen is old when a later one has been told, or
 * when the host has put a file meanwhile. */
struct tree {
    struct list seen;
    uint64_t begun, told;
};

struct look {
    struct list now;
    uint64_t number;
    bool cut; /* there was more than is looked at */
};

static void list_done(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].path);
    free(l->at);
    *l = (struct list){0};
}

struct tree *tree_new(void)
{
    return mem_zalloc(sizeof(struct tree));
}

void tree_free(struct tree *t)
{
    if (!t)
        return;
    list_done(&t->seen);
    free(t);
}

static bool list_add(struct list *l, const char *path, const struct stat *st)
{
    size_t name = strlen(path) + 1;

    if (l->n == FILES_MAX || l->names + name > NAMES_MAX)
        return false;
    l->names += name;
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 32;
        l->at = mem_realloc(l->at, l->cap * sizeof(*l->at));
    }
    l->at[l->n++] = (struct entry){
        .path = mem_strdup(path),
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .ctime = st->st_ctim,
    };
    return true;
}

/* A folder that cannot be opened is the code's doing, unless it is ours. */
static bool is_our_want(int sys)
{
    return sys == EMFILE || sys == ENFILE || sys == ENOMEM;
}

/* False when the list is full. Takes ownership of dir. */
static bool walk(struct list *l, size_t effort, int dir, char *path, size_t len, int depth)
{
    DIR *d = fdopendir(dir);
    bool room = true;

    if (!d) {
        fd_closep(&dir);
        l->blind = true;
        return true;
    }
    for (struct dirent *entry; room && (entry = readdir(d));) {
        struct stat st;
        size_t n = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strncmp(entry->d_name, UPLOAD_PREFIX, sizeof(UPLOAD_PREFIX) - 1) == 0 ||
            len + n + 2 > PATH_MAX_)
            continue;
        if (l->looked_at++ >= effort) {
            room = false;
            break;
        }
        if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        memcpy(path + len, entry->d_name, n + 1);
        if (S_ISREG(st.st_mode)) {
            room = list_add(l, path, &st);
        } else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
                   strcmp(entry->d_name, "__pycache__") != 0) {
            l->looked_at += FOLDER_EFFORT;
            int below = open_beneath(dir, entry->d_name, O_RDONLY | O_DIRECTORY, 0);
            path[len + n] = '/';
            l->blind |= below < 0 && is_our_want(errno);
            if (below >= 0)
                room = walk(l, effort, below, path, len + n + 1, depth + 1);
        }
    }
    closedir(d);
    return room;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static bool same(const struct entry *a, const struct entry *b)
{
    return a->ino == b->ino && a->size == b->size && a->ctime.tv_sec == b->ctime.tv_sec &&
           a->ctime.tv_nsec == b->ctime.tv_nsec;
}

struct teller {
    const struct limits *limits;
    tree_fn *fn;
    void *arg;
    size_t told;
    uint32_t hit;
    bool cut; /* not everything was looked at */
};

static void tell(struct teller *t, const struct entry *f, enum file_change change)
{
    struct event ev = {.kind = EVENT_FILE};

    if (t->told++ >= t->limits->artifact_count) {
        t->hit |= IN(LIMIT_ARTIFACT_COUNT);
        ev.file.unlisted = true;
    }
    ev.file.change = change;
    ev.file.path = str_of(f->path);
    ev.file.size = change == FILE_DELETED ? 0 : f->size;
    ev.file.mime = mime_of(ev.file.path);
    ev.file.too_large = change != FILE_DELETED && f->size > t->limits->artifact_bytes;
    if (ev.file.too_large)
        t->hit |= IN(LIMIT_ARTIFACT_SIZE);
    t->fn(t->arg, &ev);
}

/* Both lists are sorted: one walk over the two tells what came, changed and went. */
static void compare(const struct list *old, const struct list *now, struct teller *t)
{
    size_t i = 0, j = 0;

    while (i < old->n || j < now->n) {
        int c = i == old->n ? 1 : j == now->n ? -1 : by_path(&old->at[i], &now->at[j]);
        if (c < 0 && t->cut) /* perhaps only not looked at */
            i++;
        else if (c < 0)
            tell(t, &old->at[i++], FILE_DELETED);
        else if (c > 0)
            tell(t, &now->at[j++], FILE_CREATED);
        else if (!same(&old->at[i++], &now->at[j++]))
            tell(t, &now->at[j - 1], FILE_CHANGED);
    }
}

static void say(struct teller *t, const char *text)
{
    struct event ev = {.kind = EVENT_STATUS, .text = str_of(text)};

    t->fn(t->arg, &ev);
}

struct look *look_new(struct tree *t)
{
    struct look *k = mem_zalloc(sizeof(*k));

    k->number = ++t->begun;
    return k;
}

void look_free(struct look *k)
{
    if (!k)
        return;
    list_done(&k->now);
    free(k);
}

static void look(struct look *k, const struct space *sp, size_t effort)
{
    char path[PATH_MAX_] = "";
    int dir;

    act_as(sp->uid);
    dir = open_beneath(sp->dir, ".", O_RDONLY | O_DIRECTORY, 0);
    k->now.blind = dir < 0;
    k->cut = dir >= 0 && !walk(&k->now, effort, dir, path, 0, 0);
    act_as_self();
    if (k->now.n > 1)
        qsort(k->now.at, k->now.n, sizeof(*k->now.at), by_path);
}

void look_walk(struct look *k, const struct space *sp)
{
    look(k, sp, EFFORT_MAX);
}

bool look_try(struct look *k, const struct tree *t, const struct space *sp)
{
    if (t->seen.n > EFFORT_SMALL)
        return false;
    look(k, sp, EFFORT_SMALL);
    if (!k->cut)
        return true;
    list_done(&k->now);
    return false;
}

bool look_is_old(const struct look *k, const struct tree *t)
{
    return k->number < t->told;
}

static void say_rest(struct teller *t, bool cut)
{
    uint64_t listed = t->limits->artifact_count;
    char text[160];

    if (t->told > listed) {
        snprintf(text, sizeof(text), "%llu more files changed than are listed (limit: %llu)",
                 (unsigned long long)(t->told - listed), (unsigned long long)listed);
        say(t, text);
    }
    if (cut) {
        t->hit |= IN(LIMIT_ARTIFACT_COUNT);
        say(t, "the workspace holds more files and folders than are looked at");
    }
}

uint32_t tree_tell(struct tree *t, struct look *k, const struct limits *l, tree_fn *fn, void *arg)
{
    struct teller teller = {.limits = l, .fn = fn, .arg = arg, .cut = k->cut};

    /* One that was blind must not take files for deleted; the next look sees them. */
    if (!look_is_old(k, t) && !k->now.blind) {
        struct list before = t->seen;
        t->seen = k->now;
        t->told = k->number;
        k->now = (struct list){0};
        compare(&before, &t->seen, &teller);
        list_done(&before);
        say_rest(&teller, k->cut);
    }
    look_free(k);
    return teller.hit;
}

uint32_t tree_scan(struct tree *t, int space, uid_t uid, const struct limits *l, tree_fn *fn,
                   void *arg)
{
    struct look *k = look_new(t);

    look_walk(k, &(struct space){space, uid});
    return tree_tell(t, k, l, fn, arg);
}

static size_t place_of(const struct list *l, const char *path)
{
    size_t low = 0, high = l->n;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp(l->at[mid].path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void forget(struct list *l, size_t at)
{
    l->names -= strlen(l->at[at].path) + 1;
    free(l->at[at].path);
    l->n--;
    memmove(&l->at[at], &l->at[at + 1], (l->n - at) * sizeof(*l->at));
}

void tree_note(struct tree *t, int space, uid_t uid, struct str path)
{
    AUTO_CLOSE int fd = -1;
    struct list *l = &t->seen;
    char name[PATH_MAX_];
    struct stat st;
    struct err e;
    bool there;

    t->told = ++t->begun;
    if (check_path(path, name, &e) < 0)
        return;
    act_as(uid);
    fd = open_beneath(space, name, O_PATH, 0);
    act_as_self();
    there = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    size_t at = place_of(l, name);
    if (at < l->n && strcmp(l->at[at].path, name) == 0)
        forget(l, at);
    if (!there || !list_add(l, name, &st))
        return;
    struct entry one = l->at[l->n - 1];
    memmove(&l->at[at + 1], &l->at[at], (l->n - 1 - at) * sizeof(*l->at));
    l->at[at] = one;
}

/* --- what kind of file --- */

const char *mime_of(struct str path)
{
    static const char *const table[][2] = {
        {".png",     "image/png"                                                                },
        {".jpg",     "image/jpeg"                                                               },
        {".jpeg",    "image/jpeg"                                                               },
        {".gif",     "image/gif"                                                                },
        {".svg",     "image/svg+xml"                                                            },
        {".webp",    "image/webp"                                                               },
        {".pdf",     "application/pdf"                                                          },
        {".csv",     "text/csv"                                                                 },
        {".tsv",     "text/tab-separated-values"                                                },
        {".txt",     "text/plain"                                                               },
        {".log",     "text/plain"                                                               },
        {".md",      "text/markdown"                                                            },
        {".py",      "text/x-python"                                                            },
        {".html",    "text/html"                                                                },
        {".htm",     "text/html"                                                                },
        {".json",    "application/json"                                                         },
        {".jsonl",   "application/x-ndjson"                                                     },
        {".xml",     "application/xml"                                                          },
        {".yaml",    "application/yaml"                                                         },
        {".yml",     "application/yaml"                                                         },
        {".zip",     "application/zip"                                                          },
        {".gz",      "application/gzip"                                                         },
        {".tar",     "application/x-tar"                                                        },
        {".parquet", "application/vnd.apache.parquet"                                           },
        {".xlsx",    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"        },
        {".docx",    "application/vnd.openxmlformats-officedocument.wordprocessingml.document"  },
        {".pptx",    "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
        {".mp3",     "audio/mpeg"                                                               },
        {".wav",     "audio/x-wav"                                                              },
        {".mp4",     "video/mp4"                                                                },
        {".ipynb",   "application/x-ipynb+json"                                                 },
        {".sqlite",  "application/vnd.sqlite3"                                                  },
        {".db",      "application/vnd.sqlite3"                                                  },
    };

    for (size_t i = 0; i < COUNT(table); i++) {
        size_t n = strlen(table[i][0]);
        if (path.n > n && strncasecmp(path.p + path.n - n, table[i][0], n) == 0)
            return table[i][1];
    }
    return "application/octet-stream";
}
