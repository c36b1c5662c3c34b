/* A file of a workspace that comes from a URL. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

struct space_fetch {
    struct service *sv; /* borrowed */
    struct caller caller;
    char session[ID_MAX];
    char *path;        /* owned, or NULL: its own name */
    struct blob *blob; /* owned */
    struct err failed;
    space_fn *fn;
    void *arg;
};

static void end(struct space_fetch *f, const struct err *failed)
{
    if (failed)
        f->fn(f->arg, NULL, 0, failed);
    blob_free(f->blob);
    free(f->path);
    free(f);
}

static void refuse_later(void *arg)
{
    struct space_fetch *f = arg;

    f->sv->pending--;
    end(f, &f->failed);
}

static void refuse(struct space_fetch *f)
{
    f->sv->pending++;
    loop_later(f->sv->loop, refuse_later, f);
}

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    return blob_write(((struct space_fetch *)arg)->blob, bytes, e);
}

static void on_fetched(void *arg, const struct fetch_result *r, const struct err *failed)
{
    struct space_fetch *f = arg;
    const char *name = f->path ? f->path : failed ? "" : path_base(r->name);

    f->sv->pending--;
    if (!failed)
        service_space_put(f->sv, &f->caller, str_of(f->session), str_of(name), take_ptr(&f->blob),
                          f->fn, f->arg);
    end(f, failed);
}

void service_space_fetch(struct service *sv, const struct caller *c, struct str session,
                         struct str path, struct str url, space_fn *fn, void *arg)
{
    struct space_fetch *f = mem_zalloc(sizeof(*f));

    *f = (struct space_fetch){.sv = sv, .caller = *c, .fn = fn, .arg = arg};
    f->path = path.n ? mem_strndup(path) : NULL;
    if (!str_to_cstr(session, f->session, sizeof(f->session))) {
        err_set(&f->failed, ERR_MISSING, "there is no such session");
        return refuse(f);
    }
    if (!sv->fetcher) {
        closing_down(sv, &f->failed);
        return refuse(f);
    }
    f->blob = blob_new(sv->store, sv->config.fetch_bytes, &f->failed);
    if (!f->blob)
        return refuse(f);
    sv->pending++;
    fetch_start(sv->fetcher, c->tenant, url, on_bytes, on_fetched, f);
}
