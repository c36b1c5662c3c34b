/*
 * Files that a call is given: by URL, with their bytes, or from below folders of this machine that
 * the operator named.
 */
#include "doors/qwen/qwen_int.h"

#include "fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_url(const char *source)
{
    return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0 ||
           strncmp(source, "data:", 5) == 0;
}

/* --- what a call says of them --- */

static const char *path_of(const char *source)
{
    return strncmp(source, "file://", 7) == 0 ? source + 7 : source;
}

/* The name in the workspace: the last part of the path of a URL, or of a path of this machine. */
static void find_name(struct input_file *in)
{
    char as_url[SOURCE_MAX + 16];

    if (!is_url(in->source)) {
        snprintf(as_url, sizeof(as_url), "file://x/%s", path_of(in->source));
        url_file_name(str_of(as_url), in->name, sizeof(in->name));
    } else {
        url_file_name(str_of(in->source), in->name, sizeof(in->name));
    }
}

static int take_source(struct input_file *in, struct str source, struct err *e)
{
    if (source.n == 0 || strlen(source.p) != source.n)
        return err_set(e, ERR_CALLER, "files are URLs or paths, each a string");
    if (source.n > SOURCE_MAX && strncmp(source.p, "data:", 5) != 0)
        return err_set(e, ERR_LIMIT, "a URL or path has more than %zu bytes", SOURCE_MAX);
    in->source = source.p;
    find_name(in);
    return 0;
}

static int take_name(struct input_file *in, const json_t *one, struct err *e)
{
    struct str name = json_view(json_object_get(one, "name"));
    char clean[SPACE_PATH_MAX];

    if (!name.p)
        return in->source ? 0 : err_set(e, ERR_CALLER, "a file with content needs a name");
    if (space_path_clean(name, clean, e) < 0)
        return -1;
    return str_to_cstr(str_of(clean), in->name, sizeof(in->name))
               ? 0
               : err_set(e, ERR_LIMIT, "the name of a file has more than %zu bytes",
                         sizeof(in->name) - 1);
}

int input_file_take(struct input_file *in, const json_t *one, struct err *e)
{
    struct str url = json_view(json_object_get(one, "url"));

    *in = (struct input_file){.fd = -1};
    if (json_is_string(one))
        return take_source(in, json_view(one), e);
    in->content = json_view(json_object_get(one, "content"));
    in->coded = json_object_get(one, "content_base64");
    if ((url.p != NULL) + (in->content.p != NULL) + json_is_string(in->coded) != 1)
        return err_set(
            e, ERR_CALLER,
            "a file is a URL or a path, or an object with a name and one of url, content "
            "and content_base64");
    if (url.p && take_source(in, url, e) < 0)
        return -1;
    return take_name(in, one, e);
}

bool input_file_blocks(const struct input_file *in)
{
    return in->coded || (in->source && !is_url(in->source));
}

/* --- names --- */

static void rename_input(struct input_file *in, json_t *taken, struct buf *notes)
{
    char name[sizeof(in->name)], shown[NAME_SHOWN], shown_new[NAME_SHOWN];
    json_int_t n = json_integer_value(json_object_get(taken, in->name));
    const char *dot = strrchr(in->name, '.');
    int stem = (int)(dot && dot > in->name ? dot - in->name : (ptrdiff_t)strlen(in->name));

    do {
        n++;
        snprintf(name, sizeof(name), "%.*s-%d%s", stem < 200 ? stem : 200, in->name, (int)n,
                 strlen(in->name + stem) < 40 ? in->name + stem : "");
    } while (json_object_get(taken, name));
    json_object_set_new(taken, in->name, json_integer(n));
    buf_printf(notes, "%sa second file named %s is here as %s.", notes->n ? " " : "",
               name_show(shown, str_of(in->name)), name_show(shown_new, str_of(name)));
    memcpy(in->name, name, sizeof(name));
}

/* An agent repeats the files of its conversation, and one source is one file. */
static bool is_repeated(const struct input_file *in, const json_t *sources)
{
    const json_t *name = in->source ? json_object_get(sources, in->source) : NULL;

    return name && strcmp(json_string_value(name), in->name) == 0;
}

void input_files_distinguish(struct input_file *in, size_t count, struct buf *notes)
{
    json_t *taken = json_object(), *sources = json_object();

    for (size_t i = 0; i < count; i++) {
        struct input_file *one = &in[i];
        char before[sizeof(one->name)];
        memcpy(before, one->name, sizeof(before));
        if (is_repeated(one, sources))
            continue;
        if (json_object_get(taken, one->name))
            rename_input(one, taken, notes);
        json_object_set_new(taken, one->name, json_integer(1));
        if (one->source)
            json_object_set_new(sources, one->source, json_string(before));
    }
    json_decref(taken);
    json_decref(sources);
}

/* --- files of this machine --- */

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
static const struct root *locate(const struct qwen *q, const char *tenant,
                                 const struct input_file *in, struct str *ret_rest, bool *ret_own)
{
    const char *path = path_of(in->source);
    const struct root *root;

    *ret_rest = str_of(path);
    root = *path == '/' ? find_root(q, path, ret_rest) : q->roots;
    *ret_own = q->has_work_dir && root == q->roots;
    if (*path != '/')
        return q->has_work_dir ? root : NULL;
    return *ret_own && !is_own(ret_rest, tenant) ? NULL : root;
}

static int decode(struct input_file *in, struct err *e)
{
    struct str text = json_view(in->coded);
    size_t n;

    in->bytes = mem_zalloc(text.n / 4 * 3 + 1);
    if (!base64_decode(text, in->bytes, &n))
        return err_set(e, ERR_CALLER, "its content is not base64");
    in->content = (struct str){in->bytes, n};
    return 0;
}

int input_file_open(const struct qwen *q, const char *tenant, struct input_file *in, struct err *e)
{
    struct str rest;
    bool is_tenants;
    const struct root *root;
    AUTO_CLOSE int folder = -1;

    if (in->coded)
        return decode(in, e);
    root = locate(q, tenant, in, &rest, &is_tenants);
    if (!root)
        return err_set(e, ERR_CALLER,
                       "it is not below a folder that this server may read: --qwen-work-dir and "
                       "--qwen-file-dirs name them");
    if (is_tenants && (folder = tenant_folder_open(q, tenant, e)) < 0)
        return -1;
    in->fd = space_get(&(struct space){is_tenants ? folder : root->fd, geteuid()}, rest, e);
    if (in->fd < 0)
        return e->kind == ERR_MISSING ? err_set(e, ERR_MISSING, "there is no such file")
                                      : err_set(e, ERR_CALLER, "it cannot be read");
    return 0;
}
