/* Changes in a workspace: collected on the loop, saved on a worker, reported at the end. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Files of one cell that reach the disk when they may; of more, so many at a time, and before this
 * ends. So the disk never has much to do at once for one session. */
#define FEW           64
#define AT_ONCE       128
#define BYTES_AT_ONCE (16 * MiB)

static void change_done(struct change *c)
{
    free(c->path);
    free(c->problem);
}

void changes_done(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++)
        change_done(&c->at[i]);
    free(c->at);
    *c = (struct changes){0};
}

static struct change *add(struct changes *c)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 8;
        c->at = mem_realloc(c->at, c->cap * sizeof(*c->at));
    }
    c->at[c->n] = (struct change){0};
    return &c->at[c->n++];
}

/* Notes are about the files before them. */
static int by_path(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    return x->is_note != y->is_note ? x->is_note - y->is_note : strcmp(x->path, y->path);
}

void changes_seal(struct changes *c)
{
    if (c->n > 1)
        qsort(c->at, c->n, sizeof(*c->at), by_path);
    c->old = c->n;
}

/* One look tells a path once, so only what an earlier look has told can be the same. */
static struct change *find_old(struct changes *c, struct str path)
{
    AUTO_FREE char *name = c->old ? mem_strndup(path) : NULL;
    const struct change key = {.path = name};

    return c->old ? bsearch(&key, c->at, c->old, sizeof(*c->at), by_path) : NULL;
}

void changes_put(struct changes *c, const struct event *ev)
{
    struct change *to = ev->kind == EVENT_FILE ? find_old(c, ev->file.path) : NULL;
    bool fresh = !to;

    if (!to)
        to = add(c);
    if (ev->kind != EVENT_FILE) {
        to->is_note = true;
        to->path = mem_strndup(ev->text);
        return;
    }
    bool was_created = !fresh && to->change == FILE_CREATED && ev->file.change == FILE_CHANGED;
    char *path = fresh ? mem_strndup(ev->file.path) : to->path;
    *to = (struct change){
        .change = was_created ? FILE_CREATED : ev->file.change,
        .path = path,
        .size = ev->file.size,
        .mime = ev->file.mime,
        .too_large = ev->file.too_large,
        .unlisted = ev->file.unlisted,
    };
}

struct changes changes_copy(const struct changes *c)
{
    struct changes copy = {0};

    for (size_t i = 0; i < c->n; i++) {
        struct change *to = add(&copy);
        *to = c->at[i];
        to->path = mem_strdup(c->at[i].path);
        to->problem = NULL;
    }
    return copy;
}

void changes_return(struct changes *to, struct changes *from)
{
    for (size_t i = 0; i < from->n; i++) {
        free(take_ptr(&from->at[i].problem));
        from->at[i].saved = false;
    }
    from->written = 0;
    changes_seal(from);
    for (size_t i = 0; i < to->n; i++) {
        struct event ev = change_event(&to->at[i]);
        ev.file.unlisted = to->at[i].unlisted;
        changes_put(from, &ev);
    }
    changes_done(to);
    *to = *from;
    *from = (struct changes){0};
}

bool changes_has_files(const struct changes *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!c->at[i].is_note)
            return true;
    return false;
}

/* --- saving --- */

static void PRINTF(2, 3) set_problem(struct change *c, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    c->problem = mem_strdup(text);
}

/* A file that is gone again, or grows past the limit while it is read, is the code's affair; a disk
 * that takes no bytes, or a host without descriptors, is ours. */
static int save_one(struct change *c, struct store *st, const struct space *sp, uint64_t max,
                    enum blob_sync when, struct err *e)
{
    AUTO_CLOSE int fd = -1;
    struct err lost = {0};
    struct blob *b;
    struct stat file;

    fd = space_get(sp, str_of(c->path), &lost);
    if (fd < 0 && (lost.kind == ERR_HOST || lost.kind == ERR_AWAY)) {
        *e = lost;
        return -1;
    }
    if (fd < 0 || fstat(fd, &file) < 0) {
        set_problem(c, "a file was gone or closed to us before it could be saved");
        return 0;
    }
    b = blob_new(st, max, e);
    if (!b)
        return -1;
    if (blob_write_fd(b, fd, e) < 0) {
        blob_free(b);
        if (e->kind != ERR_LIMIT)
            return -1;
        *e = (struct err){0};
        c->too_large = true;
        return 0;
    }
    if (blob_keep(b, when, c->hash, &c->size, e) < 0)
        return -1;
    c->mode = file.st_mode & 0777;
    c->mtime_ms = (int64_t)file.st_mtim.tv_sec * 1000 + file.st_mtim.tv_nsec / 1000000;
    c->saved = true;
    return 0;
}

/* The code has run: to try again is no help. */
static int blame(struct err *e)
{
    e->kind = ERR_HOST;
    return err_wrap(e, "save a file of the workspace");
}

/* Files that were kept, and are not known to be on the disk. */
struct unsettled {
    size_t files; /* that were saved; the next two leave the first FEW of them out */
    size_t many;
    uint64_t bytes;
};

static int settle(struct unsettled *u, struct store *st, bool all, struct err *e)
{
    if (u->many == 0 || (!all && u->many < AT_ONCE && u->bytes < BYTES_AT_ONCE))
        return 0;
    u->many = 0;
    u->bytes = 0;
    return blobs_settle(st, e);
}

static int note_saved(struct unsettled *u, const struct change *c, struct store *st, struct err *e)
{
    if (u->files++ < FEW)
        return 0;
    u->many++;
    u->bytes += c->size;
    return settle(u, st, false, e);
}

int changes_save(struct changes *c, struct store *st, const struct space *sp,
                 const struct limits *limits, struct err *e)
{
    uint64_t max = limits->artifact_bytes;
    uint64_t left = limits->disk_bytes; /* holes count: they are bytes for whoever reads them */
    struct unsettled u = {0};

    for (size_t i = 0; i < c->n; i++) {
        struct change *one = &c->at[i];
        work_yield();
        if (one->is_note || one->change == FILE_DELETED)
            continue;
        if (!one->too_large && (save_one(one, st, sp, max < left ? max : left,
                                         u.files < FEW ? BLOB_LATER : BLOB_MANY, e) < 0 ||
                                (one->saved && note_saved(&u, one, st, e) < 0)))
            return blame(e);
        if (one->saved)
            left -= one->size;
        if (one->too_large)
            set_problem(one,
                        "a file is larger than %llu bytes: it is not kept when the session "
                        "sleeps",
                        (unsigned long long)(max < left ? max : left));
    }
    return settle(&u, st, true, e) < 0 ? blame(e) : 0;
}

/* What was written counts only once it is committed; but if it is not, all of it is returned. */
int changes_write(struct changes *c, struct task *t, struct db *db, const char *session,
                  struct err *e)
{
    for (size_t i = c->written; i < c->n; i++) {
        const struct change *one = &c->at[i];
        c->written = i;
        if (i % 16 == 15 && bite_is_over(t)) {
            task_write_on(t);
            return 0;
        }
        struct space_row row = {
            .path = one->path, .size = one->size, .mode = one->mode, .mtime_ms = one->mtime_ms};
        if (one->is_note)
            continue;
        memcpy(row.hash, one->hash, sizeof(row.hash));
        if (one->saved && db_space_put(db, session, &row, e) < 0)
            return -1;
        /* What could not be saved must not come back as it was before. */
        if ((one->change == FILE_DELETED || one->problem) &&
            db_space_drop(db, session, str_of(one->path), e) < 0)
            return -1;
    }
    c->written = c->n;
    return 0;
}

/* --- telling --- */

struct event change_event(const struct change *c)
{
    struct event ev = {.kind = c->is_note ? EVENT_STATUS : EVENT_FILE};

    if (c->is_note) {
        ev.text = str_of(c->path);
        return ev;
    }
    ev.file.change = c->change;
    ev.file.path = str_of(c->path);
    ev.file.size = c->size;
    ev.file.mime = c->mime;
    ev.file.too_large = c->too_large;
    return ev;
}

bool change_problem(const struct change *c, struct event *ret)
{
    *ret = (struct event){.kind = EVENT_STATUS, .text = str_of(c->problem)};
    return c->problem != NULL;
}
