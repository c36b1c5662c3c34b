/*
 * The work dir: what an execution has made or changed, and the images it has shown, are
 * written to a folder of the host. The files are opened one after the other, then all of
 * them are written on a worker. What stands in the way there, links above all, is never
 * followed.
 */
#include "doors/qwen/qwen_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct parcel {
    char *path; /* owned: below the work dir */
    int fd;     /* owned; -1: it is to be deleted */
};

struct export
{
    struct qwen *qwen;       /* borrowed */
    struct service *service; /* borrowed */
    struct caller caller;
    char session[ID_MAX], execution[ID_MAX];
    json_t *events; /* owned */
    size_t at;      /* of the events */
    char *folder;   /* owned: below the work dir; or NULL */
    struct parcel parcels[EXPORT_MAX];
    size_t count;
    size_t left_out;
    struct buf notes;
    export_fn *fn;
    void *arg;
};

static void export_free(struct export *x)
{
    for (size_t i = 0; i < x->count; i++) {
        free(x->parcels[i].path);
        fd_closep(&x->parcels[i].fd);
    }
    json_decref(x->events);
    free(x->folder);
    buf_done(&x->notes);
    free(x);
}

static void note(struct export *x, const char *path, const char *why)
{
    char shown[NAME_SHOWN];
    struct err e;

    (void)!buf_printf(&x->notes, &e, "%s%s was not written to the work dir: %s.",
                      x->notes.n ? " " : "", name_show(shown, str_of(path)), why);
}

/* Takes fd. */
static void add(struct export *x, const char *path, int fd)
{
    struct parcel *p = &x->parcels[x->count];
    size_t n = strlen(path) + (x->folder ? strlen(x->folder) : 0) + 2;

    x->count++;
    p->fd = fd;
    p->path = mem_zalloc(n);
    snprintf(p->path, n, "%s%s%s", x->folder ? x->folder : "", x->folder ? "/" : "", path);
}

/* --- on a worker --- */

static int bytes_of(const json_t *image, const char *mime, struct err *e)
{
    struct str text = json_view(image);
    AUTO_FREE char *bytes = mem_zalloc(text.n + 1);
    AUTO_CLOSE int fd = memfd_create("image", MFD_CLOEXEC);
    size_t n = text.n;

    if (strcmp(mime, "image/svg+xml") == 0)
        memcpy(bytes, text.p, text.n);
    else if (!base64_decode(text, bytes, &n))
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
    const json_t *image;
    const char *mime;
    struct err e = {0};
    char name[64];

    for (size_t n = 1; x->count < EXPORT_MAX && (image = image_of(x->events, n, &mime)); n++) {
        int fd = bytes_of(image, mime, &e);
        snprintf(name, sizeof(name), "%s-%zu.%s", x->execution, n, suffix_of(mime));
        if (fd >= 0)
            add(x, name, fd);
        else
            note(x, name, e.text);
    }
}

static void write_all(void *arg)
{
    struct export *x = arg;
    const struct space to = {x->qwen->roots[0].fd, geteuid()};
    struct err e;

    add_images(x);
    for (size_t i = 0; i < x->count; i++) {
        struct parcel *p = &x->parcels[i];
        int rc = p->fd >= 0 ? space_put(&to, str_of(p->path), p->fd, 0, 0, &e)
                            : space_delete(&to, str_of(p->path), &e);
        if (rc < 0 && p->fd >= 0)
            note(x, p->path, e.text);
    }
}

static void on_written(void *arg)
{
    struct export *x = arg;
    struct err e;

    if (x->left_out > 0)
        (void)!buf_printf(&x->notes, &e, "%s%zu more files were not written to the work dir.",
                          x->notes.n ? " " : "", x->left_out);
    x->fn(x->arg, buf_str(&x->notes));
    export_free(x);
}

/* --- one file after the other --- */

static void next(struct export *x);

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct export *x = arg;
    const json_t *ev = json_array_get(x->events, x->at++);
    const char *path = json_string_value(json_object_get(ev, "path"));

    (void)file;
    if (failed)
        note(x, path, failed->text);
    else
        add(x, path, take_fd(fd));
    next(x);
}

static bool is_file(const json_t *ev)
{
    return str_is(json_view(json_object_get(ev, "type")), "file");
}

static void next(struct export *x)
{
    const json_t *ev;

    for (; (ev = json_array_get(x->events, x->at)); x->at++) {
        struct str path = json_view(json_object_get(ev, "path"));
        if (!is_file(ev) || !path.n)
            continue;
        if (x->count == EXPORT_MAX) {
            x->left_out++;
        } else if (str_is(json_view(json_object_get(ev, "change")), "deleted")) {
            add(x, path.p, -1);
        } else {
            service_space_open(x->service, &x->caller, str_of(x->session), path, on_open, x);
            return;
        }
    }
    loop_work(x->qwen->config.loop, write_all, on_written, x);
}

void export_start(struct qwen *q, struct service *sv, const struct caller *c, const struct order *o,
                  const struct exec_info *info, export_fn *fn, void *arg)
{
    struct export *x = mem_zalloc(sizeof(*x));

    *x = (struct export){.qwen = q, .service = sv, .caller = *c, .fn = fn, .arg = arg};
    snprintf(x->session, sizeof(x->session), "%s", info->row->session);
    snprintf(x->execution, sizeof(x->execution), "%s", info->row->id);
    x->events = json_incref(info->events);
    x->folder = o->work_dir ? mem_strdup(o->work_dir) : NULL;
    buf_init(&x->notes, 16 * KiB);
    next(x);
}
