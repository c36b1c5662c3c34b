/* Artifact export: the files and figures a session makes are copied into --out, or only named. */
#include "cli/cli_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUMMARY_MAX 12 /* names on the one line */

/* --- the directory --- */

/* mkdir -p. What stands in the way is found by the open that follows. */
static void make_dirs(const char *path)
{
    AUTO_FREE char *part = mem_strdup(path);

    for (char *p = part + 1; *part && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        (void)mkdir(part, 0777);
        *p = '/';
    }
    (void)mkdir(part, 0777);
}

int artifacts_open(struct artifacts *k, const struct settings *s, struct err *e)
{
    char shown[NAME_SHOWN];

    *k = (struct artifacts){.dir = -1, .out = s->out, .max = s->pool.limits.artifact_bytes};
    if (!s->out)
        return 0;
    make_dirs(s->out);
    k->dir = open(s->out, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (k->dir < 0 && errno == ENOTDIR)
        return err_set(e, ERR_CALLER, "--out: %s is not a directory",
                       name_show(shown, str_of(s->out)));
    if (k->dir < 0 || faccessat(k->dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return err_sys(e, "--out: cannot write to %s", name_show(shown, str_of(s->out)));
    return 0;
}

void artifacts_done(struct artifacts *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->made[i].path);
        free(k->made[i].mime);
    }
    free(k->made);
    fd_closep(&k->dir);
    *k = (struct artifacts){.dir = -1};
}

/* --- files --- */

static struct made *find(struct artifacts *k, struct str path)
{
    for (size_t i = 0; i < k->count; i++)
        if (str_is(path, k->made[i].path))
            return &k->made[i];
    return NULL;
}

static void forget(struct artifacts *k, struct made *m)
{
    free(m->path);
    free(m->mime);
    k->count--;
    memmove(m, m + 1, (size_t)(k->made + k->count - m) * sizeof(*m));
}

static struct made *note(struct artifacts *k, const struct event *ev)
{
    struct made *m = find(k, ev->file.path);

    if (!m) {
        k->made = mem_realloc(k->made, (k->count + 1) * sizeof(*k->made));
        m = &k->made[k->count++];
        *m = (struct made){.path = mem_strndup(ev->file.path)};
    }
    free(m->mime);
    m->mime = mem_strdup(ev->file.mime);
    m->size = ev->file.size;
    m->too_large = ev->file.too_large;
    m->kept = false;
    return m;
}

int artifacts_file(struct artifacts *k, struct session *s, const struct event *ev, struct err *e)
{
    struct made *m;

    if (ev->file.change == FILE_DELETED) {
        m = find(k, ev->file.path);
        /* A copy that was made stays, and so does its name. */
        if (m && !m->kept)
            forget(k, m);
        return 0;
    }
    m = note(k, ev);
    if (k->dir < 0 || m->too_large)
        return 0;

    AUTO_CLOSE int src = workspace_get(s, ev->file.path, e);
    if (src < 0) {
        /* Removed or replaced since it was listed: the code's own doing. */
        e->kind = ERR_CALLER;
        return -1;
    }
    if (beneath_write(k->dir, ev->file.path, src, k->max, e) < 0)
        return -1;
    m->kept = true;
    return 0;
}

/* --- figures --- */

static bool in_workspace(struct session *s, const char *name)
{
    struct err ignored;
    AUTO_CLOSE int fd = workspace_get(s, str_of(name), &ignored);

    return fd >= 0;
}

int artifacts_figure(struct artifacts *k, struct session *s, const struct mime_part *image,
                     char ret[NAME_SHOWN], struct err *e)
{
    *ret = '\0';
    if (k->dir < 0)
        return 0;
    /* A file that the code itself called figure-1.png is about to be copied under that name. */
    do
        snprintf(ret, NAME_SHOWN, "figure-%u%s", ++k->figures, image_suffix(image->mime));
    while (in_workspace(s, ret));
    return beneath_write_bytes(k->dir, str_of(ret), image->data, e);
}

/* --- the line at the end --- */

static const char *describe(const struct artifacts *k, const struct made *m)
{
    if (m->too_large)
        return "too large to keep";
    return k->dir >= 0 && !m->kept ? "not kept" : m->mime;
}

int artifacts_summary(const struct artifacts *k, struct buf *ret, struct err *e)
{
    char name[NAME_SHOWN], size[SIZE_SHOWN];

    if (k->count == 0)
        return 0;
    buf_put(ret, str_of(k->dir >= 0 ? "kept: " : "made: "));
    for (size_t i = 0; i < k->count && i < SUMMARY_MAX; i++) {
        const struct made *m = &k->made[i];
        buf_printf(ret, "%s%s (%s, %s)", i ? ", " : "", name_show(name, str_of(m->path)),
                   size_show(size, m->size), describe(k, m));
    }
    if (k->count > SUMMARY_MAX)
        buf_printf(ret, " and %zu more", k->count - SUMMARY_MAX);
    if (k->dir < 0)
        buf_put(ret, STR("; use --out DIR to keep"));
    else
        buf_printf(ret, " in %s", name_show(name, str_of(k->out)));
    return buf_check(ret, e);
}
