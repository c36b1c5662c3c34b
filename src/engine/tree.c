/*
 * Finds what has changed in a workspace: walks through all of it and compares the result with
 * that of the walk before. The walk may run on another thread; changes are reported on the loop.
 */
#include "engine/engine_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define DEPTH_MAX 32
#define FILES_MAX 20000
#define NAMES_MAX (2 * MiB) /* of their paths, which are in our memory and not in the box's */
/* How long a scan takes is bounded by what it looks at, files or not; a folder takes about as long
 * as eight files. */
#define EFFORT_MAX    20000
#define EFFORT_SMALL  1000
#define FOLDER_EFFORT 8
#define SEEN_MAX      (32 * MiB) /* of what another node tells of a look */

struct entry {
    char *path; /* owned */
    uint64_t ino, size;
    struct timespec ctime; /* unlike mtime, not for the guest to choose */
};

struct name_list {
    struct entry *at; /* owned */
    size_t n, cap;
    size_t names;     /* bytes of the paths */
    size_t looked_at; /* of the effort */
    bool blind;       /* descriptors or memory were wanting: what is not here may be there */
    bool some;        /* there is an entry of any kind, listed or not */
};

/* A workspace without any entry, and when that became so. What is put into it later changes this
 * time, as the guest cannot set it: until then there is nothing to look at. */
struct bareness {
    bool is_known;
    struct timespec since;
};

/* Looks are numbered as they begin. What one has seen is old when a later one has been told, or
 * when the host has put a file meanwhile. */
struct tree {
    struct name_list seen;
    struct bareness bare;
    uint64_t begun, told;
};

struct look {
    struct name_list now;
    struct bareness bare;
    uint64_t number;
    bool cut;              /* there was more than is looked at */
    struct far_files *far; /* held, or NULL: another node looks, */
    struct buf seen;       /* and says this of it */
};

static void list_done(struct name_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].path);
    free(l->at);
    *l = (struct name_list){0};
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

static bool list_add(struct name_list *l, const char *path, const struct stat *st)
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
static bool walk(struct name_list *l, size_t effort, int dir, char *path, size_t len, int depth)
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
        work_yield();
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        l->some = true;
        if (strncmp(entry->d_name, UPLOAD_PREFIX, sizeof(UPLOAD_PREFIX) - 1) == 0 ||
            len + n + 2 > SPACE_NAME_MAX)
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
            int below = space_open_beneath(dir, entry->d_name, O_RDONLY | O_DIRECTORY, 0);
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

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same(const struct entry *a, const struct entry *b)
{
    return a->ino == b->ino && a->size == b->size && same_time(a->ctime, b->ctime);
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
static void compare(const struct name_list *old, const struct name_list *now, struct teller *t)
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

struct look *look_new_far(struct far_files *f)
{
    struct look *k = mem_zalloc(sizeof(*k));

    k->far = f;
    buf_init(&k->seen, SEEN_MAX);
    return k;
}

struct buf *look_seen(struct look *k)
{
    return &k->seen;
}

void look_set_blind(struct look *k)
{
    k->now.blind = true;
}

void look_free(struct look *k)
{
    if (!k)
        return;
    if (k->far)
        k->far->ops->look_done(k->far);
    buf_done(&k->seen);
    list_done(&k->now);
    free(k);
}

/* Before the walk. The kernel's time goes in ticks: what comes in the tick of the last change
 * leaves the time as it is, so that one must be over. */
static struct bareness bareness_of(int dir)
{
    struct timespec now;
    struct stat st;
    bool is_over = fstat(dir, &st) == 0 && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 &&
                   (st.st_ctim.tv_sec < now.tv_sec ||
                    (st.st_ctim.tv_sec == now.tv_sec && st.st_ctim.tv_nsec < now.tv_nsec));

    return is_over ? (struct bareness){true, st.st_ctim} : (struct bareness){0};
}

bool tree_is_bare(const struct tree *t, int dir)
{
    struct stat st;

    return t->bare.is_known && fstat(dir, &st) == 0 && same_time(st.st_ctim, t->bare.since);
}

static void look(struct look *k, const struct space *sp, size_t effort)
{
    char path[SPACE_NAME_MAX] = "";
    int dir;

    k->bare = bareness_of(sp->dir);
    space_act_as(sp->uid);
    dir = space_open_beneath(sp->dir, ".", O_RDONLY | O_DIRECTORY, 0);
    k->now.blind = dir < 0;
    k->cut = dir >= 0 && !walk(&k->now, effort, dir, path, 0, 0);
    space_act_as_self();
    k->bare.is_known &= !k->now.some && !k->now.blind;
    if (k->now.n > 1)
        qsort(k->now.at, k->now.n, sizeof(*k->now.at), by_path);
}

void look_walk(struct look *k, const struct space *sp)
{
    if (k->far)
        return k->far->ops->look(k->far, k);
    look(k, sp, EFFORT_MAX);
}

bool look_is_blind(const struct look *k)
{
    return k->now.blind;
}

bool look_try(struct look *k, const struct tree *t, const struct space *sp)
{
    if (t->seen.n > EFFORT_SMALL)
        return false;
    if (tree_is_bare(t, sp->dir)) {
        k->bare = t->bare;
        return true;
    }
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
        struct name_list before = t->seen;
        t->seen = k->now;
        t->bare = k->bare;
        t->told = k->number;
        k->now = (struct name_list){0};
        compare(&before, &t->seen, &teller);
        list_done(&before);
        say_rest(&teller, k->cut);
    }
    look_free(k);
    return teller.hit;
}

static size_t place_of(const struct name_list *l, const char *path)
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

static void forget(struct name_list *l, size_t at)
{
    l->names -= strlen(l->at[at].path) + 1;
    free(l->at[at].path);
    l->n--;
    memmove(&l->at[at], &l->at[at + 1], (l->n - at) * sizeof(*l->at));
}

void tree_note(struct tree *t, int space, uid_t uid, struct str path)
{
    AUTO_CLOSE int fd = -1;
    struct name_list *l = &t->seen;
    char name[SPACE_NAME_MAX];
    struct stat st;
    struct err e;
    bool there;

    t->told = ++t->begun;
    t->bare = (struct bareness){0};
    if (space_check_path(path, name, &e) < 0)
        return;
    space_act_as(uid);
    fd = space_open_beneath(space, name, O_PATH, 0);
    space_act_as_self();
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
