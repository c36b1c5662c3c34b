/* Paths in a workspace, as strangers write them and as they are kept. */
#include "service/service_int.h"

#define DEPTH_MAX   32 /* as deep as a workspace is looked at */
#define SEGMENT_MAX 255

/* A leading folder that clients know the workspace by is taken off. */
static struct str without_prefix(struct str path)
{
    static const char *const prefixes[] = {"/workspace/", "/mnt/data/"};

    for (size_t i = 0; i < COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (path.n >= n && memcmp(path.p, prefixes[i], n) == 0)
            return (struct str){path.p + n, path.n - n};
    }
    return path;
}

/* The next part between slashes; what is left in *rest. */
static struct str next_part(struct str *rest)
{
    const char *slash = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
    struct str part = {rest->p, slash ? (size_t)(slash - rest->p) : rest->n};
    size_t used = part.n + (slash ? 1 : 0);

    *rest = (struct str){rest->p + used, rest->n - used};
    return part;
}

int space_path_clean(struct str path, char ret[SPACE_PATH_MAX], struct err *e)
{
    struct str rest = without_prefix(path);
    size_t n = 0, depth = 0;

    if (rest.n == 0)
        return err_set(e, ERR_CALLER, "the path is empty");
    if (memchr(rest.p, '\0', rest.n))
        return err_set(e, ERR_CALLER, "the path holds a NUL");
    if (rest.p[0] == '/')
        return err_set(e, ERR_CALLER, "the path must be relative to the workspace");
    if (rest.p[rest.n - 1] == '/')
        return err_set(e, ERR_CALLER, "the path names a folder, not a file");
    while (rest.n > 0) {
        struct str part = next_part(&rest);
        if (part.n == 0 || str_is(part, "."))
            continue;
        if (str_is(part, ".."))
            return err_set(e, ERR_CALLER, "the path must not hold '..'");
        if (part.n > SEGMENT_MAX || n + part.n + 2 > SPACE_PATH_MAX)
            return err_set(e, ERR_CALLER, "the path is too long");
        if (++depth > DEPTH_MAX)
            return err_set(e, ERR_CALLER, "the path has more than %d folders", DEPTH_MAX - 1);
        if (n > 0)
            ret[n++] = '/';
        memcpy(ret + n, part.p, part.n);
        n += part.n;
    }
    ret[n] = '\0';
    return n > 0 ? 0 : err_set(e, ERR_CALLER, "the path is empty");
}
