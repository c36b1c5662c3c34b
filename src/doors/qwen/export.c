/*
 * Writes the files that an execution made or changed, and its images, to the work dir on the host;
 * or, for a client on this machine, its images alone to the images dir. The files are opened one
 * after the other, then a worker writes all of them. Links in these folders are never followed.
 */
#include "doors/qwen/qwen_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMED_MAX 3

struct export_file {
    char *path; /* owned: below the tenant's folder */
    int fd;     /* owned; -1: it is to be deleted */
};

struct export
{
    struct interpreter_call *call; /* borrowed: waits for us */
    size_t at;                     /* of its events */
    struct export_file files[EXPORT_MAX];
    size_t count;
    size_t named, left_out; /* files that were not written: named in the notes, and others */
    bool to_images_dir;
    struct buf notes;
    export_fn *fn;
};

/* The first few by name: a full disk refuses all of them. */
static void note(struct export *x, const char *path, const char *why)
{
    char shown[NAME_SHOWN];

    if (x->named++ >= NAMED_MAX) {
        x->left_out++;
        return;
    }
    buf_printf(&x->notes, "%s%s was not written to the %s dir: %s.", x->notes.n ? " " : "",
               name_show(shown, str_of(path)), x->to_images_dir ? "images" : "work", why);
}

/* Takes fd. */
static void add(struct export *x, const char *path, int fd)
{
    struct export_file *p = &x->files[x->count];
    const char *folder = x->call->params.work_dir;

    x->count++;
    p->fd = fd;
    if (asprintf(&p->path, "%s%s%s", folder ? folder : "", folder ? "/" : "", path) < 0)
        abort();
}

/* --- on a worker --- */

static int image_fd(const json_t *image, const char *mime, struct err *e)
{
    size_t n;
    AUTO_FREE char *bytes = image_bytes(image, mime, &n);
    AUTO_CLOSE int fd = memfd_create("image", MFD_CLOEXEC);

    if (!bytes)
        return err_set(e, ERR_CALLER, "it is no image");
    if (fd < 0)
        return err_sys(e, "memfd");
    if (fd_write_all(fd, (struct str){bytes, n}, e) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "seek");
    return take_fd(&fd);
}

static void add_images(struct export *x)
{
    struct event_reader r;
    struct err e = {0};
    char name[64];

    event_reader_init(&r, x->call->events);
    while (x->count < EXPORT_MAX && event_reader_next(&r)) {
        if (!r.image)
            continue;
        int fd = image_fd(r.image, r.mime, &e);
        snprintf(name, sizeof(name), "%s-%zu.%s", x->call->execution, r.images, suffix_of(r.mime));
        if (fd >= 0)
            add(x, name, fd);
        else
            note(x, name, e.text);
    }
    event_reader_done(&r);
}

/* An owned descriptor, or -1. */
static int images_dir_open(const struct qwen *q, struct err *e)
{
    const char *path = q->images_dir;
    int fd;

    if (q->images_fd >= 0) {
        fd = fcntl(q->images_fd, F_DUPFD_CLOEXEC, 0);
        return fd < 0 ? err_sys(e, "open %s", path) : fd;
    }
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", path);
    fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open %s", path) : fd;
}

static void write_all(void *arg)
{
    struct export *x = arg;
    const struct qwen *q = x->call->spec.qwen;
    struct err e;
    AUTO_CLOSE int folder = x->to_images_dir ? images_dir_open(q, &e)
                                             : tenant_folder_open(q, x->call->caller.tenant, &e);
    const struct space to = {folder, geteuid()};

    if (folder < 0) {
        note(x, x->to_images_dir ? "the image" : "what the code made", e.text);
        return;
    }
    add_images(x);
    for (size_t i = 0; i < x->count; i++) {
        struct export_file *p = &x->files[i];
        int rc = p->fd >= 0 ? space_put(&to, str_of(p->path), p->fd, 0, 0, &e)
                            : space_delete(&to, str_of(p->path), &e);
        if (rc < 0 && p->fd >= 0)
            note(x, p->path, e.text);
    }
}

static void on_written(void *arg)
{
    struct export *x = arg;

    if (x->left_out > 0)
        buf_printf(&x->notes, "%s%zu more files were not written to the %s dir.",
                   x->notes.n ? " " : "", x->left_out, x->to_images_dir ? "images" : "work");
    for (size_t i = 0; i < x->count; i++) {
        free(x->files[i].path);
        fd_closep(&x->files[i].fd);
    }
    x->fn(x->call, buf_str(&x->notes));
    buf_done(&x->notes);
    free(x);
}

/* --- one file after the other --- */

static void next(struct export *x);

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct export *x = arg;
    const json_t *ev = json_array_get(x->call->events, x->at++);
    const char *path = json_string_value(json_object_get(ev, "path"));

    (void)file;
    if (failed)
        note(x, path, failed->text);
    else
        add(x, path, take_fd(fd));
    next(x);
}

static void next(struct export *x)
{
    struct interpreter_call *c = x->call;
    const json_t *ev;

    for (; (ev = json_array_get(c->events, x->at)); x->at++) {
        struct str path = event_text(ev, "path");
        if (!event_is(ev, "file") || !path.n)
            continue;
        if (x->count == EXPORT_MAX) {
            x->left_out++;
        } else if (str_is(event_text(ev, "change"), "deleted")) {
            add(x, path.p, -1);
        } else {
            service_space_open(c->spec.service, &c->caller, str_of(c->session), path, on_open, x);
            return;
        }
    }
    service_work(c->spec.service, write_all, on_written, x);
}

void export_images_start(struct interpreter_call *c, export_fn *fn)
{
    struct export *x = mem_zalloc(sizeof(*x));

    *x = (struct export){.call = c, .fn = fn, .to_images_dir = true};
    buf_init(&x->notes, 16 * KiB);
    service_work(c->spec.service, write_all, on_written, x);
}

void export_start(struct interpreter_call *c, export_fn *fn)
{
    struct export *x = mem_zalloc(sizeof(*x));

    *x = (struct export){.call = c, .fn = fn};
    buf_init(&x->notes, 16 * KiB);
    next(x);
}
