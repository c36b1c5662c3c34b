/* A text that we write into a workspace ourselves: answers for code, manifests. It may be as long
 * as a request, so a worker makes the blob of it. */
#include "doors/anthropic/messages_int.h"

#include <stdio.h>
#include <stdlib.h>

struct note {
    struct service *service;
    struct caller caller;
    char session[ID_MAX], path[SPACE_PATH_MAX];
    char *text;        /* owned */
    struct blob *blob; /* owned */
    struct err failed;
    space_fn *fn;
    void *arg;
};

static void fill(void *arg)
{
    struct note *n = arg;

    if (n->blob)
        (void)!blob_write(n->blob, str_of(n->text), &n->failed);
}

static void on_filled(void *arg)
{
    struct note *n = arg;

    if (n->failed.kind)
        n->fn(n->arg, NULL, 0, &n->failed);
    else
        service_space_put(n->service, &n->caller, str_of(n->session), str_of(n->path),
                          take_ptr(&n->blob), n->fn, n->arg);
    blob_free(n->blob);
    free(n->text);
    free(n);
}

void note_put(struct service *sv, const struct caller *c, const char *session, const char *path,
              char *text, space_fn *fn, void *arg)
{
    struct note *n = mem_zalloc(sizeof(*n));

    *n = (struct note){.service = sv, .caller = *c, .text = text, .fn = fn, .arg = arg};
    snprintf(n->session, sizeof(n->session), "%s", session);
    snprintf(n->path, sizeof(n->path), "%s", path);
    n->blob = service_blob_new(sv, c, &n->failed);
    service_work(sv, fill, on_filled, n);
}
