/* The first few pictures that an execution has made, as an MCP client shows them: a link leads
 * nowhere over standard output, and a model sees nothing behind one. */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>
#include <unistd.h>

struct pictures {
    struct loop *loop;  /* borrowed */
    struct service *sv; /* borrowed */
    struct caller caller;
    json_t *paths;   /* owned: strings */
    json_t *session; /* owned */
    json_t *items;   /* owned: content */
    size_t at, sum;
    int fd;      /* owned */
    char *bytes; /* owned */
    size_t n;
    pictures_fn *fn; /* NULL: nobody waits any more */
    void *arg;
};

static void pictures_free(struct pictures *p)
{
    json_decref(p->paths);
    json_decref(p->session);
    json_decref(p->items);
    fd_closep(&p->fd);
    free(p->bytes);
    free(p);
}

static void next(void *arg);

static void read_bytes(void *arg)
{
    struct pictures *p = arg;
    ssize_t n;

    p->bytes = mem_zalloc(PICTURE_BYTES);
    p->n = 0;
    while (p->n < PICTURE_BYTES && (n = read(p->fd, p->bytes + p->n, PICTURE_BYTES - p->n)) > 0)
        p->n += (size_t)n;
}

/* One that cannot be shown is named in the text all the same. */
static void on_bytes(void *arg)
{
    struct pictures *p = arg;
    json_t *coded = record_base64((struct str){p->bytes, p->n});

    (void)figure_put(p->items, &p->sum, json_view(coded));
    json_decref(coded);
    free(take_ptr(&p->bytes));
    fd_closep(&p->fd);
    next(p);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct pictures *p = arg;

    if (failed || file->size >= PICTURE_BYTES) {
        next(p);
        return;
    }
    p->fd = take_fd(fd);
    loop_work(p->loop, read_bytes, on_bytes, p);
}

static void next(void *arg)
{
    struct pictures *p = arg;
    json_t *path = p->fn ? json_array_get(p->paths, p->at++) : NULL;

    if (path) {
        service_space_open(p->sv, &p->caller, json_view(p->session), json_view(path), on_open, p);
        return;
    }
    if (p->fn)
        p->fn(p->arg, p->items);
    pictures_free(p);
}

struct pictures *pictures_start(struct loop *l, struct service *sv, const struct caller *c,
                                const struct execution *x, pictures_fn *fn, void *arg)
{
    struct pictures *p = mem_zalloc(sizeof(*p));
    const json_t *file;
    size_t i;

    *p = (struct pictures){.loop = l,
                           .sv = sv,
                           .caller = *c,
                           .paths = json_array(),
                           .session = json_incref(json_object_get(x->record, "sandbox_id")),
                           .items = json_array(),
                           .fd = -1,
                           .fn = fn,
                           .arg = arg};
    json_array_foreach(json_object_get(x->record, "files"), i, file)
    {
        bool image = json_is_true(json_object_get(file, "image"));
        if (image && json_array_size(p->paths) < PICTURES_MAX)
            json_array_append(p->paths, json_object_get(file, "path"));
    }
    loop_later(l, next, p); /* not from here: it may be the end of p */
    return p;
}

void pictures_leave(struct pictures *p)
{
    if (p)
        p->fn = NULL;
}
