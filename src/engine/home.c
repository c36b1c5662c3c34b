/*
 * Home: what a session keeps besides the regular files of its workspace. That is everything below
 * /tmp, which is its home directory, and the links and folders of the workspace.
 *
 * home_pack() writes all of it as one stream of entries when a session falls asleep; home_unpack()
 * makes it again in the next sandbox. An entry is a head, its path, and what it holds: the target
 * of a link, or the data of a file run by run, so that a hole takes no room. A folder comes before
 * what is in it. Sockets, FIFOs and caches of bytecode are not kept.
 *
 * Both act as the session's own user below descriptors of the sandbox, across no link.
 */
#include "engine/engine_int.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX   32
#define ENTRIES_MAX 20000
#define CHUNK       (64 * KiB)

enum entry_kind { ENTRY_FOLDER = 'd', ENTRY_FILE = 'f', ENTRY_LINK = 'l', ENTRY_LEFT_OUT = 'x' };

/* As it is stored: little-endian. size: of a file, of the target of a link; of ENTRY_LEFT_OUT, how
 * many entries there were that are not kept. */
struct entry_head {
    uint8_t kind, root;
    uint16_t path_n;
    uint32_t mode;
    int64_t mtime_ms;
    uint64_t size;
};
static_assert(sizeof(struct entry_head) == 24, "no padding");

struct data_run {
    uint64_t at, n; /* n == 0: the file has no more */
};

/* --- packing --- */

struct packer {
    home_write_fn *write;
    void *arg;
    struct err *e;
    uint64_t left; /* bytes of data that may still be packed */
    size_t count, left_out;
    uint8_t root;
    const struct space *in; /* borrowed: acting as its user; NULL: as ourselves */
    size_t n;
    char *bytes; /* owned: CHUNK of them, n not yet written */
};

/* The session's user may not write where the server keeps bytes. */
static int write_out(struct packer *p, struct str bytes)
{
    int rc;

    space_act_as_self();
    rc = p->write(p->arg, bytes, p->e);
    if (p->in)
        space_act_as(p->in->uid);
    return rc;
}

static int flush(struct packer *p)
{
    struct str bytes = {p->bytes, p->n};

    p->n = 0;
    return bytes.n ? write_out(p, bytes) : 0;
}

static int emit(struct packer *p, const void *bytes, size_t n)
{
    if (p->n + n > CHUNK && flush(p) < 0)
        return -1;
    if (n > CHUNK)
        return write_out(p, (struct str){bytes, n});
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
    return 0;
}

static int emit_head(struct packer *p, enum entry_kind kind, const char *path,
                     const struct stat *st, uint64_t size)
{
    struct entry_head head = {
        .kind = (uint8_t)kind,
        .root = p->root,
        .path_n = htole16((uint16_t)strlen(path)),
        .mode = htole32(st->st_mode & 0777),
        .mtime_ms =
            (int64_t)htole64((uint64_t)(st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000)),
        .size = htole64(size),
    };

    p->count++;
    return emit(p, &head, sizeof(head)) < 0 ? -1 : emit(p, path, strlen(path));
}

static int emit_run(struct packer *p, int fd, off_t from, off_t to)
{
    struct data_run run = {htole64((uint64_t)from), htole64((uint64_t)(to - from))};
    AUTO_FREE char *bytes = mem_zalloc(CHUNK);

    if (emit(p, &run, sizeof(run)) < 0)
        return -1;
    for (off_t at = from; at < to;) {
        size_t most = to - at < (off_t)CHUNK ? (size_t)(to - at) : CHUNK;
        work_yield();
        ssize_t n = pread(fd, bytes, most, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(p->e, "read a file of the home");
        if (n == 0) { /* somebody has made it shorter meanwhile: the length is promised */
            memset(bytes, 0, most);
            n = (ssize_t)most;
        }
        if (emit(p, bytes, (size_t)n) < 0)
            return -1;
        at += n;
    }
    return 0;
}

static int pack_file(struct packer *p, int dir, const char *name, const char *path)
{
    AUTO_CLOSE int fd = space_open_beneath(dir, name, O_RDONLY | O_NONBLOCK, 0);
    struct data_run end = {0};
    uint64_t data = 0;
    struct stat st;
    off_t from, to;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        p->left_out++;
        return 0;
    }
    for (off_t at = 0; fd_data_run(fd, at, &from, &to); at = to)
        data += (uint64_t)(to - from);
    if (data > p->left) {
        p->left_out++;
        return 0;
    }
    if (emit_head(p, ENTRY_FILE, path, &st, (uint64_t)st.st_size) < 0)
        return -1;
    /* A file that grows meanwhile is kept as far as it fitted. */
    for (off_t at = 0; data > 0 && fd_data_run(fd, at, &from, &to); at = to) {
        if ((uint64_t)(to - from) > data)
            to = from + (off_t)data;
        data -= (uint64_t)(to - from);
        p->left -= (uint64_t)(to - from);
        if (emit_run(p, fd, from, to) < 0)
            return -1;
    }
    return emit(p, &end, sizeof(end));
}

static int pack_link(struct packer *p, int dir, const char *name, const char *path,
                     const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof(target));

    if (n <= 0 || n == (ssize_t)sizeof(target)) {
        p->left_out++;
        return 0;
    }
    return emit_head(p, ENTRY_LINK, path, st, (uint64_t)n) < 0 ? -1 : emit(p, target, (size_t)n);
}

static int pack_folder(struct packer *p, int dir, char *path, size_t len, int depth);

static int pack_below(struct packer *p, int dir, const char *name, char *path, size_t len,
                      const struct stat *st, int depth)
{
    int below;

    if (emit_head(p, ENTRY_FOLDER, path, st, 0) < 0)
        return -1;
    below = depth < DEPTH_MAX ? space_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (below < 0) {
        p->left_out++;
        return 0;
    }
    path[len] = '/';
    return pack_folder(p, below, path, len + 1, depth + 1);
}

/* path has the name of the entry behind its first len bytes. */
static int pack_entry(struct packer *p, int dir, const char *name, char *path, size_t len,
                      int depth)
{
    struct stat st;

    work_yield();
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return pack_below(p, dir, name, path, len, &st, depth);
    if (S_ISLNK(st.st_mode))
        return pack_link(p, dir, name, path, &st);
    return S_ISREG(st.st_mode) && p->root == HOME_TMP ? pack_file(p, dir, name, path) : 0;
}

/* Takes ownership of dir. */
static int pack_folder(struct packer *p, int dir, char *path, size_t len, int depth)
{
    DIR *d = fdopendir(dir);
    int rc = 0;

    if (!d) {
        fd_closep(&dir);
        return err_sys(p->e, "look through the home");
    }
    for (struct dirent *entry; rc == 0 && (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strcmp(entry->d_name, "__pycache__") == 0 ||
            strncmp(entry->d_name, UPLOAD_PREFIX, sizeof(UPLOAD_PREFIX) - 1) == 0)
            continue;
        /* The rows of the store have the files of the workspace. */
        if (p->root == HOME_WORKSPACE && entry->d_type == DT_REG)
            continue;
        if (len + n + 2 > SPACE_NAME_MAX || p->count >= ENTRIES_MAX) {
            p->left_out++;
            continue;
        }
        memcpy(path + len, entry->d_name, n + 1);
        rc = pack_entry(p, dir, entry->d_name, path, len + n, depth);
    }
    closedir(d);
    return rc;
}

static int pack_root(struct packer *p, const struct space *sp)
{
    char path[SPACE_NAME_MAX] = "";
    int rc, dir;

    p->in = sp;
    space_act_as(sp->uid);
    dir = space_open_beneath(sp->dir, ".", O_RDONLY | O_DIRECTORY, 0);
    rc = dir < 0 ? err_sys(p->e, "open the home") : pack_folder(p, dir, path, 0, 0);
    p->in = NULL;
    space_act_as_self();
    return rc;
}

int home_pack(const struct space roots[HOME_ROOTS], uint64_t max, home_write_fn *write, void *arg,
              struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(CHUNK);
    struct packer p = {.write = write, .arg = arg, .e = e, .left = max, .bytes = bytes};
    struct stat none = {0};

    if (roots[0].far)
        return roots[0].far->ops->pack(roots[0].far, max, write, arg, e);
    for (; p.root < HOME_ROOTS; p.root++)
        if ((p.root != HOME_TMP || max > 0) && pack_root(&p, &roots[p.root]) < 0)
            return -1;
    p.root = 0;
    if (p.left_out && emit_head(&p, ENTRY_LEFT_OUT, "", &none, p.left_out) < 0)
        return -1;
    return flush(&p);
}

/* --- unpacking --- */

struct folder_look {
    char *path; /* owned */
    uint8_t root;
    uint32_t mode;
    int64_t mtime_ms;
};

struct unpacker {
    const struct space *roots;   /* borrowed */
    FILE *from;                  /* owned */
    struct folder_look *folders; /* owned: they get their modes last, as some forbid to write */
    size_t count, cap;
    size_t left_out;
};

static int take(struct unpacker *u, void *ret, size_t n, struct err *e)
{
    if (fread(ret, 1, n, u->from) != n)
        return err_set(e, ERR_HOST, "what was kept of the home ends too early");
    return 0;
}

static struct timespec time_of(int64_t ms)
{
    return (struct timespec){ms / 1000, ms % 1000 * 1000000};
}

/* Reads what is promised even when it cannot be written: the next entry comes after it. */
static int take_data(struct unpacker *u, int to, uint64_t size, bool *ret_whole, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(CHUNK);
    struct data_run run;

    while (take(u, &run, sizeof(run), e) == 0) {
        uint64_t at = le64toh(run.at), left = le64toh(run.n);
        if (left == 0) {
            *ret_whole &= to >= 0 && ftruncate(to, (off_t)size) == 0;
            return 0;
        }
        *ret_whole &= at <= size && left <= size - at;
        while (left > 0) {
            size_t n = left < CHUNK ? (size_t)left : CHUNK;
            work_yield();
            if (take(u, bytes, n, e) < 0)
                return -1;
            if (*ret_whole && (to < 0 || pwrite(to, bytes, n, (off_t)at) != (ssize_t)n))
                *ret_whole = false;
            at += n;
            left -= n;
        }
    }
    return -1;
}

static int unpack_file(struct unpacker *u, int dir, const char *name, const struct entry_head *head,
                       struct err *e)
{
    AUTO_CLOSE int to = -1;
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, time_of(head->mtime_ms)};
    bool whole = true;

    if (dir >= 0)
        to = space_open_beneath(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (take_data(u, to, head->size, &whole, e) < 0)
        return -1;
    whole = whole && fchmod(to, head->mode) == 0 && futimens(to, times) == 0;
    u->left_out += !whole;
    if (!whole && to >= 0)
        (void)!unlinkat(dir, name, 0);
    return 0;
}

/* What a client has put in its place meanwhile stays. */
static int unpack_link(struct unpacker *u, int dir, const char *name, const struct entry_head *head,
                       struct err *e)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, time_of(head->mtime_ms)};
    char target[PATH_MAX];

    if (head->size >= sizeof(target))
        return err_set(e, ERR_HOST, "what was kept of the home has too long a link");
    if (take(u, target, head->size, e) < 0)
        return -1;
    target[head->size] = '\0';
    if (dir < 0 || (symlinkat(target, dir, name) < 0 && errno != EEXIST))
        u->left_out++;
    else
        (void)!utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

static void unpack_folder(struct unpacker *u, const char *path, const struct entry_head *head)
{
    struct err e;

    if (space_mkdir(&u->roots[head->root], str_of(path), &e) < 0) {
        u->left_out++;
        return;
    }
    if (u->count == u->cap) {
        u->cap = u->cap ? u->cap * 2 : 32;
        u->folders = mem_realloc(u->folders, u->cap * sizeof(*u->folders));
    }
    u->folders[u->count++] =
        (struct folder_look){mem_strdup(path), head->root, head->mode, head->mtime_ms};
}

static int unpack_entry(struct unpacker *u, const struct entry_head *head, char *path,
                        struct err *e)
{
    const struct space *sp = &u->roots[head->root];
    AUTO_CLOSE int dir = -1;
    struct err lost;
    char *name;
    int rc;

    if (head->kind == ENTRY_LEFT_OUT) {
        u->left_out += head->size;
        return 0;
    }
    if (head->kind == ENTRY_FOLDER) {
        unpack_folder(u, path, head);
        return 0;
    }
    space_act_as(sp->uid);
    dir = space_open_folder(sp->dir, path, &name, &lost);
    rc = head->kind == ENTRY_FILE ? unpack_file(u, dir, name, head, e)
                                  : unpack_link(u, dir, name, head, e);
    space_act_as_self();
    return rc;
}

/* 1: an entry, 0: there is no more. */
static int take_head(struct unpacker *u, struct entry_head *ret, char path[SPACE_NAME_MAX],
                     struct err *e)
{
    size_t n = fread(ret, 1, sizeof(*ret), u->from);

    if (n == 0 && !ferror(u->from))
        return 0;
    ret->path_n = le16toh(ret->path_n);
    ret->mode = le32toh(ret->mode) & 0777;
    ret->mtime_ms = (int64_t)le64toh((uint64_t)ret->mtime_ms);
    ret->size = le64toh(ret->size);
    if (n < sizeof(*ret) || !strchr("dflx", ret->kind) || ret->kind == '\0' ||
        ret->path_n >= SPACE_NAME_MAX || ret->root >= HOME_ROOTS)
        return err_set(e, ERR_HOST, "what was kept of the home cannot be read");
    if (take(u, path, ret->path_n, e) < 0)
        return -1;
    path[ret->path_n] = '\0';
    return 1;
}

/* The last ones first: a folder is written to by what is in it. */
static void finish_folders(struct unpacker *u)
{
    while (u->count > 0) {
        struct folder_look *f = &u->folders[--u->count];
        const struct space *sp = &u->roots[f->root];
        const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, time_of(f->mtime_ms)};
        space_act_as(sp->uid);
        AUTO_CLOSE int dir = space_open_beneath(sp->dir, f->path, O_RDONLY | O_DIRECTORY, 0);
        if (dir >= 0 && (futimens(dir, times) < 0 || fchmod(dir, f->mode) < 0))
            u->left_out++;
        space_act_as_self();
        free(f->path);
    }
    free(u->folders);
}

int home_unpack(const struct space roots[HOME_ROOTS], int fd, size_t *ret_left_out, struct err *e)
{
    struct unpacker u = {.roots = roots};
    AUTO_CLOSE int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct entry_head head;
    char path[SPACE_NAME_MAX];
    int rc;

    if (roots[0].far)
        return roots[0].far->ops->unpack(roots[0].far, fd, ret_left_out, e);
    u.from = own < 0 ? NULL : fdopen(own, "re");
    if (!u.from)
        return err_sys(e, "read what was kept of the home");
    take_fd(&own);
    while ((rc = take_head(&u, &head, path, e)) > 0 && unpack_entry(&u, &head, path, e) == 0)
        ;
    finish_folders(&u);
    fclose(u.from);
    *ret_left_out = u.left_out;
    return rc == 0 ? 0 : -1;
}
