/*
 * Files on their way in: URLs through the service, paths of this machine from below the
 * folders that the operator named. One that cannot be had does not keep the code from
 * running; whoever asked is told.
 */
#include "doors/qwen/qwen_int.h"

#include "fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct sources {
    struct qwen *qwen;       /* borrowed */
    struct service *service; /* borrowed */
    struct caller caller;
    struct source *items; /* owned */
    size_t count;
    size_t left;    /* on their way */
    char *work_dir; /* owned, or NULL */
    sources_fn *fn;
    void *arg;
};

struct fetching { /* one URL */
    struct sources *all;
    struct source *one;
};

static void done_fetched(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* what is left over goes with its tenant's other files */
}

void sources_free(struct sources *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++) {
        if (*s->items[i].file)
            service_file_delete(s->service, &s->caller, str_of(s->items[i].file), done_fetched,
                                NULL);
        free(s->items[i].text);
        free(s->items[i].bytes);
    }
    free(s->items);
    free(s->work_dir);
    free(s);
}

static void has_come(void *arg)
{
    struct sources *s = arg;

    if (--s->left == 0)
        s->fn(s->arg, s->items, s->count);
}

/* --- URLs --- */

static void on_fetched(void *arg, const struct file_row *file, const struct err *failed)
{
    struct fetching *f = arg;
    struct sources *s = f->all;

    if (failed)
        f->one->failed = *failed;
    else
        snprintf(f->one->file, sizeof(f->one->file), "%s", file->id);
    free(f);
    has_come(s);
}

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0 ||
           strncmp(text, "data:", 5) == 0;
}

static void fetch(struct sources *s, struct source *one)
{
    struct fetching *f = mem_zalloc(sizeof(*f));

    *f = (struct fetching){s, one};
    url_file_name(str_of(one->text), one->name, sizeof(one->name));
    s->left++;
    service_file_fetch(s->service, &s->caller, str_of(one->text), str_of(one->name), on_fetched, f);
}

/* --- paths --- */

const struct root *root_find(const struct qwen *q, struct str path, struct str *ret_rest)
{
    for (size_t i = 0; i < q->root_count; i++) {
        size_t n = strlen(q->roots[i].path);
        if (path.n > n + 1 && memcmp(path.p, q->roots[i].path, n) == 0 && path.p[n] == '/') {
            *ret_rest = (struct str){path.p + n + 1, path.n - n - 1};
            return &q->roots[i];
        }
    }
    return NULL;
}

/* file:///a/b, a/b below the work dir, /a/b; its last part is its name. */
static const struct root *locate(struct sources *s, struct source *one, struct str *ret_rest)
{
    const char *path = strncmp(one->text, "file://", 7) == 0 ? one->text + 7 : one->text;
    char as_url[SOURCE_MAX + 16];

    snprintf(as_url, sizeof(as_url), "file://x/%s", path);
    url_file_name(str_of(as_url), one->name, sizeof(one->name));
    if (*path == '/')
        return root_find(s->qwen, str_of(path), ret_rest);
    *ret_rest = str_of(path);
    return s->qwen->has_work_dir ? &s->qwen->roots[0] : NULL;
}

static int read_all(struct source *one, int fd, struct err *e)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "stat");
    if ((uint64_t)st.st_size > LOCAL_BYTES)
        return err_set(e, ERR_LIMIT, "it has more than %zu bytes", LOCAL_BYTES);
    one->bytes = mem_zalloc((size_t)st.st_size + 1);
    while (one->n < (size_t)st.st_size) {
        n = read(fd, one->bytes + one->n, (size_t)st.st_size - one->n);
        if (n < 0)
            return err_sys(e, "read");
        if (n == 0)
            break;
        one->n += (size_t)n;
    }
    return 0;
}

static int read_local(struct sources *s, struct source *one, struct err *e)
{
    struct str rest;
    const struct root *root = locate(s, one, &rest);
    AUTO_CLOSE int fd = -1;

    if (!root)
        return err_set(e, ERR_CALLER,
                       "it is not below a folder that this server may read: --qwen-work-dir and "
                       "--qwen-file-dirs name them");
    fd = space_get(&(struct space){root->fd, geteuid()}, rest, e);
    if (fd < 0)
        return e->kind == ERR_MISSING ? err_set(e, ERR_MISSING, "there is no such file")
                                      : err_set(e, ERR_CALLER, "it cannot be read");
    return read_all(one, fd, e);
}

static void read_locals(void *arg)
{
    struct sources *s = arg;

    for (size_t i = 0; i < s->count; i++)
        if (!is_url(s->items[i].text))
            (void)!read_local(s, &s->items[i], &s->items[i].failed);
}

/* --- all of them --- */

struct sources *sources_start(struct qwen *q, struct service *sv, const struct caller *c,
                              const struct order *o, sources_fn *fn, void *arg)
{
    struct sources *s = mem_zalloc(sizeof(*s));
    bool local = false;
    const json_t *one;
    size_t i;

    *s = (struct sources){.qwen = q, .service = sv, .caller = *c, .fn = fn, .arg = arg, .left = 1};
    s->items = mem_zalloc((json_array_size(o->files) + 1) * sizeof(*s->items));
    json_array_foreach(o->files, i, one)
    {
        s->items[s->count].text = mem_strdup(json_string_value(one));
        local |= !is_url(s->items[s->count].text);
        if (is_url(s->items[s->count].text))
            fetch(s, &s->items[s->count]);
        s->count++;
    }
    if (local)
        loop_work(q->config.loop, read_locals, has_come, s);
    else
        loop_later(q->config.loop, has_come, s);
    return s;
}
