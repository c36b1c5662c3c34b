/*
 * The scene of an approval: the variables and files that the session has already. They decide what
 * code does as much as the code itself: a module called pandas in the workspace is what "import
 * pandas" runs.
 *
 * The person who is asked sees the scene with the code. The approval holds for this scene alone, by
 * its hash, and the scene is compared again when the code may begin. Variables of the interpreter
 * are no part of it: only code that was agreed to has set them.
 */
#include "service/service_int.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN_MAX  (16 * KiB) /* of the list of files */
#define HASH_SHOWN 12         /* digits */

/* What interpreters load by its name, or commands obey, comes first in the list. */
static bool is_loaded(const char *path)
{
    static const char *const ends[] = {".py", ".pyc", ".pth", ".so",
                                       ".sh", ".ini", ".cfg", ".toml"};
    const char *name = path_base(path);
    size_t n = strlen(path);

    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t end = strlen(ends[i]);
        if (n > end && strcmp(path + n - end, ends[i]) == 0)
            return true;
    }
    return name[0] == '.' || !strchr(name, '.');
}

static void show(json_t *list, const struct space_row *f, size_t *bytes)
{
    char name[NAME_SHOWN], size[SIZE_SHOWN], line[NAME_SHOWN + SIZE_SHOWN + HASH_SHOWN + 32];
    int n = snprintf(line, sizeof(line), "%s (%s, sha256 %.*s)", name_show(name, str_of(f->path)),
                     size_show(size, f->size), HASH_SHOWN, f->hash);

    *bytes += (size_t)n;
    if (*bytes <= SHOWN_MAX)
        json_array_append_new(list, record_text((struct str){line, (size_t)n}));
}

static json_t *show_files(const struct space_row *rows, size_t count)
{
    json_t *list = json_array();
    size_t bytes = 0;

    for (int loaded = 1; loaded >= 0; loaded--)
        for (size_t i = 0; i < count; i++)
            if (is_loaded(rows[i].path) == loaded)
                show(list, &rows[i], &bytes);
    if (json_array_size(list) < count)
        json_array_append_new(list, json_sprintf("and %zu more", count - json_array_size(list)));
    return list;
}

static int find_row(struct db *db, const struct approval_scene *s, const char *tenant,
                    struct session_row *ret, struct err *e)
{
    int rc = db_session_get(db, tenant, s->session, ret, e);

    return rc == 0 ? db_session_named(db, tenant, s->pool, s->session, ret, e) : rc;
}

int scene_read(struct db *db, const char *tenant, struct approval_scene *s, json_t **ret_shown,
               struct err *e)
{
    struct session_row row = {0};
    struct space_row *files = NULL;
    size_t count = 0;
    gnutls_hash_hd_t h;
    int rc = *s->session ? find_row(db, s, tenant, &row, e) : 0;

    if (rc > 0)
        rc = db_space_list(db, row.id, &files, &count, e);
    if (rc >= 0 && gnutls_hash_init(&h, GNUTLS_DIG_SHA256) == 0) {
        const char *env = row.env ? row.env : "";
        gnutls_hash(h, env, strlen(env) + 1);
        for (size_t i = 0; i < count; i++) {
            gnutls_hash(h, files[i].path, strlen(files[i].path) + 1);
            gnutls_hash(h, files[i].hash, strlen(files[i].hash) + 1);
            gnutls_hash(h, &files[i].mode, sizeof(files[i].mode));
        }
        gnutls_hash_deinit(h, s->hash);
    }
    if (rc >= 0 && ret_shown) {
        json_t *env = row.env ? json_loads(row.env, 0, NULL) : NULL;
        *ret_shown = json_object();
        if (json_object_size(env) > 0)
            json_object_set(*ret_shown, "session_env", env);
        if (count > 0)
            json_object_set_new(*ret_shown, "session_files", show_files(files, count));
        json_decref(env);
    }
    for (size_t i = 0; i < count; i++)
        space_row_done(&files[i]);
    free(files);
    session_row_done(&row);
    return rc < 0 ? -1 : 0;
}
