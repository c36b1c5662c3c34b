/* Files of this machine that a call is given, from below the folders that the operator named. */
#include "doors/qwen/qwen_int.h"

#include "fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool is_url(const char *source)
{
    return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0 ||
           strncmp(source, "data:", 5) == 0;
}

/* The folder that a path is below, and the rest of the path. NULL: none of ours. */
static const struct root *find_root(const struct qwen *q, const char *path, struct str *ret_rest)
{
    for (size_t i = 0; i < q->root_count; i++) {
        size_t n = strlen(q->roots[i].path);
        if (strncmp(path, q->roots[i].path, n) == 0 && path[n] == '/' && path[n + 1]) {
            *ret_rest = str_of(path + n + 1);
            return &q->roots[i];
        }
    }
    return NULL;
}

/* Whether a path below the work dir is in this tenant's folder; then it is cut to the rest. */
static bool is_own(struct str *rest, const char *tenant)
{
    char folder[TENANT_FOLDER_MAX];
    size_t n = strlen(tenant_folder(tenant, folder));

    if (rest->n <= n + 1 || memcmp(rest->p, folder, n) != 0 || rest->p[n] != '/')
        return false;
    *rest = str_from(*rest, n + 1);
    return true;
}

/* file:///a/b and /a/b; a/b is in the tenant's folder. NULL: no folder of ours. *ret_own: the path
 * is in the tenant's folder of the work dir. */
static const struct root *locate(const struct qwen *q, const char *tenant, struct input_file *in,
                                 struct str *ret_rest, bool *ret_own)
{
    const char *path = strncmp(in->source, "file://", 7) == 0 ? in->source + 7 : in->source;
    char as_url[SOURCE_MAX + 16];
    const struct root *root;

    snprintf(as_url, sizeof(as_url), "file://x/%s", path);
    url_file_name(str_of(as_url), in->name, sizeof(in->name));
    *ret_rest = str_of(path);
    root = *path == '/' ? find_root(q, path, ret_rest) : q->roots;
    *ret_own = q->has_work_dir && root == q->roots;
    if (*path != '/')
        return q->has_work_dir ? root : NULL;
    return *ret_own && !is_own(ret_rest, tenant) ? NULL : root;
}

static int read_all(struct input_file *in, int fd, struct err *e)
{
    struct stat st;
    ssize_t n = 1;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "stat");
    if ((uint64_t)st.st_size > LOCAL_BYTES)
        return err_set(e, ERR_LIMIT, "it has more than %zu bytes", LOCAL_BYTES);
    in->bytes = mem_zalloc((size_t)st.st_size + 1);
    for (; n > 0 && in->n < (size_t)st.st_size; in->n += (size_t)n) {
        n = read(fd, in->bytes + in->n, (size_t)st.st_size - in->n);
        if (n < 0) {
            free(take_ptr(&in->bytes));
            return err_sys(e, "read");
        }
    }
    return 0;
}

int input_file_read(const struct qwen *q, const char *tenant, struct input_file *in, struct err *e)
{
    struct str rest;
    bool is_tenants;
    const struct root *root = locate(q, tenant, in, &rest, &is_tenants);
    AUTO_CLOSE int folder = -1;
    AUTO_CLOSE int fd = -1;

    if (!root)
        return err_set(e, ERR_CALLER,
                       "it is not below a folder that this server may read: --qwen-work-dir and "
                       "--qwen-file-dirs name them");
    if (is_tenants && (folder = tenant_folder_open(q, tenant, e)) < 0)
        return -1;
    fd = space_get(&(struct space){is_tenants ? folder : root->fd, geteuid()}, rest, e);
    if (fd < 0)
        return e->kind == ERR_MISSING ? err_set(e, ERR_MISSING, "there is no such file")
                                      : err_set(e, ERR_CALLER, "it cannot be read");
    return read_all(in, fd, e);
}
