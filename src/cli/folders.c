/*
 * Folders of the user's own disk that sessions are to see: --folder PATH[:ro]. Each is shown at
 * FOLDERS_PLACE/NAME, where NAME is the last word of its path. What code writes there is on the
 * disk at once, as the user who started us: there is nothing to copy back.
 */
#include "cli/cli_int.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FOLDERS_PLACE "/mnt/"

/* "PATH" or "PATH:ro"; a path that ends in :ro is written PATH:ro:rw. Owned: the path alone. */
static char *split(const char *word, bool *ret_writable)
{
    static const struct {
        const char *end;
        bool writable;
    } ends[] = {
        {":ro", false},
        {":rw", true }
    };
    size_t n = strlen(word);

    *ret_writable = true;
    for (size_t i = 0; i < COUNT(ends); i++)
        if (n > 3 && strcmp(word + n - 3, ends[i].end) == 0) {
            *ret_writable = ends[i].writable;
            return mem_strndup((struct str){word, n - 3});
        }
    return mem_strdup(word);
}

/* /mnt/data is the workspace's other name. */
static bool is_taken(const struct folders *f, const char *where)
{
    if (strcmp(where, FOLDERS_PLACE "data") == 0)
        return true;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->item[i].where, where) == 0)
            return true;
    return false;
}

static char *choose_place(const struct folders *f, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : "disk";
    char where[PATH_MAX];

    snprintf(where, sizeof(where), FOLDERS_PLACE "%s", name);
    for (int n = 2; is_taken(f, where); n++)
        snprintf(where, sizeof(where), FOLDERS_PLACE "%s-%d", name, n);
    return mem_strdup(where);
}

static int add(struct folders *f, const char *word, struct err *e)
{
    bool writable;
    AUTO_FREE char *given = split(word, &writable);
    AUTO_FREE char *path = realpath(given, NULL);
    char shown[NAME_SHOWN];
    struct stat st;

    name_show(shown, str_of(given));
    if (!path || stat(path, &st) < 0) {
        err_sys(e, "--folder: cannot open %s", shown);
        e->kind = ERR_CALLER;
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_CALLER, "--folder: %s is not a folder", shown);
    if (strcmp(path, "/") == 0)
        return err_set(e, ERR_CALLER, "--folder: / is everything; name the folder that is needed");
    if (f->count == FOLDERS_MAX)
        return err_set(e, ERR_CALLER, "--folder: more than %d folders", FOLDERS_MAX);
    char *where = choose_place(f, path);
    f->item[f->count++] = (struct engine_folder){take_ptr(&path), where, writable};
    return 0;
}

int folders_open(struct folders *ret, const struct settings *s, struct err *e)
{
    *ret = (struct folders){0};
    for (size_t i = 0; i < s->folders.count; i++)
        if (add(ret, s->folders.item[i], e) < 0)
            return -1;
    return 0;
}

void folders_done(struct folders *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free((char *)f->item[i].path);
        free((char *)f->item[i].where);
    }
    *f = (struct folders){0};
}

char *folders_tell(const struct folders *f)
{
    AUTO(buf_done) struct buf b = BUF(64 * KiB);

    for (size_t i = 0; i < f->count; i++) {
        char shown[NAME_SHOWN];
        buf_printf(&b, "%s%s (%s)",
                   i > 0 ? ", " : "Folders of the user's own disk are in every session: ",
                   name_show(shown, str_of(f->item[i].where)),
                   f->item[i].writable ? "what you write there stays on the disk" : "read only");
    }
    if (f->count > 0)
        buf_put(&b, STR("."));
    return f->count > 0 ? mem_strndup(buf_str(&b)) : NULL;
}
