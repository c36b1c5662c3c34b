/*
 * Home of a session: what it keeps while it sleeps besides the files of its workspace, which are
 * rows of their own. One blob holds all of it. The blob is written when the session falls asleep,
 * so a session whose server or sandbox died finds its home as it was when it last slept.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ENTRIES_BYTES (64 * MiB) /* paths and targets of links: more than there can be */

struct home_saving {
    struct task task;
    struct space roots[HOME_ROOTS]; /* owned */
    char hash[HASH_HEX];            /* "": there is nothing to keep */
    done_fn *fn;
    void *arg;
};

static int take_roots(struct task *t, struct err *e)
{
    struct home_saving *s = OWNER(t, struct home_saving, task);

    if (task_session_there(t, e) < 0)
        return -1;
    if (!t->loaded->session)
        return err_set(e, ERR_HOST, "the sandbox is closed");
    return home_dup(t->loaded->session, s->roots, e);
}

/* The blob is made with the first byte: most sessions have nothing to keep. */
struct home_bytes {
    struct store *store;
    uint64_t max;
    struct blob *blob; /* owned, or NULL */
};

static int write_home(void *arg, struct str bytes, struct err *e)
{
    struct home_bytes *b = arg;

    if (!b->blob)
        b->blob = blob_new(b->store, b->max, e);
    return b->blob ? blob_write(b->blob, bytes, e) : -1;
}

static int pack(struct task *t, struct err *e)
{
    struct home_saving *s = OWNER(t, struct home_saving, task);
    uint64_t max = t->sv->config.home_bytes, size;
    struct home_bytes to = {.store = t->sv->store, .max = max + ENTRIES_BYTES};

    if (home_pack(s->roots, max, write_home, &to, e) < 0) {
        blob_free(to.blob);
        return err_wrap(e, "save what is in /tmp");
    }
    return to.blob ? blob_keep(to.blob, BLOB_LATER, s->hash, &size, e) : 0;
}

static void on_packed(struct task *t, const struct err *failed)
{
    struct home_saving *s = OWNER(t, struct home_saving, task);

    if (!failed)
        memcpy(t->loaded->row.home, s->hash, sizeof(s->hash));
    s->fn(s->arg, failed);
    for (int i = 0; i < HOME_ROOTS; i++)
        space_close(&s->roots[i]);
    free(s);
}

void home_save(struct loaded *l, done_fn *fn, void *arg)
{
    static const struct step steps[] = {{.loop = take_roots}, {.work = pack}, {0}};
    struct home_saving *s = mem_zalloc(sizeof(*s));

    *s = (struct home_saving){
        .roots = {{.dir = -1}, {.dir = -1}},
          .fn = fn, .arg = arg
    };
    task_start(&s->task, l->sv, l, steps, on_packed);
}

int home_put_back(struct task *t, const struct space roots[HOME_ROOTS], size_t *ret_missing,
                  struct err *e)
{
    struct err lost = {0};

    *ret_missing = 0;
    if (!*t->loaded->row.home)
        return 0;
    AUTO_CLOSE int fd = blob_open(t->sv->store, t->loaded->row.home, &lost);
    if (fd >= 0 && home_unpack(roots, fd, ret_missing, &lost) == 0)
        return 0;
    if (lost.kind == ERR_AWAY) {
        *e = lost;
        return -1;
    }
    log_warn("session %s: not all of its home is put back: %s", t->loaded->row.id, lost.text);
    ++*ret_missing;
    return 0;
}
